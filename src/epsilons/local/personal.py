"""Randomized response where every owner has an epsilon of their own.

Level j answers by randomized response at its epsilon: the truth with p_j, else a uniform output. A level's estimate of
the share of an option has variance v_j/n_j with v_j = l_j(1 - l_j)/p_j^2, l_j = (1 - p_j)/outputs; for two outputs that
is e^eps/(e^eps - 1)^2. Levels are combined with weights that are public facts, so no answer moves them:

- `assume="unrelated"` (preferences say nothing about answers): weight per owner u_j prop. to
  1/(v_j + density(1 - density)), inverse to the variance of one owner's report, capped as below;
- `assume=g`: no level's expected share p_j is further than g sqrt(p(1 - p)) from everyone's share p. Weights of levels
  in the middle are alike, so many that variance and what such levels may add have the least sum (`Combination`);
- `assume="nothing"`: every owner counts alike, which is unbiased however answers follow preferences.

One owner moves the estimated count by at most N u_j/p_j, by lying about anything. At u_j prop. to 1/v_j that is about
2 sinh(eps): an owner who claims the smallest epsilon moves least. One who claims the largest moves most, so what
remains is capped: u_j <= cap p_j/N. No weights at all bring it below N/sum(n_j p_j); the default cap is twice that.
"""

import math
from dataclasses import replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.options import DEFAULT_ASSUME
from epsilons.display import text_table
from epsilons.errors import Argument, DataError, PlanError, ProtocolError
from epsilons.guarantee import PUBLIC_PEOPLE, ROSTER_IS_PUBLIC, Guarantee, to_epsilon
from epsilons.local.base import Outputs, check_outputs, read_options, read_truths
from epsilons.local.estimate import Combination, Ends, Estimate, check_combination
from epsilons.local.leakage import SECOND_ROUND, Floats, Leakage
from epsilons.local.randomized_response import RandomizedResponse, truth_chance
from epsilons.noise import Entropy, system
from epsilons.preferences import Levels, Roster, roster_of

_ROWS_IN_A_TABLE = 12


class PersonalResponse:
    """Owners answer at their own epsilons; `epsilons` has one for each of them, in the order of their answers.

    >>> protocol = PersonalResponse([.5] * 300 + [2.] * 100)
    >>> answers, = protocol.respond([1] * 400)
    >>> protocol.count(answers).sum(axis=1).tolist()
    [300, 100]
    """

    rounds = 1

    def __init__(self, epsilons: Any, options: int = 1) -> None:
        self.options = read_options(options)
        self.roster: Roster = roster_of(epsilons)
        if not len(self.roster):
            raise DataError("There are no owners.", rule="One epsilon for each owner.", suggest="[0.5, 1.0]")
        #: The distinct epsilons, ascending, and how many owners stand at each.
        self.levels: Levels = self.roster.levels
        self.outputs = self.options + 1

    @cached_property
    def protocols(self) -> tuple[RandomizedResponse | None, ...]:
        """The protocol of each level; None for public owners, who tell the truth."""
        return tuple(
            None if grant is None else RandomizedResponse(truth_chance(grant, self.options), options=self.options)
            for grant in self.levels.grants
        )

    @cached_property
    def _chances(self) -> tuple[Floats, Floats]:
        """(p_j, l_j): the chance of the truth, and that of any given output otherwise."""
        p = np.array([1.0 if protocol is None else float(protocol.truth) for protocol in self.protocols])
        return p, (1 - p) / self.outputs

    def respond(self, truths: Any, *, entropy: Entropy | None = None) -> tuple[Outputs]:
        """What owners send, in the order of the epsilons. One owner alone: RandomizedResponse(epsilon=...)."""
        cleaned, single = read_truths(truths, self.options)
        if single or len(cleaned) != len(self.roster):
            rule = f"One truth for each of the {len(self.roster):,} epsilons."
            raise DataError("Truths and epsilons do not match.", rule=rule, suggest="RandomizedResponse for one owner")
        entropy = system() if entropy is None else entropy
        answers = cleaned.copy()
        for code, protocol in enumerate(self.protocols):
            if protocol is not None:
                here = self.roster.codes == code
                (answers[here],) = protocol.respond(cleaned[here], entropy=entropy)
        return (answers,)

    def count(self, answers: Any) -> NDArray[np.int64]:
        """The answers' counts: a row per level, a column per output."""
        array = check_outputs(answers, self.outputs)
        if len(array) != len(self.roster):
            raise ProtocolError("Answers and epsilons do not match.", rule="One answer for each owner, in their order.")
        cells = self.roster.codes.astype(np.int64) * self.outputs + array
        table = np.bincount(cells, minlength=len(self.levels.grants) * self.outputs)
        return table.reshape(-1, self.outputs).astype(np.int64)

    def weights(self, *, assume: Any = DEFAULT_ASSUME, density: float = 0.5, cap: float | None = None) -> Floats:
        """What one owner's report counts for, per level; over all owners this adds up to 1. From public facts only."""
        return self._combine(assume, density, cap).weights

    def _combine(self, assume: Any, density: float, cap: float | None) -> Combination:
        sizes, (p, low) = np.array(self.levels.sizes, dtype=np.float64), self._chances
        people = sizes.sum()
        related, density = check_combination(assume, density)
        least = people / float(sizes @ p)
        if math.isinf(related):
            reached = float((1 / p).max())
            if cap is not None and cap < reached:
                rule = f"When every owner counts alike, one moves the count by up to {reached:.4g}."
                raise PlanError("This cap is out of reach.", rule=rule, suggest=Argument("assume", "unrelated"))
        most = 2 * least if cap is None else float(cap)
        if not most >= least:
            rule = f"With these epsilons one owner moves the count by at least {least:.4g}, whatever the weights."
            hint = Argument("cap", math.ceil(least * 100) / 100)
            raise PlanError("This cap is out of reach.", rule=rule, suggest=hint)
        return Combination.best(sizes, low * (1 - low) / p**2, related, density, most * p / people)

    def influence(
        self, *, assume: Any = DEFAULT_ASSUME, density: float = 0.5, cap: float | None = None
    ) -> dict[float, float]:
        """{epsilon: the most by which one owner who claims it moves an estimated count, however they cheat}."""
        moves = self.weights(assume=assume, density=density, cap=cap) * len(self.roster) / self._chances[0]
        return dict(zip(map(to_epsilon, self.levels.grants), moves.tolist(), strict=True))

    def estimate(
        self, counts: Any, *, assume: Any = DEFAULT_ASSUME, density: float = 0.5, cap: float | None = None
    ) -> Estimate:
        """How many owners have each option, from `count(answers)`."""
        try:
            table = np.asarray(counts)
            usable = table.dtype.kind in "iu" and table.shape == (len(self.levels.sizes), self.outputs)
            usable = usable and table.min() >= 0 and tuple(table.sum(axis=1)) == self.levels.sizes
        except (TypeError, ValueError):
            usable = False
        if not usable:
            rule = "A row for each level with as many answers as it has owners, a column for each output."
            raise ProtocolError("The counts are not usable.", rule=rule)
        combined = self._combine(assume, density, cap)
        weights, sizes, people, (p, low) = combined.weights, combined.sizes, combined.people, self._chances
        values = people * ((weights / p) @ (table[:, 1:].astype(np.int64) - (sizes * low)[:, None]))
        # Var(n) = alike + n*extra from the coins, + what the split of n owners over levels adds.
        alike = people**2 * float(weights**2 * sizes / p**2 @ (low * (1 - low)))
        high = low + p
        extra = people * float(weights**2 * sizes / p**2 @ (high * (1 - high) - low * (1 - low)))

        def variance(n: Floats) -> Floats:
            return np.maximum(alike + n * extra + combined.split(n), 0.0)

        def bounds(level: float) -> Ends:
            z = NormalDist().inv_cdf((1 + level) / 2)
            return combined.ends(values, lambda n: z * np.sqrt(variance(n)))

        n = np.clip(values, 0, people)
        errors = np.hypot(np.sqrt(variance(n)), combined.bias(n))
        most = weights * people / p
        note = f"One owner who cheats moves a count by at most {most.max():.4g}; by claiming the smallest epsilon, by "
        notes = (f"{note}{most[0]:.4g}.", *combined.condition(values))
        return Estimate(values, errors, int(people), self.leakages, bounds, notes=notes)

    def leakage(self, epsilon: float | None = None) -> Leakage:
        """What an answer gives away about an owner of one level; without a level, of the most open private one.

        There is one round, and published counts give away no more than the answers.
        """
        found = dict(zip(map(to_epsilon, self.levels.grants), self.leakages(every=True), strict=True))
        asked = max((e for e in found if math.isfinite(e)), default=math.inf) if epsilon is None else epsilon
        if asked not in found:
            raise PlanError("There is no such level.", suggest=f"one of {', '.join(f'{e:.6g}' for e in found)}")
        return found[asked]

    def leakages(self, every: bool = False) -> tuple[Leakage, ...]:
        """One for each level; of many levels only the outermost unless `every`."""
        found = []
        for grant, protocol in zip(self.levels.grants, self.protocols, strict=True):
            sees = f"an answer of an owner at {self.levels.name(grant)}"
            if protocol is None:
                ends = (np.array([1.0, 0.0]), np.array([0.0, 1.0]))
                found.append(Leakage(SECOND_ROUND, sees, math.inf, [ends], math.inf))
            else:
                found.append(replace(protocol.leakage(SECOND_ROUND), sees=sees))
        return tuple(found) if every or len(found) <= _ROWS_IN_A_TABLE else (found[0], found[-1])

    @property
    def guarantee(self) -> Guarantee:
        caveats = (ROSTER_IS_PUBLIC, *((PUBLIC_PEOPLE,) if None in self.levels.grants else ()))
        losses = tuple((grant, grant) for grant in self.levels.grants)
        return Guarantee("replace", losses, caveats=caveats, imputes=True, covers=self.roster.covered)

    def __str__(self) -> str:
        weights, p = self.weights() * len(self.roster), self._chances[0]
        rows = [
            (self.levels.name(grant), f"{size:,}", f"{truth:.4g}", f"{u:.4g}", f"{u / truth:.4g}")
            for grant, size, truth, u in zip(self.levels.grants, self.levels.sizes, p, weights, strict=True)
        ]
        head = ("epsilon", "owners", "truth with", "weight", "moves a count by at most")
        return f"Randomized response at every owner's epsilon, {self.options} option(s)\n\n{text_table(head, rows)}"

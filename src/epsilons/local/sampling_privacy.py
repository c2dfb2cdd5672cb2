"""Sampling Privacy (Joy, section 4): two rounds, of which the second differs by the sampled owners' truth.

Before it, Joy's toy constructions (section 3): why sampling alone cannot work, and what it takes.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import Argument, PlanError, ProtocolError
from epsilons.local.base import ONE_ROUND, Crowd, Law, Outputs, ResponseProtocol, Seen, read_die, read_probability
from epsilons.local.binomials import MOST_ALIKE, crowd_pair, crowd_size, difference_pair, replaced_pair, size_intervals
from epsilons.local.estimate import Estimate
from epsilons.local.leakage import COUNTS, SECOND_ROUND, Pair, log_loss
from epsilons.local.randomized_response import RandomizedResponse, deviation, one_round_estimate
from epsilons.noise import Entropy
from epsilons.noise.coins import Die

TOO_FEW = "Some option was named less often in round two than in round one, which no honest owner causes."
MOSTLY_TRUE = (
    "Half of the owners or more are sampled, so that most second answers are the truth; Joy (section 3.1) keeps below."
)

#: The output of an owner who was not sampled and says nothing, in the construction that also has a No.
_SILENT = 2
#: So many outcomes of a crowd's counts are gone through without being asked.
_QUICK = 300_000


def _read_sampling(sampling: Any) -> Fraction:
    chance = read_probability(sampling, "sampling")
    if chance == 0:
        raise ProtocolError("No owner would answer.", rule="Larger than 0.", suggest=Argument("sampling", 0.45))
    return chance


class SamplingOnly(ResponseProtocol):
    """Say Yes with probability `sampling`, whatever the truth, else nothing (Joy, section 3.2, Eq. 1).

    Outputs: 0 nothing, 1 Yes. Nothing can be estimated: the law of what is seen is the same for every number of Yes.
    """

    name: ClassVar[str] = "sampling-only"

    def __init__(self, sampling: Any) -> None:
        super().__init__(1)
        self.sampling = _read_sampling(sampling)

    def law(self, truth: int) -> Law:
        return {(0,): 1 - self.sampling, (1,): self.sampling}

    def _respond(self, truths: NDArray[np.uint32], entropy: Entropy) -> Sequence[Outputs]:
        return (Die([1 - self.sampling, self.sampling]).roll(entropy, len(truths)),)

    def estimate(self, *counts: Any) -> Estimate:
        self._read_rounds(counts)
        rule = "One equation, two unknowns: owners with a Yes and with a No answer with the same probability."
        hint = "SamplingDeniability, RandomizedResponse or SamplingPrivacy"
        raise PlanError("Sampling alone tells nothing about how many would say Yes.", rule=rule, suggest=hint)

    def spread(self, count: float, population: float) -> float:
        return math.inf

    def _chances(self) -> dict[str, Any]:
        return {"sampling": self.sampling}

    def describe(self) -> str:
        return (
            f"Sampling only: every owner says Yes with probability {float(self.sampling):.4g}, whatever the truth. "
            "Nothing leaks, and nothing can be estimated: one equation, two unknowns."
        )

    def _look(self, view: str, crowd: Crowd) -> Seen:
        same = np.array([float(1 - self.sampling), float(self.sampling)])
        return ONE_ROUND[view], 0.0, [(same, same)], True


class SamplingDeniability(ResponseProtocol):
    """Answer at all with probability `sampling`, and then by randomized response (Joy, section 3.3, Eqs. 2-5).

    Outputs: 0 No, 1 Yes, 2 nothing. Eq. 2 is read as pi_s*(pi_1 + (1 - pi_1)*pi_2). The loss is that of randomized
    response, since who says nothing shows nothing; the error is larger, and grows with the population as well. The
    number of owners asked must be known.
    """

    name: ClassVar[str] = "sampling-deniability"

    def __init__(self, sampling: Any, truth: Any, yes: Any) -> None:
        super().__init__(1)
        self.sampling = _read_sampling(sampling)
        self.response = RandomizedResponse(truth, yes)
        self.outputs = _SILENT + 1

    @property
    def claim(self) -> float | None:
        """Eq. 5 "is precisely the structure of randomized response", whose epsilon is Eq. 30."""
        return self.response.claim

    def law(self, truth: int) -> Law:
        answered = {output: self.sampling * chance for output, chance in self.response.law(truth).items()}
        return {**answered, (_SILENT,): 1 - self.sampling}

    def _respond(self, truths: NDArray[np.uint32], entropy: Entropy) -> Sequence[Outputs]:
        no, yes = (Die(list(self.law(truth).values())).roll(entropy, len(truths)) for truth in (0, 1))
        np.copyto(no, yes, where=truths == 1)
        return (no,)

    def estimate(self, *counts: Any) -> Estimate:
        (seen,) = self._read_rounds(counts)
        return one_round_estimate(seen, [self.law(1)[1,]], [self.law(0)[1,]], self)

    def spread(self, count: float, population: float) -> float:
        return deviation(count, population, float(self.law(1)[1,]), float(self.law(0)[1,]))

    def _chances(self) -> dict[str, Any]:
        return {"sampling": self.sampling, "truth": self.response.truth, "yes": self.response.others[1]}

    def describe(self) -> str:
        return (
            f"Sampling and plausible deniability: answer with probability {float(self.sampling):.4g}, then the truth "
            f"with {float(self.response.truth):.4g}, else Yes with {float(self.response.others[1]):.4g}."
        )

    def _look(self, view: str, crowd: Crowd) -> Seen:
        no, yes = (np.array([float(chance) for chance in self.law(truth).values()]) for truth in (0, 1))
        return ONE_ROUND[view], self.response.epsilon, [(yes, no)], view != COUNTS


class SamplingPrivacy(ResponseProtocol):
    """Round one hides every owner behind a die; in round two the sampled move from 0 to their truth.

    Definition: round one: v with probability others_v, and 0 with `sampling`. Round two: those sampled send their
                truth, the others repeat (Eqs. 6-8 and 12-13; the last term of Eq. 12 is 1 - pi_0 - ... -
                pi_{V-1} - pi_s).
    Claim:      ln(1 + sampling/min_v others_v) (Eqs. 21, 25, 29; Eq. 29 must use the smallest), which holds against
                an observer of round two alone: that is randomized response with first coin `sampling`.
    Leakage:    an owner seen in both rounds who was sampled shows their truth: epsilon infinite, delta = sampling.
                Published counts: Bin(n_v, sampling) against Bin(n_v - 1, sampling), with no pure epsilon either.
    Estimate:   (S_v2 - S_v1)/sampling (Eqs. 11 and 16), of variance n_v (1 - sampling)/sampling: it does not depend on
                the population.

    >>> protocol = SamplingPrivacy(options=11, sampling=.45)
    >>> round(protocol.claim, 3), protocol.leakage().epsilon, protocol.leakage().delta
    (2.381, inf, 0.45)
    """

    name: ClassVar[str] = "sampling-privacy"
    rounds: ClassVar[int] = 2

    def __init__(self, options: int = 1, sampling: Any = None, *, others: Any = None) -> None:
        super().__init__(options)
        self.sampling = read_probability(sampling, "sampling", strict=True)
        self.others = read_die(others, self.outputs, 1 - self.sampling, "others")

    @property
    def claim(self) -> float | None:
        """Eqs. 21 and 25 for a yes-or-no question, Eq. 29 with the smallest pi_v for several options."""
        return log_loss(self.sampling, min(self.others if self.options == 1 else self.others[1:]))

    def law(self, truth: int) -> Law:
        law: Law = {(v, v): chance for v, chance in enumerate(self.others)}
        law[0, truth] = law.get((0, truth), Fraction(0)) + self.sampling
        return law

    @cached_property
    def _die(self) -> Die:
        return Die([*self.others, self.sampling])

    def _respond(self, truths: NDArray[np.uint32], entropy: Entropy) -> Sequence[Outputs]:
        second = self._die.roll(entropy, len(truths))
        sampled = second == self.outputs
        first = second.copy()
        first[sampled] = 0
        np.copyto(second, truths, where=sampled, casting="unsafe")
        return first, second

    def estimate(self, *counts: Any) -> Estimate:
        first, second = self._read_rounds(counts)
        population = int(first.sum())
        if int(second.sum()) != population:
            hint = "leave out owners who are missing in one round"
            raise ProtocolError("The rounds have different numbers of owners.", suggest=hint)
        share, moved = float(self.sampling), second[1:] - first[1:]
        values = moved / share
        plausible = np.clip(values, 0, population)
        errors = np.sqrt(plausible * (1 - share) / share)
        bounds = partial(size_intervals, np.maximum(moved, 0), population, share, 0.0)
        leak = partial(self.leakages, counts=(1, round(float(plausible.max()))), population=population)
        notes = (*((TOO_FEW,) if (moved < 0).any() else ()), *self._warnings)
        return Estimate(values, errors, population, leak, bounds, notes=notes)

    def spread(self, count: float, population: float) -> float:
        return math.sqrt(count * float((1 - self.sampling) / self.sampling))

    def _chances(self) -> dict[str, Any]:
        return {"options": self.options, "sampling": self.sampling, "others": self.others}

    def describe(self) -> str:
        return (
            f"Sampling Privacy, {self.options} option{'s' if self.options > 1 else ''}: two rounds; sampled with "
            f"probability {float(self.sampling):.4g}, and then none in round one and the truth in round two."
            + "".join(f" {warning}" for warning in self._warnings)
        )

    @property
    def _warnings(self) -> tuple[str, ...]:
        return (MOSTLY_TRUE,) if 2 * self.sampling >= 1 else ()

    def _is_small(self, count: int, population: int) -> bool:
        return count <= population and crowd_size(count, population - count, self.options > 1) <= _QUICK

    def _look(self, view: str, crowd: Crowd) -> Seen:
        if view == COUNTS:
            return self._look_at_counts(crowd)
        share, zero = float(self.sampling), float(self.others[0])
        if view == SECOND_ROUND:
            # Round two alone is randomized response with first coin `sampling`: worst for what chance names least.
            rare = self.others.index(min(self.others))
            one, two = float(self.others[rare]), float(self.others[1 if rare == 0 else 0])
            rest = 1 - share - (one + two)
            pair = (np.array([one + share, two, rest]), np.array([one, two + share, rest]))
            return "one owner's second round", log_loss(self.sampling, min(self.others)), [pair], True
        # A sampled owner of v sends (0, v), which no other truth can lead to.
        rest = 1 - share - zero
        pairs: list[Pair] = [(np.array([share, zero, rest]), np.array([0.0, zero + share, rest]))]
        if self.options > 1:
            pairs.append((np.array([share, 0.0, 1 - share]), np.array([0.0, share, 1 - share])))
        return "one owner in both rounds", math.inf, pairs, True

    def _look_at_counts(self, crowd: Crowd) -> Seen:
        share, count, population = float(self.sampling), crowd.count, crowd.population
        sees = f"{ONE_ROUND[COUNTS]}, {count:,} alike"
        if crowd.neighbors == "replace" and self.options > 1:
            if population is not None:
                hint = ("leave out ", Argument("population"), ", or ", Argument("neighbors", "absent"))
                raise PlanError("A small crowd is only judged against none.", suggest=hint)
            sees += f", or one of {crowd.other + 1:,} elsewhere"
            return sees, math.inf, [replaced_pair(count, crowd.other, share)], True
        if population is None:
            return sees, math.inf, [difference_pair(min(count, MOST_ALIKE), share)], count <= MOST_ALIKE
        sees += f" among {population:,}"
        zero, several = float(self.others[0]), self.options > 1
        return sees, math.inf, [crowd_pair(count, population - count, share, zero, other_values=several)], True

"""A function of one's own with noise: Laplace or, with a delta, Gaussian, for a sensitivity that the caller states."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.accuracy.intervals import ErrorModel
from epsilons.arguments.checks import (
    LARGEST_NUMBER,
    check_entropy,
    check_name,
    check_share,
    exact,
    read_real,
    refuse,
)
from epsilons.arrays.claimed import search_claim, show_people, tell_claim
from epsilons.arrays.gridded import Gridded
from epsilons.engines.readings import is_list
from epsilons.errors import Argument, PlanError
from epsilons.guarantee import NANO, NEIGHBORS, NO_PROMISE, Guarantee
from epsilons.measure import Measure, Rate, check_delta
from epsilons.mechanisms.base import Account
from epsilons.noise.entropy import Entropy, is_private, system
from epsilons.preferences import Roster, aligned_roster
from epsilons.release.answer import EVERYONE_PUBLIC, EXACT, Release, build_release, list_caveats
from epsilons.statistics.additive import Laplace
from epsilons.statistics.gaussian import Gaussian

_CLAIM = "The sensitivity"


def noisy(
    function: Callable[[Any], Any],
    values: Any,
    epsilons: Any,
    *,
    sensitivity: float | Sequence[float],
    step: float,
    size: int | None = None,
    whole: bool = False,
    neighbors: str = "absent",
    delta: float | None = None,
    domain: Sequence[Any] | None = None,
    share: float = 1.0,
    entropy: Entropy | None = None,
) -> Release:
    """Any number computed from everybody's values, or `size` numbers, with noise for a sensitivity that you state.

    `sensitivity` is how far one person can move the answer at most, on any data: a number for all, or one per person.
    Of several numbers it is the sum of the moves (L1), with a `delta` their root of squares (L2). Under `neighbors`
    "absent" a person's value comes or goes, under "replace" it becomes any other. The function sees everyone: numbers
    as floats, NaN for who has none; other values as they are, or None. Where it fails on them, or gives no finite
    number, its answer is 0 and no error tells so: the sensitivity covers that too. Try it on made-up data first.

    Answers fall on multiples of the public `step`, cut at 10^30; the noise allows for the rounding, unless `whole` says
    that answers and sensitivity are multiples of it anyway. Noise is of the scale max_i sensitivity_i/epsilon_i, and
    everyone is charged what they lose by that. With a public `domain` of values the sensitivity is tested on made-up
    data before any value is read; it is the caller's word all the same, and the guarantee says so.

    >>> import epsilons as eps
    >>> import numpy as np
    >>> ages = [23, 35, 41, 52, 60] * 40
    >>> grown = lambda values: np.nansum(values >= 40)
    >>> answer = eps.noisy(grown, ages, [0.5, 1.0] * 100, sensitivity=1, step=1, whole=True, domain=[0, 40, 90])
    >>> answer.charges
    {0.5: 0.5, 1.0: 0.5}
    """
    source = system() if entropy is None else check_entropy(entropy)
    asked = Noisy.read(Gridded.read(function, step, size, whole), sensitivity, neighbors, delta, domain)
    roster, part = aligned_roster(epsilons, values), check_share(share)
    if roster.levels.all_public:
        return asked.release(roster, None, asked.answer.places(show_people(values, len(roster))), source)
    scaled, used = asked.take_share(roster, part)
    if used is not None:  # a function of everybody's values cannot leave anyone out
        raise PlanError(f"A share of {float(part):g} leaves somebody with nothing.", suggest="a larger share")
    plan = asked.plan(scaled)
    tried = asked.test(roster)
    places = asked.answer.places(show_people(values, len(roster)), instead=0)  # an error would tell of the values
    drawn = [place + noise for place, noise in zip(places, plan.law.draw(source, len(places)), strict=True)]
    account = Account.of(scaled.levels, plan.charges).at_share(roster.levels, part, asked.rate)
    return asked.release(roster, plan, drawn, source, account, tell_claim(tried, _CLAIM))


@dataclass(frozen=True)
class NoisePlan:
    """What follows from public facts: the noise in steps of the answer, and what each level is charged."""

    law: Laplace | Gaussian
    charges: tuple[int | None, ...]
    rate: Fraction


@dataclass(frozen=True)
class Noisy:
    """The public arguments of a noisy function."""

    answer: Gridded
    sensitivity: tuple[float, ...]
    neighbors: str
    delta: Fraction | None
    domain: Any

    @classmethod
    def read(cls, answer: Gridded, sensitivity: Any, neighbors: Any, delta: Any, domain: Any) -> Noisy:
        """From what the caller gave."""
        check_name("neighbors", neighbors, NEIGHBORS)
        many = is_list(sensitivity) or isinstance(sensitivity, np.ndarray)
        reach = tuple(read_real(one) for one in (sensitivity if many else [sensitivity]))
        if not reach or not all(0 <= one <= LARGEST_NUMBER for one in reach) or not any(reach):
            rule = "How far one person can move the answer: a number above 0, or one from 0 on for each person."
            raise refuse("sensitivity", sensitivity, rule, Argument("sensitivity", 1))
        return cls(answer, reach, neighbors, None if delta is None else check_delta(delta), domain)

    @property
    def rate(self) -> Rate | None:
        """What a loss costs people where there is a delta."""
        return None if self.delta is None else Rate(Measure(self.delta))

    def take_share(self, roster: Roster, part: Fraction) -> tuple[Roster, NDArray[np.bool_] | None]:
        """Everybody at a part of what they granted, and who is used if not all are."""
        return roster.take_share(part, self.rate)

    def reaches(self, people: int) -> list[float]:
        """The stated sensitivity of each person."""
        if len(self.sensitivity) not in (1, people):
            what = f"{len(self.sensitivity)} sensitivities and {people} people."
            raise PlanError(what, suggest="one for all, or one per person")
        return list(self.sensitivity) * (people if len(self.sensitivity) == 1 else 1)

    def plan(self, roster: Roster) -> NoisePlan:
        """The noise and the charges: everyone loses reach/scale, and somebody all they granted.

        Laplace noise of scale s on a move of L1 length r loses r/s; Gaussian noise of deviation s on one of L2 length r
        loses (r/s)^2/2 of rho (Bun and Steinke 2016), which is what r/s as a strength costs.
        """
        stated = np.array(self.reaches(len(roster)))
        by_level = [float(stated[roster.codes == level].max()) for level in range(len(roster.levels.grants))]
        reach = [self.answer.steps(exact(far), self.delta is not None) for far in by_level]
        pairs = zip(roster.levels.grants, reach, strict=True)
        rates = [Fraction(grant, NANO * far) for grant, far in pairs if grant is not None and far]
        if not rates:
            raise PlanError("Only public people move this answer.", rule="Noise for them would protect nobody.")
        rate = min(rates)
        losses = [math.ceil(rate * far * NANO) for far in reach]
        charges = [None if g is None else loss for g, loss in zip(roster.levels.grants, losses, strict=True)]
        law = Laplace(rate) if self.delta is None else Gaussian(1 / rate**2)
        return NoisePlan(law, tuple(charges), rate)

    def test(self, roster: Roster) -> int | None:
        """Whether the sensitivity holds on made-up data."""

        def move(one: NDArray[Any], other: NDArray[Any]) -> float:
            steps = [self.answer.places(people, loudly=True) for people in (one, other)]
            if self.answer.whole:  # noise does not allow for rounding, so that what is rounded has to hold
                here, there = (np.array([float(step * self.answer.grid) for step in side]) for side in steps)
            else:
                here, there = (np.asarray(self.answer.function(people.copy()), np.float64) for people in (one, other))
            return float(np.linalg.norm(np.atleast_1d(here - there), 1 if self.delta is None else 2))

        return search_claim(move, self.reaches(len(roster)), roster, self.domain, self.neighbors, _CLAIM)

    def release(
        self,
        roster: Roster,
        plan: NoisePlan | None,
        places: Sequence[int],
        source: Entropy,
        account: Account | None = None,
        claim: str = "",
    ) -> Release:
        """What is told of the answer: the noise is public, and so is its error."""
        told = {"statistic": "function of everybody's values", "value": self.answer.values(places)}
        if plan is None or account is None:
            account = Account.of(roster.levels, roster.levels.grants)
            promise = Guarantee(self.neighbors, account.losses, NO_PROMISE, list_caveats(roster.levels, True, ()))
            made = build_release(account, promise, mechanism=EXACT, why=EVERYONE_PUBLIC, error=0.0, **told)
            return made.about(roster.covered)
        step = float(self.answer.grid)
        rounded = 0.0 if self.answer.whole else step / 2
        scale = step / float(plan.rate)
        normal = self.delta is not None
        bar = ErrorModel(() if normal else (scale,), scale if normal else 0.0, bound=rounded, grid=step)
        error, one = (
            math.hypot(scale if normal else math.sqrt(2) * scale, rounded / math.sqrt(3)),
            self.answer.size is None,
        )
        caveats = list_caveats(roster.levels, is_private(source), (claim,))
        return build_release(
            account,
            Guarantee(self.neighbors, account.losses, caveats=caveats, measure=account.measure),
            mechanism="gaussian" if normal else "laplace",
            why="Asked for by name: noise for a sensitivity that the caller stated.",
            error=error if one else None,
            models=(bar,) if one else None,
            no_interval="" if one else "Several numbers err each by itself; details have the noise of each.",
            details={"scale": scale, "error": error},
            **told,
        ).about(roster.covered)

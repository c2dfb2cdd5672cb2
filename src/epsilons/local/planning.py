"""Before anyone is asked: how many respondents and which sampling rate, for a wanted error and leakage."""

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from epsilons.arguments.checks import check_between, check_whole
from epsilons.display import Sheet, Shown, show, show_count
from epsilons.errors import Argument, PlanError
from epsilons.local.base import read_options
from epsilons.local.binomials import MOST_ALIKE, difference_pair
from epsilons.local.leakage import BOTH_ROUNDS, COUNTS, SECOND_ROUND, Leakage, show_delta, show_epsilon, smallest_delta
from epsilons.local.randomized_response import RandomizedResponse
from epsilons.local.sampling_privacy import SamplingPrivacy

#: Sampling rates are given to so many digits, rounded down.
_DIGITS = 10**6
_MOST_PEOPLE = 10**9

Planned = RandomizedResponse | SamplingPrivacy

JUDGES = {
    "": "any observer",
    SECOND_ROUND: "round two alone (the paper)",
    COUNTS: "published counts",
    BOTH_ROUNDS: "one owner in both rounds",
}
_HEAD = (
    "protocol",
    "holds for",
    "rate",
    "respondents",
    "error",
    "paper's claim",
    "owner in both rounds",
    JUDGES[COUNTS],
)


@dataclass(frozen=True)
class CollectionRow:
    """One way to collect. `respondents` is how many are needed; with `count`, how many there may be; None is any.

    `judge` is the view in which the wanted leakage holds, "" for all of them. `reached` says whether the error is.
    Without a protocol the wanted leakage is out of reach.
    """

    protocol: Planned | None
    judge: str
    respondents: int | None = None
    error: float = math.inf
    reached: bool = False
    both_rounds: Leakage | None = None
    counts: Leakage | None = None


@dataclass(frozen=True)
class CollectionPlan(Shown):
    """What each protocol needs for a wanted error and leakage. Made from public guesses alone."""

    error: float
    epsilon: float
    delta: float
    options: int
    #: Of the two one is given: what part of the respondents has an option, or how many people.
    share: float | None
    count: int | None

    @cached_property
    def rows(self) -> tuple[CollectionRow, ...]:
        """Randomized response, then Sampling Privacy once for each view."""
        # Round two alone: ln(1 + s/pi) is epsilon, all pi alike, at s = (e^epsilon - 1)/(e^epsilon + options).
        rate = -math.expm1(-self.epsilon) / (1 + self.options * math.exp(-self.epsilon))
        claimed = self._sampled(_rate_down(rate), SECOND_ROUND)
        # Both rounds: a sampled owner shows their answer, so delta is the rate itself.
        shown = self._sampled(Fraction(math.floor(self.delta * 10**15), 10**15), BOTH_ROUNDS)
        return self._by_response(), claimed, self._by_counts(), shown

    def sheets(self) -> list[Sheet]:
        size, unit = f"a share of {self.share or 0:.4g} of them", "of the respondents"
        if self.count is not None:
            size, unit = show_count(self.count, "person", "people"), "people"
        leakage = f"epsilon {self.epsilon:.4g} and delta {self.delta:.3g}"
        title = f"To count {size} with an error of {self.error:.4g} {unit}, at {leakage}"
        return [Sheet(title, _HEAD, self._cells(), self._notes())]

    def _cells(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for row in self.rows:
            protocol, cells = row.protocol, ("–", "out of reach", "–", "–", "–", "–")
            name = "randomized response" if isinstance(protocol, RandomizedResponse) else "Sampling Privacy"
            if protocol is not None and row.both_rounds is not None and row.counts is not None:
                rate = float(protocol.truth if isinstance(protocol, RandomizedResponse) else protocol.sampling)
                most = "" if self.count is None else "up to "
                people = "any" if row.respondents is None else f"{most}{row.respondents:,}"
                error = show(row.error) + ("" if row.reached else " (too large)")
                leaks = show_epsilon(protocol.claim), _say(row.both_rounds), _say(row.counts)
                cells = (f"{rate:.4g}", people, error, *leaks)
            rows.append((name, JUDGES[row.judge], *cells))
        return rows

    def _notes(self) -> list[str]:
        notes = ["The wanted leakage holds for the view under 'holds for'; the last columns say what other views see."]
        notes.append("Published counts are judged in a large crowd.")
        if self.count is None:
            option = f"an option that a share of {self.share:.4g} has"
            return [*notes, f"Published counts are judged for {option}; rarer ones leak more."]
        return [*notes, "Randomized response errs more the more are asked; Sampling Privacy's error does not change."]

    def _by_response(self) -> CollectionRow:
        protocol = RandomizedResponse(epsilon=self.epsilon, options=self.options)
        if self.count is None:
            return self._row(protocol, "")
        rest = (self.error**2 - protocol.spread(self.count, self.count) ** 2) / protocol.spread(0, 1) ** 2
        return self._row(protocol, "", self.count + max(0, math.floor(rest)))

    def _by_counts(self) -> CollectionRow:
        if self.count is not None:
            leaks = partial(self._leaks, self.count)
            digits = bisect_left(range(1, _DIGITS - 1), True, key=lambda digits: leaks(Fraction(digits, _DIGITS)))
            return self._sampled(Fraction(digits, _DIGITS), COUNTS)
        rates = [_rate_down(float(step)) for step in np.geomspace(1e-4, 0.95, 80)]
        needed = [(people, rate) for rate in rates if (people := self._people_for(rate)) is not None]
        people, rate = min(needed, key=lambda pair: pair[0], default=(None, Fraction(0)))
        return self._sampled(rate, COUNTS, people)

    def _people_for(self, rate: Fraction) -> int | None:
        """The fewest respondents for which both the error and the leakage of the counts are as wanted."""
        low = high = max(1, math.ceil((self.share or 0.0) * float((1 - rate) / rate) / self.error**2))
        while self._leaks(self._alike(high), rate):
            high *= 2
            if high > _MOST_PEOPLE:
                return None
        return low + bisect_left(range(low, high), True, key=lambda n: not self._leaks(self._alike(n), rate))

    def _alike(self, people: int) -> int:
        return max(1, math.floor((self.share or 0.0) * people))

    def _leaks(self, alike: int, rate: Fraction) -> bool:
        """Whether counts of so many alike leak more than the wanted epsilon and delta."""
        return smallest_delta([difference_pair(min(alike, MOST_ALIKE), float(rate))], self.epsilon) > self.delta

    def _sampled(self, rate: Fraction, judge: str, people: int | None = None) -> CollectionRow:
        return (
            CollectionRow(None, judge) if rate <= 0 else self._row(SamplingPrivacy(self.options, rate), judge, people)
        )

    def _row(self, protocol: Planned, judge: str, people: int | None = None) -> CollectionRow:
        if self.count is not None:
            alike, error = self.count, protocol.spread(self.count, people or self.count)
        else:
            share = self.share or 0.0
            people = people or math.ceil((protocol.spread(share, 1) / self.error) ** 2)
            alike, error = self._alike(people), protocol.spread(share * people, people) / people
        counts = protocol.leakage(COUNTS, count=alike, epsilon=self.epsilon)
        both = protocol.leakage(BOTH_ROUNDS, epsilon=self.epsilon)
        return CollectionRow(protocol, judge, people, error, error <= self.error * (1 + 1e-9), both, counts)


def plan(
    error: float,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    options: int = 1,
    share: float | None = None,
    count: int | None = None,
) -> CollectionPlan:
    """How many respondents, and which sampling rate, for a wanted error and leakage.

    With `share` (default 1/2), a public guess of the share that has an option, `error` is the standard error of the
    estimated share and each row says how many respondents reach it. With `count`, a group of fixed size in a crowd that
    may grow, `error` is in people, and each row says how large the crowd may become.

    Leakage is (epsilon, delta); randomized response needs no delta. Sampling Privacy is planned once for each view.
    """
    error = _check_positive(error, "error", 1 if count is None else math.inf)
    epsilon, delta = _check_positive(epsilon, "epsilon", 700), _check_positive(delta, "delta", 1)
    options = read_options(options)
    if count is None:
        share = _check_positive(0.5 if share is None else share, "share", 1)
    else:
        rule = ("Either ", Argument("share"), " or ", Argument("count"), ", a whole number.")
        refusal = PlanError("The group is not usable.", rule=rule, suggest=Argument("count", 100))
        if share is not None:
            raise refusal
        count = check_whole(count, refusal=refusal)
    return CollectionPlan(error, epsilon, delta, options, share, count)


def _say(one: Leakage) -> str:
    if one.delta == 0 and math.isfinite(one.pure):
        return f"epsilon {show_epsilon(one.pure)}"
    return f"delta {show_delta(one)} at {one.epsilon:.3g}"


def _rate_down(rate: float) -> Fraction:
    return Fraction(min(math.floor(rate * _DIGITS), _DIGITS - 1), _DIGITS)


def _check_positive(number: Any, name: str, below: float) -> float:
    rule = "A number larger than 0" + (f" and below {below:g}." if math.isfinite(below) else ".")
    refusal = PlanError(f"This {name} is not usable.", rule=rule, suggest=Argument(name, 0.01))
    return check_between(number, 0, below, refusal)

"""Before anybody is asked: how many respondents and which sampling rate, for a wanted error and leakage."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from epsilons.display import html_table, show, text_table
from epsilons.errors import PlanError
from epsilons.local.base import ResponseProtocol
from epsilons.local.counts import MOST_ALIKE, difference_pair
from epsilons.local.leakage import BOTH_ROUNDS, COUNTS, SECOND_ROUND, Leakage, show_delta, show_epsilon, smallest_delta
from epsilons.local.probability import read_options
from epsilons.local.randomized_response import RandomizedResponse
from epsilons.local.sampling_privacy import SamplingPrivacy

#: Sampling rates are given to so many digits, rounded down.
_DIGITS = 10**6
_RATES = 80
_MOST_PEOPLE = 10**9

JUDGES = {
    "": "anybody",
    SECOND_ROUND: "round two alone (the paper)",
    COUNTS: "published counts",
    BOTH_ROUNDS: "one owner in both rounds",
}


@dataclass(frozen=True)
class CollectionRow:
    """One way to collect. `respondents` is how many are needed; with `count`, how many there may be; None is any.

    `judge` is the view in which the wanted leakage holds, "" for all of them. `reached` says whether the error is.
    """

    protocol: ResponseProtocol | None
    judge: str
    respondents: int | None
    error: float
    reached: bool
    claim: float | None
    both_rounds: Leakage | None
    counts: Leakage | None


@dataclass(frozen=True)
class CollectionPlan:
    """What each protocol needs for a wanted error and leakage. Made from public guesses alone."""

    rows: tuple[CollectionRow, ...]
    error: float
    epsilon: float
    delta: float
    options: int
    share: float | None
    count: int | None

    def __str__(self) -> str:
        return "\n".join([self._title(), "", text_table(_HEAD, self._cells()), "", *self._notes()])

    def _repr_html_(self) -> str:
        return html_table(self._title(), _HEAD, self._cells(), self._notes())

    def _title(self) -> str:
        size = f"{self.count:,} people" if self.count is not None else f"a share of {self.share:.4g} of them"
        error = f"{self.error:.4g} people" if self.count is not None else f"{self.error:.4g} of the respondents"
        return f"To count {size} with an error of {error}, at epsilon {self.epsilon:.4g} and delta {self.delta:.3g}"

    def _cells(self) -> list[tuple[str, ...]]:
        return [_row_cells(row, self.count is not None) for row in self.rows]

    def _notes(self) -> list[str]:
        notes = ["The wanted leakage holds for the view under 'holds for'; the last columns say what other views see."]
        notes.append("Published counts are judged in a large crowd.")
        if self.count is None:
            notes.append(
                f"Published counts are judged for an option that a share of {self.share:.4g} has; rarer ones leak more."
            )
        else:
            notes.append("Randomized response errs more the more are asked; Sampling Privacy's error does not change.")
        return notes


_HEAD = (
    "protocol",
    "holds for",
    "rate",
    "respondents",
    "error",
    "paper's claim",
    "owner in both rounds",
    "published counts",
)


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
    _check_positive(error, "error", 1 if count is None else math.inf)
    _check_positive(epsilon, "epsilon", 700)
    _check_positive(delta, "delta", 1)
    options = read_options(options)
    if count is not None and (share is not None or isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise PlanError(
            "The group is not usable.", rule="Either share= or count=, a whole number.", suggest="count=100"
        )
    share = (0.5 if share is None else share) if count is None else None
    if share is not None:
        _check_positive(share, "share", 1)
    wanted = _Wanted(float(error), float(epsilon), float(delta), options, share, count)
    rows = (wanted.by_response(), wanted.by_claim(), wanted.by_counts(), wanted.by_both_rounds())
    return CollectionPlan(rows, wanted.error, wanted.epsilon, wanted.delta, options, share, count)


@dataclass(frozen=True)
class _Wanted:
    error: float
    epsilon: float
    delta: float
    options: int
    share: float | None
    count: int | None

    def by_response(self) -> CollectionRow:
        protocol = RandomizedResponse(epsilon=self.epsilon, options=self.options)
        if self.share is not None:
            people = math.ceil((protocol.spread(self.share, 1) / self.error) ** 2)
            return self._row(protocol, "", people, protocol.spread(self.share * people, people) / people)
        assert self.count is not None
        rest = (self.error**2 - protocol.spread(self.count, self.count) ** 2) / protocol.spread(0, 1) ** 2
        if rest < 0:
            return self._row(protocol, "", self.count, protocol.spread(self.count, self.count))
        people = self.count + math.floor(rest)
        return self._row(protocol, "", people, protocol.spread(self.count, people))

    def by_claim(self) -> CollectionRow:
        """The rate at which ln(1 + s/pi) is epsilon, all pi alike: s = (e^epsilon - 1)/(e^epsilon + options)."""
        rate = -math.expm1(-self.epsilon) / (1 + self.options * math.exp(-self.epsilon))
        return self._sampled(_rate_down(rate), SECOND_ROUND)

    def by_both_rounds(self) -> CollectionRow:
        """A sampled owner shows their answer, so delta is the rate itself."""
        return self._sampled(Fraction(math.floor(self.delta * 10**15), 10**15), BOTH_ROUNDS)

    def by_counts(self) -> CollectionRow:
        if self.count is not None:
            return self._sampled(self._largest_rate(self.count), COUNTS)
        best: tuple[int, Fraction] | None = None
        for step in np.geomspace(1e-4, 0.95, _RATES):
            rate = _rate_down(float(step))
            people = self._people_for(rate)
            if people is not None and (best is None or people < best[0]):
                best = people, rate
        if best is None:
            return CollectionRow(None, COUNTS, None, math.inf, False, None, None, None)
        return self._sampled(best[1], COUNTS, best[0])

    def _people_for(self, rate: Fraction) -> int | None:
        """The fewest respondents for which both the error and the leakage of the counts are as wanted."""
        assert self.share is not None
        low = max(1, math.ceil(self.share * float((1 - rate) / rate) / self.error**2))
        if self._counts_delta(self._alike(low), rate) <= self.delta:
            return low
        high = low
        while self._counts_delta(self._alike(high), rate) > self.delta:
            high *= 2
            if high > _MOST_PEOPLE:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._counts_delta(self._alike(middle), rate) <= self.delta else (middle, high)
        return high

    def _alike(self, people: int) -> int:
        assert self.share is not None
        return max(1, math.floor(self.share * people))

    def _largest_rate(self, count: int) -> Fraction:
        low, high = 0, _DIGITS - 1
        while high - low > 1:
            middle = (low + high) // 2
            fine = self._counts_delta(count, Fraction(middle, _DIGITS)) <= self.delta
            low, high = (middle, high) if fine else (low, middle)
        return Fraction(low, _DIGITS)

    def _counts_delta(self, alike: int, rate: Fraction) -> float:
        return smallest_delta([difference_pair(min(alike, MOST_ALIKE), float(rate))], self.epsilon)

    def _sampled(self, rate: Fraction, judge: str, people: int | None = None) -> CollectionRow:
        if rate <= 0:
            return CollectionRow(None, judge, None, math.inf, False, None, None, None)
        protocol = SamplingPrivacy(self.options, rate)
        if self.share is None:
            assert self.count is not None
            return self._row(protocol, judge, None, protocol.spread(self.count, self.count))
        if people is None:
            people = math.ceil((protocol.spread(self.share, 1) / self.error) ** 2)
        return self._row(protocol, judge, people, protocol.spread(self.share * people, people) / people)

    def _row(self, protocol: ResponseProtocol, judge: str, people: int | None, error: float) -> CollectionRow:
        alike = self.count if self.count is not None else self._alike(people or 1)
        counts = protocol.leakage(COUNTS, count=alike, epsilon=self.epsilon)
        both = protocol.leakage(BOTH_ROUNDS, epsilon=self.epsilon)
        reached = error <= self.error * (1 + 1e-9)
        return CollectionRow(protocol, judge, people, error, reached, protocol.claim, both, counts)


def _row_cells(row: CollectionRow, fixed_group: bool) -> tuple[str, ...]:
    if row.protocol is None or row.both_rounds is None or row.counts is None:
        return ("Sampling Privacy", JUDGES[row.judge], "–", "out of reach", "–", "–", "–", "–")
    if isinstance(row.protocol, SamplingPrivacy):
        name, rate = "Sampling Privacy", f"{float(row.protocol.sampling):.4g}"
    else:
        assert isinstance(row.protocol, RandomizedResponse)
        name, rate = "randomized response", f"{float(row.protocol.truth):.4g}"
    respondents = "any" if row.respondents is None else f"{'up to ' if fixed_group else ''}{row.respondents:,}"
    error = show(row.error) + ("" if row.reached else " (too large)")
    claim = "none" if row.claim is None else show_epsilon(row.claim)
    return (name, JUDGES[row.judge], rate, respondents, error, claim, _said(row.both_rounds), _said(row.counts))


def _said(one: Leakage) -> str:
    if one.delta == 0 and math.isfinite(one.pure):
        return f"epsilon {show_epsilon(one.pure)}"
    return f"delta {show_delta(one)} at {one.epsilon:.3g}"


def _rate_down(rate: float) -> Fraction:
    return Fraction(min(math.floor(rate * _DIGITS), _DIGITS - 1), _DIGITS)


def _check_positive(number: Any, name: str, below: float) -> None:
    if isinstance(number, bool) or not isinstance(number, (int, float, np.number)) or not 0 < float(number) < below:
        limit = f" below {below:g}" if math.isfinite(below) else ""
        raise PlanError(f"This {name} is not usable.", rule=f"A number larger than 0{limit}.", suggest=f"{name}=0.01")

"""Small inputs on which every loss can be computed: statistics with their domains, rosters, mechanisms with options."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.auditing import ABSENT, PersonLoss, Verdict, all_datasets, certain_losses, enumerate_losses
from epsilons.guarantee import to_epsilon
from epsilons.mechanisms.base import Mechanism, create, kind_for, list_mechanisms, option_names
from epsilons.preferences import Roster, roster_of
from epsilons.statistics import order
from epsilons.statistics.base import Question, Statistic
from epsilons.statistics.choice import Mode, Top
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import Variance
from epsilons.summaries.arrays import ArrayPeople

PUBLIC = math.inf
NEIGHBORS = ("absent", "replace")
BOUNDS = (-1.0, 2.0)
GRID = (0.0, 4.0)

#: A statistic, and values that hold both bounds, the middle, a stranger, and nobody.
WORLDS: dict[str, tuple[Statistic, tuple[float, ...]]] = {
    "count": (Count(), (0.0, 1.0, 7.0, ABSENT)),
    "sum": (Sum(BOUNDS), (-1.0, 0.5, 2.0, 9.0, ABSENT)),
    "mean": (Mean(BOUNDS), (-1.0, 0.5, 2.0, ABSENT)),
    "variance": (Variance(BOUNDS), (-1.0, 0.5, 2.0, ABSENT)),
    "histogram": (Histogram(edges=(0.0, 1.0, 2.0)), (0.0, 2.0, 7.0, ABSENT)),
    "mode": (Mode(None, (0.0, 1.0, 2.0)), (0.0, 1.0, 7.0, ABSENT)),
    "top": (Top(None, (0.0, 1.0, 2.0), k=2), (0.0, 1.0, 2.0, ABSENT)),
    "median": (order.median(GRID, 1), (0.0, 2.0, 4.0, ABSENT)),
    "quantile": (order.quantile(0.3, GRID, 1), (0.0, 2.0, 4.0, ABSENT)),
    "min": (order.minimum(GRID, 1), (0.0, 2.0, 4.0, ABSENT)),
    "max": (order.maximum(GRID, 1), (0.0, 2.0, 4.0, ABSENT)),
    "kth_largest": (order.kth_largest(2, GRID, 1), (0.0, 2.0, 4.0, ABSENT)),
}

#: Three people: all alike, all different, two of a kind, very different, one public, two public.
ROSTERS: tuple[tuple[float, ...], ...] = (
    (0.7, 0.7, 0.7),
    (0.2, 0.5, 1.0),
    (0.05, 1.5, 1.5),
    (0.3, PUBLIC, 1.0),
    (PUBLIC, 0.4, PUBLIC),
)
#: Four people, for the long runs: two of a kind among strangers, with and without somebody public.
FOURS: tuple[tuple[float, ...], ...] = ((0.1, 0.6, 0.6, 1.3), (0.4, PUBLIC, 0.4, 2.0))


def at_max(name: str, statistic: Statistic, **options: Any) -> Mechanism:
    """A mechanism whose threshold, if it has one, is the largest epsilon: so it leaves people out, or samples them."""
    if "threshold" in option_names(kind_for(name, statistic)):
        options.setdefault("threshold", "max")
    return create(name, statistic, **options)


def variants(name: str, statistic: Statistic, epsilons: Sequence[float]) -> Iterator[Mechanism]:
    """A mechanism with each of its options: thresholds by rule and by number, rescaled or not."""
    fields = option_names(kind_for(name, statistic))
    finite = sorted(e for e in epsilons if math.isfinite(e))
    choices: list[list[tuple[str, Any]]] = []
    if "threshold" in fields:
        between = round((finite[0] + finite[-1]) / 2, 3)
        choices.append([("threshold", t) for t in ("max", "mean", between)])
    if "rescale" in fields:
        choices.append([("rescale", r) for r in (False, True)])
    for options in itertools.product(*choices):
        yield create(name, statistic, **dict(options))


def serving(
    name: str, kinds: Sequence[str] = tuple(WORLDS), rosters: Sequence[tuple[float, ...]] = ROSTERS
) -> Iterator[tuple[str, Question, tuple[float, ...], Mechanism]]:
    """Everything a registered mechanism serves here: (statistic's name, question, epsilons, mechanism)."""
    for kind, neighbors, epsilons in itertools.product(kinds, NEIGHBORS, rosters):
        question, levels = Question(WORLDS[kind][0], neighbors), roster_of(epsilons).levels
        for mechanism in variants(name, question.statistic, epsilons):
            if mechanism.refuses(question, levels) is None:
                yield kind, question, epsilons, mechanism


def laws(
    name: str, kind: str, rosters: Sequence[tuple[float, ...]] = ROSTERS
) -> Iterator[tuple[Question, tuple[float, ...], Mechanism]]:
    """The same for one statistic, without mechanisms whose noise is the same: rescaling is post-processing, and two
    thresholds may come to one number."""
    seen = set()
    for _, question, epsilons, mechanism in serving(name, [kind], rosters):
        options = mechanism.options(question, roster_of(epsilons).levels)
        law = (question.neighbors, epsilons, options.get("threshold"))
        if law not in seen:
            seen.add(law)
            yield question, epsilons, mechanism


@functools.cache
def served_pairs() -> list[tuple[str, str]]:
    """(mechanism, statistic) for all that some mechanism serves."""
    return [(name, kind) for name in sorted(list_mechanisms()) for kind in WORLDS if any(laws(name, kind))]


def charged(mechanism: Mechanism, question: Question, roster: Roster) -> list[float]:
    """What each person is charged; infinite for public people, for whom nothing is promised."""
    charges = mechanism.charge(question, roster.levels)
    return [to_epsilon(charges[code]) for code in roster.codes]


def audit_exactly(
    mechanism: Mechanism, question: Question, epsilons: Sequence[float], domain: Sequence[float]
) -> Verdict:
    """Every loss of every person over all data sets, held to what the person is charged (not merely to the grant).

    What `epsilons.auditing.enumerate_losses` finds, as a test says, but sooner: data sets in which people of one level
    have swapped their values have one law, which is worked out once, and all pairs are compared at once.
    """
    roster = roster_of(list(epsilons))
    values = list(domain) if any(map(math.isnan, domain)) else [*domain, ABSENT]
    given = range(len(domain))
    absent = next(place for place, value in enumerate(values) if math.isnan(value))
    compared = (
        [(place, absent) for place in given if place != absent]
        if question.neighbors == "absent"
        else list(itertools.combinations(given, 2))
    )
    laws = Laws(lambda data: mechanism.distribution(question, ArrayPeople.of(data, roster)), values, roster)
    laws.work_out(itertools.product(given, repeat=len(epsilons)))
    worst, worst_share, pairs = None, -1.0, 0
    for person, epsilon in enumerate(charged(mechanism, question, roster)):
        if math.isinf(epsilon):
            continue
        allowed = epsilon * (1 + TOLERANCE)
        others = list(itertools.product(given, repeat=len(epsilons) - 1))
        for one, other in compared:
            first, second = ([(*rest[:person], own, *rest[person:]) for rest in others] for own in (one, other))
            losses = laws.differences(first, second)
            pairs += len(others)
            place = int(losses.max(axis=1).argmax())
            loss = float(losses[place].max())
            share = loss / allowed if allowed > 0 else (math.inf if loss > 0 else 0.0)
            if share > worst_share:
                data, neighbour = (tuple(values[v] for v in places[place]) for places in (first, second))
                outcome = list(laws.outcomes)[int(losses[place].argmax())]
                worst, worst_share = PersonLoss(person, epsilon, loss, data, neighbour, outcome), share
    return Verdict(worst, pairs, holds=worst_share <= 1)


def audit_by_the_package(
    mechanism: Mechanism, question: Question, epsilons: Sequence[float], domain: Sequence[float]
) -> Verdict:
    """What `audit_exactly` works out, by the package's own auditor: every data set, no short cut."""
    roster = roster_of(list(epsilons))
    return enumerate_losses(
        lambda values: mechanism.distribution(question, ArrayPeople.of(values, roster)),
        all_datasets(domain, len(epsilons)),
        charged(mechanism, question, roster),
        domain=domain,
        neighbors=question.neighbors,  # type: ignore[arg-type]
        log=True,
    )


#: Of epsilon, for the rounding of probabilities alone, as in `epsilons.auditing`.
TOLERANCE = 1e-9


class Laws:
    """Log-probabilities of all outcomes, by data set; a data set is the places of its people's values."""

    def __init__(self, law: Callable[[NDArray[np.float64]], Any], values: Sequence[float], roster: Roster) -> None:
        self._law, self._values, self._codes = law, np.array(values), roster.codes.tolist()
        self._places: dict[tuple[int, ...], int] = {}
        self._rows: dict[tuple[int, ...], int] = {}
        self._listed: list[tuple[list[int], NDArray[np.float64]]] = []
        self._last: tuple[list[Any], list[int]] = ([], [])
        self._table = np.empty((0, 0))
        self.outcomes: dict[Hashable, int] = {}

    def _row(self, data: tuple[int, ...]) -> int:
        if data not in self._places:
            self._places[data] = self._find(data)
        return self._places[data]

    def _find(self, data: tuple[int, ...]) -> int:
        by_level: dict[int, list[int]] = {}
        for code, place in sorted(zip(self._codes, data, strict=True)):
            by_level.setdefault(code, []).append(place)
        alike = tuple(by_level[code].pop() for code in self._codes)
        if alike not in self._rows:
            outcomes, logs = self._law(self._values[list(alike)])
            listed = outcomes.tolist() if isinstance(outcomes, np.ndarray) else list(outcomes)
            assert abs(np.exp(logs).sum() - 1) <= 1e-12, "the law is not whole"
            if listed != self._last[0]:
                self._last = listed, [self.outcomes.setdefault(x, len(self.outcomes)) for x in listed]
            self._rows[alike] = len(self._listed)
            self._listed.append((self._last[1], np.asarray(logs, np.float64)))
        return self._rows[alike]

    def work_out(self, datasets: Iterable[tuple[int, ...]]) -> None:
        for data in datasets:
            self._row(data)

    def differences(self, one: list[tuple[int, ...]], other: list[tuple[int, ...]]) -> NDArray[np.float64]:
        """The loss of every outcome for each pair of data sets."""
        rows = [[self._row(data) for data in side] for side in (one, other)]
        if self._table.shape != (len(self._listed), len(self.outcomes)):
            self._table = np.full((len(self._listed), len(self.outcomes)), -np.inf)
            for row, (places, logs) in zip(self._table, self._listed, strict=True):
                np.logaddexp.at(row, places, logs)  # an outcome listed twice has the sum of both
        return certain_losses(*(self._table[side] for side in rows))


@dataclass(frozen=True)
class Pair:
    """Two data sets that differ in one person."""

    data: tuple[float, ...]
    neighbour: tuple[float, ...]

    @property
    def person(self) -> int:
        """Whose value differs (a missing value differs from every other)."""
        both = zip(self.data, self.neighbour, strict=True)
        return next(i for i, (x, y) in enumerate(both) if x != y and not (math.isnan(x) and math.isnan(y)))

"""Individual privacy with rows and groups: how far one person moves all answers together is what trying it out finds.

Soria-Comas et al. 2017: Proposition 5 (of several numbers the sum of their moves counts) and Theorem 5 (discrete noise
with a ratio of exp(-epsilon/LS) between neighbouring steps), held to all that a person with a few rows may have.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from epsilons.guarantee import NANO
from epsilons.mechanisms.local_sensitivity import LocalCount, LocalMean, LocalSensitivity, LocalTotal
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question, Scope
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.total import Mean, Sum
from epsilons.summaries.arrays import STEPS
from epsilons.summaries.cells import SingleRows

BOUNDS = (-1.0, 2.0)
Row = tuple[int, float] | None
LABELS = ("g", "h", "i")


@dataclass(frozen=True, eq=False)
class People:
    """`rows[i]` are those of person i: (group, value), or None for one that does not count."""

    rows: tuple[tuple[Row, ...], ...]
    roster: Any

    @property
    def levels(self) -> Any:
        return self.roster.levels

    def single_rows(self) -> SingleRows:
        listed = [(i, c, *row) for i, c in enumerate(self.roster.codes) for row in self.rows[i] if row is not None]
        person, level, group, value = zip(*listed, strict=True) if listed else ((), (), (), ())
        whole = (np.array(one, np.int64) for one in (person, level, group))
        return SingleRows(*whole, np.array(value, np.float64))


def truth(kind: str, rows: tuple[tuple[Row, ...], ...], groups: int) -> list[Fraction]:
    """The numbers that would be released without noise, in steps."""
    sums, counts = [Fraction(0)] * groups, [0] * groups
    for row in (row for own in rows for row in own if row is not None):
        group, value = row
        far = (Fraction(value) - Fraction(1, 2)) / Fraction(3, 2) if kind == "mean" else Fraction(value) / 2
        sums[group] += math.floor(far * STEPS + Fraction(1, 2)) if kind != "count" else 1
        counts[group] += 1
    return [Fraction(round(s / max(n, 1))) for s, n in zip(sums, counts, strict=True)] if kind == "mean" else sums


def all_of_one(most: int, groups: int, values: tuple[float, ...]) -> list[tuple[Row, ...]]:
    kinds: list[Row] = [None, *itertools.product(range(groups), values)]
    return list(itertools.combinations_with_replacement(kinds, most))


CASES = {
    "count": (lambda scope: Count(scope, "rows"), LocalCount()),
    "sum": (lambda scope: Sum(BOUNDS, scope), LocalTotal()),
    "mean": (lambda scope: Mean.over(scope, BOUNDS, "replace", None), LocalMean()),
}


@pytest.mark.parametrize(("most", "groups"), [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)])
@pytest.mark.parametrize("kind", CASES)
def test_how_far_one_person_moves_everything_together(kind: str, most: int, groups: int) -> None:
    make, mechanism = CASES[kind]
    question = Question(make(Scope(most, None if groups == 1 else LABELS[:groups])), privacy="individual")
    rng, own, loose = np.random.default_rng(groups), all_of_one(most, groups, (-1.0, 0.25, 2.0)), 0.0
    for _ in range(25):
        people = int(rng.integers(1, 5))
        data = tuple(own[place] for place in rng.integers(0, len(own), people))
        reach = mechanism.reach(question, People(data, roster_of([1.0 + place for place in range(people)])))  # type: ignore[arg-type]
        here = truth(kind, data, groups)
        for person in range(people):
            others = (truth(kind, (*data[:person], other, *data[person + 1 :]), groups) for other in own)
            far = max(sum(abs(a - b) for a, b in zip(here, there, strict=True)) for there in others)
            assert far <= reach[person], (data, person)
            loose = max(loose, reach[person] / far)
    # Exact for sums and for one mean, but for the steps of rounding; several means are bounded from above, and counts
    # reach as far for whoever does not count.
    assert loose < (2.01 if kind == "count" else 1.01 if kind == "sum" or groups == 1 else 4)


def test_a_move_taken_group_by_group_is_caught() -> None:
    """A planted bug: the largest move of one sum, not the sum of all moves (Proposition 5 with the wrong norm)."""
    question = Question(Sum(BOUNDS, Scope(1, LABELS[:2])), privacy="individual")
    data: tuple[tuple[Row, ...], ...] = (((0, 2.0),), ((1, 2.0),))
    people = People(data, roster_of([1.0, 1.0]))
    here, there = truth("sum", data, 2), truth("sum", (((1, 2.0),), data[1]), 2)
    moved = [abs(a - b) for a, b in zip(here, there, strict=True)]
    assert max(moved) < sum(moved) == LocalTotal().reach(question, people)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["sum", "mean", "count"])
def test_with_the_scale_frozen_nobody_loses_more_than_their_epsilon(kind: str) -> None:
    """Theorem 5: the law of a discrete Laplace noise on each number, at the scale of the actual data."""
    make, mechanism = CASES[kind]
    question, epsilons = Question(make(Scope(1, LABELS[:2])), privacy="individual"), [0.3, 1.0, 0.5]
    roster, own = roster_of(epsilons), all_of_one(1, 2, (-1.0, 2.0))
    for data in itertools.islice(itertools.product(own, repeat=3), 0, None, 7):
        rate = mechanism.rate(question, People(data, roster))  # type: ignore[arg-type]
        assert rate is not None
        here = truth(kind, data, 2)
        for person, epsilon in enumerate(epsilons):
            for other in own:
                there = truth(kind, (*data[:person], other, *data[person + 1 :]), 2)
                # ln of the ratio of two products of discrete Laplace laws is at most rate times the L1 distance.
                loss = rate * sum(abs(a - b) for a, b in zip(here, there, strict=True))
                assert loss <= Fraction(round(epsilon * NANO), NANO)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_several_people_move_sums_no_farther_than_is_allowed_for(groups: int, size: int) -> None:
    question = Question(Sum(BOUNDS, Scope(1, None if groups == 1 else LABELS[:groups])), privacy="group")
    own = all_of_one(1, groups, (-1.0, 2.0))
    for data in itertools.product(own, repeat=3):
        reach = LocalTotal().group_reach(question, People(data, roster_of([1.0] * 3)), size)  # type: ignore[arg-type]
        here, worst = truth("sum", data, groups), Fraction(0)
        for those in itertools.combinations(range(3), size):
            for new in itertools.product(own, repeat=size):
                changed = list(data)
                for person, rows in zip(those, new, strict=True):
                    changed[person] = rows
                there = truth("sum", tuple(changed), groups)
                worst = max(worst, sum((abs(a - b) for a, b in zip(here, there, strict=True)), Fraction(0)))
        assert worst <= reach
        assert groups > 1 or worst == reach


@pytest.mark.parametrize(("most", "groups", "size"), [(1, 1, 2), (1, 1, 3), (2, 1, 2), (1, 2, 2), (1, 2, 3), (2, 2, 2)])
def test_several_people_move_means_no_farther_than_is_allowed_for(most: int, groups: int, size: int) -> None:
    """All ways to replace so many of three to five people, tried out. Of one mean no less would do."""
    question = Question(Mean.over(Scope(most, None if groups == 1 else LABELS[:groups]), BOUNDS, "replace", None))
    own, rng, loose = all_of_one(most, groups, (-1.0, 0.25, 2.0)), np.random.default_rng(size), 0.0
    ends = all_of_one(most, groups, BOUNDS)
    for _ in range(12):
        data = tuple(own[place] for place in rng.integers(0, len(own), int(rng.integers(3, 6))))
        reach = LocalMean().group_reach(question, People(data, roster_of([1.0] * len(data))), size)  # type: ignore[arg-type]
        here, worst = truth("mean", data, groups), Fraction(0)
        for those in itertools.combinations(range(len(data)), size):
            for new in itertools.combinations_with_replacement(ends, size):
                changed = list(data)
                for person, rows in zip(those, new, strict=True):
                    changed[person] = rows
                there = truth("mean", tuple(changed), groups)
                worst = max(worst, sum((abs(a - b) for a, b in zip(here, there, strict=True)), Fraction(0)))
        assert worst <= reach, data
        loose = max(loose, float(reach / worst))
    assert loose < (1.001 if groups == 1 and most == 1 else 2.5)


def test_many_people_are_moved_by_a_few_little_more_than_need_be() -> None:
    """Two of 400 in two groups: 4 rows in all, each about (1 + |x|)/200 of the half width."""
    rng = np.random.default_rng(3)
    data = tuple(((int(rng.integers(2)), float(rng.uniform(-1, 2))),) for _ in range(400))
    question = Question(Mean.over(Scope(1, LABELS[:2]), BOUNDS, "replace", None))
    reach = LocalMean().group_reach(question, People(data, roster_of([1.0] * 400)), 2)  # type: ignore[arg-type]
    assert reach / STEPS < 4 * 1.2 / 190
    # A planted bug: the reach of one person, where two are replaced.
    assert LocalMean().group_reach(question, People(data, roster_of([1.0] * 400)), 1) < 0.6 * reach  # type: ignore[arg-type]


def losses(rate: Fraction, data: Any, own: Any) -> dict[tuple[int, ...], Fraction]:
    """{people who are replaced: the most that they lose together}, tried out with the scale frozen."""
    here, found = truth("sum", data, 2), dict[tuple[int, ...], Fraction]()
    for size in (1, 2):
        for those in itertools.combinations(range(len(data)), size):
            for new in itertools.product(own, repeat=size):
                changed = list(data)
                for person, rows in zip(those, new, strict=True):
                    changed[person] = rows
                there = truth("sum", tuple(changed), 2)
                loss = rate * sum(abs(a - b) for a, b in zip(here, there, strict=True))
                found[those] = max(found.get(those, Fraction(0)), loss)
    return found


@pytest.mark.parametrize("groups", [(0.2, 0.3), (0.9, 0.4), (3.0, 9.0), (0.4, 9.0)])
def test_nobody_loses_more_than_their_charge_nor_a_group_more_than_its_epsilon(groups: tuple[float, ...]) -> None:
    """Group privacy where grants differ: a charge is the smaller of the grant and the first epsilon, a loss no more."""
    roster, own = roster_of([0.3, 1.0, 0.5]), all_of_one(1, 2, (-1.0, 2.0))
    sizes = tuple(round(one * NANO) for one in groups)
    question = Question(Sum(BOUNDS, Scope(1, LABELS[:2])), privacy="group", groups=sizes)
    by_level = LocalTotal().charge(question, roster.levels)
    charges = [by_level[code] or 0 for code in roster.codes]
    assert charges == [min(round(grant * NANO), sizes[0]) for grant in (0.3, 1.0, 0.5)]
    passed = False
    for data in itertools.islice(itertools.product(own, repeat=3), 0, None, 3):
        people: Any = People(data, roster)
        rate = LocalTotal().rate(question, people)
        assert rate is not None
        # A planted bug: the scale of groups alone, which forgets those who granted less than the first epsilon.
        forgetful = min(
            Fraction(g, NANO * LocalTotal().group_reach(question, people, i + 1)) for i, g in enumerate(sizes)
        )
        for those, loss in losses(rate, data, own).items():
            assert loss <= Fraction(sizes[len(those) - 1], NANO)
            if len(those) == 1:
                assert loss <= Fraction(charges[those[0]], NANO)
                passed |= loss / rate * forgetful > Fraction(charges[those[0]], NANO)
    assert passed == (min(2 * sizes[0], sizes[1]) > 2 * min(charges))


def test_counts_of_rows_and_bins_reach_as_far_for_everyone() -> None:
    people: Any = People(((None, None),), roster_of([1.0]))
    scope = Scope(3, LABELS[:2])
    assert LocalCount().group_reach(Question(Count(scope, "rows"), privacy="individual"), people, 1) == 6
    assert (
        LocalCount().group_reach(Question(Histogram((0.0, 1.0), scope=Scope(3)), privacy="individual"), people, 1) == 3
    )


def test_a_mechanism_without_people_who_count_has_a_scale_all_the_same() -> None:
    """Nobody's row counts: whoever might have one moves everything from the centre, or from nothing."""
    people: Any = People(((None,), (None,)), roster_of([1.0, 2.0]))
    made: list[LocalSensitivity] = [LocalTotal(), LocalMean()]
    for mechanism, kind in zip(made, ("sum", "mean"), strict=True):
        question = Question(CASES[kind][0](Scope(1)), privacy="individual")
        assert mechanism.rate(question, people) is not None

"""Filtered statistics: nobody moves a summary by more than declared, over all groups together, whatever they have."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction

import numpy as np
import pytest

from epsilons.errors import DataError, PlanError
from epsilons.mechanisms.base import Weighing, create, list_mechanisms, weighting_of
from epsilons.preferences import roster_of
from epsilons.statistics.additive import Additive
from epsilons.statistics.base import Question, Scope
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import Variance
from epsilons.summaries.arrays import ArrayPeople
from support.rows import MISSING, RowPeople, all_rows, contribution, distances, vectors
from support.small_worlds import at_max

NEIGHBORS = ("absent", "replace")
GROUPS: dict[int, tuple[str, ...] | None] = {0: None, 1: ("a",), 2: ("a", "b"), 3: ("a", "b", "c")}
EDGES = (0.0, 1.0, 2.0)
MIXED, ABOVE, BELOW = (-1.0, 2.0), (2.0, 5.0), (-3.0, -1.0)

MAKE: dict[str, tuple[Callable[[Scope], Additive], tuple[float, ...]]] = {
    "rows": (Count, (1.0,)),
    "people": (lambda scope: Count(scope, "people"), (1.0,)),
    "histogram": (lambda scope: Histogram(EDGES, scope=scope), (0.0, 2.0, 9.0)),
    "sum, both signs": (lambda scope: Sum(MIXED, scope), (-1.0, 0.3, 2.0)),
    "sum, above zero": (lambda scope: Sum(ABOVE, scope), (2.0, 5.0, 99.0)),
    "sum, below zero": (lambda scope: Sum(BELOW, scope), (-3.0, -1.0)),
    "mean, split": (lambda scope: Mean.over(scope, MIXED, "absent", 0.5), (-1.0, 0.5, 2.0)),
    "mean, pair": (lambda scope: Mean.over(scope, MIXED, "absent", None), (-1.0, 0.5, 2.0)),
    "mean, together": (lambda scope: Mean(MIXED, scope, Fraction(1), 0.75, "together"), (-1.0, 0.5, 2.0)),
    "variance": (lambda scope: Variance(MIXED, scope), (-1.0, 0.5, 2.0)),
}
SCOPES = list(itertools.product((1, 2, 3), GROUPS))
#: What a person moves in one part depends on what they move in another.
JOINT = ["mean, pair", "mean, together", "variance"]


def test_the_forms_of_a_mean_are_as_they_are_called_here() -> None:
    for name in ("split", "pair", "together"):
        assert MAKE[f"mean, {name}"][0](Scope()).form == name  # type: ignore[attr-defined]


def farthest(statistic: Additive, values: tuple[float, ...], neighbors: str) -> list[int]:
    """The largest L1 distance of each part over everything that one person can have."""
    scope = statistic.scope
    assert scope is not None
    people = all_rows(scope.rows, scope.cells, values)
    return [
        int(np.abs(part).sum(axis=1).max() if neighbors == "absent" else distances(part).max())
        for part in vectors(statistic, people)
    ]


@functools.cache
def farthest_of(name: str, rows: int, groups: int, neighbors: str) -> list[int]:
    make, values = MAKE[name]
    return farthest(make(Scope(rows, GROUPS[groups])), values, neighbors)


def joint_cost(statistic: Additive, values: tuple[float, ...], neighbors: str) -> Fraction:
    """The largest loss per epsilon over everything that one person can have: of all parts together, exactly."""
    scope = statistic.scope
    assert scope is not None
    costs = [part.share / part.reach[neighbors] for part in statistic.parts]
    unit = math.lcm(*(cost.denominator for cost in costs))
    found: np.ndarray = np.zeros(1, object)
    for vector, cost in zip(vectors(statistic, all_rows(scope.rows, scope.cells, values)), costs, strict=True):
        moved = np.abs(vector).sum(axis=1) if neighbors == "absent" else distances(vector)
        found = found + moved.astype(object) * int(cost * unit)
    return Fraction(int(found.max()), unit)


@functools.cache
def joint_cost_of(name: str, rows: int, groups: int, neighbors: str) -> Fraction:
    make, values = MAKE[name]
    return joint_cost(make(Scope(rows, GROUPS[groups])), values, neighbors)


@pytest.mark.parametrize("name", [name for name in MAKE if name not in JOINT])
def test_the_reach_of_every_part_is_what_a_person_can_do_and_no_more(name: str) -> None:
    for (rows, groups), neighbors in itertools.product(SCOPES, NEIGHBORS):
        statistic = MAKE[name][0](Scope(rows, GROUPS[groups]))
        declared = [part.reach[neighbors] for part in statistic.parts]
        assert farthest_of(name, rows, groups, neighbors) == declared, (rows, groups, neighbors)


@pytest.mark.parametrize("name", ["mean, split", *JOINT])
@pytest.mark.parametrize(("rows", "groups"), [(1, 0), (1, 2), (2, 2), (3, 0)])
@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_all_parts_together_cost_one_budget(name: str, rows: int, groups: int, neighbors: str) -> None:
    """At most 1, and 1 for somebody.

    Not so under "replace" with one group: who moves a sum from end to end keeps the number of rows, or of squares.
    """
    worst = joint_cost_of(name, rows, groups, neighbors)
    if neighbors == "absent" or groups > 1 or name in ("mean, pair", "mean, together"):
        assert worst == 1
    assert worst <= 1


@pytest.mark.parametrize("name", ["mean, split", *JOINT])
@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_a_noise_that_is_a_thousandth_too_small_is_seen(name: str, neighbors: str) -> None:
    make, values = MAKE[name]
    right = make(Scope(2, GROUPS[2]))
    part = right.parts[0]
    smaller = replace(part, reach={neighbors: part.reach[neighbors] * 999 // 1000})

    class Short(type(right)):  # type: ignore[misc]
        @property
        def parts(self) -> tuple:  # type: ignore[type-arg]
            return smaller, *super().parts[1:]

    wrong = Short(**{one.name: getattr(right, one.name) for one in fields(right) if one.init})  # type: ignore[arg-type]
    assert joint_cost(wrong, values, neighbors) > 1


# --- planted bugs -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OneRow(Scope):
    """m is forgotten."""

    def reach(self, low: int, high: int) -> dict[str, int]:
        return Scope(1, self.groups).reach(low, high)

    def pair_reach(self, step: int) -> dict[str, int]:
        return Scope(1, self.groups).pair_reach(step)

    def per_row(self, neighbors: str) -> int:
        return Scope(1, self.groups).per_row(neighbors)

    def people_reach(self) -> dict[str, int]:
        return Scope(1, self.groups).people_reach()


@dataclass(frozen=True)
class NoMoves(Scope):
    """That a row can move from one group to another is forgotten."""

    def reach(self, low: int, high: int) -> dict[str, int]:
        return Scope(self.rows, None).reach(low, high)

    def pair_reach(self, step: int) -> dict[str, int]:
        return dict.fromkeys(NEIGHBORS, super().pair_reach(step)["absent"])

    def per_row(self, neighbors: str) -> int:
        return Scope(self.rows, None).per_row(neighbors)

    def people_reach(self) -> dict[str, int]:
        right = super().people_reach()
        return {"absent": right["absent"], "replace": right["absent"]}


@dataclass(frozen=True)
class OneGroup(Scope):
    """Groups are taken for free: each is calibrated by itself."""

    def people_reach(self) -> dict[str, int]:
        return {"absent": 1, "replace": 1}


@pytest.mark.parametrize(
    ("bug", "name", "neighbors"),
    [
        (OneRow, "rows", "absent"),
        (OneRow, "people", "absent"),
        (OneRow, "sum, both signs", "absent"),
        (OneRow, "mean, split", "replace"),
        (OneRow, "mean, pair", "absent"),
        (OneRow, "mean, together", "replace"),
        (OneRow, "variance", "absent"),
        (NoMoves, "rows", "replace"),
        (NoMoves, "people", "replace"),
        (NoMoves, "sum, above zero", "replace"),
        (NoMoves, "sum, both signs", "replace"),
        (NoMoves, "mean, split", "replace"),
        (NoMoves, "mean, pair", "replace"),
        (NoMoves, "mean, together", "replace"),
        (NoMoves, "variance", "replace"),
        (OneGroup, "people", "absent"),
        (OneGroup, "people", "replace"),
    ],
)
def test_a_reach_that_forgets_something_is_caught(bug: type[Scope], name: str, neighbors: str) -> None:
    make, values = MAKE[name]
    assert joint_cost(make(Scope(2, GROUPS[3])), values, neighbors) <= 1
    assert joint_cost(make(bug(2, GROUPS[3])), values, neighbors) > 1


def test_a_histogram_that_forgets_its_rows_is_caught() -> None:
    wrong = Histogram(EDGES, scope=Scope(1, GROUPS[2])).parts[0].reach
    right = farthest(Histogram(EDGES, scope=Scope(2, GROUPS[2])), (0.0, 2.0), "replace")
    assert right[0] > wrong["replace"]


# --- arrays: NaN does not count -----------------------------------------------------------------------------------

ARRAYS: dict[str, Additive] = {
    name: make(Scope()) for name, (make, _) in MAKE.items() if name not in ("people", "sum, below zero")
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_people_of_one_row(name: str) -> None:
    """The fast tally of an array is the sum of what its people add, one by one."""
    random = np.random.default_rng(1)
    roster = roster_of(random.choice([0.5, 1.0, math.inf], 60))
    values = np.where(random.random(60) < 0.2, np.nan, random.normal(1, 2, 60))
    values[:4] = [math.inf, -math.inf, 1e308, -0.0]
    slow = RowPeople(tuple(((0, float(x)),) for x in values), roster).tally(ARRAYS[name])
    for fast, part in zip(ArrayPeople.of(values, roster).tally(ARRAYS[name]), slow, strict=True):
        np.testing.assert_array_equal(fast, part)


def test_arrays_have_no_groups_and_no_second_row() -> None:
    people = ArrayPeople.of([1.0], roster_of([1.0]))
    for scope in (Scope(2), Scope(1, ("a",))):
        with pytest.raises(DataError, match="one row per person"):
            people.tally(Count(scope))


def test_only_people_and_rows_are_counted() -> None:
    with pytest.raises(PlanError, match="of='dogs'"):
        Count(Scope(), "dogs")


# --- what the parts are for ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in MAKE if n not in ("people", "rows")])
@pytest.mark.parametrize("groups", [0, 2])
def test_without_noise_the_answer_is_the_statistic(name: str, groups: int) -> None:
    random = np.random.default_rng(2)
    make, _ = MAKE[name]
    statistic = make(Scope(3, GROUPS[groups]))
    places = max(groups, 1)
    people = [
        tuple((int(random.integers(places)), float(random.normal(1, 1))) for _ in range(random.integers(1, 4)))
        for _ in range(40)
    ]
    sums = [[Fraction(0)] * part.cells for part in statistic.parts]
    for rows in people:
        for part, own in zip(sums, contribution(statistic, rows), strict=True):
            part[:] = [have + more for have, more in zip(part, own, strict=True)]
    answer = statistic.answer(sums, Fraction(40), 40)
    for place in range(places):
        values = np.array([x for rows in people for group, x in rows if group == place])
        got = answer if groups == 0 else answer if name == "histogram" else answer["ab"[place]]
        if name == "histogram":
            for low, high in itertools.pairwise(EDGES):
                key = (low, high) if groups == 0 else ("ab"[place], (low, high))
                assert answer[key] == np.sum((values >= low) & (values < high))
        elif name.startswith("sum"):
            assert got == pytest.approx(np.clip(values, *statistic.bounds).sum(), abs=1e-6)  # type: ignore[attr-defined]
        else:
            clip = np.clip(values, *MIXED)
            assert got == pytest.approx(clip.mean() if name.startswith("mean") else clip.var(), abs=1e-6)


def test_an_empty_group_has_an_answer_within_the_bounds() -> None:
    for statistic in (Mean.over(Scope(), MIXED, "absent", None), Variance(MIXED, Scope())):
        for noise in (-50, 0, 50):
            sums = [[Fraction(noise * 2**30)] for _ in statistic.parts[:-1]] + [[Fraction(noise)]]
            low, high = statistic.extremes
            assert low <= statistic.answer(sums, Fraction(9), 9) <= high


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("location", [None, 0.5, 2.0, 77.0])
@pytest.mark.parametrize("groups", [0, 3])
def test_the_budget_of_a_mean_is_split_where_the_error_is_least(
    neighbors: str, location: float | None, groups: int
) -> None:
    """Against a look at every split there is, and at the forms that split nothing."""
    scope = Scope(2, GROUPS[groups])
    chosen = Mean.over(scope, MIXED, neighbors, location)
    # At most 60/64 go to the sum: a guess that the mean is at the centre may be wrong.
    others = [Mean(MIXED, scope, Fraction(k, 64), chosen.off) for k in range(1, 61)]
    others += [Mean(MIXED, scope, Fraction(1), chosen.off, form) for form in ("pair", "together")]
    assert chosen.noise_size(neighbors) <= min(other.noise_size(neighbors) for other in others) * 1.0001


def test_a_sum_around_zero_is_never_worse_than_a_centred_sum_and_a_count() -> None:
    """(h^(2/3) + |c|^(2/3))^(3/2) >= h + |c| = max(|a|, |b|)."""
    for low, high in itertools.combinations(np.linspace(-5, 5, 23), 2):
        half, centre = (high - low) / 2, abs(low + high) / 2
        assert (half ** (2 / 3) + centre ** (2 / 3)) ** 1.5 >= max(abs(low), abs(high)) - 1e-9


# --- losses -------------------------------------------------------------------------------------------------------

#: One person of every kind, and public.
EPSILONS = (0.2, 1.0, 3.0, math.inf)
#: Who serves filtered sums; the other mechanisms need a public number of values.
SERVING = ["minimum", "mixed", "robust", "sample", "stretching", "threshold", "weighted"]


def test_who_serves_filtered_questions() -> None:
    statistic, levels = Count(Scope()), roster_of([1.0]).levels
    mechanisms = {name: create(name, statistic) for name in sorted(list_mechanisms())}
    serving = [name for name, each in mechanisms.items() if each.refuses(Question(statistic), levels) is None]
    assert serving == SERVING


@pytest.mark.parametrize("mechanism", [n for n in SERVING if n not in ("sample", "mixed")])  # test_mixed_rows.py
def test_nobody_with_several_rows_loses_more_than_they_are_charged(mechanism: str) -> None:
    """A discrete Laplace's largest log-ratio is distance times inverse scale: exact, in fractions, over all pairs."""
    levels, refused = roster_of(list(EPSILONS)).levels, 0
    cases = list(itertools.product(MAKE, [(1, 0), (2, 2), (3, 1)], NEIGHBORS))
    for name, (rows, groups), neighbors in cases:
        question = Question(MAKE[name][0](Scope(rows, GROUPS[groups])), neighbors)
        statistic = question.statistic
        chosen = at_max(mechanism, statistic)
        assert isinstance(chosen, Weighing)
        assert isinstance(statistic, Additive)
        if chosen.refuses(question, levels) is not None:
            refused += 1
            continue
        weighting = weighting_of(chosen, question, levels)
        per_weight = joint_cost_of(name, rows, groups, neighbors) * weighting.rate / weighting.one
        for weight, charge in zip(weighting.weights, chosen.charge(question, levels), strict=True):
            if charge is not None:
                assert weight * per_weight <= charge, (name, rows, groups, neighbors)
    assert refused == 0 or (mechanism == "robust" and refused < len(cases))


def test_missing_is_not_a_value() -> None:
    assert math.isnan(MISSING)
    assert contribution(Count(Scope()), ((0, MISSING), (None, 1.0))) == [[0]]

"""Modes, tops and totals of options: held to Jorgensen et al.'s definition and, loss by loss, to what is charged."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.guarantee import NANO, to_epsilon
from epsilons.mechanisms.base import Weighing, create, weighting_of
from epsilons.mechanisms.exponential import ExponentialChoice
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question, Scope, Weighting
from epsilons.statistics.choice import Mode, Top
from epsilons.statistics.winning import Standing
from epsilons.summaries.arrays import STEPS, ArrayPeople
from epsilons.testing import seeded
from support.small_worlds import NEIGHBORS, audit_exactly

OPTIONS = (0.0, 1.0, 2.0)
ANY = (*OPTIONS, math.nan)
MODE = Mode(None, OPTIONS)
ROSTERS = ((0.3, 0.3, 0.5, 1.1), (0.2, 0.5, 1.0, math.inf), (math.inf, 0.4, math.inf, 0.7))


def winners(data: tuple[float, ...]) -> set[float]:
    counted = {option: data.count(option) for option in OPTIONS}
    return {option for option, count in counted.items() if count == max(counted.values())}


@pytest.mark.parametrize("epsilons", ROSTERS, ids=str)
def test_the_cheapest_change_is_what_trying_all_of_them_finds(epsilons: tuple[float, ...]) -> None:
    """Jorgensen et al. 2015, Equation 5: the least sum of epsilons by which a data set lies away from one in which the
    option wins; Equations 3 and 4: chances fall with half of it."""
    roster, nano = roster_of(list(epsilons)), [math.inf if math.isinf(e) else round(e * NANO) for e in epsilons]
    worlds = list(itertools.product(ANY, repeat=len(epsilons)))
    wins = {option: [world for world in worlds if option in winners(world)] for option in OPTIONS}
    for data in worlds[:: 1 if epsilons == ROSTERS[1] else 3]:
        costs = [
            min(sum(e for e, x, y in zip(nano, data, world, strict=True) if x is not y) for world in wins[option])
            for option in OPTIONS
        ]
        people = ArrayPeople.of(np.array(data), roster)
        (named,) = people.tally(MODE)
        none = np.array(people.levels.sizes) - named.sum(axis=1)
        found = Standing(people.levels.grants, np.column_stack([named, none])).costs()
        assert [math.inf if cost is None else cost for cost in found] == costs, data
        weights = np.array([math.exp(-cost / 2 / NANO) for cost in costs])
        places, logs = ExponentialChoice().distribution(Question(MODE), people)
        listed = np.zeros(len(OPTIONS))
        listed[places] = np.exp(logs)
        assert listed == pytest.approx(weights / weights.sum(), abs=1e-12)


def test_many_people_cost_what_a_few_do() -> None:
    """The search by halves beside one that tries every number of voices."""
    rng = np.random.default_rng(7)
    grants = (NANO // 10, NANO, 3 * NANO, None)
    for _ in range(60):
        standing = Standing(grants, rng.integers(0, 12, (4, 5)) * rng.integers(0, 2, (4, 5)))
        assert standing.costs() == [slow_cost(standing, option) for option in range(4)]


def slow_cost(standing: Standing, option: int) -> int | None:
    people = [
        (grant, place)
        for grant, row in zip(standing.grants, standing.people, strict=True)
        for place, count in enumerate(row)
        for _ in range(count)
    ]
    own = sum(place == option for _, place in people)
    open_to_change = sorted(grant for grant, place in people if place != option and grant is not None)
    best = None
    for more in range(len(open_to_change) + 1):
        taken: list[int] = []
        rest: list[int] = []
        short = False
        for rival in range(standing.people.shape[1]):
            if rival == option:
                continue
            there = sorted(grant for grant, place in people if place == rival and grant is not None)
            all_there = sum(place == rival for _, place in people)
            needed = 0 if rival == 4 else max(0, all_there - own - more)
            short |= needed > len(there)
            taken, rest = taken + there[:needed], rest + there[needed:]
        if not short and len(taken) <= more:
            cost = sum(taken) + sum(sorted(rest)[: more - len(taken)])
            best = cost if best is None else min(best, cost)
    return best


# --- people with several rows, in groups, with totals -----------------------------------------------------------------

#: A row: (group, option, how much of a total); None stands for a row that counts for nothing.
Row = tuple[int, int, float] | None


@dataclass(frozen=True, eq=False)
class Rows:
    """What people of a table add up to, slowly."""

    rows: tuple[tuple[Row, ...], ...]
    roster: Any

    @property
    def levels(self) -> Any:
        return self.roster.levels

    def tally(self, statistic: Any) -> list[Any]:
        found = np.zeros((len(self.levels.grants), statistic.cells), np.int64)
        for code, rows in zip(self.roster.codes, self.rows, strict=True):
            for row in filter(None, rows):
                group, option, amount = row
                low, high = statistic.bounds if statistic.summary == "totals" else (0.0, 1.0)
                far = Fraction(max(abs(low), abs(high)))
                step = math.floor(Fraction(min(max(amount, low), high)) / far * STEPS + Fraction(1, 2))
                found[code, group * statistic.bins + option] += step if statistic.summary == "totals" else 1
        return [found]

    def samples(self, chances: Any) -> Any:
        assert chances is None
        yield 1.0, self


GROUPS = ("g", "h")
SCOPED = {
    "rows": (Mode(None, OPTIONS, "drop", Scope(2)), 1),
    "groups": (Mode(None, OPTIONS[:2], "drop", Scope(1, GROUPS)), 2),
    "rows in groups": (Mode(None, OPTIONS[:2], "drop", Scope(2, GROUPS)), 2),
    "top": (Top(None, OPTIONS, "drop", Scope(2), k=2), 1),
    "totals": (Top(None, OPTIONS[:2], "drop", Scope(2), k=1, total="x", bounds=(-1.0, 2.0)), 1),
}


def worst_ratio(statistic: Mode, groups: int, neighbors: str, name: str) -> float:
    """The largest loss of the first person over what they are charged, over all that they and two others may have."""
    amounts = (-1.0, 2.0) if statistic.summary == "totals" else (1.0,)
    rows = 1 if statistic.scope is None else statistic.scope.rows
    kinds: list[Row] = [None, *itertools.product(range(groups), range(statistic.bins), amounts)]
    own = list(itertools.combinations_with_replacement(kinds, rows))
    roster, question = roster_of([0.5, 1.0, 1.0]), Question(statistic, neighbors)
    mechanism = create(name, statistic)
    assert isinstance(mechanism, Weighing)
    weighting = weighting_of(mechanism, question, roster.levels)
    charged = to_epsilon(weighting.charges(roster.levels)[0])
    crowds = [tuple([row] * 40) for row in kinds if row is None or row[2] == max(amounts)]
    crowds += [(kinds[1],) * 20 + (kinds[-1],) * 20]
    worst = 0.0
    for others in itertools.product(own[:: max(1, len(own) // 4)], crowds):
        laws = [statistic.distribution(question, weighting, Rows((mine, *others), roster))[1] for mine in own]  # type: ignore[arg-type]
        pairs = (
            itertools.combinations(range(len(own)), 2) if neighbors == "replace" else ((0, i) for i in range(len(own)))
        )
        worst = max(worst, *(float(np.abs(laws[one] - laws[other]).max()) for one, other in pairs))
    return worst / charged


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("kind", SCOPED)
def test_nobody_loses_more_than_they_are_charged_whatever_their_rows(kind: str, neighbors: str) -> None:
    statistic, groups = SCOPED[kind]
    for name in ("minimum", "weighted"):
        found = worst_ratio(statistic, groups, neighbors, name)
        assert found <= 1 + 1e-9, f"{name}: {found}"
    if kind != "top":  # whose second draw is rarely as telling as its first
        assert worst_ratio(statistic, groups, neighbors, "minimum") > 0.9


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_a_reach_that_forgets_rows_is_caught(neighbors: str) -> None:
    class Forgetful(Mode):
        def reach(self, neighbors: str) -> int:
            return 1 if neighbors == "absent" else 2

    assert worst_ratio(Forgetful(None, OPTIONS, "drop", Scope(2)), 1, neighbors, "minimum") > 1.5


def test_a_reach_of_absent_people_is_caught_where_they_are_replaced() -> None:
    class OneWay(Mode):
        def reach(self, neighbors: str) -> int:
            return 1

    wrong = OneWay(None, OPTIONS)
    for neighbors, holds in (("absent", True), ("replace", False)):
        made = audit_exactly(create("minimum", wrong), Question(wrong, neighbors), (0.7, 0.7, 0.7), OPTIONS)
        assert made.holds is holds


def test_a_cost_that_leaves_out_whoever_names_nothing_is_caught() -> None:
    """Were people without a value unable to become a voice, whoever is missing would change what others cost."""

    class Blind(ExponentialChoice):
        def blocks(self, question: Question, people: Any) -> Any:
            (named,) = people.tally(question.statistic)
            costs = Standing(people.levels.grants, np.column_stack([named, 0 * named[:, :1]])).costs()
            found = [(place, cost) for place, cost in enumerate(costs) if cost is not None]
            (made,) = super().blocks(question, people)
            return [type(made)([p for p, _ in found], 1, 1, [c for _, c in found], 0, 0, 0)]

    question = Question(MODE)
    assert audit_exactly(ExponentialChoice(), question, (0.2, 0.5, 1.0), ANY).holds
    assert not audit_exactly(Blind(), question, (0.2, 0.5, 1.0), ANY).holds


# --- what is said of errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["minimum", "weighted", "threshold", "exponential", "sample"])
def test_the_best_option_has_no_more_rows_than_is_stated(name: str) -> None:
    """On average over 40 seeded draws."""
    rng, epsilons = np.random.default_rng(3), np.repeat([0.05, 0.4], 60)
    for shares in ([0.4, 0.3, 0.2, 0.1], [0.7, 0.1, 0.1, 0.1]):
        values = rng.choice(4, 120, p=shares).astype(float)
        asked = {"among": [0, 1, 2, 3], "mechanism": name, "assume": "unrelated"}
        counts = np.bincount(values.astype(int), minlength=4)
        made = [eps.mode(values, epsilons, entropy=seeded(seed), **asked) for seed in range(40)]
        short = np.mean([counts.max() - counts[int(one.value)] for one in made])
        assert short <= made[0].error
        assert made[0].error == eps.plan("mode", epsilons, **asked)[name].error


def test_what_is_stated_is_not_far_more_than_what_is_seen() -> None:
    """At a hundred options that hardly differ the bound is nearly reached: ln K over epsilon."""
    statistic = Mode(None, tuple(range(100)))
    weighting = Weighting((1,), 1, Fraction(NANO, 10))
    heard = [400] + [360] * 99
    law = statistic.law(statistic.unit(Question(statistic), weighting), heard)
    short = sum(math.exp(log) * (400 - heard[place]) for (place,), log in law.items())
    stated = math.log(100) / 0.1
    assert stated / 2 < short <= stated

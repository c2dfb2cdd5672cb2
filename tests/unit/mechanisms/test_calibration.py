"""Calibration: public groups are filled by themselves, with one noise; only relations within them can bias."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import epsilons as eps
from epsilons.dataset import strata
from epsilons.guarantee import NANO
from epsilons.mechanisms.base import charges_of, find_error, weighting_of
from epsilons.mechanisms.weighted import Weighted
from epsilons.preferences import Levels
from epsilons.preferences.strata import Strata
from epsilons.statistics.base import FINE, Question
from epsilons.statistics.total import Mean

WORDS = {"strict": 0.05, "standard": 0.5, "open": 2.0}


def make(table: Sequence[tuple[float | None, int, int]], left: Sequence[int]) -> Strata:
    """Of (epsilon, group, people)."""
    rows = sorted(table, key=lambda row: (row[0] is None, row[0] or 0, row[1]))
    grants = tuple(None if e is None else int(Fraction(str(e)) * NANO) for e, *_ in rows)
    sizes, groups = tuple(n for *_, n in rows), tuple(k for _, k, _ in rows)
    return Strata(grants, sizes, {}, 0.0, sum(left), groups, tuple(left))


HALVES = [(0.05, 0, 300), (0.5, 0, 150), (2.0, 0, 50), (0.05, 1, 50), (0.5, 1, 200), (2.0, 1, 250)]
WORLDS = {
    "two halves": (HALVES, (0, 0)),
    "some are left out": (HALVES, (40, 0)),
    "public people": ([*HALVES, (None, 0, 7), (None, 1, 70)], (0, 3)),
    "a group of public people": ([*HALVES, (None, 2, 60)], (0, 0, 0)),
}


def fill(levels: Strata, question: Question) -> list[float]:
    """Of each group, what its people weigh over how many they are."""
    made = weighting_of(Weighted(), question, levels)
    total = sum(Fraction(w * n) for w, n in zip(made.weights, levels.sizes, strict=True))
    weights = [float(w * levels.size / total) for w in made.weights]
    found = []
    for group, left in enumerate(levels.left_by):
        here = [place for place, one in enumerate(levels.groups) if one == group]
        people = sum(levels.sizes[place] for place in here)
        found.append(sum(weights[place] * levels.sizes[place] for place in here) / (people + left))
    return found


@pytest.mark.parametrize("assume", [0.0, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("world", WORLDS)
def test_groups_are_filled_by_themselves_and_nobody_loses_more_than_they_granted(world: str, assume: float) -> None:
    levels = make(*WORLDS[world])
    question = Question(Mean((0.0, 100.0)), assume=assume)
    made = weighting_of(Weighted(), question, levels)
    for loss, grant, charge in zip(made.losses(), levels.grants, charges_of(Weighted(), question, levels), strict=True):
        assert grant is None or loss <= grant
        assert grant is None or (charge is not None and loss <= charge <= grant)
    assert fill(levels, question) == pytest.approx([1.0] * len(levels.left_by), abs=1e-5)
    # Within a group the weight follows the epsilon, up to one cap: min(s e, kappa).
    for group in range(len(levels.left_by)):
        here = [(levels.grants[i], made.weights[i]) for i, one in enumerate(levels.groups) if one == group]
        top = max(weight for _, weight in here)
        assert all(w == top or abs(w - g * FINE / made.rate) <= 1e-5 * FINE for g, w in here if g is not None)


def test_a_strict_group_fills_by_itself_or_nothing_is_calibrated() -> None:
    """Theory, section 8: 10 of 1,000 people at .01 take the error from 3.4 to 70.7. They are put with nobody."""
    table = [(0.01, 0, 10), (0.2, 1, 300), (1.0, 1, 200), (0.2, 2, 290), (1.0, 2, 200)]
    levels, question = make(table, (0, 0, 0)), Question(Mean((0.0, 1000.0)), assume=0.0)
    assert fill(levels, question) == pytest.approx([1.0] * 3, abs=1e-5)
    plain = Levels((10**7, 2 * 10**8, 10**9), (10, 590, 400))
    error, without = (find_error(Weighted(), question, one) for one in (levels, plain))
    assert error is not None
    assert without is not None
    assert error > 5 * without


def test_bias_is_bounded_by_distances_within_groups_alone() -> None:
    """By brute force: levels' distances in each group at most 1 and of mean zero there, groups as far as they like."""
    levels = make(*WORLDS["two halves"])
    question = Question(Mean((0.0, 100.0)), assume=0.5)
    effect = weighting_of(Weighted(), question, levels).effects[question]
    rng, worst = np.random.default_rng(3), 0.0
    groups, sizes = np.array(levels.groups), np.array(levels.sizes, float)
    for _ in range(4000):
        far = rng.choice([-1.0, 1.0, 0.0], len(sizes))
        for group in (0, 1):
            here = groups == group
            free = rng.integers(here.sum())
            place = np.flatnonzero(here)[free]
            far[place] = 0.0
            far[place] = -float(far[here] @ sizes[here]) / sizes[place]
        if np.abs(far).max() > 1:
            continue
        between = np.where(groups == 0, 40.0, -40.0)  # however groups differ
        worst = max(worst, abs(float((effect.multipliers - 1) * sizes @ (far + between)) / sizes.sum()))
    assert worst <= effect.drift + 1e-4
    assert worst > 0.5 * effect.drift


def wages(public: Sequence[str], people: int = 2000) -> eps.Dataset:
    """In the north wages are high, and more people are strict: within regions the two are unrelated."""
    rng, place = np.random.default_rng(5), np.arange(people)
    north = place % 2 == 0
    chances = np.where(north[:, None], [0.6, 0.3, 0.1], [0.1, 0.4, 0.5])
    level = (rng.random(people)[:, None] > chances.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    table = {"id": place, "region": np.where(north, "north", "south"), "privacy": np.array(list(WORDS))[level]}
    table["wage"] = np.where(north, 70.0, 30.0) + place % 10 - 4.5
    wishes = eps.Preferences.from_levels("privacy", WORDS)
    settled: dict[str, Any] = {"person": "id", "complete": ["wage"], "bounds": {"wage": (0, 100)}, "ledger": "memory"}
    return eps.Dataset(pd.DataFrame(table), preferences=wishes, public=public, **settled)


def test_the_planner_compares_and_a_release_is_what_its_row_showed() -> None:
    with wages(["region"]) as people:
        plan = people.plan("mean", "wage", share=0.1)
        assert "each public group" in plan.best.reason
        answer = plan.ask()
        assert answer.error == pytest.approx(plan.best.error, rel=0.2)
        assert answer.why.startswith(strata.CALIBRATED)
        assert "from everyone's in the same public group" in answer.assumption
        assert people.mean("wage", share=0.1).to_dict() == answer.to_dict()
        assert people.plan("mean", "wage", share=0.1, assume="nothing").best.mechanism != "weighted"
        people.ledger.verify()


def test_calibrated_answers_hold_where_others_are_confidently_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: groups not filled by themselves. Of 40 answers at most two intervals miss; without groups, most do."""
    missed = {}
    for case in ("calibrated", "planted"):
        with wages(["region"], 30_000) as people:
            if case == "planted":
                monkeypatch.setattr(strata, "HARDLY_MORE", 0.0)
            asked: dict[str, Any] = {"share": 0.02, "mechanism": "weighted", "assume": 0.1, "fresh": True}
            answers = [people.mean("wage", **asked).interval(0.95) for _ in range(40)]
        missed[case] = sum(not low <= 50.0 <= high for low, high in answers)
    assert missed["calibrated"] <= 5
    assert missed["planted"] > 20


@pytest.mark.parametrize("assume", [0.02, 0.1, 0.2])
def test_a_condition_about_public_groups_is_stated_only_where_each_of_them_is_filled(assume: float) -> None:
    """Wages are the same in all of a region, so that the condition would hold: region a is too strict to fill."""
    rows = []
    for region, people, strict, wage in (("a", 1000, 1.0, 95.0), ("b", 2000, 0.1, 5.0), ("c", 6000, 0.1, 50.0)):
        words = ("strict" if place < people * strict else "open" for place in range(people))
        rows += [(f"{region}{place}", region, word, wage) for place, word in enumerate(words)]
    table = pd.DataFrame(rows, columns=["id", "region", "privacy", "wage"])
    wishes = eps.Preferences.from_levels("privacy", {"strict": 0.01, "open": 2.0})
    settled: dict[str, Any] = {"person": "id", "complete": ["wage"], "bounds": {"wage": (0, 100)}, "ledger": "memory"}
    with eps.Dataset(table, preferences=wishes, public=["region"], **settled) as people:
        plan = people.plan("mean", "wage", share=1, assume=assume)
        answer = people.mean("wage", share=1, assume=assume)
    for told in (answer.why, answer.assumption, *(f"{row.reason} {row.assumption}" for row in plan.rows)):
        assert "public group" not in told
        assert strata.CALIBRATED not in told


def test_a_relation_that_was_bought_says_nothing_of_levels_within_public_groups() -> None:
    """Both levels' means are 50; within regions they lie 40 apart, the other way round where the others live."""
    rows = []
    for region, word, people, wage in (
        ("north", "strict", 9000, 45.0), ("north", "open", 1000, 5.0),
        ("south", "strict", 1000, 95.0), ("south", "open", 9000, 55.0),
    ):  # fmt: skip
        rows += [(f"{region} {word} {place}", region, word, wage) for place in range(people)]
    table = pd.DataFrame(rows, columns=["id", "region", "privacy", "wage"])
    wishes = eps.Preferences.from_levels("privacy", {"strict": 0.02, "open": 2.0})
    settled: dict[str, Any] = {"person": "id", "complete": ["wage"], "bounds": {"wage": (0, 100)}, "ledger": "memory"}
    with eps.Dataset(table, preferences=wishes, public=["region"], **settled) as people:
        assert "public group" in people.plan("mean", "wage", share=0.2, assume=0.1)["weighted"].assumption
        found = people.relation("wage", share=0.5)
        plan = people.plan("mean", "wage", share=0.2, assume=found)
        answer = people.mean("wage", share=0.2, assume=found, mechanism="weighted")
        for told in (answer.assumption, answer.why, *(row.assumption for row in plan.rows)):
            assert "public group" not in told
        assert "from everyone's, as was found by release 1" in answer.assumption
        low, high = answer.interval()
        assert low <= 50 <= high

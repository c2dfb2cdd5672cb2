"""The best threshold of an algorithm of one's own, rehearsed on old data or after a pilot."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.arrays.thresholds import assign_levels, find_best, list_thresholds
from epsilons.errors import DataError, PlanError
from epsilons.noise.laplace import discrete_laplace
from epsilons.preferences import roster_of
from epsilons.testing import seeded

STRICT_AND_OPEN = [0.05] * 900 + [2.0] * 100
OLD = [50.0, 60.0, 40.0, 70.0] * 250


def noisy_mean(bounds: float) -> Any:
    """A private mean: of a sum within bounds and a count, each at half of epsilon."""
    source = seeded(9)

    def mean(data: Any, epsilon: float) -> float:
        rate = Fraction(repr(epsilon)) / 2
        total = sum(data) + float(bounds) * discrete_laplace(source, rate)
        return total / max(1, len(data) + discrete_laplace(source, rate))

    return mean


def test_a_mean_of_alike_people_is_best_with_little_noise_and_a_count_with_everyone() -> None:
    """Where people are alike a few of them tell the mean: the largest threshold. A total needs all of them."""
    chosen: dict[str, Any] = {"threshold": "best", "like": OLD, "entropy": seeded(1)}
    mean = eps.personalize(noisy_mean(100), OLD, STRICT_AND_OPEN, truth=np.mean, **chosen)
    assert mean.details["threshold"] == 2.0
    assert [epsilon for epsilon, _ in mean.details["tried"]] == [0.05, 2.0]

    def count(data: Any, epsilon: float) -> int:
        return len(data) + discrete_laplace(seeded(2), Fraction(repr(epsilon)))

    length = eps.personalize(count, OLD, STRICT_AND_OPEN, truth=len, **chosen)
    assert length.details["threshold"] == 0.05
    assert length.charges == {0.05: 0.05, 2.0: 0.05}


def test_the_least_error_is_chosen_by_looking_at_all_of_them() -> None:
    levels = roster_of([0.1, 0.5, 1.0, 3.0]).levels
    errs = {100_000_000: 4.0, 500_000_000: 1.0, 1_000_000_000: 2.0, 3_000_000_000: 9.0}
    best, tried = find_best(levels, lambda threshold: [7 + errs[threshold], 7 - errs[threshold]], [7, 7])
    assert best == 500_000_000
    assert tried == [[0.1, 4.0], [0.5, 1.0], [1.0, 2.0], [3.0, 9.0]]
    assert find_best(levels, lambda _: {"a": 1.0}, {"a": 1.0})[0] == 3_000_000_000  # of equals the most open


def test_levels_are_given_in_proportion_and_by_lot() -> None:
    levels = roster_of([0.1] * 30 + [1.0] * 60 + [eps.PUBLIC] * 10).levels
    one, other = (assign_levels(levels, 1000, seeded(seed)) for seed in (1, 2))
    assert np.bincount(one).tolist() == np.bincount(other).tolist() == [300, 600, 100]
    assert (one != other).any()


def test_of_many_grants_some_are_tried() -> None:
    many = list_thresholds(roster_of([0.01 * k for k in range(1, 101)]).levels)
    assert len(many) == 12
    assert (many[0], many[-1]) == (10_000_000, 1_000_000_000)


def test_no_value_of_the_people_asked_is_rehearsed() -> None:
    seen: list[float] = []

    def watch(data: Any, epsilon: float) -> float:
        seen.extend(data)
        return math.nan if 77 in data else 0.0

    answer = eps.personalize(watch, [77.0] * 5, [1.0] * 5, threshold="best", like=[1.0, 2.0], truth=len)
    assert seen.index(77.0) > 0
    assert answer.details["tried"] == [[1.0, 2.0]]


def test_wrong_arguments_are_refused() -> None:
    def count(data: Any, epsilon: float) -> int:
        return len(data)

    wrong: list[dict[str, Any]] = [
        {"threshold": "best"},
        {"threshold": "best", "like": [1]},
        {"threshold": "best", "truth": len},
        {"threshold": "max", "like": [1], "truth": len},
        {"like": [1], "truth": len},
        {"threshold": "best", "like": [1], "truth": len, "person": [1, 1], "rows_per_person": 2},
        {"threshold": "best", "like": [1], "truth": len, "pilot": 0.1},
        {"threshold": "best", "like": list, "truth": len},
        {"threshold": "best", "truth": len, "pilot": 0.1},
        {"threshold": "best", "like": list, "pilot": 0.1},
        {"threshold": "max", "like": list, "truth": len, "pilot": 0.1},
        {"pilot": 0.1},
        *({"threshold": "best", "like": list, "truth": len, "pilot": wrong} for wrong in (0, 1, -0.1, math.nan, "x")),
    ]
    for given in wrong:
        with pytest.raises(PlanError):
            eps.personalize(count, [1, 2], 1.0, **given)
    with pytest.raises(DataError, match="no number"):
        eps.personalize(lambda data, epsilon: "x", [1, 2], 1.0, threshold="best", like=[1], truth=len)


# A pilot that people pay for -----------------------------------------------------------------------------------------

GRANTS = [0.2, 0.5, 1.3]
#: What the algorithm may answer: whether its noisy count is below 1, 1 or above.
LOW, ONE, HIGH = range(3)


def answer_law(kept: int, epsilon: float) -> list[float]:
    """A geometric mechanism for a count, told in three classes: private at epsilon when a person comes or goes."""
    q = math.exp(-epsilon)
    below, at = q**kept / (1 + q), (1 - q) / (1 + q) * q ** abs(kept - 1)
    return [below, at, 1 - below - at]


def sampled(values: tuple[int | None, ...], epsilon: float, chances: list[float]) -> list[float]:
    """The law of that algorithm on samples, over all coins."""
    total = [0.0] * 3
    for kept in itertools.product((False, True), repeat=len(values)):
        weight = math.prod(c if k else 1 - c for c, k in zip(chances, kept, strict=True))
        ones = sum(v or 0 for v, k in zip(values, kept, strict=True) if k)
        total = [so_far + weight * chance for so_far, chance in zip(total, answer_law(ones, epsilon), strict=True)]
    return total


def run_scripted(first: int, neighbors: str, pilot: float | None = 0.3) -> tuple[Any, list[float]]:
    """(a release whose pilot answered so, the epsilons at which the algorithm saw the people asked).

    What is rehearsed errs least at the largest threshold after a low pilot, and at the least after another.
    """
    runs: list[float] = []

    def scripted(data: Any, epsilon: float) -> float:
        if "made up" in data or not data:
            return epsilon
        runs.append(epsilon)
        return first

    more: dict[str, Any] = {}
    if pilot is not None:
        goal = 100.0 if first == LOW else -100.0
        more = {"threshold": "best", "pilot": pilot, "like": lambda _: ["made up"] * 30, "truth": lambda _: goal}
    grants = [*GRANTS, eps.PUBLIC]  # who is public is in every sample, so that none is empty
    return eps.personalize(scripted, ["asked"] * 4, grants, neighbors=neighbors, **more), runs


def worst_losses(plans: dict[int, tuple[list[tuple[float, list[float]]], list[float]]], neighbors: str) -> list[float]:
    """By how much anybody's loss exceeds what they are charged, of the pilot and the answer together, over all data."""
    domain, excess = (0, 1, None), [-math.inf] * len(GRANTS)
    start = plans[LOW][0][0]
    laws: dict[Any, Any] = {}
    for values in itertools.product(domain, repeat=len(GRANTS)):
        pilot = sampled(values, *start)
        laws[values] = {
            (y, z): p * c for y, p in enumerate(pilot) for z, c in enumerate(sampled(values, *plans[y][0][1]))
        }
    for values, person in itertools.product(laws, range(len(GRANTS))):
        for other in (None,) if neighbors == "absent" else domain:
            changed = (*values[:person], other, *values[person + 1 :])
            for outcome, chance in laws[values].items():
                loss = abs(math.log(chance / laws[changed][outcome]))
                excess[person] = max(excess[person], loss - plans[outcome[0]][1][person])
    return excess


def plans_of(neighbors: str) -> dict[int, Any]:
    """For every answer of the pilot: how likely people are in both samples, both epsilons, and what people pay."""
    plans = {}
    for first in (LOW, ONE, HIGH):
        release, runs = run_scripted(first, neighbors)
        assert len(runs) == 2
        parts = release.details["pilot"], release.details
        chances = [[chance for epsilon, chance in part["chances"] if epsilon is not None] for part in parts]
        plans[first] = list(zip(runs, chances, strict=True)), [release.charges[grant] for grant in GRANTS]
    return plans


@pytest.mark.parametrize("neighbors", ["absent", "replace"])
def test_pilot_and_answer_cost_nobody_more_than_they_are_charged(neighbors: str) -> None:
    """All data of three people and all pairs of answers, at the epsilons and chances at which it ran."""
    plans = plans_of(neighbors)
    assert plans[LOW][0][1][0] > plans[ONE][0][1][0]  # the pilot does choose
    for _, charged in plans.values():
        assert all(paid <= grant for paid, grant in zip(charged, GRANTS, strict=True))
    assert max(worst_losses(plans, neighbors)) <= 1e-9


def test_a_pilot_that_is_not_charged_is_caught() -> None:
    """Planted: the answer is charged alone; and the answer runs at all that was granted, as if there was no pilot."""
    plans = plans_of("absent")
    for _, charged in plans.values():
        charged[:] = [paid - 0.3 * grant for paid, grant in zip(charged, GRANTS, strict=True)]
    assert max(worst_losses(plans, "absent")) > 0.01

    release, runs = run_scripted(LOW, "absent", pilot=None)
    whole = runs[0], [chance for epsilon, chance in release.details["chances"] if epsilon is not None]
    free = {first: ([plan[0][0], whole], GRANTS) for first, plan in plans_of("absent").items()}
    assert max(worst_losses(free, "absent")) > 0.01


def test_the_parts_are_stated() -> None:
    """The strictest pay all they granted, whoever granted more the pilot's part and the threshold; both are said."""
    low, other = (run_scripted(first, "absent")[0] for first in (LOW, ONE))
    assert low.charges == {**{grant: grant for grant in GRANTS}, math.inf: 0.0}
    assert other.details["threshold"] == 0.14
    assert other.charges == {0.2: 0.2, 0.5: 0.29, 1.3: 0.53, math.inf: 0.0}
    assert other.details["pilot"]["value"] == ONE
    assert other.details["pilot"]["part"] == 0.3
    assert [epsilon for epsilon, _ in other.details["pilot"]["chances"]] == [0.06, 0.15, 0.39, None]
    assert any("0.3 of every epsilon bought the pilot's" in caveat for caveat in other.guarantee.caveats)
    assert "a pilot" in other.why
    assert eps.Release.from_dict(other.to_dict()) == other


def test_a_pilot_finds_what_old_data_would() -> None:
    """A noisy count of many: the least threshold; the same where the pilot says that there are next to none: any."""
    source = seeded(4)

    def ones(data: Any, epsilon: float) -> int:
        return int(sum(data)) + discrete_laplace(source, Fraction(repr(epsilon)))

    def like(pilot: Any) -> list[float]:
        there = min(max(round(pilot.value / pilot.details["fraction"]), 0), 1000)
        return [1.0] * there + [0.0] * (1000 - there)

    options: dict[str, Any] = {"threshold": "best", "pilot": 0.2, "like": like, "truth": sum, "entropy": seeded(1)}
    dense = eps.personalize(ones, [1.0] * 1000, STRICT_AND_OPEN, **options)
    empty = eps.personalize(ones, [0.0] * 1000, STRICT_AND_OPEN, **options)
    assert dense.details["threshold"] == 0.04
    assert empty.details["threshold"] == 1.6


def test_what_the_pilot_gave_may_be_of_no_use_and_the_answer_is_given_all_the_same() -> None:
    def count(data: Any, epsilon: float) -> int:
        return len(data)

    unusable: list[Any] = [lambda _: 1 / 0, lambda _: 5, lambda _: ["x"], lambda _: []]
    for like in unusable:
        given: dict[str, Any] = {"threshold": "best", "pilot": 0.5, "like": like}
        release = eps.personalize(count, [1, 2], [0.5, 1.0], truth=lambda data: float(data[0]), **given)
        assert (release.details["threshold"], release.details["tried"]) == (0.5, [])
        assert "nothing could be rehearsed" in release.why
        assert release.charges == {0.5: 0.5, 1.0: 1.0}


def test_what_cannot_run_is_refused_before_the_pilot() -> None:
    """At "replace" an algorithm for "absent" runs at half, and a billionth has no half: nobody was sampled for that."""
    seen: list[int] = []

    def watch(data: Any, epsilon: float) -> int:
        seen.append(len(data))
        return 0

    for grants, neighbors in (([2e-9, 1.0], "replace"), ([1e-9, eps.PUBLIC], "absent")):
        given: dict[str, Any] = {"threshold": "best", "pilot": 0.4, "like": list, "truth": len, "neighbors": neighbors}
        with pytest.raises(PlanError):
            eps.personalize(watch, [1, 2], grants, **given)
    assert not seen

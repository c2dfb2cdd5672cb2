"""A function of one's own with Laplace or Gaussian noise: scale, charges, what is tested, and silence about values."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.arrays.gridded import Gridded
from epsilons.arrays.noisy import Noisy
from epsilons.errors import DataError, PlanError
from epsilons.guarantee import NANO, to_epsilon
from epsilons.measure import FEMTO, Measure, Rate
from epsilons.preferences import roster_of
from epsilons.testing import seeded

DOMAIN = (0.0, 1.0, 3.0, math.nan)
ROSTERS = ([0.7, 0.7, 0.7], [0.2, 0.5, 1.0], [0.3, eps.PUBLIC, 1.0])


def both(values: Any) -> list[float]:
    """A sum of values up to 3, and how many there are: one person moves them by 4 together, by sqrt(10) apart."""
    return [float(np.nansum(values)), float((~np.isnan(values)).sum())]


def recipe(
    function: Any, sensitivity: Any, step: float = 1.0, size: int | None = None, whole: bool = True, **more: Any
) -> Noisy:
    given = {"neighbors": "absent", "delta": None, "domain": None, **more}
    return Noisy.read(Gridded.read(function, step, size, whole), sensitivity, **given)


def neighbours(data: tuple[float, ...], neighbors: str) -> Any:
    for person in range(len(data)):
        for value in [math.nan] if neighbors == "absent" else DOMAIN:
            yield person, (*data[:person], value, *data[person + 1 :])


def largest_share(asked: Noisy, epsilons: list[float]) -> float:
    """The largest exact loss over what is charged, on all data of three people: the rate times the L1 steps."""
    roster = roster_of(epsilons)
    plan = asked.plan(roster)
    charged = [to_epsilon(plan.charges[code]) for code in roster.codes]
    worst = 0.0
    for data in itertools.product(DOMAIN, repeat=3):
        for person, other in neighbours(data, asked.neighbors):
            places = (asked.answer.places(np.array(values)) for values in (data, other))
            steps = sum(abs(a - b) for a, b in zip(*places, strict=True))
            if math.isfinite(epsilons[person]):
                worst = max(worst, float(plan.rate * steps) / charged[person])
    return worst


@pytest.mark.parametrize("epsilons", ROSTERS)
def test_nobody_loses_more_than_they_are_charged_and_somebody_all_of_it(epsilons: list[float]) -> None:
    assert largest_share(recipe(both, 4.0, size=2), epsilons) == pytest.approx(1, abs=1e-8)
    assert largest_share(recipe(both, 4.0, size=2, neighbors="replace"), epsilons) == pytest.approx(1, abs=1e-8)
    assert 0 < largest_share(recipe(both, 4.0, 0.8, size=2, whole=False), epsilons) <= 1 + 1e-9


def test_a_sensitivity_that_is_too_small_is_caught_and_so_is_a_missing_allowance() -> None:
    assert largest_share(recipe(both, 3.0, size=2), ROSTERS[1]) > 1
    assert largest_share(recipe(both, 4.0, 0.8, size=2, whole=True), ROSTERS[1]) > 1


def test_everyone_is_charged_what_they_lose() -> None:
    """Two people move it by 1 and by 3, at epsilons of 1 and 2: the scale is 1.5, and the first loses 2/3."""
    plan = recipe(max, [1.0, 3.0]).plan(roster_of([1.0, 2.0]))
    assert plan.rate == Fraction(2, 3)
    assert plan.charges == (666_666_667, 2 * NANO)
    assert recipe(max, [0.0, 3.0]).plan(roster_of([1.0, 2.0])).charges == (0, 2 * NANO)


@pytest.mark.parametrize("epsilons", ROSTERS)
def test_gaussian_noise_costs_the_rho_that_is_charged(epsilons: list[float]) -> None:
    """(L2 move/deviation)^2/2 in exact fractions, for all data of three people, and all of it for somebody."""
    delta = Fraction(1, 10**6)
    asked, roster, rate = recipe(both, math.sqrt(10), size=2, delta=1e-6), roster_of(epsilons), Rate(Measure(delta))
    scaled, _ = roster.take_share(Fraction(1), rate)
    plan, shares = asked.plan(scaled), []
    assert asked.answer.steps(Fraction(10), True) == 10
    for data in itertools.product(DOMAIN, repeat=3):
        for person, other in neighbours(data, "absent"):
            places = (asked.answer.places(np.array(values)) for values in (data, other))
            square = sum((a - b) ** 2 for a, b in zip(*places, strict=True))
            charge = rate.cost(plan.charges[scaled.codes[person]])
            if charge is not None:
                shares.append(square * plan.rate**2 / 2 / Fraction(charge, FEMTO))
    assert max(shares) <= 1
    assert max(shares) > Fraction(6, 10)  # 4 steps are paid for, sqrt(10) rounded up


def test_the_noise_has_the_scale_that_is_told() -> None:
    """False alarms: the mean distance of 20,000 draws is within five standard errors, below one in a million."""
    zeros, n = [0.0] * 4, 20_000
    asked = recipe(np.nansum, 3.0)
    plan = asked.plan(roster_of([0.5] * 4))
    drawn = np.abs(plan.law.draw_many(seeded(5), n).astype(float))
    told = eps.noisy(np.nansum, zeros, 0.5, sensitivity=3, step=1, whole=True)
    assert told.details["scale"] == 6
    assert abs(drawn.mean() - 6) < 5 * 6 / math.sqrt(n) < abs(drawn.mean() - 6 * 1.1)
    assert told.interval(0.95)[0] < told.value < told.interval(0.95)[1]
    wide = eps.noisy(np.nansum, zeros, 0.5, sensitivity=3, step=1, whole=True, delta=1e-6)
    assert wide.mechanism == "gaussian"
    assert wide.guarantee.delta == 1e-6


def test_answers_are_told_with_their_claim() -> None:
    answer = eps.noisy(both, [1, 2, None], [1.0, 2.0, 0.5], sensitivity=4, step=1, size=2, share=0.5)
    assert len(answer.value) == 2
    assert "nothing here tested it" in " ".join(answer.guarantee.caveats)
    assert answer.charges == {0.5: 0.25, 1.0: 0.25, 2.0: 0.25}
    assert eps.Release.from_dict(answer.to_dict()).value == answer.value
    tested = eps.noisy(np.nansum, [1, 2], 1.0, sensitivity=3, step=1, domain=[0, 3])
    assert "did not refute it" in " ".join(tested.guarantee.caveats)
    assert eps.noisy(np.nansum, [1, 2], eps.PUBLIC, sensitivity=3, step=1).value == 3


def test_a_false_sensitivity_is_refused_before_a_value_is_read() -> None:
    seen: list[float] = []

    def total(values: Any) -> float:
        seen.extend(values.tolist())
        return float(np.nansum(values))

    with pytest.raises(PlanError, match=r"person 0, of epsilon 1, moves the function by 3, and 2 is allowed"):
        eps.noisy(total, [77.0, 77.0], 1.0, sensitivity=2, step=1, domain=[0, 3])
    with pytest.raises(PlanError, match="moves the function by 6"):
        eps.noisy(total, [77.0], 1.0, sensitivity=5, step=1, domain=[-3, 3], neighbors="replace")
    assert 77.0 not in seen


def test_the_search_tries_everyone_of_a_few_and_whom_a_claim_sets_apart_of_many() -> None:
    for person, people in ((1, 3), (20, 50)):
        stated = [0.5 if place == person else 1.0 for place in range(people)]
        with pytest.raises(PlanError, match=f"person {person}, of epsilon 1, moves the function by 1, and 0.5"):
            eps.noisy(np.nansum, [1] * people, 1.0, sensitivity=stated, step=1, domain=[0, 1])


def test_answers_that_are_said_to_be_whole_are_searched_as_they_are_rounded() -> None:
    """Halves go from 0.5 to 1.5, that is from 0 to 2, where no noise allows for rounding."""
    half: dict[str, Any] = {"function": lambda values: np.nansum(values) / 2, "sensitivity": 1, "step": 1}
    eps.noisy(values=[1, 1, 0], epsilons=1.0, domain=[0, 1, 2], **half)
    with pytest.raises(PlanError, match="moves the function by 2, and 1 is allowed"):
        eps.noisy(values=[1, 1, 0], epsilons=1.0, domain=[0, 1, 2], whole=True, **half)


def test_as_many_people_are_made_up_as_there_are() -> None:
    """So a mean may state what it is: its bounds over the number of people."""
    people = [50.0] * 500
    eps.noisy(np.mean, people, 1.0, sensitivity=100 / 500, step=0.01, domain=[0, 100], neighbors="replace")
    with pytest.raises(PlanError, match="does not hold"):
        eps.noisy(np.mean, people, 1.0, sensitivity=100 / 501, step=0.01, domain=[0, 100], neighbors="replace")


def test_a_function_that_fails_on_made_up_data_is_named_and_on_values_it_is_not() -> None:
    with pytest.raises(PlanError, match="ZeroDivisionError"):
        eps.noisy(lambda values: 1 / 0, [1, 2], 1.0, sensitivity=1, step=1, domain=[0, 1])
    for broken in (lambda values: 1 / 0, lambda values: math.nan, lambda values: [1, 2], lambda values: "secret"):
        with pytest.raises(DataError) as failed:  # of public people only
            eps.noisy(broken, [1, 2], eps.PUBLIC, sensitivity=1, step=1)
        assert str(failed.value) == (
            "The function did not give a finite number. What it raised or returned is not shown: it may be data."
        )


def test_whether_a_function_fails_on_values_is_not_told() -> None:
    """Neither by an error: it is as an answer of 0, which has noise like any other. False alarms: e^-100."""

    def fails_at_three(values: Any) -> float:
        if np.nansum(values) == 3:
            raise ValueError("secret")
        return 0.0

    for values in ([1.0, 1.0, 1.0], [1.0, 1.0, math.nan]):
        assert abs(eps.noisy(fails_at_three, values, 1.0, sensitivity=1, step=1, whole=True).value) <= 100
    pair = eps.noisy(lambda values: 1 / 0, [1.0], 1.0, sensitivity=1, step=1, size=2, delta=1e-6)
    assert len(pair.value) == 2


def test_a_warning_about_a_value_is_not_shown() -> None:
    """Warnings are errors in tests: this one would be told as a failure, or in a notebook by its text."""

    def warns(values: Any) -> float:
        warnings.warn(f"a value of {values[0]}", RuntimeWarning, stacklevel=1)
        return 1.0

    assert isinstance(eps.noisy(warns, [77.0], 1.0, sensitivity=1, step=1).value, float)


def test_wrong_arguments_are_refused() -> None:
    fine: dict[str, Any] = {"sensitivity": 1, "step": 1}
    wrong: list[dict[str, Any]] = [
        {"sensitivity": 0},
        {"sensitivity": -1},
        {"sensitivity": "1"},
        {"sensitivity": [1, 2, 3]},
        {"sensitivity": []},
        {"step": 0},
        {"size": 0},
        {"neighbors": "both"},
        {"delta": 2},
        {"domain": []},
        {"whole": 1},
    ]
    for given in wrong:
        with pytest.raises(PlanError):
            eps.noisy(np.nansum, [1, 2], 1.0, **{**fine, **given})
    with pytest.raises(PlanError):
        eps.noisy("sum", [1, 2], 1.0, **fine)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="Only public people"):
        eps.noisy(np.nansum, [1, 2], [eps.PUBLIC, 1.0], sensitivity=[1, 0], step=1)

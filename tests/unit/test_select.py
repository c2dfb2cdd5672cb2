"""Selections: the law of Jorgensen et al.'s Equations 3 to 5 for any function, voices, scores, and claims that fail."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

import epsilons as eps
from epsilons.arrays.select import STEPS, Choice, sampler
from epsilons.auditing import ABSENT, Verdict, all_datasets, enumerate_losses
from epsilons.errors import DataError, PlanError
from epsilons.mechanisms.exponential import count_pmf, order_pmf
from epsilons.preferences import roster_of
from epsilons.testing import seeded

DOMAIN = (0, 1, 2)
ROSTERS = ((0.7, 0.7, 0.7), (0.2, 0.5, 1.0), (0.05, 1.5, 1.5))
#: Any function with a few answers.
FUNCTIONS: dict[str, Callable[[Any], int]] = {
    "count": lambda data: sum(x == 1 for x in data),
    "median": lambda data: sorted(data)[len(data) // 2],
    "min": min,
    "max": max,
    "sum": sum,
    "range": lambda data: max(data) - min(data),
    "mode": lambda data: max(DOMAIN, key=list(data).count),
    "parity of the first": lambda data: data[0] % 2,
}


def equation_5(function: Callable[[Any], int], data: Any, epsilons: Any, answer: int) -> float:
    """-d_f(D, r): the cheapest data set of which the answer is true, by looking at all of them."""
    costs = [
        math.fsum(e for x, y, e in zip(data, other, epsilons, strict=True) if x != y)
        for other in itertools.product(DOMAIN, repeat=len(data))
        if function(other) == answer
    ]
    return min(costs)


def equation_3(function: Callable[[Any], int], data: Any, answer: int) -> int:
    """-s(D, r): how many people would have to change."""
    return round(equation_5(function, data, [1.0] * len(data), answer))


def pe_choice(function: Callable[[Any], int], options: Any, neighbors: str = "replace") -> Choice:
    def cost(values: Any, epsilons: Any, option: Any) -> float:
        return equation_5(function, values.tolist(), epsilons.tolist(), option)

    return Choice.read(options, cost, None, (0, 1), 1, neighbors, None)


def law(choice: Choice, values: Any, epsilons: Any) -> dict[Any, float]:
    outcomes, logs = choice.law(list(values), roster_of(list(epsilons)))
    return dict(zip(outcomes, np.exp(logs).tolist(), strict=True))


def answers_of(function: Callable[[Any], int]) -> list[int]:
    return sorted({function(data) for data in itertools.product(DOMAIN, repeat=3)})


# PE for any function -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_chance_is_that_of_equation_4(name: str) -> None:
    """On all data sets of three people, for every roster: exp(d/2) over the sum of it."""
    function = FUNCTIONS[name]
    options = answers_of(function)
    choice = pe_choice(function, options)
    for epsilons, data in itertools.product(ROSTERS, itertools.product(DOMAIN, repeat=3)):
        weights = {r: math.exp(-equation_5(function, data, epsilons, r) / 2) for r in options}
        found = law(choice, data, epsilons)
        for option, weight in weights.items():
            assert found[option] == pytest.approx(weight / sum(weights.values()), rel=1e-6), (data, epsilons)


def test_equal_epsilons_are_the_exponential_mechanism_of_equation_3() -> None:
    """With s the number of changes and a sensitivity of 1: exp(epsilon s/2), as the paper says of its Definition 10."""
    for name, data in itertools.product(FUNCTIONS, itertools.product(DOMAIN, repeat=3)):
        function = FUNCTIONS[name]
        options = answers_of(function)
        weights = {r: math.exp(-0.7 * equation_3(function, data, r) / 2) for r in options}
        found = law(pe_choice(function, options), data, ROSTERS[0])
        for option, weight in weights.items():
            assert found[option] == pytest.approx(weight / sum(weights.values()), rel=1e-6)


def test_the_papers_median_costs_what_it_says() -> None:
    data, epsilons = [3, 5, 6, 9, 11], [0.1, 1, 1, 0.5, 1]
    for answer, cost in ((3, 1.5), (4, 1.5), (5, 0.5), (11, 0.6), (6, 0.0)):
        below = sorted(e for x, e in zip(data, epsilons, strict=True) if x < answer)
        above = sorted(e for x, e in zip(data, epsilons, strict=True) if x > answer)
        assert sum(below[: max(0, len(below) - 2)]) + sum(above[: max(0, len(above) - 2)]) == pytest.approx(cost)


@pytest.mark.parametrize("epsilons", ROSTERS)
def test_counts_and_order_statistics_are_those_of_the_mechanism_by_name(epsilons: tuple[float, ...]) -> None:
    for data in itertools.product((0, 1), repeat=3):
        outcomes, chances = count_pmf(data, list(epsilons))
        found = law(pe_choice(FUNCTIONS["count"], outcomes.tolist()), data, epsilons)
        assert list(found.values()) == pytest.approx(chances.tolist(), rel=1e-6)
    for data in itertools.product(DOMAIN, repeat=3):
        outcomes, chances = order_pmf(data, list(epsilons), rank=1, bounds=(0, 2), step=1)
        found = law(pe_choice(FUNCTIONS["median"], [int(x) for x in outcomes]), data, epsilons)
        assert list(found.values()) == pytest.approx(chances.tolist(), rel=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nobody_loses_more_than_their_epsilon_by_any_function(name: str) -> None:
    choice = pe_choice(FUNCTIONS[name], answers_of(FUNCTIONS[name]))
    for epsilons in ROSTERS:
        assert held(choice, epsilons, DOMAIN).holds


def held(choice: Choice, epsilons: tuple[float, ...], domain: tuple[Any, ...]) -> Verdict:
    roster = roster_of(list(epsilons))

    def distribution(values: Any) -> Any:
        return choice.law([None if math.isnan(x) else int(x) for x in values], roster)

    everyone = all_datasets(domain, len(epsilons))
    named: Any = choice.neighbors
    return enumerate_losses(distribution, everyone, epsilons, domain=domain, neighbors=named, log=True)


def test_a_missing_half_is_caught() -> None:
    """The unit of a cost twice as large, as if nobody could move two options apart."""
    choice = pe_choice(FUNCTIONS["median"], DOMAIN)
    whole = Choice.unit
    with patch.object(Choice, "unit", lambda self, roster: 2 * whole(self, roster)):
        assert not held(choice, (0.7, 0.7, 0.7), DOMAIN).holds


# Voices and scores ---------------------------------------------------------------------------------------------------


def voices(neighbors: str, k: int = 1) -> Choice:
    return Choice.read(DOMAIN, None, None, (0, 1), k, neighbors, None)


def test_a_voice_weighs_its_epsilon() -> None:
    for data in itertools.product((*DOMAIN, None), repeat=3):
        for neighbors, part in (("absent", 1.0), ("replace", 0.5)):
            weights = [
                math.exp(part * sum(e for x, e in zip(data, (0.2, 0.5, 1.0), strict=True) if x == r)) for r in DOMAIN
            ]
            found = law(voices(neighbors), data, (0.2, 0.5, 1.0))
            assert list(found.values()) == pytest.approx([w / sum(weights) for w in weights], rel=1e-9)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("neighbors", ["absent", "replace"])
def test_nobody_loses_more_than_their_epsilon_by_their_voice(neighbors: str, k: int) -> None:
    for epsilons in (*ROSTERS, (0.3, math.inf, 1.0)):
        verdict = held(voices(neighbors, k), epsilons, (*DOMAIN, ABSENT))
        assert verdict.holds, str(verdict)


def test_voices_without_the_half_are_caught_where_people_are_replaced() -> None:
    choice, plain = voices("replace"), voices("absent").unit(roster_of([1.0]))
    with patch.object(Choice, "unit", lambda self, roster: plain):
        assert not held(choice, (1.0, 1.0, 1.0), DOMAIN).holds


def test_scores_and_their_function_are_one() -> None:
    points = {"a": [0.0, 1.0, 0.25], "b": [1.0, 0.5, 0.0]}
    people, roster = ["a", "b", "b", None], roster_of([0.5, 1.0, 2.0, 0.5])

    def score(value: Any, option: Any) -> float:
        return points[value]["xyz".index(option)]

    rows = np.array([points[one] if one else [math.nan] * 3 for one in people])
    by_rows = Choice.read(list("xyz"), None, None, (0, 1), 1, "absent", None)
    by_function = Choice.read(list("xyz"), None, score, (0, 1), 1, "absent", None)
    assert by_function.costs(people, roster, None) == by_rows.costs(rows, roster, None)
    totals = [sum(e * points[p][at] for p, e in (("a", 0.5), ("b", 1.0), ("b", 2.0))) for at in range(3)]
    costs = np.array(by_rows.costs(rows, roster, None)) / STEPS / 1e9
    assert costs == pytest.approx([max(totals) - t for t in totals], abs=1e-6)


def scored(low: float, high: float) -> Iterator[Any]:
    yield from itertools.product((low, (low + high) / 2, high, 5 * high, math.nan), repeat=2)


def test_a_score_beyond_the_bounds_is_cut() -> None:
    """Nobody's voice moves two options farther apart than their epsilon, whatever stands in the row."""
    choice, roster = Choice.read(["x", "y"], None, None, (-1, 3), 1, "absent", None), roster_of([0.5])
    for row in scored(-1.0, 3.0):
        x, y = choice.costs(np.array([row]), roster, None)
        assert abs(x - y) <= STEPS * 500_000_000


def test_draws_follow_the_law() -> None:
    """False alarms: each chance is within five standard deviations, below one in a million for three of them."""
    costs, unit, draws = [0, 900_000_000, 2_500_000_000], voices("absent").unit(roster_of([1.0])) * STEPS, 40_000
    drawn = np.bincount(sampler(costs, unit).draw_many(seeded(3), draws), minlength=3) / draws
    chances = sampler(costs, unit).probabilities()[1]
    assert (np.abs(drawn - chances) < 5 * np.sqrt(chances * (1 - chances) / draws)).all()
    assert (np.abs(drawn - np.roll(chances, 1)) > 5 * np.sqrt(chances * (1 - chances) / draws)).any()


# What is told --------------------------------------------------------------------------------------------------------


def test_a_mode_a_top_and_a_largest_total() -> None:
    colours, votes = ["red", "green", "blue"], ["red"] * 300 + ["blue"] * 200 + ["green"] * 50 + [None]
    assert eps.select(colours, votes, 1.0).value == "red"
    assert eps.select(colours, votes, [0.5] * 300 + [1.0] * 251, k=2).value[0] in ("red", "blue")
    ratings = np.array([[0.0, 5.0, 3.0]] * 100)
    with pytest.raises(PlanError, match="A table of scores needs bounds"):
        eps.select(colours, ratings, 0.5)
    answer = eps.select(colours, ratings, 0.5, bounds=(0, 5))
    assert answer.value == "green"
    assert answer.charges == {0.5: 0.5}
    assert answer.details["short_of_best"] == pytest.approx(math.log(60))
    assert "options" in str(answer)


def test_a_share_charges_that_part() -> None:
    answer = eps.select([0, 1], [0, 1, 1], [0.5, 1.0, 2.0], share=0.1)
    assert answer.charges == {0.5: 0.05, 1.0: 0.1, 2.0: 0.2}


def test_of_public_people_the_best_is_told() -> None:
    answer = eps.select([0, 1, 2], [2, 1, 2], eps.PUBLIC)
    assert (answer.value, answer.mechanism) == (2, "exact")


def test_a_claim_is_named_and_tested() -> None:
    def above(values: Any, epsilons: Any, option: Any) -> float:
        return float(epsilons[values > option].sum())

    told = eps.select([0, 1, 2], [0, 1, 2], [1.0, 2.0, 0.5], cost=above)
    assert "nothing here tested it" in " ".join(told.guarantee.caveats)
    told = eps.select([0, 1, 2], [0, 1, 2], [1.0, 2.0, 0.5], cost=above, domain=[0, 1, 2])
    assert "pairs of made-up data did not refute it" in " ".join(told.guarantee.caveats)

    def twice(values: Any, epsilons: Any, option: Any) -> float:
        return 2 * above(values, epsilons, option)

    with pytest.raises(PlanError, match=r"moves the function by \d.*made-up data"):
        eps.select([0, 1, 2], [0, 1, 2], [1.0, 2.0, 0.5], cost=twice, domain=[0, 1, 2])


def test_the_search_never_sees_a_value() -> None:
    seen: list[float] = []

    def watched(values: Any, epsilons: Any, option: Any) -> float:
        seen.extend(values.tolist())
        return float(2 * epsilons[values > option].sum())

    with pytest.raises(PlanError, match="does not hold"):
        eps.select([0, 1], [77, 77], 1.0, cost=watched, domain=[0, 1])
    assert 77 not in seen


def test_a_cost_that_fails_tells_nothing() -> None:
    """Neither by an error's text nor by there being one: it costs nothing."""
    for broken in (lambda *_: 1 / 0, lambda *_: math.nan, lambda *_: "secret"):
        choice = Choice.read([0, 1], broken, None, (0, 1), 1, "absent", None)
        assert choice.costs([5, 6], roster_of([1.0, 1.0]), None) == [0, 0]
        assert eps.select([0, 1], [5, 6], 1.0, cost=broken).value in (0, 1)
        with pytest.raises(DataError) as failed:  # of public people it may
            eps.select([0, 1], [5, 6], eps.PUBLIC, cost=broken)
        assert str(failed.value) == (
            "The function did not give a number. What it raised or returned is not shown: it may be data."
        )


def test_a_score_that_fails_is_no_voice() -> None:
    def score(value: Any, option: Any) -> float:
        return 1 / value if option == "a" else 1.0

    choice = Choice.read(["a", "b"], None, score, (0, 1), 1, "absent", None)
    assert choice.tally([0, 1], roster_of([1.0, 1.0]), None).tolist() == [[STEPS, 2 * STEPS]]


class Spiteful:
    """A value that says what it is wherever it is touched."""

    def __hash__(self) -> int:
        raise ValueError("secret")

    def __eq__(self, other: object) -> bool:
        raise ValueError("secret")


#: What a person could have as a value.
ODD: tuple[Any, ...] = (None, math.nan, pd.NA, pd.NaT, ["x"], ["x", "y"], (1, [2]), np.array([1, 2]), {}, Spiteful())


@pytest.mark.parametrize("odd", ODD, ids=lambda one: type(one).__name__)
def test_no_value_of_one_person_stops_an_answer_or_changes_how_others_are_read(odd: Any) -> None:
    roster = roster_of([1.0, 1.0, 1.0])

    def same(value: Any, option: Any) -> float:
        return float(value == option)

    for score in (None, same):
        choice = Choice.read(["red", "blue"], None, score, (0, 1), 1, "absent", None)
        assert choice.tally(["red", odd, "red"], roster, None).tolist() == [[2 * STEPS, 0]]


def test_who_has_no_value_has_no_score_and_an_array_has_one() -> None:
    choice = Choice.read(["a", "b"], None, lambda *_: 1.0, (0, 1), 1, "absent", None)
    for value, heard in [*((one, 0) for one in ODD[:4]), (np.array([1, 2]), 1), (False, 1), ("x", 1)]:
        assert choice.tally(["a", value], roster_of([1.0, 1.0]), None).tolist() == [[(1 + heard) * STEPS] * 2]


def test_wrong_arguments_are_refused() -> None:
    def say(values: Any, epsilons: Any, option: Any) -> float:
        return 0.0

    def same(value: Any, option: Any) -> float:
        return 0.0

    wrong: list[tuple[Any, dict[str, Any]]] = [
        (["a"], {}),
        (["a", "a"], {}),
        ("ab", {}),
        (["a", "b"], {"k": 2}),
        (["a", "b"], {"k": 0}),
        (["a", "b"], {"cost": 3}),
        (["a", "b"], {"cost": say, "score": same}),
        (["a", "b"], {"neighbors": "both"}),
        (["a", "b"], {"bounds": (1, 0)}),
        (["a", "b"], {"domain": [0, 1]}),
        (["a", "b"], {"cost": say, "domain": 3}),
    ]
    for options, given in wrong:
        with pytest.raises(PlanError):
            eps.select(options, ["a", "b"], 1.0, **given)


# --- a score that fails -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [[[1], [2]], [([1],), ([2],)], [1, True], [{}, 2]])
def test_options_that_cannot_be_told_apart_are_refused(options: Any) -> None:
    with pytest.raises(PlanError, match="At least two, each once"):
        eps.select(options, [1, 2], 1.0)


def test_a_domain_of_what_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(PlanError, match="Some values that people could have"):
        eps.audit(len, [1.0], domain=[([1],)])


def test_a_score_is_tried_out_on_public_values_and_its_failures_are_told() -> None:
    def upper(value: Any, option: Any) -> float:
        return float(value.upper() == option)

    with pytest.raises(PlanError, match="On made-up data the score failed with AttributeError") as caught:
        eps.select(["A", "B"], ["a", "b", 3], 1.0, score=upper, domain=["a", 3])
    assert "(3, 'A')" in caught.value.rule
    with pytest.raises(PlanError, match="gave no number"):
        eps.select(["A", "B"], ["a"], 1.0, score=lambda value, option: math.nan, domain=["a"])
    fine = eps.select(["A", "B"], ["a", "b"], 1.0, score=upper, domain=["a", "b"])
    assert "it gave numbers for all 2 made-up values" in fine.why


def test_a_score_that_does_not_take_two_arguments_is_refused_whatever_the_values() -> None:
    for values in ([1, 2], [None, None]):
        with pytest.raises(PlanError, match="does not take two arguments"):
            eps.select(["a", "b"], values, 1.0, score=lambda value: 1.0)


def test_without_public_values_a_score_fails_in_silence_and_says_so_on_every_answer() -> None:
    def fails(value: Any, option: Any) -> float:
        raise ValueError(f"saw {value}")

    told = [eps.select(["a", "b"], values, 1.0, score=fails) for values in ([1, 2], [None, None])]
    assert told[0].why == told[1].why
    assert "nothing here tested it" in told[0].why


def test_the_promise_of_a_cost_says_that_its_claim_covers_failures() -> None:
    told = eps.select([0, 1], [0, 1], 1.0, cost=lambda values, epsilons, option: 0.0)
    assert any("It covers failures" in caveat for caveat in told.guarantee.caveats)
    noisy = eps.noisy(sum, [0.0, 1.0], 1.0, sensitivity=1, step=1)
    assert any("It covers failures" in caveat for caveat in noisy.guarantee.caveats)


def test_options_that_are_numbers_are_told_as_they_are_written() -> None:
    answer = eps.select([2023, 2024], [2024] * 50, 900.0)
    assert str(answer).startswith("choice among 2 options: 2024 (")
    assert answer.sheets()[0].rows[0][1] == "2024"


@pytest.mark.parametrize("none", [None, math.nan, np.float64("nan"), np.datetime64("NaT")])
def test_a_missing_value_is_no_option(none: Any) -> None:
    """Else whoever leaves becomes a voice for it: a loss of 1.43 at an epsilon of 1, under absence."""
    for call in (
        lambda: eps.select([1, none], [1, 1], 1.0),
        lambda: eps.audit(eps.select, [1.0], domain=[1], options=[1, none]),
    ):
        with pytest.raises(PlanError, match="A missing value is no option"):
            call()

"""A function of one's own with individual privacy: its noise, its label, and its silence about what went wrong."""

from __future__ import annotations

import itertools
import math
import traceback
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.arrays.claimed import FAILURES as FAILED
from epsilons.arrays.gridded import Gridded
from epsilons.arrays.individual import WHOSE_WORD, _by_level, _rate, individually
from epsilons.errors import DataError, PlanError, PreferenceError
from epsilons.guarantee import INDIVIDUAL, NANO, PUBLIC_PEOPLE, SEEDED
from epsilons.mechanisms.local_sensitivity import NOT_DP
from epsilons.preferences import roster_of
from epsilons.testing import seeded

VALUES = [23.0, 35.0, 41.0, 52.0, 60.0]
PUBLIC = eps.PUBLIC


def spread(values: Any) -> float:
    return float(max(values) - min(values))


def ask(function: Any = spread, values: Any = VALUES, epsilons: Any = 1.0, **options: Any) -> eps.Release:
    return individually(function, values, epsilons, **{"sensitivity": 10.0, "step": 1, **options})


def rate(reach: Any, epsilons: list[float], step: float) -> Fraction | None:
    roster = roster_of(epsilons)
    spread_out = np.broadcast_to(np.asarray(reach, float), (len(epsilons),))
    return _rate(_by_level(spread_out, roster), Gridded.read(max, step, None, False))


# The scale -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0.25, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("epsilons", [[1.0, 1.0, 1.0], [0.5, 2.0, 0.1], [0.5, PUBLIC, 1.0]])
def test_the_scale_is_the_largest_reach_over_epsilon_with_one_step_for_rounding(
    epsilons: list[float], step: float
) -> None:
    for reach in itertools.product((0.0, 0.3, 1.0, 7.0), repeat=3):
        scales = [
            (math.ceil(Fraction(r) / Fraction(step)) + 1) / Fraction(round(e * NANO), NANO)
            for r, e in zip(reach, epsilons, strict=True)
            if r > 0 and math.isfinite(e)
        ]
        assert rate(reach, epsilons, step) == (1 / max(scales) if scales else None)


def test_the_step_for_rounding_is_needed_and_enough() -> None:
    """Two answers that differ by r lie at most ceil(r/step) + 1 steps apart on the grid, and sometimes that many."""
    tight = False
    for first, reach, step in itertools.product(np.arange(-2, 2, 0.125), np.arange(0.125, 3, 0.125), (0.25, 0.5, 1.0)):
        grid = Fraction(step)
        apart = abs(round(Fraction(first + reach) / grid) - round(Fraction(first) / grid))
        allowed = math.ceil(Fraction(reach) / grid) + 1
        assert apart <= allowed
        tight |= apart == allowed
    assert tight


def test_with_the_scale_frozen_every_replacement_loses_at_most_its_epsilon() -> None:
    """The range of three values on {0, 1, 2, 5}, each person with the local sensitivity of the definition."""
    domain, epsilons = (0.0, 1.0, 2.0, 5.0), [0.3, 1.0, 0.5]
    for data in itertools.product(domain, repeat=3):
        others = [[(*data[:i], y, *data[i + 1 :]) for y in domain] for i in range(3)]
        reach = [max(abs(spread(other) - spread(data)) for other in mine) for mine in others]
        frozen = rate(reach, epsilons, 0.75)
        for mine, epsilon in zip(others, epsilons, strict=True):
            for other in mine:
                here, there = (round(Fraction(spread(d)) / Fraction(3, 4)) for d in (data, other))
                steps = abs(here - there)
                assert steps == 0 if frozen is None else steps * frozen <= Fraction(str(epsilon))


@pytest.mark.statistical
def test_the_noise_has_the_variance_of_the_scale() -> None:
    source, draws = seeded(21), 6_000
    noise = [ask(epsilons=0.5, sensitivity=11.2, step=0.5, entropy=source).value - 37.0 for _ in range(draws)]
    seen = float(np.mean(np.square(noise))) / 0.25
    for factor, fits in ((1.0, True), (0.9, False), (1 / 0.9, False)):
        q = math.exp(-0.5 / (24 * factor))  # 23 steps to the next whole one, and one for rounding
        expected = 2 * q / (1 - q) ** 2
        assert (abs(seen / expected - 1) < 4 * math.sqrt(5 / draws)) == fits, factor


def test_a_sensitivity_of_zero_gives_the_answer_on_the_grid() -> None:
    for step, shown in ((1, 37.0), (0.1, 36.6), (10, 40.0), (0.001, 36.57)):
        answers = {ask(lambda _: 36.57, sensitivity=0, step=step).value for _ in range(20)}
        assert answers == {shown}


def test_people_with_a_sensitivity_of_zero_do_not_ask_for_noise() -> None:
    strict = [0.001, 0.001, 0.001, 0.001, 50.0]
    for sensitivity in ([0, 0, 0, 0, 1], lambda values: np.where(values == 60, 1, 0)):
        answers = [ask(epsilons=strict, sensitivity=sensitivity).value for _ in range(30)]
        assert max(abs(answer - 37) for answer in answers) <= 6, "noise of scale 2/50, not 2/0.001"


def test_public_people_do_not_ask_for_noise_either() -> None:
    epsilons, sensitivity = [PUBLIC, PUBLIC, 5.0, PUBLIC, PUBLIC], [9, 9, 0, 9, 9]
    answers = {ask(epsilons=epsilons, sensitivity=sensitivity).value for _ in range(20)}
    assert answers == {37.0}


@pytest.mark.parametrize("sensitivity", [10, 10.0, np.float32(10), [10] * 5, np.full(5, 10), lambda values: 10])
def test_a_sensitivity_comes_in_many_shapes(sensitivity: Any) -> None:
    assert ask(sensitivity=sensitivity, entropy=seeded(3)).value == ask(sensitivity=10, entropy=seeded(3)).value


def test_sensitivities_belong_to_persons_even_if_the_function_sorts_in_place() -> None:
    values = np.array([60.0, 23.0, 41.0])

    def sorting(given: Any) -> float:
        given.sort()
        return float(given[-1] - given[0])

    seen: list[list[float]] = []

    def recording(given: Any) -> Any:
        seen.append(given.tolist())
        given.fill(-1)
        return [0, 0, 1]

    ask(sorting, values, [0.001, 0.001, 50.0], sensitivity=recording)
    assert seen == [[60.0, 23.0, 41.0]]
    assert values.tolist() == [60.0, 23.0, 41.0]


@pytest.mark.parametrize("number", [1.7e308, -1.7e308, 1e31, 5e-324])
@pytest.mark.parametrize("step", [1e-300, 1e-6, 1, 1e30])
def test_huge_numbers_end_at_a_public_bound_and_never_raise(number: float, step: float) -> None:
    release = ask(lambda _: number, epsilons=1e-9, sensitivity=1e308, step=step)
    assert math.isfinite(release.value)
    assert abs(ask(lambda _: number, sensitivity=0, step=step).value) <= 1e30


# What it says --------------------------------------------------------------------------------------------------------


def test_it_says_what_it_is() -> None:
    release = ask(epsilons=[0.5, 1.0, 1.0, 2.0, PUBLIC])
    assert release.guarantee.kind == INDIVIDUAL
    assert release.guarantee.neighbors == "replace"
    assert {NOT_DP, f"{WHOSE_WORD} {FAILED}", PUBLIC_PEOPLE} <= set(release.guarantee.caveats)
    assert SEEDED not in release.guarantee.caveats
    assert release.charges == {0.5: 0.5, 1.0: 1.0, 2.0: 2.0, math.inf: 0.0}
    assert release.error is None
    with pytest.raises(PlanError, match="no honest interval"):
        release.interval()
    assert "individual DP (not DP)" in str(release)
    assert not ask(entropy=seeded(1)).private


def test_neither_sensitivity_nor_scale_is_shown() -> None:
    sensitivity = 7654.25
    release = ask(sensitivity=sensitivity, epsilons=0.37, step=0.5, entropy=seeded(5))
    shown = [str(release), repr(release), release._repr_html_(), str(release.to_dict()), str(release.guarantee)]
    steps = math.ceil(sensitivity / 0.5) + 1
    for secret in (sensitivity, steps, steps / 0.37, sensitivity / 0.37, steps * 0.5 / 0.37, 0.37 / steps):
        assert not any(f"{secret:.6g}"[:6] in text for text in shown)
    assert dict(release.details) == {}


def test_it_is_the_same_on_all_data_but_for_the_value() -> None:
    near, far = (
        {**ask(np.mean, values, sensitivity=lambda v: np.ptp(v) / 5, step=0.01).to_dict(), "value": None}
        for values in ([3, 3, 3, 3, 3], [0, 0, 0, 0, 10**9])
    )
    assert near == far


# What goes wrong -----------------------------------------------------------------------------------------------------

SECRET = "ann earns 91357"


class SpitefulError(Exception):
    def __str__(self) -> str:
        return SECRET


def failing(error: BaseException) -> Callable[[Any], Any]:
    def function(values: Any) -> Any:
        raise error

    return function


def chained(values: Any) -> Any:
    try:
        raise KeyError(SECRET)
    except KeyError as cause:
        raise RuntimeError(SECRET) from cause


def lookup(values: Any) -> float:
    return {SECRET: 1}[f"{SECRET}!"]


class Unprintable:
    def __float__(self) -> float:
        raise ValueError(SECRET)

    __array__ = None


FAILURES: dict[str, Callable[[Any], Any]] = {
    "raises": failing(ValueError(SECRET)),
    "raises its own kind": failing(SpitefulError()),
    "raises one of ours": failing(DataError(SECRET, rule=SECRET, suggest=SECRET)),
    "raises several": failing(ExceptionGroup(SECRET, [ValueError(SECRET)])),
    "raises a chain": chained,
    "looks up": lookup,
    "notes": failing(_noted := ValueError("x")),
    "gives a word": lambda values: SECRET,
    "gives nothing": lambda values: None,
    "gives NaN": lambda values: math.nan,
    "gives infinity": lambda values: -math.inf,
    "gives something complex": lambda values: 1j,
    "gives something that raises": lambda values: Unprintable(),
    "gives a table": lambda values: [[1, 2], [3, 4]],
    "gives a word in a list": lambda values: [SECRET] * 5,
}
_noted.add_note(SECRET)


def what_a_user_sees(caught: BaseException) -> str:
    """The whole chain, shown or not, and every attribute of the error."""
    told = "".join(traceback.format_exception(caught))
    parts: list[str] = [told, repr(caught), repr(caught.__dict__)]
    for hidden in (caught.__cause__, caught.__context__):
        if hidden is not None:
            parts.append(what_a_user_sees(hidden))
    return "\n".join(parts)


@pytest.mark.parametrize("name", FAILURES)
def test_what_the_function_raises_or_returns_is_not_shown(name: str) -> None:
    with pytest.raises(DataError) as caught:
        ask(FAILURES[name], epsilons=PUBLIC)
    assert str(caught.value) == (
        "The function did not give a finite number. What it raised or returned is not shown: it may be data."
    )
    assert SECRET not in what_a_user_sees(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("name", FAILURES)
def test_what_the_sensitivity_raises_or_returns_is_not_shown(name: str) -> None:
    with pytest.raises(DataError) as caught:
        ask(sensitivity=FAILURES[name], epsilons=PUBLIC)
    assert str(caught.value) == (
        "The sensitivity did not give finite numbers from 0 on, one for all or one per person. "
        "What it raised or returned is not shown: it may be data."
    )
    assert SECRET not in what_a_user_sees(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("sensitivity", [-1, [1, 1, 1, 1, -1], [1, 2], [[1] * 5], math.inf, math.nan, None, "wide", {}])
def test_a_sensitivity_is_one_number_or_one_per_person(sensitivity: Any) -> None:
    with pytest.raises(DataError, match="finite numbers from 0 on, one for all or one per person"):
        ask(sensitivity=sensitivity)


@pytest.mark.parametrize("name", FAILURES)
def test_no_value_raises_where_people_have_something_to_hide(name: str) -> None:
    """A function that fails answers 0; a sensitivity that fails is as large as answers can lie apart."""
    nothing = ask(lambda values: 0.0, entropy=seeded(4))
    assert ask(FAILURES[name], entropy=seeded(4)) == nothing
    assert any("It covers failures" in caveat for caveat in nothing.guarantee.caveats)
    hidden = ask(sensitivity=lambda values: 2e30, entropy=seeded(4)).value
    assert ask(sensitivity=FAILURES[name], entropy=seeded(4)).value == hidden
    assert abs(hidden) > 1e20


@pytest.mark.parametrize("error", [SystemExit("secret"), GeneratorExit("secret")])
def test_no_way_out_of_a_sensitivity_tells_of_the_values(error: BaseException) -> None:
    hidden = ask(sensitivity=lambda values: 2e30, entropy=seeded(4)).value
    assert ask(sensitivity=failing(error), entropy=seeded(4)).value == hidden


def test_what_a_sensitivity_warns_of_is_not_shown(recwarn: pytest.WarningsRecorder) -> None:
    def warns(values: Any) -> float:
        warnings.warn(f"the values are {values}", stacklevel=1)
        return float(np.float64(max(values)) / np.float64(min(values) - 23))  # divides by zero

    ask(sensitivity=warns)
    assert not recwarn.list


def test_an_interrupt_is_no_answer_and_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        ask(failing(KeyboardInterrupt()))


BAD: dict[str, tuple[type[eps.EpsilonsError], str, dict[str, Any]]] = {
    "no function": (PlanError, "function cannot be called.", {"function": 3}),
    "no step": (PlanError, "step=0 is not allowed.", {"step": 0}),
    "step back": (PlanError, "step=-1 is not allowed.", {"step": -1}),
    "step in words": (PlanError, "step='one' is not allowed.", {"step": "one"}),
    "true step": (PlanError, "step=True is not allowed.", {"step": True}),
    "endless step": (PlanError, "step=inf is not allowed.", {"step": math.inf}),
    "huge step": (PlanError, "It is at most 1e+30.", {"step": 1e31}),
    "seed": (PlanError, "entropy=7 is not a source of random bits.", {"entropy": 7}),
    "one value": (DataError, "Values are not a list or array.", {"values": 3}),
    "table": (DataError, "Values come in 2 dimensions.", {"values": np.ones((2, 2)), "epsilons": [1.0, 1.0]}),
    "nobody": (DataError, "There are no people.", {"values": [], "epsilons": []}),
    "lengths": (DataError, "5 values and 2 epsilons.", {"epsilons": [1.0, 2.0]}),
    "epsilon of nothing": (PreferenceError, "An epsilon of 0 is not allowed.", {"epsilons": 0}),
    "no epsilons": (PreferenceError, "Epsilons are not numbers.", {"epsilons": None}),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_argument_is_told_what_happened(case: str) -> None:
    kind, text, arguments = BAD[case]
    with pytest.raises(kind) as caught:
        ask(**arguments)
    assert text in str(caught.value)


# Several numbers ----------------------------------------------------------------------------------------------------


def moments(values: Any) -> list[float]:
    return [float(sum(values)), float(max(values)), float(min(values))]


def distance(here: Any, there: Any) -> float:
    return float(sum(abs(a - b) for a, b in zip(moments(here), moments(there), strict=True)))


def widest(here: Any, there: Any) -> float:
    return max(abs(a - b) for a, b in zip(moments(here), moments(there), strict=True))


def largest_share(apart: Callable[[Any, Any], float], whole: bool, step: float) -> float:
    """The largest loss over what is allowed, of three numbers on all data of three people, with the scale frozen.

    By the law of independent discrete Laplace noises: the loss is the rate times the steps between the answers, L1.
    """
    domain, epsilons, worst = (0.0, 1.0, 2.0, 5.0), [0.3, 1.0, 0.5], 0.0
    roster, asked = roster_of(epsilons), Gridded.read(moments, step, 3, whole)
    for data in itertools.product(domain, repeat=3):
        others = [[(*data[:i], y, *data[i + 1 :]) for y in domain] for i in range(3)]
        reach = np.array([max(apart(data, other) for other in mine) for mine in others])
        frozen = _rate(_by_level(reach, roster), asked)
        assert frozen is not None
        for mine, epsilon in zip(others, epsilons, strict=True):
            for other in mine:
                places = (asked.places(np.array(values)) for values in (data, other))
                steps = sum(abs(a - b) for a, b in zip(*places, strict=True))
                worst = max(worst, float(frozen * steps) / epsilon)
    return worst


def test_several_numbers_lose_at_most_the_epsilon_and_sometimes_all_of_it() -> None:
    """Proposition 5 and Theorem 5 against enumeration: whole numbers without allowance, others with one."""
    assert largest_share(distance, True, 1.0) == pytest.approx(1.0, abs=1e-12)
    assert 0.5 < largest_share(distance, False, 0.75) <= 1


def test_the_largest_move_in_place_of_their_sum_is_caught() -> None:
    assert largest_share(widest, True, 1.0) > 1


# Groups --------------------------------------------------------------------------------------------------------------


def largest_share_of_groups(sensitivity: Callable[[Any], list[float]], epsilons: list[float]) -> float:
    """The largest loss of any group over what is allowed to its size, of three numbers on all data of three people."""
    domain, worst, asked = (0.0, 1.0, 4.0), 0.0, Gridded.read(moments, 1.0, 3, True)
    grants = [round(epsilon * NANO) for epsilon in epsilons]
    for data in itertools.product(domain, repeat=3):
        frozen = _rate(zip(grants, sensitivity(data), strict=True), asked)
        for other in itertools.product(domain, repeat=3):
            size = sum(a != b for a, b in zip(data, other, strict=True))
            if 0 < size <= len(epsilons):
                assert frozen is not None
                worst = max(worst, float(frozen) * distance(data, other) / epsilons[size - 1])
    return worst


def reach_of_groups(data: Any, sizes: int = 2) -> list[float]:
    """How far groups of 1, 2 people move the three numbers, by enumeration."""
    far = [0.0] * sizes
    for other in itertools.product((0.0, 1.0, 4.0), repeat=len(data)):
        size = sum(a != b for a, b in zip(data, other, strict=True))
        if 0 < size <= sizes:
            far[size - 1] = max(far[size - 1], distance(data, other))
    return far


@pytest.mark.parametrize("epsilons", [[0.5, 0.8], [0.5, 1.0], [1.0, 1.0]])
def test_groups_lose_at_most_the_epsilon_of_their_size_and_some_all_of_it(epsilons: list[float]) -> None:
    assert largest_share_of_groups(reach_of_groups, epsilons) == pytest.approx(1.0, abs=1e-12)


def test_the_reach_of_one_person_for_groups_of_two_is_caught() -> None:
    assert largest_share_of_groups(lambda data: [reach_of_groups(data)[0]] * 2, [0.5, 0.5]) > 1


def test_groups_are_charged_the_first_epsilon_and_named_in_the_promise() -> None:
    answer = ask(moments, epsilons=None, size=3, whole=True, sensitivity=[3, 6], group_epsilons=[0.5, 0.8])
    assert answer.charges == {0.5: 0.5}
    assert answer.guarantee.kind == "individual DP (not DP)"
    assert any("0.5 for 1, 0.8 for 2" in caveat for caveat in answer.guarantee.caveats)
    by_data = ask(epsilons=None, sensitivity=lambda values: [0.0, 0.0], group_epsilons=[0.5, 0.8])
    assert by_data.value == spread(VALUES)
    failed = ask(epsilons=None, sensitivity=lambda values: [1.0], group_epsilons=[0.5, 0.8])
    assert abs(failed.value) > 1e20


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("instead of epsilons", {"epsilons": 1.0}),
        ("one for all or one per size", {"epsilons": None, "sensitivity": [1, 2, 3]}),
        ("are taken as they are", {"epsilons": None, "share": 0.5}),
        ("Group epsilons are finite numbers", {"epsilons": None, "group_epsilons": [0.5, math.inf]}),
    ],
)
def test_wrong_groups_are_refused(text: str, given: dict[str, Any]) -> None:
    with pytest.raises(eps.EpsilonsError, match=text):
        ask(**{"group_epsilons": [0.5, 0.8], "sensitivity": [1, 2], **given})


def spread_reach(values: Any) -> float:
    """How far one value from 0 to 9, replaced by another, could move the spread."""
    lowest, low, *_, high, highest = sorted(values)
    return float(max(lowest, 9 - highest, highest - high, low - lowest))


def test_a_sensitivity_is_tested_on_made_up_data_where_values_are_public() -> None:
    """One that forgets half of the ways is refused with the data that show it; a number is not of made-up data."""
    held = ask(sensitivity=spread_reach, domain=[0, 4, 9])
    assert any("a search of" in caveat and "did not refute it" in caveat for caveat in held.guarantee.caveats)
    with pytest.raises(eps.PlanError, match=r"person \d can move the function by 9, and 0 is stated"):
        ask(sensitivity=lambda values: sorted(values)[0] * 1.0, domain=[0, 4, 9])
    with pytest.raises(eps.PlanError, match="number cannot be tested"):
        ask(sensitivity=3.0, domain=[0, 9])
    with pytest.raises(eps.PlanError, match="failed with ZeroDivisionError"):
        ask(sensitivity=lambda values: 1 / 0, domain=[0, 9])


def test_the_search_tries_groups_and_sees_no_value() -> None:
    """Of two people who are said to move as far as one; a vector's moves are added up."""
    groups: dict[str, Any] = {"epsilons": None, "group_epsilons": [0.5, 0.8], "domain": [0, 4, 9], "step": 1}
    groups |= {"size": 2, "whole": True}
    both = lambda values: [float(sum(v > 3 for v in values)), float(sum(v > 5 for v in values))]  # noqa: E731
    assert ask(both, sensitivity=lambda values: [2, 4], **groups).charges == {0.5: 0.5}
    with pytest.raises(eps.PlanError, match=r"person 0 and person 1 can move the function by 4, and 3 is stated"):
        ask(both, sensitivity=lambda values: [2, 3], **groups)
    seen: set[float] = set()

    def reach(values: Any) -> float:
        seen.update(map(float, values))
        return 9.0 if seen <= {0.0, 9.0} else 0.0

    with pytest.raises(eps.PlanError, match="does not hold"):
        ask(sensitivity=lambda values: reach(values) - 8, domain=[0, 9])
    assert seen <= {0.0, 9.0}


def test_several_numbers_are_released_together() -> None:
    answer = ask(moments, size=3, whole=True, sensitivity=9.0)
    assert len(answer.value) == 3
    assert all(value == round(value) for value in answer.value)
    for wrong in (2, None):
        with pytest.raises(DataError, match="did not give"):
            ask(moments, size=wrong, epsilons=PUBLIC)


@pytest.mark.parametrize("step", [np.int64(3), np.float32(0.5), Fraction(1, 4)])
def test_a_step_may_be_any_real_number(step: Any) -> None:
    assert ask(sensitivity=0, step=step).value == round(37 / float(step)) * float(step)


def test_values_may_be_anything_that_the_function_understands() -> None:
    release = individually(len, ["ann", "bob", None], [1.0, 1.0, 2.0], sensitivity=0, step=1)
    assert release.value == 3.0

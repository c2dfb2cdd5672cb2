"""Any private algorithm made personal: who is sampled, at which epsilon it runs, and what is refused."""

from __future__ import annotations

import functools
import itertools
import math
import sys
import types
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import epsilons as eps
from epsilons.arrays import algorithms
from epsilons.arrays.algorithms import read_algorithm
from epsilons.arrays.personalize import Sampling
from epsilons.guarantee import NANO, SEEDED
from epsilons.noise.entropy import ALWAYS
from epsilons.preferences import roster_of
from epsilons.testing import seeded
from support import planted


def told(data: Any, epsilon: float) -> tuple[Any, float]:
    """Gives away what it was called with: nothing private about it, and the caller's claim is false."""
    return data, epsilon


def test_the_release_names_the_claim_the_charges_and_the_threshold() -> None:
    release = eps.personalize(told, ["a", "b", "c"], [0.1, 0.5, eps.PUBLIC], threshold=0.3)
    data, epsilon = release.value
    assert epsilon == 0.3
    assert {"b", "c"} <= set(data) <= {"a", "b", "c"}
    assert release.charges == {0.1: 0.1, 0.5: 0.3, math.inf: 0.0}
    assert release.mechanism == "sample"
    assert "caller's claim that 'told' is private" in str(release.guarantee)
    assert "People who chose public are not protected." in release.guarantee.caveats
    assert release.error is None
    assert release.details["threshold"] == 0.3
    with pytest.raises(eps.PlanError, match="no honest interval"):
        release.interval()


def test_thresholds_by_rule() -> None:
    def at(**options: Any) -> float:
        epsilon: float = eps.personalize(told, [1, 2], [0.2, 0.6], **options).value[1]
        return epsilon

    assert at() == at(threshold="max") == 0.6
    assert at(threshold="mean") == 0.4
    for wrong, message in (("best", "best"), (7, "outside"), ("most", "not allowed"), (math.nan, "outside")):
        with pytest.raises(eps.PlanError, match=message):
            at(threshold=wrong)


@pytest.mark.statistical
def test_people_are_kept_as_often_as_theorem_5_says() -> None:
    """20,000 people: the share kept lies within 4.5 standard errors, that of e/t does not. False alarm: 7e-6."""
    people, t = 20_000, 1.5
    release = eps.personalize(told, np.arange(people), [0.5] * (people - 1) + [t], entropy=seeded(3))
    kept = len(release.value[0]) / people
    chance = math.expm1(0.5) / math.expm1(t)
    deviation = 4.5 * math.sqrt(chance * (1 - chance) / people)
    assert abs(kept - chance) < deviation
    assert abs(kept - 0.5 / t) > deviation
    assert SEEDED in release.guarantee.caveats


# Exact losses, of an algorithm whose law can be listed ---------------------------------------------------------------


def respond_law(bits: tuple[int, ...], epsilon: float) -> dict[int, float]:
    """A geometric mechanism for the sum, cut to -6..6: private at epsilon when a bit comes or goes."""
    ones = sum(bits)
    q = math.exp(-epsilon)
    law = {k: (1 - q) / (1 + q) * q ** abs(k - ones) for k in range(-5, 6)}
    law[-6] = q ** (6 + ones) / (1 + q)
    law[6] = q ** (6 - ones) / (1 + q)
    return law


def sampled_law(values: tuple[int | None, ...], epsilons: list[float], call: Sampling) -> dict[int, float]:
    roster = roster_of(epsilons)
    chances = [call.chances(roster.levels)[code] / ALWAYS for code in roster.codes]
    total: dict[int, float] = {}
    for kept in itertools.product((False, True), repeat=len(values)):
        weight = math.prod(c if k else 1 - c for c, k in zip(chances, kept, strict=True))
        bits = tuple(v for v, k in zip(values, kept, strict=True) if k and v is not None)
        for outcome, chance in respond_law(bits, call.epsilon).items():
            total[outcome] = total.get(outcome, 0.0) + weight * chance
    return total


def losses(
    call: Sampling, epsilons: list[float], neighbors: str, domain: tuple[int | None, ...] = (0, 1, None)
) -> list[float]:
    worst = [0.0] * len(epsilons)
    for values in itertools.product(domain, repeat=len(epsilons)):
        for person in range(len(epsilons)):
            for other in (None,) if neighbors == "absent" else domain:
                changed = (*values[:person], other, *values[person + 1 :])
                one, two = (sampled_law(v, epsilons, call) for v in (values, changed))
                worst[person] = max(worst[person], *(abs(math.log(one[k] / two[k])) for k in one))
    return worst


@pytest.mark.parametrize(("neighbors", "under"), [("absent", None), ("replace", None), ("replace", "both")])
@pytest.mark.parametrize("threshold", ["max", "mean", 0.5])
def test_nobody_loses_more_than_they_granted(neighbors: str, under: str | None, threshold: Any) -> None:
    epsilons = [0.2, 0.5, 1.3]
    recipe = read_algorithm(told, under, 1, neighbors)
    call = Sampling.plan(recipe, roster_of(epsilons).levels, threshold, neighbors, 1)
    charged = [min(e, call.threshold / NANO) for e in epsilons]
    assert all(loss <= c * (1 + 1e-9) for loss, c in zip(losses(call, epsilons, neighbors), charged, strict=True))


def test_an_algorithm_that_is_private_only_under_absent_runs_at_half_under_replace() -> None:
    """Values of -1 and 1: one added or removed moves the sum by 1, one replaced by 2. Halved it holds; a false claim of
    "both", which would call it with all of t, is refuted."""
    epsilons = [0.2, 0.5]
    levels = roster_of(epsilons).levels
    half, whole = (
        Sampling.plan(read_algorithm(told, u, 1, "replace"), levels, None, "replace", 1) for u in (None, "both")
    )
    assert (half.epsilon, whole.epsilon) == (0.25, 0.5)
    found = losses(half, epsilons, "replace", (-1, 1, None))
    assert all(loss <= e * (1 + 1e-9) for loss, e in zip(found, epsilons, strict=True))
    assert losses(whole, epsilons, "replace", (-1, 1, None))[1] > 0.5 * 1.01


# Several rows per person ---------------------------------------------------------------------------------------------


def test_rows_are_capped_and_the_algorithm_gets_its_share() -> None:
    rows, owners = list(range(12)), ["ann"] * 7 + ["bob"] * 4 + ["cy"]
    release = eps.personalize(
        told, rows, {"ann": 0.9, "bob": 0.9, "cy": 0.9, "di": 0.9}, person=owners, rows_per_person=3
    )
    data, epsilon = release.value
    assert epsilon == 0.3
    assert sorted(np.bincount([("ann", "bob", "cy").index(owners[row]) for row in data]).tolist()) == [1, 3, 3]


@pytest.mark.parametrize(
    "epsilons", [[0.5, 0.1, 0.7], eps.Preferences([0.5, 0.1]), eps.Preferences({"a": 0.5}, default=0.1), "0.5", None]
)
def test_rows_never_tell_who_was_asked(epsilons: Any) -> None:
    """By row, by place, or by a default for whoever else has rows: who has rows would decide everybody's threshold."""
    with pytest.raises(eps.PreferenceError, match="epsilons go by id"):
        eps.personalize(told, [1, 2, 3], epsilons, person=["a", "a", "b"], rows_per_person=2)


def test_a_share_of_every_grant() -> None:
    """One roster serves several calls: together they cost what was granted, and who has nothing left is not used."""
    roster = eps.Roster("abcd", [1e-8, 0.4, 1.0, eps.PUBLIC])
    for share in (0.25, 0.01):
        release = eps.personalize(told, [1, 2, 3, 4], roster, share=share)
        assert release.value[1] == pytest.approx(share)
        assert release.charges == pytest.approx(
            {1e-8: 0.0 if share == 0.01 else 2e-9, 0.4: 0.4 * share, 1.0: share, math.inf: 0}
        )
        assert (1 in release.value[0]) <= (share == 0.25)
    parts = [eps.personalize(told, [1, 2, 3, 4], roster, share=share).guarantee for share in (0.25, 0.75)]
    assert parts[0].compose(parts[1]).epsilons[0.4] == 0.4
    alone = eps.individually(sum, [1, 2], [0.4, 1.0], sensitivity=5, step=1, share=0.5)
    assert alone.charges == {0.4: 0.2, 1.0: 0.5}
    with pytest.raises(eps.PlanError, match="leaves somebody with nothing"):
        eps.individually(sum, [1, 2], [1e-8, 1.0], sensitivity=5, step=1, share=0.01)
    with pytest.raises(eps.PlanError, match=r"at least 0\.001"):
        eps.personalize(told, [1, 2, 3, 4], roster, share=1e-4)


@pytest.mark.parametrize("neighbors", ["absent", "replace"])
@pytest.mark.parametrize("threshold", [None, "max", "mean", 1.0])
@pytest.mark.parametrize("gone", ["open", "strict", "none at all"])
def test_who_has_no_rows_changes_nothing_for_others(gone: str, threshold: Any, neighbors: str) -> None:
    """Without the rows of one person everybody's threshold, chance and charge are the same."""
    asked = {"open": 8.0, "strict": 0.01} | {f"p{i}": 1.0 for i in range(20)}
    ways = [asked, eps.Preferences(asked), eps.Roster(asked, asked), eps.Roster(asked, eps.Preferences(asked)), 1.0]
    owners = [person for person in asked for _ in range(2)]
    left = [owner for owner in owners if owner != gone]
    for way in ways:
        told_of = []
        for rows in (owners, left):
            made = eps.personalize(
                told, rows, way, person=rows, rows_per_person=2, threshold=threshold, neighbors=neighbors,
                entropy=seeded(1),
            )  # fmt: skip
            told_of.append((made.value[1], made.charges, made.guarantee, made.details, made.why))
        assert told_of[0] == told_of[1]
    one = [eps.personalize(told, rows, 1.0, person=rows, entropy=seeded(1)) for rows in ([], ["a"])]
    assert one[0].guarantee == one[1].guarantee


def test_a_person_is_kept_or_left_out_as_a_whole() -> None:
    owners = np.repeat(np.arange(400), 3)
    for seed in range(3):
        release = eps.personalize(
            told, owners, dict.fromkeys(range(399), 0.1) | {399: 1.0}, person=owners, rows_per_person=3,
            entropy=seeded(seed),
        )  # fmt: skip
        assert set(np.bincount(release.value[0], minlength=400).tolist()) == {0, 3}


def test_whose_rows_must_be_said() -> None:
    for arguments, message in (
        ({"rows_per_person": 2}, "whose"),
        ({"rows_per_person": 0}, "not allowed"),
        ({"rows_per_person": True}, "not allowed"),
        ({"person": ["a"]}, "2 rows and 1 ids"),
        ({"person": [["a"], ["b"]]}, "whole numbers or text"),
    ):
        with pytest.raises(eps.EpsilonsError, match=message):
            eps.personalize(told, [1, 2], 0.5, **arguments)  # type: ignore[arg-type]
    with pytest.raises(eps.PreferenceError, match="no preference"):
        eps.personalize(told, [1, 2], {"a": 0.5}, person=["a", "b"])
    with pytest.raises(eps.PlanError, match="nothing for each row"):
        eps.personalize(told, [1, 2], 1e-9, person=["a", "b"], rows_per_person=2)


# Containers ----------------------------------------------------------------------------------------------------------


def test_the_sample_comes_in_the_same_kind_of_container() -> None:
    numbers = [1.0, 2.0, 3.0]
    table = pandas.DataFrame({"a": numbers})
    for data in (
        numbers, np.array(numbers), np.ones((3, 2)), table, table["a"], polars.DataFrame({"a": numbers}),
        polars.Series(numbers), pyarrow.table({"a": numbers}), pyarrow.array(numbers),
    ):  # fmt: skip
        sample = eps.personalize(told, data, 0.5).value[0]
        assert type(sample) is type(data)
        assert len(sample) == 3
        assert sample is not data
    features, target = eps.personalize(told, (np.ones((3, 2)), numbers), 0.5).value[0]
    assert (features.shape, target) == ((3, 2), numbers)


def test_an_algorithm_may_spoil_its_sample_and_not_the_data() -> None:
    data = np.array([3.0, 1.0, 2.0])
    eps.personalize(lambda sample, epsilon: sample.sort(), data, 0.5)
    assert data.tolist() == [3.0, 1.0, 2.0]


def test_strange_data_are_refused_by_shape() -> None:
    for data, epsilons, message in (
        (5, 0.5, "not a list or table"),
        ("hello", 0.5, "not a list or table"),
        ({"a": 1}, 0.5, "not a list or table"),
        ({1, 2}, 0.5, "not a list or table"),
        (np.array(3), 0.5, "not a list or table"),
        ([1, 2], [0.5], "2 entries and 1 epsilons"),
        (([1, 2], [1]), 0.5, "different lengths"),
        ([], 0.5, "no people"),
    ):
        with pytest.raises(eps.EpsilonsError, match=message):
            eps.personalize(told, data, epsilons)
    with pytest.raises(eps.PlanError, match="Everyone is public"):
        eps.personalize(told, [1, 2], eps.PUBLIC)


# What it raises, and what survives -----------------------------------------------------------------------------------


def test_whatever_it_raises_becomes_one_text() -> None:
    def failing(data: Any, epsilon: float) -> None:
        raise KeyError(f"the private value {data[0]}")

    with pytest.raises(eps.DataError) as caught:
        eps.personalize(failing, ["secret"], 0.5)
    assert str(caught.value).startswith("The algorithm failed. What it raised is not shown: it may be data. Try: ")
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_our_own_errors_are_no_way_out_either() -> None:
    def failing(data: Any, epsilon: float) -> None:
        raise eps.PlanError(f"the private value {data[0]}")

    with pytest.raises(eps.DataError, match=r"^The algorithm failed"):
        eps.personalize(failing, ["secret"], 0.5)


def test_what_it_warns_of_is_not_shown(recwarn: pytest.WarningsRecorder) -> None:
    import warnings

    eps.personalize(lambda data, epsilon: warnings.warn(f"{data}", stacklevel=1), ["secret"], 0.5)
    assert len(recwarn) == 0


def test_results_survive_json_where_they_can() -> None:
    for value in (3, 2.5, "word", None, {"a": 1.0}, [1, 2], [[1.0, 2.0], [3.0, 4.0]]):
        release = eps.personalize(lambda data, epsilon, value=value: value, [1], 0.5)
        assert eps.Release.from_dict(release.to_dict()).value == value
        assert str(release)
        assert release._repr_html_()
    arrays = eps.personalize(lambda data, epsilon: np.arange(3), [1], 0.5)
    assert eps.Release.from_dict(arrays.to_dict()).value == [0, 1, 2]
    with pytest.raises(eps.PlanError, match="object of the algorithm's own"):
        eps.personalize(lambda data, epsilon: object(), [1], 0.5).to_dict()


# How likely people were to be in the sample -----------------------------------------------------------------------


def test_the_release_tells_the_chances_and_rescales_totals() -> None:
    """Of a quarter at .5 and the rest at 1; exact totals of samples, so that only the coins are random."""
    epsilons, chance = [0.5] * 500 + [1.0] * 1500, math.expm1(0.5) / math.expm1(1.0)
    fraction = (500 * chance + 1500) / 2000
    raw, scaled = [], []
    for seed in range(40):
        once = eps.personalize(lambda data, epsilon: len(data), range_list(2000), epsilons, entropy=seeded(seed))
        raw.append(once.value)
        again = eps.personalize(total, range_list(2000), epsilons, rescale=True, entropy=seeded(seed))
        scaled.append(again.value["people"][0])
    assert once.details["chances"] == [[0.5, pytest.approx(chance)], [1.0, 1.0]]
    assert once.details["fraction"] == pytest.approx(fraction)
    assert (once.details["rescaled"], again.details["rescaled"]) == (False, True)
    assert f", of a sample of about {fraction:.0%} of the people if preferences and values are unrelated" in str(once)
    assert "rescaled by chances of being in the sample, right if preferences and values are unrelated" in str(again)
    assert (
        f"Totals are divided by the average chance of being in the sample, {again.details['fraction']:.3g}."
        in again.why
    )
    assert "rescaled" not in str(once) + once.why
    assert np.mean(scaled) == pytest.approx(2000, rel=0.01)
    assert np.mean(raw) == pytest.approx(2000 * fraction, rel=0.01)
    assert np.mean(raw) < 1900
    assert eps.Release.from_dict(again.to_dict()).details == again.details


def range_list(size: int) -> list[int]:
    return list(range(size))


def total(data: Any, epsilon: float) -> dict[str, list[float]]:
    return {"people": [float(len(data))]}


def test_an_algorithm_may_ask_for_the_chances_of_its_records() -> None:
    """By name, in the order of the records: a sum with weights of 1/chance is right whoever chose which level."""
    values, epsilons = np.array([1.0] * 800 + [5.0] * 800), [0.2] * 800 + [1.0] * 800

    def weighted(data: Any, epsilon: float, *, chances: Any) -> float:
        assert len(chances) == len(data)
        return float(np.sum(data / chances))

    found = [eps.personalize(weighted, values, epsilons, entropy=seeded(seed)).value for seed in range(40)]
    assert np.mean(found) == pytest.approx(values.sum(), rel=0.01)
    with pytest.raises(eps.PlanError, match="scaled up twice"):
        eps.personalize(weighted, values, epsilons, rescale=True)
    by_id = eps.personalize(
        weighted, [1.0, 1.0, 2.0], {"ann": 1.0, "bob": 1.0}, person=["ann", "ann", "bob"], rows_per_person=2
    )
    assert by_id.value == 4.0
    half = eps.personalize(lambda data, epsilon: 1.0, [1, 2], [0.5, 1.0], share=0.5).details
    assert [used for used, _ in half["chances"]] == [0.25, 0.5]


def test_what_cannot_be_rescaled_is_a_failure_that_says_so() -> None:
    for value in ("text", None, object(), True, {"total": 3, "note": "text"}):
        with pytest.raises(eps.DataError, match="cannot be rescaled"):
            eps.personalize(lambda data, epsilon, value=value: value, [1, 2], 0.5, rescale=True)
    with pytest.raises(eps.PlanError, match="rescale"):
        eps.personalize(lambda data, epsilon: 1, [1, 2], 0.5, rescale="yes")


# Which argument is epsilon -------------------------------------------------------------------------------------------


def with_bins(data: Any, bins: int = 3, epsilon: float = 1.0) -> tuple[int, float]:
    return bins, epsilon


def reversed_order(epsilon: float, data: Any) -> tuple[int, float]:
    assert len(data) >= 0
    return 3, epsilon


def number_first(one: float, other: Any) -> None:
    return None


class Tool:
    """Called, by a method, and by a method of the class."""

    def __call__(self, data: Any, bins: int = 3, epsilon: float = 1.0) -> tuple[int, float]:
        return bins, epsilon

    def fit(self, data: Any, bins: int = 3, *, epsilon: float = 1.0) -> tuple[int, float]:
        return bins, epsilon

    @classmethod
    def made(cls, data: Any, bins: int = 3, epsilon: float = 1.0) -> tuple[int, float]:
        return bins, epsilon

    @staticmethod
    def plain(data: Any, bins: int = 3, epsilon: float = 1.0, **more: Any) -> tuple[int, float]:
        return bins, epsilon


@functools.wraps(with_bins)
def wrapped(*given: Any, **named: Any) -> tuple[int, float]:
    return with_bins(*given, **named)


CLEAR: dict[str, Any] = {
    "by name behind another argument": with_bins,
    "by name before the data": reversed_order,
    "by name alone": lambda data, *, epsilon: (3, epsilon),
    "data by name as well": lambda *, data, epsilon: (3, epsilon),
    "data with a default": lambda data=None, epsilon=1.0: (3, epsilon),
    "any further names": lambda data, epsilon=1.0, **more: (3, epsilon),
    "any further places": lambda data, *more, epsilon=1.0: (3, epsilon) if not more else None,
    "two by place": lambda data, e: (3, e),
    "two by place, others with defaults": lambda data, e, bins=3, **more: (bins, e),
    "two by place only": eval("lambda data, epsilon, /: (3, epsilon)"),
    "partial": functools.partial(with_bins, bins=3),
    "partial with an epsilon of its own": functools.partial(with_bins, epsilon=7.0),
    "partial of a partial": functools.partial(functools.partial(with_bins, bins=9), bins=3),
    "partial of the first place": functools.partial(lambda bins, data, epsilon: (bins, epsilon), 3),
    "object": Tool(),
    "bound method": Tool().fit,
    "method of a class": Tool.made,
    "plain method of a class": Tool.plain,
    "wrapped": wrapped,
}
UNCLEAR: dict[str, Any] = {
    "one argument too many by place": lambda data, bins=3, e=1.0: None,
    "a default by place": lambda data, e=1.0: None,
    "something else by place": lambda data, bins=3: None,
    "two arguments and data": lambda data, bins, e: None,
    "more than data is needed": lambda data, bins, epsilon=1.0: None,
    "more than data is needed by name": lambda data, *, bins, epsilon=1.0: None,
    "any places": lambda *given: None,
    "any names": lambda **given: None,
    "anything": lambda *given, **named: None,
    "data and any names": lambda data, **named: None,
    "data and any places": lambda data, *more: None,
    "any data": lambda *data, epsilon: None,
    "epsilon by place only, first": eval("lambda epsilon, data, /: None"),
    "epsilon by place only, third": eval("lambda data, bins, epsilon=1.0, /: None"),
    "epsilon by place only, behind a default": eval("lambda data, bins=3, epsilon=1.0, /: None"),
    "the wrong way round by place": lambda eps, data: None,
    "data as the second of two": lambda budget, values: None,
    "a number first, by annotation": number_first,
    "names called epsilon": lambda data, **epsilon: None,
    "nothing": lambda: None,
    "nothing needed": lambda data=None: None,
    "partial that took the data": functools.partial(lambda data, bins=3, e=1.0: None, [1]),
    "partial that took epsilon by place": functools.partial(lambda epsilon, data, bins: None, 9.0),
    "built in, without a signature": max,
    "of C": dict.fromkeys,
}


@pytest.mark.parametrize("name", CLEAR)
def test_epsilon_lands_where_it_belongs(name: str) -> None:
    """A function that has an epsilon of its own by default runs at the one that was promised."""
    release = eps.personalize(CLEAR[name], [1, 2, 3], 0.1)
    assert release.value == (3, 0.1)
    assert release.charges == {0.1: 0.1}


@pytest.mark.parametrize("name", UNCLEAR)
def test_a_signature_that_leaves_a_doubt_is_refused(name: str) -> None:
    with pytest.raises(eps.PlanError, match=r"It is not clear which arguments of .* are data and epsilon") as refused:
        eps.personalize(UNCLEAR[name], [1, 2, 3], 0.1)
    assert "lambda data, epsilon: ..." in str(refused.value)


def test_the_planted_call_by_place_runs_at_an_epsilon_of_its_own() -> None:
    """The bug: both by place, whatever they are called. It ran at 1.0 under a promise of .1."""
    with patch.object(algorithms, "_read_signature", planted.call_by_place):
        assert eps.personalize(with_bins, [1, 2, 3], 0.1).value == (0.1, 1.0)
        for name in ("by name behind another argument", "by name before the data", "partial", "object"):
            with pytest.raises((AssertionError, eps.DataError)):
                test_epsilon_lands_where_it_belongs(name)


def test_what_is_not_known_to_be_private_is_refused() -> None:
    with pytest.raises(eps.PlanError, match="only when a record is replaced"):
        eps.personalize(told, [1], 0.5, private_under="replace")
    with pytest.raises(eps.PlanError, match="private_under"):
        eps.personalize(told, [1], 0.5, private_under="always")
    with pytest.raises(eps.PlanError, match="not an algorithm"):
        eps.personalize(42, [1], 0.5)
    with pytest.raises(eps.PlanError, match="must make an OpenDP measurement"):
        eps.personalize(lambda epsilon: 3, [1], 0.5)
    with pytest.raises(eps.PlanError, match="neighbors"):
        eps.personalize(told, [1], 0.5, neighbors="other")
    with pytest.raises(eps.PlanError, match="random bits"):
        eps.personalize(told, [1], 0.5, entropy=3)  # type: ignore[arg-type]


# OpenDP --------------------------------------------------------------------------------------------------------------

dp = pytest.importorskip("opendp.prelude")
dp.enable_features("contrib")
SPACE = dp.vector_domain(dp.atom_domain(bounds=(0, 10))), dp.symmetric_distance()


def noisy_sum(scale: float) -> Any:
    return SPACE >> dp.t.then_sum() >> dp.m.then_laplace(scale)


def test_a_measurement_is_asked_for_its_loss() -> None:
    release = eps.personalize(noisy_sum(20.0), [1, 2, 3], [0.1, 0.4, 2.0])
    assert isinstance(release.value, int)
    for data in (np.array([1, 2, 3]), pandas.Series([1, 2, 3])):
        assert isinstance(eps.personalize(noisy_sum(20.0), data, [0.1, 0.4, 2.0]).value, int)
    assert release.charges[0.1] == 0.1
    assert release.charges[2.0] == pytest.approx(0.5, abs=1e-6)
    assert release.charges[2.0] >= noisy_sum(20.0).map(1)
    assert "OpenDP's privacy map" in str(release.guarantee)


def test_replace_asks_the_map_for_two_records_and_rows_for_as_many() -> None:
    release = eps.personalize(noisy_sum(20.0), [1, 2], 3.0, neighbors="replace")
    assert release.charges[3.0] == pytest.approx(1.0, abs=1e-6)
    release = eps.personalize(noisy_sum(20.0), [1, 2, 3], 3.0, person=["a", "a", "b"], rows_per_person=2)
    assert release.charges[3.0] == pytest.approx(1.0, abs=1e-6)


def test_a_function_may_make_the_measurement_at_an_epsilon() -> None:
    release = eps.personalize(lambda epsilon: noisy_sum(10 / epsilon), [1, 2, 3], [0.1, 0.5, 0.5])
    assert release.details["threshold"] == 0.5
    release = eps.personalize(lambda epsilon: noisy_sum(10 / epsilon), [1, 2], [0.1, 0.5], neighbors="replace")
    assert release.charges == {0.1: 0.1, 0.5: 0.5}
    with pytest.raises(eps.PlanError, match="costs more"):
        eps.personalize(lambda epsilon: noisy_sum(5 / epsilon), [1, 2, 3], [0.1, 0.5, 0.5])


def test_measurements_that_hide_less_are_refused() -> None:
    sized = dp.vector_domain(dp.atom_domain(bounds=(0.0, 10.0)), size=3), dp.symmetric_distance()
    with pytest.raises(eps.PlanError, match="how many records"):
        eps.personalize(sized >> dp.t.then_mean() >> dp.m.then_laplace(1.0), [1.0, 2.0, 3.0], 0.5)
    gaussian = SPACE >> dp.t.then_sum() >> dp.m.then_gaussian(10.0)
    with pytest.raises(eps.PlanError, match="no delta"):
        eps.personalize(gaussian, [1, 2, 3], 0.5)
    dp.enable_features("honest-but-curious")
    replacing = dp.m.make_user_measurement(
        SPACE[0], dp.change_one_distance(), dp.max_divergence(), lambda data: 0, lambda distance: 0.1 * distance
    )
    with pytest.raises(eps.PlanError, match="ChangeOne"):
        eps.personalize(replacing, [1, 2, 3], 0.5)
    for endless in (math.inf, math.nan, 0.0):
        leaky = dp.m.make_user_measurement(
            *SPACE, dp.max_divergence(), lambda data: 0, lambda distance, endless=endless: endless
        )
        with pytest.raises(eps.PlanError, match=r"no finite loss|no loss at all"):
            eps.personalize(leaky, [1, 2, 3], 0.5)
    with pytest.raises(eps.PlanError, match="own epsilon"):
        eps.personalize(noisy_sum(20.0), [1, 2, 3], 0.5, threshold=0.5)


# diffprivlib, or what looks like it: the real one needs an older scikit-learn and is tried by `make bench-models` -----


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Modules that look like diffprivlib's as far as we look."""
    program = """
import warnings
class PrivacyLeakWarning(RuntimeWarning): pass
def histogram(sample, epsilon=1.0, range=None, random_state=None):
    if range is None:
        warnings.warn("bounds", PrivacyLeakWarning)
    return [len(sample)], epsilon
def mean(array, epsilon=1.0, bounds=None):
    return epsilon
class KMeans:
    def __init__(self, n_clusters=2, epsilon=1.0, bounds=None, random_state=None):
        self.n_clusters, self.epsilon, self.bounds, self.random_state = n_clusters, epsilon, bounds, random_state
    def get_params(self):
        return dict(self.__dict__)
    def fit(self, X, y=None):
        self.seen_ = (len(X), y)
        return self
"""
    module = types.ModuleType("diffprivlib.tools")
    exec(program, module.__dict__)
    module.KMeans.__module__ = "diffprivlib.models.k_means"
    module.PrivacyLeakWarning.__module__ = "diffprivlib.utils"
    monkeypatch.setitem(sys.modules, "diffprivlib.utils", module)
    return module


def test_a_counting_tool_of_diffprivlib(library: types.ModuleType) -> None:
    release = eps.personalize(functools.partial(library.histogram, range=(0, 1)), [1, 2], [0.5, 0.5])
    assert release.value == ([2], 0.5)
    assert "diffprivlib's claim that 'histogram' is private." in str(release.guarantee)


def test_a_model_of_diffprivlib_must_be_declared(library: types.ModuleType) -> None:
    model = library.KMeans(n_clusters=3, bounds=(0, 1))
    with pytest.raises(eps.PlanError, match="not known to be private"):
        eps.personalize(model, [[1.0], [2.0]], 0.5)
    with pytest.raises(eps.PlanError, match="not known to be private"):
        eps.personalize(library.mean, [1.0, 2.0], 0.5)
    release = eps.personalize(model, [[1.0], [2.0]], [0.25, 0.5], private_under="absent")
    assert (release.value.epsilon, release.value.n_clusters) == (0.5, 3)
    assert model.epsilon == 1.0
    assert not hasattr(model, "seen_")
    assert "on the caller's that it is so when a record is added or removed" in str(release.guarantee)
    paired = eps.personalize(model, ([[1.0], [2.0]], [0, 1]), 0.5, private_under="absent")
    assert paired.value.seen_ == (2, [0, 1])


def test_bounds_read_from_the_data_are_an_error(library: types.ModuleType) -> None:
    with pytest.raises(eps.PlanError, match="read public facts from the data"):
        eps.personalize(library.histogram, [1, 2], 0.5)


def test_a_seeded_model_is_not_private(library: types.ModuleType) -> None:
    model = library.KMeans(bounds=(0, 1), random_state=3)
    assert not eps.personalize(model, [[1.0]], 0.5, private_under="absent").private
    tool = functools.partial(library.histogram, range=(0, 1), random_state=3)
    assert not eps.personalize(tool, [1.0], 0.5).private


def test_a_class_is_not_a_model(library: types.ModuleType) -> None:
    with pytest.raises(eps.PlanError, match="is a class"):
        eps.personalize(library.KMeans, [[1.0]], 0.5, private_under="absent")

"""The argument model: numbers of any type, one text for each mistake, options that know their fronts."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.arguments.checks import check_between, check_real, check_share, check_whole, exact
from epsilons.arguments.options import ARRAYS, BATCHES, OPTIONS, QUERIES, TABLES, options_of
from epsilons.arguments.reading import AskOptions
from epsilons.testing import seeded


@pytest.mark.parametrize("number", [2, 2.0, np.float32(2), np.int8(2), Fraction(2), Decimal(2)])
def test_a_number_may_be_of_any_type(number: Any) -> None:
    assert check_real(number) == 2.0
    assert check_share(number / 4) == Fraction(1, 2)


@pytest.mark.parametrize("other", [True, np.True_, "2", None, 1j, [2], Decimal("sNaN")])
def test_what_is_no_number_is_none(other: Any) -> None:
    with pytest.raises(TypeError):
        check_real(other)


def test_whole_numbers_have_limits() -> None:
    assert check_whole(np.int64(3)) == 3
    assert (check_real(10**400), check_real(-(10**400))) == (math.inf, -math.inf)
    for wrong in (0, 2.0, True, "3", None):
        with pytest.raises(TypeError):
            check_whole(wrong)
    with pytest.raises(TypeError):
        check_whole(21, 2, 20)
    refusal = eps.PlanError("Not this.")
    for wrong in (True, "3", 2.5, 0, 9):
        with pytest.raises(eps.PlanError, match="Not this"):
            check_whole(wrong, 1, 8, refusal)


def test_a_number_between_two_others() -> None:
    refusal = eps.PlanError("Not this.")
    assert check_between(Fraction(1, 2), 0, 1, refusal) == 0.5
    assert [check_between(end, 0, 1, refusal, ends=True) for end in (0, 1)] == [0.0, 1.0]
    for wrong in (0, 1, True, "0.5", math.nan, None, 2):
        with pytest.raises(eps.PlanError, match="Not this"):
            check_between(wrong, 0, 1, refusal)


def test_a_float_means_the_decimal_that_it_prints_as() -> None:
    assert exact(0.1) == Fraction(1, 10)
    assert check_share(0.1) == Fraction(1, 10)
    assert check_share(Fraction(1, 3)) == Fraction(1, 3)


def test_a_confidence_may_be_of_any_type() -> None:
    release = eps.count([1, 0, 1], [0.5, 1, 1], entropy=seeded(1))
    assert release.interval(np.float32(0.5)) == release.interval(0.5)
    for wrong in (0, 1, True, "0.95", math.nan):
        with pytest.raises(eps.PlanError, match="confidence"):
            release.interval(wrong)  # type: ignore[arg-type]


def test_options_know_their_fronts() -> None:
    assert list(options_of(ARRAYS)) == [
        "mechanism", "threshold", "rescale", "neighbors", "assume", "spread", "density", "location", "for_interval",
        "privacy", "group_epsilons", "scale", "gamma", "inside", "share", "missing", "complete", "delta", "entropy",
    ]  # fmt: skip
    assert list(options_of(TABLES)) == [
        "mechanism", "threshold", "rescale", "assume", "spread", "density", "location", "for_interval", "privacy",
        "group_epsilons", "scale", "gamma", "inside", "share", "error", "where", "by", "missing", "complete", "fresh",
        "analyst", "entropy",
    ]  # fmt: skip
    assert set(options_of(TABLES)) - set(options_of(BATCHES)) == {"share", "error"}
    assert set(options_of(BATCHES)) - set(options_of(QUERIES)) == {"where", "by"}
    assert all(option.help.endswith(".") for option in OPTIONS)
    assert {field for option in OPTIONS for field in [option.name]} <= set(AskOptions.__dataclass_fields__)


def test_options_left_out_keep_their_defaults() -> None:
    arrays, table = AskOptions.of({}, ARRAYS), AskOptions.of({}, TABLES)
    assert (arrays.share, table.share) == (1, None)  # of a table it follows from what was registered
    assert table.threshold is None
    assert arrays.for_interval == table.for_interval == Fraction(2, 5)
    assert AskOptions.of({"share": None, "error": 3}, TABLES).share is None
    assert AskOptions.of({"threshold": np.float32(0.5), "gamma": np.int64(3)}, TABLES).identity()["settings"] == {
        "threshold": 0.5,
        "gamma": 3.0,
    }
    for option in OPTIONS:
        for front in option.fronts:
            if option.name not in ("share", "error", "for_interval"):  # exact, or one of two
                assert getattr(AskOptions.of({option.name: option.default}, front), option.name) == option.default


def test_what_pays_for_an_interval_is_refused_where_nothing_is_paid_for() -> None:
    values, bounds = [1, 2, 3] * 100, {"bounds": (0, 10)}
    for name in ("mean", "sum", "variance", "max", "min"):
        with pytest.raises(eps.PlanError, match=f"A {name} takes no 'for_interval'.*medians and quantiles"):
            getattr(eps, name)(values, 1.0, **bounds, for_interval=0.4)
        with pytest.raises(eps.PlanError, match="takes no 'for_interval'"):
            eps.plan(name, [1.0] * 10, **bounds, for_interval=0.4)
    for q in (0, 1.0):
        with pytest.raises(
            eps.PlanError, match=f"A quantile of {q:g} takes no 'for_interval'.*smallest or the largest"
        ):
            eps.quantile(values, 1.0, q, **bounds, for_interval=0.4)
        assert eps.quantile(values, 1.0, q, **bounds).models is None
    with pytest.raises(eps.PlanError, match="Individual privacy takes no 'for_interval'"):
        eps.median(values, 1.0, **bounds, for_interval=0.4, privacy="individual")
    assert eps.median(values, 1.0, **bounds, for_interval=0.4).models
    assert eps.quantile(values, 1.0, 0.9, **bounds, for_interval=0.2).models

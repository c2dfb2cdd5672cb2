"""Missing values: one rule for arrays and tables, held to definitions, on every front and by every word."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.arguments.reading import AT_CENTRE, BY_TYPE, BY_WORD, LEFT_OUT, NOT_COUNTED
from epsilons.arrays.asking import never_missing
from epsilons.statistics.variance import SQUARE
from epsilons.testing import seeded

BOUNDS = (0.0, 60.0)
EXCLUDE: dict[str, Any] = {}
COMPLETE: dict[str, Any] = {"complete": True}
CENTRE: dict[str, Any] = {"missing": "center"}
WORDS = {"exclude": EXCLUDE, "spelled out": {"missing": "exclude"}, "complete": COMPLETE, "center": CENTRE}

# What was found: half of the people have a 10, of the others nothing is known -----------------------------------------

HALF: dict[str, Callable[[], Any]] = {
    "numpy": lambda: np.array([10.0, math.nan] * 1500),
    "list": lambda: [10, None] * 1500,
    "words": lambda: [10, "unknown"] * 1500,
    "masked": lambda: np.ma.MaskedArray([10, 30] * 1500, [False, True] * 1500),
    "pandas": lambda: pd.Series([10, None] * 1500, dtype="Int64"),
    "polars": lambda: pl.Series([10, None] * 1500),
    "arrow": lambda: pa.array([10, None] * 1500),
}


@pytest.mark.parametrize("container", HALF)
def test_the_mean_is_that_of_the_values_which_are_there(container: str) -> None:
    for seed in range(3):
        answer = eps.mean(HALF[container](), 1.0, bounds=BOUNDS, entropy=seeded(seed))
        assert abs(answer.value - 10) < 1
        assert LEFT_OUT in answer.guarantee.caveats


def test_its_interval_holds_what_is_true_of_them_and_would_not_if_they_stood_at_the_centre() -> None:
    def held(word: dict[str, Any]) -> int:
        values, found = HALF["numpy"](), 0
        for seed in range(40):
            low, high = eps.mean(values, 1.0, bounds=BOUNDS, entropy=seeded(seed), **word).interval(0.95)
            found += low <= 10 <= high
        return found

    assert held(EXCLUDE) >= 33  # of a binomial of 40 at .95, three times in a million less
    assert held(CENTRE) == 0


def test_a_list_of_words_is_one_of_nothing_and_says_so() -> None:
    for seed in range(5):
        answer = eps.mean(["50"] * 3000, 1.0, bounds=BOUNDS, entropy=seeded(seed))
        assert answer.interval(0.95) == BOUNDS


@pytest.mark.parametrize("make", [np.array, pa.array, pl.Series, lambda words: pd.Series(words, dtype="string")])
@pytest.mark.parametrize("statistic", ["sum", "mean", "variance", "median", "max", "kth_largest"])
@pytest.mark.parametrize("word", WORDS)
def test_a_type_of_words_is_refused(make: Callable[[Any], Any], statistic: str, word: str) -> None:
    with pytest.raises(eps.DataError, match="Values hold text, not numbers"):
        getattr(eps, statistic)(make(["50"] * 30), 1.0, bounds=BOUNDS, **WORDS[word])


# Both fronts, by definition ------------------------------------------------------------------------------------------

STATISTICS: dict[str, dict[str, Any]] = {
    "count": {},
    "sum": {"bounds": BOUNDS},
    "mean": {"bounds": BOUNDS},
    "variance": {"bounds": BOUNDS},
    "median": {"bounds": BOUNDS, "step": 1},
    "quantile": {"q": 0.3, "bounds": BOUNDS, "step": 1},
    "min": {"bounds": BOUNDS, "step": 1},
    "max": {"bounds": BOUNDS, "step": 1},
    "kth_largest": {"k": 2, "bounds": BOUNDS, "step": 1},
    "histogram": {"edges": [0, 10, 60]},
}
COUNTED = ("count", "histogram")
SOME = [1.0, None, 10.0, 60.0, math.nan, 1.0, 30.0, None, 77.0, 4.0]
DATA = {"some": SOME, "all there": [1.0, 2.0, 3.0, 59.0], "nothing": [None, math.nan, None], "one": [None, 5.0, None]}
ASKED = [
    (name, word, data)
    for name, word, data in itertools.product(STATISTICS, WORDS, DATA)
    if not (name in COUNTED and word == "center")
]


def table_of(values: list[float | None], epsilons: Any) -> eps.Dataset:
    columns = {"id": range(len(values)), "x": pa.array(values, pa.float64()), "epsilon": epsilons}
    return eps.Dataset(
        pa.table(columns),
        person="id",
        preferences=eps.Preferences.from_column("epsilon"),
        version="1",
        ledger="memory",
        ceiling=1e6,
    )


GRANTS = [500.0, 1000.0, 2000.0, 4000.0, 1000.0, 1000.0, 500.0, 2000.0, 2000.0, 1000.0]
SHARE = 0.001


@functools.cache
def opened(data: str, public: bool) -> eps.Dataset:
    """One table for all questions: at a thousandth of what people granted nobody runs out."""
    values = DATA[data]
    return table_of(values, [eps.PUBLIC] * len(values) if public else GRANTS[: len(values)])


def both(name: str, data: str, *, public: bool = False, **options: Any) -> tuple[eps.Release, eps.Release]:
    """The same question on an array and on a table, with the same noise."""
    known, people, values = dict(STATISTICS[name]), opened(data, public), DATA[data]
    epsilons = eps.PUBLIC if public else GRANTS[: len(values)]
    on_array = getattr(eps, name)(values, epsilons, **known, **options, share=SHARE, entropy=seeded(3))
    given = [known.pop(place) for place in ("q", "k") if place in known]
    options |= {"share": SHARE, "fresh": True, "entropy": seeded(3)}
    return on_array, getattr(people, name)("x", *given, **known, **options)


def defined(name: str, values: list[float | None], word: str) -> Any:
    """The statistic itself, of those who are there or with the others at the centre."""
    there = [min(v, 60.0) for v in values if v is not None and not math.isnan(v)]
    if name == "count":  # complete, it is centred: a missing entry stands at 1/2
        return sum(v == 1 for v in there) + (len(values) - len(there)) / 2 * (word == "complete")
    if name == "histogram":
        return {
            (0.0, 10.0): sum(v < 10 for v in there),
            (10.0, 60.0): sum(10 <= v <= 60 for v in there) - (77.0 in values),
        }
    centred = word in ("complete", "center")
    used = sorted(there + [30.0] * (len(values) - len(there)) if centred else there)
    if name == "variance":
        if centred:  # whoever is missing adds nothing to sum(u^2 - s), so that s h^2 stands for them
            squares = sum((v - 30) ** 2 for v in there) + 900 * float(SQUARE) * (len(values) - len(there))
            return squares / len(values) - (sum(v - 30 for v in there) / len(values)) ** 2
        return float(np.var(used)) if used else 0.0
    if name in ("sum", "mean"):
        return float(np.sum(used)) if name == "sum" else float(np.mean(used)) if used else 30.0
    ranks = {"median": len(used) // 2, "quantile": math.floor(0.3 * len(used)), "min": 0, "max": len(used) - 1}
    rank = max(ranks.get(name, len(used) - 2), 0)
    return used[rank] if used else 30


@pytest.mark.parametrize(("name", "word", "data"), ASKED)
def test_the_exact_answer_is_the_definition(name: str, word: str, data: str) -> None:
    """Of public people, whose answers are exact: on both fronts."""
    for release in both(name, data, public=True, **WORDS[word]):
        assert release.value == pytest.approx(defined(name, DATA[data], word), abs=1e-6)


@pytest.mark.parametrize(("name", "word", "data"), ASKED)
def test_with_frozen_noise_arrays_and_tables_give_the_same(name: str, word: str, data: str) -> None:
    for mechanism in ("minimum", "weighted"):
        if mechanism == "weighted" and name in ("min", "max", "kth_largest", "histogram"):
            continue
        one, other = both(name, data, mechanism=mechanism, **WORDS[word])
        assert one.value == other.value
        assert (one.charges, one.error) == (other.charges, other.error)
        assert set(one.guarantee.caveats) <= set(other.guarantee.caveats)  # a ledger has more to say about a seed


@pytest.mark.parametrize("word", WORDS)
def test_one_person_s_value_changes_no_one_s_weight_and_raises_nothing(word: str) -> None:
    """Also where that person was the only one with a value, or would be the only one without."""
    for name, values in itertools.product(STATISTICS, ([1.0, 2.0, 3.0], [1.0, None, None])):
        if name in COUNTED and word == "center":
            continue
        told = [
            getattr(eps, name)(those, [0.5, 1.0, 2.0], **STATISTICS[name], **WORDS[word], entropy=seeded(1))
            for those in (values, [None, *values[1:]], [math.nan, *values[1:]], ["1", *values[1:]])
        ]
        assert len({(str(r.charges), r.mechanism, r.why, r.guarantee.caveats) for r in told}) == 1


# Complete by type, never by content --------------------------------------------------------------------------------

TYPES: dict[str, tuple[Any, bool]] = {
    **{kind: (np.array([1, 0], kind), True) for kind in ("int8", "int16", "int32", "int64", "uint8", "uint64", "bool")},
    **{kind: (np.array([1, 0], kind), False) for kind in ("float16", "float32", "float64", "longdouble", "object")},
    "masked": (np.ma.MaskedArray([1, 0], [False, False]), False),
    "list": ([1, 0], False),
    "tuple": ((1, 0), False),
    "range": (range(2), False),
    "list of truths": ([True, False], False),
    "pandas int": (pd.Series([1, 0]), True),
    "pandas bool": (pd.Series([True, False]), True),
    "pandas float": (pd.Series([1.0, 0.0]), False),
    "pandas Int64": (pd.Series([1, 0], dtype="Int64"), False),
    "pandas boolean": (pd.Series([True, False], dtype="boolean"), False),
    "pandas of Arrow": (pd.Series([1, 0], dtype=pd.ArrowDtype(pa.int64())), False),
    "pandas object": (pd.Series([1, 0], dtype=object), False),
    "polars": (pl.Series([1, 0]), False),
    "arrow": (pa.array([1, 0]), False),
    "arrow in chunks": (pa.chunked_array([[1], [0]]), False),
}


@pytest.mark.parametrize("kind", TYPES)
def test_what_is_complete_by_type(kind: str) -> None:
    values, complete = TYPES[kind]
    assert never_missing(values) is complete
    answer = eps.mean(values, 1.0, bounds=(0, 1))
    assert answer.guarantee.caveats[-1] == (BY_TYPE if complete else LEFT_OUT)
    assert (LEFT_OUT in eps.mean(values, 1.0, bounds=(0, 1), missing="exclude").guarantee.caveats) is True


def test_frames_are_complete_if_all_of_their_columns_are() -> None:
    assert never_missing(pd.DataFrame({"a": [1], "b": [True]}))
    assert not never_missing(pd.DataFrame({"a": [1], "b": [0.5]}))
    assert not never_missing(pd.DataFrame({}))
    assert not never_missing(pl.DataFrame({"a": [1]}))
    assert not never_missing(pa.table({"a": [1]}))


def test_a_column_of_a_table_is_complete_by_a_word_only() -> None:
    """People on the roster may have no row."""
    frame = pd.DataFrame({"id": [1, 2, 3], "x": [1, 2, 3], "epsilon": [1.0, 1.0, 1.0]})
    preferences = eps.Preferences.from_column("epsilon")
    with eps.Dataset(frame, person="id", preferences=preferences, ledger="memory", ceiling=1e6) as people:
        assert LEFT_OUT in people.mean("x", bounds=(0, 9)).guarantee.caveats
        assert BY_WORD in people.mean("x", bounds=(0, 9), complete=True).guarantee.caveats
        assert NOT_COUNTED in people.count("x").guarantee.caveats
        assert BY_WORD in people.count("x", complete=True).guarantee.caveats


# What contradicts itself -------------------------------------------------------------------------------------------


def test_words_that_contradict_are_refused_on_both_fronts() -> None:
    with table_of(SOME, [1.0] * len(SOME)) as people:
        for missing in ("exclude", "center"):
            for ask in (
                lambda **words: eps.mean(SOME, 1.0, bounds=BOUNDS, **words),
                lambda **words: eps.plan("mean", 1.0, people=10, bounds=BOUNDS, **words),
                lambda **words: people.mean("x", bounds=BOUNDS, **words),
                lambda **words: people.sql("SELECT AVG(x) FROM people", bounds={"x": BOUNDS}, **words),
            ):
                with pytest.raises(eps.PlanError, match="Both missing and complete were given"):
                    ask(missing=missing, complete=True)
        for words, said in ((COMPLETE, "complete=True"), (CENTRE, "missing='center'")):
            for rows in ({"where": "x > 1"}, {"by": {"x": [1.0, 2.0]}}):
                with pytest.raises(eps.PlanError, match=f"{said} needs a public number of values"):
                    people.mean("x", bounds=BOUNDS, **words, **rows)
        for ask in (lambda: eps.count(SOME, 1.0, **CENTRE), lambda: people.count("x", **CENTRE)):
            with pytest.raises(eps.PlanError, match="A count has no centre"):
                ask()
    with pytest.raises(eps.PlanError, match=r"complete=.yes. is not allowed"):
        eps.mean(SOME, 1.0, bounds=BOUNDS, complete="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("statistic", "options"),
    [
        ("median", {"mechanism": "exponential"}),
        ("median", {"mechanism": "mixed"}),
        ("median", {"mechanism": "smooth-sensitivity"}),
        ("mean", {"mechanism": "robust"}),
        ("median", {"privacy": "individual", "mechanism": "local-sensitivity"}),
        ("kth_largest", {"privacy": "individual", "k": 2}),
    ],
)
def test_what_needs_a_public_number_names_the_words_that_make_it_so(statistic: str, options: dict[str, Any]) -> None:
    bounds = {} if "k" in options else {"bounds": BOUNDS}
    ask = getattr(eps, statistic)
    with pytest.raises(eps.PlanError, match="public number of values") as caught:
        ask(SOME, 1.0, **bounds, **options)
    assert caught.value.hint == "missing='center', or complete=True if nothing is missing"
    for word in (COMPLETE, CENTRE):
        assert math.isfinite(ask(SOME, 1.0, **bounds, **options, **word).value)
    assert math.isfinite(ask(np.arange(10), 1.0, **bounds, **options).value)


# The centre is a place: whoever stands there counts, whatever the mechanism -------------------------------------------

#: Two in five have a 10: by the values that are there the median is 10, with the others at the centre it is 30.
MOSTLY_MISSING: list[float | None] = [10.0, None, None, 10.0, None] * 40


BY_RANK = [
    *itertools.product(["median", "quantile"], ["weighted", "minimum", "sample", "exponential"]),
    ("median", "threshold"),
]


@pytest.mark.parametrize(("statistic", "mechanism"), [*BY_RANK, ("max", "minimum"), ("max", "sample")])
def test_the_missing_stand_at_the_centre_of_every_order_statistic(statistic: str, mechanism: str) -> None:
    epsilons = np.tile([200.0, 400.0], 100)
    own: dict[str, Any] = {"bounds": BOUNDS, "step": 1, "mechanism": mechanism}
    own |= {"q": 0.6} if statistic == "quantile" else {}
    own |= {"for_interval": 0} if statistic != "max" else {}
    # The last fifth of the people is on the roster of the table without a row.
    rows = {"id": range(160), "x": pa.array(MOSTLY_MISSING[:160], pa.float64())}
    full = {"id": range(200), "x": pa.array(MOSTLY_MISSING, pa.float64())}
    for there, values in ((full, MOSTLY_MISSING), (rows, MOSTLY_MISSING[:160] + [None] * 40)):
        preferences = dict(enumerate(epsilons.tolist()))
        with eps.Dataset(pa.table(there), person="id", preferences=preferences, ledger="memory", ceiling=1e6) as people:
            asked = (
                getattr(eps, statistic)(values, epsilons, entropy=seeded(5), **CENTRE, **own),
                getattr(people, statistic)("x", share=0.5, entropy=seeded(5), **CENTRE, **own),
            )
        for release in asked:
            assert abs(release.value - 30) <= 1
            assert AT_CENTRE in release.guarantee.caveats


def test_against_the_word_that_nothing_is_missing_ranks_may_leave_out() -> None:
    """To weigh people who cannot be missing is sharper, so the word is told as it is kept."""
    told = "is left out, or stands at the centre, as the mechanism has it"
    for mechanism, value in (("weighted", 10), ("exponential", 30)):
        release = eps.median(MOSTLY_MISSING, 200.0, bounds=BOUNDS, step=1, mechanism=mechanism, **COMPLETE)
        assert abs(release.value - value) <= 1
        assert any(told in caveat for caveat in release.guarantee.caveats)
    assert not any(told in caveat for caveat in eps.mean(SOME, 1.0, bounds=BOUNDS, **COMPLETE).guarantee.caveats)


def test_an_answer_says_in_its_line_that_missing_values_count() -> None:
    told = "missing values at the centre"
    centred = eps.mean(SOME, 1.0, bounds=BOUNDS, **CENTRE)
    assert f", {told}: " in str(centred)
    assert told in eps.Release.from_dict(centred.to_dict()).question
    for words in ({}, COMPLETE):
        assert told not in str(eps.mean(SOME, 1.0, bounds=BOUNDS, **words))
    with table_of(SOME * 20, [1.0] * 200) as people:
        batch = people.batch(share=0.1)
        batch.mean("x", bounds=BOUNDS, **CENTRE)
        assert told in " ".join(str(batch.ask()).split())


# What the word is worth --------------------------------------------------------------------------------------------


def test_a_plan_says_what_the_word_would_save() -> None:
    known: dict[str, Any] = {"people": 1000, "bounds": BOUNDS, "spread": 10}
    without, with_it = eps.plan("mean", 1.0, **known), eps.plan("mean", 1.0, **known, complete=True)
    assert without.if_complete == with_it.best.error < without.best.error  # type: ignore[operator]
    said = " ".join(str(without).split())
    assert f"would lower the error from {without.best.error:.4g} to {with_it.best.error:.4g}." in said
    assert without.to_dict()["if_complete"] == without.if_complete
    for plan in (with_it, eps.plan("mean", 1.0, **known, **CENTRE), eps.plan("count", 1.0, people=1000)):
        assert plan.if_complete is None
        assert "nothing is missing" not in str(plan)
    # Whoever says that a part has no value, of an array or of a table, is not told to say the contrary.
    assert eps.plan("mean", 1.0, **known, density=0.1).if_complete is None
    assert eps.plan("mean", 1.0, **known, density=1).if_complete == pytest.approx(with_it.best.error)
    named = eps.plan("mean", [0.1, 1.0] * 500, bounds=BOUNDS, mechanism="sample")
    told = eps.plan("mean", [0.1, 1.0] * 500, bounds=BOUNDS, mechanism="sample", complete=True)
    assert named.if_complete == told["sample"].error
    with table_of(SOME * 20, [1.0] * 200) as people:
        planned = people.plan("mean", "x", bounds=BOUNDS)
        assert planned.if_complete == people.plan("mean", "x", bounds=BOUNDS, complete=True).best.error
        assert people.plan("mean", "x", bounds=BOUNDS, where="x > 1").if_complete is None
        assert people.plan("mean", "x", bounds=BOUNDS, density=0.9).if_complete is None
        assert people.plan("count").if_complete is None


def test_a_plan_is_asked_as_it_was_shown_whatever_the_type() -> None:
    plan = eps.plan("mean", [1.0] * 100, bounds=BOUNDS)
    answer = plan.ask(np.arange(100) % 60)
    assert answer.mechanism == plan.best.mechanism
    assert answer.charges == dict(plan.best.charges)
    assert LEFT_OUT in answer.guarantee.caveats
    told = eps.plan("mean", [1.0] * 100, bounds=BOUNDS, **CENTRE).ask([None] * 100)
    assert AT_CENTRE in told.guarantee.caveats


def test_nearly_everyone_is_guessed_to_have_a_value() -> None:
    def fraction(**options: Any) -> float:
        scope = eps.plan("mean", 1.0, people=10, bounds=BOUNDS, **options).question.statistic.scope
        assert scope is not None
        return scope.fraction

    assert fraction() == 1.0
    assert fraction(density=0.25) == 0.25
    with table_of(SOME, [1.0] * len(SOME)) as people:
        scopes = [
            people.plan("mean", "x", bounds=BOUNDS, **rows).question.statistic.scope
            for rows in ({}, {"where": "x > 1"})
        ]
    assert [scope.fraction for scope in scopes if scope is not None] == [1.0, 0.5]


def test_questions_of_tables_keep_their_spelling() -> None:
    """Ledgers hold keys for years: what was asked before is the same question still."""
    with table_of(SOME, [1.0] * len(SOME)) as people:
        spelled = [
            people.plan(name, "x", bounds=BOUNDS, **rows).question.statistic.identity()
            for name, rows in (
                ("sum", {}),
                ("sum", {"where": "x > 1"}),
                ("sum", CENTRE),
                ("median", {"for_interval": 0}),
            )
        ]
    assert spelled == [
        "FilteredSum(scope=Scope(rows=1, groups=None, fraction=1.0), bounds=(0.0, 60.0))",
        "FilteredSum(scope=Scope(rows=1, groups=None, fraction=0.5), bounds=(0.0, 60.0))",
        "Sum(bounds=(0.0, 60.0))",
        "Order(bounds=(0.0, 60.0), step=None, q=Fraction(1, 2), from_low=None, from_high=None, label='median', "
        "scope=Scope(rows=1, groups=None, fraction=1.0))",
    ]

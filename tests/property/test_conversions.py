"""What one person has changes nothing that is read of anybody else, in whatever container the values come.

Everyone's reading, the bin, grid point or category and what a sum gets, is taken where the functions on arrays hand
people over to be drawn from. Warnings are errors in all tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import epsilons as eps
from epsilons.arrays import asking
from epsilons.engines import readings
from epsilons.estimators import PersonalizedLinearRegression
from epsilons.preferences import roster_of
from epsilons.statistics.order import Order
from epsilons.summaries.arrays import ArrayPeople, as_matrix
from support import planted
from support.containers import CONTAINERS, ENTRIES, NUMBERS, REFUSED, Container
from support.hostile import Spiteful

PEOPLE = len(NUMBERS)
BOUNDS = {"bounds": (0, 100)}
CATEGORIES: list[Any] = ["b", "a", 50, 1, date(9999, 12, 31), "2020-01-01", datetime(1969, 7, 20, 20, 17, 40)]
#: Every question that there is on arrays, values first.
ASKED: dict[str, Callable[..., Any]] = {
    "count": eps.count,
    "sum": lambda *given, **more: eps.sum(*given, **BOUNDS, **more),
    "mean": lambda *given, **more: eps.mean(*given, **BOUNDS, **more),
    "variance": lambda *given, **more: eps.variance(*given, **BOUNDS, **more),
    "median": lambda *given, **more: eps.median(*given, **BOUNDS, **more),
    "quantile": lambda *given, **more: eps.quantile(*given, 0.3, **BOUNDS, **more),
    "min": lambda *given, **more: eps.min(*given, **BOUNDS, **more),
    "max": lambda *given, **more: eps.max(*given, **BOUNDS, **more),
    "kth_largest": lambda *given, **more: eps.kth_largest(*given, 2, **BOUNDS, **more),
    "bins": lambda *given, **more: eps.histogram(*given, edges=[0, 2, 100], **more),
    "categories": lambda *given, **more: eps.histogram(*given, categories=CATEGORIES, **more),
    "target": lambda y, *given, **more: eps.linear_regression(
        np.ones((len(y), 1)), y, *given, bounds_X=(0, 1), bounds_y=(0, 100), **more
    ),
    "classes": lambda y, *given, **more: eps.logistic_regression(
        np.ones((len(y), 1)), y, *given, bounds_X=(0, 1), classes=(1, "a"), **more
    ),
}
EPSILONS = [0.1, 0.5, 1.0, 1.0, 3.0, 0.5]
#: Every way to say what people granted.
WAYS: dict[str, tuple[Callable[[list[float]], Any], dict[str, Any]]] = {
    "a list": (list, {}),
    "an array": (np.array, {}),
    "Arrow": (pa.array, {}),
    "pandas": (pd.Series, {}),
    "one for all": (lambda _: 0.5, {}),
    "preferences": (eps.Preferences, {}),
    "a roster": (roster_of, {}),
    "a share": (list, {"share": 0.3}),
    "replaced neighbours": (list, {"neighbors": "replace"}),
    "public": (lambda _: eps.PUBLIC, {}),
    "some public": (lambda given: [math.inf, *given[1:]], {}),
}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Ask, and get what is read of each person instead of an answer, or the refusal."""
    handed: list[tuple[Any, ArrayPeople]] = []

    answer = MagicMock()  # one for all: making it takes longer than asking

    def hand_over(*given: Any, **named: Any) -> MagicMock:
        """In place of a release."""
        place = next(place for place, each in enumerate(given) if isinstance(each, ArrayPeople))
        handed.append((given[place - 1], given[place]))
        return answer

    monkeypatch.setattr(asking, "make_release", hand_over)
    monkeypatch.setattr(asking, "exact_release", hand_over)

    def ask(question: str, values: Any, granted: list[float], way: str = "a list", **words: Any) -> Any:
        handed.clear()
        give, options = WAYS[way]
        chosen = {} if question in ("target", "classes") else {"mechanism": "minimum", **words}
        try:
            ASKED[question](values, give(granted), **chosen, **options)
            return [each_reading(*pair) for pair in handed]
        except eps.EpsilonsError as error:
            return [type(error).__name__, str(error)]

    return ask


def each_reading(question: Any, people: ArrayPeople) -> list[Any]:
    """Everyone's reading, by putting each on a level of their own."""
    apart = ArrayPeople(people.values, roster_of(np.arange(1, len(people.values) + 1) / 8))
    if isinstance(question.statistic, Order):
        cells = apart.cells(question.statistic)
        found = dict(zip(cells.codes(0, cells.people).tolist(), cells.cells(0, cells.people).tolist(), strict=True))
        return [found.get(code) for code in range(len(people.values))]
    parts = apart.tally(question.statistic)
    return [tuple(int(cell) for part in parts for cell in part[code]) for code in range(len(people.values))]


def others(seen: Any, person: int, *, removed: bool = False) -> Any:
    """All but one person's readings; refusals as they are."""
    if len(seen) != 1:
        return seen
    return [entry for place, entry in enumerate(seen[0]) if removed or place != person]


def check_nobody_else(
    container: Container, read: Callable[..., Any], questions: Iterable[str], way: str = "a list", persons: Any = (0, 4)
) -> None:
    """With some person removed, and where there is room for a missing entry with theirs missing."""
    entries = container.entries
    made = container.make(entries)
    everyone = {question: read(question, made, EPSILONS, way) for question in questions}
    for person in persons:
        fewer, granted = ([*each[:person], *each[person + 1 :]] for each in (entries, EPSILONS))
        removed = container.make(fewer)
        nulled = container.make([*entries[:person], None, *entries[person + 1 :]]) if container.holes else None
        for question, seen in everyone.items():
            alone = others(read(question, removed, granted, way), person, removed=True)
            assert others(seen, person) == alone, f"{question} of {container}: {person} removed"
            if nulled is not None:
                left = others(read(question, nulled, EPSILONS, way), person)
                assert others(seen, person) == left, f"{question} of {container}: {person} nulled"


@pytest.mark.parametrize("question", ["count", "variance", "median", "bins", "categories", "classes"])
def test_one_person_changes_nothing_that_is_read_of_others(read: Callable[..., Any], question: str) -> None:
    """One question for each way of reading."""
    for container in CONTAINERS:
        check_nobody_else(container, read, [question], persons=[4])


@pytest.mark.soak
@pytest.mark.parametrize("container", CONTAINERS, ids=str)
def test_nor_does_anybody_in_any_question(read: Callable[..., Any], container: Container) -> None:
    check_nobody_else(container, read, ASKED, persons=range(PEOPLE))


SOME = ("Arrow timestamp[ns]", "Arrow date64[ms]", "Arrow duration[s]", "pandas Int64", "polars Date", "list")
some = [container for container in CONTAINERS if container.name in SOME]


def test_nor_does_somebody_in_any_question(read: Callable[..., Any]) -> None:
    for container in some:
        check_nobody_else(container, read, ASKED, persons=[0])


@pytest.mark.parametrize("way", WAYS)
def test_nor_in_whatever_way_epsilons_are_given(read: Callable[..., Any], way: str) -> None:
    for container in some:
        check_nobody_else(container, read, ("median", "categories"), way)


# What is read, and refused -------------------------------------------------------------------------------------------


def meant(entry: Any, key: Any) -> bool:
    """Whether a public key means an entry: itself, or among dates and times what is written in it."""
    if type(entry) is datetime:
        moment = datetime.fromisoformat(key) if isinstance(key, str) and len(key) == 10 else key
        return entry == (datetime.combine(moment, datetime.min.time()) if type(moment) is date else moment)
    return bool(entry == key or (type(entry) is date and str(entry) == key))


def placed(entries: list[Any]) -> list[tuple[int, ...]]:
    """By a loop over the categories; the first one that means an entry has it."""
    first = [next((place for place, key in enumerate(CATEGORIES) if meant(entry, key)), None) for entry in entries]
    return [tuple(int(place == found) for place in range(len(CATEGORIES))) for found in first]


@pytest.mark.parametrize("container", [c for c in CONTAINERS if c.family not in REFUSED], ids=str)
def test_every_container_is_read_alike(read: Callable[..., Any], container: Container) -> None:
    """Categories as a loop finds them. Numbers as of a list; what is no number is refused unless nothing says so."""
    values = container.make(container.entries)
    assert read("categories", values, EPSILONS) == [placed(container.entries)]
    numeric = container.family in ("number", "truth")
    for question in ("count", "variance", "median", "bins", "target"):
        # Of some types nothing can be missing: with the word for it all ask the same.
        seen = read(question, values, EPSILONS, complete=True)
        if numeric:
            assert seen == read(question, [int(entry) for entry in container.entries], EPSILONS, complete=True)
        elif container.untyped:
            assert len(seen) == 1
        else:
            assert seen[0] == "DataError"
            assert f"Values hold {container.family}, not numbers." in seen[1]


@pytest.mark.parametrize("container", [c for c in CONTAINERS if c.family in REFUSED], ids=str)
def test_what_is_not_read_is_refused_by_its_type(read: Callable[..., Any], container: Container) -> None:
    """Where a type says so; in a list such an entry is missing."""
    for question in ASKED:
        seen = read(question, container.make(container.entries), EPSILONS)
        if container.untyped:
            assert seen == read(question, [None] * PEOPLE, EPSILONS)
        else:
            assert seen[0] == "DataError"
            assert "cannot be asked about" in seen[1]


@pytest.mark.parametrize("home", ["Arrow", pytest.param("pandas", marks=pytest.mark.soak)])
def test_a_table_reads_the_same_types_alike(home: str) -> None:
    """One table of all of them: the same categories of the same people, and the same refusals."""
    typed = {str(c): c for c in CONTAINERS if c.name.startswith(home) and not c.untyped}
    if home == "Arrow":  # of whole numbers the widest
        typed = {name: c for name, c in typed.items() if "int" not in name or "int64" in name}
    make = pa.table if home == "Arrow" else pd.DataFrame
    columns = {name: container.make(container.entries) for name, container in typed.items()}
    source = make({"id": range(PEOPLE), **columns})
    with eps.Dataset(source, person="id", preferences=eps.PUBLIC, version="1", ledger="memory", ceiling=1e6) as people:
        for name, container in typed.items():
            check_column(people, name, container)


def check_column(people: eps.Dataset, name: str, container: Container) -> None:
    if container.family in REFUSED:
        with pytest.raises(eps.DataError, match="cannot be asked about"):
            people.histogram(name, categories=[1])
        return
    keys = list(dict.fromkeys(container.entries))
    if container.family in ("date", "time"):
        keys[::2] = [str(key) for key in keys[::2]]
        with pytest.raises(eps.DataError, match=f"holds {container.family}, not numbers"):
            people.mean(name, bounds=(0, 1))
    values = container.make(container.entries)
    expected = [container.entries.count(entry) for entry in dict.fromkeys(container.entries)]
    for answer in (people.histogram(name, categories=keys), eps.histogram(values, eps.PUBLIC, categories=keys)):
        assert list(answer.value.values()) == expected, str(container)


def test_text_that_cannot_be_stored_is_missing_for_its_person_alone() -> None:
    """Arrow and engines hold no such text; what becomes of the column is decided by its type."""
    bytes_of = [pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\xff")]
    halves = pd.Series(["a", "\ud800"], dtype="string[python]")
    for values in (pa.Array.from_buffers(pa.string(), 2, [None, *bytes_of]), halves):
        assert eps.histogram(values, eps.PUBLIC, categories=["a"]).value == {"a": 1}
        with pytest.raises(eps.DataError, match="Values hold text, not numbers"):
            eps.count(values, eps.PUBLIC)
    with eps.Dataset(
        pd.DataFrame({"id": [1, 2], "x": halves}), person="id", preferences=eps.PUBLIC, ledger="memory", ceiling=1e6
    ) as people:
        assert people.histogram("x", categories=["a"]).value == {"a": 1}
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        column = pa.array([b"a", b"\xff"]).cast(kind, safe=False)
        with eps.Dataset(
            pa.table({"id": [1, 2], "x": column}), person="id", preferences=eps.PUBLIC, ledger="memory", ceiling=1e6
        ) as people:
            assert people.histogram("x", categories=["a"]).value == {"a": 1}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_that_no_engine_has_are_missing_for_their_person_alone(unit: str, tmp_path: Path) -> None:
    least = np.iinfo(np.int64).min
    for extreme in (least, least + 1, least // 1000, -least // 1000, -(least + 1)):
        table = pa.table({"id": [1, 2], "x": pa.array([0, extreme]).view(pa.timestamp(unit))})
        sources: list[Any] = [table]
        if unit == "ms":
            parquet.write_table(table, tmp_path / "people.parquet")
            sources.append(tmp_path / "people.parquet")
        for source in sources:
            with eps.Dataset(source, person="id", preferences=eps.PUBLIC, ledger="memory", ceiling=1e6) as people:
                assert people.histogram("x", categories=["1970-01-01"]).value == {"1970-01-01": 1}


def test_nanoseconds_go_to_the_nearest_microsecond_in_lists_as_in_arrays() -> None:
    ticks = [1_499, 1_500, 1_501, 2_499, 999_999_500, -500, -501]
    stamps = [pd.Timestamp(tick) for tick in ticks]
    keys = [stamp.round("us").to_pydatetime() if stamp.nanosecond != 500 else None for stamp in stamps]
    assert readings.read_values(pd.Series(stamps)).tolist() == [readings.read_entry(stamp) for stamp in stamps]
    assert all(key in (None, readings.read_entry(stamp)) for key, stamp in zip(keys, stamps, strict=True))


@pytest.mark.parametrize(
    "values",
    [
        np.array(["a", "b"], np.dtypes.StringDType()), np.array(["a", "b"]).view(np.recarray), pd.Index(["a", "b"]),
        pd.array(["a", 1.0], dtype=object), pl.Series(["a", 1.0], dtype=pl.Object), pa.chunked_array([["a"], ["b"]]),
    ],
)  # fmt: skip
def test_less_common_containers(values: Any) -> None:
    assert eps.histogram(values, eps.PUBLIC, categories=["a"]).value == {"a": 1}


@pytest.mark.parametrize("values", [pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), pa.table({"a": [1]})])
def test_a_frame_is_not_a_list_of_values(values: Any) -> None:
    with pytest.raises(eps.DataError, match="Values come in 2 dimensions"):
        eps.count(values, [1.0])


def test_a_function_of_ones_own_sees_none_for_what_is_missing() -> None:
    seen: list[Any] = []
    for values in (pa.array([1, None]), np.ma.MaskedArray([1, 7], [False, True]), pd.Series([1, None], dtype="Int64")):
        eps.individually(lambda array: seen.append(array.tolist()) or 1.0, values, 1.0, sensitivity=1, step=1)
    assert seen == [[1, None]] * 3


# What one entry of a list is ---------------------------------------------------------------------------------------


class Loud(float):
    """A number that speaks up when it is asked for."""

    def __float__(self) -> float:
        raise RuntimeError("a private value")

    __eq__ = __hash__ = __float__  # type: ignore[assignment]


class NoArray:
    """Something that numpy would ask for an array."""

    def __array__(self, *given: Any, **named: Any) -> Any:
        raise RuntimeError("a private value")

    __len__ = __array__


class NoHash(str):
    __hash__ = None  # type: ignore[assignment]


#: Entries of no type that is read, and a few that are: with each of them others are read as without it.
ODD: list[Any] = [
    None, math.nan, pd.NaT, pd.NA, np.ma.masked, np.datetime64("NaT"), np.datetime64("2020-01-01", "ns"), Spiteful(),
    NoArray(), Loud(2.0), NoHash("a"), Decimal("sNaN"), 10**400, -(2**63), 2**64, np.float32(0.5), np.str_("a"), b"a",
    [1, 2], np.ones(3), {}, ("a", [1]), 1j, object(), "a", "\ud800", True, 0.5, pd.Timestamp("2020-01-01"),
    pd.Timestamp("2020-01-01", tz="UTC"), date(2020, 1, 1), np.timedelta64(1, "s"), float, lambda: None,
]  # fmt: skip


@pytest.mark.parametrize("family", ["number", "time"])
def test_an_odd_entry_changes_nothing_for_others_and_never_raises(read: Callable[..., Any], family: str) -> None:
    entries = ENTRIES[family]
    for question in ("variance", "median", "categories", "classes"):
        expected = read(question, [*entries[:-1], None], EPSILONS)
        for odd in ODD:
            seen = read(question, [*entries[:-1], odd], EPSILONS)
            assert others(seen, PEOPLE - 1) == others(expected, PEOPLE - 1), (question, type(odd))


@pytest.mark.parametrize(
    ("odd", "place"),
    [
        (np.datetime64("2020-01-01", "ns"), 5), (np.datetime64("2020-01-01"), 5), (pd.Timestamp("2020-01-01"), 5),
        (np.datetime64("9999-12-31"), 4), (np.datetime64("12000-01-01", "us"), None), (np.datetime64("NaT"), None),
        (pd.Timestamp("2020-01-01", tz="UTC"), None), (pd.NaT, None), (Decimal(50), 2), (Loud(50.0), 2),
        (NoHash("b"), 0), (np.str_("b"), 0), (True, 3), (np.timedelta64(50, "s"), None), ("50", None), (b"b", None),
    ],
)  # fmt: skip
def test_an_entry_of_a_list_is_read_by_its_own_type(read: Callable[..., Any], odd: Any, place: int | None) -> None:
    seen = read("categories", [odd], [1.0])[0]
    assert seen == [tuple(int(place == k) for k in range(len(CATEGORIES)))]


def test_a_long_word_takes_no_room_for_others() -> None:
    """numpy would take four bytes for every letter of it, for everyone: 4 terabytes, and a message with its length."""
    values: list[Any] = [1.0] * 99_999 + ["x" * 10**7]
    assert eps.sum(values, eps.PUBLIC, bounds=(0, 1)).value == pytest.approx(99_999)
    assert eps.sum(values, eps.PUBLIC, bounds=(0, 1), missing="center").value == pytest.approx(99_999.5)
    assert eps.histogram(values, eps.PUBLIC, categories=[1]).value == {1: 99_999}


@pytest.mark.parametrize("label", [2.0**53, 2**53 + 1, 0.5, math.inf, 10**30, True])
def test_large_numbers_are_the_same_in_every_target(
    read: Callable[..., Any], label: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """numpy compares whole numbers with floats after rounding, Python before."""

    def ask(y: Any, granted: Any, **more: Any) -> Any:
        ones = np.ones((len(y), 1))
        return eps.logistic_regression(ones, y, granted, bounds_X=(0, 1), classes=(label, "a"), **more)

    monkeypatch.setitem(ASKED, "classes", ask)
    for large in ([2**53 + 1, 2**53, 2**53 + 2, 1, 0, 2], [2.0**53, 2.0**53 + 2, 1.0, 0.5, math.inf, -0.0]):
        by_entry = read("classes", np.array(large, object), EPSILONS)
        for make in (list, np.array, pa.array, pd.Series, pl.Series, np.ma.array):
            assert read("classes", make(large), EPSILONS) == by_entry


# Features ------------------------------------------------------------------------------------------------------------

TABLES: dict[str, Callable[[list[list[Any]]], Any]] = {
    "lists": list,
    "tuples": lambda rows: tuple(map(tuple, rows)),
    "objects": lambda rows: np.array(rows, object),
    "floats": lambda rows: np.array(rows, float),
    "masked": lambda rows: np.ma.masked_invalid(np.array(rows, float)),
    "pandas": lambda rows: pd.DataFrame(rows, columns=["a", "b"], dtype="Float64"),
    "pandas, of two types": lambda rows: pd.DataFrame(
        {"a": pd.array([row[0] for row in rows], "Int64"), "b": [row[1] for row in rows]}
    ),
    "polars": lambda rows: pl.DataFrame(rows, schema={"a": pl.Int64, "b": pl.Int64}, orient="row"),
    "Arrow": lambda rows: pa.table({"a": [row[0] for row in rows], "b": pa.array([row[1] for row in rows], pa.int8())}),
}
ROWS = [[1, 0], [2, 5], [3, 4], [7, 1], [9, 9], [2, 2]]


@pytest.mark.parametrize("kind", TABLES)
def test_a_row_that_lacks_something_changes_no_other_row(
    read: Callable[..., Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(X: Any, *given: Any, **more: Any) -> Any:
        return eps.linear_regression(X, NUMBERS, *given, bounds_X=(0, 10), bounds_y=(0, 100), **more)

    monkeypatch.setitem(ASKED, "target", ask)
    everyone = read("target", TABLES[kind](ROWS), EPSILONS)
    assert everyone == read("target", np.array(ROWS), EPSILONS)
    for missing in ([None, 5], [None, None]):
        rows = [*ROWS[:-1], missing]
        assert others(read("target", TABLES[kind](rows), EPSILONS), 5) == others(everyone, 5)
    if kind == "lists":
        for odd in (None, 7, "ab", [NoArray(), Loud(1.0)], [[1], [2]], np.array([1, 2]), [np.ma.masked, "x" * 99]):
            assert others(read("target", [*ROWS[:-1], odd], EPSILONS), 5) == others(everyone, 5)


def test_the_only_row_may_be_missing_and_a_flat_list_is_one_feature() -> None:
    asked: dict[str, Any] = {"bounds_X": (0, 10), "bounds_y": (0, 100)}
    for X in ([[1.0], None], [None, [1.0]], [None, None], [1.0, None], [[], None], [7, "ab"]):
        assert len(eps.linear_regression(X, [1.0, 2.0], [1.0, 1.0], **asked).value) == 2
    rows = readings.read_values([1.0, 2.0, 3.0])
    assert as_matrix(rows.tolist()).tolist() == [[1.0], [2.0], [3.0]]
    with pytest.raises(eps.DataError, match="X comes in 1 dimensions"):
        eps.linear_regression(rows, NUMBERS[:3], [1.0] * 3, **asked)


def test_models_read_the_same_containers() -> None:
    """Features in every container, targets with a mask; scikit-learn's own refusals show no entry."""
    model = PersonalizedLinearRegression(bounds_X=(0, 10), bounds_y=(0, 100))
    fitted = [model.fit(make(ROWS), NUMBERS, epsilons=eps.PUBLIC).coef_.tolist() for make in TABLES.values()]
    assert fitted == fitted[:1] * len(TABLES)
    masked = np.ma.MaskedArray([*NUMBERS[:-1], 7741], [False] * 5 + [True])
    without = model.fit(ROWS, [*NUMBERS[:-1], None], epsilons=eps.PUBLIC).coef_.tolist()
    assert model.fit(ROWS, masked, epsilons=eps.PUBLIC).coef_.tolist() == without
    flat = [[row] for row in NUMBERS]  # a flat list is one feature, as in functions
    one_feature = [model.fit(X, NUMBERS, epsilons=eps.PUBLIC).coef_.tolist() for X in (NUMBERS, flat)]
    assert one_feature[0] == one_feature[1]
    for X in (np.array([7741.0] * 6), np.full((6, 1), 7741j), [[7741.0]] * 5 + [[1, 2]]):
        with pytest.raises((ValueError, eps.DataError)) as caught:
            model.fit(X, NUMBERS, epsilons=1.0)
        assert "7741" not in str(caught.value)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": ["x"] * PEOPLE}, dtype="string"), pl.DataFrame({"a": ["x"] * PEOPLE}),
        pa.table({"a": pa.array([None] * PEOPLE, pa.timestamp("ns"))}), np.array([["x"]] * PEOPLE),
    ],
)  # fmt: skip
def test_features_that_are_no_numbers_are_refused_by_their_type(X: Any) -> None:
    with pytest.raises(eps.DataError, match=r"X holds (text|time), not numbers"):
        eps.linear_regression(X, NUMBERS, EPSILONS, bounds_X=(0, 10), bounds_y=(0, 100))


# The check has teeth -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Arrow timestamp[ns]", "Arrow date64[ms]", "Arrow duration[s]"])
def test_a_conversion_that_looks_for_nulls_is_caught(
    read: Callable[..., Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings, "_of_arrow", planted.read_by_nulls)
    container = next(container for container in CONTAINERS if container.name == name)
    with pytest.raises(AssertionError, match="nulled"):
        check_nobody_else(container, read, ["median", "categories"])

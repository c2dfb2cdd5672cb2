"""What is read of values: one table of containers and types, for arrays and tables alike.

The type that a container declares, a dtype or a type of Arrow, is a public fact. It alone decides whether entries are
read as numbers, truths, text, dates or times, and what is refused: never a value, a null or a length. Lists and arrays
of objects declare nothing. There each entry is read by its own type, which is as private as its value: an entry of a
type that is not listed here is missing, and nothing raises.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.spans import Spans
from epsilons.engines.base import ASKABLE, DATE, NUMBER, OTHER, TEXT, TIME, TRUTH
from epsilons.errors import DataError

#: What declares nothing: entries by their own types.
ANY = "any"
#: numpy's kinds of types. Of times, those in days, weeks, months or years are dates.
NUMPY = {"b": TRUTH, "i": NUMBER, "u": NUMBER, "f": NUMBER, "U": TEXT, "T": TEXT, "M": TIME, "O": ANY}
#: Arrow's types by the names of its own tests, the first that fits. What pandas and polars have becomes one of them.
ARROW = {
    "boolean": TRUTH, "integer": NUMBER, "floating": NUMBER, "decimal256": OTHER, "decimal": NUMBER, "string": TEXT,
    "large_string": TEXT, "string_view": TEXT, "date": DATE, "timestamp": TIME, "null": ANY,
}  # fmt: skip
#: Times outside the years that Python has are missing.
_FIRST, _LAST, _NONE = np.array(["0001-01-01", "9999-12-31T23:59:59.999999", "NaT"], "M8[us]")
#: The first Monday, in days since 1970 began.
_MONDAY = 4


def quietly(read: Callable[[Any], Any], entry: Any) -> Any:
    """None if it raises: a message of its own might carry a value."""
    try:
        return read(entry)
    except Exception:
        return None


def read_values(values: Any) -> NDArray[Any]:
    """Values in the forms that statistics know; `tolist` gives them as Python has them, and None or NaN for none.

    Numbers are an array of numbers, dates one of days, times one of microseconds. What may lack whole numbers, truths
    or text is a masked array. What declares no type is an array of objects.
    """
    kind = getattr(values, "dtype", None)
    if hasattr(values, "to_numpy") and not isinstance(kind, np.dtype) and str(kind).lower() != "object":
        return _of_arrow(as_arrow(values), kind)
    array = quietly(_of_list if is_list(values) else np.asanyarray, values)
    if array is None:
        raise DataError("Values are not a list or array.", rule="One value per person.", suggest="a flat list or array")
    kind = array.dtype.kind
    if kind not in NUMPY:
        raise _unread(array.dtype.type.__name__)
    if kind == "M":
        return _times(np.ma.filled(array, _NONE))
    if kind == "O":
        return np.where(np.ma.getmaskarray(array), cast(Any, None), np.ma.getdata(array))
    if kind == "T":
        return np.ma.MaskedArray(array.astype(object))
    return array if isinstance(array, np.ma.MaskedArray) else np.asarray(array)


def is_list(values: Any) -> bool:
    """Whether it is a sequence that declares no type for its entries."""
    return hasattr(values, "__getitem__") and not (hasattr(values, "__array__") or isinstance(values, str | Mapping))


def _of_list(values: Any) -> NDArray[Any]:
    """By the entries' types, before numpy sees any: it would make room for the longest text, and that for everyone."""
    entries = list(values)
    whole = all(type(entry) is int or type(entry) is bool for entry in entries)
    plain = np.int64 if whole else np.float64 if all(type(entry) is float for entry in entries) else object
    # Whole numbers of more than 64 bits are the same numbers as objects.
    found = None if plain is object else quietly(lambda listed: np.array(listed, plain), entries)
    return np.fromiter(entries, object, len(entries)) if found is None else found


def _of_arrow(column: Any, declared: Any) -> NDArray[Any]:
    """By Arrow's type, with or without nulls."""
    import pyarrow as pa

    kind = getattr(column, "type", None)
    tests = ((getattr(pa.types, f"is_{name}"), family) for name, family in ARROW.items())
    family = next((family for test, family in tests if kind is not None and test(kind)), OTHER)
    if family == OTHER or getattr(kind, "tz", None) is not None:
        raise _unread(str(declared if kind is None else kind))
    if family == TRUTH or pa.types.is_integer(kind):
        parts = column.fill_null(False if family == TRUTH else 0), column.is_null()
        return np.ma.MaskedArray(*(part.to_numpy(zero_copy_only=False) for part in parts))
    array = column.to_numpy(zero_copy_only=False)
    if family in (DATE, TIME):
        return _times(array.astype("M8[D]") if family == DATE else array)
    return np.ma.MaskedArray(array) if family == TEXT else cast(NDArray[Any], array)


def as_arrow(values: Any) -> Any:
    """A column of Arrow, polars or pandas as plain Arrow; None if Arrow has no such type. Untyped columns are text."""
    import pyarrow as pa

    def convert(column: Any) -> Any:
        if not hasattr(column, "to_pylist"):
            column = column.to_arrow() if hasattr(column, "to_arrow") else pa.array(column, from_pandas=True)
        column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        if "string" in str(column.type) and quietly(lambda one: [one.validate(full=True)], column) is None:
            return pa.array((quietly(lambda one: one.as_py(), scalar) for scalar in column), column.type)
        return column

    kind = getattr(getattr(values, "dtype", None), "type", None)
    found = None if kind is np.object_ else quietly(convert, values)
    # Text of pandas may be such that Arrow has it not: one entry must not decide what becomes of the column.
    written = found is None and kind in (str, np.object_)
    return pa.array(map(write_entry, values), pa.large_string()) if written else found


def _unread(kind: str) -> DataError:
    return DataError(f"Values of type {kind} cannot be asked about.", rule=ASKABLE, suggest="values of another type")


def _times(array: NDArray[Any]) -> NDArray[Any]:
    """Days, or microseconds to the nearest, as engines have them; no value overflows or raises."""
    unit = np.datetime_data(array.dtype)[0]
    if unit in ("ns", "ps", "fs", "as"):
        return (array + np.timedelta64(500, "ns")).astype("M8[us]")
    inside = (array >= _FIRST.astype(array.dtype)) & (array <= _LAST.astype(array.dtype))
    return np.where(inside, array, np.datetime64("NaT")).astype("M8[D]" if unit in "YMWD" else "M8[us]")


# Entries that are read by their own types, and public keys -----------------------------------------------------------


def read_entry(entry: Any) -> Any:
    """An entry as plain Python has it; None for what is missing, or of a type that is not read."""
    kind: Any = type(entry)
    return entry if kind is str or kind is float or kind is int else quietly(lambda one: _reader(kind)(one), entry)


def _read_time(moment: datetime) -> datetime | None:
    if moment.tzinfo is not None or moment != moment:  # pandas' NaT is a time, too
        return None
    later = getattr(moment, "nanosecond", 0) >= 500  # those of pandas have them; to the nearest, as in arrays
    return datetime.combine(datetime.date(moment), datetime.time(moment)) + timedelta(microseconds=later)


#: By the first type that an entry's own descends from; of a subclass what its base holds, so that no code of it runs.
_READERS: dict[type, Callable[[Any], Any]] = {
    str: str.__str__, bool: bool, int: int.__int__, float: float.__float__, Fraction: Fraction,
    Decimal: lambda number: None if Decimal.is_nan(number) else Decimal(number),
    datetime: _read_time, date: lambda day: date.fromordinal(date.toordinal(day)),
    tuple: lambda parts: tuple(map(read_entry, tuple.__iter__(parts))),
    np.datetime64: lambda moment: _times(np.array([moment]))[0].item(), np.timedelta64: lambda _: None,
    np.bool: bool, np.integer: int, Real: float, object: lambda _: None,
}  # fmt: skip


@lru_cache(1024)
def _reader(kind: Any) -> Callable[[Any], Any]:
    return next(reader for known, reader in _READERS.items() if issubclass(kind, known))


def as_float(entry: Any) -> float:
    """An entry as a number; NaN for whatever is none."""
    number = read_entry(entry)
    if number is None or isinstance(number, str | date | tuple):
        return math.nan
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def write_entry(entry: Any) -> str | None:
    """An entry of an untyped column of a table: text as it is, plain numbers, truths and dates as they are written."""
    if type(entry) is str:
        return None if any("\ud800" <= c <= "\udfff" for c in entry) else entry
    known = type(entry) in (int, float, bool, Decimal, date) and entry == entry
    return cast(str | None, quietly(str, entry)) if known else None  # not all digits of a large number


def as_date(key: Any) -> date | None:
    """What a key means among dates: a date, or how one is written."""
    if isinstance(key, str):
        key = quietly(date.fromisoformat, key) if len(key) == 10 and key.isascii() else None
    return key if isinstance(key, date) and not isinstance(key, datetime) else None


def as_time(key: Any) -> datetime | None:
    """What a key means among times: a time without a zone, how one is written, or the beginning of a date."""
    if isinstance(key, str):
        key = quietly(datetime.fromisoformat, key) if 10 <= len(key) <= 26 and key.isascii() else None
    elif isinstance(key, date) and not isinstance(key, datetime):
        key = datetime(key.year, key.month, key.day)
    return key if isinstance(key, datetime) and key.tzinfo is None else None


def find_places(array: NDArray[Any], keys: Sequence[Hashable]) -> NDArray[np.int64]:
    """Each entry's place among public keys, -1 for none. A text may be the text, a date or a time."""
    places: dict[Any, int] = {key: place for place, key in enumerate(keys)}
    for meaning in (as_date, as_time):
        for place, key in enumerate(keys):
            places.setdefault(meaning(key), place)
    places[None] = -1
    entries = map(read_entry, array) if declares_nothing(array) else array.tolist()
    return np.fromiter((places.get(entry, -1) for entry in entries), np.int64, len(array))


def find_spans(chunk: NDArray[Any], spans: Spans) -> NDArray[np.int64]:
    """Each entry's period or part of a calendar, -1 for none."""
    family = {"M8[D]": DATE, "M8[us]": TIME}.get(chunk.dtype.str[1:])
    moments = chunk
    if declares_nothing(chunk):
        family, entries = TIME, (read_entry(entry) for entry in chunk)
        found = (np.datetime64(entry if isinstance(entry, date) else "NaT", "us") for entry in entries)
        moments = np.fromiter(found, "M8[us]", len(chunk))
    if family is None or (spans.part == "hours" and family == DATE):
        unfit = "dates or times" if family is None else "times"
        raise DataError(f"Values hold no {unfit}.", rule="A histogram by the calendar is of dates or times.")
    if spans.part:
        unit, round_, first = ("M8[h]", 24, 0) if spans.part == "hours" else ("M8[D]", 7, _MONDAY)
        cell = (moments.astype(unit).astype(np.int64) - first) % round_
    else:
        edges = [as_date(edge) if family == DATE else as_time(edge) for edge in spans.edges]
        if None in edges:
            raise DataError(f"An edge is not a {family}.", rule="Edges are of the kind of the values.")
        cell = np.searchsorted(np.array(edges, moments.dtype), moments, side="right").astype(np.int64) - 1
        cell[cell >= len(spans.labels)] = -1
    cell[np.isnat(moments)] = -1
    return cell


def declares_nothing(array: NDArray[Any]) -> bool:
    """Whether values that were read have each a type of their own."""
    return array.dtype.kind == "O" and not isinstance(array, np.ma.MaskedArray)

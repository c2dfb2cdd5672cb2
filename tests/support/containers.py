"""Every container and type that values may come in: how it is made of plain entries, and what is read of it.

None stands for a missing entry wherever a type has room for one. A type that has none can only lose people.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

Make = Callable[[list[Any]], Any]

NUMBERS = [1, 0, 50, 2, 99, 1]
TRUTHS = [True, False, True, True, False, False]
WORDS = ["a", "b", "a", "2020-01-01", "an example of a longer word", "c"]
DATES = [date(2020, 1, 1), date(1969, 7, 20), date(2020, 1, 1), date(1, 1, 1), date(9999, 12, 31), date(2021, 6, 1)]
#: Within what 64 bits of nanoseconds hold.
TIMES = [
    datetime(2020, 1, 1), datetime(1969, 7, 20, 20, 17, 40), datetime(2020, 1, 1), datetime(2020, 1, 1, 12),
    datetime(1700, 3, 1), datetime(2200, 12, 31, 23, 59, 59),
]  # fmt: skip
ENTRIES: dict[str, list[Any]] = {
    "number": NUMBERS, "truth": TRUTHS, "text": WORDS, "date": DATES, "time": TIMES,
    "zoned": [moment.replace(tzinfo=UTC) for moment in TIMES], "clock": [moment.time() for moment in TIMES],
    "duration": [timedelta(hours=number) for number in NUMBERS], "bytes": [word.encode() for word in WORDS],
    "list": [[number] for number in NUMBERS], "complex": [number * 1j for number in NUMBERS],
}  # fmt: skip
#: What no question is about; the type says so, whatever is in it.
REFUSED = ("zoned", "clock", "duration", "bytes", "list", "complex")


@dataclass(frozen=True)
class Container:
    """How values of a type come, what they are, and whether there is room for a missing one."""

    name: str
    family: str
    make: Make
    holes: bool = True
    #: Whether entries are read by their own types, so that no type is refused.
    untyped: bool = False

    @property
    def entries(self) -> list[Any]:
        return ENTRIES[self.family]

    def __str__(self) -> str:
        return f"{self.name}, {self.family}"


def _objects(entries: list[Any]) -> Any:
    array = np.empty(len(entries), object)
    for place, entry in enumerate(entries):
        array[place] = entry
    return array


def _numpy(kind: str, nothing: Any, entries: list[Any]) -> Any:
    return np.array([nothing if entry is None else entry for entry in entries], kind)


def _masked(kind: str, entries: list[Any]) -> Any:
    filled = [next(e for e in entries if e is not None) if entry is None else entry for entry in entries]
    return np.ma.MaskedArray(np.array(filled, kind), [entry is None for entry in entries])


def _arrow(kind: pa.DataType, entries: list[Any]) -> Any:
    if pa.types.is_date64(kind):
        return pa.array(entries, pa.date32()).cast(kind)
    exact = Decimal if pa.types.is_decimal(kind) else np.float16 if kind == pa.float16() else lambda entry: entry
    return pa.array([None if entry is None else exact(entry) for entry in entries], kind)


def _chunked(kind: pa.DataType, entries: list[Any]) -> Any:
    return pa.chunked_array([_arrow(kind, entries[:2]), _arrow(kind, []), _arrow(kind, entries[2:])], kind)


def _dictionary(kind: pa.DataType, entries: list[Any]) -> Any:
    return _arrow(kind, entries).dictionary_encode()


def _pandas(kind: Any, entries: list[Any]) -> Any:
    return pd.Series(entries, dtype=kind)


def _category(entries: list[Any]) -> Any:
    """With the categories of everybody: they are part of the type."""
    known = next(known for known in ENTRIES.values() if all(e is None or e in known for e in entries))
    return pd.Series(pd.Categorical(entries, categories=list(dict.fromkeys(known))))


def _polars(kind: Any, entries: list[Any]) -> Any:
    plain = [float(e) if isinstance(e, int) and kind in (pl.Float32, pl.Float64) else e for e in entries]
    return pl.Series(plain, dtype=kind)


WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "float32", "float64")
UNITS = ("s", "ms", "us", "ns")
_ARROW: dict[str, list[pa.DataType]] = {
    "number": [
        *(getattr(pa, kind)() for kind in (*WHOLE, *FLOATS)), pa.decimal32(6, 2), pa.decimal64(12, 2),
        pa.decimal128(30, 2),
    ],
    "truth": [pa.bool_()],
    "text": [pa.string(), pa.large_string(), pa.string_view()],
    "date": [pa.date32(), pa.date64()],
    "time": [pa.timestamp(unit) for unit in UNITS],
    "zoned": [pa.timestamp(unit, "Europe/Berlin") for unit in UNITS],
    "clock": [pa.time32("s"), pa.time64("us"), pa.time64("ns")],
    "duration": [pa.duration(unit) for unit in UNITS],
    "bytes": [pa.binary(), pa.large_binary(), pa.binary_view()],
    "list": [pa.list_(pa.int64())],
}  # fmt: skip
_PANDAS: dict[str, list[Any]] = {
    "number": ["Int64", "UInt8", "Float64", "Float32", pd.ArrowDtype(pa.int64()), pd.ArrowDtype(pa.decimal128(9, 2))],
    "truth": ["boolean", pd.ArrowDtype(pa.bool_())],
    "text": ["string", "string[python]", "str", pd.ArrowDtype(pa.string())],
    "date": [pd.ArrowDtype(pa.date32())],
    "time": [*(f"datetime64[{unit}]" for unit in UNITS), *(pd.ArrowDtype(pa.timestamp(unit)) for unit in UNITS)],
    "zoned": [*(f"datetime64[{unit}, UTC]" for unit in UNITS), pd.ArrowDtype(pa.timestamp("ns", "UTC"))],
    "duration": ["timedelta64[ns]", pd.ArrowDtype(pa.duration("ns"))],
}
_POLARS: dict[str, list[Any]] = {
    "number": [pl.Int64, pl.UInt8, pl.Float64, pl.Float32, pl.Decimal(9, 2)],
    "truth": [pl.Boolean],
    "text": [pl.String, pl.Categorical, pl.Enum(sorted(set(WORDS)))],
    "date": [pl.Date],
    "time": [pl.Datetime(unit) for unit in ("ms", "us", "ns")],
    "zoned": [pl.Datetime("us", "UTC")],
    "clock": [pl.Time],
    "duration": [pl.Duration("us")],
    "bytes": [pl.Binary],
    "list": [pl.List(pl.Int64)],
}
_NUMPY: dict[str, dict[str, Any]] = {
    "number": {**dict.fromkeys(WHOLE), **dict.fromkeys((*FLOATS, "longdouble", ">f8"), math.nan)},
    "truth": {"bool": None},
    "text": {"U": None},
    "date": {"M8[D]": "NaT"},
    "time": {f"M8[{unit}]": "NaT" for unit in UNITS},
    "duration": {f"m8[{unit}]": "NaT" for unit in UNITS},
    "bytes": {"S": None},
    "complex": {"complex128": math.nan},
}
_SEQUENCES: dict[str, Make] = {"list": list, "tuple": tuple, "deque": deque, "objects": _objects}

CONTAINERS: list[Container] = [
    *(Container(f"Arrow {kind}", f, partial(_arrow, kind)) for f, kinds in _ARROW.items() for kind in kinds),
    *(Container(f"Arrow {k} in chunks", f, partial(_chunked, k)) for f, kinds in _ARROW.items() for k in kinds[-1:]),
    *(
        Container(f"Arrow dictionary of {_ARROW[f][0]}", f, partial(_dictionary, _ARROW[f][0]))
        for f in ("number", "text", "date", "time")
    ),
    *(Container(f"pandas {kind}", f, partial(_pandas, kind)) for f, kinds in _PANDAS.items() for kind in kinds),
    *(Container("pandas category", f, _category) for f in ("number", "text", "date", "time")),
    *(Container(f"polars {kind}"[:30], f, partial(_polars, kind)) for f, kinds in _POLARS.items() for kind in kinds),
    *(
        Container(f"numpy {kind}", f, partial(_numpy, kind, nothing), nothing is not None)
        for f, kinds in _NUMPY.items()
        for kind, nothing in kinds.items()
    ),
    *(Container(f"masked {kind}", f, partial(_masked, kind)) for f, kinds in _NUMPY.items() for kind in kinds),
    *(
        Container(name, family, make, untyped=True)
        for name, make in _SEQUENCES.items()
        for family in ENTRIES
        if name == "list" or family in ("number", "text", "date", "time", "zoned")
    ),
    Container("pandas object", "time", partial(_pandas, object), untyped=True),
    Container("masked objects", "date", partial(_masked, "O"), untyped=True),
]

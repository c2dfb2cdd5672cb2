"""Sheets of `.xlsb`, a row of binary records: rows have their number first, and cells that of their column.

A record is its kind and its length, in groups of seven bits, and so many bytes (MS-XLSB 2.1.4).
"""

import struct
from collections.abc import Callable, Iterator
from typing import IO

from epsilons.engines.far_places import Extent

_ROW, _BLANK, _CELLS, _END = 0, 1, range(2, 12), 0x92
_NUMBER = struct.Struct("<I")


def has_far(file: IO[bytes]) -> bool:
    """Whether cells are few for the rectangle around them."""
    row, rows, columns, cells = 0, 0, 0, 0
    for kind, data in _records(file):
        if kind == _ROW:
            row = _first(data)
        elif kind in _CELLS:
            rows, columns, cells = max(rows, row + 1), max(columns, _first(data) + 1), cells + 1
    return Extent(rows, columns, cells).is_far


def write(opened: Callable[[], IO[bytes]], out: IO[bytes]) -> None:
    """Filled rows and columns get the numbers from 0 on; what is no cell stays as it is."""
    used, rows, row, cells = set[int](), set[int](), 0, 0
    with opened() as file:
        for kind, data in _records(file):
            row = _first(data) if kind == _ROW else row
            if kind in _CELLS:
                used.add(_first(data))
                rows.add(row)
                cells += 1
    Extent(len(rows), len(used), cells).check()
    places, numbers = ({one: place for place, one in enumerate(sorted(found))} for found in (used, rows))
    inside = True
    with opened() as file:
        for kind, data in _records(file):
            if kind == _ROW and inside:
                row = _first(data)
                if row in numbers:
                    _put(out, kind, _NUMBER.pack(numbers[row]) + data[4:])
            elif kind in _CELLS and inside:
                _put(out, kind, _NUMBER.pack(places[_first(data)]) + data[4:])
            elif kind != _BLANK or not inside:
                _put(out, kind, data)
            inside = inside and kind != _END


def _first(data: bytes) -> int:
    return int(_NUMBER.unpack_from(data)[0])


def _records(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    while start := file.read(1):
        kind = start[0]
        if kind & 0x80:
            kind = (kind & 0x7F) | (file.read(1)[0] & 0x7F) << 7
        length = shift = 0
        while True:
            part = file.read(1)[0]
            length |= (part & 0x7F) << shift
            shift += 7
            if part < 0x80 or shift > 21:
                break
        yield kind, file.read(length)


def _put(out: IO[bytes], kind: int, data: bytes) -> None:
    made = bytearray([kind] if kind < 0x80 else [kind & 0x7F | 0x80, kind >> 7])
    length = len(data)
    while length >= 0x80:
        made.append(length & 0x7F | 0x80)
        length >>= 7
    made.append(length)
    out.write(bytes(made) + data)

"""CSV and JSON lines, copied for the engine in such a form that no row decides what becomes of another.

An engine's own reader refuses a whole CSV file for one row that is no good, or takes the rows after a stray quote for
one cell. Here every row is read, and written again in one form: as many cells as there are columns, in UTF-8, quotes
doubled. A row is what is quoted throughout as it should be, over several lines if need be; else it is one line, and a
quote in it is a letter. Missing cells are null, cells too many are left out. Null is also what is not in the file's
encoding, and what does not fit into a row of `_MOST` bytes. How often that happened is counted, for the steward alone.

Of JSON lines, engines read each by itself; a line that is no object is a row of nulls. Only the longest are left out.
"""

import mmap
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from epsilons.engines.dialects import PLAIN, SEP_LINE, Dialect
from epsilons.engines.readings import quietly
from epsilons.storage.files import open_private

_BOM = b"\xef\xbb\xbf"
#: Engines refuse lines of two million bytes in CSV, and of 2^24 in JSON.
_MOST, _MOST_JSON = 1_900_000, 16_000_000
_CHUNK = 1 << 20
#: So many cells beyond the last column are looked at: separators at the end of a line are no fault of it.
_BEYOND = 64
_END = rb"(?:\r?\n|\Z)"
_LINE = re.compile(rb"[^\n]*+(?:\n|\Z)")
_SHORT_LINES = re.compile(rb"(?:[^\n]{0,%d}+(?:\n|\Z)){1,1024}+" % _MOST_JSON)

#: What is counted of a file's lines.
RAGGED, QUOTES = "lines with cells too many or too few", "lines with quotes out of place"
UNREADABLE = "cells not in the encoding, or too long"


class _Shape:
    """What rows look like whose cells have this separator between them."""

    def __init__(self, separator: bytes) -> None:
        self.separator, apart = separator, re.escape(separator)
        shapes = [rb'(?:"(?:[^"%b]++|"")*+"|[^"%b\r\n]*+)' % (ends, apart) for ends in (b"", rb"\r\n")]
        self._cells, self._apart = shapes, apart
        self._well_quoted = re.compile(shapes[0] + rb"(?:" + apart + shapes[0] + rb")*+" + _END)
        self._part = re.compile(rb'(?:\A|%b)(?:"((?:[^"]++|"")*+)"|([^%b]*+))(?=%b|\Z)' % (apart, apart, apart))

    def many(self, width: int) -> list[re.Pattern[bytes]]:
        """Up to a thousand rows of so many cells, as they should be: without line ends in quotes, and with them."""
        good, flat = (
            re.compile(rb"(?:(?:%b%b){%d}%b%b){1,1024}+" % (cell, self._apart, width - 1, cell, _END))
            for cell in self._cells
        )
        return [flat, good]

    def faulty(self, width: int) -> re.Pattern[bytes]:
        """Up to a thousand lines, each with cells too few or too many, or with one quote that encloses nothing."""
        bare, cell = rb'[^"\r\n]*+', self._cells[1]
        right = rb"(?:%b%b){%d}%b%b" % (cell, self._apart, width - 1, cell, _END)
        ragged = rb"(?!%b)%b\r?\n" % (right, bare)
        stray = rb'(?!%b)%b"%b\r?\n' % (self._well_quoted.pattern, bare, bare)
        return re.compile(rb"(?:%b|%b){1,1024}+" % (ragged, stray))

    def find_cells(self, data: Any, at: int, most: int | None = None) -> tuple[list[bytes], int, bool]:
        """The cells of the row that begins here, where the next one begins, and whether quotes are in place."""
        found = self._well_quoted.match(data, at)
        row = found or _match(_LINE, data, at)
        parts = islice(self._part.finditer(row[0].removesuffix(b"\n").removesuffix(b"\r")), most)
        cells = [cell[2] if cell[1] is None else cell[1].replace(b'""', b'"') for cell in parts]
        return cells, row.end(), found is not None or b'"' not in row[0]


def read_header(path: str, dialect: Dialect = PLAIN) -> tuple[str, ...]:
    """The names in the first row of a CSV file; cells without a name at its end are no columns.

    A return that ends no line is in no name.
    """
    with open(path, "rb") as file:
        data = file.read(_MOST)  # no header is longer; a file that others cut short must not be mapped
    data = data if dialect.encoding == "utf-8" else dialect.recoder()(data)
    cells = _Shape(dialect.separator.encode()).find_cells(data, _find_start(data))[0]
    while cells and not cells[-1]:
        cells.pop()
    names = tuple(cell.decode() for cell in cells)
    return () if any("\r" in name for name in names) else names


def _find_start(data: Any) -> int:
    """Where the names of columns begin: after a mark of UTF-8, and after a line that says the separator."""
    start = 3 if data[:3] == _BOM else 0
    said = SEP_LINE.match(data, start)
    return said.end() if said else start


def copy_lines(
    kind: str, paths: Iterable[str], names: tuple[str, ...], folder: str, dialect: Dialect, faults: Counter[str]
) -> str:
    """One file for all the rows. Each source is copied as it stands first, since it may change meanwhile.

    What of its lines is no good is counted in `faults`.
    """
    raw, path = os.path.join(folder, "raw"), os.path.join(folder, f"rows.{kind}")
    shape, width = _Shape(dialect.separator.encode()), len(names)
    with open(path, "xb", opener=open_private) as rows:
        rows.write(write_row([name.encode() for name in names], width, shape.separator) if kind == "csv" else b"")
        for source in paths:
            with open(source, "rb") as theirs, open(raw, "w+b", opener=open_private) as ours:
                _copy_bytes(theirs, ours, dialect)
                ours.flush()
                data = _map(ours)
                if kind == "csv":
                    _copy_csv(data, shape.find_cells(data, _find_start(data))[1], width, shape, rows.write, faults)
                else:
                    _copy_json(data, 3 if data[:3] == _BOM else 0, rows.write)
            os.remove(raw)
    return path


def _copy_bytes(theirs: Any, ours: Any, dialect: Dialect) -> None:
    """In UTF-8, whatever it was; a source is read once, from its beginning to its end."""
    if dialect.encoding == "utf-8":
        shutil.copyfileobj(theirs, ours, _CHUNK)
        return
    recode = dialect.recoder()
    while chunk := theirs.read(_CHUNK):
        ours.write(recode(chunk))
    ours.write(recode(b"", True))


def _map(file: Any) -> Any:
    """A file of our own as bytes without reading it all; an empty one cannot be mapped."""
    full = os.fstat(file.fileno()).st_size > 0
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if full else b""


def _copy_csv(
    data: Any, at: int, width: int, shape: _Shape, write: Callable[[bytes], Any], faults: Counter[str]
) -> None:
    """Rows that are as they should be are taken a thousand at a time, and so are lines with the usual faults.

    The others are taken one by one, which takes some microseconds each: a file may be full of lines that are no good.
    """
    (flat, good), faulty = shape.many(width), shape.faulty(width)
    while at < len(data):
        found = flat.match(data, at) or good.match(data, at) or faulty.match(data, at)
        end = found.end() if found else at + 1
        rows = data[at:end] if end - at <= _MOST else b""
        # A return before the end of a line is not part of the row, unless it stands between quotes.
        if found and rows and found.re is faulty:
            if len(rows) <= _MOST - 3 * width and _is_text(rows):
                write(_mend(rows.replace(b"\r", b"").splitlines(), width, shape.separator, faults))
                at = end
        elif found and rows and _is_text(rows) and (b"\r" not in rows or found.re is flat):
            write(rows.replace(b"\r", b"") + b"\n" * (not rows.endswith(b"\n")))
            at = end
        while at < end:
            cells, at, in_place = shape.find_cells(data, at, width + _BEYOND)
            if width == 1 or cells != [b""]:
                faults[RAGGED] += len(cells) < width or any(cells[width:])
                faults[QUOTES] += not in_place
                write(write_row(cells[:width], width, shape.separator, faults))


def _mend(lines: list[bytes], width: int, separator: bytes, faults: Counter[str]) -> bytes:
    """Rows in the form that the engine reads, of lines in which a quote is a letter."""
    written, apart = [], b'"%b"' % separator
    for line in filter(None, lines) if width > 1 else lines:
        cells = line.replace(b'"', b'""').split(separator, width + _BEYOND)[: width + _BEYOND]
        faults[RAGGED] += len(cells) < width or any(cells[width:])
        faults[QUOTES] += b'"' in line
        written.append(b'"%b"\n' % apart.join(cells[:width] + [b""] * (width - len(cells))))
    return b"".join(written)


def _copy_json(data: Any, at: int, write: Callable[[bytes], Any]) -> None:
    while at < len(data):
        found = _SHORT_LINES.match(data, at)
        write(found[0] if found else b"")
        at = (found or _match(_LINE, data, at)).end()
    write(b"\n")


def _match(pattern: re.Pattern[bytes], data: Any, at: int) -> re.Match[bytes]:
    found = pattern.match(data, at)
    assert found is not None
    return found


def write_row(cells: list[bytes], width: int, separator: bytes, faults: Counter[str] | None = None) -> bytes:
    """A row in the form that the engine reads."""
    cells = [cell.replace(b'"', b'""') for cell in cells] + [b""] * (width - len(cells))
    room = _MOST - 3 * width
    for place, cell in enumerate(cells):
        if len(cell) > room or not _is_text(cell):
            cells[place] = b""
            if faults is not None:
                faults[UNREADABLE] += 1
        room -= len(cells[place])
    return b'"%b"\n' % (b'"%b"' % separator).join(cells)


def _is_text(some: bytes) -> bool:
    return quietly(bytes.decode, some) is not None

"""CSV and JSON lines, copied for the engine in such a form that no row decides what becomes of another.

An engine's own reader refuses a whole CSV file for one row that is no good, or takes the rows after a stray quote for
one cell. Here every row is read, and written again in one dialect: as many cells as there are columns, in UTF-8, quotes
doubled. A row is what is quoted throughout as it should be, over several lines if need be; else it is one line, and a
quote in it is a letter. Missing cells are null, cells too many are left out. Null is also what is not UTF-8, and what
does not fit into a row of `_MOST` bytes.

Of JSON lines, engines read each by itself; a line that is no object is a row of nulls. Only the longest are left out.
"""

import mmap
import os
import re
import shutil
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from epsilons.engines.readings import quietly
from epsilons.storage.files import open_private

_BOM = b"\xef\xbb\xbf"
#: Engines refuse lines of two million bytes in CSV, and of 2^24 in JSON.
_MOST, _MOST_JSON = 1_900_000, 16_000_000
_CELL, _FLAT = (rb'(?:"(?:[^"%b]++|"")*+"|[^",\r\n]*+)' % ends for ends in (b"", rb"\r\n"))
_END = rb"(?:\r?\n|\Z)"
_WELL_QUOTED = re.compile(_CELL + rb"(?:," + _CELL + rb")*+" + _END)
_LINE = re.compile(rb"[^\n]*+(?:\n|\Z)")
_SHORT_LINES = re.compile(rb"(?:[^\n]{0,%d}+(?:\n|\Z)){1,1024}+" % _MOST_JSON)
_PART = re.compile(rb'(?:\A|,)(?:"((?:[^"]++|"")*+)"|([^,]*+))(?=,|\Z)')


def read_header(path: str) -> tuple[str, ...]:
    """The names in the first row of a CSV file; a return that ends no line is in no name."""
    with open(path, "rb") as file:
        data = _map(file)
        names = tuple(cell.decode() for cell in _find_cells(data, 3 if data[:3] == _BOM else 0)[0])
    return () if any("\r" in name for name in names) else names


def copy_lines(kind: str, paths: Iterable[str], names: tuple[str, ...], folder: str) -> str:
    """One file for all the rows. Each source is copied as it stands first, since it may change meanwhile."""
    raw, path = os.path.join(folder, "raw"), os.path.join(folder, f"rows.{kind}")
    with open(path, "xb", opener=open_private) as rows:
        rows.write(_write_row([name.encode() for name in names], len(names)) if kind == "csv" else b"")
        for source in paths:
            with open(source, "rb") as theirs, open(raw, "w+b", opener=open_private) as ours:
                shutil.copyfileobj(theirs, ours, 1 << 20)
                ours.flush()
                data = _map(ours)
                start = 3 if data[:3] == _BOM else 0
                if kind == "csv":
                    _copy_csv(data, _find_cells(data, start)[1], len(names), rows.write)
                else:
                    _copy_json(data, start, rows.write)
            os.remove(raw)
    return path


def _map(file: Any) -> Any:
    """A file as bytes without reading it all; an empty one cannot be mapped."""
    full = os.fstat(file.fileno()).st_size > 0
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if full else b""


def _copy_csv(data: Any, at: int, width: int, write: Callable[[bytes], Any]) -> None:
    """Rows that are as they should be are taken a thousand at a time, the others one by one."""
    many = rb"(?:(?:%b,){%d}%b%b){1,1024}+"
    flat, good = (re.compile(many % (cell, width - 1, cell, _END)) for cell in (_FLAT, _CELL))
    while at < len(data):
        found = flat.match(data, at) or good.match(data, at)
        end = found.end() if found else at + 1
        rows = data[at:end] if end - at <= _MOST else b""
        # A return before the end of a line is not part of the row, unless it stands between quotes.
        if found and rows and _is_text(rows) and (b"\r" not in rows or found.re is flat):
            write(rows.replace(b"\r", b"") + b"\n" * (not rows.endswith(b"\n")))
            at = end
        while at < end:
            cells, at = _find_cells(data, at, width)
            if width == 1 or cells != [b""]:
                write(_write_row(cells, width))


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


def _find_cells(data: Any, at: int, most: int | None = None) -> tuple[list[bytes], int]:
    """The cells of the row that begins here, and where the next one begins."""
    row = _WELL_QUOTED.match(data, at) or _match(_LINE, data, at)
    found = islice(_PART.finditer(row[0].removesuffix(b"\n").removesuffix(b"\r")), most)
    return [cell[2] if cell[1] is None else cell[1].replace(b'""', b'"') for cell in found], row.end()


def _write_row(cells: list[bytes], width: int) -> bytes:
    cells = [cell.replace(b'"', b'""') for cell in cells] + [b""] * (width - len(cells))
    room = _MOST - 3 * width
    for place, cell in enumerate(cells):
        if len(cell) > room or not _is_text(cell):
            cells[place] = b""
        room -= len(cells[place])
    return b'"%b"\n' % b'","'.join(cells)


def _is_text(some: bytes) -> bool:
    return quietly(bytes.decode, some) is not None

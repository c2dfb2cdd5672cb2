"""Cells of a sheet far from all the others: what is empty between them is left out before anybody makes room for it.

The reader of workbooks makes room for the whole rectangle that holds all cells. A note in the last row and column is
enough for half a terabyte of nothing, and the process ends there. So sheets are looked through first; one that is
nearly all empty is handed over with its filled rows and columns side by side. `.xlsx` and `.xlsm` are read here,
`.xlsb` and `.ods` by `far_records` and `far_tables`. A sheet of `.xls` ends at 65,536 rows and 256 columns.
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple
from xml.etree import ElementTree

from epsilons.engines import far_records, far_tables
from epsilons.engines.far_places import Extent

_PLACE = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{0,3})([0-9]{1,7})["']""")
_CHUNK, _LONGEST = 1 << 20, 64


class _Kind(NamedTuple):
    """Which parts of a package hold sheets; whether one has far cells; how one is written without empty places."""

    part: re.Pattern[str]
    has_far: Callable[[IO[bytes]], bool]
    write: Callable[[Callable[[], IO[bytes]], IO[bytes]], None]


def draw_together(path: str) -> str | IO[bytes]:
    """The workbook as it stands, unless a sheet is nearly all empty: then one where such sheets have no empty places.

    Other kinds of files are for the reader to judge.
    """
    if not zipfile.is_zipfile(path):
        return path
    with zipfile.ZipFile(path) as package:
        far = {part.filename: kind for part in package.infolist() if (kind := _far_kind(package, part)) is not None}
        return _rewrite(package, far) if far else path


def _far_kind(package: zipfile.ZipFile, part: zipfile.ZipInfo) -> _Kind | None:
    """What kind of sheet a part of the package is, if it has far cells."""
    for kind in _KINDS:
        if kind.part.fullmatch(part.filename):
            with package.open(part) as file:
                return kind if kind.has_far(file) else None
    return None


def _rewrite(package: zipfile.ZipFile, far: dict[str, _Kind]) -> IO[bytes]:
    """The package with these sheets drawn together; all else of it, formats and shared text, as it is."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        for part in package.infolist():
            with out.open(part.filename, "w") as ours:
                if kind := far.get(part.filename):
                    kind.write(lambda part=part: package.open(part), ours)  # type: ignore[misc]
                    continue
                with package.open(part) as theirs:
                    while chunk := theirs.read(_CHUNK):
                        ours.write(chunk)
    made.seek(0)
    return made


def _has_far(file: IO[bytes]) -> bool:
    """Whether cells are few for the rectangle around them, by where they say they are."""
    cells, last, columns, tail = 0, 1, {b"A"}, b""
    while chunk := file.read(_CHUNK):
        places = _PLACE.findall(tail + chunk)
        columns.update(letters for letters, _ in places)
        last = max(last, max((int(row) for _, row in places), default=1))
        cells, tail = cells + len(places), chunk[-_LONGEST:]
    return Extent(last, max(_column(letters.decode()) for letters in columns), cells).is_far


def _write(opened: Callable[[], IO[bytes]], out: IO[bytes]) -> None:
    used, rows, cells = set[int](), 0, 0
    with opened() as file:
        for row in _filled_rows(file):
            used.update(column for column, _ in row)
            rows, cells = rows + 1, cells + len(row)
    Extent(rows, len(used), cells).check()
    places = {column: _letters(place) for place, column in enumerate(sorted(used), 1)}
    out.write(b"<worksheet><sheetData>")
    with opened() as file:
        for number, row in enumerate(_filled_rows(file), 1):
            out.write(f'<row r="{number}">'.encode())
            for column, cell in row:
                cell.set("r", f"{places[column]}{number}")
                out.write(ElementTree.tostring(cell))
            out.write(b"</row>")
    out.write(b"</sheetData></worksheet>")


def _filled_rows(file: IO[bytes]) -> Iterator[list[tuple[int, Any]]]:
    """(column, cell) of the cells with something in them, for every row that has any."""
    top: Any = None
    for event, found in ElementTree.iterparse(file, ("start", "end")):
        found.tag = found.tag.rpartition("}")[2]
        if event == "start":
            top = found if top is None or found.tag == "sheetData" else top
        elif found.tag == "row":
            column, row = 0, []
            for cell in found:
                named = cell.get("r", "").rstrip("0123456789")
                column = _column(named) if named else column + 1
                if any(inner.tag in ("v", "is") for inner in cell):
                    row.append((column, cell))
            if row:
                yield row
            top.clear()


def _column(letters: str) -> int:
    place = 0
    for letter in letters.upper():
        place = 26 * place + ord(letter) - 64
    return place


def _letters(place: int) -> str:
    letters = ""
    while place:
        place, last = divmod(place - 1, 26)
        letters = chr(65 + last) + letters
    return letters


_KINDS = (
    _Kind(re.compile(r"(?:.*/)?worksheets/[^/]+\.xml", re.IGNORECASE), _has_far, _write),
    _Kind(re.compile(r"(?:.*/)?worksheets/[^/]+\.bin", re.IGNORECASE), far_records.has_far, far_records.write),
    _Kind(re.compile(r"content\.xml"), far_tables.has_far, far_tables.write),
)

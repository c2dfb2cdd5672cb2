"""Cells of a sheet far from all the others: what is empty between them is left out before anybody makes room for it.

The reader of workbooks makes room for the whole rectangle that holds all cells. A note in the last row and column is
enough for half a terabyte of nothing, and the process ends there. So sheets are looked through first; one that is
nearly all empty is handed over with its filled rows and columns side by side. `.xlsx` and `.xlsm` are such files.
"""

import io
import re
import zipfile
from collections.abc import Iterator
from typing import IO, Any
from xml.etree import ElementTree

_SHEET = re.compile(r"(?:.*/)?worksheets/[^/]+\.xml", re.IGNORECASE)
_PLACE = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{0,3})([0-9]{1,7})["']""")
_CHUNK, _LONGEST = 1 << 20, 64
#: A sheet may have so many places for each of its cells, and so many more.
_PLACES, _FREE = 8, 1 << 20


def draw_together(path: str) -> str | IO[bytes]:
    """The workbook as it stands, unless a sheet is nearly all empty: then one where such sheets have no empty places.

    Other kinds of files are for the reader to judge.
    """
    if not zipfile.is_zipfile(path):
        return path
    with zipfile.ZipFile(path) as package:
        far = [part.filename for part in package.infolist() if _is_far(package, part)]
        return _rewrite(package, far) if far else path


def _is_far(package: zipfile.ZipFile, part: zipfile.ZipInfo) -> bool:
    """Whether cells are few for the rectangle around them, by where they say they are."""
    if not _SHEET.fullmatch(part.filename):
        return False
    cells, last, columns, tail = 0, 1, {b"A"}, b""
    with package.open(part) as file:
        while chunk := file.read(_CHUNK):
            places = _PLACE.findall(tail + chunk)
            columns.update(letters for letters, _ in places)
            last = max(last, max((int(row) for _, row in places), default=1))
            cells, tail = cells + len(places), chunk[-_LONGEST:]
    return last * max(_column(letters.decode()) for letters in columns) > _PLACES * cells + _FREE


def _rewrite(package: zipfile.ZipFile, far: list[str]) -> IO[bytes]:
    """The package with these sheets drawn together; all else of it, formats and shared text, as it is."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        for part in package.infolist():
            with package.open(part) as theirs, out.open(part.filename, "w") as ours:
                if part.filename in far:
                    _rewrite_sheet(package, part, ours)
                else:
                    while chunk := theirs.read(_CHUNK):
                        ours.write(chunk)
    made.seek(0)
    return made


def _rewrite_sheet(package: zipfile.ZipFile, part: zipfile.ZipInfo, out: IO[bytes]) -> None:
    with package.open(part) as file:
        used = sorted({column for row in _filled_rows(file) for column, _ in row})
    places = {column: _letters(place) for place, column in enumerate(used, 1)}
    out.write(b"<worksheet><sheetData>")
    with package.open(part) as file:
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

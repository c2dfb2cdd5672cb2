"""Sheets of `.ods`, all in one part of XML: a row or a cell is written once and says how often it is repeated.

Names of elements are those that every writer of such files uses, and that their reader knows.
"""

import re
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from epsilons.engines.far_places import Extent

_TABLE, _ROW, _CELLS = "table:table", "table:table-row", ("table:table-cell", "table:covered-table-cell")
_ROWS_REPEATED, _COLUMNS_REPEATED = "table:number-rows-repeated", "table:number-columns-repeated"
_KNOWN, _CHUNK = {_TABLE, _ROW, *_CELLS}, 1 << 16
#: Further columns are none, whatever a cell says of itself.
_WIDEST = 1 << 14

_LOOK, _ROW_END, _EMPTY = 1 << 22, b"</table:table-row>", rb"<table:table-cell\b(?![^<>]*office:)[^<>]*/>"
_OFTEN = re.compile(rb"""number-(?:rows|columns)-repeated\s*=\s*["'][0-9]{2}""")
_AT_ROW_END = re.compile(_EMPTY + rb"\s*" + _ROW_END)
_EMPTY_ROWS = re.compile(rb"(?:<table:table-row\b[^<>]*>(?:%b\s*)*%b\s*)++(</table:table>)?" % (_EMPTY, _ROW_END))

#: An element that begins (its name and attributes), ends (its name), or text.
_Event = tuple[str, str, dict[str, str]]


class _Sheet(NamedTuple):
    """Where a sheet's cells lie, as it is and drawn together, and which columns have any."""

    whole: Extent
    drawn: Extent
    used: tuple[int, ...]


def has_far(file: IO[bytes]) -> bool:
    """Whether a sheet's cells are few for the rectangle around them.

    Only what is repeated ten times or more makes a sheet much larger than its file. Most files have that at the end of
    rows and of sheets alone, where nothing comes after it, and need not be read element by element.
    """
    if not _repeats_inside(file):
        return False
    file.seek(0)
    return any(sheet.whole.is_far for sheet in _measure(file))


def _repeats_inside(file: IO[bytes]) -> bool:
    """Whether anything is repeated ten times or more before a filled cell of its row, or a filled row of its sheet."""
    rest = b""
    while chunk := file.read(_LOOK):
        text, _, rest = (rest + chunk).rpartition(_ROW_END)
        if not _OFTEN.search(text):
            continue
        text, empty = text + _ROW_END, b""
        for found in _EMPTY_ROWS.finditer(text):  # what comes after the last of them is not known yet
            empty = found[0] if found.end() == len(text) else b""
        kept = _EMPTY_ROWS.sub(_keep_before_rows, text.removesuffix(empty))
        if len(empty) > _LOOK or _OFTEN.search(_AT_ROW_END.sub(b"", kept)):
            return True
        rest = empty + rest
    return _OFTEN.search(_EMPTY_ROWS.sub(_keep_before_rows, rest)) is not None


def _keep_before_rows(empty: re.Match[bytes]) -> bytes:
    """Rows without a cell, unless the sheet ends with them."""
    return b"" if empty[1] else empty[0]


def write(opened: Callable[[], IO[bytes]], out: IO[bytes]) -> None:
    """Sheets with far cells have their filled rows and columns alone; all else is as it was."""
    with opened() as file:
        sheets = _measure(file)
    for sheet in sheets:
        sheet.drawn.check()
    number, depth, inside, column, repeated, filled = -1, 0, 0, 0, 1, False
    cells, cell, row = dict[int, str](), list[str](), ""
    with opened() as file:
        for kind, name, given in _events(file):
            tag, text = name if kind else "", _spell(kind, name, given)
            depth += (tag, kind) == (_TABLE, "<")
            number += (tag, kind, depth) == (_TABLE, "<", 1)
            if not depth or not sheets[number].whole.is_far or (tag, depth) == (_TABLE, 1):
                out.write(text.encode())
            elif inside or (tag in _CELLS and kind == "<"):
                if not inside:
                    repeated, filled = int(given.pop(_COLUMNS_REPEATED, "1")), _is_filled(given)
                    cell, text = [], _spell(kind, name, given)
                inside += {"<": 1, ">": -1}.get(kind, 0)
                cell.append(text)
                if not inside:
                    cells |= dict.fromkeys(_repeat(column, repeated), "".join(cell)) if filled else {}
                    column += repeated
            elif (tag, kind) == (_ROW, "<"):
                row, column, cells = text, 0, {}
            elif tag == _ROW and cells:
                places = "".join(cells.get(one, "<table:table-cell/>") for one in sheets[number].used)
                out.write((row + places + text).encode())
            depth -= (tag, kind) == (_TABLE, ">")


def _repeat(column: int, often: int) -> range:
    return range(column, min(column + often, _WIDEST))


def _measure(file: IO[bytes]) -> list[_Sheet]:
    """Each sheet of the part, in their order; what is in a cell is no sheet of its own."""
    sheets: list[_Sheet] = []
    inside = row = last_row = last_column = rows = written = filled_rows = column = filled = 0
    used: set[int] = set()
    for kind, name, given in _events(file, _KNOWN):
        if name in _CELLS:
            inside += 1 if kind == "<" else -1
            if kind == "<" and inside == 1:
                often = int(given.get(_COLUMNS_REPEATED, "1"))
                if _is_filled(given):
                    used.update(_repeat(column, often))
                    last_column, filled = max(last_column, min(column + often, _WIDEST)), filled + 1
                column += often
        elif inside:
            continue
        elif name == _ROW and kind == "<":
            rows, column, filled = int(given.get(_ROWS_REPEATED, "1")), 0, 0
        elif name == _ROW:
            row += rows
            if filled:
                last_row, filled_rows, written = row, filled_rows + rows, written + filled
        elif kind == "<":
            row = last_row = last_column = written = filled_rows = 0
            used = set()
        else:
            whole, drawn = Extent(last_row, last_column, written), Extent(filled_rows, len(used), written)
            sheets.append(_Sheet(whole, drawn, tuple(sorted(used))))
    return sheets


def _is_filled(given: dict[str, str]) -> bool:
    """Whether a cell holds anything, as its reader has it: what has a kind or a value."""
    return any(name in given for name in ("office:value-type", "calcext:value-type", "office:value"))


def _events(file: IO[bytes], known: set[str] | None = None) -> Iterator[_Event]:
    """What stands in the file, piece by piece; only elements of these names, if any are given, and no text then."""
    found: list[_Event] = []
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def begin(name: str, given: dict[str, str]) -> None:
        if known is None or name in known:
            found.append(("<", name, given))

    def end(name: str) -> None:
        if known is None or name in known:
            found.append((">", name, {}))

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    if known is None:
        parser.CharacterDataHandler = lambda text: found.append(("", text, {}))
    while chunk := file.read(_CHUNK):
        parser.Parse(chunk, False)
        yield from found
        found.clear()
    parser.Parse(b"", True)
    yield from found


def _spell(kind: str, name: str, given: dict[str, str]) -> str:
    if kind == ">":
        return f"</{name}>"
    return f"<{name}{''.join(f' {key}={quoteattr(said)}' for key, said in given.items())}>" if kind else escape(name)

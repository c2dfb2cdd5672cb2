"""Sheets of Excel and its relatives, read once and written as lines of text: what a column holds is declared there too.

A cell of a workbook has a type of its own, whatever stands in the cell above it. So each is written as the dialect
writes such a thing, a number 12 as 12 and a day as `dates` says, and read in its column's declared type from there.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime, time
from typing import Any

from epsilons.engines.dialects import PLAIN, TWO_DIGITS, Dialect
from epsilons.engines.far_cells import draw_together
from epsilons.engines.lines import RAGGED, write_row
from epsilons.errors import Argument, DataError
from epsilons.storage.files import open_private


def find_sheet(path: str, named: str | None) -> str:
    """The sheet that is meant; names of sheets are public."""
    names = _open(path).sheet_names
    if named is None and len(names) == 1:
        return str(names[0])
    if named is None or named not in names:
        what = "A workbook has several sheets." if named is None else f"There is no sheet {named!r}."
        listed = ", ".join(map(repr, names[:8])) or "none"
        raise DataError(what, rule=f"Its sheets: {listed}.", suggest=Argument("table", names[0] if names else "people"))
    return named


def read_names(path: str, sheet: str) -> tuple[str, ...]:
    """The names in the first row that holds anything; cells without a name at its end are no columns."""
    rows = _read(path, sheet, 1)
    names = [_write_cell(cell, PLAIN) for cell in (rows[0] if rows else [])]
    while names and not names[-1]:
        names.pop()
    return tuple(names)


def copy_sheets(
    paths: Sequence[str], sheet: str, names: tuple[str, ...], folder: str, dialect: Dialect, faults: Counter[str]
) -> str:
    """One file of text for all the rows. Each workbook is copied as it stands first, since it may change meanwhile."""
    made, width, separator = os.path.join(folder, "rows.csv"), len(names), dialect.separator.encode()
    with open(made, "xb", opener=open_private) as out:
        out.write(write_row([name.encode() for name in names], width, separator))
        for path in paths:
            raw = os.path.join(folder, "raw" + os.path.splitext(path)[1])
            with open(path, "rb") as theirs, open(raw, "xb", opener=open_private) as ours:
                shutil.copyfileobj(theirs, ours, 1 << 20)
            for row in _read(raw, sheet)[1:]:
                cells = [_write_cell(cell, dialect) for cell in row]
                faults[RAGGED] += any(cells[width:])
                if any(cells):
                    encoded = [cell.encode("utf-8", "surrogatepass") for cell in cells[:width]]
                    out.write(write_row(encoded, width, separator, faults))
            os.remove(raw)
    return made


def _open(path: str) -> Any:
    """The workbook, without empty places between cells that are far from each other."""
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise DataError("Workbooks need a reader.", suggest="pip install 'epsilons[excel]'") from None
    # Messages of readers may quote what a cell holds: only ours are passed on.
    drawn: Any = None
    try:
        drawn = draw_together(path)
    except DataError:
        raise
    except Exception:
        pass
    if drawn is None:
        raise _unreadable()
    with suppress(Exception):
        return CalamineWorkbook.from_object(drawn)
    raise DataError("A file is not a workbook.", suggest="the file as Excel or LibreOffice saves it")


def _unreadable() -> DataError:
    return DataError("A sheet cannot be read.", suggest="the sheet saved as CSV, or anew without errors in its cells")


def _read(path: str, sheet: str, rows: int | None = None) -> list[list[Any]]:
    """The rows of a sheet, or so many; refused whole if its reader does not know what stands in a cell."""
    book = _open(path)
    if sheet not in book.sheet_names:
        raise DataError(f"A workbook has no sheet {sheet!r}.", suggest="workbooks that all have it")
    with suppress(Exception):
        found: list[list[Any]] = book.get_sheet_by_name(sheet).to_python(nrows=rows)
        return found
    raise _unreadable()


def _write_cell(cell: Any, dialect: Dialect) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, (int, float)):
        whole = isinstance(cell, int) or (cell.is_integer() and abs(cell) < 1 << 53)
        return str(int(cell)) if whole else repr(cell).replace(".", dialect.decimal)
    if isinstance(cell, datetime):
        return _write_time(cell, dialect)
    if isinstance(cell, date):
        return _write_moment(cell, dialect.dates) if dialect.dates else cell.isoformat()
    return cell.isoformat() if isinstance(cell, time) else str(cell)


def _write_time(cell: datetime, dialect: Dialect) -> str:
    """A time at midnight is a day, as a sheet has it."""
    if cell.time() == time():
        return _write_cell(cell.date(), dialect)
    if dialect.times or dialect.dates:
        return _write_moment(cell, dialect.times or f"{dialect.dates} %H:%M:%S")
    return cell.isoformat(" ")


def _write_moment(moment: date, written: str) -> str:
    """In a format; a year that would be read as another one by its last two digits is in none, and so not read."""
    return moment.strftime(written) if "%y" not in written or moment.year in TWO_DIGITS else moment.isoformat()

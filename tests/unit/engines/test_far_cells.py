"""One cell far from the others takes no room for what is empty between, and changes nothing of the rest."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections import Counter
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epsilons.engines import far_tables
from epsilons.engines.dialects import PLAIN
from epsilons.engines.far_cells import draw_together
from epsilons.engines.lines import RAGGED
from epsilons.engines.workbooks import copy_sheets, find_sheet, read_names
from epsilons.errors import DataError
from support.workbooks import add_cells, open_cell, write_binary_workbook, write_open_document, write_workbook

CalamineWorkbook = pytest.importorskip("python_calamine").CalamineWorkbook

ROWS: list[list[Any]] = [
    ["id", "wage", "born", "town"],
    ["007", 12.5, date(1990, 12, 24), " Köln & <Süd>"],
    [None, None, None, None],
    [8, None, datetime(2026, 2, 1, 9, 5), True],
]
#: More than any machine has: 2^34 places of 32 bytes.
LAST = "XFD1048576"


def make(folder: Path, cells: dict[str, Any], rows: list[list[Any]] = ROWS) -> str:
    path = write_workbook(folder / "people.xlsx", {"notes": [["about"]], "people": rows})
    return str(add_cells(path, 2, cells))


def copied(path: str, folder: Path) -> tuple[str, Counter[str]]:
    faults: Counter[str] = Counter()
    folder.mkdir()
    made = copy_sheets([path], "people", read_names(path, "people"), str(folder), PLAIN, faults)
    return Path(made).read_text(), +faults


def test_a_cell_far_outside_is_one_ragged_row_and_the_rest_is_as_without_it(tmp_path: Path) -> None:
    plain, none = copied(make(tmp_path, {}), tmp_path / "plain")
    assert not none
    path = make(tmp_path, {LAST: "note"})
    assert read_names(path, "people") == tuple(ROWS[0])
    assert copied(path, tmp_path / "far") == (plain + '"","","",""\n', {RAGGED: 1})


@pytest.mark.parametrize("cells", [{"A7": 8, "A290000": 9, "D300000": "far"}, {"B5": 1.5, "XFD70000": None}])
def test_rows_far_below_are_rows(cells: dict[str, Any], tmp_path: Path) -> None:
    """As the reader itself has them, where it has the room."""
    path = make(tmp_path, cells)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("epsilons.engines.workbooks.draw_together", lambda path: path)
        wanted = copied(path, tmp_path / "wanted")
    assert copied(path, tmp_path / "found") == wanted


def test_a_name_far_to_the_right_is_that_of_the_next_column(tmp_path: Path) -> None:
    """Columns without any cell are none."""
    path = str(add_cells(write_workbook(tmp_path / "people.xlsx", {"people": []}), 1, {"XFD1": "x", "A1048576": 1}))
    assert read_names(path, "people") == ("", "x")


def test_a_plain_workbook_is_read_as_it_stands(tmp_path: Path) -> None:
    path = make(tmp_path, {}, [["id", "x"], *([n, n / 2] for n in range(3_000))])
    assert draw_together(path) == path
    far = make(tmp_path, {LAST: 1})
    assert draw_together(far) != far


def test_random_cells_keep_their_order(tmp_path: Path) -> None:
    """Against the slow way: cells by row and column, empty rows and columns left out."""
    random = np.random.default_rng(3)
    for place in range(10):
        rows = sorted(random.choice(1_000_000, 6, replace=False) + 2)
        letters = random.choice(["A", "C", "Z", "AA", "AZ", "BA", "ZZ", "AAA", "XFD"], 6)
        cells = {f"{column}{row}": int(row) for row, column in zip(rows, letters, strict=True)}
        path = write_workbook(tmp_path / f"{place}.xlsx", {"people": []})
        add_cells(path, 1, {"XFD1": "last", **cells})
        text, _ = copied(str(path), tmp_path / str(place))
        used = sorted({*letters, "XFD"}, key=lambda one: (len(one), one))
        wanted = [
            ",".join(f'"{row}"' if column == one else '""' for one in used)
            for row, column in zip(rows, letters, strict=True)
        ]
        assert text.splitlines()[1:] == wanted


def test_a_sheet_that_is_no_xml_is_refused(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "people.xlsx", {"people": []})
    add_cells(path, 1, {"A1": "id", LAST: 1, "A2<": 1})
    with pytest.raises(DataError, match="A sheet cannot be read"):
        read_names(str(path), "people")


# Binary records and open documents ----------------------------------------------------------------------------------


def make_records(folder: Path, far: dict[int, dict[int, Any]]) -> str:
    rows = {place: dict(enumerate(row)) for place, row in enumerate([["id", "x"], [7, "Köln"], [8.5, None]])}
    return str(write_binary_workbook(folder / "people.xlsb", "people", rows | far))


def make_tables(folder: Path, far: dict[int, dict[int, Any]]) -> str:
    """Rows and cells between are repeated, as LibreOffice writes them; so are the empty ones at the end."""
    rows, at = [["id", "x"], [7, "Köln"], [8.5, None]], 3
    more = "".join(
        f"{nothing(row - (far_before(far, row) or at))}<table:table-row>{cells(far[row])}</table:table-row>"
        for row in far
    )
    tail = f'<table:table-row><table:table-cell {COLUMNS}="16384"/></table:table-row>{nothing(9_000)}'
    notes = [["about"], ["a < b & table:table-row"]]
    return str(write_open_document(folder / "people.ods", {"notes": notes, "people": rows}, more + tail))


COLUMNS = "table:number-columns-repeated"


def far_before(far: dict[int, Any], row: int) -> int:
    return max((one + 1 for one in far if one < row), default=0)


def nothing(rows: int) -> str:
    return f'<table:table-row table:number-rows-repeated="{rows}"><table:table-cell/></table:table-row>' if rows else ""


def cells(found: dict[int, Any]) -> str:
    text, at = "", 0
    for column, value in found.items():
        text += f'<table:table-cell {COLUMNS}="{column - at}"/>' * (column > at) + open_cell(value)
        at = column + 1
    return text


MAKERS = {"xlsb": make_records, "ods": make_tables}


@pytest.mark.parametrize("kind", MAKERS)
def test_a_far_cell_of_other_kinds_is_one_ragged_row_too(kind: str, tmp_path: Path) -> None:
    plain, none = copied(MAKERS[kind](tmp_path, {}), tmp_path / "plain")
    assert (plain, none) == ('"id","x"\n"7","Köln"\n"8.5",""\n', {})
    path = MAKERS[kind](tmp_path, {1_048_575: {16_383: "note"}})
    assert find_sheet(path, "people") == "people"
    assert read_names(path, "people") == ("id", "x")
    assert copied(path, tmp_path / "far") == (plain + '"",""\n', {RAGGED: 1})


@pytest.mark.parametrize("kind", MAKERS)
def test_random_cells_of_other_kinds_keep_their_order(kind: str, tmp_path: Path) -> None:
    """Against the slow way: the rows and columns that have a cell, side by side."""
    random = np.random.default_rng(4)
    for place in range(8):
        rows = sorted(int(row) + 3 for row in random.choice(1_000_000, 5, replace=False))
        columns = [int(column) for column in random.choice([0, 1, 2, 255, 700, 16_383], 5)]
        far = {row: {column: row} for row, column in zip(rows, columns, strict=True)}
        folder = tmp_path / str(place)
        folder.mkdir()
        path = MAKERS[kind](folder, far)
        assert draw_together(path) != path
        used = sorted({0, 1, *columns})
        wanted = [[*row, *[""] * (len(used) - 2)] for row in (["id", "x"], [7, "Köln"], [8.5, ""])]
        wanted += [[row if at == one else "" for one in used] for row, at in zip(rows, columns, strict=True)]
        found = CalamineWorkbook.from_object(draw_together(path)).get_sheet_by_name("people").to_python()
        assert found == wanted


@pytest.mark.parametrize("kind", MAKERS)
def test_near_cells_of_other_kinds_are_read_as_they_stand(kind: str, tmp_path: Path) -> None:
    path = MAKERS[kind](tmp_path, {40: {30: "near"}})
    assert draw_together(path) == path


def test_empty_ends_of_rows_and_sheets_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As saved sheets have them: that no cell is far is seen without a look at each element, however a file is cut."""
    row = f'<table:table-row>{open_cell(5)}<table:table-cell {COLUMNS}="16383"/></table:table-row>'
    for look in (100, 333, 1 << 22):
        monkeypatch.setattr(far_tables, "_LOOK", look)
        for end, far in ((nothing(9_000) * 2, False), (nothing(9_000) + row, True)):
            path = write_open_document(tmp_path / "a.ods", {"notes": [], "people": [["id"]]}, row * 9 + end)
            with zipfile.ZipFile(path) as package, package.open("content.xml") as file:
                assert far_tables._repeats_inside(file) is (far or look == 100), (look, far)


def test_cells_that_are_repeated_are_read_as_often(tmp_path: Path) -> None:
    """Identical rows and cells are written once; a sheet of far more than its file holds is refused."""
    twice = f'<table:table-row table:number-rows-repeated="3">{open_cell(5)}</table:table-row>'
    note = (
        f'{nothing(1_000_000)}<table:table-row><table:table-cell {COLUMNS}="900"/>{open_cell("far")}</table:table-row>'
    )
    path = str(write_open_document(tmp_path / "a.ods", {"people": [["id"]]}, twice + note))
    assert copied(path, tmp_path / "made") == ('"id"\n"5"\n"5"\n"5"\n""\n', {RAGGED: 1})
    cell = open_cell(5).replace("<table:table-cell", f'<table:table-cell {COLUMNS}="16384"', 1)
    many = f'<table:table-row table:number-rows-repeated="1048000">{cell}</table:table-row>'
    path = str(write_open_document(tmp_path / "b.ods", {"people": [["id"]]}, many))
    for read in (lambda: find_sheet(path, None), lambda: read_names(path, "people")):
        with pytest.raises(DataError, match="too few cells for its size"):
            read()


def test_cells_that_share_no_row_and_no_column_are_refused(tmp_path: Path) -> None:
    """Drawn together they would take as much room as before; each kind says so."""
    far = {100 * place: {place: "x"} for place in range(1, 9_000)}
    for maker in MAKERS.values():
        with pytest.raises(DataError, match="too few cells for its size"):
            read_names(maker(tmp_path, far), "people")


READ = """
import resource, sys
from epsilons.engines.workbooks import read_names
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
for path in sys.argv[2:]:
    print(read_names(path, "people"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_it_is_read_in_little_memory(tmp_path: Path) -> None:
    """With less than a hundredth of what the empty cells would take; without the repair the process ends."""
    far = {1_048_575: {16_383: "note"}}
    paths = make(tmp_path, {LAST: "note"}), make_records(tmp_path, far), make_tables(tmp_path, far)
    run = [sys.executable, "-c", READ, str(1 << 32), *paths]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:3] == [str(tuple(ROWS[0])), "('id', 'x')", "('id', 'x')"]

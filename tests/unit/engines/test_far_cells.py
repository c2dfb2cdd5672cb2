"""One cell far from the others takes no room for what is empty between, and changes nothing of the rest."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epsilons.engines.dialects import PLAIN
from epsilons.engines.far_cells import draw_together
from epsilons.engines.lines import RAGGED
from epsilons.engines.workbooks import copy_sheets, read_names
from epsilons.errors import DataError
from support.workbooks import add_cells, write_workbook

pytest.importorskip("python_calamine")

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


READ = """
import resource, sys
from epsilons.engines.workbooks import read_names
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
print(read_names(sys.argv[1], "people"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_it_is_read_in_little_memory(tmp_path: Path) -> None:
    """With less than a hundredth of what the empty cells would take; without the repair the process ends."""
    path = make(tmp_path, {LAST: "note"})
    done = subprocess.run([sys.executable, "-c", READ, path, str(1 << 32)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tuple(ROWS[0]))

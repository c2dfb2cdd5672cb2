"""CSV and JSON lines: a row that is no good is that person's alone, whatever is wrong with it."""

import csv
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

import epsilons as eps
from epsilons.engines.base import SOURCE
from epsilons.engines.dialects import PLAIN
from epsilons.engines.duckdb import DuckDB
from epsilons.engines.lines import _Shape, copy_lines
from epsilons.errors import DataError
from epsilons.testing import seeded

#: One row of person 5, and what is read of it: (wage, note), or None where no row of theirs can be found.
ROWS: dict[bytes, tuple[float | None, str | None] | None] = {
    b"5,1,a\n": (1, "a"),
    b"5,1,a\r\n": (1, "a"),
    b"5,1,a,b\n": (1, "a"),
    b"5,1,a,,,\n": (1, "a"),
    b'5,1,"a,b\nc",d\n': (1, "a,b\nc"),
    b"5,1\n": (1, None),
    b"5\n": (None, None),
    b'"5\n': None,
    b"5,\n": (None, None),
    b'5,1,"\n': (1, '"'),
    b'5,",a\n': (None, "a"),
    b'5,1,"a\n': (1, '"a'),
    b'5,1,"a"b\n': (1, '"a"b'),
    b'5,1,"a""\n': (1, '"a""'),
    b'5,1,a"\n': (1, 'a"'),
    b'5,1,a "b" c\n': (1, 'a "b" c'),
    b'5,"1","say ""a"""\n': (1, 'say "a"'),
    b"5,1,a\rb\n": (1, "a\rb"),
    b"5,1,\r\r\n": (1, "\r"),
    b'5,1,"a\r\nb"\n': (1, "a\r\nb"),
    b"5,1,\xff\n": (1, None),
    b"5,\xff1,a\n": (None, "a"),
    b"\xff5,1,a\n": None,
    b"5,1,\xed\xa0\x80\n": (1, None),
    b"5,1,a\x00b\n": (1, "a\x00b"),
    b"\x00\n": None,
    b"5,1," + b"a" * 3_000_000 + b"\n": (1, None),
    b'5,1,"' + b"a\n" * 1_500_000 + b'"\n': (1, None),
    b"5," + b"1" * 3_000_000 + b",a\n": (None, "a"),
    b"5,1,a" + b"," * 3_000_000 + b"\n": (1, "a"),
    b"5,one,a\n": (None, "a"),
    b"\n": None,
    b",,\n": None,
    b"\r\n": None,
    b"soon,1,a\n": None,
}
OTHERS = [(i, float(i), 'x, "y"\nz' if i % 7 == 0 else "é") for i in (*range(5), *range(6, 60))]
TYPES = {"id": "int", "wage": "float", "note": "text"}


def write(path: Path, place: int, row: bytes) -> Path:
    lines = ['{},{},"{}"\n'.format(i, wage, note.replace('"', '""')).encode() for i, wage, note in OTHERS]
    lines = [line.replace(b'"', b"") if b"x" not in line else line for line in lines]
    path.write_bytes(b"id,wage,note\n" + b"".join([*lines[:place], row, *lines[place:]]))
    return path


def shown(given: int | bytes) -> str:
    return str(given) if isinstance(given, int) else repr(given[:20])


def read(path: Path, types: dict[str, str] = TYPES) -> list[tuple[Any, ...]]:
    engine = DuckDB(path, types=types)
    found = engine.run(exp.select("*").from_(SOURCE)).to_pylist()
    engine.close()
    return [tuple(row.values()) for row in found]


@pytest.mark.parametrize(("place", "row"), list(enumerate(ROWS)), ids=shown)
def test_a_row_that_is_no_good_changes_no_other(tmp_path: Path, place: int, row: bytes) -> None:
    found = read(write(tmp_path / "people.csv", place, row))
    assert sorted(one for one in found if one[0] not in (5, None)) == OTHERS
    wanted = ROWS[row]
    assert [one[1:] for one in found if one[0] == 5] == ([] if wanted is None else [wanted])


def test_the_last_line_may_have_no_end(tmp_path: Path) -> None:
    for end in (b'5,1,"a"', b'5,1,"a', b"5,1,a\r"):
        found = read(write(tmp_path / "people.csv", len(OTHERS), end))
        assert sorted(one for one in found if one[0] != 5) == OTHERS
        assert [one[1] for one in found if one[0] == 5] == [1]


def test_answers_about_others_do_not_know_of_it(tmp_path: Path) -> None:
    """The same noise in every world: what is said of all others, and of everybody's charges, is the same digits."""
    heard = set()
    for place, row in enumerate(list(ROWS)[::5]):
        path = write(tmp_path / "people.csv", 5 * place, row)
        people = eps.Dataset(
            path, person="id", preferences=dict.fromkeys(range(60), 1.0), types=TYPES,
            bounds={"wage": (0, 100)}, ledger="memory", ceiling=1e6,
        )  # fmt: skip
        release = people.sum("wage", where="id <> 5", share=0.5, entropy=seeded(7))
        heard.add((release.value, str(release.charges), str(release.guarantee)))
    assert len(heard) == 1


CELLS = [b'"', b'""', b",", b"\n", b"\r", b"\r\n", b"a", b"\xff", b"\0", b"\xc3\xa9", b"\xef\xbb\xbf", b"'", b"\\"]
CELLS += [b"#", b"1,2\n", b'"a",b\n', b'"x\ny",1\n', b"7,"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(CELLS), max_size=40), st.integers(1, 3))
def test_any_bytes_are_rows_of_one_width_that_the_engine_reads_alike(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], width: int
) -> None:
    folder, names = tmp_path_factory.mktemp("rows"), ("a", "b", "c")[:width]
    path = folder / "people.csv"
    path.write_bytes(",".join(names).encode() + b"\n" + b"".join(parts))
    with open(
        copy_lines("csv", [str(path)], names, str(folder), PLAIN, Counter()), newline="", encoding="utf-8"
    ) as copy:
        copied = [row for row in csv.reader(copy, strict=True) if row][1:]
    assert {len(row) for row in copied} <= {width}
    wanted = [tuple(cell or None for cell in row) for row in copied]
    found = read(path, dict.fromkeys(names, "text"))
    assert sorted(map(repr, filter(any, found))) == sorted(map(repr, filter(any, wanted)))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([*CELLS, b"\n", b"\n", b'"', b",", b"a"]), max_size=60), st.integers(1, 3))
def test_lines_with_faults_are_read_alike_one_by_one_and_together(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], width: int
) -> None:
    folder, names = tmp_path_factory.mktemp("rows"), ("a", "b", "c")[:width]
    (folder / "people.csv").write_bytes(",".join(names).encode() + b"\n" + b"".join(parts))
    found = []
    for together in (True, False):
        faults, copied = Counter[str](), folder / f"{together}"
        copied.mkdir()
        with pytest.MonkeyPatch.context() as patched:
            if not together:
                patched.setattr(_Shape, "faulty", lambda *_: re.compile(rb"(?!)"))
            path = copy_lines("csv", [str(folder / "people.csv")], names, str(copied), PLAIN, faults)
        with open(path, newline="", encoding="utf-8") as rows:
            found.append(([row for row in csv.reader(rows, strict=True) if row], +faults))
    assert found[0] == found[1]


def test_a_file_full_of_faults_is_not_read_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty million bytes of them would take minutes."""
    one_by_one, find = Counter[bool](), _Shape.find_cells
    monkeypatch.setattr(_Shape, "find_cells", lambda *given: (one_by_one.update([True]), find(*given))[1])
    for number, line in enumerate((b"\n", b"5\r\n", b"5,1,2\n", b'5,"a\n', b'5,a"b\n')):
        path, folder = tmp_path / "people.csv", tmp_path / str(number)
        path.write_bytes(b'id,wage\n1,"open\n' + line * 20_000)
        folder.mkdir()
        one_by_one.clear()
        faults = Counter[str]()
        copied = Path(copy_lines("csv", [str(path)], ("id", "wage"), str(folder), PLAIN, faults))
        assert one_by_one[True] < 20, line
        assert copied.read_bytes().count(b"\n") == (2 if number == 0 else 20_002)
        assert sum(faults.values()) == (1 if number == 0 else 20_001)


def test_headers(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(b'\xef\xbb\xbfid,"the ""wage"",\nyearly"\r\n1,2\r\n\xff\n')
    assert list(DuckDB(path).schema) == ["id", 'the "wage",\nyearly']
    for bad in (b"id,\xff\n1,2\n", b"id,wage\r1,2\r", b"id,wage\r1,2\n"):
        path.write_bytes(bad)
        with pytest.raises(DataError, match="does not begin with the names"):
            DuckDB(path)


JSON_ROWS = [
    b'{"id": 5, "wage": "\xff"}', b'{"id": 5, "wage": ', b"{", b"[", b'"', b"}", b"\x00", b"", b"17", b'{"id": 5}}',
    b'{"id": 5, "note": "\\ud800"}', b'{"id": 5, "note": "' + b"a" * 3_000_000 + b'"}', b"[" * 100_000,
    b'{"id": 5, "note": "' + b"a" * 40_000_000 + b'"}', b'{"id": 5,\r"wage": 1}\r', b'{"id": 5, "id": "six"}',
]  # fmt: skip


def test_json_lines_likewise(tmp_path: Path) -> None:
    path = tmp_path / "people.ndjson"
    lines = [json.dumps(dict(zip(TYPES, row, strict=True))).encode() for row in OTHERS]
    for row in JSON_ROWS:
        path.write_bytes(b"\n".join([*lines[:20], row, *lines[20:]]))
        assert sorted(one for one in read(path) if one[0] not in (5, None)) == OTHERS


def test_the_copy_is_private_one_for_all_files_and_gone_with_the_table(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(f"id,wage,note\n1,2,{name}")
    engine = DuckDB([tmp_path / "a.csv", tmp_path / "b.csv"], types=TYPES)
    (copy,) = os.listdir(engine._spill)
    copied = Path(engine._spill, copy)
    assert copied.read_text().splitlines()[1:] == ["1,2,a", "1,2,b"]
    assert copied.stat().st_mode & 0o077 == 0
    (tmp_path / "a.csv").write_text("id,wage,note\n1,2,a\n1,3,a\n")
    assert engine.run(exp.select("*").from_(SOURCE)).num_rows == 2
    engine.close()
    assert not copied.exists()


def test_a_json_document_is_told_to_be_lines(tmp_path: Path) -> None:
    (tmp_path / "people.json").write_text("[]")
    with pytest.raises(DataError, match=r"ends in \.ndjson or \.jsonl"):
        DuckDB(tmp_path / "people.json", types=TYPES)


CUT_SHORT = """
import os, sys
from epsilons.engines import lines
find_start = lines._find_start

def cut(data):
    os.truncate(sys.argv[1], 0)
    return find_start(data)

lines._find_start = cut
print(*lines.read_header(sys.argv[1]))
"""


def test_a_file_that_is_cut_short_while_its_header_is_read_kills_nobody(tmp_path: Path) -> None:
    """A mapped file would: what is gone from it cannot be looked at. In a process of its own, in case it does."""
    path = tmp_path / "people.csv"
    path.write_text("id,x\n" + "1,2\n" * 10_000)
    done = subprocess.run([sys.executable, "-c", CUT_SHORT, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "id x\n")

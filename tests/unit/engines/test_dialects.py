"""Cells as they are written elsewhere: separators, decimal signs, days, encodings; sheets, and tables of a server."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from epsilons.engines.base import UNREAD, open_table
from epsilons.engines.dialects import KNOWN, SEPARATORS, Dialect
from epsilons.engines.duckdb import DuckDB
from epsilons.engines.lines import QUOTES, RAGGED, UNREADABLE
from epsilons.engines.trees import column
from epsilons.errors import DataError
from support.workbooks import write_workbook

GERMAN = {"separator": ";", "decimal": ",", "thousands": ".", "dates": "%d.%m.%Y", "encoding": "cp1252"}
TYPES = {"wage": "float", "age": "int", "born": "date", "seen": "time"}


def read(source: Any, **how: Any) -> list[tuple[Any, ...]]:
    engine = DuckDB(source, **how)
    engine.stage("staged")
    found = engine.run(exp.select(*map(column, engine.schema)).from_("staged")).to_pylist()
    engine.close()
    return [tuple(row.values()) for row in found]


def faults(source: Any, **how: Any) -> dict[str, int]:
    engine = DuckDB(source, **how)
    engine.close()
    return {name: count for name, count in engine.faults.items() if count}


def test_a_german_file(tmp_path: Path) -> None:
    path = tmp_path / "leute.csv"
    lines = ["id;wage;age;born;seen;ort", "1;1.234,50;30;24.12.1990;1.2.2026 9:05;Köln"]
    lines += ["2;12,5;x;31.02.1990;2026-02-01;Straße; 3", '3;1,5;1,0;1990-01-01;1.2.2026;"a;b"', "4;,5;1,5;1.1.1990;;€"]
    path.write_bytes("\r\n".join(lines).encode("cp1252"))
    assert read(path, types=TYPES, dialect=GERMAN) == [
        ("1", 1234.5, 30, date(1990, 12, 24), datetime(2026, 2, 1, 9, 5), "Köln"),
        ("2", 12.5, None, None, None, "Straße"),
        ("3", 1.5, 1, None, datetime(2026, 2, 1), "a;b"),
        ("4", 0.5, None, date(1990, 1, 1), None, "€"),
    ]
    assert faults(path, types=TYPES, dialect=GERMAN) == {RAGGED: 1}
    # A point that stands for nothing makes it no number, rather than another one.
    plain = {**GERMAN, "thousands": ""}
    assert [row[1] for row in read(path, types=TYPES, dialect=plain)] == [None, 12.5, 1.5, 0.5]


@pytest.mark.parametrize(
    ("sign", "thousands", "text", "number"),
    [
        (",", "", "1,5", 1.5), (",", "", "1.5", None), (",", ".", "1.234.567,8", 1234567.8),
        (".", ",", "1,234.5", 1234.5),
        (".", "'", "1'234", 1234.0), (",", "\N{NO-BREAK SPACE}", "1\N{NO-BREAK SPACE}234,5", 1234.5),
        (",", "", "1,2,3", None), (".", "", "1,5", None), (",", "", "-1,5e3", -1500.0),
        # A sign of thousands that stands elsewhere is a habit of another place, not ten or a hundred times as much.
        (",", ".", "1.5", None), (",", ".", "12.50", None), (",", ".", ".500", None), (",", ".", "1234.567", None),
        (",", ".", "1.2345", None), (",", ".", "-1.234,5", -1234.5), (",", ".", "1.234.56", None),
        (",", ".", "1.", None), (".", ",", "12,5", None), (".", ",", "1,00,000", 100000.0), (".", "'", "1'23", None),
        (",", " ", " 1 234,5 ", 1234.5), (",", " ", "1 23", None),
    ],
)  # fmt: skip
def test_numbers(tmp_path: Path, sign: str, thousands: str, text: str, number: float | None) -> None:
    (path := tmp_path / "people.csv").write_text(f'id;wage\n1;"{text}"\n', encoding="utf-8")
    dialect = {"separator": ";", "decimal": sign, "thousands": thousands}
    assert read(path, types={"wage": "float"}, dialect=dialect) == [("1", number)]


@pytest.mark.parametrize(
    ("dates", "text", "day"),
    [
        ("%d.%m.%Y", "24.12.90", None), ("%d.%m.%Y", "1.2.026", None), ("%d.%m.%Y", "24.12.1990 ", date(1990, 12, 24)),
        ("%d.%m.%Y", "1.1.1000", date(1000, 1, 1)), ("%d%m%Y", "241290", None),
        ("%d%m%Y", "24121990", date(1990, 12, 24)), ("%d.%m.%y", "24.12.1990", None),
        ("%d.%m.%y", "24.12.90", date(1990, 12, 24)),
        ("", "05-01-20", None), ("", "90-12-24", None), ("", " 1990-12-24 ", date(1990, 12, 24)),
        ("", "1990-1-5", date(1990, 1, 5)), ("", "0001-01-01", date(1, 1, 1)), ("", "9999-12-31", date(9999, 12, 31)),
        ("", "20000-01-01", None), ("", "0044-03-15 (BC)", None), ("", "-0044-03-15", None),
        *((dates, word, None) for dates in ("", "%d.%m.%Y", "%d.%m.%y") for word in ("infinity", "-infinity", "epoch")),
    ],
)  # fmt: skip
def test_a_day_is_what_is_written_or_none(tmp_path: Path, dates: str, text: str, day: date | None) -> None:
    """Engines read 24.12.90 as a day of the year 90, and words as days: that is counted for the steward, and no day."""
    path, how = tmp_path / "people.csv", {"dialect": {"dates": dates}} if dates else {}
    for kind, cell, found in (
        ("date", text, day), ("time", text, day and datetime.combine(day, time())),
        ("time", f"{text.strip()} 09:05", day and datetime.combine(day, time(9, 5))),
    ):  # fmt: skip
        path.write_text(f'id,born\n1,"{cell}"\n')
        engine = DuckDB(path, types={"born": kind}, **how)
        engine.stage("staged")
        (row,) = engine.run(exp.select("*").from_("staged")).to_pylist()
        engine.close()
        assert (row["born"], row[UNREAD + "born"]) == (found, int(found is None)), cell


def test_blanks_around_a_truth_are_no_part_of_it(tmp_path: Path) -> None:
    (path := tmp_path / "people.csv").write_text("id,ok\n1, true\n2,No  \n3,maybe\n")
    assert read(path, types={"ok": "bool"}) == [("1", True), ("2", False), ("3", None)]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "mac-roman", "shift_jis", "utf-8"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    words = ["ab", "カナ"] if encoding == "shift_jis" else ["ab", "Köln", "é" * 70_000]
    (path := tmp_path / "people.csv").write_bytes(("id,größe\n" if len(words) > 2 else "id,x\n").encode(encoding))
    with open(path, "ab") as file:
        written = "".join(f"{i},{word}\n" for i, word in enumerate(words)).encode(encoding)
        file.write(written[2 if encoding == "utf-16" else 0 :])  # a mark stands at the beginning alone
    assert read(path, dialect={"encoding": encoding}) == [(str(i), word) for i, word in enumerate(words)]


def test_what_is_not_in_the_encoding_is_null_and_counted(tmp_path: Path) -> None:
    (path := tmp_path / "people.csv").write_bytes(b"id,town\n1,K\xf6ln\n2,\x81\x8d\n3,a\n")
    assert read(path, dialect={"encoding": "cp1252"}) == [("1", "Köln"), ("2", None), ("3", "a")]
    assert faults(path, dialect={"encoding": "cp1252"}) == {UNREADABLE: 1}
    assert read(path) == [("1", None), ("2", None), ("3", "a")]
    assert faults(path) == {UNREADABLE: 2}
    (path := tmp_path / "half.csv").write_bytes("id,town\n1,a\n2,b\n".encode("utf-16-le") + b"\x00\xd8x")
    assert read(path, dialect={"encoding": "utf-16-le"})[:2] == [("1", "a"), ("2", "b")]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.text(st.sampled_from('a1,;|\t"\né€ '), max_size=5), min_size=2, max_size=2), max_size=5),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["utf-8", "cp1252", "utf-16"]),
)
def test_what_is_written_by_the_rules_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], separator: str, encoding: str
) -> None:
    path = tmp_path_factory.mktemp("csv") / "people.csv"
    quoted = [[f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row] for row in [["a", "b"], *rows]]
    text = "".join(separator.join(row) + "\n" for row in quoted)
    path.write_bytes(text.encode(encoding))
    dialect = {"separator": separator, "encoding": encoding}
    assert read(path, dialect=dialect) == [tuple(cell or None for cell in row) for row in rows]
    assert faults(path, dialect=dialect) == {}


def test_faults_of_lines_are_counted_and_stop_nothing(tmp_path: Path) -> None:
    (path := tmp_path / "people.csv").write_bytes(b'id,note\n1,a\n2\n3,b,c\n4,"d\n\n5,"e"f\n6,g\n7,\xff\n8,"h, i"\n')
    assert faults(path) == {RAGGED: 2, QUOTES: 2, UNREADABLE: 1}
    assert len(read(path)) == 8


@pytest.mark.parametrize(
    ("dialect", "part"),
    [
        ({"separator": "x"}, "separator"), ({"separator": ""}, "separator"), ({"decimal": ";"}, "decimal"),
        ({"thousands": "x"}, "thousands"), ({"thousands": "."}, "thousands"), ({"dates": "%d.%m"}, "dates"),
        ({"dates": "%d.%m.%Y %H"}, "dates"), ({"dates": "%d.%m.%Y%"}, "dates"), ({"dates": "%d.%d.%m.%Y"}, "dates"),
        ({"times": "%H:%M"}, "times"), ({"encoding": "rot13"}, "encoding"), ({"encoding": "no such"}, "encoding"),
        ({"encoding": 1}, "encoding"), ({"quote": "'"}, "quote"), (";", "parts"), ({"dates": ["%d"]}, "dates"),
        ({"separator": [","]}, "separator"),
    ],
)  # fmt: skip
def test_no_dialect(tmp_path: Path, dialect: Any, part: str) -> None:
    (path := tmp_path / "people.csv").write_text("id,wage\n1,2\n")
    with pytest.raises(DataError, match=part) as refused:
        DuckDB(path, dialect=dialect)
    assert "Try: " in str(refused.value)


def test_only_text_has_a_dialect(tmp_path: Path) -> None:
    lines = tmp_path / "people.ndjson"
    lines.write_text('{"id": 1, "born": "24.12.1990"}\n{"id": 2}\n{"late": 1, "born": "1.1.1991", "id": 3}\n')
    how = {"types": {"id": "int", "born": "date", "late": "int"}}
    found = read(lines, **how, dialect={"dates": "%d.%m.%Y"})
    assert found == [(1, date(1990, 12, 24), None), (2, None, None), (3, date(1991, 1, 1), 1)]
    with pytest.raises(DataError, match="no 'separator'"):
        DuckDB(lines, **how, dialect={"separator": ";"})
    pa = pytest.importorskip("pyarrow")
    frame = pa.table({"id": [1], "wage": ["1,5"]})
    assert read(frame, types={"wage": "float"}, dialect={"decimal": ","}) == [(1, 1.5)]
    with pytest.raises(DataError, match="no 'encoding'"):
        DuckDB(frame, dialect={"encoding": "cp1252"})
    assert set(KNOWN) == {"csv", "json", "excel", "frame"}
    assert Dialect.of(None, "parquet") == Dialect()


@pytest.mark.parametrize(("sign", "word"), SEPARATORS.items())
def test_a_separator_goes_by_its_name_as_well(tmp_path: Path, sign: str, word: str) -> None:
    (path := tmp_path / "people.csv").write_text(f"id{sign}town\n1{sign}Ulm\n")
    assert read(path, dialect={"separator": word}) == read(path, dialect={"separator": sign}) == [("1", "Ulm")]


def test_tabs_are_known_by_the_files_name(tmp_path: Path) -> None:
    (path := tmp_path / "people.tsv").write_text("id\twage\n1\t2,5\n")
    assert read(path) == [("1", "2,5")]
    assert read(path, types={"wage": "float"}, dialect={"decimal": ","}) == [("1", 2.5)]


# Workbooks -----------------------------------------------------------------------------------------------------------

SHEET = [
    ["id", "wage", "age", "born", "seen", "plz", "ok"],
    [7, 1.5, 30, date(1990, 12, 24), datetime(2026, 2, 1, 9, 5), "01067", True],
    [8, "2,5", "x", "1.1.1991", None, 1067, False],
    [None] * 7,
    ["9", None, 4.5, date(1900, 3, 1), datetime(2026, 2, 1), None, None, "beyond"],
]


@pytest.mark.parametrize("dates", ["", "%d.%m.%Y"])
def test_a_workbook(tmp_path: Path, dates: str) -> None:
    path = write_workbook(tmp_path / "leute.xlsx", {"Tabelle 1": SHEET})
    german = {"dialect": {"decimal": ",", "dates": dates}} if dates else {}
    how = {"types": {**TYPES, "ok": "bool"}, **german}
    other = (2.5, date(1991, 1, 1)) if dates else (None, None)
    assert read(path, **how) == [
        ("7", 1.5, 30, date(1990, 12, 24), datetime(2026, 2, 1, 9, 5), "01067", True),
        ("8", other[0], None, other[1], None, "1067", False),
        ("9", None, None, date(1900, 3, 1), datetime(2026, 2, 1), None, None),
    ]
    assert faults(path, **how) == {RAGGED: 1}
    engine = open_table(path, types={"id": "int"})
    assert engine.files == (str(path),)
    engine.close()


def test_a_day_of_a_sheet_is_no_other_one_by_its_last_two_digits(tmp_path: Path) -> None:
    days = [date(1965, 5, 6), date(1990, 12, 24), datetime(1950, 1, 1, 9, 5), "24.12.90"]
    path = write_workbook(tmp_path / "leute.xlsx", {"a": [["id", "born"], *enumerate(days)]})
    found = read(path, types={"born": "date"}, dialect={"dates": "%d.%m.%y"})
    assert [day for _, day in found] == [None, date(1990, 12, 24), None, date(1990, 12, 24)]


def test_a_sheet_that_its_reader_does_not_know_is_refused_in_our_own_words(tmp_path: Path) -> None:
    """What stands in a cell is not quoted; and every workbook has the sheet."""
    strange = write_workbook(tmp_path / "strange.xlsx", {"a": [["id"], [17]]})
    with zipfile.ZipFile(strange) as package:
        parts = {name: package.read(name) for name in package.namelist()}
    parts["xl/worksheets/sheet1.xml"] = re.sub(
        rb'<c r="A2".*?</c>', b'<c r="A2" t="e"><v>#SECRET</v></c>', parts["xl/worksheets/sheet1.xml"]
    )
    with zipfile.ZipFile(strange, "w") as package:
        for name, content in parts.items():
            package.writestr(name, content)
    with pytest.raises(DataError, match="A sheet cannot be read") as refused:
        DuckDB(strange)
    assert refused.value.__context__ is None
    one, other = (write_workbook(tmp_path / f"{name}.xlsx", {name: [["id"], [1]]}) for name in "ab")
    with pytest.raises(DataError, match="has no sheet 'a'"):
        DuckDB([one, other])


def test_sheets_are_named(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "people.xlsx", {"a": [["id"], [1]], "b": [["name"], ["x"]]})
    assert read(path, table="b") == [("x",)]
    for table in (None, "c"):
        with pytest.raises(DataError, match="'a', 'b'"):
            DuckDB(path, table=table)
    empty = write_workbook(tmp_path / "empty.xlsx", {"a": []})
    with pytest.raises(DataError, match="names of its columns"):
        DuckDB(empty)
    (broken := tmp_path / "broken.xlsx").write_bytes(b"PK\3\4 nothing")
    with pytest.raises(DataError, match="not a workbook"):
        DuckDB(broken)


# A server ------------------------------------------------------------------------------------------------------------

ROWS = """
CREATE TABLE IF NOT EXISTS "Leute" (id bigint, wage numeric, age smallint, born date, seen timestamp, ort text, ok bool,
  plz char(5), what jsonb, x real);
TRUNCATE "Leute";
INSERT INTO "Leute" VALUES
  (1, 1234.50, 30, '1990-12-24', '2026-02-01 09:05', 'Köln', true, '01067', '{"a": 1}', 0.5),
  (2, 'NaN', null, 'infinity', '-infinity', null, null, null, null, 'NaN'),
  (3, 1e400, 1, '4000-01-01 BC', '20000-01-01', '', false, 'x', '[]', 'Infinity')
"""


@pytest.fixture
def leute(postgres_server: str) -> Iterator[str]:
    psycopg = pytest.importorskip("psycopg")
    pytest.importorskip("adbc_driver_postgresql")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(ROWS)
        yield postgres_server
        connection.execute('DROP TABLE "Leute"')


@pytest.mark.integration
def test_a_table_of_a_server(leute: str) -> None:
    first, second, third = read(leute, table="Leute")
    moments = date(1990, 12, 24), datetime(2026, 2, 1, 9, 5)
    assert first == (1, 1234.5, 30, *moments, "Köln", True, "01067", '{"a": 1}', 0.5)
    assert (second[0], str(second[1]), *second[2:9]) == (2, "nan", *[None] * 7)
    assert third[:8] == (3, float("inf"), 1, None, None, "", False, "x")
    assert len(read(leute, table="public.Leute")) == 3
    for table in ("leute", "other.Leute", 'x"; DROP TABLE "Leute', None, ""):
        with pytest.raises(DataError, match="table"):
            DuckDB(leute, table=table)
    with pytest.raises(DataError, match="types"):
        DuckDB(leute, table="Leute", types={"id": "int"})
    with pytest.raises(DataError, match="types of their own"):
        DuckDB(leute, table="Leute", dialect={"decimal": ","})


@pytest.mark.integration
def test_no_server_says_nothing_of_its_address() -> None:
    pytest.importorskip("adbc_driver_postgresql")
    with pytest.raises(DataError, match="could not be read") as refused:
        DuckDB("postgresql://ann:secret@127.0.0.1:1/people", table="people")
    assert "secret" not in str(refused.value)


#: What one person may have written into their own row, whatever the dialect: it stays theirs.
HOSTILE = [
    b'"',
    b'a"b',
    b'"a"b',
    b";;;;;;",
    b"",
    b"\x81\x8d\x9d",
    b"1.2.3,4,5",
    b"99999999999999999999999999",
    b"1e999",
    b"nan",
]
HOSTILE += [
    b"31.02.2026",
    b"1.1.99999",
    b"-1.-1.-1",
    b"%d.%m.%Y",
    b"\xe4\xf6\xfc",
    b"\x00",
    b"'",
    b"\\",
    b"a" * 3_000_000,
]


@pytest.mark.parametrize("cell", HOSTILE, ids=range(len(HOSTILE)))
def test_no_row_decides_what_becomes_of_another(tmp_path: Path, cell: bytes) -> None:
    others = [f"{i};{i},5;{i};{1 + i % 28}.12.1990;{1 + i % 28}.12.1990 7:30;Köln".encode("cp1252") for i in range(60)]
    path, seen = tmp_path / "leute.csv", []
    for row in (b"x;1;1;1.1.1990;1.1.1990;a", *(b"x" + b";" * place + cell for place in range(1, 6))):
        path.write_bytes(b"\r\n".join([b"id;wage;age;born;seen;ort", *others[:30], row, *others[30:]]))
        seen.append([row for row in read(path, types=TYPES, dialect=GERMAN) if row[0] != "x"])
    assert len(seen[0]) == 60
    assert all(one == seen[0] for one in seen)


@pytest.mark.parametrize(
    "cell", ["", "x" * 30_000, "1.2.3,4", 1e308, -1e308, True, date(1899, 12, 31), "\x07", "31.02.2026", 2**60]
)
def test_no_cell_of_a_sheet_decides_what_becomes_of_another(tmp_path: Path, cell: Any) -> None:
    others = [
        [str(i), i + 0.5, i, date(1990, 12, 1 + i % 28), datetime(1990, 12, 1, i % 24, 30), "Köln"] for i in range(30)
    ]
    path, seen = tmp_path / "leute.xlsx", []
    for row in (["x", 1, 1, None, None, "a"], *(["x", *[None] * place, cell] for place in range(5))):
        write_workbook(path, {"one": [["id", *TYPES, "ort"], *others[:15], row, *others[15:]]})
        seen.append([row for row in read(path, types=TYPES, dialect={"dates": "%d.%m.%Y"}) if row[0] != "x"])
    assert len(seen[0]) == 30
    assert all(one == seen[0] for one in seen)

"""Numbers, keys and tables for people."""

import math
import tomllib
from typing import Any

import numpy as np
import pytest

from epsilons.display import html_table, show, show_count, show_key, text_table, toml_key, toml_value


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "–"),
        (0, "0"),
        (-0.0, "0"),
        (7, "7"),
        (1234567, "1,234,567"),
        (1e6, "1,000,000"),
        (-12.0, "-12"),
        (3.14159265, "3.142"),
        (-0.00012345678, "-0.0001235"),
        (9999.4, "9,999"),
        (9999.87, "10,000"),
        (12345.678, "12,346"),
        (1e-300, "1e-300"),
        (10**20, "100,000,000,000,000,000,000"),
        (np.float64(2.5), "2.5"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
    ],
)
def test_numbers(number: float | None, text: str) -> None:
    assert show(number) == text


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("north", "north"),
        ("", ""),
        (3, "3"),
        (None, "None"),
        ((0.0, 10.0), "0–10"),
        ((-math.inf, 0.5), "-inf–0.5"),
        (("a", 2), "a–2"),
        ("two\nlines", "two\\nlines"),
        ("\x1b[2J\r", "\\x1b[2J\\r"),
        (("a\tb", 1), "a\\tb–1"),
        ("Ünïcode ß 東", "Ünïcode ß 東"),
    ],
)
def test_keys_stand_on_one_line(key: Any, text: str) -> None:
    assert show_key(key) == text


def test_a_text_table_is_aligned() -> None:
    table = text_table(("name", "error", "how"), [("a", "1", "short"), ("longer", "22.5", "x")])
    assert table.splitlines() == [
        "name    error  how",
        "──────  ─────  ─────",
        "a           1  short",
        "longer   22.5  x",
    ]
    assert text_table(("a", "b"), []).splitlines() == ["a  b", "─  ─"]


def test_a_text_table_breaks_heads_then_cells_then_words_to_fit() -> None:
    head, row = ("name", "people used", "how"), ("sample", "100%", "a random sample of them")
    assert text_table(head, [row], wide=39).splitlines() == [
        "name    people  how",
        "          used",
        "──────  ──────  ───────────────────────",
        "sample    100%  a random sample of them",
    ]
    assert text_table(head, [row], wide=26).splitlines()[3:] == [
        "sample    100%  a random",
        "                sample of",
        "                them",
    ]
    long = text_table(("key", "value"), [("k" * 200, "1")], wide=40)
    assert max(map(len, long.splitlines())) == 40
    assert long.count("k") == 201


@pytest.mark.parametrize(("number", "text"), [(0, "0 people"), (1, "1 person"), (2000, "2,000 people")])
def test_counts(number: int, text: str) -> None:
    assert show_count(number, "person", "people") == text
    assert show_count(number, "row") == f"{number:,} row{'s' * (number != 1)}"


def test_an_html_table_escapes_everything() -> None:
    bad = "<script>alert('x')</script> & \"q\""
    page = html_table(bad, (bad,), [(bad,)], (bad,))
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 4
    assert "<thead>" not in html_table("t", (), [("a", "b")])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", '"plain"'),
        ('a "b" \\ \n\t\x00\x7f é', '"a \\"b\\" \\\\ \\n\\t\\u0000\\u007f é"'),
        (True, "true"),
        (7, "7"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (np.float64(0.5), "0.5"),
        (math.inf, "inf"),
        ([], "[]"),
        ((0, 1.5, ["x"]), '[0, 1.5, ["x"]]'),
        ({}, "{}"),
        ({"a": 1, "b c": {"d": False}}, '{ a = 1, "b c" = { d = false } }'),
    ],
)
def test_values_of_a_toml_file(value: Any, text: str) -> None:
    assert toml_value(value) == text
    read = tomllib.loads(f"value = {text}")["value"]
    assert read == (list(value) if isinstance(value, tuple) else value)
    assert type(read) is not bool or type(value) is bool


@pytest.mark.parametrize("name", ["a", "a-b_9", "", "two words", "a.b", 'q"', "ß", "a\nb", "\x7f"])
def test_keys_of_a_toml_file(name: str) -> None:
    assert tomllib.loads(f"{toml_key(name)} = 1") == {name: 1}

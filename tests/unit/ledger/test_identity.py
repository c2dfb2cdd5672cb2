"""One person, one digest, in whatever kind of column the id stands."""

from __future__ import annotations

import hashlib
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsilons.errors import DataError
from epsilons.ledger import identity
from epsilons.ledger.identity import BLAKE_2, SHA_256, digests, encode_id

SALT = bytes(range(16))
TEXTS = ["ann", "", "é", "e\u0301", "1", "日本", "ann "]
NUMBERS = [0, 1, -1, 255, -(2**63), 2**63 - 1]


#: The kind of digest that is tried: `kind` sets it.
KINDS = [SHA_256]


@pytest.fixture(autouse=True, params=[SHA_256, "in the engine", BLAKE_2])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind of digest; and of SHA-256, all of them made by the engine, in pieces of two, or none."""
    monkeypatch.setattr(identity, "_MANY", 1 if request.param == "in the engine" else 1 << 30)
    monkeypatch.setattr(identity, "_PIECE", 2)
    monkeypatch.setattr(sys.modules[__name__], "KINDS", [BLAKE_2 if request.param == BLAKE_2 else SHA_256])


def slowly(person: object) -> bytes:
    """The definition, written down once more."""
    if isinstance(person, str):
        content = b"s" + person.encode()
    elif isinstance(person, bytes):
        content = b"b" + person
    else:
        content = b"i" + format(person, "x" if KINDS == [BLAKE_2] else "d").encode()
    if KINDS == [BLAKE_2]:
        return hashlib.blake2b(content, digest_size=16, key=SALT, person=b"epsilons person").digest()
    return hashlib.sha256(SALT.hex().encode() + content).digest()[:16]


def listed(ids: Any) -> list[bytes]:
    made = digests(ids, SALT, KINDS[0])
    assert made.dtype == np.uint8
    assert made.shape == (len(ids), 16)
    return [bytes(row) for row in made]


@pytest.mark.parametrize(
    "column",
    [
        TEXTS,
        np.array(TEXTS, dtype=object),
        np.array(TEXTS),
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS, pa.string_view()),
        pa.array(["before", *TEXTS, "after"]).slice(1, len(TEXTS)),
        pa.chunked_array([TEXTS[:2], TEXTS[2:]]),
        pa.array(TEXTS).dictionary_encode(),
        pa.chunked_array([TEXTS[:2], [], TEXTS[2:]]).dictionary_encode(),
    ],
    ids=lambda column: str(getattr(column, "type", getattr(column, "dtype", "list"))),
)
def test_texts_are_alike_in_every_column(column: Any) -> None:
    assert listed(column) == [slowly(text) for text in TEXTS]


@pytest.mark.parametrize(
    "column",
    [
        NUMBERS,
        np.array(NUMBERS),
        np.array(NUMBERS, dtype=object),
        list(np.array(NUMBERS)),
        pa.array(NUMBERS),
        pa.chunked_array([NUMBERS]),
        pa.array(NUMBERS).dictionary_encode(),
    ],
    ids=lambda column: f"{type(column).__name__} {getattr(column, 'type', getattr(column, 'dtype', ''))}",
)
def test_numbers_are_alike_in_every_column(column: Any) -> None:
    assert listed(column) == [slowly(number) for number in NUMBERS]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_numbers_of_any_width_are_alike(dtype: str) -> None:
    assert listed(np.array([0, 7, 100], dtype)) == [slowly(0), slowly(7), slowly(100)]
    assert listed(pa.array([0, 7, 100], getattr(pa, dtype)())) == [slowly(0), slowly(7), slowly(100)]


def test_bytes_and_mixed_lists() -> None:
    assert listed([b"\x00", 1, "1", b"1"]) == [slowly(b"\x00"), slowly(1), slowly("1"), slowly(b"1")]
    assert listed(pa.array([b"a\x00", b""])) == [slowly(b"a\x00"), slowly(b"")]
    assert listed(pa.array([b"ab", b"cd"], pa.binary(2))) == [slowly(b"ab"), slowly(b"cd")]


@pytest.mark.parametrize(
    "column", [[], np.array([], np.int64), pa.array([], pa.string()), pa.chunked_array([], pa.string())]
)
def test_nobody(column: Any) -> None:
    assert listed(column) == []


@given(st.lists(st.one_of(st.integers(), st.text(), st.binary()), max_size=20))
def test_different_people_have_different_digests(ids: list[Any]) -> None:
    assert len({encode_id(person) for person in ids}) == len({(type(person), person) for person in ids})
    assert listed(ids) == [listed([person])[0] for person in ids]


def test_a_lone_surrogate_is_an_id_as_well() -> None:
    assert len(set(listed(["\ud800", "\ud801", "?", "\ufffd"]))) == 4


def test_a_digest_says_nothing_about_another_ledger() -> None:
    assert digests(["ann"], SALT).tolist() != digests(["ann"], bytes(16)).tolist()


@pytest.mark.parametrize(
    "bad",
    [
        [None],
        [1.0],
        [True],
        [("a",)],
        np.array([1.0]),
        np.array([True]),
        np.array([["zoe"]]),
        pa.array(["zoe", None]),
        pa.array([1, None]),
        pa.array([1.5]),
        pa.array([True]),
        pa.array([None, "zoe"]).dictionary_encode(),
    ],
)
def test_what_is_no_id_is_refused_without_repeating_it(bad: Any) -> None:
    with pytest.raises(DataError) as refusal:
        digests(bad, SALT)
    assert "zoe" not in str(refusal.value)

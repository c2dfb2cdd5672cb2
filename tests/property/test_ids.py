"""Who is who: one normal form for all spellings of an id, in the data, in preferences and in lists of people."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import epsilons as eps
from epsilons.dataset.preferences import (
    A_NUMBER,
    SAID_NOTHING,
    PreferenceTable,
    as_ids,
    check_id_column,
    read_preferences,
)
from epsilons.dataset.rows import stage
from epsilons.engines.base import NUMBER, TEXT, Column
from epsilons.engines.duckdb import DuckDB
from epsilons.errors import DataError, PreferenceError
from epsilons.ledger.identity import SHA_256, digests, normal_form, normalise

SALT = bytes(16)
NAMES, NUMBERS = Column("id", TEXT), Column("id", NUMBER, 0, (1 << 64) - 1)
#: Letters whose folding and composing get in each other's way, beside ordinary ones.
HARD = "aAkKsS\u017fßẞéÉ\u0301\u0345\u03b1\u0391\u1fb3\u1fbc\u0130\u0131\u212a\u00c5\u212b\u1e9b\u0323\u01f0\u1f80ǅ"
TEXTS = st.one_of(st.text(st.sampled_from(HARD + " \t\x1c\u00a0\u2003\ufeff"), max_size=6), st.text(max_size=8))


@given(TEXTS)
@example("\u0345\u0301")
@example("\u1fb3\u0345")
def test_the_normal_form_is_one(text: str) -> None:
    """Of itself, of every way to compose it, of capitals and of blanks around it."""
    form = normal_form(text)
    assert normal_form(form) == form
    assert form == form.strip() == unicodedata.normalize("NFC", form)
    for other in (unicodedata.normalize("NFD", text), unicodedata.normalize("NFC", text), f" {text}\t\n"):
        assert normal_form(other) == form
    assert normal_form(unicodedata.normalize("NFC", text).casefold()) == form


@given(st.lists(st.one_of(TEXTS, st.text(st.characters(max_codepoint=127))), max_size=8))
def test_arrow_and_python_agree(texts: list[str]) -> None:
    for kind in (pa.string(), pa.large_string()):
        found = normalise(pa.array(texts, kind))
        assert (found.to_pylist(), found.type) == ([normal_form(text) for text in texts], kind)


def test_numbers_stay_as_they_are() -> None:
    for listed in ([1, 2**63], [2**64 - 1], [-5, 3]):
        found = as_ids(listed, NUMBERS)
        assert found.to_pylist() == listed
        assert (digests(found, SALT) == digests(listed, SALT)).all()
    for listed in ([-1, 2**63], [2**64], [True], ["1"], [1.5]):
        with pytest.raises(PreferenceError, match="another kind"):
            as_ids(listed, NUMBERS)


def test_lists_of_people_are_in_the_same_form() -> None:
    assert as_ids([" ANN", "E\u0301va"], NAMES).to_pylist() == ["ann", "\u00e9va"]
    assert as_ids([" ANN", "E\u0301va"], NAMES, normal=False).to_pylist() == [" ANN", "E\u0301va"]


def asked_for(found: PreferenceTable) -> list[int]:
    """Everybody's nano-epsilon."""
    return found.grants[found.codes].tolist()


def read(table: pa.Table, preferences: eps.Preferences, **options: object) -> PreferenceTable:
    engine = DuckDB(table, threads=1)
    stage(engine)
    try:
        person = check_id_column(engine, "id")
        return read_preferences(engine, person, preferences, SALT, SHA_256, **options)[0]  # type: ignore[arg-type]
    finally:
        engine.close()


PEOPLE = pa.table({"id": ["Ann", "Ann", "bob ", "E\u0301va", "dee"], "x": range(5)})
ASKED = {"ANN": 0.1, "Bob": 0.2, "\u00c9VA": 0.3, "zoe": 0.4}
SECOND = pa.table({"who": list(ASKED), "epsilon": list(ASKED.values())})


@pytest.mark.parametrize(
    "preferences",
    [
        eps.Preferences(ASKED, default=1.0),
        eps.Preferences.from_file(SECOND, person="who", column="epsilon", default=1.0),
    ],
    ids=["mapping", "table"],
)
def test_preferences_find_their_people_by_the_normal_form(preferences: eps.Preferences) -> None:
    """Written otherwise, they would have given everybody the default."""
    found = read(PEOPLE, preferences)
    nano = dict(zip(found.normal.to_pylist(), asked_for(found), strict=True))
    assert nano == {"ann": 10**8, "bob": 2 * 10**8, "\u00e9va": 3 * 10**8, "dee": 10**9, "zoe": 4 * 10**8}
    assert sorted(found.ids.to_pylist()) == sorted({*PEOPLE["id"].to_pylist(), "zoe"})  # joined as the data writes them
    assert [normal_form(one) for one in found.ids.to_pylist()] == found.normal.to_pylist()
    assert (found.defaulted, found.unmatched) == (1, 1)
    assert sorted(found.words.tolist()) == [SAID_NOTHING] + [A_NUMBER] * 4
    # A ledger of an older release knows ids as they were written.
    found = read(PEOPLE, preferences, normal=False)
    assert (len(found.ids), found.defaulted, found.unmatched) == (8, 4, 4)
    assert found.normal.equals(found.ids)


def test_two_spellings_in_one_source_are_refused_and_not_shown() -> None:
    twice = pa.table({"id": ["Ann", "ann "], "epsilon": [0.1, 0.2]})
    one = pa.table({"id": ["ann"], "epsilon": [0.1]})
    for table, preferences in (
        (twice, eps.Preferences({}, default=1.0)),
        (twice, eps.Preferences.from_column("epsilon")),
        (one, eps.Preferences({"Ann": 0.1, "ANN": 0.2}, default=1.0)),
        (one, eps.Preferences.from_file(twice, person="id", column="epsilon", default=1.0)),
    ):
        with pytest.raises(DataError, match="Two spellings") as refused:
            read(table, preferences)
        assert "ann" not in str(refused.value).lower().replace("cannot", "")
        assert len(read(table, preferences, normal=False).ids) >= 1


def test_numbers_of_every_width_are_the_same_people() -> None:
    table = pa.table({"id": pa.array([1, 2**63 + 5], pa.uint64())})
    found = read(table, eps.Preferences({1: 0.1, 2**63 + 5: 0.2}))
    assert dict(zip(found.ids.to_pylist(), asked_for(found), strict=True)) == {1: 10**8, 2**63 + 5: 2 * 10**8}
    assert (found.defaulted, found.unmatched) == (0, 0)


# --- what was said --------------------------------------------------------------------------------------------------

LEVELS = {"open": 1.0, "strict": 0.05, "same": 0.05, "public": eps.PUBLIC}


def test_the_words_that_people_said_are_kept_by_name() -> None:
    """The strictest of somebody's rows; a name is kept also where another means the same."""
    rows = [("a", "open"), ("a", "strict"), ("b", "same"), ("c", None), ("d", "public"), ("e", None), ("e", "open")]
    table = pa.table({"id": [row[0] for row in rows], "level": pa.array([row[1] for row in rows])})
    for preferences in (
        eps.Preferences.from_levels("level", LEVELS, default="open"),
        eps.Preferences.from_file(table, person="id", column="level", levels=LEVELS, default="open"),
    ):
        found = read(table, preferences)
        assert found.names == tuple(LEVELS)
        said = {person: word if word < 0 else found.names[word] for person, word in zip(
            found.ids.to_pylist(), found.words.tolist(), strict=True)}  # fmt: skip
        assert said == {"a": "strict", "b": "same", "c": SAID_NOTHING, "d": "public", "e": "open"}
        assert found.defaulted == 1


def test_numbers_and_what_is_no_number() -> None:
    table = pa.table({"id": [1, 2, 3, 3], "epsilon": pa.array(["0.5", "hello", None, "2"])})
    found = read(table, eps.Preferences.from_column("epsilon", default=1.0))
    assert dict(zip(found.ids.to_pylist(), found.words.tolist(), strict=True)) == {1: -1, 2: SAID_NOTHING, 3: -1}
    assert dict(zip(found.ids.to_pylist(), asked_for(found), strict=True)) == {1: 5 * 10**8, 2: 10**9, 3: 10**9}
    assert found.defaulted == 1
    left = read(pa.table({"id": [1, 2]}), eps.Preferences({1: None, 2: 0.5}, default=1.0))  # type: ignore[dict-item]
    assert (sorted(asked_for(left)), left.defaulted) == ([5 * 10**8, 10**9], 1)


# --- the ceiling ----------------------------------------------------------------------------------------------------


def test_epsilons_above_the_ceiling_are_refused_and_none_is_quoted() -> None:
    table = pa.table({"id": [1, 2, 3], "wage": [2345.0, 5.0, 1.0]})
    for preferences in (
        eps.Preferences.from_column("wage"),
        eps.Preferences({1: 2345.0}, default=1.0),
        eps.Preferences({}, default=2345.0),
    ):
        with pytest.raises(PreferenceError, match="above the ceiling of 10") as refused:
            read(table, preferences, ceiling=10.0)
        assert "2345" not in str(refused.value)
        assert "2,345" not in str(refused.value)
        assert len(read(table, preferences, ceiling=2345.0).ids) == 3
        assert len(read(table, preferences).ids) == 3
    read(table, eps.Preferences({1: eps.PUBLIC, 2: 10.0}, default=1.0), ceiling=10.0)

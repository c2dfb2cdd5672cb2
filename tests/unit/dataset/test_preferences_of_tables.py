"""Who asked for what: columns, levels, second tables, files, mappings, numbers; the strictest of everybody's rows."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.errors import DataError, PreferenceError
from support.wages import dataset

LEVELS = {"strict": 0.05, "standard": 0.2, "open": 1.0, "public": eps.PUBLIC}


def grants(people: eps.Dataset) -> dict[float, int]:
    return {level.epsilon: level.people for level in people.describe().levels}


def opened(columns: dict[str, Any], preferences: Any, **options: Any) -> eps.Dataset:
    options.setdefault("rows_per_person", 5)
    return dataset(pa.table(columns), preferences=preferences, **options)


# --- columns --------------------------------------------------------------------------------------------------------


def test_the_strictest_of_all_rows_counts_before_any_row_is_dropped() -> None:
    """Ann's strict wish may stand in a row that the cap drops: every order and every salt has the same grants."""
    for place in range(6):
        wishes = [1.0] * 6
        wishes[place] = 0.05
        people = opened(
            {"id": ["ann"] * 6 + ["bob"], "epsilon": [*wishes, 0.5], "x": range(7)},
            eps.Preferences.from_column("epsilon"),
            rows_per_person=1,
        )
        assert grants(people) == {0.05: 1, 0.5: 1}


@pytest.mark.parametrize(
    ("wishes", "default", "expected"),
    [
        ([1.0, 0.3, math.inf], None, 0.3),
        ([math.inf, math.inf, math.inf], None, math.inf),
        ([None, 1.0, None], None, 1.0),
        ([math.nan, 1.0, None], 0.1, 0.1),  # a row without a wish has the default, and the strictest row counts
        ([None, None, None], 0.1, 0.1),
        ([1.0, None, math.inf], eps.PUBLIC, 1.0),
        ([None, None, math.nan], eps.PUBLIC, math.inf),
    ],
)
def test_missing_wishes_have_the_default(wishes: list[float | None], default: float | None, expected: float) -> None:
    column = pa.array(wishes, pa.float64())
    people = opened({"id": [1, 1, 1], "epsilon": column}, eps.Preferences.from_column("epsilon", default))
    assert grants(people) == {expected: 1}


def test_words_that_are_no_numbers_have_the_default() -> None:
    words = ["abc", "1.0", "0.5", "", None, "nan"]
    people = opened({"id": [1, 1, 2, 3, 4, 5], "epsilon": words}, eps.Preferences.from_column("epsilon", 0.1))
    assert grants(people) == {0.1: 4, 0.5: 1}


def test_without_a_default_everybody_needs_a_wish() -> None:
    for column in ([0.5, None], [0.5, math.nan]):
        with pytest.raises(PreferenceError, match="no preference"):
            opened({"id": [1, 2], "epsilon": column}, eps.Preferences.from_column("epsilon"))
    with pytest.raises(PreferenceError, match=r"has no preference|not listed in the preferences"):
        opened({"id": [1, 2]}, {1: 0.5})
    named, listed = eps.Preferences.from_levels("privacy", LEVELS), pa.table({"id": [1], "privacy": ["open"]})
    for levels, data in (
        (named, {"id": [1, 2], "privacy": ["open", None]}),
        (eps.Preferences.from_file(listed, person="id", column="privacy", levels=LEVELS), {"id": [1, 2]}),
    ):
        with pytest.raises(PreferenceError, match="Try: default='strict'"):  # an epsilon would be refused there
            opened(data, levels)
    with pytest.raises(PreferenceError, match="missing or of an unknown kind"):
        opened({"id": [1, 2]}, None)
    with pytest.raises(PreferenceError, match="order of some array"):
        opened({"id": [1, 2]}, eps.Preferences([0.5, 1.0]))


@pytest.mark.parametrize(
    ("wish", "rule"),
    [
        (-3.25, "larger than zero"),
        (0.0, "larger than zero"),
        (7e-12, "a billionth"),
        (2_345_678.0, "at most 1,000,000"),
    ],
)
def test_an_epsilon_that_is_not_allowed_is_quoted_only_to_whoever_wrote_it(wish: float, rule: str) -> None:
    data = {"id": [1, 2], "debt": [wish, 1.0]}
    other = pa.table({"who": [1, 2], "debt": [wish, 1.0]})
    for work in (
        lambda: opened(data, eps.Preferences.from_column("debt")),
        lambda: opened(data, eps.Preferences.from_file(other, person="who", column="debt")),
    ):
        with pytest.raises(
            PreferenceError, match=f"Column 'debt' holds an epsilon that is not allowed.*{rule}"
        ) as caught:
            work()
        assert not any(f"{wish:{digits}}" in str(caught.value) for digits in (".6g", ".3g") if wish)
        assert caught.value.__context__ is None
    for given in ({1: wish, 2: 1.0}, wish):
        with pytest.raises(PreferenceError, match=f"An epsilon of {re.escape(f'{wish:.6g}')}"):
            opened({"id": [1, 2]}, given)


def test_more_wishes_than_levels_are_not_quoted_either() -> None:
    """Beyond 256 distinct epsilons another path looks for what is not allowed."""
    debts = [*np.linspace(1, 2, 5_000).tolist(), -3.25]
    with pytest.raises(PreferenceError, match="Column 'debt' holds an epsilon that is not allowed") as caught:
        opened({"id": range(5_001), "debt": debts}, eps.Preferences.from_column("debt"))
    assert "3.25" not in str(caught.value)


def test_levels_by_name() -> None:
    people = opened(
        {"id": [1, 1, 2, 3, 4], "privacy": ["open", "strict", "public", None, "standard"]},
        eps.Preferences.from_levels("privacy", LEVELS, default="standard"),
    )
    assert grants(people) == {0.05: 1, 0.2: 2, math.inf: 1}
    assert [level.name for level in people.describe().levels] == ["strict", "standard", "public"]
    assert people.count().levels[0.05] == "strict"
    people.set_level({4: "open"})
    assert grants(people)[1.0] == 1
    with pytest.raises(PreferenceError, match="Unknown privacy level 'wide'"):
        people.set_level({4: "wide"})


def test_an_unknown_level_is_refused_unquoted_and_nobody_joins() -> None:
    """The column may be another one than was meant: of five diagnoses none is named."""
    ledger = eps.ledger.open()
    for word in ("has HIV", "opne", "-1", "'", "open" + " " * 1_000):
        levels = eps.Preferences.from_levels("diagnosis", LEVELS)
        with pytest.raises(PreferenceError, match="Column 'diagnosis' holds unknown levels") as caught:
            opened({"id": [1, 2], "diagnosis": ["open", word]}, levels, ledger=ledger)
        assert word not in str(caught.value).replace("Column 'diagnosis'", "")
        assert "strict, standard, open, public" in str(caught.value)
        assert caught.value.__context__ is None
    assert ledger.cohorts() == ()


@pytest.mark.parametrize("word", ["OPEN", "open ", " Open", "open\r", "\topen\n"])
def test_a_level_in_other_letters_or_with_blanks_is_named(word: str) -> None:
    with pytest.raises(PreferenceError) as caught:
        opened({"id": [1, 2, 3], "privacy": ["open", word, "has HIV"]}, eps.Preferences.from_levels("privacy", LEVELS))
    assert f"{word!r} is not a level; did you mean 'open'?" in str(caught.value)
    assert "HIV" not in str(caught.value)


def test_columns_that_hold_no_levels_or_epsilons() -> None:
    with pytest.raises(PreferenceError, match="no preference"):
        opened({"id": [1, 2], "privacy": ["open", None]}, eps.Preferences.from_levels("privacy", LEVELS))
    with pytest.raises(PreferenceError, match="not names of levels"):
        opened({"id": [1, 2], "privacy": [1, 2]}, eps.Preferences.from_levels("privacy", LEVELS))
    with pytest.raises(PreferenceError, match="not epsilons"):
        opened({"id": [1, 2], "privacy": [True, False]}, eps.Preferences.from_column("privacy"))
    with pytest.raises(DataError, match="no column"):
        opened({"id": [1, 2]}, eps.Preferences.from_column("epsilon"))


# --- other tables ---------------------------------------------------------------------------------------------------


def test_a_second_table_or_file(tmp_path: Path) -> None:
    prefs = pa.table({"who": ["ann", "ann", "bob", "zoe"], "epsilon": [1.0, 0.2, 0.5, 4.0]})
    path = tmp_path / "prefs.csv"
    path.write_text("who,epsilon\nann,1.0\nann,.2\nbob,0.5\nzoe,4\n")
    data = {"id": ["ann", "bob", "cy"], "x": [1, 2, 3]}
    for source in (prefs, prefs.to_pandas(), path, str(path)):
        wishes = eps.Preferences.from_file(source, person="who", column="epsilon", default=0.05)
        # Zoe is on the roster, without a row; cy is in the data, without a wish.
        assert grants(opened(data, wishes)) == {0.05: 1, 0.2: 1, 0.5: 1, 4.0: 1}
    strict = eps.Preferences.from_file(path, person="who", column="epsilon")
    with pytest.raises(PreferenceError, match=r"has no preference|not listed in the preferences"):
        opened(data, strict)


def test_a_file_of_levels_with_whole_numbers_as_ids(tmp_path: Path) -> None:
    path = tmp_path / "prefs.csv"
    path.write_text("id,privacy\n1,open\n2,strict\n3,\n")
    wishes = eps.Preferences.from_file(
        path, person="id", column="privacy", levels=LEVELS, default="standard", types={"id": "int"}
    )
    assert grants(opened({"id": [1, 2, 3, 4]}, wishes)) == {0.05: 1, 0.2: 2, 1.0: 1}
    plain = eps.Preferences.from_file(path, person="id", column="privacy", levels=LEVELS, default="standard")
    assert grants(opened({"id": [1, 2, 3, 4]}, plain)) == {0.05: 1, 0.2: 2, 1.0: 1}
    for declared in ({"id": "text"}, None):  # what is declared, and what a frame holds, is not read otherwise
        source = path if declared else pa.table({"id": ["1", "2"], "privacy": ["open", "strict"]})
        where: dict[str, Any] = {"person": "id", "column": "privacy", "levels": LEVELS, "default": "standard"}
        with pytest.raises(PreferenceError, match="another kind"):
            opened({"id": [1, 2, 3, 4]}, eps.Preferences.from_file(source, types=declared, **where))
    for other in ("p1", "0x1", "1.5", str(2**64)):  # nobody's preference is passed over
        path.write_text(f"id,privacy\n 1 ,open\n{other},strict\n")
        with pytest.raises(PreferenceError, match="not a whole number"):
            opened({"id": [1, 2]}, plain)
    path.write_text(f"id,privacy\n 1 ,open\n{2**64 - 1},strict\n")
    assert grants(opened({"id": pa.array([1, 2**64 - 1], pa.uint64())}, plain)) == {0.05: 1, 1.0: 1}


def test_mappings_and_numbers() -> None:
    data = {"id": ["ann", "bob"]}
    assert grants(opened(data, {"ann": 0.1, "bob": 2, "zoe": eps.PUBLIC})) == {0.1: 1, 2.0: 1, math.inf: 1}
    assert grants(opened(data, eps.Preferences({"ann": 0.1}, default=0.05))) == {0.05: 1, 0.1: 1}
    assert grants(opened(data, 0.3)) == {0.3: 2}
    for bad in ({"ann": "strict", "bob": 1}, {"ann": [1], "bob": 1}, {"ann": True, "bob": 1}):
        with pytest.raises(PreferenceError, match="not a number"):
            opened(data, bad)
    with pytest.raises(PreferenceError, match="no preference"):
        opened(data, {"ann": None, "bob": 1})


# --- ids ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()])
def test_a_whole_number_is_the_same_id_in_any_width(kind: pa.DataType) -> None:
    """Also one that the table's type could not hold, and that is on the roster all the same."""
    people = opened({"id": pa.array([1, 2], kind)}, {1: 0.1, 2: 0.2, 100_000: 0.3})
    assert grants(people) == {0.1: 1, 0.2: 1, 0.3: 1}
    people.withdraw(pa.array([2], pa.int16()))
    people.set_level({np.int64(1): 0.7})
    assert grants(people) == {0.3: 1, 0.7: 1}


def test_large_ids() -> None:
    ids = pa.array([2**64 - 1, 1], pa.uint64())
    assert grants(opened({"id": ids}, 0.5)) == {0.5: 2}
    assert grants(opened({"id": ids}, eps.Preferences({1: 0.2}, default=0.1))) == {0.1: 1, 0.2: 1}
    with pytest.raises(PreferenceError, match="another kind") as caught:
        opened({"id": ids}, eps.Preferences({-1: 0.2}, default=0.1))
    assert caught.value.__context__ is None


def test_texts_that_mean_the_same_are_one_person_and_numbers_are_no_texts() -> None:
    names = ["1", "01", "é", "e", "a", "a a", ""]
    written = ["1 ", " 01", "E\u0301", "E", "A", "A a", " "]
    assert grants(opened({"id": names}, dict(zip(written, [0.1] * 7, strict=True)))) == {0.1: 7}
    for wrong in ({1: 0.5}, {1.0: 0.5}, {b"1": 0.5}, {None: 0.5}, {"1": 0.5, 1: 0.5}, {2**70: 1.0}):
        with pytest.raises(PreferenceError, match=r"another kind|no id"):
            opened({"id": ["1"]}, wrong)
    people = opened({"id": ["1"]}, 0.5)
    for wrong in ([1], "1", 7, [None], [["1"]]):
        with pytest.raises(PreferenceError):
            people.withdraw(wrong)


def test_categories_of_pandas_are_texts() -> None:
    frame = pa.table({"id": pa.array(["a", "b", "a"]).dictionary_encode(), "x": [1, 2, 3]}).to_pandas()
    assert frame["id"].dtype == "category"
    assert grants(dataset(frame, preferences=0.5, rows_per_person=2)) == {0.5: 2}


@pytest.mark.parametrize("ids", [[1.0, 2.0], [True, False], [[1], [2]]])
def test_ids_of_other_kinds_are_refused(ids: list[Any]) -> None:
    with pytest.raises(DataError, match=r"cannot hold people's ids\..*Try: a table that has ids$"):
        opened({"id": ids}, 0.5)
    with pytest.raises(DataError, match=r"Try: person, if one of these says whose row it is: 'name'$"):
        opened({"id": ids, "wage": [1.5, 2.5], "name": ["ann", "bob"]}, 0.5)


def test_a_type_that_was_declared_may_be_the_reason_why_a_column_holds_no_ids(tmp_path: Path) -> None:
    (tmp_path / "wages.csv").write_text("id,wage\n1,2\n")
    with pytest.raises(
        DataError,
        match=r"Try: types=\{'id': 'int'\} if it does, or person, if one of these says whose row it is: 'wage'$",
    ):
        eps.Dataset(tmp_path / "wages.csv", person="id", types={"id": "float"}, preferences=0.5, ledger="memory")


def test_rows_of_nobody_are_dropped() -> None:
    people = opened({"id": ["ann", None, None, "bob"], "x": [1, 1, 1, 1]}, 1e5)
    assert grants(people) == {1e5: 2}
    assert people.count(of="rows", share=1.0).value == pytest.approx(2, abs=0.01)
    with pytest.raises(DataError, match="no people"):
        opened({"id": pa.array([None, None], pa.string())}, 0.5)


# --- changes --------------------------------------------------------------------------------------------------------


def test_looser_wishes_wait_and_stricter_ones_do_not(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'a.ledger'}"

    def at(wishes: list[float], **acts: Any) -> eps.Dataset:
        column = eps.Preferences.from_column("epsilon")
        return opened({"id": [1, 2], "epsilon": wishes}, column, ledger=address, **acts)

    at([1.0, 1.0]).close()
    people = at([0.2, 4.0])
    assert grants(people) == {0.2: 1, 1.0: 1}
    assert people.describe().pending == 1
    assert "The source gives 1 person a larger epsilon: registering with loosen=1 grants it" in " ".join(
        str(people).split()
    )
    people.close()
    people = at([0.2, 4.0], loosen=1)
    assert people.enrolment is not None
    assert people.enrolment.loosened == 1
    assert grants(people) == {0.2: 1, 4.0: 1}
    assert people.describe().pending == 0
    people.withdraw([2])
    people.close()
    people = at([0.2, 4.0])
    assert grants(people) == {0.2: 1}
    people.set_level({2: 0.3})
    assert grants(people) == {0.2: 1, 0.3: 1}
    people.close()


def test_words_that_people_cannot_say() -> None:
    people = opened({"id": [1, 2, 3], "epsilon": [1.0] * 3}, eps.Preferences.from_column("epsilon"), ceiling=5)
    people.set_level({1: 0.5, 2: "public"})
    for wrong in ({1: None}, {1: "x"}, {1: [0.5]}, {1: -1}, {1: math.nan}, {1: True}, {1: 5.5}, [1], {"1": 0.5}):
        with pytest.raises(PreferenceError):
            people.set_level(wrong)
    assert grants(people) == {0.5: 1, 1.0: 1, math.inf: 1}


def test_a_withdrawal_of_somebody_unknown_is_reported_and_holds() -> None:
    people = opened({"id": [1, 2], "epsilon": [1.0, 1.0]}, eps.Preferences.from_column("epsilon"))
    done = people.withdraw([1, 77])
    assert (done.joined, done.withdrawn, done.unknown, done.changed) == (0, 2, 1, 2)
    assert people.withdraw([77]).unknown == 0
    later = pa.table({"id": [1, 2, 77], "epsilon": [1.0, 1.0, 1.0]})
    with dataset(
        later, preferences=eps.Preferences.from_column("epsilon"), ledger=people.ledger, rows_per_person=5
    ) as joined:
        assert grants(joined) == {1.0: 1}
        joined.set_level({77: 1.0})
        assert grants(joined) == {1.0: 2}


def test_people_who_move_keep_what_was_spent() -> None:
    people = opened({"id": [1, 2], "epsilon": [1.0, 1.0]}, eps.Preferences.from_column("epsilon"))
    people.count(share=0.5, mechanism="minimum")
    people.set_level({1: 0.75, 2: 0.25})
    assert people.remaining().epsilons == {0.25: 0.0, 0.75: 0.25}
    release = people.count(share=1.0, mechanism="minimum")
    assert release.charges == {0.25: 0.0, 0.75: 0.25}

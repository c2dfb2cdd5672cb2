"""Mistakes that would cost people their budgets, refused before anybody is charged."""

import sqlite3
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import epsilons as eps
from support.small_tables import people_dataset, people_table


def test_a_table_of_strangers_is_refused(tmp_path: Path) -> None:
    """The same people under ids of another kind would have budgets twice."""
    address = f"sqlite:///{tmp_path / 'people.ledger'}"
    table = people_table(50)
    people_dataset(table, ledger=address).close()
    words = table.set_column(0, "id", pa.array([str(person) for person in range(50)]))
    with pytest.raises(eps.LedgerError, match="ids of another kind"):
        people_dataset(words, ledger=address, version="2")
    book = eps.ledger.open(address)
    assert sum(cohort.people for cohort in book.cohorts()) == 50
    book.close()
    with people_dataset(table.slice(40), ledger=address, version="2") as some:
        assert some.describe().people == 10


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE cohorts SET spent = 0",
        "UPDATE reservations SET answer = CAST(replace(CAST(answer AS TEXT), '1', '2') AS BLOB)",
    ],
)
def test_an_edited_ledger_is_refused_before_it_is_charged(edit: str, tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with people_dataset(ledger=f"sqlite:///{path}") as people:
        people.count(share=0.5)
    with sqlite3.connect(path) as connection:
        connection.execute(edit)
    connection.close()
    with pytest.raises(eps.LedgerError, match="does not add up"):
        people_dataset(ledger=f"sqlite:///{path}")


def test_a_closed_dataset_charges_nobody(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'people.ledger'}"
    people = people_dataset(ledger=address)
    people.close()
    with pytest.raises(eps.DataError, match="closed"):
        people.count()
    with people_dataset(ledger=address) as again:
        assert again.history() == ()


MOMENT = datetime(2020, 1, 1)
STRANGE = {
    "tags": (pa.array([[1]] * 300), "list", "STRING"),
    "zoned": (pa.array([MOMENT] * 300, pa.timestamp("us", "UTC")), "TIMESTAMP WITH TIME ZONE", "TIMESTAMP"),
    "parts": (pa.array([{"secret": 1}] * 300), "STRUCT", "STRING"),
}


def about(column: str) -> dict[str, Callable[[eps.Dataset], object]]:
    """Every way of asking about a column."""
    bounds = {"age": (0, 100), column: (0, 1)}
    return {
        "is null": lambda p: p.count(where=f"{column} IS NULL"),
        "is not null": lambda p: p.mean("age", bounds=(0, 100), where=f"age > 3 OR NOT {column} IS NULL"),
        "compared": lambda p: p.count(where=f"{column} = '2020-01-01'"),
        "among": lambda p: p.count(where=f"{column} IN ('a')"),
        "count": lambda p: p.count(column),
        "mean": lambda p: p.mean(column, bounds=(0, 1)),
        "median": lambda p: p.median(column, bounds=(0, 1)),
        "histogram": lambda p: p.histogram(column, categories=["a"]),
        "bins": lambda p: p.histogram(column, edges=[0, 1]),
        "groups": lambda p: p.count(by={column: ["a"]}),
        "plan": lambda p: p.plan("mean", column, bounds=(0, 1)),
        "apply": lambda p: p.apply(lambda data, epsilon: 1, columns=[column]),
        "target": lambda p: p.apply(lambda data, epsilon: 1, columns=["age"], target=column),
        "feature": lambda p: p.linear_regression("age", [column], bounds=bounds),
        "classes": lambda p: p.logistic_regression(column, ["age"], bounds=bounds),
        "sql": lambda p: p.sql(f"SELECT COUNT({column}) FROM people"),
        "sql where": lambda p: p.sql(f"SELECT COUNT(*) FROM people WHERE {column} IS NOT NULL"),
        "sql mean": lambda p: p.sql(f"SELECT AVG({column}) FROM people", bounds={column: (0, 1)}),
    }


@pytest.mark.parametrize("column", STRANGE)
def test_a_column_that_cannot_be_asked_about_is_refused_before_anybody_is_charged(column: str) -> None:
    values, kind, plain = STRANGE[column]
    with people_dataset(people_table(300).append_column(column, values)) as people:
        for way, ask in about(column).items():
            with pytest.raises(eps.DataError) as caught:
                ask(people)
            said = str(caught.value)
            assert f"Column {column!r} of type {kind} cannot be asked about." in said, way
            assert f"CAST({column} AS {plain})" in said
            assert "secret" not in said
            assert caught.value.__context__ is None
        assert people.history() == ()


def test_the_words_of_an_enumeration_stay_out_of_messages() -> None:
    own = duckdb.connect()
    relation = own.sql("SELECT range AS id, 'a'::ENUM('a', 'secret') AS word FROM range(300)")
    with eps.Dataset(relation, person="id", preferences=1.0, ledger="memory", ceiling=1e6) as people:
        with pytest.raises(eps.DataError, match="'word' of type ENUM cannot be asked about") as caught:
            people.count(where="word = 'a'")
        assert "secret" not in str(caught.value)
        assert people.history() == ()
    plain = relation.select("id, CAST(word AS STRING) AS word")  # what the hint says
    with eps.Dataset(plain, person="id", preferences=1000.0, ledger="memory", ceiling=1e6) as people:
        assert abs(people.count(where="word = 'a'", share=0.5).value - 300) < 2


def test_a_users_connection_may_be_closed_after_opening() -> None:
    """Questions go to the copy, and so do people's words."""
    own = duckdb.connect()
    relation = own.sql("SELECT range AS id, 10.0 AS epsilon FROM range(300)")
    with eps.Dataset(
        relation, person="id", preferences=eps.Preferences.from_column("epsilon"), ledger="memory", ceiling=1e6
    ) as people:
        own.close()
        assert abs(people.count(share=0.5).value - 300) < 2
        assert len(people.history()) == 1
        assert people.withdraw([3]).withdrawn == 1
        assert people.describe().people == 299


def test_a_closed_dataset_changes_no_roster() -> None:
    ledger = eps.ledger.open()
    people = people_dataset(ledger=ledger)
    people.close()
    for change in (lambda: people.withdraw([1]), lambda: people.set_level({1: 0.1})):
        with pytest.raises(eps.DataError, match="closed"):
            change()
    assert ledger.epoch == 1


def test_a_quota_holds_for_whoever_asks() -> None:
    with people_dataset() as people:
        people.ledger.set_quota("first", questions=1)
        answer = people.count(analyst="first")
        assert people.count(analyst="second") == answer
        with pytest.raises(eps.LedgerError, match="quota"):
            people.count(where="age > 40", analyst="first")
        people.count(where="age > 40", analyst="second")
        assert [past.analyst for past in people.history()] == ["first", "second"]


def test_people_are_counted_unless_rows_are_asked_for() -> None:
    rows = pa.concat_tables([people_table(200)] * 2)
    with people_dataset(rows, rows_per_person=2, preferences=eps.Preferences({}, default=1000)) as people:
        assert abs(people.count(share=0.1).value - 200) < 2
        assert abs(people.count(of="rows", share=0.1).value - 400) < 2


def test_what_ends_a_process_is_hidden_as_well() -> None:
    def leaves(data: object, epsilon: float) -> None:
        raise SystemExit("a secret")

    with people_dataset() as people:
        assert people.apply(leaves, columns=["age"]).value == "The algorithm failed."
        with pytest.raises(eps.PlanError, match="given as a list"):
            people.apply(leaves, columns="age")


@pytest.mark.parametrize(
    "ask",
    [
        lambda people: people.mean("wage", assume=1e308),
        lambda people: people.plan("mean", "wage", assume=1e31),
        lambda people: people.kth_largest("wage", 10**400),
    ],
)
def test_a_number_that_nothing_can_be_worked_out_with_charges_nobody(ask: Callable[[eps.Dataset], object]) -> None:
    with people_dataset() as people:
        with pytest.raises(eps.EpsilonsError, match=r"at most 1e\+30 spreads|There is no k="):
            ask(people)
        assert people.history() == ()

"""Mistakes that would cost people their budgets, refused before anybody is charged."""

import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

import epsilons as eps
from small_tables import people_dataset, people_table


def test_a_table_of_strangers_is_refused(tmp_path: Path) -> None:
    """The same people under ids of another kind would have budgets twice."""
    address = f"sqlite:///{tmp_path / 'people.ledger'}"
    table = people_table(50)
    people_dataset(table, ledger=address).close()
    words = table.set_column(0, "id", pa.array([str(person) for person in range(50)]))
    with pytest.raises(eps.LedgerError, match="knows nobody of this table"):
        people_dataset(words, ledger=address)
    book = eps.ledger.open(address)
    assert sum(cohort.people for cohort in book.cohorts()) == 50
    book.close()
    with people_dataset(table.slice(40), ledger=address) as some:
        assert some.describe().people == 50


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

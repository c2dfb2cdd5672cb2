"""A ledger's books as documents and as tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from epsilons.errors import LedgerError
from epsilons.guarantee import to_epsilon
from epsilons.release.door import asked_of

if TYPE_CHECKING:
    from rich.console import Console

    from epsilons.ledger import Past, Statement
    from epsilons.ledger.ledger import Ledger


def state(book: Ledger) -> dict[str, Any]:
    """What is left, as plain values."""
    left, terms = book.remaining(), book.terms()
    people: dict[int | None, int] = {}
    for cohort in left.cohorts:
        if cohort.state == "active":
            people[cohort.granted] = people.get(cohort.granted, 0) + cohort.people
    return {
        "ledger": book.id,
        "neighbors": terms and terms.neighbors,
        "rows_per_person": terms and terms.rows_per_person,
        "allow_individual": terms and terms.allow_individual,
        "epoch": book.epoch,
        "levels": [
            {
                "epsilon": to_epsilon(granted),
                "people": people[granted],
                "left": to_epsilon(nano),
                "questions_left": left.questions.get(granted),
            }
            for granted, nano in left.nano.items()
        ],
        "public": people.get(None, 0),
        "withdrawn": sum(cohort.people for cohort in left.cohorts if cohort.state == "withdrawn"),
        "not_dp_since": left.not_dp_since,
        "quotas": [
            {
                "analyst": quota.analyst,
                "epsilon": None if quota.nano is None else to_epsilon(quota.nano),
                "questions": quota.questions,
                "used_epsilon": to_epsilon(quota.used_nano),
                "used_questions": quota.used_questions,
            }
            for quota in book.quotas()
        ],
    }


def print_state(console: Console, document: Mapping[str, Any]) -> None:
    """What is left, as tables."""
    from rich.table import Table

    table = Table(title=f"Ledger {document['ledger']}", title_justify="left")
    for head in ("epsilon granted", "people", "least left", "of the grant", "questions like the last one left"):
        table.add_column(head, justify="right")
    for level in document["levels"]:
        questions = level["questions_left"]
        table.add_row(
            f"{level['epsilon']:.6g}",
            f"{level['people']:,}",
            f"{level['left']:.6g}",
            f"{100 * level['left'] / level['epsilon']:.3g}%",
            "" if questions is None else f"{questions:,}",
        )
    console.print(table)
    console.print(f"Public: {document['public']:,}. Withdrawn: {document['withdrawn']:,}.", markup=False)
    if document["quotas"]:
        console.print(_quotas(document["quotas"]))
    _print_mark(console, document["not_dp_since"])


def _quotas(quotas: Sequence[Mapping[str, Any]]) -> Any:
    from rich.table import Table

    table = Table(title="Analysts' quotas (for fairness only, no privacy budget)", title_justify="left")
    for head in ("analyst", "epsilon used", "of at most", "questions used", "of at most"):
        table.add_column(head, justify="left" if head == "analyst" else "right")
    for quota in quotas:
        limit, often = quota["epsilon"], quota["questions"]
        table.add_row(
            _plain(quota["analyst"]),
            f"{quota['used_epsilon']:.6g}",
            "" if limit is None else f"{limit:.6g}",
            f"{quota['used_questions']:,}",
            "" if often is None else f"{often:,}",
        )
    return table


def release(past: Past) -> dict[str, Any]:
    """A line of the history, as plain values."""
    return {
        "release": past.number,
        "at": past.at,
        "kind": past.kind,
        "description": asked_of(past.description),
        "state": past.state,
        "analyst": past.analyst,
        "charges": [{"epsilon": granted, "charged": charged} for granted, charged in past.epsilons.items()],
        "individual": past.individual,
        "not_dp_since": past.not_dp_since,
    }


def print_history(console: Console, document: Sequence[Mapping[str, Any]]) -> None:
    """The history, as a table."""
    from rich.table import Table

    table = Table()
    table.add_column("release", justify="right")
    for head in ("when", "question", "state", "analyst", "charged of what was granted then"):
        table.add_column(head, overflow="fold")
    for line in document:
        table.add_row(
            str(line["release"]),
            line["at"][:16].replace("T", " "),
            _plain(line["description"] or line["kind"]),
            line["state"],
            _plain(line["analyst"] or ""),
            ", ".join(f"{c['charged']:.6g} of {c['epsilon']:.6g}" for c in line["charges"]),
        )
    console.print(table)
    _print_mark(console, document[-1]["not_dp_since"] if document else None)


def accounts(book: Ledger, person: str) -> list[tuple[str, Statement]]:
    """The accounts that a person's id may mean, each with how it was read."""
    from epsilons.ledger.identity import digests

    found = []
    for kind, reading in _readings(person):
        try:
            found.append((kind, book.statement(digests([reading], book.salt)[0].tobytes())))
        except LedgerError:
            continue
    if not found:
        raise LedgerError("This person has no account here.", suggest="the id as it stands in the table")
    return found


def _readings(person: str) -> Iterator[tuple[str, int | str]]:
    if re.fullmatch(r"-?[0-9]{1,1000}", person):
        yield "a number", int(person)
    yield "text", person


def account(kind: str, told: Statement) -> dict[str, Any]:
    """One person's account, as plain values."""
    return {
        "id_read_as": kind.removeprefix("a "),
        "state": "public" if told.granted is None and told.state == "active" else told.state,
        "granted": None if told.granted is None else to_epsilon(told.granted),
        "spent": to_epsilon(told.spent),
        "reserved": to_epsilon(told.reserved),
        "written_off": to_epsilon(told.written_off),
        "left": None if told.left is None else to_epsilon(told.left),
        "uses": [
            {
                "release": use.number,
                "kind": use.kind,
                "at": use.at,
                "charged": to_epsilon(use.charge),
                "granted": to_epsilon(use.granted),
            }
            for use in told.uses
        ],
        "while_public": list(told.when_public),
        "not_dp_since": told.not_dp_since,
        "sentences": list(told.sentences),
    }


def _print_mark(console: Console, number: int | None) -> None:
    if number is not None:
        console.print(f"Not DP since release {number}.", style="bold red")


def _plain(words: str) -> Any:
    from rich.text import Text

    return Text(words)

"""`epsilons ledger`: what is left, what was asked, one person's account, and whether the ledger adds up."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from epsilons.cli.terminal import as_json, note, print_json, width, write
from epsilons.display import show_count, show_key, text_table
from epsilons.errors import LedgerError
from epsilons.guarantee import to_epsilon

if TYPE_CHECKING:
    from epsilons.ledger import Past, Statement
    from epsilons.ledger.ledger import Ledger

# A ledger to try the commands on, so that the lines of the examples work as pasted.
_MAKE = "python -c \"from epsilons import ledger; ledger.open('sqlite:///try.ledger')\""
_JOIN = (
    "python -c \"from epsilons.ledger import identity, open; ledger = open('sqlite:///try.ledger'); "
    'ledger.enroll(identity.digests([17], ledger.salt), [500_000_000])"'
)
_MOST_CHARGES = 6


def _on_a_ledger(example: str, make: str = _MAKE) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The ledger as an argument, an option or a variable, the place of its head, and an example in the help."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        text = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = f"{text}\n\n\b\nExample:\n  {make}\n  epsilons ledger {example}\n"
        argument = click.argument("place", metavar="[LEDGER]", required=False)
        option = click.option(
            "--ledger", "named", metavar="LEDGER", envvar="EPSILONS_LEDGER", show_envvar=True,
            help="An address (sqlite:///people.ledger, postgresql://host/database) or a file; also as an argument.",
        )  # fmt: skip
        anchor = click.option("--anchor", metavar="FILE", help="Where the head of its chain is kept, if not as usual.")
        added: Callable[..., Any] = argument(option(anchor(as_json(function))))
        return added

    return add


def _open(place: str | None, named: str | None, anchor: str | None, **how: Any) -> Ledger:
    from epsilons import ledger

    address = place or named
    if not address:
        raise click.UsageError("Which ledger? Name it: epsilons ledger show sqlite:///people.ledger")
    if "://" not in address:
        address = f"sqlite:///{os.path.abspath(address)}"
    return ledger.open(address, anchor=anchor, create=False, **how)


@click.group()
def command() -> None:
    """What is left, what was asked, one person's account, and whether the ledger adds up."""


COMMANDS = {"ledger": command}


@command.command()
@_on_a_ledger("show try.ledger")
def show(as_json: bool, **where: Any) -> None:
    """What is left at every level, in epsilon and in questions like the last one."""
    with closing(_open(**where)) as ledger:
        document = _state(ledger)
    print_json(document) if as_json else _show_state(document)


@command.command()
@_on_a_ledger("history try.ledger")
def history(as_json: bool, **where: Any) -> None:
    """Every question that was ever charged, with the grants that were in force and what each of them paid."""
    with closing(_open(**where)) as ledger:
        document = [_release(past) for past in ledger.history()]
    print_json(document) if as_json else _show_history(document)


@command.command()
@click.argument("person", metavar="ID")
@_on_a_ledger("person 17 try.ledger", make=_JOIN)
def person(person: str, as_json: bool, **where: Any) -> None:
    """One person's account, in plain language.

    ID is the person's id as it stands in the table. Digits are looked up as a number and as text.
    """
    with closing(_open(**where)) as ledger:
        found = _accounts(ledger, person)
    if as_json:
        print_json([_account(kind, statement) for kind, statement in found])
        return
    for kind, statement in found:
        note(f"The id as {kind}:")
        write("\n".join(statement.sentences))


@command.command()
@_on_a_ledger("verify try.ledger")
def verify(as_json: bool, **where: Any) -> None:
    """Recount every balance from the journal, and compare all tables with it. Exit status 7 if anything differs."""
    with closing(_open(**where)) as ledger:
        done = ledger.verify()
    if as_json:
        print_json({"entries": done.entries, "releases": done.releases, "people": done.people, "head": done.head})
        return
    people = show_count(done.people, "person", "people")
    counts = f"{show_count(done.entries, 'line')}, {show_count(done.releases, 'release')}, {people}"
    write(f"The ledger adds up: {counts}.\nHead: {done.head}")


@command.command()
@_on_a_ledger("export try.ledger --output journal.jsonl")
@click.option("--output", metavar="FILE", type=click.Path(dir_okay=False), help="Write there instead of to stdout.")
def export(as_json: bool, output: str | None, **where: Any) -> None:
    """The journal, one JSON object a line: enough to recount every balance without this program.

    The hash of a line is the SHA-256 of the JSON list [hash before, seq, kind, at, body]; the first has 64 zeros before
    it. No line holds anyone's id or digest.
    """
    with closing(_open(**where)) as ledger, click.open_file(output or "-", "w", encoding="utf-8") as file:
        if as_json:
            json.dump(list(ledger.export()), file, indent=2)
            file.write("\n")
            return
        for line in ledger.export():
            file.write(json.dumps(line) + "\n")


@command.command()
@_on_a_ledger("adopt try.ledger")
@click.option("--accept-loss", is_flag=True, help="The newest records are gone: count everyone's grant as spent.")
@click.option("--yes", is_flag=True, help="Do not ask before accepting a loss.")
def adopt(as_json: bool, accept_loss: bool, yes: bool, **where: Any) -> None:
    """Take a ledger as it is where no head is known: on another machine, or after a move.

    A head that is known is never overruled, unless the loss of the newest records is accepted: then everyone's grant
    counts as fully spent, for good, and the journal says so.
    """
    if accept_loss and not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Accepting a loss spends everybody's grant for good: say --yes as well.")
        click.confirm("Everybody's grant will count as fully spent, for good. Go on?", abort=True, err=True)
    with closing(_open(**where, adopt=not accept_loss, accept_loss=accept_loss)) as ledger:
        done = ledger.verify()
    if as_json:
        print_json({"ledger": ledger.id, "entries": done.entries, "head": done.head, "accepted_loss": accept_loss})
        return
    what = "Loss accepted: everybody's grant counts as spent." if accept_loss else "Adopted."
    write(f"{what} The head is line {done.entries}: {done.head}")


# Documents and tables -----------------------------------------------------------------------------------------------


def _state(ledger: Ledger) -> dict[str, Any]:
    """What is left, as plain values."""
    left, terms = ledger.remaining(), ledger.terms()
    people: dict[int | None, int] = {}
    for cohort in left.cohorts:
        if cohort.state == "active":
            people[cohort.granted] = people.get(cohort.granted, 0) + cohort.people
    return {
        "ledger": ledger.id,
        "neighbors": terms and terms.neighbors,
        "rows_per_person": terms and terms.rows_per_person,
        "allow_individual": terms and terms.allow_individual,
        "epoch": ledger.epoch,
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
            for quota in ledger.quotas()
        ],
    }


def _show_state(document: Mapping[str, Any]) -> None:
    write(f"Ledger {document['ledger']}\n")
    rows = [
        (
            f"{level['epsilon']:.6g}",
            f"{level['people']:,}",
            f"{level['left']:.6g}",
            f"{100 * level['left'] / level['epsilon']:.3g}%",
            _limit(level["questions_left"]),
        )
        for level in document["levels"]
    ]
    head = ("epsilon granted", "people", "least left", "of the grant", "questions left")
    write(text_table(head, rows, width()))
    if any(level["questions_left"] is not None for level in document["levels"]):
        write("Questions left: like the last one.")
    write(f"Public: {document['public']:,}. Withdrawn: {document['withdrawn']:,}.")
    if document["quotas"]:
        write("\nAnalysts' quotas (for fairness only, no privacy budget)")
        used = [
            (
                show_key(quota["analyst"]),
                f"{quota['used_epsilon']:.6g}",
                _limit(quota["epsilon"]),
                f"{quota['used_questions']:,}",
                _limit(quota["questions"]),
            )
            for quota in document["quotas"]
        ]
        write(text_table(("analyst", "epsilon used", "of at most", "questions used", "of at most"), used, width()))
    _show_mark(document["not_dp_since"])


def _limit(number: float | None) -> str:
    return "" if number is None else f"{number:,}" if isinstance(number, int) else f"{number:.6g}"


def _release(past: Past) -> dict[str, Any]:
    """A line of the history, as plain values."""
    from epsilons.release.door import asked_of

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


def _show_history(document: Sequence[Mapping[str, Any]]) -> None:
    rows = []
    for line in document:
        charges = [f"{charge['charged']:.6g} of {charge['epsilon']:.6g}" for charge in line["charges"]]
        more = [f"{len(charges) - _MOST_CHARGES} more"] if len(charges) > _MOST_CHARGES else []
        rows.append(
            (
                str(line["release"]),
                line["at"][:16].replace("T", " "),
                show_key(line["description"] or line["kind"]),
                line["state"],
                show_key(line["analyst"] or ""),
                ", ".join([*charges[:_MOST_CHARGES], *more]),
            )
        )
    head = ("release", "when", "question", "state", "analyst", "charged of what was granted then")
    write(text_table(head, rows, width()))
    _show_mark(document[-1]["not_dp_since"] if document else None)


def _accounts(ledger: Ledger, person: str) -> list[tuple[str, Statement]]:
    """The accounts that a person's id may mean, each with how it was read."""
    from epsilons.ledger.identity import digests

    found = []
    for kind, reading in _readings(person):
        try:
            found.append((kind, ledger.statement(digests([reading], ledger.salt)[0].tobytes())))
        except LedgerError:
            continue
    if not found:
        raise LedgerError("This person has no account here.", suggest="the id as it stands in the table")
    return found


def _readings(person: str) -> Iterator[tuple[str, int | str]]:
    if re.fullmatch(r"-?[0-9]{1,1000}", person):
        yield "a number", int(person)
    yield "text", person


def _account(kind: str, statement: Statement) -> dict[str, Any]:
    """One person's account, as plain values."""
    return {
        "id_read_as": kind.removeprefix("a "),
        "state": "public" if statement.granted is None and statement.state == "active" else statement.state,
        "granted": None if statement.granted is None else to_epsilon(statement.granted),
        "spent": to_epsilon(statement.spent),
        "reserved": to_epsilon(statement.reserved),
        "written_off": to_epsilon(statement.written_off),
        "left": None if statement.left is None else to_epsilon(statement.left),
        "uses": [
            {
                "release": use.number,
                "kind": use.kind,
                "at": use.at,
                "charged": to_epsilon(use.charge),
                "granted": to_epsilon(use.granted),
            }
            for use in statement.uses
        ],
        "while_public": list(statement.when_public),
        "not_dp_since": statement.not_dp_since,
        "sentences": list(statement.sentences),
    }


def _show_mark(number: int | None) -> None:
    if number is not None:
        write(f"Not DP since release {number}.", style="bold red")

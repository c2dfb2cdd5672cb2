"""`epsilons ledger`: what is left, what was asked, one person's account, and whether the books add up."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from epsilons.cli.terminal import as_json, notes, print_json, results

if TYPE_CHECKING:
    from epsilons.ledger.ledger import Ledger

# A ledger to try the commands on, so that the lines of the examples work as pasted.
_MAKE = "python -c \"from epsilons import ledger; ledger.open('sqlite:///try.ledger')\""
_JOIN = (
    "python -c \"from epsilons.ledger import identity, open; book = open('sqlite:///try.ledger'); "
    'book.enroll(identity.digests([17], book.salt), [500_000_000])"'
)


def _with_example(line: str, make: str = _MAKE) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the example to a command's help, with the line that makes a ledger for it."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        text = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = f"{text}\n\n\b\nExample:\n  {make}\n  epsilons ledger {line}\n"
        return function

    return add


def _on_a_ledger(function: Callable[..., Any]) -> Callable[..., Any]:
    """The ledger as an argument, an option or a variable; and the place of its head if that is not the usual one."""
    argument = click.argument("place", metavar="[LEDGER]", required=False)
    option = click.option(
        "--ledger", "named", metavar="LEDGER", envvar="EPSILONS_LEDGER", show_envvar=True,
        help="An address (sqlite:///people.ledger, postgresql://host/database) or a file; also as an argument.",
    )  # fmt: skip
    anchor = click.option("--anchor", metavar="FILE", help="Where the head of its chain is kept, if not as usual.")
    return argument(option(anchor(as_json(function))))


def _open(
    place: str | None, named: str | None, anchor: str | None, adopt: bool = False, accept_loss: bool = False
) -> Ledger:
    from epsilons import ledger

    address = place or named
    if not address:
        raise click.UsageError("Which ledger? Name it: epsilons ledger show sqlite:///people.ledger")
    if "://" not in address:
        address = f"sqlite:///{os.path.abspath(address)}"
    return ledger.open(address, anchor=anchor, create=False, adopt=adopt, accept_loss=accept_loss)


@click.group()
def command() -> None:
    """What is left, what was asked, one person's account, and whether the books add up."""


@command.command()
@_on_a_ledger
@_with_example("show try.ledger")
def show(place: str | None, named: str | None, anchor: str | None, as_json: bool) -> None:
    """What is left at every level, in epsilon and in questions like the last one."""
    from epsilons.cli import ledger_words

    with closing(_open(place, named, anchor)) as book:
        document = ledger_words.state(book)
    if as_json:
        print_json(document)
    else:
        ledger_words.print_state(results(), document)


@command.command()
@_on_a_ledger
@_with_example("history try.ledger")
def history(place: str | None, named: str | None, anchor: str | None, as_json: bool) -> None:
    """Every question that was ever charged, with the grants that were in force and what each of them paid."""
    from epsilons.cli import ledger_words

    with closing(_open(place, named, anchor)) as book:
        document = [ledger_words.release(past) for past in book.history()]
    if as_json:
        print_json(document)
    else:
        ledger_words.print_history(results(), document)


@command.command()
@click.argument("person", metavar="ID")
@_on_a_ledger
@_with_example("person 17 try.ledger", make=_JOIN)
def person(person: str, place: str | None, named: str | None, anchor: str | None, as_json: bool) -> None:
    """One person's account, in plain language.

    ID is the person's id as it stands in the table. Digits are looked up as a number and as text.
    """
    from epsilons.cli import ledger_words

    with closing(_open(place, named, anchor)) as book:
        found = ledger_words.accounts(book, person)
    if as_json:
        print_json([ledger_words.account(kind, told) for kind, told in found])
        return
    for kind, told in found:
        notes().print(f"The id as {kind}:", markup=False)
        results().print("\n".join(told.sentences), markup=False, soft_wrap=True)


@command.command()
@_on_a_ledger
@_with_example("verify try.ledger")
def verify(place: str | None, named: str | None, anchor: str | None, as_json: bool) -> None:
    """Recount every balance from the journal, and compare all tables with it. Exit status 7 if anything differs."""
    with closing(_open(place, named, anchor)) as book:
        done = book.verify()
    if as_json:
        print_json({"entries": done.entries, "releases": done.releases, "people": done.people, "head": done.head})
        return
    counts = f"{done.entries} lines, {done.releases} releases, {done.people} people"
    results().print(f"The books add up: {counts}.\nHead: {done.head}", markup=False, soft_wrap=True)


@command.command()
@_on_a_ledger
@click.option("--output", metavar="FILE", type=click.Path(dir_okay=False), help="Write there instead of to stdout.")
@_with_example("export try.ledger --output journal.jsonl")
def export(place: str | None, named: str | None, anchor: str | None, as_json: bool, output: str | None) -> None:
    """The journal, one JSON object a line: enough to recount every balance without this program.

    The hash of a line is the SHA-256 of the JSON list [hash before, seq, kind, at, body]; the first has 64 zeros before
    it. No line holds anybody's id or digest.
    """
    with closing(_open(place, named, anchor)) as book, click.open_file(output or "-", "w", encoding="utf-8") as file:
        if as_json:
            json.dump(list(book.export()), file, indent=2)
            file.write("\n")
            return
        for line in book.export():
            file.write(json.dumps(line) + "\n")


@command.command()
@_on_a_ledger
@click.option("--accept-loss", is_flag=True, help="The newest records are gone: count everybody's grant as spent.")
@click.option("--yes", is_flag=True, help="Do not ask before accepting a loss.")
@_with_example("adopt try.ledger")
def adopt(
    place: str | None, named: str | None, anchor: str | None, as_json: bool, accept_loss: bool, yes: bool
) -> None:
    """Take a ledger as it is where no head is known: on another machine, or after a move.

    A head that is known is never overruled, unless the loss of the newest records is accepted: then everybody's grant
    counts as fully spent, for good, and the journal says so.
    """
    if accept_loss and not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Accepting a loss spends everybody's grant for good: say --yes as well.")
        click.confirm("Everybody's grant will count as fully spent, for good. Go on?", abort=True, err=True)
    with closing(_open(place, named, anchor, adopt=not accept_loss, accept_loss=accept_loss)) as book:
        done = book.verify()
    if as_json:
        print_json({"ledger": book.id, "entries": done.entries, "head": done.head, "accepted_loss": accept_loss})
        return
    words = "Loss accepted: everybody's grant counts as spent." if accept_loss else "Adopted."
    results().print(f"{words} The head is line {done.entries}: {done.head}", markup=False, soft_wrap=True)

"""`epsilons ledger`: what is left, what was asked, one person's account, and whether the ledger adds up."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from epsilons.cli.commands import keeping
from epsilons.cli.errors import Group
from epsilons.cli.ledgers import UNSAID, find_address, on_a_ledger, open_ledger, open_to_read, open_verified, tell_loss
from epsilons.cli.output import (
    describe_answer,
    note,
    print_answers,
    print_json,
    progress,
    show_answers,
    width,
    write,
)
from epsilons.display import show_count, show_key, text_table
from epsilons.errors import EpsilonsError
from epsilons.measure import PLAIN, Measure
from epsilons.storage import show_address
from epsilons.storage.files import open_anew

if TYPE_CHECKING:
    from epsilons.ledger import Remaining
    from epsilons.ledger.ledger import Ledger
    from epsilons.remote.client import RemoteDataset

_MOST_CHARGES = 6


def _open_remote(place: str | None, named: str | None, anchor: str | None) -> RemoteDataset | None:
    """What a dataset file names behind a server; its ledger stays there, and tells what analysts may know."""
    from epsilons.cli.options import open_remote

    given = place or named
    return open_remote(given) if given and given.endswith(".toml") else None


@contextlib.contextmanager
def _open_of(
    place: str | None, named: str | None, anchor: str | None, every: bool = False
) -> Iterator[tuple[Ledger, int | None]]:
    """The ledger, and the number of a dataset: that of a dataset file where the ledger holds others, too.

    None: `every` dataset is meant.
    """
    address, name = find_address(place, named)
    with closing(open_verified(place=place, named=named, anchor=anchor)) as ledger:
        names = {one.name for one in ledger.registrations(newest=True)}
        if every or name is None or names <= {name}:
            yield ledger, None
            return
        from epsilons.dataset.declared import naming
        from epsilons.dataset.registering import find_registered

        with naming(place or named or ""):
            found = find_registered(name, ledger, None).dataset
        yield ledger, found
    command = click.get_current_context().command_path
    line = f"{command} {quote(show_address(address))}"
    note(f"This is about {name} alone. The ledger holds {len(names)} datasets: {line}")


command = Group("ledger", help="What is left, what was asked, one person's account, and whether the ledger adds up.")
COMMANDS = {"ledger": command}
for _one in keeping.COMMANDS:
    command.add_command(_one)


@command.command()
@on_a_ledger("show people.toml")
def show(as_json: bool, **where: Any) -> None:
    """What is left at every level, in epsilon and in questions like the last one."""
    from epsilons.dataset.accounts import tell_levels, tell_state
    from epsilons.dataset.registry import name_grants

    if (remote := _open_remote(**where)) is not None:
        with remote:
            left = replace(remote.remaining(), names={one.epsilon: one.name for one in remote.describe().levels})
        print_json(tell_levels(left)) if as_json else _show_levels(left)
        return
    with _open_of(**where) as (ledger, dataset):
        left = ledger.remaining(dataset, present=bool(ledger.count("registrations")))
        left = replace(left, names=name_grants(ledger.levels(), left.measure))
        document = tell_state(ledger, left, dataset)
    print_json(document) if as_json else _show_state(document, left)


@command.command()
@on_a_ledger("history people.toml")
def history(as_json: bool, **where: Any) -> None:
    """Every question that was ever charged, with the grants that were in force and what each of them paid."""
    from epsilons.dataset.accounts import tell_past

    with _open_of(**where) as (ledger, dataset):
        several = ledger.history(dataset)
    document = [tell_past(past) for past in several]
    print_json(document) if as_json else _show_history(document, several[-1].measure if several else PLAIN)


@command.command()
@click.argument("number", metavar="[NUMBER]", required=False)
@on_a_ledger("answers people.toml")
def answers(number: str | None, place: str | None, as_json: bool, **where: Any) -> None:
    """Every stored answer again, newest last; with a NUMBER that one in full. Free: nothing is charged."""
    from epsilons.dataset.answers import as_table
    from epsilons.release.stored import StoredAnswers

    if number is not None and not number.isdecimal():  # answers people.toml
        if place is not None:
            raise click.UsageError(f"{number!r} is not the number of a release.")
        number, place = None, number
    which = None if number is None else int(number)
    if (remote := _open_remote(place, **where)) is not None:
        with remote:
            stored, left = remote.answers(which), remote.remaining()
    else:
        with _open_of(place, **where, every=number is not None) as (ledger, dataset):
            stored, left = StoredAnswers.of(ledger, which, dataset), ledger.remaining(dataset)
    if number is not None:
        (release,) = stored.values()
        if as_json:
            print_answers(left, release, True, release.where or None)
        else:
            show_answers(left, as_table(release), True, True)
    elif as_json:
        print_json([{"question": stored.questions[number], **describe_answer(one)} for number, one in stored.items()])
    else:
        (sheet,) = stored.sheets()
        write("\n".join([text_table(sheet.head, sheet.rows, width()), *sheet.notes]))


@command.command()
@click.argument("person", metavar="ID")
@on_a_ledger("person 17 people.toml")
def person(person: str, as_json: bool, **where: Any) -> None:
    """One person's account, in plain language.

    ID is the person's id as it stands in the table. Digits are looked up as a number and as text where no dataset is
    registered yet, so that the kind of ids is not settled.
    """
    with closing(open_verified(**where)) as ledger:
        accounts = _accounts(ledger, person)
    if as_json:
        print_json(accounts)
        return
    for account in accounts:
        note(f"The id read as {account['id_read_as']}:")
        write("\n".join(account["sentences"]))


@command.command()
@click.argument("analyst")
@on_a_ledger('quota "statistics office" people.toml --questions 100')
@click.option("--epsilon", type=float, help="At most so much, over all questions.")
@click.option("--questions", type=int, help="At most so many.")
def quota(analyst: str, epsilon: float | None, questions: int | None, as_json: bool, **where: Any) -> None:
    """What an analyst may use at most, by the name of the key or of --analyst; what is not given has no limit.

    For fairness between analysts only: it is no privacy budget. What was used before counts.
    """
    from epsilons.dataset.accounts import set_quota, tell_quotas

    with closing(open_verified(**where)) as ledger:
        set_quota(ledger, analyst, epsilon, questions)
        quotas = tell_quotas(ledger)
    print_json(quotas) if as_json else _show_quotas(quotas)
    limited = epsilon is not None or questions is not None
    if limited and not any(one["used_questions"] for one in quotas if one["analyst"] == analyst):
        note("Nobody has asked by this name yet. It limits who asks with a key of exactly this name, or --analyst.")


@command.command()
@on_a_ledger("verify people.toml")
def verify(as_json: bool, **where: Any) -> None:
    """Recount every balance from the journal, and compare all tables with it. Exit status 7 if anything differs.

    The newest snapshot of every dataset is hashed, too, where it can be reached; exit status 4 if one was changed.

    Who may only read the file recounts a copy of it, which is held to the witness, if the ledger names one, and to no
    head of this machine.
    """
    from epsilons.dataset.accounts import tell_recount

    with open_to_read(**where) as ledger, progress() as bar:
        task = bar.add_task("recounting", total=None)
        done = tell_recount(ledger, lambda line, last: bar.update(task, completed=line, total=last))
    if as_json:
        print_json(done)
        return
    people = show_count(done["people"], "person", "people")
    counts = f"{show_count(done['entries'], 'line')}, {show_count(done['releases'], 'release')}, {people}"
    lines = [f"The ledger adds up: {counts}.", f"Head: {done['head']}"]
    for told, there in {"Snapshots as registered": True, "Snapshots that could not be reached": False}.items():
        names = [name for name, reached in done["snapshots"].items() if reached is there]
        lines += [f"{told}: {', '.join(names)}."] if names else []
    write("\n".join(lines))


@command.command()
@on_a_ledger("export people.toml --output journal.jsonl")
@click.option("--output", metavar="FILE", type=click.Path(dir_okay=False), help="Write there instead of to stdout.")
def export(as_json: bool, output: str | None, **where: Any) -> None:
    """The journal, one JSON object a line: enough to recount every balance without this program.

    The hash of a line is the SHA-256 of the JSON list [hash before, seq, kind, at, body]; the first has 64 zeros before
    it. No line holds anyone's id or digest.
    """
    with (
        closing(open_ledger(**where)) as ledger,
        nullcontext(sys.stdout) if output in (None, "-") else open(output, "w", opener=open_anew) as file,
    ):
        documents = [list(ledger.export())] if as_json else ledger.export()
        file.writelines(json.dumps(line, indent=2 if as_json else None) + "\n" for line in documents)


@command.command()
@on_a_ledger("adopt people.toml")
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Records are gone, or the witness: count what may have been charged.",
)
@click.option("--yes", is_flag=True, help="Do not ask before accepting a loss.")
def adopt(as_json: bool, accept_loss: bool, yes: bool, **where: Any) -> None:
    """Take a ledger as it is where no head is known: on another machine, or after a move.

    A head that is known is never overruled, unless the loss of the newest records is accepted: then what they can have
    charged counts as spent, as far as a witness knows it, else everyone's grant, and the journal says so. What people
    said since this copy was made, levels and withdrawals, is lost with those records: they have to be asked again.
    Where the witness itself is gone for good, --witness names another one, and everyone's grant counts as spent.
    """
    if accept_loss and not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(f"What is lost counts as spent, for good. {UNSAID} Say --yes as well.")
        click.confirm(f"What is lost will count as spent, for good. {UNSAID} Go on?", abort=True, err=True)
    with closing(open_ledger(**where, adopt=not accept_loss, accept_loss=accept_loss)) as ledger:
        done = ledger.verify()
        cost, told = tell_loss(ledger) if accept_loss else ({}, "")
    document = {"ledger": ledger.id, "entries": done.entries, "head": done.head, "accepted_loss": accept_loss, **cost}
    what = f"Loss accepted. {told}" if accept_loss else "Adopted."
    print_json(document) if as_json else write(f"{what} The head is line {done.entries}: {done.head}")
    if accept_loss:
        note(f"{UNSAID} Ask them again, also those who were told that they had withdrawn.")


@command.command()
@on_a_ledger("forget people.toml --yes")
@click.option("--yes", is_flag=True, help="Everyone's budget may start anew.")
def forget(as_json: bool, place: str | None, named: str | None, anchor: str | None, yes: bool) -> None:
    """Forget that a ledger stood at an address, so that another one may be made there: everyone's budget starts anew.

    A ledger that was deleted, moved or emptied is not made again in silence at its address. If its newest copy is gone
    for good and people agree to new budgets, this is the act that says so. A ledger that is there stays as it is.
    """
    from epsilons import ledger
    from epsilons.ledger.opening import find_places

    address, _ = find_address(place, named)
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("A new ledger there lets everyone's budget start anew: say --yes as well.")
        click.confirm("A new ledger there will let everyone's budget start anew. Go on?", abort=True, err=True)
    known = find_places().forget(address)
    what = (
        "Forgotten. A ledger that is made there lets everyone's budget start anew."
        if known
        else "None was known there."
    )
    stands = False
    with contextlib.suppress(EpsilonsError):
        ledger.open(address, create=False, look=True).close()
        stands, what = (
            True,
            "A ledger stands there and stays as it is: opened, it is known again.",
        )
    print_json({"ledger": address, "known": known, "stands": stands}) if as_json else write(what)


# Documents and tables -----------------------------------------------------------------------------------------------


def _show_state(document: Mapping[str, Any], left: Remaining) -> None:
    about = f", dataset {document['dataset']}" if document["dataset"] else ""
    write(f"Ledger {document['ledger']}{about}\n")
    _show_levels(left)
    gone = f" On no roster now, and not counted: {document['gone']:,}." if "gone" in document else ""
    write(f"Public: {document['public']:,}. Withdrawn: {document['withdrawn']:,}.{gone}")
    if document["quotas"]:
        write("")
        _show_quotas(document["quotas"])
    _show_mark(document["not_dp_since"])


def _show_quotas(quotas: Sequence[Mapping[str, Any]]) -> None:
    write("Analysts' quotas (for fairness only, no privacy budget)")
    shown = ("analyst", "used_epsilon", "epsilon", "used_questions", "questions")
    head = ("analyst", "epsilon used", "of at most", "questions used", "of at most")
    _show_table(head, [tuple(quota[name] for name in shown) for quota in quotas])


def _show_levels(left: Remaining) -> None:
    (sheet,) = left.sheets()
    write("\n".join([text_table(sheet.head, sheet.rows, width()), sheet.notes[0], *left.measure.notes]))


def _show_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Numbers and text in columns; an empty cell stands for what is not known."""
    kinds = {int: "{:,}".format, float: "{:.6g}".format, type(None): lambda _: ""}
    write(text_table(head, [[kinds.get(type(cell), show_key)(cell) for cell in row] for row in rows], width()))


def _show_history(document: Sequence[Mapping[str, Any]], measure: Measure) -> None:
    analysts = ["analyst"] if any(line["analyst"] for line in document) else []
    rows = []
    for line in document:
        paid = [(charge["epsilon"], charge["charged"]) for charge in line["charges"]]
        parts = ["" if measure.delta is None else f" ({100 * measure.part(*one):.3g}%)" for one in paid]
        charges = [f"{one:.6g}{part} of {granted:.6g}" for (granted, one), part in zip(paid, parts, strict=True)]
        if len(charges) > _MOST_CHARGES:
            charges[_MOST_CHARGES:] = [f"{len(charges) - _MOST_CHARGES} more"]
        when, question = line["at"][:16].replace("T", " "), line["description"] or line["kind"]
        rows.append((line["release"], when, question, line["state"], *map(line.get, analysts), ", ".join(charges)))
    charged = f"charged{'' if measure.delta is None else ' in rho'} of what was granted then"
    _show_table(("release", "when", "question", "state", *analysts, charged), rows)
    _show_mark(document[-1]["not_dp_since"] if document else None)


def _accounts(ledger: Ledger, person: str) -> list[dict[str, Any]]:
    """The accounts that a person's id may mean, each with how it was read."""
    from epsilons.cli.commands.person import read_ids
    from epsilons.dataset.accounts import tell_statement
    from epsilons.dataset.registry import find_people
    from epsilons.engines.base import Column

    terms, refused, found = ledger.terms(), list[EpsilonsError](), []
    for kind in ("number", "text") if terms is None or terms.ids is None else (terms.ids,):
        try:
            (digest,) = find_people(ledger, read_ids([person], kind), Column("id", kind))
            found.append({"id_read_as": kind, **tell_statement(ledger.statement(digest.tobytes()))})
        except EpsilonsError as error:
            refused.append(error)
    if not found:
        raise refused[-1]
    return found


def _show_mark(number: int | None) -> None:
    if number is not None:
        write(f"Not DP since release {number}.", style="bold red")

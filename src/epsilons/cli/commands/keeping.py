"""`epsilons ledger backup`, `restore`, `move`, `retire` and `witness`: what is done with a ledger as a whole."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from typing import Any

import click

from epsilons.cli.ledgers import UNSAID, find_address, on_a_ledger, open_ledger, open_verified, tell_loss
from epsilons.cli.output import note, print_json, write
from epsilons.storage import show_address

_NOTHING = {"counts_as_spent": 0.0, "everything": False}


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@on_a_ledger("backup wages.backup people.toml")
def backup(file: str, as_json: bool, **where: Any) -> None:
    """Copy a ledger to a file, as it stands, while it is in use. FILE is its owner's alone, and no ledger to open.

    Should it be put back one day, what came after it counts as spent: so much as a witness can tell, else everything.
    """
    from epsilons.ledger.moving import back_up

    with closing(open_ledger(**where)) as ledger:
        line = back_up(ledger, os.path.abspath(file))
    document = {"ledger": ledger.id, "line": line, "file": file}
    print_json(document) if as_json else write(f"Copied up to line {line} to {file}.")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, exists=True))
@on_a_ledger("restore wages.backup people.toml --yes")
@click.option("--yes", is_flag=True, help="Do not ask before what came after the backup counts as spent.")
def restore(file: str, as_json: bool, yes: bool, place: str | None, named: str | None, anchor: str | None) -> None:
    """Put a backup in the place of a ledger that is lost, or does not add up. What stood there is kept beside it.

    What can have been charged since counts as spent: where a witness knows the backup's last line, as much as anybody
    was charged after it; else everyone's grant, until they consent anew. What people said since is lost, too. Stop
    whatever has the ledger open before.
    """
    from epsilons.ledger.moving import restore

    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(f"What came after the backup will count as spent. {UNSAID} Say --yes as well.")
        click.confirm(f"What came after the backup will count as spent. {UNSAID} Go on?", abort=True, err=True)
    ledger, lost = restore(os.path.abspath(file), find_address(place, named)[0], anchor)
    with closing(ledger):
        done = ledger.verify()
        known, told = tell_loss(ledger) if lost else (_NOTHING, "Nothing was lost.")
    document = {"ledger": ledger.id, "entries": done.entries, **known}
    print_json(document) if as_json else write(f"Restored. {told}")
    if lost:
        note(f"{UNSAID} Ask them again, also those who were told that they had withdrawn.")


@click.command()
@click.argument("target")
@on_a_ledger("move elsewhere.ledger people.toml")
def move(target: str, as_json: bool, place: str | None, named: str | None, anchor: str | None) -> None:
    """Take a ledger to another file or database, TARGET. The old one stays as it is, and is refused from then on.

    Interrupted, the same command finishes it. Snapshots of datasets stay where they are, and are found from the new
    place.
    """
    from epsilons.ledger.moving import move

    address = target if "://" in target else f"sqlite:///{os.path.abspath(target)}"
    with closing(move(find_address(place, named)[0], address, anchor)) as ledger:
        line = ledger.verify().entries
    shown = show_address(address)
    print_json({"ledger": ledger.id, "entries": line, "place": shown}) if as_json else write(f"Moved to {shown}.")


@click.command()
@on_a_ledger("retire people.toml --yes")
@click.option("--yes", is_flag=True, help="For good.")
def retire(as_json: bool, yes: bool, **where: Any) -> None:
    """Ask nothing more of a ledger, for good. History, statements and stored answers stay readable."""
    from epsilons.ledger.moving import retire

    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("A ledger is retired for good: say --yes as well.")
        click.confirm("The ledger will take no more questions, for good. Go on?", abort=True, err=True)
    with closing(open_ledger(**where)) as ledger:
        retire(ledger)
    print_json({"ledger": ledger.id, "state": "retired"}) if as_json else write("Retired: it takes no more questions.")


@click.command()
@click.argument("address")
@on_a_ledger("witness sqlite:///witness.store people.toml")
def witness(address: str, as_json: bool, **where: Any) -> None:
    """Let a witness keep the head, for every client of the ledger: an older copy is refused to all of them.

    ADDRESS is that of `epsilons witness` (https://...), or of another PostgreSQL (postgresql://host/database), in which
    clients need no more than to add and to read rows, or of a file of this machine (sqlite:///file). It is a term of
    the ledger from now on, and part of its journal. Another one may take over while the present one is reached.
    """
    with closing(open_verified(**where)) as ledger:
        ledger.set_witness(address)
    print_json({"ledger": ledger.id, "witness": address}) if as_json else write(f"The head is kept at {address}.")


COMMANDS = (backup, restore, move, retire, witness)

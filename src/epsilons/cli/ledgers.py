"""How commands name a ledger, and open it: an address, a file, or a dataset file that names one."""

from __future__ import annotations

import inspect
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from epsilons.cli.options import apply_all
from epsilons.cli.output import as_json
from epsilons.storage import sqlite_path

if TYPE_CHECKING:
    from epsilons.ledger.ledger import Ledger

UNSAID = "What people said since this copy was made, levels and withdrawals, is lost, too."
_ADDRESS = "An address (sqlite:///people.ledger, postgresql://host/database), a file, or a dataset file that names one."
#: How often a file that others write is copied before that is given up.
_TRIES = 100
_PLACES = (
    click.argument("place", metavar="[LEDGER]", required=False),
    click.option("--ledger", "named", metavar="LEDGER", envvar="EPSILONS_LEDGER", show_envvar=True, help=_ADDRESS),
    click.option("--witness", "--anchor", "anchor", metavar="FILE", help="Where its head is kept, if not as usual."),
    as_json,
)


def on_a_ledger(example: str) -> Callable[[Any], Any]:
    """The ledger as an argument, an option or a variable, the place of its head, and an example in the help."""

    def add(function: Any) -> Any:
        text = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = f"{text}\n\n\b\nExample:\n  epsilons ledger {example}\n"
        return apply_all(_PLACES)(function)

    return add


def open_ledger(place: str | None, named: str | None, anchor: str | None, **how: Any) -> Ledger:
    from epsilons import ledger

    return ledger.open(find_address(place, named)[0], witness=anchor, create=False, **how)


@contextmanager
def open_to_read(place: str | None, named: str | None, anchor: str | None) -> Iterator[Ledger]:
    """A ledger to recount. Who may only read its file reads a copy of it, held to its witness if it names one."""
    from epsilons import ledger

    address, _ = find_address(place, named)
    path = sqlite_path(address)
    if path is None or not os.path.isfile(path) or _may_write(path):
        with closing(open_ledger(place, named, anchor)) as opened:
            yield opened
        return
    with tempfile.TemporaryDirectory() as folder:  # its owner's alone
        _copy_as_it_stands(path, os.path.join(folder, "ledger"))
        with closing(ledger.open(f"sqlite:///{folder}/ledger", witness=False, create=False, look=True)) as opened:
            yield opened


def _copy_as_it_stands(path: str, copy: str) -> None:
    """A ledger with its log: begun anew if the log was written back meanwhile, since the two would not fit."""
    from epsilons.ledger.opening import OWNER

    for _ in range(_TRIES):
        before = os.stat(path)
        shutil.copyfile(path, copy)
        try:
            shutil.copyfile(f"{path}-wal", f"{copy}-wal")
        except FileNotFoundError:
            Path(f"{copy}-wal").unlink(missing_ok=True)
        after = os.stat(path)
        if (before.st_ino, before.st_size, before.st_mtime_ns) == (after.st_ino, after.st_size, after.st_mtime_ns):
            return
    raise OWNER.refused()


def _may_write(path: str) -> bool:
    return os.access(path, os.W_OK) and os.access(os.path.dirname(os.path.abspath(path)), os.W_OK)


def open_verified(**where: str | None) -> Ledger:
    """A ledger whose tables say what its journal says, as far as asking looks at them, too."""
    ledger = open_ledger(**where)
    try:
        ledger.verify(thorough=False)
    except BaseException:
        ledger.close()
        raise
    return ledger


def tell_loss(ledger: Ledger) -> tuple[dict[str, Any], str]:
    """What counts as spent since records were lost: for a document, and as a sentence."""
    from epsilons.ledger.losses import read_last

    with ledger.reading() as connection:
        cost, terms = read_last(connection), ledger.terms()
    if cost < 0:
        told = "Everyone's grant counts as spent, until they consent anew."
        return {"counts_as_spent": None, "everything": True}, told
    amount = cost / 1e9 if terms is None else terms.counted.amount(cost)
    return {"counts_as_spent": amount, "everything": False}, f"Of everyone's grant {amount:g} more counts as spent."


def find_address(place: str | None, named: str | None) -> tuple[str, str | None]:
    """(the address, the dataset's name if it was a dataset file that was given)."""
    given, dataset = place or named, None
    if given and given.endswith(".toml"):
        from epsilons.dataset.declared import find_accounts

        dataset, given = find_accounts(given)
    if not given:
        raise click.UsageError(
            "Which ledger? Name it as well: --ledger people.toml, or --ledger sqlite:///people.ledger"
        )
    return given if "://" in given else f"sqlite:///{os.path.abspath(given)}", dataset

"""`epsilons check` and `register`: a dataset file is looked over, and settled in its ledger."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from epsilons.cli import output
from epsilons.cli.errors import STATUS, parameters_of, refusing, write_argument
from epsilons.cli.options import dataset_file
from epsilons.errors import EpsilonsError, LedgerError

if TYPE_CHECKING:
    from epsilons.ledger import Enrolment


def _report(done: Enrolment, as_json: bool, **more: Any) -> None:
    output.print_json({**vars(done), **more}) if as_json else output.write(str(done))


@click.command(short_help="Register a dataset in its ledger: read once, enrol its people.")
@dataset_file
@click.option("--yes", "confirm", is_flag=True, help="Many of these people are new, and that is right.")
@click.option("--loosen", type=int, metavar="PEOPLE", help="So many people may have a larger epsilon than before.")
@click.option("--redefine", is_flag=True, help="Levels mean what the file says, in all datasets of the ledger.")
@output.as_json
def register(dataset: str, confirm: bool, loosen: int | None, redefine: bool, as_json: bool) -> None:
    """Register what a dataset file declares: an act of the steward, after which anyone can ask.

    The source is read once, into a private snapshot beside the ledger, and its people are enrolled. Again, with newer
    data: newcomers join, stricter preferences hold at once, larger epsilons wait for --loosen and their number.

    \b
    Example:
      epsilons register people.toml
    """
    from epsilons.dataset import Dataset
    from epsilons.dataset.accounts import register_declared
    from epsilons.ledger.registration import has_many_unmatched
    from epsilons.ledger.values import tell_waiting

    with refusing([register]), output.preparing(f"Registering {dataset}"):
        made, done = register_declared(dataset, Dataset, confirm, loosen, redefine)
    _report(done, as_json, dataset=made.name, version=made.version, registration=made.number)
    if done.pending:
        told = tell_waiting(done.pending, done.pending_own)
        also = " --yes" if has_many_unmatched(done) else ""
        output.note(f"{told}: epsilons register {quote(dataset)} --loosen {done.pending}{also}")
    output.note(f"Registered {made.name}, version {made.version}. Next: epsilons plan {quote(dataset)} count")
    output.note(f"Cells that could not be read count as missing; how many: epsilons check {quote(dataset)} --steward")


@click.command(short_help="Look over a dataset file, and what registering it would change. Writes nothing.")
@dataset_file
@click.option("--steward", is_flag=True, help="Private facts too: not for publication.")
@output.as_json
def check(dataset: str, steward: bool, as_json: bool) -> int:
    """Read what a dataset file declares and say what registering it would change. Nothing is written or charged.

    Everything is shown also where registering would be refused; the exit status is then that of the refusal.

    --steward adds facts that are private, for the steward's eyes: rows cut by the cap or without an id, cells that did
    not parse, values outside bounds.

    \b
    Example:
      epsilons check people.toml
    """
    from epsilons.dataset.declared import arguments_of, lasting_arguments
    from epsilons.dataset.preview import look_over

    with refusing([register]), output.preparing(f"Reading {dataset}"):
        refused: list[EpsilonsError] = []
        try:
            named = lasting_arguments(dataset, reading=True)
        except LedgerError as none:  # it names no ledger, which is not all that there is to say
            named, refused = {**arguments_of(dataset), "ledger": "memory"}, [none]
        seen = look_over(
            **named,
            refused=refused,
            steward=steward,
            write=lambda argument: write_argument(argument, parameters_of([register])),
        )
    output.print_json(seen.to_dict()) if as_json else output.write(str(seen))
    return STATUS.get(seen.code, 1) if seen.refused else 0


@click.command(short_help="The former name of `register`.", hidden=True)
@dataset_file
@output.as_json
@click.pass_context
def sync(context: click.Context, dataset: str, as_json: bool) -> None:
    """The former name of `epsilons register`, which takes preferences too.

    \b
    Example:
      epsilons sync people.toml
    """
    output.note("epsilons sync is now epsilons register; larger epsilons wait for --loosen and their number.")
    context.invoke(register, dataset=dataset, confirm=False, loosen=None, redefine=False, as_json=as_json)


COMMANDS = {"register": register, "check": check, "sync": sync}

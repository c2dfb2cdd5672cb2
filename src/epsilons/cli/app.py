"""`epsilons`: finds the commands, runs one, and turns errors into an exit status.

A command is imported when it is used or listed, so that `epsilons collect respond` does not wait for a database driver.
"""

import errno
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from io import StringIO
from typing import Any, cast

import click
from click.shell_completion import get_completion_class

from epsilons import __version__
from epsilons.cli.errors import Listing, Refusal, parameters_of
from epsilons.cli.output import note
from epsilons.errors import EpsilonsError
from epsilons.statistics.catalogue import CATALOGUE

#: {file of cli/commands: what is typed}; each file holds its commands in `COMMANDS`, by these names.
FILES = {
    "statistics": (*(name.replace("_", "-") for name in CATALOGUE), "plan", "relation", "budget", "sql"),
    "batch": ("batch",),
    "init": ("init",),
    "file": ("register", "check", "sync"),
    "person": ("person",),
    "ledger": ("ledger",),
    "serve": ("serve", "keys"),
    "witness": ("witness",),
    "collect": ("collect",),
    "papers": ("papers",),
    "audit": ("audit",),
    "demo": ("demo",),
}


#: Why nothing can be written to a file.
_NO_PLACE = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR)
#: Python looks for what is no longer used after so many new objects: a command ends before there is much of it.
_SELDOM = 100_000


class Commands(Listing):
    """The commands of `FILES`, and those defined here."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *(name for names in FILES.values() for name in names)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = cmd_name.replace("_", "-")  # as the library writes kth_largest
        file = next((file for file, names in FILES.items() if cmd_name in names), None)
        return load(file)[cmd_name] if file else super().get_command(ctx, cmd_name)


def load(file: str) -> dict[str, click.Command]:
    """The commands of a file."""
    return cast(dict[str, click.Command], importlib.import_module(f"epsilons.cli.commands.{file}").COMMANDS)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="epsilons")
def epsilons() -> None:
    """Differential privacy where everyone sets their own epsilon.

    Results go to stdout, progress and notes to stderr. Exit status: 0 done, 2 a mistake in the command, 3 preferences,
    4 data, 5 the question, 6 nothing left to spend, 7 the ledger, 8 a collection's protocol, 1 anything else.
    """


@epsilons.command(short_help="Print what a shell needs to complete commands.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what a shell needs to complete the commands and options of epsilons.

    \b
    Example:
      eval "$(epsilons completion bash)"
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(epsilons, {}, "epsilons", "_EPSILONS_COMPLETE").source())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and say how it went as an exit status."""
    try:
        outcome: Any = epsilons.main(args=arguments, prog_name="epsilons", standalone_mode=False)
    except (EpsilonsError, click.ClickException) as error:
        if isinstance(error, EpsilonsError):
            error = Refusal(error, parameters_of(load("statistics").values()))
        shown = StringIO()  # click breaks no lines
        error.show(shown)
        note(shown.getvalue().rstrip())
        return error.exit_code
    except OSError as error:
        if error.errno in _NO_PLACE and error.filename is not None:  # a file that was named for a result
            note(f"epsilons: {error.filename}: {error.strerror}")
            return 1
        # A reader that went away is no fault; a full disk is.
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EIO):
            raise
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 what is buffered has nowhere to go
        note("epsilons: the output could not be written; ask again: a stored answer is free")
        return 1
    except (click.Abort, KeyboardInterrupt):
        note("epsilons: interrupted")
        return 130
    return outcome if isinstance(outcome, int) else 0


def run() -> None:
    """The entry point of the installed command."""
    gc.set_threshold(_SELDOM)
    sys.exit(main())

"""`epsilons`: finds the commands, runs one, and turns errors into an exit status.

A command is imported when it is used or listed, so that `epsilons collect respond` does not wait for a database driver.
"""

from __future__ import annotations

import errno
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from typing import Any

import click

from epsilons import __version__
from epsilons.cli import commands
from epsilons.cli.terminal import notes
from epsilons.cli.wording import reworded
from epsilons.errors import EpsilonsError
from epsilons.statistics.catalogue import CATALOGUE

#: Exit status by the stable code of an error. 1 is anything else of ours, 2 is a mistake in the command itself.
STATUS = {"preference": 3, "data": 4, "plan": 5, "budget": 6, "ledger": 7, "protocol": 8}
_INTERRUPTED = 130


#: One file holds a command for every statistic of the catalogue; each of the others holds one.
_STATISTICS = "statistics"


class Commands(click.Group):
    """The commands found beside this file."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        files = {module.name for module in pkgutil.iter_modules(commands.__path__)} - {_STATISTICS}
        return sorted(name.replace("_", "-") for name in (*files, *CATALOGUE))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = cmd_name.replace("_", "-")  # as the library writes kth_largest
        if cmd_name not in self.list_commands(ctx):
            return None
        if cmd_name.replace("-", "_") in CATALOGUE:
            made: dict[str, click.Command] = importlib.import_module(f"{commands.__name__}.{_STATISTICS}").COMMANDS
            return made[cmd_name]
        module = importlib.import_module(f"{commands.__name__}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="epsilons")
def epsilons() -> None:
    """Differential privacy where everyone sets their own epsilon.

    Results go to stdout, progress and notes to stderr. Exit status: 0 done, 2 a mistake in the command, 3 preferences,
    4 data, 5 the question, 6 nothing left to spend, 7 the ledger, 8 a collection's protocol, 1 anything else.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and say how it went as an exit status."""
    try:
        outcome: Any = epsilons.main(args=arguments, prog_name="epsilons", standalone_mode=False)
    except EpsilonsError as error:
        notes().print(f"epsilons: {reworded(error)}", markup=False, highlight=False, soft_wrap=True)
        return STATUS.get(error.code, 1)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except OSError as error:
        # A reader that went away is no fault; a full disk is.
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EIO):
            raise
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 what is buffered has nowhere to go
        words = "epsilons: the output could not be written; ask again: a stored answer is free"
        notes().print(words, markup=False, highlight=False, soft_wrap=True)
        return 1
    except (click.Abort, KeyboardInterrupt):
        notes().print("epsilons: interrupted", markup=False, highlight=False)
        return _INTERRUPTED
    return outcome if isinstance(outcome, int) else 0


def run() -> None:
    """The entry point of the installed command."""
    sys.exit(main())


if __name__ == "__main__":
    run()

"""`epsilons collect`: ask people directly. One file per subcommand, each holding `command`."""

from __future__ import annotations

import importlib
import pkgutil

import click


@click.group()
def command() -> None:
    """Ask people directly: they randomize their own answers, or share them among aggregators; you estimate."""


for _module in pkgutil.iter_modules(__path__):
    command.add_command(importlib.import_module(f"{__name__}.{_module.name}").command, _module.name.replace("_", "-"))

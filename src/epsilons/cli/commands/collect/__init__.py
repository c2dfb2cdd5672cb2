"""`epsilons collect`: ask people directly."""

from __future__ import annotations

import click

from epsilons.cli.commands.collect import aggregators, owner, survey
from epsilons.cli.errors import Group


@click.group(cls=Group)
def command() -> None:
    """Ask people directly: they randomize their own answers, or share them among aggregators; you estimate."""


for _command in (*survey.COMMANDS, *owner.COMMANDS, *aggregators.COMMANDS):
    command.add_command(_command)

COMMANDS = {"collect": command}

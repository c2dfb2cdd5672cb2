"""`epsilons collect`: ask people directly."""

from __future__ import annotations

from typing import Any

import click

from epsilons.cli.commands.collect import aggregators, demo, owner, survey
from epsilons.cli.errors import refusing


class _Collect(click.Group):
    """Its subcommands are refused in terms of their own flags."""

    def invoke(self, ctx: click.Context) -> Any:
        with refusing(self.commands.values()):
            return super().invoke(ctx)


@click.group(cls=_Collect)
def command() -> None:
    """Ask people directly: they randomize their own answers, or share them among aggregators; you estimate."""


for _command in (*survey.COMMANDS, *owner.COMMANDS, *aggregators.COMMANDS, demo.demo):
    command.add_command(_command)

COMMANDS = {"collect": command}

"""`epsilons completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command(short_help="Print what a shell needs to complete commands.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print what a shell needs to complete the commands and options of epsilons.

    \b
    Example:
      eval "$(epsilons completion bash)"
    """
    from epsilons.cli.app import epsilons

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(epsilons, {}, "epsilons", "_EPSILONS_COMPLETE").source())

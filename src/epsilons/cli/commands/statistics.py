"""A command for every statistic of the catalogue, with a flag for each of its arguments and options."""

from __future__ import annotations

from typing import Any

import click

from epsilons.cli import asking
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.statistics.entry import Entry


def _command(entry: Entry) -> click.Command:
    def ask(dataset: str, **given: Any) -> None:
        with asking.open_dataset(dataset) as people:
            asking.answer(people, entry, given)

    ask.__doc__ = f"{entry.help}\n\n\b\nExample:\n  {entry.command}"
    for parameter in reversed([*asking.own_parameters(entry), *asking.option_flags(), *asking.SPENDING]):
        ask = parameter(ask)
    return click.command(entry.name.replace("_", "-"), short_help=entry.help)(asking.dataset_file(ask))


#: The commands by the names that users type.
COMMANDS: dict[str, click.Command] = {
    command.name or "": command for command in (_command(entry) for entry in CATALOGUE.values())
}

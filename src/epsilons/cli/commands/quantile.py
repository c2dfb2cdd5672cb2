"""`epsilons quantile`."""

from __future__ import annotations

from typing import Any

import click

from epsilons.cli import asking


@click.command(short_help="The value below which a part Q of the values lies.")
@asking.dataset_file
@asking.column_name
@click.argument("q", type=float)
@asking.bounds
@asking.step
@asking.asking
@asking.spending
def command(dataset: str, column: str, q: float, **given: Any) -> None:
    """The value below which a part Q of the values lies.

    \b
    Example:
      epsilons quantile people.toml wage 0.9 --bounds 0,100 --share 0.05
    """
    with asking.open_dataset(dataset) as people:
        asking.answer(people, "quantile", given, column=column, q=q)

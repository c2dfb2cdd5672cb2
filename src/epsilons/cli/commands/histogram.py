"""`epsilons histogram`."""

from __future__ import annotations

from typing import Any

import click

from epsilons.cli import asking


@click.command(short_help="How many rows fall into each bin or category.")
@asking.dataset_file
@asking.column_name
@click.option("--edges", type=asking.Numbers(), help="Bins [a, b), [b, c), ...")
@click.option("--categories", help="Categories, with commas between them.")
@click.option("--outside", type=click.Choice(["drop", "clip"]), help="What becomes of values outside the edges.")
@asking.asking
@asking.spending
def command(dataset: str, column: str, categories: str | None, **given: Any) -> None:
    """How many rows fall into each bin or category.

    \b
    Example:
      epsilons histogram people.toml wage --edges 0,10,20,50,100 --share 0.05
    """
    with asking.open_dataset(dataset) as people:
        listed = None if categories is None else asking.keys(column, categories, people)
        asking.answer(people, "histogram", given, column=column, categories=listed)

"""`epsilons count`."""

from __future__ import annotations

from typing import Any

import click

from epsilons.cli import asking


@click.command(short_help="How many people, or rows, meet a condition; of a column, those whose value is 1.")
@asking.dataset_file
@click.argument("column", required=False)
@click.option("--of", type=click.Choice(["people", "rows"]), help="What is counted.")
@asking.asking
@asking.spending
def command(dataset: str, column: str | None, **given: Any) -> None:
    """How many people, or rows, meet a condition; of a column, those whose value is 1.

    \b
    Example:
      epsilons count people.toml --where "age >= 65" --share 0.05
    """
    with asking.open_dataset(dataset) as people:
        asking.answer(people, "count", given, column=column)

"""`epsilons plan`."""

from __future__ import annotations

from typing import Any

import click

from epsilons.cli import asking
from epsilons.cli.terminal import as_json as json_option
from epsilons.errors import PlanError

_STATISTICS = ["count", "sum", "mean", "variance", "median", "quantile", "min", "max", "histogram"]


@click.command(short_help="What a question would cost and how far it would err. Free.")
@asking.dataset_file
@click.argument("statistic", type=click.Choice(_STATISTICS))
@click.argument("column", required=False)
@asking.bounds
@asking.step
@click.option("--q", type=float, help="For quantile: the part of the values below it.")
@click.option("--edges", type=asking.Numbers(), help="For histogram: bins [a, b), [b, c), ...")
@click.option("--categories", help="For histogram: categories, with commas between them.")
@click.option("--outside", type=click.Choice(["drop", "clip"]), help="For histogram: values outside the edges.")
@click.option("--of", type=click.Choice(["people", "rows"]), help="For count: what is counted.")
@asking.asking
@json_option
def command(
    dataset: str, statistic: str, column: str | None, categories: str | None, as_json: bool, **given: Any
) -> None:
    """What a question would cost and how far it would err, for every mechanism. Free: nothing is charged.

    \b
    Example:
      epsilons plan people.toml mean wage --share 0.1
    """
    if statistic == "quantile" and given["q"] is None:
        raise PlanError("A quantile needs its Q.", rule="It is the part of the values below it.", hint="--q 0.9")
    with asking.open_dataset(dataset) as people:
        listed = None if categories is None else asking.keys(column or "", categories, people)
        options = asking.arguments({**given, "column": column, "categories": listed}, people)
        options.pop("mechanism", None)
        asking.show_plan(people, statistic, options, as_json)

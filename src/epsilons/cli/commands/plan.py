"""`epsilons plan`."""

from __future__ import annotations

from typing import Any

import click

from epsilons.arguments.options import TABLES
from epsilons.cli import asking
from epsilons.cli.terminal import as_json as json_option
from epsilons.errors import PlanError
from epsilons.statistics.catalogue import CATALOGUE


@click.command(short_help="What a question would cost and how far it would err. Free.")
@asking.dataset_file
@click.argument("statistic", type=click.Choice([name.replace("_", "-") for name in CATALOGUE]))
@click.argument("column", required=False)
@click.argument("more", nargs=-1, metavar="[Q|K|FEATURES]")
@asking.planning
@json_option
@click.pass_context
def command(
    context: click.Context, /, dataset: str, statistic: str, more: tuple[str, ...], as_json: bool, **given: Any
) -> None:
    """What a question would cost and how far it would err, for every mechanism. Free: nothing is charged.

    \b
    Example:
      epsilons plan people.toml mean wage --share 0.1
    """
    entry = CATALOGUE[statistic.replace("-", "_")]
    # What the statistic's own command takes by place (Q, K, FEATURES) is taken so here, too.
    places = [argument.name for argument in entry.own(TABLES).values() if argument.positional]
    if len(more) > len(places):
        raise click.UsageError(f"Got unexpected extra arguments ({' '.join(more[len(places) :])})", context)
    flags = {flag.name: flag for flag in context.command.params}
    given |= {name: flags[name].type_cast_value(context, word) for name, word in zip(places, more, strict=False)}
    if entry.name == "quantile" and given["q"] is None:
        raise PlanError("A quantile needs its Q.", rule="It is the part of the values below it.", suggest="--q 0.9")
    with asking.open_dataset(dataset) as people:
        asking.show_plan(people, entry, asking.arguments(entry, given, people), as_json)

"""`epsilons sql`."""

from __future__ import annotations

import click

from epsilons.cli import asking
from epsilons.cli.terminal import as_json as json_option
from epsilons.cli.terminal import print_json, results


@click.command(short_help="Ask in SQL, as far as it maps to the statistics.")
@asking.dataset_file
@click.argument("query")
@click.option("--share", type=float, default=0.1, show_default=True, help="For all aggregates together.")
@click.option("--keys", "by", multiple=True, metavar="COLUMN=KEY,KEY", help="The groups of a column of GROUP BY.")
@click.option("--bounds", "bounds", multiple=True, metavar="COLUMN=LOW,HIGH", help="Public bounds of a column.")
@json_option
def command(
    dataset: str, query: str, share: float, by: tuple[str, ...], bounds: tuple[str, ...], as_json: bool
) -> None:
    """Ask in SQL: COUNT, SUM, AVG, VAR_POP, MEDIAN, QUANTILE, MIN and MAX of columns, WHERE, GROUP BY with keys.

    \b
    Example:
      epsilons sql people.toml "SELECT AVG(wage), COUNT(*) FROM people WHERE age >= 18" --bounds wage=0,100
    """
    with asking.open_dataset(dataset) as people:
        keys = asking.arguments({"by": by}, people).get("by", {})
        answers = people.sql(query, share=share, bounds=asking.column_bounds(bounds), keys=keys)
        if as_json:
            print_json(answers.to_dict())
        else:
            results().print(str(answers), markup=False, soft_wrap=True)

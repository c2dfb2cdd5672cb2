"""`epsilons sql`."""

from __future__ import annotations

from typing import Any

import click

from epsilons.cli import asking
from epsilons.cli.answering import asked_once, show_answers
from epsilons.cli.terminal import print_json, results


@click.command(short_help="Ask in SQL, as far as it maps to the statistics.")
@asking.dataset_file
@click.argument("query")
@click.option("--share", type=float, default=0.1, show_default=True, help="For all aggregates together.")
@click.option("--keys", "by", multiple=True, metavar="COLUMN=KEY,KEY", help="The groups of a column of GROUP BY.")
@click.option("--bounds", "bounds", multiple=True, metavar="COLUMN=LOW,HIGH", help="Public bounds of a column.")
@asking.query_options
@asking.spending
def command(
    dataset: str, query: str, share: float, bounds: tuple[str, ...], dry_run: bool, as_json: bool, **given: Any
) -> None:
    """Ask in SQL: COUNT, SUM, AVG, VAR_POP, MEDIAN, QUANTILE, MIN and MAX of columns, WHERE, GROUP BY with keys.

    \b
    Example:
      epsilons sql people.toml "SELECT AVG(wage), COUNT(*) FROM people WHERE age >= 18" --bounds wage=0,100
    """
    with asking.open_dataset(dataset) as people:
        options = asking.arguments(None, given, people)
        batch = people.batch(share)
        batch.sql(query, bounds=asking.column_bounds(bounds), keys=options.pop("by", None), **options)
        if not dry_run:
            answers, stored = asked_once(people, batch.ask)
            show_answers(people, answers, stored, as_json)
        elif as_json:
            print_json(batch.plan().to_dict())
        else:
            results().print(str(batch.plan()), markup=False, soft_wrap=True)

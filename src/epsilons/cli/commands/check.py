"""`epsilons check`."""

from __future__ import annotations

import click

from epsilons.cli import asking
from epsilons.cli.terminal import as_json as json_option
from epsilons.cli.terminal import print_json, results


@click.command(short_help="Look over a dataset file: source, people per level, what is missing.")
@asking.dataset_file
@json_option
def command(dataset: str, as_json: bool) -> None:
    """Open what a dataset file declares and say what is there and what is missing. Nothing is charged.

    \b
    Example:
      epsilons check people.toml
    """
    with asking.open_dataset(dataset) as people:
        about = people.describe()
        hints = about.hints()
        if as_json:
            print_json({**about.to_dict(), "hints": hints})
            return
        console = results()
        console.print(str(about), markup=False, soft_wrap=True)
        console.print()
        for hint in hints or ["Nothing is missing."]:
            console.print(hint, markup=False, soft_wrap=True)

"""`epsilons sync`."""

from __future__ import annotations

import click

from epsilons.cli import asking
from epsilons.cli.terminal import as_json as json_option
from epsilons.cli.terminal import print_json, results


@click.command(short_help="Take people's wishes as the source has them now, looser ones too.")
@asking.dataset_file
@json_option
def command(dataset: str, as_json: bool) -> None:
    """Take people's wishes as the source has them now, looser ones too. Nothing is charged, and nothing is given back.

    Stricter wishes hold as soon as the dataset is opened; looser ones wait for this command, since a slip in a file
    should not open anybody's account.

    \b
    Example:
      epsilons sync people.toml
    """
    with asking.open_dataset(dataset) as people:
        done = people.sync_preferences()
        if as_json:
            print_json(dict(done.__dict__))
        else:
            words = f"{done.loosened:,} people granted more, {done.tightened:,} less; {done.unchanged:,} as before."
            results().print(words, markup=False, soft_wrap=True)

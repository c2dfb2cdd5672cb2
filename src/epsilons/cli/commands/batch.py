"""`epsilons batch`: several questions for one share, each written as its own command is."""

from __future__ import annotations

import shlex
from typing import IO, Any

import click

from epsilons.cli import options, output
from epsilons.cli.commands.statistics import COMMANDS as ALONE
from epsilons.cli.commands.statistics import ask_all
from epsilons.statistics.catalogue import CATALOGUE

#: What a whole batch says once, and none of its questions.
_ONCE = ("dataset", "dry_run", "yes", "verbose", "as_json")


@click.command(short_help="Ask several questions for one share, split where the error is least.")
@options.dataset_file
@click.argument("questions", nargs=-1, metavar="QUESTION...")
@click.option("--from", "lines", type=click.File(), help="A file with a question in each line; - for stdin.")
@click.option("--share", type=float, help="For all of them together; unless given, that of one question.")
@options.apply_all(options.SPENDING[1:])
def batch(
    dataset: str,
    questions: tuple[str, ...],
    lines: IO[str] | None,
    share: float | None,
    dry_run: bool,
    yes: bool,
    verbose: bool,
    as_json: bool,
) -> int | None:
    """Ask several questions for one share. A question is written as its command is, without epsilons and the file.

    \b
    Example:
      epsilons batch people.toml --share 0.2 "mean wage --by region=north,south" \\
        "count --where 'age >= 65'" "quantile wage 0.25,0.5,0.75"
    """
    told = [*questions, *(line for line in (lines or ()) if line.strip() and not line.lstrip().startswith("#"))]
    with options.open_dataset(dataset) as people:
        asked = people.batch(share)
        for text in told:
            name, given = _read(text, dataset)
            asked.add(name, **options.read_arguments(CATALOGUE[name], given, people))
        return ask_all(people, asked, output.show_apart, dry_run, yes, verbose, as_json)


def _read(text: str, dataset: str) -> tuple[str, dict[str, Any]]:
    """(the statistic, what its own command would be given): by that command's own flags."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    name = words[0].replace("-", "_") if words else ""
    if name not in CATALOGUE:
        raise click.UsageError(
            f"A question begins with a statistic: {', '.join(one.replace('_', '-') for one in CATALOGUE)}."
        )
    command = ALONE[name.replace("_", "-")]
    with command.make_context(words[0], [dataset, *words[1:]], parent=click.get_current_context()) as context:
        given = {key: value for key, value in context.params.items() if key not in _ONCE}
        said = [key for key in _ONCE[1:] if context.params[key]]
    if said:
        raise click.UsageError(
            f"--{said[0].replace('as_', '').replace('_', '-')} is said of the whole batch, not of a question."
        )
    given["fresh"] = given["fresh"] or None
    return name, given


COMMANDS = {"batch": batch}

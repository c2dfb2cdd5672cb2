"""`epsilons init`."""

from __future__ import annotations

from pathlib import Path

import click

from epsilons.cli.asking import column_bounds
from epsilons.cli.starting import Draft, draft_of
from epsilons.cli.terminal import notes
from epsilons.cli.wording import reworded
from epsilons.errors import DataError, EpsilonsError


@click.command(short_help="Write a dataset file from a table's columns.")
@click.argument("source")
@click.option("--out", type=click.Path(dir_okay=False), default="people.toml", show_default=True, help="Where to.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option("--person", help="The column of people's ids.")
@click.option("--preferences", help="The column of epsilons, or of names of levels.")
@click.option("--level", "levels", multiple=True, metavar="NAME=EPSILON", help="A level; EPSILON may be public.")
@click.option("--bounds", multiple=True, metavar="COLUMN=LOW,HIGH", help="Public bounds of a column.")
@click.option("--type", "types", multiple=True, metavar="COLUMN=TYPE", help="Of CSV columns: int, float, date, ...")
@click.option("--version", "version", help="A label for the data's state.")
def command(
    source: str,
    out: str,
    force: bool,
    person: str | None,
    preferences: str | None,
    levels: tuple[str, ...],
    bounds: tuple[str, ...],
    types: tuple[str, ...],
    version: str | None,
) -> None:
    """Write a dataset file from public facts only: the names and declared types of a table's columns.

    What is missing is asked for on a terminal. No value of the table is read.

    \b
    Example:
      epsilons init wages.parquet --person id --preferences privacy --level strict=0.05 --level open=1 \\
        --bounds wage=0,100
    """
    target = Path(out)
    if target.exists() and not force:
        raise DataError(
            f"{out} is there already.", rule="Nothing is written over.", suggest="--force, or --out other.toml"
        )
    given = Draft(source, person, preferences, levels, column_bounds(bounds), types, version)
    try:
        text = draft_of(given, target.resolve().parent)
    except EpsilonsError as error:
        raise reworded(error, "init") from None
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{out} cannot be written: {error.strerror}.", suggest="--out elsewhere/people.toml") from None
    notes().print(f"Wrote {out}. Next: epsilons check {out}", markup=False)

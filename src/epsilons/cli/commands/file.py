"""`epsilons init`, `check` and `sync`: a dataset file is written, looked over, and followed when preferences change."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from epsilons.cli import output
from epsilons.cli.errors import refusing
from epsilons.cli.options import dataset_file, open_dataset, read_bounds
from epsilons.display import show_count, toml_key, toml_value
from epsilons.errors import Argument, DataError, EpsilonsError, PreferenceError, printable
from epsilons.storage.files import open_private

if TYPE_CHECKING:
    from epsilons.engines.base import Schema

_LEVELS = {"strict": "0.05", "standard": "0.2", "open": "1", "public": "public"}
_NONE = "-"
_prompt: Callable[..., Any] = partial(click.prompt, show_default=False, err=True)
_COLUMNS = {"person": "Which column holds people's ids?", "preferences": "Which column holds their preferences?"}


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
def init(source: str, out: str, force: bool, **given: Any) -> None:
    """Write a dataset file from public facts only: the names and declared types of a table's columns.

    What is missing is asked for on a terminal. No value of the table is read.

    \b
    Example:
      epsilons init wages.parquet --person id --preferences privacy \\
        --level strict=0.05 --level open=1 --bounds wage=0,100
    """
    target = Path(out)
    with refusing([init]):
        if target.exists() and not force:
            raise DataError(f"{out} is there already.", suggest="--force, or --out other.toml")
        text = _draft(source, target.resolve().parent, given)
    try:
        with open(target, "w", encoding="utf-8", opener=open_private) as file:
            file.write(text)
    except OSError as error:
        raise DataError(f"{out} cannot be written: {error.strerror}.", suggest="--out elsewhere/people.toml") from None
    output.note(f"Wrote {out}. Next: epsilons check {out}")


@click.command(short_help="Look over a dataset file: source, people per level, what is missing.")
@dataset_file
@output.as_json
def check(dataset: str, as_json: bool) -> None:
    """Open what a dataset file declares and say what is there and what is missing. Nothing is charged.

    \b
    Example:
      epsilons check people.toml
    """
    with open_dataset(dataset) as people:
        about = people.describe()
    hints = about.hints()
    text = "\n".join([str(about), "", *(hints or ["Nothing is missing."])])
    output.print_json({**about.to_dict(), "hints": hints}) if as_json else output.write(text)


@click.command(short_help="Take people's preferences as the source has them now, looser ones too.")
@dataset_file
@output.as_json
def sync(dataset: str, as_json: bool) -> None:
    """Take people's preferences as the source has them now, looser ones too. Nothing is charged or given back.

    Stricter preferences hold as soon as the dataset is opened; looser ones wait for this command, since a slip in a
    file should not open anyone's account.

    \b
    Example:
      epsilons sync people.toml
    """
    with open_dataset(dataset) as people:
        done = people.sync_preferences()
    more = show_count(done.loosened, "person", "people")
    text = f"{more} granted more, {done.tightened:,} less; {done.unchanged:,} as before."
    output.print_json(dict(done.__dict__)) if as_json else output.write(text)


COMMANDS = {"init": init, "check": check, "sync": sync}


# The draft ----------------------------------------------------------------------------------------------------------


def _draft(source: str, beside: Path, given: Mapping[str, Any]) -> str:
    """The text of a dataset file that lies in the directory `beside`."""
    from epsilons.engines.duckdb import DuckDB

    pairs, version = read_bounds(given["bounds"]), given["version"]
    typed = dict(_split(text, Argument("types", {"age": "int"})) for text in given["types"])
    engine = DuckDB(source, types=typed or None)
    try:
        schema = engine.schema
        person, column = (
            schema.find(given[name] or _ask_column(question, schema, name)) for name, question in _COLUMNS.items()
        )
        named = dict(_split(text, Argument("levels", {"strict": 0.05})) for text in given["levels"])
        if column.family == "text" and not named:
            named = _ask_levels()
        numbers = [c.name for c in schema.values() if c.family == "number" and c not in (person, column)]
        found = {schema.number(name).name: pair for name, pair in pairs.items()} or _ask_bounds(numbers)
    finally:
        engine.close()
    path = os.path.relpath(os.path.abspath(source), beside)
    stem = Path(path).name.split(".")[0].replace("*", "").strip("-_ ") or "people"
    lines = [
        f"source = {toml_value(path)}",
        f"person = {toml_value(person.name)}",
        f"version = {toml_value(version)}" if version else '# version = "2026-11"  # name the data\'s state',
        "rows_per_person = 1       # fixed for the life of the ledger",
        'neighbors = "absent"      # likewise; or "replace"',
        f"ledger = {toml_value(f'sqlite:///{stem}.ledger')}",
        "complete = []             # columns in which nothing is missing",
        "",
        "[preferences]",
        f"column = {toml_value(column.name)}",
        *([f"levels = {toml_value({name: _epsilon(text) for name, text in named.items()})}"] if named else []),
        "# default: for people who said nothing; without it they are an error",
        *(["", "[types]"] if typed else []),
        *(f"{toml_key(name)} = {toml_value(kind)}" for name, kind in typed.items()),
        "",
        "[bounds]                  # public facts, never read from the data",
        *(
            f"{toml_key(name)} = [{', '.join(repr(one).removesuffix('.0') for one in pair)}]"
            for name, pair in found.items()
        ),
        *(f"# {toml_key(name)} = [0, 100]" for name in numbers if name not in found),
    ]
    return "\n".join(lines) + "\n"


def _terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask_column(question: str, schema: Schema, option: str) -> str:
    if not _terminal():
        hint = Argument(option, next(iter(schema)) if schema and schema.known else "id")
        raise DataError(question, rule="Not a terminal, so the question cannot be asked here.", suggest=hint)
    shown = {printable(name): name for name in schema}
    return shown[_prompt(question, type=click.Choice(list(shown)))]


def _ask_levels() -> dict[str, str]:
    if not _terminal():
        rule, hint = "Names of levels are never read from the data.", Argument("levels", {"strict": 0.05, "open": 1})
        raise PreferenceError("Which levels are there?", rule=rule, suggest=hint)
    asked = {
        name: _prompt(f"Epsilon of {name!r} (Enter: {usual}, {_NONE}: no such level)", default=usual).strip()
        for name, usual in _LEVELS.items()
    }
    return {name: epsilon for name, epsilon in asked.items() if epsilon != _NONE}


def _ask_bounds(numbers: list[str]) -> dict[str, tuple[float, float]]:
    """Public bounds, from the steward's head; without a terminal they are left for later."""
    ask = partial(_prompt, default="")
    found = {
        name: ask(f"Public bounds of {name!r}, as 0,100 (Enter: later)", value_proc=partial(_read_pair, name))
        for name in (numbers if _terminal() else [])
    }
    return {name: pair for name, pair in found.items() if pair is not None}


def _read_pair(name: str, text: str) -> tuple[float, float] | None:
    """What was typed; click asks again where it is no pair of bounds."""
    try:
        return read_bounds([f"{name}={text}"])[name] if text.strip() else None
    except EpsilonsError as error:
        raise click.UsageError(f"{error.what} {error.rule}".strip()) from None


def _split(text: str, hint: Argument) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise DataError(f"{text!r} is not a name and a value.", suggest=hint)
    return name, value


def _epsilon(text: str) -> float | str:
    with suppress(ValueError):
        if text == "public" or 0 < float(text) < math.inf:
            return text if text == "public" else float(text)
    hint = Argument("levels", {"strict": 0.05, "all": "public"})
    raise PreferenceError(f"{text!r} is not an epsilon.", rule="A number above 0, or public.", suggest=hint)

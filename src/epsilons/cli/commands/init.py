"""`epsilons init`: a dataset file, written from what a table declares and from what the steward says."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from epsilons.cli import output
from epsilons.cli.errors import refusing
from epsilons.cli.options import read_bounds
from epsilons.cli.typed import (
    read_default,
    read_dialect,
    read_epsilon,
    read_lasting,
    read_levels,
    read_pair,
    read_part,
    read_types,
    split_pair,
)
from epsilons.display import toml_key, toml_value
from epsilons.errors import Argument, DataError, PreferenceError, printable
from epsilons.measure import MEASURES, PURE
from epsilons.storage.files import open_private

if TYPE_CHECKING:
    from epsilons.engines.base import Schema

_LEVELS = "strict=0.05, standard=0.2, open=1, public=public"
_LINES = (".ndjson", ".jsonl")
_SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
#: What is asked of how text is written.
_PARTS = {
    "separator": "What stands between cells: , ; | or tab",
    "encoding": "In which encoding is the file",
    "decimal": "The decimal sign",
    "thousands": "What stands between thousands",
    "dates": "How days are written, such as %d.%m.%Y",
}
_NO_DEFAULT = "# default: for people who said nothing; without it they are an error"
_A_LEVEL = Argument("levels", {"strict": 0.05})
#: Of tables with more columns than this, questions are about all of them at once.
_MANY = 20
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
@click.option("--dialect", multiple=True, metavar="PART=TEXT", help="How text is written: separator, decimal, ...")
@click.option("--yes", is_flag=True, help="How text is written is as it is proposed: nothing is asked about it.")
@click.option("--table", help="A sheet of a workbook; a table of a database or server.")
@click.option("--rows-per-person", type=click.IntRange(1), help="So many rows of one person are used at most.")
@click.option("--version", "version", help="A label for the data's state.")
@click.option("--public", multiple=True, metavar="COLUMN", help="A column that all may know of everybody.")
@click.option("--measure", type=click.Choice(MEASURES), default=PURE, help="In what accounts count; for good.")
@click.option("--delta", type=float, help="Of accounts that count rho (zcdp), such as 1e-6.")
@click.option("--renews", multiple=True, metavar="LEVEL=PERIOD", help="A level whose grant is one by year, month, ...")
def init(source: str, out: str, force: bool, **given: Any) -> None:
    """Write a dataset file from public facts only: the names and declared types of a table's columns.

    What is missing is asked for on a terminal. No value of the table is read. How a CSV file is written is proposed by
    its first line, and asked: --dialect separator=; --dialect decimal=, --dialect dates=%d.%m.%Y says it. Elsewhere
    what is a guess stands in the file as a comment, and so do the columns that have no type yet; --yes takes the guess.

    Accounts that are to last: --measure zcdp --delta 1e-6 counts rho instead of epsilon (epsilons budget compares
    them), and --renews open=year makes a level's grant one by year.

    \b
    Example:
      epsilons init wages.parquet --person id --preferences privacy \\
        --level strict=0.05 --level open=1 --bounds wage=0,100
    """
    target = Path(out)
    with refusing([init]):
        if target.exists() and not force:
            raise DataError(f"{out} is there already.", suggest="--force, or --out other.toml")
        if not os.access(target if target.exists() else target.resolve().parent, os.W_OK):
            raise _unwritable(out)  # before anything is asked
        text = _draft(source, target.resolve().parent, given)
    try:
        with open(target, "w", encoding="utf-8", opener=open_private) as file:
            file.write(text)
    except OSError as error:
        raise _unwritable(out, f": {error.strerror}") from None
    output.note(f"Wrote {out}. Next: epsilons check {quote(out)}")


COMMANDS = {"init": init}


def _unwritable(out: str, why: str = "") -> DataError:
    return DataError(f"{out} cannot be written{why}.", suggest="--out elsewhere/people.toml")


# The draft ------------------------------------------------------------------------------------------------------------


def _draft(source: str, beside: Path, given: Mapping[str, Any]) -> str:
    """The text of a dataset file that lies in the directory `beside`."""
    from epsilons.dataset.public import check_public
    from epsilons.engines.duckdb import DuckDB
    from epsilons.engines.postgresql import is_address
    from epsilons.engines.sources import has_types

    pairs, version, server = read_bounds(given["bounds"]), given["version"], is_address(source)
    typed = dict(split_pair(text, Argument("types", {"age": "int"})) for text in given["types"])
    said = read_dialect(given["dialect"])
    named = {name: str(read_epsilon(text)) for name, text in (split_pair(one, _A_LEVEL) for one in given["levels"])}
    if named or not given["renews"]:  # what was said wrongly is found before anything is asked
        read_lasting(given, named)
    written, guessed = (said, {}) if server else _find_dialect(source, said, given)
    how = {"table": given["table"], "dialect": written or None}
    if not typed and source.lower().endswith(_LINES) and os.path.isfile(source) and _terminal():
        typed = _ask_names(_list_named(given))
    engine = DuckDB(source, types=typed or None, **how)
    try:
        csv = not all(map(has_types, engine.files))
        _check_columns(engine.schema, beside, given)
        bounded = {engine.schema.find(name).name for name in pairs} - set(typed)
        if csv and not typed:
            typed = _ask_types(engine.schema, (given["person"], given["preferences"], *bounded))
        if csv and (typed or bounded):  # columns are text until they are declared; one that has bounds holds numbers
            typed |= dict.fromkeys(sorted(bounded), "float")
            engine.close()
            engine = DuckDB(source, types=typed, **how)
        schema = engine.schema
        bounds = {schema.bounded(name).name: pair for name, pair in pairs.items()}
        person, column = (
            schema.find(given[name] or _ask_column(question, schema, name)) for name, question in _COLUMNS.items()
        )
        public = [check_public(schema.find(name), person.name).name for name in given["public"]]
        default = ""
        if column.family == "text" and not named:
            named = _ask_levels(given, column.name if csv else None)
            default = _ask_default(named) if named else ""
            typed |= {column.name: "float"} if csv and not named else {}
        numbers = [c.name for c in schema.values() if c.family == "number" and c not in (person, column)]
        found = bounds or _ask_bounds(numbers)
        rows = given["rows_per_person"] or _ask_rows()
        untyped = [name for name in schema if csv and name not in (*typed, person.name, column.name)]
        lasting = read_lasting(given, named)
    finally:
        engine.close()
    _tell_unknown(guessed, untyped)
    path = source if server else os.path.relpath(os.path.abspath(source), beside)
    stem = Path(given["table"] if server else path).name.split(".")[0].replace("*", "").strip("-_ ") or "people"
    lines = [
        f"name = {toml_value(stem)}",
        f"source = {toml_value(path)}",
        f"person = {toml_value(person.name)}",
        f"version = {toml_value(version)}" if version else '# version = "2026-11"  # name the data\'s state',
        *([f"table = {toml_value(given['table'])}"] if given["table"] else []),
        f"rows_per_person = {rows}       # of people who have more, so many are used",
        'neighbors = "absent"      # or "replace"; fixed for the life of the ledger',
        f"ledger = {toml_value(f'sqlite:///{stem}.ledger')}",
        "complete = []             # columns in which nothing is missing",
        *([f"public = {toml_value(public)}"] if public else []),
        *(f"{name} = {toml_value(said)}" for name, said in lasting.items()),
        "",
        "[preferences]",
        f"column = {toml_value(column.name)}",
        *([f"levels = {toml_value({name: read_epsilon(text) for name, text in named.items()})}"] if named else []),
        f"default = {toml_value(default)}" if default else _NO_DEFAULT,
        *(["", "[dialect]"] if written or guessed else []),
        *(f"{part} = {toml_value(said)}" for part, said in written.items()),
        *(f"# {part} = {toml_value(said)}  # a guess, by the first line" for part, said in guessed.items()),
        *(["", "[types]"] if typed or csv else []),
        *(["# columns are text unless they are declared: int, float, bool, date, time"] if csv else []),
        *(f"{toml_key(name)} = {toml_value(kind)}" for name, kind in typed.items()),
        *(f'# {toml_key(name)} = "text"' for name in untyped),
        "",
        "[bounds]                  # public facts, never read from the data",
        *(
            f"{toml_key(name)} = [{', '.join(repr(one).removesuffix('.0') for one in pair)}]"
            for name, pair in found.items()
        ),
        *(f"# {toml_key(name)} = [0, 100]" for name in numbers if name not in found),
    ]
    return "\n".join(lines) + "\n"


def _list_named(given: Mapping[str, Any]) -> list[str]:
    """The columns that flags name."""
    named = (given["person"], given["preferences"], *given["public"], *read_bounds(given["bounds"]))
    return [name for name in named if name is not None]


def _check_columns(schema: Schema, beside: Path, given: Mapping[str, Any]) -> None:
    """Refuse names of columns that are none of the table's."""
    if given["preferences"] not in (None, *schema) and os.path.isfile(given["preferences"]):
        file = os.path.relpath(os.path.abspath(given["preferences"]), beside)
        what, rule = f"{file} is a file, not a column.", "Preferences in a second file are declared by hand."
        declared = f'file = {toml_value(file)}, person = "id" and column = "level" under [preferences]'
        raise DataError(what, rule=rule, suggest=f"any column of the table here; then {declared}")
    for name in (given["person"], given["preferences"], *given["public"]):
        if name is not None:
            schema.find(name)


def _terminal() -> bool:
    return output.on_terminal()


def _prompt(question: str, **given: Any) -> Any:
    return click.prompt(output.fit(question), show_default=False, err=True, **given)


def _confirm(question: str) -> bool:
    return click.confirm(output.fit(question), default=True, err=True)


def _ask_column(question: str, schema: Schema, option: str) -> str:
    if not _terminal():
        hint = Argument(option, next(iter(schema)) if schema and schema.known else "id")
        raise DataError(question, rule="Not a terminal, so the question cannot be asked here.", suggest=hint)
    shown = {printable(name): name for name in schema}
    listed = f" ({', '.join(shown)})" if len(shown) <= _MANY else ""
    return shown[_prompt(question + listed, type=click.Choice(list(shown)), show_choices=False)]


def _ask_levels(given: Mapping[str, Any], typed: str | None) -> dict[str, str]:
    """None where the column holds epsilons, which `typed`, a column whose type can be declared, then is to say."""
    if not _terminal():
        rule, levels = "Names of levels are never read from the data.", Argument("levels", {"strict": 0.05, "open": 1})
        numbers = (", or ", Argument("types", {typed: "float"}), " for one of epsilons") if typed else ()
        raise PreferenceError("Which levels are there?", rule=rule, suggest=(levels, *numbers))
    question = f"Levels as the column names them, each with its epsilon (Enter: {_LEVELS}); or numbers, for epsilons"
    return dict(_prompt(question, default=_LEVELS, value_proc=partial(read_levels, given)))


def _find_dialect(
    source: str, said: Mapping[str, str], given: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, str]]:
    """How a file of text is written: (what is said of it, or seen in its first line; what is a guess).

    Without the right separator and encoding no column would have its name; numbers and days may be written in any way.
    """
    proposed, yes = _propose_dialect(source), given["yes"]
    if not said and not yes and proposed is not None and _terminal():
        named = [name for name in _list_named(given) if not os.path.isfile(name)]
        return _ask_dialect(source, proposed, named), {}
    rest = {part: text for part, text in (proposed or {}).items() if part not in said}
    guessed = {} if yes else {part: text for part, text in rest.items() if part not in ("separator", "encoding")}
    seen = {part: text for part, text in rest.items() if part not in guessed}
    for part, text in seen.items():
        output.note(f"By the first line: {part} {text!r}. Otherwise: --dialect {part}=...")
    return {**seen, **said}, guessed


def _tell_unknown(guessed: Mapping[str, str], untyped: Sequence[str]) -> None:
    """What only the steward can know, where nobody could be asked."""
    if guessed:
        listed = ", ".join(f"{part} {text!r}" for part, text in guessed.items())
        output.note(f"Guessed, and left as a comment: {listed}. If that is so: --yes, or take the # away.")
    if untyped and not _terminal():
        names = ", ".join(map(printable, untyped[:8])) + (f" and {len(untyped) - 8} more" if len(untyped) > 8 else "")
        output.note(f"Text until [types] says otherwise, which no first line can tell: {names}.")


def _propose_dialect(source: str) -> dict[str, str] | None:
    """By the first line of a file, and its name; None where nothing is written as text."""
    from epsilons.engines.dialects import propose
    from epsilons.engines.sources import has_types

    if has_types(source) or not os.path.isfile(source) or source.lower().endswith(_SHEETS):
        return None
    with open(source, "rb") as file:
        header = file.read(1 << 16)
    return propose(header, source)


def _ask_dialect(source: str, proposed: Mapping[str, str], named: Sequence[str]) -> dict[str, str]:
    """As proposed, by one yes, else part by part; once more where no columns can be read in this way, or not these."""
    from epsilons.engines.dialects import Dialect, usual_separator
    from epsilons.engines.duckdb import DuckDB

    plain = Dialect(usual_separator(source))
    usual = {part: getattr(plain, part) for part in _PARTS}
    said = {**usual, **proposed}
    listed = ", ".join(f"{part} {_show_part(part, one)!r}" for part, one in said.items())
    agreed = _confirm(f"By the first line text is written so: {listed}. Is that right?")
    while True:
        for part, question in () if agreed else _PARTS.items():
            shown = _show_part(part, said[part])
            others = {"decimal": said["decimal"]} if part == "thousands" else {}
            read = partial(read_part, part, others)
            said[part] = _prompt(f"{question} (Enter: {shown})", default=shown, value_proc=read)
        agreed, written = False, {part: one for part, one in said.items() if one != usual[part]}
        try:
            engine = DuckDB(source, dialect=written or None)
            engine.close()
            for name in named:
                engine.schema.find(name)
        except DataError as error:
            output.note(f"{error.what} {error.rule}".strip())
            if not _confirm("Say once more how the file is written?"):
                raise
        else:
            return written


def _show_part(part: str, said: str) -> str:
    """A part of a dialect as it can be typed."""
    return {"\t": "tab", "": "none" if part == "thousands" else "2026-12-31"}.get(said, said)


def _ask_types(schema: Schema, others: Iterable[str | None]) -> dict[str, str]:
    """What columns of text hold, by the steward's word; without a terminal they stay text."""
    from epsilons.engines.dialects import TYPES

    left = [name for name in schema if name not in others] if _terminal() else []
    if len(left) > _MANY:
        question = "Columns that hold something else than text, as age=int, born=date (Enter: none)"
        return dict(_prompt(question, default="", value_proc=partial(read_types, schema, ())))
    kinds = click.Choice(list(TYPES))
    asked = {
        name: _prompt(
            f"What does {printable(name)!r} hold: {', '.join(TYPES)}? (Enter: text)",
            type=kinds,
            default="text",
            show_choices=False,
        )
        for name in left
    }
    return {name: kind for name, kind in asked.items() if kind != "text"}


def _ask_names(wanted: Sequence[str]) -> dict[str, str]:
    """The columns of JSON lines, by the steward's word; those that flags name are among them."""
    question = "A JSON file has no header. Its columns, and what they hold, as id=int, wage=float, town=text"
    return dict(_prompt(question, value_proc=partial(read_types, None, wanted)))


def _ask_default(levels: Mapping[str, str]) -> str:
    """The level of people who said nothing; none is an answer, too."""
    question = f"Which level have people who said nothing: {', '.join(levels)}? (Enter: none, so they are an error)"
    return str(_prompt(question, default="", value_proc=partial(read_default, levels)))


def _ask_rows() -> int:
    question = "How many rows of one person are used at most? (Enter: 1)"
    return int(_prompt(question, type=click.IntRange(1), default=1)) if _terminal() else 1


def _ask_bounds(numbers: list[str]) -> dict[str, tuple[float, float]]:
    """Public bounds, from the steward's head; without a terminal they are left for later."""
    ask = partial(_prompt, default="")
    found = {
        name: ask(f"Public bounds of {name!r}, as 0,100 (Enter: later)", value_proc=partial(read_pair, name))
        for name in (numbers if _terminal() else [])
    }
    return {name: pair for name, pair in found.items() if pair is not None}

"""Refusals on the command line: their exit status, and the library's arguments as flags or as lines of the file.

    bounds=(0, 100)             --bounds 0,100                 types={"id": "int"}    id = "int" under [types]
    by={"region": ["north"]}    --by region=north              complete=["age"]       complete = ["age"]
    q=0.9                       0.9 for Q                      fresh=True             --fresh

An argument is a flag where the command takes it, otherwise a line of the dataset file if that has such a line.
"""

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import click

from epsilons.display import toml_key, toml_value
from epsilons.errors import Argument, EpsilonsError

#: Exit status by the stable code of an error. 1 is anything else of ours, 2 is a mistake in the command itself.
STATUS = {"preference": 3, "data": 4, "plan": 5, "budget": 6, "ledger": 7, "protocol": 8}
#: The lines of the dataset file that arguments may mean, with the table that they stand in.
_TABLES = (
    dict.fromkeys(("name", "source", "table", "person", "rows_per_person", "neighbors", "ledger", "snapshots"), "")
    | dict.fromkeys(("version", "complete", "public", "ceiling", "measure", "delta", "renews"), "")
    | dict.fromkeys(("questions", "accounts", "engine", "allow_individual", "threads", "memory"), "")
    | {name: name for name in ("types", "bounds", "keys", "preferences")}
    | {"column": "preferences", "levels": "preferences", "default": "preferences"}
)


class Refusal(click.ClickException):
    """An error of the library, in the command line's language."""

    def __init__(self, error: EpsilonsError, parameters: Mapping[str, click.Parameter]) -> None:
        super().__init__(error.message(lambda argument: write_argument(argument, parameters)))
        self.exit_code = STATUS.get(error.code, 1)  # type: ignore[misc]

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"epsilons: {self.message}", file, err=True)


@contextmanager
def refusing(commands: Iterable[click.Command] = ()) -> Iterator[None]:
    """Turn errors inside into refusals that name what these commands take; without any, lines of the dataset file."""
    try:
        yield
    except EpsilonsError as error:
        raise Refusal(error, parameters_of(commands)) from None


class Listing(click.Group):
    """A group that lists its commands by the whole first sentence of their help, wrapped instead of cut."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        listed = [(n, one.get_short_help_str(sys.maxsize)) for n, one in commands.items() if one and not one.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(listed)


class Group(Listing):
    """A group whose commands are refused in terms of their own flags."""

    def invoke(self, ctx: click.Context) -> Any:
        with refusing(self.commands.values()):
            return super().invoke(ctx)


def parameters_of(commands: Iterable[click.Command]) -> dict[str, click.Parameter]:
    """What commands take, by the names that the library knows and by those that users type; the first one counts."""
    found: dict[str, click.Parameter] = {}
    for parameter in (parameter for command in commands for parameter in command.params):
        found.setdefault(str(parameter.name), parameter)
        found.setdefault(parameter.opts[0].lstrip("-"), parameter)
    return found


def write_argument(argument: Argument, parameters: Mapping[str, click.Parameter]) -> str:
    """An argument as a flag, by place, or as a line of the dataset file."""
    name, value, parameter = argument.name, argument.value, parameters.get(argument.name)
    # A flag that is on or off takes no list: `complete` is a word of the question, and a line with columns.
    listed = isinstance(value, list) and isinstance(parameter, click.Option) and parameter.is_bool_flag
    if parameter is None or listed:
        plain = name if value is ... else f"{name} {_typed(value)}"
        return _line(name, value) if name in _TABLES else plain
    if isinstance(parameter, click.Argument):
        return name.upper() if value is ... else f"{_typed(value)} for {name.upper()}"
    flag = parameter.opts[0]
    if value is ... or isinstance(value, bool):
        return f"--no-{flag[2:]}" if value is False else flag
    if isinstance(value, Mapping):
        return " ".join(f"{flag} {key}={_typed(one)}" for key, one in value.items())
    if isinstance(value, (list, tuple)) and parameter.multiple:
        return " ".join(f"{flag} {_typed(one)}" for one in value)
    return f"{flag} {_typed(value)}"


def _typed(value: Any) -> str:
    """A value as typed behind a flag."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(_typed, value))
    if isinstance(value, float):
        return "public" if math.isinf(value) else f"{value:.12g}"
    return "..." if value is ... else str(value)


def _line(name: str, value: Any) -> str:
    table = _TABLES[name]
    if table == name:
        lines = value.items() if isinstance(value, Mapping) else ()
        told = "; ".join(f"{toml_key(key)} = {_toml(one)}" for key, one in lines)
        return f"{told} under [{table}]" if told else f"[{table}]"
    line = name if value is ... else f"no {name}" if value is None else f"{name} = {_toml(value)}"
    return f"{line} under [{table}]" if table else line


def _toml(value: Any) -> str:
    """As in the dataset file, where an infinite epsilon is the word public."""
    if isinstance(value, Mapping):
        value = {key: "public" if one == math.inf else one for key, one in value.items()}
    return toml_value("public" if isinstance(value, float) and math.isinf(value) else value)

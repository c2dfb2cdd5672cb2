"""What the commands that ask questions share: their options, and how they ask."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from epsilons.arguments.options import QUERIES, TABLES, Parameter, options_of
from epsilons.cli.answering import asked_once, show_release
from epsilons.cli.terminal import as_json, notes, print_json, results
from epsilons.cli.wording import reworded
from epsilons.errors import EpsilonsError, PlanError
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.statistics.entry import Entry

if TYPE_CHECKING:
    from epsilons.dataset import Dataset

_F = TypeVar("_F", bound=Callable[..., Any])
_Decorator = Callable[[Any], Any]

dataset_file = click.argument("dataset", type=click.Path(dir_okay=False), metavar="PEOPLE.TOML")


class Pair(click.ParamType[tuple[float, float]]):
    """Two numbers, as `0,100`."""

    name = "LOW,HIGH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        if isinstance(value, tuple):
            return value
        try:
            low, high = (float(part) for part in value.split(","))
        except ValueError:
            raise click.BadParameter(
                "two numbers with a comma between them, such as 0,100", ctx, param, None if param else "'--bounds'"
            ) from None
        return low, high


class Numbers(click.ParamType[list[float]]):
    """Several numbers, as `0,10,20`."""

    name = "A,B,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        if isinstance(value, list):
            return value
        try:
            return [float(part) for part in value.split(",")]
        except ValueError:
            self.fail("numbers with commas between them, such as 0,10,20", param, ctx)


class Columns(click.ParamType[tuple[str, ...]]):
    """Names of columns, as `age,schooling`."""

    name = "A,B,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        return value if isinstance(value, tuple) else tuple(part.strip() for part in value.split(","))


# Flags out of the catalogue -----------------------------------------------------------------------------------------

#: What a flag takes where its argument's type does not say it.
_KINDS: dict[str, dict[str, Any]] = {
    "bounds": {"type": Pair(), "help": "Public bounds of the column; those of the file unless given."},
    "edges": {"type": Numbers()},
    "categories": {"type": str, "help": "Categories, with commas between them."},
    "classes": {"type": str, "help": "The two classes, with a comma between them; the second is the one predicted."},
    "features": {"type": Columns(), "help": "The columns of the features, with commas between them."},
    "threshold": {"type": str},
    "by": {
        "type": str,
        "multiple": True,
        "metavar": "COLUMN=KEY,KEY",
        "help": 'Groups, with their keys: region=north,south, or a JSON list: region=["a,b","c"]. May be repeated.',
    },
}
_BY_COLUMN: dict[str, Any] = {
    "type": str,
    "multiple": True,
    "metavar": "COLUMN=LOW,HIGH",
    "help": "Public bounds of a column; those of the file unless given. May be repeated.",
}
#: Options that a command cannot take, or that only those take which spend.
_APART = ("entropy", "fresh")


def _type_of(argument: Parameter) -> Any:
    if argument.names:
        return click.Choice(argument.names)
    return next((kind for kind in (int, float) if kind in (argument.annotation, *get_args(argument.annotation))), str)


def flag(argument: Parameter, about: str = "", by_column: bool = False) -> _Decorator:
    """An option of a command for an argument of a question."""
    if argument.annotation in (bool, bool | None):
        return click.option(f"--{argument.name}/--no-{argument.name}", default=None, help=argument.help)
    settings = {"type": _type_of(argument), "help": argument.help, **_KINDS.get(argument.name, {})}
    if by_column:
        settings = dict(_BY_COLUMN)
    if argument.name == "mechanism":
        settings |= {"default": "auto", "show_default": True, "help": "Which mechanism answers."}
    if about:
        settings["help"] = f"For {about}: {settings['help'][:1].lower()}{settings['help'][1:]}"
    return click.option(f"--{argument.name}", **settings)


def own_parameters(entry: Entry) -> list[_Decorator]:
    """The column, what else goes by place, and a flag for each other argument of a statistic."""
    about = "target" if entry.model else "column"
    places: list[_Decorator] = [click.argument(about, required=entry.column == "required")]
    flags = []
    for argument in entry.own(TABLES).values():
        if argument.positional:
            kind = _KINDS.get(argument.name, {}).get("type", _type_of(argument))
            default = {} if argument.required else {"required": False, "default": argument.default}
            places.append(click.argument(argument.name, type=kind, **default))
        else:
            flags.append(flag(argument, by_column=entry.model and argument.name == "bounds"))
    return places + flags


def option_flags(apart: tuple[str, ...] = _APART, front: str = TABLES) -> list[_Decorator]:
    """A flag for each option of every question."""
    return [flag(option) for option in options_of(front).values() if option.name not in apart]


def planning(command: _F) -> _F:
    """The arguments of all statistics, each as a flag, and the options of every question."""
    own: dict[str, tuple[Parameter, list[str]]] = {}
    for entry in CATALOGUE.values():
        for argument in entry.own(TABLES).values():
            own.setdefault(argument.name, (argument, []))[1].append(entry.name.replace("_", "-"))
    flags = []
    for name, (argument, entries) in own.items():
        if name == "bounds":
            flags.append(click.option("--bounds", multiple=True, metavar="LOW,HIGH", help=_PLAN_BOUNDS))
        else:
            flags.append(flag(argument, "" if name == "step" else ", ".join(entries)))
    for one in reversed([*flags, *option_flags()]):
        command = one(command)
    return command


_PLAN_BOUNDS = "Public bounds of the column, or for a model COLUMN=LOW,HIGH; those of the file unless given."
#: What commands take that answer, besides the options of every question.
SPENDING: tuple[_Decorator, ...] = (
    click.option("--fresh", is_flag=True, help="Ask anew and pay, also if it was asked before."),
    click.option("--dry-run", is_flag=True, help="Show the plan and what would be charged; charge nothing."),
    as_json,
)


def spending(command: _F) -> _F:
    """Let a command spend, or show what it would."""
    for option in reversed(SPENDING):
        command = option(command)
    return command


def query_options(command: _F) -> _F:
    """The options that a query takes."""
    for option in reversed(option_flags(front=QUERIES)):
        command = option(command)
    return command


# Asking -------------------------------------------------------------------------------------------------------------


def open_dataset(path: str) -> Dataset:
    """The dataset that a file declares; on stderr a word while it is prepared, and where nothing will be remembered."""
    console = notes()
    with console.status(f"Preparing {path}"):
        from epsilons.dataset import Dataset

        try:
            people = Dataset.from_toml(path)
        except EpsilonsError as error:
            raise reworded(error, "file") from None
    if not people.ledger.lasting:
        console.print(
            f"{path} names no ledger: what this command charges is forgotten when it ends, and whoever asks often gets "
            'everything. Add a line: ledger = "sqlite:///people.ledger"',
            soft_wrap=True,
            markup=False,
        )
    return people


def arguments(entry: Entry | None, given: dict[str, Any], people: Dataset) -> dict[str, Any]:
    """A command's options as the arguments of a method: what was not given is left out."""
    kept = {name: value for name, value in given.items() if value is not None and value != ()}
    if "by" in kept:
        kept["by"] = dict(_group(text, people) for text in kept["by"])
    if "threshold" in kept:
        kept["threshold"] = _threshold(kept["threshold"])
    for name in ("categories", "classes"):
        if name in kept:
            kept[name] = keys(kept.get("column") or kept.get("target") or "", kept[name], people)
    if entry is not None and entry.model and "column" in kept:
        kept["target"] = kept.pop("column")
    if "bounds" in kept and isinstance(kept["bounds"][0], str):  # of a model, or of anything that is planned
        by_column = entry is not None and entry.model
        kept["bounds"] = column_bounds(kept["bounds"]) if by_column else Pair().convert(kept["bounds"][-1], None, None)
    return kept


def _threshold(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _group(text: str, people: Dataset) -> tuple[str, list[Any]]:
    """`region=north,south`."""
    name, equals, listed = text.partition("=")
    if not equals or not name:
        raise PlanError(
            f"--by {text} has no keys.", rule="Keys come from the caller.", suggest="--by region=north,south"
        )
    return name, keys(name, listed, people)


def keys(column: str, listed: str, people: Dataset) -> list[Any]:
    """Keys with commas between them, or as a JSON list; words take the type of their column."""
    if listed.startswith("["):
        try:
            found: list[Any] = json.loads(listed)
        except ValueError:
            raise PlanError(f"The keys of {column!r} are not a JSON list.", suggest=f'{column}=["a,b","c"]') from None
        return found
    words = listed.split(",")
    if not all(words):
        raise PlanError(
            f"A key of {column!r} is empty.",
            rule="Keys stand with commas between them; an empty word is a key in a JSON list only.",
            suggest=f'{column}=north,south, or {column}=["north",""]',
        )
    return [people.key(column, word) for word in words]


def column_bounds(given: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """`wage=0,100`, for several columns."""
    found = {}
    for text in given:
        name, _, pair = text.rpartition("=")
        try:
            low, high = (float(part) for part in pair.split(","))
        except ValueError:
            raise PlanError(f"{text!r} is not a column with bounds.", suggest="--bounds wage=0,100") from None
        if not low < high:
            raise PlanError(
                f"The bounds of {name!r} are reversed or empty.",
                rule="The lower bound comes first.",
                suggest=f"--bounds {name}={high:g},{low:g}" if low > high else f"--bounds {name}=0,100",
            )
        found[name] = (low, high)
    return found


def answer(people: Dataset, entry: Entry, given: dict[str, Any]) -> None:
    """Ask one question and print it; with --dry-run only its plan."""
    dry, as_document = given.pop("dry_run"), given.pop("as_json")
    options = arguments(entry, given, people)
    if dry:
        options.pop("fresh", None)
        show_plan(people, entry, options, as_document)
        return
    release, stored = asked_once(people, lambda: getattr(people, entry.name)(**options))
    show_release(people, release, stored, as_document)


def show_plan(people: Dataset, entry: Entry, options: dict[str, Any], as_document: bool) -> None:
    """A plan on stdout."""
    plan = people.plan(entry.name, options.pop("target" if entry.model else "column", None), **options)
    if as_document:
        print_json(plan.to_dict())
    else:
        results().print(str(plan), soft_wrap=True, markup=False)

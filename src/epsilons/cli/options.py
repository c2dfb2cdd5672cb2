"""What commands take: flags out of the catalogue, and how they become arguments of a question."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from typing import TYPE_CHECKING, Any, get_args

import click

from epsilons.arguments.checks import check_bounds
from epsilons.arguments.options import TABLES, Parameter, options_of
from epsilons.arguments.spans import spans_written
from epsilons.cli.errors import refusing
from epsilons.cli.output import as_json, note, preparing
from epsilons.errors import Argument, PlanError
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.statistics.entry import Entry

if TYPE_CHECKING:
    from epsilons.dataset import Dataset
    from epsilons.dataset.asking import Asking
    from epsilons.remote.client import RemoteDataset

_Decorator = Callable[[Any], Any]

dataset_file = click.argument("dataset", type=click.Path(dir_okay=False), metavar="PEOPLE.TOML")


class Listed(click.ParamType[tuple[Any, ...]]):
    """Values with commas between them, as `0,100`."""

    def __init__(self, name: str, kind: Callable[[str], Any], wanted: str = "", length: int | None = None) -> None:
        self.name, self._kind, self._wanted, self._length = name, kind, wanted, length
        self._flag = "'--bounds'" if length else "'--edges'"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        try:
            found = tuple(self._kind(part) for part in value.split(","))
        except ValueError:
            found = ()
        if not found or self._length not in (None, len(found)):
            # What is read after click: it then does not know the flag.
            raise click.BadParameter(self._wanted, ctx, param, None if param else self._flag)
        return found


PAIR = Listed("LOW,HIGH", float, "two numbers with a comma between them, such as 0,100", 2)
_EDGES = Listed("A,B,...", float, "numbers with commas between them, such as 0,10,20, or months(first,last)")

# Flags out of the catalogue -----------------------------------------------------------------------------------------

_KEYS = (
    'Groups, with their keys: region=north,south, or a JSON list: region=["a,b","c"]. Of numbers and dates also '
    "age=ranges(0,18,65), day=months(2026-01,2026-12), day=weekdays(). May be repeated."
)
#: What a flag takes where its argument's type does not say it.
_KINDS: dict[str, dict[str, Any]] = {
    "bounds": {"type": PAIR, "help": "Public bounds of the column; those of the file unless given."},
    "edges": {"type": str, "metavar": "A,B,...", "help": "Bins [a, b), [b, c), ...; of dates months(first,last)."},
    "categories": {"type": str, "help": "Categories, with commas between them."},
    "among": {"type": str, "metavar": "A,B,...", "help": "The options, with commas between them; the registered keys."},
    "classes": {"type": str, "help": "The two classes, with a comma between them; the second is the one predicted."},
    "features": {"type": Listed("A,B,...", str.strip), "help": "The features' columns, with commas between them."},
    "q": {"type": Listed("Q,...", float, "a number, or several with commas between them, such as 0.25,0.5,0.75")},
    "threshold": {"type": str},
    "group_epsilons": {"type": Listed("A,B,...", float, "numbers with commas between them, such as 0.5,1")},
    "assume": {"type": str, "metavar": "NUMBER|unrelated|nothing"},
    "by": {"type": str, "multiple": True, "metavar": "COLUMN=KEY,KEY", "help": _KEYS},
}
#: (metavar, help) of bounds that may be repeated: of a model's columns, and of any statistic that is planned.
_BY_COLUMN = ("COLUMN=LOW,HIGH", "Public bounds of a column; those of the file unless given. May be repeated.")
_TO_PLAN = ("LOW,HIGH", "Public bounds of the column, or for a model COLUMN=LOW,HIGH; those of the file unless given.")
#: Options that a command cannot take, or that only those take which spend.
_APART = ("entropy", "fresh")
#: What every command takes that spends, and what those take that answer, besides the options of every question.
YES: _Decorator = click.option("--yes", is_flag=True, help="Do not ask on a terminal before anybody is charged.")
SPENDING: tuple[_Decorator, ...] = (
    click.option("--fresh", is_flag=True, help="Ask anew and pay, also if it was asked before."),
    click.option("--dry-run", is_flag=True, help="Show the plan and what would be charged; charge nothing."),
    YES,
    click.option("--verbose", is_flag=True, help="Say why this mechanism answers, and all that is promised."),
    as_json,
)


def apply_all(parameters: Sequence[_Decorator]) -> _Decorator:
    """Several parameters as one decorator, in the order in which help lists them."""
    return lambda command: reduce(lambda made, parameter: parameter(made), reversed(parameters), command)


def _type_of(argument: Parameter) -> Any:
    if argument.names:
        return click.Choice(argument.names)
    return next((kind for kind in (int, float) if kind in (argument.annotation, *get_args(argument.annotation))), str)


def _flag(argument: Parameter, about: str = "", several: tuple[str, str] | None = None) -> _Decorator:
    """An option of a command for an argument of a question."""
    if argument.annotation in (bool, bool | None):
        return click.option(f"--{argument.name}/--no-{argument.name}", default=None, help=argument.help)
    settings: dict[str, Any] = {"type": _type_of(argument), "help": argument.help, **_KINDS.get(argument.name, {})}
    if several:
        settings = {"multiple": True, "metavar": several[0], "help": several[1]}
    if argument.name == "mechanism":
        settings |= {"default": "auto", "show_default": True, "help": "Which mechanism answers."}
    if about:
        settings["help"] = f"For {about}: {settings['help'][:1].lower()}{settings['help'][1:]}"
    return click.option(f"--{argument.name.replace('_', '-')}", **settings)


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
            flags.append(_flag(argument, several=_BY_COLUMN if entry.model and argument.name == "bounds" else None))
    return places + flags


def option_flags(front: str = TABLES) -> list[_Decorator]:
    """A flag for each option of every question."""
    return [_flag(option) for option in options_of(front).values() if option.name not in _APART]


def plan_flags() -> list[_Decorator]:
    """The arguments of all statistics, each as a flag, and the options of every question."""
    own: dict[str, tuple[Parameter, list[str]]] = {}
    for entry in CATALOGUE.values():
        for argument in entry.own(TABLES).values():
            own.setdefault(argument.name, (argument, []))[1].append(entry.name.replace("_", "-"))
    flags = [
        _flag(argument, "" if name in ("bounds", "step") else ", ".join(whose), _TO_PLAN if name == "bounds" else None)
        for name, (argument, whose) in own.items()
    ]
    return flags + option_flags()


# Arguments out of flags ---------------------------------------------------------------------------------------------


def open_dataset(path: str) -> Dataset | RemoteDataset:
    """The dataset that a file declares, or names behind a server; a note where nothing will be remembered."""
    with preparing(f"Preparing {path}"), refusing():
        from epsilons.dataset import Dataset

        if (remote := open_remote(path)) is not None:
            return remote
        people = Dataset.from_toml(path)
    if not people.ledger.lasting:
        note(
            f"The ledger of {path} is in memory: what this command charges is forgotten when it ends, and who asks "
            'often learns everything. Better: ledger = "sqlite:///people.ledger"'
        )
    return people


def open_remote(path: str) -> RemoteDataset | None:
    """The dataset that a file names behind a server; None where the file declares one here."""
    from epsilons.dataset.declared import find_server

    if (found := find_server(path)) is None:
        return None
    from epsilons.remote.client import connect, read_key_file

    server, name, key = found
    return connect(server, key=None if key is None else read_key_file(key)).dataset(name)


def read_arguments(entry: Entry | None, given: dict[str, Any], people: Asking) -> dict[str, Any]:
    """A command's options as the arguments of a method: what was not given is left out."""
    kept = {name: value for name, value in given.items() if value is not None and value != ()}
    if "by" in kept:
        kept["by"] = dict(_read_group(text, people) for text in kept["by"])
    for name in ("threshold", "assume"):
        with suppress(KeyError, ValueError):  # both may be a word
            kept[name] = float(kept[name])
    if isinstance(kept.get("q"), tuple) and len(kept["q"]) == 1:
        (kept["q"],) = kept["q"]
    if isinstance(kept.get("edges"), str):
        kept["edges"] = spans_written(kept["edges"]) or _EDGES.convert(kept["edges"], None, None)
    for name in ("categories", "classes", "among"):
        if name in kept:
            kept[name] = _read_keys(kept.get("column") or kept.get("target") or "", kept[name], people)
    if entry is not None and entry.model and "column" in kept:
        kept["target"] = kept.pop("column")
    if "bounds" in kept and isinstance(kept["bounds"][0], str):  # of a model, or of anything that is planned
        by_column = entry is not None and entry.model
        kept["bounds"] = read_bounds(kept["bounds"]) if by_column else PAIR.convert(kept["bounds"][-1], None, None)
    return kept


def _read_group(text: str, people: Asking) -> tuple[str, Any]:
    """`region=north,south`, `age=ranges(0,18,65)`, or `region` for the keys that were registered."""
    name, equals, listed = text.partition("=")
    if not equals:
        keys = people.keys(name)
        return name, keys if isinstance(keys, Mapping) else list(keys)
    return name, _read_keys(name, listed, people)


def _read_keys(column: str, listed: str, people: Asking) -> Any:
    """Keys with commas between them, as a JSON list, or a word with edges; text takes the type of its column."""
    if (spans := spans_written(listed)) is not None:
        return {word: [people.key(column, edge) for edge in edges] for word, edges in spans.items()}
    if listed.startswith("["):
        try:
            return list(json.loads(listed))
        except ValueError:
            raise PlanError(f"The keys of {column!r} are not a JSON list.", suggest=f'{column}=["a,b","c"]') from None
    keys = listed.split(",")
    if not all(keys):
        rule, hint = "An empty key needs a JSON list.", f'{column}=north,south, or {column}=["north",""]'
        raise PlanError(f"A key of {column!r} is empty.", rule=rule, suggest=hint)
    return [people.key(column, key) for key in keys]


def read_bounds(given: Iterable[str]) -> dict[str, tuple[float, float]]:
    """`wage=0,100`, for several columns."""
    found = {}
    for text in given:
        name, _, pair = text.rpartition("=")
        try:
            found[name] = check_bounds(PAIR.convert(pair, None, None), "question")
        except click.BadParameter as error:
            what = f"{text!r} is not a column with bounds: {error.message}."
            raise PlanError(what, suggest=Argument("bounds", {"wage": (0, 100)})) from None
        except PlanError as error:
            hint = error.parts[2]
            own = Argument("bounds", {name: hint.value}) if isinstance(hint, Argument) else hint
            raise PlanError(f"Column {name!r}: {error.what}", rule=error.rule, suggest=own) from None
    return found

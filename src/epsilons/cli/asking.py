"""What the commands that ask questions share: their options, and how they ask."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from epsilons.cli.answering import asked_once, show_release
from epsilons.cli.terminal import as_json, notes, print_json, results
from epsilons.cli.wording import reworded
from epsilons.errors import EpsilonsError, PlanError

if TYPE_CHECKING:
    from epsilons.dataset import Dataset

_F = TypeVar("_F", bound=Callable[..., Any])

dataset_file = click.argument("dataset", type=click.Path(dir_okay=False), metavar="PEOPLE.TOML")
column_name = click.argument("column")


class Pair(click.ParamType[tuple[float, float]]):
    """Two numbers, as `0,100`."""

    name = "LOW,HIGH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        if isinstance(value, tuple):
            return value
        try:
            low, high = (float(part) for part in value.split(","))
        except ValueError:
            self.fail("two numbers with a comma between them, such as 0,100", param, ctx)
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


bounds = click.option("--bounds", type=Pair(), help="Public bounds of the column; those of the file unless given.")
step = click.option("--step", type=float, help="Distance between possible answers (65,536 steps unless given).")
missing = click.option("--missing", type=click.Choice(["exclude", "center"]), help="What to do with missing values.")
mechanism = click.option("--mechanism", default="auto", show_default=True, help="Which mechanism answers.")
assume = click.option("--assume", type=click.Choice(["unrelated", "nothing"]), help="About preferences and values.")
analyst = click.option("--analyst", help="Who asks, for quotas (fairness only; budgets are everybody's).")

_COMMON = (
    click.option("--where", help="A condition, such as \"age >= 18 AND region IN ('north', 'south')\"."),
    click.option(
        "--by",
        multiple=True,
        metavar="COLUMN=KEY,KEY",
        help='Groups, with their keys: region=north,south, or a JSON list: region=["a,b","c"]. May be repeated.',
    ),
    missing,
    click.option("--share", type=float, help="At most this part of what each person granted (default 0.1)."),
    click.option("--error", type=float, help="Instead of a share: the smallest one whose plan reaches this error."),
    mechanism,
    click.option("--threshold", help="For threshold and sample: a number, max, mean or best."),
    assume,
    click.option("--spread", type=float, help="Public guess of the standard deviation."),
    click.option("--density", type=float, help="Public guess of the part of people who count."),
    click.option("--location", type=float, help="Public guess of the mean."),
    analyst,
)


def asking(command: _F) -> _F:
    """The options of every question."""
    for option in reversed(_COMMON):
        command = option(command)
    return command


def spending(command: _F) -> _F:
    """The options of commands that answer, besides those of every question."""
    for option in reversed(
        (
            click.option("--fresh", is_flag=True, help="Ask anew and pay, also if it was asked before."),
            click.option("--dry-run", is_flag=True, help="Show the plan and what would be charged; charge nothing."),
            as_json,
        )
    ):
        command = option(command)
    return command


def column_question(statistic: str, words: str, example: str, grid: bool = False) -> click.Command:
    """A command that asks one statistic of one column within bounds."""

    def ask(dataset: str, column: str, **given: Any) -> None:
        with open_dataset(dataset) as people:
            answer(people, statistic, given, column=column)

    ask.__doc__ = f"{words}\n\n\b\nExample:\n  {example}"
    decorated = bounds(step(asking(spending(ask))) if grid else asking(spending(ask)))
    return click.command(statistic, short_help=words)(dataset_file(column_name(decorated)))


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


def arguments(given: dict[str, Any], people: Dataset) -> dict[str, Any]:
    """A command's options as the arguments of a method: what was not given is left out."""
    kept = {name: value for name, value in given.items() if value is not None and value != ()}
    if "by" in kept:
        kept["by"] = dict(_group(text, people) for text in kept["by"])
    if "threshold" in kept:
        kept["threshold"] = _threshold(kept["threshold"])
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
        raise PlanError(f"--by {text} has no keys.", rule="Keys come from the caller.", hint="--by region=north,south")
    return name, keys(name, listed, people)


def keys(column: str, listed: str, people: Dataset) -> list[Any]:
    """Keys with commas between them, or as a JSON list; words take the type of their column."""
    if listed.startswith("["):
        try:
            found: list[Any] = json.loads(listed)
        except ValueError:
            raise PlanError(f"The keys of {column!r} are not a JSON list.", hint=f'{column}=["a,b","c"]') from None
        return found
    words = listed.split(",")
    if not all(words):
        raise PlanError(
            f"A key of {column!r} is empty.",
            rule="Keys stand with commas between them; an empty word is a key in a JSON list only.",
            hint=f'{column}=north,south, or {column}=["north",""]',
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
            raise PlanError(f"{text!r} is not a column with bounds.", hint="--bounds wage=0,100") from None
        if not low < high:
            raise PlanError(
                f"The bounds of {name!r} are reversed or empty.",
                rule="The lower bound comes first.",
                hint=f"--bounds {name}={high:g},{low:g}" if low > high else f"--bounds {name}=0,100",
            )
        found[name] = (low, high)
    return found


def answer(people: Dataset, statistic: str, given: dict[str, Any], **own: Any) -> None:
    """Ask one question and print it; with --dry-run only its plan."""
    dry, as_document = given.pop("dry_run"), given.pop("as_json")
    options = arguments({**own, **given}, people)
    if dry:
        options.pop("fresh", None)
        show_plan(people, statistic, options, as_document)
        return
    release, stored = asked_once(people, lambda: getattr(people, statistic)(**options))
    show_release(people, release, stored, as_document)


def show_plan(people: Dataset, statistic: str, options: dict[str, Any], as_document: bool) -> None:
    """A plan on stdout."""
    plan = people.plan(statistic, options.pop("column", None), **options)
    if as_document:
        print_json(plan.to_dict())
    else:
        results().print(str(plan), soft_wrap=True, markup=False)

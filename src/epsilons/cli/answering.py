"""How answers are shown: values with their error bars, then what they charged and what is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from epsilons.cli.terminal import notes, print_json, results
from epsilons.display import show, show_key

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from epsilons.dataset import Dataset
    from epsilons.dataset.answers import Answers
    from epsilons.release import Release

_T = TypeVar("_T")
_ANY_WIDTH = 100_000


def asked_once(people: Dataset, ask: Callable[[], _T]) -> tuple[_T, bool]:
    """(what was answered, whether it is a stored answer); a note if nothing was charged since it was asked before."""
    before = len(people.history())
    answer = ask()
    stored = len(people.history()) == before
    if stored:
        notes().print("Asked before: this is the stored answer, and nothing was charged again.", soft_wrap=True)
    return answer, stored


def show_release(people: Dataset, release: Release, stored: bool, as_document: bool) -> None:
    """An answer on stdout: value, error, interval, price and what is left."""
    from epsilons.dataset.answers import interval_of, show_interval

    left = people.remaining().epsilons
    interval = interval_of(release)
    if as_document:
        shown = {"release": release.to_dict(), "interval": _plain(interval), "left": _pairs(left)}
        print_json({**shown, "stored": stored})
        return
    console = results()
    rows = release.value.items() if isinstance(release.value, dict) else [("", release.value)]
    table = _table("", release.statistic, "± error", "95% interval")
    for key, value in rows:
        bar = interval.get(key) if isinstance(interval, dict) else interval
        table.add_row(show_key(key) if key != "" else "", show(value), show(release.error), show_interval(bar))
    console.print(table)
    console.print()
    console.print(f"by {release.mechanism}: {release.why}", soft_wrap=True, markup=False)
    _show_charges(console, release.charges, release.levels, left, stored)
    console.print()
    console.print(str(release.guarantee), style="dim", soft_wrap=True, markup=False)


def show_answers(people: Dataset, answers: Answers, stored: bool, as_document: bool) -> None:
    """Several answers on stdout: one row per group, each value with its interval; price and what is left."""
    from epsilons.dataset.answers import interval_of
    from epsilons.guarantee import compose_all

    left = people.remaining().epsilons
    if as_document:
        shown = {
            name: {"release": one.to_dict(), "interval": _plain(interval_of(one))} for name, one in answers.items()
        }
        charges = _pairs(answers.charges, left)
        print_json({"answers": shown, "charges": charges, "left": _pairs(left), "stored": stored})
        return
    console = results()
    table = _wide(answers)
    # Rich would break cells to make a wide table fit; a line for each answer is easier to read.
    wide = console.measure(table, options=console.options.update(width=_ANY_WIDTH)).maximum
    console.print(table if wide <= console.width else _long(answers))
    console.print()
    levels: dict[float, str] = {}
    for name, release in answers.items():
        console.print(f"{name}: ± {show(release.error)} by {release.mechanism}", soft_wrap=True, markup=False)
        levels |= release.levels
    _show_charges(console, answers.charges, levels, left, stored)
    console.print()
    whole = compose_all(release.guarantee for release in answers.values())
    console.print(str(whole), style="dim", soft_wrap=True, markup=False)


def _wide(answers: Answers) -> Table:
    head, rows = answers.table()
    table = _table(*head)
    for row in rows:
        table.add_row(*row)
    return table


def _long(answers: Answers) -> Table:
    """The same cells with a line for each group and answer."""
    head, rows = answers.table()
    keys = len(head) - 2 * len(answers)
    table = _table(*head[:keys], "", "answer", "95% interval")
    for row in rows:
        for place, name in enumerate(answers):
            group = row[:keys] if place == 0 else [""] * keys
            table.add_row(*group, show_key(name), *row[keys + 2 * place : keys + 2 * place + 2])
    return table


def _table(*head: str) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in head:
        # Names come from a query or a table; square brackets in them are no markup.
        table.add_column(Text(show_key(title)))
    return table


def _show_charges(
    console: Console,
    charges: Mapping[float, float],
    levels: Mapping[float, str],
    left: Mapping[float, float],
    stored: bool,
) -> None:
    charged = "charged when it was first asked" if stored else "charged"
    for granted, spent in charges.items():
        if granted in left:
            name = levels.get(granted, f"{granted:g}")
            line = f"  {name}: {charged} {show(spent)}, left {show(left[granted])} of {show(granted)}"
            console.print(line, soft_wrap=True, markup=False)


def _plain(interval: Any) -> Any:
    if isinstance(interval, dict):
        return [list(pair) for pair in interval.values()]
    return None if interval is None else list(interval)


def _pairs(epsilons: Mapping[float, float], known: Mapping[float, float] | None = None) -> list[list[float]]:
    """[[granted, epsilon], ...]; of those that have a balance, which public people have not."""
    return [[granted, one] for granted, one in epsilons.items() if known is None or granted in known]

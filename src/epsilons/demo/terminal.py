"""The answers as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from epsilons.demo import words
from epsilons.demo.budgets import Books
from epsilons.demo.people import GROUPS, RECIPE, Population
from epsilons.demo.questions import Answer, Answered

#: The width of a bar in characters.
_BAR = 20


def print_all(console: Console, people: Population, answered: tuple[Answered, ...], books: Books, report: str) -> None:
    """Everything the demo has to say, in reading order."""
    console.print(Text.assemble(("epsilons", "bold"), ": ", words.TAGLINE))
    console.print()
    console.print(words.DATA.format(people=len(people)))
    console.print(words.SIMULATED, style="bold")
    console.print(RECIPE)
    console.print(words.NOISE)
    console.print(words.SHARE)
    console.print()
    console.print(_groups(people))
    for one in answered:
        console.print()
        console.print(_question(one))
        if isinstance(one.truth, dict):
            console.print()
            console.print(_classes(one))
    console.print()
    charged = "Charged: the least and the most epsilon that anybody paid."
    for line in (words.COMPARED, words.PREDICTED, words.TRUE_ERROR, charged):
        console.print(Text(line, style="dim"))
    console.print()
    console.print(_left(books))
    console.print(Text(words.AGAIN.format(entries=books.entries), style="dim"))
    console.print()
    _print_promise(console, answered)
    console.print()
    console.print(Text.assemble("The same with pictures: ", (report, "bold")), soft_wrap=True)


def _table(title: str, caption: str = "") -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        caption=caption or None,
        caption_justify="left",
        caption_style="dim",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )


def _groups(people: Population) -> Table:
    table = _table("How private people asked to be")
    table.add_column("group")
    table.add_column("people", justify="right")
    table.add_column("epsilon", justify="right")
    table.add_column("which means")
    for place, group in enumerate(GROUPS):
        table.add_row(group.name, f"{people.size(place):,}", group.range, group.meaning)
    return table


def _left(books: Books) -> Table:
    """The books after the last question."""
    table = _table("What is left", words.LEFT.format(releases=books.releases))
    table.add_column("group", no_wrap=True)
    for head in ("granted", "spent", "left", "", "more such\nquestions"):
        table.add_column(head, justify="left" if not head else "right", no_wrap=True)
    for group in books.groups:
        filled = round(group.part * _BAR)
        bar = Text("█" * filled, style="green") + Text("░" * (_BAR - filled), style="dim")
        table.add_row(
            group.name, f"{group.granted:.3f}", f"{group.spent:.3f}", f"{group.left:.3f}", bar, f"{group.more}"
        )
    return table


def _question(one: Answered) -> Table:
    asked = one.asked
    single = not isinstance(one.truth, dict)
    title = (
        f"{asked.words} ({asked.unit}; truth: {asked.show(one.truth)})" if single else f"{asked.words} ({asked.unit})"
    )
    table = _table(title, f"* {one.praise}. {asked.remark}")
    table.add_column("mechanism", no_wrap=True)
    if single:
        table.add_column("answer", justify="right", no_wrap=True)
    for head in ("predicted\nerror", "true error\n(demo only)", "people\nused", "charged\n(epsilon)"):
        table.add_column(head, justify="right", no_wrap=True)
    for answer in one.answers:
        best = answer is one.best
        table.add_row(
            f"{answer.mechanism} *" if best else answer.mechanism,
            *([asked.show(answer.release.value)] if single else []),
            asked.show(answer.release.error),
            asked.show(answer.true_error),
            f"{answer.used:.0%}",
            show_charge(answer),
            style="bold green" if best else None,
        )
    return table


def _classes(one: Answered) -> Padding:
    """The histogram of the best mechanism beside the truth."""
    table = _table(f"The same by class, answered by {one.best.mechanism}")
    for head in ("weekly wage", "private answer", "95% interval", "truth"):
        table.add_column(head, justify="right")
    for (low, high), value in one.best.release.value.items():
        key = (low, high)
        around = "–" if one.best.interval is None else "{:,.0f} to {:,.0f}".format(*one.best.interval[key])
        table.add_row(f"${low:,.0f} to ${high:,.0f}", one.asked.show(value), around, one.asked.show(one.truth[key]))
    return Padding(table, (0, 0, 0, 2))


def show_charge(answer: Answer) -> str:
    """The least and the most that anybody paid."""
    low, high = answer.charged
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _points(lines: Iterable[str]) -> Table:
    """A list with its dashes in a column of their own."""
    grid = Table.grid(padding=(0, 1))
    for line in lines:
        grid.add_row("-", line)
    return grid


def _print_promise(console: Console, answered: tuple[Answered, ...]) -> None:
    promise = answered[0].best.release.guarantee
    console.print(Text(f"What is promised ({promise.kind})", style="bold"))
    console.print(words.NEIGHBORS[promise.neighbors])
    console.print()
    console.print(Text("What is not", style="bold"))
    console.print(_points((*promise.caveats, *words.NOT_PROMISED)))

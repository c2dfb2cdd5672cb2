"""Results go to stdout, progress and notes to stderr.

An answer is a number, its interval and its condition on a line; then follow the price and what is left.
"""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, TypeVar

import click

from epsilons.accuracy.relation import holds
from epsilons.arguments.reading import tell_centred
from epsilons.display import group_levels, show, show_errors, show_key, show_span, text_table
from epsilons.errors import printable
from epsilons.guarantee import PERSONALIZED, compose_all

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from epsilons.dataset.answers import Answers
    from epsilons.dataset.asking import Asking
    from epsilons.ledger import Remaining
    from epsilons.release import Release

_T = TypeVar("_T")
#: For what click puts behind a question, such as " [Y/n]: ".
_ROOM = 8
#: Caveats that no answer is shown without.
_MARKS = ("Not DP", "NOT PRIVATE")
#: What the condition of several intervals follows, and of one.
_HOLD = ("Intervals hold", "The interval holds")
#: `@as_json` on a command: its function gets `as_json: bool`.
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, TextIOWrapper):
        # A terminal that knows no Greek shows a question mark rather than an error.
        stream.reconfigure(errors="replace")
    return Console(stderr=stderr, highlight=False, emoji=False)


def width() -> int:
    """How many columns a table may have: those of the terminal, 80 where there is none."""
    return _console().width


def write(text: str, style: str | None = None, stderr: bool = False) -> None:
    """Results on stdout, broken between words to fit the terminal; in colour on a terminal only."""
    console, text = _console(stderr), printable(text, keep="\n")
    if not stderr or console.is_terminal:
        text = "\n".join(_break(line, console.width) for line in text.split("\n"))
    console.print(text, style=style, markup=False, soft_wrap=True)


def note(text: str) -> None:
    """A note on stderr: broken between words on a terminal, as it is in a file."""
    write(text, stderr=True)


def fit(question: str) -> str:
    """A question, broken between words on a terminal, with room for what is put behind it."""
    console = _console(stderr=True)
    return _break(printable(question), console.width - _ROOM) if console.is_terminal else question


def _break(line: str, wide: int) -> str:
    """Lines that fit; a longer word, such as a path or a digest, stays whole."""
    indent = line[: len(line) - len(line.lstrip())]
    whole = textwrap.fill(line, wide, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return line if len(line) <= wide else whole


def preparing(what: str) -> Any:
    """Show that something is being prepared, while a block lasts and where stderr is a terminal."""
    return _console(stderr=True).status(what)


def progress() -> Progress:
    """A progress bar on stderr, silent where stderr is not a terminal, gone when done."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = _console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def print_json(document: Any) -> None:
    """One strict JSON document on stdout."""
    text = json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)
    strange = (one for one in set(text) - {"\n"} if not one.isprintable())
    codes = {ord(one): one.encode("utf-16-be", "surrogatepass").hex() for one in strange}
    sys.stdout.write(text.translate({one: re.sub("(....)", r"\\u\1", code) for one, code in codes.items()}) + "\n")


# Answers ------------------------------------------------------------------------------------------------------------


def ask_once(people: Asking, ask: Callable[[], _T]) -> tuple[_T, bool]:
    """(what was answered, whether it is a stored answer); a note if nothing was charged since it was asked before."""
    before = people.count_charged()
    answer = ask()
    releases: Iterable[Any] = answer.values() if isinstance(answer, Mapping) else [answer]
    # What comes from the roster is not stored, and has no number.
    stored = people.count_charged() == before and any(one.number is not None for one in releases)
    if stored:
        note("Asked before: this is the stored answer, and nothing was charged again.")
    return answer, stored


def on_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agree(price: str) -> bool:
    """Whether to spend, asked once the price is told."""
    note(price)
    if click.confirm("Ask, and charge this?", default=True, err=True):
        return True
    note("Nothing was charged.")
    return False


def tell_price(left: Remaining, names: Mapping[float, str], row: Any) -> str:
    """A row of a plan as the price of an answer: the error to expect, what each level is charged, what is left."""
    error = "" if row.error is None else f", expected error {show(row.error)}"
    table = _price(left, dict(row.charges), names, "would be charged")
    return f"By {row.mechanism}{error}.\n{table}"


def under(where: str | None) -> str:
    """The condition of a question, as a line of its own."""
    return f"where {where}\n" if where else ""


def print_answers(left: Remaining, answers: Answers | Release, stored: bool, where: str | None = None) -> None:
    """One or several answers as JSON; a query in SQL shows its conditions itself."""
    if isinstance(answers, Mapping):
        charges = [(granted, spent) for granted, spent in answers.charges.items() if granted in left.epsilons]
        shown = {"answers": {name: describe_answer(one) for name, one in answers.items()}, "charges": charges}
    else:
        shown = describe_answer(answers)
    print_json({**shown, "where": where, "left": [level.to_dict() for level in left.levels], "stored": stored})


def describe_answer(release: Release) -> dict[str, Any]:
    """An answer as JSON, with its 95% interval, or those of its keys in order; why no error is stated, if none is."""
    from epsilons.dataset.answers import interval_of

    interval = interval_of(release)
    plain = list(interval.values()) if isinstance(interval, dict) else interval
    why = {"no_error": release.no_error} if release.no_error else {}
    return {"release": release.to_dict(), "interval": plain, **why}


def show_answers(left: Remaining, answers: Answers, stored: bool, verbose: bool, where: str | None = None) -> None:
    """A row for each group, each value with its interval; then charges, the promise, and where it is found again."""
    from epsilons.release.answer import cite

    asked = [release.where for release in answers.values()]
    where = where or (asked[0] if len({*asked}) == 1 else None)
    head, rows = answers.table()
    keys = len(head) - 2 * len(answers)
    held = _held(answers)
    # A single answer often has room for its condition.
    alone = len(rows) * len(answers) == 1
    for beside in (["holds", held], []) if alone and held else ([],):
        table = text_table([*map(show_key, head), *beside[:1]], [[*row, *beside[1:]] for row in rows], width())
        if len(table.splitlines()) == len(rows) + 2:
            break
    if len(answers) > 1 and len(table.splitlines()) > len(rows) + 2:
        # Cells would break; a line for each answer is easier to read.
        lines = [
            [*(row[:keys] if at == keys else [""] * keys), show_key(name), *row[at : at + 2]]
            for row in rows
            for at, name in zip(range(keys, len(row), 2), answers, strict=True)
        ]
        table = text_table([*head[:keys], "", "answer", "95% interval"], lines, width())
    write(under(where) + (table if beside or not held else f"{table}\n{_HOLD[alone]} {held}."))
    write(f"\n{_charges(left, answers, stored)}\n")
    for name, release in answers.items():
        named = f"{show_key(name)}{f' where {release.where}' if release.where and not where else ''}: "
        write((named if len(answers) > 1 else "") + _explain(release, verbose))
    if cited := cite(*answers.values()):
        write(f"{cited}.")
    _promise(answers, verbose)


def _held(answers: Mapping[str, Release]) -> str:
    """When intervals hold, as a clause; empty where there are none."""
    return " and ".join(dict.fromkeys(holds(one.assumption) for one in answers.values() if one.models))


def show_apart(left: Remaining, answers: Answers, stored: bool, verbose: bool) -> None:
    """Answers that have little in common: a table for each, then charges and the promise of all together."""
    from epsilons.dataset.answers import as_table

    for name, release in answers.items():
        head, rows = as_table(release).table()
        write(f"{show_key(name)}\n{text_table([show_key(one) for one in head], rows, width())}")
        if held := _held({name: release}):
            write(f"{_HOLD[len(rows) == 1]} {held}.")
        write(f"{_explain(release, verbose)}\n")
    write(f"{_charges(left, answers, stored)}\n")
    _promise(answers, verbose)


def _promise(answers: Answers, verbose: bool) -> None:
    guarantee = compose_all(release.guarantee for release in answers.values())
    if verbose or guarantee.kind != PERSONALIZED:
        write(str(guarantee))
        return
    for caveat in guarantee.caveats:
        if caveat.startswith(_MARKS):
            write(caveat, style="bold red")
    write(f"{PERSONALIZED}: nobody loses more than is charged here (more: --verbose).")


def _explain(release: Release, verbose: bool) -> str:
    """Who answered and how far it errs; why there is no interval."""
    if release.error == 0:
        return release.why
    stated = release.error.values() if isinstance(release.error, dict) else [release.error]
    told = any(one is not None for one in stated)
    error = f", error {show_errors(release.error)}{release.error_source}" if told else ""
    error += "" if release.models or not error else f" {holds(release.assumption)}"
    why = f" {release.why}" if verbose else ""
    none = f" No interval: {release.no_interval[:1].lower()}{release.no_interval[1:]}" if release.no_interval else ""
    if release.models and release.no_error:
        none = f" No error{' there' if told else ''}: {release.no_error[:1].lower()}{release.no_error[1:]}"
    quality = f" {release.details['quality']}" if "quality" in release.details else ""
    return f"By {release.mechanism}{error}{tell_centred(release.guarantee.caveats)}.{why}{none}{quality}"


def _charges(remaining: Remaining, answers: Answers, stored: bool) -> str:
    """A line for each level: what it granted, what was charged, what is left of it on average.

    A stored answer may be of people who stand elsewhere now: nobody is at a level that they were charged at.
    """
    names = {granted: name for release in answers.values() for granted, name in release.levels.items()}
    return _price(remaining, answers.charges, names, "charged when first asked" if stored else "charged")


def _price(remaining: Remaining, charged: Mapping[float, float], names: Mapping[float, str], called: str) -> str:
    charges = {granted: spent for granted, spent in sorted(charged.items()) if math.isfinite(granted)}
    now, measure = {one.epsilon: one for one in remaining.levels}, remaining.measure
    if not charges:
        return "Nobody is charged: everyone chose public."
    levels, rows, everyone = list(charges), [], sum(one.people for one in now.values())
    sizes = [now[granted].people if granted in now else everyone for granted in levels]
    named = [names.get(granted, show(granted)) for granted in levels]
    for name, places in group_levels(list(zip(named, sizes, strict=True))):
        those = [levels[place] for place in places]
        there = [now[granted] for granted in those if granted in now]
        left = measure.show((one.epsilon, one.average) for one in there) if there else "nobody is there now"
        nothing = sum(one.nothing_left for one in there)
        spent = measure.show((granted, charges[granted]) for granted in those)
        rows.append([name, show_span(those), spent, left, f"{nothing:,}"])
    head = ["level", "granted", measure.head(called), measure.head("left"), "people with nothing left"]
    shown = len(head) if any(now[granted].nothing_left for granted in levels if granted in now) else len(head) - 1
    return "\n".join([text_table(head[:shown], [row[:shown] for row in rows], width()), *measure.notes])

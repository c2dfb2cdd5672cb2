"""How answers are shown: the number, its interval and its condition on a line; then the price and what is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from epsilons.arguments.checks import ASSUMPTIONS
from epsilons.cli.terminal import note, print_json, width, write
from epsilons.display import show, show_key, show_span, text_table
from epsilons.guarantee import PERSONALIZED, compose_all, to_epsilon

if TYPE_CHECKING:
    from epsilons.dataset import Dataset
    from epsilons.dataset.answers import Answers
    from epsilons.release import Release
    from epsilons.statistics.entry import Entry

_T = TypeVar("_T")
#: When intervals and errors hold, in short.
_HOLDS = {
    ASSUMPTIONS["unrelated"]: "if preferences and values are unrelated",
    ASSUMPTIONS["nothing"]: "however preferences and values relate",
}
#: Levels of fewer people than this share a line, and so do those beyond the largest few.
_FEW_PEOPLE, _MOST_LEVELS = 20, 12
#: Caveats that no answer is shown without.
_MARKS = ("Not DP", "NOT PRIVATE")


def ask_once(people: Dataset, ask: Callable[[], _T]) -> tuple[_T, bool]:
    """(what was answered, whether it is a stored answer); a note if nothing was charged since it was asked before."""
    before = len(people.history())
    answer = ask()
    stored = len(people.history()) == before
    if stored:
        note("Asked before: this is the stored answer, and nothing was charged again.")
    return answer, stored


# Documents ----------------------------------------------------------------------------------------------------------


def print_release(people: Dataset, release: Release, stored: bool) -> None:
    """An answer as JSON."""
    print_json({**_document(release), "left": list(people.remaining().epsilons.items()), "stored": stored})


def print_answers(people: Dataset, answers: Answers, stored: bool) -> None:
    """Several answers as JSON."""
    left = people.remaining().epsilons
    charges = [(granted, spent) for granted, spent in answers.charges.items() if granted in left]
    shown = {name: _document(release) for name, release in answers.items()}
    print_json({"answers": shown, "charges": charges, "left": list(left.items()), "stored": stored})


def _document(release: Release) -> dict[str, Any]:
    from epsilons.dataset.answers import interval_of

    interval = interval_of(release)
    plain = list(interval.values()) if isinstance(interval, dict) else interval
    return {"release": release.to_dict(), "interval": plain}


# Tables -------------------------------------------------------------------------------------------------------------


def show_release(
    people: Dataset, release: Release, entry: Entry, asked: Mapping[str, Any], stored: bool, verbose: bool
) -> None:
    """One answer: its value, or one for each group, bin or coefficient."""
    from epsilons.dataset.answers import Answers

    column = asked.get("target" if entry.model else "column")
    which = "".join(f" ({name}={asked[name]:g})" for name in ("q", "k") if name in asked)
    title = release.statistic if column is None else f"{entry.name.replace('_', ' ')} of {column}{which}"
    keys = tuple(asked.get("by", ()))
    if entry.name == "histogram":
        if len(keys) > 1:  # ((group, group), bin)
            flat = {(*group, cell): number for (group, cell), number in release.value.items()}
            release = replace(release, value=flat)
        title, keys = "rows", (*keys, str(column))
    elif entry.model:
        keys = (*keys, "coefficient")
    show_answers(people, Answers({title: release}, keys), stored, verbose)


def show_answers(people: Dataset, answers: Answers, stored: bool, verbose: bool) -> None:
    """A row for each group, each value with its interval; then charges and the promise."""
    head, rows = answers.table()
    keys = len(head) - 2 * len(answers)
    holds = ", ".join(dict.fromkeys(_HOLDS[release.assumption] for release in answers.values()))
    # A single row has room for the condition.
    titles, cells = (["holds"], [holds]) if len(rows) == 1 else ([], [])
    table = text_table([*map(show_key, head), *titles], [[*row, *cells] for row in rows], width())
    if len(answers) > 1 and (cells or len(table.splitlines()) > len(rows) + 2):
        # Cells would break; a line for each answer is easier to read.
        lines = [
            [*(row[:keys] if at == keys else [""] * keys), show_key(name), *row[at : at + 2], *cells]
            for row in rows
            for at, name in zip(range(keys, len(row), 2), answers, strict=True)
        ]
        table = text_table([*head[:keys], "", "answer", "95% interval", *titles], lines, width())
    write(table if cells else f"{table}\nIntervals hold {holds}.")
    write(f"\n{_charges(people, answers, stored)}\n")
    for name, release in answers.items():
        write((f"{show_key(name)}: " if len(answers) > 1 else "") + _explain(release, len(rows) > 1, verbose))
    guarantee = compose_all(release.guarantee for release in answers.values())
    if verbose or guarantee.kind != PERSONALIZED:
        write(str(guarantee))
        return
    for caveat in guarantee.caveats:
        if caveat.startswith(_MARKS):
            write(caveat, style="bold red")
    write(f"{PERSONALIZED}: nobody loses more than is charged here (more: --verbose).")


def _explain(release: Release, many: bool, verbose: bool) -> str:
    """Who answered and how far it errs; why there is no interval."""
    if release.error == 0:
        return release.why
    error = "" if release.error is None else f", error ± {show(release.error)}{' in a typical row' if many else ''}"
    why = f" {release.why}" if verbose else ""
    none = f" No interval: {release.no_interval[:1].lower()}{release.no_interval[1:]}" if release.no_interval else ""
    return f"By {release.mechanism}{error}.{why}{none}"


def _charges(people: Dataset, answers: Answers, stored: bool) -> str:
    """A line for each level: what it granted, what was charged, what is left of it."""
    charges, remaining = answers.charges, people.remaining()
    names = {granted: name for release in answers.values() for granted, name in release.levels.items()}
    left = remaining.epsilons
    sizes: Counter[float] = Counter()
    for cohort in remaining.cohorts:
        sizes[to_epsilon(cohort.granted)] += cohort.people
    levels = [granted for granted in charges if granted in left]
    if not levels:
        return "Nobody is charged: everyone chose public."
    largest = sorted(levels, key=lambda granted: -sizes[granted])[:_MOST_LEVELS]
    alone = [granted for granted in levels if granted in largest and sizes[granted] >= _FEW_PEOPLE]
    others = [granted for granted in levels if granted not in alone]
    if len(others) == 1:
        alone, others = levels, []
    lines = [(names.get(level, show(level)), [level]) for level in alone]
    lines += [(f"{len(others)} {'other ' if alone else ''}levels", others)] if others else []
    rows = [
        (name, show_span(those), show_span([charges[one] for one in those]), show_span([left[one] for one in those]))
        for name, those in lines
    ]
    return text_table(("level", "granted", "charged when first asked" if stored else "charged", "left"), rows, width())

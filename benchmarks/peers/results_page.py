"""The results as markdown, between the markers of docs/peers.md, and for a terminal, which reads markdown as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from answering import TASKS
from figures import AIM, BEST_OF, OURS, Figure, Measured
from made_up_people import LEVELS

START, END = "<!-- results: written by `make bench-peers ARGS=--write` -->", "<!-- end of results -->"


def write_page(page: Path, lines: Sequence[str]) -> None:
    """Put the results between the page's markers."""
    text = page.read_text(encoding="utf-8")
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError(f"{page.name} has no place for results: {START} ... {END}")
    page.write_text("\n".join([before + start, "", *lines, "", end + after]), encoding="utf-8")


def markdown(measured: Measured, facts: Mapping[str, Any]) -> list[str]:
    """Everything that is said about a run."""
    lines = [_circumstances(facts), "", *_verdict(measured)]
    for rows in measured.sizes:
        lines += ["", f"### {rows:,} rows", "", *_times(measured, rows), "", *_errors(measured, rows)]
        lines += ["", *_ready(measured, rows), *_reasons(measured, rows)]
    if any(figure.library == OURS for figure in measured.personal):
        lines += ["", "### What personalization adds", "", *_personal(measured)]
    return lines


def _circumstances(facts: Mapping[str, Any]) -> str:
    line = (
        f"Of {facts['date']}: epsilons {facts['epsilons']}, Python {facts['python']}, {facts['cores']} cores, "
        f"epsilon {facts['epsilon']:g} for each answer, {facts['seconds']:g} s for repeating each. "
        f"Load of the machine at the start {facts['load'][0]:.1f}, at the end {facts['load'][1]:.1f}."
    )
    # The load at the end is mostly the last library's own.
    if facts["load"][0] > 1.5 * facts["cores"]:
        line += " **The machine was busy with other work: the times and what is made of them are no verdict.**"
    return line


def _verdict(measured: Measured) -> list[str]:
    compared, short = measured.compared, measured.short
    if not compared:
        return ["Nothing to compare: that takes epsilons and a peer."]
    if not short:
        return [f"epsilons was at least {AIM} times as fast as every peer in all {len(compared)} comparisons."]
    head = f"epsilons was at least {AIM} times as fast in {len(compared) - len(short)} of {len(compared)} comparisons."
    slower = sum(ratio < 1 for _, ratio in short)
    lines = [
        f"{head} In {len(short)} it was not" + (f", and in {slower} of them it was slower:" if slower else ":"),
        "",
    ]
    return lines + [f"- {f.library}, {f.task}, {f.rows:,} rows: {ratio:.2g}×" for f, ratio in short]


def _times(measured: Measured, rows: int) -> list[str]:
    lines = [
        f"Time per answer: the best of the first {BEST_OF}. In parentheses: how many times the time of epsilons; bold "
        f"where that is below {AIM}.",
        "",
        *_head(),
    ]
    for library in measured.libraries:
        lines.append(_line(library, [_time(measured, measured.find(library, rows, task)) for task in TASKS]))
    return lines


def _errors(measured: Measured, rows: int) -> list[str]:
    lines = ["Root mean squared error. In parentheses: from how many answers.", "", *_head()]
    for library in measured.libraries:
        lines.append(_line(library, [_error(measured.find(library, rows, task)) for task in TASKS]))
    return lines


def _ready(measured: Measured, rows: int) -> list[str]:
    lines = [
        "Once for each process: until it can be asked (imports not counted), and the most memory it held.",
        "",
        "| library | version | ready in | memory |",
        "|---|---|---:|---:|",
    ]
    for found in (found for found in measured.ready if found.rows == rows):
        memory = "" if found.memory is None else f"{found.memory / 1e6:,.0f} MB"
        lines.append(f"| {found.library} | {found.version} | {_duration(found.seconds)} | {memory} |")
    return lines


def _reasons(measured: Measured, rows: int) -> list[str]:
    """Those that failed alike stand together."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for figure in measured.figures:
        if figure.rows == rows and figure.reason is not None:
            tasks.setdefault((figure.library, figure.reason), []).append(figure.task)
    lines = [f"- {library}, {', '.join(names)}: {_plain(reason)}" for (library, reason), names in tasks.items()]
    return ["", "No figure:", "", *lines] if lines else []


def _personal(measured: Measured) -> list[str]:
    ours = {(figure.rows, figure.task): figure for figure in measured.personal if figure.library == OURS}
    theirs = {(figure.rows, figure.task): figure for figure in measured.personal if figure.library != OURS}
    peer = next((figure.library for figure in theirs.values()), "a peer")
    levels = ", ".join(f"{share:.0%} at {level:g}" for level, share in LEVELS.items())
    lines = [
        f"Of the people {levels}. epsilons asks each for what they granted; {peer}, which knows one epsilon for all, "
        f"must keep to the strictest, {min(LEVELS):g}. Root mean squared error; in parentheses: from how many answers.",
        "",
        f"| rows | task | epsilons | {peer} | {peer} / epsilons | time of epsilons |",
        "|---:|---|---:|---:|---:|---:|",
    ]
    for (rows, task), figure in ours.items():
        other = theirs.get((rows, task))
        better = "" if other is None or not (other.error and figure.error) else f"{other.error / figure.error:.2g}×"
        cells = [task, _error(figure), _error(other), better, _duration(figure.seconds)]
        lines.append(_line(f"{rows:,}", cells))
    return lines


def _head() -> list[str]:
    return [_line("library", TASKS), "|---|" + "---:|" * len(TASKS)]


def _line(first: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([first, *cells])} |"


def _time(measured: Measured, figure: Figure | None) -> str:
    if figure is None or figure.seconds is None:
        return _missing(figure)
    ratio = measured.ratio(figure)
    if ratio is None:
        return _duration(figure.seconds)
    shown = f"({ratio:.3g}×)" if ratio < 1000 else f"({ratio:,.0f}×)"
    return f"{_duration(figure.seconds)} {f'**{shown}**' if ratio < AIM else shown}"


def _error(figure: Figure | None) -> str:
    return _missing(figure) if figure is None or figure.error is None else f"{figure.error:.3g} ({figure.answers})"


def _missing(figure: Figure | None) -> str:
    return "not asked" if figure is None else "none"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _plain(reason: str) -> str:
    """Text from elsewhere, which must not become markup."""
    return f"`{reason.replace('`', '').replace('|', '/')}`"

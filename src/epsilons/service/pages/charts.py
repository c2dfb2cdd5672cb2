"""Pictures by the library's own plots, each with the table behind it.

A picture is an SVG inside the page, which takes light or dark from the reader's system. Without matplotlib the table
stands alone.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from epsilons.accuracy.relation import holds
from epsilons.dataset.answers import as_table, interval_of
from epsilons.display import show, show_key
from epsilons.errors import PlanError
from epsilons.plots import draw_svg, new_axes, plot_answer, plot_change, plot_health
from epsilons.release.answer import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: As the page has its own ink: see page.css.
_INK = "<style>:root{color:#17202b}@media (prefers-color-scheme:dark){:root{color:#e8edf2}}</style>"
#: More keys, or moments, than these are in the table alone.
_MOST = 40
#: Inches, so that letters can be read on a phone.
_WIDE = 5.4
_MOMENTS = 200


@dataclass(frozen=True)
class Picture:
    """A picture, what it shows in words, and its table."""

    title: str
    alt: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    address: str = ""
    width: int = 0
    height: int = 0


def _draw(
    title: str, alt: str, head: Sequence[str], rows: Sequence[Sequence[str]], draw: Callable[[], "Axes"]
) -> Picture:
    sizes: list[Any] = []

    def note_size() -> "Axes":
        axes = draw()
        figure: Any = axes.figure
        sizes.extend(96 * side for side in figure.get_size_inches())
        return axes

    try:
        svg = draw_svg(note_size)
    except PlanError:  # no matplotlib
        return Picture(title, alt, head, rows)
    start = svg.index(">") + 1
    coloured = f"{svg[:start]}{_INK}{svg[start:]}"
    address = f"data:image/svg+xml;base64,{base64.b64encode(coloured.encode()).decode()}"
    return Picture(title, alt, head, rows, address, *map(round, sizes))


def draw_answer(release: Release) -> Picture | None:
    """An answer of numbers, by key; None where there is no number."""
    value, bars = release.value, interval_of(release)
    numbers = value if isinstance(value, dict) else {release.column or "answer": value}
    plain = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in numbers.values())
    if not numbers or not plain or release.chosen:
        return None
    shown = list(numbers.items())[:_MOST]
    spans = [bars.get(key) if isinstance(bars, dict) else bars for key, _ in shown]
    head, rows = as_table(release).table()
    first = "; ".join(f"{show_key(key)}: {show(one)}" for key, one in shown[:6])
    held = "" if bars is None else f"with 95% intervals, {holds(release.assumption)}"
    alt = f"{release.question}{', ' * bool(held)}{held}. {first}{'; and more' if len(numbers) > 6 else ''}."
    names, values = [show_key(key) for key, _ in shown], [float(one) for _, one in shown]
    label = f"{release.question if len(release.question) < 70 else release.statistic}\n{held}".strip()
    height = 0.4 * len(names) + (1.5 if held else 0.9)
    return _draw(
        "The answer",
        alt,
        head,
        rows,
        lambda: plot_answer(names, values, spans, release.mechanism, label, new_axes(_WIDE, height)),
    )


def draw_health(moments: Sequence[str], lines: Mapping[str, Sequence[float]]) -> Picture:
    """What people had spent of their grants when, by level."""
    last = {name: percent[-1] for name, percent in lines.items()}
    alt = "Spent of the grants over time. Now " + "; ".join(f"{name}: {show(one)}%" for name, one in last.items()) + "."
    cut = max(0, len(moments) - _MOMENTS)
    times = [datetime.fromisoformat(one) for one in moments[cut:]]
    shown = {name: percent[cut:] for name, percent in lines.items()}
    newest = sorted(range(cut, len(moments)), reverse=True)
    rows = [
        [moments[place][:16].replace("T", " "), *(_percent(one[place]) for one in lines.values())] for place in newest
    ]
    return _draw(
        "Spent over time", alt, ("after (UTC)", *lines), rows, lambda: plot_health(times, shown, new_axes(_WIDE, 3.2))
    )


def _percent(number: float) -> str:
    return "–" if number != number else f"{show(round(number, 2))}%"


def draw_change(rows: Sequence[tuple[str, float | None, float | None]], assumption: str) -> Picture | None:
    """Errors before and after people moved, by mechanism, expected under a condition; None where none is known."""
    known = [(name, one, other) for name, one, other in rows if one is not None and other is not None]
    if not known:
        return None
    names, before, after = zip(*known, strict=True)
    told = "; ".join(f"{name}: {show(one)} now, {show(other)} then" for name, one, other in known)
    cells = [[name, show(one), show(other), _change(one, other)] for name, one, other in rows]
    head = ("mechanism", "error now", "error then", "change")
    held = holds(assumption)
    alt = f"Predicted errors before and after the change, {held}. {told}."
    return _draw(
        "Errors before and after",
        alt,
        head,
        cells,
        lambda: plot_change(names, before, after, held, new_axes(_WIDE, 0.42 * len(names) + 1.5)),
    )


def _change(before: float | None, after: float | None) -> str:
    return "–" if not before or after is None else f"{100 * (after / before - 1):+.1f}%"

"""How every figure of the papers is drawn: one name, colour, dash and marker for each curve, everywhere."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilons.papers.figures import Figure, Panel, Paper, Table
from epsilons.plots import pick_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


@dataclass(frozen=True)
class Style:
    """A curve's name in legends, the mechanism whose colour it has, and what tells it apart without colour."""

    label: str
    mechanism: str
    dashes: Any = "-"
    marker: str = ""
    hatch: str = ""


_DOTS, _SHORT, _LONG = (0, (1, 1.2)), (0, (3, 1.5)), (0, (6, 1.5))
_MIXED_DASH = (0, (5, 1.5, 1, 1.5))

#: Colours are those of `plots`; of one mechanism's variants dashes and markers differ.
STYLES: dict[str, Style] = {
    "minimum": Style("M: minimum", "minimum", _MIXED_DASH, "v", "\\\\"),
    "threshold": Style("T: threshold at the largest epsilon", "threshold", _LONG, "s", "xx"),
    "sample": Style("S: sample at the largest epsilon", "sample", "-", "o", "//"),
    "sample-mean": Style("S-avg: sample at the mean epsilon", "sample", _SHORT, "D", "//"),
    "sample-given": Style("S: sample at the threshold above", "sample", _LONG, "p", "//"),
    "sample-best": Style("sample at the best threshold", "sample", _DOTS, "^", "//"),
    "stretching": Style("Alag.: stretching", "stretching", _DOTS, "P", ".."),
    "exponential": Style("PE: personalized exponential mechanism", "exponential", "-", "X", "++"),
    "mixed": Style("mixed", "mixed", "-", "h", "--"),
    "weighted": Style("weighted: one sum, one noise", "weighted", "-", "*", ""),
    "robust": Style("robust: assumes nothing", "robust", _LONG, "d", "||"),
    "smooth-sensitivity": Style("smooth sensitivity, tight scale", "smooth-sensitivity", _MIXED_DASH, "<", "oo"),
    "local-sensitivity": Style("iDP: local sensitivity", "local-sensitivity", _DOTS, ">", "**"),
    "local-cut": Style("iDP: local sensitivity, cut to the range", "local-sensitivity", "-", "^", "**"),
    "local-second": Style("iDP: second maximum, no domain", "local-sensitivity", _LONG, "v", "**"),
    "local-histogram": Style("iDP: each cell of a histogram", "local-sensitivity", _SHORT, "D", "**"),
    "smooth-paper": Style("DP: smooth sensitivity, the paper's scale", "smooth-sensitivity", _LONG, "s", "xx"),
    "smooth-paper-2": Style("the paper's smooth sensitivity, gamma 2 (else 3)", "smooth-sensitivity", _DOTS, "p", ".."),
    "smooth-paper-cut": Style("the paper's smooth sensitivity, cut to the range", "smooth-sensitivity", "-", "D", "++"),
    "smooth-paper-95": Style("the paper's smooth sensitivity, 95% of raw noise", "smooth-sensitivity", _DOTS, "P"),
    "smooth-paper-mean": Style("the paper's smooth sensitivity, mean of raw noise", "smooth-sensitivity", _LONG, "s"),
    "smooth-tight-2": Style("smooth sensitivity, tight scale, gamma 2", "smooth-sensitivity", _SHORT, "X", "--"),
    "smooth-second": Style("DP: smooth sensitivity of the second maximum", "smooth-sensitivity", _SHORT, "X"),
    "global": Style("DP: Laplace noise for the whole domain", "minimum", _MIXED_DASH, "h"),
    "sampling-privacy": Style("Sampling Privacy, sampling .45", "sampling-privacy", "-", "p", "//"),
    "randomized-response": Style("randomized response", "randomized-response", _LONG, "x", "xx"),
    "sampling-rarer": Style("Sampling Privacy, sampling .25", "sampling-privacy", _SHORT, "D", "\\\\"),
    "sampling-claim": Style("Sampling Privacy, Eq. 29: round two alone", "sampling-privacy", _DOTS, "^"),
    "sampling-deniability": Style("sampling and deniability (section 3.3)", "sampling-privacy", _LONG, "v"),
    "personal-response": Style("everyone's own randomized response", "randomized-response", "-", "+", "xx"),
    "response-claim": Style("randomized response, Eq. 30", "randomized-response", _DOTS, "P"),
    "aggregators": Style("three aggregators' own noise", "aggregators", _SHORT, "1", ".."),
    "both-rounds": Style("Sampling Privacy: one owner in both rounds", "sampling-privacy", "-", "h"),
    "second-round": Style("Sampling Privacy: one owner in round two", "sampling-privacy", _LONG, "^"),
    "counts-1": Style("Sampling Privacy: counts, 1 alike", "sampling-privacy", _SHORT, "v"),
    "counts-7": Style("Sampling Privacy: counts, 7 alike", "sampling-privacy", _DOTS, "D"),
    "counts-25": Style("Sampling Privacy: counts, 25 alike", "sampling-privacy", _MIXED_DASH, "<"),
    "counts-100": Style("Sampling Privacy: counts, 100 alike", "sampling-privacy", _DOTS, ">"),
    "truth": Style("truth", "bound", "-", "", ""),
    "printed": Style("as printed", "bound", _SHORT),
    "bound-local": Style("best coins at epsilon 3.04: no local yes or no errs less", "bound", _MIXED_DASH, "", "oo"),
    "best-100": Style("best threshold, n = 100", "sample", "-", "o"),
    "best-1000": Style("best threshold, n = 1,000", "sample", _LONG, "s"),
    "best-10000": Style("best threshold, n = 10,000", "sample", _DOTS, "^"),
    "auto": Style("auto: the library's choice at assume=0.3", "auto", _MIXED_DASH, "8"),
    "worst-case": Style("lower bound on the worst data", "bound", _DOTS),
    "not-private": Style("not private", "bound", _SHORT),
    "example-total": Style("S: sample, in all", "sample", "-", "o"),
    "example-coins": Style("S: what sampling loses", "sample", _SHORT, "D"),
    "example-noise": Style("S: the noise", "sample", _DOTS, "^"),
    "default": Style("default", "bound", "-", "o"),
    "tried": Style("values tried", "bound", _DOTS, "."),
    "bound": Style("lower bound for DP, here or near by", "bound", _DOTS),
    "floor": Style("sampling error alone: no answer errs less", "bound", _SHORT),
}
_GREY = "#555555"
#: On a logarithmic axis whose ends are less than so many times apart, these digits have a number: four or more have.
_BETWEEN: tuple[tuple[float, tuple[float, ...]], ...] = (
    (2, tuple(k / 10 for k in range(10, 100))),
    (4, (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)),
    (10, (1, 1.5, 2, 3, 4, 5, 7)),
    (200, (1, 2, 5)),
    (2_000, (1, 3)),
    (math.inf, (1,)),
)
#: A line of many points has about so many markers, and bars up to so many have their numbers above them.
_MARKERS, _NUMBERED = 12, 60


def color_of(curve: str) -> str:
    """The colour of a curve; bounds and truths are grey."""
    return _GREY if STYLES[curve].mechanism == "bound" else pick_color(STYLES[curve].mechanism)


def line_of(curve: str) -> dict[str, Any]:
    """A curve's line, as matplotlib takes it: hollow markers, and dashes above solid lines, so that both show."""
    style = STYLES[curve]
    marker = {"marker": style.marker or None, "markersize": 7, "markerfacecolor": "none", "markeredgewidth": 1.2}
    line = {"color": color_of(curve), "linestyle": style.dashes, "linewidth": 1.5, "label": style.label}
    return {**line, **marker, "zorder": 2 if style.dashes == "-" else 3}


def draw_figure(paper: Paper, figure: Figure, table: Table, file: Path, remark: str = "") -> None:
    """All panels with one legend below them, written to a file."""
    from matplotlib.figure import Figure as Picture

    columns = min(figure.columns, len(figure.panels))
    rows = math.ceil(len(figure.panels) / columns)
    curves = {curve for panel in figure.panels.values() for curve in panel.curves}
    across = min(3, 1 + columns)
    # In inches, by hand: to let matplotlib find the margins takes as long as everything else.
    wide = 8.0 if columns == 1 else 5.4 * columns
    title = textwrap.wrap(f"{paper.cite}{name_figure(figure)}: {figure.title}{remark}", round(10 * wide))
    above, below = 0.4 + 0.22 * len(title), 0.65 + 0.22 * math.ceil(len(curves) / across)
    high = above + 3.9 * rows + below - 0.65
    picture = Picture(figsize=(wide, high))
    grid = picture.subplots(rows, columns, squeeze=False).flatten()
    picture.subplots_adjust(0.85 / wide, below / high, 1 - 0.2 / wide, 1 - above / high, wspace=0.22, hspace=0.28)
    for axes, (letter, panel) in zip(grid, figure.panels.items(), strict=False):
        draw_panel(axes, panel, table, letter)
        axes.set_title(f"({letter}) {panel.title}" if letter else panel.title, fontsize=10)
    for axes in grid[len(figure.panels) :]:
        axes.set_axis_off()
    named = [axes.get_legend_handles_labels() for axes in grid]
    entries = {label: handle for handles, labels in named for handle, label in zip(handles, labels, strict=True)}
    if entries:
        handles, labels = list(entries.values()), list(entries)
        picture.legend(handles, labels, loc="lower center", ncols=across, frameon=False, fontsize=9)
    picture.suptitle("\n".join(title), fontsize=12, y=1 - 0.1 / high, va="top")
    picture.savefig(file, dpi=130)


def name_figure(figure: Figure) -> str:
    """As a reader of the paper would call it: ", Figure 1a", ", Table 1"; nothing, of a figure that only we have."""
    kind, _, number = figure.number.rpartition("-")
    return f", {kind.capitalize() or 'Figure'} {number}" if number[:1].isdigit() else ""


def draw_panel(axes: Axes, panel: Panel, table: Table, letter: str) -> None:
    """Lines with two standard errors, or bars where x are names."""
    names = list(dict.fromkeys(row.x for row in table.rows[letter] if isinstance(row.x, str)))
    if panel.draw is not None:
        panel.draw(axes, table)
    elif names:
        _draw_bars(axes, panel, table, letter, names)
    else:
        for curve in panel.curves:
            found = table.curve(letter, curve)
            bars: dict[str, Any] = {"yerr": 2 * found.errors, "capsize": 2} if found.errors.any() else {}
            marked = max(1, len(found.x) // _MARKERS)
            axes.errorbar(np.asarray(found.x, float), found.values, markevery=marked, **bars, **line_of(curve))
    axes.set(xlabel=panel.x.label, ylabel=panel.y.label)
    if panel.x.log and not names:
        axes.set_xscale("log")
        _name_ticks(axes.xaxis)
    if panel.y.least:
        # From there down to 0 the axis is as long as a power of ten.
        axes.set_yscale("symlog", linthresh=panel.y.least)
        axes.set_ylim(-0.3 * panel.y.least, 1.0)
        axes.yaxis.set_major_formatter(lambda number, _: f"{number:g}")
    elif panel.y.log:
        axes.set_yscale("log")
        _name_ticks(axes.yaxis)
    axes.grid(alpha=0.3, which="major")


def _name_ticks(axis: Axis) -> None:
    """Plain numbers on a logarithmic axis, the more between powers of ten the shorter it is."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    span = high / low
    between = next(digits for most, digits in _BETWEEN if span < most)
    axis.set_major_locator(LogLocator(subs=between, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.10g}"))
    axis.set_minor_locator(NullLocator())


def _draw_bars(axes: Axes, panel: Panel, table: Table, letter: str, names: Sequence[str]) -> None:
    wide = 0.84 / len(panel.curves)
    for place, curve in enumerate(panel.curves):
        found = table.curve(letter, curve)
        at = np.array([names.index(str(x)) for x in found.x]) - 0.42 + wide * (place + 0.5)
        style: Mapping[str, Any] = {"color": color_of(curve), "hatch": STYLES[curve].hatch, "edgecolor": "white"}
        bars: dict[str, Any] = {"yerr": 2 * found.errors} if found.errors.any() else {}
        drawn = axes.bar(at, found.values, wide, label=STYLES[curve].label, linewidth=0.4, **bars, **style)
        if len(names) * len(panel.curves) <= _NUMBERED:
            axes.bar_label(
                drawn, fmt=lambda number: f"{number:,.4g}" if number < 1000 else f"{number:,.0f}", fontsize=6
            )
    axes.set_xticks(range(len(names)), names)

"""Pictures, and the colour of each mechanism in all of them; only the demo and papers import matplotlib besides."""

from __future__ import annotations

import colorsys
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PlanError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from epsilons.ledger import Cohort, Past

Floats = NDArray[np.float64]
Outline = Sequence[tuple[float, float]]

#: Chosen to be told apart with each kind of colour blindness (Machado, Oliveira and Fernandes 2009) and against each
#: other's lightness, on white and on a dark page. Lines have dashes as well: so many hues are never enough.
_LINES: dict[str, tuple[str, Any]] = {
    "weighted": ("#e07b28", "-"),
    "sample": ("#0f7bc4", "-"),
    "threshold": ("#5d8708", "--"),
    "minimum": ("#b63a6b", "-."),
    "mixed": ("#e480d0", "-"),
    "robust": ("#9d62fe", "--"),
    "stretching": ("#e8210d", ":"),
    "exponential": ("#7312fc", "-"),
    "smooth-sensitivity": ("#05a9e8", "-."),
    "local-sensitivity": ("#72588d", ":"),
    "sampling-privacy": ("#1f8a9e", "-"),
    "randomized-response": ("#ae6d6d", "-"),
}


def pick_color(mechanism: str) -> str:
    """The colour of a mechanism or protocol in every picture; of a user's own, a hue made from its name.

    >>> pick_color("weighted"), pick_color("my-own") == pick_color("my-own")
    ('#e07b28', True)
    """
    if mechanism in _LINES:
        return _LINES[mechanism][0]
    channels = colorsys.hls_to_rgb(crc32(mechanism.encode()) / 2**32, 0.48, 0.45)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in channels)


def pick_line(mechanism: str) -> dict[str, Any]:
    """Colour and dashes, as matplotlib takes them."""
    _, dashes = _LINES.get(mechanism, ("", (0, (3, 1, 1, 1, 1, 1))))
    return {"color": pick_color(mechanism), "linestyle": dashes}


#: Drawn in this colour, text and lines of an SVG take the colour of whatever it stands in, dark or light.
INK = "#010203"
_STYLE: dict[Any, Any] = {
    **{f"{part}color": INK for part in ("axes.edge", "axes.label", "text.", "xtick.", "ytick.", "grid.")},
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "svg.fonttype": "path",
    "svg.hashsalt": "epsilons",
    "font.family": "sans-serif",
    "font.size": 12.0,
    "grid.alpha": 0.15,
}
#: Styles and fonts of matplotlib are shared by all threads.
_drawing = threading.Lock()


def draw_svg(draw: Callable[[], Axes]) -> str:
    """What is drawn, as SVG on nothing, whose `INK` is the colour of what it stands in; no other style is touched."""
    new_axes()  # or the hint what to install
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with _drawing, rc_context(_STYLE), StringIO() as file:
        figure = draw().figure
        assert isinstance(figure, Figure)
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
        svg = file.getvalue()
    return svg[svg.index("<svg") :].replace(INK, "currentColor")


def new_axes(width: float = 8.0, height: float = 4.8) -> Axes:
    """Empty axes on a figure of their own."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PlanError("Pictures need matplotlib.", suggest="pip install 'epsilons[plots]'") from None
    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def plot_plan(
    title: str, shares: Sequence[float], curves: Mapping[str, Sequence[float]], best: str, axes: Axes | None = None
) -> Axes:
    """Predicted error against the share of each person's budget, one curve per mechanism, the best one thick."""
    axes = new_axes() if axes is None else axes
    for name, errors in sorted(curves.items()):
        finite = [(s, e) for s, e in zip(shares, errors, strict=True) if math.isfinite(e) and e > 0]
        if finite:
            label, width = (f"{name} (best)", 3.0) if name == best else (name, 1.6)
            axes.plot(*zip(*finite, strict=True), **pick_line(name), label=label, linewidth=width)
    axes.set(yscale="log", ylabel="predicted error (RMSE)", xlabel="share of each person's budget that is spent")
    axes.set_title(f"What an answer costs: {title}", wrap=True)  # a condition may be longer than the picture is wide
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False)
    return axes


def plot_law(outcomes: Sequence[Any], chances: Sequence[float] | Any, axes: Axes | None = None) -> Axes:
    """Chances by outcome: numbers along a line, all else by name, the likeliest first."""
    axes = new_axes() if axes is None else axes
    numbers = all(isinstance(outcome, int | float) for outcome in outcomes)
    pairs = sorted(zip(outcomes, chances, strict=True), key=lambda pair: pair[0] if numbers else -pair[1])[:200]
    shown = [outcome if numbers else str(outcome) for outcome, _ in pairs]
    axes.vlines(shown, 0, [chance for _, chance in pairs], color="tab:blue", linewidth=2)
    axes.set(xlabel="answer", ylabel="chance", ylim=(0, None))
    return axes


def plot_audit(labels: Sequence[str], parts: Sequence[float], bounds: Sequence[bool], axes: Axes | None = None) -> Axes:
    """Losses that an audit found, as parts of what is charged; lower bounds are open marks, what is refuted is red."""
    axes = new_axes(8.0, 1.2 + 0.28 * len(labels)) if axes is None else axes
    most = max([1.0, *(part for part in parts if math.isfinite(part))])
    for place, (part, bound) in enumerate(zip(parts, bounds, strict=True)):
        color, end = "tab:red" if part > 1 else "tab:blue", min(part, 1.1 * most)
        axes.plot([0, end], [place, place], color=color, linewidth=1.2)
        axes.plot([end], [place], marker="o", color=color, fillstyle="none" if bound else "full", linestyle="")
    axes.axvline(1.0, color="grey", linestyle="--", linewidth=1)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set(xlabel="largest loss found, as a part of what is charged", xlim=(0, 1.15 * most))
    return axes


def plot_spending(history: Sequence[Past], cohorts: Sequence[Cohort] = (), axes: Axes | None = None) -> Axes:
    """Draw how much of each grant the releases took, one after the other: a line of steps per level.

    `ledger.cohorts()` adds what people had spent before they came to a level; without them every level starts at
    nothing. At a level whose people have different pasts the line shows those who paid most. Refunds are not counted.
    """
    axes = new_axes() if axes is None else axes
    counted = [past for past in history if past.state != "refunded"]
    levels = sorted({granted for past in counted for granted in past.charges})
    numbers = [0, *(past.number for past in counted)]
    lines = list_spent(counted, cohorts)
    for place, granted in enumerate(levels):
        shown = [100 * min(nano, granted) / granted for nano in lines[granted]]
        # Levels often spend in step; lines of falling width stay visible under each other.
        width = 1.5 + 3 * (len(levels) - 1 - place) / max(1, len(levels) - 1)
        label = f"epsilon {counted[0].measure.grant(granted):g}"
        axes.step(numbers, shown, where="post", label=label, linewidth=width)
    marked = next((past.not_dp_since for past in counted if past.not_dp_since is not None), None)
    if marked is not None:
        axes.axvline(marked, color="black", linestyle=":", label=f"not DP since release {marked}")
    axes.set(xlim=(0, max(numbers) + 1), xlabel="release", ylim=(0, 105), ylabel="spent of the grant, in percent")
    axes.set_title("Spending at each level")
    axes.locator_params(axis="x", integer=True)
    axes.grid(alpha=0.3)
    if levels:
        axes.legend(frameon=False)
    return axes


def list_spent(counted: Sequence[Past], cohorts: Sequence[Cohort]) -> dict[int, list[float]]:
    """{grant: what those who paid most had spent, before the first release and after each}; NaN: no people yet.

    A cohort that nobody is in any more, as `cohorts` tell, counts until it last paid: its people went to another one,
    where a period has begun to one in which nothing is spent.
    """
    grants = {which: granted for past in counted for which, granted in past.grants.items()}
    total = dict.fromkeys(grants, 0)
    for cohort in (one for one in cohorts if one.id in grants):
        paid = sum(past.cohorts.get(cohort.id, 0) for past in counted)
        total[cohort.id] = cohort.spent + cohort.reserved - paid
    there = {which for which, before in total.items() if not before}
    lines: dict[int, list[float]] = {granted: [] for granted in grants.values()}
    stay = {one.id for one in cohorts} or {*grants}
    last = {which: place for place, past in enumerate(counted, 1) for which in past.cohorts if which not in stay}
    for place, charges in enumerate(({}, *(past.cohorts for past in counted))):
        there = {which for which in {*there, *charges} if last.get(which, place) >= place}
        for which, nano in charges.items():
            total[which] += nano
        for granted, line in lines.items():
            most = max((total[which] for which in there if grants[which] == granted), default=math.nan)
            line.append(line[-1] if line and math.isnan(most) else most)
    return lines


def plot_health(times: Sequence[Any], lines: Mapping[str, Sequence[float]], axes: Axes | None = None) -> Axes:
    """Draw how much of their grants people had spent at which dates: a line of steps per level, in percent."""
    axes = new_axes(8, 3.6) if axes is None else axes
    from matplotlib import dates

    for place, (name, percent) in enumerate(lines.items()):
        # Levels often spend in step; lines of falling width stay visible under each other.
        width = 1.8 + 3 * (len(lines) - 1 - place) / max(1, len(lines) - 1)
        color = list(_LINES.values())[place % len(_LINES)][0]
        axes.step(times, percent, where="post", label=name, linewidth=width, color=color)
    ticks: Any = dates  # untyped
    # With as few as two ticks there is a unit for every span; with more there are some between two units.
    locator = ticks.AutoDateLocator(minticks=2, maxticks=6)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ticks.ConciseDateFormatter(locator))
    axes.set(ylim=(0, 105), ylabel="spent of the grant, in percent", xlabel="time (UTC)")
    axes.grid()
    axes.legend(loc="upper left")
    return axes


def plot_answer(
    names: Sequence[str], values: Sequence[float], intervals: Sequence[tuple[float, float] | None], mechanism: str,
    label: str, axes: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw an answer: a point for each key, with its interval where there is one."""
    axes = new_axes(8, 0.42 * len(names) + 1.1) if axes is None else axes
    color = pick_color(mechanism)
    for place, (value, interval) in enumerate(zip(values, intervals, strict=True)):
        if interval is not None:
            axes.plot(interval, (place, place), color=color, linewidth=5, alpha=0.55, solid_capstyle="round")
        axes.plot(value, place, "o", color=color, markersize=9)
    axes.set_yticks(range(len(names)), names)
    axes.set(ylim=(len(names) - 0.5, -0.5))
    axes.set_xlabel(label, wrap=True)
    axes.margins(x=0.08)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_formatter("{x:,.6g}")
    axes.grid(axis="x")
    return axes


def plot_change(
    names: Sequence[str], before: Sequence[float], after: Sequence[float], held: str, axes: Axes | None = None
) -> Axes:
    """Draw errors before and after a change, mechanism by mechanism; `held` says when they are expected."""
    axes = new_axes(8, 0.5 * len(names) + 1.5) if axes is None else axes
    for place, (name, one, other) in enumerate(zip(names, before, after, strict=True)):
        axes.plot((one, other), (place, place), color=pick_color(name), linewidth=2.5, alpha=0.55)
        axes.plot(one, place, "o", color=pick_color(name), markersize=9, fillstyle="none", markeredgewidth=2)
        axes.plot(other, place, "o", color=pick_color(name), markersize=9)
    axes.set_yticks(range(len(names)), names)
    axes.set(ylim=(len(names) - 0.5, -0.5), xscale="log")
    axes.set_xlabel(f"predicted error: ring now, dot after the change\n{held}", wrap=True)
    from matplotlib.ticker import LogLocator, NullLocator

    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))  # errors of one question are seldom far apart
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.margins(x=0.1)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    return axes


def plot_leakage(
    epsilons: Floats, curves: Mapping[str, Floats], claims: Sequence[float], axes: Axes | None = None
) -> Axes:
    """Delta against epsilon, one curve per view, and the paper's claim as an upright line."""
    axes = new_axes() if axes is None else axes
    for place, (view, deltas) in enumerate(curves.items()):
        dashes = "--" if place % 2 == 0 and place else "-"  # curves may coincide; dashes show the one below
        axes.plot(epsilons, np.where(deltas > 0, deltas, math.nan), linewidth=2, linestyle=dashes, label=view)
    for claim in claims:
        axes.axvline(claim, color="black", linestyle=":", label=f"the paper's claim: epsilon {claim:.3g}, delta 0")
    axes.set(yscale="log", xlabel="epsilon", ylabel="delta: how likely more than epsilon is lost")
    axes.set_ylim(bottom=max(1e-18, axes.get_ylim()[0]), top=1.5)
    axes.set_title("What each view gives away")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    return axes


def plot_map(
    outlines: Sequence[Outline], values: Sequence[float] | Floats, unit: str, title: str = "", axes: Axes | None = None
) -> Axes:
    """Cells of a map, given by their corners as (latitude, longitude), coloured by their values."""
    axes = new_axes(7.0, 6.0) if axes is None else axes
    from matplotlib.collections import PolyCollection

    corners = [[(longitude, latitude) for latitude, longitude in outline] for outline in outlines]
    cells = PolyCollection(corners, array=np.asarray(values), cmap="viridis", edgecolor="face", linewidth=0.2)
    axes.add_collection(cells)
    axes.autoscale_view()
    middle = sum(latitude for outline in outlines for latitude, _ in outline) / sum(map(len, outlines))
    # A degree of longitude is shorter than one of latitude, the more so the further from the equator.
    axes.set_aspect(1 / max(0.05, math.cos(math.radians(middle))))
    axes.ticklabel_format(useOffset=False)
    axes.locator_params(axis="x", nbins=5)
    axes.set(xlabel="longitude", ylabel="latitude", title=title)
    if (figure := axes.get_figure()) is not None:
        figure.colorbar(cells, ax=axes, label=unit)
    return axes

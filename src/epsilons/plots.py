"""Pictures. The only room, with the demo and the papers' figures, that imports matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from epsilons.errors import PlanError
from epsilons.guarantee import to_epsilon

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from epsilons.ledger import Cohort, Past


def new_axes(width: float = 8.0, height: float = 4.8) -> Axes:
    """Empty axes on a figure of their own."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PlanError("Pictures need matplotlib.", hint="pip install 'epsilons[plots]'") from None
    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def plot_plan(
    title: str, shares: Sequence[float], curves: Mapping[str, Sequence[float]], best: str, axes: Axes | None = None
) -> Axes:
    """Predicted error against the share of everybody's budget, one curve per mechanism, the best one thick."""
    axes = new_axes() if axes is None else axes
    for name, errors in sorted(curves.items()):
        finite = [(s, e) for s, e in zip(shares, errors, strict=True) if math.isfinite(e) and e > 0]
        if finite:
            x, y = zip(*finite, strict=True)
            chosen = name == best
            axes.plot(x, y, label=f"{name} (best)" if chosen else name, linewidth=3 if chosen else 1.3)
    axes.set_yscale("log")
    axes.set_xlabel("share of everybody's budget that is spent")
    axes.set_ylabel("predicted error (RMSE)")
    axes.set_title(f"What an answer costs: {title}")
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False)
    return axes


def plot_spending(history: Sequence[Past], cohorts: Sequence[Cohort] = (), axes: Axes | None = None) -> Axes:
    """How much of each grant the releases took, one after the other: a line of steps per level.

    `ledger.cohorts()` adds what people had spent before they came to a level; without them every level starts at
    nothing. At a level whose people have different pasts the line shows those who paid most. What was given back is
    not counted.
    """
    axes = new_axes() if axes is None else axes
    counted = [past for past in history if past.state != "refunded"]
    levels = sorted({granted for past in counted for granted in past.charges})
    numbers = [0, *(past.number for past in counted)]
    lines = _spent(counted, {cohort.id: cohort for cohort in cohorts})
    for place, granted in enumerate(levels):
        shown = [100 * min(nano, granted) / granted for nano in lines[granted]]
        # Levels often spend in step; lines of falling width stay visible under each other.
        width = 1.5 + 3 * (len(levels) - 1 - place) / max(1, len(levels) - 1)
        axes.step(numbers, shown, where="post", label=f"epsilon {to_epsilon(granted):g}", linewidth=width)
    marked = next((past.not_dp_since for past in counted if past.not_dp_since is not None), None)
    if marked is not None:
        axes.axvline(marked, color="black", linestyle=":", label=f"not DP since release {marked}")
    axes.set_ylim(0, 105)
    axes.set_xlim(0, max(numbers) + 1)
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("release")
    axes.set_ylabel("spent of the grant, in percent")
    axes.set_title("Spending at each level")
    axes.grid(alpha=0.3)
    if levels:
        axes.legend(frameon=False)
    return axes


def _spent(counted: Sequence[Past], cohorts: Mapping[int, Cohort]) -> dict[int, list[float]]:
    """{grant: what those who paid most had spent, before the first release and after each}; NaN: nobody was there."""
    grants = {which: granted for past in counted for which, granted in past.grants.items()}
    paid = {which: sum(past.cohorts.get(which, 0) for past in counted) for which in grants}
    total = {
        which: cohorts[which].spent + cohorts[which].reserved - nano if which in cohorts else 0
        for which, nano in paid.items()
    }
    there = {which for which, before in total.items() if not before}
    lines: dict[int, list[float]] = {granted: [] for granted in grants.values()}
    for charges in ({}, *(past.cohorts for past in counted)):
        there |= charges.keys()
        for which, nano in charges.items():
            total[which] += nano
        for granted, line in lines.items():
            line.append(max((total[which] for which in there if grants[which] == granted), default=math.nan))
    return lines

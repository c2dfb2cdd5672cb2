"""Pictures. The only room, with the demo and the papers' figures, that imports matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from epsilons.errors import PlanError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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

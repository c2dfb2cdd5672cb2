"""Pictures of the pages, drawn by the library itself: plans, charges, odds, audits."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path

import numpy as np

import epsilons as eps
from epsilons.plots import new_axes, pick_color
from epsilons.preferences.odds import OF, count_right

#: The people of all pictures: strict, standard, open.
EPSILONS = [0.05] * 400 + [0.2] * 400 + [1.0] * 200
#: Inches, and letters in a line of a title.
_WIDE, _LINE = 4.6, 52
#: A picture with more lines than so many has their names below it, and is so tall, in inches.
_MOST, _TALL = 4, 3.7


def draw_all(folder: Path) -> None:
    """Draw every picture into a folder."""
    _draw_plan(folder / "picture-plan.svg")
    _draw_odds(folder / "picture-odds.svg")
    _draw_weights(folder / "picture-weights.svg")
    save(eps.audit("mean", [0.5, 1.0, 2.0], bounds=(0, 10)).plot(), folder / "picture-audit.svg")


def save(axes: object, path: Path) -> None:
    """Write a drawing to a file, white behind it on dark pages as well, its text large enough for a phone."""
    figure = axes.figure  # type: ignore[attr-defined]
    figure.set_facecolor("white")
    figure.set_size_inches(_WIDE, figure.get_figheight() * _WIDE / figure.get_figwidth())
    if len(axes.get_legend_handles_labels()[1]) > _MOST:  # type: ignore[attr-defined]
        figure.set_size_inches(_WIDE, _TALL)
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.18), "ncols": 3, "frameon": False}
        axes.legend(**below, fontsize="small")  # type: ignore[attr-defined]
    lines = axes.get_title().split("\n")  # type: ignore[attr-defined]
    axes.set_title("\n".join(textwrap.fill(one, _LINE) for one in lines), fontsize="medium")  # type: ignore[attr-defined]
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def _draw_plan(path: Path) -> None:
    """Error against the share that is spent, for every mechanism: what `plan.plot()` draws."""
    axes = eps.plan("mean", EPSILONS, bounds=(0, 100), spread=20, complete=True).plot()
    axes.set_yticks([2, 5, 10, 20], ["2", "5", "10", "20"])
    axes.set_yticks([], minor=True)
    save(axes, path)


def _draw_odds(path: Path) -> None:
    """Of 100 guesses, how many are right at most, by epsilon."""
    axes = new_axes()
    grid = np.geomspace(0.01, 10, 200)
    axes.plot(grid, OF / (1 + np.exp(-grid)))
    for epsilon in (0.05, 0.2, 1.0, 3.0):
        right = OF / (1 + math.exp(-epsilon))
        axes.plot([epsilon], [right], "o", color="black")
        axes.annotate(f"{epsilon:g}: {count_right(epsilon)}", (epsilon, right), (4, -14), textcoords="offset points")
    axes.axhline(OF / 2, linestyle=":", color="grey")
    axes.set(xscale="log", ylim=(45, 102), xlabel="epsilon", ylabel="right guesses of 100, at most")
    axes.set_title("Whether a person took part: what a guess can gain")
    save(axes, path)


def _draw_weights(path: Path) -> None:
    """What four mechanisms charge people of three levels for the same mean."""
    axes = new_axes()
    names, levels = ("minimum", "threshold", "sample", "weighted"), (0.05, 0.2, 1.0)
    values = np.arange(len(EPSILONS)) % 101
    for place, name in enumerate(names):
        limit = {"threshold": 0.2} if name == "threshold" else {}
        answer = eps.mean(values, EPSILONS, bounds=(0, 100), spread=50, assume="unrelated", mechanism=name, **limit)
        charged = [answer.charges[one] for one in levels]
        axes.bar([p + place * 0.2 for p in range(3)], charged, 0.18, label=name, color=pick_color(name))
    axes.set(xticks=[0.3, 1.3, 2.3], xticklabels=[f"granted {one:g}" for one in levels], ylabel="charged")
    axes.set_title("What one mean costs whom")
    axes.legend()
    save(axes, path)

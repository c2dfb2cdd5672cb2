"""What is sharper at the same guarantee: models with a public number of people, and noise by the joint loss.

    python benchmarks/sharper.py            print the tables
    python benchmarks/sharper.py --write    and put them into docs/models.md and docs/mechanisms.md

Nothing is measured: every number follows from the reach or the calibration that answers are drawn with.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from page import write_between
from scipy.special import betaincinv

from epsilons.guarantee import NANO
from epsilons.mechanisms.smooth_sensitivity import calibrate
from epsilons.statistics.logistic import LogisticRegression
from epsilons.statistics.regression import LinearRegression, Regression

DOCS = Path(__file__).parents[1] / "docs"
START, END = "<!-- gains: written by `python benchmarks/sharper.py --write` -->", "<!-- end of gains -->"


def _model(kind: type[Regression], features: int) -> Regression:
    names = tuple(f"x{place}" for place in range(features))
    target = ((-1.0, 1.0),) if kind is LinearRegression else ()
    return kind(names, ((-1.0, 1.0),) * features, *target)


def model_gains() -> str:
    """The reach of one person, in units of a whole entry, and how much less noise that is."""
    lines = ["| features | model | number private | number public | noise |", "|--:|---|--:|--:|--:|"]
    for features in (1, 2, 4, 12):
        for kind in (LinearRegression, LogisticRegression):
            private = _model(kind, features)
            reaches = [one.parts[0].reach["absent"] / 2**32 for one in (private, replace(private, complete=True))]
            shown = " | ".join(f"{reach:g}" for reach in reaches)
            name = private.name.partition("_")[0]
            lines.append(f"| {features} | {name} | {shown} | −{1 - reaches[1] / reaches[0]:.1%} |")
    return "\n".join(lines)


def _within(gamma: int, chance: float = 0.95) -> float:
    share = betaincinv(1 / gamma, 1 - 1 / gamma, chance)
    return float((share / (1 - share)) ** (1 / gamma))


def smooth_gains() -> str:
    """At epsilon 1: 95% of the noise in S, and in S of gamma 2 where S is proportional to 1/beta."""
    head = ("γ", "paper", "summed", "tight", "summed, in S of γ = 2", "tight, in S of γ = 2")
    lines = ["| " + " | ".join(head) + " |", "|:-:|--:|--:|--:|--:|--:|"]
    for gamma in (2, 3, 4, 5):
        paper, tight = (calibrate(scale, gamma, NANO) for scale in ("paper", "tight"))
        half = Fraction(1, 2 * (gamma - 1))
        summed = 0.5 / (gamma - 1) ** ((gamma - 1) / gamma)
        cells = [_within(gamma) / float(alpha) for alpha in (paper.alpha, summed, tight.alpha)]
        cells += [cells[1] * float(Fraction(1, 2) / half), cells[2] * float(Fraction(1, 2) / tight.beta)]
        name = f"{gamma} (default)" if gamma == 3 else f"{gamma}"
        lines.append(f"| {name} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
    return "\n".join(lines)


TABLES = {"models.md": model_gains, "mechanisms.md": smooth_gains}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into the documentation")
    options = parser.parse_args(arguments)
    for page, table in TABLES.items():
        print(table(), end="\n\n")
        if options.write:
            write_between(DOCS / page, (START, END), [table()])
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What an observer who sees part of a collection learns about one owner: epsilon, and where that is infinite, delta.

An observer's view is a pair of laws: of what they see if the owner's answer is the one, and if it is the other. The
loss holds with (epsilon, delta) if, for both orders of the pair, sum(max(0, P - e^epsilon Q)) <= delta (the hockey-
stick divergence, which is the smallest such delta: Balle, Barthe, Gaboardi 2018, "Privacy Amplification by
Subsampling", section 2). Pure epsilon is the case delta = 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epsilons.accuracy.intervals import bisect
from epsilons.arguments.checks import check_between
from epsilons.display import Sheet, Shown
from epsilons.errors import Argument, PlanError
from epsilons.plots import plot_leakage

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SECOND_ROUND = "second-round"
BOTH_ROUNDS = "both-rounds"
COUNTS = "counts"

Floats = NDArray[np.float64]
Pair = tuple[Floats, Floats]

_LARGEST_EPSILON = 700.0


@dataclass(frozen=True)
class Leakage(Shown):
    """What one view gives away, beside what the paper says.

    `epsilon` and `delta` belong together: the loss is at most epsilon but for probability delta. `pure` is the smallest
    epsilon with delta = 0, infinite where there is none. `claim` is the paper's epsilon, None where it makes no claim.
    `exact` is False where only an upper bound is known.
    """

    view: str
    sees: str
    pure: float
    pairs: Sequence[Pair] = field(repr=False, compare=False)
    epsilon: float
    delta: float = field(init=False)
    claim: float | None = None
    neighbors: str = "replace"
    exact: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", self.delta_at(self.epsilon))

    def delta_at(self, epsilon: float) -> float:
        """The smallest delta with which an epsilon holds."""
        asked = check_epsilon(epsilon)
        return 0.0 if asked >= self.pure and math.isfinite(self.pure) else smallest_delta(self.pairs, asked)

    def epsilon_at(self, delta: float) -> float:
        """The smallest epsilon that holds but for probability delta; infinite where there is none."""
        refusal = PlanError("This delta is not usable.", rule="From 0 to 1.", suggest=Argument("delta", 1e-6))
        check_between(delta, 0, 1, refusal, ends=True)
        if self.delta_at(0.0) <= delta:
            return 0.0
        high = min(self.pure, _LARGEST_EPSILON)
        if self.delta_at(high) > delta:
            return math.inf
        return bisect(high, 0.0, lambda epsilon: self.delta_at(epsilon) <= delta, 100)[0]

    def curve(self, epsilons: Sequence[float] | Floats) -> Floats:
        return np.array([self.delta_at(float(epsilon)) for epsilon in epsilons])

    def plot(self, axes: Axes | None = None) -> Axes:
        return draw_leakages([self], axes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON; an infinite epsilon is null."""
        numbers = {"paper_claims_epsilon": self.claim, "true_epsilon": self.pure, "epsilon": self.epsilon}
        finite = {name: None if n is None or math.isinf(n) else n for name, n in numbers.items()}
        rest = {"delta": self.delta, "neighbors": self.neighbors, "exact": self.exact}
        return {"view": self.view, "sees": self.sees, **finite, **rest}

    def sheets(self) -> list[Sheet]:
        return [leakage_sheet([self])]


def draw_leakages(leakages: Sequence[Leakage], axes: Axes | None = None) -> Axes:
    """Delta against epsilon, a curve for each view, and the paper's claim."""
    largest = max([4.0, *(2 * one.pure for one in leakages if math.isfinite(one.pure))])
    epsilons = np.linspace(0, largest, 201)
    curves = {one.sees + ("" if one.exact else " (upper bound)"): one.curve(epsilons) for one in leakages}
    claims = sorted({one.claim for one in leakages if one.claim is not None and math.isfinite(one.claim)})
    return plot_leakage(epsilons, curves, claims, axes)


_HEAD = ("who sees what", "the paper's claim", "true epsilon", "delta at epsilon", "")


def leakage_sheet(leakages: Sequence[Leakage], title: str = "") -> Sheet:
    """The paper's claim and the truth side by side, a row per view."""
    rows: list[tuple[str, ...]] = []
    for one in leakages:
        delta = show_delta(one) if math.isinf(one.epsilon) else f"{show_delta(one)} at {one.epsilon:.4g}"
        exact = "" if one.exact else "upper bound"
        rows.append((one.sees, show_epsilon(one.claim), show_epsilon(one.pure), delta, exact))
    note = "Infinite: some outcome gives an answer away for certain; delta bounds how likely that is."
    return Sheet(title, _HEAD, rows, [note] if any(math.isinf(one.pure) for one in leakages) else [])


def show_epsilon(epsilon: float | None) -> str:
    """Four digits, or a word."""
    if epsilon is None:
        return "none"
    return "infinite" if math.isinf(epsilon) else f"{epsilon:.4g}"


def show_delta(one: Leakage) -> str:
    """Three digits; a delta too small for a double is not 0."""
    return "<1e-300" if one.delta == 0 and math.isinf(one.pure) else f"{one.delta:.3g}"


def smallest_delta(pairs: Sequence[Pair], epsilon: float) -> float:
    """max over the pairs and both orders of sum(max(0, P - e^epsilon Q))."""
    worst = 0.0
    for p, q in (order for one, two in pairs for order in ((one, two), (two, one))):
        over = np.where(q > 0, 0.0, p) if epsilon > _LARGEST_EPSILON else np.maximum(0.0, p - math.exp(epsilon) * q)
        worst = max(worst, math.fsum(over))
    return min(1.0, worst)


def check_epsilon(epsilon: float) -> float:
    """An epsilon at which a delta is asked for: a number that is not negative; infinity asks for certainties."""
    refusal = PlanError("This epsilon is not usable.", rule="A number from 0 on.", suggest=Argument("epsilon", 1))
    return check_between(epsilon, 0, math.inf, refusal, ends=True)


def log_loss(signal: Fraction, noise: Fraction) -> float:
    """ln(1 + signal/noise), the loss of an output that the truth adds `signal` to; infinite without noise."""
    return math.inf if noise == 0 else math.log1p(signal / noise)

"""What the claims of Jorgensen et al. 2015 ask of curves: who is below whom, from where on, by how much."""

from __future__ import annotations

import math

import numpy as np

from epsilons.papers.claims import Finding, Verdict
from epsilons.papers.figures import Curve, Floats, Table


def some(curve: Curve, low: float = -math.inf, high: float = math.inf) -> Curve:
    """The part of a curve from one place to another."""
    kept = np.array([low <= float(x) <= high for x in curve.x])
    x = [x for x, keep in zip(curve.x, kept, strict=True) if keep]
    return Curve(x, curve.values[kept], curve.errors[kept])


def divide(table: Table, panel: str, one: str, other: str) -> Floats:
    """One curve in units of another."""
    ratios: Floats = table.curve(panel, one).values / table.curve(panel, other).values
    return ratios


def best_of(table: Table, panel: str, names: tuple[str, ...], but: str = "") -> Curve:
    """At every place the least error of some curves."""
    curves = [table.curve(panel, name) for name in names if name != but]
    places, least = np.arange(len(curves[0].x)), np.argmin([found.values for found in curves], axis=0)
    values, errors = (np.array([getattr(c, name) for c in curves])[least, places] for name in ("values", "errors"))
    return Curve(curves[0].x, values, errors)


def crossing(falling: Curve, other: Curve) -> float:
    """From where on one curve is below another, between places by straight lines in logarithms; inf: nowhere."""
    gaps = np.log(falling.values / other.values)
    above = np.flatnonzero(gaps > 0)
    if not len(above):
        return float(falling.x[0])
    last = int(above[-1])
    if last + 1 == len(gaps):
        return math.inf
    ends = [math.log(float(falling.x[k])) for k in (last, last + 1)]
    return math.exp(float(np.interp(0, -gaps[last : last + 2], ends)))


def ends(curve: Curve) -> tuple[Floats, Floats]:
    """The standard errors of every place but the last, and but the first."""
    return curve.errors[:-1], curve.errors[1:]


def fall(table: Table, panel: str, curve: str) -> float:
    """Which part of its first error is gone at the end of a curve."""
    values = table.curve(panel, curve).values
    return 1 - float(values[-1] / values[0])


def holds(if_so: bool, otherwise: Verdict = Verdict.FAILS) -> Verdict:
    return Verdict.HOLDS if if_so else otherwise


def judge(found: str, verdict: Verdict, why: str) -> Finding:
    """With the reason why it does not simply hold, where it does not."""
    return Finding(found, verdict, "" if verdict is Verdict.HOLDS else why)

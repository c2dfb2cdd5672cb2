"""Logistic regression: the log-odds of one of two public classes, from the same sums as a linear model of the class.

The loss that a person adds is expanded where the class is as frequent as the released sums say, which costs nothing:
its coefficients are the same products, whichever point it is expanded around (`log_odds.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from epsilons.arguments.options import Parameter
from epsilons.statistics.additive import Sums, laplace_between
from epsilons.statistics.base import Question, RowScope, Statistic
from epsilons.statistics.entry import Entry
from epsilons.statistics.features import check_classes
from epsilons.statistics.log_odds import LogOdds, constant_odds, find_log_odds, possible_part
from epsilons.statistics.moments import Moments
from epsilons.statistics.noisy_loss import Floats, NoisyLoss
from epsilons.statistics.regression import (
    BOUNDS_X,
    BY_COLUMN,
    COLUMNS,
    NAMES,
    Regression,
    find_features,
    tell_quality,
)


@dataclass(frozen=True)
class LogisticRegression(Regression):
    """Log-odds of the second class, linear in the features; a person of neither class adds nothing."""

    classes: tuple[Any, Any] = (0, 1)

    name: ClassVar[str] = "logistic_regression"
    summary: ClassVar[str] = "class_products"  # type: ignore[misc]
    kappa: ClassVar[int] = 2
    aim: ClassVar[tuple[str, Callable[[Any], Any]]] = ("classes", check_classes)

    @property
    def unit(self) -> float:
        """Errors are those of probabilities, which are half of a target on [-1, 1]."""
        return 0.5

    @property
    def usual(self) -> tuple[str, ...]:  # type: ignore[override]
        """A slope b of the target on [-1, 1] is one of 2 b of log-odds where both classes are as frequent."""
        return self.hidden("log-odds", 4.0), "log-odds are about normal"

    def _loss(self, sums: Sums, weight: Fraction, scale: float) -> NoisyLoss:
        """Of a rare class slopes of the usual size, in log-odds, hardly move a target on [-1, 1]."""
        loss = super()._loss(sums, weight, scale)
        share = _share(loss)
        return replace(loss, slope_part=(4 * share * (1 - share)) ** 2)

    def _model(self, loss: NoisyLoss) -> dict[str, float]:
        return self.unscale(_fit(loss).weights)

    def prediction_error(self, loss: NoisyLoss) -> float:
        fit, (constant, slopes) = _fit(loss), loss.errors
        return self.unit**2 * (constant + slopes * fit.odds.slope_square(fit.spread))

    def strayed(self, question: Question, loss: NoisyLoss) -> Moments:
        target = max(abs(loss.means[1]) - 2 * math.sqrt(loss.mean_noise), 0.0)  # sqrt(p(1-p)) but for noise
        return self.moments(self.unit * math.sqrt(1 - target**2) if question.spread is None else question.spread, None)

    def quality(self, loss: NoisyLoss) -> dict[str, Any]:
        """The log-loss, and the part of people whose class it tells if within each class log-odds are about normal."""
        fit, doubt = _fit(loss), math.sqrt(loss.mean_noise) / 2
        often = max(fit.share, 1 - fit.share)
        if 2 * doubt > 1 - often:
            return {"accuracy": None, "quality": "The accuracy is not known: the noise hides how many are of a class."}
        shared, off = (fit.part * each / 4 for each in loss.covariance)
        spread, wide = (fit.part**2 * each / 4 for each in loss.spread)
        odds, alike = fit.odds, constant_odds(fit.share)
        lost = odds.log_loss(fit.share, spread, shared)
        less = alike.log_loss(fit.share, 0.0, 0.0) - lost
        by_slopes = math.hypot(odds.steepness * off, odds.curvature * odds.steepness**2 * wide / 2)
        told = {"log_loss": lost, "log_loss_error": math.hypot(odds.middle * doubt, by_slopes)}
        gained = math.hypot((odds.middle - alike.middle) * doubt, by_slopes)
        told |= {"log_loss_gain": less, "log_loss_gain_error": gained}
        told = {name: float(f"{each:.6g}") for name, each in told.items()}  # differences have no more digits
        if not loss.slopes.any():
            return tell_quality("accuracy", "Accuracy", often, doubt, "that of a constant") | told
        middle = fit.tell(shared, spread)
        moved = fit.tell(shared + off, spread) - middle, fit.tell(shared, spread + wide) - middle
        beside = f"if log-odds are about normal within each class; a constant has {often:.3g}"
        found = tell_quality("accuracy", "Accuracy", middle, math.hypot(doubt, *moved), beside) | told
        gain = f"Log-loss at most {lost:.3g}, {less:.2g} ± {gained:.1g} less than a constant's."
        return found | {"quality": f"{found['quality']} {gain}"}


@dataclass(frozen=True)
class _Fit:
    """Log-odds, the share of the second class, and what of the linear model of the class they are made of."""

    odds: LogOdds
    share: float
    spread: float
    part: float
    weights: Floats

    def tell(self, shared: float, spread: float) -> float:
        """The part of people whose class is told: z lies around shared/p and -shared/(1 - p) in the two classes."""
        p, edge = self.share, self.odds.middle / self.odds.steepness
        within = math.sqrt(max(spread - shared**2 / (p * (1 - p)), 1e-12))
        sides = (p, edge + shared / p), (1 - p, shared / (1 - p) - edge)
        return sum(part * (1 + math.erf(side / math.sqrt(2) / within)) / 2 for part, side in sides)


def _share(loss: NoisyLoss) -> float:
    """The share of the second class to expect where every one was as likely before."""
    target = loss.means[1]
    mean = target + laplace_between(math.sqrt(loss.mean_noise / 2), target + 1, 1 - target)
    # Of people who are all of one class there is no telling more than that the next may be of the other.
    most = 1 - 1 / (loss.rows + 1)
    return (1 + min(max(mean, -most), most)) / 2


def _fit(loss: NoisyLoss) -> _Fit:
    """Slopes go with those that a linear model of the class has."""
    features, share = loss.means[0], _share(loss)
    slopes, spread = loss.directions[2] @ loss.slopes / 2, loss.spread[0] / 4
    moved = np.stack([slopes * (end - features) for end in (-1.0, 1.0)])
    ends = float(moved.min(axis=0).sum()), float(moved.max(axis=0).sum())
    part = possible_part(share, spread, ends)
    odds = find_log_odds(share, part**2 * spread, (part * ends[0], part * ends[1]))
    steep = odds.steepness * part * slopes
    weights = np.concatenate([[odds.middle - float(features @ steep)], steep])
    return _Fit(odds, share, part**2 * spread, part, weights)


def _build(given: Mapping[str, Any], over: RowScope) -> Statistic:
    names, bounds, scope = find_features(given, over)
    words = given.get("words", ())
    return LogisticRegression(names, bounds, given["classes"], scope=scope, complete=over.complete, words=words)


_CLASSES = Parameter("classes", Sequence[Any], (0, 1), "The two public classes; the second is the one predicted.")

ENTRY = Entry(
    name="logistic_regression",
    build=_build,
    arguments=(COLUMNS, BOUNDS_X, _CLASSES, NAMES, BY_COLUMN),
    model=True,
    text=True,
    doc="Log-odds of the second of two public classes; a person of neither class adds nothing.",
    table_doc="Log-odds of the second of two public classes of a column, linear in other columns.",
    examples="""\
>>> import epsilons as eps
>>> hours, passed = [[1], [2], [3], [4]] * 100, ["no", "no", "yes", "yes"] * 100
>>> answer = eps.logistic_regression(hours, passed, 1.0, bounds_X=(0, 5), classes=("no", "yes"), features=["hours"])
>>> list(answer.value)
['intercept', 'hours']
""",
    help="Log-odds of the second of two classes of a column, linear in other columns.",
    command="epsilons logistic-regression people.toml union age --bounds age=15,90 --classes no,yes --share 0.05",
)
ENTRIES = (ENTRY,)

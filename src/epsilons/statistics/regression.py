"""Linear and logistic regression by the functional mechanism: what a person adds to the loss, in whole numbers.

With x = (1, features) in [-1, 1]^d and a target t in [-1, 1], both scaled by public bounds, the loss that person i adds
is a polynomial of the weights w whose coefficients are products of two entries of z = (x, kappa*t):

    linear (t = y, kappa = 1):           (t - w.x)^2        = sum_jl x_j x_l w_j w_l - sum_j 2 t x_j w_j + constant,
    logistic (t = 2y - 1, kappa = 2):    8 log(1 + e^(-t w.x)) ~ sum_jl x_j x_l w_j w_l - sum_j 4 t x_j w_j + constant,

the second by a Taylor polynomial around w = 0 (Zhang, Zhang, Xiao, Yang, Winslett 2012, "Functional mechanism",
sections 4 and 5). What is released are the coefficients of the distinct monomials: x_j^2, 2 x_j x_l (j < l) and
2 kappa t x_j; of a linear model t^2 - 1 too, which costs nothing and tells how far targets spread. One person moves
them in L1 by at most d^2 + 2 kappa d when absent and (d + kappa)^2 when replaced. Where the number of people is public
the sum of x_0^2 = 1 needs no noise and x_j^2 - 1/2 stands for x_j^2: then absent (d - 1)(d + 1/2) + 2 kappa d
(docs/models.md has the proofs).
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, cast

import numpy as np

from epsilons.arguments.checks import BOUNDS_RULE, check_bounds
from epsilons.arguments.options import Parameter
from epsilons.display import show_count
from epsilons.errors import Argument, PlanError
from epsilons.noise.entropy import Entropy
from epsilons.preferences import Levels
from epsilons.statistics.additive import Average, Part, Sums, spell
from epsilons.statistics.base import Answer, Question, Rest, RowScope, Scope, Statistic, Weighting
from epsilons.statistics.entry import ON_ARRAYS, ON_TABLES, Bounds, Entry
from epsilons.statistics.features import check_names, feature_bounds
from epsilons.statistics.moments import Moments
from epsilons.statistics.noisy_loss import HIDDEN, WEIGHT_SQUARE, Floats, NoisyLoss, squared_reach
from epsilons.summaries import People
from epsilons.summaries.cells import Integers
from epsilons.summaries.models import MAX_PEOPLE, MODEL_STEPS, merge_levels
from epsilons.summaries.words import Words

#: The noise grows with the square of the number of features; beyond this no model is worth it.
MAX_FEATURES = 200
#: The public guess of a feature's mean square on [-1, 1]: that of uniform values.
MEAN_SQUARE = 1 / 3


@dataclass(frozen=True)
class Regression(Average):
    """What both models share: named features with public bounds, and the terms of the loss.

    A model stays the same when everybody's weight shrinks alike, so it divides by no number of rows: a scope says how
    many rows a person has at most, each of which adds to the sums, and for plans which part of people is expected.
    """

    names: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    scope: Scope | None = field(default=None, kw_only=True)
    #: Whether everyone on the roster has a whole row: their number is public, and whoever is missing stands at x_j^2 =
    #: 1/2, t^2 = 1 and 0 in all other cells.
    complete: bool = field(default=False, kw_only=True)
    #: A table's columns of words, which are spread into features (`find_words`).
    words: Words = field(default=(), kw_only=True)

    family: ClassVar[str] = "regression"  # type: ignore[misc]
    #: Whether it predicts a target, so that it can be said how well.
    predicts: ClassVar[bool] = True
    #: The target's weight kappa beside features of weight one.
    kappa: ClassVar[int]
    #: The field that holds the public fact about the target, and its check.
    aim: ClassVar[tuple[str, Callable[[Any], Any]]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", check_names(self.names, len(self.bounds)))
        object.__setattr__(self, "bounds", tuple(check_bounds(pair, self.name) for pair in self.bounds))
        if not 0 < len(self.bounds) <= MAX_FEATURES:
            raise PlanError(f"{len(self.bounds):,} features.", rule=f"At least 1, at most {MAX_FEATURES}.")
        object.__setattr__(self, self.aim[0], self.aim[1](getattr(self, self.aim[0])))

    @property
    def private_count(self) -> bool:
        return False

    def makes_up_for(self, rest: Rest) -> bool:
        return True

    @property
    def rows(self) -> int:
        """At most so many rows of one person."""
        return 1 if self.scope is None else self.scope.rows

    def identity(self) -> str:
        named, bounds, _, complete, words, *own = ((one.name, getattr(self, one.name)) for one in fields(self))
        told = [complete] * self.complete + [words] * bool(self.words)
        return spell(type(self).__name__, **dict([named, bounds, ("rows", self.rows), *own, *told]))

    def completed(self) -> Statistic | None:
        found = super().completed()
        return None if found is None else replace(found, complete=True)  # type: ignore[type-var]

    def limits(self, people: int) -> tuple[float, float]:
        """A coefficient may be anything."""
        return -math.inf, math.inf

    @property
    def width(self) -> int:
        """d: the features and the intercept."""
        return len(self.bounds) + 1

    @cached_property
    def terms(self) -> tuple[tuple[int, int, int], ...]:
        """(factor, j, l): the sums of factor * z_j * z_l, with z = (`MODEL_STEPS`, x, t) in steps."""
        d = self.width
        squares = [(1 if j == k else 2, j, k) for j in range(d) for k in range(j, d)]
        return (*squares, *((2 * self.kappa, j, d) for j in range(d)))

    def centre_cells(self, sums: Integers) -> Integers:
        """The released cells of the sums of terms, of which the first has `MODEL_STEPS`^2 for each row.

        t^2 - 1 rather than t^2; where the number of rows is public x_j^2 - 1/2, and that number itself is left out.
        """
        halves = [(j == k == self.width) + 0.5 * (self.complete and 0 < j == k < self.width) for _, j, k in self.terms]
        centred = sums - (sums[:, :1] * np.array(halves)).astype(np.int64)
        return cast(Integers, centred[:, 1:] if self.complete else centred)

    @property
    def parts(self) -> tuple[Part, ...]:
        d, kappa, square = self.width, self.kappa, MODEL_STEPS * MODEL_STEPS * self.rows
        absent = (d * d + 2 * kappa * d) * square
        if self.complete:
            absent = (2 * (d - 1) * (2 * d + 1) + 8 * kappa * d) * square // 4
        reach = {"absent": absent, "replace": (d + kappa) ** 2 * square}
        squares = squared_reach(d, kappa, self.complete, square)
        return (Part("coefficients of the loss", len(self.terms) - self.complete, reach, square=squares),)

    def check_rows(self, features: int, people: int) -> None:
        """Refuse what has other features, or more people than exact sums allow."""
        if features != len(self.bounds):
            what = f"{show_count(features, 'feature')} and bounds for {len(self.bounds)}."
            hint = Argument("bounds_X", (0, 1))
            raise PlanError(what, rule="Every feature has public bounds.", suggest=(hint, ", or a pair of lists"))
        if people > MAX_PEOPLE:
            raise PlanError(f"{people:,} people.", rule=f"A model takes at most {MAX_PEOPLE:,}.")

    def noise(self, entropy: Entropy, law: Any, cells: int) -> list[int]:
        """A model has a hundred cells and more: all at once is faster."""
        return list(law.draw_vector(entropy, cells))

    def stretch(self, weighting: Weighting) -> Weighting:
        """Two values of a person are multiplied in each cell: shrinking both squares the weight."""
        weights = tuple(w**2 // weighting.one for w in weighting.weights)
        return Weighting(weights, weighting.one, weighting.rate, weighting.rest)

    def answer(self, sums: Sums, weight: Fraction, people: int) -> Any:
        return self._model(self._loss(sums, weight, 0.0))

    def rows_behind(self, sums: Sums) -> list[Fraction]:
        return [] if self.complete else [sums[0][0]]

    def finish(self, question: Question, sums: Sums, weighting: Weighting, levels: Levels) -> Any:
        return self._model(self.loss(question, sums, weighting, levels))

    def draw(self, question: Question, weighting: Weighting, people: People, entropy: Entropy) -> Answer:
        if weighting.coins is None:
            people, weights = merge_levels(people, weighting.weights)
            weighting = replace(weighting, weights=weights, effects={})
        answer = super().draw(question, weighting, people, entropy)
        assert answer.sums is not None
        return replace(answer, details=self.quality(self.loss(question, answer.sums, weighting, people.levels)))

    def loss(self, question: Question, sums: Sums, weighting: Weighting, levels: Levels) -> NoisyLoss:
        """With the Laplace scale of the noise in the cells, a public fact by which the loss is repaired."""
        scale = self.laws(question, weighting)[0].scale
        return self._loss(sums, weighting.total(levels), scale / weighting.one)

    def _loss(self, sums: Sums, weight: Fraction, scale: float) -> NoisyLoss:
        d, square, rows = self.width, float(MODEL_STEPS * MODEL_STEPS), float(weight * self.rows)
        z = np.zeros((d + 1, d + 1))
        cells = [weight * MODEL_STEPS**2, *sums[0]] if self.complete else sums[0]
        for (factor, j, k), cell in zip(self.terms, cells, strict=True):
            half = rows / 2 if self.complete and 0 < j == k < d else 0.0
            z[j, k] = z[k, j] = float(cell) / factor / square + half
        scales = scale / square, scale / (2 * self.kappa * square)
        return NoisyLoss(z[:d, :d], z[:d, d], *scales, rows, z[d, d], self.complete)

    def _model(self, loss: NoisyLoss) -> dict[str, float]:
        return self.unscale(loss.minimise())

    def prediction_error(self, loss: NoisyLoss) -> float:
        """The mean square between predictions and those without noise, as the released sums tell."""
        return self.unit**2 * loss.error

    @abstractmethod
    def quality(self, loss: NoisyLoss) -> dict[str, Any]:
        """How good the model is, as far as the released sums tell."""

    def unscale(self, weights: Floats) -> dict[str, float]:
        """The model for features in their own units, w.x = w_0 + sum_j w_j (x_j - c_j)/h_j, and targets on [-1, 1]."""
        features = zip(self.names, weights[1:], self.bounds, strict=True)
        slopes = {name: float(w) / (high / 2 - low / 2) for name, w, (low, high) in features}
        pairs = zip(slopes.values(), self.bounds, strict=True)
        offset = sum(slope * (low / 2 + high / 2) for slope, (low, high) in pairs)
        return {"intercept": float(weights[0]) - offset, **slopes}

    def strayed(self, question: Question, loss: NoisyLoss) -> Moments:
        """`moments` once sums are out: as guessed, unless they show how far targets stray from any model."""
        return self.guess(question)

    @property
    def usual(self) -> tuple[str, ...]:  # type: ignore[override]
        """Of slopes that do not show above the noise nothing is known: their errors are those of usual ones."""
        return (self.hidden("predictions", 2 * self.unit),)

    @staticmethod
    def hidden(what: str, across: float) -> str:
        """How much a feature whose slope does not show may move it, `across` for a slope of 1 on [-1, 1]."""
        most = across * math.sqrt(HIDDEN * WEIGHT_SQUARE)
        return f"a feature whose effect the noise hides moves {what} by at most {most:.3g} across its bounds"

    @property
    def unit(self) -> float:
        """What one step on [-1, 1] of a prediction is worth."""
        return float(self.span[1] / 2 - self.span[0] / 2)

    @property
    def max_error(self) -> float:  # type: ignore[override]
        """Predictions of a useless model and of the exact one are a few times the half width apart at most."""
        return 2 * self.unit

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        """Of predictions: d weights, each as uncertain as a mean of the targets' deviations from the model."""
        return Moments(0.0, self.width * min(self.unit / 2 if spread is None else spread, self.unit) ** 2)

    @cached_property
    def extremes(self) -> tuple[float, float]:
        return -self.unit, self.unit

    def related(self, question: Question) -> tuple[str, float]:
        """Of the sums that decide the weights: the targets' deviations from the exact model, times features."""
        spread = math.sqrt(self.guess(question).variance / self.width)
        return "deviation from the model, times any feature on [-1, 1],", spread

    @property
    def units(self) -> tuple[float, ...]:  # type: ignore[override]
        """How far one step of noise in every coefficient moves predictions, for features that are uniform.

        The j-th weight then errs by e_j/(n v_j), v_j the mean square of the j-th feature (1 for the intercept), and
        a prediction by the root of sum_j v_j (e_j/(n v_j))^2. e_j is the noise in t x_j, and in the matrix times
        weights of the expected size.
        """
        spread = 1 + (self.width - 1) / MEAN_SQUARE
        noise = 1 / (2 * self.kappa) ** 2 + (self.width - 1) * WEIGHT_SQUARE / 4
        return (self.unit * float(np.sqrt(spread * noise)) / MODEL_STEPS**2,)

    def describe(self) -> str:
        return f"{self.name.replace('_', ' ')} on {show_count(len(self.bounds), 'feature')}"


@dataclass(frozen=True)
class LinearRegression(Regression):
    """Least squares with an intercept; values outside public bounds go to the bound, incomplete people add nothing."""

    target_bounds: tuple[float, float]

    name: ClassVar[str] = "linear_regression"
    trusted: ClassVar[dict[str, str]] = {"spread": "targets stray from the model by about"}
    summary: ClassVar[str] = "products"  # type: ignore[misc]
    kappa: ClassVar[int] = 1
    aim: ClassVar[tuple[str, Callable[[Any], Any]]] = ("target_bounds", partial(check_bounds, statistic=name))

    @cached_property
    def terms(self) -> tuple[tuple[int, int, int], ...]:
        return (*super().terms, (1, self.width, self.width))

    def quality(self, loss: NoisyLoss) -> dict[str, Any]:
        """R2 against everyone at the targets' mean, and its standard error."""
        (variance, doubt), (shared, off), (spread, wide) = loss.variance, loss.covariance, loss.spread
        if 2 * doubt > variance or loss.people <= 0:
            return {"r2": None, "quality": "R2 is not known: the noise hides how far targets spread."}
        r2 = (2 * shared - spread - loss.mean_noise) / variance
        error = math.hypot(2 * off, wide, loss.mean_noise, r2 * doubt) / variance
        return tell_quality("r2", "R2", min(r2, 1.0), error, "from the released sums; a constant has 0")

    @property
    def span(self) -> tuple[float, float]:
        return self.target_bounds

    def unscale(self, weights: Floats) -> dict[str, float]:
        model = {name: self.unit * weight for name, weight in super().unscale(weights).items()}
        return model | {"intercept": self.target_bounds[0] / 2 + self.target_bounds[1] / 2 + model["intercept"]}


def tell_quality(key: str, name: str, found: float, error: float, beside: str) -> dict[str, Any]:
    sentence = f"{name} about {found:.3g} ± {error:.2g} ({beside})."
    return {key: float(found), f"{key}_error": float(error), "quality": sentence}


def scope_of_rows(over: RowScope) -> Scope | None:
    """A scope where it matters who counts with how many rows, and whether the word that nothing is missing would make
    the number of people public."""
    unsure = over.fixed and not over.complete
    return None if over.fixed and over.complete else replace(over.scope, only_missing=unsure)


def find_features(given: Mapping[str, Any], over: RowScope) -> tuple[Any, Any, Scope | None]:
    """(names, bounds, scope): on tables bounds are found by name before."""
    scope = scope_of_rows(over)
    if "bounds_X" in given:
        return *feature_bounds(given["bounds_X"], given["features"]), scope
    return given["features"], given["bounds"], scope


def _linear(given: Mapping[str, Any], over: RowScope) -> Statistic:
    names, bounds, scope = find_features(given, over)
    target = given["bounds_y"] if "bounds_X" in given else given["target"]
    if target is None and "bounds_X" in given:
        raise PlanError("There are no bounds for the target.", rule=BOUNDS_RULE, suggest=Argument("bounds_y", (0, 100)))
    return LinearRegression(names, bounds, target, scope=scope, complete=over.complete, words=given.get("words", ()))


_TWO = "Public bounds of the features: two numbers, or a list of lows and one of highs."
BOUNDS_X = Parameter("bounds_X", Any, None, _TWO, fronts=ON_ARRAYS)
_BOUNDS_Y = Parameter("bounds_y", Bounds, None, "Public bounds of the target.", fronts=ON_ARRAYS)
NAMES = Parameter("features", Sequence[str] | None, None, "The features' names.", fronts=ON_ARRAYS)
_BY_PLACE: dict[str, Any] = {"positional": True, "required": True, "fronts": ON_TABLES}
COLUMNS = Parameter("features", Sequence[str], None, "The columns of the features.", **_BY_PLACE)
_PAIRS = Mapping[str, tuple[float, float]] | None
BY_COLUMN = Parameter("bounds", _PAIRS, None, "Public bounds of the columns.", fronts=ON_TABLES)

_LINEAR = Entry(
    name="linear_regression",
    build=_linear,
    arguments=(COLUMNS, BOUNDS_X, _BOUNDS_Y, NAMES, BY_COLUMN),
    model=True,
    doc="""\
Least squares with an intercept. Values beyond the public bounds go to the bound; incomplete people add nothing.

The row `X[i]` and the target `y[i]` belong to a person whose epsilon is `epsilons[i]`. `bounds_X` is a pair of numbers
for all features, or a tuple of two lists, their lows and their highs, whose names are `features`; or a dict with a pair
or a list of words for each. The answer is a dict from "intercept" and the features' names to coefficients in the data's
units.""",
    table_doc="Least squares of a column on others, with an intercept; `bounds` are public bounds of these columns.",
    examples="""\
>>> import epsilons as eps
>>> age, wage = [[25], [35], [45], [55]], [20, 28, 36, 44]
>>> answer = eps.linear_regression(age, wage, eps.PUBLIC, bounds_X=(15, 65), bounds_y=(0, 100), features=["age"])
>>> {name: round(value, 1) + 0.0 for name, value in answer.value.items()}
{'intercept': 0.0, 'age': 0.8}
""",
    help="Least squares of a column on others, with an intercept.",
    command="epsilons linear-regression people.toml wage age --bounds wage=0,100 --bounds age=15,90 --share 0.05",
)
ENTRIES = (_LINEAR,)

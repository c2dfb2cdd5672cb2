"""Covariance and correlation of two bounded columns, from noisy sums of x, t and x*t on [-1, 1]; see `regression`.

A covariance releases the sums of x, t and 2xt, and the number of rows where that is private. A row has at most 4 of
them in L1, and 1 more for being there. If it moves, |x - x'| + |t - t'| + 2|xt - x't'| is convex in each of the four
numbers, and so largest where all are -1 or 1: there it is 6 if one of them changes sign, 4 if both do (docs/theory.md,
"covariance"). A correlation also needs the squares, and releases what a linear model of one feature does.

Whole products of whole steps are added, so nothing is rounded once values are on the grid.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from epsilons.arguments.checks import BOUNDS_RULE
from epsilons.arguments.options import Parameter
from epsilons.errors import Argument, PlanError
from epsilons.statistics.additive import Part, Sums
from epsilons.statistics.base import Question, RowScope, Statistic
from epsilons.statistics.entry import ON_ARRAYS, ON_TABLES, Bounds, Entry
from epsilons.statistics.moments import Moments
from epsilons.statistics.regression import LinearRegression, scope_of_rows
from epsilons.summaries.models import MODEL_STEPS

_SQUARE = MODEL_STEPS * MODEL_STEPS
#: The public guess of how far means lie from the centre, and of spreads, on [-1, 1]; of a correlation.
_MEAN, _SPREAD, _TOGETHER = 0.25, 0.5, 0.3
_NO_INTERVAL = "How far products of two columns stray depends on private values."


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """Noisy means over `rows` of z = (1, x, t): products z_j z_k, each with the Laplace scale of its noise.

    `counted` says that the number of rows is public, `seen` that somebody counts for certain.
    """

    products: dict[tuple[int, int], tuple[float, float]]
    rows: float
    counted: bool
    seen: bool

    def mean(self, j: int, k: int) -> float:
        return min(max(self.products[j, k][0], -1.0), 1.0)

    def noise(self, j: int, k: int) -> float:
        """The variance of the noise in a mean of products."""
        return 2 * self.products[j, k][1] ** 2

    def covariance(self, j: int, k: int) -> tuple[float, float]:
        """(covariance of two of x and t, the variance of its noise): that of the means, of their product, of rows."""
        x, t, both = self.mean(0, j), self.mean(0, k), self.products[j, k][0]
        first, second = self.noise(0, j), self.noise(0, k)
        # A variance has its mean twice, with one noise.
        means = 4 * x**2 * first + 2 * first**2 if j == k else x**2 * second + t**2 * first + first * second
        rows = 0.0 if self.counted else self.noise(0, 0) * (both - 2 * x * t) ** 2
        return min(max(both - x * t, -1.0), 1.0), self.noise(j, k) + means + rows

    @cached_property
    def found(self) -> float:
        """The covariance, on [-1, 1]."""
        return self.covariance(1, 2)[0]

    @cached_property
    def error(self) -> float:
        """The mean square of the noise in it."""
        return self.covariance(1, 2)[1]

    @property
    def somebody(self) -> bool:
        return self.seen


@dataclass(frozen=True, eq=False)
class NoisyCorrelation(NoisyMoments):
    """The same for a correlation, by how its three parts err: their errors add up at most."""

    @cached_property
    def _spreads(self) -> list[tuple[float, float]]:
        """Variances, none below the standard error of its noise, with that error."""
        pairs = [self.covariance(place, place) for place in (1, 2)]
        return [(max(found, math.sqrt(noise), 2.0**-30), math.sqrt(noise)) for found, noise in pairs]

    @cached_property
    def found(self) -> float:
        (x, _), (t, _) = self._spreads
        return min(max(self.covariance(1, 2)[0] / math.sqrt(x * t), -1.0), 1.0)

    @cached_property
    def error(self) -> float:
        (x, off_x), (t, off_t) = self._spreads
        shared = math.sqrt(self.covariance(1, 2)[1] / (x * t))
        return (shared + abs(self.found) / 2 * (off_x / x + off_t / t)) ** 2

    @property
    def somebody(self) -> bool:
        """Somebody counts, and noise does not hide how far either column spreads."""
        return self.seen and all(found > 2 * off for found, off in self._spreads)


@dataclass(frozen=True)
class Correlation(LinearRegression):
    """Pearson's correlation of two columns; incomplete rows add nothing. Its sums are those of a linear model."""

    name: ClassVar[str] = "correlation"
    trusted: ClassVar[dict[str, str]] = {}
    no_interval: ClassVar[str] = _NO_INTERVAL  # type: ignore[misc]
    predicts: ClassVar[bool] = False
    usual: ClassVar[tuple[str, ...]] = ()  # type: ignore[misc]
    made_from: ClassVar[type[NoisyMoments]] = NoisyCorrelation

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.bounds) != 1:
            raise PlanError(f"A {self.name} is of two columns.", suggest=Argument("other", "age"))

    @property
    def unit(self) -> float:
        return 1.0

    @property
    def guessed_noise(self) -> float:
        """By how much noise of one in every cell moves the answer, at the guessed means and spreads."""
        shared = math.hypot(1 / 2, math.sqrt(2) * _MEAN / 2) / _SPREAD**2
        return math.hypot(shared, _TOGETHER * math.hypot(1.0, 2 * _MEAN / 2) / _SPREAD**2)

    @property
    def units(self) -> tuple[float, ...]:  # type: ignore[override]
        return (self.unit * self.guessed_noise / _SQUARE,)

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        """Of what a person adds to it: of columns that are not related, of variance 1."""
        return Moments(0.0, self.unit**2)

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """One far from both means may decide it, where others hardly differ."""
        return -1e6, 1e6

    def limits(self, people: int) -> tuple[float, float]:
        return -self.unit, self.unit

    def related(self, question: Question) -> tuple[str, float]:
        return "product of both columns' deviations, in spreads,", 1.0

    def related_means(self, question: Question) -> tuple[tuple[str, float], ...]:
        return (("mean of either column, in spreads,", 1.0),)

    def _loss(self, sums: Sums, weight: Fraction, scale: float) -> Any:
        cells = [weight * self.rows * _SQUARE, *sums[0]] if self.complete else list(sums[0])
        most, found = float(weight * self.rows), {}
        count = float(cells[0]) / _SQUARE
        rows = max(most if self.complete else min(count, most), scale / _SQUARE, 1e-300)
        shifts = {(2, 2): 1.0, (1, 1): 0.5 * self.complete}  # what `centre_cells` took off
        for (factor, j, k), cell in zip(self.terms, cells, strict=True):
            unit = factor * _SQUARE * rows
            shift = shifts.get((j, k), 0.0) * min(count / rows, 1.0)
            found[j, k] = float(cell) / unit + shift, 0.0 if self.complete and j == k == 0 else scale / unit
        seen = self.complete or count >= 3 * math.sqrt(2) * scale / _SQUARE
        return self.made_from(found, rows, self.complete, seen)

    def _model(self, loss: Any) -> Any:
        return float(self.unit * loss.found)

    def quality(self, loss: Any) -> dict[str, Any]:
        return {}

    def describe(self) -> str:
        low, high = self.target_bounds
        return f"{self.name} with {self.names[0]} in [{low:g}, {high:g}]"


@dataclass(frozen=True)
class Covariance(Correlation):
    """The covariance (divided by the number of rows) of two columns; incomplete rows add nothing."""

    name: ClassVar[str] = "covariance"
    made_from: ClassVar[type[NoisyMoments]] = NoisyMoments

    @property
    def terms(self) -> tuple[tuple[int, int, int], ...]:
        return (1, 0, 0), (1, 0, 1), (1, 0, 2), (2, 1, 2)

    @property
    def parts(self) -> tuple[Part, ...]:
        row, counted = _SQUARE * self.rows, not self.complete
        reach = {"absent": (4 + counted) * row, "replace": 6 * row}
        # In L2 likewise: 1 + 1 + 4, and of a row that moves 4 + 16 where one of its numbers changes sign.
        square = {"absent": (6 + counted) * row**2, "replace": 20 * row**2}
        return (Part("sums of products", len(self.terms) - self.complete, reach, square=square),)

    @property
    def unit(self) -> float:
        (low, high), (least, most) = self.bounds[0], self.target_bounds
        return (high / 2 - low / 2) * (most / 2 - least / 2)

    @property
    def guessed_noise(self) -> float:
        rows = 0.0 if self.complete else 2 * _MEAN**2
        return math.hypot(1 / 2, math.sqrt(2) * _MEAN, rows)

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        """Of the product of two deviations from the mean, of columns that are not related."""
        first, second = self._spreads(spread)
        return Moments(0.0, (first * second) ** 2)

    def _spreads(self, spread: float | None) -> tuple[float, float]:
        """The public guesses of how far each column spreads: a caller's is that of the second one."""
        first, second = ((high - low) / 2 for low, high in (self.bounds[0], self.target_bounds))
        return _SPREAD * first, _SPREAD * second if spread is None else min(spread, second)

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """Both deviations are at most twice the half width."""
        return -4 * self.unit, 4 * self.unit

    def related(self, question: Question) -> tuple[str, float]:
        return "product of both columns' deviations from their means", math.sqrt(self.guess(question).variance)

    def related_means(self, question: Question) -> tuple[tuple[str, float], ...]:
        first, second = self._spreads(question.spread)
        return (f"mean of {self.names[0]}", first), ("mean of the other column", second)


def _build(kind: type[Correlation]) -> Any:
    def build(given: Mapping[str, Any], over: RowScope) -> Statistic:
        scope = scope_of_rows(over)
        if "bounds_x" not in given:  # of a table: found by name before
            return kind(given["features"], given["bounds"], given["target"], scope=scope, complete=over.complete)
        for name in (name for name in ("bounds_x", "bounds_y") if given[name] is None):
            what = f"There are no bounds for {name[-1]}."
            raise PlanError(what, rule=BOUNDS_RULE, suggest=Argument(name, (0, 100)))
        return kind(("x",), (given["bounds_x"],), given["bounds_y"], scope=scope, complete=over.complete)

    return build


_OTHER = Parameter("other", str, None, "The other column.", positional=True, required=True, fronts=ON_TABLES)
_BOUNDS_X = Parameter("bounds_x", Bounds, None, "Public bounds of the first values.", fronts=ON_ARRAYS)
_BOUNDS_Y = Parameter("bounds_y", Bounds, None, "Public bounds of the second values.", fronts=ON_ARRAYS)
_PAIRS = Mapping[str, tuple[float, float]] | None
_BY_COLUMN = Parameter("bounds", _PAIRS, None, "Public bounds of the columns.", fronts=ON_TABLES)


def _entry(kind: type[Correlation], what: str, sql: str, example: str) -> Entry:
    return Entry(
        name=kind.name,
        build=_build(kind),
        arguments=(_OTHER, _BOUNDS_X, _BOUNDS_Y, _BY_COLUMN),
        model=True,
        pair=True,
        sql=(sql,),
        doc=f"""\
{what} of two lists of values clipped to public bounds; a person who lacks one of them adds nothing.

`X[i]` and `y[i]` belong to a person whose epsilon is `epsilons[i]`.""",
        table_doc=f"{what} of two columns clipped to public bounds; rows that lack one of them add nothing.",
        examples=example,
        help=f"{what} of two columns.",
        command=f"epsilons {kind.name} people.toml wage age --bounds wage=0,100 --bounds age=15,90 --share 0.05",
    )


ENTRIES = (
    _entry(
        Covariance,
        "The covariance (divided by the number of values)",
        "CovarPop",
        """\
>>> import epsilons as eps
>>> answer = eps.covariance([1, 2, 3], [2, 4, 6], eps.PUBLIC, bounds_x=(0, 4), bounds_y=(0, 8))
>>> round(answer.value, 3)
1.333
""",
    ),
    _entry(
        Correlation,
        "Pearson's correlation",
        "Corr",
        """\
>>> import epsilons as eps
>>> answer = eps.correlation([1, 2, 3], [2, 4, 6], eps.PUBLIC, bounds_x=(0, 4), bounds_y=(0, 8))
>>> round(answer.value, 3)
1.0
""",
    ),
)

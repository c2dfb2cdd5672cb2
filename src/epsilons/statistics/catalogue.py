"""The catalogue of statistics: one entry for each, from which every front is made.

An entry says what a statistic is called, which arguments it takes on arrays and on tables, how they make a `Statistic`,
and what is said about it: in a docstring, in the help of its command, in SQL. Functions on arrays, methods of a
dataset, plans, batches, SQL and commands read this table, so a new statistic is one entry more.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from epsilons.arguments import ARRAYS, BATCHES, TABLES, Argument, check_name
from epsilons.errors import PlanError
from epsilons.statistics import order
from epsilons.statistics.base import Scope, Statistic
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.regression import LinearRegression, LogisticRegression
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.unbounded import UnboundedOrder
from epsilons.statistics.variance import Variance


@dataclass(frozen=True)
class RowScope:
    """Which rows a statistic is taken over. As it stands: everyone, one row each, nothing missing, as on arrays."""

    scope: Scope = field(default_factory=Scope)
    #: One row of everybody: no condition, no groups.
    fixed: bool = True
    #: And no value is left out, so that the number of values is public.
    complete: bool = True
    #: Whether values are looked at, or rows alone are counted.
    column: bool = True
    neighbors: str = "absent"
    location: float | None = None
    #: Whether an answer without bounds is possible: on arrays, with individual or group privacy.
    unbounded: bool = False


#: Everyone of an array.
EVERYONE = RowScope()
Build = Callable[[Mapping[str, Any], RowScope], Statistic]


@dataclass(frozen=True, eq=False)
class Entry:
    """One statistic, as all fronts know it."""

    name: str
    build: Build
    #: Its own arguments; each says on which fronts it is taken.
    arguments: tuple[Argument, ...]
    #: What the function on arrays says of itself, and what the method of a table does.
    doc: str
    table_doc: str
    #: Examples for the docstring of the function.
    examples: str = ""
    #: The command: its summary, and an example that works as pasted.
    help: str = ""
    command: str = ""
    #: The aggregates of SQL that mean it, by sqlglot's names.
    sql: tuple[str, ...] = ()
    #: "required" or "optional": whether it is taken of a column.
    column: Literal["required", "optional"] = "required"
    #: Whether it is a model of a target by features, rather than a number of one column.
    model: bool = False
    #: Whether it works on words too.
    words: bool = False

    def own(self, front: str) -> dict[str, Argument]:
        """Its own arguments on a front, by name."""
        return {argument.name: argument for argument in self.arguments if front in argument.fronts}


def find_statistic(name: Any) -> Entry:
    """A statistic by name."""
    if not isinstance(name, str) or name not in CATALOGUE:
        raise PlanError(f"Unknown statistic {name!r}.", rule="Statistics go by name.", hint=", ".join(CATALOGUE))
    return CATALOGUE[name]


_ON_ARRAYS, _ON_TABLES = frozenset({ARRAYS}), frozenset({TABLES, BATCHES})
Bounds = tuple[float, float] | None
BOUNDS = Argument("bounds", Bounds, None, "Public bounds of the values: (low, high).")
STEP = Argument("step", float | None, None, "Distance between possible answers (65,536 steps unless given).")


# Counts, sums, averages ---------------------------------------------------------------------------------------------


def _count(given: Mapping[str, Any], over: RowScope) -> Statistic:
    of = "people" if given.get("of") is None else given["of"]
    return Count() if over.column and over.fixed else Count(over.scope, of)


def _sum(given: Mapping[str, Any], over: RowScope) -> Statistic:
    return Sum(given["bounds"], None if over.complete else over.scope)


def _mean(given: Mapping[str, Any], over: RowScope) -> Statistic:
    if over.complete:
        return Mean(given["bounds"])
    return Mean.over(over.scope, given["bounds"], over.neighbors, over.location)


def _variance(given: Mapping[str, Any], over: RowScope) -> Statistic:
    return Variance(given["bounds"], None if over.complete else over.scope)


COUNT = Entry(
    name="count",
    build=_count,
    arguments=(
        Argument(
            "of",
            Literal["people", "rows"] | None,
            None,
            "What is counted.",
            lambda given: check_name("of", given, ("people", "rows")),
            fronts=_ON_TABLES,
        ),
    ),
    column="optional",
    words=True,
    doc="How many people have a 1; whatever is not exactly 1 counts as 0.",
    table_doc='How many people, or rows (`of="rows"`), meet the condition; of a column, those whose value is 1.',
    examples="""\
>>> import epsilons as eps
>>> answer = eps.count([1, 0, 1, 1], [0.5, 1, 2, eps.PUBLIC], mechanism="exponential")
>>> 0 <= answer.value <= 4
True
""",
    help="How many people, or rows, meet a condition; of a column, those whose value is 1.",
    command='epsilons count people.toml --where "age >= 65" --share 0.05',
    sql=("Count",),
)

SUM = Entry(
    name="sum",
    build=_sum,
    arguments=(BOUNDS,),
    doc="The sum of values clipped to public bounds; a missing value counts as their centre.",
    table_doc="The sum of values clipped to public bounds.",
    help="The sum of a column, its values clipped to public bounds.",
    command="epsilons sum people.toml wage --bounds 0,100 --share 0.05",
    sql=("Sum",),
)

MEAN = Entry(
    name="mean",
    build=_mean,
    arguments=(BOUNDS,),
    doc="The mean of values clipped to public bounds; a missing value counts as their centre.",
    table_doc="The mean of values clipped to public bounds.",
    examples="""\
>>> import epsilons as eps
>>> answer = eps.mean([20, 30, 40], [0.5, 1, 1], bounds=(0, 100), mechanism="minimum")
>>> answer.charges
{0.5: 0.5, 1.0: 0.5}
""",
    help="The mean of a column, its values clipped to public bounds.",
    command="epsilons mean people.toml wage --bounds 0,100 --by region=north,south --share 0.05",
    sql=("Avg",),
)

VARIANCE = Entry(
    name="variance",
    build=_variance,
    arguments=(BOUNDS,),
    doc="The variance (divided by n) of values clipped to public bounds.",
    table_doc="The variance (divided by the number of values) of values clipped to public bounds.",
    help="The variance of a column, its values clipped to public bounds.",
    command="epsilons variance people.toml wage --bounds 0,100 --share 0.05",
    sql=("VariancePop",),
)


# Order statistics ---------------------------------------------------------------------------------------------------


def _ordered(make: Callable[[Mapping[str, Any]], order.Order]) -> Build:
    def build(given: Mapping[str, Any], over: RowScope) -> Statistic:
        made = make(given)
        return made if over.complete else replace(made, scope=over.scope)

    return build


def _kth_largest(given: Mapping[str, Any], over: RowScope) -> Statistic:
    if over.unbounded and given["bounds"] is None:
        return UnboundedOrder(given["k"], given["step"])
    made = order.kth_largest(given["k"], given["bounds"], given["step"])
    return made if over.complete else replace(made, scope=over.scope)


MEDIAN = Entry(
    name="median",
    build=_ordered(lambda given: order.median(given["bounds"], given["step"])),
    arguments=(BOUNDS, STEP),
    doc="The median, on a public grid of possible answers (65,536 steps unless `step` is given).",
    table_doc="The median, on a public grid of possible answers (65,536 steps unless `step` is given).",
    help="The median of a column, on a public grid of answers.",
    command="epsilons median people.toml wage --bounds 0,100 --share 0.05",
    sql=("Median",),
)

QUANTILE = Entry(
    name="quantile",
    build=_ordered(lambda given: order.quantile(given["q"], given["bounds"], given["step"])),
    arguments=(
        Argument("q", float, None, "The part of the values below it.", positional=True, required=True),
        BOUNDS,
        STEP,
    ),
    doc="The value below which a fraction `q` of the people lie, on a public grid of possible answers.",
    table_doc="The value below which a fraction `q` lies, on a public grid of possible answers.",
    help="The value below which a part Q of the values lies.",
    command="epsilons quantile people.toml wage 0.9 --bounds 0,100 --share 0.05",
    sql=("Quantile", "ApproxQuantile", "PercentileCont", "PercentileDisc"),
)

MIN = Entry(
    name="min",
    build=_ordered(lambda given: order.minimum(given["bounds"], given["step"])),
    arguments=(BOUNDS, STEP),
    doc="The smallest value, on a public grid of possible answers.",
    table_doc="The smallest value, on a public grid of possible answers.",
    help="The smallest value of a column, on a public grid of answers.",
    command="epsilons min people.toml wage --bounds 0,100 --share 0.05",
    sql=("Min",),
)

MAX = Entry(
    name="max",
    build=_ordered(lambda given: order.maximum(given["bounds"], given["step"])),
    arguments=(BOUNDS, STEP),
    doc="The largest value, on a public grid of possible answers.",
    table_doc="The largest value, on a public grid of possible answers.",
    help="The largest value of a column, on a public grid of answers.",
    command="epsilons max people.toml wage --bounds 0,100 --share 0.05",
    sql=("Max",),
)

KTH_LARGEST = Entry(
    name="kth_largest",
    build=_kth_largest,
    arguments=(Argument("k", int, 2, "Which of the largest values; 1 is the maximum.", positional=True), BOUNDS, STEP),
    doc="""\
The k-th largest value (k=1 is the maximum), on a public grid of possible answers.

With individual or group privacy, k=2 and more need no bounds.""",
    table_doc="The k-th largest value (k=1 is the maximum), on a public grid of possible answers.",
    help="The k-th largest value of a column, on a public grid of answers.",
    command="epsilons kth-largest people.toml wage 3 --bounds 0,100 --share 0.05",
)


# Histograms ---------------------------------------------------------------------------------------------------------


def _histogram(given: Mapping[str, Any], over: RowScope) -> Statistic:
    return Histogram.of(given["edges"], given["categories"], given["outside"], None if over.fixed else over.scope)


HISTOGRAM = Entry(
    name="histogram",
    build=_histogram,
    arguments=(
        Argument("edges", Sequence[float] | None, None, "Bins [a, b), [b, c), ..."),
        Argument("categories", Sequence[Hashable] | None, None, "Categories, instead of bins."),
        Argument("outside", Literal["drop", "clip"], "drop", "What becomes of values outside the edges."),
    ),
    words=True,
    doc='People per bin [edge, next edge), or per category; outside is dropped, or clipped with `outside="clip"`.',
    table_doc='Rows per bin [edge, next edge), or per category; outside is dropped, or clipped with `outside="clip"`.',
    examples="""\
>>> import epsilons as eps
>>> answer = eps.histogram(["a", "b", "a"], [1, 1, 2], categories=["a", "b"])
>>> list(answer.value)
['a', 'b']
""",
    help="How many rows fall into each bin or category.",
    command="epsilons histogram people.toml wage --edges 0,10,20,50,100 --share 0.05",
)


# Models -------------------------------------------------------------------------------------------------------------


def _several(over: RowScope) -> Scope | None:
    """A model divides by no number of rows: only several rows per person matter."""
    return Scope(over.scope.rows) if over.scope.rows > 1 else None


def _linear(given: Mapping[str, Any], over: RowScope) -> Statistic:
    """On tables the bounds of all columns are found by name before."""
    if "bounds_X" in given:
        return LinearRegression.of(given["bounds_X"], given["bounds_y"], given["features"])
    return LinearRegression(given["features"], given["bounds"], given["target"], scope=_several(over))


def _logistic(given: Mapping[str, Any], over: RowScope) -> Statistic:
    if "bounds_X" in given:
        return LogisticRegression.of(given["bounds_X"], given["classes"], given["features"])
    return LogisticRegression(given["features"], given["bounds"], given["classes"], scope=_several(over))


_BOUNDS_X = Argument(
    "bounds_X", Any, None, "Public bounds of the features: two numbers, or two lists.", fronts=_ON_ARRAYS
)
_NAMES = Argument("features", Sequence[str] | None, None, "The features' names.", fronts=_ON_ARRAYS)
_COLUMNS = Argument(
    "features", Sequence[str], None, "The columns of the features.", positional=True, required=True, fronts=_ON_TABLES
)
_BY_COLUMN = Argument(
    "bounds", Mapping[str, tuple[float, float]] | None, None, "Public bounds of the columns.", fronts=_ON_TABLES
)
_CLASSES = Argument("classes", Sequence[Any], (0, 1), "The two public classes; the second is the one predicted.")

LINEAR_REGRESSION = Entry(
    name="linear_regression",
    build=_linear,
    arguments=(
        _COLUMNS,
        _BOUNDS_X,
        Argument("bounds_y", Bounds, None, "Public bounds of the target.", fronts=_ON_ARRAYS),
        _NAMES,
        _BY_COLUMN,
    ),
    model=True,
    doc="""\
Least squares with an intercept. Values beyond the public bounds go to the bound; incomplete people add nothing.

The row `X[i]` and the target `y[i]` belong to a person whose epsilon is `epsilons[i]`. `bounds_X` is a pair of numbers
for all features, or of lists with an entry per feature. `features` names them. The answer is a dict from "intercept"
and the features' names to coefficients in the units of the data.""",
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

LOGISTIC_REGRESSION = Entry(
    name="logistic_regression",
    build=_logistic,
    arguments=(_COLUMNS, _BOUNDS_X, _CLASSES, _NAMES, _BY_COLUMN),
    model=True,
    words=True,
    doc="Log-odds of the second of two public classes; whoever is of neither class adds nothing.",
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

#: Every statistic by name.
CATALOGUE: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        COUNT, SUM, MEAN, VARIANCE, MEDIAN, QUANTILE, MIN, MAX, KTH_LARGEST, HISTOGRAM, LINEAR_REGRESSION,
        LOGISTIC_REGRESSION,
    )
}  # fmt: skip

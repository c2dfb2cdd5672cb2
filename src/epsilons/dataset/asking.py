"""From the words of a call to a question: which statistic, over which rows, and what of it is private.

A number of contributions is public only if everybody on the roster has exactly one: no condition, no groups, one row
per person, and a column that is complete by the steward's word or whose missing values stand at the centre. Otherwise
the statistic is one of `statistics.filtered`, which pays for its denominator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from epsilons.engines.base import Schema
from epsilons.engines.conditions import parse
from epsilons.engines.trees import Predicate
from epsilons.errors import PlanError
from epsilons.statistics import order
from epsilons.statistics.base import Statistic
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.keys import Keys
from epsilons.statistics.scope import Scope
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import Variance

LEFT_OUT = "Missing values are left out; how many there are is private, and paid for where an answer divides by it."
AT_CENTRE = "Missing values stand at the centre of the bounds."
COMPLETE = "Nothing is missing in this column, by the steward's word; a value that is missing stands at the centre."
NOT_COUNTED = "Missing values are not counted."


@dataclass(frozen=True)
class Terms:
    """What a dataset fixes for all questions."""

    schema: Schema
    person: str
    neighbors: str
    rows: int
    complete: frozenset[str]
    bounds: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Wording:
    """A call's arguments, as given."""

    statistic: str
    column: str | None = None
    bounds: Any = None
    step: float | None = None
    q: float | None = None
    k: int | None = None
    edges: Any = None
    categories: Any = None
    outside: str = "drop"
    of: str | None = None
    where: str | None = None
    by: Any = None
    missing: str | None = None


@dataclass(frozen=True, eq=False)
class Meaning:
    """What a call asks for: the statistic, and the rows that it is taken over."""

    statistic: Statistic
    column: str | None
    where: Predicate | None
    by: Keys | None
    notes: tuple[str, ...]

    @property
    def words(self) -> str:
        """The question in a line, for the books."""
        parts = [self.statistic.describe()]
        parts += [f"of {self.column}"] if self.column is not None else []
        parts += [f"where {self.where.text}"] if self.where is not None else []
        parts += ["by " + ", ".join(kind.name for kind in self.by.columns)] if self.by is not None else []
        return " ".join(parts)

    def identity(self) -> dict[str, Any]:
        """Everything that makes it this question and not another one."""
        keys = None
        if self.by is not None:
            keys = [
                [kind.name, [repr(key) for key in given]]
                for kind, given in zip(self.by.columns, self.by.given, strict=True)
            ]
        return {
            "statistic": self.statistic.identity(),
            "column": self.column,
            "where": None if self.where is None else self.where.text,
            "by": keys,
        }


def understand(asked: Wording, terms: Terms, density: float | None, location: float | None) -> Meaning:
    """Check a call against the table's columns and make it a statistic. Reads nothing."""
    if asked.statistic not in STATISTICS:
        raise PlanError(f"Unknown statistic {asked.statistic!r}.", hint=", ".join(STATISTICS))
    where = None if asked.where is None else parse(asked.where, terms.schema)
    by = None if asked.by is None else Keys.of(asked.by, terms.schema)
    column = None if asked.column is None else terms.schema.askable(asked.column).name
    if column is None and asked.statistic != "count":
        raise PlanError(f"A {asked.statistic} needs a column.", hint=f'people.{asked.statistic}("wage", ...)')
    asked = replace(
        asked, column=column, bounds=terms.bounds.get(column or "") if asked.bounds is None else asked.bounds
    )
    if column is not None and asked.statistic not in ("count", "histogram"):
        terms.schema.number(column)
    missing, note = _missing(asked, terms)
    fixed = where is None and by is None and terms.rows == 1
    groups = None if by is None else tuple(by.labels)
    fraction = (1.0 if where is None else 0.5) / (1 if groups is None else len(groups))
    if asked.statistic == "count":  # of one group, or of a column, a half: else everyone would count for certain
        fraction = min(fraction, 0.5)
    scope = Scope(terms.rows, groups, fraction if density is None else density)
    build = STATISTICS[asked.statistic]
    statistic = build(asked, Over(scope, fixed, fixed and missing != "exclude", terms.neighbors, location))
    notes = [note]
    if terms.rows > 1:
        notes.append(f"At most {terms.rows} rows of each person are used, and all of them are protected together.")
    return Meaning(statistic, column, where, by, tuple(notes))


def _missing(asked: Wording, terms: Terms) -> tuple[str, str]:
    """(what happens to missing values, in words for the release)."""
    if asked.missing not in (None, "exclude", "center"):
        raise PlanError(f"Unknown missing={asked.missing!r}.", hint='missing="exclude" or missing="center"')
    if asked.statistic in ("count", "histogram"):
        if asked.missing == "center":
            raise PlanError(f"A {asked.statistic} has no centre.", rule=NOT_COUNTED, hint="leave missing= out")
        return "count", NOT_COUNTED
    if asked.missing == "center":
        if asked.where is not None or asked.by is not None or terms.rows > 1:
            raise PlanError(
                'missing="center" needs a public number of values.',
                rule="With a condition, groups or several rows per person it is private.",
                hint='missing="exclude"',
            )
        return "center", AT_CENTRE
    if asked.missing is None and asked.column in terms.complete and asked.where is None and asked.by is None:
        return "complete", COMPLETE
    return "exclude", LEFT_OUT


@dataclass(frozen=True)
class Over:
    """What a statistic is taken over. `fixed`: one row each, no condition; `whole`: and no value is left out."""

    scope: Scope
    fixed: bool
    whole: bool
    neighbors: str
    location: float | None


Build = Callable[[Wording, Over], Statistic]


def _count(asked: Wording, over: Over) -> Statistic:
    of = "people" if asked.of is None else asked.of
    return Count(over.scope, of) if asked.column is None or not over.fixed else Count()


def _sum(asked: Wording, over: Over) -> Statistic:
    return Sum(asked.bounds, None if over.whole else over.scope)


def _mean(asked: Wording, over: Over) -> Statistic:
    return Mean(asked.bounds) if over.whole else Mean.over(over.scope, asked.bounds, over.neighbors, over.location)


def _variance(asked: Wording, over: Over) -> Statistic:
    return Variance(asked.bounds, None if over.whole else over.scope)


def _histogram(asked: Wording, over: Over) -> Statistic:
    return Histogram.of(asked.edges, asked.categories, asked.outside, None if over.fixed else over.scope)


def _order(make: Callable[[Wording], order.Order]) -> Build:
    def build(asked: Wording, over: Over) -> Statistic:
        made = make(asked)
        return made if over.whole else replace(made, scope=over.scope)

    return build


#: What can be asked of a table.
STATISTICS: dict[str, Build] = {
    "count": _count,
    "sum": _sum,
    "mean": _mean,
    "variance": _variance,
    "median": _order(lambda asked: order.median(asked.bounds, asked.step)),
    "quantile": _order(lambda asked: order.quantile(asked.q, asked.bounds, asked.step)),  # type: ignore[arg-type]
    "min": _order(lambda asked: order.minimum(asked.bounds, asked.step)),
    "max": _order(lambda asked: order.maximum(asked.bounds, asked.step)),
    "kth_largest": _order(lambda asked: order.kth_largest(2 if asked.k is None else asked.k, asked.bounds, asked.step)),
    "histogram": _histogram,
}

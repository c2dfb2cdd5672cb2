"""How many people fall into each bin or category; of dates and times, into each period or part of a calendar."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from typing import Any, ClassVar, Literal

from epsilons.arguments.checks import check_name, check_real
from epsilons.arguments.options import Parameter
from epsilons.arguments.spans import read_spans
from epsilons.display import show_count
from epsilons.engines.readings import read_entry
from epsilons.errors import Argument, PlanError
from epsilons.guarantee import to_epsilon
from epsilons.statistics.additive import Part, Sums, doubt, spell, whole_or_float
from epsilons.statistics.base import Scope
from epsilons.statistics.counting import Counting, row_moments
from epsilons.statistics.entry import Entry
from epsilons.statistics.moments import Moments

MAX_CELLS = 100_000
_NAMES, _EDGES = Argument("categories", ["north", "south"]), Argument("edges", [0, 10, 20])
_RULE = "Bins are [edge, next edge)."


@dataclass(frozen=True)
class Histogram(Counting):
    """People per bin [edge, next edge) (the last bin includes its end), or per category; with a scope, rows per bin.

    Outside the edges or categories, and missing: not counted; `outside="clip"` moves numbers into the end bins. One
    person is in one bin: L1 reach 1 when absent, 2 when replaced, since then they can move from one bin to another.
    """

    edges: tuple[float, ...] | None = None
    categories: tuple[Hashable, ...] | None = None
    outside: str = "drop"
    scope: Scope | None = None
    #: Where categories are ranges or parts of a calendar: how they were asked for.
    spans: tuple[str, tuple[Any, ...]] | None = None

    name: ClassVar[str] = "histogram"
    later: ClassVar[tuple[str, ...]] = ("spans",)
    summary: ClassVar[str] = "bins"  # type: ignore[misc]

    def __post_init__(self) -> None:
        if (self.edges is None) == (self.categories is None):
            rule = "Bins are public facts; reading them from the data would leak it."
            raise PlanError("A histogram needs edges or categories.", rule=rule, suggest=(_EDGES, ", or ", _NAMES))
        check_name("outside", self.outside, ("drop", "clip"))
        if self.edges is not None:
            self._check_edges(self.edges)
        if self.categories is not None:
            self._check_categories(self.categories)
            if self.outside == "clip":
                raise PlanError("Categories have no ends to clip to.", suggest=Argument("outside", "drop"))
        if self.bins > MAX_CELLS:
            raise PlanError(f"{self.bins:,} bins are too many.", rule=f"At most {MAX_CELLS:,}.", suggest="wider bins")

    @classmethod
    def of(cls, edges: Any, categories: Any, outside: str, scope: Scope | None = None) -> Histogram:
        """From any sequences; edges may be periods or parts of a calendar."""
        named = categories if isinstance(categories, Mapping) else edges
        if (edges is not None and categories is not None) or not isinstance(named, Mapping):
            return cls(_list(edges, "Edges", _EDGES), _list(categories, "Categories", _NAMES), outside, scope)
        labels, times, _ = read_spans("the histogram", named)
        if any(isinstance(edge, (int, float)) for edge in times):
            raise PlanError("Ranges of a histogram are of dates or times.", rule=_RULE, suggest=_EDGES)
        ((word, given),) = named.items()
        return cls(None, labels, outside, scope, (word, tuple(map(str, given))))

    @property
    def asked_spans(self) -> dict[str, list[Any]] | None:
        """The ranges or parts of a calendar that its bins are, as `spans` reads them."""
        return None if self.spans is None else {self.spans[0]: list(self.spans[1])}

    def identity(self) -> str:
        name = type(self).__name__
        found = {field.name: getattr(self, field.name) for field in fields(self) if field.init}
        held = {key: value for key, value in found.items() if key != "scope" and (key not in self.later or value)}
        bins = spell(name, **held)
        return bins if self.scope is None else f"Filtered{name}(scope={self.scope!r}, bins={bins})"

    @property
    def one_each(self) -> bool:  # type: ignore[override]
        return self.scope is None or self.scope.rows == 1

    def _check_categories(self, given: tuple[Hashable, ...]) -> None:
        categories = tuple(map(_plain, given))
        if None in categories:
            what = "A category is neither a word, a number, a date nor a tuple of them."
            rule = "What is missing is not counted. Releases survive JSON, keys included."
            raise PlanError(what, rule=rule, suggest=_NAMES)
        if not 0 < len(categories) == len(set(categories)):
            raise PlanError("Categories are empty or repeat.", rule="Everyone is in one category.", suggest=_NAMES)
        object.__setattr__(self, "categories", categories)

    def _check_edges(self, given: Any) -> None:
        try:
            edges = tuple(check_real(edge) for edge in given)
        except TypeError:
            raise PlanError("Edges are not numbers.", rule=_RULE, suggest=_EDGES) from None
        if len(edges) < 2 or any(math.isnan(e) for e in edges) or any(a >= b for a, b in pairwise(edges)):
            raise PlanError("Edges are fewer than two, or do not increase.", rule=_RULE, suggest=_EDGES)
        object.__setattr__(self, "edges", edges)

    @property
    def bins(self) -> int:
        """How many bins there are in each group."""
        return len(self.categories or ()) if self.edges is None else len(self.edges) - 1

    @property
    def cells(self) -> int:
        """Bins of all groups together."""
        return self.bins if self.scope is None else self.scope.cells * self.bins

    @property
    def bin_keys(self) -> tuple[Hashable, ...]:
        """What the bins of a group are called."""
        return (self.categories or ()) if self.edges is None else tuple(pairwise(self.edges))

    def of_roster(self, people: Mapping[int | None, int], grant_of: Callable[[Any], int | None]) -> Any:
        if self.edges is None:
            return {key: people.get(grant_of(key), 0) for key in self.bin_keys}
        counted, (low, *_, high) = [0] * self.bins, self.edges
        for grant, number in people.items():
            epsilon = to_epsilon(grant) if self.outside == "drop" else min(max(to_epsilon(grant), low), high)
            if low <= epsilon <= high:
                counted[min(bisect_right(self.edges, epsilon), self.bins) - 1] += number
        return dict(zip(self.bin_keys, counted, strict=True))

    @property
    def parts(self) -> tuple[Part, ...]:
        # With one bin a replaced person can only leave it or enter it.
        rows = 1 if self.scope is None else self.scope.rows
        square = {"absent": rows**2, "replace": rows**2 * min(2, self.cells)}
        return (Part("bins", self.cells, {"absent": rows, "replace": rows * min(2, self.cells)}, square=square),)

    def answer(self, sums: Sums, weight: Fraction, people: int) -> Any:
        groups = None if self.scope is None else self.scope.groups
        keys = self.bin_keys if groups is None else product(groups, self.bin_keys)
        return dict(zip(keys, map(whole_or_float, sums[0]), strict=True))

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        """Of one bin, when people spread over the bins in whatever way."""
        if self.scope is not None:
            return row_moments(self.scope.fraction / max(self.bins, 2), self.scope.rows, None)
        share = 1 / max(self.cells, 2) if density is None else density
        return Moments(share, share * (1 - share), doubt(share, density))

    @cached_property
    def extremes(self) -> tuple[float, float]:
        return 0.0, 1.0 if self.scope is None else float(self.scope.rows)

    @property
    def centre(self) -> float:  # type: ignore[override]
        return 1 / max(self.cells, 2) if self.scope is None else 0.0

    def describe(self) -> str:
        return f"histogram of {show_count(self.cells, 'bin')}"


def _plain(category: Any) -> Any:
    """A category as plain Python has it; None for what is missing, or cannot be one."""
    plain = read_entry(category)
    if isinstance(plain, tuple):
        parts = tuple(map(_plain, plain))
        return None if None in parts else parts
    return plain if isinstance(plain, str | int | float | date) and plain == plain else None


def _list(given: Any, what: str, hint: Argument) -> tuple[Any, ...] | None:
    try:
        if not isinstance(given, (str, bytes)):
            return None if given is None else tuple(given)
    except TypeError:
        pass
    raise PlanError(f"{what} are not a list.", rule="Bins are public facts, listed by the caller.", suggest=hint)


ENTRY = Entry(
    name="histogram",
    build=lambda given, over: Histogram.of(**given, scope=None if over.fixed else over.scope),
    arguments=(
        Parameter(
            "edges",
            Sequence[float] | dict[str, list[Any]] | None,
            None,
            "Bins [a, b), [b, c), ...; of dates eps.months(...).",
        ),
        Parameter("categories", Sequence[Hashable] | None, None, "Categories, instead of bins."),
        Parameter("outside", Literal["drop", "clip"], "drop", "What becomes of values outside the edges."),
    ),
    text=True,
    missing="not counted",
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
ENTRIES = (ENTRY,)

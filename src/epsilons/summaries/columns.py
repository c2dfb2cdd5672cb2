"""The arithmetic of `arrays.py` as trees of SQL: what a row adds to sums, bins, grid points, and keys of groups.

Doubles are computed with in the order of the arrays and rounded by FLOOR(x + 0.5). CASE puts what is out of bounds on
the bound before anything is computed, so that no cast can fail, and what is missing aside: no condition has to leave it
out. Groups and categories are those that a caller asked for by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.arguments.spans import Spans, read_spans
from epsilons.engines.base import DATE, NUMBER, TEXT, TIME, Column, Schema
from epsilons.engines.calendars import PARTS, extract
from epsilons.engines.conditions import compare
from epsilons.engines.readings import read_entry
from epsilons.engines.trees import (
    MismatchError,
    bit,
    canonical,
    cast,
    column,
    double,
    join_bits,
    literal,
    present,
    rational,
    whole,
)
from epsilons.errors import Argument, DataError, PlanError
from epsilons.summaries.arrays import STEPS, Pair, zero_unit
from epsilons.summaries.models import MODEL_STEPS, model_scale

if TYPE_CHECKING:
    from epsilons.statistics.histogram import Histogram
    from epsilons.statistics.order import Order

#: The cell of a value that is missing, or in no bin.
NO_CELL = -1
#: A decimal of so many digits is a whole number of 64 bits inside, which every engine converts alike.
_EXACT_DIGITS = 18
#: Fewer bins than this are found fastest by halving.
_FEW_BINS = 6
MOST_GROUPS = 100_000
_PLAIN = (str, int, float, bool)
#: Groups that are parts of a calendar.
_PART_WORDS = {"weekdays": "WEEKDAY", "hours": "HOUR"}
KEYS_RULE = "Keys come from the caller; reading them from the table would show who is in it."
_KEYS_HINT = Argument("by", {"region": ["north", "south"]})
#: What lists of words are called, and how one is given.
_ROLES = {
    "key": ("Keys", _KEYS_HINT),
    "category": ("Categories", Argument("categories", ["north", "south"])),
    "option": ("Options", Argument("among", ["north", "south"])),
}
#: A bound, and what stands for whatever lies beyond it.
_End = tuple[float, exp.Expr]


def as_double(kind: Column) -> exp.Expr:
    """A column's value as a double, as numpy converts it."""
    assert kind.numeric()
    if kind.precision > _EXACT_DIGITS:
        # By way of its digits: not every engine's own conversion gives the nearest double, but reading digits does.
        return cast(cast(column(kind.name), "VARCHAR"), "DOUBLE")
    return column(kind.name) if kind.bits == 64 else cast(column(kind.name), "DOUBLE")


def _binary(node: type[exp.Binary], left: exp.Expr, right: exp.Expr | float) -> exp.Expr:
    """left + right and the like; a number is a double."""
    return node(this=left, expression=right if isinstance(right, exp.Expr) else double(right))


def _limit(tree: exp.Expr, low: float | None, high: float | None) -> exp.Expr:
    if low is not None:
        tree = exp.Greatest(this=tree, expressions=[double(low)], ignore_nulls=True)
    return tree if high is None else exp.Least(this=tree, expressions=[double(high)], ignore_nulls=True)


def _between(value: exp.Expr, low: _End, high: _End, inside: exp.Expr, absent: exp.Expr | None = None) -> exp.Expr:
    """CASE that sends whatever is below or above to a constant, so that only what is in bounds is computed with.

    What is missing is `absent`, or null: a null is in no order, and NaN is above every number.
    """
    tests = [(exp.LT, *low), (exp.LTE, high[0], inside), (exp.LTE, math.inf, high[1])]
    tests = tests[math.isinf(low[0]) : 2 if math.isinf(high[0]) else 3]
    ends = [double(end) for _, end, _ in tests]
    ifs = [
        exp.If(this=node(this=value.copy(), expression=end), true=at)
        for (node, _, at), end in zip(tests, ends, strict=True)
    ]
    return exp.Case(ifs=ifs, default=absent)


def row_step(name: str, bounds: Pair, value: exp.Expr) -> exp.Expr:
    """What a row adds to a sum: `arrays.row_steps`; beyond a bound what the bound adds, null without a value."""
    tree, number = _UNROUNDED[name]
    low, high = bounds
    at_low, at_high = math.floor(number(bounds, low) + 0.5), math.floor(number(bounds, high) + 0.5)
    step = exp.Floor(this=exp.Add(this=tree(bounds, value), expression=double(0.5)))
    return _between(value, (low, whole(at_low)), (high, whole(at_high)), cast(step, "INT"))


def _unit(bounds: Pair, number: float) -> float:
    """(x - c)/h of a bound itself: -1 or 1 but for rounding."""
    centre, half = bounds[0] / 2 + bounds[1] / 2, bounds[1] / 2 - bounds[0] / 2
    return min(max((number - centre) / half, -1.0), 1.0)


def _scale(bounds: Pair, value: exp.Expr, steps: int) -> exp.Expr:
    """(x - c)/h in units of 1/steps; where rounding takes a bound past 1, what lies beyond is put back."""
    low, high = bounds
    centre, half = low / 2 + high / 2, high / 2 - low / 2
    offset = exp.paren(exp.Sub(this=value.copy(), expression=double(centre)))
    # The same double as dividing by h and multiplying by 2^30: powers of two do not round.
    scaled = exp.Div(this=offset, expression=double(half / steps))
    if (low - centre) / half < -1 or (high - centre) / half > 1:
        return _limit(_limit(scaled, None, steps), -steps, None)
    return scaled


def _square(bounds: Pair, value: exp.Expr) -> exp.Expr:
    """2^30 (u^2 - 1/2) with u = (x - c)/h."""
    u = exp.paren(_scale(bounds, value, 1))
    return _binary(exp.Mul, exp.paren(_binary(exp.Sub, _binary(exp.Mul, u, u.copy()), 0.5)), STEPS)


#: Steps before they are rounded, as `arrays.row_steps` names them: of a column, and of a number.
_UNROUNDED: dict[str, tuple[Callable[[Pair, exp.Expr], exp.Expr], Callable[[Pair, float], float]]] = {
    "centred sum": (lambda bounds, value: _scale(bounds, value, STEPS), lambda bounds, x: _unit(bounds, x) * STEPS),
    "centred squares": (_square, lambda bounds, x: (_unit(bounds, x) * _unit(bounds, x) - 0.5) * STEPS),
    "sum": (
        lambda bounds, value: _binary(exp.Div, value.copy(), zero_unit(bounds)),
        lambda bounds, x: x / zero_unit(bounds),
    ),
}


def model_step(kind: Column, bounds: Pair) -> exp.Expr:
    """`models.model_scale`: floor(x*scale + shift), cut to the grid.

    Where the bounds themselves land on the ends of the grid, as nearly all do, comparing with them is enough. Otherwise
    values are first cut one width beyond the bounds, where the grid has long ended: so nothing overflows.
    """
    value, (low, high), (scales, shifts) = as_double(kind), bounds, model_scale((bounds,))
    scale, shift = float(scales[0]), float(shifts[0])
    if [math.floor(bound * scale + shift) for bound in bounds] == [-MODEL_STEPS, MODEL_STEPS]:
        inside = exp.Floor(this=_binary(exp.Add, _binary(exp.Mul, value, scale), shift))
        return _between(value, (low, double(-MODEL_STEPS)), (high, double(MODEL_STEPS)), inside)
    cut = _limit(value, low - (high - low), high + (high - low))
    return _limit(exp.Floor(this=_binary(exp.Add, _binary(exp.Mul, cut, scale), shift)), -MODEL_STEPS, MODEL_STEPS)


def grid_cell(statistic: Order, kind: Column) -> exp.Expr:
    """The grid point nearest to a value, -1 if it is missing."""
    low, high = statistic.bounds
    step, last = float(statistic.spacing), statistic.points - 1
    top = math.floor((high - low) / step + 0.5)
    offset = exp.paren(_binary(exp.Sub, as_double(kind), low))
    place = exp.Floor(this=_binary(exp.Add, _binary(exp.Div, offset, step), 0.5))
    cell = cast(_limit(place, None, last if top > last else None), "INT" if statistic.points < 1 << 31 else "BIGINT")
    return _between(as_double(kind), (low, whole(0)), (high, whole(min(top, last))), cell, whole(NO_CELL))


def bin_of(statistic: Histogram, kind: Column) -> exp.Expr:
    """The bin [edge, next edge) of a value; the last has its end; -1 if it is missing, or outside unless clipped."""
    edges = statistic.edges
    assert edges is not None
    value, last, width = as_double(kind), statistic.bins - 1, regular_width(edges)
    below, above = (0, last) if statistic.outside == "clip" else (NO_CELL, NO_CELL)
    inside = _halve(value, edges, 0, last) if width is None else _divide(value, edges, width)
    return _between(value, (edges[0], whole(below)), (edges[-1], whole(above)), inside, whole(NO_CELL))


def _halve(value: exp.Expr, edges: Sequence[float], first: int, final: int) -> exp.Expr:
    """Halve the bins: the depth is the logarithm of their number."""
    if first == final:
        return whole(first)
    middle = (first + final + 1) // 2
    under = exp.If(this=_binary(exp.LT, value.copy(), edges[middle]), true=_halve(value, edges, first, middle - 1))
    return exp.Case(ifs=[under], default=_halve(value, edges, middle, final))


def regular_width(edges: Sequence[float]) -> float | None:
    """A width w with edges[j] = e0 + j*w in doubles for every j, as ranges make them; None if there is none.

    A bin is then found by one division and set right by one comparison with each of its edges. With w at least 8 units
    in the last place of any edge the division errs by less than one bin.
    """
    first, bins = edges[0], len(edges) - 1
    if bins < _FEW_BINS or not (math.isfinite(first) and math.isfinite(edges[-1])):
        return None
    for width in (edges[1] - first, (edges[-1] - first) / bins):
        alike = all(edge == first + place * width for place, edge in enumerate(edges))
        if alike and width >= 8 * max(math.ulp(first), math.ulp(edges[-1])):
            return width
    return None


def _divide(value: exp.Expr, edges: Sequence[float], width: float) -> exp.Expr:
    """floor((x - e0)/w), less one if x is below that bin's edge, more one if it is at or beyond the next edge."""
    first = edges[0]
    place = exp.Floor(this=_binary(exp.Div, exp.paren(_binary(exp.Sub, value.copy(), first)), width))

    def edge(steps: exp.Expr) -> exp.Expr:
        return _binary(exp.Add, double(first), _binary(exp.Mul, exp.paren(steps), width))

    lower, upper = edge(place.copy()), edge(_binary(exp.Add, place.copy(), 1.0))
    less = exp.If(this=_binary(exp.LT, value.copy(), lower), true=_binary(exp.Add, place.copy(), -1.0))
    more = exp.If(this=_binary(exp.GTE, value.copy(), upper), true=_binary(exp.Add, place.copy(), 1.0))
    return cast(_limit(exp.Case(ifs=[less, more], default=place), 0.0, len(edges) - 2), "INT")


class Keys:
    """The groups asked for, given by the caller: every combination of the keys of one or more columns.

    Words are looked up in a list of their own, which is joined (several times as quick as IN, and groups by number);
    other keys are compared. `role` keeps apart the lists of two sets of keys in one query.
    """

    def __init__(self, columns: tuple[Column, ...], given: tuple[Any, ...], role: str = "key") -> None:
        self.columns = columns
        self._spans = {
            place: read_spans(kind.name, values)
            for place, (kind, values) in enumerate(zip(columns, given, strict=True))
            if isinstance(values, Mapping)
        }
        self._places = {place: _Places(columns[place], spans) for place, spans in self._spans.items()}
        days = {place for place in self._spans if "days" in given[place] and columns[place].family == TIME}
        self.given = given = tuple(
            self._spans[place].labels if place in self._spans else values for place, values in enumerate(given)
        )
        self._lists = [f"epsilons {role} {place}" for place in range(len(columns))]
        pairs = list(enumerate(zip(columns, given, strict=True)))
        #: Each column with its keys, as questions are told apart: days of times are called like their midnights.
        self.spelled = [[kind.name, [*map(repr, keys), *["days"] * (place in days)]] for place, (kind, keys) in pairs]
        #: The keys of each column as they are compared, with their places; ranges have none.
        self.known = [{} if place in self._spans else _places_of(values, kind, role) for place, (kind, values) in pairs]
        if math.prod(map(len, given)) > MOST_GROUPS:
            raise PlanError("Too many groups.", rule=f"At most {MOST_GROUPS:,} combinations.", suggest="fewer keys")
        #: The groups in the caller's order; tuples for several columns, the last running fastest.
        self.labels: list[Any] = [key[0] if len(key) == 1 else key for key in product(*given)]

    @classmethod
    def of(cls, by: Mapping[str, Sequence[Any]], schema: Schema) -> Keys:
        """Checked against the schema, before anything is read."""
        if not isinstance(by, Mapping) or not by:
            raise PlanError("Groups are not columns with keys.", rule=KEYS_RULE, suggest=_KEYS_HINT)
        if any(isinstance(values, (str, bytes)) or not hasattr(values, "__iter__") for values in by.values()):
            raise PlanError("Keys are not a list.", rule=KEYS_RULE, suggest=_KEYS_HINT)
        given: tuple[Any, ...] = tuple(
            values if isinstance(values, Mapping) else tuple(v if type(v) in _PLAIN else read_entry(v) for v in values)
            for values in by.values()
        )
        return cls(tuple(schema.askable(name) for name in by), given)

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self.labels)

    def trees(self, joined: bool) -> list[exp.Expr]:
        """What to group by: the place of a word in its list, or the value itself.

        Where a joined list is a job of its own for the engine, each word is compared.
        """
        cases = {} if joined else {listed: _place_of(kind, words) for kind, listed, words in self._words()}
        pairs = zip(self.columns, self._lists, strict=True)
        plain = [cases.get(listed, column(listed if kind.family == TEXT else kind.name)) for kind, listed in pairs]
        for place, spans in self._places.items():
            plain[place] = spans.tree()
        return plain

    def _words(self) -> list[tuple[Column, str, list[tuple[exp.Expr, exp.Expr]]]]:
        """Each column of words, what its list is called, and the list itself: (word, place)."""
        return [
            (kind, listed, [(literal(word, kind), whole(place)) for word, place in known.items()])
            for kind, known, listed in zip(self.columns, self.known, self._lists, strict=True)
            if kind.family == TEXT
        ]

    def join(self, query: exp.Select) -> exp.Select:
        """With the lists of words; rows of no group that was asked for are not even read into a group."""
        for kind, listed, words in self._words():
            rows = [exp.Tuple(expressions=[*pair]) for pair in words]
            names = [exp.to_identifier(name, quoted=True) for name in (listed + " word", listed)]
            alias = exp.TableAlias(this=exp.to_identifier(listed, quoted=True), columns=names)
            same = exp.EQ(this=column(kind.name), expression=column(listed + " word"))
            query = query.join(exp.Values(expressions=rows, alias=alias), on=same, copy=False)
        return query

    def bits(self, joined: bool) -> list[exp.Expr]:
        """1 for the rows of the groups, of each column; not of words, where a list is joined."""
        pairs = enumerate(zip(self.columns, self.known, strict=True))
        listed = [pair for place, pair in pairs if place not in self._places]
        asked = [(kind, known) for kind, known in listed if kind.family != TEXT or not joined]
        keys = [(kind, [literal(key, kind) for key in known]) for kind, known in asked]
        found = [bit(exp.In(this=column(kind.name), expressions=some)) if some else whole(0) for kind, some in keys]
        for spans in self._places.values():
            found.append(spans.inside())
        return found

    def groups(self, columns: list[NDArray[Any]]) -> NDArray[np.int64]:
        """The group of each row of a result."""
        group = np.zeros(len(columns[0]), np.int64)
        listed = enumerate(zip(self.columns, self.known, self.given, columns, strict=True))
        for place, (kind, known, given, values) in listed:
            if kind.family == TEXT or place in self._places:
                found = integers(values, NO_CELL)
            else:
                distinct, which = np.unique(np.ma.getdata(values), return_inverse=True)
                found = np.array([_find(known, value, kind) for value in distinct.tolist()], np.int64)[which]
                found[np.ma.getmaskarray(values)] = NO_CELL
            group = np.where((group < 0) | (found < 0), NO_CELL, group * len(given) + found)
        return group


class _Places:
    """Ranges, or parts of a calendar, of a column: every row is compared with every edge."""

    def __init__(self, kind: Column, spans: Spans) -> None:
        self._kind, self._part = kind, spans.part
        families = PARTS[_PART_WORDS[spans.part]].families if spans.part else (NUMBER, DATE, TIME)
        if kind.family not in families:
            rule = f"They are of columns of {' or '.join(families)}."
            raise DataError(f"Column {kind.name!r} holds {kind.family}.", rule=rule, suggest="a list of its keys")
        try:
            self._edges = [compare(kind, ">=", _edge(edge, kind)) for edge in spans.edges]
            self._last = compare(kind, "<", _edge(spans.edges[-1], kind)) if spans.edges else None
        except (MismatchError, OverflowError, TypeError, ValueError):
            what = f"An edge is not a value of column {kind.name!r}."
            raise DataError(what, rule=f"The column holds {kind.family}.", suggest="edges of that kind") from None

    def tree(self) -> exp.Expr:
        """The place of a row's group, of those inside."""
        if self._part:
            word = _PART_WORDS[self._part]
            return exp.Sub(this=extract(word, self._kind.name), expression=whole(PARTS[word].low))
        bits = [edge.tree() for edge in self._edges[:-1]]
        while len(bits) > 1:
            pairs = [bits[i : i + 2] for i in range(0, len(bits), 2)]
            bits = [exp.paren(exp.Add(this=p[0], expression=p[1])) if len(p) == 2 else p[0] for p in pairs]
        return exp.Sub(this=bits[0], expression=whole(1))

    def inside(self) -> exp.Expr:
        """1 for the rows of these groups."""
        return present(self._kind) if self._last is None else join_bits([self._edges[0].tree(), self._last.tree()])


def _edge(value: Any, kind: Column) -> Any:
    """An edge as a condition has it: numbers exact, days and times as they are written."""
    if kind.family == NUMBER:
        return Fraction(rational(value))
    if isinstance(value, date) and not isinstance(value, datetime) and kind.family == TIME:
        return f"{value} 00:00:00"
    return canonical(value, kind)


def _places_of(keys: tuple[Any, ...], kind: Column, role: str) -> dict[Any, int]:
    """Canonical key to place; what the column's type cannot hold has no rows and is left out."""
    called, hint = _ROLES[role]
    try:
        known = [canonical(key, kind) for key in keys]
    except (MismatchError, OverflowError):
        known = []
    if not known:
        what = f"{called} of column {kind.name!r} are missing or of another type."
        dated = role == "key" and kind.family in (DATE, TIME)
        more = " Its periods are words such as months(2026-01,2026-12) and weekdays()." if dated else ""
        rule = f"The column holds {kind.family}.{more}"
        raise DataError(what, rule=rule, suggest=hint)
    held = [key for key in known if key is not None]
    if len(set(held)) < len(held):
        raise PlanError(f"{called} repeat.", rule="Every row is in one group.", suggest=hint)
    return {key: place for place, key in enumerate(known) if key is not None}


def _find(known: dict[Any, int], value: Any, kind: Column) -> int:
    """The place of a value of a result."""
    try:
        return NO_CELL if value is None else known.get(canonical(value, kind), NO_CELL)
    except MismatchError:  # NaN
        return NO_CELL


def _place_of(kind: Column, words: list[tuple[exp.Expr, exp.Expr]]) -> exp.Expr:
    """The place of a row's word, -1 for none. Every word is compared in every row: CASE would end at the first."""
    found = [(bit(exp.EQ(this=column(kind.name), expression=word)), place) for word, place in words]
    places: list[exp.Expr] = [
        exp.Mul(this=one, expression=exp.paren(_binary(exp.Add, place, whole(1)))) for one, place in found
    ]
    return exp.Sub(this=join_bits(places, every=False), expression=whole(1)) if places else whole(NO_CELL)


def integers(values: NDArray[Any], default: int = 0) -> NDArray[np.int64]:
    """A column of a result as numpy; null is the default."""
    return np.ma.filled(values.astype(np.int64, copy=False), default)

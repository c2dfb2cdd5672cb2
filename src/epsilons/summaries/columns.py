"""What a query computes of a column, as trees: what a row adds to sums, bins, grid points, and keys of groups.

The arithmetic is that of the arrays in the words of SQL: doubles in the same order of operations, rounded by
FLOOR(x + 0.5). CASE puts what is out of bounds on the bound before anything is computed, so that no cast can fail.
Groups and categories are those that a caller asked for by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.engines.base import NUMBER, TEXT, TRUTH, Column, Schema
from epsilons.engines.trees import MismatchError, canonical, cast, column, double, literal, missing, whole
from epsilons.errors import DataError, PlanError
from epsilons.summaries.steps import STEPS, end_steps, zero_steps

if TYPE_CHECKING:
    from epsilons.statistics.histogram import Histogram
    from epsilons.statistics.order import Order

#: The cell of a value that is missing, or in no bin.
MISSING = -1
#: A decimal of so many digits is a whole number of 64 bits inside, which every engine converts alike.
_EXACT_DIGITS = 18
#: Fewer bins than this are found fastest by halving.
_FEW_BINS = 6
MOST_GROUPS = 100_000
_KEYS_RULE = "Keys come from the caller; reading them from the table would show who is in it."
_KEYS_HINT = 'by={"region": ["north", "south"]}'


def as_double(kind: Column) -> exp.Expr:
    """A column's value as a double, as numpy converts it."""
    if kind.family == TRUTH:
        return exp.Case(ifs=[exp.If(this=column(kind.name), true=double(1.0))], default=double(0.0))
    assert kind.family == NUMBER
    if kind.precision > _EXACT_DIGITS:
        # By way of its digits: not every engine's own conversion gives the nearest double, but reading digits does.
        return cast(cast(column(kind.name), "VARCHAR"), "DOUBLE")
    return column(kind.name) if kind.bits == 64 else cast(column(kind.name), "DOUBLE")


def centred_step(bounds: tuple[float, float], value: exp.Expr) -> exp.Expr:
    """floor(2^30 (x - c)/h + 1/2): `Bounded.steps` of a value that is not missing.

    Dividing by h/2^30 instead of dividing by h and multiplying is the same double: powers of two do not round.
    """
    low, high = bounds
    lowest, highest = (math.floor(u * STEPS + 0.5) for u in end_steps(bounds))
    step = _half_up(_scaled(bounds, value, STEPS))
    return _between(value, low, whole(lowest), high, whole(highest), cast(step, "INT"))


def zero_step(bounds: tuple[float, float], value: exp.Expr) -> exp.Expr:
    """floor(2^30 x/largest + 1/2): `zero_steps` of a value that is not missing."""
    low, high = bounds
    lowest, highest = zero_steps(np.array(bounds), bounds).astype(int).tolist()
    scaled = exp.Div(this=value.copy(), expression=double(max(abs(low), abs(high)) / STEPS))
    return _between(value, low, whole(lowest), high, whole(highest), cast(_half_up(scaled), "INT"))


def square_step(bounds: tuple[float, float], value: exp.Expr) -> exp.Expr:
    """floor(2^30 (u^2 - 1/2) + 1/2) with u = (x - c)/h, of a value that is not missing."""
    low, high = bounds
    lowest, highest = (math.floor((u * u - 0.5) * STEPS + 0.5) for u in end_steps(bounds))
    u = _scaled(bounds, value, 1)
    square = exp.Sub(this=exp.Mul(this=exp.paren(u), expression=exp.paren(u.copy())), expression=double(0.5))
    step = cast(_half_up(exp.Mul(this=exp.paren(square), expression=double(STEPS))), "INT")
    return _between(value, low, whole(lowest), high, whole(highest), step)


#: What a row that has a value adds to a sum, in the words of `steps.ROW_STEPS`.
ROW_STEPS: dict[str, Callable[[tuple[float, float], exp.Expr], exp.Expr]] = {
    "centred": centred_step,
    "square": square_step,
    "zero": zero_step,
}


def _scaled(bounds: tuple[float, float], value: exp.Expr, steps: int) -> exp.Expr:
    """(x - c)/h in units of 1/steps. Where rounding takes a bound past 1, what lies beyond is put back."""
    low, high = bounds
    centre, half = low / 2 + high / 2, high / 2 - low / 2
    offset = exp.paren(exp.Sub(this=value.copy(), expression=double(centre)))
    scaled: exp.Expr = exp.Div(this=offset, expression=double(half / steps))
    if (low - centre) / half < -1 or (high - centre) / half > 1:
        scaled = exp.Least(this=scaled, expressions=[double(steps)])
        scaled = exp.Greatest(this=scaled, expressions=[double(-steps)])
    return scaled


def grid_cell(statistic: Order, kind: Column) -> exp.Expr:
    """The grid point nearest to a value, -1 if it is missing."""
    low, high = statistic.bounds
    step, last = float(statistic.spacing), statistic.points - 1
    offset = exp.paren(exp.Sub(this=as_double(kind), expression=double(low)))
    place = _half_up(exp.Div(this=offset, expression=double(step)))
    if math.floor((high - low) / step + 0.5) > last:
        place = exp.Least(this=place, expressions=[double(last)])
    top = min(math.floor((high - low) / step + 0.5), last)
    cell = cast(place, "INT" if statistic.points < 1 << 31 else "BIGINT")
    absent = exp.If(this=missing(kind), true=whole(MISSING))
    return _between(as_double(kind), low, whole(0), high, whole(top), cell, absent)


def bin_of(statistic: Histogram, kind: Column) -> exp.Expr:
    """The bin [edge, next edge) of a value that is not missing; the last has its end; -1 outside unless clipped."""
    edges = statistic.edges
    assert edges is not None
    value, last = as_double(kind), statistic.bins - 1
    below, above = (0, last) if statistic.outside == "clip" else (MISSING, MISSING)

    width = regular_width(edges)
    inside = _halving(value, edges, 0, last) if width is None else _regular(value, edges, width)
    return _between(value, edges[0], whole(below), edges[-1], whole(above), inside)


def _halving(value: exp.Expr, edges: Sequence[float], first: int, final: int) -> exp.Expr:
    """Halve the bins: the depth is the logarithm of their number."""
    if first == final:
        return whole(first)
    middle = (first + final + 1) // 2
    under = exp.If(
        this=exp.LT(this=value.copy(), expression=double(edges[middle])), true=_halving(value, edges, first, middle - 1)
    )
    return exp.Case(ifs=[under], default=_halving(value, edges, middle, final))


def regular_width(edges: Sequence[float]) -> float | None:
    """A width w with edges[j] = e0 + j*w in doubles for every j, as ranges make them; None if there is none.

    A bin is then found by one division and set right by one comparison with each of its edges, which the engine
    computes as they were given. With w at least 8 units in the last place of any edge the division errs by less than
    one bin.
    """
    first, bins = edges[0], len(edges) - 1
    if bins < _FEW_BINS or not (math.isfinite(first) and math.isfinite(edges[-1])):
        return None
    for width in (edges[1] - first, (edges[-1] - first) / bins):
        alike = all(edge == first + place * width for place, edge in enumerate(edges))
        if alike and width >= 8 * max(math.ulp(first), math.ulp(edges[-1])):
            return width
    return None


def _regular(value: exp.Expr, edges: Sequence[float], width: float) -> exp.Expr:
    """floor((x - e0)/w), less one if x is below that bin's edge, more one if it is at or beyond the next edge."""
    first, last = edges[0], len(edges) - 2
    offset = exp.paren(exp.Sub(this=value.copy(), expression=double(first)))
    place = exp.Floor(this=exp.Div(this=offset, expression=double(width)))

    def edge(shift: float) -> exp.Expr:
        steps = exp.Add(this=place.copy(), expression=double(shift)) if shift else place.copy()
        return exp.Add(this=double(first), expression=exp.Mul(this=exp.paren(steps), expression=double(width)))

    less = exp.If(this=exp.LT(this=value.copy(), expression=edge(0.0)), true=_plus(place, -1.0))
    more = exp.If(this=exp.GTE(this=value.copy(), expression=edge(1.0)), true=_plus(place, 1.0))
    found = exp.Case(ifs=[less, more], default=place.copy())
    kept = exp.Least(this=exp.Greatest(this=found, expressions=[double(0.0)]), expressions=[double(last)])
    return cast(kept, "INT")


def _plus(place: exp.Expr, shift: float) -> exp.Expr:
    return exp.Add(this=place.copy(), expression=double(shift))


def _between(
    value: exp.Expr, low: float, at_low: exp.Expr, high: float, at_high: exp.Expr, inside: exp.Expr, *first: exp.If
) -> exp.Expr:
    """CASE that sends whatever is below or above to a constant, so that only what is in bounds is computed with."""
    ifs = list(first)
    if low > -math.inf:
        ifs.append(exp.If(this=exp.LT(this=value.copy(), expression=double(low)), true=at_low))
    if high < math.inf:
        ifs.append(exp.If(this=exp.GT(this=value.copy(), expression=double(high)), true=at_high))
    return exp.Case(ifs=ifs, default=inside) if ifs else inside


def _half_up(tree: exp.Expr) -> exp.Expr:
    return exp.Floor(this=exp.Add(this=tree, expression=double(0.5)))


# Keys ---------------------------------------------------------------------------------------------------------------


class Keys:
    """The groups asked for, given by the caller: every combination of the keys of one or more columns.

    Words are looked up in a list of their own, which is joined (several times as quick as IN, and groups by number);
    other keys are compared. `role` keeps apart the lists of two sets of keys in one query.
    """

    def __init__(self, columns: tuple[Column, ...], given: tuple[tuple[Any, ...], ...], role: str = "key") -> None:
        self.columns = columns
        self.given = given
        self._lists = [f"epsilons {role} {place}" for place in range(len(columns))]
        self._known = [self._places(kind, values) for kind, values in zip(columns, given, strict=True)]
        if math.prod(map(len, given)) > MOST_GROUPS:
            raise PlanError("Too many groups.", rule=f"At most {MOST_GROUPS:,} combinations.", suggest="fewer keys")
        #: The groups in the caller's order; tuples for several columns, the last running fastest.
        self.labels: list[Any] = [key[0] if len(key) == 1 else key for key in product(*given)]

    @classmethod
    def of(cls, by: Mapping[str, Sequence[Any]], schema: Schema) -> Keys:
        """Checked against the schema, before anything is read."""
        if not isinstance(by, Mapping) or not by:
            raise PlanError("Groups are not columns with keys.", rule=_KEYS_RULE, suggest=_KEYS_HINT)
        given = []
        for values in by.values():
            if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
                raise PlanError("Keys are not a list.", rule=_KEYS_RULE, suggest=_KEYS_HINT)
            given.append(tuple(value.item() if isinstance(value, np.generic) else value for value in values))
        return cls(tuple(schema.askable(name) for name in by), tuple(given))

    @property
    def count(self) -> int:
        """How many groups there are."""
        return math.prod(len(values) for values in self.given)

    @property
    def trees(self) -> list[exp.Expr]:
        """What to group by: the place of a word in its list, or the value itself."""
        pairs = zip(self.columns, self._lists, strict=True)
        return [column(listed if kind.family == TEXT else kind.name) for kind, listed in pairs]

    def join(self, query: exp.Select) -> exp.Select:
        """With the lists of words; rows of no group that was asked for are not even read into a group."""
        for kind, known, listed in zip(self.columns, self._known, self._lists, strict=True):
            if kind.family == TEXT:
                rows = [exp.Tuple(expressions=[literal(word, kind), whole(place)]) for word, place in known.items()]
                names = [exp.to_identifier(name, quoted=True) for name in (listed + " word", listed)]
                alias = exp.TableAlias(this=exp.to_identifier(listed, quoted=True), columns=names)
                same = exp.EQ(this=column(kind.name), expression=column(listed + " word"))
                query = query.join(exp.Values(expressions=rows, alias=alias), on=same, copy=False)
        return query

    def compare(self, query: exp.Select) -> exp.Select:
        """The same without lists, for engines to which a joined list is a job of its own: words become their places."""
        for kind, known, listed in zip(self.columns, self._known, self._lists, strict=True):
            if kind.family == TEXT:
                words = {literal(word, kind): place for word, place in known.items()}
                ifs = [
                    exp.If(this=exp.EQ(this=column(kind.name), expression=w), true=whole(p)) for w, p in words.items()
                ]
                place = exp.Case(ifs=ifs) if ifs else exp.null()
                moved = query.transform(partial(_replaced, listed, place))
                assert isinstance(moved, exp.Select)
                among = exp.In(this=column(kind.name), expressions=[word.copy() for word in words])
                query = moved.where(among if words else exp.false(), copy=False)
        return query

    def conditions(self) -> list[exp.Expr]:
        """What the rows of the groups meet, where no list of words says it."""
        trees: list[exp.Expr] = []
        for kind, known in zip(self.columns, self._known, strict=True):
            if kind.family != TEXT:
                values = [literal(value, kind) for value in known]
                trees.append(exp.In(this=column(kind.name), expressions=values) if values else exp.false())
        return trees

    def groups(self, columns: list[pa.ChunkedArray]) -> NDArray[np.int64]:
        """The group of each row of a result."""
        group = np.zeros(len(columns[0]), np.int64)
        for kind, known, given, values in zip(self.columns, self._known, self.given, columns, strict=True):
            if kind.family == TEXT:
                found = integers(values, MISSING)
            else:
                encoded = values.combine_chunks().dictionary_encode()
                places = [known.get(_returned(value, kind), MISSING) for value in encoded.dictionary.to_pylist()]
                found = np.array([*places, MISSING], np.int64)[integers(encoded.indices, MISSING)]
            group = np.where((group < 0) | (found < 0), MISSING, group * len(given) + found)
        return group

    @staticmethod
    def _places(kind: Column, values: tuple[Any, ...]) -> dict[Any, int]:
        """Canonical value to place; what the column's type cannot hold has no rows and is left out."""
        try:
            known = [canonical(value, kind) for value in values]
        except (MismatchError, OverflowError):
            known = []
        if not known:
            raise DataError(
                f"Keys of column {kind.name!r} are missing or of another type.",
                rule=f"The column holds {kind.family}; keys are given, as they stand in the table.",
                suggest=_KEYS_HINT,
            )
        held = [value for value in known if value is not None]
        if len(set(held)) < len(held):
            raise PlanError("Keys repeat.", rule="Every row is in one group.", suggest=_KEYS_HINT)
        return {value: place for place, value in enumerate(known) if value is not None}


def _replaced(name: str, tree: exp.Expr, node: exp.Expr) -> exp.Expr:
    return tree.copy() if isinstance(node, exp.Column) and node.name == name else node


def integers(values: Any, default: int = 0) -> NDArray[np.int64]:
    """A column of a result as numpy; null is the default."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    numbers: NDArray[np.int64] = array.cast(pa.int64()).fill_null(default).to_numpy(zero_copy_only=False)
    return numbers


def _returned(value: Any, kind: Column) -> Any:
    """A value of a result in canonical form; None for null."""
    try:
        return None if value is None else canonical(value, kind)
    except MismatchError:  # NaN
        return None

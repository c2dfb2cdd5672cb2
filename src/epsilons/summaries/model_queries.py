"""The moments of a regression as one query: whole numbers, level by level, equal to the arrays' to the last unit.

Every row's features and target go to their grids inside, products of them are added up outside. A row that lacks any of
them adds nothing. Only the sums leave the engine, however many rows there are.

Steps are whole numbers up to 2^16, kept in doubles, since engines add those several times as fast as wide integers. A
product is at most 2^32 and 2^20 rows are added at a time, so every partial sum is a whole number below 2^53: exact in
whatever order it is added. The sums of these pieces are added up here, in integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.engines.base import Column
from epsilons.engines.trees import Predicate, both, cast, column, double, literal, present, table, whole
from epsilons.errors import DataError, PlanError
from epsilons.summaries.columns import as_double
from epsilons.summaries.products import MAX_PEOPLE, STEPS, Grid
from epsilons.summaries.queries import KEPT, Prepared

if TYPE_CHECKING:
    from epsilons.statistics.regression import Regression

#: Rows whose sums are exact in doubles, with a bit to spare.
_PIECE = 1 << 20


def moments(
    prepared: Prepared, statistic: Regression, target: str, *, where: Predicate | None = None
) -> NDArray[np.int64]:
    """[level, term]: the sums of the statistic's terms, in their order."""
    if prepared.rows > MAX_PEOPLE:
        raise PlanError("The table has too many rows for a model.", rule=f"At most {MAX_PEOPLE:,}.")
    features = [prepared.schema.number(name) for name in statistic.names]
    aim = prepared.schema.find(target)
    steps = [_step(kind, pair) for kind, pair in zip(features, statistic.bounds, strict=True)]
    steps.append(_target(statistic, aim))
    conditions = [*(present(kind) for kind in features), _counts(statistic, aim)]
    conditions += [] if where is None else [where.tree()]
    names = [f"z{place}" for place in range(1, len(steps) + 1)]
    inner = exp.select(
        exp.alias_(column(prepared.level), "level"),
        exp.alias_(_piece(prepared, statistic), "piece"),
        *(exp.alias_(tree, name) for tree, name in zip(steps, names, strict=True)),
    ).from_(table(prepared.name))
    if prepared.only is not None:
        same = exp.EQ(this=column(prepared.person or ""), expression=column(KEPT))
        inner = inner.join(table(prepared.only), on=same)
    inner = inner.where(both(*conditions))
    sums = [exp.alias_(_sum(j, k), f"sum{place}") for place, (_, j, k) in enumerate(statistic.terms)]
    outer = exp.select(exp.column("level"), exp.column("piece"), *sums).from_(inner.subquery("steps"))
    result = prepared.engine.run(outer.group_by(exp.Literal.number(1), exp.Literal.number(2)))
    return _placed(result, statistic, prepared.levels)


def _piece(prepared: Prepared, statistic: Regression) -> exp.Expr:
    """Which piece of at most 2^20 rows a row is in: so many people, with all their rows."""
    if prepared.rows <= _PIECE:
        return whole(0)
    people = float(_PIECE // statistic.rows)
    number = cast(column(prepared.person or ""), "DOUBLE")
    return cast(exp.Floor(this=exp.Div(this=number, expression=double(people))), "INT")


def _step(kind: Column, bounds: tuple[float, float]) -> exp.Expr:
    """`Grid.steps`: floor(x*scale + shift), cut to the grid.

    Where the bounds themselves land on the ends of the grid, as nearly all do, comparing with them is enough. Otherwise
    values are first cut one width beyond the bounds, where the grid has long ended: so nothing overflows.
    """
    grid, (low, high) = Grid((bounds,)), bounds
    value = as_double(kind)
    ends = np.floor(np.array(bounds) * grid.scale + grid.shift)
    if ends.tolist() == [-STEPS, STEPS]:
        scaled = exp.Mul(this=value, expression=double(float(grid.scale[0])))
        inside = exp.Floor(this=exp.Add(this=scaled, expression=double(float(grid.shift[0]))))
        below = exp.If(this=exp.LT(this=value.copy(), expression=double(low)), true=double(-STEPS))
        above = exp.If(this=exp.GT(this=value.copy(), expression=double(high)), true=double(STEPS))
        return exp.Case(ifs=[below, above], default=inside)
    width = high - low
    cut = exp.Least(
        this=exp.Greatest(this=value, expressions=[double(low - width)]), expressions=[double(high + width)]
    )
    scaled = exp.Mul(this=cut, expression=double(float(grid.scale[0])))
    place = exp.Floor(this=exp.Add(this=scaled, expression=double(float(grid.shift[0]))))
    return exp.Least(this=exp.Greatest(this=place, expressions=[double(-STEPS)]), expressions=[double(STEPS)])


def _target(statistic: Any, aim: Column) -> exp.Expr:
    if not hasattr(statistic, "classes"):
        if not aim.numeric():
            raise DataError(
                f"Column {aim.name!r} holds {aim.family}, not numbers.", suggest="logistic_regression for classes"
            )
        return _step(aim, statistic.target_bounds)
    is_second = exp.EQ(this=column(aim.name), expression=literal(statistic.classes[1], aim))
    return exp.Case(ifs=[exp.If(this=is_second, true=double(STEPS))], default=double(-STEPS))


def _counts(statistic: Any, aim: Column) -> exp.Expr:
    """Rows with a target: a number, or one of the two classes."""
    if hasattr(statistic, "classes"):
        return exp.In(this=column(aim.name), expressions=[literal(label, aim) for label in statistic.classes])
    return present(aim)


def _sum(j: int, k: int) -> exp.Expr:
    """z_0 is the constant `STEPS`: a product with it is added up without it, and multiplied afterwards."""
    if j == 0 and k == 0:
        return exp.Count(this=exp.Star(), big_int=True)
    if j == 0:
        return exp.Sum(this=exp.column(f"z{k}"))
    return exp.Sum(this=exp.Mul(this=exp.column(f"z{j}"), expression=exp.column(f"z{k}")))


def _placed(result: pa.Table, statistic: Regression, levels: int) -> NDArray[np.int64]:
    found = np.zeros((levels, len(statistic.terms)), np.int64)
    rows = _integers(result["level"])
    inside = (rows >= 0) & (rows < levels)
    for place, (factor, j, k) in enumerate(statistic.terms):
        lacking = STEPS ** ((j == 0) + (k == 0))
        np.add.at(found[:, place], rows[inside], _integers(result[f"sum{place}"])[inside] * factor * lacking)
    return found


def _integers(values: Any) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = values.combine_chunks().cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return numbers

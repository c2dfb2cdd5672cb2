"""Each statistic's summary as one query: built as a tree, grouped by level, and equal to the arrays' bit for bit.

The arithmetic is that of the arrays: doubles, in the same order, rounded by FLOOR(x + 0.5). Every value passes CASE,
which puts what is out of bounds on the bound, before FLOOR and CAST: no cast can fail, whatever the table holds. Null
and NaN are missing. The largest possible sum is checked against 2^63 before anything runs.

A query returns rows (keys of `by`, level, cell, count, sums); combinations that nobody is in are zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.engines.base import Column, Engine, Schema
from epsilons.engines.trees import Predicate, both, cast, column, double, present, table, whole
from epsilons.errors import PlanError
from epsilons.summaries.cells import LEVEL_BITS
from epsilons.summaries.columns import MISSING, ROW_STEPS, Keys, as_double, bin_of, grid_cell, integers
from epsilons.summaries.counted import CellCounts, CellRows
from epsilons.summaries.steps import STEPS

if TYPE_CHECKING:
    from epsilons.statistics.base import Statistic
    from epsilons.statistics.histogram import Histogram
    from epsilons.statistics.order import Order
    from epsilons.statistics.total import Bounded

#: More bins than this would make the query itself long.
MOST_BINS = 1_024
#: More pairs of grid point and level than this are quicker sorted than counted.
MOST_PAIRS = 1 << 22
#: The only column of a table of sampled people.
KEPT = "epsilons kept"
_ROOM = 1 << 63


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table ready to be asked: every row has a level, and nobody has more rows than they may.

    `level` names the column of level codes (0 to `levels` - 1), `rows` is a public bound on the number of rows, and
    `person` names a column with one value per person, where people are counted and may have several rows. `only` names
    a table with some of these values, each once, in its column `KEPT`: the rows of other people are left out.
    """

    engine: Engine
    name: str
    schema: Schema
    level: str
    levels: int
    rows: int
    person: str | None = None
    only: str | None = None


@dataclass(frozen=True, eq=False)
class Tally:
    """`parts[i][group, level, cell]`: exact sums; `present[group, level]`: rows that count and have a value."""

    parts: list[NDArray[np.int64]]
    present: NDArray[np.int64]


def tally(
    prepared: Prepared,
    statistic: Statistic,
    name: str | None,
    *,
    where: Predicate | None = None,
    by: Keys | None = None,
) -> Tally:
    """The integer sums of an additive statistic per group, level and cell, of the column `name`."""
    check_room(statistic, prepared.rows)
    shape = shape_of(statistic, prepared.schema.find(name) if name is not None else None)
    result = prepared.engine.run(_query(prepared, shape, where, by))
    group, level, cell, kept = _places(result, prepared, shape, by)
    size = (by.count if by else 1, prepared.levels, shape.cells)
    counts = _added(size, group, level, cell, integers(result["count"])[kept])
    sums = [_added(size, group, level, cell, integers(result[f"sum{i}"])[kept]) for i in range(len(shape.sums))]
    present = counts.sum(axis=2)
    if shape.counts_rows:
        sums.append(present[:, :, None])
    return Tally(sums or [counts], present)


def count_people(
    prepared: Prepared, name: str | None = None, *, where: Predicate | None = None, by: Keys | None = None
) -> NDArray[np.int64]:
    """People with at least one row that counts, per group and level; of a column `name`, rows whose value is 1."""
    kind = None if name is None else prepared.schema.find(name)
    shape = replace(_ones(kind), distinct=prepared.person)
    result = prepared.engine.run(_query(prepared, shape, where, by))
    group, level, cell, kept = _places(result, prepared, shape, by)
    size = (by.count if by else 1, prepared.levels, 1)
    return _added(size, group, level, cell, integers(result["count"])[kept])[:, :, 0]


def cells(
    prepared: Prepared, statistic: Order, name: str, *, where: Predicate | None = None, by: Keys | None = None
) -> list[CellCounts | CellRows]:
    """The (grid point, level) histogram of the column `name`, one per group; nothing is sorted in the engine.

    Without groups, more pairs than `MOST_PAIRS` come from an embedded engine one by one, to be sorted by whoever asked:
    of ten million rows and 256 levels most pairs are alone, and counting them takes several times as long.
    """
    kind = prepared.schema.number(name)
    shift = max(LEVEL_BITS, (prepared.levels - 1).bit_length())
    many = statistic.points * prepared.levels > MOST_PAIRS and statistic.points << shift < _ROOM
    if by is None and many and prepared.engine.embedded:
        return [_cell_rows(prepared, statistic, kind, shift, where)]
    shape = _cells(statistic, kind)
    result = prepared.engine.run(_query(prepared, shape, where, by))
    group, level, cell, kept = _places(result, prepared, shape, by)
    counts = integers(result["count"])[kept]
    order = np.lexsort((level, cell, group))
    group, level, cell, counts = group[order], level[order], cell[order], counts[order]
    found: list[CellCounts | CellRows] = []
    for place in range(by.count if by else 1):
        low, high = np.searchsorted(group, [place, place + 1])
        first = low + int(np.searchsorted(cell[low:high], 0))  # before it: those without a value
        absent = np.zeros(prepared.levels, np.int64)
        np.add.at(absent, level[low:first], counts[low:first])
        found.append(CellCounts(cell[first:high], level[first:high], counts[first:high], absent))
    return found


def _cell_rows(prepared: Prepared, statistic: Order, kind: Column, shift: int, where: Predicate | None) -> CellRows:
    whole_type = "INT" if statistic.points << shift < 1 << 31 else "BIGINT"
    cell = exp.Mul(this=cast(grid_cell(statistic, kind), whole_type), expression=whole(1 << shift))
    key = exp.Add(this=cell, expression=cast(column(prepared.level), whole_type))
    known = exp.LT(this=column(prepared.level), expression=whole(prepared.levels))
    tree = _from(prepared, [exp.alias_(key, "key")], [known, *([where.tree()] if where else [])])
    keys = prepared.engine.run(tree)["key"].combine_chunks().to_numpy()
    return CellRows(keys, shift, prepared.levels)


def check_asked(prepared: Prepared, statistic: Any, name: str | None) -> None:
    """Whatever would be refused about a statistic and a column: said before anybody is charged, from public facts."""
    check_room(statistic, prepared.rows)
    kind = None if name is None else prepared.schema.find(name)
    if statistic.summary not in _SHAPES:
        raise _not_of_a_table(statistic)
    if statistic.summary == "bins":
        _check_bins(statistic, kind)
    elif kind is not None or statistic.summary not in ("ones", "people"):
        _numbers(kind)


def check_room(statistic: Statistic, rows: int) -> None:
    """No sum of so many rows can pass 64 bits, whatever they hold."""
    largest = 1 if statistic.summary in ("ones", "people", "bins") else STEPS
    if rows * largest >= _ROOM:
        raise PlanError(
            "The table has too many rows for exact sums.",
            rule="Rows times the largest step of a row stay below 2^63.",
            suggest="a smaller rows_per_person, or the table in parts",
        )


# The shape of each summary ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Shape:
    """What a query computes: sums of whole numbers over the rows that meet `rows`, apart for each cell."""

    sums: tuple[exp.Expr, ...] = ()
    rows: exp.Expr | None = None
    cell: exp.Expr | None = None
    cells: int = 1
    categories: Keys | None = None
    distinct: str | None = None
    #: Whether the number of rows is a sum of its own.
    counts_rows: bool = False


def shape_of(statistic: Any, kind: Column | None) -> _Shape:
    """How a statistic's summary is computed from a column."""
    if statistic.summary not in _SHAPES:
        raise _not_of_a_table(statistic)
    return _SHAPES[statistic.summary](statistic, kind)


def _not_of_a_table(statistic: Statistic) -> PlanError:
    return PlanError(f"A {statistic.name} cannot be asked of a table.", suggest="count, sum, mean, median, histogram")


def _ones(kind: Column | None) -> _Shape:
    """Rows whose value is 1; without a column, all rows."""
    if kind is None:
        return _Shape()
    value = as_double(_numbers(kind))
    return _Shape(rows=both(present(kind), exp.EQ(this=value, expression=double(1.0))))


def _steps(statistic: Bounded, kind: Column | None) -> _Shape:
    """Rows that have a value, each adding whole numbers to sums."""
    kind = _numbers(kind)
    adds, value = statistic.adds, as_double(kind)
    sums = tuple([ROW_STEPS[name](statistic.bounds, value) for name in adds if name != "rows"])
    return _Shape(sums, present(kind), counts_rows="rows" in adds)


def _check_bins(statistic: Histogram, kind: Column | None) -> Keys | None:
    """The categories as keys of the column; None where bins are numbers."""
    if statistic.bins > MOST_BINS:
        raise PlanError(f"A histogram of {statistic.bins:,} bins.", rule=f"At most {MOST_BINS:,} on a table.")
    if statistic.edges is not None:
        _numbers(kind)
        return None
    if kind is None:
        raise PlanError("A histogram needs a column.", suggest='people.histogram("region", categories=[...])')
    return Keys((kind,), (statistic.bin_keys,), "category")


def _bins(statistic: Histogram, kind: Column | None) -> _Shape:
    keys = _check_bins(statistic, kind)
    if keys is not None:
        return _Shape(cell=keys.trees[0], cells=statistic.bins, categories=keys)
    kind = _numbers(kind)
    return _Shape(rows=present(kind), cell=bin_of(statistic, kind), cells=statistic.bins)


def _cells(statistic: Order, kind: Column | None) -> _Shape:
    return _Shape(cell=grid_cell(statistic, _numbers(kind)))


#: How each kind of summary is computed; statistics name theirs.
_SHAPES: dict[str, Callable[[Any, Column | None], _Shape]] = {
    "ones": lambda statistic, kind: _ones(kind),
    "people": lambda statistic, kind: _ones(kind),
    "steps": _steps,
    "bins": _bins,
    "cells": _cells,
}


def _numbers(kind: Column | None) -> Column:
    if kind is None:
        raise PlanError("This statistic needs a column.", suggest='people.mean("wage", bounds=(0, 100))')
    return Schema([kind]).number(kind.name)


# The query and its result -------------------------------------------------------------------------------------------


def _query(prepared: Prepared, shape: _Shape, where: Predicate | None, by: Keys | None) -> exp.Select:
    """SELECT keys, level, cell, COUNT, SUMs FROM prepared WHERE ... GROUP BY 1, 2, ..."""
    groups: list[exp.Expr] = by.trees if by else []
    groups.append(column(prepared.level))
    names = [f"key{place}" for place in range(len(groups) - 1)] + ["level"]
    if shape.cell is not None:
        groups.append(shape.cell)
        names.append("cell")
    counted = exp.Distinct(expressions=[column(shape.distinct)]) if shape.distinct else exp.Star()
    outputs = [exp.alias_(tree, name, copy=False) for tree, name in zip(groups, names, strict=True)]
    outputs.append(exp.alias_(exp.Count(this=counted, big_int=True), "count", copy=False))
    outputs += [
        exp.alias_(cast(exp.Sum(this=tree), "BIGINT"), f"sum{place}", copy=False)
        for place, tree in enumerate(shape.sums)
    ]
    conditions = [tree for tree in (shape.rows, where.tree() if where else None) if tree is not None]
    joined = [keys for keys in (by, shape.categories) if keys is not None]
    for keys in joined:
        conditions += keys.conditions()
    tree = _from(prepared, outputs, conditions)
    for keys in joined:
        tree = keys.join(tree) if prepared.engine.embedded else keys.compare(tree)
    return tree.group_by(*(exp.Literal.number(place + 1) for place in range(len(groups))), copy=False)


def _from(prepared: Prepared, outputs: list[exp.Expr], conditions: list[exp.Expr]) -> exp.Select:
    tree = exp.select(*outputs, copy=False).from_(table(prepared.name), copy=False)
    if prepared.only is not None:
        same = exp.EQ(this=column(prepared.person or ""), expression=column(KEPT))
        tree = tree.join(table(prepared.only), on=same, copy=False)
    return tree.where(both(*conditions), copy=False) if conditions else tree


def _places(
    result: pa.Table, prepared: Prepared, shape: _Shape, by: Keys | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Group, level and cell of the result's rows, and which rows have all three."""
    level = integers(result["level"], MISSING)
    group = np.zeros(len(level), np.int64)
    if by:
        group = by.groups([result[f"key{place}"] for place in range(len(by.columns))])
    kept = (level >= 0) & (level < prepared.levels) & (group >= 0)
    cell = np.zeros(len(level), np.int64)
    if shape.categories is not None:
        cell = shape.categories.groups([result["cell"]])
        kept &= cell >= 0
    elif shape.cell is not None:
        cell = integers(result["cell"])
        if shape.cells > 1 or shape.rows is not None:
            kept &= cell >= 0
    return group[kept], level[kept], cell[kept], kept


def _added(
    size: tuple[int, int, int],
    group: NDArray[np.int64],
    level: NDArray[np.int64],
    cell: NDArray[np.int64],
    numbers: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Put the rows of a result into place; a key that has two spellings (0.0 and -0.0) adds up."""
    sums = np.zeros(size, np.int64)
    np.add.at(sums, (group, level, cell), numbers)
    return sums

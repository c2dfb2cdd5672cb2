"""Summaries of the people of a table, as one query each: equal to those of `arrays.py` to the last unit.

A query is built as a tree and grouped by level; only its sums leave the engine, however many rows there are. Every
value passes CASE, which puts what is out of bounds on the bound, before FLOOR and CAST: no cast can fail, whatever the
table holds. Null and NaN are missing. The largest possible sum is checked against 2^63 before anything runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from epsilons.engines.base import Column, Engine, Schema
from epsilons.engines.trees import Predicate, bit, canonical, cast, column, double, literal, met, present, table, whole
from epsilons.errors import Argument, DataError, PlanError
from epsilons.summaries.arrays import STEPS
from epsilons.summaries.cells import LEVEL_BITS, CellCounts, CellRows, Integers, SingleRows
from epsilons.summaries.columns import NO_CELL, Keys, as_double, bin_of, grid_cell, integers, model_step, row_step
from epsilons.summaries.models import MAX_PEOPLE, MODEL_STEPS
from epsilons.summaries.words import find_words

if TYPE_CHECKING:
    from epsilons.statistics.base import Statistic
    from epsilons.statistics.choice import Top
    from epsilons.statistics.histogram import Histogram
    from epsilons.statistics.logistic import LogisticRegression
    from epsilons.statistics.order import Order
    from epsilons.statistics.regression import LinearRegression, Regression
    from epsilons.statistics.total import Bounded


#: More bins than this would make the query itself long.
MOST_BINS = 1_024
#: More pairs of grid point and level than this are quicker sorted than counted.
MOST_PAIRS = 1 << 22
#: The only column of a table of sampled people.
KEPT = "epsilons kept"
_CHOSEN = "epsilons chosen"
_ROOM = 1 << 63
#: Rows of a model whose sums are exact in doubles, with a bit to spare.
_PIECE = 1 << 20


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table ready to be asked: every row has a level, and no person has more rows than allowed.

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

    def select(
        self, outputs: list[exp.Expr], bits: list[exp.Expr], where: Predicate | None, lists: Sequence[Keys] = ()
    ) -> exp.Select:
        """SELECT outputs FROM the rows whose bits are 1, joined with the people kept and with lists of words.

        Rows are chosen before anything is joined: what decides on a row is computed for every row of the table.
        """
        source: exp.Expr = table(self.name)
        bits = bits if where is None else [*bits, where.tree()]
        if bits and (lists or self.only is not None):
            chosen = exp.select("*").from_(source, copy=False).where(met(*bits), copy=False)
            source, bits = chosen.subquery(_CHOSEN, copy=False), []
        tree = exp.select(*outputs, copy=False).from_(source, copy=False)
        if self.only is not None:
            same = exp.EQ(this=column(self.person or ""), expression=column(KEPT))
            tree = tree.join(table(self.only), on=same, copy=False)
        for keys in lists:
            tree = keys.join(tree)
        return tree.where(met(*bits), copy=False) if bits else tree


def tally(
    prepared: Prepared, statistic: Any, name: str | None, *, where: Predicate | None = None, by: Keys | None = None
) -> list[Integers]:
    """For each part of an additive statistic of the column `name` an array [group, level, cell] of exact sums."""
    kind = None if name is None else prepared.schema.find(name)
    if statistic.summary in MODELS:
        return [_products(prepared, statistic, kind, where)[None, :, :]]
    check_room(statistic, prepared.rows)
    asked = _summary(statistic, prepared.schema)(statistic, kind)
    result, *places = _run(prepared, asked, where, by)
    sums = np.zeros((1 + len(asked.sums), by.count if by else 1, prepared.levels, asked.cells), np.int64)
    for part, found in zip(sums, result.values(), strict=True):
        # A key that has two spellings (0.0 and -0.0) adds up.
        np.add.at(part, tuple(places), found)
    return [*sums[1:], *(sums[:1] if asked.counts_rows or not asked.sums else ())]


def cells(
    prepared: Prepared, statistic: Order, name: str, *, where: Predicate | None = None, by: Keys | None = None
) -> list[CellCounts | CellRows]:
    """The (grid point, level) histogram of the column `name`, one per group; nothing is sorted in the engine.

    Without groups the pairs come from an embedded engine one by one: it counts quickly only if it may look at the least
    and the largest of them first. More than `MOST_PAIRS` are sorted here, since most are alone; those of groups, too.
    """
    kind = prepared.schema.number(name)
    shift = max(LEVEL_BITS, (prepared.levels - 1).bit_length())
    many = statistic.points * prepared.levels * (by.count if by else 1) > MOST_PAIRS
    if (by is None or many) and statistic.points << shift < _ROOM and prepared.engine.embedded:
        width = 1 << shift if many else prepared.levels
        whole_type = "INT" if statistic.points * width < 1 << 31 else "BIGINT"
        point = exp.Mul(this=cast(grid_cell(statistic, kind), whole_type), expression=whole(width))
        outputs: dict[str, exp.Expr] = {
            "pair": exp.Add(this=point, expression=cast(column(prepared.level), whole_type))
        }
        outputs |= {f"key{place}": tree for place, tree in enumerate(by.trees(True) if by else [])}
        bits = [bit(exp.LT(this=column(prepared.level), expression=whole(prepared.levels)))]
        bits += by.bits(True) if by else []
        named = [exp.alias_(tree, name) for name, tree in outputs.items()]
        found = prepared.engine.fetch(prepared.select(named, bits, where, [by] if by else []))
        pairs = np.ma.getdata(found["pair"])
        if by:
            group = by.groups([found[f"key{place}"] for place in range(len(by.columns))])
            # numpy sorts narrow numbers in one pass.
            order = np.argsort(group.astype(np.int16) if by.count < 1 << 15 else group, kind="stable")
            edges = np.searchsorted(group, np.arange(by.count + 1), sorter=order)
            pairs = pairs[order]
            return [CellRows(pairs[start:stop], shift) for start, stop in pairwise(edges.tolist())]
        if many:
            return [CellRows(pairs, shift)]
        # Those without a value come first; as many places whatever the largest value is.
        counts = np.bincount(pairs + width, minlength=(statistic.points + 1) * width)
        used = np.flatnonzero(counts)
        group, level, cell, counts = np.zeros_like(used), used % width, used // width - 1, counts[used]
    else:
        result, group, level, cell = _run(prepared, grid_cells(statistic, kind), where, by)
        order = np.lexsort((level, cell, group))
        group, level, cell, counts = group[order], level[order], cell[order], result["count"][order]
    listed: list[CellCounts | CellRows] = []
    for place in range(by.count if by else 1):
        low, high = np.searchsorted(group, [place, place + 1])
        first = low + int(np.searchsorted(cell[low:high], 0))  # before it: those without a value
        absent = np.zeros(prepared.levels, np.int64)
        np.add.at(absent, level[low:first], counts[low:first])
        listed.append(CellCounts(cell[first:high], level[first:high], counts[first:high], absent))
    return listed


def single_rows(prepared: Prepared, name: str, *, where: Predicate | None = None, by: Keys | None = None) -> SingleRows:
    """Every row that counts and has a value, with whose it is, its level and its group."""
    kind, joins = prepared.schema.number(name), prepared.engine.embedded
    outputs: dict[str, exp.Expr] = {"value": as_double(kind), "level": cast(column(prepared.level), "BIGINT")}
    if prepared.person is not None:
        outputs["person"] = cast(column(prepared.person), "BIGINT")
    outputs |= {f"key{place}": tree for place, tree in enumerate(by.trees(joins) if by else [])}
    named = [exp.alias_(tree, name) for name, tree in outputs.items()]
    found = prepared.engine.fetch(
        prepared.select(named, by.bits(joins) if by else [], where, [by] if by and joins else [])
    )
    level = integers(found["level"], NO_CELL)
    values = np.ma.filled(np.ma.asarray(found["value"], np.float64), np.nan)
    group = by.groups([found[f"key{place}"] for place in range(len(by.columns))]) if by else np.zeros_like(level)
    person = integers(found["person"]) if "person" in found else np.arange(len(level))
    kept = (level >= 0) & (level < prepared.levels) & (group >= 0) & ~np.isnan(values)
    return SingleRows(person[kept], level[kept], group[kept], values[kept])


def check_asked(prepared: Prepared, statistic: Any, name: str | None) -> None:
    """Whatever would be refused about a statistic and a column: said before anybody is charged, from public facts."""
    check_room(statistic, prepared.rows)
    kind = None if name is None else prepared.schema.find(name)
    if statistic.summary == "values":  # looked at one by one
        _numbers(kind)
        return
    _summary(statistic, prepared.schema)
    if statistic.summary in ("bins", "totals"):
        _check_bins(statistic, kind)
    elif kind is not None or statistic.summary not in ("ones", "people"):
        _numbers(kind)


def check_room(statistic: Statistic, rows: int) -> None:
    """No sum of so many rows can pass 64 bits, whatever they hold."""
    counted = statistic.summary in ("ones", "people", "signs", "bins")
    largest = 1 if counted else STEPS if statistic.scope is None else 2 * STEPS  # a pair of sums has twice the steps
    if rows * largest >= _ROOM:
        rule = "Rows times the largest step of a row stay below 2^63."
        hint = ("a smaller ", Argument("rows_per_person"), ", or the table in parts")
        raise PlanError("The table has too many rows for exact sums.", rule=rule, suggest=hint)


@dataclass(frozen=True, eq=False)
class Aggregate:
    """What a query computes: sums of whole numbers over the rows whose `bits` are 1, apart for each cell.

    A row that has no value adds null to each sum, and is not counted beside them.
    """

    sums: tuple[exp.Expr, ...] = ()
    bits: tuple[exp.Expr, ...] = ()
    cell: exp.Expr | None = None
    cells: int = 1
    categories: Keys | None = None
    #: Whether people are counted, not rows; whether the number of rows is a sum of its own; whether rows without a cell
    #: are counted as well.
    people: bool = False
    counts_rows: bool = False
    with_missing: bool = False


def ones(statistic: Any, kind: Column | None, people: bool = False) -> Aggregate:
    """Rows whose value is 1, or people with such a row; without a column, all of them."""
    if kind is None:
        return Aggregate(people=people)
    return Aggregate(bits=(bit(exp.EQ(this=as_double(_numbers(kind)), expression=double(1.0))),), people=people)


def signs(statistic: Any, kind: Column | None) -> Aggregate:
    """Rows whose value is 1, and rows that have another."""
    value = as_double(_numbers(kind))
    one, there = exp.EQ(this=value, expression=double(1.0)), exp.LTE(this=value.copy(), expression=double(math.inf))

    def case(if_one: int) -> exp.Expr:
        tests = ((one, if_one), (there, 1 - if_one))
        return exp.Case(ifs=[exp.If(this=test.copy(), true=whole(adds)) for test, adds in tests])

    return Aggregate((case(1), case(0)))


def steps(statistic: Bounded, kind: Column | None) -> Aggregate:
    """Rows that have a value, each adding whole numbers to sums."""
    value, names = as_double(_numbers(kind)), statistic.summed
    sums = tuple([row_step(name, statistic.bounds, value) for name in names if name != "rows"])
    return Aggregate(sums, counts_rows="rows" in names)


def bins(statistic: Histogram, kind: Column | None) -> Aggregate:
    """Rows per bin."""
    if (keys := _check_bins(statistic, kind)) is not None:
        return Aggregate(cells=statistic.bins, categories=keys)
    return Aggregate(cell=bin_of(statistic, _numbers(kind)), cells=statistic.bins)


def totals(added: Column, statistic: Top, kind: Column | None) -> Aggregate:
    """What rows of each option add up to in another column; a row without a value there adds nothing."""
    assert statistic.bounds is not None
    step = row_step("sum", statistic.bounds, as_double(added))
    return Aggregate((step,), cells=statistic.bins, categories=_check_bins(statistic, kind))


def grid_cells(statistic: Order, kind: Column | None) -> Aggregate:
    """Rows per grid point."""
    return Aggregate(cell=grid_cell(statistic, _numbers(kind)), with_missing=True)


def products(statistic: LinearRegression, kind: Column) -> tuple[exp.Expr, exp.Expr]:
    """(the target's step, 1 for a row that has a target), where it is a number."""
    if not kind.numeric():
        raise DataError(f"Column {kind.name!r} holds {kind.family}, not numbers.", suggest="logistic_regression")
    return model_step(kind, statistic.target_bounds), present(kind)


def class_products(statistic: LogisticRegression, kind: Column) -> tuple[exp.Expr, exp.Expr]:
    """(the target's step, 1 for a row that has a target), where it is one of two classes."""
    return _is_label(kind, statistic.classes[1]), _has_label(kind, statistic.classes)


def _is_label(kind: Column, label: Any) -> exp.Expr:
    """The highest step for rows that have a label, the lowest for others."""
    same = exp.If(this=exp.EQ(this=column(kind.name), expression=_literal(label, kind)), true=double(MODEL_STEPS))
    return exp.Case(ifs=[same], default=double(-MODEL_STEPS))


def _has_label(kind: Column, labels: Sequence[Any]) -> exp.Expr:
    """1 for a row that has one of the labels."""
    return bit(exp.In(this=column(kind.name), expressions=[_literal(label, kind) for label in labels]))


def _literal(label: Any, kind: Column) -> exp.Expr:
    """A label as the column's type writes it: 1 is 1.0 in a column of doubles, and 100 hundredths in one of cents."""
    known = canonical(label, kind)
    assert known is not None  # the question was refused otherwise
    return literal(known, kind)


Summary = Callable[[Any, Column | None], Aggregate]
SUMMARIES: dict[str, Summary] = {"ones": ones, "people": partial(ones, people=True)}
SUMMARIES |= {"signs": signs, "bins": bins, "steps": steps, "cells": grid_cells}
Target = Callable[[Any, Column], tuple[exp.Expr, exp.Expr]]
MODELS: dict[str, Target] = {"products": products, "class_products": class_products}


def _summary(statistic: Any, schema: Schema) -> Summary:
    if statistic.summary == "totals":
        return partial(totals, schema.number(statistic.total))
    if statistic.summary not in SUMMARIES:
        raise PlanError(f"A {statistic.name} cannot be asked of a table.", suggest="arrays, or a statistic with bounds")
    return SUMMARIES[statistic.summary]


def _check_bins(statistic: Histogram, kind: Column | None) -> Keys | None:
    """The categories as keys of the column; None where bins are numbers."""
    if statistic.bins > MOST_BINS:
        raise PlanError(f"{statistic.bins:,} bins are too many.", rule=f"At most {MOST_BINS:,} on a table.")
    if statistic.edges is not None:
        _numbers(kind)
        return None
    if kind is None:
        raise PlanError(f"A {statistic.name} needs a column.", suggest="one that holds the categories")
    return Keys((kind,), (statistic.asked_spans or statistic.bin_keys,), "option" if statistic.labels else "category")


def _numbers(kind: Column | None) -> Column:
    if kind is None:
        raise PlanError("This statistic needs a column.", suggest="one that holds numbers")
    return Schema([kind]).number(kind.name)


def _run(
    prepared: Prepared, asked: Aggregate, where: Predicate | None, by: Keys | None
) -> tuple[dict[str, Integers], Integers, Integers, Integers]:
    """(counts and sums, group, level, cell) of combinations that have rows: SELECT keys, level, cell, SUMs GROUP BY."""
    joins = prepared.engine.embedded
    lists = [keys for keys in (by, asked.categories) if keys is not None]
    bits = [*asked.bits, *(tree for keys in lists for tree in keys.bits(joins))]
    trees, level_of = by.trees(joins) if by else [], column(prepared.level)
    groups = {**{f"key{place}": tree for place, tree in enumerate(trees)}, "level": level_of}
    if (place_of := asked.categories.trees(joins)[0] if asked.categories else asked.cell) is not None:
        groups["cell"] = place_of
    counted: exp.Expr = asked.sums[0].copy() if asked.sums else exp.Star()
    if asked.people:
        counted = exp.Distinct(expressions=[column(prepared.person or "")])
    numbers: dict[str, exp.Expr] = {"count": exp.Count(this=counted, big_int=True)}
    numbers |= {f"sum{place}": cast(exp.Sum(this=tree), "BIGINT") for place, tree in enumerate(asked.sums)}
    outputs = [exp.alias_(tree, name, copy=False) for name, tree in (groups | numbers).items()]
    tree = prepared.select(outputs, bits, where, lists if joins else ())
    tree = tree.group_by(*(exp.Literal.number(place + 1) for place in range(len(groups))), copy=False)
    result = prepared.engine.fetch(tree)
    held = [result[f"key{place}"] for place in range(len(by.columns))] if by else []
    found = {name: integers(result[name]) for name in numbers}
    level = integers(result["level"], NO_CELL)
    group, cell = np.zeros((2, len(level)), np.int64)
    if by:
        group = by.groups(held)
    if asked.categories is not None:
        cell = asked.categories.groups([result["cell"]])
    elif asked.cell is not None:
        cell = integers(result["cell"])
    # Rows without a cell count only where they are asked for, as those of a grid are.
    kept = (level >= 0) & (level < prepared.levels) & (group >= 0) & ((cell >= 0) | asked.with_missing)
    for name in found:
        found[name] = found[name][kept]
    return found, group[kept], level[kept], cell[kept]


def _products(prepared: Prepared, statistic: Regression, kind: Column | None, where: Predicate | None) -> Integers:
    """[level, cell]: the sums of a model's cells, in their order; a row that lacks a feature or target adds nothing.

    Every row's features and target go to their grids inside, products of them are added up outside. Steps are whole
    numbers up to 2^16, kept in doubles, since engines add those several times as fast as wide integers. A product is at
    most 2^32 and 2^20 rows are added at a time, so every partial sum is a whole number below 2^53: exact in whatever
    order it is added. The sums of these pieces are added up here, in integers.
    """
    if prepared.rows > MAX_PEOPLE:
        raise PlanError("The table has too many rows for a model.", rule=f"At most {MAX_PEOPLE:,}.")
    assert kind is not None
    target, has_target = MODELS[statistic.summary](statistic, kind)
    schema, placed, spread = prepared.schema, [], find_words(statistic.words)
    there = [_has_label(schema.find(name), words) for name, words in statistic.words]
    for name, pair in zip(statistic.names, statistic.bounds, strict=True):
        if name in spread:
            text, word = spread[name]
            placed.append(_is_label(schema.find(text), word))
        else:
            placed.append(model_step(schema.number(name), pair))
            there.append(present(schema.number(name)))
    piece = whole(0)
    if prepared.rows > _PIECE:  # so many people in each, with all their rows
        number, people = cast(column(prepared.person or ""), "DOUBLE"), double(_PIECE // statistic.rows)
        piece = cast(exp.Floor(this=exp.Div(this=number, expression=people)), "INT")
    outputs = {"level": column(prepared.level), "piece": piece}
    outputs |= {f"z{place}": tree for place, tree in enumerate([*placed, target], 1)}
    named = [exp.alias_(tree, name) for name, tree in outputs.items()]
    inner = prepared.select(named, [*there, has_target], where)

    def add(j: int, k: int) -> exp.Expr:
        """z_0 is the constant `MODEL_STEPS`: a product with it is added up without it, and multiplied afterwards."""
        factors = [exp.column(f"z{place}") for place in (j, k) if place]
        if not factors:
            return exp.Count(this=exp.Star(), big_int=True)
        return exp.Sum(this=exp.Mul(this=factors[0], expression=factors[1]) if j else factors[0])

    sums = [exp.alias_(add(j, k), f"sum{place}") for place, (_, j, k) in enumerate(statistic.terms)]
    outer = exp.select(exp.column("level"), exp.column("piece"), *sums).from_(inner.subquery("steps"))
    result = prepared.engine.fetch(outer.group_by(exp.Literal.number(1), exp.Literal.number(2)))
    level, found = integers(result["level"]), np.zeros((prepared.levels, len(statistic.terms)), np.int64)
    inside = (level >= 0) & (level < prepared.levels)
    for place, (factor, j, k) in enumerate(statistic.terms):
        constants = MODEL_STEPS ** ((j == 0) + (k == 0))
        np.add.at(found[:, place], level[inside], integers(result[f"sum{place}"])[inside] * factor * constants)
    return statistic.centre_cells(found)

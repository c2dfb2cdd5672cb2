"""Summaries of features and a target: sums of products of whole numbers, at the speed of a matrix product.

They join `arrays.SUMMARIES` when this file is imported, as the file of their statistics does.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.engines.readings import find_places
from epsilons.preferences import Levels, Roster
from epsilons.summaries import People
from epsilons.summaries.arrays import SUMMARIES, ArrayPeople, Codes, Floats, Pair, Rows, There, as_doubles, as_numbers
from epsilons.summaries.cells import Integers

if TYPE_CHECKING:
    from epsilons.statistics.regression import LinearRegression, LogisticRegression, Regression

Place = Callable[[NDArray[Any]], Floats]

#: Steps of the grid of models from the centre of the bounds to a bound.
MODEL_STEPS = 1 << 16
#: The sums of a model of this many people fit into 64 bits: each adds at most 4 * 2^32.
MAX_PEOPLE = 1 << 29
#: People whose products are exact in doubles: 2^16 of at most 2^32 add up to 2^48, far below 2^53.
_BLOCK = 1 << 16
#: Rows that stay in the processor's cache while they go to the grid.
_SLICE = 1 << 13
_FEW_LEVELS = 8
#: A product of no more multiplications is made by one thread: two wait for each other longer than they gain, and many
#: times as long on a busy machine. Fewer rows than the least are not worth a product of their own.
_ALONE, _LEAST = 1 << 18, 1 << 8
#: Steps of a person of neither class, of the first, of the second; nobody is of both.
_OF_CLASS = np.array([np.nan, -MODEL_STEPS, MODEL_STEPS, np.nan])


def products(statistic: LinearRegression, rows: Rows, codes: Codes, levels: int, there: There = None) -> list[Integers]:
    """Sums of the products of two features, or of a feature and a target that is a number."""
    scale, shift = model_scale((statistic.target_bounds,))

    def place(aim: NDArray[Any]) -> Floats:
        with np.errstate(all="ignore"):
            return np.clip(np.floor(as_doubles(as_numbers(aim)) * scale + shift), -MODEL_STEPS, MODEL_STEPS)

    return _products(statistic, rows, codes, levels, place)


def class_products(
    statistic: LogisticRegression, rows: Rows, codes: Codes, levels: int, there: There = None
) -> list[Integers]:
    """Sums of the products of two features, or of a feature and a target that is one of two classes."""

    def place(aim: NDArray[Any]) -> Floats:
        first, second = (_equal(aim, label) for label in statistic.classes)
        # By a table of four entries, since picking by a mask takes five times as long.
        return cast(Floats, _OF_CLASS[first.view(np.uint8) + 2 * second.view(np.uint8)])

    return _products(statistic, rows, codes, levels, place)


SUMMARIES |= {"products": products, "class_products": class_products}


def merge_levels(people: People, weights: tuple[int, ...]) -> tuple[People, tuple[int, ...]]:
    """(people, weights) with levels of one weight made one: they add up to the same, and every level costs products.

    Only where people's rows are at hand; an engine groups by the level that stands in the table.
    """
    distinct = tuple(dict.fromkeys(weights))
    if not isinstance(people, ArrayPeople) or len(distinct) == len(weights):
        return people, weights
    places, known = [distinct.index(weight) for weight in weights], people.levels
    sizes = [sum(n for n, place in zip(known.sizes, places, strict=True) if place == k) for k in range(len(distinct))]
    grants = tuple(known.grants[places.index(k)] for k in range(len(distinct)))
    levels = Levels(grants, tuple(sizes), left_out=known.left_out)
    return ArrayPeople(people.values, Roster.of(levels, np.array(places, np.uint8)[people.roster.codes])), distinct


def model_scale(bounds: tuple[Pair, ...]) -> tuple[Floats, Floats]:
    """(scale, shift) of each column: floor(scale x + shift), cut to the grid, is floor(2^16 (x - c)/h + 1/2)."""
    scale = np.array([MODEL_STEPS / (high / 2 - low / 2) for low, high in bounds])
    return scale, 0.5 - np.array([low / 2 + high / 2 for low, high in bounds]) * scale


def _equal(target: NDArray[Any], label: Any) -> NDArray[np.bool_]:
    """Who has a label. Large numbers one by one, since numpy compares whole ones with floats after rounding."""
    if target.dtype.kind not in "biuf" or isinstance(label, str) or abs(label) >= 1 << 53:
        return np.equal(find_places(target, (label,)), 0)
    with np.errstate(all="ignore"):
        return cast(NDArray[np.bool_], np.ma.filled(target == label, False))


def _products(statistic: Regression, rows: Rows, codes: Codes, levels: int, place: Place) -> list[Integers]:
    statistic.check_rows(rows.features.shape[1], len(rows))
    features = np.ascontiguousarray(as_doubles(rows.features))
    sums = product_sums(features, rows.target, statistic.bounds, place, codes, levels)
    return [statistic.centre_cells(np.stack([factor * sums[:, k, j] for factor, j, k in statistic.terms], axis=1))]


def product_sums(
    features: Floats, target: NDArray[Any], bounds: tuple[Pair, ...], place: Place, codes: Codes, levels: int
) -> Integers:
    """For each level the matrix Z'Z of Z = (`MODEL_STEPS`, features, target) in steps, below and on the diagonal.

    `bounds` say where the features lie, `place` puts targets on their grid. A person who lacks a feature or the target
    adds nothing. Entries are whole numbers of magnitude at most 2^16, so doubles hold the sums of a block exactly, in
    whatever order a matrix product adds. Blocks are added in 64-bit integers.
    """
    starts = range(0, len(target), _BLOCK)
    threads = max(1, min(len(starts), _count_processors()))

    def add_up(some: range) -> Integers:
        """Every so many-th block, by one thread."""
        total = np.zeros((levels, features.shape[1] + 2, features.shape[1] + 2), np.int64)
        slices = _Slices(bounds)
        with np.errstate(all="ignore"):
            for start in some:
                block = slice(start, start + _BLOCK)
                total += slices.multiply(features[block], place(target[block]), codes[block], levels).astype(np.int64)
        return total

    if threads == 1:
        return add_up(starts)
    with ThreadPoolExecutor(threads) as pool:
        return cast(Integers, sum(pool.map(add_up, (starts[which::threads] for which in range(threads)))))


def _count_processors() -> int:
    """Those that this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Slices:
    """Some rows at a time, in memory of one's own that stays in the processor's cache."""

    def __init__(self, bounds: tuple[Pair, ...]) -> None:
        # Rows of one slice, sorted by level, and beside them 1 and target, one row each.
        self._rows, self._sides = np.empty((_SLICE, len(bounds))), np.empty((2, _SLICE))
        # Rows go to the grid laid end to end.
        self._scale, self._shift = (np.tile(each, _SLICE) for each in model_scale(bounds))

    def multiply(self, block: Floats, aims: Floats, codes: Codes, levels: int) -> Floats:
        """The sums of a block, level by level."""
        sums = np.zeros((levels, block.shape[1] + 2, block.shape[1] + 2))
        # Few levels have enough people in every slice; many are sorted over the whole block, further apart in memory.
        sorted_at_once = _SLICE if levels <= _FEW_LEVELS else _BLOCK
        for start in range(0, len(block), sorted_at_once):
            here = slice(start, start + sorted_at_once)
            rows, aim = block[here], aims[here]
            edges, order = [0, len(rows)], None
            if levels > 1:
                order, edges = _sort_by_level(codes[here], levels)
                aim = aim[order]
            for first in range(0, len(rows), _SLICE):
                x, side = self._put_on_grid(rows, aim, order, first)
                _add_by_level(sums, x, side, edges, first)
        return sums

    def _put_on_grid(
        self, rows: Floats, aims: Floats, order: NDArray[np.intp] | None, first: int
    ) -> tuple[Floats, Floats]:
        side = self._sides[:, : len(rows) - first]
        x = self._rows[: side.shape[1]]
        if order is None:
            some = rows[first : first + _SLICE]
        else:
            some = np.take(rows, order[first : first + _SLICE], axis=0, out=x, mode="clip")
        flat = x.reshape(-1)
        np.multiply(some.reshape(-1), self._scale[: len(flat)], out=flat)
        flat += self._shift[: len(flat)]
        np.clip(np.floor(flat, out=flat), -MODEL_STEPS, MODEL_STEPS, out=flat)
        side[0], side[1] = MODEL_STEPS, aims[first : first + _SLICE]
        # Rows with anything missing become nothing; the same steps are taken whether or not there are any.
        for absent in (np.flatnonzero(np.isnan(flat)) // x.shape[1], np.flatnonzero(np.isnan(side[1]))):
            x[absent] = 0.0
            side[:, absent] = 0.0
        return x, side


def _sort_by_level(codes: Codes, levels: int) -> tuple[NDArray[np.intp], list[int]]:
    """Everyone's place, level by level, and where each level begins and ends."""
    if levels > _FEW_LEVELS:
        order = np.argsort(codes, kind="stable")
        return order, np.searchsorted(codes[order], np.arange(levels + 1)).tolist()
    groups = [np.flatnonzero(codes == level) for level in range(levels)]
    return np.concatenate(groups), [0, *itertools.accumulate(map(len, groups))]


def _add_by_level(sums: Floats, x: Floats, side: Floats, edges: list[int], first: int) -> None:
    most = max(_ALONE // x.shape[1] ** 2, _LEAST)
    for into, (low, high) in zip(sums, itertools.pairwise(edges), strict=True):
        stop = min(high - first, len(x))
        for begin in range(max(low - first, 0), stop, most):
            end = min(begin + most, stop)
            part, edge = x[begin:end], side[:, begin:end]
            # Without its last column: two different operands are multiplied faster than a matrix with itself.
            into[1:-1, 1:-2] += part.T @ part[:, :-1]
            into[-2, -2] += part[:, -1] @ part[:, -1]
            sides = edge @ part
            into[1:-1, 0] += sides[0]
            into[-1, 1:-1] += sides[1]
            into[0, 0] += edge[0] @ edge[0]
            into[-1, 0] += edge[1] @ edge[0]
            into[-1, -1] += edge[1] @ edge[1]

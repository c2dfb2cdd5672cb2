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
from epsilons.preferences import Levels, Roster, count_codes
from epsilons.summaries import People
from epsilons.summaries.arrays import SUMMARIES, ArrayPeople, Codes, Floats, Pair, Rows, There, as_doubles, as_numbers
from epsilons.summaries.cells import Integers

if TYPE_CHECKING:
    from epsilons.statistics.logistic import LogisticRegression
    from epsilons.statistics.regression import LinearRegression, Regression

#: (scale, shift) of columns: floor(scale x + shift), cut to the grid, is a number's step.
Grid = tuple[Floats, Floats]
Read = Callable[[NDArray[Any]], Floats]

#: Steps of the grid of models from the centre of the bounds to a bound.
MODEL_STEPS = 1 << 16
#: The sums of a model of this many people fit into 64 bits: each adds at most 4 * 2^32.
MAX_PEOPLE = 1 << 29
#: Numbers that go to the grid at a time. Threads wait for each other between two passes of numpy, so passes are long;
#: they stay in the processor's last cache.
_SLICE = 1 << 18
#: Rows whose scales lie side by side: numpy takes twice as long with those of one row, again and again.
_ROWS = 64
#: More are read at a time, the more levels there are (`_SORTED` for each), and at most a few megabytes of no more than
#: 2^18 people, whose products of at most 2^32 add up to 2^50. Doubles are exact below 2^53.
_SORTED, _BLOCK = 1 << 14, 1 << 20
#: A product has so many multiplications, or as many as so few rows need. It is then made by one thread: two wait for
#: each other longer than they gain, and many times as long on a busy machine.
_PRODUCT, _LEAST = 1 << 16, 1 << 8
#: The grid of a target that comes in steps.
AS_STEPS: Grid = (np.ones(1), np.zeros(1))
#: Steps of a person of neither class, of the first, of the second; nobody is of both.
_OF_CLASS = np.array([np.nan, -MODEL_STEPS, MODEL_STEPS, np.nan])


def products(statistic: LinearRegression, rows: Rows, codes: Codes, levels: int, there: There = None) -> list[Integers]:
    """Sums of the products of two features, or of a feature and a target that is a number."""

    def read(aim: NDArray[Any]) -> Floats:
        return as_doubles(as_numbers(aim))

    return _products(statistic, rows, codes, levels, read, model_scale((statistic.target_bounds,)))


def class_products(
    statistic: LogisticRegression, rows: Rows, codes: Codes, levels: int, there: There = None
) -> list[Integers]:
    """Sums of the products of two features, or of a feature and a target that is one of two classes."""

    def read(aim: NDArray[Any]) -> Floats:
        first, second = (_equal(aim, label) for label in statistic.classes)
        # By a table of four entries, since picking by a mask takes five times as long.
        return _OF_CLASS.take(first.view(np.uint8) + 2 * second.view(np.uint8), mode="clip")

    return _products(statistic, rows, codes, levels, read, AS_STEPS)


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
    # As text, since numpy makes places of eight bytes of codes before it looks them up.
    table = bytes(places).ljust(1 << 8, b"\0")
    codes = np.frombuffer(people.roster.codes.tobytes().translate(table), np.uint8)
    return ArrayPeople(people.values, Roster.of(levels, codes)), distinct


def model_scale(bounds: tuple[Pair, ...]) -> Grid:
    """(scale, shift) of each column: floor(scale x + shift), cut to the grid, is floor(2^16 (x - c)/h + 1/2)."""
    scale = np.array([MODEL_STEPS / (high / 2 - low / 2) for low, high in bounds])
    return scale, 0.5 - np.array([low / 2 + high / 2 for low, high in bounds]) * scale


def _equal(target: NDArray[Any], label: Any) -> NDArray[np.bool_]:
    """Who has a label. Large numbers one by one, since numpy compares whole ones with floats after rounding."""
    if target.dtype.kind not in "biuf" or isinstance(label, str) or abs(label) >= 1 << 53:
        return np.equal(find_places(target, (label,)), 0)
    with np.errstate(all="ignore"):
        return cast(NDArray[np.bool_], np.ma.filled(target == label, False))


def _products(statistic: Regression, rows: Rows, codes: Codes, levels: int, read: Read, aims: Grid) -> list[Integers]:
    statistic.check_rows(rows.features.shape[1], len(rows))
    sums = product_sums(as_doubles(rows.features), rows.target, statistic.bounds, read, aims, codes, levels)
    return [statistic.centre_cells(np.stack([factor * sums[:, k, j] for factor, j, k in statistic.terms], axis=1))]


def product_sums(
    features: Floats,
    target: NDArray[Any],
    bounds: tuple[Pair, ...],
    read: Read,
    aims: Grid,
    codes: Codes,
    levels: int,
) -> Integers:
    """For each level the matrix Z'Z of Z = (`MODEL_STEPS`, features, target) in steps.

    `bounds` say where the features lie; `read` makes numbers of targets, whose grid `aims` is. A person who lacks a
    feature or the target adds nothing. Entries are whole numbers of magnitude at most 2^16, so doubles hold the sums of
    a block exactly, in whatever order a matrix product adds. Blocks are added in 64-bit integers.
    """
    wide = features.shape[1] + 2
    # The more levels people are sorted by, the more of them stand side by side: a product is of one level's.
    people = max(1, min(_BLOCK, 2 * _SLICE + levels * _SORTED) // (wide + 1))
    starts = range(0, len(target), people)
    threads = max(1, min(len(starts), _count_processors()))

    def add_up(some: range) -> Integers:
        """Every so many-th block, by one thread."""
        total, block = np.zeros((levels, wide, wide), np.int64), _Block(people, bounds, aims, levels)
        with np.errstate(all="ignore"):
            for start in some:
                here = slice(start, start + people)
                sums = block.multiply(features[here], read(target[here]), codes[here])
                total += sums[:, :wide].astype(np.int64)
        return total

    # This thread has a share, too: if it only waited, others would begin on one processor, since this one is not idle.
    with ThreadPoolExecutor(max(1, threads - 1)) as pool:
        others = [pool.submit(add_up, starts[which::threads]) for which in range(1, threads)]
        return sum((other.result() for other in others), add_up(starts[::threads]))


def _count_processors() -> int:
    """Those that this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Block:
    """Z of some people at a time, in memory of its own."""

    def __init__(self, people: int, bounds: tuple[Pair, ...], aims: Grid, levels: int) -> None:
        features, self._levels = len(bounds), levels
        self._wide = features + 2
        # The last column holds zeros. It keeps numpy from taking Z'Z for the product of a matrix with itself: that
        # routine of the linear algebra has half the work, and takes twice as long for so few columns.
        width = self._wide + 1
        self._slice, self._product = max(1, min(people, _SLICE // width)), max(_PRODUCT // width**2, _LEAST)
        self._z = _in_lines(self._slice if levels == 1 else people, width)
        # A row's features are copied as one thing: number by number it takes twice as long.
        self._features = self._z[:, 1 : features + 1].view(f"V{8 * features}")[:, 0]
        self._target = self._z[:, features + 1]
        # Rows go to the grid laid end to end, beside the scales of some of them. The first column is a constant.
        scale, shift = np.zeros((_ROWS, width)), np.zeros((_ROWS, width))
        shift[:, 0] = MODEL_STEPS
        for columns, features_have, aims_have in zip((scale, shift), model_scale(bounds), aims, strict=True):
            columns[:, 1 : features + 2] = *features_have, *aims_have
        self._scale, self._shift = scale.reshape(-1), shift.reshape(-1)
        self._missing = np.empty(self._slice * width, np.bool_)

    def multiply(self, features: Floats, aims: Floats, codes: Codes) -> Floats:
        """The sums of a block, level by level.

        Rows are copied so that those of one level stand side by side. Where most are of one level they are copied as
        they stand, which takes less time: the level then has what the others leave of everyone's.
        """
        rows, people = np.ascontiguousarray(features).view(self._features.dtype)[:, 0], len(codes)
        sizes = count_codes(codes, self._levels) if self._levels > 1 else np.array([people])
        most, order = int(sizes.argmax()), None
        if 3 * sizes[most] <= 2 * people:
            order = np.argsort(codes, kind="stable")
            places = np.empty_like(order)
            places[order] = np.arange(people)
            # To read in order and to write anywhere in the cache takes less time than the other way around.
            self._features[places], self._target[places] = rows, aims
        everyone = np.zeros((self._wide + 1, self._wide))
        for start in range(0, people, self._slice):
            here = there = slice(start, min(start + self._slice, people))
            if self._levels == 1:  # nobody's row is needed again: the room of the first ones stays in the cache
                there = slice(0, here.stop - start)
            if order is None:
                self._features[there], self._target[there] = rows[here], aims[here]
            self._put_on_grid(self._z[there])
            if order is None:
                everyone += self._add_up(self._z[there])
        if self._levels == 1:
            return everyone[None]
        z = self._z
        if order is None:
            others = np.flatnonzero(codes != most)
            z, sizes[most] = z.take(others[np.argsort(codes[others], kind="stable")], axis=0), 0
        edges = itertools.pairwise([0, *itertools.accumulate(sizes.tolist())])
        sums = np.stack([self._add_up(z[low:high]) for low, high in edges])
        if order is None:
            sums[most] = everyone - sums.sum(axis=0)
        return sums

    def _put_on_grid(self, z: Floats) -> None:
        flat, tile = z.reshape(-1), self._scale.size
        whole = flat.size - flat.size % tile
        for rows in (flat[:whole].reshape(-1, tile), flat[None, whole:]):
            np.multiply(rows, self._scale[: rows.shape[1]], out=rows)
            np.add(rows, self._shift[: rows.shape[1]], out=rows)
        np.floor(flat, out=flat).clip(-MODEL_STEPS, MODEL_STEPS, out=flat)
        # Rows with anything missing become nothing; the same steps are taken whether or not there are any.
        z[np.flatnonzero(np.isnan(flat, out=self._missing[: len(flat)])) // z.shape[1]] = 0.0

    def _add_up(self, z: Floats) -> Floats:
        """The products of some rows: where they are enough for several, of so many at a time, and of the rest."""
        whole = len(z) - len(z) % self._product if len(z) >= 2 * self._product else 0
        rest, stack = z[whole:], z[:whole].reshape(-1, self._product, z.shape[1])
        sums = rest.T @ rest[:, : self._wide]
        if whole:
            sums += np.matmul(stack.transpose(0, 2, 1), stack[:, :, : self._wide]).sum(axis=0)
        return sums


def _in_lines(rows: int, width: int) -> Floats:
    """Zeros that begin where a line of the cache of 64 bytes does: a pass over them takes a sixth less."""
    room = np.zeros(rows * width + 8)
    start = -room.ctypes.data % 64 // 8
    return room[start : start + rows * width].reshape(rows, width)

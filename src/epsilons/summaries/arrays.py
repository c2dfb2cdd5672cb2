"""Summaries of people whose values stand in arrays. `sql.py` has the same names for the people of a table.

The arithmetic is in doubles that hold whole numbers, exact in whatever order they are added. People are handled a
quarter of a million at a time, so that temporary arrays stay small beside the input.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import DataError, PlanError
from epsilons.noise.coins import keep_people
from epsilons.noise.entropy import ALWAYS, Entropy
from epsilons.preferences import Levels, Roster, count_codes
from epsilons.summaries import People
from epsilons.summaries.cells import LEVEL_BITS, SortedCells
from epsilons.summaries.values import Rows, as_doubles, as_numbers, check_length, check_values

if TYPE_CHECKING:
    from epsilons.statistics.additive import Additive
    from epsilons.statistics.count import Count
    from epsilons.statistics.histogram import Histogram
    from epsilons.statistics.order import Order
    from epsilons.statistics.regression import LinearRegression, LogisticRegression, Regression
    from epsilons.statistics.total import Bounded

Codes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Pair = tuple[float, float]

#: Steps of the grid of sums, and of the grid of models, from the centre of the bounds to a bound.
STEPS, MODEL_STEPS = 1 << 30, 1 << 16
CHUNK = 1 << 18
#: Exact distributions of samples are for at most so many people: there are 2^n samples.
_FEW = 12
#: The sums of a model of this many people fit into 64 bits: each adds at most 4 * 2^32.
MAX_PEOPLE = 1 << 29
#: People whose products are exact in doubles: 2^16 of at most 2^32 add up to 2^48, far below 2^53.
_BLOCK = 1 << 16
#: Rows that stay in the processor's cache while they go to the grid, and rows whose product is then fast.
_SLICE, _PRODUCT = 1 << 13, 1 << 12


@dataclass(frozen=True, eq=False)
class ArrayPeople:
    """People whose values stand in an array, or in rows: `values[i]` belongs to person i of the roster."""

    values: Any
    roster: Roster

    @classmethod
    def of(cls, values: Any, roster: Roster) -> ArrayPeople:
        """Check shapes (never values) and put values and roster together."""
        if isinstance(values, Rows):
            check_length(len(values), len(roster))
            return cls(values, roster)
        return cls(check_values(values, len(roster)), roster)

    @property
    def levels(self) -> Levels:
        return self.roster.levels

    def tally(self, statistic: Additive) -> list[Integers]:
        return tally(statistic, self.values, self.roster.codes, len(self.levels.grants))

    def sampled_tally(self, statistic: Additive, chances: Sequence[int], entropy: Entropy) -> list[Integers]:
        if min(chances) >= ALWAYS:
            return self.tally(statistic)
        return self._keep(keep_people(entropy, self.roster.codes, chances)).tally(statistic)

    def cells(self, statistic: Order) -> SortedCells:
        return cells(statistic, self.values, self.roster.codes, len(self.levels.grants))

    def sampled_cells(self, statistic: Order, chances: Sequence[int], entropy: Entropy) -> list[SortedCells]:
        return [self._keep(keep_people(entropy, self.roster.codes, chances)).cells(statistic)]

    def grouped_cells(self, statistic: Order) -> list[SortedCells]:
        return [self.cells(statistic)]

    def samples(self, chances: Sequence[int] | None) -> Iterator[tuple[float, ArrayPeople]]:
        if chances is None:
            yield 1.0, self
            return
        if len(self.values) > _FEW:
            raise too_many_samples()
        staying = [chances[code] / ALWAYS for code in self.roster.codes]
        for choice in itertools.product((False, True), repeat=len(staying)):
            weight = math.prod(c if k else 1 - c for c, k in zip(staying, choice, strict=True))
            if weight > 0:
                yield weight, self._keep(np.array(choice, np.bool_))

    def _keep(self, kept: NDArray[np.bool_]) -> ArrayPeople:
        """Some of the people, on a roster with the same public facts."""
        return ArrayPeople(self.values[kept], Roster(self.levels, self.roster.codes[kept]))


def array_people(people: People) -> ArrayPeople:
    """People whose single values are at hand, which those of a table are not."""
    if not isinstance(people, ArrayPeople):
        raise PlanError("Individual privacy for this statistic works on arrays.")
    return people


def too_many_samples() -> PlanError:
    """Why a distribution cannot be listed."""
    return PlanError("Too many samples to list.", rule=f"Exact distributions are for at most {_FEW} people.")


# One function for each summary, named as statistics name it -----------------------------------------------------------


def tally(statistic: Additive, values: Any, codes: Codes, levels: int) -> list[Integers]:
    """For each part of an additive statistic an array (levels, cells) of exact integer sums."""
    return SUMMARIES[statistic.summary](statistic, values, codes, levels)


def ones(statistic: Count, values: NDArray[Any], codes: Codes, levels: int) -> list[Integers]:
    """People whose value is 1; with a scope, people who have a value."""
    if statistic.scope is not None:
        _check_scope(statistic)
        return [count_codes(codes[~np.isnan(as_doubles(as_numbers(values)))], levels)[:, None]]
    numbers, counts = as_numbers(values), np.zeros(levels, np.int64)
    for start in range(0, len(numbers), CHUNK):
        counts += count_codes(codes[start : start + CHUNK][numbers[start : start + CHUNK] == 1], levels)
    return [counts[:, None]]


def steps(statistic: Bounded, values: NDArray[Any], codes: Codes, levels: int) -> list[Integers]:
    """Whole numbers that people's values add to sums."""
    _check_scope(statistic)
    adds = [ROW_STEPS[part.name] for part in statistic.parts]
    numbers, sums = as_numbers(values), np.zeros((len(adds), levels), np.int64)
    for start in range(0, len(numbers), CHUNK):
        rows, code = RowValues(numbers[start : start + CHUNK], statistic.bounds), codes[start : start + CHUNK]
        for part, add in zip(sums, adds, strict=True):
            # Exact, though `numpy.bincount` adds in doubles: 2^18 steps of at most 2^31 add up to at most 2^49.
            part += np.bincount(code, weights=add(rows), minlength=levels).astype(np.int64)
    return list(sums[:, :, None])


def bins(statistic: Histogram, values: NDArray[Any], codes: Codes, levels: int) -> list[Integers]:
    """People per bin."""
    _check_scope(statistic)
    counts = np.zeros(levels * statistic.cells, np.int64)
    for start in range(0, len(values), CHUNK):
        cell = _bin_of(statistic, values[start : start + CHUNK])
        inside = cell >= 0
        place = codes[start : start + CHUNK][inside].astype(np.int64) * statistic.cells + cell[inside]
        counts += np.bincount(place, minlength=len(counts))
    return [counts.reshape(levels, statistic.cells)]


def products(statistic: LinearRegression, rows: Rows, codes: Codes, levels: int) -> list[Integers]:
    """Sums of the products of two features, or of a feature and a target that is a number."""
    scale, shift = model_scale((statistic.target_bounds,))

    def place(aim: NDArray[Any]) -> Floats:
        with np.errstate(all="ignore"):
            return np.clip(np.floor(as_doubles(as_numbers(aim)) * scale + shift), -MODEL_STEPS, MODEL_STEPS)

    return _products(statistic, rows, codes, levels, place)


def class_products(statistic: LogisticRegression, rows: Rows, codes: Codes, levels: int) -> list[Integers]:
    """Sums of the products of two features, or of a feature and a target that is one of two classes."""

    def place(aim: NDArray[Any]) -> Floats:
        first, second = (_equal(aim, label) for label in statistic.classes)
        # By a table of four entries, since picking by a mask takes five times as long.
        placed: Floats = _OF_CLASS[first.view(np.uint8) + 2 * second.view(np.uint8)]
        return placed

    return _products(statistic, rows, codes, levels, place)


def cells(statistic: Order, values: NDArray[Any], codes: Codes, levels: int) -> SortedCells:
    """Sorted (grid point, level) of everyone who has a value, and how many per level have none."""
    numbers = as_numbers(values)
    keys, missing, filled = np.empty(len(numbers), np.int64), np.zeros(levels, np.int64), 0
    low, high = statistic.bounds
    spacing, last = float(statistic.spacing), statistic.points - 1
    for start in range(0, len(numbers), CHUNK):
        chunk, code = as_doubles(numbers[start : start + CHUNK]), codes[start : start + CHUNK]
        absent = np.isnan(chunk)
        if absent.any():
            missing += count_codes(code[absent], levels)
            chunk, code = chunk[~absent], code[~absent]
        place = np.clip(np.floor((np.clip(chunk, low, high) - low) / spacing + 0.5), 0, last)
        keys[filled : filled + len(chunk)] = place.astype(np.int64) << LEVEL_BITS | code
        filled += len(chunk)
    keys = keys[:filled]
    keys.sort()
    return SortedCells(keys, missing, levels)


Summary = Callable[[Any, Any, Codes, int], list[Integers]]
#: The summaries that add up over people. A person of an array has one row: counting people is counting rows.
SUMMARIES: dict[str, Summary] = {"ones": ones, "people": ones, "bins": bins, "steps": steps}
SUMMARIES |= {"products": products, "class_products": class_products}


def _check_scope(statistic: Additive) -> None:
    """A scope of one group and one row per person is all that arrays have; NaN then does not count."""
    if statistic.scope is not None and (statistic.scope.rows > 1 or statistic.scope.groups is not None):
        raise DataError("Arrays have one row per person and no groups.", suggest="a dataset")


# What a value adds to a sum -------------------------------------------------------------------------------------------


def unit_scale(numbers: NDArray[Any], bounds: Pair) -> Floats:
    """(x - c)/h in [-1, 1]; out of bounds goes to the bound, not a number goes to 0."""
    low, high = bounds
    with np.errstate(all="ignore"):
        clipped = np.clip(as_doubles(numbers), low, high)
        scaled = (clipped - (low / 2 + high / 2)) / (high / 2 - low / 2)
    np.nan_to_num(scaled, copy=False, nan=0.0, posinf=1.0, neginf=-1.0)
    return np.clip(scaled, -1.0, 1.0)


def centred_steps(numbers: NDArray[Any], bounds: Pair) -> Integers:
    """Each value's place on the centred grid, from -2^30 to 2^30."""
    return np.floor(unit_scale(numbers, bounds) * STEPS + 0.5).astype(np.int64)


def zero_steps(numbers: NDArray[Any], bounds: Pair) -> Floats:
    """floor(2^30 x/largest + 1/2) of values put into the bounds: a grid around zero."""
    largest = max(abs(bound) for bound in bounds)
    with np.errstate(all="ignore"):
        placed: Floats = np.floor(np.clip(as_doubles(numbers), *bounds) / (largest / STEPS) + 0.5)
    return placed


@dataclass(frozen=True, eq=False)
class RowValues:
    """Some rows of a column, and what several sums need of them."""

    numbers: NDArray[Any]
    bounds: Pair

    @cached_property
    def scaled(self) -> Floats:
        return unit_scale(self.numbers, self.bounds)

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        absent: NDArray[np.bool_] = np.isnan(as_doubles(self.numbers))
        return absent


#: What a row adds to a part, as whole numbers; a missing value adds nothing. `columns.row_step` is it for engines.
ROW_STEPS: dict[str, Callable[[RowValues], Floats]] = {
    "centred sum": lambda rows: np.floor(rows.scaled * STEPS + 0.5),
    "centred squares": lambda rows: np.floor(np.where(rows.missing, 0.0, rows.scaled**2 - 0.5) * STEPS + 0.5),
    "sum": lambda rows: np.where(rows.missing, 0.0, zero_steps(rows.numbers, rows.bounds)),
    "rows": lambda rows: (~rows.missing).astype(np.float64),
}


# Which bin a value is in ----------------------------------------------------------------------------------------------


def _bin_of(statistic: Histogram, chunk: NDArray[Any]) -> Integers:
    """Each person's bin, -1 for none."""
    if statistic.edges is None:
        index = {key: place for place, key in enumerate(statistic.bin_keys)}
        return np.fromiter((_lookup(index, v) for v in chunk.tolist()), np.int64, len(chunk))
    edges, numbers = np.array(statistic.edges), as_doubles(as_numbers(chunk))
    missing = np.isnan(numbers)
    if statistic.outside == "clip":
        numbers = np.clip(numbers, edges[0], edges[-1])
    cell = np.searchsorted(edges, numbers, side="right").astype(np.int64) - 1
    cell[numbers == edges[-1]] = statistic.cells - 1
    cell[(cell >= statistic.cells) | missing] = -1
    return cell


def _lookup(index: dict[Hashable, int], value: Any) -> int:
    """A category's place; what cannot be a key, for whatever reason, is in no category."""
    try:
        return index.get(value, -1)
    except Exception:  # an object's own message would carry its value
        return -1


# Products of whole numbers, at the speed of a matrix product ----------------------------------------------------------


def model_scale(bounds: tuple[Pair, ...]) -> tuple[Floats, Floats]:
    """(scale, shift) of each column: floor(scale x + shift), cut to the grid, is floor(2^16 (x - c)/h + 1/2)."""
    scale = np.array([MODEL_STEPS / (high / 2 - low / 2) for low, high in bounds])
    return scale, 0.5 - np.array([low / 2 + high / 2 for low, high in bounds]) * scale


#: Steps of a person of neither class, of the first, of the second; nobody is of both.
_OF_CLASS = np.array([np.nan, -MODEL_STEPS, MODEL_STEPS, np.nan])


def _equal(target: NDArray[Any], label: Any) -> NDArray[np.bool_]:
    """Who has a label; an entry that cannot be compared has none."""
    if target.dtype.kind != "O":
        with np.errstate(all="ignore"):
            same = np.asarray(target == label)
        return same if same.shape == target.shape else np.zeros(target.shape, bool)
    return np.fromiter((_is(entry, label) for entry in target), bool, len(target))


def _is(entry: Any, label: Any) -> bool:
    try:
        return bool(entry == label)
    except Exception:  # an object's own message would carry its value
        return False


Place = Callable[[NDArray[Any]], Floats]


def _products(statistic: Regression, rows: Rows, codes: Codes, levels: int, place: Place) -> list[Integers]:
    statistic.check_rows(rows.features.shape[1], len(rows))
    features = np.ascontiguousarray(as_doubles(rows.features))
    sums = product_sums(features, rows.target, statistic.bounds, place, codes, levels)
    return [np.stack([factor * sums[:, k, j] for factor, j, k in statistic.terms], axis=1)]


def product_sums(
    features: Floats, target: NDArray[Any], bounds: tuple[Pair, ...], place: Place, codes: Codes, levels: int
) -> Integers:
    """For each level the matrix Z'Z of Z = (`MODEL_STEPS`, features, target) in steps, below and on the diagonal.

    `bounds` say where the features lie, `place` puts targets on their grid. A person who lacks a feature or the target
    adds nothing. The target's product with itself is left out: no model needs it. Entries are whole numbers of
    magnitude at most 2^16, so doubles hold the sums of a block exactly, in whatever order a matrix product adds. Blocks
    are added in 64-bit integers.
    """
    total = np.zeros((levels, features.shape[1] + 2, features.shape[1] + 2), np.int64)
    # Ours to overwrite: rows of one slice, sorted by level, and beside them 1 and target, one row each.
    rows, sides = np.empty((_SLICE, features.shape[1])), np.empty((2, _SLICE))
    # Rows go to the grid laid end to end.
    scale, shift = (np.tile(each, _SLICE) for each in model_scale(bounds))
    with np.errstate(all="ignore"):
        for start in range(0, len(target), _BLOCK):
            block, aims = features[start : start + _BLOCK], place(target[start : start + _BLOCK])
            edges, order = [0, len(block)], None
            if levels > 1:
                order = np.argsort(codes[start : start + _BLOCK], kind="stable")
                edges = np.searchsorted(codes[start : start + _BLOCK][order], np.arange(levels + 1)).tolist()
                aims = aims[order]
            sums = np.zeros(total.shape)
            for first in range(0, len(block), _SLICE):
                side = sides[:, : len(block) - first]
                x = rows[: side.shape[1]]
                if order is None:
                    some = block[first : first + _SLICE]
                else:
                    some = np.take(block, order[first : first + _SLICE], axis=0, out=x, mode="clip")
                flat, some = x.reshape(-1), some.reshape(-1)
                np.multiply(some, scale[: len(flat)], out=flat)
                flat += shift[: len(flat)]
                np.clip(np.floor(flat, out=flat), -MODEL_STEPS, MODEL_STEPS, out=flat)
                side[0], side[1] = MODEL_STEPS, aims[first : first + _SLICE]
                # Rows with anything missing become nothing; the same steps are taken whether or not there are any.
                absent = np.flatnonzero(np.isnan(x @ np.ones(x.shape[1]) + side[1]))
                x[absent] = 0.0
                side[:, absent] = 0.0
                _add_by_level(sums, x, side, edges, first)
            total += sums.astype(np.int64)
    return total


def _add_by_level(sums: Floats, x: Floats, side: Floats, edges: list[int], first: int) -> None:
    width = x.shape[1]
    for level, (low, high) in enumerate(itertools.pairwise(edges)):
        start, stop = max(low - first, 0), min(high - first, len(x))
        for begin in range(start, stop, _PRODUCT):
            end = min(begin + _PRODUCT, stop)
            part, edge, into = x[begin:end], side[:, begin:end], sums[level]
            # Without its last column: two different operands are multiplied faster than a matrix with itself.
            into[1 : width + 1, 1:width] += part.T @ part[:, :-1]
            into[width, width] += part[:, -1] @ part[:, -1]
            sides = edge @ part
            into[1:-1, 0] += sides[0]
            into[-1, 1:-1] += sides[1]
            into[0, 0] += edge[0] @ edge[0]
            into[-1, 0] += edge[1] @ edge[0]

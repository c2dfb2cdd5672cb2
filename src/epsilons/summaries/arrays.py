"""Summaries of people whose values stand in arrays. `sql.py` has the same names for the people of a table.

The arithmetic is in doubles that hold whole numbers, exact in whatever order they are added. People are handled a
quarter of a million at a time or fewer, so that temporary arrays stay small beside the input.

Nothing here raises because of a value: what is missing or not a number is left to the public default that each
statistic names. Whether something is refused depends on types and shapes alone, which are public facts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.spans import read_spans
from epsilons.display import show_count
from epsilons.engines.base import DATE, TEXT, TIME
from epsilons.engines.readings import as_float, declares_nothing, find_places, find_spans, is_list, read_values
from epsilons.errors import Argument, DataError, PlanError
from epsilons.noise.coins import keep_people
from epsilons.noise.entropy import ALWAYS, Entropy
from epsilons.preferences import Levels, Roster, count_codes, count_some
from epsilons.summaries import People
from epsilons.summaries.cells import LEVEL_BITS, Integers, SingleRows, SortedCells

if TYPE_CHECKING:
    from epsilons.statistics.additive import Additive
    from epsilons.statistics.count import Count
    from epsilons.statistics.histogram import Histogram
    from epsilons.statistics.order import Order
    from epsilons.statistics.total import Bounded

Codes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Pair = tuple[float, float]
#: How many people stand at each level, or None where nobody counted them.
There = Integers | None

#: Steps of the grid of sums from the centre of the bounds to a bound.
STEPS = 1 << 30
CHUNK = 1 << 18
#: Rows that stay in the processor's cache while several passes are made over them.
_PIECE = 1 << 17
#: Exact distributions of samples are for at most so many people: there are 2^n samples.
_FEW = 12
#: numpy's kinds of plain numbers: bool, int, unsigned, float.
_NUMBER_KINDS = "biuf"
_SHAPE = "X has one row per person and one column per feature; y has one entry per person."
_FLAT = "a flat list or array"


@dataclass(frozen=True, eq=False)
class ArrayPeople:
    """People whose values stand in an array, or in rows: `values[i]` belongs to person i of the roster."""

    values: Any
    roster: Roster

    @classmethod
    def of(cls, values: Any, roster: Roster) -> ArrayPeople:
        """Check shapes (never values) and put values and roster together."""
        if isinstance(values, Rows):
            _check_length(len(values), len(roster))
        else:
            values = check_values(values, len(roster))
        return cls(values, roster)

    @property
    def levels(self) -> Levels:
        return self.roster.levels

    def tally(self, statistic: Additive) -> list[Integers]:
        sizes = np.array(self.levels.sizes, np.int64)
        # Known without counting, unless people were left out of a sample.
        there = sizes if sizes.sum() == len(self.roster.codes) else None
        return tally(statistic, self.values, self.roster.codes, len(sizes), there)

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

    def single_rows(self) -> SingleRows:
        numbers = as_doubles(as_numbers(self.values))
        person = np.flatnonzero(~np.isnan(numbers))
        return SingleRows(person, self.roster.codes[person].astype(np.int64), np.zeros_like(person), numbers[person])

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
        return ArrayPeople(self.values[kept], Roster.of(self.levels, self.roster.codes[kept]))


def array_people(people: People) -> ArrayPeople:
    """People with their single values at hand; who has no row in a table has none. One row per person, all asked."""
    if isinstance(people, ArrayPeople):
        return people
    rows, sizes = people.single_rows(), np.array(people.levels.sizes, np.int64)
    without = np.maximum(sizes - np.bincount(rows.level, minlength=len(sizes)), 0)
    codes = np.concatenate([rows.level, np.repeat(np.arange(len(sizes)), without)]).astype(np.uint8)
    values = np.concatenate([rows.values, np.full(int(without.sum()), np.nan)])
    return ArrayPeople(values, Roster.of(people.levels, codes))


def too_many_samples() -> PlanError:
    """Why a distribution cannot be listed."""
    return PlanError("Too many samples to list.", rule=f"Exact distributions are for at most {_FEW} people.")


def ones(statistic: Count, values: NDArray[Any], codes: Codes, levels: int, there: There = None) -> list[Integers]:
    """People whose value is 1; with a scope, people who have a value."""
    numbers = as_numbers(values)
    if statistic.scope is not None:
        _check_scope(statistic)
        return [_count_present(numbers, codes, levels, there)[:, None]]
    counts = np.zeros(levels, np.int64)
    for start in range(0, len(numbers), CHUNK):
        counts += count_some(codes[start : start + CHUNK], levels, numbers[start : start + CHUNK] == 1)
    return [counts[:, None]]


def signs(statistic: Count, values: NDArray[Any], codes: Codes, levels: int, there: There = None) -> list[Integers]:
    """People whose value is 1, and people who have another."""
    (found,) = ones(statistic, values, codes, levels)
    return [found, _count_present(as_numbers(values), codes, levels, there)[:, None] - found]


def _count_present(numbers: NDArray[Any], codes: Codes, levels: int, there: There) -> Integers:
    """People per level who have a value."""
    missing = np.zeros(levels, np.int64)
    for start in range(0, len(numbers), CHUNK):
        absent = np.isnan(as_doubles(numbers[start : start + CHUNK]))
        missing += count_some(codes[start : start + CHUNK], levels, absent)
    return _everyone(codes, levels, there) - missing


def _everyone(codes: Codes, levels: int, there: There) -> Integers:
    return count_codes(codes, levels) if there is None else there


def steps(statistic: Bounded, values: NDArray[Any], codes: Codes, levels: int, there: There = None) -> list[Integers]:
    """Whole numbers that people's values add to sums."""
    _check_scope(statistic)
    names, numbers = statistic.summed, as_numbers(values)
    sums, missing = {name: np.zeros(levels, np.int64) for name in names}, np.zeros(levels, np.int64)
    adds = [(sums[name], row_steps(name, statistic.bounds)) for name in names if name != "rows"]
    for start in range(0, len(numbers), _PIECE):
        code, rows = codes[start : start + _PIECE], as_doubles(numbers[start : start + _PIECE])
        for total, place in adds:
            added, absent = place(rows)
            # Exact, though `numpy.bincount` adds in doubles: 2^17 steps of at most 2^31 add up to at most 2^48.
            total += np.bincount(code, added, levels).astype(np.int64)
        missing += np.bincount(code[absent], minlength=levels)
    if "rows" in sums:
        sums["rows"] = _everyone(codes, levels, there) - missing
    return [sums[name][:, None] for name in names]


def bins(statistic: Histogram, values: NDArray[Any], codes: Codes, levels: int, there: There = None) -> list[Integers]:
    """People per bin."""
    _check_scope(statistic)
    counts = np.zeros(levels * statistic.cells, np.int64)
    for start in range(0, len(values), CHUNK):
        cell = _bin_of(statistic, values[start : start + CHUNK])
        inside = cell >= 0
        place = codes[start : start + CHUNK][inside].astype(np.int64) * statistic.cells + cell[inside]
        counts += np.bincount(place, minlength=len(counts))
    return [counts.reshape(levels, statistic.cells)]


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
            missing += count_some(code, levels, absent)
            chunk, code = chunk[~absent], code[~absent]
        place = np.clip(np.floor((np.clip(chunk, low, high) - low) / spacing + 0.5), 0, last)
        keys[filled : filled + len(chunk)] = place.astype(np.int64) << LEVEL_BITS | code
        filled += len(chunk)
    keys = keys[:filled]
    keys.sort()
    return SortedCells(keys, missing, levels)


#: Makes columns of numbers of columns of words.
Spread = Callable[[list[NDArray[Any]]], list[NDArray[Any]]]
Summary = Callable[[Any, Any, Codes, int, There], list[Integers]]
#: The summaries that add up over people. A person of an array has one row: counting people is counting rows.
SUMMARIES: dict[str, Summary] = {"ones": ones, "people": ones, "signs": signs, "bins": bins, "steps": steps}


def tally(statistic: Additive, values: Any, codes: Codes, levels: int, there: There = None) -> list[Integers]:
    """For each part of an additive statistic an array (levels, cells) of exact integer sums.

    `there` says how many people stand at each level, where that is known already.
    """
    return SUMMARIES[statistic.summary](statistic, values, codes, levels, there)


def _check_scope(statistic: Additive) -> None:
    """A scope of one group and one row per person is all that arrays have; NaN then does not count."""
    if statistic.scope is not None and (statistic.scope.rows > 1 or statistic.scope.groups is not None):
        raise DataError("Arrays have one row per person and no groups.", suggest="a dataset")


def centred_steps(numbers: NDArray[Any], bounds: Pair) -> Integers:
    """Each value's place on the centred grid, from -2^30 to 2^30; the centre where it is missing."""
    return row_steps("centred sum", bounds)(as_doubles(numbers))[0].astype(np.int64)


def zero_steps(numbers: NDArray[Any], bounds: Pair) -> Floats:
    """floor(2^30 x/largest + 1/2) of values put into the bounds: a grid around zero."""
    return row_steps("sum", bounds)(as_doubles(numbers))[0]


def zero_unit(bounds: Pair) -> float:
    """A step of that grid."""
    return max(map(abs, bounds)) / STEPS


RowSteps = Callable[[Floats], tuple[Floats, Integers]]


def row_steps(name: str, bounds: Pair) -> RowSteps:
    """(what rows add to a part, as whole numbers, and which of them are missing and add nothing).

    `columns.row_step` is it for engines. Passes over memory take time, so there are few of them, and what they give
    stands in the same room until the next rows come. Rounding never turns two numbers around: it is the same to put
    them into the bounds after the division. Dividing by h and multiplying by 2^30 is dividing by h/2^30, which no
    bounds make so small that it would round.
    """
    low, high = bounds
    centre, unit = (low / 2 + high / 2, (high / 2 - low / 2) / STEPS) if "centred" in name else (0.0, zero_unit(bounds))
    ends = max((low - centre) / unit, -STEPS), min((high - centre) / unit, STEPS)
    room = np.empty(0)

    def place(rows: Floats) -> tuple[Floats, Integers]:
        nonlocal room
        room = room if len(room) == len(rows) else np.empty(len(rows))
        with np.errstate(all="ignore"):
            np.divide(np.subtract(rows, centre, out=room), unit, out=room)
            np.clip(room, *ends, out=room)
            if name == "centred squares":  # 2^30 (u^2 - 1/2)
                np.square(np.divide(room, STEPS, out=room), out=room)
                np.multiply(np.subtract(room, 0.5, out=room), STEPS, out=room)
            np.floor(np.add(room, 0.5, out=room), out=room)
        absent = np.flatnonzero(np.isnan(room))
        room[absent] = 0.0
        return room, absent

    return place


def _bin_of(statistic: Histogram, chunk: NDArray[Any]) -> Integers:
    """Each person's bin, -1 for none."""
    if statistic.asked_spans is not None:
        return find_spans(chunk, read_spans("the histogram", statistic.asked_spans))
    if statistic.edges is None:
        return find_places(chunk, statistic.bin_keys)
    edges, numbers = np.array(statistic.edges), as_doubles(as_numbers(chunk))
    missing = np.isnan(numbers)
    if statistic.outside == "clip":
        numbers = np.clip(numbers, edges[0], edges[-1])
    cell = np.searchsorted(edges, numbers, side="right").astype(np.int64) - 1
    cell[numbers == edges[-1]] = statistic.cells - 1
    cell[(cell >= statistic.cells) | missing] = -1
    return cell


@dataclass(frozen=True, eq=False)
class Rows:
    """Features and a target in place of values: a mask picks people's rows, and what is not a number is missing."""

    features: NDArray[Any]
    target: NDArray[Any]

    @classmethod
    def pair(cls, features: Any, target: Any, spread: Spread | None = None) -> Rows:
        """Features and target as the caller has them; only types and shapes are looked at."""
        matrix = as_matrix(features, spread)
        if len(matrix) == 0:
            raise DataError("There are no people.", rule=_SHAPE, suggest="one row and one epsilon per person")
        return cls(matrix, check_values(target, len(matrix)))

    @classmethod
    def of_two(cls, first: Any, second: Any) -> Rows:
        """Two values per person."""
        values = read_values(first)
        if values.ndim != 1:
            raise DataError(f"X comes in {values.ndim} dimensions.", rule="One value per person.", suggest=_FLAT)
        return cls.pair(as_doubles(as_numbers(values, "X holds")).reshape(-1, 1), second)

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, chosen: NDArray[np.bool_]) -> Rows:
        # By place, since numpy picks rows by a mask four times more slowly.
        places = np.flatnonzero(chosen)
        return Rows(self.features.take(places, axis=0), self.target[places])


def check_values(values: Any, people: int) -> NDArray[Any]:
    """One value per person, read by container and type (`readings`); only shapes are looked at here."""
    plain = type(values) is np.ndarray and values.dtype.kind in _NUMBER_KINDS
    array = values if plain or hasattr(values, "columns") else read_values(values)
    if len(array.shape) != 1:
        raise DataError(f"Values come in {len(array.shape)} dimensions.", rule="One value per person.", suggest=_FLAT)
    _check_length(len(array), people)
    return cast(NDArray[Any], array)


def _check_length(values: int, people: int) -> None:
    """As many values as people on the roster, and at least one."""
    if values == 0 or people == 0:
        rule, hint = "A statistic needs at least one person.", "one value and one epsilon per person"
        raise DataError("There are no people.", rule=rule, suggest=hint)
    if values != people:
        rule, hint = "values[i] belongs to the person of epsilons[i].", "lists of one length, or one epsilon for all"
        raise DataError(f"{show_count(values, 'value')} and {show_count(people, 'epsilon')}.", rule=rule, suggest=hint)


def as_matrix(table: Any, spread: Spread | None = None) -> Floats:
    """A table of numbers, one row per person, from an array, a frame or lists: what is no number is missing.

    `spread` makes columns of numbers of those of words.
    """
    columns: Any = None
    if hasattr(table, "columns"):
        arrow = table.columns if hasattr(table, "itercolumns") else list(table)
        columns = [column for _, column in table.items()] if hasattr(table, "iloc") else arrow
    elif is_list(table):  # how long rows are is public; what stands in place of a row is one of which all is missing
        rows = [row if is_list(row) or isinstance(row, np.ndarray) else () for row in table]
        widths = {*map(len, rows)} - {0}
        # Where nobody has a row, entries are those of one feature: that the only row is missing refuses nothing.
        columns = itertools.zip_longest(*rows) if len(widths) == 1 else () if widths or not rows else [list(table)]
    if columns is None and spread is not None and np.ndim(table) == 2:
        columns = np.asanyarray(table).T
    if columns is None:
        matrix = as_doubles(as_numbers(read_values(table), "X holds"))
    else:
        found = [read_values(column) for column in columns]
        read = [as_doubles(as_numbers(column, "X holds")) for column in (found if spread is None else spread(found))]
        matrix = np.stack(read, axis=1) if read else np.empty(0)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise DataError(f"X comes in {matrix.ndim} dimensions, or empty.", rule=_SHAPE, suggest="X.reshape(-1, 1)")
    return matrix


def as_numbers(values: NDArray[Any], what: str = "Values hold") -> NDArray[Any]:
    """Numbers as they are. What declares no type is missing where it is no number; other types are refused."""
    if values.dtype.kind in _NUMBER_KINDS:
        # Of long doubles what no double can hold is infinite.
        plain = values.dtype.itemsize <= 8 and not isinstance(values, np.ma.MaskedArray)
        return values if plain else np.ma.filled(as_doubles(values), math.nan)
    if declares_nothing(values):
        return np.fromiter(map(as_float, values.flat), np.float64, values.size).reshape(values.shape)
    family = {"M8[D]": DATE, "M8[us]": TIME}.get(values.dtype.str[1:], TEXT)
    hint = ("for words a histogram with ", Argument("categories", ["north", "south"]))
    raise DataError(f"{what} {family}, not numbers.", suggest=hint)


def as_doubles(numbers: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers as doubles, without a warning about signalling NaNs: it would say that a person has one."""
    with np.errstate(all="ignore"):
        return numbers.astype(np.float64, copy=False)

"""Exponential mechanisms over outcomes that come in runs of constant or steadily rising cost.

An outcome's weight is exp(-cost * unit), its probability its weight over the sum of all (McSherry and Talwar 2007). A
median over a million grid points has one run per gap between data values; a personalized count has two per level. The
runs are listed outwards from the likeliest outcome, so that almost always only those near it are looked at: the rest
cannot hold the outcome.

Why a draw is exact. Let C_j be the true mass of the first j runs, T that of all outcomes, listed or not, and U uniform
on [0, 1). The run j with C_{j-1} <= U*T < C_j has exactly the right probability. Of U we know p bits, an integer R with
R <= U*2^p < R + 1, and for each j integers before_j <= 2^p * C_j/T < after_j + 1. So

    R < before_j      proves  U*T < C_j,
    R > after_{j-1}   proves  U*T > C_{j-1}.

If no run is proved, the same U gets further bits and the runs get finer integers (p = 64, 128, 256, ...); no bit of U
is ever drawn again. Inside the run, fresh bits draw the outcome.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.noise.entropy import Entropy, uniform, uniform_many
from epsilons.noise.laplace import digits_of, truncated_geometric, truncated_geometric_many
from epsilons.noise.pmf import list_probabilities
from epsilons.noise.weighing import Scales

Integers = NDArray[np.int64] | NDArray[np.object_] | Sequence[int]

_WORD = 64
# Spare bits so that sums of rounded-down masses decide nearly every draw.
_SPARE_BITS = 32
_LAST_WORD = (1 << _WORD) - 1


@dataclass(frozen=True, eq=False)
class Block:
    """Some runs of outcomes, listed outwards from the likeliest.

    A run has `count` >= 1 outcomes. The i-th is first + direction * i, with `direction` +1 or -1, and costs cost + i *
    slope, with `slope` >= 0. A single integer stands for the same value in every run; costs are Python integers where
    int64 is too small. `left_over` outcomes are not listed up to and including this block (0: it is complete), and none
    of them costs less than `floor`.
    """

    first: Integers
    direction: Integers | int
    count: Integers | int
    cost: Integers | int
    slope: Integers | int
    left_over: int
    floor: int


class SegmentSampler:
    """Draws outcomes with probability proportional to exp(-cost * unit), exactly.

    `blocks` may be a generator: a block is asked for only when the outcomes not yet listed could matter at the
    precision in use, that is until left_over * exp(-floor * unit) < 2^-p * (listed mass). How many blocks that takes
    depends on the data (so does the time), but not on the outcome drawn, except with probability about 2^-64 per run.
    """

    def __init__(self, blocks: Iterable[Block], unit: Fraction) -> None:
        if unit <= 0:
            raise ValueError("a unit of cost is positive")
        self._unit, self._blocks = unit, iter(blocks)
        self._runs: tuple[list[int], ...] = ([], [], [], [], [])
        self._first, self._direction, self._count, self._cost, self._slope = self._runs
        self._left_over, self._floor = -1, 0
        self._tables: dict[int, _Table] = {}
        self._columns: tuple[list[NDArray[Any]], list[int]] | None = None
        self._pull()
        self._reference = min(self._cost)
        self._outcomes = sum(self._count) + self._left_over
        # Built here and not at the first draw, so that malformed blocks are refused before any random bit is used.
        self._table(_WORD)

    def draw(self, entropy: Entropy) -> int:
        """One outcome."""
        return self._inside(entropy, self._find(entropy, entropy.bits(_WORD)))

    def draw_many(self, entropy: Entropy, size: int) -> NDArray[np.int64]:
        """`size` independent outcomes."""
        words = entropy.words(size)
        runs, undecided = self._table(_WORD).find_many(words)
        for index in undecided:
            runs[index] = self._find(entropy, int(words[index]))
        return self._inside_many(entropy, runs)

    def probabilities(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Every outcome, ascending, and its probability: for teaching, tests and audits. Lists every block."""
        while self._left_over:
            self._pull()
        return list_probabilities(self._runs, self._unit)

    def _find(self, entropy: Entropy, known: int) -> int:
        """The run that holds U, of which the first 64 bits are `known`."""
        bits = _WORD
        while (run := self._table(bits).find(known)) is None:
            known = known << bits | entropy.bits(bits)
            bits *= 2
        return run

    def _inside(self, entropy: Entropy, run: int) -> int:
        count, slope = self._count[run], self._slope[run]
        if count == 1:
            index = 0
        elif slope == 0:
            index = uniform(entropy, count)
        else:
            index = truncated_geometric(entropy, digits_of(slope * self._unit), count)
        return self._first[run] + self._direction[run] * index

    def _inside_many(self, entropy: Entropy, runs: NDArray[np.int64]) -> NDArray[np.int64]:
        (first, direction, count, group), slopes = self._column_arrays()
        index, groups = np.zeros(len(runs), dtype=np.int64), group[runs]
        order = np.argsort(groups, kind="stable")
        edges = np.searchsorted(groups[order], np.arange(len(slopes) + 1))
        for slope, (start, stop) in zip(slopes, pairwise(edges), strict=True):
            if start == stop:
                continue
            chosen = order[start:stop]
            counts = count[runs[chosen]]
            if slope == 0:
                index[chosen] = uniform_many(entropy, counts)
            else:
                index[chosen] = truncated_geometric_many(entropy, digits_of(slope * self._unit), counts)
        found: NDArray[np.int64] = first[runs] + direction[runs] * index
        return found

    def _column_arrays(self) -> tuple[list[NDArray[Any]], list[int]]:
        """The listed runs' first, direction, count and number of their slope; and the distinct slopes."""
        if self._columns is None or len(self._columns[0][0]) < len(self._first):
            effective = [slope if count > 1 else 0 for slope, count in zip(self._slope, self._count, strict=True)]
            slopes = sorted(set(effective))
            number = {slope: i for i, slope in enumerate(slopes)}
            # 16 bits, the usual case, sort in linear time.
            narrow: type[np.integer[Any]] = np.uint16 if len(slopes) < 1 << 16 else np.int64
            group = np.array([number[slope] for slope in effective], narrow)
            self._columns = [*(np.array(column, np.int64) for column in self._runs[:3]), group], slopes
        return self._columns

    def _table(self, bits: int) -> _Table:
        """The integers before_j and after_j for p = `bits`; lists more blocks first if they could matter."""
        if bits in self._tables:
            return self._tables[bits]
        scales = Scales(self._unit, self._reference, bits + _SPARE_BITS + self._outcomes.bit_length())
        while True:
            new = slice(len(scales.lows), None)
            scales.add(self._cost[new], self._count[new], self._slope[new])
            unlisted = self._left_over * scales.upper(self._floor) if self._left_over else 0
            if unlisted << bits < scales.lows[-1]:
                break
            self._pull()
        # low <= scaled C_j <= low + slack, and likewise for T, which also has the unlisted mass.
        least = scales.lows[-1]
        most = least + scales.slacks[-1] + unlisted
        before = [(low << bits) // most for low in scales.lows]
        after = [((low + slack) << bits) // least for low, slack in zip(scales.lows, scales.slacks, strict=True)]
        if self._left_over == 0:
            before[-1] = 1 << bits
        table = self._tables[bits] = _Table(before, after)
        return table

    def _pull(self) -> None:
        block = next(self._blocks, None)
        if block is None:
            raise ValueError("the blocks ended with outcomes left over")
        first = _integers(block.first, None)
        others = (block.direction, block.count, block.cost, block.slope)
        new = (first, *(_integers(column, len(first)) for column in others))
        _, direction, count, cost, slope = new
        if not first or block.left_over < 0 or min(count) < 1 or min(slope) < 0 or set(direction) - {1, -1}:
            raise ValueError("a block has runs, with count >= 1, slope >= 0, direction 1 or -1, left_over >= 0")
        # A broken promise of an earlier block would bias every draw, so it is worth the look.
        if self._left_over >= 0 and (min(cost) < self._floor or sum(count) + block.left_over > self._left_over):
            raise ValueError("a block lists more, or cheaper, outcomes than the block before it had left over")
        for listed, more in zip(self._runs, new, strict=True):
            listed.extend(more)
        self._left_over, self._floor = block.left_over, block.floor


class _Table:
    """Integers around each x_j = 2^p * C_j/T: before_j <= x_j < after_j + 1."""

    def __init__(self, before: list[int], after: list[int]) -> None:
        self._before, self._after = before, after

    @cached_property
    def _words(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Both for p = 64.

        2^64 does not fit a word: as a `before`, which only the last run can have, it is left out (nothing reaches past
        it anyway); as an `after` it becomes the last word, which no word exceeds either.
        """
        after = [0] + [min(a, _LAST_WORD) for a in self._after[:-1]]
        return np.array(self._before[:-1], dtype=np.uint64), np.array(after, dtype=np.uint64)

    def find(self, known: int) -> int | None:
        """The run proved to hold U from its p known bits, or None."""
        run = bisect_right(self._before, known)
        if run == len(self._before) or (run and known <= self._after[run - 1]):
            return None
        return run

    def find_many(self, words: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """`find` for p = 64: the runs, and the positions of the words that prove none."""
        before, after = self._words
        runs = np.searchsorted(before, words, side="right").astype(np.int64, copy=False)
        undecided = (words <= after[runs]) & (runs > 0)
        if self._before[-1] <= _LAST_WORD:
            undecided |= words >= np.uint64(self._before[-1])
        return runs, np.flatnonzero(undecided)


def _integers(column: Integers | int, length: int | None) -> list[int]:
    """The column as Python integers; floats are refused."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
        values: list[int] = column.tolist()
    elif isinstance(column, int):
        values = [column] * (length or 0)
    else:
        values = [operator.index(value) for value in column]
    if length is not None and len(values) != length:
        raise ValueError("the columns of a block have one entry per run")
    return values

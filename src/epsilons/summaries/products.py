"""Exact sums of products of whole numbers, level by level, at the speed of a matrix product.

Every entry goes to a public grid, so that it is a whole number of magnitude at most `STEPS` = 2^16. A product is then
at most 2^32, and a block of 2^16 people adds up to at most 2^48: doubles hold all of it exactly, in whatever order a
matrix product adds. Blocks are added in 64-bit integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Steps of the grid from the centre of the bounds to a bound.
STEPS = 1 << 16
#: Sums of this many people fit into 64 bits: each adds at most 4 * 2^32.
MAX_PEOPLE = 1 << 29
#: People whose sums are exact in doubles: 2^16 products of at most 2^32, far below 2^53.
_BLOCK = 1 << 16
#: Rows that stay in the processor's cache while they go to the grid, and rows whose product is then fast.
_SLICE, _PRODUCT = 1 << 13, 1 << 12

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Grid:
    """Where columns lie: public bounds, one pair per column."""

    bounds: tuple[tuple[float, float], ...]

    @property
    def scale(self) -> Floats:
        """Steps per unit."""
        return np.array([STEPS / (high / 2 - low / 2) for low, high in self.bounds])

    @property
    def shift(self) -> Floats:
        """What is added before the floor is taken: the centre, and a half."""
        return 0.5 - np.array([low / 2 + high / 2 for low, high in self.bounds]) * self.scale

    def steps(self, columns: Floats) -> Floats:
        """floor(2^16 (x - c)/h + 1/2), cut to the grid; what is not a number stays so."""
        with np.errstate(all="ignore"):
            return np.clip(np.floor(columns * self.scale + self.shift), -STEPS, STEPS)


def product_sums(
    features: Floats,
    target: NDArray[Any],
    grid: Grid,
    place: Callable[[NDArray[Any]], Floats],
    codes: NDArray[np.uint8],
    levels: int,
) -> NDArray[np.int64]:
    """For each level the matrix Z'Z of Z = (`STEPS`, features, target) in steps, below and on the diagonal.

    `grid` says where the features lie, `place` puts targets on their grid. Whoever lacks a feature or the target adds
    nothing. The target's product with itself is left out: no model needs it.
    """
    total = np.zeros((levels, features.shape[1] + 2, features.shape[1] + 2), np.int64)
    # Ours to overwrite: rows of one slice, sorted by level, and beside them 1 and target, one row each.
    rows, sides = np.empty((_SLICE, features.shape[1])), np.empty((2, _SLICE))
    scale, shift = np.tile(grid.scale, _SLICE), np.tile(grid.shift, _SLICE)
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
                _to_grid(some.reshape(-1), scale, shift, x.reshape(-1))
                side[0], side[1] = STEPS, aims[first : first + _SLICE]
                _drop_missing(x, side)
                _add_by_level(sums, x, side, edges, first)
            total += sums.astype(np.int64)
    return total


def _to_grid(flat: Floats, scale: Floats, shift: Floats, out: Floats) -> None:
    """`Grid.steps` on rows laid end to end."""
    np.multiply(flat, scale[: len(flat)], out=out)
    out += shift[: len(flat)]
    np.floor(out, out=out)
    np.clip(out, -STEPS, STEPS, out=out)


def _drop_missing(x: Floats, side: Floats) -> None:
    """Rows with anything missing become nothing; the same steps are taken whether or not there are any."""
    total = x @ np.ones(x.shape[1])
    total += side[1]
    absent = np.flatnonzero(np.isnan(total))
    x[absent] = 0.0
    side[:, absent] = 0.0


def _add_by_level(sums: Floats, x: Floats, side: Floats, edges: list[int], first: int) -> None:
    width = x.shape[1]
    for level, (low, high) in enumerate(pairwise(edges)):
        start, stop = max(low - first, 0), min(high - first, len(x))
        for begin in range(start, stop, _PRODUCT):
            end = min(begin + _PRODUCT, stop)
            part, edge, into = x[begin:end], side[:, begin:end], sums[level]
            # Without its last column: two different operands are multiplied faster than a matrix with itself.
            into[1 : width + 1, 1:width] += part.T @ part[:, :-1]
            into[width, width] += part[:, -1] @ part[:, -1]
            products = edge @ part
            into[1:-1, 0] += products[0]
            into[-1, 1:-1] += products[1]
            into[0, 0] += edge[0] @ edge[0]
            into[-1, 0] += edge[1] @ edge[0]

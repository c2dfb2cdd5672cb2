"""Millions of people: sorting their digests, finding some among others, telling small numbers apart."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from epsilons.ledger.values import DIGEST_BYTES

#: 16 bytes each, which sort and compare like the digests they hold.
Sorted = NDArray[np.bytes_]
Codes = NDArray[np.integer]
#: Numbers of so wide a range are told apart by counting, without sorting.
_COUNTED = 1 << 20
_PIECE = 1 << 20
#: So many places are looked for one by one.
_FEW = 16
#: So many pieces, each of them sorted, are merged, which keeps those that agree as they stand.
_RUNS = 64
_T = TypeVar("_T", bound=np.generic)


def as_sorted(people: NDArray[np.uint8]) -> Sorted:
    """Rows of 16 bytes as texts of a fixed width; nothing is copied."""
    return np.ascontiguousarray(people).view(f"S{DIGEST_BYTES}").reshape(-1)


def _halves(people: Sorted) -> NDArray[np.uint64]:
    """The first and the last 8 bytes of each digest as they lie there: good for telling apart; nothing is copied."""
    return np.ascontiguousarray(people).view(np.uint64).reshape(-1, 2)


def as_numbers(people: Sorted, half: int = 0) -> NDArray[np.uint64]:
    """The first 8 bytes of each digest, or the last ones (`half=1`), as numbers that sort as the bytes do."""
    return np.ascontiguousarray(people).view(">u8")[half::2].astype(np.uint64)


def _argsort(numbers: NDArray[np.uint64]) -> Codes:
    """By their first byte, which numpy does in one pass, and then in parts that a processor keeps at hand."""
    if np.count_nonzero(numbers[1:] < numbers[:-1]) <= _RUNS:
        return np.argsort(numbers, kind="stable")
    top = (numbers >> np.uint64(56)).astype(np.uint8)
    order, start = np.argsort(top, kind="stable"), 0
    for end in np.cumsum(np.bincount(top, minlength=256)).tolist():
        part = order[start:end]
        order[start:end], start = part[np.argsort(numbers[part])], end
    return order


def _is_sorted(people: Sorted) -> bool:
    """Whether no two agree in 64 bits and all stand in order; some at a time, since numbers are half of everybody."""
    pieces = (as_numbers(people[start : start + _PIECE + 1]) for start in range(0, len(people), _PIECE))
    return all(bool((first[1:] > first[:-1]).all()) for first in pieces)


def sort_by(people: Sorted, *then: NDArray[np.integer]) -> Codes | slice:
    """The places that sort people, the same ones by what follows; all as they stand if they are sorted already."""
    if _is_sorted(people):
        return slice(None)
    first = as_numbers(people)
    order = _argsort(first)
    sorted_ = first[order]
    ties = np.flatnonzero(sorted_[1:] == sorted_[:-1])
    if len(ties):  # the same person twice, or two people who agree in 64 bits
        keys = as_numbers(people, 1), *then
        if not never_fall(keys, order[ties], order[ties + 1]):
            order = np.lexsort((*reversed(keys), first))
    return order


def never_fall(keys: Sequence[NDArray[np.integer]], before: Codes | slice, after: Codes | slice) -> bool:
    """Whether nobody's keys, the first of them first, are less than those of who stands before them."""
    fine, same = np.zeros(len(keys[0][before]), bool), np.ones(len(keys[0][before]), bool)
    for key in keys:
        here, there = key[before], key[after]
        fine |= same & (there > here)
        same &= there == here
    return bool((fine | same).all())


def is_new(people: Sorted) -> NDArray[np.bool_]:
    """Of sorted people, which are others than the one before."""
    first, last = _halves(people).T
    new = np.ones(len(people), bool)
    new[1:] = (first[1:] != first[:-1]) | (last[1:] != last[:-1])
    return new


def _same(some: Sorted, others: Sorted) -> bool:
    return len(some) == len(others) and bool((_halves(some) == _halves(others)).all())


def locate(known: Sorted, people: Sorted) -> Codes:
    """The place of each of these people among those who are known, both sorted, each once; -1 for those who are not."""
    places = np.full(len(people), -1)
    if len(known) == 0 or len(people) == 0:
        return places
    if _same(known, people):
        return np.arange(len(people))
    among = as_numbers(known)
    # Two people agree in 64 bits in one of 370,000 rosters of ten million.
    twice = bool((among[1:] == among[:-1]).any())
    at = np.searchsorted(known, people) if twice else np.searchsorted(among, as_numbers(people))
    at = np.minimum(at, len(known) - 1)
    found = (_halves(known)[at] == _halves(people)).all(axis=1)
    places[found] = at[found]
    return places


def look_up(people: Sorted, known: Sorted, values: Codes, otherwise: int) -> Codes:
    """The value of each of these people, both sorted, each once; `otherwise` of those who are not known."""
    if _same(known, people):
        return values
    found = np.full(len(people), otherwise, values.dtype)
    if len(known):
        place = locate(known, people)
        found[place >= 0] = values[place[place >= 0]]
    return found


def tell_apart(numbers: NDArray[np.integer]) -> tuple[Codes, NDArray[np.unsignedinteger]]:
    """(the distinct numbers, in order; the place of each among them, in a byte where it fits)."""
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    if high - low >= _COUNTED:
        distinct, places = np.unique(numbers, return_inverse=True)
        return distinct.astype(np.int64), places.astype(np.min_scalar_type(len(distinct)))
    # Some at a time: numpy counts and picks by numbers of 64 bits, and would make them of all at once.
    pieces = [slice(start, start + _PIECE) for start in range(0, len(numbers), _PIECE)]
    there = np.zeros(high - low + 1, bool)
    for piece in pieces:
        there[numbers[piece].astype(np.intp) - low] = True
    distinct = np.flatnonzero(there)
    place_of = np.zeros(len(there), np.min_scalar_type(len(distinct)))
    place_of[distinct] = np.arange(len(distinct))
    places = np.empty(len(numbers), np.min_scalar_type(len(distinct)))
    for piece in pieces:
        places[piece] = place_of[numbers[piece].astype(np.intp) - low]
    return distinct + low, places


def pick(values: NDArray[_T], places: NDArray[np.unsignedinteger]) -> NDArray[_T]:
    """The value at each place; some at a time, as above."""
    found = np.empty(len(places), values.dtype)
    for start in range(0, len(places), _PIECE):
        found[start : start + _PIECE] = values[places[start : start + _PIECE]]
    return found


def in_few_bytes(numbers: Sequence[int] | Codes, largest: int | None = None) -> Codes:
    """From -1 on, in as few bytes as the largest of them needs, or as one that may follow would."""
    most = max(numbers, default=0) if largest is None else largest
    return np.asarray(numbers, np.min_scalar_type(-most - 1))


def number_apart(*columns: Codes) -> NDArray[np.unsignedinteger]:
    """A number for each row of some columns, in their order; the same for rows that are alike."""
    found = np.zeros(len(columns[0]), np.uint8)
    for column in columns:
        distinct, places = tell_apart(column)
        _, found = tell_apart(found * np.int64(len(distinct)) + places)
    return found


def split(places: NDArray[np.unsignedinteger], count: int) -> Iterator[Codes]:
    """Who has each of so many places, in order. Of few places one after the other: all are as large as everybody."""
    if count <= _FEW:
        yield from (np.flatnonzero(places == place) for place in range(count))
    else:
        yield from np.split(np.argsort(places, kind="stable"), np.cumsum(np.bincount(places, minlength=count))[:-1])

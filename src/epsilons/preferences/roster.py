"""A roster: everyone who was asked, each with the code of their level, from an array of epsilons."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import DataError, PreferenceError
from epsilons.guarantee import NANO
from epsilons.preferences.levels import LADDER, MAX_LEVELS, Levels, to_nano

_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class Roster:
    """Everyone who was asked, in the caller's order: `codes[i]` is the level of person i."""

    levels: Levels
    codes: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.codes)

    def scaled(self, share: Fraction) -> tuple[Roster, NDArray[np.bool_]]:
        """(the roster at a share of every grant, who is on it): `Levels.scaled` with everybody's matching code."""
        levels = self.levels.scaled(share)
        places = {grant: place for place, grant in enumerate(levels.grants)}
        parts = (None if grant is None else math.floor(grant * share) for grant in self.levels.grants)
        codes = np.array([places.get(part, -1) for part in parts], np.int16)[self.codes]
        used = codes >= 0
        return Roster(levels, codes[used].astype(np.uint8)), used


def roster_of(epsilons: Any, default: float | None = None, people: int | None = None) -> Roster:
    """The roster of an array of epsilons; one number serves for everyone when `people` is given.

    Cost: two passes that look up each epsilon in a small table, no sorting, so it is cheaper than `numpy.unique`.
    """
    if isinstance(epsilons, Roster):
        return epsilons
    if hasattr(epsilons, "assign"):
        assigned: Roster = epsilons.assign()
        return assigned
    array = _as_floats(epsilons)
    if array.ndim == 0:
        if people is None:
            raise PreferenceError(
                "One epsilon for everyone, and nobody says how many people there are.",
                rule="One epsilon per person.",
                hint="[0.5] * 1000 for a thousand people",
            )
        array = np.full(people, float(array))
    if array.ndim != 1:
        raise PreferenceError(
            f"Epsilons come as a table of {array.ndim} dimensions.", rule="One epsilon per person.", hint="a flat list"
        )
    if default is not None:
        array = np.where(np.isnan(array), float(default), array)
    if len(array) == 0:
        return Roster(Levels((), ()), np.empty(0, np.uint8))
    distinct, codes = _encode(array)
    if codes is None:
        return _on_ladder(array)
    return _merge_levels([to_nano(float(e)) for e in distinct], codes)


def aligned_roster(epsilons: Any, values: Any) -> Roster:
    """The roster of people whose values stand in a list or array; one epsilon serves for everyone."""
    try:
        people = len(values)
    except TypeError:
        raise DataError(
            "Values are not a list or array.", rule="One value per person.", hint="a flat list or array"
        ) from None
    return roster_of(epsilons, people=people)


def _as_floats(epsilons: Any) -> NDArray[np.float64]:
    try:
        raw = np.asarray(epsilons)
        if raw.dtype.kind == "O":
            raw = np.array([math.nan if e is None else e for e in raw.tolist()])
        if raw.dtype.kind not in "fiu":
            raise TypeError
        return np.asarray(raw, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise PreferenceError(
            "Epsilons are not numbers.",
            rule="One number per person; eps.PUBLIC for public.",
            hint="eps.Preferences.from_levels(names, {'strict': 0.05, ...}) for named levels",
        ) from None


def one_nano(epsilon: Any) -> int | None:
    """One epsilon that stands for many people: a default, or a level."""
    array = _as_floats(epsilon)
    if array.ndim:
        raise PreferenceError("A level has a single epsilon.", hint="{'strict': 0.05, 'open': 1}")
    return to_nano(float(array))


def _encode(array: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.uint8] | None]:
    """The distinct values and each person's index among them; no codes when there are more than 256.

    Distinct values are learned from the front of the array and from every chunk that shows a new one. A value's
    bits are hashed to 16 bits by a multiplier under which the distinct values do not collide, and checked.
    """
    distinct = _valid(np.unique(array[:4096]))
    codes = np.empty(len(array), np.uint8)
    start = 0
    while len(distinct) <= MAX_LEVELS:
        multiplier, table = _collision_free(distinct)
        while start < len(array):
            chunk = array[start : start + _CHUNK]
            found = table[_hash(chunk, multiplier)]
            strange = distinct[found] != chunk
            if strange.any():
                before = distinct
                distinct = np.union1d(distinct, _valid(np.unique(chunk[strange])))
                if len(distinct) > MAX_LEVELS:
                    break
                codes[:start] = np.searchsorted(distinct, before).astype(np.uint8)[codes[:start]]
                break
            codes[start : start + len(chunk)] = found
            start += len(chunk)
        else:
            return distinct, codes
    return distinct, None


def _valid(ascending: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same values, none of which is missing, zero or negative: the two zeros would share a level but not a hash."""
    for extreme in (ascending[-1], ascending[0]):
        to_nano(float(extreme))
    return ascending


def _hash(chunk: NDArray[np.float64], multiplier: np.uint64) -> NDArray[np.uint64]:
    hashed: NDArray[np.uint64] = (chunk.view(np.uint64) * multiplier) >> np.uint64(48)
    return hashed


def _collision_free(distinct: NDArray[np.float64]) -> tuple[np.uint64, NDArray[np.uint8]]:
    multiplier = 0x9E3779B97F4A7C15
    while True:
        slots = _hash(distinct, np.uint64(multiplier))
        if len(np.unique(slots)) == len(distinct):
            table = np.zeros(1 << 16, np.uint8)
            table[slots] = np.arange(len(distinct), dtype=np.uint8)
            return np.uint64(multiplier), table
        multiplier = (multiplier * 0xD1342543DE82EF95 + 2) % 2**64 | 1


def _merge_levels(nanos: list[int | None], codes: NDArray[np.uint8]) -> Roster:
    """Two floats may round down to one nano-epsilon: they are then one level."""
    grants = tuple(dict.fromkeys(nanos))
    if len(grants) < len(nanos):
        codes = np.array([grants.index(nano) for nano in nanos], np.uint8)[codes]
    sizes = tuple(int(count) for count in count_codes(codes, len(grants)))
    return Roster(Levels(grants, sizes), codes)


def _on_ladder(array: NDArray[np.float64]) -> Roster:
    # The largest is NaN if anyone's is; more than 256 distinct preferences cannot all be public.
    for extreme in (array.max(), array.min(), array.max(where=array < math.inf, initial=0.0)):
        to_nano(float(extreme))
    rungs = np.array([rung / NANO for rung in LADDER] + [math.inf])
    codes = np.empty(len(array), np.uint8)
    lost, finite = 0.0, 0
    for start in range(0, len(array), _CHUNK):
        chunk = array[start : start + _CHUNK]
        code = np.searchsorted(rungs, chunk, side="right") - 1
        codes[start : start + len(chunk)] = code
        private = np.isfinite(chunk)
        lost += float(np.sum(1 - rungs[code[private]] / chunk[private]))
        finite += int(private.sum())
    counts = count_codes(codes, len(rungs))
    used = np.flatnonzero(counts)
    grants = tuple(None if code == len(LADDER) else LADDER[code] for code in used)
    compact = np.zeros(len(rungs), np.uint8)
    compact[used] = np.arange(len(used), dtype=np.uint8)
    sizes = tuple(int(counts[code]) for code in used)
    return Roster(Levels(grants, sizes, {}, lost / finite if finite else 0.0), compact[codes])


def count_codes(codes: NDArray[np.uint8], levels: int) -> NDArray[np.int64]:
    """People per level, in chunks, since `numpy.bincount` copies its input to eight bytes a person."""
    counts = np.zeros(levels, np.int64)
    for start in range(0, len(codes), _CHUNK):
        counts += np.bincount(codes[start : start + _CHUNK], minlength=levels)
    return counts

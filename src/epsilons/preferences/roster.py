"""A roster: everyone who was asked, each with the code of their level; and the levels themselves.

A preference is kept as an integer of nano-epsilon and rounds DOWN. Up to 256 distinct preferences are kept exactly;
more are rounded down to `LADDER`, which is fixed and so does not depend on who is there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.display import Sheet, Shown, show, show_count
from epsilons.errors import Argument, DataError, PreferenceError
from epsilons.guarantee import NANO, Covered, to_epsilon
from epsilons.measure import Rate
from epsilons.preferences.ids import look_up, read_ids
from epsilons.preferences.ladder import LADDER, round_down

#: The preference of a person who asks for no privacy at all.
PUBLIC = math.inf
MAX_LEVELS = 256
LARGEST_EPSILON = 10**6
#: What to try where names of levels were meant, or came without epsilons.
LEVELS = Argument("levels", {"strict": 0.05, "open": 1})


@dataclass(frozen=True)
class Levels:
    """The public facts of a roster: the distinct grants, ascending, and how many people stand at each.

    A grant is in nano-epsilon; `None` is public and comes last. `rounding_loss` is the average fraction of a finite
    grant given up by rounding down to the ladder (0 when all preferences are kept exactly). `left_out` people are on
    the roster with nothing to spend: their values are not used, but answers are about them as well.
    """

    grants: tuple[int | None, ...]
    sizes: tuple[int, ...]
    names: Mapping[float, str] = field(default_factory=dict, compare=False)
    rounding_loss: float = field(default=0.0, compare=False)
    left_out: int = 0

    @cached_property
    def _hash(self) -> int:
        # Of whole numbers alone, whose hashes are the same in every process: it may be pickled along.
        return hash((tuple(grant or 0 for grant in self.grants), self.sizes, self.left_out))

    def __getstate__(self) -> dict[str, Any]:
        """Without what was worked out, which other questions may have left there."""
        return {name: value for name, value in self.__dict__.items() if name != "worked_out"}

    def __hash__(self) -> int:
        """Worked out once: planning looks up what it remembers of a roster hundreds of times."""
        return self._hash

    @cached_property
    def worked_out(self) -> dict[Any, Any]:
        """What was worked out from these public facts: weights, predicted errors, the best mechanism.

        Equal levels share it, so that a question asked again finds it; so nothing in it may depend on what levels are
        called. Threads share it: take what `get` gives, it may be forgotten meanwhile.
        """
        return _worked_out(self)

    @cached_property
    def size(self) -> int:
        """How many people are on the roster."""
        return sum(self.sizes) + self.left_out

    @cached_property
    def finite(self) -> tuple[int, ...]:
        """The grants of everyone who is not public."""
        return tuple(g for g in self.grants if g is not None)

    @cached_property
    def smallest(self) -> int:
        """The strictest grant on the roster."""
        return self.finite[0]

    @cached_property
    def largest(self) -> int:
        """The most open finite grant."""
        return self.finite[-1]

    @cached_property
    def mean(self) -> int:
        """The average finite grant over people, rounded down to a nano-epsilon."""
        total = sum(g * n for g, n in zip(self.grants, self.sizes, strict=True) if g is not None)
        return total // sum(self.sizes[: len(self.finite)])

    @cached_property
    def all_public(self) -> bool:
        """Whether everyone on the roster is public."""
        return not self.finite

    def cut_at(self, most: int) -> tuple[int | None, ...]:
        """Every grant, but at most this many nano-epsilon of it."""
        return tuple(None if grant is None else min(grant, most) for grant in self.grants)

    def parts_at(self, share: Fraction, rate: Rate | None = None) -> tuple[int | None, ...]:
        """A share of every grant, rounded down, or what that pays for at a rate."""
        if rate is not None:
            return tuple(None if g is None else rate.part(g, share) for g in self.grants)
        return tuple(None if g is None else g * share.numerator // share.denominator for g in self.grants)

    def take_share(self, share: Fraction, rate: Rate | None = None) -> Levels:
        """What a question may use at a share of every grant; people left with nothing are left out."""
        merged, parts = Counter[int | None](), self.parts_at(share, rate)
        for part, size in zip(parts, self.sizes, strict=True):
            merged[part] += size
        left_out = self.left_out + merged.pop(0, 0)
        grants = tuple(sorted(merged, key=to_epsilon))
        names = {} if rate is None else dict(zip(map(to_epsilon, parts), map(self.name, self.grants), strict=True))
        return Levels(grants, tuple(merged[grant] for grant in grants), names, self.rounding_loss, left_out)

    def name(self, grant: int | None) -> str:
        return name_grant(grant, self.names)


def name_grant(grant: int | None, names: Mapping[float, str]) -> str:
    """What to call a grant in nano-epsilon: its given name (by epsilon), or its epsilon."""
    if grant is None:
        return names.get(PUBLIC, "public")
    epsilon = grant / NANO
    return names.get(epsilon, f"{epsilon:.6g}")


@lru_cache(maxsize=64)
def _worked_out(levels: Levels) -> dict[Any, Any]:
    return {}


def to_nano(epsilon: float) -> int | None:
    """The largest number of nano-epsilon that is not above `epsilon`; `None` for public.

    A float stands for the decimal that it prints as: .7 is 700,000,000 nano-epsilon.

    >>> to_nano(.7), to_nano(.12345678919), to_nano(PUBLIC)
    (700000000, 123456789, None)
    """
    rule, suggest = "", "leave these people out"
    if math.isnan(epsilon):
        absent, given = "A person has no preference (NaN or missing).", ("preferences with ", Argument("default", 0.05))
        raise PreferenceError(absent, rule="A default applies only if you give one.", suggest=given)
    if epsilon <= 0:
        rule = "An epsilon is larger than zero; people who grant nothing are not on the roster."
    elif LARGEST_EPSILON < epsilon < math.inf:
        rule = f"A finite epsilon is at most {LARGEST_EPSILON:,}."
        suggest = "an infinite one for people who ask for no privacy"
    if rule:
        raise PreferenceError(f"An epsilon of {epsilon:.6g} is not allowed.", rule=rule, suggest=suggest)
    if math.isinf(epsilon):
        return None
    nano = round(epsilon * NANO)
    nano -= nano / NANO > epsilon
    if nano == 0:
        nothing = f"An epsilon of {epsilon:.6g} rounds down to nothing."
        raise PreferenceError(nothing, rule="The smallest epsilon is a billionth.", suggest=suggest)
    return nano


_CHUNK, _FRONT = 1 << 18, 4096
#: So many epsilons stay in the processor's cache while their codes are looked up.
_IN_CACHE = 1 << 15
#: The people of so few levels are counted level by level.
_BY_ONE = 12


@dataclass(frozen=True, eq=False, init=False)
class Roster(Shown):
    """Everyone who was asked, in the caller's order: `codes[i]` is the level of person i, called `people[i]`.

    Made once and used in many calls, it tells that all of them are about the same people, so that their promises add up
    person by person. Epsilons are one for each id, in their order, {id: epsilon}, one for all, or preferences; the
    `default` is for people of whom there is none. The i-th value of a call is the i-th person's, whatever a
    frame's index says.

    >>> from epsilons import Roster
    >>> Roster(["ann", "bob", "cy"], {"bob": 1, "ann": .1, "cy": .1}).levels.sizes
    (2, 1)
    """

    levels: Levels
    codes: NDArray[np.uint8]
    #: None where people are known by their place alone.
    people: tuple[Hashable, ...] | None

    def __init__(self, ids: Iterable[Hashable], epsilons: Any, default: float | None = None):
        people = read_ids(ids)
        if len(set(people)) < len(people):
            rule = "Everyone is on a roster once."
            raise PreferenceError("An id stands twice.", rule=rule, suggest="one id and one epsilon per person")
        if isinstance(epsilons, Roster):
            raise PreferenceError("These epsilons are a roster already.", suggest="the roster itself")
        asked: Any = look_up(epsilons, people) if isinstance(epsilons, Mapping) else epsilons
        by_id = hasattr(asked, "by_person")
        made = asked.assign(people) if by_id else roster_of(asked, default, len(people))
        if len(made) != len(people):
            raise PreferenceError(f"{len(people)} ids and {len(made)} epsilons.", rule="One epsilon per person.")
        self._fill(made.levels, made.codes, people)

    @classmethod
    def of(cls, levels: Levels, codes: NDArray[np.uint8]) -> Roster:
        """People who are known by their place alone."""
        made = object.__new__(cls)
        made._fill(levels, codes, None)
        return made

    def _fill(self, levels: Levels, codes: NDArray[np.uint8], people: tuple[Hashable, ...] | None) -> None:
        for name, value in (("levels", levels), ("codes", codes), ("people", people)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def covered(self) -> Covered:
        """Who a promise to these people is about."""
        return Covered("", self.levels.grants, self.codes, self.people)

    def sheets(self) -> list[Sheet]:
        pairs = zip(self.levels.grants, self.levels.sizes, strict=True)
        rows = [[self.levels.name(grant), show(size)] for grant, size in pairs]
        return [Sheet(show_count(len(self), "person", "people"), ("level", "people"), rows)]

    def take_share(self, share: Fraction, rate: Rate | None = None) -> tuple[Roster, NDArray[np.bool_] | None]:
        """(the roster at a share of every grant, who is on it or None for everyone): `Levels.take_share` with codes."""
        levels, parts = self.levels.take_share(share, rate), self.levels.parts_at(share, rate)
        if levels.grants == parts:  # as nearly always: no two levels became one, and everyone is used
            return Roster.of(levels, self.codes), None
        places = {grant: place for place, grant in enumerate(levels.grants)}
        codes = np.array([places.get(part, -1) for part in parts], np.int16)[self.codes]
        used = codes >= 0
        return Roster.of(levels, codes[used].astype(np.uint8)), None if used.all() else used


def roster_of(epsilons: Any, default: float | None = None, people: int | None = None) -> Roster:
    """The roster of an array of epsilons; one number serves for everyone when `people` is given.

    Cost: two passes that look up each epsilon in a small table, no sorting, so it is cheaper than `numpy.unique`.
    """
    if isinstance(epsilons, Roster):
        return epsilons
    if hasattr(epsilons, "by_person"):
        return cast(Roster, epsilons.assign())
    array = _as_floats(epsilons)
    if for_all := array.ndim == 0:
        if people is None:
            alone = "One epsilon for everyone, and an unknown number of people."
            raise PreferenceError(alone, rule="One epsilon per person.", suggest="[0.5] * 1000 for a thousand people")
        array = array[None][:people]
    if array.ndim != 1:
        table = f"Epsilons come as a table of {array.ndim} dimensions."
        raise PreferenceError(table, rule="One epsilon per person.", suggest="a flat list")
    if default is not None:
        array = np.where(np.isnan(array), float(default), array)
    if len(array) == 0:
        return Roster.of(Levels((), ()), np.empty(0, np.uint8))
    distinct, codes = _encode(array)
    made = _on_ladder(array) if codes is None else _merge_levels([to_nano(float(e)) for e in distinct], codes)
    everyone = people or 0
    return Roster.of(replace(made.levels, sizes=(everyone,)), np.zeros(everyone, np.uint8)) if for_all else made


def aligned_roster(epsilons: Any, values: Any) -> Roster:
    """The roster of people whose values stand in a list or array; one epsilon serves for everyone."""
    try:
        people = len(values)
    except TypeError:
        no_list = "Values are not a list or array."
        raise DataError(no_list, rule="One value per person.", suggest="a flat list or array") from None
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
        rule, hint = "One number per person; an infinite one is public.", ("for names of levels: ", LEVELS)
        raise PreferenceError("Epsilons are not numbers.", rule=rule, suggest=hint) from None


def to_single_nano(epsilon: Any) -> int | None:
    """One epsilon that stands for many people: a default, or a level."""
    array = _as_floats(epsilon)
    if array.ndim:
        raise PreferenceError("A level has a single epsilon.", suggest="{'strict': 0.05, 'open': 1}")
    return to_nano(float(array))


def _encode(array: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.uint8] | None]:
    """The distinct values and each person's index among them; no codes when there are more than 256.

    Distinct values are learned from the front of the array and from every chunk that shows a new one. A value's
    bits are hashed to 16 bits by a multiplier under which the distinct values do not collide, and checked.
    """
    distinct, places = np.unique(array[:_FRONT], return_inverse=True)
    _check_extremes(distinct)
    if len(array) <= _FRONT:
        return distinct, places.astype(np.uint8) if len(distinct) <= MAX_LEVELS else None
    codes, start = np.empty(len(array), np.uint8), 0
    slots, known = np.empty(_IN_CACHE, np.uint64), np.empty(_IN_CACHE, np.uint64)
    while len(distinct) <= MAX_LEVELS:
        multiplier, place_of, bits = _collision_free(distinct)
        while start < len(array):
            chunk = array[start : start + _IN_CACHE]
            end, asked = start + len(chunk), chunk.view(np.uint64)
            slot = _hash(asked, multiplier, slots[: len(chunk)]).view(np.intp)  # all are below the tables' length
            unknown = bits.take(slot, out=known[: len(chunk)], mode="clip") != asked
            if unknown.any():
                before = distinct
                distinct = np.union1d(distinct, _check_extremes(np.unique(chunk[unknown])))
                if len(distinct) <= MAX_LEVELS:
                    codes[:start] = np.searchsorted(distinct, before).astype(np.uint8)[codes[:start]]
                break
            place_of.take(slot, out=codes[start:end], mode="clip")
            start = end
        else:
            return distinct, codes
    return distinct, None


def _check_extremes(ascending: NDArray[np.float64]) -> NDArray[np.float64]:
    """Refuse values that are missing, zero or negative: the two zeros would share a level but not a hash."""
    for extreme in (ascending[-1], ascending[0]):
        to_nano(float(extreme))
    return ascending


def _hash(bits: NDArray[np.uint64], multiplier: np.uint64, out: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return np.right_shift(np.multiply(bits, multiplier, out=out), np.uint64(48), out=out)


def _collision_free(
    distinct: NDArray[np.float64],
) -> tuple[np.uint64, NDArray[np.uint8], NDArray[np.uint64]]:
    """(a multiplier, the place of the value that has a hash, its bits; else those of one that has another hash)."""
    multiplier, own = 0x9E3779B97F4A7C15, distinct.view(np.uint64)
    while True:
        slots = _hash(own, np.uint64(multiplier), np.empty_like(own))
        if len(np.unique(slots)) == len(distinct):
            places, bits = np.zeros(1 << 16, np.uint8), np.full(1 << 16, own[0])
            places[slots], bits[slots] = np.arange(len(distinct), dtype=np.uint8), own
            return np.uint64(multiplier), places, bits
        multiplier = (multiplier * 0xD1342543DE82EF95 + 2) % 2**64 | 1


def _merge_levels(nanos: list[int | None], codes: NDArray[np.uint8]) -> Roster:
    """Two floats may round down to one nano-epsilon: they are then one level."""
    grants = tuple(dict.fromkeys(nanos))
    if len(grants) < len(nanos):
        codes = np.array([grants.index(nano) for nano in nanos], np.uint8)[codes]
    return Roster.of(Levels(grants, tuple(count_codes(codes, len(grants)).tolist())), codes)


def _on_ladder(array: NDArray[np.float64]) -> Roster:
    # The largest is NaN if anyone's is; more than 256 distinct preferences cannot all be public.
    largest = array.max()
    most_finite = largest if largest < math.inf else array.max(where=array < math.inf, initial=0.0)
    for extreme in (largest, array.min(), most_finite):
        to_nano(float(extreme))
    codes, lost = round_down(array)
    counts = count_codes(codes, len(LADDER) + 1)
    used, finite = np.flatnonzero(counts), len(array) - int(counts[-1])
    grants = tuple(None if code == len(LADDER) else LADDER[code] for code in used)
    compact = np.zeros(len(counts), np.uint8)
    compact[used] = np.arange(len(used), dtype=np.uint8)
    levels = Levels(grants, tuple(counts[used].tolist()), {}, (lost - float(counts[-1])) / finite if finite else 0.0)
    return Roster.of(levels, compact[codes])


def count_codes(codes: NDArray[np.unsignedinteger], levels: int) -> NDArray[np.int64]:
    """People per level, in chunks, since `numpy.bincount` copies its input to eight bytes a person."""
    counts = np.zeros(levels, np.int64)
    for start in range(0, len(codes), _CHUNK):
        counts += count_some(codes[start : start + _CHUNK], levels)
    return counts


def count_some(
    codes: NDArray[np.unsignedinteger], levels: int, which: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """The same of so few that copies are small, or only of some of them. It takes as long whoever these are."""
    if levels <= _BY_ONE:  # many codes are compared at once
        there = (codes == code for code in range(levels))
        return np.array([np.count_nonzero(found if which is None else found & which) for found in there], np.int64)
    if which is None:
        return np.bincount(codes, minlength=levels)
    return np.bincount(codes + np.uint16(levels) * which, minlength=2 * levels)[levels:]

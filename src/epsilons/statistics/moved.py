"""How far replacing one person's rows could move sums and means of the data as they are, group by group, in L1.

For individual privacy only (Soria-Comas et al. 2017, Proposition 5: of several numbers it is the sum of their moves
that counts). Everything here depends on private values: none of it may be shown, stored or logged.

A person has at most m rows, each in any group or none, so that what they may add to sums is m times the convex hull of
nothing and of the bounds in each group. The L1 distance from what they do add is convex, and so largest at a corner:
all m rows at one bound of one group.

A mean is taken around the centre of the bounds, on [-2^30, 2^30], and is 0 of nobody. Without the person it is S/N, and
with k further rows at a bound it lies k/(N + k) of the way from there to the bound. For one group that is exact. For
several, leaving and joining are added, and each of m rows that join is taken to move a mean as the first one does: no
less than it can be.

Of i people together r rows leave a group of N with the mean x, and j join it; u = r + j. With bounds at -1 and 1 the
mean moves by (r(1 + x) + j(1 - x))/(N - r + j) at most, or the same with -x: no more than (1 + |x|) u/(N - u), and
never by more than 1 + |x|. Over all groups no more rows leave than the i people with the most have, and i*m join: U
in all. No u is larger, so that 1/(N - u) is at most 1/(N - min(U, N/2)) up to N/2, from where on all of the way is
allowed for. So no group moves by more than (1 + |x|) min(1, u/(N - min(U, N/2))), and the sum over all groups is
largest where each in turn is given all that it takes, those that move farthest by a row first.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from epsilons.summaries.arrays import STEPS, Floats
from epsilons.summaries.cells import Integers, SingleRows


@dataclass(frozen=True, eq=False)
class Adding:
    """What everyone who counts adds: for each pair of a person and a group so many rows and steps."""

    person: Integers  # of each pair, a place in `level`
    group: Integers
    rows: Integers
    steps: Integers
    level: Integers
    groups: int

    @classmethod
    def of(cls, rows: SingleRows, steps: Floats, groups: int) -> Adding:
        _, first, person = np.unique(rows.person, return_index=True, return_inverse=True)
        pairs, at = np.unique(person * groups + rows.group, return_inverse=True)
        counts, sums = np.zeros((2, len(pairs)), np.int64)
        np.add.at(counts, at, 1)
        np.add.at(sums, at, steps.astype(np.int64))
        return cls(pairs // groups, pairs % groups, counts, sums, rows.level[first], groups)

    def _largest(self, of_pairs: Floats | Integers) -> Integers:
        found = np.zeros(len(self.level), np.int64)
        np.maximum.at(found, self.person, np.asarray(of_pairs, np.int64))
        return found

    def _added(self, of_pairs: Integers) -> Integers:
        found = np.zeros(len(self.level), np.int64)
        np.add.at(found, self.person, of_pairs)
        return found

    def far_in_sums(self, low: int, high: int) -> Integers:
        """How far each person could move the sums, if all their rows together add from `low` to `high`."""
        everything, own = self._added(np.abs(self.steps)), np.abs(self.steps)
        there = np.maximum(np.abs(self.steps - low), np.abs(high - self.steps))
        found = self._largest(everything[self.person] - own + there)
        elsewhere = np.bincount(self.person, minlength=len(self.level)) < self.groups
        return np.where(elsewhere, np.maximum(found, everything + max(abs(low), abs(high))), found)

    def _totals(self) -> tuple[Integers, Integers]:
        """(rows, steps) of each group."""
        counts, sums = np.zeros((2, self.groups), np.int64)
        np.add.at(counts, self.group, self.rows)
        np.add.at(sums, self.group, self.steps)
        return counts, sums

    def means(self) -> list[Fraction]:
        """Of each group, in steps from the centre."""
        counts, sums = self._totals()
        return [Fraction(total, max(rows, 1)) for rows, total in zip(counts.tolist(), sums.tolist(), strict=True)]

    def far_in_means(self, most: int) -> Integers:
        """How far each person could move the means, in steps and rounded up, one more for rounding in each group."""
        counts, sums = self._totals()
        means = sums / np.maximum(counts, 1)
        left = counts[self.group] - self.rows
        without = np.where(left > 0, (sums[self.group] - self.steps) / np.maximum(left, 1), 0.0)
        if self.groups == 1:
            joined = np.where(left > 0, most / (left + most), 1.0)
            ends = (without + joined * (end - without) for end in (-STEPS, STEPS))
            return _up(self._largest_float(np.max([np.abs(end - means[0]) for end in ends], axis=0)), 1)
        leaving = np.zeros(len(self.level))
        np.add.at(leaving, self.person, np.abs(without - means[self.group]))
        joining = np.full(len(self.level), float(join_means(counts, means).max()))
        np.maximum.at(joining, self.person, (STEPS + np.abs(without)) / (left + 1))
        return _up(leaving + most * joining, self.groups)

    def far_together(self, most: int, size: int) -> int:
        """How far so many people could move the means, in steps and rounded up: of one mean of single rows exactly."""
        counts, sums = self._totals()
        means = sums / np.maximum(counts, 1)
        if self.groups == 1:
            ends = (sign * self._highest(sign * self.steps, most * size, size) for sign in (1, -1))
            return int(_up(np.array([max(abs(end - means[0]) for end in ends)]), 1)[0])
        caps, leaving = STEPS + np.abs(means), np.sort(self._added(self.rows))[::-1][:size]
        moved = int(leaving.sum()) + most * size
        rooms = np.maximum(counts - np.minimum(moved, counts // 2), 1)
        far, left = 0.0, moved
        for place in np.argsort(-caps / rooms, kind="stable").tolist():
            far += float(caps[place]) * min(left, int(rooms[place])) / int(rooms[place])
            left -= min(left, int(rooms[place]))
        return int(_up(np.array([far]), self.groups)[0])

    def _highest(self, steps: Integers, joining: int, size: int) -> float:
        """The largest mean after the rows of so many people left one group and others joined at the upper bound.

        A quotient is largest where no exchange makes (sum - mean * rows) larger (Dinkelbach 1967).
        """
        total, rows = int(steps.sum()), int(self.rows.sum())
        mean = total / max(rows, 1)
        while True:
            gain = mean * self.rows - steps
            first = np.argpartition(-gain, size - 1)[:size] if size < len(gain) else np.arange(len(gain))
            left = first[gain[first] > 0]
            found = (total - int(steps[left].sum()) + joining * STEPS) / (rows - int(self.rows[left].sum()) + joining)
            if found <= mean:
                return mean
            mean = found

    def _largest_float(self, of_pairs: Floats) -> Floats:
        found = np.zeros(len(self.level))
        np.maximum.at(found, self.person, of_pairs)
        return found

    def far_of_strangers(self, most: int) -> int:
        """The same of whoever has no row that counts: they can only join."""
        counts, sums = self._totals()
        means = sums / np.maximum(counts, 1)
        if self.groups > 1:
            return int(_up(np.array([most * float(join_means(counts, means).max())]), self.groups)[0])
        joined = most / (counts[0] + most)
        return int(_up(np.array([joined * (STEPS + abs(means[0]))]), 1)[0])


def join_means(counts: Integers, means: Floats) -> Floats:
    """How far one further row could move the mean of each group."""
    return np.asarray((STEPS + np.abs(means)) / (counts + 1))


def _up(far: Floats, groups: int) -> Integers:
    """Rounded up, with room for the arithmetic, and a step for the rounding of each of the answers."""
    return np.asarray(np.ceil(far * (1 + 2.0**-40)) + groups, np.int64)


def largest_by_level(far: Integers, level: Integers, strangers: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Of each level the largest; whoever has no row that counts moves it as strangers do."""
    found = [0] * len(sizes)
    there = np.bincount(level, minlength=len(sizes))
    for place, size in enumerate(sizes):
        own = int(far[level == place].max(initial=0))
        found[place] = max(own, strangers) if there[place] < size else own
    return tuple(found)


def largest_together(far: Integers, strangers: int, people: int, size: int) -> int:
    """How far so many people could move sums together: each as far as alone, at most."""
    known = np.sort(far)[::-1][:size].tolist()
    every = sorted([*known, *[strangers] * min(size, max(people - len(far), 0))], reverse=True)
    return sum(map(int, every[:size]))

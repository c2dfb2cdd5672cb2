"""One share for several questions, split where the error is least. Public facts only."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations

#: How much more than with an equal part a question may err.
WORST = 1.1
#: Parts of an equal part that change hands, from large to small; and how often at most.
_STEPS = tuple(Fraction(1, parts) for parts in (2, 4, 8, 16))
_MOVES = 200
#: Errors that agree in so many digits are the same.
_DIGITS = 9

#: The error that is expected of a question at a share; infinite where it cannot be known.
Error = Callable[[Fraction], float]


def split(errors: Sequence[Error], share: Fraction) -> list[Fraction]:
    """Each question's part of the share, split where the error is least. Depends on public facts alone.

    Questions have different units, so each error is measured against what the question would have with an equal part of
    the share: r_i = error_i(s_i) / error_i(S/n). The split minimises the sum of r_i^2 over s_1 + ... + s_n = S, and no
    r_i may pass 1.1: a question that hardly needs its part gives of it, and none starves for the others. Questions that
    err alike get the same. The search begins with the equal split; errors need not be convex, so large steps are tried
    before small ones.
    """
    equal = share / len(errors)
    groups = list(_alike(errors, equal))
    for step in _STEPS:
        for _ in range(_MOVES):
            move = _best_move(groups, step * equal)
            if move is None:
                break
            giver, taker, amount = move
            giver.part -= amount / len(giver.places)
            taker.part += amount / len(taker.places)
    parts = {place: group.part for group in groups for place in group.places}
    return [parts[place] for place in range(len(errors))]


@dataclass
class _Group:
    """Questions that err alike, and the part of the share that each of them has."""

    error: Error
    equal: Fraction
    part: Fraction
    places: list[int]
    _known: dict[Fraction, float] = field(default_factory=dict)

    def ratio(self, part: Fraction) -> float:
        """The error against that of an equal part; where it cannot be known it falls as noise does, with the part."""
        if part not in self._known:
            base = self.error(self.equal)
            if base == 0:
                self._known[part] = 0.0
            elif math.isinf(base):
                self._known[part] = float(self.equal / part)
            else:
                self._known[part] = self.error(part) / base
        return self._known[part]

    def change(self, by: Fraction) -> float:
        """What the sum of squares gains or loses if each of them gets so much more."""
        return len(self.places) * (self.ratio(self.part + by) ** 2 - self.ratio(self.part) ** 2)


def _alike(errors: Sequence[Error], equal: Fraction) -> Iterator[_Group]:
    found: dict[tuple[str, ...], list[int]] = {}
    for place, error in enumerate(errors):
        kind = tuple(f"{error(part):.{_DIGITS}g}" for part in (equal / 2, equal, equal * 2))
        found.setdefault(kind, []).append(place)
    for places in found.values():
        yield _Group(errors[places[0]], equal, equal, places)


def _best_move(groups: Sequence[_Group], step: Fraction) -> tuple[_Group, _Group, Fraction] | None:
    """Who should give how much to whom; None where nothing is gained by it."""
    best, worth = None, -1e-9
    for giver, taker in permutations(groups, 2):
        amount = step * min(len(giver.places), len(taker.places))
        less, more = amount / len(giver.places), amount / len(taker.places)
        if giver.part <= less or giver.ratio(giver.part - less) > WORST:
            continue
        change = giver.change(-less) + taker.change(more)
        if change < worth and taker.ratio(taker.part + more) <= WORST:
            best, worth = (giver, taker, amount), change
    return best

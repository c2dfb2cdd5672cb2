"""What sums do that every level released by itself, once public weights have added them up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from epsilons.accuracy.additive import Effect, facts_of
from epsilons.preferences import Levels
from epsilons.statistics.base import Floats, Question, Rest
from epsilons.statistics.by_level import level_scales

#: So many of the largest noises are told apart; what the others add up to is as good as normal.
_TOLD_APART = 4


@dataclass(frozen=True, eq=False)
class LevelsEffect(Effect):
    """Of levels whose sums were weighted and added up: everyone of a level counts with its weight, on average 1.

    Each level has a noise of its own. `scales` and `laplace` are those of one Laplace noise of the variance that all of
    them have together; `parts` are the levels' own, as parts of it, the largest first, and `small` is what all smaller
    ones add up to, which is as good as normal.
    """

    parts: tuple[float, ...] = field(default=(), kw_only=True)
    small: float = field(default=0.0, kw_only=True)

    @classmethod
    def mixing(cls, question: Question, levels: Levels, shares: Floats) -> Self:
        """Where a level's part of the answer is its share: for each of its people share * everyone/its people."""
        facts, sizes, people = facts_of(question, levels.size), np.array(levels.sizes, float), levels.size
        weights = shares * people / sizes
        each = level_scales(question, levels) * weights / facts.divisor
        together = np.sqrt((each**2).sum(axis=1))
        scales = tuple(together.tolist())
        laplace = tuple(unit * scale for (unit, _, _), scale in zip(facts.parts, scales, strict=True))
        parts = np.sort(each[0] / max(together[0], 1e-300))[::-1]
        known = (facts, sizes, people, levels.left_out, weights, 1.0, laplace, scales, False, Rest.OMITTED)
        gaussian = question.measure.delta is not None
        apart = tuple(parts[:_TOLD_APART][parts[:_TOLD_APART] > 0].tolist())
        small = float(np.sqrt((parts[_TOLD_APART:] ** 2).sum()))
        return cls(*known, gaussian, parts=() if gaussian else apart, small=0.0 if gaussian else small)

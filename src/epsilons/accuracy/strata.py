"""How far an answer errs that fills public groups by themselves: only relations within a group can bias it."""

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from epsilons.accuracy.additive import Effect, uneven
from epsilons.preferences.strata import Strata
from epsilons.statistics.base import Question, Weighting


@dataclass(frozen=True, eq=False)
class GroupEffect(Effect):
    """The same effect, of weights that add up to everybody's in each of some groups: `pools` names the group of each.

    Levels' distances average to zero within a group, so that B = sum |w_i - median(w)| is taken there (docs/theory.md).
    """

    pools: tuple[int, ...] = field(default=(), kw_only=True)
    left: dict[int, int] = field(default_factory=dict, kw_only=True)

    @classmethod
    def note(cls, question: Question, levels: Strata, weighting: Weighting, pools: tuple[int, ...]) -> Self:
        """Of a weighting, beside which it is kept: whoever asks for its effect finds this one."""
        plain, left = Effect._of(question, levels, weighting), dict[int, int]()
        of_group = dict(zip(levels.groups, pools, strict=True))
        for group, people in enumerate(levels.left_by):
            left[of_group[group]] = left.get(of_group[group], 0) + people
        known = {each.name: getattr(plain, each.name) for each in fields(Effect)}
        made = cls(**known, pools=pools, left=left)
        weighting.effects[question] = made
        return made

    @cached_property
    def drift(self) -> Any:
        found, pools = 0.0, np.array(self.pools)
        for pool in set(self.pools):
            here = pools == pool
            found += float(uneven(self.multipliers[here], self.sizes[here], self.left.get(pool, 0)))
        return found / self.facts.divisor

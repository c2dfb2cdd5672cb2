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
    """The same effect, of weights that add up to everybody's in each public group: `groups` names the group of each.

    Levels' distances average to zero within a group, so that B = sum |w_i - median(w)| is taken there (docs/theory.md).
    """

    groups: tuple[int, ...] = field(default=(), kw_only=True)
    left_by: tuple[int, ...] = field(default=(), kw_only=True)

    @classmethod
    def note(cls, question: Question, levels: Strata, weighting: Weighting) -> Self:
        """Of a weighting, beside which it is kept: whoever asks for its effect finds this one."""
        plain = Effect._of(question, levels, weighting)
        known = {each.name: getattr(plain, each.name) for each in fields(Effect)}
        made = cls(**known, groups=levels.groups, left_by=levels.left_by)
        weighting.effects[question] = made
        return made

    @cached_property
    def drift(self) -> Any:
        found, groups = 0.0, np.array(self.groups)
        for group, left in enumerate(self.left_by):
            here = groups == group
            found += float(uneven(self.multipliers[here], self.sizes[here], left))
        return found / self.facts.divisor

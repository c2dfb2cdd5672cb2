"""Everyone at the strictest epsilon on the roster."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from epsilons.mechanisms.base import Weighing, register
from epsilons.preferences import Levels
from epsilons.statistics.base import Question, Weighting


@register
@dataclass(frozen=True)
class Minimum(Weighing):
    """Give everyone the privacy of the strictest person on the roster.

    Definition: run a DP mechanism on everybody at alpha = min over the roster. Never over the rows that happen to be in
                the data: a strict person joining would then change the noise, which betrays them.
    Theorem:    Jorgensen et al. 2015, section IV-A (baseline "Minimum"), by Theorem 3.
    Guarantee:  eps_i-PDP, indeed alpha-DP; one person absent or replaced, as asked.
    Cost:       alpha charged to everyone.
    Error:      the noise alone for additive statistics; for quantiles its distribution on a public stand-in.
    """

    name: ClassVar[str] = "minimum"
    gist: ClassVar[str] = "everyone at the strictest epsilon"

    def weigh(self, question: Question, levels: Levels) -> Weighting:
        return Weighting((1,) * len(levels.grants), 1, Fraction(levels.smallest))

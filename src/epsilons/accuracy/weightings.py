"""Several weightings, to be compared by the errors that they would give."""

from dataclasses import dataclass, field
from typing import Any

from epsilons.statistics.base import Floats, Question, Rest


@dataclass(frozen=True, eq=False)
class Weightings:
    """Several weightings at once, in floats: rows of expected weights by level, and what weight one costs in each."""

    fractions: Floats
    rate: Floats
    one: int
    rest: Rest
    sampled: bool = False
    effects: dict[Question, Any] = field(default_factory=dict, repr=False)

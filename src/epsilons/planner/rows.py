"""One row of a plan: a mechanism, its predicted error and its price."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epsilons.mechanisms.base import Mechanism, charge_table
from epsilons.preferences import Levels
from epsilons.statistics.question import ASSUMPTIONS, Question


@dataclass(frozen=True)
class PlanRow:
    """What one mechanism would do with a question: nothing here needs data."""

    mechanism: str
    error: float | None
    worst_error: float | None
    used: float
    charges: Mapping[float, float]
    assumption: str
    reason: str
    options: Mapping[str, Any]
    #: The mechanism itself, ready to draw.
    chosen: Mechanism

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON; public people pay nothing and are left out of the charges."""
        return {
            "mechanism": self.mechanism,
            "error": self.error,
            "worst_error": self.worst_error,
            "used": self.used,
            "charges": [[granted, spent] for granted, spent in self.charges.items() if math.isfinite(granted)],
            "options": dict(self.options),
            "assumption": self.assumption,
            "reason": self.reason,
        }

    def judged_by(self, assume: str) -> float:
        """The error that counts under an assumption; infinite where none can be predicted."""
        error = self.worst_error if assume == "nothing" else self.error
        return math.inf if error is None else error


def make_row(mechanism: Mechanism, question: Question, levels: Levels) -> PlanRow:
    """Ask a mechanism what it would do."""
    charges = mechanism.charge(question, levels)
    return PlanRow(
        mechanism=mechanism.name,
        error=mechanism.predict_error(question, levels),
        worst_error=mechanism.worst_error(question, levels),
        used=mechanism.used(question, levels),
        charges=charge_table(levels, charges),
        assumption=ASSUMPTIONS[mechanism.assumption],
        reason=mechanism.explain(question, levels),
        options=mechanism.options(question, levels),
        chosen=mechanism,
    )

"""One row of a plan: a mechanism, its predicted error and its price."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from epsilons.arguments.checks import ASSUMPTIONS
from epsilons.arguments.reading import AskOptions
from epsilons.errors import PlanError
from epsilons.mechanisms.base import Mechanism, charge_table, options_of, predicted_error, worst_error
from epsilons.preferences import Levels
from epsilons.statistics.base import Question

#: A front asks a row, by its mechanism's name or "auto", with data where it has none of its own.
Front = Callable[..., Any]


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
    #: At which share of every grant, and how the front that made the plan asks this row.
    share: Fraction = field(default=Fraction(1), compare=False)
    front: Front | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Elsewhere it can be looked at, not asked: the front that made it stays here."""
        return {**self.__dict__, "front": None}

    def options_of(self, options: AskOptions, mechanism: str) -> AskOptions:
        """The options of a question that asks for this row: by its name without what other mechanisms take."""
        if mechanism == "auto":
            return options
        others: dict[str, Any] = {name: None for name in options.settings if name not in options_of(type(self.chosen))}
        return replace(options, mechanism=mechanism, **others)

    def ask(self, *data: Any, **named: Any) -> Any:
        """Ask this mechanism, and get what the row shows: `row.ask(values)` on arrays, `row.ask()` on tables."""
        return ask_row(self, self.mechanism, self.front, data, named)

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
        error=predicted_error(mechanism, question, levels),
        worst_error=worst_error(mechanism, question, levels),
        used=mechanism.used(question, levels),
        charges=charge_table(levels, charges),
        assumption=ASSUMPTIONS[mechanism.assumption],
        reason=mechanism.explain(question, levels),
        options=mechanism.options(question, levels),
        chosen=mechanism,
    )


def ask_row(row: PlanRow, mechanism: str, front: Front | None, data: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """Hand a row back to the front that planned it."""
    if front is None:
        raise PlanError(
            "This plan cannot be asked.",
            rule="It is about people or shares as they might be.",
            suggest="plan what is to be asked, then plan.ask()",
        )
    return front(row, mechanism, data, named)

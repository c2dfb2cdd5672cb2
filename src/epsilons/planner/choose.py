"""Which mechanism: the least predicted error under the stated assumption, and why; one row of a plan for each."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from epsilons.arguments.reading import AskOptions, Settings
from epsilons.display import Sheet, Shown, show
from epsilons.errors import PlanError
from epsilons.mechanisms import base
from epsilons.mechanisms.base import Account, Mechanism, find_error
from epsilons.preferences import Levels
from epsilons.statistics.base import Question

#: Where no error can be predicted: Sample keeps the most people at one epsilon; without any assumption PE does.
_UNPREDICTED = {False: "sample", True: "exponential"}

#: Where several do equally well, as where everyone granted the same: the plainest, and coins only where they help.
_PLAINEST, _LAST = "minimum", "sample"
#: Errors that agree in so many digits are the same: the rest is rounding.
_DIGITS = 9

DEFAULTS = Settings()
HEAD = ("mechanism", "error", "worst error", "people used", "charges", "how")

#: A front asks a row, by its mechanism's name or "auto", with data where it has none of its own.
Front = Callable[..., Any]


@dataclass(frozen=True)
class PlanRow(Shown):
    """What one mechanism would do with a question: nothing here needs data."""

    mechanism: str
    error: float | None
    worst_error: float | None
    used: float
    account: Account
    assumption: str
    reason: str
    options: Mapping[str, Any]
    #: The mechanism itself, ready to draw.
    chosen: Mechanism
    #: What else is expected of the answer: of a model its R2 or its accuracy, and those of an exact one.
    expectations: Mapping[str, float] = field(default_factory=dict)
    #: At which share of every grant, and how the front that made the plan asks this row.
    share: Fraction = field(default=Fraction(1), compare=False)
    front: Front | None = field(default=None, repr=False, compare=False)

    @property
    def charges(self) -> dict[float, float]:
        """{granted epsilon: epsilon spent}."""
        return self.account.charges

    def cells(self) -> tuple[str, ...]:
        """Its line of a plan."""
        finite = [(granted, charge) for granted, charge in self.charges.items() if math.isfinite(granted)]
        charges = self.account.measure.show(finite)
        return self.mechanism, show(self.error), show(self.worst_error), f"{self.used:.0%}", charges, self.reason

    def sheets(self) -> list[Sheet]:
        return [Sheet("", HEAD, [self.cells()], [f"Condition: {self.assumption}."])]

    def __getstate__(self) -> dict[str, Any]:
        """Elsewhere it can be looked at, not asked: the front that made it stays here."""
        return {**self.__dict__, "front": None}

    def pin_options(self, options: AskOptions, mechanism: str) -> AskOptions:
        """The options of a question that asks for this row: by its name without what other mechanisms take."""
        if mechanism == "auto":
            return options
        others: dict[str, Any] = dict.fromkeys(set(vars(options.settings)) - base.option_names(type(self.chosen)))
        return replace(options, mechanism=mechanism, **others)

    def ask(self, *data: Any, **named: Any) -> Any:
        """Ask this mechanism, and get what the row shows: `row.ask(values)` on arrays, `row.ask()` on tables."""
        return self.ask_as(self.mechanism, data, named)

    def ask_as(self, mechanism: str, data: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Hand the row back to the front that planned it, by the name that the caller gave."""
        if self.front is None:
            rule = "It is about people or shares as they might be."
            raise PlanError("This plan cannot be asked.", rule=rule, suggest="plan what is to be asked")
        return self.front(self, mechanism, data, named)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON; public people pay nothing and are left out of the charges."""
        names = ("mechanism", "error", "worst_error", "used", "charges", "options", "assumption", "reason")
        shown = {name: getattr(self, name) for name in names}
        plain = {"charges": list_finite(self.charges), "options": dict(self.options)}
        return {**shown, **plain, "expectations": dict(self.expectations)}

    @property
    def expected(self) -> float:
        """The predicted error; infinite where none can be predicted."""
        return math.inf if self.error is None else self.error


def list_finite(charges: Mapping[float, float]) -> list[list[float]]:
    """Charges as JSON has them."""
    return [[granted, spent] for granted, spent in charges.items() if math.isfinite(granted)]


def rank_mechanisms(question: Question, levels: Levels, settings: Settings = DEFAULTS) -> tuple[PlanRow, ...]:
    """Every mechanism that can serve, the best first."""
    return _rows(question, levels, settings, len(base.REGISTERED))


@lru_cache(maxsize=128)
def _rows(question: Question, levels: Levels, settings: Settings, registered: int) -> tuple[PlanRow, ...]:
    """Remembered, since rosters change less often than questions, until another mechanism is registered."""
    return tuple(
        PlanRow(
            mechanism=mechanism.name,
            error=find_error(mechanism, question, levels),
            worst_error=find_error(mechanism, question, levels, worst=True),
            used=mechanism.used(question, levels),
            account=Account.of(levels, base.charges_of(mechanism, question, levels)),
            assumption=mechanism.condition(question, levels),
            reason=mechanism.explain(question, levels),
            options=mechanism.options(question, levels),
            chosen=mechanism,
            expectations=mechanism.expectations(question, levels),
        )
        for _, mechanism in _rank(question, levels, settings)
    )


def choose(name: str, question: Question, levels: Levels, settings: Settings = DEFAULTS) -> tuple[Mechanism, str]:
    """(mechanism, why): the one asked for if it can serve, or the best of all for "auto"."""
    if name != "auto":
        return base.take_named(name, question, levels, settings)

    def best() -> tuple[Mechanism, str]:
        (error, *_), mechanism = _rank(question, levels, settings)[0]
        return mechanism, _why(error, mechanism, question, levels)

    return base.remember(levels, ("best", question, settings, len(base.REGISTERED)), best)


def _rank(question: Question, levels: Levels, settings: Settings) -> list[tuple[tuple[float, int, str], Mechanism]]:
    """(place, mechanism) of those that can serve, the best first: by error, then the plainest, then by name."""
    ranked = []
    for mechanism in base.serving(question, levels, settings):
        error, name = find_error(mechanism, question, levels), mechanism.name
        if error is None or math.isinf(error):
            place = math.inf, int(name != _UNPREDICTED[math.isinf(question.assume)]), name
        else:
            place = float(f"{error:.{_DIGITS}g}"), (name != _PLAINEST) + (name == _LAST), name
        ranked.append((place, mechanism))
    # An interval is paid for where people weigh: an answer without one is no match for those that have it.
    asked = question.statistic.has_bracket
    return sorted(ranked, key=lambda one: (asked and not isinstance(one[1], base.Weighing), one[0]))


def _why(error: float, best: Mechanism, question: Question, levels: Levels) -> str:
    reason = best.explain(question, levels)
    if math.isinf(error):
        unknown = f"No error can be predicted for a {question.statistic.name} without looking at the data"
        return f"{unknown}; {best.name!r} is the default: {reason}."
    least = "worst-case error of all;" if math.isinf(question.assume) else "predicted error of all, assuming that"
    return f"Least {least} {question.condition()}: {reason}."

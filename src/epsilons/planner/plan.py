"""A plan: what an answer would cost and how far it would err, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any

from epsilons.arguments.checks import ASSUMPTIONS, check_error
from epsilons.errors import PlanError
from epsilons.guarantee import to_epsilon
from epsilons.mechanisms.base import Settings
from epsilons.planner.choose import DEFAULTS, choose, rank_mechanisms
from epsilons.planner.floor import count_floor
from epsilons.planner.rows import Front, PlanRow, ask_row
from epsilons.preferences import Levels
from epsilons.statistics.base import Question

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHARE_STEPS = 40
_MOVE = 'plan.what_if({"strict": ("standard", 0.2)})'


@dataclass(frozen=True)
class Plan:
    """Every mechanism that can serve a question, the best first. Made from public facts; it costs nothing.

    `share` is the part of every person's grant that the question may use.
    """

    question: Question
    levels: Levels
    share: Fraction = Fraction(1)
    settings: Settings = DEFAULTS
    rows: tuple[PlanRow, ...] = ()
    #: No personalized mechanism at all can promise a smaller worst-case error than this (counts only).
    floor: float | None = None
    #: For tables: which share of their grants people may be charged; `levels` are then what is left of it.
    of_grants: Fraction | None = None
    #: What the caller asked for by name; `ask` takes its row.
    mechanism: str = "auto"
    #: How the front that made the plan asks a row of it; None for plans about people as they might be.
    front: Front | None = field(default=None, repr=False, compare=False)

    @classmethod
    def make(
        cls,
        question: Question,
        levels: Levels,
        share: Fraction = Fraction(1),
        settings: Settings = DEFAULTS,
        mechanism: str = "auto",
        front: Front | None = None,
    ) -> Plan:
        """Predict every mechanism's error at a share of every grant; a mechanism asked for must be able to serve."""
        question.statistic.check_people(levels)
        spendable = levels.scaled(share) if share < 1 else levels
        if spendable.all_public:
            raise nobody_left(share)
        asked = scale_question(question, share) if share < 1 else question
        if mechanism != "auto":
            choose(mechanism, asked, spendable, settings)
        rows = rank_mechanisms(asked, spendable, settings)
        if share < 1:
            rows = tuple(replace(row, charges=_granted(row, levels, share)) for row in rows)
        rows = tuple(replace(row, share=share, front=front) for row in rows)
        everyone = question.statistic.name == "count" and not question.statistic.private_count
        floor = count_floor(spendable) if everyone else None
        return cls(question, levels, share, settings, rows, floor, mechanism=mechanism, front=front)

    @property
    def best(self) -> PlanRow:
        """The row that `mechanism="auto"` takes."""
        return self.rows[0]

    def chosen(self, mechanism: str) -> PlanRow:
        """The row of a mechanism, the best one for "auto"."""
        for row in self.rows:
            if mechanism in ("auto", row.mechanism):
                return row
        raise PlanError(
            f"{mechanism!r} cannot serve this question.",
            suggest=", ".join(["auto", *(row.mechanism for row in self.rows)]),
        )

    def __getitem__(self, mechanism: str) -> PlanRow:
        """The row of a mechanism: `plan["sample"].error`, `plan["sample"].ask(values)`."""
        return self.chosen(mechanism)

    def ask(self, *data: Any, **named: Any) -> Any:
        """Ask what was planned: `plan.ask(values)` on arrays, `plan.ask()` on tables.

        The answer comes from the mechanism that the plan was asked for, or from the best one, as its row shows.
        """
        return ask_row(self.chosen(self.mechanism), self.mechanism, self.front, data, named)

    def __getstate__(self) -> dict[str, Any]:
        """Elsewhere it can be looked at, not asked: the front that made it stays here."""
        return {**self.__dict__, "front": None}

    def at(self, share: Fraction) -> Plan:
        """The same question at another share."""
        front = self.front if self.of_grants is None else None
        return Plan.make(self.question, self.levels, share, self.settings, self.mechanism, front)

    def reaching(self, error: float) -> Plan:
        """The plan with the smallest share whose best predicted error is at most `error`."""
        error = check_error(error)
        whole = self.at(Fraction(1))
        reached = whole.best.judged_by(self.question.assume)
        if math.isinf(reached):
            raise PlanError(
                f"No error can be predicted for a {self.question.statistic.name}.", suggest="share= instead"
            )
        if reached > error:
            raise PlanError(
                f"An error of {error:g} is out of reach.",
                rule=f"Everybody's whole grant gives {reached:.4g}.",
                suggest=f"error={reached * 1.01:.3g}",
            )
        low, best = Fraction(0), whole
        for _ in range(_SHARE_STEPS):
            middle = (low + best.share) / 2
            if middle * self.levels.largest < 1:
                break
            tried = self.at(middle)
            if tried.best.judged_by(self.question.assume) <= error:
                best = tried
            else:
                low = middle
            if best.share - low < best.share / 100_000:
                break
        return best

    def what_if(self, move: Mapping[str | float, tuple[str | float, float]]) -> Plan:
        """What consent is worth: the plan if a fraction of one level's people moved to another level.

        `move={"strict": ("standard", .2)}` moves a fifth of the strict; levels by name or by epsilon.
        """
        sizes = dict(zip(self.levels.grants, self.levels.sizes, strict=True))
        for source, target, fraction in _moves(move):
            if isinstance(fraction, bool) or not isinstance(fraction, Real) or not 0 <= float(fraction) <= 1:
                raise PlanError(f"A fraction of {fraction!r} cannot move.", rule="From 0 to 1.", suggest=_MOVE)
            origin, aim = self._grant(source), self._grant(target)
            people = round(dict(zip(self.levels.grants, self.levels.sizes, strict=True))[origin] * float(fraction))
            sizes[origin] -= people
            sizes[aim] += people
        kept = [(grant, size) for grant, size in sizes.items() if size > 0]
        if all(grant is None for grant, _ in kept):
            raise PlanError(
                "There would be nothing to plan.",
                rule="With everyone public answers are exact.",
                suggest="leave somebody at a finite level",
            )
        facts = (self.levels.names, self.levels.rounding_loss, self.levels.left_out)
        moved = Levels(tuple(g for g, _ in kept), tuple(n for _, n in kept), *facts)
        return Plan.make(self.question, moved, self.share, self.settings)

    def _grant(self, level: str | float) -> int | None:
        for grant in self.levels.grants:
            if level in (self.levels.name(grant), to_epsilon(grant)):
                return grant
        if isinstance(level, Real):
            near = [grant for grant in self.levels.grants if f"{to_epsilon(grant):.6g}" == f"{float(level):.6g}"]
            if len(near) == 1:
                return near[0]
        names = ", ".join(self.levels.name(grant) for grant in self.levels.grants)
        raise PlanError(f"There is no level {level!r}.", suggest=f"one of {names}")

    def plot(self, axes: Axes | None = None) -> Axes:
        """Error against the share of everybody's budget, one curve per mechanism."""
        if math.isinf(self.best.judged_by(self.question.assume)):
            raise PlanError(
                f"No error can be predicted for a {self.question.statistic.name}.",
                rule="A picture of a plan shows predicted errors.",
                suggest="print(plan)",
            )
        from epsilons.plots import plot_plan

        shares = [Fraction(k, 20) for k in range(1, 21)]
        curves: dict[str, list[float]] = {}
        for share in shares:
            for row in self.at(share).rows:
                curves.setdefault(row.mechanism, []).append(row.judged_by(self.question.assume))
        return plot_plan(
            self.question.statistic.describe(), [float(s) for s in shares], curves, self.best.mechanism, axes
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        return {
            "statistic": self.question.statistic.describe(),
            "share": float(self.share if self.of_grants is None else self.of_grants),
            "people": self.levels.size,
            "assumption": self.assumption,
            "floor": self.floor,
            "rows": [row.to_dict() for row in self.rows],
        }

    def __str__(self) -> str:
        from epsilons.planner.table import plan_table

        return plan_table(self)

    def _repr_html_(self) -> str:
        from epsilons.planner.table import plan_html

        return plan_html(self)

    @property
    def assumption(self) -> str:
        """What the ranking takes for granted, in words."""
        return ASSUMPTIONS[self.question.assume]


def _moves(move: Any) -> list[tuple[Any, Any, Any]]:
    try:
        return [(source, target, fraction) for source, (target, fraction) in move.items()]
    except (AttributeError, TypeError, ValueError):
        raise PlanError(
            "Nobody can be moved this way.", rule="level: (other level, fraction).", suggest=_MOVE
        ) from None


def scale_question(question: Question, share: Fraction) -> Question:
    """The question at a share: the epsilons of groups of people shrink like everybody's."""
    groups = tuple(math.floor(group * share) for group in question.groups)
    if 0 in groups:
        raise nobody_left(share)
    return replace(question, groups=groups) if groups else question


def nobody_left(share: Fraction) -> PlanError:
    """A share so small that nothing of any grant is left of it."""
    return PlanError(f"A share of {float(share):g} leaves nobody with anything to spend.", suggest="a larger share")


def _granted(row: PlanRow, levels: Levels, share: Fraction) -> dict[float, float]:
    """A row's charges by what people granted, not by the share of it that may be used."""
    parts = {grant: None if grant is None else math.floor(grant * share) for grant in levels.grants}
    return {to_epsilon(grant): row.charges.get(to_epsilon(part), 0.0) for grant, part in parts.items()}

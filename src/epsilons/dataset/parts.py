"""Groups of public columns: each is asked about by itself, all in one question.

Whose group is whose is on the roster, so that nobody pays for another group than their own, and how many people a group
has is known. Every group has its own mechanism and weights; together they are one charge, one reading, one release.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from epsilons.accuracy.intervals import ExactBar
from epsilons.arguments.reading import Call
from epsilons.dataset.attempt import Attempt, NothingToPlanError
from epsilons.dataset.facts import TableFacts
from epsilons.dataset.levels import find_concerned
from epsilons.dataset.question import TableQuestion, parse_question
from epsilons.engines.base import Column
from epsilons.engines.trees import Comparison, canonical
from epsilons.errors import Argument, PlanError
from epsilons.ledger.values import Cohort, Reservation, list_active
from epsilons.planner.choose import PlanRow
from epsilons.planner.plan import Plan
from epsilons.release.answer import EXACT, Release, build_release
from epsilons.release.door import Sketch, Spendable, cannot_resume


@dataclass(frozen=True)
class PartedSketch(Sketch):
    """Sketches of the groups: their levels are numbered one after the other, group by group."""

    parts: tuple[Sketch, ...] = field(default=(), kw_only=True)

    @classmethod
    def join(cls, parts: Sequence[Sketch], question: Any) -> PartedSketch:
        """One of all groups; everybody is in one of them at most."""
        place: dict[int, int] = {}
        granted: dict[int, int | None] = {}
        idle: dict[int | None, None] = {}
        first = 0
        for part in parts:
            place |= {cohort: first + level for cohort, level in part.spendable.place.items()}
            granted |= part.spendable.granted
            idle |= dict.fromkeys(part.spendable.idle)
            first += len(part.spendable.levels.grants)
        base = parts[0].spendable
        # One rate for all: else what levels pay would be taken for units of an account.
        (rate,) = {part.spendable.rate for part in parts}
        together = Spendable(base.levels, place, granted, tuple(idle), base.names, rate)
        return cls(None, parts[0].why, question, together, parts=tuple(parts))

    @cached_property
    def charges(self) -> tuple[int | None, ...]:
        return tuple(charge for part in self.parts for charge in part.charges)

    def to_text(self, asked: str) -> str:
        plans = [json.loads(part.to_text(""))["plan"] for part in self.parts]
        return json.dumps({"asked": asked, "plan": {"parts": plans}}, separators=(",", ":"))


def list_parts(
    asked: TableQuestion, facts: TableFacts, cohorts: Sequence[Cohort]
) -> Iterator[tuple[Any, TableQuestion]]:
    """Every group, with the question about its people alone; refused if there is nobody, which is public."""
    by = asked.by
    assert asked.parted is not None
    assert by is not None
    for label in by.labels:
        keys = label if len(by.columns) > 1 else (label,)
        tests = [_equals(kind, key).text for kind, key in zip(by.columns, keys, strict=True)]
        where = " AND ".join([*([f"({asked.options.where})"] if asked.where else []), *tests])
        part = parse_question(replace(asked.parted, options=replace(asked.options, where=where, by=None)), facts)
        if not list_active(find_concerned(part, facts, cohorts)):
            rule = "Who is in which group is public. Nothing was charged."
            told = {kind.name: list(facts.keys[kind.name]) for kind in by.columns}
            raise PlanError(f"Nobody on the roster is in group {label!r}.", rule=rule, suggest=Argument("by", told))
        yield label, part


def _equals(kind: Column, key: Any) -> Comparison:
    found = canonical(key, kind)
    if found is None:
        raise PlanError(f"A key is not a value of column {kind.name!r}.", suggest=Argument("by"))
    return Comparison(kind, "=", (found,))


def plan_groups(
    parts: Iterator[tuple[Any, TableQuestion]], call: Call, plan: Callable[[Call], Plan], ask: Callable[[Call], Release]
) -> Plan:
    """The plan of the group whose error is largest, asked for all of them."""
    found = []
    for _, part in parts:
        with suppress(NothingToPlanError):
            found.append(plan(replace(call, options=part.options)))
    if not found:
        raise NothingToPlanError("There is nothing to plan.", rule="Everyone is public: answers are exact.")
    worst = max(found, key=lambda one: one[call.options.mechanism].expected)

    def ask_row(row: PlanRow, mechanism: str, data: Sequence[Any], named: Mapping[str, Any]) -> Release:
        if data or named:
            raise PlanError("A plan of a table is asked as it is.", rule="Values and options are known already.")
        pinned = replace(row.pin_options(call.options, mechanism), share=row.share, error=None)
        return ask(replace(call, options=pinned))

    rows = tuple(replace(row, front=ask_row) for row in worst.rows)
    return replace(worst, rows=rows, front=ask_row)


class PartedAttempt(Attempt):
    """One attempt at a question by groups of public columns."""

    @cached_property
    def parts(self) -> tuple[tuple[Any, Attempt], ...]:
        """Every group, with the question about its people alone."""
        found = list_parts(self.asked, self.facts, self.cohorts)
        return tuple((label, self._ask_about(asked)) for label, asked in found)

    def _ask_about(self, asked: TableQuestion) -> Attempt:
        made = Attempt(asked, self.facts, self.registry, self.preparation)
        made.__dict__["cohorts"] = self.cohorts  # one view of the budgets for all of them
        return made

    def plan(self) -> Sketch:
        return PartedSketch.join([part.plan() for _, part in self.parts], self.asked.question)

    def resume(self, held: Reservation) -> Sketch:
        """Every group's own plan, out of the one that was charged."""
        try:
            plans = json.loads(held.description)["plan"]["parts"]
            found, first = [], 0
            for (_, part), plan in zip(self.parts, plans, strict=True):
                last = first + len(plan["levels"])
                places = {c: (level - first, grant) for c, (level, grant) in held.places.items()
                          if first <= level < last}  # fmt: skip
                text = json.dumps({"plan": plan})
                found.append(part.resume(replace(held, description=text, places=places)))
                first = last
        except (ValueError, KeyError, TypeError):
            raise cannot_resume() from None
        return PartedSketch.join(found, self.asked.question)

    def read(self, sketch: Sketch) -> Release:
        assert isinstance(sketch, PartedSketch)
        labels = [label for label, _ in self.parts]
        made = [part.read(one) for (_, part), one in zip(self.parts, sketch.parts, strict=True)]
        return _join(labels, made, sketch, self.asked.question.statistic.describe())


def _join(labels: Sequence[Any], made: Sequence[Release], sketch: PartedSketch, statistic: str) -> Release:
    """One release of all groups."""
    drawn = next((one for one in made if one.mechanism != EXACT), made[0])
    bars = [_bars(one) for one in made]
    caveats = tuple(dict.fromkeys(caveat for one in made for caveat in one.guarantee.caveats))
    imputes = all(one.guarantee.imputes for one in made)
    promise = replace(drawn.guarantee, losses=sketch.account.losses, caveats=caveats, imputes=imputes)
    return build_release(
        sketch.account,
        promise,
        statistic=statistic,
        value=_by_label(labels, [one.value for one in made]),
        error=_by_label(labels, [_spread(one.error, one.value) for one in made]),
        mechanism=", ".join(dict.fromkeys(one.mechanism for one in made)),
        why=f"Each group by itself, since who is in it is public. {drawn.why}",
        assumption="; ".join(dict.fromkeys(one.assumption for one in made if one.mechanism != EXACT))
        or drawn.assumption,
        models=None if None in bars else tuple(bar for some in bars if some is not None for bar in some),
        no_interval=next((one.no_interval for one in made if one.no_interval), ""),
    )


def _bars(made: Release) -> tuple[Any, ...] | None:
    """Error bars of a group; an exact one has some as well, of no width."""
    if made.models is not None or made.mechanism != EXACT or made.no_interval:
        return made.models
    values = made.value.values() if isinstance(made.value, dict) else [made.value]
    return tuple(ExactBar(0.0, (float(value), float(value))) for value in values)


def _spread(error: Any, value: Any) -> Any:
    """The error of each number of a group, where they have one in common."""
    return dict.fromkeys(value, error) if isinstance(value, Mapping) and not isinstance(error, Mapping) else error


def _by_label(labels: Sequence[Any], found: Sequence[Any]) -> dict[Any, Any]:
    """By group; by group and bin where a group has several numbers."""
    return {
        key: number
        for label, one in zip(labels, found, strict=True)
        for key, number in (
            [((label, inner), number) for inner, number in one.items()] if isinstance(one, Mapping) else [(label, one)]
        )
    }

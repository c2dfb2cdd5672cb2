"""The statistics as methods of a dataset and of a batch, made from the catalogue.

Type checkers read `methods.pyi`, which `make signatures` writes from the same catalogue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epsilons.arguments import BATCHES, TABLES
from epsilons.calls import Call, name_statistic, plan_signature, read_call, read_plan, take_places
from epsilons.planner.plan import Plan
from epsilons.release import Release
from epsilons.statistics.catalogue import CATALOGUE, Entry, find_statistic


class Questions:
    """The statistics of a dataset: each goes through the one door."""

    def plan(self, *given: Any, **named: Any) -> Plan:
        """What every mechanism would cost and how far it would err, with what everybody has left. Free.

        `arguments` are those of the statistic's method. `plan.ask()` asks the best row, `plan["sample"].ask()` any
        other one: it gives what the row shows, or nothing if what people have left has changed since.
        """
        hint = 'people.plan("mean", "wage", bounds=(0, 100))'
        values = take_places("people.plan", ("statistic", "column"), ("statistic",), given, named, hint)
        statistic, column = values.pop("statistic"), values.pop("column", None)
        return self._plan(read_plan(find_statistic(statistic), TABLES, values, column))

    plan.__qualname__ = "Dataset.plan"
    plan.__signature__ = plan_signature(TABLES, Plan)  # type: ignore[attr-defined]

    def _ask(self, call: Call) -> Release:
        raise NotImplementedError

    def _plan(self, call: Call) -> Plan:
        raise NotImplementedError


class BatchQuestions:
    """The statistics of a batch, without share and error: each is noted down."""

    def _note(self, entry: Entry, given: Any, named: Any) -> Any:
        raise NotImplementedError


def _method(entry: Entry) -> Callable[..., Any]:
    def question(self: Questions, *given: Any, **named: Any) -> Any:
        return self._ask(read_call(entry, TABLES, given, named))

    name_statistic(entry, TABLES, question, "Dataset", Release)
    return question


def _noted(entry: Entry) -> Callable[..., Any]:
    def question(self: BatchQuestions, *given: Any, **named: Any) -> Any:
        return self._note(entry, given, named)

    name_statistic(entry, BATCHES, question, "Batch", "Pending")
    return question


for _entry in CATALOGUE.values():
    setattr(Questions, _entry.name, _method(_entry))
    setattr(BatchQuestions, _entry.name, _noted(_entry))

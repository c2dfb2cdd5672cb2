"""The statistics as methods of a dataset and of a batch, made from the catalogue.

Type checkers read `methods.pyi`, which `make signatures` writes from the same catalogue.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from epsilons.arguments.options import BATCHES, TABLES
from epsilons.arguments.reading import Call, read_plan, take_places
from epsilons.calls import make_method, plan_signature
from epsilons.planner.plan import Plan
from epsilons.release import Release
from epsilons.statistics.catalogue import CATALOGUE, find_statistic


class Questions(ABC):
    """The statistics of a dataset: each goes through the one door."""

    def plan(self, *given: Any, **named: Any) -> Plan:
        """What every mechanism would cost and how far it would err, with what everybody has left. Free.

        `arguments` are those of the statistic's method. `plan.ask()` asks the best row, `plan["sample"].ask()` any
        other one: it gives what the row shows, or nothing if what people have left has changed since. A question that
        was answered before gets that answer, at no charge.
        """
        values = take_places("A plan", ("statistic", "column"), ("statistic",), given, named)
        statistic, column = values.pop("statistic"), values.pop("column", None)
        return self._plan(read_plan(find_statistic(statistic), TABLES, values, column))

    plan.__qualname__ = "Dataset.plan"
    plan.__signature__ = plan_signature(TABLES, Plan)  # type: ignore[attr-defined]

    @abstractmethod
    def _ask(self, call: Call) -> Release:
        """The answer to a call that was read."""

    @abstractmethod
    def _plan(self, call: Call) -> Plan:
        """Its plan."""


class BatchQuestions(ABC):
    """The statistics of a batch, without share and error: each is noted down."""

    @abstractmethod
    def _ask(self, call: Call) -> Any:
        """A question noted down, to be asked with the others."""


for _entry in CATALOGUE.values():
    setattr(Questions, _entry.name, make_method(_entry, TABLES, "Dataset", Release))
    setattr(BatchQuestions, _entry.name, make_method(_entry, BATCHES, "Batch", "Pending"))

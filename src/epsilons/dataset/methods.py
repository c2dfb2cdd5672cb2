"""The statistics as methods of a dataset and of a batch, made from the catalogue.

Type checkers read `methods.pyi`, which `make signatures` writes from the same catalogue.
"""

from collections.abc import Callable
from typing import Any

from epsilons.arguments.checks import check_truth
from epsilons.arguments.options import BATCHES, TABLES
from epsilons.arguments.reading import Call, read_plan, take_places
from epsilons.calls import make_method, plan_signature
from epsilons.planner.plan import Plan
from epsilons.release import Release
from epsilons.statistics.catalogue import CATALOGUE, find_statistic


class Questions:
    """The statistics of a dataset: each goes through the one door, by `_ask`."""

    _plan: Callable[[Call, bool], Plan]

    def plan(self, *given: Any, **named: Any) -> Plan:
        """What every mechanism would cost and how far it would err, with what everybody has left. Free.

        `arguments` are those of the statistic's method. `plan.ask()` asks the best row, `plan["sample"].ask()` any
        other one: it gives what the row shows, or nothing if what people have left has changed since. A question that
        was answered before gets that answer, at no charge. Past answers serve as guesses, which `plan.ask()` goes by;
        `past=False` leaves them aside, as a question does that is asked by its own method.
        """
        values = take_places("A plan", ("statistic", "column"), ("statistic",), given, named)
        statistic, column = values.pop("statistic"), values.pop("column", None)
        past = check_truth("past", values.pop("past", True))
        return self._plan(read_plan(find_statistic(statistic), TABLES, values, column), past)

    plan.__qualname__ = "Dataset.plan"
    plan.__signature__ = plan_signature(TABLES, Plan)  # type: ignore[attr-defined]


class BatchQuestions:
    """The statistics of a batch, without share and error: each is noted down, by `_ask`."""


for _entry in CATALOGUE.values():
    setattr(Questions, _entry.name, make_method(_entry, TABLES, "Dataset", Release))
    setattr(BatchQuestions, _entry.name, make_method(_entry, BATCHES, "Batch", "Pending"))

"""The functions on arrays, made from the catalogue: `eps.mean` and all the others, and `eps.plan`.

Type checkers read `functions.pyi`, which `make signatures` writes from the same catalogue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epsilons.arguments import ARRAYS
from epsilons.arrays.asking import ask, make_plan
from epsilons.calls import name_statistic, plan_signature, read_call, take_places
from epsilons.planner.plan import Plan
from epsilons.release import Release
from epsilons.statistics.catalogue import CATALOGUE, Entry


def _function(entry: Entry) -> Callable[..., Release]:
    def question(*given: Any, **named: Any) -> Release:
        return ask(read_call(entry, ARRAYS, given, named))

    name_statistic(entry, ARRAYS, question, "", Release)
    return question


def plan(*given: Any, **named: Any) -> Plan:
    """What every mechanism would cost and how far it would err; free, since it needs no values.

    `arguments` are those of the statistic (bounds, q, step, edges, ...) and all its options. With `error` the plan is
    the one with the smallest share of everybody's epsilon that reaches it. Mechanisms for individual privacy, which is
    weaker, appear only with `privacy="individual"`, and without a predicted error: it would be data. With one epsilon
    for everyone, or for groups, say how many `people` there are. `plan.ask(values)` asks the best row, and
    `plan["sample"].ask(values)` any other: it gives what the row shows.

    >>> import epsilons as eps
    >>> plan = eps.plan("count", [0.1] * 500 + [1.0] * 500)
    >>> print(plan.best.mechanism)
    weighted
    >>> plan["sample"].ask([1, 0] * 500).mechanism
    'sample'
    """
    hint = 'eps.plan("mean", epsilons, bounds=(0, 100))'
    values = take_places("eps.plan", ("statistic", "epsilons"), ("statistic",), given, named, hint)
    return make_plan(values.pop("statistic"), values.pop("epsilons", None), values)


plan.__signature__ = plan_signature(ARRAYS, Plan)  # type: ignore[attr-defined]
globals().update({entry.name: _function(entry) for entry in CATALOGUE.values()})
__all__ = [*sorted(CATALOGUE), "plan"]

"""The functions on arrays, made from the catalogue: `eps.mean` and all the others, and `eps.plan`.

Type checkers read `functions.pyi`, which `make signatures` writes from the same catalogue.
"""

from typing import Any

from epsilons.accuracy.relation import Relation
from epsilons.arguments.options import ARRAYS
from epsilons.arguments.reading import take_places
from epsilons.arrays.asking import make_function, make_plan, never_missing
from epsilons.calls import plan_signature
from epsilons.planner.plan import Plan
from epsilons.statistics.catalogue import CATALOGUE


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
    values = take_places("A plan", ("statistic", "epsilons"), ("statistic",), given, named)
    return make_plan(values.pop("statistic"), values.pop("epsilons", None), values)


def relation(values: Any, epsilons: Any, **options: Any) -> Relation:
    """How far levels' expected means can lie from everyone's: what later questions may take as `assume`, for free.

    Each level's own noisy mean is bought, as by `eps.mean(..., mechanism="mixed")`, whose options these are. Missing
    values stand at the centre of the bounds; whole numbers and truths of numpy are all there. Means and sums of the
    same values within the same bounds take it.

    >>> import epsilons as eps
    >>> wages, whole = [20, 30, 40] * 400, {"bounds": (0, 100), "complete": True}
    >>> found = eps.relation(wages, [0.5, 1, 2] * 400, share=0.1, **whole)
    >>> answer = eps.mean(wages, [0.5, 1, 2] * 400, share=0.9, assume=found, **whole)
    """
    asked = Relation.question(options, never_missing(values))
    return Relation.bought_by(globals()["mean"](values, epsilons, **asked))


plan.__signature__ = plan_signature(ARRAYS, Plan)  # type: ignore[attr-defined]
globals().update({entry.name: make_function(entry) for entry in CATALOGUE.values()})
__all__ = sorted([*CATALOGUE, "plan", "relation"])

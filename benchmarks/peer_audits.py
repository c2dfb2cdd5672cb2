"""Audits of other libraries by `eps.audit`: prints what was found as JSON, a line for each function.

Run by benchmarks/audits.py, with the name of a library: OpenDP in the environment of this project, diffprivlib in one
of its own. Functions get the values of the people who are there; what a library promises is taken from its own
accounting (OpenDP) or from the epsilon that it was given (diffprivlib).
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import epsilons as eps

DELTA = 1e-6
Function = Callable[[list[float]], Any]


@dataclass(frozen=True)
class Case:
    """A function of a library, the epsilon that it promises, and how it is attacked."""

    name: str
    epsilon: float
    function: Function
    neighbors: str = "absent"
    domain: tuple[Any, ...] = (0.0, 1.0)
    people: int = 2
    options: dict[str, Any] = field(default_factory=dict)


def rounded(function: Function) -> Function:
    """The same on a grid of 2^-20, which no last bit passes."""
    return lambda values: round(float(function(values)) * 2**20) / 2**20


def with_opendp() -> Iterator[Case]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    whole = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    real = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0))), dp.symmetric_distance()
    count = whole >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
    ints = {"domain": (0, 1)}
    yield Case("count, Laplace", count.map(1), count, **ints)
    yield Case("the same, said to be half as much", count.map(1) / 2, count, **ints)
    total = real >> dp.t.then_sum() >> dp.m.then_laplace(scale=1.0)
    yield Case("sum of floats, Laplace", total.map(1), total)
    normal = dp.c.make_zCDP_to_approxDP(real >> dp.t.then_sum() >> dp.m.then_gaussian(scale=4.0))
    yield Case("sum of floats, Gaussian", normal.map(1).epsilon(DELTA), normal, options={"delta": DELTA})


def with_diffprivlib() -> Iterator[Case]:
    from diffprivlib import mechanisms, tools

    warnings.simplefilter("ignore")  # of diffprivlib, about leaks that are meant here

    def add(mechanism: Any) -> Function:
        return lambda values: mechanism.randomise(float(sum(values)))

    def add_whole(mechanism: Any) -> Function:
        return lambda values: mechanism.randomise(int(sum(values)))

    laplace = mechanisms.Laplace(epsilon=1.0, sensitivity=1.0)
    yield Case("sum, Laplace", 1.0, add(laplace))
    yield Case("the same, rounded to 2^-20", 1.0, rounded(add(laplace)))
    yield Case("sum, Snapping", 1.0, add(mechanisms.Snapping(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=4.0)))
    yield Case("count, Geometric", 1.0, add_whole(mechanisms.Geometric(epsilon=1.0, sensitivity=1)))
    given = {"epsilon": 1.0, "delta": DELTA, "sensitivity": 1.0}
    wide = {"options": {"delta": DELTA, "draws": 20_000}}
    yield Case("sum, analytic Gaussian", 1.0, add(mechanisms.GaussianAnalytic(**given)), **wide)
    yield Case("the same, rounded to 2^-20", 1.0, rounded(add(mechanisms.GaussianAnalytic(**given))), **wide)

    def mean(values: list[float]) -> float:
        return float(tools.mean(values, epsilon=1.0, bounds=(0, 1)))

    yield Case("mean of two, tools.mean", 1.0, mean, "replace")


def find(case: Case) -> dict[str, Any]:
    """What the audit says."""
    options = {"draws": 8_000, **case.options}
    found = eps.audit(
        case.function, [case.epsilon] * case.people, domain=case.domain, neighbors=case.neighbors, **options
    )
    worst = found.worst
    return {
        "name": case.name,
        "neighbors": case.neighbors,
        "promised": case.epsilon,
        "delta": worst.delta,
        "found": worst.loss,
        "holds": found.holds,
        "draws": options["draws"],
        "event": worst.event,
    }


LIBRARIES = {"OpenDP": with_opendp, "diffprivlib": with_diffprivlib}

if __name__ == "__main__":
    for case in LIBRARIES[sys.argv[1]]():
        print(json.dumps(find(case)), flush=True)

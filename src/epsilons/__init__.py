"""epsilons: differential privacy where everyone sets their own epsilon.

>>> import epsilons as eps
>>> answer = eps.mean([21, 35, 50], [0.5, 1.0, eps.PUBLIC], bounds=(0, 100))
>>> answer.guarantee.neighbors
'absent'
"""

from typing import TYPE_CHECKING, Any

from epsilons import ledger, mechanisms
from epsilons.arguments.spans import days, hours, months, quarters, ranges, weekdays, weeks, years
from epsilons.arrays import functions
from epsilons.arrays.functions import *  # noqa: F403 one for each statistic of the catalogue, and `plan`
from epsilons.arrays.individual import individually
from epsilons.arrays.laws import distribution, simulate
from epsilons.arrays.noisy import noisy
from epsilons.arrays.personalize import personalize
from epsilons.arrays.research import audit
from epsilons.arrays.select import select
from epsilons.errors import (
    BudgetExceeded,
    DataError,
    EpsilonsError,
    LedgerError,
    PlanError,
    PreferenceError,
    ProtocolError,
)
from epsilons.guarantee import Guarantee
from epsilons.planner.plan import Plan
from epsilons.preferences import PUBLIC, Preferences, Roster
from epsilons.release import Release

if TYPE_CHECKING:
    from epsilons.dataset import Dataset
    from epsilons.remote.client import connect

__version__ = "0.1.0"

__all__ = [
    "PUBLIC", "BudgetExceeded", "DataError", "Dataset", "EpsilonsError", "Guarantee", "LedgerError", "Plan",
    "PlanError", "PreferenceError", "Preferences", "ProtocolError", "Release", "Roster", "audit", "connect", "days",
    "distribution", "hours", "individually", "ledger", "mechanisms", "months", "noisy", "personalize", "quarters",
    "ranges", "select", "simulate", "weekdays", "weeks", "years",
]  # fmt: skip
__all__ += functions.__all__


def __getattr__(name: str) -> Any:
    """`Dataset` and `connect` load the engine, and with it much that arrays do not need, on first use."""
    if name == "Dataset":
        from epsilons.dataset import Dataset

        return Dataset
    if name == "connect":
        from epsilons.remote.client import connect

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is public, `Dataset` and `connect` before their first use as well; not what this file imports."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})

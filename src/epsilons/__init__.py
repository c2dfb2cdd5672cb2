"""epsilons: differential privacy where everyone sets their own epsilon.

>>> import epsilons as eps
>>> answer = eps.mean([21, 35, 50], [0.5, 1.0, eps.PUBLIC], bounds=(0, 100))
>>> answer.guarantee.neighbors
'absent'
"""

from epsilons import ledger, mechanisms
from epsilons.arrays import count, histogram, kth_largest, max, mean, median, min, plan, quantile, sum, variance
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
from epsilons.individual import individually
from epsilons.personalizing import personalize
from epsilons.planner.plan import Plan
from epsilons.preferences import PUBLIC, Preferences
from epsilons.regression import linear_regression, logistic_regression
from epsilons.release import Release

__version__ = "0.1.0"

__all__ = [
    "PUBLIC",
    "BudgetExceeded",
    "DataError",
    "EpsilonsError",
    "Guarantee",
    "LedgerError",
    "Plan",
    "PlanError",
    "PreferenceError",
    "Preferences",
    "ProtocolError",
    "Release",
    "count",
    "histogram",
    "individually",
    "kth_largest",
    "ledger",
    "linear_regression",
    "logistic_regression",
    "max",
    "mean",
    "mechanisms",
    "median",
    "min",
    "personalize",
    "plan",
    "quantile",
    "sum",
    "variance",
]

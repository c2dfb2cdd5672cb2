"""The catalogue of statistics: all that can be asked, from which every front is made.

Functions on arrays, methods of a dataset, plans, batches, SQL and commands read this table. A file listed here has its
statistics in `ENTRIES`; a new statistic is one file, and its name here. Other packages bring theirs by entry points of
`epsilons.statistics`, each a module with `ENTRIES`; none takes a name that is taken.
"""

from importlib import import_module
from typing import Any

from epsilons.arguments.plugins import load_plugins
from epsilons.errors import PlanError
from epsilons.statistics.entry import Entry

_FILES = (
    "count",
    "total",
    "variance",
    "quantiles",
    "unbounded",
    "histogram",
    "regression",
    "logistic",
    "covariance",
    "choice",
)

#: Every statistic by name.
CATALOGUE: dict[str, Entry] = {
    entry.name: entry for file in _FILES for entry in import_module(f"epsilons.statistics.{file}").ENTRIES
}
for _module in load_plugins("epsilons.statistics"):
    CATALOGUE |= {entry.name: entry for entry in _module.ENTRIES if entry.name not in CATALOGUE}


def find_statistic(name: Any) -> Entry:
    """A statistic by name."""
    if not isinstance(name, str) or name not in CATALOGUE:
        raise PlanError(f"Unknown statistic {name!r}.", rule="Statistics go by name.", suggest=", ".join(CATALOGUE))
    return CATALOGUE[name]

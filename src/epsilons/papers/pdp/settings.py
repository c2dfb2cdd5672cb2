"""Jorgensen et al. 2015, Table I: what is varied over which values. All their other figures read it from here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilons.papers.figures import Cell, Figure, Panel, Row, Scale, Table
from epsilons.papers.population import Users

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: People whose values are counted, of whose values there is a median, and whose incomes are predicted.
COUNTED, RANKED, MODELLED = 1_000, 1_001, 100_000
#: Data sets for each count and median; cross-validations for each model, in so many folds.
RUNS, MODEL_RUNS, FOLDS = 1_000, 500, 5


@dataclass(frozen=True, eq=False)
class Sweep:
    """One parameter of the users over its values, the others at their defaults, or at what the paper fixes here."""

    symbol: str
    name: str
    values: tuple[float, ...]
    label: str
    fixed: Mapping[str, float] = field(default_factory=dict)

    def users(self, x: float, people: int) -> Users:
        """At one value."""
        given: dict[str, Any] = {"people": people, **self.fixed, self.name: x}
        return replace(Users(), **given)

    @property
    def default(self) -> float:
        return float(getattr(Users(), self.name))


def _every(step: float, last: float) -> tuple[float, ...]:
    return tuple(float(x) for x in np.arange(step, last + step / 2, step).round(2))


DENSITY = Sweep("δ (count)", "density", (0.01, 0.05, *_every(0.05, 0.5)[1:]), "density: share of ones")
DEVIATION = Sweep("σ (median)", "deviation", _every(100, 1_000), "standard deviation of the values")
CONSERVATIVE = Sweep(
    "f_C", "conservative", (*_every(0.1, 0.5), Users().conservative, 0.6), "share of conservative users (f_C)"
)
STRICTEST = Sweep(
    "ε_C",
    "strictest",
    (0.01, 0.05, *_every(0.1, 0.5)),
    "least epsilon of conservative users (ε_C), at ε_M = 0.5",
    {"middle": 0.5},
)
MIDDLE = Sweep("ε_M", "middle", _every(0.05, 0.5), "epsilon between conservative and moderate users (ε_M)")
PEOPLE = Sweep("n (regression)", "people", tuple(range(10_000, MODELLED + 1, 10_000)), "people (n)")

#: (parameter, default, values tried), as in the table; None: follows from others.
_PARAMETERS: tuple[tuple[str, float | None, tuple[float, ...]], ...] = (
    ("n (count)", COUNTED, (COUNTED,)),
    ("n (median)", RANKED, (RANKED,)),
    (PEOPLE.symbol, MODELLED, PEOPLE.values),
    *((sweep.symbol, sweep.default, sweep.values) for sweep in (DENSITY, STRICTEST, MIDDLE)),
    ("ε_L", Users().liberal, (Users().liberal,)),
    (DEVIATION.symbol, DEVIATION.default, DEVIATION.values),
    ("μ (median)", 500, (500,)),
    (CONSERVATIVE.symbol, CONSERVATIVE.default, CONSERVATIVE.values),
    ("f_M", Users().moderate, (Users().moderate,)),
    ("f_L", None, tuple(round(1 - share - Users().moderate, 2) for share in CONSERVATIVE.values)),
)


def list_parameters(cell: Cell, setting: None) -> Iterator[Row]:
    """Every value of every parameter, as facts."""
    for name, default, values in _PARAMETERS:
        if default is not None:
            yield Row("default", name, default)
        yield from (Row("tried", name, value) for value in values)


def draw_table(axes: Axes, table: Table) -> None:
    """The table as a table."""
    axes.set_axis_off()
    cells = []
    for name, default, values in _PARAMETERS:
        told = [f"{value:,g}" if value < 1e4 else f"{value:,.0f}" for value in values]
        if len(told) > 8:
            told = [*told[:3], "…", told[-1]]
        cells.append((name, "1 − (f_C + f_M)" if default is None else f"{default:,.6g}", ", ".join(told)))
    heads = ("parameter", "default", "values")
    made = axes.table(cells, colLabels=heads, loc="center", cellLoc="left", colWidths=(0.2, 0.22, 0.58))
    made.auto_set_font_size(False)
    made.set_fontsize(9)
    made.scale(1, 1.4)


TABLE_1 = Figure(
    "table-1",
    "the parameters of all experiments",
    {"": Panel("", Scale(""), Scale(""), ("default", "tried"), (None,), list_parameters, weight=0.01, draw=draw_table)},
)

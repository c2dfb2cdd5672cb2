"""Several quantiles in one question: every epsilon is split evenly among them, and their answers rise with q.

Each is drawn as by itself at its part of everybody's loss, with an interval of its own, from the same people, and from
one sample where people are sampled: parts of a loss add up to it (docs/theory.md, "quantiles"). Answers that came out
in another order than their q are put in order, which brings none of them further from its quantile than the farthest
was: nothing private is looked at for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.options import Parameter
from epsilons.errors import Argument, PlanError
from epsilons.noise.entropy import Entropy
from epsilons.statistics.base import Answer, Floats, RowScope, Statistic, Weighting
from epsilons.statistics.brackets import Bracket
from epsilons.statistics.entry import BOUNDS, STEP, Entry
from epsilons.statistics.order import Order, maximum, median, minimum, quantile
from epsilons.statistics.unbounded import UnboundedMedian, UnboundedQuantile

if TYPE_CHECKING:
    from epsilons.statistics.base import Question
    from epsilons.summaries import People

MOST_QUANTILES = 32
_RULE = f"Several quantiles are a list of at most {MOST_QUANTILES} different numbers between 0 and 1."


@dataclass(frozen=True)
class Quantiles(Order):
    """The quantiles `qs`, ascending; `q` is that nearest to a half, which stands for all where one number must."""

    qs: tuple[Fraction, ...] = field(default=())

    family: ClassVar[str] = "quantiles"  # type: ignore[misc]

    @cached_property
    def each(self) -> tuple[Order, ...]:
        """Every one by itself, at its part of every epsilon."""
        common = {"scope": self.scope, "for_interval": self.for_interval, "imputes": self.imputes}
        part = Fraction(1, len(self.qs))
        return tuple([Order(self.bounds, self.step, q=q, portion=part, **common) for q in self.qs])  # type: ignore[arg-type]

    @property
    def loss_factor(self) -> Fraction:  # type: ignore[override]
        return sum([one.loss_factor for one in self.each], Fraction(0))

    def noise_to_spread(self, question: Question) -> float:
        return max([one.noise_to_spread(question) for one in self.each])

    def related(self, question: Question) -> tuple[str, float]:
        """Told is the least distance: whoever holds to it holds to that of every quantile."""
        told = [one.related(question) for one in self.each]
        return min(told, key=lambda one: one[1])

    def _arrange(self, groups: Sequence[Sequence[Any]]) -> dict[Any, Any]:
        """{q: number}, or {(group, q): number}, of each group's numbers in the order of q."""
        names, qs = None if self.scope is None else self.scope.groups, [float(q) for q in self.qs]
        keys = qs if names is None else product(names, qs)
        return dict(zip(keys, [number for group in groups for number in group], strict=True))

    def draw(self, question: Question, weighting: Weighting, people: People, entropy: Entropy) -> Answer:
        chances = weighting.chances
        found = people.grouped_cells(self) if chances is None else people.sampled_cells(self, chances, entropy)
        groups, brackets = [], list[Bracket]()
        for cells in found:
            own, drawn = self.impute(cells), list[int]()
            for one in self.each:
                cell = one.sampler(question, weighting, own).draw(entropy)
                if self.has_bracket:
                    cell, bracket = one.settle(question, weighting, people.levels, own, cell, entropy)
                    brackets.append(bracket)
                drawn.append(cell)
            groups.append([self.value(cell) for cell in sorted(drawn)])
        return Answer(self._arrange(groups), brackets=tuple(brackets) if self.has_bracket else None)

    def simulate(self, question: Question, weighting: Weighting, people: People, entropy: Entropy, size: int) -> Floats:
        raise PlanError("Only single numbers are simulated in bulk.", suggest=Argument("q", 0.5))

    def distribution(self, question: Question, weighting: Weighting, people: People) -> tuple[NDArray[Any], Floats]:
        """Of all draws together, before they are put in order."""
        if self.has_bracket:
            raise PlanError("The cells of several intervals are too many to list.", suggest=Argument("for_interval", 0))
        alone, law = replace(weighting, coins=None), np.zeros((self.points,) * len(self.qs))
        for weight, sample in people.samples(weighting.chances):
            joint: Any = np.array(weight)
            for one in self.each:
                place, chances = one.sampler(question, alone, one.impute(sample.cells(self))).probabilities()
                own = np.zeros(self.points)
                own[place] = chances
                joint = np.multiply.outer(joint, own)
            law += joint
        outcomes = np.empty(law.size, object)
        outcomes[:] = list(product(self.outcomes().tolist(), repeat=len(self.qs)))
        with np.errstate(divide="ignore"):
            return outcomes, np.log(law.ravel())

    def exact(self, people: People) -> tuple[Any, Sequence[float]]:
        grouped = [people.cells(self).with_missing_at(self.default_cell)]
        if self.scope is not None:
            grouped = people.grouped_cells(self)
        found = [[one.cell_at_rank(cells) for one in self.each] for cells in grouped]
        counted = [self.scope is None or bool(cells.people) for cells in grouped]
        rounded = [
            self.rounding(cell) if any_ else float("inf")
            for any_, group in zip(counted, found, strict=True)
            for cell in group
        ]
        return self._arrange([[self.value(cell) for cell in group] for group in found]), rounded

    def identity(self) -> str:
        return f"{super().identity()} each of {', '.join(map(str, self.qs))}"

    def describe(self) -> str:
        which = ", ".join(f"{float(q):g}" for q in self.qs)
        return f"quantiles {which} in [{self.bounds[0]:g}, {self.bounds[1]:g}]"


def several_quantiles(q: Any, bounds: Any, step: float | None = None) -> Order:
    """A quantile, or several where `q` is a list of them."""
    if isinstance(q, (str, bytes)) or not hasattr(q, "__iter__"):
        return quantile(q, bounds, step)
    found = [quantile(one, bounds, step) for one in q]
    qs = tuple(sorted({one.q_asked for one in found}))
    if not 0 < len(qs) == len(found) <= MOST_QUANTILES or not all(one.between_ends for one in found):
        raise PlanError("These quantiles are not allowed.", rule=_RULE, suggest=Argument("q", [0.25, 0.5, 0.75]))
    middle = min(qs, key=lambda one: abs(one - Fraction(1, 2)))
    return Quantiles(bounds, step, q=middle, label="quantile", qs=qs)


def _entry(name: str, make: Callable[..., Order], what: str, *sql: str, **other: Any) -> Entry:
    def build(given: Mapping[str, Any], over: RowScope) -> Statistic:
        if over.unbounded and given["bounds"] is None and name in ("median", "quantile"):
            return _without_bounds(given.get("q", Fraction(1, 2)), given["step"], over, name == "median")
        made = make(**given)
        return replace(made, imputes=over.imputed) if over.complete else replace(made, scope=over.scope)

    doc = f"{what}, on a public grid of possible answers{other.pop('more', '')}."
    told: dict[str, Any] = {
        "arguments": (BOUNDS, STEP),
        "missing": "left out or centred",
        "table_doc": doc,
        "help": f"{what} of a column, on a public grid of answers.",
        "command": f"epsilons {name} people.toml wage --bounds 0,100 --share 0.05",
    }
    return Entry(name=name, build=build, sql=sql, doc=doc, **(told | other))


def _without_bounds(q: Any, step: Any, over: RowScope, median: bool) -> Statistic:
    """For individual and group privacy, which can do without."""
    scope, kind = None if over.complete else over.scope, UnboundedMedian if median else UnboundedQuantile
    return kind(quantile(q, (0.0, 1.0)).q_asked, step, scope)


_Q = Parameter(
    "q",
    float | Sequence[float],
    None,
    "The part of the values below it; a list of several, which share what is spent.",
    positional=True,
    required=True,
)
ENTRIES = (
    _entry(
        "median", median, "The median", "Median", more=" (65,536 steps unless `step` is given)", pays_for_interval=True
    ),
    _entry(
        "quantile",
        several_quantiles,
        "The value below which a fraction `q` of the people lie",
        *("Quantile", "ApproxQuantile", "PercentileCont", "PercentileDisc"),
        arguments=(_Q, BOUNDS, STEP),
        table_doc="The value below which a fraction `q` lies, on a public grid of possible answers.",
        help="The value below which a part Q of the values lies.",
        command="epsilons quantile people.toml wage 0.9 --bounds 0,100 --share 0.05",
        pays_for_interval=True,
    ),
    _entry("min", minimum, "The smallest value", "Min"),
    _entry("max", maximum, "The largest value", "Max"),
)

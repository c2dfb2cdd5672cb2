"""The k-th largest value without any bounds: only individual privacy can give it, and not for k=1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import LARGEST_NUMBER, check_rank, check_unbounded_step, exact
from epsilons.arguments.options import Parameter
from epsilons.display import show_count
from epsilons.errors import Argument, PlanError
from epsilons.statistics.base import Floats, RowScope, Scope, Statistic
from epsilons.statistics.entry import BOUNDS, STEP, Entry
from epsilons.statistics.order import kth_largest
from epsilons.statistics.sensitivity import Local, Ranked, group_rank_reach, rank_reaches
from epsilons.summaries import People
from epsilons.summaries.arrays import array_people, as_doubles, as_numbers

#: Without bounds there is no range to divide: answers fall on multiples of a millionth unless `step` is given.
DEFAULT_STEP = Fraction(1, 1_000_000)
_BOUNDED = Argument("bounds", (0, 100))


@dataclass(frozen=True)
class UnboundedOrder(Statistic):
    """The k-th largest of all values, k >= 2; what is missing stands at 0, what is infinite at +-10^30.

    The maximum of an unbounded domain has no finite local sensitivity: a new record may lie anywhere above it. The
    second largest has: it moves to the largest or to the third at most.
    """

    k: int
    step: float | None = None
    scope: Scope | None = None

    name: ClassVar[str] = "kth_largest"
    family: ClassVar[str] = "unbounded"  # type: ignore[misc]
    summary: ClassVar[str] = "values"  # type: ignore[misc]

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_rank(self.k))
        if self.k == 1:
            rule = "Without an upper bound one record can move it any distance."
            raise PlanError("The maximum needs bounds.", rule=rule, suggest=(_BOUNDED, ", or ", Argument("k", 2)))
        if self.step is not None:
            object.__setattr__(self, "step", check_unbounded_step(self.step))

    @property
    def grid(self) -> Fraction:
        """The distance between possible answers."""
        return DEFAULT_STEP if self.step is None else exact(self.step)

    def _rank(self, values: NDArray[Any], least: int) -> tuple[Ranked, NDArray[np.int64], int]:
        """(positions on the grid around the rank, everyone's order, the rank); ends beyond the data are not needed."""
        numbers = _finite(values)
        if (people := len(numbers)) < least:
            what = (
                f"{show_count(people, 'person is', 'people are')} too few for ",
                Argument("k", self.k),
                " without bounds.",
            )
            raise PlanError(what, rule="A record on either side of it is needed.", suggest=_BOUNDED)
        order, rank = np.argsort(numbers, kind="stable"), people - self.k
        first = max(rank - least, 0)
        near = [round(Fraction(float(numbers[i])) / self.grid) for i in order[first : rank + least + 1]]
        return Ranked(near, near[0], near[-1], first, people), order, rank

    def local(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> Local:
        """The answer on the grid, and each level's largest local sensitivity."""
        x, order, rank = self._rank(values, self.k + 1)
        below, at, above = rank_reaches(x, rank)
        reach = np.zeros(levels, dtype=object)
        for place, size in ((order[:rank], below), (order[rank : rank + 1], at), (order[rank + 1 :], above)):
            for level in np.unique(codes[place]):
                reach[level] = max(reach[level], size)
        return Local(x[rank], tuple(int(r) for r in reach))

    def group_reach(self, values: NDArray[Any], size: int) -> int:
        """How far `size` records can move it; groups of k or more could move it any distance."""
        if size >= self.k:
            what = (f"A group of {size} could move the answer for ", Argument("k", self.k), " any distance.")
            raise PlanError(what, suggest=_BOUNDED)
        x, _, rank = self._rank(values, self.k + size)
        return group_rank_reach(x, rank, size)

    def exact(self, people: People) -> tuple[float, Sequence[float]]:
        numbers = np.sort(_finite(array_people(people).values))
        return float(round(Fraction(float(numbers[max(len(numbers) - self.k, 0)])) / self.grid) * self.grid), ()

    def _refuse(self, *asked: Any, **named: Any) -> Any:
        raise PlanError("Only individual privacy does without bounds.", suggest=_BOUNDED)

    draw = simulate = distribution = noise_to_spread = _refuse

    def describe(self) -> str:
        return f"k-th largest, k={self.k} (no bounds)"


def _finite(values: NDArray[Any]) -> Floats:
    """Everybody's value as a finite number, whatever it was."""
    numbers = np.nan_to_num(as_doubles(as_numbers(values)), nan=0.0, posinf=LARGEST_NUMBER, neginf=-LARGEST_NUMBER)
    return np.clip(numbers, -LARGEST_NUMBER, LARGEST_NUMBER)


def _kth_largest(given: Mapping[str, Any], over: RowScope) -> Statistic:
    if over.unbounded and given["bounds"] is None:
        return UnboundedOrder(given["k"], given["step"], None if over.complete else over.scope)
    made = kth_largest(given["k"], given["bounds"], given["step"])
    return replace(made, imputes=over.imputed) if over.complete else replace(made, scope=over.scope)


_DOC = "The k-th largest value (k=1 is the maximum), on a public grid of possible answers."
ENTRY = Entry(
    name="kth_largest",
    build=_kth_largest,
    arguments=(Parameter("k", int, 2, "Which of the largest values; 1 is the maximum.", positional=True), BOUNDS, STEP),
    missing="left out or centred",
    doc=_DOC + "\n\nWith individual or group privacy, k=2 and more need no bounds.",
    table_doc=_DOC,
    help="The k-th largest value of a column, on a public grid of answers.",
    command="epsilons kth-largest people.toml wage 3 --bounds 0,100 --share 0.05",
)
ENTRIES = (ENTRY,)

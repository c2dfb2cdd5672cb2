"""Order statistics without any bounds: only individual privacy can give them, and not the largest and the smallest."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import LARGEST_NUMBER, check_rank, check_unbounded_step, exact
from epsilons.arguments.options import Parameter
from epsilons.display import show_count
from epsilons.errors import Argument, PlanError, Text
from epsilons.statistics.base import Floats, RowScope, Scope, Statistic
from epsilons.statistics.entry import BOUNDS, STEP, Entry
from epsilons.statistics.order import kth_largest
from epsilons.statistics.sensitivity import (
    Local,
    Ranked,
    group_even_median_reach,
    group_rank_reach,
    middle_spans,
    rank_spans,
)
from epsilons.summaries import People
from epsilons.summaries.arrays import array_people, as_doubles, as_numbers

#: Without bounds there is no range to divide: answers fall on multiples of a millionth unless `step` is given.
DEFAULT_STEP = Fraction(1, 1_000_000)
_BOUNDED = Argument("bounds", (0, 100))
_BOTH_SIDES = "A record on either side of it is needed."


class Unbounded(Statistic):
    """A value at a rank of all values; what is missing stands at 0, what is infinite at +-10^30.

    Its local sensitivity is finite where there are records on both sides of it: it moves to the next one at most.
    """

    step: float | None
    family: ClassVar[str] = "unbounded"  # type: ignore[misc]
    summary: ClassVar[str] = "values"  # type: ignore[misc]

    def __post_init__(self) -> None:
        if self.step is not None:
            object.__setattr__(self, "step", check_unbounded_step(self.step))

    @abstractmethod
    def rank(self, people: int) -> int:
        """The 0-based rank of the answer among so many values, from below."""

    def averaged(self, people: int) -> bool:
        """Whether it is the average of the value at the rank and of the one below: the median of an even number."""
        return False

    @abstractmethod
    def too_few(self, people: int, size: int) -> PlanError:
        """What to say where `size` records among so few people could move it any distance."""

    @property
    def grid(self) -> Fraction:
        """The distance between possible answers."""
        return DEFAULT_STEP if self.step is None else exact(self.step)

    def _rank(self, values: NDArray[Any], size: int) -> tuple[Ranked, NDArray[np.int64], int]:
        """(positions on the grid around the rank, everyone's order, the rank), if `size` records move it by a gap."""
        numbers = _finite(values)
        people = len(numbers)
        rank = self.rank(people)
        if rank - self.averaged(people) - size < 0 or rank + size > people - 1:
            raise self.too_few(people, size)
        order, first = np.argsort(numbers, kind="stable"), max(rank - size - 1, 0)
        near = [round(Fraction(float(numbers[i])) / self.grid) for i in order[first : rank + size + 2]]
        return Ranked(near, near[0], near[-1], first, people), order, rank

    def local(self, values: NDArray[Any], codes: NDArray[np.uint8], levels: int) -> Local:
        """The answer on the grid, and each level's largest local sensitivity; of an average both in half steps."""
        x, order, rank = self._rank(values, 1)
        people, averaged = len(order), self.averaged(len(order))
        spans = middle_spans(x, people) if averaged else rank_spans(x, rank, people)
        reach = np.zeros(levels, dtype=object)
        for start, stop, size in spans:
            for level in np.unique(codes[order[start:stop]]):
                reach[level] = max(reach[level], size)
        answer = x[rank - 1] + x[rank] if averaged else x[rank]
        return Local(answer, tuple(int(r) for r in reach), Fraction(1, 2) if averaged else Fraction(1))

    def group_reach(self, values: NDArray[Any], size: int) -> int:
        """How far `size` records can move it, in steps of `local`."""
        x, order, rank = self._rank(values, size)
        if self.averaged(len(order)):
            return group_even_median_reach(x, len(order), size)
        return group_rank_reach(x, rank, size)

    def exact(self, people: People) -> tuple[float, Sequence[float]]:
        numbers = np.sort(_finite(array_people(people).values))
        rank = min(max(self.rank(len(numbers)), 0), len(numbers) - 1)
        those = numbers[rank - self.averaged(len(numbers)) : rank + 1].tolist()
        return float(sum(round(Fraction(one) / self.grid) for one in those) * self.grid / len(those)), ()

    def _refuse(self, *asked: Any, **named: Any) -> Any:
        raise PlanError("Only individual privacy does without bounds.", suggest=_BOUNDED)

    draw = simulate = distribution = noise_to_spread = _refuse


@dataclass(frozen=True)
class UnboundedOrder(Unbounded):
    """The k-th largest of all values, k >= 2.

    The maximum of an unbounded domain has no finite local sensitivity: a new record may lie anywhere above it. The
    second largest has: it moves to the largest or to the third at most.
    """

    k: int
    step: float | None = None
    scope: Scope | None = None

    name: ClassVar[str] = "kth_largest"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_rank(self.k))
        if self.k == 1:
            rule = "Without an upper bound one record can move it any distance."
            raise PlanError("The maximum needs bounds.", rule=rule, suggest=(_BOUNDED, ", or ", Argument("k", 2)))
        super().__post_init__()

    def rank(self, people: int) -> int:
        return people - self.k

    def too_few(self, people: int, size: int) -> PlanError:
        if size >= self.k:
            what: Text = (f"A group of {size} could move the answer for ", Argument("k", self.k), " any distance.")
            return PlanError(what, suggest=_BOUNDED)
        what = (f"{_people(people)} too few for ", Argument("k", self.k), " without bounds.")
        return PlanError(what, rule=_BOTH_SIDES, suggest=_BOUNDED)

    def describe(self) -> str:
        return f"k-th largest, k={self.k} (no bounds)"


@dataclass(frozen=True)
class UnboundedQuantile(Unbounded):
    """The value of rank floor(q n); a median of an even number of values is the average of the two in the middle."""

    q: Fraction
    step: float | None = None
    scope: Scope | None = None

    name: ClassVar[str] = "quantile"

    def rank(self, people: int) -> int:
        return min(int(self.q * people), people - 1)

    def too_few(self, people: int, size: int) -> PlanError:
        moved = "one" if size == 1 else f"a group of {size}"
        what = f"{_people(people)} too few for a {self.describe()}: {moved} could move it any distance."
        return PlanError(what, rule=_BOTH_SIDES, suggest=_BOUNDED)

    def describe(self) -> str:
        return f"quantile {float(self.q):g} (no bounds)"


@dataclass(frozen=True)
class UnboundedMedian(UnboundedQuantile):
    """The median."""

    name: ClassVar[str] = "median"

    def averaged(self, people: int) -> bool:
        return people % 2 == 0 and people > 0

    def describe(self) -> str:
        return "median (no bounds)"


def _people(number: int) -> str:
    return show_count(number, "person is", "people are")


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

"""How many people have a one, or how many rows or people count at all."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

from epsilons.arguments.checks import check_name
from epsilons.arguments.options import Parameter
from epsilons.statistics.additive import Part, Sums, doubt, whole_or_float
from epsilons.statistics.base import Scope
from epsilons.statistics.counting import Counting, row_moments
from epsilons.statistics.entry import ON_TABLES, Entry
from epsilons.statistics.moments import Moments
from epsilons.summaries.cells import Integers

_check_of = partial(check_name, "of", allowed=("people", "rows"))


@dataclass(frozen=True)
class Count(Counting):
    """Of a column: an entry counts if and only if it equals 1; anything else, missing or not, counts as 0.

    With a scope: how many rows count, or how many people have a row that does. One person with one row moves a count by
    at most 1, absent or replaced. Where nothing is missing it may be `centred`: a missing entry then stands at 1/2, and
    the count is n times a mean of which an absent person moves 1/2. In half units everyone adds 1 or -1, or nothing
    (docs/theory.md, "centred counts"). One who is replaced moves either count by 1.
    """

    scope: Scope | None = None
    of: str = "rows"
    centred: bool = False

    name: ClassVar[str] = "count"
    scoped: ClassVar[tuple[str, ...]] = ("of",)
    later: ClassVar[tuple[str, ...]] = ("centred",)

    def __post_init__(self) -> None:
        _check_of(self.of)

    @property
    def summary(self) -> str:  # type: ignore[override]
        """People with several rows cannot be counted by counting rows, centred ones not by counting ones alone."""
        if self.centred:
            return "signs"
        return "people" if self.scope is not None and self.scope.rows > 1 and self.of == "people" else "ones"

    @property
    def one_each(self) -> bool:  # type: ignore[override]
        return self.scope is None or self.scope.rows == 1 or (self.of == "people" and self.scope.cells == 1)

    @property
    def counts_people(self) -> bool:
        return self.of == "people" or self.one_each

    def of_roster(self, people: Mapping[int | None, int], grant_of: Callable[[Any], int | None]) -> Any:
        if self.scope is None or self.scope.groups is None:
            return sum(people.values())
        return {key: people.get(grant_of(key), 0) for key in self.scope.groups}

    @property
    def _most(self) -> int:
        """The most that one person adds in one group."""
        return 1 if self.scope is None or self.of == "people" else self.scope.rows

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        scope = self.scope or Scope()
        if self.centred:
            return (Part("centred count", 1, scope.reach(-1, 1)),)
        if self.of == "people":  # everyone adds at most 1 to a group, whose square is 1
            return (Part("count", scope.cells, scope.people_reach(), square=scope.people_reach()),)
        return (Part("count", scope.cells, scope.reach(0, 1), square=scope.square(0, 1)),)

    def make_parts(self, summed: list[Integers]) -> list[Integers]:
        return [summed[0] - summed[1]] if self.centred else summed

    def fill(self, sums: Sums, rest: Fraction) -> Sums:
        return sums if self.centred else super().fill(sums, rest)

    @property
    def coin_origin(self) -> float:
        """A person who is left out adds nothing: a half, where the count is centred."""
        return self.centre if self.centred else super().coin_origin

    @property
    def units(self) -> tuple[float, ...]:  # type: ignore[override]
        return (0.5 if self.centred else 1.0,)

    def answer(self, sums: Sums, weight: Fraction, people: int) -> Any:
        if self.centred:
            return whole_or_float((sums[0][0] + weight) / 2)
        return (self.scope or Scope()).arrange(map(whole_or_float, sums[0]))

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        if self.scope is not None:
            return row_moments(self.scope.fraction, self._most, density)
        ones = 0.5 if density is None else density
        return Moments(ones, ones * (1 - ones), doubt(ones, density))

    @cached_property
    def extremes(self) -> tuple[float, float]:
        return 0.0, float(self._most)

    @property
    def centre(self) -> float:  # type: ignore[override]
        return 0.5 if self.scope is None else 0.0

    def describe(self) -> str:
        return "count of ones" if self.scope is None else f"count of {self.of}"


_OF = Parameter("of", Literal["people", "rows"] | None, None, "What is counted.", _check_of, fronts=ON_TABLES)
ENTRY = Entry(
    name="count",
    build=lambda given, over: (
        Count(centred=over.centred) if over.column and over.fixed else Count(over.scope, given.get("of") or "people")
    ),
    arguments=(_OF,),
    column="optional",
    text=True,
    missing="not counted",
    doc="How many people have a 1; whatever is not exactly 1 counts as 0.",
    table_doc='How many people, or rows (`of="rows"`), meet the condition; of a column, those whose value is 1.',
    examples="""\
>>> import epsilons as eps
>>> answer = eps.count([1, 0, 1, 1], [0.5, 1, 2, eps.PUBLIC], mechanism="exponential")
>>> 0 <= answer.value <= 4
True
""",
    help="How many people, or rows, meet a condition; of a column, those whose value is 1.",
    command='epsilons count people.toml --where "age >= 65" --share 0.05',
    sql=("Count",),
)
ENTRIES = (ENTRY,)

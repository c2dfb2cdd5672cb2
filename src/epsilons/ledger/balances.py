"""What everyone has left, exactly: at every granted level, and in questions like the last one."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from epsilons.display import Sheet, Shown, group_levels, show, show_span
from epsilons.guarantee import NANO, to_epsilon
from epsilons.ledger.values import Cohort, Marked, list_active

_HEAD = ("epsilon granted", "people", "left on average", "least left", "nothing left", "questions left")


@dataclass(frozen=True)
class Balance:
    """Everyone with one grant: what they have left together and at least, and how many of them have nothing left."""

    granted: int
    people: int
    total: int
    least: int
    nothing_left: int

    @property
    def average(self) -> float:
        """What they have left on average, in epsilon."""
        return self.total / self.people / NANO

    def to_dict(self) -> dict[str, Any]:
        """Plain values in epsilon; `left` is the average."""
        told = {"epsilon": to_epsilon(self.granted), "people": self.people, "left": self.average}
        return {**told, "least": to_epsilon(self.least), "nothing_left": self.nothing_left}


@dataclass(frozen=True)
class Remaining(Marked, Shown):
    """What is left at every granted level, in each cohort, and in questions like the last one ({grant: how many})."""

    cohorts: tuple[Cohort, ...]
    questions: Mapping[int, int]
    not_dp_since: int | None = None

    @cached_property
    def levels(self) -> tuple[Balance, ...]:
        """Everyone at a level, strictest grant first: average, least, and how many have nothing left."""
        return balance(self.cohorts)

    @property
    def nano(self) -> dict[int, int]:
        """{grant: the least that anyone with this grant has left}, in nano-epsilon."""
        return {level.granted: level.least for level in self.levels}

    @property
    def epsilons(self) -> dict[float, float]:
        """{granted epsilon: least epsilon left to anyone at that level}."""
        return {to_epsilon(granted): to_epsilon(nano) for granted, nano in self.nano.items()}

    def sheets(self) -> list[Sheet]:
        rows = []
        named = [(show(to_epsilon(level.granted)), level.people) for level in self.levels]
        for name, places in group_levels(named):
            those = [self.levels[place] for place in places]
            more = [self.questions[level.granted] for level in those if level.granted in self.questions]
            left = show_span([level.average for level in those]), show(min(to_epsilon(level.least) for level in those))
            counts = sum(level.people for level in those), sum(level.nothing_left for level in those)
            rows.append([name, show(counts[0]), *left, show(counts[1]), show_span(more) if more else "–"])
        notes = ["Questions left: like the last one, on average.", *([self.caveat] if self.caveat else [])]
        return [Sheet("", _HEAD, rows, notes)]


def balance(cohorts: Iterable[Cohort]) -> tuple[Balance, ...]:
    """What everyone with a grant has left, exactly; strictest grant first. Public people have no balance."""
    found: dict[int, list[tuple[int, int]]] = {}
    for cohort in list_active(cohorts):
        if cohort.granted is not None and cohort.left is not None:
            found.setdefault(cohort.granted, []).append((cohort.people, cohort.left))
    return tuple(
        Balance(
            granted,
            people=sum(people for people, _ in some),
            total=sum(people * left for people, left in some),
            least=min(left for _, left in some),
            nothing_left=sum(people for people, left in some if left == 0),
        )
        for granted, some in sorted(found.items())
    )


def questions_left(cohorts: Iterable[Cohort], last: Mapping[int, int]) -> dict[int, int]:
    """How often people at a level could on average still pay what the last question charged there ({grant: charge})."""
    often: Counter[int] = Counter()
    people: Counter[int] = Counter()
    for cohort in list_active(cohorts):
        charge = last.get(cohort.granted or 0)
        if charge and cohort.granted is not None and cohort.left is not None:
            people[cohort.granted] += cohort.people
            often[cohort.granted] += cohort.people * (cohort.left // charge)
    return {granted: often[granted] // people[granted] for granted in sorted(people)}

"""Questions about preferences themselves: how many people chose what is known of the roster, exactly and for free."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from epsilons.accuracy.intervals import ErrorBar, ErrorModel, cut_noise
from epsilons.dataset.facts import TableFacts
from epsilons.dataset.public import as_known
from epsilons.dataset.question import TableQuestion
from epsilons.engines.base import TEXT, Column
from epsilons.engines.trees import Canonical, canonical
from epsilons.errors import Argument, PlanError
from epsilons.guarantee import PERSONALIZED, ROSTER_IS_PUBLIC, Guarantee
from epsilons.ledger.consent import PUBLIC_CODE, rank_openness, read_text
from epsilons.ledger.rosters import read_public
from epsilons.ledger.statements import read_rosters
from epsilons.ledger.values import Cohort, list_active
from epsilons.mechanisms.base import Account
from epsilons.planner.guesses import Known
from epsilons.preferences import to_nano
from epsilons.release.answer import EXACT, Release, build_release
from epsilons.statistics.additive import Additive
from epsilons.statistics.counting import Counting

FROM_THE_ROSTER = "It comes from the roster, by what holds for everyone now, which is public: exact, nobody is charged."


def counts_levels(asked: TableQuestion, facts: TableFacts) -> bool:
    """Whether the roster tells: how many people there are by level, bin or public value, or under such a condition.

    It knows what people granted, not always by which of two names for the same epsilon; and people, not how many rows
    they have, which is private unless everyone has one at most.
    """
    if not (asked.on_preference or asked.on_roster) or not facts.tells_apart:
        return False
    if asked.on_roster and (asked.kind != "count" or not all(keys for _, keys in _list_all_keys(asked))):
        return False
    alone = asked.column is None if asked.kind == "count" else asked.by is None
    counting = _counting(asked)
    return alone and counting is not None and counting.counts_people


def _counting(asked: TableQuestion) -> Counting | None:
    statistic = asked.question.statistic
    return statistic if isinstance(statistic, Counting) else None


def find_concerned(asked: TableQuestion, facts: TableFacts, cohorts: Sequence[Cohort]) -> Sequence[Cohort]:
    """Those who can meet the condition and be in a group, by their preference as it holds now and by public columns.

    Nobody else is used, and nobody else pays. That is public, and read off the roster, never off rows. Epsilons were
    rounded down on their way to it, so that a column of numbers excludes nobody; nor does a condition that a row
    without a level meets.
    """
    if not (asked.concerns_levels or asked.public):
        return cohorts
    words = _Words(facts)
    return [one for one in cohorts if any(_may_concern(asked, known) for known in words.list_known(asked, one))]


def _may_concern(asked: TableQuestion, known: Mapping[str, Canonical | None]) -> bool:
    if asked.where is not None and asked.where.settle(known) is False:
        return False
    return asked.by is None or all(known.get(kind.name) in keys for kind, keys in list_keys(asked) if keys)


def list_keys(asked: TableQuestion) -> list[tuple[Column, Mapping[Canonical, Any]]]:
    """The columns of its groups, and of each that is public its keys, as they are compared; ranges keep nobody out."""
    return [(kind, keys if kind.name in asked.public else {}) for kind, keys in _list_all_keys(asked)]


def _list_all_keys(asked: TableQuestion) -> list[tuple[Column, Mapping[Canonical, int]]]:
    return [] if asked.by is None else list(zip(asked.by.columns, asked.by.known, strict=True))


def require_concerned(asked: TableQuestion, facts: TableFacts, cohorts: Sequence[Cohort]) -> Sequence[Cohort]:
    """The same, for a plan; refused if there is nobody, which is public."""
    found = find_concerned(asked, facts, cohorts)
    if list_active(cohorts) and not list_active(found):
        what = f"Nobody on the roster has {'a public value' if asked.public else 'a level'} that meets the condition."
        public = [f"{name}: {', '.join(map(str, facts.keys[name]))}" for name in sorted(asked.public)]
        told = public or [f"The levels are {', '.join(facts.levels)}"]
        rule = f"{'; '.join(told)}. Nothing was charged."
        raise PlanError(what, rule=rule, suggest=("another ", Argument("where")))
    return found


def know_fraction(asked: TableQuestion, facts: TableFacts, cohorts: Sequence[Cohort]) -> tuple[Known, ...]:
    """Where preferences alone decide on rows: the part of people that is asked about, of groups their average."""
    scope = asked.question.statistic.scope
    if scope is None or asked.options.density is not None or not facts.tells_apart:
        return ()
    words = _Words(facts)
    people = words.count_people(cohorts)
    meeting = _meeting(asked, people, words)
    keys = [] if asked.by is None else asked.by.labels
    counted = sum(meeting.get(words.grant(key), 0) for key in keys) if keys else sum(meeting.values())
    # Nobody at all would leave nothing to divide by.
    return (Known("density", max(counted, 1) / max(sum(people.values()), 1) / scope.cells, None),)


def cut_to_roster(
    made: Release, asked: TableQuestion, facts: TableFacts, cohorts: Sequence[Cohort], dataset: int
) -> Release:
    """A total over rows that name a level is one of no more people than may have such rows, whose number is public."""
    statistic, bars = asked.question.statistic, made.models
    if statistic.family != "linear" or not bars or not facts.tells_apart:
        return made
    most = _Words(facts).count_possible(asked, cohorts, dataset)
    limits = [cast(Additive, statistic).limits(people) for people in most for _ in range(len(bars) // len(most))]
    pairs = zip(bars, [(float(low), float(high)) for low, high in limits], strict=True)
    cut = [replace(bar, limits=ends) if isinstance(bar, ErrorModel) else bar for bar, ends in pairs]

    def within(numbers: Any, ends: list[tuple[float, float]]) -> Any:
        """Each number, where there is one, at the nearest possible one."""
        if isinstance(numbers, dict):
            return dict(zip(numbers, map(_cut, numbers.values(), ends), strict=True))
        return _cut(numbers, ends[0])

    # An error cannot be larger than what is possible either, nor the noise in it than what is left of it by cutting.
    before = made.error.values() if isinstance(made.error, dict) else [made.error]
    errors = within(made.error, [(0.0, _most_error(*one)) for one in zip(before, bars, limits, strict=True)])
    return replace(made, value=within(made.value, limits), error=errors, models=tuple(cut))


def _most_error(error: float | None, bar: ErrorBar, ends: tuple[Any, Any]) -> float:
    """The largest error of a number that is cut to these ends, of which one was stated for wider ones."""
    width = float(ends[1] - ends[0])
    if error is None or not isinstance(bar, ErrorModel):
        return width
    noise = sum(2 * scale**2 for scale in bar.laplace)
    kept = cut_noise(math.sqrt(noise / 2), width)
    return min(width, math.sqrt(max(error**2 - noise, 0.0) + min(noise, kept)))


def _cut(number: float | None, ends: tuple[float, float]) -> float | None:
    return None if number is None else min(max(number, ends[0]), ends[1])


def _meeting(asked: TableQuestion, people: dict[int | None, int], words: "_Words") -> dict[int | None, int]:
    """Those whose preference meets the condition, which looks at nothing else."""
    return {g: n for g, n in people.items() if asked.where is None or asked.where.holds(words.value(g))}


def count_levels(asked: TableQuestion, facts: TableFacts, cohorts: Sequence[Cohort]) -> Release:
    """People on the roster by the level they are at, or by what they granted, as the column of preferences has it."""
    words = _Words(facts)
    statistic, as_nano = cast(Counting, asked.question.statistic), facts.measure.granted
    meeting = {} if asked.on_roster else _meeting(asked, words.count_people(cohorts), words)
    told = {as_nano(grant): people for grant, people in meeting.items()}
    granted = sorted({one.granted for one in list_active(cohorts)}, key=lambda one: (one is None, one))
    grants = [as_nano(one) for one in granted]
    account = Account(tuple((grant, None if grant is None else 0) for grant in grants))
    return build_release(
        account,
        Guarantee(asked.question.neighbors, account.losses, PERSONALIZED, (ROSTER_IS_PUBLIC,)),
        statistic=f"{statistic.describe().replace('rows', 'people')} on the roster",
        value=_count_public(asked, facts, cohorts)
        if asked.on_roster
        else statistic.of_roster(told, lambda key: as_nano(words.grant(key))),
        error=0.0,
        mechanism=EXACT,
        why=FROM_THE_ROSTER,
    )


def _count_public(asked: TableQuestion, facts: TableFacts, cohorts: Sequence[Cohort]) -> Any:
    """People on the roster by public values, and by levels among them."""
    words, places = _Words(facts), _list_all_keys(asked)
    sizes = [len(keys) for keys in asked.by.given] if asked.by is not None else []
    counted = np.zeros(sizes or [1], np.int64)
    for cohort in list_active(cohorts):
        known = words.read_public(cohort)
        if facts.preference:
            known[facts.preference] = words.value(cohort.granted)
        if asked.where is None or asked.where.settle(known):
            place = [keys.get(known[kind.name], -1) for kind, keys in places]  # type: ignore[arg-type]
            if -1 not in place:
                counted[tuple(place or [0])] += cohort.people
    found = counted.ravel().tolist()
    return dict(zip(asked.by.labels, found, strict=True)) if asked.by is not None else found[0]


@dataclass(frozen=True)
class _Words:
    """What the column of preferences says for a grant: a level's name, or the epsilon itself."""

    facts: TableFacts

    @cached_property
    def _named(self) -> dict[int | None, str]:
        return {self._units(float(epsilon)): word for word, epsilon in self.facts.levels.items()}

    def _units(self, epsilon: float) -> int | None:
        """What an epsilon grants, as cohorts have it."""
        nano = to_nano(epsilon)
        return None if nano is None else self.facts.measure.units(nano)

    @cached_property
    def _column(self) -> Column:
        return self.facts.schema.find(self.facts.preference or "")

    def value(self, grant: int | None) -> Canonical | None:
        """As a condition compares it; None for a grant that has no name."""
        text = self._column.family == TEXT
        return self._named.get(grant) if text else canonical(self.facts.measure.grant(grant), self._column)

    def read_public(self, cohort: Cohort) -> dict[str, Canonical | None]:
        """What public columns say of a cohort's people."""
        return as_known(read_public(cohort.datasets).get(self.facts.dataset, {}), self.facts.schema)

    def list_known(self, asked: TableQuestion, cohort: Cohort) -> Iterator[dict[str, Canonical | None]]:
        """What the roster says of a cohort's people, in each of the ways in which their rows may name their level."""
        public = self.read_public(cohort)
        if not asked.concerns_levels:
            yield public
            return
        # A level keeps its name for those who chose it when it meant another epsilon; a row may also name none.
        named = self._column.family == TEXT and cohort.level in self.facts.levels
        for word in dict.fromkeys([cohort.level if named else self.value(cohort.granted), None]):
            yield {**public, self.facts.preference or "": word}

    def stands_at(self, cohort: Cohort) -> int | None:
        """What people granted; where the column names levels, what theirs means now.

        A level keeps its name for those who chose it when it meant another epsilon.
        """
        named = self._column.family == TEXT and cohort.level in self.facts.levels
        return self.grant(cohort.level) if named else cohort.granted

    def count_people(self, cohorts: Sequence[Cohort]) -> dict[int | None, int]:
        """How many people stand at each grant."""
        people: dict[int | None, int] = {}
        for cohort in list_active(cohorts):
            at = self.stands_at(cohort)
            people[at] = people.get(at, 0) + cohort.people
        return people

    def count_possible(self, asked: TableQuestion, cohorts: Sequence[Cohort], dataset: int) -> list[int]:
        """How many people at most a group, or the condition alone, is about.

        A person's rows may name several levels, of which the strictest is the source's word for them: the row that is
        looked at names this level or a more open one, or none, whatever holds for its person now. A column of numbers
        was rounded down on its way to the roster, and tells nothing about a row.
        """
        keys, active = self._keys_of(asked), list_active(cohorts)
        if not self.facts.named:
            return [sum(cohort.people for cohort in active)] * len(keys)
        codes = {word: PUBLIC_CODE if grant is None else grant for grant, word in self._named.items()}
        found = [0] * len(keys)
        for cohort in active:
            said = read_text(read_rosters(cohort.datasets).get(dataset, ""), codes)
            least = 0 if said is None else rank_openness(said.code)
            words = [word for word, code in codes.items() if rank_openness(code) >= least]
            here = [word for word in [None, *words] if self._allows(asked, word)]
            for at, key in enumerate(keys):
                found[at] += cohort.people if (here if key == () else key[0] in here) else 0
        return found

    def _allows(self, asked: TableQuestion, word: str | None) -> bool:
        return asked.where is None or asked.where.allows(self.facts.preference or "", word)

    def _keys_of(self, asked: TableQuestion) -> list[tuple[Any, ...]]:
        """Of each group the word that is its key, if preferences are among its columns."""
        if asked.by is None:
            return [()]
        columns = [kind.name for kind in asked.by.columns]
        if self.facts.preference not in columns:
            return [()] * asked.by.count
        place = columns.index(self.facts.preference)
        return [(label[place] if len(columns) > 1 else label,) for label in asked.by.labels]

    def grant(self, key: Any) -> int | None:
        """What a key of the column stands for; 0 for what nobody can choose."""
        word = key[0] if isinstance(key, tuple) else key
        epsilon = self.facts.levels.get(word) if isinstance(word, str) else word
        return 0 if epsilon is None else self._units(float(epsilon))

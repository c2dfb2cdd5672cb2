"""Questions about preferences themselves: how many people chose what is known of the roster, exactly and for free."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from epsilons.accuracy.intervals import ErrorModel
from epsilons.dataset.facts import TableFacts
from epsilons.dataset.question import TableQuestion
from epsilons.engines.base import TEXT
from epsilons.engines.trees import Canonical, canonical
from epsilons.errors import Argument, PlanError
from epsilons.guarantee import PERSONALIZED, ROSTER_IS_PUBLIC, Guarantee, to_epsilon
from epsilons.ledger.consent import PUBLIC_CODE, rank_openness, read_text
from epsilons.ledger.statements import read_rosters
from epsilons.ledger.values import Cohort, list_active
from epsilons.mechanisms.base import Account
from epsilons.planner.guesses import Known
from epsilons.preferences import to_nano
from epsilons.release.answer import EXACT, Release, build_release
from epsilons.statistics.additive import Additive, Counting

FROM_THE_ROSTER = "It comes from the roster, by what holds for everyone now, which is public: exact, nobody is charged."


def counts_levels(asked: TableQuestion, facts: TableFacts) -> bool:
    """Whether the roster tells: how many people chose what, by level, by bin, or under a condition on that alone.

    It knows what people granted, not by which of two names for the same epsilon; and people, not how many rows they
    have, which is private unless everyone has one at most.
    """
    if not asked.on_preference or not facts.tells_apart:
        return False
    alone = asked.column is None if asked.kind == "count" else asked.by is None
    counting = _counting(asked)
    return alone and counting is not None and counting.counts_people


def _counting(asked: TableQuestion) -> Counting | None:
    statistic = asked.question.statistic
    return statistic if isinstance(statistic, Counting) else None


def find_concerned(asked: TableQuestion, facts: TableFacts, cohorts: Sequence[Cohort]) -> Sequence[Cohort]:
    """Those whose preference, as it holds now, can meet the condition: nobody else is used, and nobody else pays.

    That is public, and read off the roster, never off rows. Epsilons were rounded down on their way to it, so that a
    column of numbers excludes nobody; nor does a condition that a row without a level meets.
    """
    words, where, name = _Words(facts), asked.where, facts.preference or ""
    if where is None or not asked.concerns_levels or where.allows(name, None):
        return cohorts
    # A level keeps its name for those who chose it when it meant another epsilon.
    called = [{one.level, words.value(one.granted)} - {None} for one in cohorts]
    return [one for one, names in zip(cohorts, called, strict=True) if any(where.allows(name, each) for each in names)]


def require_concerned(asked: TableQuestion, facts: TableFacts, cohorts: Sequence[Cohort]) -> Sequence[Cohort]:
    """The same, for a plan; refused if there is nobody, which is public."""
    found = find_concerned(asked, facts, cohorts)
    if list_active(cohorts) and not list_active(found):
        what = "Nobody on the roster has a level that meets the condition."
        rule = f"The levels are {', '.join(facts.levels)}. Nothing was charged."
        raise PlanError(what, rule=rule, suggest=("another ", Argument("where")))
    return found


def know_fraction(asked: TableQuestion, facts: TableFacts, cohorts: Sequence[Cohort]) -> tuple[Known, ...]:
    """Where preferences alone decide on rows: the part of people that is asked about, of groups their average."""
    scope = asked.question.statistic.scope
    if scope is None or asked.options.density is not None or not facts.tells_apart:
        return ()
    people, words = _people_by_grant(cohorts), _Words(facts)
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

    # An error cannot be larger than what is possible either.
    errors = within(made.error, [(0.0, high - low) for low, high in limits])
    return replace(made, value=within(made.value, limits), error=errors, models=tuple(cut))


def _cut(number: float | None, ends: tuple[float, float]) -> float | None:
    return None if number is None else min(max(number, ends[0]), ends[1])


def _people_by_grant(cohorts: Sequence[Cohort]) -> dict[int | None, int]:
    people: dict[int | None, int] = {}
    for cohort in list_active(cohorts):
        people[cohort.granted] = people.get(cohort.granted, 0) + cohort.people
    return people


def _meeting(asked: TableQuestion, people: dict[int | None, int], words: "_Words") -> dict[int | None, int]:
    """Those whose preference meets the condition, which looks at nothing else."""
    return {g: n for g, n in people.items() if asked.where is None or asked.where.holds(words.value(g))}


def count_levels(asked: TableQuestion, facts: TableFacts, cohorts: Sequence[Cohort]) -> Release:
    """People on the roster by what they granted, under the names that the column has for it."""
    people, words = _people_by_grant(cohorts), _Words(facts)
    meeting = _meeting(asked, people, words)
    statistic = cast(Counting, asked.question.statistic)
    spent = [(grant, None if grant is None else 0) for grant in sorted(people, key=lambda one: (one is None, one))]
    account = Account(tuple(spent))
    return build_release(
        account,
        Guarantee(asked.question.neighbors, account.losses, PERSONALIZED, (ROSTER_IS_PUBLIC,)),
        statistic=f"{statistic.describe().replace('rows', 'people')} on the roster",
        value=statistic.of_roster(meeting, words.grant),
        error=0.0,
        mechanism=EXACT,
        why=FROM_THE_ROSTER,
    )


@dataclass(frozen=True)
class _Words:
    """What the column of preferences says for a grant: a level's name, or the epsilon itself."""

    facts: TableFacts

    @cached_property
    def _named(self) -> dict[int | None, str]:
        return {to_nano(float(epsilon)): word for word, epsilon in self.facts.levels.items()}

    def value(self, grant: int | None) -> Canonical | None:
        """As a condition compares it; None for a grant that has no name."""
        column = self.facts.schema.find(self.facts.preference or "")
        return self._named.get(grant) if column.family == TEXT else canonical(to_epsilon(grant), column)

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
        return 0 if epsilon is None else to_nano(float(epsilon))

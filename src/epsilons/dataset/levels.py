"""Questions about preferences themselves: how many people chose what is known of the roster, exactly and for free."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from epsilons.dataset.facts import TableFacts
from epsilons.dataset.question import TableQuestion
from epsilons.engines.base import TEXT
from epsilons.engines.trees import Canonical, canonical
from epsilons.guarantee import PERSONALIZED, ROSTER_IS_PUBLIC, Guarantee, to_epsilon
from epsilons.ledger.values import Cohort, list_active
from epsilons.mechanisms.base import Account
from epsilons.planner.guesses import Known
from epsilons.preferences import to_nano
from epsilons.release.answer import EXACT, Release, build_release
from epsilons.statistics.additive import Counting

FROM_THE_ROSTER = "It comes from the roster, by what holds for everyone now, which is public: exact, nobody is charged."


def counts_levels(asked: TableQuestion, facts: TableFacts) -> bool:
    """Whether the roster tells: how many people chose what, by level, by bin, or under a condition on that alone.

    It knows what people granted, not by which of two names for the same epsilon; and people, not how many rows they
    have, which is private unless everyone has one at most.
    """
    statistic = asked.question.statistic
    if not asked.on_preference or not _tells_apart(facts):
        return False
    alone = asked.column is None if asked.kind == "count" else asked.by is None
    return alone and isinstance(statistic, Counting) and statistic.counts_people


def _tells_apart(facts: TableFacts) -> bool:
    return len(set(facts.levels.values())) == len(facts.levels)


def know_fraction(asked: TableQuestion, facts: TableFacts, cohorts: Sequence[Cohort]) -> tuple[Known, ...]:
    """Where preferences alone decide on rows: the part of people that is asked about, of groups their average."""
    scope = asked.question.statistic.scope
    if scope is None or asked.options.density is not None or not _tells_apart(facts):
        return ()
    people, words = _people_by_grant(cohorts), _Words(facts)
    meeting = _meeting(asked, people, words)
    keys = [] if asked.by is None else asked.by.labels
    counted = sum(meeting.get(words.grant(key), 0) for key in keys) if keys else sum(meeting.values())
    # Nobody at all would leave nothing to divide by.
    return (Known("density", max(counted, 1) / max(sum(people.values()), 1) / scope.cells, None),)


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

    def grant(self, key: Any) -> int | None:
        """What a key of the column stands for; 0 for what nobody can choose."""
        word = key[0] if isinstance(key, tuple) else key
        epsilon = self.facts.levels.get(word) if isinstance(word, str) else word
        return 0 if epsilon is None else to_nano(float(epsilon))

"""Questions about preferences themselves: how many people chose what is known of the roster, exactly and for free."""

from collections.abc import Sequence
from typing import Any

from epsilons.dataset.facts import TableFacts
from epsilons.dataset.question import TableQuestion
from epsilons.guarantee import PERSONALIZED, ROSTER_IS_PUBLIC, Guarantee
from epsilons.ledger.values import Cohort, list_active
from epsilons.mechanisms.base import Account
from epsilons.preferences import to_nano
from epsilons.release.answer import EXACT, Release, build_release
from epsilons.statistics.count import Count

FROM_THE_ROSTER = "It comes from the roster, which is public: exact, and nobody is charged."


def counts_levels(asked: TableQuestion, facts: TableFacts) -> bool:
    """Whether it asks how many people chose which level, and nothing else."""
    statistic = asked.question.statistic
    people = isinstance(statistic, Count) and statistic.of == "people" and asked.column is None
    groups = () if asked.by is None else asked.by.columns
    return people and asked.where is None and [group.name for group in groups] == [facts.preference]


def count_levels(asked: TableQuestion, facts: TableFacts, cohorts: Sequence[Cohort]) -> Release:
    """People on the roster by what they granted, under the names that the column has for it."""
    people: dict[int | None, int] = {}
    for cohort in list_active(cohorts):
        people[cohort.granted] = people.get(cohort.granted, 0) + cohort.people
    scope = asked.question.statistic.scope
    assert scope is not None
    assert scope.groups is not None
    counted = {key: people.get(_granted(key, facts), 0) for key in scope.groups}
    account = Account(
        tuple(
            (grant, None if grant is None else 0) for grant in sorted(people, key=lambda grant: (grant is None, grant))
        )
    )
    return build_release(
        account,
        Guarantee(asked.question.neighbors, account.losses, PERSONALIZED, (ROSTER_IS_PUBLIC,)),
        statistic=asked.question.statistic.describe(),
        value=counted,
        error=0.0,
        mechanism=EXACT,
        why=FROM_THE_ROSTER,
        no_interval="The answer is exact.",
    )


def _granted(key: Any, facts: TableFacts) -> int | None:
    """What a key of the preference's column stands for: a level's name, or an epsilon; 0 for what nobody can choose."""
    word = key[0] if isinstance(key, tuple) else key
    epsilon = facts.levels.get(word) if isinstance(word, str) else word
    return 0 if epsilon is None else to_nano(float(epsilon))

"""Questions about preferences themselves: how many people chose what is known of the roster, exactly and for free."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from epsilons.dataset.facts import TableFacts
from epsilons.dataset.question import TableQuestion
from epsilons.engines.base import TEXT
from epsilons.engines.trees import Canonical, canonical
from epsilons.guarantee import PERSONALIZED, ROSTER_IS_PUBLIC, Guarantee, to_epsilon
from epsilons.ledger.values import Cohort, list_active
from epsilons.mechanisms.base import Account
from epsilons.preferences import to_nano
from epsilons.release.answer import EXACT, Release, build_release
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram

FROM_THE_ROSTER = "It comes from the roster, by what holds for everyone now, which is public: exact, nobody is charged."


def counts_levels(asked: TableQuestion, facts: TableFacts) -> bool:
    """Whether the roster tells: how many people chose what, by level, by bin, or under a condition on that alone.

    It knows what people granted, not by which of two names for the same epsilon; and people, not how many rows they
    have, which is private unless everyone has one at most.
    """
    statistic = asked.question.statistic
    if not asked.on_preference or len(set(facts.levels.values())) < len(facts.levels):
        return False
    if isinstance(statistic, Histogram):
        return facts.rows == 1 and asked.by is None
    return isinstance(statistic, Count) and asked.column is None and (statistic.of == "people" or facts.rows == 1)


def count_levels(asked: TableQuestion, facts: TableFacts, cohorts: Sequence[Cohort]) -> Release:
    """People on the roster by what they granted, under the names that the column has for it."""
    people: dict[int | None, int] = {}
    for cohort in list_active(cohorts):
        people[cohort.granted] = people.get(cohort.granted, 0) + cohort.people
    words = _Words(facts)
    meeting = {g: n for g, n in people.items() if asked.where is None or asked.where.holds(words.value(g))}
    statistic = asked.question.statistic
    keys: Sequence[Any] | None = None if statistic.scope is None else statistic.scope.groups
    value: Any = sum(meeting.values())
    if isinstance(statistic, Histogram) and statistic.edges is not None:
        places = {grant: _place(statistic, to_epsilon(grant)) for grant in meeting}
        counted = [sum(n for g, n in meeting.items() if places[g] == place) for place in range(statistic.bins)]
        value = dict(zip(statistic.bin_keys, counted, strict=True))
    elif isinstance(statistic, Histogram) or keys is not None:
        keys = statistic.bin_keys if isinstance(statistic, Histogram) else keys
        value = {key: meeting.get(words.grant(key), 0) for key in keys or ()}
    spent = [(grant, None if grant is None else 0) for grant in sorted(people, key=lambda one: (one is None, one))]
    account = Account(tuple(spent))
    return build_release(
        account,
        Guarantee(asked.question.neighbors, account.losses, PERSONALIZED, (ROSTER_IS_PUBLIC,)),
        statistic="count of people on the roster" if isinstance(statistic, Count) else statistic.describe(),
        value=value,
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


def _place(bins: Histogram, epsilon: float) -> int:
    """Which bin an epsilon is in; none has the place -1."""
    low, *_, high = edges = bins.edges or ()
    if bins.outside == "clip":
        epsilon = min(max(epsilon, low), high)
    return -1 if not low <= epsilon <= high else min(bisect_right(edges, epsilon), len(edges) - 1) - 1

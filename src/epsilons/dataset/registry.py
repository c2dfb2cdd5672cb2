"""The people of a registered dataset, by its ledger: who stands where, what they say, what they have left."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np

from epsilons.arguments.checks import check_real
from epsilons.dataset.facts import Description, Level, TableFacts
from epsilons.engines.base import NUMBER, TEXT, Column
from epsilons.errors import PreferenceError
from epsilons.guarantee import to_epsilon
from epsilons.ledger.balances import Remaining, Statement
from epsilons.ledger.consent import PUBLIC_CODE, Word
from epsilons.ledger.identity import digests
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.roster import read_standing
from epsilons.ledger.values import (
    ACTIVE,
    WITHDRAWN,
    Cohort,
    Digests,
    Enrolment,
    Registration,
)
from epsilons.measure import PLAIN, Measure
from epsilons.preferences import name_grant, to_nano


class Registry:
    """One dataset in its ledger. Nothing here creates or enrols anything."""

    def __init__(self, ledger: Ledger, registration: Registration, address: str, own: bool) -> None:
        self.ledger, self.registration, self.address = ledger, registration, address
        #: Its number, by which the ledger knows who is on its roster.
        self.dataset = registration.dataset
        terms = ledger.terms()
        #: Whether anybody's grant may be one by period.
        self.renews = bool(ledger.settled().periods)
        #: In what accounts are kept, and what the grants are called.
        self.measure = PLAIN if terms is None else terms.counted
        self.names = name_grants(ledger.levels(), self.measure)
        #: Whether the ledger was opened for this dataset alone, and is closed with it.
        self._own = own

    def remaining(self) -> Remaining:
        """What everybody on the roster has left."""
        return self.ledger.remaining(self.dataset)

    def close(self) -> None:
        """Close the ledger if it was opened here."""
        if self._own:
            self.ledger.close()

    @cached_property
    def person(self) -> Column:
        """The column of people's ids, whose kind is the ledger's."""
        terms = self.ledger.terms()
        assert terms is not None
        return Column(self.registration.about["person"], TEXT if terms.ids == "text" else NUMBER)

    def set_level(self, given: Mapping[Any, Any], *, anew: bool = False) -> Enrolment:
        """What people say themselves: {id: name of a level, or epsilon}; after a loss of records, `anew`."""
        if not isinstance(given, Mapping):
            rule, hint = "People's own words are given by id.", "{'ann': 'strict'}"
            raise PreferenceError("Levels are given as {id: level}.", rule=rule, suggest=hint)
        levels = self.levels_in_use()
        words = [read_word(one, levels, self.measure) for one in given.values()]
        return self.ledger.say(self.find_people(list(given)), np.arange(len(words)), words, self.dataset, anew=anew)

    def levels_in_use(self) -> dict[str, int]:
        """What names mean that some dataset has; registrations of earlier releases do not say which they have."""
        levels, settled = self.ledger.levels(), [one.about for one in self.ledger.registrations(newest=True)]
        named = {name for about in settled for name in about.get("named", levels)}
        return {name: code for name, code in levels.items() if name in named}

    def withdraw(self, people: Any) -> Enrolment:
        """None of these is used any more, also if they join only later."""
        return self.ledger.withdraw(self.find_people(people))

    def statement(self, who: Any) -> Statement:
        """One person's account, by id."""
        return self.ledger.statement(self.find_people([who])[0].tobytes())

    def find_people(self, people: Any) -> Digests:
        """Digests of people by their ids, however those are written."""
        return find_people(self.ledger, people, self.person)

    def describe(self, facts: TableFacts, seconds: float) -> Description:
        """Public facts about people and the ledger."""
        cohorts, left = self.ledger.cohorts(self.dataset), self.remaining()
        people: Counter[int | None] = Counter()
        for cohort in (cohort for cohort in cohorts if cohort.state == ACTIVE and cohort.people):
            people[cohort.granted] += cohort.people
        grants = {self.measure.granted(units): number for units, number in people.items()}
        shown = [(name_grant(grant, self.names), to_epsilon(grant), number) for grant, number in grants.items()]
        kept = {one.epsilon: (one.average, self.measure.amount(one.least), one.nothing_left) for one in left.levels}
        return Description(
            columns=facts.describe_columns(),
            levels=tuple(Level(*one, *kept.get(one[1], (None,))) for one in sorted(shown, key=itemgetter(1))),
            withdrawn=sum(cohort.people for cohort in cohorts if cohort.state == WITHDRAWN),
            **self._count_pending(cohorts),
            name=facts.name,
            person=facts.person,
            rows_per_person=facts.rows,
            neighbors=facts.neighbors,
            version=facts.version,
            registered=self.registration.at,
            ledger=self.address,
            epoch=self.ledger.epoch,
            releases=self.ledger.count("reservations", dataset=self.dataset),
            caveat=left.caveat,
            rounding_loss=self.registration.about.get("rounding_loss", 0.0),
            preparation_seconds=seconds,
            measure=facts.measure.to_text(),
            renews=facts.renews,
            questions=facts.questions,
        )

    def _count_pending(self, cohorts: Sequence[Cohort]) -> dict[str, int]:
        """Whose source last said more than holds: it waits for the steward's act, of some against their own word."""
        settled = self.ledger.settled()
        active = [one for one in cohorts if one.state == ACTIVE]
        waiting = [one for one in active if settled.waits(read_standing(vars(one)), self.dataset)]
        of_whom = {"pending": waiting, "pending_own": [one for one in waiting if one.own]}
        return {name: sum(one.people for one in those) for name, those in of_whom.items()}


def find_people(ledger: Ledger, people: Any, person: Column) -> Digests:
    """Digests of people by their ids, which are of the kind of a column, in the ledger's spelling."""
    from epsilons.dataset.preferences import as_ids  # with Arrow, which questions do without

    terms = ledger.terms()
    ids = as_ids(people, person, normal=terms is not None and terms.spelling == "normal")
    return digests(ids, ledger.salt, ledger.digest)


def read_epsilons(levels: Mapping[str, int], measure: Measure) -> dict[str, float]:
    """The epsilons of levels whose codes a ledger has."""
    return {name: math.inf if code == PUBLIC_CODE else measure.grant(code) for name, code in levels.items()}


def name_grants(levels: Mapping[str, int], measure: Measure) -> dict[float, str]:
    """Names by epsilon; two levels with one epsilon are one."""
    found: dict[float, str] = {}
    for name, epsilon in read_epsilons(levels, measure).items():
        found[epsilon] = f"{found[epsilon]} or {name}" if epsilon in found else name
    return found


def read_word(said: Any, levels: Mapping[str, int], measure: Measure = PLAIN) -> Word:
    """A level's name, or an epsilon; public goes by its name, whether or not a level is called so."""
    if isinstance(said, str):
        if said not in levels and said != "public":
            known: Sequence[str] = [*levels, *(["public"] if "public" not in levels else [])]
            raise PreferenceError(f"Unknown privacy level {said!r}.", suggest=f"{', '.join(known)}, or a number")
        return Word(levels.get(said, PUBLIC_CODE), said)
    try:
        epsilon = check_real(said)
    except TypeError:
        rule = "An epsilon is a number, or the name of a level."
        raise PreferenceError("A preference is not a number.", rule=rule) from None
    if not epsilon > 0:
        rule = "An epsilon is a number above 0."
        raise PreferenceError("This is no epsilon.", rule=rule, suggest="withdraw, for who wants to be left out")
    nano = to_nano(epsilon)
    return Word(PUBLIC_CODE if nano is None else measure.coded(nano))

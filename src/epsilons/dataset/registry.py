"""People and their grants: from the table to the ledger, and from the ledger back to the rows."""

from collections import Counter
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from epsilons import ledger as ledgers
from epsilons.arguments.checks import check_real
from epsilons.dataset.facts import Description, Level, TableFacts
from epsilons.dataset.people import Preparation, prepare
from epsilons.dataset.preferences import PreferenceTable, as_ids, check_id_column, read_given, read_preferences
from epsilons.engines.base import Engine
from epsilons.errors import Argument, LedgerError, PreferenceError
from epsilons.guarantee import to_epsilon
from epsilons.ledger.identity import digests
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.values import ACTIVE, WITHDRAWN, Digests, Enrolment
from epsilons.preferences import Preferences, name_grant
from epsilons.storage import show_address


class Registry:
    """Who is on the roster of a table, by the ledger."""

    def __init__(self, engine: Engine, person: Any, preferences: Any, ledger: str | Ledger | None) -> None:
        self._engine = engine
        self._person = check_id_column(engine, person)
        self._preferences = _as_preferences(preferences)
        #: What the steward calls the grants.
        self.names = self._preferences.names
        self._own = not isinstance(ledger, Ledger)
        self._address = "in memory, gone with this object" if ledger is None else "open"
        self.ledger = ledger if isinstance(ledger, Ledger) else ledgers.open(ledger)
        if isinstance(ledger, str):
            self._address = show_address(ledger)
        if self._own:
            # A balance or an answer that was edited is found before anybody is charged by it.
            self.ledger.verify()
        self._salt = self.ledger.salt
        #: What was read of the table's preferences, and people's digests; let go once the rows are prepared.
        self._asked: tuple[PreferenceTable, Digests] | None = None
        self._rounding_loss = 0.0

    def preference_facts(self) -> dict[str, Any]:
        """Which column of the table itself holds preferences, and what its names mean."""
        given = self._preferences.column
        if given is None or given.source is not None:
            return {}
        return {"preference": self._engine.schema.find(given.column).name, "levels": dict(given.levels or {})}

    def close(self) -> None:
        """Close the ledger if it was opened here."""
        if self._own:
            self.ledger.close()

    def enroll(self) -> Enrolment:
        """Newcomers join, stricter preferences hold at once, looser ones wait."""
        asked, people = self._read()
        self._check_familiar(people)
        return self.ledger.enroll(people, asked.nano)

    def _check_familiar(self, people: Digests) -> None:
        """A table none of whose people the ledger knows would give the same people, named otherwise, new budgets."""
        if not any(cohort.people for cohort in self.ledger.cohorts()):
            return
        # A quick look at a few of them, before all are compared.
        for digest in people[:8]:
            try:
                self.ledger.statement(digest.tobytes())
            except LedgerError:
                continue
            return
        known, here = (np.ascontiguousarray(all_).view("S16") for all_ in (self.ledger.members().digests, people))
        if not np.isin(here, known).any():
            rule = "A ledger is for one group of people; 1 and '1' are two people."
            hint = (Argument("types", {"id": "int"}), " for ids in a CSV file, or a ledger for these people")
            raise LedgerError("This ledger knows nobody of this table.", rule=rule, suggest=hint)

    def sync(self) -> Enrolment:
        """The table's preferences as they stand now, in both directions."""
        asked, people = self._read()
        return self.ledger.sync(people, asked.nano)

    def set_preferences(self, given: Any) -> Enrolment:
        """What people asked for themselves."""
        ids, nano = read_given(given, self._person, self._preferences)
        return self.ledger.set_grants(digests(ids, self._salt), nano)

    def withdraw(self, people: Any) -> Enrolment:
        """None of these is used any more, also if they join only later."""
        return self.ledger.withdraw(digests(as_ids(people, self._person), self._salt))

    def _read(self) -> tuple[PreferenceTable, Digests]:
        asked = read_preferences(self._engine, self._person, self._preferences)
        self._rounding_loss = asked.rounding_loss
        self._asked = asked, digests(asked.ids, self._salt)
        return self._asked

    def prepare(self, rows: int) -> Preparation:
        """Number the people, cap their rows, copy; what was read of the table's preferences is then let go."""
        assert self._asked is not None
        (asked, people), self._asked = self._asked, None
        return prepare(self._engine, self._person, asked.ids, people, self.ledger.members(), rows, self._salt)

    def describe(self, facts: TableFacts, version: str, pending: int, seconds: float) -> Description:
        """Public facts about people and the ledger."""
        cohorts, left = self.ledger.cohorts(), self.ledger.remaining()
        people: Counter[int | None] = Counter()
        for cohort in (cohort for cohort in cohorts if cohort.state == ACTIVE and cohort.people):
            people[cohort.granted] += cohort.people
        shown = [(name_grant(grant, self.names), to_epsilon(grant), number) for grant, number in people.items()]
        kept = {to_epsilon(one.granted): (one.average, to_epsilon(one.least), one.nothing_left) for one in left.levels}
        return Description(
            columns=tuple((kind.name, kind.family, facts.describe(kind)) for kind in facts.schema.values()),
            levels=tuple(Level(*one, *kept.get(one[1], (None,))) for one in sorted(shown, key=itemgetter(1))),
            withdrawn=sum(cohort.people for cohort in cohorts if cohort.state == WITHDRAWN),
            pending=pending,
            person=self._person.name,
            rows_per_person=facts.rows,
            neighbors=facts.neighbors,
            version=version,
            ledger=self._address,
            epoch=self.ledger.epoch,
            releases=len(self.ledger.history()),
            caveat=left.caveat,
            rounding_loss=self._rounding_loss,
            preparation_seconds=seconds,
        )


def _as_preferences(given: Any) -> Preferences:
    if isinstance(given, Preferences):
        return given
    if isinstance(given, Mapping):
        return Preferences(given)
    try:
        return Preferences({}, default=check_real(given))
    except TypeError:
        hint = (Argument("preferences", {"ann": 0.1}), ", or a column of epsilons or levels")
        raise PreferenceError("Preferences are missing or of an unknown kind.", suggest=hint) from None

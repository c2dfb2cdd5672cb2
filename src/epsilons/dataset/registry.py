"""People and their grants: from the table to the ledger, and from the ledger back to the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from epsilons import ledger as ledgers
from epsilons.dataset.description import Description, Level
from epsilons.dataset.preparation import Preparation, prepare, renew
from epsilons.dataset.question import Terms
from epsilons.dataset.wishes import Asked, as_ids, check_person, grants_of, read_table, read_wishes
from epsilons.engines.base import OTHER, Engine, open_table
from epsilons.errors import LedgerError, PreferenceError
from epsilons.guarantee import to_epsilon
from epsilons.ledger.identity import digests
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.values import ACTIVE, WITHDRAWN, Enrolment
from epsilons.preferences import Preferences, name_grant

#: People looked up one by one before all of them are.
_A_FEW = 8
_NOBODY = np.empty((0, 16), np.uint8)


class Registry:
    """Who is on the roster of a table, by the ledger's books."""

    def __init__(self, engine: Engine, person: Any, preferences: Any, ledger: str | Ledger | None) -> None:
        self._engine = engine
        self._person = check_person(engine, person)
        self._preferences = _as_preferences(preferences)
        #: What the steward calls the grants.
        self.names = self._preferences.names
        self._own = not isinstance(ledger, Ledger)
        self._address = "in memory, gone with this object" if ledger is None else "open"
        if isinstance(ledger, str):
            self._address = ledger.split("@")[-1]
        self.ledger = ledger if isinstance(ledger, Ledger) else ledgers.open(ledger)
        if self._own:
            # Whoever edited a balance or an answer is found out before anybody is charged by it.
            self.ledger.verify()
        self._salt = self.ledger.salt
        self._asked: Asked | None = None
        self._digests = _NOBODY
        self._rounding_loss = 0.0

    @property
    def person(self) -> str:
        """The column of ids."""
        return self._person.name

    def close(self) -> None:
        """Close the ledger if it was opened here."""
        if self._own:
            self.ledger.close()

    def settle(self, neighbors: str, rows: int, allow_individual: bool) -> None:
        """Fix, or find fixed, what charges mean."""
        self.ledger.settle_terms(neighbors, rows, allow_individual)

    # Wishes become grants -------------------------------------------------------------------------------------------

    def enroll(self) -> Enrolment:
        """Newcomers join, stricter wishes hold at once, looser ones wait."""
        asked = self._read()
        self._refuse_strangers()
        return self.ledger.enroll(self._digests, asked.nano)

    def _refuse_strangers(self) -> None:
        """A table none of whose people the ledger knows would give the same people, named otherwise, new budgets."""
        if not any(cohort.people for cohort in self.ledger.cohorts()) or self._is_known(_A_FEW):
            return
        known = np.ascontiguousarray(self.ledger.members().digests).view("S16").reshape(-1)
        if not np.isin(np.ascontiguousarray(self._digests).view("S16").reshape(-1), known).any():
            raise LedgerError(
                "This ledger knows nobody of this table.",
                rule="A ledger is for one group of people; 1 and '1' are two people.",
                suggest='types={"id": "int"} for ids in a CSV file, or a ledger of its own for other people',
            )

    def _is_known(self, few: int) -> bool:
        """Whether any of the first few people has an account: a quick look, before all of them are compared."""
        for digest in self._digests[:few]:
            try:
                self.ledger.statement(digest.tobytes())
            except LedgerError:
                continue
            return True
        return False

    def sync(self) -> Enrolment:
        """The table's wishes as they stand now, in both directions."""
        asked = self._read()
        return self.ledger.sync(self._digests, asked.nano)

    def set_preferences(self, wishes: Any) -> Enrolment:
        """What people said themselves."""
        if isinstance(wishes, Mapping):
            ids, epsilons = as_ids(list(wishes), self._person), [self._epsilon(wish) for wish in wishes.values()]
            nano = grants_of(np.array(epsilons, float))
        else:
            asked = read_table(wishes, self._person, self._preferences, open_table)
            ids, nano = asked.ids, asked.nano
        return self.ledger.set_grants(digests(ids, self._salt), nano)

    def withdraw(self, people: Any) -> Enrolment:
        """None of these is used any more, also if they join only later."""
        return self.ledger.withdraw(digests(as_ids(people, self._person), self._salt))

    def _read(self) -> Asked:
        self._asked = read_wishes(self._engine, self._person, self._preferences, open_table)
        self._digests = digests(self._asked.ids, self._salt)
        self._rounding_loss = self._asked.rounding_loss
        return self._asked

    def _epsilon(self, wish: Any) -> float:
        if isinstance(wish, str):
            named = {name: epsilon for epsilon, words in self.names.items() for name in words.split(" or ")}
            if wish not in named:
                raise PreferenceError(
                    f"Unknown privacy level {wish!r}.", suggest=f"one of {', '.join(named)}, or a number"
                )
            return named[wish]
        if isinstance(wish, bool) or not isinstance(wish, (int, float, np.integer, np.floating)):
            raise PreferenceError("A wish is an epsilon or the name of a level.", suggest='{"ann": 0.1, "bob": "open"}')
        return float(wish)

    # Grants reach the rows ------------------------------------------------------------------------------------------

    def prepare(self, rows: int) -> Preparation:
        """Number the people, cap their rows, copy; what was read of the table's wishes is then let go."""
        asked, self._asked = self._asked, None
        assert asked is not None
        people, self._digests = self._digests, _NOBODY
        return prepare(self._engine, self._person, asked.ids, people, self.ledger.members(), rows, self._salt)

    def renew(self, before: Preparation) -> Preparation:
        """The same rows with the cohorts of now."""
        return renew(before, self.ledger.members())

    def describe(self, terms: Terms, version: str, pending: int, seconds: float) -> Description:
        """Public facts about people and books."""
        cohorts, left = self.ledger.cohorts(), self.ledger.remaining()
        people: dict[int | None, int] = {}
        for cohort in cohorts:
            if cohort.state == ACTIVE and cohort.people:
                people[cohort.granted] = people.get(cohort.granted, 0) + cohort.people
        levels = []
        for granted in sorted(people, key=to_epsilon):
            epsilon = to_epsilon(granted)
            name = name_grant(granted, self.names)
            levels.append(Level(name, epsilon, people[granted], left.epsilons.get(epsilon)))
        columns = tuple(
            (kind.name, kind.family, _known(kind.name, kind.family, terms)) for kind in terms.schema.values()
        )
        return Description(
            columns=columns,
            levels=tuple(levels),
            withdrawn=sum(cohort.people for cohort in cohorts if cohort.state == WITHDRAWN),
            pending=pending,
            person=self._person.name,
            rows_per_person=terms.rows,
            neighbors=terms.neighbors,
            version=version,
            ledger=self._address,
            epoch=self.ledger.epoch,
            releases=len(self.ledger.history()),
            caveat=left.caveat,
            rounding_loss=self._rounding_loss,
            preparation_seconds=seconds,
        )


def _known(name: str, family: str, terms: Terms) -> str:
    facts = []
    if name in terms.bounds:
        facts.append("in [{:g}, {:g}]".format(*terms.bounds[name]))
    if name in terms.complete:
        facts.append("complete")
    if family == OTHER:
        facts.append("cannot be asked about")
    return ", ".join(facts) or "–"


def _as_preferences(given: Any) -> Preferences:
    if isinstance(given, Preferences):
        return given
    if isinstance(given, Mapping):
        return Preferences(given)
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return Preferences({}, default=float(given))
    raise PreferenceError(
        "Preferences are missing or of an unknown kind.",
        rule="Everyone on the roster has a preference.",
        suggest='eps.Preferences.from_column("epsilon"), from_levels("privacy", {...}), or {"ann": 0.1}',
    )

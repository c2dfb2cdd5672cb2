"""The ledger: every person's budget, charged durably before any data is read.

Order of a release: `reserve` (durable), `mark_read` (durable; from here on nothing is given back), read and draw,
`store`; only what `store` returns may leave. A process that ends anywhere in between leaves the charge standing.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import Argument, LedgerError
from epsilons.ledger import (
    checks,
    journal,
    past,
    paths,
    recount,
    registration,
    roster,
    segments,
    statements,
    values,
    witness,
)
from epsilons.ledger.checks import Grants, People
from epsilons.ledger.consent import WITHDRAW_CODE, Decide, Settled, Word, by_person, by_source
from epsilons.ledger.journal import Anchor, Clock, Head, write_time
from epsilons.ledger.keeping import Keeping
from epsilons.ledger.merging import merge_cohorts
from epsilons.ledger.renewal import Renewing, is_due
from epsilons.ledger.replay import Replay
from epsilons.ledger.telling import Telling
from epsilons.ledger.witness import Outside
from epsilons.storage.base import Connection, Database

# Numbers of releases and sizes only: never a digest, a key, a description or an answer.
_log = logging.getLogger("epsilons.ledger")
_T = TypeVar("_T")


class Ledger(Keeping, Renewing, Telling):
    """Budgets of people in one database; safe for threads, and for processes where the database is shared."""

    def __init__(
        self, database: Database, clock: Clock, id: str, salt: bytes, digest: str, anchor: Anchor | None,
        outside: Outside | None = None,
    ) -> None:  # fmt: skip
        self._database, self._clock, self._home = database, clock, database.folder or ""
        #: Where its head is kept: in this user's files, and by a witness.
        self._anchor, self._outside = anchor, outside
        #: Names the ledger for good.
        self.id = id
        #: The key of the digests of its people, and how they are made: see `identity`.
        self.salt, self.digest = salt, digest
        #: The first release that was drawn with a seed: in memory only, and so for as long as the ledger lives.
        self._seeded: int | None = None
        #: Who moved since a registration's line, as far as that was verified: (up to which line, as a hash).
        self._moved: dict[int, tuple[int, str]] = {}
        self._marks: dict[int, str] = {}
        #: What the journal added up to when it was last verified here; every charge is held to it.
        self._replay: Replay | None = None
        self._condensed = ""

    @property
    def lasting(self) -> bool:
        """Whether it outlives this process; one in memory forgets every charge with it."""
        return self._database.lasting

    def _writing(self, inside: str, after: str) -> AbstractContextManager[Connection]:
        """One change: committed, then the head synced, then and only then known to the caller."""
        named = "(SELECT witness FROM ledger)" if self.lasting else None  # one in memory has no witness
        return journal.keep_head(self._database, self.id, self._anchor, self._find_outside, inside, after, named)

    def _read(self, read: Callable[[Connection], _T]) -> _T:
        """One consistent view."""
        with self._database.read() as connection:
            return read(connection)

    def _get_head(self) -> Head | None:
        """The newest line that is known outside the database; read before a view of it, so that it is no newer."""
        return None if self._anchor is None else self._anchor.get()._replace(marks=self._marks)

    def _find_outside(self, settled: str | None) -> Outside | None:
        """Who keeps the head as the ledger has it now: another witness may have been named since it was opened."""
        if settled != (None if self._outside is None else self._outside.settled):
            before, self._outside = self._outside, witness.find_outside(settled, self.id, self.salt, None)
            if before is not None:
                before.close()
        return self._outside

    def close(self) -> None:
        """Let go of the database; a ledger in memory is gone then."""
        self._database.close()
        if self._outside is not None:
            self._outside.close()

    def terms(self) -> values.Terms | None:
        """What was settled, or None."""
        return self._read(statements.read_terms)

    def settle_terms(
        self, neighbors: str, rows_per_person: int | None = None, allow_individual: bool = False
    ) -> values.Terms:
        """Fix the terms for the life of the ledger; the same ones again are fine, others are refused."""
        asked, held = checks.check_terms(neighbors, rows_per_person, allow_individual), self.terms()
        if held is None or not registration.agree(held, asked):
            with self._writing("enrolling", "enrolled") as connection:
                registration.settle_terms(connection, write_time(self._clock), asked)
        return asked

    def foresee(self, given: registration.Application) -> registration.Outlook:
        """What `register` would do, and what it would be refused for. Nothing is written."""
        at = write_time(self._clock)
        return self._read(partial(registration.foresee, given=paths.keep(given, self._home), at=at))

    def register(self, given: registration.Application) -> tuple[values.Registration, values.Enrolment]:
        """Settle a dataset, enrol its people, let go of those who are no longer in it."""
        kept = paths.keep(given, self._home)
        with self._writing("enrolling", "enrolled") as connection:
            at = write_time(self._clock)
            made, done = registration.register(connection, at, kept)
            merge_cohorts(connection, at)
        _log.info("registration %d: %d people joined or changed their grant", made.number, done.changed)
        return paths.find(made, self._home), done

    def registrations(self, newest: bool = False) -> tuple[values.Registration, ...]:
        """Every registration of every dataset, in its order; or the newest of each, which are those that are asked."""
        read = registration.list_newest if newest else registration.list_registrations
        with self._database.read() as connection:
            return tuple(paths.find(one, self._home) for one in read(connection))

    def count(self, table: Literal["registrations", "reservations"], **which: Any) -> int:
        """How many registrations, or questions, there were; those with this name, or of this dataset."""
        return self._read(partial(statements.count, table=table, which=which))

    def find_registration(self, name: str) -> values.Registration | None:
        """The newest registration of a dataset, which is the one that is asked."""
        with self._database.read() as connection:
            return next((paths.find(one, self._home) for one in registration.list_newest(connection, name)), None)

    def levels(self) -> dict[str, int]:
        """What names of levels mean now, in nano-epsilon; -1 for public."""
        return self._read(registration.read_levels)

    def settled(self) -> Settled:
        """What words are held to: meanings of levels, ceilings of datasets."""
        return self._read(partial(registration.read_settled, at=write_time(self._clock)))

    def enroll(self, people: People, grants: Grants, *, loosen: bool = False) -> values.Enrolment:
        """Take a list of preferences: newcomers join, stricter ones hold at once, looser ones with `loosen` alone.

        A person listed several times has the strictest of their preferences. Enrolling a list again changes nothing.
        """
        return self._change(people, *checks.as_words(grants, len(people)), by_source(None, self.settled(), loosen))

    def set_grants(self, people: People, grants: Grants, *, anew: bool = False) -> values.Enrolment:
        """What people said themselves: stricter, looser, public, or back again after withdrawing.

        After a loss of records whatever people grant counts as spent until they consent `anew` (see `losses`).
        """
        return self.say(people, *checks.as_words(grants, len(people)), anew=anew)

    def say(
        self,
        people: People,
        asked: NDArray[Any],
        words: Sequence[Word],
        dataset: int | None = None,
        *,
        anew: bool = False,
    ) -> values.Enrolment:
        """The same in words, which may be names of levels: `people[i]` says `words[asked[i]]`, through a dataset."""
        return self._change(people, asked, words, by_person(self.settled(), dataset), anew)

    def withdraw(self, people: People) -> values.Enrolment:
        """These people are not used any more; their accounts stay.

        Those not on the roster are noted as withdrawn, should they join one day, and reported as `unknown`.
        """
        return self.say(people, np.zeros(len(people), np.int64), [Word(WITHDRAW_CODE)])

    def _change(
        self, people: People, asked: NDArray[Any], words: Sequence[Word], decide: Decide, anew: bool = False
    ) -> values.Enrolment:
        request = roster.Request(checks.check_digests(people), asked, words, decide, anew=anew)
        with self._writing("enrolling", "enrolled") as connection:
            at = write_time(self._clock)
            done = roster.carry_out(connection, at, roster.plan_change(connection, request))
            merge_cohorts(connection, at)
        _log.info("roster: %d of %d people joined or changed their grant", done.changed, len(people))
        return done

    @property
    def epoch(self) -> int:
        """How often the roster changed: part of what a charge is planned for."""
        return self._read(statements.read_epoch)

    def state(self, dataset: int) -> tuple[int, int]:
        """(the roster's epoch, the number of the newest registration of a dataset)."""
        return self._read(partial(statements.read_state, dataset=dataset))

    def cohorts(self, dataset: int | None = None) -> tuple[values.Cohort, ...]:
        """All cohorts that anybody is in, or those on the roster of a dataset, in the order they were made."""
        return self._read(partial(statements.read_cohorts, dataset=dataset))

    def members(self, dataset: int | None = None) -> values.Members:
        """Who is in which cohort, sorted by digest: everyone, or those on the roster of a dataset."""
        with self._database.read() as connection:
            people, cohorts = segments.read_present(connection)
            if dataset is not None:
                on = np.isin(cohorts, [cohort.id for cohort in statements.read_cohorts(connection, dataset)])
                people, cohorts = people[on], cohorts[on]
            epoch = statements.read_epoch(connection)
        return values.Members(epoch, people.view(np.uint8).reshape(-1, values.DIGEST_BYTES), cohorts)

    def moves(self, line: int) -> values.Moves:
        """Who joined or moved after a line of the journal, and where they are now.

        Since a registration's line, all of it is held to the journal by whoever verified the ledger before.
        """
        with self._database.read() as connection:
            found = segments.read_moves(connection, line, self._moved.get(line))
            if found is None:  # others have changed the roster since
                self._know(recount.verify(connection, recount.resume(self._condensed)))
                found = segments.read_moves(connection, line, self._moved.get(line))
            assert found is not None
            return values.Moves(statements.read_epoch(connection), journal.head(connection)[0], *found)

    def allowance(self, share: Fraction, dataset: int | None = None) -> values.Allowance:
        """What a question may charge each cohort; BudgetExceeded when nobody with a finite epsilon has any left."""
        part = checks.check_exact_share(share)
        with self._database.read() as connection:
            here = statements.read_cohorts(connection, dataset)
            return values.allowance(here, part, statements.read_epoch(connection))

    def find(self, key: bytes, asked: bytes | None = None) -> values.Reservation | None:
        """The reservation of a question that was asked before, with its answer if it has one. Free.

        `asked` is the question's digest without the roster's epoch: its stored answer is found whoever joined since.
        """
        head, held = self._get_head(), checks.check_question_key(key)
        known = None if asked is None else checks.check_question_key(asked)
        with self._database.read() as connection:
            return statements.find_reservation(connection, held, known, head)

    def reserve(
        self,
        key: bytes,
        charges: Mapping[int, int],
        *,
        epoch: int,
        kind: str,
        description: str = "",
        individual: bool = False,
        analyst: str | None = None,
        dataset: int | None = None,
        asked: bytes | None = None,
        levels: Mapping[int, int] | None = None,
    ) -> values.Reservation:
        """Charge a question, durably, all cohorts or none; asked again, it resumes at no further charge.

        `epoch` is the one of the allowance the charges were planned with, and of the members that will be read; it
        belongs into the question's digest as well. StalePlanError: plan again. `analyst` is a name that quotas are
        kept under; QuotaError is about fairness between analysts, not about privacy. `dataset` is the one asked, whose
        people alone are charged; `asked` is the question's digest without the epoch, for `find`. `levels` are the
        plan's, by cohort, of everyone who is used, also of those who are public.
        """
        head = self._get_head()
        question, (paid, plan) = checks.check_question_key(key), checks.check_plan(charges, levels)
        known = None if asked is None else checks.check_question_key(asked)
        checks.check_description(kind, "kind"), checks.check_description(description, "description")
        asker = None if analyst is None else checks.check_analyst_name(analyst)
        # A look first: repeats and charges that cannot fit need not wait for the writers' lock.
        with self._database.read() as connection:
            before = statements.find_reservation(connection, question, known, head)
            if before is not None:
                return before
            if not statements.fits(connection, paid, epoch, dataset):
                raise values.stale_plan()
        with self._writing("reserving", "reserved") as connection:
            before = statements.find_reservation(connection, question, known, head)
            if before is not None:
                return before
            if self._replay is not None:
                recount.keep_up(connection, self._replay)
            turn = statements.read_turn(connection)
            if turn["state"] is not None:
                raise values.has_ended(turn["state"])
            if turn["neighbors"] is None:
                raise LedgerError("This ledger's terms are not settled.", suggest="settle them first")
            if individual and not turn["allow_individual"]:
                raise values.not_individual()
            if turn["epoch"] != epoch or (turn["renews"] and is_due(connection, write_time(self._clock))):
                raise values.stale_plan()
            number = turn["last"] + 1
            about = {
                "number": number, "kind": kind, "individual": int(individual), "epoch": epoch,
                "description": description, "analyst": asker, "dataset": dataset,
            }  # fmt: skip
            if asker is not None:
                statements.use_quota(connection, asker, paid)
            charged = statements.charge(connection, number, plan)
            at = write_time(self._clock)
            line = {**about, "key": question.hex(), "charges": plan}
            line |= {"question": None if known is None else known.hex()}
            seq, _ = journal.append(connection, "reserve", at, line)
            connection.execute(statements.RESERVE, {**about, "key": question, "question": known, "seq": seq, "at": at})
        _log.info("release %d: charged to %d cohorts", number, len(paid))
        return values.Reservation(number, values.RESERVED, epoch, description=description, at=at, **charged)

    def check_seeded(self) -> None:
        """Refuse a draw from entropy of the caller's own, unless this ledger is gone with this process."""
        if self.lasting:
            rule = "Whoever knows the randomness can remove the noise; what is promised here is promised for good."
            hint = ("leave ", Argument("entropy"), " out, or a ledger in memory, for a test")
            raise LedgerError("A ledger that lasts takes no entropy of one's own.", rule=rule, suggest=hint)

    def mark_read(self, number: int, seeded: bool = False) -> values.Reservation:
        """Say that data is about to be read. From here on the charge is spent, whatever happens."""
        if seeded:
            self.check_seeded()
        number = checks.check_number(number)
        with self._writing("touching", "touched") as connection:
            held = statements.get_reservation(connection, number)
            if seeded and held.state in (values.RESERVED, values.TOUCHED):
                self._seeded = min(self._seeded or held.number, held.number)
            if held.state == values.REFUNDED:
                raise LedgerError("This charge was given back.", rule="No charge, no data.", suggest="reserve again")
            if held.state == values.LOST:
                raise past.was_lost()
            unread = held.state == values.RESERVED
            if unread:
                statements.spend(connection, held.number)
            mark = statements.find_mark(connection, self._seeded)
            if unread:
                journal.append(connection, "touch", write_time(self._clock), {"number": held.number})
            return replace(held, state=values.TOUCHED if unread else held.state, not_dp_since=mark)

    def refund(self, number: int) -> None:
        """Give a charge back before any data was read for it; afterwards that is refused."""
        number = checks.check_number(number)
        with self._writing("refunding", "refunded") as connection:
            held = statements.get_row(connection, number)
            if held["state"] == values.REFUNDED:
                return
            if held["state"] != values.RESERVED:
                raise LedgerError("This charge stands.", rule="Nothing is given back once data was read.")
            statements.give_back(connection, held["number"])
            journal.append(connection, "refund", write_time(self._clock), {"number": held["number"]})
        _log.info("release %d: given back", held["number"])

    def store(self, number: int, answer: bytes) -> bytes:
        """Keep the answer; returns the bytes that may leave, which are those that were stored first."""
        number, content = checks.check_number(number), checks.check_answer(answer)
        with self._writing("storing", "stored") as connection:
            held = statements.get_row(connection, number)
            if held["answer"] is not None:
                return bytes(held["answer"])
            if held["state"] == values.LOST:
                raise past.was_lost()
            if held["state"] != values.TOUCHED:
                raise LedgerError("No data was read for this question.", rule="reserve, mark_read, then store.")
            statements.store(connection, held["number"], content)
            digest = hashlib.sha256(content).hexdigest()
            journal.append(connection, "store", write_time(self._clock), {"number": held["number"], "answer": digest})
        _log.info("release %d: stored", held["number"])
        return content

    def set_quota(self, analyst: str, *, nano: int | None = None, questions: int | None = None) -> None:
        """Let an analyst use at most so much, in nano-epsilon or in questions; None of either lifts it.

        For fairness between analysts only: a quota is no privacy budget, and protects no data.
        """
        who, most, often = checks.check_analyst_name(analyst), checks.check_quota(nano), checks.check_quota(questions)
        with self._writing("enrolling", "enrolled") as connection:
            statements.set_quota(connection, who, most, often)
            line = {"analyst": who, "nano": most, "questions": often}
            journal.append(connection, "quota", write_time(self._clock), line)

    def verify(
        self, thorough: bool = True, progress: recount.Progress | None = None, note: bool = True
    ) -> values.Recount:
        """Recount everything from the journal; raises LedgerError when anything differs.

        From its first line on, or with `thorough=False` only what is new since it was last verified on this machine,
        and every account that can still be charged: that takes the same time however many people there are, and
        however much was asked. `progress` is told how many lines of how many were followed; `note`: remember how far.
        """
        start, anchor = None, self._anchor
        with self._database.read() as connection:
            if anchor is not None:
                anchor.check(connection, self.id)
                start = None if thorough else recount.resume(anchor.read_verified(connection))
            self._database.check_tables(connection)
            before = 0 if start is None else start.line
            done = recount.verify(connection, start, progress)
        told = recount.sum_up(done)
        self._know(done)
        if anchor is not None and note and done.line > before:
            anchor.note_verified(done.line, told.head, self._condensed)
        return told

    def _know(self, done: Replay) -> None:
        """What was verified just now: charges are held to it, and later lines go on from there."""
        self._marks, self._moved = dict(done.marks), done.list_moves()
        self._replay, self._condensed = done, done.condense()

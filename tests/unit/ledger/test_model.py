"""Mixed steps against a plain model (`ledger_model`) that keeps an account for every single person.

After every step each person's max(0, granted - spent - reserved) is exactly what the ledger says is left.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import epsilons.ledger
from epsilons.ledger import renewal
from epsilons.ledger.ledger import Ledger
from support.ledger_model import GRANTS, LASTING, LEVELS, NOW, PEOPLE, SHARES, STEPS, LastingModel, Model
from support.ledger_servers import fresh

some_people = st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=6, unique=True)
grant = st.sampled_from(GRANTS)
share = st.sampled_from(SHARES)
which = st.integers(0, 1000)
#: How far a clock goes at once; it is put back as well.
DAYS = [1, 8, 31, 100, 366, -3, -40]


class Books(RuleBasedStateMachine):
    """Everything anyone can do to a ledger, in any order."""

    kind = "memory"
    server: str | None = None

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.anchor = Path(self.folder.name) / "head"
        self.url = {
            "memory": lambda: None,
            "sqlite": lambda: f"sqlite:///{self.folder.name}/people.ledger",
            "postgresql": lambda: fresh(str(self.server)),
        }[self.kind]()
        self.model = self.begin()

    def begin(self) -> Model:
        return Model(self.open())

    def open(self, **more: bool) -> Ledger:
        return epsilons.ledger.open(self.url, witness=self.anchor if self.url else None, **more)

    def teardown(self) -> None:
        if hasattr(self, "model"):
            self.model.ledger.verify()
            self.model.ledger.close()
            self.folder.cleanup()

    @rule(people=some_people, granted=grant)
    def enroll(self, people: list[bytes], granted: int | None) -> None:
        self.model.enroll(people, granted)

    @rule(people=some_people, granted=grant)
    def sync(self, people: list[bytes], granted: int | None) -> None:
        self.model.loosen(people, granted)

    @rule(people=some_people, granted=grant)
    def set_grants(self, people: list[bytes], granted: int | None) -> None:
        self.model.set_grants(people, granted)

    @rule(people=some_people, granted=grant)
    def consent_anew(self, people: list[bytes], granted: int | None) -> None:
        self.model.set_grants(people, granted, anew=True)

    @rule(people=some_people)
    def withdraw(self, people: list[bytes]) -> None:
        self.model.withdraw(people)

    @rule(share=share)
    def reserve(self, share: Fraction) -> None:
        self.model.reserve(share)

    @rule(which=which)
    def again(self, which: int) -> None:
        self.model.again(which)

    @rule(which=which, step=st.sampled_from(STEPS))
    def settle(self, which: int, step: str) -> None:
        self.model.settle(which, step)

    @precondition(lambda self: self.kind != "memory")
    @rule()
    def reopen(self) -> None:
        self.model.ledger.close()
        self.model.ledger = self.open()

    @precondition(lambda self: self.kind != "memory" and self.model.asked > 3)
    @rule()
    def lose(self) -> None:
        self.model.ledger.close()
        self.anchor.unlink()
        self.model.ledger = self.open(accept_loss=True)
        self.model.lose()

    @invariant()
    def every_account_is_exact(self) -> None:
        if hasattr(self, "model"):
            self.model.every_account_is_exact()

    @invariant()
    def every_statement_adds_up(self) -> None:
        if hasattr(self, "model"):
            self.model.every_statement_adds_up()


class BooksOnDisk(Books):
    kind = "sqlite"


TestInMemory = Books.TestCase
TestInMemory.settings = settings(max_examples=8, stateful_step_count=40, deadline=None)
TestOnDisk = BooksOnDisk.TestCase
TestOnDisk.settings = settings(max_examples=6, stateful_step_count=30, deadline=None)


@pytest.mark.integration
def test_on_postgres(postgres_server: str) -> None:
    class BooksOnServer(Books):
        kind = "postgresql"
        server = postgres_server

    run_state_machine_as_test(BooksOnServer, settings=settings(max_examples=4, stateful_step_count=25, deadline=None))


class LastingBooks(Books):
    """The same where accounts count rho and grants are renewed, by a clock that goes forward and back."""

    kind = "sqlite"

    def begin(self) -> Model:
        return LastingModel(self.open(), self.now)

    @initialize()
    def start(self) -> None:
        self.now = [NOW]
        super().start()

    def open(self, **more: bool) -> Ledger:
        anchor = self.anchor if self.url else None
        return epsilons.ledger.open(self.url, witness=anchor, clock=lambda: self.now[0], **more)

    @rule(people=some_people, level=st.integers(0, len(LEVELS) - 1))
    def say(self, people: list[bytes], level: int) -> None:
        self.lasting.say(people, level)

    @rule(days=st.sampled_from(DAYS))
    def pass_time(self, days: int) -> None:
        self.lasting.pass_time(days)

    @rule()
    def renew(self) -> None:
        self.lasting.renew()

    @property
    def lasting(self) -> LastingModel:
        assert isinstance(self.model, LastingModel)
        return self.model


TestLasting = LastingBooks.TestCase
TestLasting.settings = settings(max_examples=8, stateful_step_count=40, deadline=None)


def walk(ledger: Ledger, luck: Random, steps: int, now: list[datetime] | None = None) -> Model:
    """Steps at random, and every account compared after each of them; with a clock, of accounts that last."""
    model = Model(ledger) if now is None else LastingModel(ledger, now)
    moves: list[Callable[[], None]] = [
        lambda: model.enroll(luck.sample(PEOPLE, luck.randrange(1, 7)), luck.choice(GRANTS)),
        lambda: model.loosen(luck.sample(PEOPLE, luck.randrange(1, 7)), luck.choice(GRANTS)),
        lambda: model.set_grants(luck.sample(PEOPLE, luck.randrange(1, 7)), luck.choice(GRANTS)),
        lambda: model.withdraw(luck.sample(PEOPLE, luck.randrange(1, 3))),
        lambda: model.reserve(luck.choice(SHARES)),
        lambda: model.reserve(Fraction(1, 1000)),
        lambda: model.again(luck.randrange(1000)),
        lambda: model.settle(luck.randrange(1000), luck.choice(STEPS)),
        lambda: model.settle(-luck.randrange(1, 4), luck.choice(STEPS)),
        lambda: model.settle(-luck.randrange(1, 4), luck.choice(STEPS)),
    ]
    if isinstance(model, LastingModel):
        lasting = model
        moves += 3 * [lambda: lasting.say(luck.sample(PEOPLE, luck.randrange(1, 7)), luck.randrange(len(LEVELS)))]
        moves += 2 * [lambda: lasting.pass_time(luck.choice(DAYS))]
    for _ in range(steps):
        luck.choice(moves)()
        model.every_account_is_exact()
    model.every_statement_adds_up()
    ledger.verify()
    return model


def test_a_walk_visits_every_state(lasting: str) -> None:
    book = epsilons.ledger.open(lasting)
    model = walk(book, Random(1), 150)
    assert {q.state for q in model.questions.values()} == {"reserved", "touched", "refunded", "stored"}
    book.close()


def test_a_walk_of_years_renews_and_counts_rho(lasting: str) -> None:
    now = [NOW]
    book = epsilons.ledger.open(lasting, clock=lambda: now[0])
    model = walk(book, Random(2), 250, now)
    assert [line["kind"] for line in book.export()].count("renew") > 3
    assert any(one.lapsed for one in model.accounts.values())
    assert book.statement(PEOPLE[0]).measure == LASTING
    book.close()


def forget_what_is_over(connection: Any, at: str, lost: bool = False) -> int:
    """A planted fault: a period begins, and what the last one counts for is forgotten."""
    with pytest.MonkeyPatch.context() as bug:
        bug.setattr(renewal, "count_over", lambda *_: 0)
        return begin_periods(connection, at, lost)


begin_periods = renewal.begin_periods


def test_a_renewal_that_forgets_is_seen_by_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [NOW]
    book = epsilons.ledger.open(None, clock=lambda: now[0])
    monkeypatch.setattr(renewal, "begin_periods", forget_what_is_over)
    with pytest.raises(AssertionError):
        walk(book, Random(2), 150, now)
    book.close()


PLAIN, LASTING_TOO = pytest.mark.figure("figure_10"), pytest.mark.figure("figure_10_lasting")
#: (where, accounts that last, which ten thousand steps)
PIECES = [
    pytest.param(kind, lasts, piece, marks=LASTING_TOO if lasts else PLAIN)
    for lasts, pieces in {False: (100, 30, 10), True: (20, 8, 2)}.items()
    for kind, number in zip(("memory", "sqlite", "postgresql"), pieces, strict=True)
    for piece in range(number)
]


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "lasts", "piece"), PIECES)
def test_a_million_mixed_steps(
    kind: str,
    lasts: bool,
    piece: int,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, int], None],
) -> None:
    """Ten thousand steps at a time, over ledgers that are begun anew so that their history stays short."""
    for turn in range(20):
        places: dict[str, Callable[[], str | None]] = {
            "memory": lambda: None,
            "sqlite": lambda turn=turn: f"sqlite:///{tmp_path}/{turn}.ledger",  # type: ignore[misc]
            "postgresql": lambda: fresh(request.getfixturevalue("postgres_server")),
        }
        now = [NOW]
        book = epsilons.ledger.open(places[kind](), clock=lambda now=now: now[0])  # type: ignore[misc]
        walk(book, Random(), 500, now if lasts else None)
        book.close()
    record_property("size", 10_000)


@pytest.mark.soak
class TestLong(Books.TestCase):  # type: ignore[name-defined, misc]
    settings = settings(max_examples=500, stateful_step_count=500, deadline=None, derandomize=False)

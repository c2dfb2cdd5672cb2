"""Randomness of one's own: a ledger that lasts refuses it before anybody is charged, one in memory is marked by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import epsilons as eps
from epsilons import ledger as ledgers
from epsilons.dataset import table
from epsilons.guarantee import SEEDED
from epsilons.ledger.identity import digests
from epsilons.noise.entropy import Entropy
from epsilons.testing import seeded
from support.planted import seeds_accepted
from support.wages import COUNT, dataset, wages

MARK = "Not DP since release 1."


class Known(Entropy):
    """Says of itself that it is private, and repeats itself."""

    private = True  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__(bytes(32))


class Lookalike:
    """No `Entropy` at all."""

    def __init__(self) -> None:
        self.private, known = True, seeded(3)
        self.bytes, self.words, self.bits = known.bytes, known.words, known.bits


SOURCES: dict[str, Callable[[], Any]] = {
    "seeded": lambda: seeded(1),
    "seeded, called private": Known,
    "like one": Lookalike,
    "of the operating system, and known to the caller": Entropy,
}
QUESTIONS: dict[str, Callable[[eps.Dataset, Any], Any]] = {
    "statistic": lambda people, source: people.count(where="age >= 40", entropy=source),
    "group": lambda people, source: people.mean("wage", bounds=(0, 100), by={"region": ["north"]}, entropy=source),
    "model": lambda people, source: people.linear_regression(
        "wage", features=["age"], bounds={"wage": (0, 100), "age": (18, 80)}, entropy=source
    ),
    "SQL": lambda people, source: people.sql("SELECT COUNT(*) FROM people WHERE age > 30", entropy=source),
    "algorithm": lambda people, source: people.apply(lambda data, epsilon: 1, columns=["age"], entropy=source),
}


@pytest.fixture
def people(tmp_path: Path) -> Any:
    with dataset(ledger=f"sqlite:///{tmp_path}/people.ledger") as opened:
        yield opened


def refuse(people: eps.Dataset, ask: Callable[[eps.Dataset, Any], Any], source: Any) -> None:
    before, journal = people.remaining(), list(people.ledger.export())
    with pytest.raises(eps.LedgerError, match="A ledger that lasts takes no entropy of one's own"):
        ask(people, source)
    assert people.remaining() == before
    assert list(people.ledger.export()) == journal


@pytest.mark.parametrize("name", SOURCES)
def test_a_lasting_ledger_refuses_every_source_of_ones_own(people: eps.Dataset, name: str) -> None:
    refuse(people, QUESTIONS["statistic"], SOURCES[name]())


@pytest.mark.parametrize("name", QUESTIONS)
def test_it_refuses_whatever_is_asked_and_nobody_is_charged(people: eps.Dataset, name: str) -> None:
    refuse(people, QUESTIONS[name], seeded(1))
    QUESTIONS[name](people, None)
    assert people.remaining().caveat == ""


def test_an_answer_that_is_stored_already_is_refused_as_well(people: eps.Dataset) -> None:
    QUESTIONS["statistic"](people, None)
    refuse(people, QUESTIONS["statistic"], seeded(1))


def test_an_algorithm_with_a_seed_of_its_own_is_refused(people: eps.Dataset) -> None:
    honest = table.read_algorithm
    with patch.object(table, "read_algorithm", lambda *given: replace(honest(*given), seeded=True)):
        refuse(people, lambda people, _: people.apply(lambda data, epsilon: 1, columns=["age"]), None)


def test_the_planted_ledger_that_takes_a_seed_gives_the_exact_number_away(people: eps.Dataset, tmp_path: Path) -> None:
    """The bug. The noise is drawn again from the seed, on people nobody asked about; nothing is cut off."""
    with seeds_accepted():
        ask: dict[str, Any] = {"where": "age >= 40", "share": 0.9, "mechanism": "minimum"}
        answer = people.count(**ask, entropy=seeded(7)).value
        with dataset(wages(age=[18] * COUNT), ledger=f"sqlite:///{tmp_path}/others.ledger") as others:
            noise = others.count(**ask, entropy=seeded(7)).value
        assert answer - noise == sum(age >= 40 for age in wages()["age"].to_pylist())
        assert people.remaining().caveat == ""
        with pytest.raises(pytest.fail.Exception):
            refuse(people, QUESTIONS["statistic"], seeded(1))


# In memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOURCES)
def test_a_ledger_in_memory_is_marked_for_good(name: str) -> None:
    accounts = ledgers.open()
    with dataset(ledger=accounts) as people, dataset(ledger=accounts, name="others") as others:
        assert MARK in people.count(entropy=SOURCES[name]()).guarantee.caveats
        for told in (people, others):
            later = told.mean("wage", bounds=(0, 100), fresh=True)
            assert later.private
            assert later.guarantee.caveats[0] == MARK
            assert MARK in str(told.describe())
            assert MARK in str(told.remaining())
        assert [past.not_dp_since for past in accounts.history()] == [1, 1, 1]
        statement = accounts.statement(digests(["person 3"], accounts.salt)[0].tobytes())
        assert MARK in statement.sentences
        accounts.verify()


def test_what_was_asked_before_the_seed_stays_as_it_was() -> None:
    with dataset() as people:
        first = people.count()
        assert people.count(entropy=seeded(1)).guarantee.caveats[:2] == ("Not DP since release 2.", SEEDED)
        assert people.count() == first
        assert [past.not_dp_since for past in people.history()] == [None, 2]


def test_a_question_that_is_refused_leaves_no_mark() -> None:
    with dataset() as people:
        people.count(share=1, mechanism="stretching")
        with pytest.raises(eps.BudgetExceeded):
            people.count(where="age >= 40", entropy=seeded(1))
        assert people.remaining().caveat == ""


def test_an_algorithm_with_a_seed_of_its_own_leaves_a_mark() -> None:
    honest = table.read_algorithm
    with dataset() as people:
        with patch.object(table, "read_algorithm", lambda *given: replace(honest(*given), seeded=True)):
            people.apply(lambda data, epsilon: 1, columns=["age"])
        assert people.remaining().caveat == MARK


@pytest.mark.parametrize("name", ["seeded", "seeded, called private", "like one"])
def test_no_class_of_ones_own_can_say_that_it_is_private(name: str) -> None:
    """On arrays, too, where there is no ledger to refuse it."""
    source, values, epsilons = SOURCES[name](), [1.0, 2.0, 3.0], [0.5, 0.5, 1.0]
    answers = [
        eps.mean(values, epsilons, bounds=(0, 3), entropy=source),
        eps.personalize(lambda data, epsilon: 1.0, values, epsilons, entropy=source),
        eps.individually(lambda data: 1.0, values, epsilons, sensitivity=1.0, step=0.1, entropy=source),
    ]
    for answer in answers:
        assert not answer.private
        assert SEEDED in answer.guarantee.caveats
    assert eps.mean(values, epsilons, bounds=(0, 3)).private

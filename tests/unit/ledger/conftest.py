"""One suite over all back ends: a test that takes `ledger` or `address` runs once on each."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import epsilons.ledger
from epsilons.ledger.ledger import Ledger
from epsilons.service.witness import WitnessApp
from support.ledger_servers import fresh
from support.ledgers import Ask, key
from support.witnesses import ADDRESS, Clients, witness_here


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.integration)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    if request.param == "postgresql":
        return fresh(request.getfixturevalue("postgres_server"))
    return None if request.param == "memory" else f"sqlite:///{tmp_path}/people.ledger"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.integration)])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a ledger that outlives its process."""
    if request.param == "postgresql":
        return fresh(request.getfixturevalue("postgres_server"))
    return f"sqlite:///{tmp_path}/people.ledger"


@pytest.fixture
def ledger(address: str | None) -> Iterator[Ledger]:
    """Terms settled, nobody there yet, and a clock that stands still."""
    noon = datetime.datetime(2026, 11, 2, 12, tzinfo=datetime.UTC)
    book = epsilons.ledger.open(address, clock=lambda: noon)
    book.settle_terms("absent", 1, allow_individual=True)
    yield book
    book.close()


@pytest.fixture
def ask(ledger: Ledger) -> Ask:
    """Ask a question to the end, at a share of everyone's grant; the number of the release."""

    def asking(name: str, share: Fraction = Fraction(1, 10), individual: bool = False) -> int:
        may = ledger.allowance(share)
        held = ledger.reserve(key(name), may.nano, epoch=may.epoch, kind="count", individual=individual)
        ledger.mark_read(held.number)
        ledger.store(held.number, f"answer {name}".encode())
        return held.number

    return asking


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WitnessApp]:
    with witness_here(tmp_path, monkeypatch) as app:
        yield app


@pytest.fixture(params=["service", pytest.param("table", marks=pytest.mark.integration)])
def clients(request: pytest.FixtureRequest, lasting: str, tmp_path: Path) -> Iterator[Clients]:
    if request.param == "service":
        request.getfixturevalue("service")
        kept = ADDRESS
    else:
        kept = fresh(request.getfixturevalue("postgres_server"))
    made = Clients(lasting, tmp_path, kept)
    yield made
    made.close()

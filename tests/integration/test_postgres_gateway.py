"""Workers of a gateway whose ledger and store are in a PostgreSQL of their own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import epsilons as eps
from epsilons.service.holdings import LANES
from epsilons.storage.postgres import CONNECTIONS
from support import ledger_servers
from support.gateways import Servers, declare, key_for, with_workers

pytestmark = pytest.mark.integration

ASK = "/v1/datasets/wages/ask"


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    made = Servers()
    yield made
    made.close()


def declare_there(folder: Path, postgres: str) -> Path:
    ledger, store = (ledger_servers.fresh(postgres) for _ in range(2))
    return with_workers(declare(folder, ledger=ledger, store=store))


def count_connections(postgres: str) -> int:
    """Of all clients of the server but this one."""
    import psycopg

    clients = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    with psycopg.connect(postgres) as connection:
        (found,) = connection.execute(clients).fetchone() or (0,)
    return int(found)


def count(age: int, **more: Any) -> dict[str, Any]:
    return {"statistic": "count", "arguments": {"where": f"age >= {age}", "share": 0.01, **more}}


@pytest.mark.parametrize("place", ["reserved", "touched"])
def test_a_worker_that_is_killed_midway_loses_nothing(
    postgres_server: str, tmp_path: Path, servers: Servers, place: str
) -> None:
    """The other worker goes on with it: one charge, one answer; the one that died is replaced and serves as well."""
    file = declare_there(tmp_path, postgres_server)
    key, told = key_for(file, "office"), list[Any]()
    url, process = servers.start(file, place)
    question = count(30, fresh=True)

    def ask() -> None:
        with eps.connect(url, key=key) as first:
            told.append(first.request("POST", ASK, question, once="the-same"))

    asking = threading.Thread(target=ask)
    asking.start()
    worker = servers.wait_until_stopped(process)
    assert worker != process
    with eps.connect(url, key=key, patience=0) as second, pytest.raises(eps.ProtocolError, match="being worked on"):
        second.request("POST", ASK, question, once="the-same")
    servers.kill(worker)
    asking.join()
    with eps.connect(url, key=key) as third:
        assert [third.request("POST", ASK, question, once="the-same") for _ in range(3)] == told * 3
        assert list(third.dataset("wages").answers()) == [1]
    with eps.Dataset.from_toml(tmp_path / "wages.toml") as people:
        assert people.ledger.count("reservations") == 1
        people.ledger.verify()


def test_workers_share_turns_charges_and_stored_answers(postgres_server: str, tmp_path: Path, servers: Servers) -> None:
    """Four clients ask the same ten questions at once, each by keys of its own: ten charges, ten answers."""
    file = declare_there(tmp_path, postgres_server)
    before = count_connections(postgres_server)
    url, _ = servers.start(file)
    keys = [key_for(file, f"office {number}") for number in range(4)]
    found: dict[int, list[Any]] = {}

    def ask(number: int) -> None:
        with eps.connect(url, key=keys[number]) as remote:
            asked = [(age, remote.request("POST", ASK, count(age), once=f"{age}")) for age in range(30, 40)]
            found[number] = [(age, one["release"]) for age, one in asked]

    asking = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for one in asking:
        one.start()
    for one in asking:
        one.join()
    assert found[0] == found[1] == found[2] == found[3]
    assert len(found[0]) == 10
    # A database has a hundred for everybody: a worker keeps two for its store and two in each lane.
    assert 2 <= count_connections(postgres_server) - before <= 2 * (CONNECTIONS + LANES * CONNECTIONS)
    with eps.Dataset.from_toml(tmp_path / "wages.toml") as people:
        assert people.ledger.count("reservations") == 10
        people.ledger.verify()
        held = people.ledger.cohorts(people._registry.dataset)
        assert not [one for one in held if one.granted is not None and one.spent + one.reserved > one.granted]

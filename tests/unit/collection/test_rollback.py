"""An older copy of an aggregator's store is refused: it would add up the same reports again, under fresh noise."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from epsilons.collection import Aggregator, Store
from epsilons.collection.reports import STORED, UnavailableError
from epsilons.collection.sealing import OpeningKey
from epsilons.errors import EpsilonsError, ProtocolError
from epsilons.ledger import signed
from epsilons.ledger.heads import Heads
from epsilons.service.witness import WitnessApp, begin
from epsilons.storage.base import watchers
from epsilons.storage.stores import UnusableStoreError
from support.collections_world import TABLES, World, dump, put_back, sqlite_urls, survey
from support.ledger_servers import fresh
from support.witnesses import ADDRESS, Direct, running, witness_here

OWNERS = 12


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WitnessApp]:
    with witness_here(tmp_path, monkeypatch) as app:
        yield app


OUTSIDE = ("service", pytest.param("table", marks=pytest.mark.integration))


@pytest.fixture(params=["file", *OUTSIDE])
def witness(request: pytest.FixtureRequest) -> str | None:
    if request.param == "file":
        return None
    if request.param == "service":
        request.getfixturevalue("service")
        return ADDRESS
    return fresh(request.getfixturevalue("postgres_server"))


@pytest.fixture
def here(witness: str | None, tmp_path: Path) -> Iterator[World]:
    made = World(survey(3, {"all": 0.01}), sqlite_urls(tmp_path, 2), witness=witness)
    yield made
    made.close()


def publish(here: World) -> tuple[bytes, bytes]:
    """The ids and the noisy sum of the first aggregator."""
    one, collection = here.aggregators[0], here.collection.id
    here.coordinator.close(1)
    ids = one.present(collection, 0)
    one.check(collection, 0, bytes(32), ids)
    return ids, one.collect(collection, 0, ids)


def open_elsewhere(here: World, folder: Path, store: Store | None = None, **how: object) -> Aggregator:
    """As on another machine, whose user knows no head of this store."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "elsewhere"))
        return Aggregator(store or here.stores[0], here.keys[0], **how)  # type: ignore[arg-type]


def changes(here: World) -> dict[str, Callable[[Aggregator], object]]:
    """Everything by which something leaves an aggregator, on the way to a publication."""
    collection = here.collection.id
    reports = here.client.reports([1] * OWNERS)[0][0]
    return {
        "take": lambda one: one.take(collection, reports),
        "close": lambda one: one.close(collection, 1),
        "check": lambda one: one.check(collection, 0, bytes(32), one.present(collection, 0)),
        "collect": lambda one: one.collect(collection, 0, one.present(collection, 0)),
    }


def test_without_a_head_an_older_store_answers_once_more(tmp_path: Path) -> None:
    """What is defended against: the same reports, twice under fresh noise."""
    here = World(survey(40, {"all": 0.01}), sqlite_urls(tmp_path, 2), witness=False)
    here.send([1] * OWNERS)
    before = dump(here.stores[0])
    first = publish(here)
    put_back(here.stores[0], before)
    here.restart(0)
    again = publish(here)
    assert first[0] == again[0]
    assert first[1] != again[1]
    here.close()


def test_an_older_store_is_refused(here: World, tmp_path: Path) -> None:
    """To the process that runs, to whoever starts it again, and with a witness on every other machine."""
    steps = [dump(here.stores[0])]
    for change in changes(here).values():
        change(here.aggregators[0])
        steps.append(dump(here.stores[0]))
    for number, step in enumerate(steps[:-1]):
        put_back(here.stores[0], step)
        for name, change in list(changes(here).items())[number:]:
            with pytest.raises(EpsilonsError) as refused:
                change(here.aggregators[0])
            if name == list(changes(here))[number]:
                assert isinstance(refused.value, UnusableStoreError), refused.value
                assert "store is older than" in str(refused.value)
        with pytest.raises(UnusableStoreError, match="older than"):
            here.restart(0)
        if here.witness is not None:
            with pytest.raises(UnusableStoreError, match="older than its witness"):
                open_elsewhere(here, tmp_path, adopt=True)
        put_back(here.stores[0], steps[-1])
        here.restart(0)
    assert changes(here)["collect"](here.aggregators[0]) == bytes(steps[-1]["batches"][0][-1])


@pytest.mark.parametrize("witness", OUTSIDE, indirect=True)
def test_of_two_copies_one_goes_on(witness: str, tmp_path: Path) -> None:
    """A second machine with the same store and key: what it computes never leaves it."""
    here = World(survey(3, {"all": 0.01}), sqlite_urls(tmp_path, 2), witness=witness)
    here.send([1] * OWNERS)
    here.coordinator.close(1)
    ids = here.aggregators[0].present(here.collection.id, 0)
    here.aggregators[0].check(here.collection.id, 0, bytes(32), ids)
    copy = Store(f"sqlite:///{tmp_path}/copy.store")
    put_back(copy, dump(here.stores[0]))
    other = open_elsewhere(here, tmp_path, copy)
    assert other.check(here.collection.id, 0, bytes(32), ids)  # the same words again
    answer = here.aggregators[0].collect(here.collection.id, 0, ids)
    for _ in range(2):  # the second time it has a sum of its own in its store
        with pytest.raises(UnusableStoreError, match="diverged"):
            other.collect(here.collection.id, 0, ids)
    with pytest.raises(UnusableStoreError, match="diverged"):
        open_elsewhere(here, tmp_path, copy)
    assert here.aggregators[0].collect(here.collection.id, 0, ids) == answer
    copy.close()
    here.close()


def test_on_another_machine_a_head_in_a_file_is_taken_once(tmp_path: Path) -> None:
    here = World(survey(), sqlite_urls(tmp_path, 2))
    with pytest.raises(UnusableStoreError, match=r"head is not where it is kept.*--adopt"):
        open_elsewhere(here, tmp_path)
    open_elsewhere(here, tmp_path, adopt=True).enter(here.collection.to_dict())
    open_elsewhere(here, tmp_path)
    here.close()


@pytest.mark.parametrize("table", [name for name in TABLES if name not in ("identity", "journal")])
def test_a_table_that_alone_is_put_back_is_noticed(table: str, tmp_path: Path) -> None:
    here = World(survey(), sqlite_urls(tmp_path, 2))
    older = [dump(here.stores[0])]
    for change in changes(here).values():
        change(here.aggregators[0])
        older.append(dump(here.stores[0]))
    here.restart(0)
    refused = 0
    for one in older:
        put_back(here.stores[0], {table: one[table]})
        same = {**older[-1], table: one[table]} == older[-1]
        # What was sealed is as it was but for the shares that were erased: a batch that has its sum takes none.
        if not same and not (table == "reports" and len(one[table]) == OWNERS):
            refused += 1
            with pytest.raises(UnusableStoreError, match="does not add up"):
                here.restart(0)
        put_back(here.stores[0], older[-1])
    here.close()
    assert refused or table == "collections"


def test_the_witness_of_a_store_is_settled_when_it_is_made(service: WitnessApp, tmp_path: Path) -> None:
    plain, kept = (World(survey(), sqlite_urls(tmp_path / name, 2), witness=one) for name, one in
                   ((folder(tmp_path, "plain"), None), (folder(tmp_path, "kept"), ADDRESS)))  # fmt: skip
    for world, address in ((plain, ADDRESS), (kept, "http://127.0.0.1:2")):
        with pytest.raises(ProtocolError, match=r"store's witness is .*new store with a new key"):
            Aggregator(world.stores[0], world.keys[0], witness=address)
    # Nobody need name it again, and nobody can leave it out.
    for place in (None, False, tmp_path / "head"):
        Aggregator(kept.stores[0], kept.keys[0], witness=place).enter(kept.collection.to_dict())
    lost = Heads(f"sqlite:///{tmp_path}/fresh.store")
    Direct.apps[ADDRESS] = WitnessApp(lost, begin(lost, tmp_path / "fresh.key"))
    with pytest.raises(UnusableStoreError, match="not signed by the key"):
        Aggregator(kept.stores[0], kept.keys[0])
    lost.close()
    plain.close()
    kept.close()


def folder(path: Path, name: str) -> str:
    (path / name).mkdir()
    return name


@pytest.mark.parametrize("address", ["http://witness.example.org", "postgresql://me:secret@host/heads"])
def test_a_witness_that_cannot_be_used_leaves_no_store_behind(address: str, tmp_path: Path) -> None:
    with closing(Store(f"sqlite:///{tmp_path}/one.store")) as store:
        with pytest.raises(ProtocolError, match=r"plain HTTP|holds a password"):
            Aggregator.begin(store, tmp_path / "one.key", witness=address)
        assert not (tmp_path / "one.key").exists()
        Aggregator.begin(store, tmp_path / "one.key")


def test_two_stores_under_one_key_have_one_head(service: WitnessApp, tmp_path: Path) -> None:
    key = OpeningKey.fresh()
    with closing(Store(f"sqlite:///{tmp_path}/one.store")) as store:
        Aggregator(store, key, witness=ADDRESS)
    key.unused = True  # as if nobody had noticed that it was used before
    with (
        closing(Store(f"sqlite:///{tmp_path}/two.store")) as store,
        pytest.raises(UnusableStoreError, match="diverged"),
    ):
        Aggregator(store, key, witness=ADDRESS)


@contextmanager
def patient(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setattr(signed, "_PATIENCE", seconds)
        yield


def test_nothing_leaves_while_the_witness_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was stored meanwhile is acknowledged once the head is safe, and not before."""
    port = 0
    with running(tmp_path) as (address, _):
        port = int(address.rsplit(":", 1)[1])
        here = World(survey(), sqlite_urls(tmp_path, 2), witness=address)
        reports = here.client.reports([1] * OWNERS)[0]
        assert set(here.aggregators[1].take(here.collection.id, reports[1])) == {STORED}
    for _ in range(2):
        with patient(monkeypatch, 0.2), pytest.raises(UnavailableError, match="No answer from the witness"):
            here.aggregators[0].take(here.collection.id, reports[0])
    with running(tmp_path, port):
        assert set(here.aggregators[0].take(here.collection.id, reports[0])) == {STORED}
        here.coordinator.close(1)
        ids = here.aggregators[0].present(here.collection.id, 0)
        here.aggregators[0].check(here.collection.id, 0, bytes(32), ids)
    for _ in range(2):  # the second time it is stored
        with patient(monkeypatch, 0.2), pytest.raises(UnavailableError, match="No answer from the witness"):
            here.aggregators[0].collect(here.collection.id, 0, ids)
        assert dump(here.stores[0])["batches"][0][-1] is not None
    here.close()


def test_a_witness_in_a_database_that_is_not_reached_is_named_and_waited_for(tmp_path: Path) -> None:
    """Senders try again, so it must not pass for a store that is refused for good."""
    kept = tmp_path / "w.store"
    here = World(survey(), sqlite_urls(tmp_path, 2), witness=f"sqlite:///{kept}")
    reports = here.client.reports([1] * OWNERS)[0]
    kept.rename(tmp_path / "away")
    for _ in range(2):
        with pytest.raises(UnavailableError, match=re.escape(f"The witness at sqlite:///{kept} cannot be used.")):
            here.aggregators[0].take(here.collection.id, reports[0])
    (tmp_path / "away").rename(kept)
    assert set(here.aggregators[0].take(here.collection.id, reports[0])) == {STORED}
    here.close()


class EndedError(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("place", ["witnessing", "anchoring"])
def test_an_end_before_the_head_is_safe_costs_nothing(place: str, service: WitnessApp, tmp_path: Path) -> None:
    here = World(survey(3, {"all": 0.01}), sqlite_urls(tmp_path, 2), witness=ADDRESS)
    here.send([1] * OWNERS)
    here.coordinator.close(1)
    ids = here.aggregators[0].present(here.collection.id, 0)
    here.aggregators[0].check(here.collection.id, 0, bytes(32), ids)

    def end(reached: str) -> None:
        if reached == place:
            raise EndedError

    watchers.append(end)
    try:
        with pytest.raises(EndedError):
            here.aggregators[0].collect(here.collection.id, 0, ids)
    finally:
        watchers.remove(end)
    stored = dump(here.stores[0])["batches"]
    here.restart(0)
    assert here.aggregators[0].collect(here.collection.id, 0, ids) == bytes(stored[0][-1])
    assert dump(here.stores[0])["batches"] == stored
    here.close()

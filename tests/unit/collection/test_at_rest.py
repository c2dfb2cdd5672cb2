"""What an aggregator's store shows to somebody who has it and not the key: nothing; and which key a store takes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from epsilons.collection import Aggregator, Collection, Place, Store
from epsilons.collection.aggregator import _Entered
from epsilons.collection.proof import Words, add
from epsilons.collection.reports import Report, read_share
from epsilons.collection.sealing import OpeningKey, purpose
from epsilons.errors import ProtocolError
from support.collections_world import World, dump, sqlite_urls, survey

TRUTHS = [1, 2, 3, 0, 2, 2, 1, 3, 3, 1, 2, 0]


class Careless(Aggregator):
    """Stores shares as they are opened."""

    def _keep(self, entered: _Entered, report: Report, share: bytes) -> bytes:
        return share


def steal(world: World) -> dict[bytes, int]:
    """The answers by id, for somebody who has copies of all stores and no key: what the stores hold, read as shares."""
    words, cells = world.collection.shape.words, world.collection.shape.cells
    whole: dict[bytes, Words] = {}
    for place, url in enumerate(world.urls):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        for report, share in connection.execute("SELECT id, share FROM reports").fetchall():
            what_for = purpose(world.collection.id, place, 1, 0, report)
            found = read_share(share, what_for, words)
            if found is not None:
                whole[report] = add(whole.get(report, np.zeros(words, np.uint64)), found)
        connection.close()
    return {
        report: int(np.flatnonzero(vector[:cells])[0])
        for report, vector in whole.items()
        if np.count_nonzero(vector[:cells]) == 1
    }


@pytest.mark.parametrize("kind", [Aggregator, Careless])
def test_all_stores_together_show_no_answer(tmp_path: Path, kind: type[Aggregator]) -> None:
    world = World(survey(3), sqlite_urls(tmp_path, 2), kind=kind)
    (reports,) = world.client.reports(TRUTHS)
    for aggregator, some in zip(world.aggregators, reports, strict=True):
        aggregator.take(world.collection.id, some)
    said = {report.id: truth for report, truth in zip(reports[0], TRUTHS, strict=True)}
    stolen = steal(world)
    world.close()
    # The thief would succeed if shares were kept as they are opened.
    assert stolen == (said if kind is Careless else {})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(survey(3), sqlite_urls(tmp_path, 2))
    yield made
    made.close()


def test_no_file_holds_an_open_share_and_a_moved_one_is_damaged(world: World, tmp_path: Path) -> None:
    world.send(TRUTHS)
    collection, key = world.collection, world.keys[0]
    kept = {row[2]: row[-1] for row in dump(world.stores[0])["reports"]}
    on_disk = b"".join(file.read_bytes() for file in sorted(tmp_path.iterdir()) if file.name.startswith("0."))
    for report, share in kept.items():
        what_for = purpose(collection.id, 0, 1, 0, report)
        opened = key.recall(share, what_for)
        assert opened is not None
        assert share in on_disk
        assert opened not in on_disk
        assert key.recall(share, what_for + b"?") is None
        assert key.recall(share[:-1], what_for) is None
        assert OpeningKey.fresh().recall(share, what_for) is None
    assert len({share[:12] for share in kept.values()}) == len(kept), "a nonce is used once"
    # Two shares in each other's place: the aggregator notices.
    world.coordinator.close(1)
    (one, first), (two, second) = sorted(kept.items())[:2]
    with world.stores[0].write() as connection:
        for report, share in ((one, second), (two, first)):
            connection.execute("UPDATE reports SET share = :share WHERE id = :id", {"share": share, "id": report})
    ids = world.aggregators[0].present(collection.id, 0)
    with pytest.raises(ProtocolError, match="damaged"):
        world.aggregators[0].check(collection.id, 0, bytes(32), ids)


def test_a_new_store_needs_a_new_key(world: World, tmp_path: Path) -> None:
    """Otherwise the same reports are published again and again, each time under fresh noise."""
    world.send(TRUTHS)
    world.coordinator.publish()
    fresh = Store(f"sqlite:///{tmp_path}/fresh.store")
    for old in (world.keys[0], OpeningKey.from_bytes(world.keys[0]._key.private_bytes_raw())):
        with pytest.raises(ProtocolError, match="A new store needs a new key"):
            Aggregator(fresh, old)
    assert dump(fresh)["identity"] == []
    world.restart(0)  # the store that the key began with is opened as ever
    Aggregator(fresh, OpeningKey.fresh())
    fresh.close()


def test_key_and_store_are_born_together_also_if_that_is_interrupted(tmp_path: Path) -> None:
    address, key = f"sqlite:///{tmp_path}/one.store", tmp_path / "one.key"
    store = Store(address)
    Aggregator(store, OpeningKey.fresh())  # and the machine goes down before the key is written
    born = Aggregator.begin(store, key)
    assert Aggregator.begin(store, key).key == born.key
    # Another key, new or old, is refused once there is a collection; so is the key without its store.
    second = Store(f"sqlite:///{tmp_path}/two.store")
    other = Aggregator.begin(second, tmp_path / "two.key")
    with pytest.raises(ProtocolError, match="A new store needs a new key"):
        Aggregator.begin(store, tmp_path / "two.key")
    places = [Place("http://x", one.key) for one in (born, other)]
    born.enter(Collection.start(survey(2), places).to_dict())
    with pytest.raises(ProtocolError, match="belongs to another"):
        Aggregator.begin(store, tmp_path / "new.key")
    assert not (tmp_path / "new.key").exists()
    with pytest.raises(ProtocolError, match="belongs to another"):
        Aggregator.begin(store, tmp_path / "two.key")
    store.close()
    second.close()


def test_a_store_of_an_earlier_release_is_refused(world: World) -> None:
    with world.stores[0].write() as connection:
        connection.execute("UPDATE identity SET format = 1")
    with pytest.raises(ProtocolError, match=r"Another release wrote this store.*a store has a head"):
        Aggregator(world.stores[0], world.keys[0])

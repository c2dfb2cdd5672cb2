"""An aggregator's order of things, on both stores: what is taken, refused, shown once, and never twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epsilons.collection import Aggregator, Store
from epsilons.collection.reports import (
    CLOSED,
    REPLAYED,
    STORED,
    UNKNOWN_OWNER,
    UNREADABLE,
    MalformedError,
    OutOfOrderError,
    Report,
    UnknownCollectionError,
    read_ids,
)
from epsilons.collection.sealing import OpeningKey
from epsilons.errors import ProtocolError
from support import ledger_servers
from support.collections_world import World, cheat, dump, paper_survey, seal, sqlite_urls, survey
from support.layouts import WRITTEN, layout

Make = Callable[..., World]


@pytest.fixture(params=["sqlite", "postgres"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    made: list[World] = []

    def make(question: Any, count: int = 2, **options: Any) -> World:
        if request.param == "sqlite":
            urls = sqlite_urls(tmp_path, count)
        else:
            server = request.getfixturevalue("postgres_server")
            urls = [ledger_servers.fresh(server) for _ in range(count)]
        made.append(World(question, urls, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_sums_without_noise_are_the_counts(world: Make) -> None:
    here = world(survey(3), count=3)
    truths = [1] * 5 + [2] * 4 + [3] * 2 + [0] * 3
    here.send(truths)
    (batch,) = here.coordinator.publish().batches
    assert (batch.reports, batch.refused, batch.partial) == (14, 0, 0)
    assert batch.sums == ((5, 4, 2),)


def test_the_papers_rounds_count_only_those_in_both(world: Make) -> None:
    here = world(paper_survey(3), count=2)
    truths = [1] * 12 + [2] * 12
    first, second = here.client.reports(truths)
    for aggregator, some in zip(here.aggregators, first, strict=True):
        assert set(aggregator.take(here.collection.id, some)) == {STORED}
    # Round two is not open yet.
    early = here.aggregators[0].take(here.collection.id, second[0])
    assert set(early) == {CLOSED}
    here.coordinator.close(1)
    # The last four never come back; one of them reaches the first aggregator only.
    for place, (aggregator, some) in enumerate(zip(here.aggregators, second, strict=True)):
        aggregator.take(here.collection.id, some[: 21 if place == 0 else 20])
    publication = here.coordinator.publish()
    (batch,) = publication.batches
    assert (batch.reports, batch.partial) == (20, 1)
    outputs = [_opened(here, [place[owner] for place in second]) for owner in range(20)]
    assert batch.sums[1] == tuple(np.bincount(outputs, minlength=4).tolist())
    assert sum(batch.sums[0]) == 20
    assert publication.guarantee is None
    assert publication.label == "Sampling Privacy (Joy)"
    assert any("round two alone" in caveat for caveat in publication.caveats())
    estimate = publication.estimate()
    assert estimate.respondents == 20
    assert any(one.pure == float("inf") for one in estimate.leakages)


def _opened(here: World, reports: list[Report]) -> int:
    """What a report says, for somebody who holds every key."""
    from epsilons.collection.proof import add
    from epsilons.collection.reports import read_share
    from epsilons.collection.sealing import purpose

    whole = np.zeros(here.collection.shape.words, np.uint64)
    for place, (key, report) in enumerate(zip(here.keys, reports, strict=True)):
        what_for = purpose(here.collection.id, place, report.round_number, report.level, report.id)
        piece = key.open(report.sealed, what_for)
        assert piece is not None
        share = read_share(piece, what_for, len(whole))
        assert share is not None
        whole = add(whole, share)
    return int(np.flatnonzero(whole[: here.collection.shape.cells])[0])


def test_round_two_knows_only_owners_of_round_one(world: Make) -> None:
    here = world(paper_survey(2))
    here.coordinator.close(1)
    _, second = here.client.reports([1])
    assert here.aggregators[0].take(here.collection.id, second[0]) == [UNKNOWN_OWNER]
    assert dump(here.stores[0])["reports"] == []


def test_a_retry_is_acknowledged_and_a_replay_refused(world: Make) -> None:
    here = world(survey(2))
    (reports,) = here.client.reports([1, 2])
    aggregator, collection = here.aggregators[0], here.collection.id
    assert aggregator.take(collection, reports[0]) == [STORED, STORED]
    before = dump(here.stores[0])
    assert aggregator.take(collection, reports[0]) == [STORED, STORED]
    assert aggregator.take(collection, [reports[0][0]] * 3) == [STORED] * 3
    # Another share under an id that is taken; a share moved to a new id, level, round or aggregator.
    one = reports[0][0]
    again = seal(here.collection, [1, 0, 0, *[5] * 5], one.id)[0]
    moved = [
        Report(bytes(16), one.round_number, one.level, one.sealed),
        Report(bytes(16), 2, one.level, one.sealed),
        Report(bytes(16), one.round_number, 1, one.sealed),
        Report(bytes(16), 0, 255, one.sealed),
        Report(bytes(16), 1, 0, reports[1][0].sealed),
        Report(bytes(16), 1, 0, b""),
    ]
    assert aggregator.take(collection, [again, *moved]) == [REPLAYED, *[UNREADABLE] * len(moved)]
    assert dump(here.stores[0]) == before
    # Still acknowledged after the round is closed, since it is stored; a new one is not.
    (late,) = here.client.reports([1])
    here.coordinator.close(1)
    assert aggregator.take(collection, [one, late[0][0]]) == [STORED, CLOSED]


def test_a_share_with_words_beyond_p_is_unreadable(world: Make) -> None:
    here = world(survey(2))
    shape = here.collection.shape
    from epsilons.collection.sealing import purpose

    report = bytes(16)  # its explicit share is the first aggregator's
    what_for = purpose(here.collection.id, 0, 1, 0, report)
    sealed = here.keys[0].public.seal(b"\xff" * (8 * shape.words), what_for)
    assert here.aggregators[0].take(here.collection.id, [Report(report, 1, 0, sealed)]) == [UNREADABLE]
    fine = here.keys[0].public.seal(b"\x01" * (8 * shape.words), what_for)
    assert here.aggregators[0].take(here.collection.id, [Report(report, 1, 0, fine)]) == [STORED]


def test_nothing_is_shown_while_the_collection_is_open(world: Make) -> None:
    here = world(survey(2))
    here.send([1] * 20)
    aggregator, collection = here.aggregators[0], here.collection.id
    ids = b"".join(sorted(row[2] for row in dump(here.stores[0])["reports"]))
    before = dump(here.stores[0])
    for ask in (
        lambda: aggregator.present(collection, 0),
        lambda: aggregator.check(collection, 0, bytes(32), ids),
        lambda: aggregator.collect(collection, 0, ids),
    ):
        with pytest.raises(OutOfOrderError):
            ask()
    with pytest.raises(UnknownCollectionError):
        aggregator.close(collection, 2)
    with pytest.raises(UnknownCollectionError):
        aggregator.present(collection, 1)
    with pytest.raises(UnknownCollectionError):
        aggregator.status(bytes(32))
    assert aggregator.accepted(collection, 0) is None
    assert dump(here.stores[0]) == before


def test_one_challenge_and_one_sum_for_each_batch(world: Make) -> None:
    here = world(survey(2))
    here.send([1] * 30)
    aggregator, collection = here.aggregators[0], here.collection.id
    nonce = aggregator.close(collection, 1)
    assert aggregator.close(collection, 1) == nonce
    ids = aggregator.present(collection, 0)
    listed = read_ids(ids)
    shares = [row[-1] for row in dump(here.stores[0])["reports"]]
    assert all(len(share) >= 32 for share in shares)
    fewer = b"".join(listed[:-1])
    with pytest.raises(OutOfOrderError, match="not checked"):
        aggregator.collect(collection, 0, ids)
    shown = aggregator.check(collection, 0, bytes(32), ids)
    assert len(shown) == 30 * 24
    assert aggregator.check(collection, 0, bytes(32), ids) == shown
    for challenge, asked in ((b"x" * 32, ids), (bytes(32), fewer)):
        with pytest.raises(OutOfOrderError, match="checked already"):
            aggregator.check(collection, 0, challenge, asked)
    sums = aggregator.collect(collection, 0, fewer)
    with pytest.raises(OutOfOrderError, match="collected already"):
        aggregator.collect(collection, 0, ids)
    with pytest.raises(OutOfOrderError):
        aggregator.check(collection, 0, bytes(32), ids)
    here.restart(0)
    assert here.aggregators[0].collect(collection, 0, fewer) == sums
    assert here.aggregators[0].accepted(collection, 0) == fewer
    # The shares are gone, from the file as well; the ids stay.
    rows = dump(here.stores[0])["reports"]
    assert len(rows) == 30
    assert all(row[-1] is None for row in rows)
    if here.urls[0].startswith("sqlite"):
        file = Path(here.urls[0].removeprefix("sqlite:///"))
        log = Path(f"{file}-wal")
        kept = file.read_bytes() + (log.read_bytes() if log.exists() else b"")
        assert listed[0] in kept
        assert not any(share in kept for share in shares)


def test_malformed_lists_are_refused(world: Make) -> None:
    here = world(survey(2))
    here.send([1] * 12)
    aggregator, collection = here.aggregators[0], here.collection.id
    here.coordinator.close(1)
    listed = read_ids(aggregator.present(collection, 0))
    before = dump(here.stores[0])
    for ids in (b"x", b"".join([*listed, listed[-1]]), b"".join(listed[::-1])):
        with pytest.raises(MalformedError):
            aggregator.check(collection, 0, bytes(32), ids)
    with pytest.raises(MalformedError):
        aggregator.check(collection, 0, bytes(31), b"".join(listed))
    with pytest.raises(OutOfOrderError, match="not here"):
        aggregator.check(collection, 0, bytes(32), b"".join(sorted([*listed, bytes(16)])))
    assert dump(here.stores[0]) == before


def test_no_batch_below_the_minimum(world: Make) -> None:
    here = world(survey(2, {"few": 1.0, "many": 1.0}), minimum=15)
    here.send([1] * 34, [0] * 14 + [1] * 20)
    publication = here.coordinator.publish()
    few, many = publication.batches
    assert (few.reports, few.partial, few.sums) == (0, 0, ())
    assert many.reports == 20
    notes = publication.estimate().notes
    assert any("Level few is left out" in note for note in notes)
    # Everybody reached every aggregator, and nobody is told otherwise.
    assert not any("reach" in note for note in notes)
    # Nor by asking the aggregator itself, before or after proofs were checked.
    aggregator, collection = here.aggregators[0], here.collection.id
    with pytest.raises(OutOfOrderError, match="too small"):
        aggregator.check(collection, 0, bytes(32), aggregator.present(collection, 0))


def test_proofs_that_fail_do_not_take_a_batch_below_the_minimum(world: Make) -> None:
    here = world(survey(2), minimum=12)
    here.send([1] * 10)
    for number in range(4):
        for aggregator, report in zip(
            here.aggregators, cheat(here.collection, [3, -2, 0], bytes([number] * 16)), strict=True
        ):
            assert aggregator.take(here.collection.id, [report]) == [STORED]
    (batch,) = here.coordinator.publish().batches
    assert (batch.reports, batch.refused, batch.sums) == (0, 4, ())
    listed = read_ids(here.aggregators[0].present(here.collection.id, 0))
    with pytest.raises(OutOfOrderError, match="too small"):
        here.aggregators[0].collect(here.collection.id, 0, b"".join(listed[:10]))


def test_cheaters_are_left_out_one_by_one(world: Make) -> None:
    here = world(survey(3), count=3)
    here.send([1] * 12 + [2] * 3)
    cheats = [[0, 5, -4, 0], [1, 1, 0, 0], [0, 0, 0, 0], [10**9, 1 - 10**9, 0, 0]]
    for number, cells in enumerate(cheats):
        for aggregator, report in zip(
            here.aggregators, cheat(here.collection, cells, bytes([number] * 16)), strict=True
        ):
            assert aggregator.take(here.collection.id, [report]) == [STORED]
    publication = here.coordinator.publish()
    (batch,) = publication.batches
    assert (batch.reports, batch.refused) == (15, 4)
    assert batch.sums == ((12, 3, 0),)
    assert any("4 reports were refused" in note for note in publication.estimate().notes)


def test_a_coordinator_that_was_interrupted_ends_at_the_same_publication(world: Make) -> None:
    here = world(survey(2, {"one": 0.5, "two": 1.0}), count=2)
    here.send([1] * 30 + [2] * 30, [0, 1] * 30)
    collection = here.collection.id

    class StoppedError(Exception):
        pass

    for place, step in ((0, "check"), (1, "check"), (0, "collect"), (1, "collect")):
        original = getattr(here.aggregators[place], step)

        def lost(*arguments: Any, original: Any = original) -> bytes:
            original(*arguments)
            raise StoppedError

        setattr(here.aggregators[place], step, lost)
        with pytest.raises(StoppedError):
            here.coordinator.publish()
        setattr(here.aggregators[place], step, original)
    publication = here.coordinator.publish()
    assert [batch.reports for batch in publication.batches] == [30, 30]
    assert here.coordinator.publish() == publication
    assert here.aggregators[0].accepted(collection, 0) == here.aggregators[1].accepted(collection, 0)


def test_a_store_belongs_to_one_key(world: Make) -> None:
    here = world(survey(2))
    with pytest.raises(ProtocolError, match="another aggregator"):
        Aggregator(here.stores[0], OpeningKey.fresh())


def test_terms_that_an_aggregator_does_not_take(world: Make) -> None:
    here = world(survey(2))
    document = here.collection.to_dict()
    strict = Aggregator(here.stores[0], here.keys[0], minimum=1_000)
    with pytest.raises(MalformedError, match="too small"):
        strict.enter(document)
    document["aggregators"] = [{"url": "http://x", "key": str(OpeningKey.fresh().public)} for _ in range(2)]
    with pytest.raises(MalformedError, match="not part"):
        here.aggregators[0].enter(document)
    with pytest.raises(ProtocolError, match="not a collection"):
        here.aggregators[0].enter({})


@pytest.mark.parametrize(
    "url", ["", "sqlite://", "sqlite:///", "mysql://x/y", "postgresql://", "nonsense", "postgresql://h/d?schema=A;"]
)
def test_there_is_no_store_at_any_other_address(url: str) -> None:
    with pytest.raises(ProtocolError, match="no store"):
        Store(url)


def test_a_database_that_cannot_be_reached_says_nothing_of_itself(tmp_path: Path) -> None:
    with pytest.raises(ProtocolError) as caught:
        Store(f"sqlite:///{tmp_path}/missing/one.store")
    assert "missing" not in str(caught.value)


PRAGMAS = {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "busy_timeout": 60_000}


def test_erased_shares_are_overwritten_and_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/one.store")
    with store.write() as connection:
        found = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS}
    assert found == PRAGMAS
    store.close()


def test_a_store_opens_its_own_connection_after_a_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(f"sqlite:///{tmp_path}/one.store")
    (before,) = store.database._idle
    with monkeypatch.context() as patch:
        patch.setattr("epsilons.storage.base.os.getpid", lambda: -1)
        with store.read() as connection:
            assert connection is not before
        store.close()
    before.close()


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.integration)])
def test_a_new_store_is_laid_out_as_ever(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The format on disk, word by word, as the release that settled it wrote it."""
    url = f"sqlite:///{tmp_path}/one.store"
    if kind == "postgresql":
        url = ledger_servers.fresh(request.getfixturevalue("postgres_server"))
    for _ in range(2):
        store = Store(url)
        assert layout(store.database) == WRITTEN["store"][kind]
        store.close()


@pytest.mark.integration
def test_a_server_that_does_not_wait_for_the_disk_holds_no_store(
    postgres_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = ledger_servers.fresh(postgres_server)
    monkeypatch.setattr("epsilons.storage.postgres._WRITE", "BEGIN; SELECT 1, 'off'")
    with pytest.raises(ProtocolError, match="does not wait for the disk"):
        Store(url)


@pytest.mark.integration
def test_a_ledger_and_a_store_in_one_database_have_locks_of_their_own(postgres_server: str) -> None:
    """The names of the locks are part of the format: programs of an older release take the same ones."""
    url = ledger_servers.fresh(postgres_server)
    schema = url.partition("schema=")[2]
    store = Store(url)
    with store.write() as connection:
        held = "SELECT pg_try_advisory_xact_lock(hashtextextended('epsilons aggregator ' || :schema, 0))"
        with store.read() as other:
            assert other.execute(held, {"schema": schema}).fetchone()[0] is False
        assert connection.execute(held, {"schema": schema}).fetchone()[0] is True
    store.close()

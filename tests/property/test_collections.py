"""Random schedules of dropouts, replays, retries, cheaters, crashes, interruptions, and stores that are put back.

Every owner has an option of their own and there is no noise to speak of, so a publication shows exactly who was counted
and how often. Afterwards: nobody twice; everybody whom all aggregators acknowledged; nobody who cheated; no batch below
the minimum; and what every aggregator sent for a batch, it sent the same ever after. An older store answers nothing.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epsilons.collection import Aggregator, Coordinator, Publication
from epsilons.collection.reports import STORED, OutOfOrderError, Report, read_ids
from epsilons.errors import ProtocolError
from epsilons.local import SamplingPrivacy, Survey
from epsilons.storage.stores import UnusableStoreError
from support.collections_world import NO_NOISE, World, cheat, dump, options, put_back, sqlite_urls

#: Processes end here, not machines: a file system in memory will do, and does not keep everybody waiting.
MEMORY = Path("/dev/shm")

OWNERS = 16
MINIMUM = 10


class LostError(Exception):
    """A request or its reply that never arrived."""


class Shaky:
    """An aggregator behind a bad line that is also killed now and then; it remembers what it answered.

    Now and then an older copy of its store is put back. It is refused, to the aggregator that runs and to one that is
    started; with the newest copy it goes on.
    """

    def __init__(self, world: World, place: int, draws: np.random.Generator, trouble: float) -> None:
        self._world, self._place, self._draws, self._trouble = world, place, draws, trouble
        self.sent: dict[tuple[str, int], set[bytes]] = {}
        self._copies: list[dict[str, list[tuple[Any, ...]]]] = []
        self.rollbacks = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def ask(*arguments: Any) -> Any:
            if self._draws.random() < self._trouble:
                raise LostError
            if self._draws.random() < self._trouble:
                self._world.restart(self._place)
            if self._draws.random() < self._trouble / 4:
                self._roll_back(name, arguments)
            reply = getattr(self._world.aggregators[self._place], name)(*arguments)
            if name in ("check", "collect"):
                self.sent.setdefault((name, arguments[1]), set()).add(reply)
            if self._draws.random() < self._trouble:
                raise LostError
            return reply

        return ask

    def _roll_back(self, name: str, arguments: tuple[Any, ...]) -> None:
        store = self._world.stores[self._place]
        newest = dump(store)
        older = [copy for copy in self._copies if len(copy["journal"]) < len(newest["journal"])]
        self._copies.append(newest)
        if not older:
            return
        self.rollbacks += 1
        put_back(store, older[int(self._draws.integers(len(older)))])
        if name in ("take", "close", "check", "collect"):
            with pytest.raises(ProtocolError):
                getattr(self._world.aggregators[self._place], name)(*arguments)
        with pytest.raises(UnusableStoreError, match="older than"):
            self._world.restart(self._place)
        put_back(self._world.stores[self._place], newest)
        self._world.restart(self._place)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    if not MEMORY.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="epsilons-") as place:
        yield Path(place)


def play(
    folder: Path, seed: int, kind: type[Aggregator] = Aggregator
) -> tuple[World, Publication, set[int], set[int], int]:
    """(world, publication, owners acknowledged by everyone, owners sent anywhere, how often a store was put back)."""
    folder.mkdir()
    draws = np.random.default_rng(seed)
    aggregators = int(draws.integers(2, 4))
    paper = bool(draws.random() < 0.3)
    labels = options(OWNERS)
    if paper:
        # Everybody but one in a thousand is sampled, so the rounds' difference shows who was counted.
        question = Survey("Who?", labels, SamplingPrivacy(OWNERS, "0.999"))
    else:
        question = Survey("Who?", labels, None, {"one": NO_NOISE, "two": NO_NOISE})
    here = World(question, sqlite_urls(folder, aggregators), minimum=MINIMUM, kind=kind, witness=folder)
    shaky = [Shaky(here, place, draws, 0.1) for place in range(aggregators)]
    levels = np.zeros(OWNERS, int) if paper else (draws.random(OWNERS) < draws.choice([0.0, 0.3])).astype(int)
    reports = here.client.reports(np.arange(1, OWNERS + 1), levels)
    dropout = float(draws.choice([0.0, 0.02, 0.2]))
    everywhere, anywhere = set(range(1, OWNERS + 1)), set()
    cheaters = [cheat(here.collection, [0, 7, -6, *[0] * (OWNERS - 2)], bytes([250, n] * 8)) for n in range(2)]
    for number, places in enumerate(reports, 1):
        acknowledged = set()
        errands = [(owner, place) for owner in range(OWNERS) for place in range(aggregators)]
        draws.shuffle(errands)
        missing: Counter[int] = Counter()
        for owner, place in errands:
            if draws.random() < dropout:
                missing[owner] += 1
                continue
            anywhere.add(owner + 1)
            if not deliver(shaky[place], here.collection.id, places[place][owner], draws):
                missing[owner] += 1
        acknowledged = {owner + 1 for owner in range(OWNERS) if not missing[owner]}
        everywhere &= acknowledged
        if number == 1:
            for reports_of_cheater in cheaters:
                for place, report in enumerate(reports_of_cheater):
                    deliver(shaky[place], here.collection.id, report, draws)
        annoy(here, places, draws)
        if number < here.collection.rounds:
            persist(lambda n=number: Coordinator(here.collection, shaky).close(n))  # type: ignore[misc]
    publication = persist(lambda: Coordinator(here.collection, shaky).publish())
    again = persist(lambda: Coordinator(here.collection, shaky).publish())
    assert again == publication
    # Whatever was sent for a batch was sent the same ever after.
    for one in shaky:
        assert all(len(replies) == 1 for replies in one.sent.values())
    return here, publication, everywhere, anywhere, sum(one.rollbacks for one in shaky)


def deliver(line: Shaky, collection: bytes, report: Report, draws: np.random.Generator) -> bool:
    """An owner's client: tries again until acknowledged, or gives up. Whether it was acknowledged."""
    for _ in range(int(draws.integers(1, 12))):
        try:
            return bool(line.take(collection, [report]) == [STORED])
        except LostError:
            continue
    return False


def annoy(here: World, places: list[list[Report]], draws: np.random.Generator) -> None:
    """Replays: reports again, to others, under other ids, damaged, with other levels and rounds."""
    for _ in range(10):
        place = int(draws.integers(len(places)))
        one = places[place][int(draws.integers(OWNERS))]
        twisted = [
            Report(draws.bytes(16), one.round_number, one.level, one.sealed),
            Report(one.id, one.round_number, one.level, one.sealed[:-1] + bytes([one.sealed[-1] ^ 1])),
            Report(draws.bytes(16), one.round_number % 2 + 1, one.level, one.sealed),
            Report(draws.bytes(16), one.round_number, (one.level + 1) % 2, one.sealed),
        ]
        target = here.aggregators[int(draws.integers(len(places)))]
        assert STORED not in target.take(here.collection.id, [twisted[int(draws.integers(4))]])


def persist(step: Callable[[], Any]) -> Any:
    """A coordinator that starts again from the beginning whenever something is lost."""
    while True:
        try:
            return step()
        except LostError:
            continue


def check(here: World, publication: Publication, everywhere: set[int], anywhere: set[int], rollbacks: int) -> int:
    """How often a store was put back."""
    counted: Counter[int] = Counter()
    for batch in publication.published:
        assert batch.reports >= MINIMUM
        row = batch.sums[0]
        if here.collection.rounds == 2:
            # Whoever is not sampled says the same twice: the difference is the sampled owners' truths.
            row = tuple(two - one for one, two in zip(*batch.sums, strict=True))[1:]
        assert set(row) <= {0, 1}, "somebody was counted twice, or a cheater was counted"
        counted.update({owner: count for owner, count in enumerate(row, 1) if count})
    assert max(counted.values(), default=0) <= 1
    assert set(counted) <= anywhere
    whole = len(publication.published) == len(publication.batches)
    if whole and here.collection.rounds == 1:
        assert everywhere <= set(counted), "an answer was lost that everyone acknowledged"
    if whole and here.collection.rounds == 2:
        # One in a thousand is not sampled and does not show; all are added up.
        assert len(everywhere) <= publication.batches[0].reports
        assert len(everywhere - set(counted)) <= 2
    return rollbacks


def run(folder: Path, seeds: range) -> tuple[int, int]:
    """How many owners were counted, and how often a store was put back."""
    counted = rollbacks = 0
    for seed in seeds:
        here, publication, *rest = play(folder / str(seed), seed)
        rollbacks += check(here, publication, *rest)
        counted += sum(batch.reports for batch in publication.published)
        here.close()
        shutil.rmtree(folder / str(seed))
    return counted, rollbacks


def test_random_schedules(folder: Path) -> None:
    counted, rollbacks = run(folder, range(8))
    assert counted > 40
    assert rollbacks > 8


@pytest.mark.soak
@pytest.mark.figure("figure_11_schedules")
@pytest.mark.parametrize("first", range(1_000, 2_000, 100))
def test_a_thousand_random_schedules(folder: Path, first: int, record_property: Callable[[str, int], None]) -> None:
    counted, rollbacks = run(folder, range(first, first + 100))
    assert counted > 500
    assert rollbacks > 100
    record_property("size", 100)


# Planted bugs: the schedules must catch them --------------------------------------------------------------------------


class CountsARetryTwice(Aggregator):
    """Adds up what was sent, not what is there: the first report of a batch a second time, at every aggregator."""

    _adding = False

    def collect(self, collection: bytes, level: int, ids: bytes) -> bytes:
        self._adding = True
        return super().collect(collection, level, ids)

    def _shares(self, *arguments: Any) -> Any:
        for rows in super()._shares(*arguments):
            yield np.concatenate([rows, rows[:1]]) if self._adding else rows


class AcknowledgesTooEarly(Aggregator):
    """Says stored before it is: now and then nothing is."""

    def take(self, collection: bytes, offered: Any) -> list[str]:
        if offered[0].sealed[0] < 40:
            return [STORED] * len(offered)
        return super().take(collection, offered)


class AnyBatch(Aggregator):
    """Does not look at the minimum."""

    def _check_batch(self, connection: Any, entered: Any, level: int, ids: bytes) -> set[bytes]:
        return set(read_ids(ids))


@pytest.mark.parametrize("kind", [CountsARetryTwice, AcknowledgesTooEarly])
def test_planted_bugs_are_caught(folder: Path, kind: type[Aggregator]) -> None:
    caught = 0
    for seed in range(3):
        try:
            check(*play(folder / str(seed), seed, kind))
        except (AssertionError, ProtocolError):
            caught += 1
    assert caught


def test_the_minimum_is_the_aggregators_own_matter(folder: Path) -> None:
    """A coordinator that asks for fewer gets nothing; a planted aggregator that does not look gives it away."""
    for number, (kind, refuses) in enumerate(((Aggregator, True), (AnyBatch, False))):
        place = folder / str(number)
        place.mkdir()
        question = Survey("Who?", options(3), None, {"one": NO_NOISE})
        here = World(question, sqlite_urls(place, 2), minimum=MINIMUM, kind=kind)
        here.send([1] * (MINIMUM - 1))
        here.coordinator.close(1)
        aggregator, collection = here.aggregators[0], here.collection.id
        ids = aggregator.present(collection, 0)
        if refuses:
            with pytest.raises(OutOfOrderError):
                aggregator.check(collection, 0, bytes(32), ids)
        else:
            aggregator.check(collection, 0, bytes(32), ids)
            assert aggregator.collect(collection, 0, ids)
        here.close()

"""Aggregators as processes: kill -9 at named places, real HTTP, the commands of owners and coordinator, the demo."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epsilons.collection import Publication
from epsilons.collection.sealing import KEY_BYTES, OpeningKey
from epsilons.errors import ProtocolError
from support import ledger_servers
from support.aggregator_processes import EPSILONS, epsilons, listening
from support.certificates import self_signed
from support.collections_world import World, dump, paper_survey, sqlite_urls, survey

#: Steps of an aggregator, each in a process of its own, forked from one that has loaded what they need. Which place a
#: process is to be killed at comes with its step; how it ended and what it returned are written to stdout.
STEPS = """
import os, pickle, signal, sys, tempfile
from epsilons.collection import Aggregator, Store
from epsilons.cli import app
from epsilons.collection.sealing import OpeningKey
from support import faults
while True:
    url, key, name, arguments, fault = pickle.load(sys.stdin.buffer)
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                if fault:
                    faults.stop_at(fault)
                aggregator = Aggregator(Store(url), OpeningKey.from_bytes(key))
                file.write(pickle.dumps(getattr(aggregator, name)(*arguments)))
                file.flush()
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, os.WUNTRACED)
        if stopped := os.WIFSTOPPED(status):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        file.seek(0)
        pickle.dump((stopped, None if stopped else status, file.read()), sys.stdout.buffer)
        sys.stdout.buffer.flush()
"""


@pytest.fixture(scope="module")
def stepping() -> Iterator[subprocess.Popen[bytes]]:
    tests = Path(__file__).parents[1]  # where `support` is found
    process = subprocess.Popen([sys.executable, "-c", STEPS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tests)
    yield process
    process.kill()
    process.communicate()


Step = Callable[..., Any]


@pytest.fixture
def step(here: World, stepping: subprocess.Popen[bytes]) -> Step:
    """Run one step of the first aggregator elsewhere; with a fault the process is killed there, and None comes back."""
    raw = here.keys[0]._key.private_bytes_raw()
    assert len(raw) == KEY_BYTES
    assert stepping.stdin is not None
    assert stepping.stdout is not None
    jobs, replies = stepping.stdin, stepping.stdout

    def run(name: str, *arguments: Any, fault: str | None = None) -> Any:
        pickle.dump((here.urls[0], raw, name, arguments, fault), jobs)
        jobs.flush()
        killed, status, reply = pickle.load(replies)
        assert killed == (fault is not None), "the place was never reached"
        if killed:
            return None
        assert status == 0
        return pickle.loads(reply)

    return run


@pytest.fixture(params=["sqlite", "postgres"])
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "sqlite":
        urls = sqlite_urls(tmp_path, 2)
    else:
        server = request.getfixturevalue("postgres_server")
        urls = [ledger_servers.fresh(server) for _ in range(2)]
    world = World(survey(3, {"all": 0.01}), urls)
    yield world
    world.close()


def test_killed_at_every_place_nothing_acknowledged_is_lost_and_no_noise_drawn_twice_leaves(
    here: World, step: Step
) -> None:
    collection = here.collection.id
    (reports,) = here.client.reports([1] * 24)
    before = dump(here.stores[0])
    # Before the commit nothing is there; after it everything is, and a retry is acknowledged.
    step("take", collection, reports[0], fault="taking")
    assert dump(here.stores[0]) == before
    step("take", collection, reports[0], fault="taken")
    assert len(dump(here.stores[0])["reports"]) == 24
    assert set(here.aggregators[0].take(collection, reports[0])) == {"stored"}
    here.aggregators[1].take(collection, reports[1])

    step("close", collection, 1, fault="closing")
    assert here.aggregators[0].status(collection)["round"] == 1
    step("close", collection, 1, fault="closed")
    nonce = here.aggregators[0].close(collection, 1)
    assert nonce == step("close", collection, 1)

    ids = here.aggregators[0].present(collection, 0)
    step("check", collection, 0, bytes(32), ids, fault="checking")
    assert dump(here.stores[0])["batches"] == []
    step("check", collection, 0, bytes(32), ids, fault="checked")
    shown = here.aggregators[0].check(collection, 0, bytes(32), ids)

    step("collect", collection, 0, ids, fault="collecting")
    # The noise drawn there never left, and the shares are still here.
    assert here.aggregators[0].accepted(collection, 0) is None
    assert here.aggregators[0].check(collection, 0, bytes(32), ids) == shown
    step("collect", collection, 0, ids, fault="collected")
    stored = dump(here.stores[0])["batches"][0][-1]
    assert here.aggregators[0].collect(collection, 0, ids) == stored
    assert step("collect", collection, 0, ids) == stored


# Over HTTP ------------------------------------------------------------------------------------------------------------


#: Addresses, and files with tokens.
Pair = tuple[list[str], list[Path]]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two aggregators; each serves many collections."""
    folder = tmp_path_factory.mktemp("pair")
    with listening(folder, "one", "two") as urls:
        yield urls, [folder / "one.token", folder / "two.token"]


def by(pair: Pair) -> list[str]:
    """How a coordinator is told of them."""
    return [word for url, token in zip(*pair, strict=True) for word in ("--aggregator", url, "--token", str(token))]


def test_a_collection_by_the_commands_alone(tmp_path: Path, pair: Pair) -> None:
    survey(2, {"standard": 1.0}).save(tmp_path / "exam.toml")
    run = ["collect", "run", "exam.toml", "--minimum", "10", "--json", "--output", "out.json", *by(pair)]
    # The coordinator gives up waiting, and goes on in the next run.
    waiting = subprocess.Popen(
        [*EPSILONS, *run, "--until", "11"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert waiting.stderr is not None
    assert "epsilons collect send" in waiting.stderr.readline()
    waiting.kill()
    waiting.communicate()
    send = ("collect", "send", "exam.toml.collection.json", "--yes", "--state")
    sent = epsilons(*send, "mine", folder=tmp_path, stdin="option 1\n")
    assert (sent.returncode, sent.stdout) == (0, "Stored by all 2 aggregators.\n"), sent.stderr
    # The same bytes again, if that is meant.
    again = epsilons(*send, "mine", "--again", folder=tmp_path)
    assert again.returncode == 0
    assert "option 1" not in (tmp_path / "mine").read_text()
    _send_many(tmp_path, 14)
    # Nothing closes unless somebody says so.
    status = json.loads(epsilons(*run, folder=tmp_path).stdout)
    assert status["open"] is True
    assert [state["reports"] for state in status["aggregators"]] == [{"standard": 15}] * 2
    done = epsilons(*run, "--until", "15", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["batches"][0]["reports"] == 15
    assert found["estimate"]["respondents"] == 15
    # The file has what the page promises: sums, estimate, intervals and guarantee; and it is a publication.
    written = json.loads((tmp_path / "out.json").read_text())
    assert written == found
    assert written["batches"][0]["sums"]
    assert all(len(one["interval"]) == 2 for one in written["estimate"]["options"])
    assert written["guarantee"]["caveats"]
    assert Publication.from_dict(written).batches[0].reports == 15
    # The same publication again; a late owner is refused; other terms under the same name are, too.
    assert json.loads(epsilons(*run, folder=tmp_path).stdout)["batches"] == found["batches"]
    plain = [part for part in run if part != "--json"]
    short, full = (" ".join(epsilons(*plain, *more, folder=tmp_path).stdout.split()) for more in ((), ("--verbose",)))
    assert short.endswith("if at least one aggregator is honest (more: --verbose).")
    assert "An owner who sends n reports" in full
    late = epsilons(*send, "late", folder=tmp_path, stdin="1\n")
    assert late.returncode == 8
    assert "not open" in late.stderr
    other = epsilons(*run, "--neighbors", "replace", folder=tmp_path)
    assert other.returncode == 8
    assert "other terms" in other.stderr


def _send_many(folder: Path, owners: int) -> None:
    from epsilons.collection import Collection, Courier, OwnerClient

    collection = Collection.load(folder / "exam.toml.collection.json")
    courier = Courier(collection)
    courier.send(OwnerClient(collection).reports([2] * owners)[0])
    assert [counts["stored"] for counts in courier.finish()] == [owners] * 2


def test_the_papers_two_rounds_by_the_commands(tmp_path: Path, pair: Pair) -> None:
    from epsilons.collection import Collection, Courier, HttpAggregator, OwnerClient

    paper_survey(2).save(tmp_path / "exam.toml")
    run = ["collect", "run", "exam.toml", "--minimum", "10", "--until", "12", *by(pair)]
    coordinator = subprocess.Popen(
        [*EPSILONS, *run],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert coordinator.stderr is not None
    coordinator.stderr.readline()
    send = ["collect", "send", "exam.toml.collection.json", "--yes", "--state", "mine"]
    early = epsilons(*send, "--round", "2", folder=tmp_path)
    assert early.returncode == 8
    assert epsilons(*send, folder=tmp_path, stdin="option 2\n").returncode == 0
    collection = Collection.load(tmp_path / "exam.toml.collection.json")
    first, second = OwnerClient(collection).reports([1] * 12)
    aggregator = HttpAggregator(pair[0][0], token=pair[1][0].read_text().strip())
    for number, reports in enumerate((first, second), 1):
        while aggregator.status(collection.id)["round"] < number:
            time.sleep(0.1)
        if number == 2:
            assert epsilons(*send, "--round", "2", folder=tmp_path).returncode == 0
        courier = Courier(collection)
        # One owner of round one never comes back.
        courier.send([some[: len(some) - number + 1] for some in reports])
        courier.finish()
    aggregator.shut()
    said, _ = coordinator.communicate(timeout=120)
    assert coordinator.returncode == 0
    assert "Collected by Sampling Privacy (Joy)." in said
    assert "Estimated from 12 owners" in said
    assert "round two alone" in said
    assert "infinite" in said


def test_over_https(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from epsilons.collection import HttpAggregator

    certificate, key = self_signed(tmp_path)
    secure = ("--certificate", certificate, "--certificate-key", key)
    with listening(tmp_path, "one", options=secure) as (url,):
        assert url.startswith("https://")
        with pytest.raises(ProtocolError):
            HttpAggregator(url, patience=0.1).key()
        monkeypatch.setenv("SSL_CERT_FILE", certificate)
        aggregator = HttpAggregator(url, patience=20)
        assert len(aggregator.key()) == 64
        aggregator.shut()


def test_an_owner_sends_nothing_to_an_address_with_another_key(pair: Pair) -> None:
    from epsilons.collection import Collection, Courier, OwnerClient, Place

    (url, _), _ = pair
    places = [Place(url, str(OpeningKey.fresh().public)) for _ in range(2)]
    collection = Collection.start(survey(2), places)
    courier = Courier(collection, patience=5)
    courier.send(OwnerClient(collection).reports([1])[0])
    with pytest.raises(ProtocolError, match="another key"):
        courier.finish()


@pytest.mark.parametrize("owners", [1_000, pytest.param(2_000, marks=pytest.mark.soak)])
def test_the_demo_with_a_kill_in_the_middle(tmp_path: Path, owners: int) -> None:
    done = epsilons("collect", "demo", "--owners", str(owners), "--json", "--map", "map.png", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["counted"] == found["acknowledged"] == found["owners"] == owners
    assert found["true_error"] < 3 * found["predicted_error"]
    assert found["covered"] >= 0.8 * found["cells"]
    assert "kill -9" in done.stderr
    assert "is back" in done.stderr
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.soak
def test_killed_again_and_again_while_owners_send(tmp_path: Path) -> None:
    """kill -9 at whatever moment it happens to be; in the end everybody is counted once."""
    from epsilons.collection import Collection, Coordinator, Courier, HttpAggregator, OwnerClient
    from epsilons.demo.collecting import AggregatorProcess

    processes = [AggregatorProcess(tmp_path, number) for number in range(2)]
    owners, kills, draws = 10_000, 0, np.random.default_rng(11)
    try:
        for process in processes:
            process.start()
        places = [process.place() for process in processes]
        collection = Collection.start(survey(4), places)
        remotes = [HttpAggregator(p.url, token=q.token) for p, q in zip(places, processes, strict=True)]
        coordinator = Coordinator(collection, remotes)
        coordinator.enter()
        client, courier = OwnerClient(collection), Courier(collection)
        truths = np.arange(owners) % 5
        for start in range(0, owners, 200):
            courier.send(client.reports(truths[start : start + 200])[0])
            if draws.random() < 0.5:
                victim = processes[int(draws.integers(2))]
                time.sleep(float(draws.random()) * 0.05)
                victim.kill()
                victim.start()
                victim.place()
                kills += 1
        assert [counts["stored"] for counts in courier.finish()] == [owners] * 2
        (batch,) = coordinator.publish().batches
        assert batch.reports == owners
        assert batch.sums == ((owners // 5,) * 4,)
        assert kills > 10
        for remote in remotes:
            remote.shut()
    finally:
        for process in processes:
            process.kill()


@pytest.mark.soak
def test_the_demo_with_a_hundred_thousand_owners(tmp_path: Path) -> None:
    found = json.loads(epsilons("collect", "demo", "--json", folder=tmp_path).stdout)
    assert found["counted"] == found["owners"] == 100_000
    assert found["sending_seconds"] + found["publishing_seconds"] < 120

"""Who else is on the computer: another user reads nothing, exposed files are refused, several people send from there.

Also what an owner is shown before anything is sent, and where plain HTTP is spoken.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pty
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from epsilons.collection import Collection, HttpAggregator, Place
from epsilons.errors import ProtocolError
from support.aggregator_processes import EPSILONS, epsilons, listening, own_files
from support.collections_world import paper_survey, survey
from support.witnesses import running

#: Another user of this computer.
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    """A folder that every user of this computer can enter."""
    folder = Path(tempfile.mkdtemp(prefix="epsilons-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def pair(shared: Path) -> Iterator[Path]:
    """Two aggregators there, with logs, and the terms of a collection that they take part in."""
    with listening(shared, "one", options=("--log", "one.log")) as (one,), listening(shared, "two") as (two,):
        survey(2, {"strict": 0.5, "open": 2.0}).save(shared / "exam.toml")
        urls = [word for url, name in ((one, "one"), (two, "two"))
                for word in ("--aggregator", url, "--token", f"{name}.token")]  # fmt: skip
        assert epsilons("collect", "run", "exam.toml", *urls, folder=shared).returncode == 0
        yield shared


SEND = ("collect", "send", "exam.toml.collection.json", "--level", "open")


def test_another_user_of_the_computer_reads_nothing(pair: Path) -> None:
    assert epsilons(*SEND, "--yes", "--name", "reader", folder=pair, stdin="1\n").returncode == 0
    own = {f"{name}.{kind}" for name in ("one", "two") for kind in ("store", "store-wal", "key", "token")}
    own |= {"one.log", "exam.toml.collection.json.reader.mine"}
    assert own <= {file.name for file in pair.iterdir()}
    for name in own:
        assert stat.S_IMODE((pair / name).stat().st_mode) == 0o600, name
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become another user here")
    readable = {
        file.name
        for file in pair.iterdir()
        if subprocess.run([*NOBODY, "cat", file], capture_output=True, check=False).returncode == 0
    }
    # The other user does come in, and reads what is meant for everybody.
    assert {"exam.toml", "exam.toml.collection.json"} <= readable
    assert not {name for name in readable if not name.startswith("exam.toml")}
    assert "exam.toml.collection.json.reader.mine" not in readable


@pytest.mark.parametrize("exposed", ["store", "key", "token", "log"])
def test_files_that_others_can_read_are_refused(tmp_path: Path, exposed: str) -> None:
    with listening(tmp_path, "one", options=("--log", "one.log")):
        pass
    for mode in (0o644, 0o640, 0o602):
        (tmp_path / f"one.{exposed}").chmod(mode)
        done = epsilons("collect", "aggregator", *own_files("one"), "--log", "one.log", folder=tmp_path)
        assert done.returncode in (5, 8)
        assert f"one.{exposed}" in done.stderr
        assert "chmod 600" in done.stderr


def test_a_coordinator_refuses_a_token_that_others_can_read(tmp_path: Path) -> None:
    survey(2).save(tmp_path / "exam.toml")
    for name in ("one", "two"):
        (tmp_path / f"{name}.token").write_text("ab" * 32)
        (tmp_path / f"{name}.token").chmod(0o604)
    done = epsilons(
        "collect", "run", "exam.toml", "--aggregator", "http://127.0.0.1:1", "--token", "one.token",
        "--aggregator", "http://127.0.0.1:2", "--token", "two.token", folder=tmp_path,
    )  # fmt: skip
    assert (done.returncode, "can read or change one.token" in done.stderr) == (8, True)


def test_a_key_does_not_open_a_new_store(tmp_path: Path) -> None:
    """The attack: the store is thrown away, and the same reports are added up again under fresh noise."""
    with listening(tmp_path, "one"):
        pass
    for file in tmp_path.glob("one.store*"):
        file.unlink()
    done = epsilons("collect", "aggregator", *own_files("one"), folder=tmp_path)
    assert (done.returncode, "A new store needs a new key." in done.stderr) == (8, True)


def put_back(folder: Path, copies: dict[Path, bytes]) -> None:
    for file in folder.glob("one.store*"):
        file.unlink()
    for file, content in copies.items():
        file.touch(0o600)
        file.write_bytes(content)


@pytest.mark.parametrize("outside", [True, False])
def test_an_older_copy_of_a_store_does_not_start(tmp_path: Path, outside: bool) -> None:
    """The attack: stopped, an older copy of all files of the store put back, started again, here and elsewhere."""
    with running(tmp_path) if outside else contextlib.nullcontext(("", None)) as (address, _):
        named = ("--witness", address) if outside else ("--witness", "one.head")
        with listening(tmp_path, "one", options=named) as (url,):
            one = HttpAggregator(url, token=(tmp_path / "one.token").read_text().strip())
            places = [Place(url, one.key()), Place(url, "ab" * 32)]
            one.enter(Collection.start(survey(2), places).to_dict())
            copies = {file: file.read_bytes() for file in tmp_path.glob("one.store*")}
            assert tmp_path / "one.store-wal" in copies
            one.enter(Collection.start(survey(3), places).to_dict())
            one.shut()
        newest = {file: file.read_bytes() for file in tmp_path.glob("one.store*")}
        put_back(tmp_path, copies)
        starts = [((), {}), (("--adopt",), {"XDG_STATE_HOME": str(tmp_path / "elsewhere")})] if outside else [((), {})]
        for more, state in starts:
            command = [*EPSILONS, "collect", "aggregator", *own_files("one"), *named, *more, "--port", "0"]
            done = subprocess.run(
                command, cwd=tmp_path, env={**os.environ, **state}, capture_output=True, text=True, timeout=120
            )
            said = " ".join(done.stderr.split())
            assert (done.returncode, done.stdout) == (8, ""), said
            assert f"store is older than {'its witness' if outside else ''}" in said
            assert "the newest copy of the store" in said
            assert "a new store with a new key" in said
        # The newest copy is what it says to use, and it starts.
        put_back(tmp_path, newest)
        with listening(tmp_path, "one", options=named):
            pass


def test_plain_http_stays_on_this_machine(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        done = epsilons("collect", "aggregator", *own_files("one"), "--host", host, folder=tmp_path)
        assert (done.returncode, "--insecure" in done.stderr) == (5, True), done.stderr
    assert list(tmp_path.iterdir()) == []
    with listening(tmp_path, "one", options=("--host", "0.0.0.0", "--insecure")) as (url,):
        assert url.startswith("http://0.0.0.0:")
    away, token = "http://192.0.2.1:8701", tmp_path / "one.token"
    with pytest.raises(ProtocolError, match="plain HTTP"):
        HttpAggregator(away, token="5" * 64)
    HttpAggregator(away, insecure=True)
    survey(2).save(tmp_path / "exam.toml")
    run = ("collect", "run", "exam.toml", *("--aggregator", away, "--token", str(token)) * 2)
    Collection.start(survey(2), [Place(away, "ab" * 32), Place("http://127.0.0.1:1", "cd" * 32)]).save(tmp_path / "c")
    for command in (run, ("collect", "send", "c", "--yes")):
        done = epsilons(*command, folder=tmp_path, stdin="1\n")
        assert (done.returncode, f"{away} is plain HTTP." in done.stderr) == (8, True), done.stderr
        assert "--insecure" in done.stderr
    assert not (tmp_path / "c.mine").exists()


def test_several_people_send_from_one_computer(pair: Path) -> None:
    """A second person's answer is sent, or refused in so many words; it is never dropped in silence."""
    send = (*SEND, "--yes")
    assert epsilons(*send, folder=pair, stdin="1\n").returncode == 0
    kept = (pair / "exam.toml.collection.json.mine").read_bytes()
    second = epsilons(*send, folder=pair, stdin="2\n")
    assert second.returncode == 8
    assert "--again" in second.stderr
    assert "--name" in second.stderr
    assert (pair / "exam.toml.collection.json.mine").read_bytes() == kept
    assert epsilons(*send, "--name", "ann", folder=pair, stdin="2\n").returncode == 0
    assert epsilons(*send, "--name", "ann", "--again", folder=pair).returncode == 0
    assert epsilons(*send, "--name", "ann", folder=pair, stdin="2\n").returncode == 8
    assert epsilons(*send, "--name", "bob", "--again", folder=pair).returncode == 8
    assert epsilons(*send, "--name", "../bob", folder=pair, stdin="2\n").returncode == 8


def test_aggregators_that_do_not_answer_are_named_by_the_commands(tmp_path: Path) -> None:
    """At once, not after the minute that they are tried for; an owner is told how to go on."""
    survey(2).save(tmp_path / "exam.toml")
    dead = ("http://127.0.0.1:1", "http://127.0.0.1:2")
    Collection.start(survey(2), [Place(url, f"{n}a" * 32) for n, url in enumerate(dead)]).save(tmp_path / "c")
    done = epsilons("collect", "send", "c", "--yes", "--patience", "0.2", folder=tmp_path, stdin="1\n")
    said = " ".join(done.stderr.split())
    assert (done.returncode, "The report is kept in c.mine" in said) == (8, True), said
    assert all(f"No answer from the aggregator at {url} (Connection refused)" in said for url in dead)
    options: list[str] = []
    for url, name in zip(dead, ("one.token", "two.token"), strict=True):
        (tmp_path / name).touch(0o600)
        (tmp_path / name).write_text("ab" * 32)
        options += ["--aggregator", url, "--token", name]
    command = [*EPSILONS, "collect", "run", "exam.toml", *options]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        first = {process.stderr.readline().strip() for _ in dead}
        still = process.poll()
        process.kill()
    assert still is None
    told = "No answer from the aggregator at {} (Connection refused); trying for 60 s."
    assert first == {told.format(url) for url in dead}


def test_an_owner_sees_the_terms_before_anything_is_sent(pair: Path) -> None:
    collection = Collection.load(pair / "exam.toml.collection.json")
    done = epsilons(*SEND, "--name", "eve", folder=pair, stdin="1\n")
    shown = " ".join(done.stderr.split())
    assert (done.returncode, "Try: --yes" in shown) == (8, True)
    assert not (pair / "exam.toml.collection.json.eve.mine").exists()
    for said in ("Which one?", "1 option 1", "Your level: open, epsilon 2.", "at most a factor of 7.39",
                 "between two other answers by 54.6", "Each of them gets a share", "at least 100 reports",
                 *(place.url for place in collection.aggregators)):  # fmt: skip
        assert said in shown
    # The answer is in no command.
    refused = epsilons(*SEND, "--answer", "1", "--yes", folder=pair)
    assert refused.returncode == 2


def test_terms_without_an_epsilon_say_so() -> None:
    from epsilons.cli.commands.collect.owner import show_terms

    places = [Place(f"https://{n}.example.org", f"{n}" * 64) for n in (1, 2)]
    assert "No epsilon protects this answer." in show_terms(Collection.start(paper_survey(2), places), 0)
    replaced = show_terms(Collection.start(survey(2, {"all": 1.0}), places, neighbors="replace"), 0)
    assert "between your answer and any other by at most a factor of 2.72" in replaced
    assert "a factor of e^700" in show_terms(Collection.start(survey(2), places), 0)


@pytest.mark.parametrize("agrees", [True, False])
def test_at_a_terminal_everything_is_asked(pair: Path, agrees: bool) -> None:
    """A person types level, answer and consent; the terms stand before the answer."""
    ours, theirs = pty.openpty()
    name = f"tty{agrees}"
    command = [*EPSILONS, "collect", "send", "exam.toml.collection.json", "--name", name]
    with subprocess.Popen(command, cwd=pair, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        said = ""
        for waited, typed in (("Your level", "open"), ("Your answer", "2"), ("Send it", "y" if agrees else "n")):
            while waited not in said.rpartition("\0")[2]:
                said += os.read(ours, 4096).decode()
            said += "\0"
            os.write(ours, f"{typed}\n".encode())
        try:
            while part := os.read(ours, 4096).decode():
                said += part
        except OSError:  # the terminal is gone with the process
            pass
    os.close(ours)
    assert said.index("Who adds up") < said.index("Your answer (")
    assert (process.returncode, "Stored by all 2" in said) == ((0, True) if agrees else (8, False)), said
    assert (pair / f"exam.toml.collection.json.{name}.mine").exists() == agrees


def test_failures_are_logged_by_kind_and_never_by_content(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    import asyncio

    from epsilons.service.aggregator import LOG, AggregatorApp

    class Failing:
        def status(self, *_: object) -> None:
            raise KeyError("something private")

    sent: list[dict[str, object]] = []

    async def ask() -> None:
        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: object) -> None:
            sent.append(dict(message))  # type: ignore[call-overload]

        app = AggregatorApp(Failing(), "5" * 64)  # type: ignore[arg-type]
        headers = [(b"authorization", b"Bearer " + b"5" * 64)]
        scope = {"type": "http", "method": "GET", "path": f"/v1/collections/{'ab' * 32}", "headers": headers}
        for _ in range(3):
            await app(scope, receive, send)

    with caplog.at_level(logging.INFO, LOG):
        asyncio.run(ask())
    assert [message["status"] for message in sent[::2]] == [500] * 3
    # One line for all three, since whoever can cause failures could fill a disk by them.
    assert [record.getMessage() for record in caplog.records] == ["500 GET collection KeyError"]
    assert all(record.exc_info is None for record in caplog.records)


def test_the_log_of_an_aggregator_is_written(tmp_path: Path) -> None:
    """A store that breaks under a running aggregator: the kind is in the file, the store's contents are not."""
    with listening(tmp_path, "one", options=("--log", "one.log")) as (url,):
        token = (tmp_path / "one.token").read_text().strip()
        (tmp_path / "one.store").write_bytes(b"something private" * 1000)
        for file in tmp_path.glob("one.store-*"):
            file.write_bytes(b"something private" * 1000)
        aggregator = HttpAggregator(url, token=token, patience=0.5)
        with pytest.raises(ProtocolError):
            aggregator.enter(
                Collection.start(survey(2), [Place(url, aggregator.key()), Place(url, "ab" * 32)]).to_dict()
            )
        aggregator.shut()
        give_up = time.monotonic() + 5
        while not (said := (tmp_path / "one.log").read_text()) and time.monotonic() < give_up:
            time.sleep(0.05)
    assert said.split()[2:5] in (["503", "PUT", "collection"], ["500", "PUT", "collection"])
    assert "private" not in said

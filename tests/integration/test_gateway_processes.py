"""A gateway as a process: asked through `eps.connect` and by commands it gives what the library gives; kill -9."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import epsilons as eps
from epsilons.cli import app
from epsilons.dataset.asking import Asking
from epsilons.service.keys import Keys
from epsilons.service.replies import Noted, Replies, name_job
from epsilons.service.serving import Reply
from epsilons.service.sessions import Sessions
from epsilons.service.store import open_store
from support import ledger_servers
from support.certificates import self_signed
from support.gateways import Servers, declare, key_for, with_workers

Ask = Callable[[Asking], Any]
ASK = "/v1/datasets/wages/ask"


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    made = Servers()
    yield made
    made.close()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, servers: Servers) -> Iterator[tuple[eps.Dataset, Any, Path]]:
    """The same people twice: here, and behind a server; the folder of the latter, with a file that names it."""
    one, other = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there")
    declare(one)
    url, _ = servers.start(declare(other))
    key = key_for(other / "gateway.toml", "office")
    (other / "key").touch(0o600)
    (other / "key").write_text(key)
    (other / "remote.toml").write_text(f'server = "{url}"\nname = "wages"\nkey = "key"\n')
    with eps.Dataset.from_toml(one / "wages.toml") as here, eps.connect(url, key=key) as remote:
        yield here, remote.dataset("wages"), other


#: One of each kind; every statistic of the catalogue is read by the same lines.
QUESTIONS: dict[str, Ask] = {
    "count": lambda people: people.count(where="age >= 30 AND region IN ('north', 'south')", share=0.01),
    "groups": lambda people: people.mean("wage", by={"region": ["north", "south"]}, share=0.01),
    "registered keys": lambda people: people.sum("age", by="region", share=0.01),
    "quantile": lambda people: people.quantile("wage", 0.9, share=0.01, for_interval=0.5),
    "histogram": lambda people: people.histogram("wage", edges=(0, 50, 100), share=0.01),
    "model": lambda people: people.linear_regression("wage", features=["age"], share=0.01),
    "error": lambda people: people.count(error=30),
    "batch": lambda people: _batch(people),
    "sql": lambda people: people.sql("SELECT AVG(wage), COUNT(*) FROM people WHERE age > 20", share=0.01),
    "planned": lambda people: people.plan("mean", "wage", share=0.01, missing="center")["sample"].ask(),
    "relation": lambda people: people.mean(
        "wage", share=0.01, missing="center", assume=people.relation("wage", share=0.05)
    ),
}


def _batch(people: Asking) -> Any:
    with people.batch(share=0.02) as ask:
        first, second = ask.count(where="age >= 50"), ask.median("wage", name="middle")
    return {one.name: one.release for one in (first, second)}


def form(release: eps.Release) -> dict[str, Any]:
    """All of a release that noise has no part in."""
    plain = release.to_dict()
    drawn = ("value", "error", "models", "at", "details", "assumption", "no_interval", "why")
    kept = {name: part for name, part in plain.items() if name not in drawn}
    keys = list(release.value) if isinstance(release.value, dict) else None
    return {**kept, "guarantee": {**plain["guarantee"], "roster": ""}, "keys": keys}


def test_asked_through_the_client_and_directly_the_charge_and_the_form_are_the_same(
    both: tuple[eps.Dataset, Any, Path],
) -> None:
    here, there, _ = both
    for name, ask in QUESTIONS.items():
        one, other = ask(here), ask(there)
        if isinstance(one, eps.Release):
            one, other = {"": one}, {"": other}
        assert list(one) == list(other), name
        for part, release in one.items():
            assert form(release) == form(other[part]), name
        assert there.remaining().levels == here.remaining().levels, name
        # Asked again it is the stored answer.
        charged = there.count_charged()
        again = ask(there)
        assert dict(again if isinstance(again, dict | eps.dataset.answers.Answers) else {"": again}) == dict(other)
        assert there.count_charged() == charged, name


def test_what_is_public_is_told_alike(both: tuple[eps.Dataset, Any, Path]) -> None:
    here, there, _ = both
    assert there.describe().levels == here.describe().levels
    assert there.describe().columns == here.describe().columns
    assert there.keys("region") == here.keys("region")
    assert (there.key("age", "31"), there.key("region", "31")) == (31, "31")
    for made in (lambda people: people.plan("mean", "wage", share=0.1, past=False), lambda people: _plan_batch(people)):
        assert str(made(there)) == str(made(here))
        assert made(there).to_dict() == made(here).to_dict()
    stored = there.answers()
    assert stored[1] == there.release(1)
    assert list(stored) == list(here.answers())
    assert str(stored).splitlines()[:2] == str(here.answers()).splitlines()[:2]


def _plan_batch(people: Asking) -> Any:
    batch = people.batch(share=0.1)
    batch.count(), batch.sql("SELECT AVG(wage) AS average FROM people")
    return batch.plan()


def test_refusals_are_the_library_s_own(both: tuple[eps.Dataset, Any, Path]) -> None:
    here, there, _ = both
    wrong: list[Ask] = [
        lambda people: people.mean("nothing"),
        lambda people: people.mean("region"),
        lambda people: people.mean("wage", bounds=(3, 1)),
        lambda people: people.count(where="age >="),
        lambda people: people.count(by="union"),
        lambda people: people.sql("SELECT wage FROM people"),
        lambda people: people.plan("count", where="epsilon = 1"),
        lambda people: people.batch(share=0.1).ask(),
        lambda people: people.mean("wage", error=1e-9),
    ]
    for ask in wrong:
        told = []
        for people in (here, there):
            with pytest.raises(eps.EpsilonsError) as refused:
                ask(people)
            told.append((refused.type, str(refused.value), refused.value.parts))
        assert told[0] == told[1]
    plan = there.plan("count", where="age >= 77", share=1)
    there.count(where="age >= 78", share=0.01)
    with pytest.raises(eps.PlanError, match="has changed since"):
        plan.ask()


def test_commands_ask_the_server_that_a_file_names(
    both: tuple[eps.Dataset, Any, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, folder = both
    file = str(folder / "remote.toml")
    for command in (
        ["count", file, "--where", "age >= 44", "--by", "region", "--share", "0.01"],
        ["plan", file, "mean", "wage", "--share", "0.01"],
        ["mean", file, "wage", "--share", "0.01", "--dry-run"],
        ["sql", file, "SELECT AVG(wage) FROM people WHERE age >= 44", "--share", "0.01"],
        ["relation", file, "wage", "--share", "0.01"],
    ):
        assert app.main(command) == 0, capsys.readouterr()
        shown = capsys.readouterr().out
        assert app.main([*command, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)
        assert shown
    assert app.main(["mean", file, "region"]) == 4
    assert "holds text, not numbers" in capsys.readouterr().err
    assert app.main(["check", file]) == 4
    assert "behind a server" in capsys.readouterr().err
    # A key that others may read is not used.
    (folder / "key").chmod(0o644)
    assert app.main(["count", file]) == 8
    assert "mode 0600" in capsys.readouterr().err
    (folder / "key").chmod(0o600)


def test_commands_ask_over_https(
    tmp_path: Path, servers: Servers, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a certificate that is trusted; one that is not is named at once, before the key is sent."""
    file, (certificate, _) = declare(tmp_path), self_signed(tmp_path)
    file.write_text(f'{file.read_text()}certificate = "certificate.pem"\ncertificate_key = "certificate.key"\n')
    url, _ = servers.start(file)
    assert url.startswith("https://")
    (tmp_path / "remote.toml").write_text(f'server = "{url}"\nname = "wages"\n')
    monkeypatch.setenv("EPSILONS_KEY", key_for(file, "office"))
    asked = ["count", str(tmp_path / "remote.toml"), "--share", "0.01", "--json"]
    assert app.main(asked) == 8
    assert "does not hold" in capsys.readouterr().err
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    assert app.main(asked) == 0
    assert json.loads(capsys.readouterr().out)["release"]["number"] == 1


def test_keys_are_made_listed_and_ended_by_commands(
    both: tuple[eps.Dataset, Any, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, there, folder = both
    file, url = str(folder / "gateway.toml"), there._connection.address
    assert app.main(["keys", "add", file, "guest"]) == 0
    monkeypatch.setenv("EPSILONS_KEY", capsys.readouterr().out.strip())
    with eps.connect(url) as guest:
        assert guest.datasets() == ["wages"]
        assert app.main(["keys", "list", file, "--json"]) == 0
        last = json.loads(capsys.readouterr().out)[-1]
        assert (last["name"], last["role"], last["revoked"]) == ("guest", "analyst", None)
        assert app.main(["keys", "revoke", file, str(last["number"])]) == 0
        with pytest.raises(eps.ProtocolError, match="needs a key"):
            guest.datasets()
    for address in ("http://stats.example.org", "ftp://127.0.0.1", "127.0.0.1:8000", ""):
        with pytest.raises(eps.ProtocolError, match="address"):
            eps.connect(address)
    with pytest.raises(eps.ProtocolError, match="a letter is wrong"):
        eps.connect(url, key="eps_x")


def test_a_server_that_is_killed_midway_charges_once(tmp_path: Path, servers: Servers) -> None:
    file = declare(tmp_path)
    key = key_for(file, "office")
    url, process = servers.start(file, "touched")
    question = {"statistic": "count", "arguments": {"where": "age >= 30", "share": 0.1, "fresh": True}}
    first, again = eps.connect(url, key=key, patience=0), []

    def ask() -> None:
        try:
            first.request("POST", "/v1/datasets/wages/ask", question, once="the-same")
        except eps.ProtocolError as error:
            again.append(str(error))

    asking = threading.Thread(target=ask)
    asking.start()
    servers.wait_until_stopped(process)
    servers.kill(process)
    asking.join()
    assert "No answer" in again[0]
    url, _ = servers.start(file)
    with eps.connect(url, key=key) as second:
        replies = [second.request("POST", "/v1/datasets/wages/ask", question, once="the-same") for _ in range(3)]
        people = second.dataset("wages")
        assert people.remaining().epsilons[0.5] >= 0.45
        assert [one["release"]["number"] for one in replies] == [1, 1, 1]
        assert replies[1] == replies[2] == replies[0]
        assert list(people.answers()) == [1]


#: What no log may show, whatever a request makes of it.
SECRETS = ("person 17", "12345.678", "s3cret", "evil.example", "ann@", "DROP")


def hostile(url: str, key: str, link: str) -> list[bytes]:
    """Requests, byte by byte, with something in every place that a request has."""
    place = urlsplit(url).netloc
    told = f"Host: {place}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n"

    def post(path: str, body: Any, more: str = "") -> bytes:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        more += f"Idempotency-Key: s3cret-{len(content)}\r\nContent-Length: {len(content)}\r\n"
        return f"POST {path} HTTP/1.1\r\n{told}{more}\r\n".encode() + content

    ask = "/v1/datasets/wages/ask"
    return [
        f"GET /s3cret/person%2017?q=s3cret HTTP/1.1\r\n{told}\r\n".encode(),
        f"GET /v1/datasets/s3cret HTTP/1.1\r\n{told}\r\n".encode(),
        b"GET /v1/me HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer s3cret\r\nConnection: close\r\n\r\n",
        f"GET /v1/me HTTP/1.1\r\nHost: {place}\r\nCookie: epsilons=s3cret.ann@\r\nConnection: close\r\n\r\n".encode(),
        f"S3CRET /v1/me HTTP/1.1\r\n{told}\r\n".encode(),
        b"s3cret person 17\r\n\r\n",
        b"\x00\xffs3cret\r\n\r\n",
        f"GET /v1/me HTTP/1.1\r\n{told}s3cret\r\n\r\n".encode(),
        f"POST {ask} HTTP/1.1\r\n{told}Content-Length: s3cret\r\n\r\n".encode(),
        post(ask, {"statistic": "count", "arguments": {"where": "wage >= 12345.678", "share": 0.01}}),
        post(ask, {"statistic": "count", "arguments": {"where": "id = 'person 17'", "share": 0.01}}),
        post(ask, {"statistic": "count", "arguments": {"where": "union = 's3cret'; DROP TABLE x"}}),
        post(ask, {"sql": "SELECT s3cret FROM read_csv('/etc/s3cret')"}),
        post(ask, {"statistic": "s3cret", "arguments": {"s3cret": "ann@"}}),
        post(ask, b"{s3cret"),
        f"POST {ask} HTTP/1.1\r\n{told}Idempotency-Key: s3cret\r\nContent-Length: 9999999\r\n\r\n".encode(),
        post("/v1/session", {"link": link}, "Origin: https://evil.example\r\n"),
        post("/v1/session", {"link": link}),
        post("/v1/session", {"link": "s3cret"}),
    ]


def test_a_log_says_kinds_times_and_sizes_whatever_was_sent(tmp_path: Path) -> None:
    file = declare(tmp_path)
    key, log = key_for(file, "s3cret office"), tmp_path / "log"
    assert app.main(["keys", "link", str(file), "wages", "person 17"]) == 0
    store = open_store(f"sqlite:///{tmp_path}/gateway.store")
    with eps.Dataset.from_toml(tmp_path / "wages.toml") as people:
        link = Sessions(store).issue(people._registry, "wages", "person 17").path.partition("#")[2]
    store.close()
    command = [sys.executable, "-m", "epsilons", "serve", str(file), "--port", "0"]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as server,
    ):
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        sent, parts = hostile(url, key, link), urlsplit(url)
        statuses = []
        for request in sent:
            with (
                socket.create_connection((parts.hostname, parts.port), timeout=60) as wire,
                contextlib.suppress(OSError),
            ):
                wire.sendall(request)
                reply = b"".join(iter(lambda: wire.recv(65536), b""))
                statuses.append(int(reply.split(b" ", 2)[1]))
                assert b"ann@" not in reply
        server.terminate()
        server.wait()
    assert 500 not in statuses
    assert {200, 400, 401, 403, 404, 405, 413, 422} <= set(statuses)
    logged = log.read_text()
    assert [word for word in (*SECRETS, key, link) if word.lower() in logged.lower()] == []
    lines = [line for line in logged.splitlines() if " ms " in line]
    shape = r"[\d-]+ [\d:,]+ [a-z]+ [a-z-]+ \d{3} \d+ ms \d+ bytes"
    assert [line for line in lines if not re.fullmatch(shape, line)] == []
    assert len(lines) >= len(sent) - 5, "those that are no HTTP are known to the server alone"


def test_the_unit_and_the_container_start_the_same_command() -> None:
    deploy = Path(__file__).parents[2] / "deploy"
    unit = (deploy / "epsilons-gateway.service").read_text()
    assert "ExecStart=/srv/gateway/.venv/bin/epsilons serve gateway.toml\n" in unit
    container = (deploy / "Containerfile").read_text()
    assert 'ENTRYPOINT ["epsilons"]\nCMD ["serve", "gateway.toml"]\n' in container
    root = deploy.parent
    copied = [name for line in re.findall(r"^COPY (.*)$", container, re.MULTILINE) for name in line.split()[:-1]]
    assert [name for name in copied if not (root / name).exists()] == []


@pytest.mark.parametrize("place", ["reserved", "touched", "stored"])
def test_a_worker_that_is_killed_midway_loses_nothing(tmp_path: Path, servers: Servers, place: str) -> None:
    """The other worker goes on with it, at once: one charge, and one answer however often it is asked for."""
    file = with_workers(declare(tmp_path))
    key = key_for(file, "office")
    url, process = servers.start(file, place)
    question = {"statistic": "count", "arguments": {"where": "age >= 30", "share": 0.1, "fresh": True}}
    told: list[Any] = []

    def ask() -> None:
        with eps.connect(url, key=key, progress=lambda seconds, of: told.append((seconds, of))) as first:
            told.append(first.request("POST", ASK, question, once="the-same"))

    asking = threading.Thread(target=ask)
    asking.start()
    worker = servers.wait_until_stopped(process)
    assert worker != process
    with eps.connect(url, key=key, patience=0) as second:
        with pytest.raises(eps.ProtocolError, match="being worked on"):
            second.request("POST", ASK, question, once="the-same")
        servers.kill(worker)
        asking.join()
        replies = [second.request("POST", ASK, question, once="the-same") for _ in range(3)]
        assert replies == [told[-1]] * 3
        people = second.dataset("wages")
        assert list(people.answers()) == [1]
        assert people.remaining().epsilons[0.5] >= 0.45


@pytest.mark.integration
def test_a_store_in_postgresql_keeps_keys_and_replies(postgres_server: str, tmp_path: Path) -> None:
    address = ledger_servers.fresh(postgres_server)
    store, again = open_store(address), open_store(address)
    key = Keys(store).add("ann", "person", "wages", 17)
    found = Keys(again).find(key)
    assert found is not None
    assert (found.name, found.person) == ("ann", 17)
    one, other, asked = Replies(store, tmp_path), Replies(again, tmp_path), Noted("ann", "1", b"x")
    assert one.begin(asked) is None
    # A worker beside it does not work on it as well, but takes over what a dead one had begun.
    assert [found.status for found in (one.begin(asked), other.begin(asked)) if found] == [409, 409]
    other.note_slot([asked], 0.25)
    assert other.tell_job("ann", name_job("ann", "1")).status == 202
    assert other.tell_job("bob", name_job("ann", "1")).status == 404
    one.close()
    assert other.tell_job("ann", name_job("ann", "1")).status == 503
    assert other.begin(asked) is None
    other.end(asked, Reply(200, b"reply"))
    kept, refusal = other.look(asked), other.look(Noted("ann", "1", b"y"))
    assert kept is not None
    assert refusal is not None
    assert (kept.body, refusal.status) == (b"reply", 422)
    other.close()
    Keys(again).revoke(1)
    assert Keys(store).find(key) is None
    signed, elsewhere = Sessions(store), Sessions(again)
    assert signed._sign("cookie", key) == elsewhere._sign("cookie", key), "several servers take the same cookies"
    store.close()
    again.close()


@pytest.mark.soak
def test_the_demo_prints_an_address_and_keys_that_work(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "epsilons", "serve", "--demo", "--port", "0"]
    own = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, env=own, **pipes) as server:
        assert server.stdout is not None
        lines = [server.stdout.readline().split() for _ in range(6)]
        keys = {line[0]: line[1].partition("#")[2] for line in lines if len(line) == 2}
        with eps.connect(lines[0][0], key=keys["analyst"]) as remote:
            assert remote.dataset("wages").mean("wage", share=0.1).number == 1
        link = json.dumps({"link": keys["person"]}).encode()
        with urllib.request.urlopen(f"{lines[0][0]}/v1/session", link, timeout=60) as reply:
            assert "HttpOnly" in reply.headers["set-cookie"]
        server.terminate()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("clients", "seconds"), [(30, 2), pytest.param(60, 6, marks=pytest.mark.soak)])
def test_under_load_nothing_fails_and_nobody_is_overspent(clients: int, seconds: int) -> None:
    """For a while and by fewer clients than `make bench-gateway`, which says how fast it is."""
    program = Path(__file__).parents[2] / "benchmarks" / "gateway.py"
    command = [sys.executable, str(program), "--clients", str(clients), "--seconds", str(seconds)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    told, sent = dict(line.strip("| ").split(" | ") for line in shown.splitlines()[2:]), clients * seconds
    assert told["requests"] == f"{sent} by {clients} clients in {seconds} s, 2 workers"
    assert (told["errors"], told["overspends"]) == ("0", "0")
    assert told["charges beside new questions that were answered"] == f"{100 + sent // 10} beside {100 + sent // 10}"
    assert told["stored answers"].startswith(f"{sent - sent // 10};")


def test_a_long_question_shows_in_a_terminal_how_far_it_is(both: tuple[eps.Dataset, Any, Path]) -> None:
    """A batch whose slot lasts longer than a client waits without a word; what is shown is gone at the end."""
    folder = both[2]
    named = ", ".join(f"AVG(wage) AS mean{number}" for number in range(60))
    query = f"SELECT {named} FROM people WHERE age >= 16"
    reading, terminal = os.openpty()
    command = [sys.executable, "-m", "epsilons", "sql", "remote.toml", query, "--share", "0.02"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=terminal) as asking:
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # a terminal that nobody holds any more
            while piece := os.read(reading, 1000):
                shown += piece
        os.close(reading)
        assert asking.stdout is not None
        answer = asking.stdout.read()
    assert asking.returncode == 0
    assert b"mean59" in answer
    assert re.search(rb"\r\x1b\[KAnswering: \d of 3 s\.", shown)
    assert shown.endswith(b"\r\x1b[K")


@pytest.mark.integration
def test_the_page_of_a_link_runs_in_a_browser(
    both: tuple[eps.Dataset, Any, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It hands in the link, keeps the cookie, and shows the account under its own policy of what may run."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("CHROMIUM IS MISSING, THE PAGE IS NOT RUN: apt-get install chromium")
    _, there, folder = both
    assert app.main(["keys", "link", str(folder / "gateway.toml"), "wages", "person 17"]) == 0
    token = capsys.readouterr().out.strip().partition("#")[2]
    place = f"{there._connection.address}/enter#{token}"
    quiet = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path}",
        "--virtual-time-budget=20000",
    ]
    shown = subprocess.run([chromium, *quiet, "--dump-dom", place], capture_output=True, text=True, timeout=300).stdout
    assert re.search(r"at a loss of at most [\d.]+ of 0.5 granted", shown)

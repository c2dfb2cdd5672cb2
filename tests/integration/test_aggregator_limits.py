"""An aggregator under people who mean no good, over real sockets: what they hold is bounded in bytes and in time."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from epsilons.collection import Collection, Courier, HttpAggregator, OwnerClient, Place, transport
from epsilons.errors import ProtocolError
from epsilons.service.aggregator import MOST_REPORT_BYTES
from support import aggregator_processes
from support.aggregator_processes import epsilons
from support.collections_world import survey

#: An aggregator whose deadlines and rooms are as given, on a free port.
SERVER = """
import sys
from epsilons.collection import Aggregator, Store
from epsilons.service import aggregator, connections, serving
from epsilons.collection.sealing import keep_secret
head, reading, report, requests, size = map(float, sys.argv[1:])
connections.HEAD_SECONDS, connections.READING_SECONDS = head, reading
aggregator.OWNERS_ROOM = int(requests), int(size)
for route in aggregator.ROUTES:
    if not route.token:
        object.__setattr__(route, "seconds", report)
made = Aggregator.begin(Store("sqlite:///one.store"), "one.key")
app = aggregator.AggregatorApp(made, keep_secret("one.token").hex())
serving.serve(app, "127.0.0.1", 0, lambda url: print(url, flush=True), certificate=None, certificate_key=None)
"""


@contextlib.contextmanager
def serving(
    folder: Path, *, head: float = 10, reading: float = 30, report: float = 30, requests: int = 256,
    size: int = 24 << 20,
) -> Iterator[tuple[str, int]]:  # fmt: skip
    """The address and the process."""
    limits = [str(one) for one in (head, reading, report, requests, size)]
    command = [sys.executable, "-c", SERVER, *limits]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.kill()
            _, said = process.communicate()
    assert "Traceback" not in said


def connect(url: str, source: str = "127.0.0.1") -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), 10, (source, 0))


def begin(
    url: str, length: int, path: str = f"/v1/collections/{'0' * 64}/reports", source: str = "127.0.0.1"
) -> socket.socket:
    """A request that announces so much."""
    sending = connect(url, source)
    sending.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode())
    return sending


def memory(process: int) -> int:
    """Bytes that a process holds."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))


def hold_forty(url: str, process: int) -> tuple[int, list[socket.socket]]:
    """How much more it holds at most, with forty requests that lack their last byte."""
    before, most, open_ones = memory(process), 0, []
    for _ in range(40):
        one = begin(url, MOST_REPORT_BYTES)
        with contextlib.suppress(OSError):  # it refused
            one.sendall(bytes(MOST_REPORT_BYTES - 1))
        open_ones.append(one)
        most = max(most, memory(process) - before)
    time.sleep(0.3)
    return max(most, memory(process) - before), open_ones


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("bounded", [True, False])
def test_forty_half_sent_requests_hold_less_than_fifty_megabytes(tmp_path: Path, bounded: bool) -> None:
    with serving(tmp_path, size=(24 << 20) if bounded else (1 << 40)) as (url, process):
        more, open_ones = hold_forty(url, process)
        # Without the limit the same requests would hold far more: the measure sees what it is for.
        assert (more < 50 << 20) == bounded, f"{more >> 20} MB"
        # Whoever sends a few bytes is served meanwhile.
        if bounded:
            aggregator = HttpAggregator(url, patience=0)
            assert len(aggregator.key()) == 64
            aggregator.shut()
        for one in open_ones:
            one.close()


def ended(one: socket.socket, within: float) -> tuple[float, bytes]:
    """After how many seconds the other side ended the connection, and what it said before."""
    one.settimeout(within)
    start, said = time.monotonic(), b""
    with contextlib.suppress(ConnectionError):
        while part := one.recv(65536):
            said += part
    return time.monotonic() - start, said


def test_slow_clients_are_left(tmp_path: Path) -> None:
    with serving(tmp_path, head=0.5, report=2.5, requests=4) as (url, _):
        # Half a head; nothing at all; half a head on a connection that was good before.
        half, silent, later = connect(url), connect(url), connect(url)
        half.sendall(b"GET /v1/key HTT")
        later.sendall(b"GET /v1/key HTTP/1.1\r\nHost: x\r\n\r\n")
        assert later.recv(65536).startswith(b"HTTP/1.1 200")
        later.sendall(b"GET /v1")
        for one in (half, silent, later):
            assert ended(one, 5)[0] < 4
        # Half a body is answered once its time is over. Two of them are all that one address has room for.
        bodies = [begin(url, 1000) for _ in range(2)]
        for one in bodies:
            one.sendall(b"x")
        time.sleep(0.2)
        busy = begin(url, 1)
        _, said = ended(busy, 5)
        assert said.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1" in said
        if sys.platform.startswith("linux"):  # where all of 127.0.0.0/8 is this machine
            other = begin(url, 1, source="127.0.0.2")
            other.sendall(b"x")
            assert other.recv(1000).startswith(b"HTTP/1.1 400")
            other.close()
        for one in bodies:
            _, said = ended(one, 5)
            assert said.startswith(b"HTTP/1.1 408")
        aggregator = HttpAggregator(url, patience=5)
        assert len(aggregator.key()) == 64
        aggregator.shut()
        for one in (half, silent, later, busy, *bodies):
            one.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("seconds", [0.5, 1000])
def test_a_reply_that_nobody_reads_is_dropped_after_a_while(tmp_path: Path, seconds: float) -> None:
    """A list of refused reports is larger than the request; its reader stays away."""
    with serving(tmp_path, reading=seconds) as (url, process):
        host, port = url.removeprefix("http://").split(":")
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        one.connect((host, int(port)))
        collection = _enter(tmp_path, url)
        body = b"".join(number.to_bytes(16, "big") + b"\x01\x00" + bytes(4) for number in range(1000))
        path = f"/v1/collections/{collection.id.hex()}/reports"
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        one.settimeout(0.2)
        # Again and again on one connection, until no reply fits on the way any more.
        with contextlib.suppress(OSError):
            for _ in range(100):
                one.sendall(head.encode() + body)
        give_up = time.monotonic() + (20 if seconds < 1 else 2)
        # The listening one and the loop's own pair are left, once it is dropped.
        while (left := _sockets(process)) > 3 and time.monotonic() < give_up:
            time.sleep(0.1)
        assert (left <= 3) == (seconds < 1)
        one.close()


def _sockets(process: int) -> int:
    found = 0
    for file in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found += "socket" in str(file.readlink())
    return found


def _enter(folder: Path, url: str) -> Collection:
    token = (folder / "one.token").read_text().strip()
    aggregator = HttpAggregator(url, token=token)
    places = [Place(url, aggregator.key()), Place("http://127.0.0.1:1", "ab" * 32)]
    collection = Collection.start(survey(2), places)
    aggregator.enter(collection.to_dict())
    aggregator.shut()
    return collection


def test_many_reports_go_in_requests_that_are_taken(tmp_path: Path) -> None:
    """More than one request may carry, in number and in bytes; and all of them while others hold what they can."""
    with serving(tmp_path) as (url, _):
        collection = _enter(tmp_path, url)
        reports = OwnerClient(collection).reports([1] * 2_300)[0][0]
        aggregator = HttpAggregator(url, token=(tmp_path / "one.token").read_text().strip())
        assert aggregator.take(collection.id, reports) == ["stored"] * 2_300
        assert aggregator.status(collection.id)["reports"] == {"everyone": 2_300}
        aggregator.shut()


def test_an_aggregator_that_is_not_there_or_hangs_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_SECONDS_FOR_A_SIGN", 0.3)
    with socket.socket() as hanging:
        hanging.bind(("127.0.0.1", 0))
        hanging.listen()
        url = f"http://127.0.0.1:{hanging.getsockname()[1]}"
        told: list[tuple[float, str]] = []
        start = time.monotonic()
        collection = Collection.start(survey(2), [Place(url, "ab" * 32), Place("http://127.0.0.1:1", "cd" * 32)])
        courier = Courier(collection, patience=3, told=lambda line: told.append((time.monotonic() - start, line)))
        courier.send(OwnerClient(collection).reports([1])[0])
        with pytest.raises(ProtocolError, match=r"No answer from the aggregator at http://127.0.0.1:\d+ within 3 s"):
            courier.finish()
    assert all(seconds < 2.5 for seconds, _ in told)
    assert [line for _, line in told] == [
        "No answer from the aggregator at http://127.0.0.1:1 (Connection refused); trying for 3 s.",
        f"No answer from the aggregator at {url} (it says nothing); trying for 3 s.",
    ]


STEPS: dict[str, Callable[[HttpAggregator, Collection], Any]] = {
    "key": lambda one, _: one.key(),
    "enter": lambda one, at: one.enter(at.to_dict()),
    "status": lambda one, at: one.status(at.id),
    "take": lambda one, at: one.take(at.id, OwnerClient(at).reports([1])[0][0]),
    "close": lambda one, at: one.close(at.id, 1),
    "present": lambda one, at: one.present(at.id, 0),
    "check": lambda one, at: one.check(at.id, 0, bytes(32), bytes(16)),
    "collect": lambda one, at: one.collect(at.id, 0, bytes(16)),
}


def test_an_aggregator_that_is_stopped_is_named_soon_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections stay open, and its machine takes what is sent: only it says nothing."""
    monkeypatch.setattr(transport, "_SECONDS_FOR_A_SIGN", 0.5)
    with serving(tmp_path) as (url, process):
        collection, told = _enter(tmp_path, url), list[str]()
        token = (tmp_path / "one.token").read_text().strip()
        them = {name: HttpAggregator(url, token=token, patience=3, told=told.append) for name in STEPS}
        for one in them.values():
            one.key()  # so that there is a connection

        def fail(name: str) -> tuple[str, float]:
            start = time.monotonic()
            with pytest.raises(ProtocolError) as refused:
                STEPS[name](them[name], collection)
            return str(refused.value), time.monotonic() - start

        os.kill(process, signal.SIGSTOP)
        try:
            with ThreadPoolExecutor(len(STEPS)) as pool:
                found = dict(zip(STEPS, pool.map(fail, STEPS), strict=True))
        finally:
            os.kill(process, signal.SIGCONT)
        for name, (said, seconds) in found.items():
            assert said.startswith(f"No answer from the aggregator at {url} within 3 s."), name
            assert seconds < 10, name
        assert told.count(f"No answer from the aggregator at {url} (it says nothing); trying for 3 s.") == len(STEPS)
        # As soon as it goes on, so does everybody.
        assert them["status"].status(collection.id)["reports"] == {"everyone": 0}
        for one in them.values():
            one.shut()


def test_commands_name_an_aggregator_that_is_stopped(tmp_path: Path) -> None:
    designed = ("collect", "design", "e.toml", "--question", "Ever?", "--none", "no", "--level", "a=1")
    assert epsilons(*designed, folder=tmp_path).returncode == 0
    with contextlib.ExitStack() as ends:
        started = [ends.enter_context(aggregator_processes.start(tmp_path, name)) for name in ("one", "two")]
        for process in started:
            ends.callback(process.kill)
        urls = [process.stdout.readline().split()[0] for process in started if process.stdout is not None]
        run = ["collect", "run", "e.toml", "--patience", "1.5"]
        run += [word for name, url in zip(("one", "two"), urls, strict=True)
                for word in ("--aggregator", url, "--token", f"{name}.token")]  # fmt: skip
        assert epsilons(*run, folder=tmp_path).returncode == 0
        send = ("collect", "send", "e.toml.collection.json", "--yes", "--patience", "1.5")
        started[1].send_signal(signal.SIGSTOP)
        for command, stdin in ((run, ""), (send, "yes\n")):
            start = time.monotonic()
            done = epsilons(*command, folder=tmp_path, stdin=stdin)
            assert time.monotonic() - start < 15
            assert done.returncode != 0
            assert f"No answer from the aggregator at {urls[1]} within 1.5 s." in " ".join(done.stderr.split())
            assert urls[0] not in done.stderr.partition("No answer")[2]
        started[1].send_signal(signal.SIGCONT)
        assert epsilons(*send, "--again", folder=tmp_path).returncode == 0


class Working(BaseHTTPRequestHandler):
    """An aggregator that needs three seconds for everything but its key."""

    protocol_version = "HTTP/1.1"
    seconds = 3.0

    def do_GET(self) -> None:
        if self.path != "/v1/key":
            time.sleep(self.seconds)
        body = b'{"key": "ab", "round": 1, "rounds": 1, "reports": {}}'
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def test_an_aggregator_at_work_is_waited_for_beyond_all_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_SECONDS_BETWEEN_LINES", 1.5)
    with ThreadingHTTPServer(("127.0.0.1", 0), Working) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        url, told = f"http://127.0.0.1:{server.server_port}", list[str]()
        one = HttpAggregator(url, patience=1, told=told.append)
        assert one.status(bytes(32))["round"] == 1
        assert told == [f"The aggregator at {url} is at work (2 s)."]
        # But not for ever.
        monkeypatch.setattr(transport, "_SECONDS_FOR_A_REPLY", 1.5)
        with pytest.raises(ProtocolError, match=f"The aggregator at {url} is there, but has not answered within 1.5 s"):
            one.status(bytes(32))
        one.shut()
        server.shutdown()
        thread.join()

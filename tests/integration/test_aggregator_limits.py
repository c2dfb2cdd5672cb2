"""An aggregator under people who mean no good, over real sockets: what they hold is bounded in bytes and in time."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from epsilons.collection import Collection, Courier, HttpAggregator, OwnerClient, Place, transport
from epsilons.errors import ProtocolError
from epsilons.service.aggregator import MOST_REPORT_BYTES
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
        f"No answer from the aggregator at {url} (TimeoutError); trying for 3 s.",
    ]

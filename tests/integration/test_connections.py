"""Connections to a service, as sockets: those that wait give way, by plain HTTP and by TLS; an address has its part."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvicorn

from epsilons.service import serving as services
from support.certificates import self_signed

#: A service that answers after a word was sent, with room for three connections.
THREE = """
import sys
from epsilons.service import connections, serving
connections.MOST, connections.HEAD_SECONDS = 3, float(sys.argv[1])
async def app(scope, receive, send):
    body = await serving.read_body(receive, {}, 100)
    await (body if isinstance(body, serving.Reply) else serving.Reply(200, body)).send(send)
https = dict(zip(("certificate", "certificate_key"), sys.argv[2:] or (None, None)))
serving.serve(app, "127.0.0.1", 0, lambda url: print(url, flush=True), **https)
"""
Connect = Callable[..., socket.socket]


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[Connect]:
    """A way to connect to it, from an address of this machine."""
    command = [sys.executable, "-c", THREE, *arguments]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server,
        contextlib.ExitStack() as opened,
    ):
        opened.callback(server.terminate)
        assert server.stdout is not None
        place = urlsplit(server.stdout.readline().strip())

        def connect(head: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
            there = (str(place.hostname), int(place.port or 0))
            made = opened.enter_context(socket.create_connection(there, 20, (source, 0)))
            made.sendall(head)
            return made

        yield connect
        server.terminate()
        assert server.stderr is not None
        assert "Traceback" not in server.stderr.read()


def ends(one: socket.socket) -> bool:
    with contextlib.suppress(ConnectionResetError):
        return one.recv(1000) == b""
    return True


def begin(connect: Connect, source: str = "127.0.0.1") -> socket.socket:
    """A request whose head the server has read."""
    made = connect(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n", source)
    assert made.recv(1000).startswith(b"HTTP/1.1 100")
    return made


def ends_well(one: socket.socket) -> bool:
    one.sendall(b"word")
    return one.recv(1000).startswith(b"HTTP/1.1 200")


def test_connections_that_wait_give_way_to_new_ones() -> None:
    with serving("10") as connect:
        # Two that wait for the rest of a body are worked on; of those that send nothing the oldest gives way.
        working = [begin(connect) for _ in range(2)]
        silent = connect(b"GET / HTTP/1.1\r\n")
        newer = connect()
        assert ends(silent)
        newest = begin(connect)
        assert ends(newer)
        # Three are worked on: the next one finds no room, and takes nobody's.
        assert ends(connect())
        assert all(ends_well(one) for one in (*working, newest))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="all of 127.0.0.0/8 is this machine")
def test_who_holds_many_gives_way_to_who_holds_few() -> None:
    with serving("10") as connect:
        oldest = connect(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Le", "127.0.0.2")
        many = [connect(), connect()]
        # By age it would be the one that somebody else has.
        assert ends((many := [*many, connect()])[0])
        assert ends((many := [*many, connect()])[1])
        other = begin(connect, "127.0.0.3")
        assert ends(many[2])
        oldest.sendall(b"ngth: 4\r\n\r\n")
        assert ends_well(oldest)
        assert ends_well(other)


def test_a_handshake_that_is_not_done_counts_and_has_a_deadline(tmp_path: Path) -> None:
    """Before it asyncio tells nobody of a connection, and waits for a minute: a thousand would take all files."""
    certificate, key = self_signed(tmp_path)
    trusting = ssl.create_default_context(cafile=certificate)
    with serving("1", certificate, key) as connect:
        assert all(ends(one) for one in (connect(), connect(b"\x16\x03")))
    with serving("60", certificate, key) as connect:
        silent = [connect(), connect(b"\x16\x03"), connect()]
        with trusting.wrap_socket(connect(), server_hostname="127.0.0.1") as secure:
            assert ends(silent[0])
            for one in silent:
                one.close()
            # What is no handshake ends, and leaves its place: who waits meanwhile is not made to give way.
            for _ in range(6):
                answer_to(connect(b"GET / HTTP/1.1\r\n\r\n"))
                secure.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nword")
                reply = b""
                while not reply.endswith(b"\r\n\r\nword"):
                    reply += secure.recv(1000) or b"It was ended.\r\n\r\nword"
                assert reply.startswith(b"HTTP/1.1 200")


def answer_to(one: socket.socket) -> bytes:
    """All that is said until the end."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while part := one.recv(1000):
            said += part
    return said


def test_a_request_has_one_end() -> None:
    """Whoever stands before it may have gone by the other length: what comes then is somebody else's."""
    two = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    with serving("10") as connect:
        for head in (
            two,
            two.replace(b"Content-Length: 4\r\n", b"").replace(b"\r\n\r\n0", b"\r\nContent-Length: 4\r\n\r\n0"),
        ):
            reply = answer_to(connect(head + b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
            assert reply.startswith(b"HTTP/1.1 400")
            assert reply.count(b"HTTP/1.1") == 1
        for wrong in (
            b"Content-Length: 4\r\nContent-Length: 5",
            b"Transfer-Encoding: chunked, identity",
            b"Content-Length: +4",
        ):
            reply = answer_to(
                connect(b"POST / HTTP/1.1\r\nHost: x\r\n" + wrong + b"\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n")
            )
            assert reply.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501"))
            assert reply.count(b"HTTP/1.1") == 1


def test_a_certificate_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    (tmp_path / "wrong.key").write_text("no key")
    for pair in ((certificate, str(tmp_path / "wrong.key")), (str(tmp_path / "missing.pem"), key)):
        done = subprocess.run([sys.executable, "-c", THREE, "3", *pair], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        assert "The certificate or its key cannot be used." in done.stderr


def test_nothing_but_requests_is_spoken_whatever_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that becomes something else would leave the deadlines, and the number of connections, behind."""
    run = list[uvicorn.Config]()
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, **_: run.append(server.config))
    monkeypatch.setitem(uvicorn.config.WS_PROTOCOLS, "auto", "json:JSONEncoder")  # as if a library were there
    with socket.socket() as listening:
        services.run(lambda *_: None, listening)  # type: ignore[arg-type, return-value]
    run[0].load()
    assert run[0].ws_protocol_class is None

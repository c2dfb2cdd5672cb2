"""Requests over HTTP: whatever the other side does, no wait is without an end, and no part passes for the whole."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from epsilons.storage.exchange import Exchange, TooLongError
from support.certificates import self_signed

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
Serve = Callable[[socket.socket, Event], None]


@contextlib.contextmanager
def serving(serve: Serve, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of a server that treats every connection so, one after the other, until the event."""
    over = Event()

    def take(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                one, _ = listening.accept()
                with contextlib.suppress(OSError), context.wrap_socket(one, server_side=True) if context else one as to:
                    serve(to, over)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=take, args=(listening,))
        thread.start()
        yield f"{'https' if context else 'http'}://127.0.0.1:{listening.getsockname()[1]}"
        over.set()
        with contextlib.suppress(OSError):  # so that nobody waits for one more
            listening.shutdown(socket.SHUT_RDWR)
    thread.join()


def read_head(one: socket.socket) -> bytes:
    said = b""
    while b"\r\n\r\n" not in said:
        if not (part := one.recv(65536)):
            raise ConnectionError
        said += part
    return said


def ask(
    exchange: Exchange, body: bytes = b"", *, every: float = 1.0, seconds: float = 5.0, **more: Callable[[], None]
) -> tuple[int, bytes]:
    return exchange.ask("POST", "/", body, most=100, connect=1.0, every=every, until=time.monotonic() + seconds, **more)


@contextlib.contextmanager
def asking(address: str) -> Iterator[Exchange]:
    exchange = Exchange(address)
    yield exchange
    exchange.close()


def test_one_connection_does_for_many_requests_and_one_that_is_gone_is_made_again() -> None:
    connections = itertools.count()

    def twice(one: socket.socket, _: Event) -> None:
        next(connections)
        for _ in range(2):
            read_head(one)
            one.sendall(OK)

    with serving(twice) as address, asking(address) as exchange:
        assert [ask(exchange) for _ in range(6)] == [(200, b"{}")] * 6
    assert next(connections) == 3


def test_a_connection_that_was_idle_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A box on the way may have forgotten it, and tells nobody."""

    def once(one: socket.socket, over: Event) -> None:
        read_head(one)
        one.sendall(OK)
        served.append(one)
        over.wait(0.2)

    served: list[socket.socket] = []
    with serving(once) as address, asking(address) as exchange:
        assert ask(exchange) == (200, b"{}")
        monkeypatch.setattr("epsilons.storage.exchange._IDLE_SECONDS", 0.0)
        assert ask(exchange, every=0.5) == (200, b"{}")
    assert len(served) == 2


def test_a_process_that_was_forked_has_a_connection_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each of the two would read what the other one asked for."""
    served: list[socket.socket] = []

    def always(one: socket.socket, _: Event) -> None:
        served.append(one)
        while True:
            read_head(one)
            one.sendall(OK)

    with serving(always) as address, asking(address) as exchange:
        for process in (1, 1, 2, 2):
            monkeypatch.setattr("epsilons.storage.exchange.os.getpid", lambda process=process: process)
            assert ask(exchange) == (200, b"{}")
        assert len(served) == 2


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}", b"HTTP/1.1 200 OK\r\ncontent-", b"x"]
)
def test_half_a_reply_is_none(head: bytes) -> None:
    def cut(one: socket.socket, _: Event) -> None:
        read_head(one)
        one.sendall(head)

    with serving(cut) as address, asking(address) as exchange, pytest.raises((http.client.HTTPException, OSError)):
        ask(exchange)


def test_a_reply_that_is_too_long_is_not_read_to_its_end() -> None:
    def long(one: socket.socket, _: Event) -> None:
        read_head(one)
        one.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(101))

    with serving(long) as address, asking(address) as exchange, pytest.raises(TooLongError):
        ask(exchange)


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200 OK\r\nx: ", b"HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n"])
def test_who_trickles_is_left_in_the_end(begin: bytes) -> None:
    """Byte by byte there is always something, in the head as in the body."""

    def trickle(one: socket.socket, over: Event) -> None:
        read_head(one)
        one.sendall(begin)
        while not over.wait(0.05):
            one.sendall(b"a")

    with serving(trickle) as address, asking(address) as exchange:
        start = time.monotonic()
        with pytest.raises((TimeoutError, http.client.HTTPException)):
            ask(exchange, every=0.5, seconds=1.0)
        assert time.monotonic() - start < 3


@pytest.mark.parametrize("body", [b"", bytes(64 << 20)], ids=["reads", "reads nothing"])
def test_while_nothing_passes_who_waits_is_asked_how_long(body: bytes) -> None:
    """Neither a reply that does not come nor a body that nobody takes is waited for without a word."""

    def hang(one: socket.socket, over: Event) -> None:
        over.wait()

    with serving(hang) as address, asking(address) as exchange:
        with pytest.raises(TimeoutError):
            ask(exchange, body, every=0.1)
        asked = itertools.count(1)

        def silent() -> None:
            if next(asked) == 4:
                raise TimeoutError

        start = time.monotonic()
        with pytest.raises(TimeoutError):
            ask(exchange, body, every=0.1, silent=silent)
        assert next(asked) == 5
        assert 0.3 < time.monotonic() - start < 3


@pytest.mark.parametrize("secure", [False, True])
def test_what_comes_late_is_still_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secure: bool) -> None:
    """A reply in three pieces, each after a silence; the large body is read slowly, too."""

    def late(one: socket.socket, over: Event) -> None:
        size = len(read_head(one))
        over.wait(0.3)
        while size < 1 << 22:
            size += len(one.recv(1 << 20))
        for piece in (b"HTTP/1.1 200 OK\r\ncontent-le", b"ngth: 2\r\n\r\n{", b"}"):
            over.wait(0.3)
            one.sendall(piece)

    context = None
    if secure:
        certificate, key = self_signed(tmp_path)
        monkeypatch.setenv("SSL_CERT_FILE", certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
    waited: list[float] = []
    with serving(late, context) as address, asking(address) as exchange:
        assert ask(exchange, bytes(1 << 22), every=0.1, seconds=30, silent=lambda: waited.append(time.monotonic())) == (
            200,
            b"{}",
        )
    assert len(waited) >= 4

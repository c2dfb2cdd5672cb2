"""Requests over HTTP in which no wait is without an end: whoever is spoken to may be stopped, slow, or not honest.

Three deadlines. To connect; while nothing passes, there or back, `silent` is called after each `every` seconds, and
raises once that has been enough; and the whole exchange ends at `until`, however busily bytes trickle.
"""

import http.client
import io
import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from typing import Any
from urllib.parse import urlsplit

#: Servers let go of a connection that is idle for some seconds (ours after five), and boxes on the way without a word.
_IDLE_SECONDS = 3.0
#: So much is handed over at a time, so that a slow network is not taken for a silent one.
_PIECE = 1 << 16


class TooLongError(Exception):
    """A reply is longer than anything that was asked for."""


def is_web_address(address: object) -> bool:
    """Whether it can be spoken to, and whoever reads it takes it for the host it is.

    So nothing stands before the host (`https://this.one@elsewhere`), and its letters look like no others.
    """
    if not isinstance(address, str) or not re.fullmatch("[!-~]+", address) or set(address) & set("@?#\\"):
        return False
    try:
        parts = urlsplit(address)
        parts.port, (parts.hostname or "").encode("idna")
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def give_up() -> None:
    """What `silent` is unless said otherwise: nothing may pass for `every` seconds."""
    raise TimeoutError("nothing is heard")


class Exchange:
    """One connection to one address, made when it is needed. What is asked may be asked twice without harm."""

    def __init__(self, address: str) -> None:
        self._parts = urlsplit(address)
        self._connection: http.client.HTTPConnection | None = None
        self._used, self._process = 0.0, os.getpid()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None, *, most: int,
        connect: float, every: float, until: float, silent: Callable[[], None] = give_up,
    ) -> tuple[int, bytes]:  # fmt: skip
        """(status, content) of one request; `most` bytes of content, a longer one is refused.

        Raises OSError or HTTPException where there is no whole reply.
        """
        # After a fork the other process reads what comes there, too.
        if time.monotonic() - self._used > _IDLE_SECONDS or os.getpid() != self._process:
            self.close()
            self._process = os.getpid()
        known = self._connection is not None
        try:
            try:
                return self._once(method, path, body, headers, most, connect, _Watch(every, until, silent))
            except (ConnectionError, http.client.BadStatusLine):
                if not known:
                    raise
            # It was closed meanwhile, which says nothing about who is there.
            self.close()
            return self._once(method, path, body, headers, most, connect, _Watch(every, until, silent))
        except BaseException:
            self.close()
            raise

    def _once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None, most: int, connect: float,
        watch: "_Watch",
    ) -> tuple[int, bytes]:  # fmt: skip
        connection = self._connection
        if connection is None or connection.sock is None:  # also after a reply that ended the connection
            kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
            seconds = watch.left(connect)
            connection = self._connection = kind(self._parts.hostname or "", self._parts.port, timeout=seconds)
            connection.connect()
            connection.sock = _Socket(connection.sock)
        watched: Any = connection.sock
        watched.watch = watch
        connection.request(method, self._parts.path.rstrip("/") + path, body, dict(headers or {}))
        with closing(connection.getresponse()) as reply:
            content = reply.read(most + 1)
            if len(content) > most:
                raise TooLongError
            if not reply.chunked and reply.length != 0:  # `read` is silent on what is missing, or on where the end is
                raise http.client.IncompleteRead(content, reply.length)
        self._used = time.monotonic()
        if reply.will_close:
            self.close()
        return reply.status, content


class _Watch:
    """How long one request may wait."""

    def __init__(self, every: float, until: float, silent: Callable[[], None]) -> None:
        self._every, self._until, self._silent = every, until, silent

    def left(self, most: float) -> float:
        """The seconds that are left, or `most` if they are more."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("this takes too long")
        return min(left, most)

    def wait(self, sock: socket.socket, work: Callable[[], int]) -> int:
        """How many bytes passed, once some did."""
        while True:
            sock.settimeout(self.left(self._every))
            try:
                return work()
            except TimeoutError:
                self._silent()


class _Socket:
    """As much of a socket as `http.client` uses, in which each wait is watched."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.watch = _Watch(0, 0, give_up)

    def sendall(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            piece = left[:_PIECE]
            left = left[self.watch.wait(self._sock, partial(self._sock.send, piece)) :]

    def makefile(self, *_: Any) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self._sock, self.watch))

    def close(self) -> None:
        self._sock.close()


class _Reader(io.RawIOBase):
    """What comes in. It holds the socket open until it is closed itself, since a last reply is read after the rest."""

    def __init__(self, sock: socket.socket, watch: _Watch) -> None:
        self._sock, self._watch, self._held = sock, watch, sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._watch.wait(self._sock, partial(self._sock.recv_into, buffer))

    def close(self) -> None:
        self._held.close()
        super().close()

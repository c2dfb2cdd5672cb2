"""Connections that get on: a handshake, the head of a request and the reading of a reply have a deadline, as bodies do.

Without it a client that sends half a head, or never reads its reply, holds memory for as long as it likes. There are so
many connections at most, and one that waits for a request gives way to a new one, first of the address that holds most:
who holds many keeps nobody else out.
"""

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections import Counter
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import get_remote_addr

#: From the beginning of a connection, or the end of its last reply, to the whole head of a request.
HEAD_SECONDS = 10.0
#: Within this time something of a reply is read.
READING_SECONDS = 30.0
#: Connections of a process at a time, far below the 1,024 files that a system usually lets it open.
MOST = 512


class WatchedConnection(H11Protocol):
    """A connection of uvicorn that is ended when its client is too slow."""

    _waiting: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._make_room()
        self._expect_head()

    def _make_room(self) -> None:
        """Of the address that holds most connections the one ends that waits longest; this one if none waits."""
        if len(self.connections) > MOST:
            several = [one for one in self.connections if isinstance(one, WatchedConnection)]
            held = Counter(one.address for one in several)
            # A timer is set when the waiting begins; this connection has none yet.
            idle = [(one, one._waiting) for one in several if one.is_idle]
            waits = {one: (-held[one.address], timer.when()) for one, timer in idle if timer is not None}
            min(waits, key=waits.__getitem__, default=self).transport.abort()

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect_head()

    def _expect_head(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = self.loop.call_later(HEAD_SECONDS, self._check_head)

    @property
    def is_idle(self) -> bool:
        """A request whose head is there has a cycle that is not complete, and its own deadlines."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def _check_head(self) -> None:
        if self.is_idle:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reading is not None:
            self._reading.cancel()

    def _expect_reading(self) -> None:
        self._reading = self.loop.call_later(
            READING_SECONDS, self._check_reading, self.transport.get_write_buffer_size()
        )

    def _check_reading(self, before: int) -> None:
        if self.transport.get_write_buffer_size() >= before:
            self.transport.abort()
        else:
            self._expect_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.leave()
        super().connection_lost(exc)

    def leave(self) -> None:
        """It is over, and counts no more."""
        self.connections.discard(self)
        for timer in (self._waiting, self._reading):
            if timer is not None:
                timer.cancel()


class SecureConnection(WatchedConnection):
    """The same by TLS. It counts from its first moment: asyncio tells of connections whose handshake is done."""

    def __init__(self, context: ssl.SSLContext, **named: Any) -> None:
        super().__init__(**named)
        self._context = context

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if transport.get_extra_info("sslcontext") is not None:
            super().connection_made(transport)
            return
        self.transport, self.client = transport, get_remote_addr(transport)
        self.connections.add(self)
        self._make_room()
        self._expect_head()
        handshake = _Handshake(self, self._context)
        transport.set_protocol(handshake)
        handshake.connection_made(transport)


class _Handshake(SSLProtocol):
    """Tells a connection of its end also where the handshake was never done."""

    def __init__(self, held: SecureConnection, context: ssl.SSLContext) -> None:
        super().__init__(held.loop, held, context, None, server_side=True, ssl_handshake_timeout=HEAD_SECONDS)  # type: ignore[arg-type]
        self._held = held

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._held.leave()

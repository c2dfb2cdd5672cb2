"""Connections that get on: the head of a request and the reading of a reply have a deadline, as bodies have theirs.

Without it a client that sends half a head, or never reads its reply, holds memory for as long as it likes. There are so
many connections at most, and one that waits for a request gives way to a new one: who holds many keeps nobody out.
"""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

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
        if len(self.connections) > MOST:
            # Those that wait longest stand first: a timer is set when the waiting begins.
            idle = [one for one in self.connections if isinstance(one, WatchedConnection) and one.is_idle]
            waits = {one: one._waiting.when() for one in idle if one._waiting is not None}
            min(waits, key=waits.__getitem__, default=self).transport.abort()
        self._expect_head()

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
        for timer in (self._waiting, self._reading):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

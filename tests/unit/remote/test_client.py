"""A client whose address leads to something that is no gateway, or to one behind a proxy that speaks for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

import epsilons as eps
from epsilons.remote.client import Connection
from epsilons.remote.keys import make_key

#: What is replied next: (status, body).
Reply = tuple[int, bytes]


@pytest.fixture
def elsewhere() -> Iterator[Callable[[Reply], Connection]]:
    """A connection to what replies the same to everything."""
    replied: list[Reply] = []

    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            status, body = replied[-1]
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _reply  # noqa: N815 - the names that it looks for

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()

        def connect(reply: Reply) -> Connection:
            replied.append(reply)
            return eps.connect(f"http://127.0.0.1:{server.server_port}", key=make_key(), patience=0)

        yield connect
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("body", [b"<html>Welcome to our wifi</html>", b"[]", b"3", b"null", b'"datasets"', b"\xff"])
def test_what_is_no_gateway_is_said_to_be_none(elsewhere: Callable[[Reply], Connection], body: bytes) -> None:
    asked: list[Callable[[Connection], object]] = [
        lambda here: here.datasets(),
        lambda here: here.dataset("wages"),
        lambda here: here.request("POST", "/v1/datasets/wages/ask", {}, once="one"),
    ]
    for status in (200, 202):
        for ask in asked:
            with elsewhere((status, body)) as here, pytest.raises(eps.ProtocolError, match="none of a gateway"):
                ask(here)


def test_a_refusal_that_is_none_of_ours_is_told_by_its_status(elsewhere: Callable[[Reply], Connection]) -> None:
    for status in (301, 404, 502):
        told = f"refused with status {status}"
        with elsewhere((status, b"<html>Bad gateway</html>")) as here, pytest.raises(eps.ProtocolError, match=told):
            here.datasets()
    with elsewhere((503, b"")) as here, pytest.raises(eps.ProtocolError, match="No answer"):
        here.datasets()

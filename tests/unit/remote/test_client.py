"""A client whose address leads to something that is no gateway, or to one behind a proxy that speaks for it."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from socket import create_server
from typing import Any

import pytest

import epsilons as eps
from epsilons.remote import client
from epsilons.remote.client import Connection
from epsilons.remote.keys import make_key
from support.certificates import self_signed

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


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:99999", "http://127.0.0.1:x", "https://[", "https://this.one@elsewhere",
     "https://stats.example.org?a", f"https://{'a' * 70}.org", "https://stätte.example.org", "stats.example.org", 3],
)  # fmt: skip
def test_an_address_that_cannot_be_spoken_to_is_refused_at_once(address: Any) -> None:
    with pytest.raises(eps.ProtocolError, match="no address of a gateway"):
        eps.connect(address, key=make_key())


def test_a_gateway_that_was_stopped_is_told_of_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its system goes on taking connections, and says nothing."""
    monkeypatch.setattr(client, "_SECONDS_FOR_A_SIGN", 0.1)
    with create_server(("127.0.0.1", 0)) as stopped:
        began = time.monotonic()
        here = eps.connect(f"http://127.0.0.1:{stopped.getsockname()[1]}", key=make_key(), patience=0.5)
        with here, pytest.raises(eps.ProtocolError, match="No answer"):
            here.datasets()
        assert time.monotonic() - began < 20


def test_a_gateway_that_is_at_work_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says beside that it is there, and without the key that it would have to look up."""
    monkeypatch.setattr(client, "_SECONDS_FOR_A_SIGN", 0.2)
    seen: list[tuple[str, str | None]] = []

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.path, self.headers["authorization"]))
            if self.path == "/v1/datasets":
                time.sleep(1)
            body = b'{"datasets": ["wages"]}'
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        with eps.connect(f"http://127.0.0.1:{server.server_port}", key=make_key(), patience=0) as here:
            assert here.datasets() == ["wages"]
        server.shutdown()
        thread.join()
    assert ("/v1/me", None) in seen
    assert [path for path, _ in seen].count("/v1/datasets") == 1


def test_a_certificate_that_does_not_hold_is_named(tmp_path: Path) -> None:
    """It will not hold a minute later either."""
    certificate, key = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        began = time.monotonic()
        told = "does not hold: self-signed certificate.* SSL_CERT_FILE"
        here = eps.connect(f"https://127.0.0.1:{server.server_port}", key=make_key())
        with here, pytest.raises(eps.ProtocolError, match=told):
            here.datasets()
        assert time.monotonic() - began < 20
        thread.join()

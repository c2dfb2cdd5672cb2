"""What every service shares: replies and refusals in one shape, bodies of a limited size, and the server that listens.

Errors have one shape: RFC 9457, application/problem+json.
"""

import asyncio
import importlib.util
import json
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from epsilons.errors import Argument, EpsilonsError, PlanError, Unusable
from epsilons.remote.problems import write_problem

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


#: So long requests may go on after a server was told to end.
_LAST_SECONDS = 30


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes
    media_type: str = "application/octet-stream"
    headers: tuple[tuple[str, str], ...] = ()

    async def send(self, send: Send) -> None:
        """Answer a request with it."""
        headers = [(b"content-type", self.media_type.encode()), (b"content-length", b"%d" % len(self.body))]
        if self.status in (401, 403, 408, 413, 429, 503):
            # What is left of the request is not read, so the connection cannot be used again.
            headers += [(b"connection", b"close")]
        if self.status == 401:
            headers += [(b"www-authenticate", b"Bearer")]
        headers += [(name.encode(), value.encode()) for name, value in self.headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


async def read_body(
    receive: Receive, headers: Mapping[bytes, bytes], most: int, *, seconds: float | None = None,
    hold: Callable[[int], bool] = lambda _: True,
) -> bytes | Reply:  # fmt: skip
    """The body, or why there is none: said as soon as it is known to be too large.

    `seconds` is how long it may take to arrive. `hold` is told how much has arrived, and says whether there is room.
    """
    told, too_large = headers.get(b"content-length", b"0"), f"At most {most:,} bytes."
    if not told.isdigit() or int(told) > most:
        return problem(413, "The request is too large.", too_large)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":  # half a list of ids must not pass for a list
                    return problem(400, "The request ended too early.")
                body += message.get("body", b"")
                if len(body) > most:
                    return problem(413, "The request is too large.", too_large)
                if not hold(len(body)):
                    return busy()
                if not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        return problem(408, "The request took too long to arrive.", f"At most {seconds:g} seconds.")


def busy() -> Reply:
    """There is no room for a request just now; the sender tries again."""
    title, detail = "Too much is going on here.", "Nothing was acknowledged; the request may be sent again."
    return problem(503, title, detail, headers=(("retry-after", "1"),))


async def live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return


def as_json(document: Any) -> Reply:
    return Reply(200, json.dumps(document).encode(), "application/json")


def problem(
    status: int, title: str, detail: str = "", *, headers: tuple[tuple[str, str], ...] = (), **more: Any
) -> Reply:
    document = {"type": "about:blank", "title": title, "status": status, **({"detail": detail} if detail else {})}
    # Half of a pair of surrogates, quoted from a request, is written as JSON escapes it.
    body = json.dumps(document | more, ensure_ascii=False).encode(errors="backslashreplace")
    return Reply(status, body, "application/problem+json", headers)


#: By the kind or the code of an error, which is stable; any other error of ours is the sender's.
_STATUS = {"QuotaError": 429, "budget": 409, "ledger": 409}


def refuse(error: EpsilonsError, whole: bool = False) -> Reply:
    """An error of ours as a reply, from which a client makes the same error again.

    Where what the server keeps is at fault, that is told as a `whole` only to those whose it is: it may name files.
    """
    unusable = isinstance(error, Unusable)
    if unusable and not whole:
        told = "What was charged stands; the same request again goes on from there."
        return problem(503, "This cannot be used just now, whatever is asked.", told, headers=(("retry-after", "5"),))
    about = write_problem(error)
    status = next((_STATUS[one] for one in (about["kind"], error.code) if one in _STATUS), 422)
    return problem(503 if unusable else status, error.what, error.rule, **about)


def listen(host: str, port: int) -> socket.socket:
    """A socket, which keeps connections waiting until a server takes them; port 0 takes any free one."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        raise PlanError(f"The port cannot be used: {error.strerror}.", suggest=("another ", Argument("port"))) from None
    # Connections wait in the socket's queue from here on, until a server takes them.
    listening.listen(1024)
    return listening


def name_address(host: str, listening: socket.socket, certificate: str | None) -> str:
    """Where a socket is reached."""
    name = f"[{host}]" if ":" in host else host
    return f"{'https' if certificate else 'http'}://{name}:{listening.getsockname()[1]}"


def serve(app: App, host: str, port: int, ready: Callable[[str], None], **https: str | None) -> None:
    """Listen until interrupted. `ready` gets the address once the socket is bound."""
    check_server()
    listening = listen(host, port)
    ready(name_address(host, listening, https["certificate"]))
    run(app, listening, **https)


def check_server() -> None:
    """Refuse, with what to install, where there is no web server."""
    if importlib.util.find_spec("uvicorn") is None:
        raise PlanError("A server needs uvicorn.", suggest="pip install 'epsilons[service]'")


def run(app: App, listening: socket.socket, certificate: str | None = None, certificate_key: str | None = None) -> None:
    """Take connections of a socket until interrupted."""
    import uvicorn

    from epsilons.service.connections import SecureConnection, WatchedConnection

    quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False, "lifespan": "off"}
    # What a client says of its own address is not believed: limits go by it.
    quiet |= {"loop": "asyncio", "ws": "none", "proxy_headers": False, "timeout_graceful_shutdown": _LAST_SECONDS}
    connection: Any = WatchedConnection
    if certificate is not None:
        connection = partial(SecureConnection, _read_certificate(certificate, certificate_key))
    uvicorn.Server(uvicorn.Config(_read_once(app), **quiet, http=connection)).run(sockets=[listening])


def _read_once(app: App) -> App:
    """Refuse a body whose end is told in two ways.

    A proxy may go by the other one: then the rest of somebody's body would be the next one's request.
    """

    async def check(scope: Scope, receive: Receive, send: Send) -> None:
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
            rule, last = "Content-Length or Transfer-Encoding, not both.", (("connection", "close"),)
            await problem(400, "The length of this request is told twice.", rule, headers=last).send(send)
        else:
            await app(scope, receive, send)

    return check


def _read_certificate(certificate: str, key: str | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError):
        rule = "Two files in PEM that belong together; the key without a password."
        raise PlanError("The certificate or its key cannot be used.", rule=rule) from None
    return context

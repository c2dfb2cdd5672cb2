"""Starts a server on a socket that is bound before anything is said, so that whoever waits knows where it listens."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from epsilons.errors import PlanError


def serve(
    app: Any,
    host: str,
    port: int,
    *,
    certificate: str | None = None,
    certificate_key: str | None = None,
    ready: Callable[[str], None],
) -> None:
    """Listen until interrupted; `ready` hears the address. Port 0 takes any free one."""
    try:
        import uvicorn
    except ImportError:
        raise PlanError("A server needs uvicorn.", suggest="pip install 'epsilons[service]'") from None
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        raise PlanError(f"Nothing can listen there: {error.strerror}.", suggest="another --port") from None
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ssl_certfile=certificate,
        ssl_keyfile=certificate_key,
    )
    scheme = "https" if certificate else "http"
    name = f"[{host}]" if ":" in host else host
    # Connections wait in the socket's queue from here on, until the server takes them.
    listening.listen(1024)
    ready(f"{scheme}://{name}:{listening.getsockname()[1]}")
    uvicorn.Server(config).run(sockets=[listening])

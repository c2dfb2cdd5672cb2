"""Errors over HTTP: one shape (RFC 9457, application/problem+json), one place that says which status."""

from __future__ import annotations

import json
from typing import Any

from epsilons.collection.refusals import (
    MalformedError,
    OutOfOrderError,
    UnavailableError,
    UnknownCollectionError,
)
from epsilons.errors import EpsilonsError

MEDIA_TYPE = "application/problem+json"

#: The first kind that fits decides; any other error of ours is the sender's, 422.
STATUS: tuple[tuple[type[EpsilonsError], int], ...] = (
    (UnknownCollectionError, 404),
    (OutOfOrderError, 409),
    (UnavailableError, 503),
    (MalformedError, 422),
    (EpsilonsError, 422),
)


def status_of(error: EpsilonsError) -> int:
    """The HTTP status of an error."""
    return next(status for kind, status in STATUS if isinstance(error, kind))


def problem(status: int, title: str, detail: str = "", **more: Any) -> bytes:
    """The body that goes with a status."""
    document = {
        "type": "about:blank",
        "title": title,
        "status": status,
        **({"detail": detail} if detail else {}),
        **more,
    }
    return json.dumps(document, ensure_ascii=False).encode()


def problem_of(error: EpsilonsError) -> tuple[int, bytes]:
    """An error of ours as status and body."""
    status = status_of(error)
    return status, problem(
        status, error.what, error.rule, code=error.code, **({"hint": error.hint} if error.hint else {})
    )

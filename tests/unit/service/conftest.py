"""A gateway for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from epsilons.service import clock
from support.gateways import Gateway, declare


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(clock, "LEAST", 0.0)
        made = Gateway(declare(tmp_path_factory.mktemp("gateway")))
        yield made
        made.close()

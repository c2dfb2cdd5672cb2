"""Figure 12 by somebody else's reading of the OpenAPI document: schemathesis makes requests that it allows, and others.

Hypothesis draws them. The document is right as far as this shows: what it names can be made up and sent.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from epsilons.service import clock
from epsilons.service.routes import ROUTES
from support.gateways import Gateway, Seen, declare

schemathesis = pytest.importorskip("schemathesis", reason="SCHEMATHESIS IS MISSING: pip install -e '.[dev]'")
#: What the document leaves open: a dataset that is there, a name that has a key, a job's form.
KNOWN = {"name": "wages", "analyst": "office", "job": "0" * 32, "number": 1}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    monkeypatch.setattr(clock, "LEAST", 0.0)
    monkeypatch.setattr(clock, "EACH_QUESTION", 0.0)
    made = Gateway(declare(tmp_path))
    yield made
    made.close()


def check(seen: Seen, about: Any) -> None:
    assert seen.status < 500, (about, seen.body)
    kind = seen.headers["content-type"].partition(";")[0]
    if seen.status >= 300:
        assert kind == "application/problem+json", about
        assert {"title", "status"} <= set(seen.document)
    elif seen.status != 204:
        assert kind in ("application/json", "text/plain", "text/html"), about


def send_described(here: Gateway, examples: int, **how: Any) -> Counter[tuple[str, int]]:
    """How often which way gave which status. Everyone sends in turn, two of three times to what is there."""
    roles = itertools.cycle(
        [here.keys.add("office", "analyst"), here.keys.add("city", "steward"), None,
         here.keys.add("ann", "person", "wages", "person 3"), here.keys.add("watch", "operator")]
    )  # fmt: skip
    numbers, found = itertools.count(), Counter[tuple[str, int]]()
    quick = settings(max_examples=examples, database=None, deadline=None, suppress_health_check=[*HealthCheck], **how)

    def attack(operation: Any, mode: Any) -> None:
        @quick
        @given(operation.as_strategy(generation_mode=mode))
        def send(case: Any) -> None:
            number = next(numbers)
            if number % 3:
                case.path_parameters = {name: KNOWN[name] for name in case.path_parameters or {}}
            headers = {name: value for name, value in (case.headers or {}).items() if name != "Authorization"}
            once = headers.pop("Idempotency-Key", None) or f"described-{number}"
            body = None if isinstance(case.body, schemathesis.core.NotSet) else case.body
            sendable = {name.lower(): value for name, value in headers.items() if f"{name}{value}".isascii()}
            path, key = case.formatted_path, next(roles)
            query = urlencode(case.query or {}, doseq=True, errors="replace")
            sent = here(case.method, path, body, key, once if once.isascii() else "x", sendable, query)
            check(sent, (case.method, path, body, headers))
            found[operation.definition.raw["operationId"], sent.status] += 1

        try:
            send()
        except Unsatisfiable:
            assert not operation.path_parameters, "nothing can be wrong about a way that takes nothing"

    document = here("GET", "/v1/openapi.json").document
    for one in schemathesis.openapi.from_dict(document).get_all_operations():
        for mode in schemathesis.GenerationMode:
            attack(one.ok(), mode)
    assert {name for name, _ in found} == {route.name for route in ROUTES}
    return found


def test_what_the_document_allows_and_what_it_does_not_is_never_a_fault(here: Gateway) -> None:
    found = send_described(here, 6, derandomize=True)
    assert {status for _, status in found} >= {200, 204, 401, 403, 404, 422}
    taken = {name for name, status in found if status < 300}
    assert len(taken) > len(ROUTES) // 2, "what it allows can be done"


@pytest.mark.soak
@pytest.mark.figure("figure_12_gateway")
def test_ten_thousand_described_requests(here: Gateway, record_property: Any) -> None:
    sent = send_described(here, 200).total()
    assert sent >= 10_000
    record_property("size", sent)

"""Requests made from an OpenAPI document by schemathesis: such as it allows, and others. Hypothesis draws them."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable


@dataclass(frozen=True)
class Sent:
    """A request; `number` counts them."""

    number: int
    method: str
    path: str
    query: str
    body: bytes | None
    headers: Mapping[str, str]


#: Status, headers and body.
Reply = tuple[int, Mapping[str, str], bytes]


def attack(
    document: Any, send: Callable[[Sent], Reply], examples: int, known: Mapping[str, Any], **how: Any
) -> Counter[tuple[str, int]]:
    """How often which way gave which status; none fails. Two of three times `known` fills the path."""
    schemathesis = pytest.importorskip("schemathesis", reason="SCHEMATHESIS IS MISSING: pip install -e '.[dev]'")
    numbers, found = itertools.count(), Counter[tuple[str, int]]()
    quick = settings(max_examples=examples, database=None, deadline=None, suppress_health_check=[*HealthCheck], **how)

    def attack_one(operation: Any, mode: Any) -> None:
        @quick
        @given(operation.as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            number = next(numbers)
            if number % 3:
                case.path_parameters = {name: known[name] for name in case.path_parameters or {}}
            headers = {name: value for name, value in (case.headers or {}).items() if f"{name}{value}".isascii()}
            body = None if isinstance(case.body, schemathesis.core.NotSet) else case.body
            content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            query = urlencode(case.query or {}, doseq=True, errors="replace")
            sent = Sent(number, case.method, case.formatted_path, query, content, headers)
            status, told, reply = send(sent)
            check(sent, status, told, reply)
            found[operation.definition.raw["operationId"], status] += 1

        try:
            ask()
        except Unsatisfiable:
            assert not operation.path_parameters, "nothing can be wrong about a way that takes nothing"

    for one in schemathesis.openapi.from_dict(document).get_all_operations():
        for mode in schemathesis.GenerationMode:
            attack_one(one.ok(), mode)
    ways = [way["operationId"] for path in document["paths"].values() for way in path.values()]
    assert {name for name, _ in found} == {*ways}
    assert len({*ways}) == len(ways)
    return found


def check(sent: Sent, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """No fault of its own, and refusals in one shape."""
    assert status < 500, (sent, body)
    kind = headers["content-type"].partition(";")[0]
    if status >= 300:
        assert kind == "application/problem+json", sent
        assert {"title", "status"} <= set(json.loads(body))
    elif status != 204:
        assert kind in ("application/json", "text/plain", "text/html", "application/octet-stream"), sent

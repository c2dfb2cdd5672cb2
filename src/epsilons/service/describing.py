"""OpenAPI documents: what those of all services have in common. Each is told by its service, at /v1/openapi.json."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

#: Where a service tells its document.
PLACE = "/v1/openapi.json"
_PART = re.compile(r"\(\?P<(\w+)>([^()]*)\)")
_PROBLEM = {
    "type": "object",
    "required": ["title", "status"],
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "Stable: preference, data, plan, budget, ledger, protocol."},
        "hint": {"type": "string"},
    },
}


def describe_service(
    title: str, ways: Sequence[tuple[str, str, dict[str, Any]]], schemas: Mapping[str, Any], security: Mapping[str, Any]
) -> dict[str, Any]:
    """The document; `ways` are method, path as an expression that names each part that varies, and operation."""
    paths: dict[str, dict[str, Any]] = {}
    for method, path, operation in ways:
        paths.setdefault(_PART.sub(r"{\1}", path), {})[method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1"},
        "paths": paths,
        "components": {"schemas": {**schemas, "Problem": _PROBLEM}, "securitySchemes": dict(security)},
    }


def list_parts(path: str, kinds: Mapping[str, Mapping[str, Any]] | None = None) -> list[dict[str, Any]]:
    """The parts of a path that vary, as text of their form, or of these kinds."""
    found = [
        (name, (kinds or {}).get(name, {"type": "string", "pattern": f"^{form}$"}))
        for name, form in _PART.findall(path)
    ]
    return [{"name": name, "in": "path", "required": True, "schema": kind} for name, kind in found]


def describe_way(
    name: str,
    about: str,
    parameters: Sequence[Mapping[str, Any]] = (),
    *,
    who: str = "For everyone.",
    body: tuple[str, Mapping[str, Any]] | None = None,
    gives: str | None = "application/json",
    later: str = "",
    security: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """An operation; `body` is what it takes, as media type and schema, `gives` the media type of its reply.

    `later` is what it says with 202 where that has to be waited for.
    """
    refusal = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    given = {"description": "What was asked for.", "content": {} if gives is None else {gives: {}}}
    refused = {"description": "A refusal; nothing private is part of it.", "content": refusal}
    waits = {"202": {"description": later, "content": {"application/json": {}}}} if later else {}
    taken = {} if body is None else {"requestBody": {"required": True, "content": {body[0]: {"schema": body[1]}}}}
    return {
        "operationId": name,
        "summary": about,
        "description": who,
        "security": list(security),
        "parameters": list(parameters),
        "responses": {"204" if gives is None else "200": given, **waits, "default": refused},
        **taken,
    }

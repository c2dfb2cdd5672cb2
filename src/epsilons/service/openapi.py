"""What a gateway takes and gives, as an OpenAPI document: made from its routes and from the catalogue of statistics."""

import re
from collections.abc import Iterable
from typing import Any

from epsilons.arguments.options import QUERIES, TABLES, options_of
from epsilons.arguments.reading import list_arguments
from epsilons.service.gateway import Route
from epsilons.statistics.catalogue import CATALOGUE

#: What the parts of a path are called that vary, in order.
_PARTS = ("name", "number", "job")
#: What a server knows by itself.
_APART = ("analyst", "entropy")
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
_ANSWERS = {"200": "What was asked for.", "default": "A refusal; nothing private is part of it."}


def describe_routes(routes: Iterable[Route]) -> dict[str, Any]:
    """The document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        names = iter(_PARTS if route.name != "job" else ("job",))
        path = re.sub(r"\((?:[^()])*\)", lambda _, names=names: f"{{{next(names)}}}", route.path)  # type: ignore[misc]
        paths.setdefault(path, {})[route.method.lower()] = _describe(route, path)
    schemas = {"Question": _question(), "Level": _level(), "Problem": _PROBLEM}
    security = {"key": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "epsilons gateway", "version": "1"},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": security},
    }


def _describe(route: Route, path: str) -> dict[str, Any]:
    places = [{"name": part, "in": "path", "required": True, "schema": {"type": "string"}} for part in _PARTS]
    taken: list[dict[str, Any]] = [place for place in places if f"{{{place['name']}}}" in path]
    if route.name == "ask":
        key = {"type": "string", "maxLength": 200}
        taken.append({"name": "Idempotency-Key", "in": "header", "required": True, "schema": key})
        told = "respond-async, wait=2: 202 and the address of a job, if there is no answer after two seconds."
        taken.append({"name": "Prefer", "in": "header", "schema": {"type": "string"}, "description": told})
    found: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.about,
        "description": "For everyone." if route.open else f"For keys of role {', '.join(sorted(route.roles))}.",
        "security": [] if route.open else [{"key": []}],
        "parameters": taken,
        "responses": {
            "200": {"description": _ANSWERS["200"], "content": {"application/json": {}}},
            "default": {
                "description": _ANSWERS["default"],
                "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            },
        },
    }
    if route.method != "GET":
        body = "Question" if route.name in ("ask", "plan") else "Level"
        content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{body}"}}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _question() -> dict[str, Any]:
    """A statistic, a query, or several of both for one share."""
    single = [_statistic(name) for name in CATALOGUE]
    options = {option.name: {"description": option.help} for option in options_of(QUERIES).values()}
    own = {name: {"description": "By column."} for name in ("bounds", "keys")}
    query = _object({"sql": {"type": "string"}, "arguments": _named({"share": {}, **own, **options})}, ["sql"])
    several = {"type": "array", "items": {"oneOf": [*single, query]}}
    return {"oneOf": [*single, query, _object({"questions": several, "share": {"type": "number"}}, ["questions"])]}


def _statistic(name: str) -> dict[str, Any]:
    entry = CATALOGUE[name]
    taken = {one.name: {"description": one.help} for one in list_arguments(entry, TABLES).all.values()}
    made = _object({"statistic": {"const": name}, "arguments": _named(taken), "planned": {}}, ["statistic"])
    return {"title": name, "description": entry.help, **made}


def _level() -> dict[str, Any]:
    return _object({"level": {"description": "The name of a level, or an epsilon."}}, ["level"])


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


def _named(arguments: dict[str, Any]) -> dict[str, Any]:
    kept = {name: about for name, about in arguments.items() if name not in _APART}
    return {"type": "object", "properties": kept, "additionalProperties": False}

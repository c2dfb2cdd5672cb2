"""What a gateway takes and gives, as an OpenAPI document: made from its routes and from the catalogue of statistics."""

from collections.abc import Iterable
from typing import Any

from epsilons.arguments.options import QUERIES, TABLES, options_of
from epsilons.arguments.reading import list_arguments
from epsilons.service.describing import describe_service, describe_way, list_parts
from epsilons.service.gateway import Route
from epsilons.service.keys import PERSON, ROLES
from epsilons.service.sessions import MOST_DAYS
from epsilons.statistics.catalogue import CATALOGUE

#: What a server knows by itself.
_APART = ("analyst", "entropy")
#: Of ways that give something else than JSON.
_MEDIA: dict[str, str | None] = {"metrics": "text/plain", "leave": None}
#: What ways say whose answer may come later.
_LATER = dict.fromkeys(("ask", "job"), "Not yet: how far it is, and the address of the job.")


def describe_routes(routes: Iterable[Route]) -> dict[str, Any]:
    """The document."""
    ways = [(route.method, route.path, _describe(route)) for route in routes if not route.page]
    cookie = {"type": "apiKey", "in": "cookie", "name": "__Host-epsilons"}
    security = {"key": {"type": "http", "scheme": "bearer"}, "cookie": cookie}
    return describe_service("epsilons gateway", ways, {"Question": _question(), **_bodies()}, security)


def _describe(route: Route) -> dict[str, Any]:
    text = {"type": "string"}
    kinds = {"number": {"type": "integer"}, "name": text, "analyst": text, "job": text}
    taken = list_parts(route.path, kinds)
    taken += [{"name": name, "in": "query", "schema": text} for name in route.query]
    if PERSON in route.roles and route.method != "GET":
        told = "With a cookie: the word that GET /v1/me tells."
        taken.append({"name": "X-CSRF-Token", "in": "header", "description": told, "schema": text})
    if route.name == "ask":
        key = {"type": "string", "maxLength": 200}
        taken.append({"name": "Idempotency-Key", "in": "header", "required": True, "schema": key})
        told = "respond-async, wait=2: 202 and the address of a job, if there is no answer after two seconds."
        taken.append({"name": "Prefer", "in": "header", "schema": text, "description": told})
    body = None if route.body is None else ("application/json", {"$ref": f"#/components/schemas/{route.body}"})
    return describe_way(
        route.name,
        route.about,
        taken,
        who="For everyone." if route.open else f"For keys of role {', '.join(sorted(route.roles))}.",
        body=body,
        gives=_MEDIA.get(route.name, "application/json"),
        later=_LATER.get(route.name, ""),
        security=[] if route.open else [{"key": []}, *([{"cookie": []}] if PERSON in route.roles else [])],
    )


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


def _bodies() -> dict[str, Any]:
    """What every other way takes."""
    text, whole, yes = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
    some: dict[str, Any] = {"type": ["number", "null"], "minimum": 0}
    person: dict[str, Any] = {"type": ["string", "integer"], "description": "An id, as it stands in the data."}
    level = {"type": ["string", "number"], "description": "The name of a level, or an epsilon."}
    anew = {**yes, "description": "After a loss of records: granted anew, on top of whatever was used before."}
    pair = {"type": "array", "prefixItems": [person, level], "items": False, "minItems": 2}
    key = {"name": text, "role": {"enum": list(ROLES)}, "dataset": text, "person": person}
    return {
        "Nothing": _closed({}),
        "Entering": _closed({"link": text}),
        "Level": _closed({"level": level, "anew": anew}, 1),
        "Levels": _closed({"levels": {"type": "array", "items": pair}, "anew": anew}, 1),
        "Withdrawing": _closed({"people": {"type": "array", "items": person}}),
        "Registering": _closed({"confirm": yes, "loosen": {**whole, "type": ["integer", "null"]}, "redefine": yes}, 3),
        "Quota": _closed({"epsilon": some, "questions": {**some, "type": ["integer", "null"]}}),
        "Linking": _closed({"person": person, "days": {"type": "integer", "minimum": 1, "maximum": MOST_DAYS}}, 1),
        "Key": _closed(key, 2),
    }


def _closed(properties: dict[str, Any], optional: int = 0) -> dict[str, Any]:
    """An object of these parts and no others; the last ones may be left out."""
    required = list(properties)[: len(properties) - optional]
    return {**_object(properties, required), "additionalProperties": False}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


def _named(arguments: dict[str, Any]) -> dict[str, Any]:
    kept = {name: about for name, about in arguments.items() if name not in _APART}
    return {"type": "object", "properties": kept, "additionalProperties": False}

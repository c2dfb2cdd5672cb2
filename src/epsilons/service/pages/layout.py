"""What every page shares: templates, headers, assets, refusals.

A page loads its own style, script and pictures and nothing else. Nothing in it is run or styled but from the two files
of `assets`, whose names hold their hash, so that browsers may keep them. Everything works without the script but the
personal link, whose secret is not sent before it is used; the script only spares a click here and there.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib import resources
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from epsilons.accuracy.relation import holds
from epsilons.display import show, show_count, show_key, show_span
from epsilons.errors import EpsilonsError, Unusable, printable
from epsilons.service.gateway import GatewayApp, Visit
from epsilons.service.keys import ANALYST, PERSON, STEWARD, Holder
from epsilons.service.serving import Reply, problem

_HTML = "text/html; charset=utf-8"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
#: Forms say where they come from, to this site alone.
_HEADERS = (("content-security-policy", _POLICY), ("referrer-policy", "same-origin"))
_KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
#: By role: where a visit begins, and what else there is.
HOMES = {PERSON: "/my", ANALYST: "/data", STEWARD: "/steward"}
_PLACES = {
    PERSON: (("/my", "My privacy"),),
    ANALYST: (("/data", "Datasets"),),
    STEWARD: (("/steward", "Overview"), ("/data", "Ask"), ("/keys", "Keys")),
}
#: (what it is called, where it is).
Json = Sequence[tuple[str, str]]


def _finish(value: Any) -> Any:
    """Text of others without marks that hide or turn it around; what is HTML already says so by a method."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else printable(value, keep="\n")


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("epsilons.service.pages"), autoescape=True, undefined=StrictUndefined, finalize=_finish,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {
        "show": show,
        "holds": holds,
        "part": partial(quote, safe=""),  # of an address: a name may have a slash
        "key": show_key,
        "count": show_count,
        "span": show_span,
        "day": _day,
        "moment": _moment,
    }
    made.globals |= {"asset": _name_asset}
    return made


def _day(at: str) -> str:
    return at[:10]


def _moment(at: str) -> str:
    return at[:16].replace("T", " ")


def show_page(visit: Visit, template: str, title: str, *, json: Json = (), status: int = 200, **named: Any) -> Reply:
    """A page, with its JSON."""
    text = _render(visit.holder, template, title, json, named)
    return Reply(status, text.encode(), _HTML, _HEADERS)


def _render(holder: Holder, template: str, title: str, json: Json, named: Mapping[str, Any]) -> str:
    places = _PLACES.get(holder.role, ())
    shared = {"holder": holder, "csrf": holder.csrf or "", "places": places, "title": title, "json": json}
    return _templates().get_template(template).render({**shared, **named})


def go_to(path: str, *headers: tuple[str, str]) -> Reply:
    """Another page: what was sent is not sent again when that is opened anew."""
    return Reply(303, b"", headers=(("location", path), *headers))


def keep_apart(error: EpsilonsError) -> EpsilonsError:
    """An error that the page which was sent may show. What the server keeps being at fault is told in one place."""
    if isinstance(error, Unusable):
        raise error
    return error


def show_refusal(refused: Reply, holder: Holder | None) -> Reply:
    """A refusal, which otherwise is JSON, as a page."""
    if refused.media_type != "application/problem+json":
        return refused
    told = json.loads(refused.body)
    found = {"what": told["title"], "rule": told.get("detail", ""), "hint": told.get("hint", "")}
    text = _render(holder or Holder(0, "", ""), "problem.html", "Not done", (), {"status": refused.status, **found})
    return Reply(refused.status, text.encode(), _HTML, (*refused.headers, *_HEADERS))


# Files of the package -------------------------------------------------------------------------------------------------


@cache
def _read_asset(file: str) -> tuple[str, bytes]:
    """(its name in an address, its bytes)."""
    content = resources.files("epsilons.service.pages").joinpath("assets", file).read_bytes()
    name, _, kind = file.partition(".")
    return f"{name}.{hashlib.sha256(content).hexdigest()[:12]}.{kind}", content


def _name_asset(file: str) -> str:
    return f"/assets/{_read_asset(file)[0]}"


async def send_asset(app: GatewayApp, visit: Visit) -> Reply:
    """One of the two files, by the name that its content has now."""
    for file in ("page.css", "page.js"):
        name, content = _read_asset(file)
        if visit.parts[0] == name:
            kept = (("cache-control", "public, max-age=31536000, immutable"),)
            return Reply(200, content, _KINDS[file.rpartition(".")[2]], kept)
    return problem(404, "There is nothing here.")


def to_plain(value: Any) -> Any:
    """What JSON has no form for is left out of a number's place: infinite is null."""
    if isinstance(value, Mapping):
        return {str(key): to_plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

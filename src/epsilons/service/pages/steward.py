"""What stewards see and do: the acts of the API, by the same code. No page shows a person's account."""

import json
import math
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from epsilons.engines.base import NUMBER
from epsilons.errors import EpsilonsError, PreferenceError, ProtocolError
from epsilons.measure import Measure
from epsilons.service import steward as acts
from epsilons.service.gateway import GatewayApp, Visit, of_dataset
from epsilons.service.holdings import Holding
from epsilons.service.keys import ANALYST, OPERATOR, STEWARD
from epsilons.service.pages import health
from epsilons.service.pages.analyst import api_of
from epsilons.service.pages.asking import FIELDS, list_choices, read_question
from epsilons.service.pages.charts import draw_change, draw_health
from epsilons.service.pages.layout import go_to, show_page, to_plain
from epsilons.service.serving import Reply, as_json

_DONE = {
    "registration": "Registered. The report below says what became of people.",
    "quota": "The quota is set.",
    "revocation": "It opens nothing any more.",
}
#: An id that is a number; of some thousand digits Python reads none.
_WHOLE = re.compile(r"-?[0-9]{1,20}")
#: From which level to which, and how many percent of those there.
MOVE = ("from", "to", "part")


def place_of(here: Holding) -> str:
    return f"/steward/{quote(here.name, safe='')}"


async def show_overview(app: GatewayApp, visit: Visit) -> Reply:
    """Every dataset at a glance."""
    shown = []
    for here in app.holdings.values():
        async with here.turns.short():
            found = await app.work(lambda here=here: here.refresh().describe())
        measure = Measure.of_text(found.measure)
        least = min(
            (measure.part(one.epsilon, one.least or 0) for one in found.levels if one.left is not None), default=1.0
        )
        shown.append({"name": here.name, "place": place_of(here), "about": found, "used": round(100 * (1 - least))})
    listed = (
        ("Datasets", "/v1/datasets"),
        *((name, f"/v1/datasets/{quote(name, safe='')}/ledger") for name in app.holdings),
    )
    return show_page(visit, "steward.html", "Overview", json=listed, shown=shown)


# A dataset ------------------------------------------------------------------------------------------------------------


@of_dataset
async def show_dataset(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    return await _show_dataset(app, visit, here)


@of_dataset
async def tell_dataset(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    async with here.turns.short():
        return as_json(to_plain(await app.work(lambda: health.tell_health(here.refresh()))))


async def _show_dataset(
    app: GatewayApp,
    visit: Visit,
    here: Holding,
    *,
    refused: EpsilonsError | None = None,
    status: int = 422,
    told: str = "",
    link: str = "",
) -> Reply:
    async with here.turns.short():
        found = await app.work(lambda: health.tell_health(here.refresh()))
    lines = health.list_lines(found)
    picture = await app.work(draw_health, found["spending"]["moments"], lines) if lines else None
    reports = [{**one, "rows": health.list_enrolment(one["enrolment"])} for one in found["registrations"]]
    listed = (
        ("Health", f"{api_of(here)}/health"), ("Ledger", f"{api_of(here)}/ledger"),
        ("History", f"{api_of(here)}/history"), ("Quotas", f"{api_of(here)}/quotas"),
    )  # fmt: skip
    told = told or _DONE.get(visit.fields.get("done", ""), "")
    named: dict[str, Any] = {
        "health": found,
        "levels": health.list_levels(found),
        "picture": picture,
        "reports": reports,
        "told": told,
    }
    named["measure"] = Measure.of_text(found["measure"])
    named |= {"refused": refused, "link": link, "place": place_of(here), "has_file": here.file is not None}
    return show_page(visit, "steward_dataset.html", here.name, json=listed, status=status if refused else 200, **named)


async def _act(
    app: GatewayApp, visit: Visit, here: Holding, act: Callable[[GatewayApp, Visit], Awaitable[Reply]],
    sent: Callable[[], Any], *parts: str,
) -> Reply | dict[str, Any]:  # fmt: skip
    """What the API would reply to the same; a refusal as the page that sent it."""
    try:
        body = json.dumps(sent()).encode()
        reply = await act(app, replace(visit, body=body, parts=(here.name, *parts)))
    except EpsilonsError as error:
        return await _show_dataset(app, visit, here, refused=error)
    done: dict[str, Any] = json.loads(reply.body)
    if reply.status != 200:
        refused = EpsilonsError(done["title"], rule=done.get("detail", ""))
        return await _show_dataset(app, visit, here, refused=refused, status=reply.status)
    return done


@of_dataset
async def register(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """What the dataset's file declares."""
    fields = visit.fields
    sent = {name: name in fields for name in ("confirm", "redefine")}
    done = await _act(app, visit, here, acts.register, lambda: {**sent, "loosen": _whole(fields.get("loosen", ""))})
    return done if isinstance(done, Reply) else go_to(f"{place_of(here)}?done=registration")


@of_dataset
async def change_quota(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    fields = visit.fields
    sent = lambda: {"epsilon": _real(fields.get("epsilon", "")), "questions": _whole(fields.get("questions", ""))}  # noqa: E731
    done = await _act(app, visit, here, acts.change_quota, sent, fields.get("analyst", ""))
    return done if isinstance(done, Reply) else go_to(f"{place_of(here)}?done=quota")


@of_dataset
async def verify(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """Recount the ledger, hash the snapshots."""
    done = await _act(app, visit, here, acts.verify, dict)
    if isinstance(done, Reply):
        return done
    unseen = [name for name, reached in done["snapshots"].items() if not reached]
    told = f"Recounted: {done['entries']:,} entries, {done['releases']:,} releases, {done['people']:,} people add up."
    told += f" Not reached from here: {', '.join(unseen)}." if unseen else " Every snapshot is as it was registered."
    return await _show_dataset(app, visit, here, told=told)


@of_dataset
async def issue_link(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """A personal link, which is shown this once."""
    fields, number = visit.fields, here.people._registry.person.family == NUMBER

    def sent() -> dict[str, Any]:
        person = fields.get("person", "").strip()
        if not (_WHOLE.fullmatch(person) if number else person):
            raise PreferenceError("This is no id.", rule="As it stands in the data.", suggest="17" if number else "ann")
        days = _whole(fields.get("days", ""))
        return {"person": int(person) if number else person, **({} if days is None else {"days": days})}

    done = await _act(app, visit, here, acts.issue_link, sent)
    return done if isinstance(done, Reply) else await _show_dataset(app, visit, here, link=done["link"])


def _real(text: str) -> float | None:
    try:
        found = float(text.replace(",", ".")) if text.strip() else None
    except ValueError:
        found = math.nan
    if found is not None and not math.isfinite(found):
        raise ProtocolError("This is not a number.", suggest="0.5, or nothing for no limit")
    return found


def _whole(text: str) -> int | None:
    if text.strip() and not (text.strip().isdecimal() and len(text) < 18):
        raise ProtocolError("This is not a whole number.", suggest="100, or nothing")
    return int(text) if text.strip() else None


# What a change of levels would do -------------------------------------------------------------------------------------


@of_dataset
async def show_change(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    asked = {name: visit.fields.get(name, "") for name in (*FIELDS, *MOVE)}

    def look() -> dict[str, Any]:
        people = here.refresh()
        levels = health.list_movable(people)
        found = {"levels": levels, "choices": list_choices(people._facts), "change": None, "why": None}
        if not all(asked[name] for name in MOVE):
            return found
        try:
            document = read_question(asked, people)
            change = health.tell_change(people, document, visit.holder.name, [asked[name] for name in MOVE])
        except EpsilonsError as error:
            return {**found, "why": error}
        return {**found, "change": change}

    async with here.turns.long():
        found = await app.work(look)
    change = found["change"]
    picture = await app.work(draw_change, change["errors"], change["assumption"]) if change else None
    query = urlencode({name: value for name, value in asked.items() if value})
    listed = (("Change", f"{api_of(here)}/what-if?{query}"),)
    named = {**found, "asked": asked, "picture": picture, "place": place_of(here)}
    return show_page(visit, "what_if.html", f"What if: {here.name}", json=listed, **named)


@of_dataset
async def tell_change(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    fields = visit.fields

    def look() -> dict[str, Any]:
        people = here.refresh()
        move = [fields.get(name, "") for name in MOVE]
        return health.tell_change(people, read_question(fields, people), visit.holder.name, move)

    async with here.turns.long():
        return as_json(to_plain(await app.work(look)))


# Keys -----------------------------------------------------------------------------------------------------------------


async def show_keys(app: GatewayApp, visit: Visit) -> Reply:
    return await _show_keys(app, visit)


async def _show_keys(app: GatewayApp, visit: Visit, *, refused: EpsilonsError | None = None, made: str = "") -> Reply:
    found = [one.to_dict() for one in await app.work(app.keys.list)]
    done = _DONE.get(visit.fields.get("done", ""), "")
    named = {"keys": found[::-1], "roles": (ANALYST, STEWARD, OPERATOR), "refused": refused, "made": made, "done": done}
    return show_page(visit, "keys.html", "Keys", json=(("Keys", "/v1/keys"),), status=422 if refused else 200, **named)


async def add_key(app: GatewayApp, visit: Visit) -> Reply:
    """A key, which is shown this once."""
    body = json.dumps({name: visit.fields.get(name, "") for name in ("name", "role")}).encode()
    try:
        reply = await acts.add_key(app, replace(visit, body=body))
    except EpsilonsError as error:
        return await _show_keys(app, visit, refused=error)
    return await _show_keys(app, visit, made=json.loads(reply.body)["key"])


async def revoke_key(app: GatewayApp, visit: Visit) -> Reply:
    """End a key or a link."""
    try:
        await acts.revoke_key(app, visit)
    except EpsilonsError as error:
        return await _show_keys(app, visit, refused=error)
    return go_to("/keys?done=revocation")

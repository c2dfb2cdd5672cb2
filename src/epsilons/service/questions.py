"""Questions at a gateway: one charge and the same bytes for the same request, however often it is sent.

A request with `Prefer: respond-async` is answered with 202 and the address of a job, once it has waited as long as it
says (`wait=2`); the job tells how far it is, and then what the request would have got. It is the same request: sent
again under its Idempotency-Key, it is charged once.
"""

import asyncio
import hashlib
import json
import math
import re
from typing import Any
from urllib.parse import quote

from epsilons.dataset.documents import Asked, is_alone
from epsilons.errors import EpsilonsError
from epsilons.service.clock import Ready
from epsilons.service.gateway import GatewayApp, Visit, find_holding
from epsilons.service.holdings import Holding
from epsilons.service.keys import STEWARD
from epsilons.service.limits import WAITING
from epsilons.service.replies import Noted, name_job
from epsilons.service.serving import Reply, as_json, problem, refuse

_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_WAIT = re.compile(r"wait=([0-9]{1,3})")


async def ask(app: GatewayApp, visit: Visit) -> Reply:
    """The answer, or where it will be found."""
    here, key = find_holding(app, visit), visit.headers.get(b"idempotency-key", b"").decode("latin-1")
    if isinstance(here, Reply):
        return here
    if not _IDEMPOTENCY_KEY.fullmatch(key):
        told = "Every question has an Idempotency-Key: up to 200 letters, digits and signs, new for each question."
        return problem(400, "This request could not be repeated safely.", told)
    noted = Noted(visit.holder.name, key, json.dumps([here.name, visit.body.decode("latin-1")]).encode())
    kept = await app.work(lambda: app.replies.look(noted) or _find_stored(here, visit, key))
    if kept is None and here.turns.is_full:
        after = str(math.ceil(await app.work(here.slot, WAITING)))
        told = f"{WAITING} others wait for this dataset; nothing was charged."
        return problem(503, "Too many questions wait.", told, headers=(("retry-after", after),))
    if kept is None and (refused := app.is_busy(visit.holder)) is not None:
        return refused
    kept = kept or await app.work(app.replies.begin, noted)
    if kept is not None:
        return kept
    working = app.go_on(visit.holder, _work(app, here, visit, noted))
    wait = _read_preference(visit)
    if wait is None:
        return await asyncio.shield(working)
    done, _ = await asyncio.wait([working], timeout=wait)
    return working.result() if done else await app.work(app.replies.tell_job, noted.name, name_job(noted.name, key))


async def tell_job(app: GatewayApp, visit: Visit) -> Reply:
    """How far a question of one's own is; then what it got."""
    return await app.work(app.replies.tell_job, visit.holder.name, visit.parts[0])


def _read_preference(visit: Visit) -> int | None:
    """Seconds after which a job is as good as an answer; None: the answer is waited for."""
    given = visit.headers.get(b"prefer", b"").decode("latin-1").lower()
    if "respond-async" not in re.split(r"[,;\s]+", given):
        return None
    found = _WAIT.search(given)
    return int(found[1]) if found else 0


async def _work(app: GatewayApp, here: Holding, visit: Visit, noted: Noted) -> Reply:
    reply = None
    try:
        reply = await _answer(app, here, visit, noted)
    except Exception:
        reply = app.fail("ask")
    finally:
        # Only when the reply may leave: before, asking again would tell how long the question took.
        try:
            await app.work(app.replies.end, noted, reply)
        except Exception:  # it is given all the same, and the ledger has it
            app.fail("keeping a reply")
    return reply


def _find_stored(here: Holding, visit: Visit, key: str) -> Reply | None:
    """A single question's stored answer, which waits for nobody."""
    document = visit.document()
    if not is_alone(document) or not here.is_current():
        return None
    asked = Asked(here.people, document, visit.holder.name, _once(key))
    digest = asked.digest()
    if (known := here.recall(digest)) is not None:
        return known
    found = asked.find()
    if found is None or not here.shows(found["release"].get("number")):
        return None
    return here.remember(digest, _write_answer(here, found, stored=True))


async def _answer(app: GatewayApp, here: Holding, visit: Visit, noted: Noted) -> Reply:
    """A new answer, when its turn has ended; what turns out to be stored when that is known."""
    document, who, once = visit.document(), visit.holder.name, _once(noted.key)

    def look() -> Reply | Ready:
        if not app.keys.opens(visit.holder.number):  # it waited, and its key was revoked meanwhile
            return problem(401, "This key opens nothing any more.", "It was revoked. Nothing was charged.")
        asked = Asked(here.refresh(), document, who, once)
        found = asked.find()
        if found is not None:
            return _write_answer(here, found, stored=True)
        return Ready(asked.questions, work, noted)

    async def work(lane: int) -> Reply:
        def answer() -> dict[str, Any]:
            return Asked(here.lane(lane), document, who, once).ask()

        return _write_answer(here, await app.ask(answer), stored=False)

    try:
        reply: Reply = await here.turns.ask(lambda: app.work(look))
        return reply
    except EpsilonsError as error:
        return refuse(error, whole=visit.holder.role == STEWARD)


def _once(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _write_answer(here: Holding, found: dict[str, Any], stored: bool) -> Reply:
    several = [found["release"]] if "release" in found else [one for _, one in found["answers"]]
    place = f"/v1/datasets/{quote(here.name, safe='')}/releases"
    # What comes from the roster is no release of the ledger, and has no number.
    cited = [f"{place}/{one['number']}" for one in several if one.get("number") is not None]
    return as_json({**found, "stored": stored, "addresses": cited})

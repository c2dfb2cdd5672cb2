"""What a person does over HTTP: comes in by a link, reads the own account, says a level, withdraws. Nobody else's."""

from typing import Any

from epsilons.dataset import Dataset
from epsilons.dataset.accounts import check_anew, say_levels, tell_statement
from epsilons.service.gateway import GatewayApp, Visit, of_dataset
from epsilons.service.holdings import Holding
from epsilons.service.keys import Holder
from epsilons.service.serving import Reply, as_json, problem
from epsilons.service.sessions import read_cookie, set_cookie


async def enter(app: GatewayApp, visit: Visit) -> Reply:
    """A link for a cookie."""
    (link,) = visit.read("link")
    found = await app.work(app.sessions.exchange, link) if isinstance(link, str) else None
    if found is None:
        return problem(401, "This link opens nothing.", "It was mistyped, has expired, or was replaced by another one.")
    holder, cookie = found
    reply = as_json(tell_holder(holder))
    return Reply(200, reply.body, reply.media_type, (set_cookie(cookie, visit.secure),))


async def leave(app: GatewayApp, visit: Visit) -> Reply:
    """End the cookie; the link can still be used."""
    await app.work(app.sessions.end, read_cookie(visit.headers, visit.secure))
    return Reply(204, b"", headers=(set_cookie("", visit.secure),))


def tell_holder(holder: Holder) -> dict[str, Any]:
    """Who is here; with a cookie the word that requests repeat, too."""
    told = {"name": holder.name, "role": holder.role}
    told |= {} if holder.dataset is None else {"dataset": holder.dataset}
    return told | ({} if holder.csrf is None else {"csrf": holder.csrf})


@of_dataset
async def tell_account(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """Between two turns: what is charged in one is seen when it has ended."""
    async with here.turns.short():
        return as_json(tell_statement(await app.work(lambda: here.refresh().statement(visit.holder.person))))


@of_dataset
async def set_level(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """The next charge goes by it."""
    said, anew = visit.read("level", optional={"anew": False})
    return await _say(app, visit, here, lambda people, person: say_levels(people, {person: said}, check_anew(anew)))


@of_dataset
async def withdraw(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    visit.read()
    return await _say(app, visit, here, lambda people, person: people.withdraw([person]))


async def _say(app: GatewayApp, visit: Visit, here: Holding, change: Any) -> Reply:
    """Change the own account, and tell it."""
    person = visit.holder.person

    def say() -> dict[str, Any]:
        people: Dataset = here.refresh()
        change(people, person)
        return tell_statement(people.statement(person))

    async with here.turns.short():
        return as_json(await app.work(say))

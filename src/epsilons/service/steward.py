"""What a steward does over HTTP: the acts of the commands, by the same code. Nothing here shows a person's account.

What is told of charges is told between two turns: it says nothing of how long a question takes.
"""

from contextlib import closing
from dataclasses import replace
from typing import Any

from epsilons import ledger
from epsilons.dataset import Dataset
from epsilons.dataset.accounts import (
    check_anew,
    register_declared,
    say_levels,
    set_quota,
    tell_past,
    tell_quotas,
    tell_recount,
    tell_state,
)
from epsilons.dataset.declared import lasting_arguments
from epsilons.dataset.registry import name_grants
from epsilons.errors import LedgerError, PreferenceError
from epsilons.service.gateway import GatewayApp, Visit, of_dataset
from epsilons.service.holdings import Holding
from epsilons.service.serving import Reply, as_json, problem
from epsilons.service.sessions import DAYS

# A dataset ------------------------------------------------------------------------------------------------------------


@of_dataset
async def register(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """Register what the dataset's file on the server declares: as `epsilons register` does there."""
    confirm, loosen, redefine = visit.read(optional={"confirm": False, "loosen": None, "redefine": False})
    if here.file is None:
        raise LedgerError("This dataset has no file on the server.", rule="It was registered by other means.")
    await app.work(_check_declared, here, here.file)
    made, done = await app.work(register_declared, here.file, Dataset, confirm, loosen, redefine)
    async with here.turns.short():
        await app.work(here.refresh)  # other workers notice at their next question
    return as_json({**vars(done), "dataset": made.name, "version": made.version, "registration": made.number})


def _check_declared(here: Holding, file: str) -> None:
    """Its file may have been edited: it must declare what is served."""
    declared = lasting_arguments(file, reading=True)
    with closing(ledger.open(declared["ledger"], create=False)) as book:
        if (declared["name"], book.id) != (here.name, here.people.ledger.id):
            what = "The dataset's file declares another dataset, or another ledger, than is served."
            raise LedgerError(what, rule="Nothing was registered.", suggest="start the gateway anew with it")


@of_dataset
async def set_levels(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """What people told the steward: [[id, level], ...]; `anew`, where they know of a loss and consent anew."""
    given, anew = visit.read("levels", optional={"anew": False})
    if not isinstance(given, list) or not all(isinstance(one, list) and len(one) == 2 for one in given):
        raise PreferenceError("Levels are pairs of an id and a level.", suggest='[["ann", "strict"], ["bob", 0.5]]')
    _check_ids([person for person, _ in given])
    async with here.turns.short():
        return as_json(vars(await app.work(lambda: say_levels(here.refresh(), dict(given), check_anew(anew)))))


@of_dataset
async def withdraw(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """These people are not used any more: [id, ...]."""
    (given,) = visit.read("people")
    _check_ids(given)
    async with here.turns.short():
        return as_json(vars(await app.work(lambda: here.refresh().withdraw(given))))


def _check_ids(given: Any) -> None:
    if not isinstance(given, list) or not given or not all(isinstance(one, (str, int)) for one in given):
        raise PreferenceError("People are listed by their ids.", rule="Texts, or whole numbers.", suggest='["ann"]')
    if len({*given}) < len(given):
        raise PreferenceError("Somebody is listed twice.", rule="One word of one person.")


@of_dataset
async def tell_ledger(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    def tell() -> dict[str, Any]:
        people = here.refresh()
        book, number = people.ledger, people._registry.dataset
        left = book.remaining(number)
        return tell_state(book, replace(left, names=name_grants(book.levels(), left.measure)), number)

    async with here.turns.short():
        return as_json(await app.work(tell))


@of_dataset
async def tell_history(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    async with here.turns.short():
        found = await app.work(here.people.ledger.history, here.people._registry.dataset)
    return as_json({"history": [tell_past(past) for past in found]})


@of_dataset
async def verify(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    visit.read()
    async with here.turns.long():
        return as_json(await app.work(tell_recount, here.people.ledger))


@of_dataset
async def list_quotas(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    async with here.turns.short():
        return as_json({"quotas": await app.work(tell_quotas, here.people.ledger)})


@of_dataset
async def change_quota(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    epsilon, questions = visit.read("epsilon", "questions")
    name = visit.parts[1]
    async with here.turns.short():
        known = [one.analyst for one in await app.work(here.people.ledger.quotas)]
        if name not in known and not await app.work(app.keys.asks, name):
            return problem(404, "There is no key of this name.", "A quota goes by the name of a key that may ask.")
        await app.work(set_quota, here.people.ledger, name, epsilon, questions)
        return as_json({"quotas": await app.work(tell_quotas, here.people.ledger)})


# Who may come in ------------------------------------------------------------------------------------------------------


@of_dataset
async def issue_link(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """A personal link, which is shown this once."""
    person, days = visit.read("person", optional={"days": DAYS})
    _check_ids([person])
    async with here.turns.short():
        people = await app.work(here.refresh)
    made = await app.work(app.sessions.issue, people._registry, here.name, person, days)
    return as_json({"number": made.number, "link": visit.origin + made.path, "expires": made.expires})


async def list_keys(app: GatewayApp, visit: Visit) -> Reply:
    return as_json({"keys": [one.to_dict() for one in await app.work(app.keys.list)]})


async def add_key(app: GatewayApp, visit: Visit) -> Reply:
    """A key, which is shown this once."""
    name, role, dataset, person = visit.read("name", "role", optional={"dataset": None, "person": None})
    if dataset is not None and dataset not in list(app.holdings):  # which may be compared with anything
        return problem(404, "There is no such dataset.")
    if person is not None:
        _check_ids([person])
    if dataset is not None and person is not None:
        here = app.holdings[dataset]
        async with here.turns.short():
            await app.work(lambda: here.refresh().statement(person))  # refuses who has none
    return as_json({"key": await app.work(app.keys.add, name, role, dataset, person)})


async def revoke_key(app: GatewayApp, visit: Visit) -> Reply:
    """End a key or a link, and what the link was exchanged for."""
    return as_json((await app.work(app.keys.revoke, int(visit.parts[0]))).to_dict())

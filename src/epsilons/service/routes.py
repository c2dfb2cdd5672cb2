"""The ways into a gateway. Who may take which stands here and nowhere else.

    GET  /v1/health                                everyone    whether it is there
    GET  /v1/openapi.json                          everyone    this list, as OpenAPI has it
    GET  /v1/me                                    any key     whose key this is
    GET  /v1/datasets                              any key     what can be asked about
    GET  /v1/datasets/{name}                       any key     columns, bounds, keys, levels
    GET  /v1/datasets/{name}/remaining             asks        what is left to everyone at a level
    POST /v1/datasets/{name}/plan                  asks        what a question would cost. Free
    POST /v1/datasets/{name}/ask                   asks        a question, a batch, SQL; wants an Idempotency-Key
    GET  /v1/jobs/{job}                            asks        how far a question is that is worked on in the background
    GET  /v1/datasets/{name}/releases              any key     every answer that was released
    GET  /v1/datasets/{name}/releases/{number}     any key     one of them: a permanent address
    GET  /v1/datasets/{name}/account               person      their own statement
    PUT  /v1/datasets/{name}/account/level         person      their own word
    GET  /v1/metrics                               steward     counts and times by route

Stewards and analysts ask. Questions are documents as in `dataset.documents`.
"""

from typing import Any

from epsilons.dataset.documents import Asked, write_facts
from epsilons.errors import EpsilonsError
from epsilons.ledger.balances import Remaining, Statement
from epsilons.release.stored import StoredAnswers
from epsilons.service.gateway import GatewayApp, Route, Visit
from epsilons.service.keys import ANALYST, PERSON, ROLES, STEWARD
from epsilons.service.openapi import describe_routes
from epsilons.service.questions import ask, find_dataset, tell_job
from epsilons.service.serving import Reply, as_json, problem


async def _tell_health(app: GatewayApp, visit: Visit) -> Reply:
    return as_json({"status": "ok"})


async def _tell_openapi(app: GatewayApp, visit: Visit) -> Reply:
    return as_json(describe_routes(app.routes))


async def _tell_me(app: GatewayApp, visit: Visit) -> Reply:
    return as_json({"name": visit.holder.name, "role": visit.holder.role})


async def _tell_metrics(app: GatewayApp, visit: Visit) -> Reply:
    requests = [[*which, count] for which, count in sorted(app.counts.items())]
    return as_json({"requests": requests, "seconds": dict(app.seconds)})


async def _list_datasets(app: GatewayApp, visit: Visit) -> Reply:
    listed = [name for name in app.holdings if visit.holder.role != PERSON or name == visit.holder.dataset]
    return as_json({"datasets": listed})


async def _describe(app: GatewayApp, visit: Visit) -> Reply:
    here = find_dataset(app, visit)
    if isinstance(here, Reply):
        return here

    def describe() -> dict[str, Any]:
        people = here.refresh()
        return write_facts(people._facts, people.describe())

    async with here.turns.short():
        return as_json(await app.work(describe))


async def _tell_remaining(app: GatewayApp, visit: Visit) -> Reply:
    here = find_dataset(app, visit)
    if isinstance(here, Reply):
        return here
    async with here.turns.short():
        return as_json(_write_remaining(await app.work(here.people.remaining)))


def _write_remaining(left: Remaining) -> dict[str, Any]:
    levels = [vars(level) for level in left.levels]
    return {"levels": levels, "questions": list(left.questions.items()), "not_dp_since": left.not_dp_since}


async def _plan(app: GatewayApp, visit: Visit) -> Reply:
    here = find_dataset(app, visit)
    if isinstance(here, Reply):
        return here
    document = visit.document()
    past = document.pop("past", True) if isinstance(document, dict) else True

    def plan() -> dict[str, Any]:
        return Asked(here.refresh(), document, visit.holder.name, "").plan(past is not False)

    async with here.turns.short():
        return as_json(await app.work(plan))


async def _list_releases(app: GatewayApp, visit: Visit) -> Reply:
    here = find_dataset(app, visit)
    if isinstance(here, Reply):
        return here
    answers = await app.work(here.people.answers)
    shown = [_write_release(answers, number) for number in answers if here.shows(number)]
    return as_json({"releases": shown})


async def _tell_release(app: GatewayApp, visit: Visit) -> Reply:
    here, number = find_dataset(app, visit), int(visit.parts[1])
    if isinstance(here, Reply):
        return here
    try:
        answers = await app.work(StoredAnswers.of, here.people.ledger, number, here.people._registry.dataset)
    except EpsilonsError:
        answers = None
    if answers is None or not here.shows(number):
        return problem(404, "There is no release of this number.", "It was not asked of this dataset, or not answered.")
    return as_json(_write_release(answers, number))


def _write_release(answers: StoredAnswers, number: int) -> dict[str, Any]:
    return {"number": number, "question": answers.questions[number], "release": answers[number].to_dict()}


async def _tell_account(app: GatewayApp, visit: Visit) -> Reply:
    here = find_dataset(app, visit)
    if isinstance(here, Reply):
        return here
    return as_json(_write_statement(await app.work(here.people.statement, visit.holder.person)))


def _write_statement(statement: Statement) -> dict[str, Any]:
    named = ("granted", "state", "spent", "reserved", "left")
    uses = [vars(use) for use in statement.uses]
    return {**{name: getattr(statement, name) for name in named}, "uses": uses, "sentences": statement.sentences}


async def _set_level(app: GatewayApp, visit: Visit) -> Reply:
    here, document = find_dataset(app, visit), visit.document()
    if isinstance(here, Reply):
        return here
    if not isinstance(document, dict) or set(document) != {"level"}:
        return problem(422, "A level is told by its name, or as an epsilon.", '{"level": "strict"}')
    person, said = visit.holder.person, document["level"]

    def say() -> dict[str, Any]:
        people = here.refresh()
        people.set_level({person: said})
        return _write_statement(people.statement(person))

    async with here.turns.short():
        return as_json(await app.work(say))


_EVERYONE, _WHO_ASKS, _PERSON = frozenset(ROLES), frozenset({STEWARD, ANALYST}), frozenset({PERSON})
_DATASET = "/v1/datasets/([^/]+)"

ROUTES = (
    Route("health", "GET", "/v1/health", _tell_health, "Whether the gateway is there.", open=True),
    Route("openapi", "GET", "/v1/openapi.json", _tell_openapi, "This document.", open=True),
    Route("me", "GET", "/v1/me", _tell_me, "Whose key this is.", _EVERYONE),
    Route("datasets", "GET", "/v1/datasets", _list_datasets, "The names of datasets.", _EVERYONE),
    Route("dataset", "GET", _DATASET, _describe, "Columns, bounds, keys and levels.", _EVERYONE),
    Route("remaining", "GET", f"{_DATASET}/remaining", _tell_remaining, "What is left, by level.", _WHO_ASKS),
    Route(
        "plan", "POST", f"{_DATASET}/plan", _plan, "What a question would cost, and how far it would err.", _WHO_ASKS
    ),
    Route("ask", "POST", f"{_DATASET}/ask", ask, "A question, a batch or SQL.", _WHO_ASKS),
    Route("job", "GET", "/v1/jobs/([0-9a-f]{32})", tell_job, "How far a question is; then its answer.", _WHO_ASKS),
    Route("releases", "GET", f"{_DATASET}/releases", _list_releases, "Every answer that was released.", _EVERYONE),
    Route("release", "GET", f"{_DATASET}/releases/([0-9]{{1,18}})", _tell_release, "One released answer.", _EVERYONE),
    Route("account", "GET", f"{_DATASET}/account", _tell_account, "What one's own data was used for.", _PERSON),
    Route("level", "PUT", f"{_DATASET}/account/level", _set_level, "How private one wants to be.", _PERSON),
    Route("metrics", "GET", "/v1/metrics", _tell_metrics, "Counts and times by route.", frozenset({STEWARD})),
)

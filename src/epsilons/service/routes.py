"""The ways into a gateway. Who may take which stands here and nowhere else.

    GET    /health                                      everyone    whether it is there, and what it needs
    GET    /metrics                                     operator, steward   counts and times, for Prometheus
    GET    /v1/openapi.json                             everyone    this list, as OpenAPI has it
    POST   /v1/session                                  everyone    a personal link for a cookie
    DELETE /v1/session                                  person      end the cookie
    GET    /v1/me                                       any key     whose key this is
    GET    /v1/datasets                                 any key     what can be asked about
    GET    /v1/datasets/{name}                          any key     columns, bounds, keys, levels
    GET    /v1/datasets/{name}/remaining                asks        what is left to everyone at a level
    POST   /v1/datasets/{name}/plan                     asks        what a question would cost. Free
    GET    /v1/datasets/{name}/plan                     asks        the same, by the fields of the page's form
    POST   /v1/datasets/{name}/ask                      asks        a question, a batch, SQL; wants an Idempotency-Key
    GET    /v1/jobs/{job}                               asks        how far a question of one's own is; then its answer
    GET    /v1/datasets/{name}/releases                 any key     every answer that was released
    GET    /v1/datasets/{name}/releases/{number}        any key     one of them: a permanent address
    GET    /v1/datasets/{name}/account                  person      their own statement
    PUT    /v1/datasets/{name}/account/level            person      their own word
    POST   /v1/datasets/{name}/account/withdrawal       person      not to be used any more
    POST   /v1/datasets/{name}/registration             steward     what its file declares, registered
    POST   /v1/datasets/{name}/levels                   steward     what people told the steward
    POST   /v1/datasets/{name}/withdrawals              steward     the same, of people who withdraw
    GET    /v1/datasets/{name}/ledger                   steward     who stands where, quotas
    GET    /v1/datasets/{name}/history                  steward     every question that was charged
    GET    /v1/datasets/{name}/health                   steward     registrations, budgets over time
    GET    /v1/datasets/{name}/what-if                  steward     errors if people stood at other levels
    POST   /v1/datasets/{name}/verification             steward     recount the ledger, hash the snapshots
    GET    /v1/datasets/{name}/quotas                   steward     what analysts may use, and have used
    PUT    /v1/datasets/{name}/quotas/{analyst}         steward     in epsilon and in questions, by name
    POST   /v1/datasets/{name}/links                    steward     a personal link
    GET    /v1/keys                                     steward     every key and link, without the secrets
    POST   /v1/keys                                     steward     a key
    DELETE /v1/keys/{number}                            steward     end a key or a link

Pages are elsewhere: `pages.ways`.

"Any key": of stewards, analysts and people; these know of their own dataset alone.
Stewards and analysts ask. Questions are documents as in `dataset.documents`.
"""

from typing import Any

from epsilons.dataset import Dataset
from epsilons.dataset.accounts import tell_quota
from epsilons.dataset.documents import Asked, write_facts
from epsilons.errors import EpsilonsError
from epsilons.release.stored import StoredAnswers
from epsilons.service import operating, people, steward
from epsilons.service.gateway import GatewayApp, Route, Visit, find_holding
from epsilons.service.keys import ANALYST, OPERATOR, PERSON, STEWARD
from epsilons.service.openapi import describe_routes
from epsilons.service.pages.analyst import tell_plan
from epsilons.service.pages.asking import FIELDS
from epsilons.service.pages.steward import MOVE, tell_change, tell_dataset
from epsilons.service.questions import ask, tell_job
from epsilons.service.serving import Reply, as_json, problem


async def _tell_openapi(app: GatewayApp, visit: Visit) -> Reply:
    return as_json(describe_routes(app.routes))


async def _tell_me(app: GatewayApp, visit: Visit) -> Reply:
    return as_json(people.tell_holder(visit.holder))


async def _list_datasets(app: GatewayApp, visit: Visit) -> Reply:
    listed = [name for name in app.holdings if visit.holder.role != PERSON or name == visit.holder.dataset]
    return as_json({"datasets": listed})


async def _describe(app: GatewayApp, visit: Visit) -> Reply:
    here = find_holding(app, visit)
    if isinstance(here, Reply):
        return here

    def describe() -> dict[str, Any]:
        found = here.refresh()
        return write_facts(found._facts, found.describe())

    async with here.turns.short():
        return as_json(await app.work(describe))


async def _tell_remaining(app: GatewayApp, visit: Visit) -> Reply:
    here = find_holding(app, visit)
    if isinstance(here, Reply):
        return here
    async with here.turns.short():
        return as_json(await app.work(lambda: _write_remaining(here.refresh(), visit.holder.name)))


def _write_remaining(people: Dataset, analyst: str) -> dict[str, Any]:
    """What everybody has left, and who asks may still use."""
    left = people.remaining()
    levels = [{name: one for name, one in vars(level).items() if name != "measure"} for level in left.levels]
    counted = {} if left.measure.delta is None else {"measure": left.measure.to_text()}
    told = {"levels": levels, "questions": list(left.questions.items()), "not_dp_since": left.not_dp_since}
    return {**counted, **told, "quota": tell_quota(people.ledger, analyst)}


async def _plan(app: GatewayApp, visit: Visit) -> Reply:
    here = find_holding(app, visit)
    if isinstance(here, Reply):
        return here
    document = visit.document()
    past = document.pop("past", True) if isinstance(document, dict) else True

    def plan() -> dict[str, Any]:
        return Asked(here.refresh(), document, visit.holder.name, "").plan(past is not False)

    async with here.turns.long():
        return as_json(await app.work(plan))


async def _list_releases(app: GatewayApp, visit: Visit) -> Reply:
    here = find_holding(app, visit)
    if isinstance(here, Reply):
        return here

    def tell() -> Reply:
        answers = here.people.answers()
        return as_json({"releases": [_write_release(answers, number) for number in answers if here.shows(number)]})

    return await app.work(tell)  # there may be thousands, and nobody else waits for them


async def _tell_release(app: GatewayApp, visit: Visit) -> Reply:
    here, number = find_holding(app, visit), int(visit.parts[1])
    if isinstance(here, Reply):
        return here
    try:
        answers = await app.work(StoredAnswers.of, here.people.ledger, number, here.people._registry.dataset)
    except EpsilonsError:
        answers = None
    if answers is None or not here.shows(number):
        told = "It was not asked of this dataset, or not answered."
        return problem(404, "There is no release of this number.", told, code="ledger")
    return as_json(_write_release(answers, number))


def _write_release(answers: StoredAnswers, number: int) -> dict[str, Any]:
    return {"number": number, "question": answers.questions[number], "release": answers[number].to_dict()}


_HOLDERS, _WHO_ASKS = frozenset({STEWARD, ANALYST, PERSON}), frozenset({STEWARD, ANALYST})
_PERSON, _STEWARD, _OPERATOR = frozenset({PERSON}), frozenset({STEWARD}), frozenset({STEWARD, OPERATOR})
_DATASET, _NUMBER = "/v1/datasets/(?P<name>[^/]+)", "(?P<number>[0-9]{1,18})"
_JOB = "(?P<job>[0-9a-f]{32})"

ROUTES = (
    Route("health", "GET", "/health", operating.tell_health, "Whether the gateway is well.", open=True),
    Route("metrics", "GET", "/metrics", operating.tell_metrics, "Counts and times, for Prometheus.", _OPERATOR),
    Route("openapi", "GET", "/v1/openapi.json", _tell_openapi, "This document.", open=True),
    Route("enter", "POST", "/v1/session", people.enter, "A personal link for a cookie.", open=True, body="Entering"),
    Route("leave", "DELETE", "/v1/session", people.leave, "End the cookie.", _PERSON),
    Route("me", "GET", "/v1/me", _tell_me, "Whose key this is.", _HOLDERS),
    Route("datasets", "GET", "/v1/datasets", _list_datasets, "The names of datasets.", _HOLDERS),
    Route("dataset", "GET", _DATASET, _describe, "Columns, bounds, keys and levels.", _HOLDERS),
    Route("remaining", "GET", f"{_DATASET}/remaining", _tell_remaining, "What is left, by level.", _WHO_ASKS),
    Route("plan", "POST", f"{_DATASET}/plan", _plan, "What a question would cost. Free.", _WHO_ASKS, body="Question"),
    Route("planned", "GET", f"{_DATASET}/plan", tell_plan, "By the fields of a form.", _WHO_ASKS, query=FIELDS),
    Route("ask", "POST", f"{_DATASET}/ask", ask, "A question, a batch or SQL.", _WHO_ASKS, body="Question"),
    Route("job", "GET", f"/v1/jobs/{_JOB}", tell_job, "How far a question is; then its answer.", _WHO_ASKS),
    Route("releases", "GET", f"{_DATASET}/releases", _list_releases, "Every answer that was released.", _HOLDERS),
    Route("release", "GET", f"{_DATASET}/releases/{_NUMBER}", _tell_release, "One released answer.", _HOLDERS),
    Route("account", "GET", f"{_DATASET}/account", people.tell_account, "What one's own data was used for.", _PERSON),
    Route(
        "level", "PUT", f"{_DATASET}/account/level", people.set_level, "How private one wants to be.", _PERSON,
        body="Level",
    ),
    Route(
        "leaving", "POST", f"{_DATASET}/account/withdrawal", people.withdraw, "Not to be used any more.", _PERSON,
        body="Nothing",
    ),
    Route(
        "register", "POST", f"{_DATASET}/registration", steward.register, "Register what the file declares.", _STEWARD,
        body="Registering",
    ),
    Route("levels", "POST", f"{_DATASET}/levels", steward.set_levels, "What people said.", _STEWARD, body="Levels"),
    Route(
        "withdrawals", "POST", f"{_DATASET}/withdrawals", steward.withdraw, "People who withdraw.", _STEWARD,
        body="Withdrawing",
    ),
    Route("ledger", "GET", f"{_DATASET}/ledger", steward.tell_ledger, "Who stands where; quotas.", _STEWARD),
    Route("history", "GET", f"{_DATASET}/history", steward.tell_history, "Every question charged.", _STEWARD),
    Route("budgets", "GET", f"{_DATASET}/health", tell_dataset, "Registrations, budgets over time.", _STEWARD),
    Route(
        "change", "GET", f"{_DATASET}/what-if", tell_change, "Errors if levels changed.", _STEWARD,
        query=(*FIELDS, *MOVE),
    ),
    Route("verify", "POST", f"{_DATASET}/verification", steward.verify, "Recount it.", _STEWARD, body="Nothing"),
    Route("quotas", "GET", f"{_DATASET}/quotas", steward.list_quotas, "What analysts may use.", _STEWARD),
    Route(
        "quota", "PUT", f"{_DATASET}/quotas/(?P<analyst>[^/]+)", steward.change_quota, "What one may use.", _STEWARD,
        body="Quota",
    ),
    Route("link", "POST", f"{_DATASET}/links", steward.issue_link, "A link for one person.", _STEWARD, body="Linking"),
    Route("keys", "GET", "/v1/keys", steward.list_keys, "Every key and link, without the secrets.", _STEWARD),
    Route("key", "POST", "/v1/keys", steward.add_key, "A key, shown this once.", _STEWARD, body="Key"),
    Route("revoke", "DELETE", f"/v1/keys/{_NUMBER}", steward.revoke_key, "End a key or a link.", _STEWARD),
)  # fmt: skip

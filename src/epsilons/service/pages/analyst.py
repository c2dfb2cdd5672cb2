"""What analysts see: datasets and their columns, a question with its plan before anything is spent, answers."""

import json
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, urlencode

from epsilons.dataset import Dataset
from epsilons.dataset.accounts import tell_quota
from epsilons.dataset.documents import Asked, write_facts
from epsilons.display import group_levels, show, show_span
from epsilons.errors import EpsilonsError
from epsilons.guarantee import NANO
from epsilons.ledger.balances import questions_left
from epsilons.measure import PURE, ZCDP, Measure
from epsilons.noise import system
from epsilons.release.answer import Release, tell_question
from epsilons.release.stored import StoredAnswers
from epsilons.service.gateway import GatewayApp, Visit, of_dataset
from epsilons.service.holdings import Holding
from epsilons.service.pages.asking import FIELDS, list_choices, read_question, write_code
from epsilons.service.pages.charts import draw_answer
from epsilons.service.pages.layout import go_to, keep_apart, show_page, to_plain
from epsilons.service.questions import ask as ask_now
from epsilons.service.questions import tell_job
from epsilons.service.serving import Reply, as_json, problem

#: After so many seconds a page says that the answer is worked on.
_PATIENCE = 10
#: In what charges are, as a sign.
SYMBOLS = {PURE: "ε", ZCDP: "ρ"}
#: So many answers on a page of the history.
_PAGE = 50


def place_of(here: Holding) -> str:
    return f"/data/{quote(here.name, safe='')}"


def api_of(here: Holding) -> str:
    return f"/v1/datasets/{quote(here.name, safe='')}"


# Datasets -------------------------------------------------------------------------------------------------------------


async def show_datasets(app: GatewayApp, visit: Visit) -> Reply:
    return show_page(visit, "data.html", "Datasets", json=(("Datasets", "/v1/datasets"),), names=list(app.holdings))


@of_dataset
async def show_dataset(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """The catalogue: columns with bounds and keys, people by level."""

    def describe() -> dict[str, Any]:
        people = here.refresh()
        described = people.describe()
        levels, _ = described.sheets()
        told = {"facts": write_facts(people._facts, described), "notes": described.tell_accounts()}
        return {**told, "head": list(levels.head), "rows": [list(row) for row in levels.rows]}

    async with here.turns.short():
        found = await app.work(describe)
    facts = found["facts"]
    columns = [{**one, **_tell_column(one["name"], facts)} for one in facts["columns"]]
    listed = (("Dataset", api_of(here)), ("Left", f"{api_of(here)}/remaining"))
    named = {**found, "columns": columns, "place": place_of(here)}
    return show_page(visit, "dataset.html", here.name, json=listed, **named)


def _tell_column(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    keys, bounds = facts["keys"].get(name), facts["bounds"].get(name)
    shown = "" if keys is None else ", ".join(map(str, keys)) if isinstance(keys, list) else json.dumps(keys)
    words = [word for word in ("complete", "public") if name in facts[word]]
    words += ["whose row it is"] if name == facts["person"] else []
    return {
        "bounds": "" if bounds is None else f"{show(bounds[0])} to {show(bounds[1])}",
        "keys": shown,
        "words": words,
    }


# A question -----------------------------------------------------------------------------------------------------------


@of_dataset
async def show_question(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """The form, and the plan of what stands in it."""
    return await _show_question(app, visit, here)


@of_dataset
async def tell_plan(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """The same as JSON."""

    def plan() -> dict[str, Any]:
        people = here.refresh()
        document = read_question(visit.fields, people)
        return {"question": document, "plan": _plan(people, document, visit.holder.name)}

    async with here.turns.long():
        return as_json(to_plain(await app.work(plan)))


async def _show_question(app: GatewayApp, visit: Visit, here: Holding, refused: Any = None, status: int = 200) -> Reply:
    asked = {name: visit.fields.get(name, "") for name in FIELDS}

    def look() -> dict[str, Any]:
        people = here.refresh()
        found: dict[str, Any] = {"choices": list_choices(people._facts), "bounds": people._facts.bounds}
        found |= {"quota": tell_quota(people.ledger, visit.holder.name), "measure": people._facts.measure}
        try:
            document = read_question(asked, people)
            plan = _plan(people, document, visit.holder.name)
        except EpsilonsError as error:
            return {**found, "plan": None, "why": keep_apart(error)}
        code = write_code(document, people, visit.origin)
        named = document["arguments"]
        column = named.get("column", named.get("target"))
        what = tell_question(plan["statistic"], column, named.get("where", ""), list(named.get("by", ())))
        told = {"plan": plan, "why": None, "what": what, "code": code, "price": _price(plan, people._facts.measure)}
        return {**found, **told, "left": _tell_left(people, plan)}

    async with here.turns.long():
        found = await app.work(look)
    listed = (("Plan", f"{api_of(here)}/plan?{urlencode(_filled(asked))}"), ("Dataset", api_of(here)))
    named = {"asked": asked, "once": system().bytes(16).hex(), "refused": refused, "place": place_of(here), **found}
    return show_page(visit, "ask.html", f"Ask {here.name}", json=listed, status=status, **named)


def _filled(asked: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in asked.items() if value}


def _plan(people: Dataset, document: dict[str, Any], analyst: str) -> dict[str, Any]:
    return Asked(people, document, analyst, "").plan(True)


def _asked_row(plan: Mapping[str, Any]) -> Any:
    rows = plan["rows"]
    return next((row for row in rows if row["mechanism"] == plan["mechanism"]), rows[0])


def _price(plan: Mapping[str, Any], measure: Measure) -> str:
    charges = [(granted, charge) for granted, charge in _asked_row(plan)["charges"] if charge]
    return f"{SYMBOLS[measure.name]} {measure.show(charges)} of each person used" if charges else "nothing"


def _tell_left(people: Dataset, plan: Mapping[str, Any]) -> list[list[str]]:
    """By level, few people together: what it charges, and how many such questions are left on average."""
    left, paid = people.remaining(), {round(one * NANO): cost for one, cost in _asked_row(plan)["charges"]}
    costs = {one.granted: paid.get(round(one.epsilon * NANO), 0.0) for one in left.levels}
    often = questions_left(left.cohorts, {granted: round(cost * left.measure.one) for granted, cost in costs.items()})
    names = people._registry.names
    called = [(names.get(one.epsilon, show(one.epsilon)), one.people) for one in left.levels]
    rows = []
    for name, places in group_levels(called):
        those = [left.levels[place] for place in places]
        more = [often[one.granted] for one in those if one.granted in often]
        amounts = [(one.epsilon, costs[one.granted]) for one in those], [(one.epsilon, one.average) for one in those]
        spans = map(left.measure.show, amounts)
        rows.append([name, show(sum(one.people for one in those)), *spans, show_span(more) if more else "–"])
    return rows


@of_dataset
async def ask(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """The yes: what the plan showed is asked, and charged."""
    fields = visit.fields
    planned = {"mark": fields.get("mark", ""), "past": True, "mechanism": fields.get("planned", "auto")}
    try:
        document = read_question(fields, await app.work(here.refresh))
    except EpsilonsError as error:
        return await _show_question(app, visit, here, keep_apart(error), 422)
    body = json.dumps({**document, "planned": planned}).encode()
    headers = {**visit.headers, b"idempotency-key": fields.get("once", "").encode("latin-1", "replace")}
    headers[b"prefer"] = b"respond-async, wait=%d" % _PATIENCE
    reply = await ask_now(app, replace(visit, body=body, headers=headers))
    query = urlencode(_filled({name: fields.get(name, "") for name in FIELDS}))
    return await _go_on(app, visit, here, reply, query)


async def _go_on(app: GatewayApp, visit: Visit, here: Holding, reply: Reply, query: str) -> Reply:
    told = json.loads(reply.body)
    if reply.status == 200 and "release" not in told:  # a batch, which was asked from code
        return go_to(f"{place_of(here)}/answers")
    if reply.status == 200 and told["release"].get("number") is None:  # from the roster, as the plan says
        return go_to(f"{place_of(here)}/ask?{query}")
    if reply.status == 200:
        return go_to(f"{place_of(here)}/answers/{told['release']['number']}?{query}")
    if reply.status == 202:
        return go_to(f"{place_of(here)}/jobs/{told['job'].rpartition('/')[2]}?{query}")
    refused = SimpleNamespace(what=told["title"], rule=told.get("detail", ""), hint=told.get("hint", ""))
    return await _show_question(app, visit, here, refused, reply.status)


@of_dataset
async def show_job(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """How far a question is: looked at again after a moment, until there is an answer."""
    job, query = visit.parts[1], urlencode(_filled({name: visit.fields.get(name, "") for name in FIELDS}))
    reply = await tell_job(app, replace(visit, parts=(job,)))
    if reply.status != 202:
        return reply if reply.status == 404 else await _go_on(app, visit, here, reply, query)
    listed = (("Job", f"/v1/jobs/{job}"),)
    return show_page(visit, "job.html", "Working", json=listed, told=json.loads(reply.body))


# Answers --------------------------------------------------------------------------------------------------------------


@of_dataset
async def show_answers(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """Every answer that was released, the newest first."""
    text = visit.fields.get("before", "")
    before = int(text) if text.isdecimal() and len(text) < 18 else None

    def look() -> tuple[list[list[str]], list[str], int | str]:
        """Only what this page shows is read as answers: there may be thousands, and the dataset waits meanwhile."""
        people = here.people
        stored = people.ledger.answers(dataset=people._registry.dataset)
        older = [one for one in stored if here.shows(one.number) and (before is None or one.number < before)]
        (sheet,) = StoredAnswers(older[-_PAGE:]).sheets()
        rows = [list(map(str, row)) for row in reversed(sheet.rows)]
        if "dataset" not in sheet.head:  # all are from before a ledger had datasets
            rows = [[*row[:2], "", *row[2:]] for row in rows]
        return rows, list(sheet.notes), older[-_PAGE].number if len(older) > _PAGE else ""

    async with here.turns.short():
        rows, notes, more = await app.work(look)
    listed = (("Answers", f"{api_of(here)}/releases"),)
    named: dict[str, Any] = {"rows": rows, "notes": notes, "more": more, "place": place_of(here)}
    return show_page(visit, "answers.html", f"Answers about {here.name}", json=listed, **named)


@of_dataset
async def show_answer(app: GatewayApp, visit: Visit, here: Holding) -> Reply:
    """One of them: value, interval, condition, chart, price."""
    number = int(visit.parts[1])

    def look() -> dict[str, Any] | None:
        people = here.refresh()
        try:
            release = StoredAnswers.of(people.ledger, number, people._registry.dataset)[number]
        except EpsilonsError as error:
            keep_apart(error)
            return None
        return {"release": release, **_tell_answer(people, release, visit)}

    async with here.turns.short():
        found = await app.work(look) if here.shows(number) else None
    if found is None:
        return problem(404, "There is no release of this number.", "It was not asked of this dataset, or not answered.")
    picture = await app.work(draw_answer, found["release"])
    listed = (("Answer", f"{api_of(here)}/releases/{number}"),)
    named = {**found, "picture": picture, "place": place_of(here)}
    return show_page(visit, "answer.html", f"Release {number}", json=listed, **named)


def _tell_answer(people: Dataset, release: Release, visit: Visit) -> dict[str, Any]:
    sheet = release.sheets()[0]
    try:
        code = write_code(read_question(visit.fields, people), people, visit.origin)
    except EpsilonsError:
        code = []
    return {
        "notes": [note for note in sheet.notes if not note.startswith(("Condition: ", release.citation))],
        "head": sheet.head,
        "rows": sheet.rows,
        "charges": _tell_charges(people, release),
        "measure": release.guarantee.measure,
        "code": code if "statistic" in visit.fields else [],
    }


def _tell_charges(people: Dataset, release: Release) -> list[list[str]]:
    """By level, few people together, as they stand now."""
    there = {one.epsilon: one.people for one in people.describe().levels}
    paid = [(granted, spent) for granted, spent in release.charges.items() if granted in release.levels]
    named = [(release.levels[granted], there.get(granted, 0)) for granted, _ in paid]
    show_paid = release.guarantee.measure.show
    return [[name, show_paid(paid[place] for place in places)] for name, places in group_levels(named)]

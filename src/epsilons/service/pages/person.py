"""One's own account: what each level means, the choice that holds, what was used. Nobody else's."""

import math
from typing import Any

from epsilons.dataset import Dataset
from epsilons.dataset.accounts import say_levels, tell_statement
from epsilons.dataset.registry import name_grants, read_epsilons
from epsilons.errors import EpsilonsError, PreferenceError
from epsilons.preferences.odds import OF, count_right, tell_odds
from epsilons.release.stored import StoredAnswers
from epsilons.service.gateway import GatewayApp, Visit
from epsilons.service.holdings import Holding
from epsilons.service.pages.layout import go_to, show_page
from epsilons.service.serving import Reply, problem

#: So many levels are offered where they have no names: those where most people stand.
_OFFERED = 4
#: So many uses are told with the question itself; the JSON has all.
_TOLD = 50
_DONE = {"level": "Your choice is noted. The next question goes by it.", "withdrawal": "You are not used any more."}
_OTHER, _WITHDRAW = "other", "withdraw"


async def show_account(app: GatewayApp, visit: Visit) -> Reply:
    here = _find_own(app, visit)
    return here if isinstance(here, Reply) else await _show(app, visit, here)


async def change(app: GatewayApp, visit: Visit) -> Reply:
    """Say a level, or withdraw."""
    here = _find_own(app, visit)
    if isinstance(here, Reply):
        return here
    said, person = visit.fields.get("choice", ""), visit.holder.person
    try:
        async with here.turns.short():
            await app.work(lambda: _say(here.refresh(), person, said, visit.fields.get("epsilon", "")))
    except EpsilonsError as error:
        return await _show(app, visit, here, refused=error)
    return go_to(f"/my?done={'withdrawal' if said == _WITHDRAW else 'level'}")


def _find_own(app: GatewayApp, visit: Visit) -> Holding | Reply:
    found = app.holdings.get(visit.holder.dataset or "")
    return found or problem(404, "There is no such dataset.", "It is not served here any more.")


def _say(people: Dataset, person: Any, said: str, number: str) -> None:
    if said == _WITHDRAW:
        people.withdraw([person])
        return
    kind, _, level = said.partition(":")
    if kind not in ("level", "epsilon", _OTHER) or (kind == "level" and not level):
        raise PreferenceError("Nothing was chosen.", suggest="one of the levels")
    say_levels(people, {person: level if kind == "level" else _read_number(number if kind == _OTHER else level)})


def _read_number(text: str) -> float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise PreferenceError("An epsilon is a number.", rule="The smaller, the more private.", suggest="0.5") from None


async def _show(app: GatewayApp, visit: Visit, here: Holding, refused: EpsilonsError | None = None) -> Reply:
    async with here.turns.short():  # what is charged in a turn is seen when it has ended
        found = await app.work(lambda: _tell(here.refresh(), visit.holder.person))
    done = _DONE.get(visit.fields.get("done", ""), "")
    place = f"/v1/datasets/{here.people._facts.name}"
    listed = (("My account", f"{place}/account"), ("The dataset", place))
    status = 200 if refused is None else 422
    return show_page(visit, "my.html", "My privacy", json=listed, status=status, done=done, refused=refused, **found)


def _tell(people: Dataset, person: Any) -> dict[str, Any]:
    statement, neighbors = tell_statement(people.statement(person)), people._facts.neighbors
    names, withdrawn = name_grants(people.ledger.levels()), statement["state"] == "withdrawn"
    granted = math.inf if statement["state"] == "public" else statement["granted"]
    cards = [
        {"said": said, "name": name, "epsilon": epsilon, "means": tell_odds(epsilon, neighbors),
         "right": None if math.isinf(epsilon) else count_right(epsilon),
         "holds": not withdrawn and epsilon == granted}
        for said, name, epsilon in _offer(people)
    ]  # fmt: skip
    used = statement["spent"] + statement["reserved"]
    return {
        "dataset": people._facts.name,
        "account": statement,
        "cards": cards,
        "withdrawn": withdrawn,
        "level": "withdrawn" if withdrawn else names.get(granted, "public" if math.isinf(granted) else f"{granted:g}"),
        "of": OF,
        "used": used,
        "right_so_far": count_right(used),
        "percent": 0 if not statement["granted"] else min(100, math.ceil(100 * used / statement["granted"])),
        "uses": _tell_uses(people, statement["uses"][: -_TOLD - 1 : -1]),
        "more": max(0, len(statement["uses"]) - _TOLD),
    }


def _offer(people: Dataset) -> list[tuple[str, str, float]]:
    """(what is sent, what it is called, its epsilon), the most private first."""
    named = read_epsilons(people._registry.levels_in_use())
    offered = [(f"level:{name}", name, epsilon) for name, epsilon in named.items()]
    if not offered:
        largest = sorted(people.describe().levels, key=lambda level: -level.people)[:_OFFERED]
        offered = [(f"epsilon:{one.epsilon:g}", one.name, one.epsilon) for one in largest if math.isfinite(one.epsilon)]
    if not any(math.isinf(epsilon) for _, _, epsilon in offered):
        offered.append(("level:public", "public", math.inf))
    return sorted(offered, key=lambda one: one[2])


def _tell_uses(people: Dataset, uses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest first, each with what was asked; of another dataset of the ledger its kind alone."""
    return [{**use, "question": _find_question(people, use["release"]) or use["kind"]} for use in uses]


def _find_question(people: Dataset, number: int) -> str:
    try:
        return StoredAnswers.of(people.ledger, number, people._registry.dataset).questions[number]
    except (EpsilonsError, KeyError):
        return ""

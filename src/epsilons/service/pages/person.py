"""One's own account: what each level means, the choice that holds, what was used. Nobody else's."""

import math
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from epsilons.dataset import Dataset
from epsilons.dataset.accounts import say_levels, tell_statement
from epsilons.dataset.registry import read_epsilons
from epsilons.display import show
from epsilons.errors import EpsilonsError, PreferenceError
from epsilons.guarantee import to_epsilon
from epsilons.ledger.balances import Use
from epsilons.measure import Measure
from epsilons.preferences.odds import OF, count_right, tell_odds
from epsilons.release.stored import StoredAnswers
from epsilons.service.gateway import GatewayApp, Visit
from epsilons.service.holdings import Holding
from epsilons.service.pages.layout import go_to, keep_apart, show_page
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
        return await _show(app, visit, here, refused=keep_apart(error))
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
    place = f"/v1/datasets/{quote(here.name, safe='')}"
    listed = (("My account", f"{place}/account"), ("The dataset", place))
    status = 200 if refused is None else 422
    return show_page(visit, "my.html", "My privacy", json=listed, status=status, done=done, refused=refused, **found)


def _tell(people: Dataset, person: Any) -> dict[str, Any]:
    statement, neighbors = people.statement(person), people._facts.neighbors
    told, measure = tell_statement(statement), statement.measure
    delta, granted = float(measure.delta or 0), measure.grant(statement.granted)
    withdrawn, period = told["state"] == "withdrawn", statement.term and statement.term.period
    used, earlier = statement.spent + statement.reserved, statement.term.earlier if statement.term else 0
    lost = to_epsilon(measure.epsilon(earlier + used))
    unbounded = bool(statement.when_public or statement.not_dp_since is not None)
    cards = [
        {"said": said, "name": name, "epsilon": epsilon, "period": each,
         "holds": not withdrawn and (epsilon, each) == (granted, period),
         **_tell_level(epsilon, neighbors, delta, each, lost, unbounded)}
        for said, name, epsilon, each in _offer(people, measure)
    ]  # fmt: skip
    names = [str(card["name"]) for card in cards if card["holds"]]
    return {
        "dataset": people._facts.name,
        "account": told,
        "cards": cards,
        "withdrawn": withdrawn,
        "level": "withdrawn"
        if withdrawn
        else " or ".join(names) or ("public" if math.isinf(granted) else show(granted)),
        "of": OF,
        "used": to_epsilon(measure.epsilon(used)),
        "delta": delta,
        # Answers from while they were public, or that keep no such promise, may have told all.
        "right_so_far": 0 if unbounded else count_right(lost, delta),
        "percent": _percent(used, statement.granted),
        "beyond": statement.granted is not None and used > statement.granted,
        "uses": _tell_uses(people, statement.uses[: -_TOLD - 1 : -1], measure),
        "more": max(0, len(statement.uses) - _TOLD),
    }


def _tell_level(
    epsilon: float, neighbors: str, delta: float, period: str | None, lost: float, unbounded: bool
) -> dict[str, Any]:
    """What a level would mean to somebody of whom so much was used already: all answers are no fewer than those."""
    if math.isinf(epsilon):
        return {"means": tell_odds(epsilon, neighbors), "right": None}
    most = epsilon if period is not None else max(epsilon, lost)
    means = tell_odds(most, neighbors, delta, period)
    if period is None and lost >= epsilon:
        means += " So much was used already: your data would be in no further question."
    if unbounded:
        means += " Answers from before that promise nothing are not counted here."
    return {"means": means, "right": count_right(most, delta)}


def _percent(used: int, granted: int | None) -> int:
    """In whole percent, rounded up."""
    return min(100, -(-100 * used // granted)) if granted else 0


def _offer(people: Dataset, measure: Measure) -> list[tuple[str, str, float, str | None]]:
    """(what is sent, what it is called, its epsilon, its period), the most private first."""
    periods = people.ledger.settled().periods
    named = read_epsilons(people._registry.levels_in_use(), measure)
    offered = [(f"level:{name}", name, epsilon, periods.get(name)) for name, epsilon in named.items()]
    if not offered:
        largest = sorted(people.describe().levels, key=lambda level: -level.people)[:_OFFERED]
        finite = [one for one in largest if math.isfinite(one.epsilon)]
        offered = [(f"epsilon:{one.epsilon!r}", one.name, one.epsilon, None) for one in finite]
    if not any(math.isinf(epsilon) for _, _, epsilon, _ in offered):
        offered.append(("level:public", "public", math.inf, None))
    return sorted(offered, key=lambda one: one[2])


def _tell_uses(people: Dataset, uses: Sequence[Use], measure: Measure) -> list[dict[str, Any]]:
    """The newest first, each with what was asked; of another dataset of the ledger its kind alone."""
    return [
        {
            "at": use.at,
            "release": use.number,
            "question": _find_question(people, use.number) or use.kind,
            "charged": measure.amount(use.charge),
            "granted": measure.grant(use.granted),
            "percent": _percent(use.charge, use.granted),
        }
        for use in uses
    ]


def _find_question(people: Dataset, number: int) -> str:
    try:
        return StoredAnswers.of(people.ledger, number, people._registry.dataset).questions[number]
    except (EpsilonsError, KeyError):
        return ""

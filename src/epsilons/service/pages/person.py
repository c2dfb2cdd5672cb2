"""One's own account: what each level means, the choice that holds, what was used. Nobody else's."""

import math
from collections.abc import Mapping, Sequence
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
_DONE = {
    "level": "Your choice is noted. The next question goes by it.",
    "anew": "You consented anew. The next question goes by your choice.",
    "withdrawal": "You are not used any more.",
}
_OTHER, _WITHDRAW, _PUBLIC = "other", "withdraw", "level:public"


async def show_account(app: GatewayApp, visit: Visit) -> Reply:
    here = _find_own(app, visit)
    return here if isinstance(here, Reply) else await _show(app, visit, here)


async def change(app: GatewayApp, visit: Visit) -> Reply:
    """Say a level, or withdraw. Of whom records were lost is first told what a level means then, and asked again."""
    here = _find_own(app, visit)
    if isinstance(here, Reply):
        return here
    said, number, person = visit.fields.get("choice", ""), visit.fields.get("epsilon", ""), visit.holder.person
    anew = visit.fields.get("anew") == "yes"

    def say() -> bool:
        """Whether it was said, or is to be asked again."""
        people = here.refresh()
        level = _read_choice(said, number)
        if level is not None and said != _PUBLIC and not anew and people.statement(person).lost:
            return False
        people.withdraw([person]) if level is None else say_levels(people, {person: level}, anew)
        return True

    try:
        async with here.turns.short():
            done = await app.work(say)
    except EpsilonsError as error:
        return await _show(app, visit, here, refused=keep_apart(error))
    if not done:
        return await _show(app, visit, here, asked={"choice": said, "epsilon": number})
    return go_to(f"/my?done={'withdrawal' if said == _WITHDRAW else 'anew' if anew else 'level'}")


def _find_own(app: GatewayApp, visit: Visit) -> Holding | Reply:
    found = app.holdings.get(visit.holder.dataset or "")
    return found or problem(404, "There is no such dataset.", "It is not served here any more.")


def _read_choice(said: str, number: str) -> str | float | None:
    """The name of a level, or an epsilon; None: not at all."""
    if said == _WITHDRAW:
        return None
    kind, _, level = said.partition(":")
    if kind not in ("level", "epsilon", _OTHER) or (kind == "level" and not level):
        raise PreferenceError("Nothing was chosen.", suggest="one of the levels")
    return level if kind == "level" else _read_number(number if kind == _OTHER else level)


def _read_number(text: str) -> float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise PreferenceError("An epsilon is a number.", rule="The smaller, the more private.", suggest="0.5") from None


async def _show(
    app: GatewayApp,
    visit: Visit,
    here: Holding,
    refused: EpsilonsError | None = None,
    asked: Mapping[str, str] | None = None,
) -> Reply:
    async with here.turns.short():  # what is charged in a turn is seen when it has ended
        found = await app.work(lambda: _tell(here.refresh(), visit.holder.person))
    done = _DONE.get(visit.fields.get("done", ""), "")
    place = f"/v1/datasets/{quote(here.name, safe='')}"
    listed = (("My account", f"{place}/account"), ("The dataset", place))
    status = 200 if refused is None else 422
    told = {**found, "done": done, "refused": refused, "asked": asked}
    return show_page(visit, "my.html", "My privacy", json=listed, status=status, **told)


def _tell(people: Dataset, person: Any) -> dict[str, Any]:
    statement, neighbors = people.statement(person), people._facts.neighbors
    told, measure = tell_statement(statement), statement.measure
    delta, granted = float(measure.delta or 0), measure.grant(statement.granted)
    withdrawn, period = told["state"] == "withdrawn", statement.term and statement.term.period
    used, earlier = statement.spent + statement.reserved, statement.term.earlier if statement.term else 0
    lost = to_epsilon(measure.epsilon(earlier + used))
    unbounded = bool(statement.when_public or statement.not_dp_since is not None)
    # What records that were lost held is not known, and what was granted anew is counted from there on.
    besides = statement.lost or statement.anew is not None
    lost = 0.0 if statement.lost else lost
    cards = [
        {"said": said, "name": name, "epsilon": epsilon, "period": each,
         "holds": not withdrawn and (epsilon, each) == (granted, period),
         **_tell_level(epsilon, neighbors, delta, each, lost, unbounded, besides)}
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
        "right_so_far": 0 if unbounded or besides else count_right(lost, delta),
        "percent": _percent(used, statement.granted),
        "beyond": statement.granted is not None and used > statement.granted,
        "uses": _tell_uses(people, statement.uses[: -_TOLD - 1 : -1], measure),
        "more": max(0, len(statement.uses) - _TOLD),
    }


def _tell_level(
    epsilon: float, neighbors: str, delta: float, period: str | None, lost: float, unbounded: bool, besides: bool
) -> dict[str, Any]:
    """What a level would mean to somebody of whom so much was used already: all answers are no fewer than those."""
    if math.isinf(epsilon):
        return {"means": tell_odds(epsilon, neighbors), "right": None}
    most = epsilon if period is not None else max(epsilon, lost)
    means = tell_odds(most, neighbors, delta, period)
    if period is None and lost >= epsilon:
        means += " So much was used already: your data would be in no further question."
    if besides:
        means += " What was used before records were lost comes besides."
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

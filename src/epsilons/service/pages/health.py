"""What a steward is shown of a dataset: what registrations did to people, budgets over time, a change of levels.

Levels of few people share a line on pages; as JSON everything is told. Nothing here is about one person.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from epsilons.dataset import Dataset
from epsilons.dataset.accounts import tell_state
from epsilons.dataset.documents import Asked
from epsilons.dataset.registry import name_grants
from epsilons.display import group_levels, show, show_span
from epsilons.errors import PlanError
from epsilons.ledger.values import Enrolment, Registration
from epsilons.measure import Measure
from epsilons.plots import list_spent


def tell_health(people: Dataset) -> dict[str, Any]:
    """A dataset's registrations, people, budgets and quotas."""
    book, number = people.ledger, people._registry.dataset
    described = people.describe()
    left = book.remaining(number)
    left = replace(left, names=name_grants(book.levels(), left.measure))
    mine = [one for one in book.registrations() if one.dataset == number]
    return {
        "dataset": people._facts.name,
        "version": people._facts.version,
        "people": described.people,
        "releases": described.releases,
        "pending": described.pending,
        "measure": described.measure,
        "renews": dict(described.renews),
        "public": sorted(people._facts.public),
        "notes": described.tell_accounts(),
        "state": tell_state(book, left, number),
        "registrations": [_tell_registration(one) for one in reversed(mine)],
        "spending": _tell_spending(people, mine[0].at),
    }


def _tell_registration(one: Registration) -> dict[str, Any]:
    """What it did to people is not known of registrations by earlier releases."""
    told = {"number": one.number, "version": one.version, "at": one.at}
    return {**told, "enrolment": one.about.get("enrolment")}


def list_enrolment(counted: Mapping[str, Any] | None) -> list[list[str]]:
    """The lines of an enrolment's report."""
    return [] if counted is None else [list(row) for row in Enrolment(**{"epoch": 0, **counted}).sheets()[0].rows]


def _tell_spending(people: Dataset, began: str) -> dict[str, Any]:
    """Of every grant, the part that those who paid most had spent: at the beginning, and after each release."""
    book, number = people.ledger, people._registry.dataset
    counted = [past for past in book.history(number) if past.state != "refunded"]
    lines = list_spent(counted, book.cohorts(number))
    levels = [
        {
            "epsilon": people._facts.measure.grant(granted),
            "spent": [None if math.isnan(one) else min(one, granted) / granted for one in line],
        }
        for granted, line in sorted(lines.items())
    ]
    return {"moments": [began, *(past.at for past in counted)], "levels": levels}


def list_lines(health: Mapping[str, Any]) -> dict[str, list[float]]:
    """Percent spent over time by level; few people together, by whoever of them spent most."""
    sizes = {one["epsilon"]: (one["name"] or show(one["epsilon"]), one["people"]) for one in health["state"]["levels"]}
    levels = health["spending"]["levels"]
    named = [sizes.get(one["epsilon"], (show(one["epsilon"]), 0)) for one in levels]
    found: dict[str, list[float]] = {}
    for name, places in group_levels(named):
        together = zip(*(levels[place]["spent"] for place in places), strict=True)
        found[name] = [100 * max((one for one in some if one is not None), default=math.nan) for some in together]
    return found


def list_levels(health: Mapping[str, Any]) -> list[list[str]]:
    """People by level and what is left to them, few together; public and withdrawn people at the end."""
    levels, measure = health["state"]["levels"], Measure.of_text(health["measure"])
    rows = []
    for name, places in group_levels([(one["name"] or show(one["epsilon"]), one["people"]) for one in levels]):
        those = [levels[place] for place in places]
        more = [one["questions_left"] for one in those if one["questions_left"] is not None]
        told = show_span([one["epsilon"] for one in those]), show(sum(one["people"] for one in those))
        least = min(those, key=lambda one: one["least"])
        left = [
            measure.show((one["epsilon"], one["left"]) for one in those),
            measure.show([(least["epsilon"], least["least"])]),
        ]
        nothing = show(sum(one["nothing_left"] for one in those))
        rows.append([name, *told, *left, nothing, show_span(more) if more else "–"])
    for name in ("public", "withdrawn"):
        if number := health["state"][name]:
            rows.append([name, "–", show(number), "–", "–", "–", "–"])
    return rows


# What a change of levels would do -------------------------------------------------------------------------------------


def list_movable(people: Dataset) -> list[str]:
    """The names of levels that people stand at, those alone that stand on a line of their own."""
    levels = people.describe().levels
    alone = group_levels([(one.name, one.people) for one in levels])
    return [levels[places[0]].name for _, places in alone if len(places) == 1]


def tell_change(people: Dataset, document: dict[str, Any], analyst: str, move: Sequence[str]) -> dict[str, Any]:
    """Predicted errors by mechanism as people stand, and if a part of one level's people stood at another.

    `move` is from which level to which, and how many percent; from nowhere, nobody moves.
    """
    source, target, percent = move
    try:
        part = float(percent.replace(",", ".") or 0) / 100
    except ValueError:
        raise PlanError("How many move is a number.", rule="In percent, from 0 to 100.", suggest="20") from None
    before, after = Asked(people, document, analyst, "").what_if({source: (target, part)} if source else {})
    then = {row["mechanism"]: row["error"] for row in after["rows"]}
    rows = [(row["mechanism"], row["error"], then.get(row["mechanism"])) for row in before["rows"]]
    told = {"question": before["statistic"], "move": {"from": source, "to": target, "part": part}}
    return {**told, "assumption": before["assumption"], "errors": rows}

"""Public columns as strata: levels told apart by public groups, for answers that are calibrated by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from epsilons.dataset.facts import TableFacts
from epsilons.dataset.question import TableQuestion
from epsilons.ledger.journal import to_json
from epsilons.ledger.rosters import read_public
from epsilons.ledger.values import Cohort, list_active
from epsilons.mechanisms.base import charges_of, find_error
from epsilons.mechanisms.weighted import Weighted
from epsilons.planner.choose import PlanRow
from epsilons.preferences.strata import Strata
from epsilons.release.door import Spendable
from epsilons.statistics.base import Question

CALIBRATED = "Calibrated by public columns: each of their groups counts by its number of people, whoever weighs what."

#: A larger error than this, beside the best one, is too much for assuming less.
HARDLY_MORE = 1.05


def may_calibrate(asked: TableQuestion, facts: TableFacts) -> bool:
    """Whether it is about everyone concerned, each with one value, and public columns tell people apart."""
    statistic, options = asked.question.statistic, asked.options
    whole = statistic.scope is None and statistic.family == "linear" and options.privacy == "personalized"
    known = options.bought is None  # which is how far levels lie from everyone, whoever stands in their public group
    return bool(facts.on_roster) and whole and known and options.mechanism in ("auto", "weighted")


def stratify(spendable: Spendable, cohorts: Sequence[Cohort], facts: TableFacts) -> Spendable | None:
    """The same people, told apart by public groups as well; None where they are all in one."""
    active = list_active(cohorts)
    told = {one.id: to_json(read_public(one.datasets).get(facts.dataset, {})) for one in active}
    # By name, not by cohort: an engine numbers cohorts in any order, and sums of floats follow the order of groups.
    names = {text: group for group, text in enumerate(sorted(set(told.values())))}
    sizes: Counter[tuple[int, int]] = Counter()
    left: Counter[int] = Counter()
    for one in active:
        group, level = names[told[one.id]], spendable.place.get(one.id)
        if level is None:
            left[group] += one.people
        else:
            sizes[level, group] += one.people
    if len(names) < 2 or set(names.values()) - {group for _, group in sizes}:
        return None  # a group of which nobody has anything left stands for nobody
    pairs, coarse = sorted(sizes), spendable.levels
    places = {pair: place for place, pair in enumerate(pairs)}
    fine = Strata(
        tuple(coarse.grants[level] for level, _ in pairs), tuple(sizes[pair] for pair in pairs), coarse.names,
        coarse.rounding_loss, coarse.left_out, tuple(group for _, group in pairs),
        tuple(left[group] for group in range(len(names))),
    )  # fmt: skip
    place = {cohort: places[level, names[told[cohort]]] for cohort, level in spendable.place.items()}
    return replace(spendable, levels=fine, place=place)


def is_better(fine: Spendable, question: Question, best: float) -> bool:
    """Whether calibrated weights are expected to err as little as the best that is there without, or hardly more.

    They assume less: how public groups differ from each other no longer matters.
    """
    error = find_error(Weighted(), question, fine.levels)
    return error is not None and error <= HARDLY_MORE * best


def take_calibrated(rows: Sequence[PlanRow], fine: Spendable, question: Question) -> list[PlanRow]:
    """The rows of a plan, in which calibrated weights take the place of those without where they are better."""
    made, levels = Weighted(), fine.levels
    if not is_better(fine, question, rows[0].expected):
        return list(rows)
    told: dict[str, Any] = {
        "error": find_error(made, question, levels),
        "worst_error": find_error(made, question, levels, worst=True),
        "used": made.used(question, levels),
        "account": fine.account(charges_of(made, question, levels)),
        "assumption": made.condition(question, levels),
        "reason": made.explain(question, levels),
    }
    new = [replace(row, **told) if row.mechanism == made.name else row for row in rows]
    return sorted(new, key=lambda row: row.mechanism != made.name)

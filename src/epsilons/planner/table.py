"""A plan as a table, for a terminal and for a notebook."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from epsilons.display import html_table, show, show_count, text_table

if TYPE_CHECKING:
    from epsilons.planner.plan import Plan
    from epsilons.planner.rows import PlanRow

_HEAD = ("mechanism", "error", "worst error", "people used", "charges", "how")


def plan_table(plan: Plan) -> str:
    """The plan in plain text: a title, a row per mechanism, and what it takes for granted."""
    title = f"Plan for a {plan.question.statistic.describe()}, {_people(plan)}, share {_share(plan):.4g}"
    return "\n".join([title, "", text_table(_HEAD, [_cells(row) for row in plan.rows]), "", *_notes(plan)])


def plan_html(plan: Plan) -> str:
    """The same for a notebook."""
    title = f"Plan for a {plan.question.statistic.describe()}, {_people(plan)}, share {_share(plan):.4g}"
    return html_table(title, _HEAD, [_cells(row) for row in plan.rows], _notes(plan))


def _share(plan: Plan) -> float:
    return float(plan.share if plan.of_grants is None else plan.of_grants)


def _people(plan: Plan) -> str:
    levels = show_count(len(plan.levels.grants), "level")
    return f"{show_count(plan.levels.size, 'person', 'people')} at {levels}"


def _cells(row: PlanRow) -> tuple[str, ...]:
    spent = sorted({charge for granted, charge in row.charges.items() if math.isfinite(granted)})
    charges = show(spent[0]) if len(spent) == 1 else f"{show(spent[0])}…{show(spent[-1])}"
    return (row.mechanism, show(row.error), show(row.worst_error), f"{row.used:.0%}", charges, row.reason)


def _notes(plan: Plan) -> list[str]:
    which = "worst error" if plan.question.assume == "nothing" else "error"
    notes = [
        f"Best first, by {which}.",
        "error: expected RMSE if people's preferences say nothing about their values",
        "and the public guesses hold;",
        "worst error: whatever their values have to do with their preferences.",
    ]
    if plan.floor is not None:
        notes.append(f"No personalized mechanism can promise a worst error below {show(plan.floor)}.")
    if any(row.error is None for row in plan.rows):
        notes.append("A dash: it cannot be predicted without looking at the data.")
    return notes

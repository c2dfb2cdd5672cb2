"""Quotas of analysts: so that one of them does not use up what all of them share.

A quota is about fairness and nothing else. It protects nobody: analysts can put their answers together, so people's
budgets are kept per person, over all analysts, whatever the quotas say. A question counts against a quota with the
largest charge it makes to anybody; asked again it counts nothing, and given back it counts nothing either.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, func, insert, select, update

from epsilons.ledger import tables
from epsilons.ledger.base import Quota, QuotaError


def all_of(connection: Connection) -> tuple[Quota, ...]:
    """Everyone who ever asked under a name or has a quota, by name."""
    rows = connection.execute(select(tables.quotas).order_by(tables.quotas.c.analyst))
    return tuple(Quota(r.analyst, r.nano, r.questions, r.used_nano, r.used_questions) for r in rows)


def set_to(connection: Connection, analyst: str, nano: int | None, questions: int | None) -> None:
    """Give an analyst a quota, or None of it; what was used before counts."""
    _know(connection, analyst)
    table = tables.quotas
    connection.execute(update(table).where(table.c.analyst == analyst).values(nano=nano, questions=questions))


def use(connection: Connection, analyst: str, paid: Mapping[int, int]) -> None:
    """Count a question against its analyst's quota, or refuse it."""
    _know(connection, analyst)
    table, price = tables.quotas, max(paid.values(), default=0)
    fits = (
        update(table)
        .where(
            table.c.analyst == analyst,
            table.c.nano.is_(None) | (table.c.used_nano + price <= table.c.nano),
            table.c.questions.is_(None) | (table.c.used_questions < table.c.questions),
        )
        .values(used_nano=table.c.used_nano + price, used_questions=table.c.used_questions + 1)
    )
    if connection.execute(fits).rowcount != 1:
        raise QuotaError(
            "This analyst's quota does not reach for this question; nothing was charged.",
            rule="A quota shares the questions out fairly among analysts. It is no privacy budget: those are kept per "
            "person, over all analysts.",
            hint="a smaller share, a question that was asked before, or a larger quota",
        )


def give_back(connection: Connection, number: int) -> None:
    """A question that was given back does not count."""
    past, charges, table = tables.reservations, tables.charges, tables.quotas
    analyst = connection.execute(select(past.c.analyst).where(past.c.number == number)).scalar_one()
    if analyst is None:
        return
    own = select(func.max(charges.c.nano)).where(charges.c.number == number, charges.c.carried == 0)
    price = connection.execute(own).scalar_one() or 0
    less = {"used_nano": table.c.used_nano - price, "used_questions": table.c.used_questions - 1}
    connection.execute(update(table).where(table.c.analyst == analyst).values(**less))


def _know(connection: Connection, analyst: str) -> None:
    """A line for everyone who asks under a name."""
    table = tables.quotas
    if connection.execute(select(table.c.analyst).where(table.c.analyst == analyst)).one_or_none() is None:
        connection.execute(insert(table), {"analyst": analyst, "used_nano": 0, "used_questions": 0})

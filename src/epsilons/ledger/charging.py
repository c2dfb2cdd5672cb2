"""The statements that charge: each is one guarded UPDATE inside a transaction that `ledger` opens.

Those of every question are built once, since building a statement takes longer than running it.

Beside what people are charged stand the quotas of analysts, so that one of them does not use up what all of them share.
A quota is about fairness and nothing else. It protects nobody: analysts can put their answers together, so people's
budgets are kept per person, over all analysts, whatever the quotas say. A question counts against a quota with the
largest charge it makes to anybody; asked again it counts nothing, and given back it counts nothing either.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, func, insert, select, update

from epsilons.ledger import tables
from epsilons.ledger.values import ACTIVE, Quota, QuotaError, stale_plan

_groups, _paid, _past = tables.cohorts, tables.charges, tables.reservations

_ADD_CHARGES = insert(_paid)
_mine = _paid.c.number == bindparam("which")
_concerned = _groups.c.id.in_(select(_paid.c.cohort).where(_mine))
_nano = select(_paid.c.nano).where(_mine, _paid.c.cohort == _groups.c.id).scalar_subquery()
_CHARGE_ALL_THAT_FITS = (
    update(_groups)
    .where(
        _concerned,
        _groups.c.state == ACTIVE,
        _groups.c.granted.is_not(None),
        _groups.c.spent + _groups.c.reserved + _nano <= _groups.c.granted,
    )
    .values(reserved=_groups.c.reserved + _nano)
)
_GIVE_BACK = update(_groups).where(_concerned).values(reserved=_groups.c.reserved - _nano)
_SPEND = _GIVE_BACK.values(spent=_groups.c.spent + _nano)
_SET_STATE = update(_past).where(_past.c.number == bindparam("which")).values(state=bindparam("now"))
_SET_STATE_AND_ANSWER = _SET_STATE.values(answer=bindparam("content"))


def charge(connection: Connection, number: int, paid: Mapping[int, int]) -> None:
    """All charges or none. The guard stands in the UPDATE itself, so it holds whatever else is going on."""
    if not paid:
        return
    rows = [{"number": number, "cohort": cohort, "nano": nano, "carried": 0} for cohort, nano in paid.items()]
    connection.execute(_ADD_CHARGES, rows)
    if connection.execute(_CHARGE_ALL_THAT_FITS, {"which": number}).rowcount != len(paid):
        raise stale_plan()


def settle(connection: Connection, number: int, *, spend: bool) -> None:
    """What was reserved is spent or given back, also where people took it along."""
    connection.execute(_SPEND if spend else _GIVE_BACK, {"which": number})


def set_state(connection: Connection, number: int, state: str, answer: bytes | None = None) -> None:
    """What became of a reservation."""
    if answer is None:
        connection.execute(_SET_STATE, {"which": number, "now": state})
    else:
        connection.execute(_SET_STATE_AND_ANSWER, {"which": number, "now": state, "content": answer})


# Quotas -------------------------------------------------------------------------------------------------------------


def list_quotas(connection: Connection) -> tuple[Quota, ...]:
    """Everyone who ever asked under a name or has a quota, by name."""
    rows = connection.execute(select(tables.quotas).order_by(tables.quotas.c.analyst))
    return tuple(Quota(r.analyst, r.nano, r.questions, r.used_nano, r.used_questions) for r in rows)


def set_quota(connection: Connection, analyst: str, nano: int | None, questions: int | None) -> None:
    """Give an analyst a quota, or None of it; what was used before counts."""
    _add_analyst(connection, analyst)
    table = tables.quotas
    connection.execute(update(table).where(table.c.analyst == analyst).values(nano=nano, questions=questions))


def use_quota(connection: Connection, analyst: str, paid: Mapping[int, int]) -> None:
    """Count a question against its analyst's quota, or refuse it."""
    _add_analyst(connection, analyst)
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


def give_quota_back(connection: Connection, number: int) -> None:
    """A question that was given back does not count."""
    past, charges, table = tables.reservations, tables.charges, tables.quotas
    analyst = connection.execute(select(past.c.analyst).where(past.c.number == number)).scalar_one()
    if analyst is None:
        return
    own = select(func.max(charges.c.nano)).where(charges.c.number == number, charges.c.carried == 0)
    price = connection.execute(own).scalar_one() or 0
    less = {"used_nano": table.c.used_nano - price, "used_questions": table.c.used_questions - 1}
    connection.execute(update(table).where(table.c.analyst == analyst).values(**less))


def _add_analyst(connection: Connection, analyst: str) -> None:
    """A line for everyone who asks under a name."""
    table = tables.quotas
    if connection.execute(select(table.c.analyst).where(table.c.analyst == analyst)).one_or_none() is None:
        connection.execute(insert(table), {"analyst": analyst, "used_nano": 0, "used_questions": 0})

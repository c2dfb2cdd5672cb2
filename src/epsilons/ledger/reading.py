"""What the books say: reservations, the history, what is left. Nothing here changes anything.

What every question asks of the books is written down once, below: building a statement takes longer than running it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from epsilons.errors import LedgerError
from epsilons.ledger import cohorts as arithmetic
from epsilons.ledger import tables
from epsilons.ledger.base import (
    LOST,
    REFUNDED,
    STORED,
    TOUCHED,
    Cohort,
    Past,
    Remaining,
    Reservation,
)

_past, _paid = tables.reservations, tables.charges

_COHORTS = select(tables.cohorts).order_by(tables.cohorts.c.id)
_EPOCH = select(tables.ledger.c.epoch)
_FIRST_INDIVIDUAL = select(func.min(_past.c.number)).where(
    _past.c.individual == 1, _past.c.state.in_((TOUCHED, STORED, LOST))
)
_LIVE = select(_past).where(_past.c.key == bindparam("question"), _past.c.state.not_in((REFUNDED, LOST)))
_NUMBERED = select(_past).where(_past.c.number == bindparam("which"))
_OWN_CHARGES = (
    select(_paid.c.cohort, _paid.c.nano)
    .where(_paid.c.number == bindparam("which"), _paid.c.carried == 0)
    .order_by(_paid.c.cohort)
)


def cohorts(connection: Connection) -> tuple[Cohort, ...]:
    """All cohorts, in the order they were made."""
    rows = connection.execute(_COHORTS)
    return tuple(Cohort(r.id, r.granted, r.spent, r.reserved, r.people, r.state) for r in rows)


def epoch(connection: Connection) -> int:
    """How often the roster changed."""
    return int(connection.execute(_EPOCH).scalar_one())


def not_dp_since(connection: Connection) -> int | None:
    """The first release whose promise was individual privacy only: a permanent mark once data was read for it."""
    first = connection.execute(_FIRST_INDIVIDUAL).scalar_one()
    return None if first is None else int(first)


def reservation(row: Any, charges: dict[int, int], *, resumed: bool) -> Reservation:
    """A row as the value that is handed out."""
    return Reservation(
        number=row.number,
        state=row.state,
        epoch=row.epoch,
        charges=charges,
        description=row.description,
        answer=row.answer,
        resumed=resumed,
    )


def live(connection: Connection, key: bytes) -> Reservation | None:
    """The reservation of a question, unless it was given back or lost on the way."""
    row = connection.execute(_LIVE, {"question": key}).one_or_none()
    return None if row is None else reservation(row, _own_charges(connection, row.number), resumed=True)


def numbered(connection: Connection, number: int) -> Reservation:
    """The reservation of this number."""
    row = connection.execute(_NUMBERED, {"which": number}).one_or_none()
    if row is None:
        raise LedgerError("There is no release of this number.", hint="ledger.history()")
    return reservation(row, _own_charges(connection, number), resumed=True)


def _own_charges(connection: Connection, number: int) -> dict[int, int]:
    """What was charged to whom when it was asked, without what people took along later."""
    return {row.cohort: row.nano for row in connection.execute(_OWN_CHARGES, {"which": number})}


def history(connection: Connection) -> tuple[Past, ...]:
    """Every question that was ever charged, in order."""
    charges, groups = tables.charges, tables.cohorts
    paid: dict[int, list[tuple[int, int, int]]] = {}
    query = select(charges.c.number, charges.c.cohort, charges.c.nano, groups.c.granted)
    joined = query.join(groups, groups.c.id == charges.c.cohort).where(charges.c.carried == 0)
    for number, cohort, nano, granted in connection.execute(joined.order_by(charges.c.number, charges.c.cohort)):
        paid.setdefault(number, []).append((cohort, granted, nano))
    mark = not_dp_since(connection)
    lines = []
    for row in connection.execute(select(tables.reservations).order_by(tables.reservations.c.number)):
        by_grant: dict[int, int] = {}
        for _, granted, nano in paid.get(row.number, ()):
            by_grant[granted] = max(nano, by_grant.get(granted, 0))
        lines.append(
            Past(
                number=row.number,
                kind=row.kind,
                individual=bool(row.individual),
                at=row.at,
                state=row.state,
                epoch=row.epoch,
                description=row.description,
                charges=dict(sorted(by_grant.items())),
                cohorts={cohort: nano for cohort, _, nano in paid.get(row.number, ())},
                not_dp_since=mark if mark is not None and mark <= row.number else None,
                analyst=row.analyst,
                grants={cohort: granted for cohort, granted, _ in paid.get(row.number, ())},
            )
        )
    return tuple(lines)


def remaining(connection: Connection) -> Remaining:
    """What is left at every level; questions are counted in what the last one charged."""
    here = cohorts(connection)
    least = arithmetic.least_left(here)
    past, charges, groups = tables.reservations, tables.charges, tables.cohorts
    paid = select(func.max(past.c.number)).join(charges, charges.c.number == past.c.number)
    last = connection.execute(paid.where(past.c.state != REFUNDED)).scalar_one()
    query = select(groups.c.granted, func.max(charges.c.nano)).join(charges, charges.c.cohort == groups.c.id)
    charged = query.where(charges.c.number == last, charges.c.carried == 0).group_by(groups.c.granted)
    price = {granted: int(nano) for granted, nano in connection.execute(charged)} if last is not None else {}
    return Remaining(
        nano=least,
        cohorts=here,
        questions=arithmetic.questions_left(least, price),
        not_dp_since=not_dp_since(connection),
    )

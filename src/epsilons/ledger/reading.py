"""What the books say: reservations, the history, what is left. Nothing here changes anything."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, select

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


def cohorts(connection: Connection) -> tuple[Cohort, ...]:
    """All cohorts, in the order they were made."""
    rows = connection.execute(select(tables.cohorts).order_by(tables.cohorts.c.id))
    return tuple(Cohort(r.id, r.granted, r.spent, r.reserved, r.people, r.state) for r in rows)


def epoch(connection: Connection) -> int:
    """How often the roster changed."""
    return int(connection.execute(select(tables.ledger.c.epoch)).scalar_one())


def not_dp_since(connection: Connection) -> int | None:
    """The first release whose promise was individual privacy only: a permanent mark once data was read for it."""
    past = tables.reservations
    query = select(func.min(past.c.number)).where(past.c.individual == 1, past.c.state.in_((TOUCHED, STORED, LOST)))
    first = connection.execute(query).scalar_one()
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
    past = tables.reservations
    going = past.c.state.not_in((REFUNDED, LOST))
    row = connection.execute(select(past).where(past.c.key == key, going)).one_or_none()
    return None if row is None else reservation(row, _own_charges(connection, row.number), resumed=True)


def numbered(connection: Connection, number: int) -> Reservation:
    """The reservation of this number."""
    past = tables.reservations
    row = connection.execute(select(past).where(past.c.number == number)).one_or_none()
    if row is None:
        raise LedgerError("There is no release of this number.", hint="ledger.history()")
    return reservation(row, _own_charges(connection, number), resumed=True)


def _own_charges(connection: Connection, number: int) -> dict[int, int]:
    """What was charged to whom when it was asked, without what people took along later."""
    charges = tables.charges
    query = select(charges.c.cohort, charges.c.nano).where(charges.c.number == number, charges.c.carried == 0)
    return {row.cohort: row.nano for row in connection.execute(query.order_by(charges.c.cohort))}


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

"""The statements that move money: each is one guarded UPDATE inside a transaction that `book` opens."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, insert, select, update

from epsilons.ledger import reading, tables
from epsilons.ledger.base import ACTIVE, Terms, moved


def terms(connection: Connection) -> Terms | None:
    """What was settled, or None."""
    about = connection.execute(select(tables.ledger)).one()
    if about.neighbors is None:
        return None
    return Terms(about.neighbors, about.rows_per_person, bool(about.allow_individual))


def fits(connection: Connection, paid: Mapping[int, int], epoch: int) -> bool:
    """Whether a charge looks possible at this moment; only the guard in `charge` decides."""
    left = {c.id: c.left for c in reading.cohorts(connection) if c.state == ACTIVE and c.left is not None}
    return reading.epoch(connection) == epoch and all(nano <= left.get(cohort, 0) for cohort, nano in paid.items())


def charge(connection: Connection, number: int, paid: Mapping[int, int]) -> None:
    """All charges or none. The guard stands in the UPDATE itself, so it holds whatever else is going on."""
    if not paid:
        return
    rows = [{"number": number, "cohort": cohort, "nano": nano, "carried": 0} for cohort, nano in paid.items()]
    connection.execute(insert(tables.charges), rows)
    cohorts, charges = tables.cohorts, tables.charges
    mine = charges.c.number == number
    nano = select(charges.c.nano).where(mine, charges.c.cohort == cohorts.c.id).scalar_subquery()
    guarded = (
        update(cohorts)
        .where(
            cohorts.c.id.in_(select(charges.c.cohort).where(mine)),
            cohorts.c.state == ACTIVE,
            cohorts.c.granted.is_not(None),
            cohorts.c.spent + cohorts.c.reserved + nano <= cohorts.c.granted,
        )
        .values(reserved=cohorts.c.reserved + nano)
    )
    if connection.execute(guarded).rowcount != len(paid):
        raise moved()


def settle(connection: Connection, number: int, *, spend: bool) -> None:
    """What was reserved is spent or given back, also where people took it along."""
    cohorts, charges = tables.cohorts, tables.charges
    mine = charges.c.number == number
    nano = select(charges.c.nano).where(mine, charges.c.cohort == cohorts.c.id).scalar_subquery()
    values = {"reserved": cohorts.c.reserved - nano} | ({"spent": cohorts.c.spent + nano} if spend else {})
    connection.execute(update(cohorts).where(cohorts.c.id.in_(select(charges.c.cohort).where(mine))).values(**values))


def set_state(connection: Connection, number: int, state: str, answer: bytes | None = None) -> None:
    """What became of a reservation."""
    past = tables.reservations
    values = {"state": state} | ({} if answer is None else {"answer": answer})
    connection.execute(update(past).where(past.c.number == number).values(**values))

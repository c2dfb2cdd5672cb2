"""One person's account, drawn up from the books."""

from __future__ import annotations

from sqlalchemy import Connection, select

from epsilons.errors import LedgerError
from epsilons.ledger import reading, tables
from epsilons.ledger.account import Statement, Use
from epsilons.ledger.base import LOST, REFUNDED, STORED, TOUCHED, WITHDRAWN


def statement(connection: Connection, digest: bytes) -> Statement:
    """One person's account, followed through every cohort they stood in."""
    people, moves, past, charges = tables.people, tables.moves, tables.reservations, tables.charges
    person = connection.execute(select(people).where(people.c.digest == digest)).one_or_none()
    if person is None:
        raise LedgerError("This person has no account here.", hint="the id as it stands in the table")
    changes = connection.execute(select(moves).where(moves.c.digest == digest).order_by(moves.c.seq)).all()
    starts = [person.joined, *(change.seq for change in changes)]
    places = [change.origin for change in changes] + [person.cohort]
    ends: list[int | None] = [*starts[1:], None]
    uses: list[Use] = []
    when_public: list[int] = []
    by_id = {cohort.id: cohort for cohort in reading.cohorts(connection)}
    for start, end, place in zip(starts, ends, places, strict=True):
        during = (past.c.seq > start) if end is None else (past.c.seq > start) & (past.c.seq < end)
        granted = by_id[place].granted
        if granted is None:
            asked = select(past.c.number).where(during, past.c.state.in_((TOUCHED, STORED, LOST)))
            when_public += connection.execute(asked.order_by(past.c.number)).scalars()
            continue
        paid = (
            select(past.c.number, past.c.kind, past.c.at, charges.c.nano)
            .join(charges, (charges.c.number == past.c.number) & (charges.c.cohort == place))
            .where(during, past.c.state != REFUNDED)
        )
        uses += [Use(*row, granted) for row in connection.execute(paid.order_by(past.c.number))]
    here = by_id[person.cohort]
    return Statement(
        granted=None if here.state == WITHDRAWN else here.granted,
        state=here.state,
        spent=here.spent,
        reserved=here.reserved,
        left=here.left,
        releases=tuple((use.number, use.kind, use.charge) for use in uses),
        when_public=tuple(when_public),
        not_dp_since=reading.not_dp_since(connection),
        uses=tuple(uses),
        written_off=here.spent + here.reserved - sum(use.charge for use in uses),
    )

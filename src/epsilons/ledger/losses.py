"""Accepting a loss: the newest records are gone for good, so the worst is assumed of what they held.

Everybody's grant counts as fully spent. Questions that were under way are closed, since their answers may have left
already and a second answer would be a second release. Whoever joins afterwards may have been charged in the part that
is lost, and counts as fully spent too. What people grant beyond that, by their own word, is new.
"""

from __future__ import annotations

from sqlalchemy import Connection, case, select, update

from epsilons.ledger import journal, tables
from epsilons.ledger.anchor import Head
from epsilons.ledger.base import LOST, RESERVED, TOUCHED


def accept(connection: Connection, at: str, lost: Head | None) -> None:
    """Write everything off, as a line of the journal that names the head that was lost."""
    cohorts, past = tables.cohorts, tables.reservations
    gone = cohorts.c.spent + cohorts.c.reserved
    connection.execute(
        update(cohorts).values(spent=case((cohorts.c.granted > gone, cohorts.c.granted), else_=gone), reserved=0)
    )
    connection.execute(update(past).where(past.c.state.in_((RESERVED, TOUCHED))).values(state=LOST))
    losses = int(connection.execute(select(tables.ledger.c.losses)).scalar_one()) + 1
    connection.execute(update(tables.ledger).values(losses=losses))
    about = None if lost is None else {"seq": lost.seq, "hash": lost.digest}
    journal.append(connection, "loss", at, {"losses": losses, "head": about})

"""The statements that move money: each is one guarded UPDATE inside a transaction that `book` opens.

They are written down once: building a statement takes longer than running it.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, insert, select, update

from epsilons.ledger import reading, tables
from epsilons.ledger.base import ACTIVE, Terms, moved

_groups, _paid, _past = tables.cohorts, tables.charges, tables.reservations

_TERMS = select(tables.ledger)
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


def terms(connection: Connection) -> Terms | None:
    """What was settled, or None."""
    about = connection.execute(_TERMS).one()
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
    connection.execute(_ADD_CHARGES, rows)
    if connection.execute(_CHARGE_ALL_THAT_FITS, {"which": number}).rowcount != len(paid):
        raise moved()


def settle(connection: Connection, number: int, *, spend: bool) -> None:
    """What was reserved is spent or given back, also where people took it along."""
    connection.execute(_SPEND if spend else _GIVE_BACK, {"which": number})


def set_state(connection: Connection, number: int, state: str, answer: bytes | None = None) -> None:
    """What became of a reservation."""
    if answer is None:
        connection.execute(_SET_STATE, {"which": number, "now": state})
    else:
        connection.execute(_SET_STATE_AND_ANSWER, {"which": number, "now": state, "content": answer})

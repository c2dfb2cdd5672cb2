"""Every statement of the ledger's questions: what its tables say, and the guarded updates that charge.

A charge is one guarded UPDATE inside a transaction that `ledger` opens. Statements of every question are built once,
since building one takes longer than running it.

Beside what people are charged stand the quotas of analysts, so that one of them does not use up what all of them share.
A quota is about fairness and nothing else. It protects nobody: analysts can put their answers together, so people's
budgets are kept per person, over all analysts, whatever the quotas say. A question counts against a quota with the
largest charge it makes to anybody; asked again it counts nothing, and given back it counts nothing either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from epsilons.errors import LedgerError
from epsilons.ledger import tables
from epsilons.ledger.values import (
    ACTIVE,
    LOST,
    REFUNDED,
    STORED,
    TOUCHED,
    WITHDRAWN,
    Cohort,
    Past,
    Quota,
    QuotaError,
    Remaining,
    Reservation,
    Statement,
    Terms,
    Use,
    least_left,
    questions_left,
    stale_plan,
)

_past, _paid, _groups = tables.reservations, tables.charges, tables.cohorts

_TERMS = select(tables.ledger)
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


# What the tables say --------------------------------------------------------------------------------------------------


def read_terms(connection: Connection) -> Terms | None:
    """What was settled, or None."""
    about = connection.execute(_TERMS).one()
    if about.neighbors is None:
        return None
    return Terms(about.neighbors, about.rows_per_person, bool(about.allow_individual))


def read_cohorts(connection: Connection) -> tuple[Cohort, ...]:
    """All cohorts, in the order they were made."""
    rows = connection.execute(_COHORTS)
    return tuple(Cohort(r.id, r.granted, r.spent, r.reserved, r.people, r.state) for r in rows)


def read_epoch(connection: Connection) -> int:
    """How often the roster changed."""
    return int(connection.execute(_EPOCH).scalar_one())


def find_first_individual(connection: Connection) -> int | None:
    """The first release whose promise was individual privacy only: a permanent mark once data was read for it."""
    first = connection.execute(_FIRST_INDIVIDUAL).scalar_one()
    return None if first is None else int(first)


def fits(connection: Connection, paid: Mapping[int, int], epoch: int) -> bool:
    """Whether a charge looks possible at this moment; only the guard in `charge` decides."""
    left = {c.id: c.left for c in read_cohorts(connection) if c.state == ACTIVE and c.left is not None}
    return read_epoch(connection) == epoch and all(nano <= left.get(cohort, 0) for cohort, nano in paid.items())


def find_reservation(connection: Connection, key: bytes) -> Reservation | None:
    """The reservation of a question, unless it was given back or lost on the way."""
    row = connection.execute(_LIVE, {"question": key}).one_or_none()
    return None if row is None else _resume(connection, row)


def get_reservation(connection: Connection, number: int) -> Reservation:
    """The reservation of this number."""
    row = connection.execute(_NUMBERED, {"which": number}).one_or_none()
    if row is None:
        raise LedgerError("There is no release of this number.", suggest="ledger.history()")
    return _resume(connection, row)


def _resume(connection: Connection, row: Any) -> Reservation:
    """A reservation with what was charged when it was asked, without what people took along later."""
    return Reservation(
        number=row.number,
        state=row.state,
        epoch=row.epoch,
        charges={paid.cohort: paid.nano for paid in connection.execute(_OWN_CHARGES, {"which": row.number})},
        description=row.description,
        answer=row.answer,
        resumed=True,
    )


def read_history(connection: Connection) -> tuple[Past, ...]:
    """Every question that was ever charged, in order."""
    charges, groups = tables.charges, tables.cohorts
    paid: dict[int, list[tuple[int, int, int]]] = {}
    query = select(charges.c.number, charges.c.cohort, charges.c.nano, groups.c.granted)
    joined = query.join(groups, groups.c.id == charges.c.cohort).where(charges.c.carried == 0)
    for number, cohort, nano, granted in connection.execute(joined.order_by(charges.c.number, charges.c.cohort)):
        paid.setdefault(number, []).append((cohort, granted, nano))
    mark = find_first_individual(connection)
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


def read_remaining(connection: Connection) -> Remaining:
    """What is left at every level; questions are counted in what the last one charged."""
    here = read_cohorts(connection)
    least = least_left(here)
    past, charges, groups = tables.reservations, tables.charges, tables.cohorts
    paid = select(func.max(past.c.number)).join(charges, charges.c.number == past.c.number)
    last = connection.execute(paid.where(past.c.state != REFUNDED)).scalar_one()
    query = select(groups.c.granted, func.max(charges.c.nano)).join(charges, charges.c.cohort == groups.c.id)
    charged = query.where(charges.c.number == last, charges.c.carried == 0).group_by(groups.c.granted)
    price = {granted: int(nano) for granted, nano in connection.execute(charged)} if last is not None else {}
    return Remaining(
        nano=least,
        cohorts=here,
        questions=questions_left(least, price),
        not_dp_since=find_first_individual(connection),
    )


def read_statement(connection: Connection, digest: bytes) -> Statement:
    """One person's account, followed through every cohort they stood in."""
    people, moves, past, charges = tables.people, tables.moves, tables.reservations, tables.charges
    person = connection.execute(select(people).where(people.c.digest == digest)).one_or_none()
    if person is None:
        raise LedgerError("This person has no account here.", suggest="the id as it stands in the table")
    changes = connection.execute(select(moves).where(moves.c.digest == digest).order_by(moves.c.seq)).all()
    starts = [person.joined, *(change.seq for change in changes)]
    places = [change.origin for change in changes] + [person.cohort]
    ends: list[int | None] = [*starts[1:], None]
    uses: list[Use] = []
    when_public: list[int] = []
    by_id = {cohort.id: cohort for cohort in read_cohorts(connection)}
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
        not_dp_since=find_first_individual(connection),
        uses=tuple(uses),
        written_off=here.spent + here.reserved - sum(use.charge for use in uses),
    )


# Charges --------------------------------------------------------------------------------------------------------------


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
            suggest="a smaller share, a question that was asked before, or a larger quota",
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

"""Every SQL statement of the ledger's questions: what its tables say, and the guarded updates that charge.

A charge is one guarded UPDATE inside a transaction that `ledger` opens. Statements of every question are built once,
since building one takes longer than running it.

Quotas of analysts keep one of them from using up what all of them share. A quota is about fairness and nothing else. It
protects no data: analysts can put their answers together, so people's budgets are kept per person, over all analysts,
whatever the quotas say. A question counts against a quota with the largest charge it makes to a person; asked again or
given back it counts nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

from sqlalchemy import Connection, bindparam, func, insert, select, update

from epsilons.errors import Argument, LedgerError
from epsilons.ledger import checks, tables, values
from epsilons.ledger.balances import Remaining, questions_left
from epsilons.ledger.values import (
    LOST,
    REFUNDED,
    STORED,
    TOUCHED,
    Cohort,
    History,
    Past,
    Quota,
    Reservation,
    Statement,
    Stored,
)

_past, _paid, _groups, _quotas = tables.reservations, tables.charges, tables.cohorts, tables.quotas
#: Data may have been read for these.
_SPENT = _past.c.state.in_((TOUCHED, STORED, LOST))

_COHORTS = select(*(_groups.c[each.name] for each in fields(Cohort))).order_by(_groups.c.id)
_LEDGER = select(tables.ledger)
_FIRST_INDIVIDUAL = select(func.min(_past.c.number)).where(_past.c.individual == 1, _SPENT)
_LIVE = (
    select(_past)
    .where(
        ((_past.c.key == bindparam("key")) & _past.c.state.not_in((REFUNDED, LOST)))
        | ((_past.c.question == bindparam("question")) & (_past.c.state == STORED))
    )
    .order_by(_past.c.answer.is_(None), _past.c.number.desc())
    .limit(1)
)
_NEWEST = select(func.max(tables.registrations.c.number)).where(tables.registrations.c.dataset == bindparam("which"))
_NUMBERED = select(_past).where(_past.c.number == bindparam("which"))
_mine = _paid.c.number == bindparam("which")
_OWN_CHARGES = select(_paid.c.cohort, _paid.c.nano).where(_mine, _paid.c.carried == 0).order_by(_paid.c.cohort)

_concerned = _groups.c.id.in_(select(_paid.c.cohort).where(_mine))
_nano = select(_paid.c.nano).where(_mine, _paid.c.cohort == _groups.c.id).scalar_subquery()
_CHARGE_ALL_THAT_FITS = (
    update(_groups)
    .where(
        _concerned,
        _groups.c.state == values.ACTIVE,
        _groups.c.granted.is_not(None),
        _groups.c.spent + _groups.c.reserved + _nano <= _groups.c.granted,
    )
    .values(reserved=_groups.c.reserved + _nano)
)
_GIVE_BACK = update(_groups).where(_concerned).values(reserved=_groups.c.reserved - _nano)
_SPEND = _GIVE_BACK.values(spent=_groups.c.spent + _nano)
_SET_STATE = update(_past).where(_past.c.number == bindparam("which")).values(state=bindparam("now"))
_STORE = _SET_STATE.values(answer=bindparam("content"))


def read_cohorts(connection: Connection, dataset: int | None = None) -> tuple[Cohort, ...]:
    """All cohorts, or those on the roster of a dataset."""
    found = connection.execute(_COHORTS)
    return tuple(Cohort(*row) for row in found if dataset is None or dataset in read_rosters(row.datasets))


def read_rosters(datasets: str) -> dict[int, str]:
    """The datasets whose roster people are on, with the last word of each source: how a cohort's `datasets` is read."""
    return {int(number): said for number, said in json.loads(datasets).items()}


def read_epoch(connection: Connection) -> int:
    return int(connection.execute(_LEDGER).one().epoch)


def find_mark(connection: Connection, seeded: int | None) -> int | None:
    """The first release, once data was read for it, that was not DP: individual privacy, or a seed. A mark for good."""
    first = cast(int | None, connection.execute(_FIRST_INDIVIDUAL).scalar_one())
    return min((one for one in (first, seeded) if one is not None), default=None)


def fits(connection: Connection, paid: Mapping[int, int], epoch: int, dataset: int | None = None) -> bool:
    """Whether a charge looks possible at this moment; only the guard in `charge` decides."""
    here = read_cohorts(connection, dataset)
    left = {c.id: c.left for c in here if c.state == values.ACTIVE and c.left is not None}
    return read_epoch(connection) == epoch and all(nano <= left.get(cohort, 0) for cohort, nano in paid.items())


def read_terms(connection: Connection) -> values.Terms | None:
    about = connection.execute(_LEDGER).mappings().one()
    if about["neighbors"] is None:
        return None
    plain = {name: about[name] for name in ("neighbors", "rows_per_person", "measure", "ids", "spelling")}
    return values.Terms(**plain, allow_individual=bool(about["allow_individual"]))


def read_state(connection: Connection, dataset: int) -> tuple[int, int]:
    """(the roster's epoch, the number of the newest registration of a dataset)."""
    newest = connection.execute(_NEWEST, {"which": dataset}).scalar_one()
    return connection.execute(_LEDGER).one().epoch, newest


def find_reservation(connection: Connection, key: bytes, question: bytes | None = None) -> Reservation | None:
    """The reservation of a question to this roster, unless it was given back or lost; or its newest stored answer.

    The answer is found by the question alone, whatever has become of the roster since.
    """
    row = connection.execute(_LIVE, {"key": key, "question": question}).one_or_none()
    return None if row is None else _resume(connection, row)


def get_reservation(connection: Connection, number: int) -> Reservation:
    known = checks.is_whole(number, 1, 2**63 - 1)
    row = connection.execute(_NUMBERED, {"which": int(number)}).one_or_none() if known else None
    if row is None:
        raise LedgerError("There is no release of this number.", suggest="a number of the history")
    return _resume(connection, row)


def _resume(connection: Connection, row: Any) -> Reservation:
    """A reservation with what was charged when it was asked, without what people took along later."""
    charges = {paid.cohort: paid.nano for paid in connection.execute(_OWN_CHARGES, {"which": row.number})}
    return Reservation(row.number, row.state, row.epoch, charges, row.description, row.answer, resumed=True, at=row.at)


def read_answers(connection: Connection, number: int | None, dataset: int | None) -> tuple[Stored, ...]:
    """Every answer that was stored, newest last; of a number, or of a dataset, and what is older than any dataset."""
    query = select(*(_past.c[each.name] for each in fields(Stored))).where(_past.c.state == STORED)
    if number is not None:
        query = query.where(_past.c.number == get_reservation(connection, number).number)
    if dataset is not None:
        query = query.where(_past.c.dataset.is_(None) | (_past.c.dataset == dataset))
    return tuple(Stored(*row) for row in connection.execute(query.order_by(_past.c.number)))


def read_history(connection: Connection, seeded: int | None, dataset: int | None = None) -> History:
    paid: dict[int, list[tuple[int, int, int]]] = {}
    query = select(_paid.c.number, _paid.c.cohort, _groups.c.granted, _paid.c.nano)
    joined = query.join(_groups, _groups.c.id == _paid.c.cohort).where(_paid.c.carried == 0)
    for number, *charged in connection.execute(joined.order_by(_paid.c.number, _paid.c.cohort)):
        paid.setdefault(number, []).append(tuple(charged))
    mark = find_mark(connection, seeded)
    same = ("number", "kind", "at", "state", "epoch", "description", "analyst")
    return History(
        Past(
            **{name: getattr(row, name) for name in same},
            individual=bool(row.individual),
            # In ascending order the largest charge at each grant comes last.
            charges=dict(sorted((granted, nano) for _, granted, nano in paid.get(row.number, ()))),
            cohorts={cohort: nano for cohort, _, nano in paid.get(row.number, ())},
            not_dp_since=mark if mark is not None and mark <= row.number else None,
            grants={cohort: granted for cohort, granted, _ in paid.get(row.number, ())},
        )
        for row in connection.execute(select(_past).order_by(_past.c.number))
        if dataset in (None, row.dataset)
    )


def read_remaining(connection: Connection, seeded: int | None, dataset: int | None = None) -> Remaining:
    here = read_cohorts(connection, dataset)
    charged = select(func.max(_past.c.number)).join(_paid, _paid.c.number == _past.c.number)
    of = [] if dataset is None else [_past.c.dataset == dataset]
    last = connection.execute(charged.where(_past.c.state != REFUNDED, *of)).scalar_one()
    query = select(_groups.c.granted, func.max(_paid.c.nano)).join(_paid, _paid.c.cohort == _groups.c.id)
    by_grant = query.where(_paid.c.number == last, _paid.c.carried == 0).group_by(_groups.c.granted)
    price = {granted: int(nano) for granted, nano in connection.execute(by_grant)} if last is not None else {}
    return Remaining(here, questions_left(here, price), find_mark(connection, seeded))


def read_statement(connection: Connection, digest: bytes, seeded: int | None) -> Statement:
    """One person's account, followed through every cohort they stood in."""
    people, moves = tables.people, tables.moves
    person = connection.execute(select(people).where(people.c.digest == digest)).one_or_none()
    if person is None:
        raise LedgerError("This person has no account here.", suggest="the id as it stands in the table")
    changes = connection.execute(select(moves).where(moves.c.digest == digest).order_by(moves.c.seq)).all()
    starts = [person.joined, *(change.seq for change in changes)]
    places = [change.origin for change in changes] + [person.cohort]
    ends: list[int | None] = [*starts[1:], None]
    uses: list[values.Use] = []
    when_public: list[int] = []
    by_id = {cohort.id: cohort for cohort in read_cohorts(connection)}
    for start, end, place in zip(starts, ends, places, strict=True):
        during = (_past.c.seq > start) if end is None else (_past.c.seq > start) & (_past.c.seq < end)
        granted = by_id[place].granted
        if granted is None:
            theirs = _past.c.dataset.is_(None) | _past.c.dataset.in_(list(read_rosters(by_id[place].datasets)))
            asked = select(_past.c.number).where(during, _SPENT, theirs)
            when_public += connection.execute(asked.order_by(_past.c.number)).scalars()
            continue
        paid = (
            select(_past.c.number, _past.c.kind, _past.c.at, _paid.c.nano)
            .join(_paid, (_paid.c.number == _past.c.number) & (_paid.c.cohort == place))
            .where(during, _past.c.state != REFUNDED)
        )
        uses += [values.Use(*row, granted) for row in connection.execute(paid.order_by(_past.c.number))]
    here = by_id[person.cohort]
    return Statement(
        granted=None if here.state == values.WITHDRAWN else here.granted,
        state=here.state,
        spent=here.spent,
        reserved=here.reserved,
        left=here.left,
        uses=tuple(uses),
        when_public=tuple(when_public),
        not_dp_since=find_mark(connection, seeded),
        written_off=here.spent + here.reserved - sum(use.charge for use in uses),
    )


def charge(connection: Connection, number: int, paid: Mapping[int, int]) -> None:
    """All charges or none. The guard stands in the UPDATE itself, so it holds whatever else is going on."""
    if not paid:
        return
    rows = [{"number": number, "cohort": cohort, "nano": nano, "carried": 0} for cohort, nano in paid.items()]
    connection.execute(insert(_paid), rows)
    if connection.execute(_CHARGE_ALL_THAT_FITS, {"which": number}).rowcount != len(paid):
        raise values.stale_plan()


def spend(connection: Connection, number: int) -> None:
    """What was reserved is spent, also where people took it along: data is about to be read."""
    connection.execute(_SET_STATE, {"which": number, "now": TOUCHED})
    connection.execute(_SPEND, {"which": number})


def give_back(connection: Connection, number: int) -> None:
    """What was reserved is given back, also where people took it along; the question does not count as asked."""
    connection.execute(_SET_STATE, {"which": number, "now": REFUNDED})
    connection.execute(_GIVE_BACK, {"which": number})
    analyst = connection.execute(select(_past.c.analyst).where(_past.c.number == number)).scalar_one()
    if analyst is None:
        return
    price = max((nano for _, nano in connection.execute(_OWN_CHARGES, {"which": number})), default=0)
    less = {"used_nano": _quotas.c.used_nano - price, "used_questions": _quotas.c.used_questions - 1}
    connection.execute(update(_quotas).where(_quotas.c.analyst == analyst).values(**less))


def store(connection: Connection, number: int, answer: bytes) -> None:
    connection.execute(_STORE, {"which": number, "now": STORED, "content": answer})


def list_quotas(connection: Connection) -> tuple[Quota, ...]:
    return tuple(Quota(*row) for row in connection.execute(select(_quotas).order_by(_quotas.c.analyst)))


def set_quota(connection: Connection, analyst: str, nano: int | None, questions: int | None) -> None:
    """Give an analyst a quota, or None of it; what was used before counts."""
    _add_analyst(connection, analyst)
    connection.execute(update(_quotas).where(_quotas.c.analyst == analyst).values(nano=nano, questions=questions))


def use_quota(connection: Connection, analyst: str, paid: Mapping[int, int]) -> None:
    """Count a question against its analyst's quota, or refuse it."""
    _add_analyst(connection, analyst)
    price = max(paid.values(), default=0)
    within = update(_quotas).where(
        _quotas.c.analyst == analyst,
        _quotas.c.nano.is_(None) | (_quotas.c.used_nano + price <= _quotas.c.nano),
        _quotas.c.questions.is_(None) | (_quotas.c.used_questions < _quotas.c.questions),
    )
    use = within.values(used_nano=_quotas.c.used_nano + price, used_questions=_quotas.c.used_questions + 1)
    if connection.execute(use).rowcount != 1:
        raise values.QuotaError(
            "This analyst's quota does not reach for this question; nothing was charged.",
            rule="It is no privacy budget: those are kept per person, over all analysts.",
            suggest=("a smaller ", Argument("share"), ", a question that was asked before, or a larger quota"),
        )


def _add_analyst(connection: Connection, analyst: str) -> None:
    if connection.execute(select(_quotas.c.analyst).where(_quotas.c.analyst == analyst)).one_or_none() is None:
        connection.execute(insert(_quotas), {"analyst": analyst, "used_nano": 0, "used_questions": 0})

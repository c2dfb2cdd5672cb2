"""Every SQL statement of the ledger's questions: what its tables say, and the guarded updates that charge.

A charge is one guarded UPDATE inside a transaction that `ledger` opens.

Quotas of analysts keep one of them from using up what all of them share. A quota is about fairness and nothing else. It
protects no data: analysts can put their answers together, so people's budgets are kept per person, over all analysts,
whatever the quotas say. A question counts against a quota with the largest charge it makes to a person; asked again or
given back it counts nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

from epsilons.errors import Argument
from epsilons.ledger import checks, values
from epsilons.ledger.balances import Remaining, questions_left
from epsilons.ledger.journal import Head
from epsilons.ledger.past import check_past
from epsilons.ledger.values import Cohort, History, Past, Quota, Reservation, Stored, list_active
from epsilons.measure import PLAIN, Measure
from epsilons.storage.base import Connection

#: Data may have been read for these.
SPENT = "state IN ('touched', 'stored', 'lost')"
COHORTS, EMPTIED = (
    f"SELECT {', '.join(each.name for each in fields(Cohort))} FROM {table}" for table in ("cohorts", "emptied")
)
# Who was charged, by what they granted, also where everybody has left since.
_CHARGED = "charges LEFT JOIN cohorts ON cohorts.id = cohort LEFT JOIN emptied ON emptied.id = cohort"
_GRANTED = "coalesce(cohorts.granted, emptied.granted)"
_STORED = "SELECT * FROM reservations WHERE state = 'stored'"
_LIVE = """
SELECT * FROM reservations
WHERE (key = :key AND state NOT IN ('refunded', 'lost')) OR (question = :question AND state = 'stored')
ORDER BY answer IS NULL, number DESC LIMIT 1"""
_PLAN = f"""
SELECT cohort, nano, charges.level, {_GRANTED} FROM {_CHARGED}
WHERE number = :number AND carried = 0 AND coalesce(cohorts.id, emptied.id) = cohort ORDER BY cohort"""
#: Cohorts whose grant is one by period.
WITH_TERMS = "FROM cohorts WHERE people > 0 AND datasets LIKE '%\"renews\"%'"
_PRICE = "SELECT max(nano) FROM charges WHERE number = :number AND carried = 0"

_CONCERNED = "id IN (SELECT cohort FROM charges WHERE number = :number AND nano > 0)"
_NANO = "(SELECT nano FROM charges WHERE number = :number AND cohort = cohorts.id)"
_CHARGE_ALL_THAT_FITS = f"""
UPDATE cohorts SET reserved = reserved + {_NANO}
WHERE {_CONCERNED} AND state = 'active' AND granted IS NOT NULL AND spent + reserved + {_NANO} <= granted"""
_GIVE_BACK = f"UPDATE cohorts SET reserved = reserved - {_NANO} WHERE {_CONCERNED}"
_SPEND = f"UPDATE cohorts SET reserved = reserved - {_NANO}, spent = spent + {_NANO} WHERE {_CONCERNED}"
_SET_STATE = "UPDATE reservations SET state = :state WHERE number = :number"
RESERVE = """
INSERT INTO reservations VALUES (
    :number, :key, 'reserved', :seq, :kind, :individual, :epoch, :at, :description, NULL, :analyst, :dataset, :question
)"""


def read_cohorts(connection: Connection, dataset: int | None = None) -> tuple[Cohort, ...]:
    """All cohorts that anybody is in, or those on the roster of a dataset."""
    found = connection.execute(f"{COHORTS} WHERE people > 0 ORDER BY id")
    return tuple(Cohort(*row) for row in found if dataset is None or dataset in read_rosters(row["datasets"]))


@lru_cache(10_000)
def read_rosters(datasets: str) -> Mapping[int, str]:
    """The datasets whose roster people are on, with the last word of each source: how a cohort's `datasets` is read."""
    told = json.loads(datasets).items()
    return {int(key): said if isinstance(said, str) else said[0] for key, said in told if key.isdigit()}


def count(connection: Connection, table: str, which: Mapping[str, Any]) -> int:
    """How many rows of a table are like this."""
    alike = " AND ".join(["1 = 1", *(f"{name} = :{name}" for name in which)])
    return int(connection.execute(f"SELECT count(*) FROM {table} WHERE {alike}", which).fetchone()[0])


def read_epoch(connection: Connection) -> int:
    return int(connection.execute("SELECT epoch FROM ledger").fetchone()[0])


def find_mark(connection: Connection, seeded: int | None) -> int | None:
    """The first release, once data was read for it, that was not DP: individual privacy, or a seed. A mark for good."""
    first = connection.execute(f"SELECT min(number) FROM reservations WHERE individual = 1 AND {SPENT}").fetchone()[0]
    return min((one for one in (first, seeded) if one is not None), default=None)


def fits(connection: Connection, paid: Mapping[int, int], epoch: int, dataset: int | None = None) -> bool:
    """Whether a charge looks possible at this moment; only the guard in `charge` decides."""
    if max(paid.values(), default=0) > checks.LARGEST_GRANT and read_measure(connection).delta is None:
        raise checks.bad_charge("nano-epsilon", checks.LARGEST_GRANT)
    room = "SELECT id, granted - spent - reserved, datasets FROM cohorts WHERE id BETWEEN :first AND :last"
    which = {"first": min(paid, default=0), "last": max(paid, default=0), "state": values.ACTIVE}
    found = connection.execute(f"{room} AND people > 0 AND state = :state", which)
    here = {cohort: left for cohort, left, said in found if dataset is None or dataset in read_rosters(said)}
    return read_epoch(connection) == epoch and all(nano <= (here.get(cohort) or 0) for cohort, nano in paid.items())


def read_terms(connection: Connection) -> values.Terms | None:
    terms = "SELECT neighbors, rows_per_person, allow_individual, measure, ids, spelling FROM ledger"
    about = connection.execute(f"{terms} WHERE neighbors IS NOT NULL").fetchone()
    return None if about is None else values.Terms(**{**about, "allow_individual": bool(about["allow_individual"])})


def read_measure(connection: Connection) -> Measure:
    """In what accounts are kept."""
    held = read_terms(connection)
    return PLAIN if held is None else held.counted


def read_turn(connection: Connection) -> Any:
    """What the next charge must know: the epoch, the terms (None: not settled), the last one, whether grants renew."""
    last = "(SELECT coalesce(max(number), 0) FROM reservations) AS last"
    renews = f"EXISTS (SELECT 1 {WITH_TERMS}) AS renews"
    return connection.execute(
        f"SELECT epoch, neighbors, allow_individual, state, {last}, {renews} FROM ledger"
    ).fetchone()


def read_ending(connection: Connection) -> str | None:
    """Whether it has moved or was retired; None: neither."""
    ended: str | None = connection.execute("SELECT state FROM ledger").fetchone()[0]
    return ended


def read_state(connection: Connection, dataset: int) -> tuple[int, int]:
    """(the roster's epoch, the number of the newest registration of a dataset)."""
    newest = "(SELECT max(number) FROM registrations WHERE dataset = :dataset)"
    epoch, number = connection.execute(f"SELECT epoch, {newest} FROM ledger", {"dataset": dataset}).fetchone()
    return epoch, number


def find_reservation(
    connection: Connection, key: bytes, question: bytes | None, head: Head | None
) -> Reservation | None:
    """The reservation of a question to this roster, unless it was given back or lost; or its newest stored answer.

    The answer is found by the question alone, whatever has become of the roster since. `head` was read before.
    """
    row = connection.execute(_LIVE, {"key": key, "question": question}).fetchone()
    if row is None:
        return None
    check_past(connection, [row], head)
    return _resume(connection, row)


def get_reservation(connection: Connection, number: int) -> Reservation:
    return _resume(connection, get_row(connection, number))


def get_row(connection: Connection, number: int) -> Any:
    row = connection.execute("SELECT * FROM reservations WHERE number = :number", {"number": number}).fetchone()
    if row is None:
        raise checks.no_release()
    return row


def _resume(connection: Connection, row: Any) -> Reservation:
    """A reservation with what was charged when it was asked, without what people took along later."""
    same = {name: row[name] for name in ("number", "state", "epoch", "description", "answer", "at")}
    return Reservation(**same, **read_plan(connection, row["number"]), resumed=True)


def read_plan(connection: Connection, number: int) -> dict[str, Any]:
    """Who pays what for a question, and who is used at which level, having granted what."""
    plan = connection.execute(_PLAN, {"number": number}).fetchall()
    charges = {cohort: nano for cohort, nano, *_ in plan if nano}
    return {
        "charges": charges,
        "places": {cohort: (level, granted) for cohort, _, level, granted in plan if level is not None},
    }


def read_answers(
    connection: Connection, number: int | None, dataset: int | None, head: Head | None
) -> tuple[Stored, ...]:
    """Every answer that was stored, newest last; of a number, or of a dataset, and what is older than any dataset."""
    which = _STORED
    if number is not None:
        number = get_row(connection, number)["number"]
        which += " AND number = :number"
    if dataset is not None:
        which += " AND (dataset IS NULL OR dataset = :dataset)"
    rows = connection.execute(f"{which} ORDER BY number", {"number": number, "dataset": dataset}).fetchall()
    check_past(connection, rows, head)
    return tuple(Stored(*(row[each.name] for each in fields(Stored))) for row in rows)


def read_history(connection: Connection, seeded: int | None, dataset: int | None = None) -> History:
    paid: dict[int, list[tuple[int, int, int]]] = {}
    charges = f"""
    SELECT charges.number, cohort, {_GRANTED}, nano FROM {_CHARGED}
    WHERE carried = 0 AND nano > 0 ORDER BY charges.number, cohort"""
    for number, *charged in connection.execute(charges):
        paid.setdefault(number, []).append(tuple(charged))
    mark, measure = find_mark(connection, seeded), read_measure(connection)
    same = ("number", "kind", "at", "state", "epoch", "description", "analyst")
    return History(
        Past(
            **{name: row[name] for name in same},
            individual=bool(row["individual"]),
            # In ascending order the largest charge at each grant comes last.
            charges=dict(sorted((granted, nano) for _, granted, nano in paid.get(row["number"], ()))),
            cohorts={cohort: nano for cohort, _, nano in paid.get(row["number"], ())},
            not_dp_since=mark if mark is not None and mark <= row["number"] else None,
            grants={cohort: granted for cohort, granted, _ in paid.get(row["number"], ())},
            measure=measure,
        )
        for row in connection.execute("SELECT * FROM reservations ORDER BY number")
        if dataset in (None, row["dataset"])
    )


def read_remaining(
    connection: Connection, seeded: int | None, dataset: int | None = None, present: bool = False
) -> Remaining:
    here, gone = read_cohorts(connection, dataset), 0
    if present and dataset is None:
        left_out = [one for one in list_active(here) if not read_rosters(one.datasets)]
        here, gone = tuple(one for one in here if one not in left_out), sum(one.people for one in left_out)
    paid = "EXISTS (SELECT 1 FROM charges WHERE charges.number = reservations.number AND nano > 0)"
    charged = f"SELECT number FROM reservations WHERE state <> 'refunded' AND {paid}"
    charged += "" if dataset is None else " AND dataset = :dataset"
    found = connection.execute(f"{charged} ORDER BY number DESC LIMIT 1", {"dataset": dataset}).fetchone()
    last = None if found is None else found[0]
    by_grant = f"""
    SELECT {_GRANTED}, max(nano) FROM {_CHARGED}
    WHERE number = :last AND carried = 0 AND nano > 0 GROUP BY {_GRANTED}"""
    price = dict(connection.execute(by_grant, {"last": last}))
    mark = find_mark(connection, seeded)
    return Remaining(here, questions_left(here, price), mark, measure=read_measure(connection), gone=gone)


def charge(connection: Connection, number: int, plan: Sequence[tuple[int, int, int | None]]) -> dict[str, Any]:
    """All charges or none. The guard stands in the UPDATE itself, so it holds whatever else is going on.

    `plan` has cohort, nano-epsilon and level of everyone who is used; public people pay nothing. Gives what `read_plan`
    reads of it.
    """
    rows = [{"number": number, "cohort": cohort, "nano": nano, "level": level} for cohort, nano, level in plan]
    connection.executemany("INSERT INTO charges VALUES (:number, :cohort, :nano, 0, :level)", rows)
    paid = [cohort for cohort, nano, _ in plan if nano]
    fitting = connection.execute(_CHARGE_ALL_THAT_FITS, {"number": number}).rowcount
    known = read_plan(connection, number)
    if fitting != len(paid) or {*known["charges"], *known["places"]} != {cohort for cohort, *_ in plan}:
        raise values.stale_plan()
    return known


def spend(connection: Connection, number: int) -> None:
    """What was reserved is spent, also where people took it along: data is about to be read."""
    connection.execute(_SET_STATE, {"number": number, "state": values.TOUCHED})
    connection.execute(_SPEND, {"number": number})


def give_back(connection: Connection, number: int) -> None:
    """What was reserved is given back, also where people took it along; the question does not count as asked."""
    which = {"number": number}
    connection.execute(_SET_STATE, {**which, "state": values.REFUNDED})
    connection.execute(_GIVE_BACK, which)
    analyst = connection.execute("SELECT analyst FROM reservations WHERE number = :number", which).fetchone()[0]
    if analyst is None:
        return
    price = connection.execute(_PRICE, which).fetchone()[0] or 0
    less = "UPDATE quotas SET used_nano = used_nano - :price, used_questions = used_questions - 1"
    connection.execute(f"{less} WHERE analyst = :analyst", {"price": price, "analyst": analyst})


def store(connection: Connection, number: int, answer: bytes) -> None:
    kept = "UPDATE reservations SET state = :state, answer = :answer WHERE number = :number"
    connection.execute(kept, {"number": number, "state": values.STORED, "answer": answer})


def list_quotas(connection: Connection) -> tuple[Quota, ...]:
    names = ", ".join(each.name for each in fields(Quota))
    return tuple(Quota(*row) for row in connection.execute(f"SELECT {names} FROM quotas ORDER BY analyst"))


def set_quota(connection: Connection, analyst: str, nano: int | None, questions: int | None) -> None:
    """Give an analyst a quota, or None of it; what was used before counts."""
    _add_analyst(connection, analyst)
    quota = "UPDATE quotas SET nano = :nano, questions = :questions WHERE analyst = :analyst"
    connection.execute(quota, {"analyst": analyst, "nano": nano, "questions": questions})


def use_quota(connection: Connection, analyst: str, paid: Mapping[int, int]) -> None:
    """Count a question against its analyst's quota, or refuse it."""
    _add_analyst(connection, analyst)
    use = """
    UPDATE quotas SET used_nano = used_nano + :price, used_questions = used_questions + 1
    WHERE analyst = :analyst AND (nano IS NULL OR used_nano + :price <= nano)
        AND (questions IS NULL OR used_questions < questions)"""
    if connection.execute(use, {"analyst": analyst, "price": max(paid.values(), default=0)}).rowcount != 1:
        raise values.QuotaError(
            "This analyst's quota does not reach for this question; nothing was charged.",
            rule="It is no privacy budget: those are kept per person, over all analysts.",
            suggest=("a smaller ", Argument("share"), ", a question that was asked before, or a larger quota"),
        )


def _add_analyst(connection: Connection, analyst: str) -> None:
    who = {"analyst": analyst}
    if connection.execute("SELECT 1 FROM quotas WHERE analyst = :analyst", who).fetchone() is None:
        connection.execute("INSERT INTO quotas VALUES (:analyst, NULL, NULL, 0, 0)", who)

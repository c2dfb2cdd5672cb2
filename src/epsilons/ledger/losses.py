"""A ledger that lost its newest records: the worst is assumed of what they held.

What is gone may have charged anybody: whoever stood here, whoever had moved to another level meanwhile, and whoever had
joined and is unknown again. So a loss is a floor under every account. Where it is known how much anybody can have been
charged in the lost part (`most` of the newest head, less that of the last line that is left: `journal.Head`), so much
counts as spent for everyone, newcomers included. Where it is not, every grant counts as fully spent, and so does every
grant that a person moves to, until that person consents anew: an own word that says so, given in the knowledge of the
loss. What was spent before counts no more from there on; what was granted anew comes on top of it.

Questions that were under way are closed, since their answers may have left already, and a second answer would be
a second release.
"""

import json

from epsilons.ledger import journal
from epsilons.ledger.heads import Line
from epsilons.ledger.journal import Head
from epsilons.ledger.rosters import mark_lost
from epsilons.storage.base import Connection

#: How it is written that nobody knows how much was charged in a lost part.
UNKNOWN = -1


def bound_loss(connection: Connection, here: int | None, newest: int | None) -> int:
    """What anybody was charged at most after the last line that is left, or UNKNOWN.

    `here` is `most` at that line and `newest` at the newest one, as the witness knows them. A bound that is above every
    grant is worth no more than that everything is spent, and is none.
    """
    if newest is None or here is None or not here <= newest < journal.LARGEST_SUM:
        return UNKNOWN
    largest = connection.execute("SELECT max(granted) FROM cohorts WHERE people > 0").fetchone()[0] or 0
    return newest - here if newest - here < largest else UNKNOWN


def find_last(connection: Connection) -> tuple[int, str]:
    """The last line that is left, by number and hash: older records are brought up to date before they are looked at.

    What is lost comes after it all the same, and no one but this copy knows the lines that say so. Those of any other
    kind could give back what was spent in the lost part: where they were never handed over, nothing bounds that.
    """
    left = "SELECT seq, hash FROM journal WHERE kind <> 'migrate' ORDER BY seq DESC LIMIT 1"
    seq, digest = connection.execute(left).fetchone() or (0, journal.START)
    return seq, digest


def read_last(connection: Connection) -> int:
    """What the last loss counted for, of everyone; UNKNOWN: for everything."""
    line = connection.execute("SELECT body FROM journal WHERE kind = 'loss' ORDER BY seq DESC LIMIT 1").fetchone()
    return int(json.loads(line["body"])["floor"])


def read_loss(connection: Connection, line: Line) -> tuple[int, tuple[int, str]] | None:
    """What a loss that is this line counts for, and the line that it goes on from; None if it is none."""
    found = connection.execute("SELECT kind, body FROM journal WHERE seq = :seq", {"seq": line.seq}).fetchone()
    if found["kind"] != "loss":
        return None
    body = json.loads(found["body"])
    since = int(body.get("since", line.seq - 1))
    left = connection.execute("SELECT hash FROM journal WHERE seq = :seq", {"seq": since}).fetchone()
    return int(body.get("floor", UNKNOWN)), (since, str(left["hash"]))


def write_off(connection: Connection, at: str, lost: Head | None, since: int, bound: int = UNKNOWN) -> tuple[int, str]:
    """Put a floor under every account, and say so in the journal: its line.

    `lost` is the head that was reached before, `since` the number of the last line that is left.
    """
    if bound < 0:
        spend_all(connection)
    else:
        all_of_it = "spent + reserved + :bound"
        ceiling = f"CASE WHEN ceiling > {all_of_it} THEN ceiling ELSE {all_of_it} END"
        for table in ("cohorts", "emptied"):
            change = f"UPDATE {table} SET ceiling = {ceiling}, spent = {all_of_it}, reserved = 0"
            connection.execute(change, {"bound": bound})
    connection.execute("UPDATE reservations SET state = 'lost' WHERE state IN ('reserved', 'touched')")
    losses, floor = connection.execute("SELECT losses, floor FROM ledger").fetchone()
    now = {"losses": losses + 1, "floor": UNKNOWN if min(bound, floor) < 0 else floor + bound}
    connection.execute("UPDATE ledger SET losses = :losses, floor = :floor", now)
    about = None if lost is None else {"seq": lost.seq, "hash": lost.digest}
    body = {"losses": losses + 1, "head": about, "floor": bound, "since": since}
    return journal.append(connection, "loss", at, body)


def spend_all(connection: Connection) -> None:
    """Everybody's grant is spent, and every one that they move to, until they consent anew."""
    all_spent = "CASE WHEN granted > spent + reserved THEN granted ELSE spent + reserved END"
    for table in ("cohorts", "emptied"):
        connection.execute(f"UPDATE {table} SET spent = {all_spent}, reserved = 0")
        stood = connection.execute(f"SELECT DISTINCT datasets FROM {table}").fetchall()
        marked = [{"before": one, "after": mark_lost(one)} for (one,) in stood]
        connection.executemany(f"UPDATE {table} SET datasets = :after WHERE datasets = :before", marked)

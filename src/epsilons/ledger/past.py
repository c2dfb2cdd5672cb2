"""Questions that were asked before, held to the journal whenever they are taken up or shown again.

What opening verified may be long ago, and an old question is not compared again: whoever edits its row could have a
second answer drawn, or another one shown. So what became of a question is read off its lines, from the one that charged
it to the one that settled it for good, and on to the next line whose hash is known: the head, or a mark of what was
verified. That takes the same time however old the question is.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from epsilons.errors import LedgerError
from epsilons.ledger import journal
from epsilons.ledger.values import LOST, REFUNDED, RESERVED, STORED, TOUCHED, does_not_add_up
from epsilons.storage.base import Connection

#: What a line says has become of a question.
_STATES = {"touch": TOUCHED, "refund": REFUNDED, "store": STORED}
_SAME = ("number", "kind", "individual", "epoch", "description", "analyst", "dataset")
_PLAN = "SELECT cohort, nano, level FROM charges WHERE number = :number AND carried = 0 ORDER BY cohort"


def check_past(connection: Connection, rows: Sequence[Any], head: journal.Head | None) -> None:
    """Refuse rows of reservations, or what they charged, if the journal up to its head does not say just that."""
    if not rows:
        return
    asked = {row["seq"]: row for row in rows}
    said: dict[int, dict[str, Any]] = {}
    last, marks = max(asked), {} if head is None else head.marks
    if head is not None:  # a copy that was put back is refused, also where the line asked for stands in it
        journal.check_line(connection, head)
    for seq, kind, at, body, digest in journal.follow(connection, min(asked), head=head):
        if kind == "reserve" and seq in asked:
            line = json.loads(body)
            said[line["number"]] = {**line, "seq": seq, "at": at, "state": RESERVED, "answer": None}
        elif kind in _STATES:
            line = json.loads(body)
            if line["number"] in said:
                said[line["number"]] |= {"state": _STATES[kind], "answer": line.get("answer")}
        elif kind == "loss":
            for one in said.values():
                one["state"] = LOST if one["state"] in (RESERVED, TOUCHED) else one["state"]
        if seq >= last and digest == marks.get(seq) and _are_settled(said.values(), len(asked)):
            break
    for row in rows:
        _compare(connection, row, said.get(row["number"], {}))


def _are_settled(said: Iterable[dict[str, Any]], number: int) -> bool:
    """Whether no later line can say anything else of so many questions."""
    return sum(one["state"] in (REFUNDED, STORED, LOST) for one in said) == number


def _compare(connection: Connection, row: Any, said: dict[str, Any]) -> None:
    digests = {name: None if row[name] is None else row[name].hex() for name in ("key", "question")}
    digests["answer"] = None if row["answer"] is None else hashlib.sha256(row["answer"]).hexdigest()
    held = {name: row[name] for name in (*_SAME, "seq", "at", "state")} | digests
    if any(said.get(name) != value for name, value in held.items() if name != "answer"):
        raise does_not_add_up("the table of reservations differs from the journal")
    if said["answer"] != held["answer"]:
        raise does_not_add_up("a stored answer is not the one that was released")
    # Once no level was told.
    plan = sorted((cohort, nano, *(more or [None])) for cohort, nano, *more in said["charges"])
    if [tuple(paid) for paid in connection.execute(_PLAN, {"number": row["number"]})] != plan:
        raise does_not_add_up("the table of charges differs from the journal")


def was_lost() -> LedgerError:
    """A question that was closed when a loss was accepted."""
    return LedgerError(
        "This question was under way when the ledger's newest records were lost.",
        rule="Its answer may have left already, and a second one would be a second release.",
        suggest="ask anew, at a new charge",
    )

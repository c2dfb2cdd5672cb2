"""Per-person budgets: durable, atomic, and global over everyone who asks.

Start with `base` (the values handed out) and `book` (the ledger and the order of a release); `database` says what a
back end must do, and `sqlite` does it. `journal` and `recount` show that nothing was changed behind its back.

>>> from fractions import Fraction
>>> from epsilons import ledger
>>> book = ledger.open()
>>> terms = book.settle_terms("absent", rows_per_person=1)
>>> book.enroll([b"0123456789abcdef"], [500_000_000]).joined
1
>>> may = book.allowance(Fraction(1, 10))
>>> reserved = book.reserve(bytes(32), may.nano, epoch=may.epoch, kind="count")
>>> book.touched(reserved.number).state
'touched'
>>> book.store(reserved.number, b"42")
b'42'
>>> book.remaining().epsilons
{0.5: 0.45}
>>> book.find(bytes(32)).answer
b'42'
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from epsilons.errors import LedgerError
from epsilons.ledger.base import (
    Allowance,
    Cohort,
    Enrolment,
    Members,
    Past,
    Recount,
    Remaining,
    Reservation,
    StalePlanError,
    Statement,
    Terms,
)

if TYPE_CHECKING:
    from epsilons.ledger.book import Clock, Ledger

__all__ = [
    "Allowance",
    "Cohort",
    "Enrolment",
    "Members",
    "Past",
    "Recount",
    "Remaining",
    "Reservation",
    "StalePlanError",
    "Statement",
    "Terms",
    "open",
]


def open(
    url: str | None = None,
    *,
    anchor: str | os.PathLike[str] | None = None,
    create: bool = True,
    adopt: bool = False,
    clock: Clock | None = None,
) -> Ledger:
    """A ledger by its address: None keeps it in memory, "sqlite:///people.ledger" in a file that processes share.

    `anchor` names a file outside the database that holds the head of the chain; a ledger that is behind or beside it
    is refused, and so is one without a head until it is opened once with `adopt=True`. `create=False` refuses to
    start a new ledger where there is none.
    """
    from epsilons.ledger.book import Ledger, now
    from epsilons.ledger.sqlite import Sqlite

    if url is None:
        if anchor is not None:
            raise LedgerError("A ledger in memory has no anchor.", hint='url="sqlite:///people.ledger"')
        path = None
    elif isinstance(url, str) and url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        path = url.removeprefix("sqlite:///")
    else:
        raise LedgerError("There is no ledger at such an address.", hint='"sqlite:///people.ledger" or None')
    if path is not None and not create and not os.path.exists(path):
        raise LedgerError("There is no ledger here.", hint="the address it was created with")
    return Ledger(Sqlite(path), clock=clock or now, anchor=anchor, create=create, adopt=adopt)

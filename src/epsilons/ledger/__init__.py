"""Per-person budgets: durable, atomic, and global over everyone who asks.

Start with `values` (what is handed out) and `ledger` (the class, and the order of a release). A dataset is settled in
`registration`; whose word holds is decided in `consent`; `keeping`, `copying` and `moving` make backups, and take a
ledger elsewhere; `paths` lets files move along with a ledger, `places` remembers which ledger stood where. A question
passes `checks` (what may enter), `statements` (what the tables say, and what changes a budget), `past` (if it was asked
before) and `journal` (the line kept); `telling` reads what is left to everyone (`balances`) and what a person is told
(`personal`). In `roster` people join and change their minds; `merging` keeps cohorts few; `losses` puts a floor under
accounts whose records are gone; `renewal` begins periods, `rosters` writes down who is on which roster; `segments`
keeps who stands where, `order` finds them by their digests, which `identity` makes of ids; `opening` opens a ledger,
and `migrating` brings one of an older format up to date; `recount` shows that every table is what the journal adds up
to by `replay`. A head that all clients are held to is kept by a `witness`, over HTTP (`signed`) or in a table
(`heads`), of a ledger or of who else has a journal (`kept`). `tables` is the format on disk; the databases are in
`epsilons.storage`.

>>> from fractions import Fraction
>>> from epsilons import ledger
>>> accounts = ledger.open()
>>> terms = accounts.settle_terms("absent", rows_per_person=1)
>>> accounts.enroll([b"0123456789abcdef"], [500_000_000]).joined
1
>>> may = accounts.allowance(Fraction(1, 10))
>>> reserved = accounts.reserve(bytes(32), may.nano, epoch=may.epoch, kind="count")
>>> accounts.mark_read(reserved.number).state
'touched'
>>> accounts.store(reserved.number, b"42")
b'42'
>>> accounts.remaining().epsilons
{0.5: 0.45}
>>> accounts.find(bytes(32)).answer
b'42'
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Literal

from epsilons.errors import Argument, LedgerError
from epsilons.ledger.balances import Balance, Remaining, Statement, Use
from epsilons.ledger.values import (
    Allowance,
    Cohort,
    Enrolment,
    History,
    Members,
    Past,
    Quota,
    QuotaError,
    Recount,
    Reservation,
    StalePlanError,
    Stored,
    Terms,
)

if TYPE_CHECKING:
    from epsilons.ledger.journal import Clock
    from epsilons.ledger.ledger import Ledger

__all__ = [
    "Allowance", "Balance", "Cohort", "Enrolment", "History", "Members", "Past", "Quota", "QuotaError", "Recount",
    "Remaining", "Reservation", "StalePlanError", "Statement", "Stored", "Terms", "Use", "open",
]  # fmt: skip


def open(
    url: str | None = None,
    *,
    witness: str | os.PathLike[str] | Literal[False] | None = None,
    anchor: str | os.PathLike[str] | Literal[False] | None = None,
    create: bool | Ledger = True,
    adopt: bool = False,
    accept_loss: bool = False,
    look: bool = False,
    moved: bool = False,
    clock: Clock | None = None,
) -> Ledger:
    """A ledger by its address.

    None keeps it in memory, "sqlite:///people.ledger" in a file that processes share, "postgresql://host/database" in
    a database that machines share.

    The head of its chain is kept outside the database: in the user's state directory, in the file that `witness` names
    (False: nowhere), or by a witness for all clients, whose address a new ledger takes as a term for life:
    "https://..." of `epsilons witness`, or "postgresql://..." of another database. `anchor` is the former name of a
    path. A ledger that is older than its head or has diverged from it is refused, and so is one without a head until it
    is opened once with `adopt=True`. If its newest records are gone for good, `accept_loss=True` opens what is left and
    counts everybody's grant as fully spent. `create=False` refuses to start a new ledger where there is none;
    given one in memory that stood in for it, a new ledger knows people by the same digests.
    `look=True` is for reading alone: an older format is brought up to date only for as long as the ledger is open.
    `moved=True` opens the old copy of one that moved, to finish the move.
    """
    from epsilons.ledger.journal import now, write_time
    from epsilons.ledger.ledger import Ledger
    from epsilons.ledger.opening import find_database, open_ledger
    from epsilons.ledger.witness import is_address

    if anchor is not None:
        warnings.warn("anchor is now called witness", DeprecationWarning, stacklevel=2)
        witness = anchor
    if url is None and (witness or accept_loss):
        raise LedgerError("A ledger in memory has no witness.", suggest=Argument("url", "sqlite:///people.ledger"))
    address = str(witness) if is_address(witness) else None
    anchor = None if address is not None else witness
    clock, salt = clock or now, create.salt if isinstance(create, Ledger) else None
    create = create is not False
    # Where the head is not kept in the usual place, nothing else is.
    place = url if anchor is None else None
    database = find_database(url, create=create, place=place)
    try:
        at = write_time(clock)
        opened = open_ledger(
            database, url, place, at, anchor=anchor, address=address, create=create, salt=salt, adopt=adopt,
            accept_loss=accept_loss, look=look, moved=moved,
        )  # fmt: skip
        return Ledger(database, clock, *opened)
    except BaseException:
        database.close()
        raise

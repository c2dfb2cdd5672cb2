"""What can go wrong, as one small tree.

    EpsilonsError
    ├── PreferenceError   what a person granted cannot be used as given
    ├── DataError         the values or the table cannot be used as given
    ├── PlanError         the question cannot be answered this way
    ├── BudgetExceeded    nobody has anything left to spend
    ├── LedgerError       the ledger's history does not add up
    └── ProtocolError     a message of a collection breaks its protocol

A message says what happened, which rule it broke and what to try next. It never contains a private value.
"""

from __future__ import annotations


class EpsilonsError(Exception):
    """Root of every error raised on purpose; `code` is stable across releases."""

    code = "error"

    def __init__(self, what: str, *, rule: str = "", hint: str = "") -> None:
        self.what = what
        self.rule = rule
        self.hint = hint
        super().__init__(" ".join(part for part in (what, rule, hint and f"Try: {hint}") if part))


class PreferenceError(EpsilonsError):
    """A preference is missing, malformed or out of range."""

    code = "preference"


class DataError(EpsilonsError):
    """Values or tables of the wrong shape or type."""

    code = "data"


class PlanError(EpsilonsError):
    """A question that cannot be answered as asked."""

    code = "plan"


class BudgetExceeded(EpsilonsError):
    """Nobody with a finite epsilon has anything left."""

    code = "budget"


class LedgerError(EpsilonsError):
    """The ledger refuses, or its history does not add up."""

    code = "ledger"


class ProtocolError(EpsilonsError):
    """A message or a file of a collection breaks its protocol."""

    code = "protocol"

"""What can go wrong, as one small tree.

    EpsilonsError
    ├── PreferenceError   what a person granted cannot be used as given
    ├── DataError         the values or the table cannot be used as given
    ├── PlanError         the question cannot be answered this way
    ├── BudgetExceeded    nobody has anything left to spend
    ├── LedgerError       the ledger's history does not add up
    └── ProtocolError     a message of a collection breaks its protocol

A message says what happened, which rule it broke and what to try next. It never contains a private value.

>>> print(PlanError("There are no bounds.", suggest=Argument("bounds", (0, 100))))
There are no bounds. Try: bounds=(0, 100)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Argument:
    """An argument in a message, which each front writes in its own language: `bounds=(0, 100)`, `--bounds 0,100`.

    The value `...` stands for one of the reader's own: the argument is only named.
    """

    name: str
    value: Any = ...

    def __str__(self) -> str:
        return self.name if self.value is ... else f"{self.name}={self.value!r}"


def printable(text: object, keep: str = "") -> str:
    """Text without control characters, which could rewrite a terminal, nor marks that turn its direction around."""
    return "".join(one if one.isprintable() or one in keep else repr(one)[1:-1] for one in str(text))


#: Part of a message: text, an argument, or several of both, one after the other.
Text = str | Argument | tuple[str | Argument, ...]


class EpsilonsError(Exception):
    """Root of every error raised on purpose; `code` is stable across releases."""

    code = "error"

    def __init__(self, what: Text, *, rule: Text = "", suggest: Text = "") -> None:
        self.parts = (what, rule, suggest)
        self.what, self.rule, self.hint = self.written(str)
        super().__init__(self.message(str))

    def written(self, write: Callable[[Argument], str]) -> tuple[str, str, str]:
        """What happened, which rule, what to try: with every argument as `write` writes it."""
        listed = (part if isinstance(part, tuple) else (part,) for part in self.parts)
        what, rule, suggest = (
            printable("".join(one if isinstance(one, str) else write(one) for one in part)) for part in listed
        )
        return what, rule, suggest

    def message(self, write: Callable[[Argument], str]) -> str:
        """The whole message in the language of a front."""
        what, rule, hint = self.written(write)
        return " ".join(part for part in (what, rule, hint and f"Try: {hint}") if part)


class Unusable:
    """Mixed into errors where what is kept is at fault, a file or a database, and not what was asked.

    A server says so by 503, and tells only its steward more: such a message may name files.
    """


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

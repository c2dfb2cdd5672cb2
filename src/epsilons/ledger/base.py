"""What the ledger hands out: frozen values, in integers of nano-epsilon; `None` is public.

A *cohort* is everyone with the same grant and the same past. Its grant never changes: a person who changes their mind
moves to another cohort and takes along what was spent. A *reservation* is a question that was charged; it becomes a
release once an answer is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import BudgetExceeded, LedgerError
from epsilons.guarantee import to_epsilon

#: What a cohort is: in use, or left by everyone who withdrew.
ACTIVE, WITHDRAWN = "active", "withdrawn"
#: What became of a reservation. Only RESERVED can still be given back; TOUCHED and STORED are spent, and so is LOST:
#: it was under way when the newest records were lost, so nobody knows whether an answer has left.
RESERVED, TOUCHED, STORED, REFUNDED, LOST = "reserved", "touched", "stored", "refunded", "lost"

Digests = NDArray[np.uint8]


class StalePlanError(LedgerError):
    """Somebody else spent in the meantime, or the roster changed: plan again and ask again. Nothing was charged."""


class QuotaError(LedgerError):
    """An analyst's quota is used up, which is about fairness between analysts and about nobody's privacy."""


def exhausted() -> BudgetExceeded:
    """The one refusal, which reads the same whoever's budget ran out."""
    return BudgetExceeded(
        "Nobody has anything left to spend.",
        rule="Everyone's charges together stay within what they granted.",
        hint="a question that was asked before, which is answered again at no charge",
    )


def moved() -> StalePlanError:
    """The one refusal of a charge that no longer fits, which reads the same whatever it was that changed."""
    return StalePlanError(
        "The budgets changed since this question was planned; nothing was charged.",
        rule="A charge is made only if it fits what everyone has left at that moment.",
        hint="plan and ask again",
    )


@dataclass(frozen=True)
class Terms:
    """What is fixed for the life of a ledger, since charges under other terms do not add up."""

    neighbors: str
    rows_per_person: int
    allow_individual: bool


@dataclass(frozen=True)
class Cohort:
    """Everyone with the same grant, the same spending and the same open reservations."""

    id: int
    granted: int | None
    spent: int
    reserved: int
    people: int
    state: str = ACTIVE

    @property
    def left(self) -> int | None:
        """What may still be charged; nothing if the grant was tightened below what is gone. None: public."""
        return None if self.granted is None else max(0, self.granted - self.spent - self.reserved)


@dataclass(frozen=True)
class Members:
    """Who stands in which cohort, sorted by digest: the data side joins its rows against it."""

    epoch: int
    digests: Digests
    cohorts: NDArray[np.int64]


@dataclass(frozen=True)
class Allowance:
    """What a question may charge each cohort; whoever has nothing left is not mentioned."""

    epoch: int
    share: Fraction
    nano: Mapping[int, int]
    public: tuple[int, ...]


@dataclass(frozen=True)
class Enrolment:
    """What became of a list of wishes, in people; `unknown` of those who withdrew were on no roster before."""

    epoch: int
    joined: int = 0
    tightened: int = 0
    loosened: int = 0
    withdrawn: int = 0
    pending: int = 0
    unchanged: int = 0
    unknown: int = 0

    @property
    def changed(self) -> int:
        """How many people stand elsewhere than before."""
        return self.joined + self.tightened + self.loosened + self.withdrawn


@dataclass(frozen=True)
class Reservation:
    """A question that was charged, with the charges it was planned for; `answer` holds the stored bytes."""

    number: int
    state: str
    epoch: int
    charges: Mapping[int, int]
    description: str
    answer: bytes | None = None
    resumed: bool = False


@dataclass(frozen=True)
class Past:
    """A line of the history: `charges` by the grant that was in force then, the largest charge at each.

    `cohorts` has the charge of every cohort, `grants` what its people had granted.
    """

    number: int
    kind: str
    individual: bool
    at: str
    state: str
    epoch: int
    description: str
    charges: Mapping[int, int]
    cohorts: Mapping[int, int]
    not_dp_since: int | None = None
    analyst: str | None = None
    grants: Mapping[int, int] = field(default_factory=dict)

    @property
    def epsilons(self) -> dict[float, float]:
        """{granted epsilon: epsilon charged}."""
        return {to_epsilon(granted): to_epsilon(nano) for granted, nano in self.charges.items()}

    @property
    def caveat(self) -> str:
        """The permanent mark of individual privacy, or nothing."""
        return mark_words(self.not_dp_since)


@dataclass(frozen=True)
class Remaining:
    """What is left: the least at every granted level, each cohort, and how many questions like the last one."""

    nano: Mapping[int, int]
    cohorts: tuple[Cohort, ...]
    questions: Mapping[int, int]
    not_dp_since: int | None = None

    @property
    def epsilons(self) -> dict[float, float]:
        """{granted epsilon: least epsilon left at that level}."""
        return {to_epsilon(granted): to_epsilon(nano) for granted, nano in self.nano.items()}

    @property
    def caveat(self) -> str:
        """The permanent mark of individual privacy, or nothing."""
        return mark_words(self.not_dp_since)


@dataclass(frozen=True)
class Quota:
    """What an analyst may use at most (None: as much as anybody) and has used: for fairness only, no privacy budget."""

    analyst: str
    nano: int | None
    questions: int | None
    used_nano: int
    used_questions: int


@dataclass(frozen=True)
class Recount:
    """What `verify` added up anew: how much there was to check, and the head of the chain."""

    entries: int
    releases: int
    people: int
    head: str
    cohorts: tuple[Cohort, ...] = field(repr=False)


def mark_words(number: int | None) -> str:
    """The words of the permanent mark (the same as `guarantee.compose_all` uses)."""
    return "" if number is None else f"Not DP since release {number}."

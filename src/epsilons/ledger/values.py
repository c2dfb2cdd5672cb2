"""What the ledger hands out: frozen values, in integers of nano-epsilon; `None` is public.

Beside them stands the arithmetic of what is left (`allowance`, `least_left`), exact and free of any database.

A *cohort* is everyone with the same grant and the same past. Its grant never changes: a person who changes their mind
moves to another cohort and takes along what was spent. A *reservation* is a question that was charged; it becomes a
release once an answer is stored.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
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

#: Less than this part of what was asked for counts as nothing left: so little would cost accuracy and gain nothing.
LEAST_PART = Fraction(1, 100)

#: A person is known by a digest of so many bytes.
DIGEST_BYTES = 16
Digests = NDArray[np.uint8]


class StalePlanError(LedgerError):
    """Somebody else spent in the meantime, or the roster changed: plan again and ask again. Nothing was charged."""


class QuotaError(LedgerError):
    """An analyst's quota is used up, which is about fairness between analysts and about nobody's privacy."""


def budget_exceeded() -> BudgetExceeded:
    """The one refusal, which reads the same whoever's budget ran out."""
    return BudgetExceeded(
        "Nobody has anything left to spend.",
        rule="Everyone's charges together stay within what they granted.",
        suggest="a question that was asked before, which is answered again at no charge",
    )


def stale_plan() -> StalePlanError:
    """The one refusal of a charge that no longer fits, which reads the same whatever it was that changed."""
    return StalePlanError(
        "The budgets changed since this question was planned; nothing was charged.",
        rule="A charge is made only if it fits what everyone has left at that moment.",
        suggest="plan and ask again",
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
        return mark_text(self.not_dp_since)


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
        return mark_text(self.not_dp_since)


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


@dataclass(frozen=True)
class Use:
    """A question that charged this person: what it cost them at most, of what they granted at that time."""

    number: int
    kind: str
    at: str
    charge: int
    granted: int


@dataclass(frozen=True)
class Statement:
    """One person's account: what their data was used for, at most how much it cost, and what is left.

    `releases` lists (number, kind, charge) of every question that charged them, `uses` the same with its time and the
    grant in force then; `when_public` those asked while they were public, which promise them nothing. `written_off`
    counts as spent since a loss of the ledger's newest records was accepted.
    """

    granted: int | None
    state: str
    spent: int
    reserved: int
    left: int | None
    releases: tuple[tuple[int, str, int], ...]
    when_public: tuple[int, ...]
    not_dp_since: int | None = None
    uses: tuple[Use, ...] = ()
    written_off: int = 0

    @property
    def used(self) -> int:
        """How many questions used this person's data at a charge."""
        return len(self.releases)

    @property
    def caveat(self) -> str:
        """The permanent mark of individual privacy, or nothing."""
        return mark_text(self.not_dp_since)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The account in plain language."""
        return tuple(part for part in (self._use(), self._balance(), self._public(), self._lost(), self.caveat) if part)

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def _use(self) -> str:
        words = f"Used in {_many(self.used, 'question')}"
        kinds = Counter(kind for _, kind, _ in self.releases)
        if kinds:
            words += f" ({', '.join(f'{times} × {kind}' for kind, times in sorted(kinds.items()))})"
        gone = self.spent + self.reserved - self.written_off
        words += f", at a loss of at most {to_epsilon(gone):.6g}"
        if self.state == WITHDRAWN or self.granted is None:
            return f"{words}."
        return f"{words} of {to_epsilon(self.granted):.6g} granted ({_percent(gone, self.granted)})."

    def _balance(self) -> str:
        if self.state == WITHDRAWN:
            return "Withdrawn: not used any more."
        if self.granted is None:
            return "Public now: nothing is promised."
        if not self.left:
            return "Left: 0, so not used any more."
        return f"Left: {to_epsilon(self.left):.6g}."

    def _public(self) -> str:
        if not self.when_public:
            return ""
        which = ", ".join(map(str, self.when_public))
        return f"Asked while public, with nothing promised: release{'s' * (len(self.when_public) > 1)} {which}."

    def _lost(self) -> str:
        if not self.written_off:
            return ""
        return f"Records were lost, so {to_epsilon(self.written_off):.6g} more counts as spent."


def mark_text(number: int | None) -> str:
    """The permanent mark as a sentence (the same as `guarantee.compose_all` uses)."""
    return "" if number is None else f"Not DP since release {number}."


def _many(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _percent(part: int, whole: int) -> str:
    return f"{float(Fraction(100 * part, whole)):.3g}%"


# What is left -------------------------------------------------------------------------------------------------------


def present(cohorts: Iterable[Cohort]) -> tuple[Cohort, ...]:
    """The cohorts that somebody stands in and has not withdrawn from."""
    return tuple(cohort for cohort in cohorts if cohort.people and cohort.state == ACTIVE)


def allowance(cohorts: Iterable[Cohort], share: Fraction, epoch: int, part: Fraction = Fraction(1)) -> Allowance:
    """At most a share of the grant, and at most this part of what is left; who has (nearly) nothing is left out."""
    here = present(cohorts)
    public = tuple(cohort.id for cohort in here if cohort.granted is None)
    nano: dict[int, int] = {}
    for cohort in here:
        if cohort.granted is None or cohort.left is None:
            continue
        asked = cohort.granted * share
        most = min(math.floor(asked), math.floor(cohort.left * part))
        if most > 0 and most >= LEAST_PART * asked:
            nano[cohort.id] = most
    if not nano and len(public) < max(1, len(here)):
        raise budget_exceeded()
    return Allowance(epoch=epoch, share=share, nano=nano, public=public)


def least_left(cohorts: Iterable[Cohort]) -> dict[int, int]:
    """{grant: the least that anyone with this grant has left}, strictest grant first."""
    least: dict[int, int] = {}
    for cohort in present(cohorts):
        if cohort.granted is not None and cohort.left is not None:
            least[cohort.granted] = min(least.get(cohort.granted, cohort.left), cohort.left)
    return dict(sorted(least.items()))


def questions_left(least: Mapping[int, int], last: Mapping[int, int]) -> dict[int, int]:
    """How often everyone at a level could still pay what the last question charged there ({grant: charge})."""
    return {granted: least[granted] // charge for granted, charge in sorted(last.items()) if granted in least}

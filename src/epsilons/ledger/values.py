"""What the ledger hands out: frozen values, in integers of nano-epsilon, or of femto-rho where its accounts are
concentrated (`measure.py`); `None` is public.

Beside them stands the arithmetic of what may be charged (`allowance`), exact and free of any database; what is left to
everyone is in `balances`.

A *cohort* is everyone with the same grant and the same past. Its grant never changes: a person who changes their mind
moves to another cohort and takes along what was spent. A *reservation* is a question that was charged; it becomes a
release once an answer is stored.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epsilons.display import Sheet, Shown, show_count, show_key
from epsilons.errors import Argument, BudgetExceeded, LedgerError, Unusable
from epsilons.guarantee import NOT_DP
from epsilons.measure import PLAIN, PURE, Measure

if TYPE_CHECKING:
    from epsilons.ledger.departures import Departures

#: How a ledger ends: it goes on elsewhere, or not at all.
MOVED, RETIRED = "moved", "retired"
#: What a cohort is: in use, or left by everyone who withdrew.
ACTIVE, WITHDRAWN = "active", "withdrawn"
#: What became of a reservation. Only RESERVED can still be given back; TOUCHED (data may have been read) and STORED are
#: spent, and so is LOST: it was under way when the newest records were lost, so an answer may have left.
RESERVED, TOUCHED, STORED, REFUNDED, LOST = "reserved", "touched", "stored", "refunded", "lost"

#: Less than this part of what was asked for counts as nothing left: so little would cost accuracy and gain nothing.
LEAST_PART = Fraction(1, 100)

#: A person is known by a digest of so many bytes.
DIGEST_BYTES = 16
Digests = NDArray[np.uint8]


class StalePlanError(LedgerError):
    """Budgets were charged meanwhile, or the roster changed: plan again and ask again. Nothing was charged."""


class NoLedgerError(LedgerError):
    """There is no ledger at an address, and nobody said that one should be made."""


class LedgerGoneError(LedgerError):
    """A ledger stood at an address, and is gone: none is made in its place in silence."""


class NothingLostError(LedgerError):
    """A loss was to be accepted, and the ledger stands at its head or ahead of it."""

    def __init__(self) -> None:
        stands = "This ledger stands at its head or ahead of it: nothing was lost."
        super().__init__(stands, rule="What is lost counts as spent, for good.", suggest="open it as usual")


class UnusableLedgerError(Unusable, LedgerError):
    """The ledger's database or its head cannot be used, whatever is asked."""


class QuotaError(LedgerError):
    """An analyst's quota is used up: a matter of fairness between analysts, not of privacy."""


def has_ended(state: str) -> UnusableLedgerError:
    """The one refusal of a ledger that moved away, or was retired."""
    if state == MOVED:
        rule, hint = "Two copies would each spend the whole budget.", "the ledger at its new place"
        return UnusableLedgerError("This ledger has moved; this is the old copy.", rule=rule, suggest=hint)
    hint = "a question that was asked before, which is answered again at no charge"
    return UnusableLedgerError("This ledger is retired.", rule="It takes no more questions.", suggest=hint)


def does_not_add_up(what: str = "something in it cannot be read") -> UnusableLedgerError:
    """The one refusal of a ledger that was changed by something else than the code that charges."""
    return UnusableLedgerError(
        f"The ledger's history does not add up: {what}.",
        rule="Every change is a line of the journal, chained to the one before it: this ledger was edited or damaged.",
        suggest="the newest copy of the ledger that does verify",
    )


def not_individual() -> LedgerError:
    """What to say where a release that is not DP is asked of a ledger that does not allow one."""
    rule = "It is not DP, and one such release marks everything that follows."
    anew = ("a new ledger with ", Argument("allow_individual", True))
    return LedgerError("This ledger does not allow individual privacy.", rule=rule, suggest=anew)


def stale_plan() -> StalePlanError:
    """The one refusal of a charge that no longer fits, which never tells what changed."""
    return StalePlanError(
        "The budgets changed since this question was planned; nothing was charged.",
        rule="A charge is made only if it fits what everyone has left at that moment.",
        suggest="plan and ask again",
    )


@dataclass(frozen=True)
class Terms:
    """What is fixed for the life of a ledger, since charges under other terms do not add up.

    `ids` is what kind people's ids are (text, number), `spelling` whether they are brought to their normal form; None:
    not settled yet. `rows_per_person` is a dataset's own since format 3; ledgers of older formats keep theirs.
    """

    neighbors: str
    rows_per_person: int | None = None
    allow_individual: bool = False
    measure: str = "pure"
    ids: str | None = None
    spelling: str | None = None

    @property
    def counted(self) -> Measure:
        """In what accounts are kept."""
        return PLAIN if self.measure == PURE else Measure.of_text(self.measure)


@dataclass(frozen=True)
class Cohort:
    """Everyone with the same grant, the same spending and the same open reservations."""

    id: int
    granted: int | None
    spent: int
    reserved: int
    people: int
    state: str = ACTIVE
    #: The name of what was granted, where it has one; whether it is people's own word; and, as JSON, the datasets whose
    #: roster they are on with the last word of each one's source.
    level: str | None = None
    own: int = 0
    datasets: str = "{}"

    @property
    def left(self) -> int | None:
        """What may still be charged; nothing if the grant was tightened below what is gone. None: public."""
        return None if self.granted is None else max(0, self.granted - self.spent - self.reserved)


@dataclass(frozen=True)
class Members:
    """Who stands in which cohort, sorted by digest: the data side joins its rows against it."""

    epoch: int
    digests: Digests
    cohorts: NDArray[np.integer]


@dataclass(frozen=True)
class Moves:
    """Who came to which cohort after a line of the journal, sorted by digest, each person once.

    `line` is the last line that this knows of, `left` says which cohorts everybody left at once, and for which.
    """

    epoch: int
    line: int
    people: NDArray[np.bytes_]
    cohorts: NDArray[np.integer]
    left: "Departures"


@dataclass(frozen=True)
class Allowance:
    """What a question may charge each cohort; cohorts with nothing left are not mentioned."""

    epoch: int
    share: Fraction
    nano: Mapping[int, int]
    public: tuple[int, ...]


@dataclass(frozen=True)
class Registration:
    """A dataset as it was settled: `about` and `stamp` are plain values; `dataset` is its number in the ledger.

    `seq` is the line of the journal that says so.
    """

    number: int
    dataset: int
    name: str
    version: str
    epoch: int
    seq: int
    at: str
    about: Mapping[str, Any]
    stamp: Mapping[str, Any]


@dataclass(frozen=True)
class Enrolment(Shown):
    """What became of a list of preferences, in people.

    `joined` are new to the ledger, or only spoke so far; `gone` left the dataset's roster. `tightened` have less than
    before, and so have `tightened_elsewhere`, whom the source does not list: a level of theirs means less. The source
    gives `pending` more than holds, which waits for an act that names their number; `pending_own` of them said
    something stricter themselves. For `kept` their own word stands against the source's, for `replaced` it gives way.
    Of `reclassed` the public columns say something else than before. `unknown` of those who spoke for themselves were
    on no roster before. `defaulted` said nothing, so that the default applies; `unmatched` preferences name nobody in
    the data. `settled` says what is settled anew: what was, what is now, and what follows for stored answers.
    """

    epoch: int
    joined: int = 0
    tightened: int = 0
    tightened_elsewhere: int = 0
    loosened: int = 0
    withdrawn: int = 0
    pending: int = 0
    pending_own: int = 0
    unchanged: int = 0
    unknown: int = 0
    known: int = 0
    gone: int = 0
    kept: int = 0
    replaced: int = 0
    reclassed: int = 0
    defaulted: int = 0
    unmatched: int = 0
    settled: tuple[str, ...] = ()

    @property
    def changed(self) -> int:
        """How many people joined or have another grant than before."""
        return self.joined + self.tightened + self.tightened_elsewhere + self.loosened + self.withdrawn

    def sheets(self) -> list[Sheet]:
        told = {
            "known": self.known, "new": self.joined, "gone": self.gone, "no preference, so the default": self.defaulted,
            "preferences that name nobody": self.unmatched, "stricter than before": self.tightened,
            "stricter elsewhere in the ledger": self.tightened_elsewhere,
            "looser than before": self.loosened, "looser, waiting for the steward": self.pending,
            "looser, waiting, against an own word": self.pending_own,
            "own words that stand against the source": self.kept,
            "own words that give way to the source": self.replaced, "withdrawn": self.withdrawn,
            "public values that changed": self.reclassed,
        }  # fmt: skip
        always = ("known", "new", "gone")
        rows = [[name, f"{number:,}"] for name, number in told.items() if number or name in always]
        notes = [f"Settled anew: {told}." for told in self.settled]
        return [Sheet("", ("enrolment", "people"), rows, notes)]


@dataclass(frozen=True)
class Reservation:
    """A question that was charged, with the charges it was planned for; `answer` holds the stored bytes.

    `at` is the date and time of the charge, in UTC. `places` are the level of every cohort that is used, in the order
    of the plan, and what its people had granted.
    `not_dp_since` is the first release, once this one may read data, that was not DP.
    """

    number: int
    state: str
    epoch: int
    charges: Mapping[int, int]
    description: str
    answer: bytes | None = None
    resumed: bool = False
    not_dp_since: int | None = None
    at: str = ""
    places: Mapping[int, tuple[int, int | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """An answer as it was stored: its bytes, with the number, the time and the text of its question."""

    number: int
    at: str
    kind: str
    description: str
    answer: bytes


class Marked:
    """Says since which release all of them together are not DP."""

    not_dp_since: int | None

    @property
    def caveat(self) -> str:
        """The mark as a sentence; empty without one."""
        return mark_text(self.not_dp_since)


@dataclass(frozen=True)
class Past(Marked):
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
    measure: Measure = PLAIN

    @property
    def epsilons(self) -> dict[float, float]:
        """{granted epsilon: epsilon charged, or rho}."""
        return {self.measure.grant(granted): self.measure.amount(units) for granted, units in self.charges.items()}


class History(Shown, tuple[Past, ...]):
    """What was asked, in its order."""

    def sheets(self) -> list[Sheet]:
        rows = []
        for past in self:
            charged = past.measure.show(past.epsilons.items()) if past.charges else "–"
            at, question = past.at[:16].replace("T", " "), show_key(past.description)
            rows.append([str(past.number), at, question, charged, past.state])
        mark = mark_text(self[-1].not_dp_since) if self else ""
        measure = self[-1].measure if self else PLAIN
        head = ("release", "at (UTC)", "question", measure.head("charged"), "state")
        return [Sheet("", head, rows, [*([mark] if mark else []), *measure.notes])]


@dataclass(frozen=True)
class Quota:
    """What an analyst may use at most (None: no limit) and has used: for fairness only, no privacy budget."""

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


def mark_text(number: int | None) -> str:
    """The permanent mark as a sentence, as `guarantee.compose_all` has it."""
    return "" if number is None else f"{NOT_DP} {number}."


def tell_waiting(people: int, own: int) -> str:
    """What waits for the steward's act: a source gives so many more than holds, some against their own word."""
    against = f", {own:,} of them against their own word" if own else ""
    return f"The source gives {show_count(people, 'person', 'people')} a larger epsilon{against}"


def list_active(cohorts: Iterable[Cohort]) -> tuple[Cohort, ...]:
    """The cohorts that have people who did not withdraw."""
    return tuple(cohort for cohort in cohorts if cohort.people and cohort.state == ACTIVE)


def allowance(cohorts: Iterable[Cohort], share: Fraction, epoch: int, part: Fraction = Fraction(1)) -> Allowance:
    """At most a share of the grant, and at most this part of what is left; who has (nearly) nothing is left out."""
    here = list_active(cohorts)
    public = tuple(cohort.id for cohort in here if cohort.granted is None)
    nano: dict[int, int] = {}
    # In whole numbers: fractions of thousands of cohorts take their time.
    asked_of, of, part_of, parts = share.numerator, share.denominator, part.numerator, part.denominator
    for cohort in here:
        asked = (cohort.granted or 0) * asked_of
        most = min(asked // of, (cohort.left or 0) * part_of // parts)
        if most > 0 and most * of * LEAST_PART.denominator >= asked * LEAST_PART.numerator:
            nano[cohort.id] = most
    if not nano and len(public) < max(1, len(here)):
        # The one refusal, which never tells whose budget ran out.
        raise BudgetExceeded(
            "Nobody has anything left to spend.",
            rule="Everyone's charges together stay within what they granted.",
            suggest="a question that was asked before, which is answered again at no charge",
        )
    return Allowance(epoch=epoch, share=share, nano=nano, public=public)

"""The one door: reserve, durably; say that data is about to be read; read and draw; store; release what was stored.

Every answer about a table passes here, and nothing else reads a table for an answer. Whatever breaks in between, the
charge stands and no unaccounted bytes have left. A question that was asked before gets the stored bytes, at no charge;
one that was cut off midway is taken up where it stopped, by the plan it was charged for.

That plan is a sketch: what a question will charge and how it will be drawn, from public facts alone. It is made before
anything is reserved, and stored with the reservation, so that what was charged is what is drawn, whatever happened to
the budgets since.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import Argument, LedgerError
from epsilons.guarantee import Covered, to_epsilon
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.values import ACTIVE, Allowance, Cohort, Reservation, list_active, mark_text
from epsilons.measure import PLAIN, Rate
from epsilons.mechanisms.base import Account, Mechanism, charges_of, create
from epsilons.planner.guesses import Known, guessing, guessing_all
from epsilons.preferences import LADDER, MAX_LEVELS, Levels, name_grant
from epsilons.preferences.strata import Strata
from epsilons.release.answer import EXACT, Release
from epsilons.statistics.base import Question


@dataclass(frozen=True)
class Spendable:
    """What each cohort may be charged, as levels: `place[cohort]` is the level of everyone in that cohort.

    `granted` is what each of these cohorts once granted, `idle` what those granted who are not used, `names` what the
    steward calls the grants.
    """

    levels: Levels
    place: Mapping[int, int]
    granted: Mapping[int, int | None]
    idle: tuple[int | None, ...]
    names: Mapping[float, str]
    #: Where accounts count rho: what a loss costs there. Levels are then the losses that people can pay for.
    rate: Rate | None = None

    @classmethod
    def of(
        cls, allowance: Allowance, cohorts: Sequence[Cohort], names: Mapping[float, str], rate: Rate | None = None
    ) -> Spendable:
        """Cohorts with the same allowance are one level; more than 256 allowances go down to the ladder."""
        sizes, may = {cohort.id: cohort.people for cohort in cohorts}, allowance.nano
        active = {cohort.id: cohort.granted for cohort in list_active(cohorts)}
        if rate is not None:
            may = {cohort: rate.strength(units) for cohort, units in may.items()}
            active = {cohort: rate.measure.granted(units) for cohort, units in active.items()}
        nano: dict[int, int | None] = dict(may) | dict.fromkeys(allowance.public)
        rounded = 0.0
        if len(set(nano.values())) > MAX_LEVELS:
            # The largest step of the fixed ladder that is not above; below all of them nothing is left to use.
            steps = (0, *LADDER)
            rungs = {cohort: steps[bisect_right(LADDER, part)] for cohort, part in may.items()}
            people = sum(sizes[cohort] for cohort in rungs)
            rounded = sum(sizes[c] * (1 - rungs[c] / part) for c, part in may.items()) / max(people, 1)
            nano |= rungs
        nano = {cohort: part for cohort, part in nano.items() if part != 0}
        grants = sorted(set(nano.values()), key=lambda grant: (grant is None, grant))
        level_of = {part: level for level, part in enumerate(grants)}
        place = {cohort: level_of[part] for cohort, part in nano.items()}
        counts = [0] * len(grants)
        for cohort, level in place.items():
            counts[level] += sizes[cohort]
        # Withdrawn people are no longer asked about; those who have nothing left still are.
        roster = sum(cohort.people for cohort in cohorts if cohort.state == ACTIVE)
        levels = Levels(tuple(grants), tuple(counts), {}, rounded, roster - sum(counts))
        granted = {cohort: active.pop(cohort) for cohort in place}
        made = cls._named(levels, place, granted, tuple(dict.fromkeys(active.values())), names)
        return made if rate is None else replace(made, rate=rate)

    @classmethod
    def _named(
        cls,
        levels: Levels,
        place: Mapping[int, int],
        granted: Mapping[int, int | None],
        idle: tuple[int | None, ...],
        names: Mapping[float, str],
    ) -> Spendable:
        """Levels are called as the grants that stand at them."""
        standing: list[dict[int | None, None]] = [{} for _ in levels.grants]
        for cohort, level in place.items():
            standing[level][granted[cohort]] = None
        called = {grant: name_grant(grant, names) for grant in set(granted.values())}
        shown = [" or ".join(dict.fromkeys([called[grant] for grant in grants])) for grants in standing]
        epsilons = [to_epsilon(grant) for grant in levels.grants]
        return cls(replace(levels, names=dict(zip(epsilons, shown, strict=True))), place, granted, idle, names)

    def among(self, everyone: Sequence[Cohort]) -> Spendable:
        """The same on a roster that has others, too, who are not used."""
        grants = [cohort.granted for cohort in list_active(everyone) if cohort.id not in self.place]
        grants = grants if self.rate is None else [self.rate.measure.granted(units) for units in grants]
        return replace(self, idle=tuple(dict.fromkeys((*self.idle, *grants))))

    def to_plain(self) -> dict[str, Any]:
        """For the ledger, which keeps the level of every cohort beside its charge, a row each.

        Sizes too: the draw must be the one that was charged, also if people move meanwhile.
        """
        return {
            "levels": list(zip(self.levels.grants, self.levels.sizes, strict=True)),
            "rounded": self.levels.rounding_loss,
            "left_out": self.levels.left_out,
            "idle": self.idle,
            **({"strata": self.levels.to_plain()} if isinstance(self.levels, Strata) else {}),
        }

    @classmethod
    def from_plain(
        cls, plain: Mapping[str, Any], held: Reservation, names: Mapping[float, str], rate: Rate | None = None
    ) -> Spendable:
        """The inverse; a cohort's grant never changes."""
        place = {cohort: level for cohort, (level, _) in held.places.items()}
        granted = {cohort: grant for cohort, (_, grant) in held.places.items()}
        if rate is not None:
            granted = {cohort: rate.measure.granted(units) for cohort, units in granted.items()}
        grants, sizes = zip(*plain["levels"], strict=True)
        levels = Levels(grants, sizes, {}, plain["rounded"], plain["left_out"])
        if "strata" in plain:
            groups = (tuple(plain["strata"][name]) for name in ("groups", "left_by"))
            levels = Strata(grants, sizes, {}, levels.rounding_loss, levels.left_out, *groups)
        made = cls._named(levels, place, granted, tuple(plain["idle"]), names)
        return made if rate is None else replace(made, rate=rate)

    def places(self, cohorts: Sequence[int]) -> NDArray[np.int64]:
        """The level of each of these cohorts, -1 for those that are not used."""
        return np.array([self.place.get(cohort, -1) for cohort in cohorts], np.int64)

    def paid(self, charges: Sequence[int | None]) -> dict[int, int]:
        """{cohort: units of its account} of a mechanism's charges per level; public people have no balance."""
        charges = charges if self.rate is None else [self.rate.cost(charge) for charge in charges]
        levels = ((cohort, charges[level]) for cohort, level in self.place.items())
        return {cohort: charge for cohort, charge in levels if charge}

    def account(self, charges: Sequence[int | None]) -> Account:
        """The most that people with a grant are charged, by grant; those left out pay nothing."""
        charges = charges if self.rate is None else [self.rate.cost(charge) for charge in charges]
        most: dict[int | None, int | None] = {grant: None if grant is None else 0 for grant in self.idle}
        for cohort, granted in self.granted.items():
            charge = charges[self.place[cohort]]
            most[granted] = None if granted is None else max(most.get(granted) or 0, charge or 0)
        losses = sorted(most.items(), key=lambda one: (one[0] is None, one[0]))  # public people last
        return Account(tuple(losses), self.names, PLAIN if self.rate is None else self.rate.measure)


@dataclass(frozen=True)
class RoughCount:
    """What was bought before a question to size it by: the part of people taken to count, and the price by grant."""

    fraction: float
    losses: tuple[tuple[int | None, int | None], ...]


@dataclass(frozen=True)
class Sketch:
    """Mechanism, reason and levels: everything that a draw needs besides the data.

    `threshold` is that of Sample around an algorithm of the caller's own, which has no mechanism. `rough` was charged
    and released by itself before; the question is sized by it.
    """

    mechanism: Mechanism | None
    why: str
    question: Question
    spendable: Spendable
    threshold: int | None = None
    rough: RoughCount | None = None
    #: What of the question's guesses is known otherwise; part of what is drawn, not of what is asked.
    known: tuple[Known, ...] = ()

    @cached_property
    def charges(self) -> tuple[int | None, ...]:
        """What each level pays; nobody pays where everyone is public."""
        if self.threshold is not None:
            return self.spendable.levels.cut_at(self.threshold)
        if self.mechanism is None:
            return (None,) * len(self.spendable.levels.grants)
        return charges_of(self.mechanism, self.question, self.spendable.levels)

    def to_text(self, asked: str) -> str:
        """For the ledger: the question as text, and the draw."""
        chosen = self.mechanism
        options = {} if chosen is None else {k: v for k, v in vars(chosen).items() if not k.startswith("_")}
        name = EXACT if chosen is None else chosen.name
        plan = {"mechanism": name, "options": options, "why": self.why, **self.spendable.to_plain()}
        plan |= {} if self.threshold is None else {"threshold": self.threshold}
        plan |= {} if self.rough is None else {"rough": vars(self.rough)}
        plan |= {"known": [vars(one) for one in self.known]} if self.known else {}
        return json.dumps({"asked": asked, "plan": plan}, separators=(",", ":"))

    @classmethod
    def of(cls, held: Reservation, question: Question, names: Mapping[float, str]) -> Sketch:
        """The inverse, for a question that is asked again after a crash."""
        try:
            plan = json.loads(held.description)["plan"]
            name, options, rough = plan["mechanism"], plan["options"], None
            if "rough" in plan:
                rough = RoughCount(plan["rough"]["fraction"], tuple(map(tuple, plan["rough"]["losses"])))
                question = guessing(question, "density", rough.fraction)
            known = tuple([Known(**one) for one in plan.get("known", ())])
            question = guessing_all(question, known) if known else question
            chosen = None if name == EXACT else create(name, question.statistic, **options)
            rate = None if question.measure.delta is None else question.rate
            spendable = Spendable.from_plain(plan, held, names, rate)
            return cls(chosen, plan["why"], question, spendable, plan.get("threshold"), rough, known)
        except (ValueError, KeyError, TypeError):
            raise cannot_resume() from None

    @cached_property
    def account(self) -> Account:
        """What people are charged, by what they granted, not by what was left to use; with a rough count's price."""
        account = self.spendable.account(self.charges)
        if self.rough is None:
            return account
        first = dict(self.rough.losses)
        both = [
            (grant, None if grant is None else (loss or 0) + (first.get(grant) or 0)) for grant, loss in account.losses
        ]
        return replace(account, losses=tuple(both))


def asked_of(text: str) -> str:
    """The question as text, out of what the ledger keeps of it."""
    try:
        return str(json.loads(text)["asked"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return text


def cannot_resume() -> LedgerError:
    """A stored plan that cannot be read."""
    rule = "Its plan is stored with the charge, by the release of epsilons that charged it."
    hint = (Argument("fresh", True), " asks anew and pays")
    return LedgerError("A question that was charged cannot be taken up again.", rule=rule, suggest=hint)


@dataclass(frozen=True)
class Request:
    """A question at the door: its digest, whose data, the roster's epoch, a line for the journal, what it is about.

    `about` has dataset, version, column, condition and the groups' columns, by their names in a release.
    """

    question: bytes
    dataset: int
    epoch: int
    kind: str
    asked: str
    about: Mapping[str, Any]
    #: What everyone should know of an answer of this dataset.
    caveats: tuple[str, ...] = ()
    individual: bool = False
    analyst: str | None = None
    #: Whether the randomness is the caller's own, so that the noise can be removed.
    seeded: bool = False

    @property
    def key(self) -> bytes:
        """What is charged once: the question to this very roster, for which the charge is planned."""
        return hashlib.sha256(self.question + b" epoch %d" % self.epoch).digest()


def pass_through(
    ledger: Ledger,
    request: Request,
    plan: Callable[[], Sketch],
    resume: Callable[[Reservation], Sketch],
    read: Callable[[Sketch], Release],
) -> Release:
    """One answer. `plan` and `resume` work from public facts, `read` alone sees data.

    StalePlanError: others were charged meanwhile, or the roster changed; nothing was charged, plan again.
    """
    if request.seeded:
        ledger.check_seeded()
    held = ledger.find(request.key, request.question)
    if held is None:
        made = plan()
        held = ledger.reserve(
            request.key,
            made.spendable.paid(made.charges),
            epoch=request.epoch,
            kind=request.kind,
            description=made.to_text(request.asked),
            individual=request.individual,
            analyst=request.analyst,
            dataset=request.dataset,
            asked=request.question,
            levels=made.spendable.place,
        )
    if held.answer is not None:
        return Release.from_dict(json.loads(held.answer))
    # Also what was just planned is taken from the ledger: a resumed question walks the same path as a fresh one.
    sketch = resume(held)
    if sketch.spendable.paid(sketch.charges) != held.charges:  # its mechanism is not what it was
        raise cannot_resume()
    since = ledger.mark_read(held.number, request.seeded).not_dp_since
    marks = () if since is None else (mark_text(since),)  # all releases together are not DP since that one
    release = replace(read(sketch), **request.about, at=held.at, number=held.number)
    # Until somebody joins, leaves or changes their mind, everyone has the grant that they have now.
    covered = Covered(f"ledger {ledger.id}, epoch {held.epoch}")
    release = release.about(covered, marks, request.caveats)
    content = json.dumps(release.to_dict(), separators=(",", ":"), allow_nan=False).encode()
    return Release.from_dict(json.loads(ledger.store(held.number, content)))

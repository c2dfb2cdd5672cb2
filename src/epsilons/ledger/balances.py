"""What is left, exactly: to everyone at a granted level, in epsilon and in questions like the last one; to one person.

What a person is told stands here, too: what their data was used for, and what became of their own word.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import cached_property
from typing import Any

from epsilons.display import Sheet, Shown, group_levels, show, show_key, show_span
from epsilons.guarantee import NANO
from epsilons.ledger.consent import Term
from epsilons.ledger.values import WITHDRAWN, Cohort, Marked, list_active
from epsilons.measure import PLAIN, Measure

_HEAD = "epsilon granted", "people"


@dataclass(frozen=True)
class Balance:
    """Everyone with one grant: what they have left together and at least, and how many of them have nothing left."""

    granted: int
    people: int
    total: int
    least: int
    nothing_left: int
    measure: Measure = PLAIN

    @property
    def epsilon(self) -> float:
        """What they granted."""
        return self.measure.grant(self.granted)

    @property
    def average(self) -> float:
        """What they have left on average, in epsilon, or in rho."""
        return self.total / self.people / self.measure.one

    def to_dict(self) -> dict[str, Any]:
        """Plain values in epsilon, what is left in rho where that is counted; `left` is the average."""
        told = {"epsilon": self.epsilon, "people": self.people, "left": self.average}
        return {**told, "least": self.measure.amount(self.least), "nothing_left": self.nothing_left}


@dataclass(frozen=True)
class Remaining(Marked, Shown):
    """What is left at every granted level, in each cohort, and in questions like the last one ({grant: how many}).

    `names` are what levels are called, by epsilon, to be printed. `gone` are people on no roster, where these
    are left out.
    """

    cohorts: tuple[Cohort, ...]
    questions: Mapping[int, int]
    not_dp_since: int | None = None
    names: Mapping[float, str] = field(default_factory=dict)
    measure: Measure = PLAIN
    gone: int = 0

    @cached_property
    def levels(self) -> tuple[Balance, ...]:
        """Everyone at a level, strictest grant first: average, least, and how many have nothing left."""
        return balance(self.cohorts, self.measure)

    @property
    def nano(self) -> dict[int, int]:
        """{grant: the least that anyone with this grant has left}, in nano-epsilon, or femto-rho."""
        return {level.granted: level.least for level in self.levels}

    @property
    def epsilons(self) -> dict[float, float]:
        """{granted epsilon: least epsilon, or rho, left to anyone at that level}."""
        return {level.epsilon: self.measure.amount(level.least) for level in self.levels}

    def sheets(self) -> list[Sheet]:
        rows = []
        granted = [level.epsilon for level in self.levels]
        named = [self.names.get(one, show(one)) for one in granted]
        for name, places in group_levels([(one, level.people) for one, level in zip(named, self.levels, strict=True)]):
            those = [self.levels[place] for place in places]
            called = [name, show_span([granted[place] for place in places])] if self.names else [name]
            more = [self.questions[level.granted] for level in those if level.granted in self.questions]
            least = min(those, key=lambda level: level.least)
            left = [
                self.measure.show((level.epsilon, level.average) for level in those),
                self.measure.show([(least.epsilon, self.measure.amount(least.least))]),
            ]
            counts = sum(level.people for level in those), sum(level.nothing_left for level in those)
            rows.append([*called, show(counts[0]), *left, show(counts[1]), show_span(more) if more else "–"])
        notes = ["Questions left: like the last one, on average.", *([self.caveat] if self.caveat else [])]
        head = (*_HEAD, *map(self.measure.head, ("left on average", "least left")), "nothing left", "questions left")
        return [Sheet("", ("level", *head) if self.names else head, rows, [*notes, *self.measure.notes])]


@dataclass(frozen=True)
class Use:
    """A question that charged this person: what it cost them at most, of what they granted at that time."""

    number: int
    kind: str
    at: str
    charge: int
    granted: int


@dataclass(frozen=True)
class Replaced:
    """A person's own word that gave way: what it was, when, and to the preferences of which dataset, if of any.

    With a `ceiling` it still is their own word, brought down to the ceiling of that dataset.
    """

    granted: int | None
    level: str | None
    at: str
    dataset: str | None
    ceiling: int | None = None
    measure: Measure = field(default=PLAIN, compare=False)

    def __str__(self) -> str:
        said = self.level or _grant(self.measure.granted(self.granted))
        if self.ceiling is not None:
            least = f"{_at_most(self.measure.epsilon(self.ceiling))}, the ceiling of {self.dataset},"
            return f"Own word: {show_key(said)}, brought down to {show_key(least)} on {self.at[:10]}."
        source = f"the preferences of {self.dataset}" if self.dataset else "a source"
        return f"Own word: {show_key(said)}, until {show_key(source)} said something else on {self.at[:10]}."


@dataclass(frozen=True)
class Redefined:
    """A person's level that came to mean something else: what it meant before, and since when it means what."""

    level: str
    before: int | None
    granted: int | None
    at: str
    measure: Measure = field(default=PLAIN, compare=False)

    def __str__(self) -> str:
        meant, means = (_grant(self.measure.granted(one)) for one in (self.before, self.granted))
        return f"Level {show_key(self.level)}: {meant} until {self.at[:10]}, {means} since then."


@dataclass(frozen=True)
class Anew:
    """When a person consented anew, after records were lost, and what earlier questions had charged them."""

    at: str
    charged: int


@dataclass(frozen=True)
class Statement(Marked, Shown):
    """One person's account: what their data was used for, at most how much it cost, and what is left.

    `uses` lists every question that charged them; `when_public` the numbers of those asked while they were public,
    which promise them nothing. `written_off` counts as spent since a loss of the ledger's newest records was accepted,
    `rounded` since accounts that were nearly alike became one; for the same reason `lowered` counts as not granted.
    `replaced` is their own word if it no longer holds, `redefined` what became of the meaning of their level. With a
    `term` the grant is one by period, and `spent` is that of the present one; of earlier ones, `lapsed` was not used.
    `lost`: whatever they grant counts as spent, until they consent `anew`; what is granted then counts from there on.
    """

    granted: int | None
    state: str
    spent: int
    reserved: int
    left: int | None
    uses: tuple[Use, ...]
    when_public: tuple[int, ...]
    not_dp_since: int | None = None
    written_off: int = 0
    rounded: int = 0
    lowered: int = 0
    on_roster: bool = True  # of any dataset
    replaced: Replaced | None = None
    redefined: tuple[Redefined, ...] = ()
    measure: Measure = PLAIN
    term: Term | None = None
    lapsed: int = 0
    lost: bool = False
    anew: Anew | None = None

    @property
    def sentences(self) -> tuple[str, ...]:
        """The account in plain language."""
        parts = [self._tell_uses(), "Withdrawn: not used any more."]
        if self.state != WITHDRAWN:
            left = f"Left: {self._tell_left()}." if self.left else "Left: 0, so not used any more."
            parts[1] = "Public now: nothing is promised." if self.granted is None else left
        parts += [] if self.term is None else [self._tell_term(self.term)]
        if self.lapsed and self.term is None:
            parts.append(f"Of periods that are over, {self._amount(self.lapsed)} was not used and counts as spent.")
        parts += [] if self.on_roster else ["On no roster now, so not used in any question."]
        parts += [] if self.replaced is None else [str(self.replaced)]
        parts += map(str, self.redefined)
        if self.when_public:
            which = f"release{'s' if len(self.when_public) > 1 else ''} {', '.join(map(str, self.when_public))}"
            parts.append(f"Asked while public, with nothing promised: {which}.")
        if self.written_off:
            parts.append(f"Records were lost, so {self._amount(self.written_off)} more counts as spent.")
        if self.lost:
            parts.append("Until this person consents anew, every level they choose counts as spent.")
        if self.anew is not None:
            parts.append(
                f"Granted anew on {self.anew.at[:10]}, after records were lost. What was used before counts besides: "
                f"{self._amount(self.anew.charged)}, and whatever the lost records held."
            )
        if self.rounded or self.lowered:
            most = [f"{self._amount(self.rounded)} more counts as spent"] * bool(self.rounded)
            most += [f"{self._amount(self.lowered)} less as granted"] * bool(self.lowered)
            parts.append(f"Rounded, as accounts that were nearly alike became one: {' and '.join(most)}.")
        return (*parts, self.caveat) if self.caveat else tuple(parts)

    def __str__(self) -> str:
        return " ".join(self.sentences)

    def _tell_uses(self) -> str:
        told = f"Used in {len(self.uses)} question{'' if len(self.uses) == 1 else 's'}"
        if kinds := sorted(Counter(use.kind for use in self.uses).items()):
            told += f" ({', '.join(f'{times} × {show_key(kind)}' for kind, times in kinds)})"
        gone = self.spent + self.reserved - self.written_off - self.rounded - self.lapsed
        if self.term is not None:  # over all periods
            gone = sum(use.charge for use in self.uses)
        elif self.anew is not None:
            told += " in all; since this was granted anew"
        told += f", at a loss of at most {_at_least(self.measure.epsilon(gone))}"
        delta = "" if self.measure.delta is None else f", with a delta of {float(self.measure.delta):g}"
        if self.state == WITHDRAWN or self.granted is None:
            return f"{told}{delta}."
        if self.term is not None:
            return f"{told} in all{delta}."
        percent = Context(prec=3, rounding=ROUND_CEILING).divide(100 * gone, self.granted)
        part = f"{float(percent):.3g}%{' of its rho' if delta else ''}"
        return f"{told} of {_at_most(self.measure.epsilon(self.granted))} granted ({part}){delta}."

    def _tell_left(self) -> str:
        """In epsilon, or of a concentrated account the part of its rho: what adds up."""
        assert self.left is not None
        if self.measure.delta is None or self.granted is None:
            return _at_most(self.left)
        percent = Context(prec=3, rounding=ROUND_FLOOR).divide(100 * self.left, self.granted)
        return f"{float(percent):.3g}% of its rho"

    def _amount(self, units: int) -> str:
        """In epsilon, or in rho."""
        if self.measure.delta is None:
            return _at_least(units)
        return f"{float(Context(prec=6, rounding=ROUND_CEILING).create_decimal(units)) / self.measure.one:.6g} rho"

    def _tell_term(self, term: Term) -> str:
        """What is granted for a period, and what that adds up to."""
        assert self.granted is not None
        granted, gone = self.measure.epsilon(self.granted), self.spent + self.reserved
        each = f"Granted: {_at_most(granted)} each {term.period} of the calendar, now for {term.label}"
        used = f"of which {self._amount(gone)} counts as spent"
        total = _at_least(self.measure.epsilon(term.earlier + max(self.granted, gone)))
        return f"{each}, {used}. With earlier periods this adds up to at most {total} so far."


def _grant(nano: int | None) -> str:
    return "public" if nano is None else _at_most(nano)


def _at_most(nano: int) -> str:
    """An epsilon in six digits, rounded down: nobody is told of more than there is."""
    return f"{float(Context(prec=6, rounding=ROUND_FLOOR).create_decimal(nano)) / NANO:.6g}"


def _at_least(nano: int) -> str:
    """The same rounded up: nobody is told of a smaller loss than there was."""
    return f"{float(Context(prec=6, rounding=ROUND_CEILING).create_decimal(nano)) / NANO:.6g}"


def balance(cohorts: Iterable[Cohort], measure: Measure = PLAIN) -> tuple[Balance, ...]:
    """What everyone with a grant has left, exactly; strictest grant first. Public people have no balance."""
    found: dict[int, list[tuple[int, int]]] = {}
    for cohort in list_active(cohorts):
        if cohort.granted is not None and cohort.left is not None:
            found.setdefault(cohort.granted, []).append((cohort.people, cohort.left))
    return tuple(
        Balance(
            granted,
            people=sum(people for people, _ in some),
            total=sum(people * left for people, left in some),
            least=min(left for _, left in some),
            nothing_left=sum(people for people, left in some if left == 0),
            measure=measure,
        )
        for granted, some in sorted(found.items())
    )


def questions_left(cohorts: Iterable[Cohort], last: Mapping[int, int]) -> dict[int, int]:
    """How often people at a level could on average still pay what the last question charged there ({grant: charge})."""
    often: Counter[int] = Counter()
    people: Counter[int] = Counter()
    for cohort in list_active(cohorts):
        charge = last.get(cohort.granted or 0)
        if charge and cohort.granted is not None and cohort.left is not None:
            people[cohort.granted] += cohort.people
            often[cohort.granted] += cohort.people * (cohort.left // charge)
    return {granted: often[granted] // people[granted] for granted in sorted(people)}

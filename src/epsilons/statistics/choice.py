"""The most frequent of several public options, or the best few: chosen by exponential mechanisms.

A row is a voice for the option that it names, of the weight of its person; a row that names none, or that a condition
leaves out, is no voice. Pr[option] is proportional to exp(voices/reach). Taking a row away moves one option's voices
one way, by the person's weight at most, and so the ratio of two chances by as much: m rows, over all groups together,
by m times that. Whoever is replaced takes m rows away and brings m others: hence a reach of m, or of 2m
(docs/theory.md, "choices"). The best k are drawn one after the other, each at a k-th of everybody's loss; where a
concentrated account counts squares, at a part of 1/sqrt(k).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import check_bounds, check_whole, refuse
from epsilons.arguments.options import Parameter
from epsilons.engines.readings import is_list
from epsilons.errors import Argument, PlanError
from epsilons.measure import BOUNDED_RANGE
from epsilons.noise.segments import Block, SegmentSampler
from epsilons.statistics.additive import weighted_sums
from epsilons.statistics.base import Answer, Floats, Question, RowScope, Statistic, Weighting
from epsilons.statistics.entry import BOUNDS, ON_TABLES, Entry
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.moments import Moments
from epsilons.summaries.arrays import STEPS

if TYPE_CHECKING:
    from epsilons.noise.entropy import Entropy
    from epsilons.summaries import People
    from epsilons.summaries.cells import Integers

#: Of 1/sqrt(k): so many bits, rounded down.
_FINE = 1 << 40
_OPTIONS = Argument("among", ["north", "south"])
_RULE = "At least two, each once: public, and never read from the data."


@dataclass(frozen=True)
class Mode(Histogram):
    """The option that most rows name. Its summary is that of a histogram; its answer an option, not a number."""

    name: ClassVar[str] = "mode"
    family: ClassVar[str] = "choice"  # type: ignore[misc]
    labels: ClassVar[bool] = True
    loss_factor: ClassVar[Fraction] = BOUNDED_RANGE  # type: ignore[misc]
    no_interval: ClassVar[str] = "An option is no number."  # type: ignore[misc]
    #: How many are chosen.
    k: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if len(self.categories or ()) < 2:
            raise PlanError(f"A {self.name} is chosen among options.", rule=_RULE, suggest=_OPTIONS)
        try:
            super().__post_init__()
        except PlanError:
            raise PlanError("Options repeat, or one is missing.", rule=_RULE, suggest=_OPTIONS) from None
        if any(isinstance(option, tuple) for option in self.categories or ()):
            raise PlanError("An option is a word, a number or a date.", rule=_RULE, suggest=_OPTIONS)

    @property
    def error_is(self) -> str:  # type: ignore[override]
        """What a predicted error is."""
        what = (
            "how many rows more of the best option there"
            if self.summary == "bins"
            else "how much larger the best total"
        )
        return f"{what} may be, on average,"

    @property
    def row_reach(self) -> int:
        """How far one row moves the voices of its option, in their units."""
        return 1

    @property
    def worth(self) -> float:
        """What a row adds to its option at most, in the units of errors: a row, or what it is worth."""
        return 1.0

    def reach(self, neighbors: str) -> int:
        """How far one person moves the voices of all options together, in L1."""
        rows = 1 if self.scope is None else self.scope.rows
        return rows * self.row_reach * (1 if neighbors == "absent" else 2)

    def portion(self, question: Question) -> Fraction:
        """The part of everybody's loss that each draw may take."""
        if question.measure.delta is None:
            return Fraction(1, self.k)
        return Fraction(math.isqrt(_FINE * _FINE // self.k), _FINE)

    def sampler(self, unit: Fraction, voices: Sequence[int], left: Sequence[int]) -> SegmentSampler:
        """What draws one of the options that are left, by its voices."""
        most = max(voices[place] for place in left)
        costs = [most - voices[place] for place in left]
        block = Block(first=list(left), direction=1, count=1, cost=costs, slope=0, left_over=0, floor=0)
        return SegmentSampler([block], unit)

    def unit(self, question: Question, weighting: Weighting) -> Fraction:
        """What a voice is in the exponent."""
        return weighting.inverse_scale(self.portion(question), self.reach(question.neighbors))

    def voices(self, people: People, weighting: Weighting, tally: list[Integers] | None = None) -> Iterator[list[int]]:
        """The weighted voices of each option, group by group."""
        (counts,) = self.tally(people) if tally is None else tally
        heard = weighted_sums(counts, weighting.weights)
        return (heard[start : start + self.bins] for start in range(0, len(heard), self.bins))

    def draw(self, question: Question, weighting: Weighting, people: People, entropy: Entropy) -> Answer:
        chances = weighting.chances
        tally = None if chances is None else self.sampled_tally(people, chances, entropy)
        unit, chosen = self.unit(question, weighting), []
        for heard in self.voices(people, weighting, tally):
            drawn: list[int] = []
            while len(drawn) < self.k:
                left = [place for place in range(self.bins) if place not in drawn]
                drawn.append(self.sampler(unit, heard, left).draw(entropy))
            chosen.append(drawn)
        return Answer(self.tell(chosen))

    def tell(self, chosen: Sequence[Sequence[int]]) -> Any:
        """Options by their places, of each group, as a release says them."""
        told = [self.tell_one([_plain(self.bin_keys[place]) for place in drawn]) for drawn in chosen]
        groups = None if self.scope is None else self.scope.groups
        return told[0] if groups is None else dict(zip(groups, told, strict=True))

    def tell_one(self, options: list[Any]) -> Any:
        return options[0]

    def best(self, voices: Sequence[int]) -> list[int]:
        """The places of the options with the most voices, the first of equals first."""
        return sorted(range(len(voices)), key=lambda place: -voices[place])[: self.k]

    def exact(self, people: People) -> tuple[Any, Sequence[float]]:
        everyone = Weighting((1,) * len(people.levels.grants), 1, Fraction(1))
        return self.tell([self.best(heard) for heard in self.voices(people, everyone)]), ()

    def of_roster(self, people: Mapping[int | None, int], grant_of: Callable[[Any], int | None]) -> Any:
        return self.tell([self.best(list(super().of_roster(people, grant_of).values()))])

    def law(self, unit: Fraction, voices: Sequence[int]) -> dict[tuple[int, ...], float]:
        """{places in the order of their draws: natural logarithm of the chance}, for audits and teaching."""
        found: dict[tuple[int, ...], float] = {(): 0.0}
        for _ in range(self.k):
            longer: dict[tuple[int, ...], float] = {}
            for drawn, log in found.items():
                left = [place for place in range(self.bins) if place not in drawn]
                places, chances = self.sampler(unit, voices, left).probabilities()
                with np.errstate(divide="ignore"):
                    logs = (log + np.log(chances)).tolist()
                longer |= {(*drawn, place): one for place, one in zip(places.tolist(), logs, strict=True)}
            found = longer
        return found

    def noisy_sums(self, question: Question, weighting: Weighting, people: People) -> None:  # type: ignore[override]
        """There are none: what is released is an option."""

    def distribution(self, question: Question, weighting: Weighting, people: People) -> tuple[NDArray[Any], Floats]:
        """Of the places that are drawn, read as digits; a mixture where people are sampled."""
        unit, added = self.unit(question, weighting), dict[int, float]()
        for chance, sample in people.samples(weighting.chances):
            laws = [self.law(unit, heard) for heard in self.voices(sample, weighting)]
            for outcome in product(*(law.items() for law in laws)):
                code = 0
                for place in (place for drawn, _ in outcome for place in drawn):
                    code = code * self.bins + place
                log = sum(one for _, one in outcome) + math.log(chance)
                added[code] = float(np.logaddexp(added.get(code, -math.inf), log))
        codes = sorted(added)
        return np.array(codes), np.array([added[code] for code in codes])

    def tell_outcome(self, outcome: Any) -> Any:
        """Places that are drawn are listed as the digits of a number; without groups."""
        drawn = []
        for _ in range(self.k):
            outcome, place = divmod(outcome, self.bins)
            drawn.append(place)
        return self.tell([drawn[::-1]])

    def simulate(self, question: Question, weighting: Weighting, people: People, entropy: Entropy, size: int) -> Floats:
        raise PlanError("Options are not simulated in bulk.", rule="They are no numbers.")

    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        """Of one person's voices for one option, as uncertain as they can be: nobody guesses how many name it."""
        low, high = self.extremes
        return Moments((low + high) / 2, ((high - low) / 2) ** 2)

    def related(self, question: Question) -> tuple[str, float]:
        what = "share of any option" if self.one_each else "voices for any option"
        return what, math.sqrt(self.guess(question).variance)

    def told_at(self, question: Question) -> str:
        return ""

    def noise_to_spread(self, question: Question) -> float:
        """As of a histogram, by how far the answer falls short of the best option for want of loss."""
        short = math.log(self.bins) * self.reach(question.neighbors) / float(self.portion(question))
        return 2 * short**2 / max(self.guess(question).variance, 1e-12)

    def describe(self) -> str:
        return f"{self.name} of {self.bins} options"


@dataclass(frozen=True)
class Top(Mode):
    """The k options that most rows name, the best first; with `total`, those of the largest totals of that column."""

    k: int = 1  # type: ignore[misc]
    total: str | None = None
    bounds: tuple[float, float] | None = None

    name: ClassVar[str] = "top"
    later: ClassVar[tuple[str, ...]] = ("spans", "total", "bounds")

    def __post_init__(self) -> None:
        super().__post_init__()
        most = self.bins - 1
        refusal = refuse("k", self.k, f"A whole number from 1 to {most}: fewer than options.", Argument("k", 1))
        object.__setattr__(self, "k", check_whole(self.k, 1, most, refusal))
        if self.total is not None:
            object.__setattr__(self, "bounds", check_bounds(self.bounds, "top"))
        elif self.bounds is not None:
            what = (Argument("bounds"), " are those of the column whose totals are compared.")
            raise PlanError(what, suggest=Argument("total", "wage"))

    @property
    def summary(self) -> str:  # type: ignore[override]
        return "bins" if self.total is None else "totals"

    @property
    def row_reach(self) -> int:
        return 1 if self.total is None else STEPS

    @property
    def one_each(self) -> bool:  # type: ignore[override]
        return self.total is None and super().one_each

    @cached_property
    def extremes(self) -> tuple[float, float]:
        if self.bounds is None:
            return super().extremes
        rows = 1 if self.scope is None else self.scope.rows
        return min(self.bounds[0], 0.0) * rows, max(self.bounds[1], 0.0) * rows

    @property
    def worth(self) -> float:
        return 1.0 if self.bounds is None else max(map(abs, self.bounds))

    def tell_one(self, options: list[Any]) -> Any:
        return options

    def describe(self) -> str:
        by = "" if self.total is None or self.bounds is None else f" by {self.total} in [%g, %g]" % self.bounds
        return f"{self.name} {self.k} of {self.bins} options{by}"


def _plain(option: Hashable) -> Any:
    """An option as JSON has it."""
    return option.isoformat() if isinstance(option, date) else option


def _build(kind: type[Mode], given: Mapping[str, Any], over: RowScope) -> Statistic:
    own = dict(given)
    options, scope = own.pop("among"), None if over.fixed and own.get("total") is None else over.scope
    if isinstance(options, Mapping):
        listed = Histogram.of(None, options, "drop")
        return kind(None, listed.categories, "drop", scope, listed.spans, **own)
    named = options.tolist() if isinstance(options, np.ndarray) else options
    return kind(None, tuple(named) if is_list(named) else (), "drop", scope, **own)


_WHICH = Parameter("among", Sequence[Hashable] | None, None, "The public options; of a table the registered keys.")
_SHARED: dict[str, Any] = {"text": True, "missing": "not counted"}
ENTRIES = (
    Entry(
        name="mode",
        build=partial(_build, Mode),
        arguments=(_WHICH,),
        doc="The most frequent of several public options: one of them, a frequent one the likelier.",
        table_doc="The most frequent of several public options: one of them, a frequent one the likelier.",
        examples="""\
>>> import epsilons as eps
>>> answer = eps.mode(["red"] * 60 + ["blue"] * 9, 1.0, among=["red", "green", "blue"])
>>> answer.value
'red'
""",
        example=(Mode(None, (0.0, 1.0, 2.0)), (0.0, 1.0, 7.0)),
        help="The most frequent value of a column, among public options.",
        command="epsilons mode people.toml region --among north,south --share 0.05",
        sql=("Mode",),
        **_SHARED,
    ),
    Entry(
        name="top",
        build=partial(_build, Top),
        arguments=(
            Parameter("k", int, 3, "How many.", positional=True),
            _WHICH,
            Parameter("total", str | None, None, "Compare totals of this column.", fronts=ON_TABLES),
            Parameter("bounds", BOUNDS.annotation, None, "With total: public bounds of that column.", fronts=ON_TABLES),
        ),
        doc="The `k` most frequent of several public options, as a list, the best one first.",
        table_doc="""\
The `k` most frequent of several public options, as a list, the best one first.

With `total` the options whose rows have the largest totals of that column, clipped to its public bounds.""",
        examples="""\
>>> import epsilons as eps
>>> answer = eps.top(["red"] * 90 + ["blue"] * 40, 2.0, k=2, among=["red", "green", "blue"])
>>> answer.value
['red', 'blue']
""",
        example=(Top(None, (0.0, 1.0, 2.0), k=2), (0.0, 1.0, 2.0)),
        help="The most frequent values of a column, or those with the largest totals of another.",
        command="epsilons top people.toml region 2 --among north,south,west --share 0.05",
        **_SHARED,
    ),
)

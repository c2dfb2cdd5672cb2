"""What every question is made of: a statistic and its scope, the question around it, weights, and an answer.

A statistic is a frozen value that holds the public arguments of a question (bounds, grid, edges) and its scope: a
condition, groups, several rows per person, values left out. It turns values into a summary per level, in integers, and
says how far one person can move it. Given who weighs how much, its family draws: `additive.Additive` by an integer
vector per part, added up over people; `order.Order` by sorted grid cells. Nothing raises because of a value.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import ASSUMPTIONS, PRIVACIES, Bought, check_guess, check_name, check_related
from epsilons.arguments.reading import NOT_COUNTED, AskOptions
from epsilons.guarantee import NANO, NEIGHBORS
from epsilons.measure import ANY_LOSS, PLAIN, Measure, Rate
from epsilons.noise.entropy import ALWAYS, Entropy
from epsilons.preferences import Levels

if TYPE_CHECKING:
    from epsilons.statistics.brackets import Bracket
    from epsilons.statistics.distributions import NoisySums
    from epsilons.statistics.entry import Entry
    from epsilons.summaries import People

Floats = NDArray[np.float64]
FINE = 1 << 40  # fixed-point weights have this many steps to one


@dataclass(frozen=True)
class Scope:
    """What a table adds to a question: at most `rows` rows per person, and `groups` that the caller named, or None.

    A person's rows are capped once, before any condition and any grouping. Whatever is asked, the reach of a sum is
    taken over all groups together, in L1: a person's rows may lie in different groups, and under "replace" all of them
    may move from one group to another (docs/theory.md, "filtered"). `fraction` is a public guess of the part of people
    who count, in each group, for plans and weights only. With `only_missing` everybody is asked, with one row each: the
    number of values is private for no other reason than that some may be missing.
    """

    rows: int = 1
    groups: tuple[Hashable, ...] | None = None
    fraction: float = 0.5
    #: Not part of question keys: a condition or groups are, in words of their own.
    only_missing: bool = field(default=False, repr=False)

    @cached_property
    def cells(self) -> int:
        """How many numbers are asked for."""
        return 1 if self.groups is None else len(self.groups)

    @cached_property
    def average(self) -> float:
        """How many rows a person has: of 1 to `rows` the average."""
        return (1 + self.rows) / 2

    @cached_property
    def expected(self) -> float:
        """How many rows of one person are expected to count, in each group."""
        return self.fraction * self.average

    def reach(self, low: int, high: int) -> dict[str, int]:
        """The L1 reach of sums to which a row adds from `low` to `high`, or nothing when it does not count."""
        least, most, far = min(low, 0), max(high, 0), max(abs(low), abs(high))
        return {"absent": self.rows * far, "replace": self.rows * (2 * far if self.cells > 1 else most - least)}

    def square(self, low: int, high: int) -> dict[str, int]:
        """The squared L2 reach of the same: what is replaced lies in two groups, or at both ends of one."""
        least, most, far = min(low, 0), max(high, 0), max(abs(low), abs(high))
        apart = max((most - least) ** 2, 2 * far**2 if self.cells > 1 else 0)
        return {"absent": (self.rows * far) ** 2, "replace": self.rows**2 * apart}

    def pair_reach(self, step: int) -> dict[str, int]:
        """The L1 reach of two sums to which a row adds `step` between them, or nothing when it does not count.

        When replaced, a row's part may move from one sum to the other, or to another group: twice that.
        """
        return {"absent": self.rows * step, "replace": 2 * self.rows * step}

    def people_reach(self) -> dict[str, int]:
        """The reach of counts of people: one person is in as many groups as they have rows, at most."""
        return {"absent": min(self.rows, self.cells), "replace": min(2 * self.rows, self.cells)}

    def per_row(self, neighbors: str) -> int:
        """By how much a person's loss exceeds that of one row in one group, for mechanisms that weigh rows."""
        return self.rows * (2 if self.cells > 1 and neighbors == "replace" else 1)

    def arrange(self, numbers: Iterable[Any]) -> Any:
        """One number, or a dict with one for each group."""
        answers = dict(zip((None,) if self.groups is None else self.groups, numbers, strict=True))
        return answers[None] if self.groups is None else answers


@dataclass(frozen=True)
class RowScope:
    """Which rows a statistic is taken over. As it stands: everyone, one row each, nothing missing."""

    scope: Scope = field(default_factory=Scope)
    #: One row of everybody: no condition, no groups; nothing missing, by word or by type, or what is `imputed`.
    fixed: bool = True
    complete: bool = True
    imputed: bool = False
    #: Whether values are looked at, or rows alone are counted.
    column: bool = True
    neighbors: str = "absent"
    location: float | None = None
    #: Whether an answer without bounds is possible: with individual or group privacy.
    unbounded: bool = False
    gaussian: bool = False  # whether noise is, for which other sums of a mean are best

    @property
    def centred(self) -> bool:
        """Whether everyone has a value for certain, so that an absent one may stand at the centre without being seen.

        Where people are replaced nothing would be gained, and individual privacy looks at values one by one.
        """
        return self.column and self.fixed and self.complete and self.neighbors == "absent" and not self.unbounded

    def asked(self, entry: Entry, options: AskOptions, declared: str = "") -> tuple[RowScope, str]:
        """(these rows as a question asks of them, what its release says of missing values).

        Where nothing is known of how many count, a condition is taken to let half of the people pass; without one
        nearly everyone is taken to have a value.
        """
        fixed = options.where is None and options.by is None and self.scope.rows == 1
        fraction = (1.0 if options.where is None else 0.5) / self.scope.cells
        if entry.column == "optional":  # of one group, or of a column, a half: else everyone would count for certain
            fraction = min(fraction, 0.5)
        guessed, counted = fraction if options.density is None else options.density, entry.missing == "not counted"
        complete, note = options.treat_missing(entry, fixed, declared)
        scope = replace(self.scope, fraction=guessed, only_missing=fixed and not (entry.model or counted))
        imputed, location = options.missing == "center", options.location
        over = replace(self, scope=scope, fixed=fixed, complete=complete, imputed=imputed, location=location)
        over = over if options.delta is None else replace(over, gaussian=True)
        return over, NOT_COUNTED if counted and not (entry.name == "count" and over.centred) else note


@dataclass(frozen=True)
class Question:
    """What is asked, against which neighbours it is protected, and what is publicly expected of the values.

    `spread`, `density`, `location`: public guesses of the standard deviation, the fraction of ones, the mean, to steer
    weights and predicted errors, never the guarantee. Any `privacy` but "personalized" is weaker and must be asked for;
    for "group", `groups` are nano-epsilons of 1, 2, ... people. `assume` is how far preferences may be related to
    values (`accuracy/relation.py`), in spreads; what was `bought` is a distance, whatever the spread.
    """

    statistic: Statistic
    neighbors: str = "absent"
    assume: float = 0.0
    spread: float | None = None
    density: float | None = None
    location: float | None = None
    privacy: str = "personalized"
    groups: tuple[int, ...] = ()
    bought: Bought | None = None
    known: tuple[tuple[str, str], ...] = ()  # which guesses come from past answers, in words
    measure: Measure = PLAIN  # what people pay with

    def __post_init__(self) -> None:
        check_name("neighbors", self.neighbors, NEIGHBORS)
        check_name("privacy", self.privacy, PRIVACIES)
        for name in ("spread", "density", "location"):
            object.__setattr__(self, name, check_guess(name, getattr(self, name), self.statistic.span))
        told = self.assume if self.bought is None else self.bought.distance / self.statistic.related(self)[1]
        object.__setattr__(self, "assume", check_related(told))

    @property
    def rate(self) -> Rate | None:
        """What a loss costs people of a concentrated account; None where epsilons pay as they are."""
        return None if self.measure.delta is None else Rate(self.measure, self.statistic.loss_factor)

    def tell_loss(self, nano: int | Fraction) -> str:
        """A loss as people pay for it, whatever share of their grants that is: an epsilon, or a rho."""
        rate, whole = self.rate, math.ceil(nano)
        if rate is None:
            return f"{float(nano) / NANO:.4g}"
        return f"a rho of {(rate.cost(whole) or 0) / rate.measure.one:.4g}"

    def condition(self, *, alike: bool = False, spreads: Sequence[float] = ()) -> str:
        """What errors and intervals take for granted, in the units of the column; little if everyone weighs `alike`."""
        statistic, assume = self.statistic, math.inf if alike else self.assume
        given = [(words, getattr(self, name), dict(self.known).get(name)) for name, words in statistic.trusted.items()]
        guesses = [f"{words} {guess:,.4g} ({origin or 'given'})" for words, guess, origin in given if guess is not None]
        at = ", each by its own number" if len(spreads) > 1 else "" if spreads else statistic.told_at(self)
        means = [f"nor its {mean} further than {assume * far:,.4g}" for mean, far in statistic.related_means(self)]
        what, spread = statistic.related(self) if 0 < assume < math.inf else ("", 0.0)
        told = ASSUMPTIONS["nothing" if assume else "unrelated"]
        if spread > 0:  # of the largest value no error is stated
            if statistic.scope and statistic.family not in (
                "linear",
                "choice",
            ):  # a level moves an average by its rows that count
                what = f"{what.rstrip(',')}, weighted by how many of it count,"
            ends = f"{assume * min(spreads, default=spread):,.4g}", f"{assume * max(spreads, default=spread):,.4g}"
            told = f"no level's expected {what} is further than {' to '.join(dict.fromkeys(ends))} from everyone's{at}"
            told = ", ".join([told, *means])
        rests = self.assume if statistic.family == "variance" else assume  # noise alone rests on none, but bends that
        if guesses and not math.isfinite(rests) and not statistic.usual:  # a model has no interval
            return f"{told}; for a population: {' and '.join(guesses)}"
        kept = guesses if math.isfinite(rests) else []
        return ", and ".join([told, *kept, *statistic.usual])

    @classmethod
    def of(
        cls,
        statistic: Statistic,
        options: AskOptions,
        neighbors: str,
        groups: tuple[int, ...] = (),
        about: tuple[str, str] = ("", ""),
    ) -> Question:
        """A statistic, of a column of a dataset if any, under the assumptions that a caller made."""
        guesses = (options.spread, options.density, options.location)
        if options.bought is not None:
            # A condition on public columns leaves no scope: it is of some people all the same.
            everyone = statistic.scope is None and options.where is None
            options.bought.check_speaks_of(statistic.describe(), about, everyone)
        if options.privacy == "personalized":
            statistic = statistic.paying_for_interval(options.for_interval)
        measure = PLAIN if options.delta is None else Measure(options.delta)
        return cls(statistic, neighbors, options.assume, *guesses, options.privacy, groups, options.bought, (), measure)


@dataclass(frozen=True)
class Answer:
    """What a draw gives: a value, noisy by-products that may be shown, and the noisy sums or cells behind it."""

    value: Any
    details: dict[str, Any] = field(default_factory=dict)
    sums: Sequence[Sequence[Fraction]] | None = None
    brackets: Sequence[Bracket] | None = None

    @property
    def numbers(self) -> list[Any]:
        """The number, or those of all keys in order."""
        return list(self.value.values()) if isinstance(self.value, dict) else [self.value]

    def each(self, work_out: Callable[[Any], Any]) -> Any:
        """Something of the number, or of each under its key."""
        if isinstance(self.value, dict):
            return {key: work_out(number) for key, number in self.value.items()}
        return work_out(self.value)


class Statistic(ABC):
    """A question's public arguments, and what they imply."""

    name: ClassVar[str]
    #: Which kind of arithmetic it is: mechanisms say which families they serve, `accuracy` has a file for each.
    family: str
    #: Which summary of people's values it is made from: ones, people, bins, steps, cells, products, or values.
    summary: str
    #: Set where the number of values is private: with a condition, groups, several rows, values left out.
    scope: Scope | None = None
    span: Any = None  # the bounds of the values whose mean and spread a caller may guess
    has_bracket: bool = False  # whether a part of every epsilon pays for an interval of its own
    one_each: bool = False  # whether it counts people, everyone at most once in all
    trusted: ClassVar[dict[str, str]] = {}  # guesses that errors rest on also after an answer, in words
    labels: ClassVar[bool] = False  # whether it answers with words of the caller's, which have no interval
    error_is: str = "the expected RMSE"
    usual: tuple[str, ...] = ()  # what errors take for usual, also after an answer, in words
    no_interval: str = ""  # why there is none, where a caller decided so
    loss_factor: Fraction = ANY_LOSS  # what a loss e costs of a concentrated account, as a multiple of e^2

    @property
    def private_count(self) -> bool:
        """Whether the number of values is private."""
        return self.scope is not None

    @abstractmethod
    def describe(self) -> str:
        """For titles: "mean in [0, 100]"."""

    def identity(self) -> str:
        """What makes it this statistic and no other, as keys hold it for good: spelled as in the first version."""
        return repr(self)

    @abstractmethod
    def exact(self, people: People) -> tuple[Any, Sequence[float]]:
        """(the statistic itself, on the grid of every draw; of each number how far that rounds it, inf of nobody's)."""

    @abstractmethod
    def draw(self, question: Question, weighting: Weighting, people: People, entropy: Entropy) -> Answer:
        """One answer in which people count as the weighting says."""

    @abstractmethod
    def simulate(self, question: Question, weighting: Weighting, people: People, entropy: Entropy, size: int) -> Floats:
        """Many independent answers to one question on one data set, for audits and simulations."""

    @abstractmethod
    def distribution(self, question: Question, weighting: Weighting, people: People) -> tuple[NDArray[Any], Floats]:
        """(outcomes, natural logarithms of their probabilities) on small inputs, for audits and teaching."""

    def tell_outcome(self, outcome: Any) -> Any:
        """What is released where a listed law says this, of one answer."""
        return outcome

    def noisy_sums(self, question: Question, weighting: Weighting, people: People) -> NoisySums | None:
        """The sums that an answer is made from and the laws of their noises, where that is all; for audits."""
        return None

    @abstractmethod
    def noise_to_spread(self, question: Question) -> float:
        """How large the noise is beside the spread of values: the right side of the equation for `weighted`'s cap."""

    def paying_for_interval(self, part: Fraction) -> Statistic:
        """With a part of every epsilon spent on an interval, where that takes a part of its own: of quantiles."""
        return self

    def related(self, question: Question) -> tuple[str, float]:
        """(what of a level may differ from everyone's, the spread in which `assume` counts how far)."""
        return "mean", math.inf

    def related_means(self, question: Question) -> Sequence[tuple[str, float]]:
        """The means whose product an answer is less, with the spreads in which `assume` counts how far they lie."""
        return ()

    def told_at(self, question: Question) -> str:
        """What a distance told before an answer rests on, as a clause: where it was bought, or which guess it is of."""
        return "" if question.bought is None else f", {question.bought.source}"

    def completed(self) -> Statistic | None:
        """This statistic if nothing were missing; None where that would not make the number of values public."""
        missing = self.scope is not None and self.scope.only_missing
        return cast(Statistic, replace(cast(Any, self), scope=None)) if missing else None

    def check_people(self, levels: Levels) -> None:  # noqa: B027 most statistics can be asked of any number
        """Refuse what so many people cannot give."""

    def misfit(self, weighting: Weighting) -> str | None:
        """Why it cannot be drawn privately by these weights, or None if it can."""
        return None


class Rest(Enum):
    """What becomes of the weight that people's own weights leave out.

    OMITTED: totals stay too small. RESCALED: totals are scaled up to everyone. In both an average is that of the weight
    that is there. SHRUNK: totals stay too small, an average is drawn to the centre. CENTRED: the centre replaces it.
    """

    OMITTED, RESCALED, SHRUNK, CENTRED = "omitted", "rescaled", "shrunk", "centred"


@dataclass(frozen=True, eq=False)
class Weighting:
    """A weight per level in units of 1/`one`, and what weight one costs in nano-epsilon; with `coins`, coins decide."""

    weights: tuple[int, ...]
    one: int
    rate: Fraction
    rest: Rest = Rest.OMITTED
    coins: Any = None  # who stays in a sample: `sample.Coins`, or None
    #: What it does to people's contributions, by question: kept here by `accuracy`.
    effects: dict[Question, Any] = field(default_factory=dict, repr=False)

    @property
    def sampled(self) -> bool:
        """Whether coins decide who counts."""
        return self.coins is not None

    @property
    def chances(self) -> tuple[int, ...] | None:
        """Of staying in the sample, where there is one."""
        return None if self.coins is None else self.coins.chances

    def losses(self) -> tuple[Fraction, ...]:
        """The exact loss of each level in nano-epsilon, of people whose coin says yes where there are coins."""
        return tuple(Fraction(w, self.one) * self.rate for w in self.weights)

    def charges(self, levels: Levels) -> tuple[int | None, ...]:
        """The losses rounded up, in whole numbers: fractions would outlast the draw. With coins at most the grant."""
        up, down = self.rate.numerator, self.one * self.rate.denominator
        pairs = zip(levels.grants, [-(-weight * up // down) for weight in self.weights], strict=True)
        return tuple(None if g is None else p if self.coins is None else min(g, p) for g, p in pairs)

    def misfit(self, levels: Levels) -> str | None:
        """Why nothing can be drawn by them, or None if it can."""
        if len(self.weights) != len(levels.grants):
            return f"it has {len(self.weights)} weights for {len(levels.grants)} levels"
        if self.one < 1 or self.rate <= 0 or not all(type(weight) is int and weight >= 0 for weight in self.weights):
            return "its weights are not ints from 0, of a unit and at a rate above 0"
        most = Fraction(max(self.weights, default=0), self.one) * self.rate
        if self.coins is not None and (self.coins.grants != levels.grants or most > self.coins.t):
            return "its coins are not for these people, or not for this rate"
        return None

    def total(self, levels: Levels) -> Fraction:
        """How many people's worth of weight there is, or is expected where there are coins."""
        weights, one = (self.weights, self.one) if self.coins is None else (self.coins.chances, ALWAYS)
        return Fraction(sum(w * n for w, n in zip(weights, levels.sizes, strict=True)), one)

    def inverse_scale(self, share: Fraction, reach: int) -> Fraction:
        """1/scale of the noise that a share of everybody's loss pays for, in units of 1/`one` of whole numbers."""
        return share * self.rate / (NANO * reach * self.one)

    def variance(self, square: Fraction) -> Fraction:
        """That of Gaussian noise, in the same units: `square` is the squared L2 reach of whole numbers."""
        return square * (NANO * self.one / self.rate) ** 2

    @property
    def fractions(self) -> Floats:
        """The expected weight of a person by level, in floats: for predictions."""
        return np.array(self.weights, float) / self.one if self.coins is None else self.coins.expected

    def used(self, levels: Levels) -> float:
        """The share of people whose values can move the answer (expected, where there are coins)."""
        staying = [1.0] * len(self.weights) if self.coins is None else self.coins.expected.tolist()
        facts = zip(levels.sizes, self.weights, staying, strict=True)
        return float(sum([size * stays for size, weight, stays in facts if weight > 0]) / levels.size)


def proportional(levels: Levels, top: int | Fraction, rest: Rest) -> Weighting:
    """Weights min(1, e_j/top), rounded down; public people count in full. Weight one costs `top`."""
    rate = Fraction(top)
    up, down = FINE * rate.denominator, rate.numerator
    return Weighting(tuple([FINE if g is None else min(FINE, g * up // down) for g in levels.grants]), FINE, rate, rest)


def equivalent_scale(inverse: Any) -> Any:
    """The scale of the Laplace noise with the same variance as the discrete one, 2a/(1-a)^2 with a=exp(-inverse)."""
    return np.where(inverse < 1e-4, 1 / inverse, np.exp(-inverse / 2) / -np.expm1(-inverse))[()]

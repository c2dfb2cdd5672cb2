"""The family of statistics whose summary adds up over people, and how it draws.

With weights the answer is one weighted sum per cell with one noise each: integers, so that the noise is a discrete
Laplace and every loss exact. What weights leave out is omitted, rescaled, shrunk or filled up, as `Rest` says.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PlanError
from epsilons.measure import NANO
from epsilons.noise.laplace import discrete_laplace, discrete_laplace_many
from epsilons.statistics import gaussian
from epsilons.statistics.base import Answer, Floats, Rest, Statistic, Weighting, equivalent_scale
from epsilons.statistics.distributions import Axis, NoisySums, product_distribution
from epsilons.statistics.moments import Moments
from epsilons.summaries.cells import Integers

if TYPE_CHECKING:
    from epsilons.noise.entropy import Entropy
    from epsilons.preferences import Levels
    from epsilons.statistics.base import Question
    from epsilons.summaries import People

Sums = Sequence[Sequence[Fraction]]

#: Where nobody guessed it, a variance is taken to be no less than this part of what is possible: errors are then no
#: more than 1.5 times too small.
LEAST_PART = 1 / 1.45**2


@dataclass(frozen=True)
class Part:
    """One integer vector; its name says what people add to it, `share`/`reach` what a step of it costs of an epsilon.

    No person moves all parts together, in L1, by more than one epsilon costs, when absent and when replaced. Where each
    part is paid for by itself, `reach` is how far one person can move it, and the shares add up to one. `square` is the
    squared L2 reach, for Gaussian noise, where that is less than the square of `reach`.
    """

    name: str
    cells: int
    reach: dict[str, int]
    share: Fraction = Fraction(1)
    square: dict[str, int] | None = None


@dataclass(frozen=True)
class Laplace:
    """A discrete Laplace noise, by 1/scale."""

    inverse: Fraction

    def draw(self, entropy: Entropy, cells: int) -> list[int]:
        """One draw after the other: for a few cells that is faster than many at once."""
        return [discrete_laplace(entropy, self.inverse) for _ in range(cells)]

    def draw_many(self, entropy: Entropy, size: int) -> Any:
        return discrete_laplace_many(entropy, self.inverse, size)

    def draw_vector(self, entropy: Entropy, cells: int) -> list[int]:
        return cast(list[int], self.draw_many(entropy, cells).tolist())

    def log_chances(self, distance: Floats) -> Floats:
        """Natural logarithms of the chances of whole numbers so far from 0."""
        rate = float(self.inverse)
        return math.log(math.tanh(rate / 2)) - rate * distance

    @property
    def scale(self) -> float:
        """That of continuous Laplace noise of the same variance."""
        return float(equivalent_scale(float(self.inverse)))


def doubt(fraction: float, density: float | None) -> float:
    """How far off the expected fraction of people may well be: not at all if it was guessed.

    Otherwise people fall into 1/fraction classes, of which this is one, and every way to split them is equally likely
    (Dirichlet's law with all parameters 1); the standard deviation of one class is f sqrt((1 - f)/(1 + f)).
    """
    return 0.0 if density is not None else fraction * math.sqrt(max(1 - fraction, 0.0) / (1 + fraction))


class Additive(Statistic):
    """A statistic whose summary adds up over people; `answer` makes a value of noisy weighted sums of its parts."""

    family: str = "linear"
    #: On the scale of `moments`: what stands for a contribution that is left out (nothing, in a total), what one of
    #: whom nothing is known contributes, and what one integer step of each part is worth.
    origin: float = 0.0
    centre: float = 0.0
    units: tuple[float, ...] = (1.0,)
    #: The largest error that answers can have; infinite where answers are not clipped.
    max_error: float = math.inf
    #: Fields that mean something only with a scope; fields that keys do not spell where they are as they were at first.
    scoped: ClassVar[tuple[str, ...]] = ()
    later: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The integer vectors released, each with its reach and its share of epsilon."""

    @property
    def joint_square(self) -> Fraction:
        """The most that the squares of a person's steps, each of share/reach, add up to over all parts."""
        shares = [part.share for part in self.parts]
        return sum([share**2 for share in shares], Fraction(0)) if sum(shares) == 1 else Fraction(1)

    @property
    def summed(self) -> tuple[str, ...]:
        """What people's rows add up to, by the names of `arrays.row_steps`: the parts, unless parts are made of it."""
        return tuple([part.name for part in self.parts])

    def make_parts(self, summed: list[Integers]) -> list[Integers]:
        """The parts, of what people's rows add up to."""
        return summed

    def tally(self, people: People) -> list[Integers]:
        """The parts of everyone, an array (levels, cells) each."""
        return self.make_parts(people.tally(self))

    @abstractmethod
    def answer(self, sums: Sums, weight: Fraction, people: int) -> Any:
        """The answer from noisy weighted sums per part, `weight` people's worth of them, and the roster's size."""

    @abstractmethod
    def moments(self, spread: float | None, density: float | None, location: float | None = None) -> Moments:
        """Public expectations of one person's contribution on the scale of the answer's sum."""

    @property
    @abstractmethod
    def extremes(self) -> tuple[float, float]:
        """The least and the largest contribution of one person, on the scale of `moments`."""

    @property
    def coin_origin(self) -> float:
        """What a person adds to the sum when a coin leaves them out: sums of values are centred."""
        return self.centre

    def limits(self, people: int) -> tuple[float, float]:
        """Between which the answer of so many people lies for certain."""
        low, high = self.extremes
        return low * people / self.divisor(people), high * people / self.divisor(people)

    def cut(self, value: Any, people: int) -> Any:
        """The answer, or each number of it, at the nearest possible one."""
        low, high = self.limits(people)
        if isinstance(value, dict):
            return {key: min(max(number, low), high) for key, number in value.items()}
        return min(max(value, low), high)

    def related(self, question: Question) -> tuple[str, float]:
        return "mean", math.sqrt(self.guess(question).variance)

    def guess(self, question: Question) -> Moments:
        """`moments` at the question's own guesses."""
        return self.moments(question.spread, question.density, question.location)

    def learn(self, question: Question, guessed: Moments, mean: float, doubt: float) -> Moments:
        """What a released mean, give or take `doubt`, says about a contribution: a better guess than before.

        Contributions with this mean, or one two errors nearer to the middle, have no more variance than
        (b - mean)(mean - a) (Bhatia and Davis 2000), whatever was guessed of rows that count.
        """
        low, high = self.extremes
        mean, middle = min(max(mean, low), high), (low + high) / 2
        near = min(mean + 2 * doubt, middle) if mean < middle else max(mean - 2 * doubt, middle)
        most = (high - near) * (near - low)
        return Moments(mean, max(min(guessed.variance, most), LEAST_PART * most), most=most)

    def noise_to_spread(self, question: Question) -> float:
        """2 r^2/sigma^2, with the public guess of the spread; of Gaussian noise r^2/sigma^2."""
        variance, (low, high) = self.guess(question).variance, self.extremes
        variance = max(variance, 1e-12 * (high - low) ** 2)
        half = self.noise_size if question.measure.delta is None else partial(gaussian.noise_size, self)
        return 2 * half(question.neighbors) / variance

    def noise_size(self, neighbors: str) -> float:
        """Half the variance of the noise of one person's worth of weight, on the scale of the answer's sum."""
        parts = zip(self.parts, self.units, strict=True)
        return sum([(part.reach[neighbors] * unit / float(part.share)) ** 2 for part, unit in parts])

    def identity(self) -> str:
        found = [(one, getattr(self, one.name)) for one in fields(cast(Any, self)) if one.init]
        held = {one.name: value for one, value in found if one.name not in self.later or value != one.default}
        scope = held.pop("scope", None)
        if scope is not None:
            return spell(f"Filtered{type(self).__name__}", scope=scope, **held)
        return spell(type(self).__name__, **{name: value for name, value in held.items() if name not in self.scoped})

    def stretch(self, weighting: Weighting) -> Weighting:
        """The weights of contributions when every value is shrunk by these."""
        return weighting

    def divisor(self, people: int) -> int:
        """How many people's contributions make up one unit of the answer: 1 in a total."""
        return 1

    def makes_up_for(self, rest: Rest) -> bool:
        """Whether the answer is scaled up for the weight that is left out."""
        return rest is Rest.RESCALED

    def fill(self, sums: Sums, rest: Fraction) -> Sums:
        """The sums with the centre for so many people's worth of weight: nothing, in centred sums."""
        return sums

    def finish(self, question: Question, sums: Sums, weighting: Weighting, levels: Levels) -> Any:
        """The answer from noisy weighted sums: rescaled, filled up or left alone."""
        people, total = levels.size, weighting.total(levels)
        if weighting.rest is Rest.RESCALED:
            return self.answer([[s * people / total for s in part] for part in sums], Fraction(people), people)
        if weighting.rest is Rest.CENTRED:
            return self.answer(self.fill(sums, people - total), Fraction(people), people)
        return self.answer(sums, total, people)

    def laws(self, question: Question, weighting: Weighting) -> Sequence[Laplace | gaussian.Gaussian]:
        """Of the noise in each part: Gaussian in concentrated accounts, but for the coins of a sample."""
        if question.measure.delta is not None and weighting.coins is None:
            return gaussian.laws_of(self, question.neighbors, weighting)
        neighbors = question.neighbors
        return [Laplace(weighting.inverse_scale(part.share, part.reach[neighbors])) for part in self.parts]

    def draw(self, question: Question, weighting: Weighting, people: People, entropy: Entropy) -> Answer:
        laws, sums, chances = self.laws(question, weighting), [], weighting.chances
        summary = self.tally(people) if chances is None else self.sampled_tally(people, chances, entropy)
        for law, counts in zip(laws, summary, strict=True):
            exact = weighted_sums(counts, weighting.weights)
            noise = self.noise(entropy, law, len(exact))
            sums.append([Fraction(s + k, weighting.one) for s, k in zip(exact, noise, strict=True)])
        value = self.finish(question, sums, weighting, people.levels)
        return Answer(self.cut(value, people.levels.size), sums=sums)

    def simulate(self, question: Question, weighting: Weighting, people: People, entropy: Entropy, size: int) -> Floats:
        if len(self.parts) > 1 or self.parts[0].cells > 1:
            raise PlanError("Only single numbers are simulated in bulk.")
        if weighting.chances is not None:
            return np.array([self.draw(question, weighting, people, entropy).value for _ in range(size)], float)
        exact = weighted_sums(self.tally(people)[0], weighting.weights)[0]
        zero, one = (self.finish(question, [[Fraction(k)]], weighting, people.levels) for k in (0, 1))
        noisy = self.laws(question, weighting)[0].draw_many(entropy, size) + exact
        drawn = zero + (one - zero) * noisy.astype(float) / weighting.one
        return cast(Floats, np.clip(drawn, *self.limits(people.levels.size)))

    def noise(self, entropy: Entropy, law: Laplace | gaussian.Gaussian, cells: int) -> list[int]:
        """That of a part."""
        return law.draw(entropy, cells)

    def sampled_tally(self, people: People, chances: Sequence[int], entropy: Entropy) -> list[Integers]:
        """The summary of a fresh random sample of people."""
        return self.make_parts(people.sampled_tally(self, chances, entropy))

    def noisy_sums(self, question: Question, weighting: Weighting, people: People) -> NoisySums:
        laws = self.laws(question, weighting)
        each = [law for part, law in zip(self.parts, laws, strict=True) for _ in range(part.cells)]
        centres = [
            (chance, tuple(s for counts in self.tally(sample) for s in weighted_sums(counts, weighting.weights)))
            for chance, sample in people.samples(weighting.chances)
        ]
        return NoisySums(tuple(each), tuple(centres))

    def distribution(self, question: Question, weighting: Weighting, people: People) -> tuple[NDArray[Any], Floats]:
        """Of noisy weighted sums at points of their lattice; a mixture where people are sampled."""
        sums = self.noisy_sums(question, weighting, people)
        reaches = [part.reach["absent"] for part in self.parts for _ in range(part.cells)]
        pairs = zip(reaches, sums.laws, strict=True)
        axes = [Axis(weighting.one * reach, people.levels.size, law) for reach, law in pairs]
        return product_distribution(axes, sums.mixture)

    def exact(self, people: People) -> tuple[Any, Sequence[float]]:
        count = people.levels.size
        sums = [[Fraction(int(cell)) for cell in part.sum(axis=0)] for part in self.tally(people)]
        rounded = [0.0 if rows else math.inf for rows in self.rows_behind(sums)]
        return self.answer(sums, Fraction(count), count), rounded

    def rows_behind(self, sums: Sums) -> list[Fraction]:
        """How many rows each number is taken over, up to a factor, where it says nothing if there are none."""
        return []


class Average(Additive):
    """A statistic that divides by the weight behind it, or by a private number of rows that is released as well."""

    @property
    def origin(self) -> float:  # type: ignore[override]
        """Averages are drawn to the centre by what is left out."""
        return self.centre

    def divisor(self, people: int) -> int:
        return people

    def makes_up_for(self, rest: Rest) -> bool:
        """A private number of rows is weighted like the sum that it divides, whatever the rest."""
        return self.scope is not None or rest in (Rest.OMITTED, Rest.RESCALED)

    def finish(self, question: Question, sums: Sums, weighting: Weighting, levels: Levels) -> Any:
        return self.answer(sums, self.weight_behind(weighting, levels), levels.size)

    def weight_behind(self, weighting: Weighting, levels: Levels) -> Fraction:
        """What an average is divided by: the weight that is there, or everyone."""
        return weighting.total(levels) if self.makes_up_for(weighting.rest) else Fraction(levels.size)


def weighted_sums(counts: Integers, weights: Sequence[int]) -> list[int]:
    """Exact integer sums over levels, one per cell."""
    rows = counts.tolist()
    return [sum(w * row[cell] for w, row in zip(weights, rows, strict=True)) for cell in range(len(rows[0]))]


def whole_or_float(number: Fraction) -> int | float:
    """A count as people write it: whole where it is."""
    return int(number) if number.denominator == 1 else float(number)


def spell(name: str, **arguments: Any) -> str:
    """A value as dataclasses write it."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def laplace_between(scale: float, below: float, above: float) -> float:
    """The mean of Laplace noise, given that it lies between -below and above.

    With b its scale, l and h the two ends: b (e^(-l/b) (1 + l/b) - e^(-h/b) (1 + h/b))/(2 - e^(-l/b) - e^(-h/b)). Noise
    ten thousand times as wide as what is possible says as little as any wider one, of which rounding would leave 0/0.
    """
    width = below + above
    b = min(max(scale, 1e-9 * width), 1e4 * width)
    (low, under), (high, over) = ((end / b, math.exp(-end / b)) for end in (below, above))
    return b * (under * (1 + low) - over * (1 + high)) / (2 - under - over)


def level_scales(question: Question, levels: Levels) -> Floats:
    """Of each part, in its steps, the scale of each level's noise, or that of Laplace noise as large; 0 for public."""
    statistic: Any = question.statistic
    grants = np.array(levels.finite, float)
    if question.measure.delta is not None:
        scales = np.reshape(gaussian.equivalent_scales(question, grants, 1), (len(statistic.parts), -1))
    else:
        inverses = [grants * float(part.share) / (NANO * part.reach[question.neighbors]) for part in statistic.parts]
        scales = equivalent_scale(np.array(inverses))
    public = np.zeros((len(scales), len(levels.grants) - scales.shape[1]))  # who come last
    return np.concatenate([scales, public], axis=1)

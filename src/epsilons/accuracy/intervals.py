"""Error bars from public facts: how an answer errs, and the interval that follows."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

_FREQUENCIES = 1 << 12
#: Luck of a variance of so many people and more is normal.
_MANY = 100.0
#: Beyond this ratio of a normal noise to a Laplace noise their sum is as good as normal; scales nearer than this part
#: of them are taken so far apart.
_FAR, _APART = 1e3, 0.01


class ErrorBar(ABC):
    """What gives an interval around an answer: numbers, which survive JSON."""

    #: Why no error is stated, of an answer that has an interval.
    no_error: ClassVar[str] = "It is not clear whether anybody counts; the interval says what is certain."

    @abstractmethod
    def interval(self, value: float, confidence: float, population: bool) -> tuple[float, float]:
        """Where the statistic lies, with at least about this confidence under the stated assumption."""


@dataclass(frozen=True)
class ErrorModel(ErrorBar):
    """How an answer errs: everything an error bar needs, on the scale of the answer.

    `laplace` are the scales of independent Laplace noises, `normal` the standard deviation of what depends on who
    happened to choose which level, `population` that of who happened to be on the roster, and `bound` a hard limit on
    what else is unknown. answer*`slope` + `shift` undoes what a mechanism does to an answer on purpose. `grid` is the
    step between possible answers.
    """

    laplace: tuple[float, ...] = ()
    normal: float = 0.0
    population: float = 0.0
    bound: float = 0.0
    slope: float = 1.0
    shift: float = 0.0
    grid: float = 0.0
    #: Between which the statistic lies for certain.
    limits: tuple[float, float] | None = None

    def interval(self, value: float, confidence: float, population: bool) -> tuple[float, float]:
        centre = value * self.slope + self.shift
        normal = math.hypot(self.normal, self.population) if population else self.normal
        half = half_width(self.laplace, normal, confidence)
        if self.laplace and self.grid and max(self.laplace) < 3 * self.grid:
            if normal > 0:
                half += self.grid
            elif len(self.laplace) == 1:
                half = self.grid * _discrete_half_width(self.laplace[0] / self.grid, confidence)
        first, last = centre - (self.bound + half), centre + (self.bound + half)
        low, high = self.limits or (first, last)
        return min(max(first, low), high), min(max(last, low), high)


@dataclass(frozen=True)
class ExactBar(ErrorBar):
    """Of an exact answer: values were `rounded` to its grid by so much at most; of nobody's anything is possible."""

    no_error: ClassVar[str] = "Nobody counts, so there is no such number."

    rounded: float
    limits: tuple[float, float]

    def interval(self, value: float, confidence: float, population: bool) -> tuple[float, float]:
        """Where the statistic lies for certain."""
        low, high = self.limits
        return max(value - self.rounded, low), min(value + self.rounded, high)


@dataclass(frozen=True)
class FractionBar(ErrorBar):
    """Of a count of people who are each counted once or not at all: its error depends on the count itself.

    So its interval is an inverted test: it holds every fraction p of the people at which the answer is not too far off.
    What may be off at p: the noise; the luck of which level has how many ones, of variance `luck` times that of one
    person, p(1-p), or of a level whose own fraction is nearer to 1/2; coins, of variance `coins` times p for ones and
    `zeros` times 1-p for zeros; and what related levels add at most, `drift` times how far they lie: `related` spreads
    of one person, and no less than what is `told` beside the answer, at the fraction that it shows. Where few people or
    coins decide, luck follows a binomial law. answer*`slope` + `shift` undoes what a mechanism does on purpose.
    """

    people: int
    noise: float
    luck: float
    coins: float
    related: float
    drift: float
    slope: float = 1.0
    shift: float = 0.0
    grid: float = 0.0
    zeros: float = 0.0
    told: float = 0.0

    def interval(self, value: float, confidence: float, population: bool) -> tuple[float, float]:
        """Every count that the answer does not contradict."""
        people = self.people
        centre = min(max(value * self.slope + self.shift, 0.0), float(people))

        def possible(count: float) -> bool:
            p = count / people
            spread = math.sqrt(p * (1 - p))
            apart = max(self.related * spread, self.told)
            near = min(0.5, min(p, 1 - p) + apart)
            varied = (
                self.luck * near * (1 - near)
                + self.coins * p
                + self.zeros * (1 - p)
                + (people * spread**2 if population else 0.0)
            )
            away = abs(centre - count) - apart * self.drift
            coarse = self.grid if self.noise < 3 * self.grid else 0.0
            sign = 1 if centre > count else -1
            return away <= coarse or self._beyond(away - coarse, varied, p, sign) >= (1 - confidence) / 2

        low, high = (end if possible(end) else bisect(centre, end, possible, 30)[1] for end in (0.0, float(people)))
        return low, high

    def _beyond(self, away: float, varied: float, p: float, sign: int) -> float:
        """The chance of an answer so far above the count, or below it, with luck of this variance."""
        alone = varied / max(self.people * p * (1 - p), 1e-300)
        trials = self.people / max(alone, 1e-9)
        if varied == 0 or self.zeros > 0 or trials * p * (1 - p) > _MANY:
            return (1 - chance_within((self.noise,), math.sqrt(varied), away)) / 2
        # As many ones among so many people, of whom each stands for `alone` people.
        trials = max(round(trials), 1)
        ones = np.arange(min(trials, math.ceil(trials * p + 12 * math.sqrt(trials * p * (1 - p)) + 30)) + 1)
        chance = np.exp(_log_choose(trials, ones) + ones * _log(p) + (trials - ones) * _log(1 - p))
        return float(chance @ laplace_tail(away - sign * (ones - trials * p) * self.people / trials, self.noise))


@dataclass(frozen=True)
class RatioBar(ErrorBar):
    """Of a mean whose number of rows is private: a noisy sum of (x - centre), a noisy number of rows, how far both err.

    With S the noisy centred sum and N the noisy number of rows, S - (theta - c) N is pure noise at the true mean theta:
    the noise of the sum, less (theta - c) times the noise of the count, and the luck of who counts with which weight.
    The interval holds every theta at which that difference is no larger than noise of this size would be (Fieller 1954,
    with Laplace noise). So it is honest also where few or no rows count; at worst it is all of the bounds.

    `sum_scale` and `rows_scale` are the Laplace scales; where the sums of x - a and b - x were released (`paired`),
    `sum_scale` is that of both. `luck` and `population` are standard deviations of the difference S - (theta - c) N
    that come from who counts with which weight, and from who is on the roster at all; `bound` is what levels that
    differ may add to it. `grid` is the step between possible numbers of rows. If nothing is assumed about who counts,
    `alike` is the least weight over the largest: rows of the one weight may all lie at one bound, the others at the
    other, which moves a mean a part p from a bound to the other to p/(p + (1-p)/`alike`) or p/(p + (1-p) `alike`). 0 is
    for where some or all may not count at all: the interval is all of the bounds.
    """

    no_error: ClassVar[str] = (
        "It is not clear whether anybody counts, or whether all who do have weight; the interval says what is certain."
    )

    bounds: tuple[float, float]
    sum: float
    rows: float
    sum_scale: float
    rows_scale: float
    luck: float
    population: float
    grid: float
    bound: float = 0.0
    alike: float = 1.0
    paired: bool = False

    def interval(self, value: float, confidence: float, population: bool) -> tuple[float, float]:
        """Every mean within the bounds that the noisy sum and number of rows do not contradict."""
        low, high = self.bounds
        if self.alike == 0:
            return low, high
        value, half = min(max(value, low), high), (high - low) / 2
        normal = math.hypot(self.luck, self.population) if population else self.luck

        def possible(mean: float) -> bool:
            away = mean - sum(self.bounds) / 2
            scales = (self.sum_scale, abs(away) * self.rows_scale)
            if self.paired:
                scales = (self.sum_scale * (1 - away / half) / 2, self.sum_scale * (1 + away / half) / 2)
            coarse = abs(away) * self.grid if self.rows_scale < 3 * self.grid else 0.0
            apart = abs(self.sum - away * self.rows) - self.bound - coarse
            return apart <= 0 or self._within(scales, normal, apart) <= confidence

        first, last = (end if possible(end) else bisect(value, end, possible, 20)[1] for end in (low, high))
        p, q = (first - low) / (high - low), (high - last) / (high - low)
        down, up = p * self.alike / (p * self.alike + 1 - p), q * self.alike / (q * self.alike + 1 - q)
        return (first, last) if self.alike == 1 else (low + down * (high - low), high - up * (high - low))

    def _within(self, scales: tuple[float, ...], normal: float, reach: float) -> float:
        """The chance that noises of these scales and a normal one add up to no more."""
        return chance_within(scales, normal, reach)


@dataclass(frozen=True)
class GaussianRatioBar(RatioBar):
    """The same of sums with Gaussian noise, whose standard deviations are those of the Laplace noises."""

    def _within(self, scales: tuple[float, ...], normal: float, reach: float) -> float:
        return chance_within((), math.hypot(normal, *(math.sqrt(2) * scale for scale in scales)), reach)


@dataclass(frozen=True)
class LevelsRatioBar(RatioBar):
    """The same of sums with a noise of every level, whose variances add up to those of the two Laplace noises.

    `parts` are the largest of them as parts of those scales; all others are `small` together, as good as normal.
    """

    parts: tuple[float, ...] = ()
    small: float = 0.0

    def _within(self, scales: tuple[float, ...], normal: float, reach: float) -> float:
        others = math.hypot(normal, *(math.sqrt(2) * scale * self.small for scale in scales))
        return chance_within(tuple(scale * part for scale in scales for part in self.parts), others, reach)


def cut_noise(scale: float, width: float) -> float:
    """The mean square of Laplace noise in answers that are cut to a range so wide, at the worst truth within it.

    Of noise of scale b, d above the one end and e below the other: 2b^2 - b ((b + d) exp(-d/b) + (b + e) exp(-e/b)).
    """
    b, below = min(max(scale, 1e-9 * width), 1e4 * width), np.linspace(0.0, width, 65)
    lost = [(b + away) * np.exp(-away / b) for away in (below, width - below)] if width > 0 else [2 * b]
    return float(np.max(2 * b**2 - b * sum(lost)))


def laplace_tail(reach: Any, scale: float) -> Any:
    """P(Laplace noise >= reach); without noise whether nothing is needed."""
    if scale <= 0:
        return (reach <= 0).astype(float)
    half = np.exp(-np.abs(reach) / scale) / 2
    return np.where(reach >= 0, half, 1 - half)


def laplace_quantile(chance: Any) -> Any:
    """z with P(Laplace noise of scale 1 <= z) = chance."""
    return np.where(chance < 0.5, np.log(2 * chance), -np.log(2 - 2 * chance))


@lru_cache(maxsize=64)
def _log_factorials(most: int) -> Any:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])


def _log_choose(trials: int, ones: Any) -> Any:
    logs = _log_factorials(trials)
    return logs[trials] - logs[ones] - logs[trials - ones]


def _log(chance: float) -> float:
    return math.log(max(chance, 1e-300))


def half_width(laplace: tuple[float, ...], normal: float, confidence: float) -> float:
    """z with P(|sum of the Laplace noises + normal| <= z) = confidence."""
    scales = [b for b in laplace if b > 0]
    if not scales:
        return normal * normal_two_sided(confidence)
    if len(scales) == 1 and normal == 0:
        return scales[0] * -math.log1p(-confidence)
    size = math.sqrt(sum(2 * b * b for b in scales) + normal**2)
    within = _curve(scales, normal)
    return bisect(0.0, 20 * size / math.sqrt(1 - confidence), lambda reach: within(reach) < confidence, 34)[1]


def chance_within(laplace: tuple[float, ...], normal: float, reach: float) -> float:
    """P(|sum of the Laplace noises + normal| <= reach), the inverse of `half_width`."""
    scales = [b for b in laplace if b > 0]
    if not scales:
        return math.erf(reach / normal / math.sqrt(2)) if normal > 0 else 1.0
    return _curve(scales, normal)(reach)


def _curve(scales: list[float], normal: float) -> Callable[[float], float]:
    """P(|X| <= reach) of a sum X of noises.

    One Laplace noise and a normal one have a formula, and the law of two Laplace noises is a difference of the laws of
    each: 1/((1 + a^2 t^2)(1 + b^2 t^2)) = (a^2/(1 + a^2 t^2) - b^2/(1 + b^2 t^2))/(a^2 - b^2), where equal scales are
    taken a little apart. Of more the characteristic function prod 1/(1 + b^2 t^2) * exp(-s^2 t^2/2) is inverted,
    P(|X| <= z) = 2/pi * integral of sin(tz)/t * phi(t) over t > 0; beyond what its frequencies resolve it is 1.
    """
    if len(scales) == 1:
        return lambda reach: 1 - 2 * _tail(scales[0], normal, reach)
    if len(scales) == 2:
        small, large = sorted(scales)
        if large < small * (1 + _APART):
            middle = (small + large) / 2
            small, large = middle * (1 - _APART / 2), middle * (1 + _APART / 2)
        share = 1 / (1 - (small / large) ** 2)
        return lambda reach: 1 - 2 * (share * _tail(large, normal, reach) - (share - 1) * _tail(small, normal, reach))
    span = 60 * math.sqrt(sum(2 * b * b for b in scales) + normal**2)
    step = math.pi / span
    t = (np.arange(_FREQUENCIES) + 0.5) * step
    phi = np.exp(-((normal * t) ** 2) / 2)
    for b in scales:
        phi /= 1 + (b * t) ** 2
    phi /= t
    return lambda reach: 1.0 if reach >= span else 2 / math.pi * float(np.sin(t * reach) @ phi) * step


def _tail(scale: float, normal: float, reach: float) -> float:
    """P(Laplace noise + normal > reach), for a reach from 0 on.

    With s = normal, b = scale: Q(z/s) + e^(s^2/2b^2) (e^(-z/b) Q(s/b - z/s) - e^(z/b) Q(s/b + z/s))/2, where Q is the
    tail of a standard normal, in logarithms so that nothing overflows.
    """
    if normal == 0:
        return math.exp(-reach / scale) / 2
    ratio, away = normal / scale, reach / normal
    if ratio > _FAR:  # all but normal
        return math.exp(_log_normal_tail(reach / math.hypot(normal, math.sqrt(2) * scale)))
    outer, far = ratio**2 / 2, reach / scale
    near = math.exp(outer - far + _log_normal_tail(ratio - away))
    return math.exp(_log_normal_tail(away)) + (near - math.exp(outer + far + _log_normal_tail(ratio + away))) / 2


def _log_normal_tail(z: float) -> float:
    """log P(standard normal > z)."""
    if z < 20:
        return math.log(math.erfc(z / math.sqrt(2)) / 2)
    return -z * z / 2 - math.log(z * math.sqrt(2 * math.pi)) + math.log1p(-1 / z**2 + 3 / z**4)


def _discrete_half_width(scale: float, confidence: float) -> int:
    """The least whole k with P(|K| <= k) >= confidence, for the discrete Laplace with variance 2*scale^2.

    Its ratio a solves a/(1-a)^2 = scale^2, and P(|K| <= k) = 1 - 2 a^(k+1)/(1+a).
    """
    a = 1 + (1 - math.sqrt(1 + 4 * scale**2)) / (2 * scale**2) if scale > 1e-6 else 0.0
    if a <= 0:
        return 0
    return max(0, math.ceil(math.log((1 - confidence) * (1 + a) / 2) / math.log(a) - 1 - 1e-9))


def normal_quantile(chance: float) -> float:
    """z with P(standard normal <= z) = chance."""
    from statistics import NormalDist  # it loads the module of seeded draws, which nothing here may touch

    return NormalDist().inv_cdf(chance)


def normal_two_sided(confidence: float) -> float:
    """z with P(|standard normal| <= z) = confidence."""
    return -normal_quantile((1 - confidence) / 2)


def bisect(inside: float, outside: float, holds: Callable[[float], bool], halvings: int) -> tuple[float, float]:
    """(the last number found at which something holds, the first at which it does not), after so many halvings."""
    for _ in range(halvings):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside, outside


def secant(height: Callable[[float], float], here: float, there: float) -> float:
    """About where a smooth height passes 0, from two places near it; not a number where the height is none."""
    low, high = height(here), height(there)
    for _ in range(8):
        if abs(there - here) < 1e-12 or low == high:
            break
        here, there, low = there, there - high * (there - here) / (high - low), high
        high = height(there)
    return there


def logistic(odds: float) -> float:
    """The chance whose odds have this logarithm."""
    return 1 / (1 + math.exp(min(-odds, 700.0)))

"""Randomized response: the truth with one coin, else what a second coin or die says (Warner 1965)."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import Argument, ProtocolError
from epsilons.guarantee import NANO, Guarantee, to_epsilon
from epsilons.local.base import ONE_ROUND, Crowd, Law, Outputs, ResponseProtocol, Seen, read_die, read_probability
from epsilons.local.binomials import answers_pair, size_intervals
from epsilons.local.estimate import Estimate
from epsilons.local.leakage import COUNTS, Pair, log_loss
from epsilons.noise import Entropy, floor_dyadic
from epsilons.noise.coins import Die
from epsilons.noise.entropy import ALWAYS, as_ball
from epsilons.preferences import to_nano

#: From this epsilon on the chance of the truth is above 1 - 2^-64 for any number of options that is allowed.
_CERTAIN = 60
#: Up to so many owners the law of a count is worked out; its loss stays the same beyond, its delta falls.
_LARGEST_CROWD = 100_000


class RandomizedResponse(ResponseProtocol):
    """Answer truthfully with probability `truth`, else with what the second coin or die says.

    Definition: output v with truth*[v is the owner's] + (1 - truth)*others_v; two coins: others = (1 - yes, yes).
    Guarantee:  local DP, epsilon = ln(1 + truth/((1 - truth)*min_v others_v)). For two coins that is the larger of
                ln(a/b) and ln((1-b)/(1-a)), a = truth + (1-truth)yes, b = (1-truth)yes; Joy's Eq. 30 has only the
                first.
    Estimate:   (S_v - N*(1-truth)*others_v)/truth; its error grows with the square root of the population N.

    >>> protocol = RandomizedResponse(truth=.8, yes=.9)
    >>> round(protocol.leakage().epsilon, 3), round(protocol.claim, 3)
    (3.714, 1.695)
    """

    name: ClassVar[str] = "randomized-response"

    def __init__(
        self, truth: Any = None, yes: Any = None, *, options: int = 1, others: Any = None, epsilon: Any = None
    ) -> None:
        super().__init__(options)
        self._asked: float | None = None
        if epsilon is not None:
            truth = self._truth_for(epsilon, truth, yes, others)
        self.truth = read_probability(truth, "truth", strict=True)
        if yes is not None:
            if self.options != 1 or others is not None:
                hint = (Argument("others"), ", or neither for equal chances")
                raise ProtocolError("A second coin is for a yes-or-no question, without a die.", suggest=hint)
            coin = read_probability(yes, "yes")
            others = (1 - coin, coin)
        self.others = read_die(others, self.outputs, Fraction(1), "others")

    def _truth_for(self, epsilon: Any, *given: Any) -> Fraction:
        """The first coin for a wanted epsilon, the second draw being uniform: (e^epsilon - 1)/(e^epsilon + options).

        For a yes-or-no question no other protocol errs less at that epsilon (Kairouz, Oh, Viswanath 2016, "Extremal
        Mechanisms for Local Differential Privacy").
        """
        try:
            nano = None if isinstance(epsilon, bool) else to_nano(float(epsilon))
        except (TypeError, ValueError, OverflowError):
            nano = None
        if nano is None or any(one is not None for one in given):
            rule = "A finite number, which takes the place of all probabilities."
            raise ProtocolError("This epsilon is not usable.", rule=rule, suggest=Argument("epsilon", 1))
        self._asked = to_epsilon(nano)
        return truth_chance(nano, self.options)

    @property
    def claim(self) -> float | None:
        """Eq. 30, which looks at the answer Yes only; for several options the paper states nothing."""
        return log_loss(self.truth, self.low(1)) if self.options == 1 else None

    @cached_property
    def epsilon(self) -> float:
        """The loss against an observer who sees the answer, and so against everyone."""
        return log_loss(self.truth, (1 - self.truth) * min(self.others))

    @property
    def guarantee(self) -> Guarantee:
        if math.isinf(self.epsilon):
            rule, hint = "Every output needs a chance.", (Argument("others"), " without a 0")
            raise ProtocolError("There is no promise that holds for everyone.", rule=rule, suggest=hint)
        nano = math.ceil(self.epsilon * NANO)
        return Guarantee(neighbors="replace", losses=((nano, nano),), imputes=True)

    def high(self, option: int) -> Fraction:
        """The chance that an owner of the option names it."""
        return self.truth + self.low(option)

    def low(self, option: int) -> Fraction:
        """The chance that any other owner names it."""
        return (1 - self.truth) * self.others[option]

    def law(self, truth: int) -> Law:
        return {(v,): self.high(v) if v == truth else self.low(v) for v in range(self.outputs)}

    @cached_property
    def _die(self) -> Die:
        return Die([*((1 - self.truth) * chance for chance in self.others), self.truth])

    def _respond(self, truths: NDArray[np.uint32], entropy: Entropy) -> Sequence[Outputs]:
        rolled = self._die.roll(entropy, len(truths))
        np.copyto(rolled, truths, where=rolled == self.outputs, casting="unsafe")
        return (rolled,)

    def estimate(self, *counts: Any) -> Estimate:
        (seen,) = self._read_rounds(counts)
        options = range(1, self.outputs)
        return one_round_estimate(seen, [self.high(v) for v in options], [self.low(v) for v in options], self)

    def spread(self, count: float, population: float) -> float:
        named = self.others[1:]
        ends = {self.others.index(chance, 1) for chance in (max(named), min(named))}
        return max(deviation(count, population, float(self.high(v)), float(self.low(v))) for v in ends)

    def _chances(self) -> dict[str, Any]:
        options = self.options if self.options > 1 else None
        if self._asked is not None:
            return {"epsilon": self._asked, "options": options}
        return {"truth": self.truth, "options": options, "others": self.others}

    def describe(self) -> str:
        fair = "a fair " if len(set(self.others)) == 1 else "the second "
        second = f"{fair}{'coin' if self.options == 1 else 'die'} says"
        return (
            f"Randomized response, {self.options} option{'s' if self.options > 1 else ''}: the truth with probability "
            f"{float(self.truth):.4g}, else what {second}."
        )

    def _pair(self) -> Pair:
        """The truths that are easiest to tell apart: the output that chance names least, against any other."""
        rare = self.others.index(min(self.others))
        other = 1 if rare == 0 else 0
        rest = 1 - self.high(rare) - self.low(other)
        one, two = (self.high(rare), self.low(other), rest), (self.low(rare), self.high(other), rest)
        return np.array(one, dtype=np.float64), np.array(two, dtype=np.float64)

    def _look(self, view: str, crowd: Crowd) -> Seen:
        """Counts are a function of the answers, so the loss of one answer bounds theirs; for two coins it is exact."""
        if view != COUNTS or self.options > 1 or crowd.population is None or crowd.population > _LARGEST_CROWD:
            return ONE_ROUND[view], self.epsilon, [self._pair()], view != COUNTS
        sees = f"{ONE_ROUND[view]}, {crowd.count:,} alike among {crowd.population:,}"
        others, high, low = crowd.population - crowd.count, float(self.high(1)), float(self.low(1))
        return sees, self.epsilon, [answers_pair(crowd.count, others, high, low)], True


def truth_chance(nano: int, options: int) -> Fraction:
    """(e^epsilon - 1)/(e^epsilon + options), rounded down to a multiple of 2^-64; never 1, and never 0."""
    if nano >= _CERTAIN * NANO:
        return Fraction(ALWAYS - 1, ALWAYS)
    epsilon = Fraction(nano, NANO)
    # Divided by e^epsilon, so that a large epsilon does not overflow anything.
    chance = floor_dyadic(lambda: -((-as_ball(epsilon)).expm1()) / (1 + options * (-as_ball(epsilon)).exp()))
    return Fraction(chance, ALWAYS)


def deviation(count: float, population: float, high: float, low: float) -> float:
    """The standard deviation of (S - N*low)/(high - low), S ~ Bin(count, high) + Bin(N - count, low)."""
    return math.sqrt(count * high * (1 - high) + max(0.0, population - count) * low * (1 - low)) / (high - low)


def one_round_estimate(
    seen: NDArray[np.int64], high: Sequence[Fraction], low: Sequence[Fraction], protocol: ResponseProtocol
) -> Estimate:
    """Every option's (S_v - N*low_v)/(high_v - low_v), with exact intervals; outputs beyond the options only count."""
    population = int(seen.sum())
    named = seen[1 : protocol.options + 1]
    a, b = np.array([float(h) for h in high]), np.array([float(x) for x in low])
    values = (named - population * b) / (a - b)
    plausible = np.clip(values, 0, population)
    errors = np.array([deviation(n, population, h, x) for n, h, x in zip(plausible, a, b, strict=True)])
    leak = partial(protocol.leakages, counts=(1, round(float(plausible.max()))), population=population)
    return Estimate(values, errors, population, leak, partial(size_intervals, named, population, a, b))

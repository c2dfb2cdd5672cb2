"""Randomized response: the truth with one coin, else whatever a second coin or die says (Warner 1965)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import ProtocolError
from epsilons.guarantee import NANO, Guarantee, to_epsilon
from epsilons.local.base import Law, Outputs, ResponseProtocol, register
from epsilons.local.binomials import possible_sizes
from epsilons.local.counts import answers_pair
from epsilons.local.estimate import Estimate, read_counts
from epsilons.local.leakage import BOTH_ROUNDS, COUNTS, SECOND_ROUND, Leakage, Pair, log_ratio
from epsilons.local.probability import read_die, read_options, read_probability, write_probability
from epsilons.noise import Entropy, floor_dyadic
from epsilons.noise.coins import Die
from epsilons.noise.entropy import ALWAYS, as_ball
from epsilons.preferences import to_nano

#: From this epsilon on the chance of the truth is above 1 - 2^-64 for any number of options that is allowed.
_CERTAIN = 60
#: Up to so many owners the law of a count is worked out; its loss stays the same beyond, its delta falls.
_LARGEST_CROWD = 100_000


@register
class RandomizedResponse(ResponseProtocol):
    """Answer truthfully with probability `truth`, else with what the second coin or die says.

    Definition: output v with truth*[v is the owner's] + (1 - truth)*others_v; two coins: others = (1 - yes, yes).
    Guarantee:  local DP, epsilon = ln(1 + truth/((1 - truth)*min_v others_v)). For two coins that is the larger of
                ln(a/b) and ln((1-b)/(1-a)), a = truth + (1-truth)yes, b = (1-truth)yes; paper 3's Eq. 30 has the first
                only.
    Estimate:   (S_v - N*(1-truth)*others_v)/truth; its error grows with the square root of the population N.

    >>> protocol = RandomizedResponse(truth=.8, yes=.9)
    >>> round(protocol.leakage().epsilon, 3), round(protocol.claim, 3)
    (3.714, 1.695)
    """

    name: ClassVar[str] = "randomized-response"
    rounds: ClassVar[int] = 1

    def __init__(
        self, truth: Any = None, yes: Any = None, *, options: int = 1, others: Any = None, epsilon: Any = None
    ) -> None:
        super().__init__(read_options(options))
        self._asked: float | None = None
        if epsilon is not None:
            truth = self._truth_for(epsilon, truth, yes, others)
        self.truth = read_probability(truth, "truth")
        if not 0 < self.truth < 1:
            raise ProtocolError(
                "The first coin is no coin.",
                rule="The truth is told with a probability between 0 and 1.",
                suggest="truth=0.8",
            )
        if yes is not None:
            if self.options != 1 or others is not None:
                raise ProtocolError(
                    "A second coin is for a yes-or-no question.",
                    rule="With several options the second draw is a die.",
                    suggest="others=[...], or neither for equal chances",
                )
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
            raise ProtocolError(
                "This epsilon is not usable.",
                rule="A finite number, which takes the place of all probabilities.",
                suggest="RandomizedResponse(epsilon=1)",
            )
        self._asked = to_epsilon(nano)
        return truth_chance(nano, self.options)

    @property
    def claim(self) -> float | None:
        """Eq. 30, which looks at the answer Yes only; for several options the paper states nothing."""
        if self.options != 1:
            return None
        return log_ratio(self.high(1), self.low(1))  # type: ignore[arg-type]

    @cached_property
    def epsilon(self) -> float:
        """The loss against anybody who sees an answer, and so against everybody."""
        noise = (1 - self.truth) * min(self.others)
        return math.inf if noise == 0 else math.log1p(self.truth / noise)

    @property
    def guarantee(self) -> Guarantee:
        """The promise in the form that composes with other releases."""
        if math.isinf(self.epsilon):
            raise ProtocolError(
                "Nothing is promised to everybody.", rule="Every output needs a chance.", suggest="others without a 0"
            )
        nano = math.ceil(self.epsilon * NANO)
        return Guarantee(neighbors="replace", losses=((nano, nano),), imputes=True)

    def high(self, option: int) -> Fraction:
        """The chance that an owner of the option names it."""
        return self.truth + self.low(option)

    def low(self, option: int) -> Fraction:
        """The chance that anybody else names it."""
        return (1 - self.truth) * self.others[option]

    def law(self, truth: int) -> Law:
        return {(v,): self.high(v) if v == truth else self.low(v) for v in range(self.outputs)}

    @cached_property
    def _die(self) -> Die:
        return Die([*((1 - self.truth) * chance for chance in self.others), self.truth])

    def _respond(self, truths: NDArray[np.uint32], entropy: Entropy) -> Sequence[Outputs]:
        rolled = self._die.roll(entropy, len(truths))
        honest = rolled == self.outputs
        np.copyto(rolled, truths, where=honest, casting="unsafe")
        return (rolled,)

    def estimate(self, *counts: Any) -> Estimate:
        self._check_rounds(counts)
        seen = read_counts(counts[0], self.outputs, "the round")
        return one_round_estimate(
            seen,
            [self.high(v) for v in range(1, self.outputs)],
            [self.low(v) for v in range(1, self.outputs)],
            self,
        )

    def spread(self, count: float, population: float) -> float:
        return max(
            deviation(count, population, float(self.high(v)), float(self.low(v)))
            for v in {self.others.index(max(self.others[1:]), 1), self.others.index(min(self.others[1:]), 1)}
        )

    def settings(self) -> dict[str, Any]:
        if self._asked is not None:
            return {"epsilon": self._asked} | ({"options": self.options} if self.options > 1 else {})
        told: dict[str, Any] = {"truth": write_probability(self.truth)}
        if self.options > 1:
            told["options"] = self.options
        if len(set(self.others)) > 1:
            told["others"] = [write_probability(chance) for chance in self.others]
        return told

    def describe(self) -> str:
        fair = "a fair " if len(set(self.others)) == 1 else "the second "
        second = f"{fair}{'coin' if self.options == 1 else 'die'} says"
        return (
            f"Randomized response, {self.options} option{'s' if self.options > 1 else ''}: the truth with probability "
            f"{float(self.truth):.4g}, else what {second}."
        )

    # Observers --------------------------------------------------------------------------------------------------------

    def _pair(self) -> Pair:
        """The truths that are easiest to tell apart: the output that chance names least, against any other."""
        rare = self.others.index(min(self.others))
        other = 1 if rare == 0 else 0
        rest = 1 - self.high(rare) - self.low(other)
        one = np.array([float(self.high(rare)), float(self.low(other)), float(rest)])
        two = np.array([float(self.low(rare)), float(self.high(other)), float(rest)])
        return one, two

    def _leak_last(self, epsilon: float | None) -> Leakage:
        return Leakage.of(
            SECOND_ROUND, "one owner's answer", self.epsilon, [self._pair()], epsilon=epsilon, claim=self.claim
        )

    def _leak_all(self, epsilon: float | None) -> Leakage:
        sees = "all that one owner sends (one round)"
        return Leakage.of(BOTH_ROUNDS, sees, self.epsilon, [self._pair()], epsilon=epsilon, claim=self.claim)

    def _leak_counts(
        self, epsilon: float | None, count: int, population: int | None, neighbors: str, other: int
    ) -> Leakage:
        """Counts are a function of the answers, so the loss of one answer bounds theirs; for two coins it is exact."""
        if self.options > 1 or population is None or population > _LARGEST_CROWD:
            pair, exact = self._pair(), False
            sees = "published counts"
        else:
            pair = answers_pair(count, population - count, float(self.high(1)), float(self.low(1)))
            exact = True
            sees = f"published counts, {count:,} alike among {population:,}"
        claim = self.claim
        return Leakage.of(
            COUNTS, sees, self.epsilon, [pair], epsilon=epsilon, claim=claim, neighbors=neighbors, exact=exact
        )


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

    def bounds(level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        known: dict[tuple[int, float, float], tuple[int, int]] = {}
        found = []
        for key in zip(named.tolist(), a.tolist(), b.tolist(), strict=True):
            if key not in known:
                known[key] = possible_sizes(key[0], population, key[1], key[2], level)
            found.append(known[key])
        lows, highs = np.array(found, dtype=np.float64).T
        return lows, highs

    largest = round(float(plausible.max()))
    leak = partial(protocol.leakages, counts=(1, largest), population=population)
    return Estimate(values, errors, population, leak, bounds)

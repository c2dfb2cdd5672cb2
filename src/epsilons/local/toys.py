"""Paper 3's toy constructions (section 3): why sampling alone cannot work, and what it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PlanError, ProtocolError
from epsilons.local.base import Law, Outputs, ResponseProtocol, register
from epsilons.local.estimate import Estimate, read_counts
from epsilons.local.leakage import BOTH_ROUNDS, COUNTS, SECOND_ROUND, Leakage, Pair
from epsilons.local.probability import read_probability, write_probability
from epsilons.local.randomized_response import RandomizedResponse, deviation, one_round_estimate
from epsilons.noise import Entropy
from epsilons.noise.coins import Die

#: The output of an owner who was not sampled and says nothing, in the construction that also has a No.
SILENT = 2


def _read_sampling(sampling: Any) -> Fraction:
    chance = read_probability(sampling, "sampling")
    if chance == 0:
        raise ProtocolError("Nobody would answer.", rule="sampling is larger than 0.", suggest="sampling=0.45")
    return chance


@register
class SamplingOnly(ResponseProtocol):
    """Say Yes with probability `sampling`, whatever the truth, else nothing (paper 3, section 3.2, Eq. 1).

    Outputs: 0 nothing, 1 Yes. Nothing can be estimated: the law of what is seen is the same for every number of Yes.
    """

    name: ClassVar[str] = "sampling-only"
    rounds: ClassVar[int] = 1

    def __init__(self, sampling: Any) -> None:
        super().__init__(1)
        self.sampling = _read_sampling(sampling)

    @property
    def claim(self) -> float | None:
        """The paper claims nothing: it shows the construction as a false start."""
        return None

    def law(self, truth: int) -> Law:
        return {(0,): 1 - self.sampling, (1,): self.sampling}

    def _respond(self, truths: NDArray[np.uint32], entropy: Entropy) -> Sequence[Outputs]:
        return (Die([1 - self.sampling, self.sampling]).roll(entropy, len(truths)),)

    def estimate(self, *counts: Any) -> Estimate:
        """Refuses, and says why."""
        self._check_rounds(counts)
        raise PlanError(
            "Sampling alone tells nothing about how many would say Yes.",
            rule="One equation, two unknowns: owners with a Yes and with a No answer with the same probability, so "
            "every number of Yes among those asked explains the counts equally well.",
            suggest="SamplingDeniability, RandomizedResponse or SamplingPrivacy",
        )

    def spread(self, count: float, population: float) -> float:
        return math.inf

    def settings(self) -> dict[str, Any]:
        return {"sampling": write_probability(self.sampling)}

    def describe(self) -> str:
        return (
            f"Sampling only: everybody says Yes with probability {float(self.sampling):.4g}, whatever the truth. "
            "Nothing leaks, and nothing can be estimated: one equation, two unknowns."
        )

    def _nothing(self, view: str, sees: str, epsilon: float | None) -> Leakage:
        same = np.array([float(1 - self.sampling), float(self.sampling)])
        return Leakage.of(view, sees, 0.0, [(same, same)], epsilon=epsilon, claim=None)

    def _leak_last(self, epsilon: float | None) -> Leakage:
        return self._nothing(SECOND_ROUND, "one owner's answer", epsilon)

    def _leak_all(self, epsilon: float | None) -> Leakage:
        return self._nothing(BOTH_ROUNDS, "all that one owner sends (one round)", epsilon)

    def _leak_counts(
        self, epsilon: float | None, count: int, population: int | None, neighbors: str, other: int
    ) -> Leakage:
        return self._nothing(COUNTS, "published counts", epsilon)


@register
class SamplingDeniability(ResponseProtocol):
    """Answer at all with probability `sampling`, and then by randomized response (paper 3, section 3.3, Eqs. 2-5).

    Outputs: 0 No, 1 Yes, 2 nothing. Eq. 2 is read as pi_s*(pi_1 + (1 - pi_1)*pi_2). The loss is that of randomized
    response, since who says nothing shows nothing; the error is larger, and grows with the population as well. The
    number of owners asked must be known.
    """

    name: ClassVar[str] = "sampling-deniability"
    rounds: ClassVar[int] = 1

    def __init__(self, sampling: Any, truth: Any, yes: Any) -> None:
        super().__init__(1)
        self.sampling = _read_sampling(sampling)
        self.response = RandomizedResponse(truth, yes)

    @property
    def outputs(self) -> int:
        return 3

    @property
    def claim(self) -> float | None:
        """Eq. 5 "is precisely the structure of randomized response", whose epsilon is Eq. 30."""
        return self.response.claim

    def law(self, truth: int) -> Law:
        answered = {output: self.sampling * chance for output, chance in self.response.law(truth).items()}
        return {**answered, (SILENT,): 1 - self.sampling}

    @cached_property
    def _dice(self) -> tuple[Die, Die]:
        one, two = (list(self.law(truth).values()) for truth in (0, 1))
        return Die(one), Die(two)

    def _respond(self, truths: NDArray[np.uint32], entropy: Entropy) -> Sequence[Outputs]:
        no, yes = (die.roll(entropy, len(truths)) for die in self._dice)
        np.copyto(no, yes, where=truths == 1)
        return (no,)

    def estimate(self, *counts: Any) -> Estimate:
        self._check_rounds(counts)
        seen = read_counts(counts[0], self.outputs, "the round (No, Yes, nothing)")
        return one_round_estimate(
            seen, [self.sampling * self.response.high(1)], [self.sampling * self.response.low(1)], self
        )

    def spread(self, count: float, population: float) -> float:
        high, low = (float(self.sampling * chance) for chance in (self.response.high(1), self.response.low(1)))
        return deviation(count, population, high, low)

    def settings(self) -> dict[str, Any]:
        told = (self.sampling, self.response.truth, self.response.others[1])
        return dict(zip(("sampling", "truth", "yes"), map(write_probability, told), strict=True))

    def describe(self) -> str:
        return (
            f"Sampling and plausible deniability: answer with probability {float(self.sampling):.4g}, then the truth "
            f"with {float(self.response.truth):.4g}, else Yes with {float(self.response.others[1]):.4g}."
        )

    def _leak(self, view: str, sees: str, epsilon: float | None, exact: bool = True) -> Leakage:
        no, yes = (np.array([float(chance) for chance in self.law(truth).values()]) for truth in (0, 1))
        pair: Pair = (yes, no)
        return Leakage.of(view, sees, self.response.epsilon, [pair], epsilon=epsilon, claim=self.claim, exact=exact)

    def _leak_last(self, epsilon: float | None) -> Leakage:
        return self._leak(SECOND_ROUND, "one owner's answer", epsilon)

    def _leak_all(self, epsilon: float | None) -> Leakage:
        return self._leak(BOTH_ROUNDS, "all that one owner sends (one round)", epsilon)

    def _leak_counts(
        self, epsilon: float | None, count: int, population: int | None, neighbors: str, other: int
    ) -> Leakage:
        return self._leak(COUNTS, "published counts", epsilon, exact=False)

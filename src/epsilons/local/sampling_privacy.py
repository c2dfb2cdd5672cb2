"""Sampling Privacy (paper 3, section 4): two rounds, of which the second differs by the sampled owners' truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PlanError, ProtocolError
from epsilons.local.base import Law, Outputs, ResponseProtocol, register
from epsilons.local.binomials import possible_sizes
from epsilons.local.counts import MOST_ALIKE, crowd_pair, crowd_size, difference_pair, replaced_pair
from epsilons.local.estimate import Estimate, read_counts
from epsilons.local.leakage import BOTH_ROUNDS, COUNTS, SECOND_ROUND, Leakage, Pair
from epsilons.local.probability import read_die, read_options, read_probability, write_probability
from epsilons.noise import Entropy
from epsilons.noise.coins import Die

TOO_FEW = "Some option was named less often in round two than in round one, which no honest owner causes."

#: So many outcomes of a crowd's counts are gone through without being asked.
_QUICK = 300_000


@register
class SamplingPrivacy(ResponseProtocol):
    """Round one hides everybody behind a die; in round two the sampled move from 0 to their truth.

    Definition: round one: v with probability others_v, and 0 with `sampling`. Round two: those sampled send their
                truth, everybody else repeats (Eqs. 6-8 and 12-13; the last term of Eq. 12 is 1 - pi_0 - ... -
                pi_{V-1} - pi_s).
    Claim:      ln(1 + sampling/min_v others_v) (Eqs. 21, 25, 29; Eq. 29 must use the smallest), which holds for
                somebody who sees round two alone: that is randomized response with first coin `sampling`.
    Leakage:    an owner seen in both rounds who was sampled shows their truth: epsilon infinite, delta = sampling.
                Published counts: Bin(n_v, sampling) against Bin(n_v - 1, sampling), with no pure epsilon either.
    Estimate:   (S_v2 - S_v1)/sampling (Eqs. 11 and 16), of variance n_v (1 - sampling)/sampling: it does not depend on
                the population.

    >>> protocol = SamplingPrivacy(options=11, sampling=.45)
    >>> round(protocol.claim, 3), protocol.leakage().epsilon, protocol.leakage().delta
    (2.381, inf, 0.45)
    """

    name: ClassVar[str] = "sampling-privacy"
    rounds: ClassVar[int] = 2

    def __init__(self, options: int = 1, sampling: Any = None, *, others: Any = None) -> None:
        super().__init__(read_options(options))
        if sampling is None:
            raise ProtocolError("There is no sampling probability.", rule="It must be chosen.", suggest="sampling=0.45")
        self.sampling = read_probability(sampling, "sampling")
        if not 0 < self.sampling < 1:
            raise ProtocolError(
                "Nobody or everybody would be sampled.", rule="sampling lies between 0 and 1.", suggest="sampling=0.45"
            )
        self.others = read_die(others, self.outputs, 1 - self.sampling, "others")

    @property
    def claim(self) -> float | None:
        """Eqs. 21 and 25 for a yes-or-no question, Eq. 29 with the smallest pi_v for several options."""
        among = self.others if self.options == 1 else self.others[1:]
        return self._loss(min(among))

    def _loss(self, chance: Fraction) -> float:
        return math.inf if chance == 0 else math.log1p(self.sampling / chance)

    def law(self, truth: int) -> Law:
        law: Law = {(v, v): chance for v, chance in enumerate(self.others)}
        law[0, truth] = law.get((0, truth), Fraction(0)) + self.sampling
        return law

    @cached_property
    def _die(self) -> Die:
        return Die([*self.others, self.sampling])

    def _respond(self, truths: NDArray[np.uint32], entropy: Entropy) -> Sequence[Outputs]:
        second = self._die.roll(entropy, len(truths))
        sampled = second == self.outputs
        first = second.copy()
        first[sampled] = 0
        np.copyto(second, truths, where=sampled, casting="unsafe")
        return first, second

    def estimate(self, *counts: Any) -> Estimate:
        self._check_rounds(counts)
        first = read_counts(counts[0], self.outputs, "round one")
        second = read_counts(counts[1], self.outputs, "round two")
        population = int(first.sum())
        if int(second.sum()) != population:
            raise ProtocolError(
                "The rounds have different numbers of owners.",
                rule="Only owners who answered in both rounds count.",
                suggest="leave out owners who are missing in one round",
            )
        share = float(self.sampling)
        moved = second[1:] - first[1:]
        values = moved / share
        plausible = np.clip(values, 0, population)
        errors = np.sqrt(plausible * (1 - share) / share)

        def bounds(level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            kinds = {seen: possible_sizes(max(0, seen), population, share, 0.0, level) for seen in set(moved.tolist())}
            lows, highs = np.array([kinds[seen] for seen in moved.tolist()], dtype=np.float64).T
            return lows, highs

        largest = round(float(plausible.max()))
        notes = (TOO_FEW,) if (moved < 0).any() else ()
        leak = partial(self.leakages, counts=(1, largest), population=population)
        return Estimate(values, errors, population, leak, bounds, notes=notes)

    def spread(self, count: float, population: float) -> float:
        return math.sqrt(count * float((1 - self.sampling) / self.sampling))

    def settings(self) -> dict[str, Any]:
        told: dict[str, Any] = {"options": self.options, "sampling": write_probability(self.sampling)}
        if len(set(self.others)) > 1:
            told["others"] = [write_probability(chance) for chance in self.others]
        return told

    def describe(self) -> str:
        return (
            f"Sampling Privacy, {self.options} option{'s' if self.options > 1 else ''}: two rounds; sampled with "
            f"probability {float(self.sampling):.4g}, and then none in round one and the truth in round two."
        )

    # Observers --------------------------------------------------------------------------------------------------------

    def _leak_last(self, epsilon: float | None) -> Leakage:
        """Round two alone is randomized response with first coin `sampling`: worst for what chance names least."""
        rare = self.others.index(min(self.others))
        other = 1 if rare == 0 else 0
        chances = np.array([float(self.others[rare]), float(self.others[other])])
        rest = [1 - float(self.sampling) - chances.sum()]
        share = float(self.sampling)
        pair: Pair = (
            np.concatenate([chances + np.array([share, 0]), rest]),
            np.concatenate([chances + np.array([0, share]), rest]),
        )
        pure = self._loss(min(self.others))
        return Leakage.of(SECOND_ROUND, "one owner's second round", pure, [pair], epsilon=epsilon, claim=self.claim)

    def _leak_all(self, epsilon: float | None) -> Leakage:
        """A sampled owner of v sends (0, v), which nobody else's truth can lead to."""
        share, zero = float(self.sampling), float(self.others[0])
        rest = 1 - share - zero
        pairs: list[Pair] = [(np.array([share, zero, rest]), np.array([0.0, zero + share, rest]))]
        if self.options > 1:
            pairs.append((np.array([share, 0.0, 1 - share]), np.array([0.0, share, 1 - share])))
        return Leakage.of(BOTH_ROUNDS, "one owner in both rounds", math.inf, pairs, epsilon=epsilon, claim=self.claim)

    def _is_small(self, count: int, population: int) -> bool:
        return count <= population and crowd_size(count, population - count, self.options > 1) <= _QUICK

    def _leak_counts(
        self, epsilon: float | None, count: int, population: int | None, neighbors: str, other: int
    ) -> Leakage:
        share = float(self.sampling)
        sees, exact = f"published counts, {count:,} alike", True
        if neighbors == "replace" and self.options > 1:
            if population is not None:
                raise PlanError(
                    "A small crowd is only judged against none.",
                    rule='population= goes with neighbors="absent".',
                    suggest="leave out population",
                )
            pair = replaced_pair(count, other, share)
            sees += f", or one of {other + 1:,} elsewhere"
        elif population is None:
            pair = difference_pair(min(count, MOST_ALIKE), share)
            exact = count <= MOST_ALIKE
        else:
            pair = crowd_pair(count, population - count, share, float(self.others[0]), other_values=self.options > 1)
            sees += f" among {population:,}"
        return Leakage.of(
            COUNTS, sees, math.inf, [pair], epsilon=epsilon, claim=self.claim, neighbors=neighbors, exact=exact
        )

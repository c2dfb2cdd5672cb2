"""Statistics that count people or rows: how a sample thins a count, and what a released share says of its spread."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilons.noise.coins import binomial
from epsilons.noise.entropy import ALWAYS
from epsilons.statistics.additive import Additive, Sums, doubt
from epsilons.statistics.moments import Moments
from epsilons.summaries.cells import Integers

if TYPE_CHECKING:
    from epsilons.noise.entropy import Entropy
    from epsilons.statistics.base import Question
    from epsilons.summaries import People


class Counting(Additive):
    """A statistic that counts people or rows, so that a sample of people is often a thinned count."""

    @property
    def coin_origin(self) -> float:
        """Counts are not centred: a person who is left out adds nothing."""
        return 0.0

    @property
    @abstractmethod
    def one_each(self) -> bool:  # type: ignore[override]
        """Whether everyone is counted at most once in all."""

    @property
    def counts_people(self) -> bool:
        """Whether people are counted, not how many rows they have."""
        return self.one_each

    @abstractmethod
    def of_roster(self, people: Mapping[int | None, int], grant_of: Callable[[Any], int | None]) -> Any:
        """The exact answer about preferences themselves: so many people by grant, for which a key may stand."""

    def fill(self, sums: Sums, rest: Fraction) -> Sums:
        return [[s + Fraction(self.centre) * rest for s in part] for part in sums]

    def sampled_tally(self, people: People, chances: Sequence[int], entropy: Entropy) -> list[Integers]:
        if not self.one_each:
            return super().sampled_tally(people, chances, entropy)
        return self.make_parts([thin_counts(part, chances, entropy) for part in people.tally(self)])

    def limits(self, people: int) -> tuple[int, int]:
        return 0, people * int(self.extremes[1])

    def related(self, question: Question) -> tuple[str, float]:
        return "share" if self.counts_people else "number of rows", super().related(question)[1]

    def told_at(self, question: Question) -> str:
        source = dict(question.known).get("density", "guessed" if question.density is None else "given")
        return f", at a share of {self.guess(question).mean:,.4g} ({source})" if self.one_each else ""

    def learn(self, question: Question, guessed: Moments, mean: float, doubt: float) -> Moments:
        """Ones vary as if two standard errors nearer to a half: few who agree must not collapse the bar."""
        if not self.one_each:
            return super().learn(question, guessed, mean, doubt)
        mean = min(max(mean, 0.0), 1.0)
        near = min(mean + 2 * doubt, 0.5) if mean < 0.5 else max(mean - 2 * doubt, 0.5)
        return Moments(mean, near * (1 - near), most=near * (1 - near))


def row_moments(fraction: float, most: int, density: float | None) -> Moments:
    """Of one person's number of rows that count, when people have 1 to `most` rows and count whole or not at all."""
    rows = (1 + most) / 2
    square = fraction * (rows**2 + (most**2 - 1) / 12)
    return Moments(fraction * rows, max(square - (fraction * rows) ** 2, 1e-9), rows * doubt(fraction, density))


def thin_counts(counts: Integers, chances: Sequence[int], entropy: Entropy) -> Integers:
    """Keep each counted person with their level's chance: exact binomials instead of one coin per person."""
    pairs = zip(counts.tolist(), chances, strict=True)
    kept = [row if chance >= ALWAYS else [binomial(entropy, count, chance) for count in row] for row, chance in pairs]
    return np.array(kept, np.int64)

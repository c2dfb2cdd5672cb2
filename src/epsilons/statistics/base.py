"""The shape that every statistic has.

A statistic is a frozen value that holds the public arguments of a question (bounds, grid, edges) and its scope: whether
there are a condition, groups, several rows per person, values left out. It turns values into a summary per level, in
integers, and says how far one person can move that summary. Given who weighs how much, its family draws:

- `additive.Additive`: the summary is one integer vector per part, added up over people (count, sum, mean, variance,
  histogram, models);
- `order.Order`: the summary is the sorted grid cells of the values (median, quantile, minimum, maximum, k-th largest).

How far the answers of a family err is in the file of `accuracy/` that has its name. Nothing here depends on a
mechanism, and nothing raises because of a value: what is missing or not a number goes to the public default named in
each file, what is out of bounds goes to the bound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.statistics.scope import Scope

if TYPE_CHECKING:
    from epsilons.noise.entropy import Entropy
    from epsilons.preferences import Levels
    from epsilons.statistics.people import People
    from epsilons.statistics.question import Question
    from epsilons.statistics.weighting import Weighting

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    """What a draw gives: a value, whatever noisy by-products may be shown with it, and the noisy sums behind it."""

    value: Any
    details: dict[str, Any] = field(default_factory=dict)
    sums: Sequence[Sequence[Fraction]] | None = None


class Statistic(ABC):
    """A question's public arguments, and what they imply."""

    name: ClassVar[str]
    #: Which kind of arithmetic it is: mechanisms say which families they serve, `accuracy` has a file for each.
    family: str
    #: Which summary of people's values it is made from: ones, bins, steps, cells or products.
    summary: str
    #: Set where nobody may know how many values there are: with a condition, groups, several rows, values left out.
    scope: Scope | None = None

    @property
    def private_count(self) -> bool:
        """Whether nobody may know how many values there are."""
        return self.scope is not None

    @abstractmethod
    def describe(self) -> str:
        """A few words for titles: "mean in [0, 100]"."""

    def identity(self) -> str:
        """Everything that makes it this statistic and not another one, as question keys hold it.

        Keys are stored in ledgers for good, so the spelling is that of the first version, in which statistics with a
        scope were classes of their own.
        """
        return repr(self)

    @abstractmethod
    def exact(self, people: People) -> Any:
        """The statistic itself, on the same grid and with the same defaults as every draw."""

    @abstractmethod
    def draw(self, question: Question, weighting: Weighting, people: People, entropy: Entropy) -> Answer:
        """One answer in which people count as the weighting says."""

    @abstractmethod
    def simulate(self, question: Question, weighting: Weighting, people: People, entropy: Entropy, size: int) -> Floats:
        """Many independent answers to one question on one data set, for audits and simulations."""

    @abstractmethod
    def distribution(self, question: Question, weighting: Weighting, people: People) -> tuple[NDArray[Any], Floats]:
        """(outcomes, natural logarithms of their probabilities) on small inputs, for audits and teaching."""

    @abstractmethod
    def noise_to_spread(self, question: Question) -> float:
        """How large the noise is beside the spread of values: the right side of the equation for `weighted`'s cap."""

    def check_people(self, levels: Levels) -> None:  # noqa: B027 most statistics can be asked of anybody
        """Refuse what so many people cannot give."""

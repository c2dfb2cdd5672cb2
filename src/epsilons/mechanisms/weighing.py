"""What minimum, threshold, sample, stretching, weighted and robust share: they only say who weighs how much.

The statistic's family draws by the weights (`statistics/`) and says how far the answer errs (`accuracy/`).
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.accuracy import FAMILIES
from epsilons.accuracy.intervals import ErrorBar
from epsilons.mechanisms.base import Charges, Mechanism
from epsilons.noise.entropy import Entropy
from epsilons.preferences import Levels
from epsilons.statistics.base import Answer
from epsilons.statistics.people import People
from epsilons.statistics.question import Question
from epsilons.statistics.weighting import Weighting


class Weighing(Mechanism):
    """A mechanism that gives each level a weight, and every answer one noise."""

    @abstractmethod
    def weigh(self, question: Question, levels: Levels) -> Weighting:
        """The weights and what weight one costs, from public facts alone."""

    def charge(self, question: Question, levels: Levels) -> Charges:
        return weighting_of(self, question, levels).charges(levels)

    def used(self, question: Question, levels: Levels) -> float:
        return weighting_of(self, question, levels).used(levels)

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        return _predicted(self, question, levels)

    def worst_error(self, question: Question, levels: Levels) -> float | None:
        return FAMILIES[question.statistic.family].worst(question, levels, weighting_of(self, question, levels))

    def stated_error(self, question: Question, levels: Levels, answer: Answer) -> float | None:
        weighting, predicted = weighting_of(self, question, levels), _predicted(self, question, levels)
        return FAMILIES[question.statistic.family].state(question, levels, weighting, answer, predicted)

    def error_bars(self, question: Question, levels: Levels, answer: Answer) -> tuple[ErrorBar, ...] | None:
        weighting = weighting_of(self, question, levels)
        return FAMILIES[question.statistic.family].bars(question, levels, weighting, answer)

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        return question.statistic.draw(question, weighting_of(self, question, people.levels), people, entropy)

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> NDArray[np.float64]:
        weighting = weighting_of(self, question, people.levels)
        return question.statistic.simulate(question, weighting, people, entropy, size)

    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], NDArray[np.float64]]:
        return question.statistic.distribution(question, weighting_of(self, question, people.levels), people)


@lru_cache(maxsize=256)
def weighting_of(mechanism: Weighing, question: Question, levels: Levels) -> Weighting:
    """Its weights, remembered: a release asks several times."""
    return mechanism.weigh(question, levels)


@lru_cache(maxsize=256)
def _predicted(mechanism: Weighing, question: Question, levels: Levels) -> float | None:
    """The predicted error, remembered: whoever plans and whoever releases ask for the same number."""
    weighting = weighting_of(mechanism, question, levels)
    return FAMILIES[question.statistic.family].predict(question, levels, weighting)

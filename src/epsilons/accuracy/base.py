"""How far the answers of a family of statistics err, given who weighs how much.

Before an answer: from public facts and stated guesses. After it: from what was released as well. A mechanism that
weighs people asks here; nothing here knows mechanisms, and nothing here sees data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from epsilons.accuracy.intervals import ErrorBar
from epsilons.preferences import Levels
from epsilons.statistics.base import Answer, Question, Weighting, Weightings


class Accuracy(ABC):
    """The errors of one family of statistics."""

    @abstractmethod
    def predict(self, question: Question, levels: Levels, weighting: Weighting) -> float | None:
        """Expected RMSE against the roster's own statistic; None where it cannot be said without the data."""

    @abstractmethod
    def predict_many(self, question: Question, levels: Levels, weightings: Weightings) -> NDArray[np.float64]:
        """The same for several weightings at once, in rows; infinite where it cannot be said."""

    @abstractmethod
    def worst(self, question: Question, levels: Levels, weighting: Weighting) -> float | None:
        """The same for the worst values people could have, however these relate to their preferences."""

    @abstractmethod
    def state(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer, predicted: float | None
    ) -> float | None:
        """The expected error once an answer is out: what its noisy sums say about the values is public by then."""

    @abstractmethod
    def bars(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer
    ) -> tuple[ErrorBar, ...] | None:
        """An error bar for each number of an answer; None where nobody can honestly give one."""

"""How far a model's predictions err: like a linear answer, and no error bars."""

from __future__ import annotations

from epsilons.accuracy.additive import LinearAccuracy
from epsilons.accuracy.intervals import ErrorBar
from epsilons.preferences import Levels
from epsilons.statistics.base import Answer, Question, Weighting


class RegressionAccuracy(LinearAccuracy):
    """Of models: the error of a prediction at a typical person, from the noise in the coefficients of the loss."""

    def bars(
        self, question: Question, levels: Levels, weighting: Weighting, answer: Answer
    ) -> tuple[ErrorBar, ...] | None:
        """Coefficients come out of a repaired loss; how far each strays is not known."""
        return None

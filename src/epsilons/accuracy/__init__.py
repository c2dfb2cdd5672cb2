"""How far answers err: one file for each family of statistics, and `intervals.py` for error bars."""

from epsilons.accuracy.additive import LinearAccuracy, RatioAccuracy
from epsilons.accuracy.base import Accuracy
from epsilons.accuracy.order import OrderAccuracy
from epsilons.accuracy.regression import RegressionAccuracy
from epsilons.accuracy.variance import VarianceAccuracy

#: By the family that a statistic names.
FAMILIES: dict[str, Accuracy] = {
    "linear": LinearAccuracy(),
    "ratio": RatioAccuracy(),
    "variance": VarianceAccuracy(),
    "regression": RegressionAccuracy(),
    "order": OrderAccuracy(),
}

"""How far the answers of a family of statistics err, given who weighs how much: one file for each family.

Before an answer: from public facts and stated guesses. After it: from what was released as well. A mechanism that
weighs people asks here; nothing here knows mechanisms, and nothing here sees data, so floats are good enough.
`intervals.py` has error bars, `relation.py` asks whether preferences and values look related.
"""

from epsilons.accuracy.additive import Accuracy, LinearAccuracy
from epsilons.accuracy.choice import ChoiceAccuracy
from epsilons.accuracy.models import ModelAccuracy
from epsilons.accuracy.order import OrderAccuracy, QuantilesAccuracy
from epsilons.accuracy.ratio import RatioAccuracy
from epsilons.accuracy.variance import VarianceAccuracy

#: By the family that a statistic names.
FAMILIES: dict[str, Accuracy] = {
    "linear": LinearAccuracy(),
    "ratio": RatioAccuracy(),
    "variance": VarianceAccuracy(),
    "regression": ModelAccuracy(),
    "order": OrderAccuracy(),
    "quantiles": QuantilesAccuracy(),
    "choice": ChoiceAccuracy(),
}

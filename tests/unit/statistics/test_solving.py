"""A noisy loss becomes a finite model, and errs no more than with the ridge of the literature."""

from __future__ import annotations

import numpy as np
import pytest

from epsilons.statistics.noisy_loss import NoisyLoss

Floats = np.ndarray


def people(features: int, size: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Correlated features and a target within [-1, 1], the intercept's ones in front."""
    common = random.normal(0, 0.4, (size, 1))
    X = np.clip(random.normal(0, 0.4, (size, features)) + common, -1, 1)
    X = np.column_stack([np.ones(size), X])
    weights = random.normal(0, 0.3 / np.sqrt(features), features + 1)
    return X, np.clip(X @ weights + random.normal(0, 0.2, size), -1, 1)


def noisy_loss(X: Floats, y: Floats, epsilon: float, random: np.random.Generator) -> NoisyLoss:
    d = X.shape[1]
    scale = (d * d + 2 * d) / epsilon
    upper = np.triu(random.laplace(0, scale / 2, (d, d)), 1)
    noise = upper + upper.T + np.diag(random.laplace(0, scale, d))
    vector = X.T @ y + random.laplace(0, scale / 2, d)
    return NoisyLoss(X.T @ X + noise, vector, scale, scale / 2, float(len(y)))


def zhang(loss: NoisyLoss) -> Floats:
    """Zhang et al. 2012, section 6: a ridge of four standard deviations, then directions above zero only."""
    ridge = 4 * np.sqrt(2) * loss.matrix_scale
    values, basis = np.linalg.eigh(loss.matrix + ridge * np.eye(len(loss.vector)))
    kept = values > 0
    found: Floats = basis[:, kept] @ (basis[:, kept].T @ loss.vector / values[kept])
    return found


def errors(epsilon: float, size: int) -> tuple[float, float]:
    """(ours, Zhang's): root mean squared distance of predictions from those without noise, over 60 losses."""
    random = np.random.default_rng(3)
    X, y = people(12, size, random)
    exact = X @ np.linalg.lstsq(X, y, rcond=None)[0]
    squares = []
    for _ in range(60):
        loss = noisy_loss(X, y, epsilon, random)
        squares.append([np.mean((X @ w - exact) ** 2) for w in (loss.minimise(), zhang(loss))])
    ours, theirs = np.sqrt(np.mean(squares, axis=0))
    return float(ours), float(theirs)


@pytest.mark.statistical
def test_it_errs_about_as_much_as_one_ridge_for_all_where_noise_is_small() -> None:
    for size in (100_000, 20_000):
        ours, theirs = errors(1.0, size)
        assert ours < 1.3 * theirs


@pytest.mark.statistical
def test_it_errs_much_less_where_noise_is_large() -> None:
    for epsilon, most in ((0.1, 0.7), (0.01, 0.4)):
        ours, theirs = errors(epsilon, 20_000)
        assert ours < most * theirs


def test_an_unbounded_direction_gets_no_weight() -> None:
    """A negative eigenvalue, an empty matrix, a huge one: nothing is divided by what is not there."""
    for matrix in (np.diag([100.0, -50.0]), np.zeros((2, 2)), np.diag([1e300, 1e-300])):
        for scale in (0.0, 1.0, 1e100):
            weights = NoisyLoss(matrix, np.array([50.0, 50.0]), scale, scale, 100.0).minimise()
            assert np.isfinite(weights).all()
    assert NoisyLoss(np.diag([100.0, -50.0]), np.array([50.0, 50.0]), 1.0, 1.0, 100.0).minimise()[1] == 0


def test_without_noise_it_solves_the_equations() -> None:
    matrix, truth = np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([0.5, -0.25])
    assert NoisyLoss(matrix, matrix @ truth, 0.0, 0.0, 4.0).minimise() == pytest.approx(truth)

"""Log-odds from second moments: the bound of their log-loss by brute force, and never worse than a constant."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import epsilons as eps
from epsilons.statistics import log_odds, logistic
from epsilons.statistics.log_odds import LogOdds, constant_odds, find_log_odds, possible_part
from epsilons.testing import seeded

#: (share, spread, ends): balanced and rare classes, weak and strong, lopsided features.
SETTINGS = [
    (0.5, 0.01, (-0.2, 0.2)),
    (0.5, 0.2, (-0.5, 0.5)),
    (0.09, 0.001, (-0.05, 0.05)),
    (0.09, 0.003, (-0.01, 0.8)),
    (0.01, 0.0005, (-0.1, 0.3)),
    (0.97, 0.002, (-0.4, 0.05)),
]


def log_losses(odds: Any, y: Any) -> float:
    return float(np.mean(np.logaddexp(0, odds) - y * odds))


def worst_log_loss(found: LogOdds, share: float, spread: float, ends: tuple[float, float]) -> float:
    """The largest log-loss of any people whose z has these moments, on a grid of places, by a linear program."""
    z = np.linspace(*ends, 801)
    odds = found.middle + found.steepness * z
    # Who is of the class only counts by the share and by the covariance, which is the spread.
    equal = np.stack([np.ones_like(z), z, z**2])
    worst = linprog(-np.logaddexp(0, odds), A_eq=equal, b_eq=[1, 0, spread], bounds=(0, 1))
    assert worst.success
    return float(-worst.fun) - share * found.middle - found.steepness * spread


@pytest.mark.parametrize(("share", "spread", "ends"), SETTINGS)
def test_nobody_s_features_make_the_log_loss_larger_than_its_bound(
    share: float, spread: float, ends: tuple[float, float]
) -> None:
    found = find_log_odds(share, spread, ends)
    bound, constant = found.log_loss(share, spread, spread), constant_odds(share).log_loss(share, 0.0, 0.0)
    assert constant == pytest.approx(-share * math.log(share) - (1 - share) * math.log(1 - share))
    worst = worst_log_loss(found, share, spread, ends)
    assert worst <= bound + 1e-9
    assert bound < constant
    # It is nearly tight, too.
    assert constant - bound > 0.9 * (constant - worst)


def test_the_program_refutes_a_bound_by_the_curvature_at_the_share_alone() -> None:
    """The planted bug: Newton's step, of which people with lopsided features may make more than a constant loses."""
    share, spread, ends = SETTINGS[3]
    newton = constant_odds(share)
    assert worst_log_loss(newton, share, spread, ends) > newton.log_loss(share, spread, spread) + 0.005


@pytest.mark.parametrize(("share", "spread", "ends"), SETTINGS)
def test_no_other_parabola_is_better(share: float, spread: float, ends: tuple[float, float]) -> None:
    """Against a dense search over where it touches and how curved it is, each tried at many places between the ends."""
    best, curvatures = math.inf, np.geomspace(share * (1 - share) / 2, 0.25, 200)[:, None]
    for at in np.linspace(-12, 12, 241):
        chance = 1 / (1 + math.exp(-at))
        off = share - chance
        x = at + (off + np.linspace(*ends, 60)) / curvatures
        parabola = np.logaddexp(0, at) + chance * (x - at) + curvatures / 2 * (x - at) ** 2
        serve = (parabola >= np.logaddexp(0, x) - 1e-12).all(axis=1)
        bounds = np.logaddexp(0, at) - share * at - (off**2 + spread) / (2 * curvatures[serve])
        best = min(best, bounds.min(initial=math.inf))
    found = find_log_odds(share, spread, ends).log_loss(share, spread, spread)
    assert found == pytest.approx(best, abs=0.002 * abs(constant_odds(share).log_loss(share, 0, 0)))


def test_curvatures_rise_up_to_the_mirrored_place_and_fall_beyond() -> None:
    other = np.linspace(-30, 30, 2001)
    for at in (-6.0, -2.3, -0.3, 0.0, 1.7):
        found = log_odds._curvature(np.full_like(other, at), other)
        assert other[found.argmax()] == pytest.approx(-at, abs=0.03)
        rises = np.diff(found) * np.sign(-at - other[1:])
        assert (rises[np.abs(other[1:] + at) > 0.05] >= -1e-14).all()


def test_impossible_moments_are_cut_to_possible_ones() -> None:
    """Noise may say that people of a class lie beyond the bounds on the average."""
    share, spread, ends = 0.99, 0.005, (-0.2, 0.1)
    part = possible_part(share, spread, ends)
    assert part == pytest.approx(0.4)
    assert (
        find_log_odds(share, part**2 * spread, (part * ends[0], part * ends[1])).log_loss(
            share, part**2 * spread, part**2 * spread
        )
        >= 0
    )
    assert possible_part(0.5, 0.01, (-0.2, 0.2)) == 1
    assert possible_part(0.5, 0.0, (0.0, 0.0)) == 1


def rare(effect: float, share: float = 0.09, people: int = 20_000) -> tuple[Any, Any]:
    random = np.random.default_rng(7)
    X = random.uniform(0, 1, (people, 2))
    odds = math.log(share / (1 - share)) + effect * (2 * X - 1) @ [1, -1]
    return X, (random.random(people) < 1 / (1 + np.exp(-odds))).astype(int)


def loss_of(model: Any, X: Any, y: Any) -> float:
    intercept, *slopes = model.value.values()
    return log_losses(intercept + X @ np.array(slopes), y)


@pytest.mark.parametrize("effect", [0.0, 0.7])
def test_of_a_rare_class_a_model_is_no_worse_than_a_constant(effect: float) -> None:
    """.322 against .302 it was, without any noise."""
    X, y = rare(effect)
    p = y.mean()
    constant = -p * math.log(p) - (1 - p) * math.log(1 - p)
    exact = loss_of(eps.logistic_regression(X, y, eps.PUBLIC, bounds_X=(0, 1)), X, y)
    assert exact < constant - 0.01 * (effect > 0)
    for epsilon in (0.05, 0.5):
        models = [
            eps.logistic_regression(X, y, epsilon, bounds_X=(0, 1), complete=True, entropy=seeded(seed))
            for seed in range(20)
        ]
        losses = [loss_of(model, X, y) for model in models]
        assert exact - 1e-6 < np.mean(losses) < constant + (0.001 if epsilon == 0.05 else 0.00005)
    # What is said of it is at least what it has, but for noise.
    strays = [
        (m.details["log_loss"] - loss) / m.details["log_loss_error"] for m, loss in zip(models, losses, strict=True)
    ]
    assert -0.7 < np.mean(strays) < 6
    assert min(strays) > -3
    gains = [m.details["log_loss_gain"] for m in models]
    assert 0.6 * (constant - exact) - 1e-4 < np.mean(gains) < constant - exact + 2e-4
    assert "less than a constant's" in models[0].details["quality"] or not effect


def test_a_lopsided_feature_ruins_newtons_step_and_not_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in a hundred has the feature, and half of those are of a class of 9%."""
    has = np.arange(20_000) % 100 == 0
    y = np.where(has, np.arange(20_000) % 200 == 0, np.arange(20_000) % 23 < 2).astype(int)
    X, p = has[:, None].astype(float), y.mean()
    constant = -p * math.log(p) - (1 - p) * math.log(1 - p)
    asked: dict[str, Any] = {"bounds_X": (0, 1), "complete": True}
    assert loss_of(eps.logistic_regression(X, y, eps.PUBLIC, **asked), X, y) < constant - 0.003
    monkeypatch.setattr(logistic, "find_log_odds", lambda share, spread, ends: constant_odds(share))
    assert loss_of(eps.logistic_regression(X, y, eps.PUBLIC, **asked), X, y) > constant


def test_people_of_one_class_alone_have_finite_log_odds() -> None:
    X = np.linspace(0, 1, 200)[:, None]
    for y in (np.zeros(200, int), np.ones(200, int)):
        model = eps.logistic_regression(X, y, eps.PUBLIC, bounds_X=(0, 1))
        assert abs(model.value["intercept"]) == pytest.approx(math.log(401), rel=1e-6)
        assert model.value["x1"] == 0

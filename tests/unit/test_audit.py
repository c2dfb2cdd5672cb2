"""An audit that cannot catch planted bugs is no audit: it must accept the truth and refuse every bug."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from epsilons.auditing import (
    ABSENT,
    LossBound,
    PersonLoss,
    Verdict,
    all_datasets,
    bound_loss,
    clopper_pearson,
    enumerate_losses,
)
from epsilons.errors import EpsilonsError
from support.lengths import short_and_long, some

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def log_laplace(centre: float, inverse_scale: float, outcomes: Ints) -> Floats:
    """ln of (1-a)/(1+a) * a^|k - centre| with a = exp(-inverse_scale): the discrete Laplace law."""
    a = math.exp(-inverse_scale)
    return np.asarray(math.log((1 - a) / (1 + a)) - inverse_scale * np.abs(outcomes - centre))


def noisy_count(inverse_scale: Callable[[Floats], float], window: int) -> Callable[[Floats], tuple[Ints, Floats]]:
    outcomes = np.arange(-window, window + 1)
    return lambda values: (outcomes, log_laplace(np.nansum(values), inverse_scale(values), outcomes))


def count_by_cost(values: Floats, epsilons: list[float], half: float) -> tuple[Ints, Floats]:
    """The exponential mechanism of a count: cost of r = the smallest epsilons that turn the count into r."""
    ones = sorted(e for x, e in zip(values, epsilons, strict=True) if x == 1)
    zeros = sorted(e for x, e in zip(values, epsilons, strict=True) if x != 1)
    outcomes = np.arange(len(values) + 1)
    costs = [math.fsum(zeros[: r - len(ones)] if r > len(ones) else ones[: len(ones) - r]) for r in outcomes]
    weights = np.exp(-half * np.array(costs))
    return outcomes, weights / weights.sum()


# --- enumerate_losses ---------------------------------------------------------------------------------------


def test_the_sign_of_a_zero_is_an_outcome() -> None:
    """Equal as numbers, and yet seen."""
    told = enumerate_losses(lambda values: ([-0.0 if values[0] == 1 else 0.0], [1.0]), all_datasets((0, 1), 1), [0.1])
    assert not told.holds
    same = enumerate_losses(lambda values: ([0 if values[0] == 1 else 0.0], [1.0]), all_datasets((0, 1), 1), [0.1])
    assert same.holds


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_discrete_laplace_is_accepted_at_its_scale_and_refused_ten_percent_below(epsilon: float) -> None:
    window = math.ceil(20 / epsilon)
    right = noisy_count(lambda values: epsilon, window)
    small = noisy_count(lambda values: epsilon / 0.9, window)

    verdict = enumerate_losses(right, all_datasets((0, 1), 3), [epsilon] * 3, domain=(0, 1), log=True)
    assert verdict.holds
    assert verdict.pairs == 8 * 3
    assert verdict.worst is not None
    assert verdict.worst.ratio == pytest.approx(1, abs=1e-9)

    refused = enumerate_losses(small, all_datasets((0, 1), 3), [epsilon] * 3, domain=(0, 1), log=True)
    assert not refused.holds
    assert refused.worst is not None
    assert refused.worst.loss == pytest.approx(epsilon / 0.9)


def test_far_tails_do_not_underflow_into_impossibility() -> None:
    verdict = enumerate_losses(noisy_count(lambda values: 1.0, 2000), [(0,), (1,)], [1.0], log=True)
    assert verdict.holds  # exp(-2000) is 0 as a float


def test_noise_calibrated_to_the_data_instead_of_the_roster_is_refused() -> None:
    epsilons = np.array([0.1, 1.0, 1.0])
    from_data = noisy_count(lambda values: float(epsilons[~np.isnan(values)].min()), 300)
    from_roster = noisy_count(lambda values: float(epsilons.min()), 300)
    assert enumerate_losses(from_roster, all_datasets((0, 1), 3), epsilons.tolist(), log=True).holds

    refused = enumerate_losses(from_data, all_datasets((0, 1), 3), epsilons.tolist(), log=True)
    assert not refused.holds
    assert refused.worst is not None
    assert refused.worst.person == 0  # the strict person, whose joining changes the scale
    assert refused.worst.loss > 200  # grows with the window: unbounded
    assert math.isnan(refused.worst.neighbour[0])


def sampled_twice(same_key: bool, keep: float, threshold: float) -> Callable[[Floats], tuple[list[object], Floats]]:
    """Two threshold-DP noisy counts of a sample of one person, with one coin for both or one for each."""
    outcomes = np.arange(-25, 27)

    def distribution(values: Floats) -> tuple[list[object], Floats]:
        present = 0.0 if np.isnan(values[0]) else float(values[0])
        without = np.exp(log_laplace(0, threshold, outcomes))
        kept = np.exp(log_laplace(present, threshold, outcomes))
        if same_key:
            joint = (1 - keep) * np.outer(without, without) + keep * np.outer(kept, kept)
        else:
            once = (1 - keep) * without + keep * kept
            joint = np.outer(once, once)
        return list(itertools.product(outcomes.tolist(), repeat=2)), joint.ravel()

    return distribution


def test_a_sample_drawn_with_the_same_key_twice_is_refused() -> None:
    keep = math.expm1(0.1) / math.expm1(1)
    fresh = enumerate_losses(sampled_twice(False, keep, 1), all_datasets((0, 1), 1), [0.2])
    assert fresh.holds
    assert fresh.worst is not None
    assert fresh.worst.ratio == pytest.approx(1, abs=1e-6)

    reused = enumerate_losses(sampled_twice(True, keep, 1), all_datasets((0, 1), 1), [0.2])
    assert not reused.holds
    assert reused.worst is not None
    assert reused.worst.loss == pytest.approx(math.log1p(keep * math.expm1(2)))  # .330, not .2
    assert reused.worst.loss == pytest.approx(0.330, abs=5e-4)


@pytest.mark.parametrize("epsilons", [[1.0] * 4, [0.1, 1.0, 0.5, 1.0, 0.3]])
def test_an_exponential_mechanism_without_its_half_is_refused(epsilons: list[float]) -> None:
    def verdict(half: float) -> Verdict:
        return enumerate_losses(
            lambda values: count_by_cost(values, epsilons, half),
            all_datasets((0, 1), len(epsilons)),
            epsilons,
            domain=(0, 1),
            neighbors="replace",
        )

    assert verdict(0.5).holds
    assert not verdict(1.0).holds


def test_an_outcome_possible_on_one_side_only_is_an_infinite_loss() -> None:
    def exact(values: Floats) -> tuple[list[str], list[float]]:
        return (["someone", "nobody"], [0.5, 0.5]) if np.nansum(values) else (["nobody"], [1.0])

    verdict = enumerate_losses(exact, [(0, 1)], [5.0, 5.0])
    assert verdict.worst is not None
    assert (verdict.worst.person, verdict.worst.loss, verdict.worst.outcome) == (1, math.inf, "someone")
    assert not verdict.holds
    assert "REFUTED" in str(verdict)
    assert "(0, 1) against (0, absent)" in str(verdict)


@pytest.mark.parametrize("flipped", [False, True])
def test_both_directions_count(flipped: bool) -> None:
    """P/Q is at most 1.2 for every outcome, Q/P is 9 for one of them, or the other way round."""

    def lopsided(values: Floats) -> tuple[list[int], list[float]]:
        return [0, 1], [0.9, 0.1] if np.isnan(values[0]) == flipped else [0.99, 0.01]

    verdict = enumerate_losses(lopsided, [(1,)], [1.0])
    assert verdict.worst is not None
    assert verdict.worst.loss == pytest.approx(math.log(10))
    assert verdict.worst.outcome == 1
    assert not verdict.holds


def test_the_verdict_names_the_worst_pair_by_its_share_of_the_persons_own_epsilon() -> None:
    weights = np.array([1.0, 0.5, 1.0])  # the third person's weight is meant to be .3
    outcomes = np.arange(-60, 61)

    def weighted(values: Floats) -> tuple[Ints, Floats]:
        centre = np.nansum(weights * values)
        logs = -np.abs(outcomes - centre)
        return outcomes, logs - np.logaddexp.reduce(logs)

    verdict = enumerate_losses(weighted, [(0, 0, 0), (4, 4, 4)], [4.0, 4.0, 1.2], log=True, tolerance=1e-6)
    assert not verdict.holds
    assert verdict.worst is not None
    worst = verdict.worst
    assert (worst.person, worst.data) == (2, (4, 4, 4))
    assert worst.neighbour[:2] == (4, 4)
    assert math.isnan(worst.neighbour[2])
    assert worst.ratio == pytest.approx(4 / 1.2, rel=1e-6)
    assert str(verdict).startswith("REFUTED on 6 pairs: person 2 loses 4 of epsilon 1.2 (3.333 times)")


def test_public_people_are_not_checked() -> None:
    def published(values: Floats) -> tuple[list[float], list[float]]:
        return [float(values[1])], [1.0]

    shown = enumerate_losses(published, all_datasets((0, 1), 2), [0.1, math.inf])
    assert shown.holds
    assert shown.pairs == 4
    assert shown.worst is not None
    assert shown.worst.loss == 0
    nothing = enumerate_losses(published, all_datasets((0, 1), 2), [math.inf, math.inf])
    assert nothing == Verdict(None, 0, False)
    assert "nothing was checked" in str(nothing)
    assert not enumerate_losses(published, all_datasets((0, 1), 2), [math.inf, 0.1]).holds


def test_an_epsilon_of_zero_allows_nothing() -> None:
    def constant(values: Floats) -> tuple[list[int], list[float]]:
        return [0], [1.0]

    assert enumerate_losses(constant, [(0,), (1,)], [0.0], tolerance=0).holds
    leaky = enumerate_losses(noisy_count(lambda values: 0.1, 300), [(1,)], [0.0], tolerance=0, log=True)
    assert not leaky.holds
    assert leaky.worst is not None
    assert leaky.worst.ratio == math.inf
    assert PersonLoss(0, 0.0, 0.0, (0,), (1,), 0).ratio == 0


def test_replacing_costs_twice_what_absence_costs() -> None:
    spread = noisy_count(lambda values: 1.0, 60)
    people = [(-1,), (1,)]
    assert enumerate_losses(spread, people, [1.0], log=True).holds
    swapped = enumerate_losses(spread, people, [1.0], domain=(-1, 1), neighbors="replace", log=True)
    assert swapped.pairs == 2
    assert swapped.worst is not None
    assert swapped.worst.ratio == pytest.approx(2)
    with_absence = enumerate_losses(spread, people, [2.0], domain=(-1, 1, ABSENT), neighbors="replace", log=True)
    assert with_absence.pairs == 4
    assert with_absence.holds


def test_someone_already_absent_has_no_absent_neighbour() -> None:
    assert enumerate_losses(noisy_count(lambda values: 1.0, 60), [(ABSENT, 1)], [1.0, 1.0], log=True).pairs == 1


def test_repeated_and_undefined_outcomes_are_one_event_each() -> None:
    def split(values: Floats) -> tuple[Floats, list[float]]:
        if np.isnan(values[0]):
            return np.array([1.0, np.nan]), [0.5, 0.5]
        return np.array([np.nan, 1.0, 1.0]), [0.5, 0.2, 0.3]

    assert enumerate_losses(split, [(1,)], [0.0]).holds


@pytest.mark.parametrize(
    ("probabilities", "log", "message"),
    [
        ([0.5, 0.4], False, "add up to 1"),
        ([0.5, math.nan], False, "add up to 1"),
        ([-0.5, 1.5], False, "negative"),
        ([1.0], False, "one probability each"),
        ([0.5, 0.5], True, "add up to 1"),
    ],
)
def test_what_is_not_a_distribution_is_refused(probabilities: list[float], log: bool, message: str) -> None:
    with pytest.raises(EpsilonsError, match=message):
        enumerate_losses(lambda values: ([0, 1], probabilities), [(1,)], [1.0], log=log)


def coin_of(loss: float) -> Callable[[Floats], tuple[list[str], list[float]]]:
    """A coin that is fair for a person who is absent; its tails tell that much of one who is there, its heads less."""
    tails = 0.5 * math.exp(-loss)
    return lambda values: (["heads", "tails"], [0.5, 0.5] if np.isnan(values[0]) else [1 - tails, tails])


@pytest.mark.parametrize("epsilon", [1e-10, 1e-9, 1e-6])
def test_the_tolerance_is_a_part_of_epsilon_however_small_it_is(epsilon: float) -> None:
    assert enumerate_losses(coin_of(epsilon), [(1,)], [epsilon]).holds
    for factor in (4.8, 1.1, 1.001):
        refused = enumerate_losses(coin_of(factor * epsilon), [(1,)], [epsilon])
        assert not refused.holds
        assert refused.worst is not None
        assert refused.worst.ratio == pytest.approx(factor, rel=1e-4)


def test_the_last_bits_of_a_far_tail_are_no_loss() -> None:
    """At a billionth the rounding of logarithms near -20 is more than a billionth of epsilon; a tenth more is seen."""
    honest, short = (noisy_count(lambda values, rate=rate: rate, 4) for rate in (1e-9, 1.1e-9))

    def whole(law: Callable[[Floats], tuple[Ints, Floats]]) -> Callable[[Floats], tuple[list[object], Floats]]:
        def distribution(values: Floats) -> tuple[list[object], Floats]:
            outcomes, logs = law(values)
            return [*outcomes.tolist(), "beyond"], np.append(logs, math.log1p(-np.exp(logs).sum()))

        return distribution

    assert enumerate_losses(whole(honest), all_datasets((0, 1), 2), [1e-9] * 2, log=True).holds
    assert not enumerate_losses(whole(short), all_datasets((0, 1), 2), [1e-9] * 2, log=True).holds


def with_a_secret(told: float, otherwise: float) -> Callable[[Floats], tuple[list[str], list[float]]]:
    """A fair coin, of which some mass is kept back: so much for a person who is there, so much for one who is not."""

    def distribution(values: Floats) -> tuple[list[str], list[float]]:
        kept = otherwise if np.isnan(values[0]) else told
        return ["heads", "tails"], [(1 - kept) / 2] * 2

    return distribution


def test_mass_that_is_not_listed_is_an_outcome_of_its_own() -> None:
    for told, otherwise in ((5e-7, 0.0), (0.0, 5e-7), (5e-7, 1e-7)):
        leaky = enumerate_losses(with_a_secret(told, otherwise), [(1,)], [1.0])
        assert not leaky.holds
        assert leaky.worst is not None
        assert leaky.worst.outcome == "(not listed)"
        assert leaky.worst.loss > 1.6
        assert "REFUTED on 1 pairs, up to a delta of 5e-07 that is not listed" in str(leaky)


def test_a_verdict_says_with_which_delta_it_holds() -> None:
    """Both sides keep the same mass back. Nobody knows what is in it."""
    even = enumerate_losses(with_a_secret(5e-7, 5e-7), [(1,)], [1.0])
    assert even.holds
    assert even.delta == pytest.approx(5e-7, rel=1e-6)
    assert str(even).startswith("holds on 1 pairs, up to a delta of 5e-07 that is not listed: person 0 loses 0 of")
    window = enumerate_losses(noisy_count(lambda values: 0.5, 40), all_datasets((0, 1), 2), [0.5] * 2, log=True)
    assert window.holds
    assert 1e-10 < window.delta < 1e-6
    all_of_it = enumerate_losses(noisy_count(lambda values: 0.5, 100), all_datasets((0, 1), 2), [0.5] * 2, log=True)
    assert all_of_it.holds
    assert all_of_it.delta == 0
    assert "delta" not in str(all_of_it)


def test_more_than_rounding_above_one_is_no_distribution() -> None:
    with pytest.raises(EpsilonsError, match="add up to 1"):
        enumerate_losses(with_a_secret(-5e-7, -5e-7), [(1,)], [1.0])
    with pytest.raises(EpsilonsError, match="add up to 1"):
        enumerate_losses(with_a_secret(2e-6, 2e-6), [(1,)], [1.0])


def test_a_pair_is_left_out_only_if_its_other_side_was_compared() -> None:
    """Nobody may become 0 here, so of (1) nothing is compared with (0); of (0) it is."""

    def told(values: Floats) -> tuple[list[float], list[float]]:
        return [0.0, 1.0], [0.9, 0.1] if values[0] == 0 else [0.1, 0.9]

    for datasets in ([(1,), (0,)], [(0,), (1,)]):
        verdict = enumerate_losses(told, datasets, [1.0], domain=(1, 2), neighbors="replace")
        assert verdict.pairs == 3
        assert verdict.worst is not None
        assert verdict.worst.loss == pytest.approx(math.log(9))


def test_requests_that_would_check_nothing_are_refused() -> None:
    fair = noisy_count(lambda values: 1.0, 40)
    used_up = all_datasets((0, 1), 1)
    list(used_up)
    with pytest.raises(EpsilonsError, match="no datasets"):
        enumerate_losses(fair, used_up, [1.0], log=True)
    with pytest.raises(EpsilonsError, match="roster"):
        enumerate_losses(fair, [(0, 1)], [1.0], log=True)
    with pytest.raises(EpsilonsError, match="domain"):
        enumerate_losses(fair, [(0,)], [1.0], neighbors="replace", log=True)
    with pytest.raises(EpsilonsError, match="neighbors"):
        enumerate_losses(fair, [(0,)], [1.0], neighbors="remove", log=True)  # type: ignore[arg-type]
    for wrong in (-1.0, math.nan):
        with pytest.raises(EpsilonsError, match="epsilon"):
            enumerate_losses(fair, [(0,)], [wrong], log=True)


# --- bound_loss ---------------------------------------------------------------------------------------------

Draw = Callable[[int], NDArray[np.int64]]


def discrete_laplace(rng: np.random.Generator, inverse_scale: float, size: int) -> Ints:
    p = -math.expm1(-inverse_scale)
    return rng.geometric(p, size) - rng.geometric(p, size)


def laplace_pair(seed: int, inverse_scale: float) -> tuple[Draw, Draw]:
    rng = np.random.default_rng(seed)
    return (
        lambda size: discrete_laplace(rng, inverse_scale, size),
        lambda size: 1 + discrete_laplace(rng, inverse_scale, size),
    )


def count_pair(seed: int, half: float) -> tuple[Draw, Draw]:
    """The exponential mechanism of a count at epsilon 1 on all zeros, and with one person flipped."""
    rng = np.random.default_rng(seed)

    def on(ones: int) -> Draw:
        outcomes, p = count_by_cost(np.array([1.0] * ones + [0.0] * (8 - ones)), [1.0] * 8, half)
        return lambda size: rng.choice(outcomes, size, p=p)

    return on(0), on(1)


def sample_pair(seed: int, same_key: bool) -> tuple[Draw, Draw]:
    """One person, absent or present: two noisy counts of a sample (epsilon .5, threshold 2) in one number."""
    rng = np.random.default_rng(seed)
    keep = math.expm1(0.5) / math.expm1(2)

    def draw(size: int, present: bool) -> Ints:
        coins = rng.random((2, size)) < keep
        kept = [coins[0], coins[0 if same_key else 1]]
        first, second = (present * k + np.clip(discrete_laplace(rng, 2, size), -30, 30) for k in kept)
        return np.asarray(first * 100 + second)

    return (lambda size: draw(size, False)), (lambda size: draw(size, True))


@pytest.mark.statistical
@pytest.mark.parametrize("draws", short_and_long(5_000, 50_000))
def test_draws_from_the_truth_are_not_refuted(draws: int) -> None:
    pairs = [(laplace_pair(seed, 0.5), 0.5) for seed in range(30)]
    pairs += [(count_pair(seed, 0.5), 1.0) for seed in range(10)]
    refuted = sum(bound_loss(*pair, draws=draws).refutes(epsilon) for pair, epsilon in pairs)
    assert refuted <= 0.05 * len(pairs)


@pytest.mark.statistical
@pytest.mark.parametrize("draws", short_and_long(1_000, 4_000))
def test_the_bound_is_as_rarely_wrong_as_it_says_even_at_low_confidence(draws: int) -> None:
    """At 90% the bound may pass the true loss once in ten times; if the event were tested on the draws that
    chose it, it would do so far more often. With one in ten, 60 trials exceed 13 with probability .002.
    """
    wrong = sum(bound_loss(*laplace_pair(seed, 0.5), draws=draws, confidence=0.9).refutes(0.5) for seed in range(60))
    assert wrong <= 13


@pytest.mark.statistical
@pytest.mark.parametrize("seed", some(range(3), lambda seed: seed == 0))
def test_a_scale_ten_percent_small_is_refuted_by_a_million_draws(seed: int) -> None:
    bound = bound_loss(*laplace_pair(seed, 0.5 / 0.9))
    assert (bound.draws, bound.confidence) == (1_000_000, 0.999)
    assert bound.refutes(0.5)
    assert not bound.refutes(0.5 / 0.9)
    assert bound.lower > 0.53  # most of .5556 is seen


@pytest.mark.statistical
def test_a_continuous_scale_ten_percent_small_is_refuted_too() -> None:
    rng = np.random.default_rng(5)
    bound = bound_loss(lambda size: rng.laplace(0, 1.8, size), lambda size: rng.laplace(1, 1.8, size))
    assert bound.refutes(0.5)
    assert not bound.refutes(0.5 / 0.9)


@pytest.mark.statistical
def test_the_missing_half_and_the_reused_key_are_refuted() -> None:
    assert not bound_loss(*count_pair(1, 0.5), draws=200_000).refutes(1)
    assert bound_loss(*count_pair(1, 1.0), draws=200_000).refutes(1)
    assert not bound_loss(*sample_pair(2, same_key=False), draws=400_000).refutes(1)
    assert bound_loss(*sample_pair(2, same_key=True), draws=400_000).refutes(1)


@pytest.mark.statistical
@pytest.mark.parametrize("swap", [False, True])
def test_either_side_may_be_the_likelier_one(swap: bool) -> None:
    rng = np.random.default_rng(3)
    often: Draw = lambda size: (rng.random(size) < 0.99).astype(np.int64)  # noqa: E731
    rarely: Draw = lambda size: (rng.random(size) < 0.9).astype(np.int64)  # noqa: E731
    bound = bound_loss(rarely, often, draws=100_000) if swap else bound_loss(often, rarely, draws=100_000)
    assert 2 < bound.lower < math.log(10)
    assert bound.event == f"X <= 0, likelier by draw_{'one' if swap else 'other'}"


@pytest.mark.statistical
def test_a_rare_single_value_among_continuous_ones_is_found() -> None:
    rng = np.random.default_rng(4)

    def draw(size: int, chance: float) -> Floats:
        return np.where(rng.random(size) < chance, 0.125, rng.normal(size=size))

    bound = bound_loss(lambda size: draw(size, 0.001), lambda size: draw(size, 0), draws=200_000)
    assert bound.event == "X = 0.125, likelier by draw_one"
    assert bound.lower > 1


@pytest.mark.statistical
def test_a_thin_far_tail_is_found() -> None:
    rng = np.random.default_rng(6)

    def draw(size: int, chance: float) -> Floats:
        return rng.normal(size=size) + np.where(rng.random(size) < chance, 100, 0)

    bound = bound_loss(lambda size: draw(size, 0.001), lambda size: draw(size, 0), draws=200_000)
    assert bound.lower > 1
    assert "< X" in bound.event.replace("<=", "<")


def test_equal_and_constant_draws_show_no_loss() -> None:
    zeros: Draw = lambda size: np.zeros(size, dtype=np.int64)  # noqa: E731
    assert bound_loss(zeros, zeros, draws=1000).lower == 0
    assert bound_loss(zeros, lambda size: zeros(size) + 1, draws=1000).lower > math.log(50)
    assert bound_loss(zeros, zeros, draws=2).lower == 0


def test_a_bound_reads_as_a_sentence() -> None:
    bound = LossBound(0.54, "X <= 3, likelier by draw_one", 1000, 0.999)
    assert (
        str(bound) == "the loss is at least 0.54 (0.999 confidence, 1000 draws of each): X <= 3, likelier by draw_one"
    )
    assert bound.refutes(0.5)
    assert not bound.refutes(0.54)


def test_draws_that_cannot_be_judged_are_refused() -> None:
    normal = np.random.default_rng(1).normal
    fine: Callable[[int], Floats] = lambda size: normal(size=size)  # noqa: E731
    with pytest.raises(EpsilonsError, match="shape"):
        bound_loss(lambda size: normal(size=(size, 2)), fine, draws=10)
    with pytest.raises(EpsilonsError, match="NaN"):
        bound_loss(lambda size: np.full(size, np.nan), fine, draws=10)
    with pytest.raises(EpsilonsError, match="draws"):
        bound_loss(fine, fine, draws=1)
    with pytest.raises(EpsilonsError, match="confidence"):
        bound_loss(fine, fine, draws=10, confidence=1)


# --- clopper_pearson ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("trials", [1, 2, 10, 1000, 500_000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.9995])
def test_clopper_pearson_equals_the_beta_quantile(trials: int, confidence: float) -> None:
    for successes in sorted({0, 1, 2, trials // 7, trials // 2, trials - 1, trials}):
        if not 0 <= successes <= trials:
            continue
        lower = stats.beta.ppf(1 - confidence, successes, trials - successes + 1) if successes else 0.0
        upper = stats.beta.ppf(confidence, successes + 1, trials - successes) if successes < trials else 1.0
        assert clopper_pearson(successes, trials, confidence, "lower") == pytest.approx(lower, rel=1e-9, abs=0)
        assert clopper_pearson(successes, trials, confidence, "upper") == pytest.approx(upper, rel=1e-9, abs=0)


@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_clopper_pearson_covers_as_promised_on_every_enumerated_binomial(confidence: float) -> None:
    for trials in (1, 3, 12):
        lower = np.array([clopper_pearson(k, trials, confidence, "lower") for k in range(trials + 1)])
        upper = np.array([clopper_pearson(k, trials, confidence, "upper") for k in range(trials + 1)])
        assert np.all(np.diff(lower) > 0)
        assert np.all(np.diff(upper) > 0)
        np.testing.assert_allclose(lower, 1 - upper[::-1], atol=1e-11)
        # The coverage is worst just beside a bound, and there it is the confidence itself: nothing is wasted.
        worst = 1.0
        for p in [*np.linspace(0.001, 0.999, 201), *(lower[1:] - 1e-10), *(upper[:-1] + 1e-10)]:
            mass = stats.binom.pmf(np.arange(trials + 1), trials, p)
            above, below = mass[lower <= p].sum(), mass[upper >= p].sum()
            assert above >= confidence - 1e-9
            assert below >= confidence - 1e-9
            worst = min(worst, above, below)
        assert worst == pytest.approx(confidence, abs=1e-6)


def test_clopper_pearson_takes_its_turn_at_the_precision_that_all_threads_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a bound computed beside a draw would set the draw's precision, or have its own set."""
    import flint

    turns: list[int] = []

    class Turn:
        def __enter__(self) -> None:
            turns.append(flint.ctx.prec)

        def __exit__(self, *_: object) -> None:
            turns.append(flint.ctx.prec)

    before = flint.ctx.prec
    monkeypatch.setattr("epsilons.noise.entropy._precision_lock", Turn())
    clopper_pearson(3, 10, 0.95, "lower")
    assert turns == [before, before]


def test_clopper_pearson_refuses_impossible_counts() -> None:
    for successes, trials, confidence in [(-1, 5, 0.9), (6, 5, 0.9), (0, 0, 0.9), (1, 5, 0.0), (1, 5, 1.0)]:
        with pytest.raises(EpsilonsError, match="not allowed"):
            clopper_pearson(successes, trials, confidence, "lower")
    with pytest.raises(EpsilonsError, match="side"):
        clopper_pearson(1, 5, 0.9, "both")  # type: ignore[arg-type]


def test_a_tolerance_is_not_negative_and_true_is_not_one() -> None:
    def truth(values: Floats) -> tuple[list[object], list[float]]:
        return [True if values[0] == 1 else 1], [1.0]

    for tolerance in (-1, -1e-12, math.nan, math.inf):
        with pytest.raises(EpsilonsError, match="tolerance"):
            enumerate_losses(truth, [(1.0,)], [1.0], tolerance=tolerance)
    verdict = enumerate_losses(truth, [(1.0,)], [1.0])
    assert not verdict.holds
    assert verdict.worst is not None
    assert verdict.worst.loss == math.inf

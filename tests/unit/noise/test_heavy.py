"""Heavy-tailed noise on a grid: against the integral of its density, and to the last bit of its tails."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from epsilons.noise import heavy
from epsilons.noise.entropy import working_precision
from epsilons.noise.pmf import heavy_log_probabilities
from epsilons.testing import seeded

GAMMAS = [Fraction(2), Fraction(5, 2), Fraction(3), Fraction(4), Fraction(10)]


def density(z: float, gamma: float) -> float:
    """Normalised: the integral of 1/(1 + |z|^g) is 2 (pi/g)/sin(pi/g)."""
    return math.sin(math.pi / gamma) * gamma / (2 * math.pi) / (1 + abs(z) ** gamma)


def masses(centre: int, scale: float, gamma: float, points: int) -> list[float]:
    """The probability of each grid point by numeric integration; the ends take all that lies beyond them."""
    found = []
    for cell in range(points):
        low = -math.inf if cell == 0 else (cell - 0.5 - centre) / scale
        high = math.inf if cell == points - 1 else (cell + 0.5 - centre) / scale
        found.append(integrate.quad(density, low, high, args=(gamma,), epsabs=1e-13, limit=200)[0])
    return found


# The law ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", GAMMAS, ids=str)
@pytest.mark.parametrize(("centre", "scale"), [(3, Fraction(5, 2)), (0, Fraction(1, 3)), (7, Fraction(40))])
def test_probabilities_are_the_density_s_integrals(centre: int, scale: Fraction, gamma: Fraction) -> None:
    found = np.exp(heavy_log_probabilities(centre, scale, gamma, 8))
    np.testing.assert_allclose(found, masses(centre, float(scale), float(gamma), 8), atol=1e-11)


@pytest.mark.parametrize("gamma", GAMMAS, ids=str)
def test_the_tail_is_sharp_however_near_or_far(gamma: Fraction) -> None:
    """Far out the tail is a power of the distance, near 0 one less a multiple of it; both to the last digit."""
    g = float(gamma)
    peak = math.sin(math.pi / g) * g / math.pi  # twice the density at 0
    with working_precision(256):
        for exponent in (8, 15, 30):
            z = Fraction(10**exponent)
            assert float(heavy.tail(z, gamma)) == pytest.approx(peak / (g - 1) * float(z) ** (1 - g), rel=1e-12)
            assert float(1 - heavy.tail(1 / z, gamma)) == pytest.approx(peak / float(z), rel=1e-12)
            for ball in (heavy.tail(z, gamma), heavy.tail(1 / z, gamma)):
                assert float(ball.rad()) < 2.0**-150


@pytest.mark.parametrize("scale", [Fraction(1, 2**70), Fraction(1), Fraction(2**90)])
def test_log_probabilities_add_up_at_every_scale(scale: Fraction) -> None:
    for centre in (0, 2, 4):
        logs = heavy_log_probabilities(centre, scale, Fraction(3), 5)
        assert np.isfinite(logs).all()
        assert np.exp(logs).sum() == pytest.approx(1, abs=1e-12)


def test_gamma_two_is_a_cauchy_distribution() -> None:
    with working_precision(128):
        for z in (Fraction(1, 7), Fraction(1), Fraction(9, 2), Fraction(1000)):
            assert float(heavy.tail(z, Fraction(2))) == pytest.approx(2 * stats.cauchy.sf(float(z)), rel=1e-13)


@pytest.mark.parametrize("gamma", [Fraction(3, 2), *GAMMAS, Fraction(20)], ids=str)
def test_shifts_and_stretches_change_the_log_density_by_no_more_than_stated(gamma: Fraction) -> None:
    g = float(gamma)
    z = np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 200_001)])
    slopes = g * z ** (g - 1) / (1 + z**g)
    assert slopes.max() == pytest.approx(float(heavy.steepest_slope(gamma)), rel=1e-6)
    assert slopes.max() <= heavy.steepest_slope(gamma)
    for s in (0.01, 0.5, 3.0):
        change = np.abs(s + np.log1p(z**g) - np.log1p(np.exp(g * s) * z**g))
        assert change.max() == pytest.approx(s * float(heavy.steepest_stretch(gamma)), rel=1e-2)
        assert change.max() <= s * float(heavy.steepest_stretch(gamma)) * (1 + 1e-12)


# Draws --------------------------------------------------------------------------------------------------------------

LAWS = [(3, Fraction(5, 2), Fraction(3), 8), (0, Fraction(1, 3), Fraction(2), 4), (40, Fraction(7), Fraction(5, 2), 50)]


def chi_square(cells: np.ndarray, law: np.ndarray) -> float:
    """The p-value of the goodness of fit."""
    return float(stats.chisquare(np.bincount(cells, minlength=len(law)), law / law.sum() * len(cells)).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize(("centre", "scale", "gamma", "points"), LAWS)
def test_many_draws_follow_the_law_and_not_one_with_a_scale_three_percent_off(
    centre: int, scale: Fraction, gamma: Fraction, points: int
) -> None:
    cells = heavy.draw_many_on_grid(seeded(7), centre, scale, gamma, points, 400_000)
    assert chi_square(cells, np.exp(heavy_log_probabilities(centre, scale, gamma, points))) > 1e-4
    wrong = np.exp(heavy_log_probabilities(centre, scale * Fraction(97, 100), gamma, points))
    assert chi_square(cells, wrong) < 1e-4


@pytest.mark.statistical
def test_draws_one_by_one_follow_the_law() -> None:
    centre, scale, gamma, points = LAWS[0]
    entropy = seeded(8)
    cells = np.array([heavy.draw_on_grid(entropy, centre, scale, gamma, points) for _ in range(5_000)])
    assert chi_square(cells, np.exp(heavy_log_probabilities(centre, scale, gamma, points))) > 1e-4


@pytest.mark.parametrize(("centre", "scale", "gamma", "points"), [*LAWS, (2**49, Fraction(10**9), Fraction(3), 2**50)])
def test_draws_in_bulk_are_those_one_by_one(
    tape: Callable[..., object], centre: int, scale: Fraction, gamma: Fraction, points: int
) -> None:
    words = [int(word) for word in seeded(9).words(200)]
    bulk = heavy.draw_many_on_grid(tape(*words), centre, scale, gamma, points, len(words))  # type: ignore[arg-type]
    one_by_one = [
        heavy.draw_on_grid(tape(word), centre, scale, gamma, points)  # type: ignore[arg-type]
        for word in words
    ]
    assert bulk.tolist() == one_by_one


def word_at_the_edge(distance: int, scale: Fraction, gamma: Fraction) -> int:
    """The 63 bits that T_h shares with the V on either side of it."""
    with working_precision(256):
        return int((heavy.tail(heavy.edge(distance, scale), gamma) * 2**63).floor().unique_fmpz())


def test_a_word_at_an_edge_takes_more_bits_and_both_answers_occur(tape: Callable[..., object]) -> None:
    """V and T_h share their first 63 bits: the next ones decide, low ones for the farther point."""
    scale, gamma, right = Fraction(5, 2), Fraction(3), 1 << 63
    edge = word_at_the_edge(2, scale, gamma)
    for rest, cell in ((0, 5), ((1 << 64) - 1, 4)):
        source = tape(right | edge, rest, rest)
        assert heavy.draw_on_grid(source, 3, scale, gamma, 8) == cell  # type: ignore[arg-type]
        assert source.taken > 8  # type: ignore[attr-defined]
        bulk = heavy.draw_many_on_grid(tape(right | edge, rest, rest), 3, scale, gamma, 8, 1)  # type: ignore[arg-type]
        assert bulk.tolist() == [cell]
    for word, cell in ((edge - 1, 5), (edge + 1, 4)):
        source = tape(right | word)
        assert heavy.draw_on_grid(source, 3, scale, gamma, 8) == cell  # type: ignore[arg-type]
        assert source.taken == 8  # type: ignore[attr-defined]


def test_an_edge_that_is_a_whole_number_of_bits_is_decided_too(tape: Callable[..., object]) -> None:
    """At gamma 2 and z = 1 the tail is exactly 1/2, which no precision tells from 1/2; further bits of V do."""
    half, right = 1 << 62, 1 << 63
    scale, gamma = Fraction(1, 2), Fraction(2)  # (h - 1/2)/scale = 1 for h = 1
    assert heavy.draw_on_grid(tape(right | half, 5, 5), 1, scale, gamma, 3) == 1  # type: ignore[arg-type]
    assert heavy.draw_on_grid(tape(right | (half - 1)), 1, scale, gamma, 3) == 2  # type: ignore[arg-type]


def test_no_scale_is_no_noise_and_takes_no_bits(tape: Callable[..., object]) -> None:
    source = tape()
    assert heavy.draw_on_grid(source, 3, Fraction(0), Fraction(3), 8) == 3  # type: ignore[arg-type]
    many = heavy.draw_many_on_grid(source, 3, Fraction(0), Fraction(3), 8, 4)  # type: ignore[arg-type]
    assert many.tolist() == [3, 3, 3, 3]
    assert source.taken == 0  # type: ignore[attr-defined]
    assert np.exp(heavy_log_probabilities(3, Fraction(0), Fraction(3), 8)).tolist() == [0, 0, 0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("scale", [Fraction(1, 2**70), Fraction(2**90)])
def test_extreme_scales_stay_on_the_grid(scale: Fraction) -> None:
    cells = heavy.draw_many_on_grid(seeded(1), 2, scale, Fraction(3), 5, 1_000)
    assert set(cells.tolist()) == ({2} if scale < 1 else {0, 4})


@pytest.mark.parametrize(
    ("centre", "scale", "gamma", "points"),
    [(8, 1, 3, 8), (-1, 1, 3, 8), (0, -1, 3, 8), (0, 1, 1, 8), (0, 1, Fraction(1, 2), 8)],
)
def test_nonsense_is_refused(centre: int, scale: int, gamma: Fraction, points: int) -> None:
    for draw in (heavy.draw_on_grid, lambda *law: heavy.draw_many_on_grid(*law, 3)):
        with pytest.raises(ValueError, match="gamma is larger than 1"):
            draw(seeded(1), centre, Fraction(scale), Fraction(gamma), points)

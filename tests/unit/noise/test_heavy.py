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
from support.joint_loss import certify_loss

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


# What a shift and a stretch cost together ----------------------------------------------------------------------------

SMALL, HALF = Fraction(1, 10), Fraction(1, 2)


def measured_loss(gamma: int, shift: float, stretch: float) -> float:
    """In floats, over many z and stretches up to the largest."""
    z, worst = np.concatenate([[0.0], np.geomspace(1e-4, 1e6, 20_001)]), 0.0
    for b in np.linspace(0, stretch, 9):
        k = np.exp(b)
        narrow = b + np.log1p(((z + shift) / k) ** gamma) - np.log1p(z**gamma)
        wide = -b + np.log1p((z + shift) ** gamma) - np.log1p((z / k) ** gamma)
        worst = max(worst, float(narrow.max()), float(wide.max()))
    return worst


@pytest.mark.parametrize("gamma", [2, 3, 4, 7, 20])
@pytest.mark.parametrize("epsilon", [SMALL, HALF, Fraction(1), Fraction(3)], ids=str)
def test_intervals_certify_the_largest_shift(gamma: int, epsilon: Fraction) -> None:
    """At several stretches, by the certificate that uses no theorem; a shift that is a little larger costs more."""
    for part in (Fraction(1, 3), Fraction(2, 3)):
        stretch = part * epsilon / (gamma - 1)
        shift = heavy.largest_shift(Fraction(gamma), epsilon, stretch)
        # For gamma 2 the shift is exact: intervals need a little room.
        assert certify_loss(gamma, shift * (Fraction(999, 1000) if gamma == 2 else 1), stretch, epsilon)
        room = 1.001 if gamma == 2 else 1 + 0.05 * float(epsilon) ** 2 + 0.001
        if epsilon <= 1:
            assert measured_loss(gamma, float(shift) * room, float(stretch)) > epsilon
            assert not certify_loss(gamma, shift * Fraction(room), stretch, epsilon)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(1, 50), Fraction(2), Fraction(10**6)], ids=str)
def test_a_shift_alone_and_a_stretch_alone(epsilon: Fraction) -> None:
    """Nothing is left of the shift once the stretch has it all; a tiny stretch leaves the whole slope's share."""
    for gamma in (2, 3, 20):
        assert heavy.largest_shift(Fraction(gamma), epsilon, epsilon / (gamma - 1)) == 0
        alone = heavy.largest_shift(Fraction(gamma), epsilon, epsilon / 10**9)
        slope = (gamma - 1) ** ((gamma - 1) / gamma)
        if gamma > 2 or epsilon < 1:
            assert float(alone) == pytest.approx(float(epsilon) / slope, rel=1e-3)
        assert alone.denominator.bit_length() < 200
    with pytest.raises(ValueError, match="2 or more"):
        heavy.largest_shift(Fraction(3, 2), epsilon, epsilon / 2)


@pytest.mark.parametrize("gamma", [3, 4, 20])
def test_the_sum_of_both_bounds_allows_less(gamma: int) -> None:
    """Nissim et al. 2007 add (g-1)^((g-1)/g) alpha and (g-1) beta up; planted as alpha's double it would be refuted."""
    epsilon, stretch = Fraction(1), Fraction(1, 2 * (gamma - 1))
    summed = Fraction(0.5 / (gamma - 1) ** ((gamma - 1) / gamma))
    shift = heavy.largest_shift(Fraction(gamma), epsilon, stretch)
    assert shift > 1.01 * summed
    assert certify_loss(gamma, summed, stretch, epsilon)
    assert not certify_loss(gamma, 2 * summed, stretch, epsilon)


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

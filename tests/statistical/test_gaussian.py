"""Chi-square tests of the discrete Gaussian: the truth is accepted, planted bugs are rejected; seeds repeat them."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2_contingency

from epsilons.noise import discrete_gaussian, discrete_gaussian_many
from epsilons.noise.pmf import gaussian_log_normaliser
from epsilons.testing import seeded
from statistical.test_noise import ACCEPT, REJECT, SHORT, SIZES, Recorder, p_value
from support.lengths import short_and_long

pytestmark = pytest.mark.statistical

VARIANCES = [Fraction(1, 4), Fraction(22, 7), Fraction(10_000)]
#: A standard deviation 5% small.
SMALL = Fraction(95, 100) ** 2


def gaussian_p_value(draws: NDArray[np.int64], variance: Fraction) -> float:
    """Cells -reach..reach, beyond which nothing is expected."""
    reach = int(12 * float(variance) ** 0.5) + 3
    cells = np.arange(-reach, reach + 1)
    counts = np.bincount(np.clip(draws, -reach, reach) + reach, minlength=2 * reach + 1)
    return p_value(counts, np.exp(-(cells**2) / (2 * float(variance)) - gaussian_log_normaliser(variance)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("variance", VARIANCES)
def test_accepts_the_truth(variance: Fraction, size: int, record_property: Recorder) -> None:
    draws = discrete_gaussian_many(seeded(31), variance, size).astype(np.int64)
    assert gaussian_p_value(draws, variance) > ACCEPT
    record_property("size", 1)


@pytest.mark.parametrize("size", short_and_long(15_000, 200_000))
def test_one_at_a_time(size: int) -> None:
    entropy = seeded(32)
    draws = np.array([discrete_gaussian(entropy, Fraction(22, 7)) for _ in range(size)])
    assert gaussian_p_value(draws, Fraction(22, 7)) > ACCEPT


@pytest.mark.parametrize("variance", VARIANCES)
def test_rejects_a_standard_deviation_5_percent_small(variance: Fraction) -> None:
    planted = discrete_gaussian_many(seeded(31), variance * SMALL, SHORT).astype(np.int64)
    assert gaussian_p_value(planted, variance) < REJECT


def test_rejects_a_rounded_float_gaussian() -> None:
    """Rounding moves mass between cells: of narrow noise that shows (and any float leaks through its gaps)."""
    planted = np.rint(np.random.default_rng(33).normal(0, 0.5, SHORT)).astype(np.int64)
    assert gaussian_p_value(planted, Fraction(1, 4)) < REJECT


def test_rejects_a_coin_that_is_left_out() -> None:
    """Keeping every proposal leaves a discrete Laplace."""
    from epsilons.noise import discrete_laplace_many

    planted = discrete_laplace_many(seeded(31), Fraction(1, 101), SHORT).astype(np.int64)
    assert gaussian_p_value(planted, Fraction(10_000)) < REJECT


@pytest.mark.parametrize("size", short_and_long(50_000, 100_000))
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_agrees_with_opendp(scale: float, size: int) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = np.array(dp.m.make_gaussian(*space, scale=scale)([0] * size))

    def agreement(variance: Fraction) -> float:
        ours = discrete_gaussian_many(seeded(34), variance, size).astype(np.int64)
        reach = int(4 * scale)
        full = np.array(
            [np.bincount(np.clip(d, -reach, reach) + reach, minlength=2 * reach + 1) for d in (ours, theirs)]
        )
        return float(chi2_contingency(full[:, full.sum(axis=0) >= 10]).pvalue)

    # Their draws have no seed: a false alarm once in a million runs.
    assert agreement(Fraction(scale) ** 2) > 1e-6
    assert agreement(Fraction(scale) ** 2 * Fraction(8, 10)) < 1e-9


def test_the_number_of_attempts_does_not_tell_the_value() -> None:
    """Words read against the size of the value: independent; a loop that runs as far as the value is not."""
    entropy, pairs = seeded(35), []
    counted = 0

    class Counting(type(entropy)):  # type: ignore[misc]
        def bytes(self, n: int) -> bytes:
            nonlocal counted
            counted += n
            return super().bytes(n)

    source = Counting(key=bytes(32))
    for _ in range(20_000):
        counted = 0
        value = abs(discrete_gaussian(source, Fraction(100)))
        pairs.append((counted, value))
    reads, values = np.array(pairs).T

    def independence(reads: NDArray[np.int64]) -> float:
        rows = np.minimum(reads // reads.min(), 4)
        table = np.histogram2d(rows, np.minimum(values // 4, 5), bins=[np.arange(0.5, 5), np.arange(-0.5, 6)])[0]
        return float(chi2_contingency(table).pvalue)

    assert independence(reads) > ACCEPT
    assert independence(reads + values * int(reads.min()) // 10) < REJECT


def test_the_law_has_the_loss_that_theory_says() -> None:
    """D_alpha between the noise and the noise one step on is alpha/(2 v), to the digit, at every alpha."""
    variance, cells = Fraction(22, 7), np.arange(-200, 201)
    logs = -(cells**2) / (2 * float(variance))
    moved = -((cells - 1) ** 2) / (2 * float(variance))
    for alpha in (1.5, 2, 8, 32):
        inside = alpha * logs + (1 - alpha) * moved - gaussian_log_normaliser(variance)
        loss = (log(np.exp(inside - inside.max()).sum()) + inside.max()) / (alpha - 1)
        assert loss <= alpha / (2 * float(variance)) * (1 + 1e-12)
        # One step is the worst there is: a standard deviation 5% small would pass it.
        assert loss > 0.95 * alpha / (2 * float(variance))

from collections.abc import Callable
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest

from epsilons.noise import discrete_gaussian, discrete_gaussian_many, floor_dyadic, system
from epsilons.noise.gaussian import _attempts_at
from epsilons.noise.pmf import gaussian_log_normaliser
from epsilons.testing import seeded


def test_one_draw_is_a_python_integer() -> None:
    assert type(discrete_gaussian(system(), Fraction(7, 3))) is int


def test_the_same_seed_gives_the_same_noise() -> None:
    drawn = discrete_gaussian_many(seeded(1), Fraction(100), 1000)
    assert drawn.dtype == np.int64
    assert (drawn == discrete_gaussian_many(seeded(1), Fraction(100), 1000)).all()
    assert (drawn != discrete_gaussian_many(seeded(2), Fraction(100), 1000)).any()


def test_no_draws() -> None:
    assert discrete_gaussian_many(seeded(1), Fraction(1), 0).shape == (0,)


def test_a_tiny_variance_gives_no_noise() -> None:
    assert discrete_gaussian(seeded(1), Fraction(1, 10**30)) == 0
    assert not discrete_gaussian_many(seeded(1), Fraction(1, 1000), 10_000).any()


def test_a_huge_variance_gives_python_integers() -> None:
    drawn = discrete_gaussian_many(seeded(1), Fraction(2**180, 3), 2000)
    assert drawn.dtype == np.object_
    assert all(type(value) is int for value in drawn)
    assert np.std([value / 2**90 for value in drawn]) == pytest.approx(3**-0.5, rel=0.1)


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1, 2)])
def test_a_variance_is_positive(variance: Fraction) -> None:
    with pytest.raises(ValueError, match="positive"):
        discrete_gaussian(seeded(1), variance)


@pytest.mark.parametrize("variance", [Fraction(1, 9), Fraction(1), Fraction(22, 7), Fraction(10**4)])
def test_an_attempt_leaves_the_right_law(variance: Fraction) -> None:
    """The chance of a value times that of keeping it falls as exp(-k^2/2v), for every k: Algorithm 3 as it stands."""
    plan, t = _attempts_at(variance), _attempts_at(variance).digits.inverse_scale.denominator

    def weigh(k: int) -> float:
        return -k / t + log(floor_dyadic(plan.chance(k), 900)) - 900 * log(2)

    for k in range(1, min(10 * t, 60)):
        assert weigh(k) - weigh(0) == pytest.approx(-k * k / (2 * float(variance)), rel=1e-9)


def test_every_attempt_reads_the_same_words(tape: Callable[..., object]) -> None:
    """However far out the value is: the number of bytes is a whole number of attempts."""
    variance = Fraction(50)
    digits = _attempts_at(variance).digits.count
    attempt = 8 * (2 * (digits + 1) + 1)
    seen = set()
    for start in range(300):
        entropy = tape(*(int(word) for word in seeded(start).words(4000)))
        value = discrete_gaussian(entropy, variance)  # type: ignore[arg-type]
        assert entropy.taken % attempt == 0  # type: ignore[attr-defined]
        seen.add((abs(value) > 7, entropy.taken // attempt))  # type: ignore[attr-defined]
    assert {(False, 1), (True, 1), (False, 2), (True, 2)} <= seen


def test_a_tie_is_broken_by_further_bits(tape: Callable[..., object]) -> None:
    """A word equal to the first bits of the chance decides nothing: the next words do."""
    variance = Fraction(50)
    plan = _attempts_at(variance)
    zeros = [2**64 - 1] * (2 * (plan.digits.count + 1))  # no digit is set and H is 0: the value proposed is 0
    bits = floor_dyadic(plan.chance(0), 128)
    tie, rest = bits >> 64, bits & (2**64 - 1)
    assert discrete_gaussian(tape(*zeros, tie, rest - 1), variance) == 0  # type: ignore[arg-type]
    refused = tape(*zeros, tie, rest + 1)
    discrete_gaussian(refused, variance)  # type: ignore[arg-type]
    assert refused.taken > 8 * (len(zeros) + 2)  # type: ignore[attr-defined]


@pytest.mark.parametrize("variance", [Fraction(1, 50), Fraction(99, 100), Fraction(1), Fraction(7, 2), Fraction(900)])
def test_the_normaliser_is_the_plain_sum(variance: Fraction) -> None:
    plain = sum(exp(-k * k / (2 * float(variance))) for k in range(-2000, 2001))
    assert gaussian_log_normaliser(variance) == pytest.approx(log(plain), abs=1e-12)

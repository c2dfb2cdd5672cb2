from fractions import Fraction

import numpy as np
import pytest

from epsilons.noise import discrete_laplace, discrete_laplace_many, system
from epsilons.testing import seeded


def test_one_draw_is_a_python_integer() -> None:
    assert type(discrete_laplace(system(), Fraction(1, 3))) is int


def test_the_same_seed_gives_the_same_noise() -> None:
    drawn = discrete_laplace_many(seeded(1), Fraction(1, 10), 1000)
    assert drawn.dtype == np.int64
    assert (drawn == discrete_laplace_many(seeded(1), Fraction(1, 10), 1000)).all()
    assert (drawn != discrete_laplace_many(seeded(2), Fraction(1, 10), 1000)).any()


def test_no_draws() -> None:
    assert discrete_laplace_many(seeded(1), Fraction(1), 0).shape == (0,)


def test_a_huge_inverse_scale_gives_no_noise() -> None:
    assert discrete_laplace(seeded(1), Fraction(10**30)) == 0
    assert not discrete_laplace_many(seeded(1), Fraction(10**6), 10_000).any()


def test_a_tiny_inverse_scale_gives_python_integers() -> None:
    drawn = discrete_laplace_many(seeded(1), Fraction(1, 2**90), 2000)
    assert drawn.dtype == np.object_
    assert all(type(value) is int for value in drawn)
    assert np.mean([abs(value) / 2**90 for value in drawn]) == pytest.approx(1, abs=0.1)
    single = [discrete_laplace(seeded(seed), Fraction(1, 2**90)) for seed in range(500)]
    assert np.mean([abs(value) / 2**90 for value in single]) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("inverse_scale", [Fraction(0), Fraction(-1, 2)])
def test_an_inverse_scale_is_positive(inverse_scale: Fraction) -> None:
    with pytest.raises(ValueError, match="positive"):
        discrete_laplace(seeded(1), inverse_scale)
    with pytest.raises(ValueError, match="positive"):
        discrete_laplace_many(seeded(1), inverse_scale, 3)

"""The digits of a geometric, their thresholds against another library, and the paths too rare to meet."""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from math import exp, expm1

import numpy as np
import pytest

from epsilons.noise import Entropy
from epsilons.noise.entropy import floor_dyadic
from epsilons.noise.laplace import (
    Digits,
    digits_of,
    geometric_many,
    geometrics,
    truncated_geometric,
    truncated_geometric_many,
)
from epsilons.testing import seeded

TapeMaker = Callable[..., Entropy]
SCALES = [Fraction(1, 100), Fraction(1), Fraction(7, 3), Fraction(123457, 10**9), Fraction(44), Fraction(45)]
WORD = 2**64


def geometric(entropy: Entropy, plan: Digits) -> int:
    (one,) = geometrics(entropy, plan, 1)
    return one


@pytest.mark.parametrize("inverse_scale", [*SCALES, Fraction(1, 2**90)])
def test_thresholds_agree_with_decimal(inverse_scale: Fraction) -> None:
    plan = digits_of(inverse_scale)
    with localcontext() as context:
        context.prec = 150
        s = Decimal(inverse_scale.numerator) / Decimal(inverse_scale.denominator)
        expected = [int(WORD / (1 + (2**i * s).exp())) for i in range(plan.count)]
        beyond = int(WORD * (-(2**plan.count) * s).exp())
    assert plan.thresholds.tolist() == [*expected, beyond]
    assert beyond == 0


@pytest.mark.parametrize("inverse_scale", SCALES)
def test_the_product_of_the_digits_is_the_geometric_distribution(inverse_scale: Fraction) -> None:
    plan = digits_of(inverse_scale)
    chances = [Fraction(int(threshold), WORD) for threshold in plan.thresholds[: plan.count]]
    s = float(inverse_scale)
    for k in range(min(1 << plan.count, 3000)):
        product = Fraction(1)
        for position, chance in enumerate(chances):
            product *= chance if k >> position & 1 else 1 - chance
        assert float(product) == pytest.approx(-expm1(-s) * exp(-s * k), abs=1e-15)


def test_as_few_digits_as_leave_a_negligible_rest() -> None:
    for inverse_scale in SCALES:
        plan = digits_of(inverse_scale)
        assert plan.count == 0 or inverse_scale * 2 ** (plan.count - 1) < 45 <= inverse_scale * 2**plan.count


@pytest.mark.parametrize("inverse_scale", [Fraction(0), Fraction(-1)])
def test_an_inverse_scale_is_positive(inverse_scale: Fraction) -> None:
    with pytest.raises(ValueError, match="positive"):
        digits_of(inverse_scale)


def low_words(plan: Digits) -> list[int]:
    """Words that make every digit 0 and H 0."""
    return [WORD - 1] * (plan.count + 1)


@pytest.mark.parametrize("position", [0, 3, 6])
@pytest.mark.parametrize("deeper", [-1, 1])
def test_a_word_equal_to_its_threshold_is_settled_by_further_bits(tape: TapeMaker, position: int, deeper: int) -> None:
    plan = digits_of(Fraction(1, 3))
    words = low_words(plan)
    words[position] = int(plan.thresholds[position])
    further = floor_dyadic(plan.chance(position), 128) % WORD + deeper
    expected = 1 << position if deeper < 0 else 0
    assert geometric(tape(*words, further), plan) == expected
    assert geometric_many(tape(*words, further), plan, 1).tolist() == [expected]


def test_a_word_next_to_its_threshold_is_not(tape: TapeMaker) -> None:
    plan = digits_of(Fraction(1, 3))
    thresholds = [int(threshold) for threshold in plan.thresholds[: plan.count]]
    below = tape(*(threshold - 1 for threshold in thresholds), WORD - 1)
    above = tape(*(threshold + 1 for threshold in thresholds), WORD - 1)
    assert geometric(below, plan) == 2**plan.count - 1
    assert geometric(above, plan) == 0
    assert vars(below)["taken"] == vars(above)["taken"] == 8 * (plan.count + 1)


def beyond_words(plan: Digits, deeper: int) -> tuple[int, int]:
    """The words that decide H >= 1 at its zero threshold, and the next 64 bits around the chance."""
    return 0, floor_dyadic(plan.chance(plan.count), 128) % WORD + deeper


@pytest.mark.parametrize("inverse_scale", [Fraction(1, 3), Fraction(45), Fraction(44), Fraction(1, 2**90)])
def test_digits_beyond_the_last_are_drawn_exactly(tape: TapeMaker, inverse_scale: Fraction) -> None:
    plan = digits_of(inverse_scale)
    zero, further = beyond_words(plan, -1)
    words = [*low_words(plan)[:-1], zero, further]
    once = [*words, WORD - 1]
    twice = [*words, zero, further, WORD - 1]
    assert geometric(tape(*once), plan) == 1 << plan.count
    assert geometric(tape(*twice), plan) == 2 << plan.count
    assert geometric_many(tape(*once), plan, 1).tolist() == [1 << plan.count]
    zero, further = beyond_words(plan, 1)
    assert geometric(tape(*low_words(plan)[:-1], zero, further), plan) == 0


def test_both_of_two_geometrics_reach_beyond(tape: TapeMaker) -> None:
    plan = digits_of(Fraction(1, 3))
    zero, further = beyond_words(plan, -1)
    digits = [WORD - 1] * (2 * plan.count)
    entropy = tape(*digits, zero, zero, further, WORD - 1, further, zero, further, WORD - 1)
    assert geometrics(entropy, plan, 2) == [1 << plan.count, 2 << plan.count]


def test_an_integer_that_leaves_int64_stays_exact(tape: TapeMaker) -> None:
    plan = digits_of(Fraction(45, 2**63))
    assert plan.count == 63
    zero, further = beyond_words(plan, -1)
    drawn = geometric_many(tape(*low_words(plan)[:-1], zero, further, WORD - 1), plan, 1)
    assert drawn.dtype == np.object_
    assert drawn.tolist() == [1 << 63]
    assert geometric_many(seeded(1), plan, 5).dtype == np.int64


def test_many_and_one_read_the_same_words_alike() -> None:
    for inverse_scale in [*SCALES, Fraction(1, 2**61), Fraction(1, 2**90)]:
        plan = digits_of(inverse_scale)
        assert geometric_many(seeded(4), plan, 1).tolist() == [geometric(seeded(4), plan)]


def test_the_number_of_words_does_not_depend_on_the_value(tape: TapeMaker) -> None:
    plan = digits_of(Fraction(1, 1000))
    for _ in range(50):
        entropy = tape()
        geometric(entropy, plan)
        assert vars(entropy)["taken"] == 8 * (plan.count + 1)


@pytest.mark.parametrize("bound", [2, 3, 5, 8, 9, 1000])
@pytest.mark.parametrize("inverse_scale", [Fraction(1, 50), Fraction(3), Fraction(50)])
def test_truncation_keeps_below_the_bound(inverse_scale: Fraction, bound: int) -> None:
    plan = digits_of(inverse_scale)
    many = truncated_geometric_many(seeded(2), plan, np.full(3000, bound))
    assert many.min() == 0
    assert many.max() < bound
    assert all(0 <= truncated_geometric(seeded(seed), plan, bound) < bound for seed in range(50))


def test_truncation_rejects_and_draws_again(tape: TapeMaker) -> None:
    """Bound 3 needs two digits; both ones is 3, too far; then 01."""
    plan = digits_of(Fraction(1, 50))
    one, zero = 0, WORD - 1
    assert truncated_geometric(tape(one, one, one, zero), plan, 3) == 1
    assert truncated_geometric_many(tape(one, one, one, zero), plan, np.array([3])).tolist() == [1]


def test_truncation_far_beyond_the_digits_reaches_them(tape: TapeMaker) -> None:
    plan = digits_of(Fraction(44))
    zero, further = beyond_words(plan, -1)
    words = (WORD - 1, zero, further, WORD - 1)
    assert truncated_geometric(tape(*words), plan, 1000) == 2
    assert truncated_geometric_many(tape(*words), plan, np.array([1000])).tolist() == [2]


def test_a_small_bound_beside_a_large_one_is_not_drawn_for_ever(tape: TapeMaker) -> None:
    """Each draw keeps only the digits its own bound needs, or a bound of 2 would reject nearly everything."""
    entropy = tape()
    truncated_geometric_many(entropy, digits_of(Fraction(1, 2**40)), np.tile([2, 2**30], 500))
    assert vars(entropy)["taken"] == 8 * 30 * 1000


def test_truncation_of_a_mixture_of_bounds() -> None:
    bounds = np.tile([1, 2, 7, 2**40, 2**62 + 1], 400)
    for inverse_scale in (Fraction(1, 50), Fraction(1, 2**70)):
        drawn = truncated_geometric_many(seeded(2), digits_of(inverse_scale), bounds)
        assert (drawn < bounds).all()
        assert (drawn >= 0).all()
        assert (drawn[bounds == 1] == 0).all()

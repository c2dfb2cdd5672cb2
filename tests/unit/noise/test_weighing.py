"""Integer masses: never above the truth, and the truth never above them by more than their slack."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from epsilons.noise.entropy import working_precision
from epsilons.noise.weighing import Scales

RUNS = [(0, 1, 0), (3, 10, 0), (3, 4, 0), (7, 20, 2), (9, 1, 5), (2, 1000, 1), (10**6, 5, 1), (-4, 3, 1)]


@pytest.mark.parametrize("bits", [1, 3, 10, 64])
@pytest.mark.parametrize("unit", [Fraction(1, 2), Fraction(1, 10**4)])
def test_the_truth_lies_between_the_mass_and_its_slack(bits: int, unit: Fraction) -> None:
    scales = Scales(unit, reference=1, fraction_bits=bits)
    for cut in (slice(0, 3), slice(3, None)):
        scales.add(*zip(*RUNS[cut], strict=True))
    with localcontext() as context:
        context.prec = 60
        rate = Decimal(unit.numerator) / Decimal(unit.denominator)
        truth, outcomes = Decimal(0), 0
        for low, slack, (cost, count, slope) in zip(scales.lows, scales.slacks, RUNS, strict=True):
            truth += sum((-(cost - 1 + i * slope) * rate).exp() for i in range(count)) * 2**bits
            outcomes += count
            assert low <= truth <= low + slack
            assert slack <= outcomes


@pytest.mark.parametrize("cost", [0, 1, 2, 30])
def test_upper_is_above(cost: int) -> None:
    with localcontext() as context:
        context.prec = 60
        truth = (-Decimal(cost - 1) / 3).exp() * 2**8
    assert truth <= Scales(Fraction(1, 3), 1, 8).upper(cost) <= truth + 1


def test_a_foreign_precision_does_not_matter() -> None:
    """Masses are exact floors, so what precision flint was left at cannot change them."""

    def masses() -> list[int]:
        scales = Scales(Fraction(1, 7), 0, 96)
        scales.add([1, 2, 3], [1, 2, 3], [0, 0, 1])
        return scales.lows

    expected = masses()
    with working_precision(4):
        assert masses() == expected


def test_a_weight_a_hair_below_a_whole_number_is_floored_exactly() -> None:
    """The working precision cannot tell exp(-10^-60) from 1; the precision doubles until it can."""
    scales = Scales(Fraction(1, 10**60), reference=0, fraction_bits=8)
    scales.add([0, 1, -1, 1], [1, 1, 1, 2], [0, 0, 0, 1])
    assert scales.lows == [256, 256 + 255, 256 + 255 + 256, 256 + 255 + 256 + 511]

import threading
from decimal import Decimal, localcontext
from fractions import Fraction

import flint
import pytest
from flint import arb

from epsilons.noise import floor_dyadic, keep_chance
from epsilons.noise.entropy import ALWAYS, as_ball, certain_floor, working_precision


def decimal_keep(epsilon: int, threshold: int) -> int:
    """floor(2^64 expm1(e)/expm1(t)) by another library."""
    with localcontext() as context:
        context.prec = 120
        e, t = Decimal(epsilon) / 10**9, Decimal(threshold) / 10**9
        return int(2**64 * (e.exp() - 1) / (t.exp() - 1))


@pytest.mark.parametrize("bits", [1, 8, 64, 128, 1000])
def test_floor_dyadic_agrees_with_decimal(bits: int) -> None:
    with localcontext() as context:
        context.prec = 400
        expected = int(Decimal(2) ** bits * Decimal(-1).exp())
    assert floor_dyadic(lambda: arb(-1).exp(), bits) == expected


def test_floor_dyadic_doubles_until_it_is_certain() -> None:
    seen = []

    def nearly_half() -> arb:
        seen.append(flint.ctx.prec)
        return 1 / (1 + as_ball(Fraction(1, 2**200)).exp())

    assert floor_dyadic(nearly_half) == 2**63 - 1
    assert seen == [96, 192, 384]


def test_floor_dyadic_of_an_exact_point() -> None:
    assert floor_dyadic(lambda: arb((3, -2)), 2) == 3
    assert floor_dyadic(lambda: arb(0)) == 0


def test_floor_dyadic_of_a_number_too_small_to_tell_from_zero() -> None:
    assert floor_dyadic(lambda: arb(-(10**100)).exp()) == 0


def test_floor_dyadic_gives_up_on_a_multiple_it_cannot_prove() -> None:
    with pytest.raises(ArithmeticError, match="multiple"):
        floor_dyadic(lambda: arb(2).sqrt() * arb(2).sqrt(), 1)


def test_certain_floor_refuses_to_guess() -> None:
    assert certain_floor(arb("2.5", "0.25")) == 2
    assert certain_floor(arb(2, "0.25")) is None
    assert certain_floor(arb(0, "0.25")) == 0


def test_precision_is_put_back_after_nesting_and_errors() -> None:
    outer = flint.ctx.prec
    with working_precision(200):
        with pytest.raises(ArithmeticError), working_precision(300):
            raise ArithmeticError
        assert flint.ctx.prec == 200
    assert flint.ctx.prec == outer


def test_threads_take_turns_with_the_precision() -> None:
    """flint's precision is shared by all threads: a second one waits until the first has put it back."""
    outer, seen = flint.ctx.prec, []

    def other() -> None:
        with working_precision(4096):
            seen.append(flint.ctx.prec)

    thread = threading.Thread(target=other)
    with working_precision(512):
        thread.start()
        thread.join(timeout=0.1)
        assert thread.is_alive()
        assert flint.ctx.prec == 512
    thread.join()
    assert seen == [4096]
    assert flint.ctx.prec == outer


@pytest.mark.parametrize(
    ("epsilon", "threshold"),
    [(1, 2), (1, 10**9), (10**8, 10**9), (5 * 10**8, 5 * 10**8 + 1), (10**9, 50 * 10**9), (1, 50 * 10**9)],
)
def test_keep_chance_agrees_with_decimal(epsilon: int, threshold: int) -> None:
    assert keep_chance(epsilon, threshold) == decimal_keep(epsilon, threshold)


def test_keep_chance_at_the_ends() -> None:
    assert keep_chance(10**9, 10**9) == ALWAYS
    assert keep_chance(2 * 10**9, 10**9) == ALWAYS
    assert keep_chance(0, 10**9) == 0
    assert keep_chance(10**9 - 1, 10**9) < ALWAYS
    assert keep_chance(1, 10**15) == 0


@pytest.mark.parametrize(("epsilon", "threshold"), [(-1, 10), (1, 0), (1, -1)])
def test_keep_chance_refuses_what_is_no_epsilon(epsilon: int, threshold: int) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        keep_chance(epsilon, threshold)

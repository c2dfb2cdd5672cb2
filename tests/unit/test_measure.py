"""Conversions between epsilons and rho, against two independent sources, and what promises make of them."""

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from flint import arb

import epsilons as eps
from epsilons.errors import PlanError
from epsilons.guarantee import Guarantee, compose_all
from epsilons.measure import ANY_LOSS, BOUNDED_RANGE, FEMTO, NANO, PLAIN, Measure, check_delta, epsilon_of, rho_of

MILLIONTH = Fraction(1, 10**6)
DELTAS = [Fraction(1, 10**3), MILLIONTH, Fraction(1, 10**12)]
EPSILONS = [0.001, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0]


def exact_rho(epsilon: float, delta: Fraction) -> int:
    """The largest femto-rho over orders by ternary search, from the paper's formula as it is printed, in 300 bits."""
    before, flint.ctx.prec = flint.ctx.prec, 300
    try:
        target, goal = arb(flint.fmpq(round(epsilon * NANO), NANO)), arb(flint.fmpq(delta.numerator, delta.denominator))

        def rho(log_order: arb) -> arb:
            a = 1 + log_order.exp()
            price = (goal.log() + (a - 1).log() - a * (1 - 1 / a).log()) / (a - 1)
            return (target + price) / a

        low, high = arb(-20), arb(45)
        for _ in range(220):
            third = (high - low) / 3
            if rho(low + third).mid() < rho(high - third).mid():
                low = (low + third).mid()
            else:
                high = (high - third).mid()
        return int((rho(low).mid() * FEMTO).floor().unique_fmpz())
    finally:
        flint.ctx.prec = before


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_rho_is_the_exact_one_and_never_above(epsilon: float, delta: Fraction) -> None:
    found, exact = rho_of(round(epsilon * NANO), delta), exact_rho(epsilon, delta)
    assert exact - 1 - exact // 10**15 <= found <= exact


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_rho_is_that_of_dp_accounting_to_six_digits(epsilon: float, delta: Fraction) -> None:
    accounting = pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
    from dp_accounting import rdp

    rho, chance = rho_of(round(epsilon * NANO), delta) / FEMTO, float(delta)
    # Their accountant takes a list of orders: close ones around the best.
    tried = 1 + np.geomspace(1e-3, 1e12, 20_001)
    best = tried[np.argmin(rho * tried + np.log1p(-1 / tried) - (math.log(chance) + np.log(tried)) / (tried - 1))]
    orders = [1 + (best - 1) * factor for factor in np.geomspace(0.98, 1.02, 41)]

    def theirs(rho: float) -> float:
        accountant = rdp.RdpAccountant(orders=orders)
        accountant.compose(accounting.ZCDpEvent(rho=rho))
        return float(accountant.get_epsilon(chance))

    assert theirs(rho * (1 - 1e-6)) <= epsilon <= theirs(rho * (1 + 1e-6))
    # The same the other way round.
    assert epsilon_of(round(rho * FEMTO), delta) / NANO == pytest.approx(theirs(rho), rel=1e-6)


def test_the_example_of_the_theory_page() -> None:
    assert rho_of(NANO, MILLIONTH) / FEMTO == pytest.approx(0.02435597, abs=5e-9)


@pytest.mark.parametrize("nano", [10**4, 123_456, 10**6, 10**7 + 1, 50_000_000, 999_999_999, NANO, 10**10 + 7, 10**12])
def test_a_grant_is_known_again_by_its_rho(nano: int) -> None:
    """Ledgers keep rho; what people granted is told from it, to the last nano-epsilon."""
    assert epsilon_of(rho_of(nano, MILLIONTH), MILLIONTH) == nano


@pytest.mark.parametrize("factor", [ANY_LOSS, BOUNDED_RANGE, Fraction(9, 50)])
@pytest.mark.parametrize("units", [0, 1, 999, 10**6 + 1, 24_355_970_359_538, 10**17 + 3])
def test_what_a_strength_costs_never_exceeds_the_units_it_came_from(units: int, factor: Fraction) -> None:
    measure = Measure(MILLIONTH)
    strength = measure.strength(units, factor)
    assert measure.cost(strength, factor) <= units
    # And one step more would.
    assert factor * (strength + 1) ** 2 > 1000 * units


def test_pure_units_are_nano_epsilon() -> None:
    for convert in (PLAIN.units, PLAIN.epsilon, PLAIN.strength, PLAIN.cost):
        assert convert(123) == 123


def test_a_measure_survives_its_text() -> None:
    for measure in (PLAIN, Measure(MILLIONTH), Measure(Fraction(3, 10**7))):
        assert Measure.of_text(measure.to_text()) == measure
    for broken in ("zcdp", "pure delta 1/2", "renyi delta 1/3", ""):
        with pytest.raises(ValueError, match=r"measure|Invalid"):
            Measure.of_text(broken)


@pytest.mark.parametrize("given", [0, 1, -1e-6, 0.5, float("nan"), float("inf"), "1e-6", True, None, 1e-30])
def test_a_delta_is_a_small_chance(given: object) -> None:
    with pytest.raises(PlanError, match="delta"):
        check_delta(given)


def promise(rho: int, neighbors: str = "absent") -> Guarantee:
    return Guarantee(neighbors, ((NANO, rho),), measure=Measure(MILLIONTH))


def test_a_promise_with_a_delta_says_so_in_words() -> None:
    told = str(promise(rho_of(NANO, MILLIONTH)))
    assert "a loss of at most 1 to those who granted 1." in told
    assert "but for events of a chance of at most 1e-06 (delta)" in told
    assert promise(1).delta == 1e-6
    assert Guarantee("absent", ()).delta is None


def test_amounts_of_public_people_have_no_part_of_a_grant() -> None:
    assert Measure(MILLIONTH).show([(math.inf, 0.0)]) == "0"
    assert Measure(MILLIONTH).show([(math.inf, 0.0), (1.0, 0.0024356)]) == "0…0.002436 (10%)"
    assert Measure().show([(math.inf, 0.0), (1.0, 0.1)]) == "0…0.1"


def test_whoever_granted_less_than_a_unit_is_left_out_and_the_answer_can_be_printed() -> None:
    answer = eps.count([1, 0] * 50, [1e-9, 1.0] * 50, delta=1e-18)
    assert answer.charges[1e-9] == 0
    for shown in (answer, eps.plan("count", [1e-9, 1.0] * 50, delta=1e-18)):
        assert "0 (0%)" in "".join(map(str, shown.sheets())) or "(0…100%)" in "".join(map(str, shown.sheets()))


def test_rho_adds_up_and_the_total_is_converted_once() -> None:
    tenth = rho_of(NANO, MILLIONTH) // 10
    whole = compose_all([promise(tenth)] * 10)
    assert whole.losses == ((NANO, 10 * tenth),)
    assert whole.epsilons[1.0] == pytest.approx(1, abs=1e-6)
    assert sum(one.epsilons[1.0] for one in [promise(tenth)] * 10) > 2.5  # what converting each would say


def test_replacing_somebody_costs_four_times_the_rho() -> None:
    assert promise(1000).with_neighbors("replace").losses == ((NANO, 4000),)


def test_a_pure_loss_enters_as_half_its_square() -> None:
    pure = Guarantee("absent", ((NANO, 100_000_000),))
    both = promise(7).compose(pure)
    assert both.measure == Measure(MILLIONTH)
    assert both.losses == ((NANO, 7 + FEMTO // 200),)
    assert pure.compose(promise(7)).losses == both.losses


def test_of_two_deltas_the_larger_is_told() -> None:
    other = Guarantee("absent", ((NANO, 5),), measure=Measure(Fraction(1, 10**9)))
    assert promise(5).compose(other).measure.delta == MILLIONTH
    assert promise(5).with_delta(1e-9).losses == ((NANO, 5),)


def test_a_promise_survives_json() -> None:
    made = promise(42)
    assert Guarantee.from_dict(made.to_dict()) == made
    assert "measure" not in Guarantee("absent", ((NANO, 1),)).to_dict()


@pytest.mark.parametrize("shift", [1, 2])
def test_the_conversion_holds_for_real_gaussians(shift: int) -> None:
    """The exact hockey-stick divergence of neighbouring discrete Gaussians at the epsilon that is told."""
    variance = 4.0
    rho = round(shift**2 / (2 * variance) * FEMTO)
    epsilon = epsilon_of(rho, MILLIONTH) / NANO
    cells = np.arange(-200, 201)
    law = np.exp(-(cells**2) / (2 * variance))
    moved = np.exp(-((cells - shift) ** 2) / (2 * variance))
    delta = np.maximum(law - math.exp(epsilon) * moved, 0).sum() / law.sum()
    assert delta <= 1e-6
    # A deviation 5% small would break it, if epsilon were the least that is possible for the law.
    least = _least_epsilon(law / law.sum(), moved / moved.sum(), 1e-6)
    assert least <= epsilon
    assert least > 0.7 * epsilon


def _least_epsilon(law: np.ndarray, moved: np.ndarray, delta: float) -> float:
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(law - math.exp(middle) * moved, 0).sum() > delta else (low, middle)
    return high


@pytest.mark.parametrize("rhos", [(0.001, 0.02, 0.3), (0.05,) * 12, (1e-4, 1e-4)])
def test_a_composition_is_that_of_dp_accounting(rhos: tuple[float, ...]) -> None:
    accounting = pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
    from dp_accounting import rdp

    whole = compose_all([promise(round(rho * FEMTO)) for rho in rhos])
    accountant = rdp.RdpAccountant(orders=(1 + np.geomspace(1e-2, 1e5, 4_001)).tolist())
    for rho in rhos:
        accountant.compose(accounting.ZCDpEvent(rho=rho))
    theirs = float(accountant.get_epsilon(1e-6))
    assert whole.epsilons[1.0] == pytest.approx(theirs, rel=1e-5)
    # With a delta for each of them, and epsilons that add up, much more would be said.
    assert sum(promise(round(rho * FEMTO)).epsilons[1.0] for rho in rhos) > 1.2 * theirs


def test_losses_of_either_kind_add_up_person_by_person() -> None:
    """Two rosters with other grants, one answer in rho and one pure: everybody's own sum, converted once."""
    here, there = {"ann": 1.0, "bob": 1.0, "cem": 0.5}, {"bob": 0.5, "cem": 2.0, "dia": 2.0}
    one = eps.mean([1, 2, 3], eps.Roster(list(here), list(here.values())), bounds=(0, 4), complete=True, delta=1e-6,
                   mechanism="stretching")  # fmt: skip
    two = eps.mean([1, 2, 3], eps.Roster(list(there), list(there.values())), bounds=(0, 4), complete=True,
                   mechanism="stretching", share=0.25)  # fmt: skip
    measure, both = Measure(MILLIONTH), one.guarantee.compose(two)
    mine, yours = dict(one.guarantee.losses), dict(two.guarantee.losses)
    lost: dict[float, int] = {}
    for who in {**here, **there}:
        rho = mine[round(here[who] * NANO)] if who in here else 0
        rho += measure.cost(yours[round(there[who] * NANO)] or 0) if who in there else 0
        known = max(here.get(who, 0), there.get(who, 0))
        lost[known] = max(lost.get(known, 0), rho)
    assert {granted / NANO: loss for granted, loss in both.losses if granted} == lost
    assert both.epsilons == {known: measure.epsilon(rho) / NANO for known, rho in sorted(lost.items())}
    assert two.guarantee.compose(one).losses == both.losses


def test_replaced_and_absent_people_are_brought_to_one_relation_before_they_add_up() -> None:
    both = promise(1000).compose(promise(7, "replace"))
    assert (both.neighbors, both.losses) == ("replace", ((NANO, 4007),))


def sharp_cost(loss: float) -> float:
    """What any pure loss costs at most: e tanh(e/2) (docs/theory.md)."""
    return loss * math.tanh(loss / 2)


@pytest.mark.parametrize("loss", [0.01, 0.5, 2.0, 4.0, 12.0])
def test_a_pure_loss_costs_no_more_than_the_sharp_bound(loss: float) -> None:
    """Randomized response, of which every pure loss is made: D_a/a at many orders, against both bounds."""
    yes = 1 / (1 + math.exp(-loss))
    for order in 1 + np.geomspace(1e-4, 1e3, 60):
        logs = np.array([order * math.log(yes) + (1 - order) * math.log1p(-yes),
                         order * math.log1p(-yes) + (1 - order) * math.log(yes)])  # fmt: skip
        divergence = (logs.max() + math.log(np.exp(logs - logs.max()).sum())) / (order - 1)
        assert divergence / order <= sharp_cost(loss) * (1 + 1e-6) <= loss**2 / 2 * (1 + 2e-6)


@pytest.mark.parametrize("delta", [Fraction(1, 100), MILLIONTH, Fraction(1, 10**18)])
def test_gaussian_noise_is_the_better_one_up_to_the_ceiling(delta: Fraction) -> None:
    """Even if Laplace noise were counted by the sharp bound, and one question took all of the largest grant."""
    most = Measure(delta).strength(rho_of(10 * NANO, delta)) / NANO
    for strength in np.linspace(0.01, most, 200):
        low, high = 0.0, 100.0  # the loss of Laplace noise that costs as much as Gaussian noise of this strength
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if sharp_cost(middle) < strength**2 / 2 else (low, middle)
        assert 1 / strength**2 < 2 / high**2

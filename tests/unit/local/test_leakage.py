"""Every view's loss, held to exact enumeration; the paper's claims; the deltas of the theory page."""

import math
from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from epsilons.display import Shown
from epsilons.errors import PlanError
from epsilons.local import RandomizedResponse, ResponseProtocol, SamplingDeniability, SamplingOnly, SamplingPrivacy
from support import local_truth as truth

PROTOCOLS: list[ResponseProtocol] = [
    RandomizedResponse(truth=0.8, yes=0.2),
    RandomizedResponse(truth=0.8, yes=0.9),
    RandomizedResponse(truth=0.3, yes=0.5),
    RandomizedResponse(truth=0.3, yes=0),
    RandomizedResponse(truth=0.5, options=3),
    RandomizedResponse(truth=0.5, options=2, others=[0.2, 0.5, 0.3]),
    RandomizedResponse(epsilon=1.3, options=4),
    SamplingPrivacy(sampling=0.45),
    SamplingPrivacy(sampling=0.25, others=[0.6, 0.15]),
    SamplingPrivacy(sampling=0.7, others=[0.1, 0.2]),
    SamplingPrivacy(options=3, sampling=0.45),
    SamplingPrivacy(options=2, sampling=0.2, others=[0.1, 0.3, 0.4]),
    SamplingDeniability(sampling=0.5, truth=0.8, yes=0.2),
    SamplingOnly(sampling=0.4),
]
EPSILONS = (0.0, 0.2, 0.7, 1.0, 2.5)

every = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: repr(p)[:60])


def worst(laws: list[truth.Law], epsilon: float | None) -> float:
    """Over all pairs of truths: the largest pure loss, or delta at an epsilon."""
    pairs = list(combinations(laws, 2))
    if epsilon is None:
        return max(truth.pure_epsilon(one, two) for one, two in pairs)
    return max(truth.delta(one, two, epsilon) for one, two in pairs)


@every
def test_all_that_an_owner_sends(protocol: ResponseProtocol) -> None:
    laws = [truth.owner_law(protocol, t) for t in range(protocol.options + 1)]
    assert protocol.leakage("both-rounds").pure == pytest.approx(worst(laws, None), rel=1e-12)
    for epsilon in EPSILONS:
        assert protocol.leakage("both-rounds", epsilon=epsilon).delta == pytest.approx(worst(laws, epsilon), abs=1e-12)


@every
def test_the_last_answer_alone(protocol: ResponseProtocol) -> None:
    laws = [truth.image(truth.owner_law(protocol, t), lambda path: path[-1]) for t in range(protocol.options + 1)]  # type: ignore[index]
    assert protocol.leakage("second-round").pure == pytest.approx(worst(laws, None), rel=1e-12)
    for epsilon in EPSILONS:
        found = protocol.leakage("second-round", epsilon=epsilon)
        assert found.delta == pytest.approx(worst(laws, epsilon), abs=1e-12)


@every
def test_the_strongest_observer_is_the_default_and_the_strongest(protocol: ResponseProtocol) -> None:
    strongest = protocol.leakage()
    assert strongest == protocol.leakage("both-rounds")
    for epsilon in EPSILONS:
        top = strongest.delta_at(epsilon)
        assert protocol.leakage("second-round", epsilon=epsilon).delta <= top + 1e-12
        for count in (1, 2, 5):
            assert protocol.leakage("counts", count=count, epsilon=epsilon).delta <= top + 1e-12


@pytest.mark.parametrize("protocol", [p for p in PROTOCOLS if p.options == 1 and p.outputs == 2], ids=repr)
@pytest.mark.parametrize(("count", "population"), [(1, 1), (1, 3), (2, 2), (2, 5), (4, 4)])
def test_published_counts_of_a_crowd(protocol: ResponseProtocol, count: int, population: int) -> None:
    """Somebody knows everybody else's answer and sees every count of every round."""
    others = [1] * (count - 1) + [0] * (population - count)
    yes, no = (truth.counts_law(protocol, [t, *others]) for t in (1, 0))
    found = protocol.leakage("counts", count=count, population=population)
    assert found.pure == pytest.approx(truth.pure_epsilon(yes, no), rel=1e-9)
    for epsilon in EPSILONS:
        assert found.delta_at(epsilon) == pytest.approx(truth.delta(yes, no, epsilon), abs=1e-12)


@pytest.mark.parametrize(("count", "population"), [(1, 1), (1, 3), (2, 3), (3, 4)])
def test_published_counts_of_several_options(count: int, population: int) -> None:
    """The others have other options, each seen to be sampled or not: what hides least is what is reported."""
    protocol = SamplingPrivacy(options=2, sampling=0.35, others=[0.15, 0.2, 0.3])
    found = protocol.leakage("counts", count=count, population=population)
    for rest in ([2], [0]):
        others = [1] * (count - 1) + rest * (population - count)
        yes, none = (truth.counts_law(protocol, [t, *others]) for t in (1, 0))
        for epsilon in EPSILONS:
            exact = truth.delta(yes, none, epsilon)
            if rest == [2]:
                assert found.delta_at(epsilon) == pytest.approx(exact, abs=1e-12)
            else:
                assert exact <= found.delta_at(epsilon) + 1e-12


@pytest.mark.parametrize("count", [1, 2, 4])
def test_in_a_large_crowd_the_difference_of_the_rounds_is_all(count: int) -> None:
    protocol = SamplingPrivacy(sampling=0.45)

    def moved(seen: object) -> object:
        first, second = seen  # type: ignore[misc]
        return second[1] - first[1]

    others = [1] * (count - 1)
    yes, no = (truth.image(truth.counts_law(protocol, [t, *others, 0]), moved) for t in (1, 0))
    limit = protocol.leakage("counts", count=count)
    for epsilon in EPSILONS:
        assert limit.delta_at(epsilon) == pytest.approx(truth.delta(yes, no, epsilon), abs=1e-12)
        crowds = [
            protocol.leakage("counts", count=count, population=n).delta_at(epsilon) for n in (count, count + 5, 300)
        ]
        assert crowds[0] >= crowds[1] - 1e-15
        assert crowds[1] >= crowds[2] - 1e-15
        assert crowds[2] == pytest.approx(limit.delta_at(epsilon), abs=1e-5)


@pytest.mark.parametrize(("count", "other"), [(1, 0), (2, 0), (3, 2)])
def test_published_counts_against_another_option(count: int, other: int) -> None:
    protocol = SamplingPrivacy(options=2, sampling=0.3)

    def moved(seen: object) -> object:
        first, second = seen  # type: ignore[misc]
        return tuple(b - a for a, b in zip(first[1:], second[1:], strict=True))

    rest = [1] * (count - 1) + [2] * other
    one, two = (truth.image(truth.counts_law(protocol, [t, *rest]), moved) for t in (1, 2))
    found = protocol.leakage("counts", count=count, neighbors="replace", other=other)
    for epsilon in EPSILONS:
        assert found.delta_at(epsilon) == pytest.approx(truth.delta(one, two, epsilon), abs=1e-12)


def precise_delta(count: int, sampling: Fraction) -> Decimal:
    """Bin(n, s) against Bin(n - 1, s) at epsilon 1, to fifty digits."""
    getcontext().prec = 50
    e = Decimal(1).exp()

    def pmf(n: int, k: int) -> Decimal:
        if k > n:
            return Decimal(0)
        exact = math.comb(n, k) * sampling**k * (1 - sampling) ** (n - k)
        return Decimal(exact.numerator) / Decimal(exact.denominator)

    laws = [(pmf(count, k), pmf(count - 1, k)) for k in range(count + 1)]
    return max(
        sum((max(Decimal(0), p - e * q) for p, q in laws), Decimal(0)),
        sum((max(Decimal(0), q - e * p) for p, q in laws), Decimal(0)),
    )


@pytest.mark.parametrize(("count", "printed"), [(1, 0.45), (7, 0.013), (25, 2.1e-5), (100, 1.8e-14)])
def test_the_deltas_of_the_theory_page(count: int, printed: float) -> None:
    delta = SamplingPrivacy(options=11, sampling=0.45).leakage("counts", count=count, epsilon=1).delta
    assert delta == pytest.approx(float(precise_delta(count, Fraction(9, 20))), rel=5e-4)
    assert f"{delta:.2g}" == f"{printed:.2g}"


def test_against_an_empty_option_delta_stays_at_the_sampling_rate() -> None:
    protocol = SamplingPrivacy(options=11, sampling=0.45)
    for count in (1, 25, 100):
        assert protocol.leakage("counts", count=count, epsilon=1, neighbors="replace").delta == pytest.approx(0.45)


def test_the_papers_claims_beside_the_truth() -> None:
    binary = SamplingPrivacy(sampling=0.45, others=[0.3, 0.25])
    assert binary.claim == pytest.approx(max(math.log(0.75 / 0.3), math.log(0.7 / 0.25)))
    assert binary.leakage("second-round").epsilon == pytest.approx(binary.claim)
    assert (binary.leakage().epsilon, binary.leakage().delta) == (math.inf, pytest.approx(0.45))
    several = SamplingPrivacy(options=2, sampling=0.4, others=[0.1, 0.3, 0.2])
    assert several.claim == pytest.approx(math.log(0.6 / 0.2)), "Eq. 29 with the smallest of the options"
    assert several.leakage("second-round").epsilon == pytest.approx(math.log(0.5 / 0.1)), "output 0 leaks more"
    eq30 = RandomizedResponse(truth=0.8, yes=0.9)
    assert (round(eq30.claim or 0, 2), round(eq30.leakage().epsilon, 2)) == (1.69, 3.71)


@every
def test_every_printout_has_claim_and_truth_side_by_side(protocol: ResponseProtocol) -> None:
    shown: list[Shown] = [protocol, protocol.leakage(), protocol.leakage("counts", count=7, epsilon=1)]
    if protocol.name != "sampling-only":
        shown.append(protocol.estimate(*map(protocol.count, protocol.respond([0, 1, 1, 0, 1]))))
    for one in shown:
        heads = one.sheets()[-1].head
        assert heads.index("true epsilon") == heads.index("the paper's claim") + 1
        assert all(word in str(one) for word in ("claim", "true"))


def test_a_curve_falls_and_its_inverse_finds_the_way_back() -> None:
    found = SamplingPrivacy(sampling=0.45).leakage("counts", count=25)
    deltas = found.curve(np.linspace(0, 3, 31))
    assert (np.diff(deltas) <= 0).all()
    for delta in (1e-2, 1e-5, 1e-8):
        epsilon = found.epsilon_at(delta)
        assert found.delta_at(epsilon) <= delta < found.delta_at(epsilon - 1e-6)
    assert found.epsilon_at(1e-12) == math.inf, "all 25 sampled is possible on one side only"
    response = RandomizedResponse(truth=0.8, yes=0.2).leakage()
    assert response.epsilon_at(0) == pytest.approx(response.pure)
    assert response.delta_at(response.pure) == 0


def test_pictures_of_leakage_have_a_curve_for_each_view() -> None:
    pytest.importorskip("matplotlib")
    axes = SamplingPrivacy(options=11, sampling=0.45).plot_leakage(counts=(1, 25))
    labels = [line.get_label() for line in axes.get_lines()]
    assert labels[:4] == [
        "one owner's second round",
        "one owner in both rounds",
        "published counts, 1 alike",
        "published counts, 25 alike",
    ]
    assert "the paper's claim: epsilon 2.38" in str(labels[4])
    assert SamplingPrivacy(sampling=0.45).leakage().plot(axes) is axes


@pytest.mark.parametrize(
    "wrong",
    [
        {"view": "nobody"}, {"view": "counts", "count": 0}, {"view": "counts", "count": 1.5},
        {"view": "counts", "count": True},
        {"view": "counts", "count": 5, "population": 4}, {"view": "counts", "neighbors": "next door"},
        {"view": "counts", "other": -1}, {"epsilon": -1}, {"epsilon": math.nan}, {"epsilon": "1"},
        {"view": "counts", "count": 10_000, "population": 10**6},
    ],
)  # fmt: skip
def test_a_view_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(PlanError):
        SamplingPrivacy(sampling=0.45).leakage(**wrong)  # type: ignore[arg-type]


def test_delta_falls_with_every_further_owner_so_a_smaller_count_bounds_a_larger_one() -> None:
    protocol = SamplingPrivacy(sampling=0.45)
    for epsilon in EPSILONS:
        deltas = [protocol.leakage("counts", count=n, epsilon=epsilon).delta for n in range(1, 40)]
        assert all(after <= before + 1e-15 for before, after in pairwise(deltas))
    huge = protocol.leakage("counts", count=10**15, epsilon=0.001)
    assert not huge.exact
    assert huge.delta == protocol.leakage("counts", count=10**7, epsilon=0.001).delta

"""What protocols take and refuse, what they hand out, and that they survive being written down."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from epsilons.errors import DataError, PlanError, ProtocolError
from epsilons.local import (
    PersonalResponse,
    RandomizedResponse,
    ResponseProtocol,
    SamplingDeniability,
    SamplingOnly,
    SamplingPrivacy,
)
from epsilons.local.base import PROTOCOLS as KINDS
from epsilons.local.base import protocol_from
from epsilons.local.estimate import Combination
from epsilons.noise.entropy import as_ball, working_precision
from epsilons.testing import seeded

PROTOCOLS: list[ResponseProtocol] = [
    RandomizedResponse(0.8, 0.2),
    RandomizedResponse(truth="1/3", options=4, others=["1/7", "2/7", 0, "3/7", "1/7"]),
    RandomizedResponse(epsilon=0.7, options=5),
    SamplingPrivacy(sampling=0.45),
    SamplingPrivacy(3, "1/3"),
    SamplingPrivacy(2, 0.2, others=[0.1, 0.3, 0.4]),
    SamplingOnly(0.4),
    SamplingDeniability(0.5, 0.8, 0.2),
]
every = pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)


def test_a_derived_protocol_leaves_its_parents_name_alone() -> None:
    class Derived(RandomizedResponse):
        pass

    assert Derived.name in KINDS
    assert KINDS[RandomizedResponse.name] is RandomizedResponse


@pytest.mark.parametrize("make", [RandomizedResponse, lambda chance: SamplingPrivacy(sampling=chance)])
def test_a_coin_that_always_falls_the_same_way_is_refused(make: Any) -> None:
    for chance in (0, 1, "1/1"):
        with pytest.raises(ProtocolError, match=r"must lie strictly between 0 and 1\."):
            make(chance)


@every
def test_a_protocol_survives_being_written_down(protocol: ResponseProtocol) -> None:
    again = protocol_from(protocol.to_dict())
    assert again == protocol
    assert hash(again) == hash(protocol)
    assert all(again.law(t) == protocol.law(t) for t in range(protocol.options + 1))
    assert str(again) == str(protocol)
    assert protocol.name in KINDS


@every
def test_the_same_seed_sends_the_same_and_the_system_does_not(protocol: ResponseProtocol) -> None:
    truths = np.arange(2000) % (protocol.options + 1)
    one, two = (protocol.respond(truths, entropy=seeded(4)) for _ in range(2))
    assert len(one) == protocol.rounds
    assert all((a == b).all() for a, b in zip(one, two, strict=True))
    assert any((a != b).any() for a, b in zip(protocol.respond(truths), protocol.respond(truths), strict=True))


@every
def test_no_answer_of_anybody_raises(protocol: ResponseProtocol) -> None:
    """Whatever is no option counts as none: the same coins give the same outputs."""
    plain = protocol.respond(np.array([0, 1, 0, 0, 0, 0]), entropy=seeded(6))
    odd: Any
    for odd in (
        np.array([0, 1, -1, 10**9, 2**62, protocol.options + 1]),
        np.array([0.0, 1.0, math.nan, math.inf, 0.5, -3.0]),
        [0, 1, None, None, math.nan, 1e300],
    ):
        seen = protocol.respond(odd, entropy=seeded(6))
        assert all((a == b).all() for a, b in zip(plain, seen, strict=True))
    assert protocol.respond([], entropy=seeded(1))[0].tolist() == []


def test_types_that_are_no_answers_are_refused_by_type_alone() -> None:
    for wrong in (["yes"], [[1, 0]], "1", {"a": 1}, [1j]):
        with pytest.raises(DataError, match="whole numbers"):
            RandomizedResponse(0.8, 0.2).respond(wrong)


@pytest.mark.parametrize("options", [1, 15, 16, 254, 255, 300, 70_000])
def test_outputs_hold_every_option(options: int) -> None:
    protocol = SamplingPrivacy(options, 0.9)
    _, second = protocol.respond(np.full(50, options), entropy=seeded(2))
    assert second.max() == options
    counts = protocol.count(second)
    assert len(counts) == options + 1
    assert counts.sum() == 50


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomizedResponse(),
        lambda: RandomizedResponse(0, 0.5),
        lambda: RandomizedResponse(1, 0.5),
        lambda: RandomizedResponse(1.2, 0.5),
        lambda: RandomizedResponse(math.nan, 0.5),
        lambda: RandomizedResponse("half", 0.5),
        lambda: RandomizedResponse(True, 0.5),
        lambda: RandomizedResponse(0.5, 0.5, options=3),
        lambda: RandomizedResponse(0.5, options=0),
        lambda: RandomizedResponse(0.5, options=2.5),  # type: ignore[arg-type]
        lambda: RandomizedResponse(0.5, options=2, others=[0.5, 0.5]),
        lambda: RandomizedResponse(0.5, options=2, others=[0.5, 0.3, 0.3]),
        lambda: RandomizedResponse(0.5, options=2, others="abc"),
        lambda: RandomizedResponse(0.5, epsilon=1),
        lambda: RandomizedResponse(epsilon=0),
        lambda: RandomizedResponse(epsilon=math.inf),
        lambda: RandomizedResponse(epsilon="much"),
        lambda: SamplingPrivacy(3),
        lambda: SamplingPrivacy(3, 0),
        lambda: SamplingPrivacy(3, 1),
        lambda: SamplingPrivacy(10**6, 0.5),
        lambda: SamplingPrivacy(1, 0.45, others=[0.3, 0.3]),
        lambda: SamplingOnly(0),
        lambda: protocol_from({"mechanism": "telepathy"}),
        lambda: protocol_from({"mechanism": "sampling-privacy", "sampling": 0.4, "colour": 1}),
        lambda: protocol_from({"mechanism": ["sampling-privacy"]}),
    ],
)
def test_a_protocol_that_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises((ProtocolError, Exception)) as caught:
        make()
    assert type(caught.value).__module__ == "epsilons.errors"


@pytest.mark.parametrize("epsilon", [1e-9, 0.001, 0.5, 1.0, 7.3, 60.0, 1e6])
@pytest.mark.parametrize("options", [1, 2, 10])
def test_an_epsilon_is_met_from_below(epsilon: float, options: int) -> None:
    """The loss of the dice as they are, exact fractions, against e^epsilon by interval arithmetic."""
    protocol = RandomizedResponse(epsilon=epsilon, options=options)
    ratio = protocol.high(1) / protocol.low(1)
    with working_precision(400):
        assert as_ball(ratio) <= as_ball(Fraction(str(epsilon))).exp()
    assert protocol.epsilon <= epsilon * (1 + 1e-9) + 2**-62
    if 1e-3 <= epsilon < 40:
        assert protocol.epsilon == pytest.approx(epsilon, rel=1e-9)


def test_counts_and_estimates_refuse_what_does_not_fit() -> None:
    response, sampling = RandomizedResponse(0.8, 0.2), SamplingPrivacy(2, 0.45)
    for counts in ([1, 2, 3], [-1, 2], [0.5, 1], ["a", "b"], [[1, 2]], None, [math.nan, 1], [2**70, 1]):
        with pytest.raises(ProtocolError):
            response.estimate(counts)
    with pytest.raises(ProtocolError, match="One for each round"):
        sampling.estimate([1, 2, 3])
    with pytest.raises(ProtocolError, match="different numbers of owners"):
        sampling.estimate([1, 2, 3], [1, 2, 4])
    for answers in ([0, 5], [-1], [[0, 1]], [0.5], ["0"]):
        with pytest.raises(ProtocolError):
            response.count(answers)
    for level in (0, 1, 1.5, math.nan, "95%", True):
        with pytest.raises(PlanError):
            response.estimate([5, 5]).interval(level)  # type: ignore[arg-type]


def test_the_shape_of_an_estimate_follows_the_number_of_options() -> None:
    binary = RandomizedResponse(0.8, 0.2).estimate([60, 40])
    assert binary.value == pytest.approx((40 - 100 * 0.04) / 0.8)
    assert isinstance(binary.value, float)
    assert all(isinstance(end, float) for end in binary.interval())
    several = SamplingPrivacy(3, 0.45).estimate([70, 10, 10, 10], [50, 19, 10, 21])
    assert several.value.tolist() == pytest.approx([20, 0, 11 / 0.45])
    low, high = several.interval(0.9)
    assert low.shape == high.shape == (3,)
    assert (low <= several.value).all()
    assert (several.value <= high).all()
    several.value[:] = 0
    assert several.value.any(), "an estimate is not changed by whoever reads it"
    assert several.to_dict()["options"][1]["interval"][0] == 0
    assert "sampled" not in str(several.notes)


def test_counts_that_no_honest_owners_send_are_estimated_and_said() -> None:
    found = SamplingPrivacy(2, 0.45).estimate([10, 50, 40], [20, 30, 50])
    assert found.value[0] < 0
    assert found.interval()[0][0] == 0
    assert "no honest owner" in " ".join(str(found).split())


def test_sampling_only_says_why_nothing_can_be_estimated() -> None:
    protocol = SamplingOnly(0.4)
    assert protocol.law(0) == protocol.law(1)
    assert protocol.leakage().epsilon == 0
    with pytest.raises(PlanError, match="One equation, two unknowns"):
        protocol.estimate([600, 400])


# Everybody's own epsilon ----------------------------------------------------------------------------------------------


def test_weights_are_inverse_to_variances_and_add_up() -> None:
    protocol = PersonalResponse([0.2] * 500 + [1.0] * 300 + [2.0] * 200)
    weights = protocol.weights(assume="unrelated")
    assert weights @ np.array(protocol.levels.sizes) == pytest.approx(1)
    variances = np.array([math.exp(e) / math.expm1(e) ** 2 for e in (0.2, 1.0, 2.0)])
    assert weights * (variances + 0.25) == pytest.approx(weights[0] * (variances[0] + 0.25))


def test_claiming_the_smallest_epsilon_moves_least_and_the_rest_is_capped() -> None:
    protocol = PersonalResponse([0.01] + [0.5] * 500 + [1.0] * 500)
    moved = protocol.influence()
    assert min(moved, key=lambda e: moved[e]) == 0.01
    assert moved[0.01] < 0.1
    plain = protocol.influence(assume="nothing")
    assert plain[0.01] == pytest.approx(1 / math.tanh(0.005), rel=1e-6), "uncapped, everybody alike: 200 people"
    lonely = PersonalResponse([0.05] * 999 + [math.inf])
    least = 1000 / (999 * math.tanh(0.025) + 1)
    assert max(lonely.influence().values()) == pytest.approx(2 * least, rel=1e-6)
    assert max(lonely.influence(cap=math.inf).values()) > 7 * least, "a cap is needed here"
    assert max(lonely.influence(cap=least * 1.0001).values()) == pytest.approx(least, rel=1e-3)
    with pytest.raises(PlanError, match="out of reach"):
        lonely.weights(cap=least * 0.99)
    with pytest.raises(PlanError, match="counts alike"):
        lonely.weights(assume="nothing", cap=5)


@pytest.mark.parametrize("related", [0.1, 0.3, 1.0])
def test_weights_of_related_levels_are_nearly_the_best(related: float) -> None:
    """Against many random weights: of the error at the density, with what levels that lie apart may add."""
    random, density = np.random.default_rng(8), 0.3
    sizes, noise = np.array([300.0, 200, 100]), np.array([40.0, 4.0, 0.3])
    luck = density * (1 - density)

    def error(weights: Any) -> Any:
        people = np.repeat(weights, sizes.astype(int), axis=-1)
        apart = np.abs(people - np.median(people, axis=-1, keepdims=True)).sum(axis=-1)
        return (weights**2 @ (sizes * (noise + luck))) + related**2 * luck * apart**2

    tried = random.dirichlet((1, 1, 1), 20_000) / sizes
    found = Combination.best(sizes, noise, related, density)
    assert float(sizes @ found.weights) == pytest.approx(1)
    assert error(found.weights) < 1.05 * error(tried).min()
    assert error(Combination.best(sizes, noise, 0.0, density).weights) > (1 + related**2) * error(found.weights)
    ends = (Combination.best(sizes, noise, assumed, density) for assumed in (0.0, math.inf))
    assert [one.weights.tolist() for one in ends] == [
        pytest.approx((1 / (noise + luck) / (sizes @ (1 / (noise + luck)))).tolist()),
        [1 / 600] * 3,
    ]


@pytest.mark.parametrize("assume", ["unrelated", "nothing"])
def test_no_lie_moves_an_estimate_further_than_said(assume: str) -> None:
    protocol = PersonalResponse([0.1] * 20 + [1.0] * 20 + [math.inf] * 3, options=2)
    (answers,) = protocol.respond(np.arange(43) % 3, entropy=seeded(1))
    before = protocol.estimate(protocol.count(answers), assume=assume).values
    moved = protocol.influence(assume=assume)
    for owner, epsilon in ((0, 0.1), (20, 1.0), (42, math.inf)):
        furthest = 0.0
        for lie in range(3):
            told = answers.copy()
            told[owner] = lie
            after = protocol.estimate(protocol.count(told), assume=assume).values
            furthest = max(furthest, float(np.abs(after - before).max()))
        assert furthest == pytest.approx(moved[epsilon])


def test_personal_promises_and_refusals() -> None:
    protocol = PersonalResponse([0.1, 0.5, math.inf])
    assert protocol.guarantee.epsilons == {0.1: 0.1, 0.5: 0.5, math.inf: math.inf}
    assert protocol.leakage().pure == pytest.approx(0.5)
    assert protocol.leakage(0.1).pure == pytest.approx(0.1)
    assert protocol.leakage(math.inf).pure == math.inf
    assert protocol.respond([1, 1, 1])[0][2] == 1, "a public owner tells the truth"
    assert "moves a count by at most" in str(protocol)
    with pytest.raises(PlanError):
        protocol.leakage(0.3)
    with pytest.raises(DataError):
        protocol.respond([1, 1])
    with pytest.raises(DataError):
        PersonalResponse([])
    with pytest.raises(ProtocolError):
        protocol.count([0, 1])
    with pytest.raises(ProtocolError):
        protocol.estimate([[1, 0], [1, 0]])
    for wrong in ({"assume": "luck"}, {"density": 0}, {"density": True}, {"cap": math.nan}):
        with pytest.raises(PlanError):
            protocol.weights(**wrong)  # type: ignore[arg-type]


def test_sampling_from_a_half_on_is_warned_of() -> None:
    """Joy, section 3.1: below 50%, so that an answer does not say more than a coin."""
    said = "Half of the owners or more"
    for sampling, warned in ((Fraction(1, 2), True), (0.6, True), (0.4999, False)):
        protocol = SamplingPrivacy(2, sampling)
        notes = protocol.estimate([9, 1, 0], [4, 4, 2]).notes
        assert (said in str(protocol)) is warned
        assert any(said in note for note in notes) is warned

"""The researcher's front door: audits refute what is planted and nothing that is true; laws and draws are as asked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.auditing.made_up import list_datasets, list_pairs
from epsilons.errors import PlanError
from epsilons.mechanisms.exponential import count_pmf
from epsilons.noise.laplace import discrete_laplace
from epsilons.testing import seeded
from support.planted import SmallScale

THREE = [0.5, 1.0, 2.0]


# Statistics by name --------------------------------------------------------------------------------------------------


def test_individual_privacy_is_refuted_as_what_it_is_not() -> None:
    """Soria-Comas et al.: {0, 0, 0, 0, 1} against {0, 0, 0, 1, 1} shows for certain which it is."""
    arguments: dict[str, Any] = {"bounds": (0, 1), "step": 1, "privacy": "individual", "missing": "center"}
    found = eps.audit("median", [0.5] * 5, mechanism="local-sensitivity", neighbors="replace", **arguments)
    assert not found.holds
    assert math.isinf(found.worst.loss)


def test_a_mechanism_of_ones_own_is_audited() -> None:
    assert eps.audit(SmallScale(Fraction(1)), [0.5, 0.5], statistic="count").holds
    refuted = eps.audit(SmallScale, [0.5, 0.5])
    assert refuted.refuted == ("count by minimum, absent",)
    assert "REFUTED" in str(refuted)
    assert "loses 0.555556" in " ".join(str(refuted).split())


# Functions -----------------------------------------------------------------------------------------------------------


def noisy_size(scale: Fraction) -> Any:
    source = seeded(11)

    def size(values: Sequence[float]) -> int:
        return len(values) + discrete_laplace(source, scale)

    return size


def test_a_function_is_refuted_by_draws_where_it_leaks_and_not_where_it_does_not() -> None:
    """Seeded: 6,000 draws of each of two; an honest one would be refuted once in a thousand seeds at most."""
    honest = eps.audit(noisy_size(Fraction(1)), [1.0, 1.0], domain=[0, 1], draws=6000)
    assert honest.holds
    assert honest.worst.loss > 0.7
    broken = eps.audit(noisy_size(Fraction(2)), [1.0, 1.0], domain=[0, 1], draws=6000)
    assert not broken.holds
    assert broken.worst.confidence == pytest.approx(0.999)


def test_a_function_that_is_told_epsilons_sees_none_for_who_is_absent() -> None:
    seen: set[Any] = set()

    def tells(values: Any, epsilons: Any) -> str:
        seen.update(values)
        assert len(values) == len(epsilons)
        return "gone" if None in values else "all here"

    found = eps.audit(tells, [1.0, 1.0], domain=[5], draws=200)
    assert None in seen
    assert not found.holds
    assert found.worst.loss > 1


def test_a_function_that_raises_tells_something_by_it() -> None:
    found = eps.audit(lambda values: 1 / len(values), [3.0], domain=[1], draws=400)
    assert not found.holds
    assert "ZeroDivisionError" in str(found)


def test_a_law_of_ones_own_is_audited_exactly() -> None:
    def coin(values: Sequence[int]) -> Any:
        yes = {(0,): 0.25, (1,): 0.75}.get(tuple(values), 0.5)
        return ("no", "yes"), (1 - yes, yes)

    assert eps.audit(coin, [0.7], domain=[0, 1], law=True).worst.loss == pytest.approx(math.log(2))
    assert not eps.audit(coin, [0.6], domain=[0, 1], law=True).holds


@pytest.mark.parametrize("neighbors", ["absent", "replace"])
def test_selections_and_noisy_functions_hold(neighbors: str) -> None:
    votes = eps.audit(eps.select, THREE, domain=["a", "b", "c"], options=["a", "b", "c"], neighbors=neighbors)
    assert votes.holds
    assert 0.4 < votes.worst.part <= 1
    scores = eps.audit(eps.select, THREE, domain=[(0.0, 1.0), (1.0, 0.0)], options=["a", "b"], neighbors=neighbors)
    assert scores.holds
    assert 0.4 < scores.worst.part <= 1
    given = {"function": np.nansum, "sensitivity": 3, "step": 1, "whole": True}
    total = eps.audit(eps.noisy, THREE, domain=[0, 1, 3], neighbors=neighbors, **given)
    assert total.holds
    assert total.worst.loss == pytest.approx(0.5)
    short = eps.audit(eps.noisy, THREE, domain=[0, 1, 3], neighbors=neighbors, **{**given, "sensitivity": 2})
    assert not short.holds


# Deltas and models ---------------------------------------------------------------------------------------------------


def test_a_delta_is_told_in_epsilon_and_in_rho_by_level() -> None:
    found = eps.audit("sum", [0.5, 1.0], bounds=(0, 4), missing="center", mechanism="weighted", delta=1e-6)
    assert found.holds
    assert [(f.granted, f.unit) for f in found.findings] == [(g, u) for g in (0.5, 1.0) for u in ("epsilon", "rho")]
    rho = eps.sum([0, 4], [0.5, 1.0], bounds=(0, 4), missing="center", mechanism="weighted", delta=1e-6).charges
    assert [f.charged for f in found.findings if f.unit == "rho"] == pytest.approx(list(rho.values()))
    assert all(f.part > 0.99 for f in found.findings if f.unit == "rho")
    assert all(0.9 < f.part < 1 for f in found.findings if f.unit == "epsilon")  # what the conversion gives away
    assert "but for a delta of 1e-06" in str(found)
    assert found.to_dict()["findings"][0]["delta"] == 1e-6


def test_a_function_that_promises_a_delta_is_held_to_it_by_draws_and_by_its_law() -> None:
    def now_and_then(chance: float) -> Any:
        def tell(values: Sequence[int]) -> Any:
            """Everything with a small chance, else nothing."""
            return ("nothing", f"all {len(values)}"), (1 - chance, chance)

        return tell

    assert eps.audit(now_and_then(0.009), [0.1], domain=[0], delta=0.01, law=True).holds
    refuted = eps.audit(now_and_then(0.011), [0.1], domain=[0], delta=0.01, law=True)
    assert refuted.worst.loss == math.inf
    source = seeded(8)

    def often(values: Sequence[int]) -> str:
        return f"all {len(values)}" if source.bits(3) == 0 else "nothing"

    assert not eps.audit(often, [0.1], domain=[0], delta=0.01, draws=2000).holds
    assert not eps.audit(often, [0.1], domain=[0], draws=2000).holds


def test_noise_of_floats_is_refuted_by_its_last_bits() -> None:
    """Seeded. Intervals of answers show nothing; the last bits show that the answer came from a small sum."""
    source = np.random.default_rng(3)
    found = eps.audit(lambda values: len(values) + source.laplace(), [1.0], domain=[0], draws=8000)
    assert not found.holds
    assert "last bit" in found.worst.event
    on_grid = eps.audit(lambda v: round((len(v) + source.laplace()) * 1024) / 1024, [1.0], domain=[0], draws=8000)
    assert on_grid.holds


def test_models_are_audited_on_the_corners_of_their_bounds() -> None:
    found = eps.audit(
        "linear_regression", [0.5, 1.0], bounds_X=([0, -1], [2, 1]), bounds_y=(0, 10), mechanism="minimum"
    )
    assert found.worst.part == pytest.approx(1)
    assert {row[:-1] for row in found.worst.data} <= {(a, b) for a in (0.0, 1.0, 2.0) for b in (-1.0, 0.0, 1.0)}
    named = eps.audit("logistic_regression", [1.0], bounds_X=(0, 1), classes=("no", "yes"), neighbors="replace")
    assert named.holds
    assert named.worst.part == pytest.approx(1)
    drawn = eps.simulate("linear_regression", ([[0.0], [1.0]], [0, 1]), 1.0, bounds_X=(0, 1), bounds_y=(0, 1), size=3)
    assert set(drawn[0]) == {"intercept", "x1"}
    many = eps.audit("linear_regression", [1.0], bounds_X=([0] * 5, [1] * 5), bounds_y=(0, 1), mechanism="minimum")
    assert many.worst.part == pytest.approx(1)


def test_mistakes_have_their_own_reasons() -> None:
    for given, reason in (
        ({"bounds": (0, 1), "privacy": "group", "group_epsilons": [0.5]}, "not audited here"),
        ({}, "needs bounds"),
        ({"bound": (0, 1)}, "takes no"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"bounds": (0, 1), "delta": 3}, "delta"),
        ({"bounds": (0, 1), "mechanism": "exponential"}, "cannot serve a mean"),
    ):
        with pytest.raises(PlanError, match=reason):
            eps.audit("mean", [1.0, 1.0], **given)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="Everyone is public"):
        eps.audit("mean", [eps.PUBLIC], bounds=(0, 1))
    told: list[tuple[int, int]] = []
    eps.audit("count", [1.0], progress=lambda done, of: told.append((done, of)))
    assert told == [(k + 1, len(told)) for k in range(len(told))]


# Laws and draws ------------------------------------------------------------------------------------------------------


def test_a_distribution_is_that_of_the_mechanism() -> None:
    law = eps.distribution("count", [1, 0], [1.0, 2.0], mechanism="exponential", complete=True)
    outcomes, chances = count_pmf([1, 0], [1.0, 2.0])
    assert law.outcomes == tuple(outcomes.tolist())
    assert law.probabilities == pytest.approx(chances)
    assert law.draws is None
    votes = eps.distribution(eps.select, ["a", "b", "a"], 1.0, options=["a", "b"])
    assert votes["a"] == pytest.approx(math.e / (1 + math.e))
    assert "chance" in str(votes)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_law_of_a_sum_is_that_of_the_released_answers(delta: float | None) -> None:
    """Held to draws: of 4,000 each range has what is expected within five standard deviations; seeded."""
    given: dict[str, Any] = {"bounds": (0, 10), "mechanism": "weighted", "missing": "center", "delta": delta}
    law = eps.distribution("mean", [0, 10, 5], [0.5, 1.0, 1.0], **given)
    assert law.draws is None
    assert law.probabilities.sum() == pytest.approx(1)
    assert (law.outcomes[0], law.outcomes[-1]) == (0.0, 10.0)
    drawn = eps.simulate("mean", [0, 10, 5], [0.5, 1.0, 1.0], size=4000, entropy=seeded(6), **given)
    for outcome, chance in zip(law.outcomes, law.probabilities, strict=True):
        seen = sum(law_holds(outcome, one) for one in drawn.tolist())
        assert abs(seen - 4000 * chance) < 5 * math.sqrt(4000 * chance) + 1
    assert law[5.05] == law.probabilities[1 + 50]
    assert law.plot() is not None


def law_holds(outcome: Any, answer: float) -> bool:
    return outcome == answer if isinstance(outcome, float) else 0 < answer < 10 and outcome.low <= answer < outcome.high


def test_the_law_of_a_count_lists_counts() -> None:
    law = eps.distribution("count", [1, 1, 0], 1.0, mechanism="minimum")
    assert law.outcomes == (0, 1, 2, 3)
    q = math.exp(-1)
    assert law[2] == pytest.approx((1 - q) / (1 + q))
    assert law[3] == pytest.approx(q / (1 + q))
    sampled = eps.distribution("count", [1, 1, 0], [0.5, 1.0, 1.0], mechanism="sample")
    assert sampled.draws is None
    assert sampled.probabilities.sum() == pytest.approx(1)
    assert eps.distribution(SmallScale, [1, 1, 0], 1.0)[2] > law[2]  # a mechanism of one's own
    ranges = eps.distribution("mean", [1, 2], 1.0, bounds=(0, 3), mechanism="minimum", draws=1500)
    assert ranges.draws == 1500
    assert ranges.probabilities.sum() == pytest.approx(1)
    assert len(ranges.outcomes) < 120
    for given in ({"missing": "center"}, {}):  # every level has sums of its own: too many to list together
        mixed = eps.distribution(
            "mean", [1, 2, 3], [1.0, 2.0, 3.0], bounds=(0, 3), mechanism="mixed", draws=1500, **given
        )
        assert (mixed.draws, len(mixed.outcomes) < 120) == (1500, True)


@pytest.mark.parametrize(("step", "delta"), [(1, None), (0.01, None), (1, 1e-6), (0.01, 1e-6)])
def test_the_law_of_a_noisy_function_is_that_of_its_draws(step: float, delta: float | None) -> None:
    """A step of one lists answers, finer ones are put into ranges; held to 2,000 draws, each within five deviations."""
    given: dict[str, Any] = {
        "function": np.nansum,
        "sensitivity": 3,
        "step": step,
        "delta": delta,
        "entropy": seeded(4),
    }
    law = eps.distribution(eps.noisy, [0, 1, 3], 2.0, **given)
    assert law.draws is None
    assert law.probabilities.sum() == pytest.approx(1)
    drawn = eps.simulate(eps.noisy, [0, 1, 3], 2.0, size=2000, **given)
    for outcome, chance in zip(law.outcomes, law.probabilities, strict=True):
        seen = sum(outcome == one if step == 1 else outcome.low <= one < outcome.high for one in drawn.tolist())
        assert abs(seen - 2000 * chance) < 5 * math.sqrt(2000 * chance) + 1
    assert eps.distribution(eps.noisy, [0, 1], 2.0, draws=20, **{**given, "size": 2, "function": list}).draws == 20


@pytest.mark.parametrize(
    ("statistic", "mechanism"),
    [("mode", "exponential"), *itertools.product(("mode", "top"), ("weighted", "sample", "threshold"))],
)
def test_the_law_of_a_choice_is_exact_and_that_of_its_draws(statistic: str, mechanism: str) -> None:
    given: dict[str, Any] = {"among": ["a", "b", "c"], "mechanism": mechanism, "entropy": seeded(3)}
    given |= {"k": 2} if statistic == "top" else {"complete": True}
    people = ["a", "a", "b", "x"], [0.5, 1.0, 2.0, 1.0]
    law = eps.distribution(statistic, *people, **given)
    assert law.draws is None
    assert law.probabilities.sum() == pytest.approx(1)
    drawn = [tuple(one) if statistic == "top" else one for one in eps.simulate(statistic, *people, size=1500, **given)]
    assert set(drawn) <= set(law.outcomes)
    assert len(law.outcomes) == (6 if statistic == "top" else 3)
    for outcome in law.outcomes:
        assert drawn.count(outcome) / 1500 == pytest.approx(law[outcome], abs=0.06)  # 4.6 deviations


def test_a_function_is_counted() -> None:
    law = eps.distribution(lambda values: sum(values), [1, 2], 1.0, draws=50)
    assert (law.outcomes, law[3], law.draws) == ((3,), 1.0, 50)
    with_epsilons = eps.distribution(lambda values, epsilons: [len(values)], [1, 2], 1.0, draws=10)
    assert with_epsilons[(2,)] == 1


def test_draws_are_so_many() -> None:
    source = seeded(3)
    drawn = eps.simulate("count", [1, 1, 0], THREE, mechanism="weighted", size=400, entropy=source)
    assert drawn.shape == (400,)
    assert abs(drawn.mean() - 2) < 1.5
    picked = eps.simulate(eps.select, ["a", "b"], 1.0, options=["a", "b"], size=5)
    assert set(picked) <= {"a", "b"}


def test_data_are_made_up_the_same_way_every_time() -> None:
    assert sorted(list_datasets((0, 1), 3, 8)) == sorted({(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)})
    many = list(list_datasets((0, 1), 50, 20))
    assert len(many) == len(set(many)) == 20
    assert many == list(list_datasets((0, 1), 50, 20))
    assert many[:4] == [(0,) * 50, (1,) * 50, (0,) * 25 + (1,) * 25, (1,) * 25 + (0,) * 25]
    assert {pair.person for pair in list_pairs((0, 1), [0, 2], 3, (None,), 8)} == {0, 2}


def test_what_was_found_is_told_in_words_as_a_table_and_as_a_picture() -> None:
    found = eps.audit("count", THREE, mechanism="minimum") + eps.audit(SmallScale, [0.5], name="planted")
    assert found.refuted == ("planted",)
    assert "2 claims: REFUTED planted" in str(found)
    assert "cannot prove one" in str(found)
    assert found.to_dict()["refuted"] == ["planted"]
    assert "<table" in found._repr_html_()
    assert len(found.plot().get_yticklabels()) == len(found.findings)
    assert eps.distribution("count", [1], 1.0, mechanism="exponential", complete=True).plot() is not None


def test_where_people_are_replaced_a_value_may_be_replaced_by_none() -> None:
    """By which means of a private number of rows lose the most that they do."""
    found = eps.audit("mean", [0.5, 1.0], bounds=(0, 4), neighbors="replace")
    assert any(None in (*finding.data, *finding.neighbour) for finding in found.findings)
    assert found.holds


def test_wrong_arguments_are_refused() -> None:
    wrong: list[tuple[Any, dict[str, Any]]] = [
        ("count", {"mechanism": "nothing"}),
        ("nothing", {}),
        ("linear_regression", {"mechanism": "minimum"}),
        ("linear_regression", {"bounds_X": (0, 1), "bounds_y": (0, 1), "domain": [0, 1]}),
        ("linear_regression", {"bounds_X": {"a": (0, 1)}, "bounds_y": (0, 1)}),
        (3, {"domain": [0, 1]}),
        (len, {}),
        ("count", {"neighbors": "both"}),
        ("count", {"draws": 3}),
        ("count", {"mechanism": "minimum", "delta": 2}),
        (SmallScale, {"statistic": "count", "neighbors": "nobody"}),
        (eps.noisy, {"domain": [0], "function": max, "sensitivity": 1}),
        (eps.select, {"domain": ["a"], "options": ["a", "b"], "delta": 1e-6}),
    ]
    for what, given in wrong:
        with pytest.raises(PlanError):
            eps.audit(what, [1.0, 1.0], **given)
    with pytest.raises(PlanError):
        eps.audit("count", [eps.PUBLIC])


@pytest.mark.parametrize("statistic", ["mode", "top"])
def test_the_options_of_a_choice_are_the_values_that_are_tried(statistic: str) -> None:
    """Values that are no options are not counted, so that nothing could be lost by them."""
    given = {"among": np.array(["a", "b"]), **({"k": 1} if statistic == "top" else {})}
    assert 0.3 < eps.audit(statistic, [0.5, 1.0], **given).worst.part <= 1
    # By the option alone; by noisy sums, which are not released, four times the rho would be lost.
    assert 0.3 < eps.audit(statistic, [0.5, 1.0], delta=1e-6, **given).worst.part <= 1
    assert eps.audit(statistic, [0.5, 1.0], domain=["x"], **given).worst.part == 0
    with pytest.raises(eps.PlanError, match="calendar"):
        eps.audit(statistic, [1.0], among={"month": ["2024-01", "2024-02"]})

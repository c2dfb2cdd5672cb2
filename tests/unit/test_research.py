"""The researcher's front door: audits refute what is planted and nothing that is true; laws and draws are as asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.auditing.built_in import claim_of
from epsilons.auditing.claims import audit_claim, encode_outcomes
from epsilons.auditing.made_up import list_datasets, list_pairs
from epsilons.errors import PlanError
from epsilons.mechanisms.base import list_mechanisms
from epsilons.mechanisms.exponential import count_pmf
from epsilons.noise.laplace import discrete_laplace
from epsilons.testing import seeded
from support.planted import PLANTS, Claim, Plant, SmallScale

THREE = [0.5, 1.0, 2.0]
OF_MECHANISMS = [plant for plant in PLANTS if isinstance(plant.honest, Claim)]


# Planted bugs --------------------------------------------------------------------------------------------------------


def findings(claim: Claim) -> Any:
    """What the audit finds; missing values of a domain are None there."""
    domain = [None if isinstance(x, float) and math.isnan(x) else x for x in claim.domain]
    made = claim_of(claim.mechanism, claim.question, claim.epsilons, domain)
    return audit_claim(made, draws=1000, confidence=0.999)


@pytest.mark.parametrize("plant", OF_MECHANISMS, ids=str)
def test_an_audit_refutes_every_planted_bug_and_no_honest_mechanism(plant: Plant) -> None:
    assert all(finding.holds for finding in findings(plant.honest))
    assert not all(finding.holds for finding in findings(plant.broken))


def test_nearly_all_planted_bugs_are_of_mechanisms() -> None:
    """The others are in the auditor, in conversions and in accounts: tests/unit/mechanisms/test_planted.py."""
    assert len(OF_MECHANISMS) >= 25


# Statistics by name --------------------------------------------------------------------------------------------------

BOUNDED = {"bounds": (0, 4)}
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("count", {"complete": True}),
    ("mean", {**BOUNDED, "missing": "center"}),
    ("median", {**BOUNDED, "missing": "center"}),
    ("min", {**BOUNDED, "missing": "center"}),
    ("histogram", {"edges": (0, 1, 2)}),
]


@pytest.mark.parametrize(("statistic", "arguments"), ASKED, ids=[name for name, _ in ASKED])
@pytest.mark.parametrize("neighbors", ["absent", "replace"])
def test_no_mechanism_is_refuted(statistic: str, arguments: dict[str, Any], neighbors: str) -> None:
    epsilons = THREE if statistic != "histogram" else [0.5, 1.0]
    found = eps.audit(statistic, epsilons, neighbors=neighbors, **arguments)
    assert found.holds, str(found)
    assert {finding.confidence for finding in found.findings} == {None}


def test_every_mechanism_is_audited_by_some_statistic() -> None:
    named = " ".join(f.name for s, a in ASKED[:3] for f in eps.audit(s, THREE, **a).findings)
    assert [name for name in list_mechanisms() if f"by {name}," not in named] == []


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


def test_outcomes_of_any_kind_are_ordered_alike_on_both_sides() -> None:
    numbers = encode_outcomes([1, math.nan], np.array([2.0, 3.0]))
    assert [side.tolist() for side in numbers] == [[1.0, -1.7e308], [2.0, 3.0]]
    words = encode_outcomes([1, "a"], [2, (3,)])
    assert [side.tolist() for side in words] == [["1", "'a'"], ["2", "(3,)"]]


def test_what_was_found_is_told_in_words_as_a_table_and_as_a_picture() -> None:
    found = eps.audit("count", THREE, mechanism="minimum") + eps.audit(SmallScale, [0.5], name="planted")
    assert found.refuted == ("planted",)
    assert "2 claims: REFUTED planted" in str(found)
    assert "cannot prove one" in str(found)
    assert found.to_dict()["refuted"] == ["planted"]
    assert "<table" in found._repr_html_()
    assert len(found.plot().get_yticklabels()) == len(found.findings)
    assert eps.distribution("count", [1], 1.0, mechanism="exponential", complete=True).plot() is not None


def test_wrong_arguments_are_refused() -> None:
    wrong: list[tuple[Any, dict[str, Any]]] = [
        ("count", {"mechanism": "nothing"}),
        ("nothing", {}),
        ("linear_regression", {"mechanism": "minimum"}),
        (3, {"domain": [0, 1]}),
        (len, {}),
        ("count", {"neighbors": "both"}),
        ("count", {"draws": 3}),
        ("count", {"mechanism": "minimum", "delta": 1e-6}),
        (SmallScale, {"statistic": "count", "neighbors": "nobody"}),
        (eps.noisy, {"domain": [0], "function": max, "sensitivity": 1, "step": 1, "delta": 1e-6}),
    ]
    for what, given in wrong:
        with pytest.raises(PlanError):
            eps.audit(what, [1.0, 1.0], **given)
    with pytest.raises(PlanError):
        eps.audit("count", [eps.PUBLIC])

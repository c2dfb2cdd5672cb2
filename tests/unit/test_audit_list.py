"""The audit catches every planted bug by name, and refutes no true mechanism: one list of all of them.

Exact findings have no chance to be wrong. One bug is found by draws, which are seeded: floats, whose last bits tell.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.auditing.attack import audit_claim
from epsilons.auditing.built_in import claim_of
from epsilons.auditing.report import Audit
from epsilons.cli.commands.audit import ASKED, audit_part, list_questions
from epsilons.mechanisms.base import list_mechanisms
from epsilons.noise import discrete_laplace
from epsilons.statistics.base import Question
from epsilons.statistics.logistic import LogisticRegression
from epsilons.summaries.arrays import Rows
from epsilons.testing import seeded
from support.planted import PLANTS, Claim
from support.small_worlds import FOURS, ROSTERS, WORLDS, at_max, serving
from unit.mechanisms.test_model_losses import BUGS, LINEAR, LOGISTIC, rows_of

NEIGHBORS, DELTAS = ("absent", "replace"), (None, 1e-6)


def audit_of(name: str, claim: Claim) -> Audit:
    """By the package's auditor; missing values of a domain are None there."""
    domain = [None if isinstance(x, float) and math.isnan(x) else x for x in claim.domain]
    made = claim_of(claim.mechanism, claim.question, claim.epsilons, domain, name)
    return Audit(tuple(audit_claim(made, draws=8000, confidence=0.999)))


def model_audit(name: str, mechanism: Any, statistic: Any, neighbors: str) -> Audit:
    """Of a model whose features lie between -1 and 1."""

    def shape(data: tuple[Any, ...]) -> Rows:
        table = np.array([(math.nan,) * 3 if row is None else row for row in data])
        return Rows(table[:, :-1], table[:, -1])

    claim = claim_of(mechanism, Question(statistic, neighbors), (0.2, 1.0), rows_of(statistic), name, shape=shape)
    return Audit(tuple(audit_claim(claim, draws=8000, confidence=0.999)))


def bugs() -> Iterator[tuple[str, Audit, Audit]]:
    """(its name, the audit of the broken one, that of the honest one) of all that an audit of answers can see."""
    for plant in PLANTS:
        if isinstance(plant.honest, Claim):
            yield plant.name, audit_of(plant.name, plant.broken), audit_of(plant.name, plant.honest)
    for name, (mechanism, statistic, neighbors) in BUGS.items():
        true = LOGISTIC if isinstance(statistic, LogisticRegression) else LINEAR
        honest = model_audit(name, at_max("weighted", true), true, neighbors)
        yield name, model_audit(name, mechanism, statistic, neighbors), honest


def truths() -> Iterator[Audit]:
    """Every statistic by all mechanisms that serve it, of public numbers of values and of private ones, under both
    relations, without and with a delta.
    """
    for statistic, neighbors, delta in itertools.product(ASKED, NEIGHBORS, DELTAS):
        for _, given in list_questions(statistic):
            yield eps.audit(statistic, [0.5, 1.0], neighbors=neighbors, delta=delta, **given)
    yield audit_part("owners", [0.5, 1.0], 200, None, lambda _: None)
    given = {"domain": [0, 1, 3], "function": np.nansum, "sensitivity": 3, "step": 1, "whole": True}
    for neighbors, delta in itertools.product(NEIGHBORS, DELTAS):
        yield eps.audit(eps.noisy, [0.5, 1.0], neighbors=neighbors, delta=delta, **given)
    for neighbors in NEIGHBORS:
        yield eps.audit(eps.select, [0.5, 1.0], domain=["a", "b"], options=["a", "b"], neighbors=neighbors)


def test_the_audit_catches_all_planted_bugs_by_name_and_none_of_the_true_mechanisms() -> None:
    planted, caught, spared = [], [], []
    for name, broken, honest in bugs():
        planted.append(name)
        caught += broken.refuted
        spared += honest.refuted
    assert caught == planted
    assert len(planted) >= 35
    true = sum(truths(), Audit(()))
    assert true.refuted == tuple(spared) == ()
    assert all(any(f"by {name}," in finding.name for finding in true.findings) for name in list_mechanisms())
    assert {finding.unit for finding in true.findings} == {"epsilon", "rho"}
    assert max(finding.part for finding in true.findings) > 0.999


def test_other_planted_bugs_are_in_the_auditor_in_conversions_and_in_accounts() -> None:
    """Which no audit of answers can see: each has a check of its own, in tests/unit/mechanisms/test_planted.py."""
    others = [plant.name for plant in PLANTS if not isinstance(plant.honest, Claim)]
    assert len(others) <= 7


@pytest.mark.soak
@pytest.mark.parametrize("rosters", [ROSTERS, FOURS], ids=["threes", "fours"])
@pytest.mark.parametrize("name", sorted(list_mechanisms()))
def test_no_true_mechanism_is_refuted_on_any_small_world(name: str, rosters: Any) -> None:
    """The long form: every option of every mechanism, public people among them."""
    for kind, question, epsilons, mechanism in serving(name, rosters=rosters):
        if kind in ("variance", "histogram") and len(epsilons) > 3:
            continue
        domain = [None if math.isnan(x) else x for x in WORLDS[kind][1]]
        made = claim_of(mechanism, question, epsilons, domain)
        assert all(finding.holds for finding in audit_claim(made, draws=2000, confidence=0.999)), f"{kind} {epsilons}"


@pytest.mark.soak
def test_draws_refute_no_true_mechanism_at_the_stated_confidence() -> None:
    """Of 400 audits by draws of a mechanism at its limit, at confidence .9, at most 40 are expected to be wrong.

    By chance 70 are once in 10^6 runs. A scale of a quarter is refuted every time.
    """
    source = seeded(23)
    audits = [
        [
            eps.audit(lambda values, rate=rate: len(values) + discrete_laplace(source, rate), [1.0], domain=[0],
                      draws=400, confidence=0.9).holds
            for _ in range(count)
        ]
        for rate, count in ((Fraction(1), 400), (Fraction(4), 20))
    ]  # fmt: skip
    assert audits[0].count(False) < 70
    assert not any(audits[1])

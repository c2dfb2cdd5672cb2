"""What is said beside an answer is about something that is stated, in what people pay with."""

from __future__ import annotations

import numpy as np
import pytest

import epsilons as eps
from epsilons.testing import seeded

VALUES, GRANTS = np.linspace(10, 90, 300), np.repeat([0.1, 0.5, 2.0], 100)


@pytest.mark.parametrize(
    ("mechanism", "asked"), [("smooth-sensitivity", {}), ("local-sensitivity", {"privacy": "individual"})]
)
def test_where_nothing_is_stated_nothing_is_assumed(mechanism: str, asked: dict[str, str]) -> None:
    bare = eps.median(VALUES, GRANTS, bounds=(0, 100), complete=True, mechanism=mechanism, entropy=seeded(1), **asked)
    assert f"± unknown however preferences and values relate ({mechanism}, " in str(bare)


def test_an_interval_without_an_error_has_its_condition() -> None:
    answer = eps.median(VALUES, GRANTS, bounds=(0, 100), share=0.001, entropy=seeded(1))
    assert answer.error is None
    assert f"± unknown if {answer.assumption} (" in str(answer)


def test_plans_tell_losses_as_people_pay_for_them() -> None:
    """In a concentrated account a cap was told as an epsilon below everybody's; at a share, as what nobody granted."""
    for share in (1.0, 0.1):
        plan = eps.plan("mean", GRANTS, bounds=(0, 100), delta=1e-6, share=share)
        row = plan["weighted"]
        assert f"up to a rho of {max(row.charges.values()):.4g};" in row.reason
    kept = eps.plan("mean", GRANTS, bounds=(0, 100), share=0.1, mechanism="threshold", threshold=0.05)["threshold"]
    assert "only people who granted enough to be charged 0.05, all at that" in kept.reason
    assert [granted for granted, spent in kept.charges.items() if spent] == [0.5, 2.0]

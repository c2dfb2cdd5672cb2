"""Plans for collections hold what they promise, by simulation-free formulas and by exact leakage."""

import math
from typing import Any

import pytest

from epsilons.errors import PlanError
from epsilons.local import RandomizedResponse, SamplingPrivacy, plan
from epsilons.local.planning import JUDGES


@pytest.mark.parametrize(
    ("error", "epsilon", "delta", "options", "share"),
    [(0.01, 1.0, 1e-6, 1, 0.05), (0.05, 0.3, 1e-4, 4, 0.5), (0.002, 2.0, 1e-9, 1, 0.01), (0.02, 0.1, 1e-3, 20, 0.02)],
)
def test_rows_reach_the_error_and_the_leakage(
    error: float, epsilon: float, delta: float, options: int, share: float
) -> None:
    found = plan(error, epsilon=epsilon, delta=delta, options=options, share=share)
    response, claimed, counts, both = found.rows
    for row in found.rows:
        assert row.protocol is not None
        assert row.respondents is not None
        assert row.reached
        assert row.error <= error * (1 + 1e-9)
        assert row.protocol.spread(share * row.respondents, row.respondents) / row.respondents == pytest.approx(
            row.error
        )
    assert isinstance(response.protocol, RandomizedResponse)
    assert response.protocol.epsilon == pytest.approx(epsilon)
    # One respondent fewer does not reach it.
    fewer = (response.respondents or 0) - 1
    assert response.protocol.spread(share * fewer, fewer) / fewer > error
    assert claimed.protocol is not None
    assert epsilon * 0.999 < claimed.protocol.leakage("second-round").pure <= epsilon
    assert counts.protocol is not None
    alike = math.floor(share * (counts.respondents or 0))
    assert counts.protocol.leakage("counts", count=alike, epsilon=epsilon).delta <= delta
    assert both.protocol is not None
    assert both.protocol.leakage("both-rounds", epsilon=epsilon).delta <= delta


def test_a_fixed_group_in_a_growing_crowd() -> None:
    found = plan(20, epsilon=1, delta=1e-6, count=100)
    response, claimed, counts, both = found.rows
    assert response.protocol is not None
    assert response.respondents is not None
    assert (
        response.protocol.spread(100, response.respondents)
        <= 20
        < response.protocol.spread(100, response.respondents + 1)
    )
    assert claimed.respondents is None
    assert claimed.reached
    assert counts.counts is not None
    assert counts.counts.delta <= 1e-6
    assert isinstance(counts.protocol, SamplingPrivacy)
    larger = SamplingPrivacy(1, counts.protocol.sampling + counts.protocol.sampling / 100)
    assert larger.leakage("counts", count=100, epsilon=1).delta > 1e-6
    assert not both.reached
    (sheet,) = found.sheets()
    cells = [cell for row in sheet.rows for cell in row]
    assert any("too large" in cell for cell in cells)
    assert any("published counts" in cell for cell in cells)
    assert any("claim" in head for head in sheet.head)


def test_out_of_reach_is_said() -> None:
    assert not plan(3, epsilon=0.1, count=1000).rows[0].reached
    tiny = plan(0.1, epsilon=1e-9, delta=1e-300, share=1e-9)
    assert "out of reach" in str(tiny)
    assert set(JUDGES) == {row.judge for row in tiny.rows}


@pytest.mark.parametrize(
    "wrong",
    [
        {"error": 0}, {"error": -1}, {"error": math.nan}, {"error": 1.5}, {"error": True}, {"error": "small"},
        {"error": 0.1, "epsilon": 0}, {"error": 0.1, "delta": 0}, {"error": 0.1, "delta": 1},
        {"error": 0.1, "share": 0},
        {"error": 0.1, "share": 0.5, "count": 3}, {"error": 5, "count": 0}, {"error": 5, "count": 2.5},
    ],
)  # fmt: skip
def test_wishes_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        plan(**wrong)

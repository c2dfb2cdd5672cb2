"""What no mechanism can beat, against every k."""

import math

import numpy as np
import pytest

import epsilons as eps
from epsilons.accuracy.count import count_floor
from epsilons.preferences import roster_of


def every_k(epsilons: np.ndarray) -> float:
    finite = np.sort(epsilons[np.isfinite(epsilons)])
    loss = np.minimum(np.cumsum(finite), 1400)
    return float(np.max(np.arange(1, len(finite) + 1) / (2 * np.cosh(loss / 2))))


@pytest.mark.parametrize("seed", range(8))
def test_the_floor_is_the_best_of_every_k(seed: int) -> None:
    rng = np.random.default_rng(seed)
    epsilons = rng.choice([0.001, 0.01, 0.1, 1.0, 5.0, math.inf], int(rng.integers(2, 1500)))
    epsilons[0] = 0.01
    assert count_floor(roster_of(epsilons).levels) == pytest.approx(every_k(epsilons), rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-4, 0.01])
def test_of_very_many_people_the_floor_is_near_the_best(epsilon: float) -> None:
    epsilons = np.repeat([epsilon, 2 * epsilon, 1.0], [200_000, 100_000, 1000])
    found = count_floor(roster_of(epsilons).levels)
    # A floor that looks at fewer k may only be lower.
    assert every_k(epsilons) * 0.999 <= found <= every_k(epsilons) * (1 + 1e-9)


@pytest.mark.parametrize("epsilons", [[1e6], [1e-9], [0.5] * 3, [0.01] * 400 + [1.0] * 600])
def test_no_mechanism_promises_less_than_the_floor(epsilons: list[float]) -> None:
    for assume in ("unrelated", "nothing"):
        plan = eps.plan("count", epsilons, assume=assume)
        assert plan.floor is not None
        assert math.isfinite(plan.floor)
        assert all(row.worst_error is None or row.worst_error >= plan.floor * 0.999 - 1e-12 for row in plan.rows)


def test_only_counts_have_a_floor_and_a_share_raises_it() -> None:
    assert eps.plan("mean", [0.5, 1.0], bounds=(0, 1)).floor is None
    whole, tenth = (eps.plan("count", [0.5] * 20, share=share) for share in (1, 0.1))
    assert whole.floor is not None
    assert tenth.floor is not None
    assert tenth.floor > whole.floor

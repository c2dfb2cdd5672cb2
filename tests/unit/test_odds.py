"""Odds: no guess beats them, and the best one reaches them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epsilons.preferences.odds import OF, count_right, tell_odds


def guess_right(here: np.ndarray, there: np.ndarray) -> float:
    """How often the best guess between two distributions is right, a coin having decided: the slow obvious way."""
    return sum(max(one, other) / 2 for one, other in zip(here, there, strict=True))


@pytest.mark.parametrize("epsilon", [0.001, 0.05, 0.1, 0.5, 1.0, 3.0, 10.0])
def test_no_guess_is_right_more_often_and_randomized_response_nearly_is(epsilon: float) -> None:
    drawn, most = np.random.default_rng(7), 0.0
    for _ in range(300):
        here = drawn.dirichlet(np.ones(6))
        there = here * np.exp(drawn.uniform(-epsilon / 2, epsilon / 2, 6))
        there /= there.sum()
        assert np.abs(np.log(here / there)).max() <= epsilon + 1e-9
        most = max(most, guess_right(here, there))
    assert OF * most <= count_right(epsilon)
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    best = guess_right(np.array([truth, 1 - truth]), np.array([1 - truth, truth]))
    assert OF * best <= count_right(epsilon) < OF * best + 1, "rounded up, and by less than one"
    # A bound for half of the epsilon would be beaten.
    if epsilon >= 0.1:
        assert OF * best > OF / (1 + math.exp(-epsilon / 2))


def test_the_sentence_says_what_is_guessed_and_how_often_it_is_right() -> None:
    told = tell_odds(0.1, "absent")
    assert told.startswith("Of 100 people like you, whoever guesses whose data was used is right about 50")
    assert "at most 53" in told
    assert "which of two values is whose" in tell_odds(0.1, "replace")
    assert "nearly all of them" in tell_odds(20.0, "absent")
    assert tell_odds(math.inf, "absent").startswith("Nothing is promised")

"""What is remembered about a roster: shared by threads, bounded, and none of a caller's labels decides anything."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

import epsilons as eps
from epsilons.mechanisms import base
from epsilons.preferences import roster_of

EPSILONS = [0.31, 0.62, 0.93] * 10


def test_threads_that_forget_do_not_disturb_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_MOST_WORKED_OUT", 3)

    def ask(i: int) -> float:
        return float(eps.mean(range(30), EPSILONS, bounds=(0, 100), spread=5 + i / 7).value)

    with ThreadPoolExecutor(8) as threads:
        assert len(list(threads.map(ask, range(300)))) == 300


def test_a_roster_remembers_no_more_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_MOST_WORKED_OUT", 20)
    for i in range(40):
        eps.count([1, 0, 1] * 10, EPSILONS, density=0.2 + i / 100, mechanism="exponential")
        eps.mean(range(30), EPSILONS, bounds=(0, 100), spread=3 + i / 7)
    assert len(roster_of(EPSILONS).levels.worked_out) < 60


def test_a_label_called_features_is_no_model() -> None:
    values = pd.Series([1.0, 2.0, 3.0], index=["features", "b", "c"])
    assert eps.mean(values, eps.PUBLIC, bounds=(0, 10)).value == pytest.approx(2.0, abs=1e-6)

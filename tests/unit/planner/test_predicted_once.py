"""A predicted error is worked out once: by the planner, and found again by the release, also after the ledger."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import epsilons as eps
from epsilons.mechanisms.base import list_mechanisms
from support.wages import dataset

EPSILONS = [0.123, 0.456, 0.789] * 40


@pytest.fixture
def predicted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each mechanism was asked for its error."""
    asked: Counter[str] = Counter()
    from epsilons.mechanisms import base

    kinds = {kind for name in list_mechanisms() for kind in base._REGISTRY[name]}
    for kind in kinds:
        for method in ("predict_error", "worst_error"):
            original = getattr(kind, method)

            def counted(self: Any, question: Any, levels: Any, original: Any = original, method: str = method) -> Any:
                asked[f"{self.name} {method}"] += 1
                return original(self, question, levels)

            monkeypatch.setattr(kind, method, counted)
    return asked


@pytest.mark.parametrize("mechanism", ["auto", "weighted", "mixed"])
@pytest.mark.parametrize("assume", ["unrelated", "nothing"])
@pytest.mark.parametrize("statistic", ["mean", "median", "variance"])
def test_on_arrays(predicted: Counter[str], statistic: str, mechanism: str, assume: str) -> None:
    if (statistic, mechanism) == ("variance", "mixed"):
        mechanism = "minimum"
    spread = 11.0 + len(statistic) + len(mechanism) + len(assume) / 7
    options: dict[str, Any] = {"bounds": (0, 100), "spread": spread, "mechanism": mechanism, "assume": assume}
    options["complete"] = mechanism == "mixed"
    getattr(eps, statistic)(list(range(120)), EPSILONS, **options)
    assert predicted or (statistic, mechanism) == ("mean", "mixed")  # whose error is that of what was released
    assert max(predicted.values(), default=1) == 1, predicted


def test_on_a_table(predicted: Counter[str]) -> None:
    with dataset() as people:
        people.mean("wage", bounds=(0, 100), spread=12.345, where="age >= 40", share=0.0123)
    assert predicted
    assert max(predicted.values()) == 1, predicted

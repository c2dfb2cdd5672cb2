"""Questions about people's preferences themselves: exact from the roster, or with nothing assumed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

import epsilons as eps
from epsilons.arguments.checks import ASSUMPTIONS
from epsilons.dataset.question import ABOUT_PREFERENCES

WORDS = {"strict": 0.05, "standard": 0.5, "open": 2.0}
CHOSEN = ["strict"] * 50 + ["standard"] * 30 + ["open"] * 20


@pytest.fixture
def people() -> Iterator[eps.Dataset]:
    frame = pd.DataFrame({"id": np.arange(100), "wage": np.linspace(0, 100, 100), "privacy": CHOSEN})
    with eps.Dataset(
        frame, person="id", preferences=eps.Preferences.from_levels("privacy", WORDS), ledger="memory", ceiling=1e6
    ) as made:
        yield made


def test_how_many_chose_what_is_exact_and_free(people: eps.Dataset) -> None:
    answer = people.count(by={"privacy": ["strict", "open", "standard"]})
    assert answer.value == {"strict": 50, "open": 20, "standard": 30}
    assert answer.error == 0
    assert set(answer.charges.values()) == {0.0}
    assert people.remaining().epsilons == {0.05: 0.05, 0.5: 0.5, 2.0: 2.0}
    with pytest.raises(eps.PlanError, match="nothing to plan"):
        people.plan("count", by={"privacy": ["strict"]})


def test_it_is_the_roster_that_counts_not_the_rows(people: eps.Dataset) -> None:
    people.withdraw([0, 1])
    people.set_level({2: "open"})
    counted = people.count(by={"privacy": list(WORDS)}).value
    assert counted == {"strict": 47, "standard": 30, "open": 20 + (people.describe().pending == 0)}


def test_anything_else_assumes_nothing(people: eps.Dataset) -> None:
    for asked in ({"by": {"privacy": list(WORDS)}}, {"where": "privacy = 'strict'"}):
        answer = people.mean("wage", bounds=(0, 100), assume="unrelated", **asked)  # type: ignore[arg-type]
        assert answer.assumption == "nothing is assumed about how preferences and values relate"
        assert any(ABOUT_PREFERENCES in caveat for caveat in answer.guarantee.caveats)
    counted = people.count(where="privacy = 'open'", assume="unrelated")
    assert "nothing is assumed" in counted.assumption
    # A question that leaves preferences alone keeps what it assumes.
    alone = people.sum("wage", bounds=(0, 100), assume="unrelated", mechanism="weighted")
    assert "say nothing about" in alone.assumption


def test_a_column_of_epsilons_counts_too() -> None:
    frame = pd.DataFrame({"id": [1, 2, 3], "epsilon": [0.5, 0.5, 1.0]})
    with eps.Dataset(
        frame, person="id", preferences=eps.Preferences.from_column("epsilon"), ledger="memory", ceiling=1e6
    ) as people:
        assert people.count(by={"epsilon": [0.5, 1.0, 3.0]}).value == {0.5: 2, 1.0: 1, 3.0: 0}


def test_a_count_of_people_is_not_about_preferences_that_come_from_no_column() -> None:
    """Neither has a column, which are not the same one."""
    preferences = {person: (0.05, 2.0)[person % 2] for person in range(100)}
    with eps.Dataset(
        pd.DataFrame({"id": np.arange(100)}), person="id", preferences=preferences, ledger="memory", ceiling=1e6
    ) as people:
        answer = people.count(mechanism="weighted", assume="unrelated")
    assert answer.assumption == ASSUMPTIONS["unrelated"]
    assert not any(ABOUT_PREFERENCES in caveat for caveat in answer.guarantee.caveats)

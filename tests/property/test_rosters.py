"""Who is on the roster is public and told by the caller; what one person has never decides anything for another.

One person's values become missing, or all their rows go. What everybody is promised and charged, which mechanism
serves, and whether anything is refused must stay the same, in every function and for every way to give epsilons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.arguments.options import ARRAYS, TABLES
from epsilons.errors import EpsilonsError
from epsilons.estimators import PersonalizedLinearRegression
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.testing import seeded
from support.fronts import AGE, BOUNDS, IDS, LEFT, PEOPLE, WAGE, facts, target
from support.lengths import some
from support.registered import open_people

#: One person is the only open one, one the only strict one: without either the levels would be others.
LEVEL = ["strict", "open"] + ["standard"] * (PEOPLE - 2)
NAMED = {"strict": 0.05, "standard": 1.0, "open": 8.0}
EPSILONS = np.array([NAMED[level] for level in LEVEL])
BY_ID = dict(zip(IDS.tolist(), EPSILONS.tolist(), strict=True))

WAYS: dict[str, Any] = {
    "list": EPSILONS.tolist(),
    "array": EPSILONS,
    "one for all": 1.0,
    "preferences": eps.Preferences(EPSILONS),
    "levels": eps.Preferences.from_levels(LEVEL, NAMED),
    "with a default": eps.Preferences([None, *EPSILONS[1:].tolist()], default=0.05),
    "roster": eps.Roster(IDS, EPSILONS),
    "roster by id": eps.Roster(IDS, eps.Preferences(BY_ID)),
}
#: What may be said of missing values: nothing, that there are none, that they stand at the centre.
WORDS: list[dict[str, Any]] = [{}, {"complete": True}, {"missing": "center"}]


def facts_of(release: eps.Release) -> tuple[Any, ...]:
    """All that is said of everybody, whatever the answer is."""
    return release.guarantee, dict(release.charges), dict(release.levels), release.mechanism, release.why


def outcome(ask: Callable[[], eps.Release]) -> Any:
    try:
        return facts_of(ask())
    except EpsilonsError as error:
        return type(error), str(error)


def without(values: Any, person: int) -> np.ndarray[Any, Any]:
    gone = np.array(values, np.float64)
    gone[person] = math.nan
    return gone


def by_turns(case: tuple[str, str]) -> bool:
    """For the short run: every statistic with every second way to give epsilons, the next one with the others."""
    return (list(CATALOGUE).index(case[0]) + list(WAYS).index(case[1])) % 2 == 0


@pytest.mark.parametrize(("name", "way"), some([(name, way) for name in CATALOGUE for way in WAYS], by_turns))
def test_a_missing_value_changes_nothing_for_others(name: str, way: str) -> None:
    entry = CATALOGUE[name]
    values = np.array(LEFT if target(entry) == "left" else WAGE, np.float64)

    def ask(those: Any, ages: Any, word: dict[str, Any]) -> Any:
        given = (ages if entry.pair else ages[:, None], those) if entry.model else (those,)
        known = {**facts(entry, ARRAYS), **word, "entropy": seeded(1)}
        return outcome(lambda: getattr(eps, entry.name)(*given, epsilons=WAYS[way], **known))

    for word in WORDS[: 2 if entry.model or entry.missing == "not counted" else None]:
        whole = ask(values, AGE, word)
        assert isinstance(whole[0], eps.Guarantee)
        for person in (0, 1, 2):
            assert ask(without(values, person), without(AGE, person), word) == whole


@pytest.mark.parametrize("way", WAYS)
def test_estimators_and_own_functions(way: str) -> None:
    def asked(values: Any, ages: Any) -> Iterator[Any]:
        model = PersonalizedLinearRegression(bounds_X=([18], [80]), bounds_y=BOUNDS["wage"])
        yield outcome(lambda: model.fit(ages[:, None], values, epsilons=WAYS[way], entropy=seeded(1)).release_)
        told = lambda sample, epsilon: epsilon  # noqa: E731 what the algorithm is run at
        yield outcome(lambda: eps.personalize(told, values, WAYS[way], entropy=seeded(1)))
        yield eps.personalize(told, values, WAYS[way], entropy=seeded(1)).value
        size = {"sensitivity": 100, "step": 1, "entropy": seeded(1)}
        yield outcome(lambda: eps.individually(lambda numbers: float(np.nansum(numbers)), values, WAYS[way], **size))

    whole = list(asked(WAGE, AGE))
    for person in (0, 1, 2):
        assert list(asked(without(WAGE, person), without(AGE, person))) == whole


def preferences_of_tables() -> dict[str, Any]:
    """How a table's people may be given so that whoever is listed is on the roster, with or without rows."""
    others = {one: epsilon for one, epsilon in BY_ID.items() if one != IDS[1]}
    second = pa.table({"who": IDS, "wish": LEVEL})
    return {
        "by id": BY_ID,
        "with a default": eps.Preferences({**others, IDS[1]: 8.0}, default=8.0),
        "second table": eps.Preferences.from_file(second, person="who", column="wish", levels=NAMED),
    }


@pytest.mark.parametrize("way", preferences_of_tables())
def test_rows_that_go_change_nothing_for_others(way: str, tmp_path: Path) -> None:
    """The table is opened anew, as a whole and without the rows of the most open person; both on enrolled people."""
    columns = {"id": IDS, "wage": WAGE, "age": AGE, "left": LEFT, "epsilon": EPSILONS, "level": LEVEL}
    whole = pa.table(columns)
    told = []
    for number, table in enumerate((whole, whole.filter(pa.array(IDS[1] != IDS)))):
        place = {
            "ledger": f"sqlite:///{tmp_path / str(number)}.ledger",
            "person": "id",
            "preferences": preferences_of_tables()[way],
        }
        with open_people(whole, **place):
            pass
        with open_people(table, **place) as people:
            answers = [
                outcome(
                    lambda entry=entry: getattr(people, entry.name)(target(entry), share=0.01, **facts(entry, TABLES))
                )
                for entry in (CATALOGUE[name] for name in ("count", "mean", "median", "linear_regression"))
            ]
            # Past answers, which are drawn anew, would be guesses for the plan.
            plan = people.plan("mean", "wage", bounds=BOUNDS["wage"], past=False)
        assert all(isinstance(answer[0], eps.Guarantee) for answer in answers)
        told.append(([[answer[0].losses, *answer[1:]] for answer in answers], str(plan)))
    assert told[0] == told[1]


def test_a_roster_of_whoever_has_rows_is_caught() -> None:
    """The planted bug: epsilons looked up for those who have rows move the threshold, from 8 to 1, for all others."""
    charges = []
    for gone in (None, 1):
        rows = [place for place in range(PEOPLE) if place != gone]
        told = lambda sample, epsilon: epsilon  # noqa: E731
        charges.append(eps.personalize(told, rows, EPSILONS[rows]).value)
    assert charges == [8.0, 1.0]

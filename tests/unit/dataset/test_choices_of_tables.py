"""Modes and tops of a table: whose rows count, what is charged, and what is said."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.dataset.answers import as_table
from epsilons.service.pages.charts import draw_answer
from epsilons.statistics.choice import Mode

RNG = np.random.default_rng(8)
PEOPLE = 400
IDS = np.repeat(np.arange(PEOPLE), 2)
REGION = RNG.choice(["north", "south", "west", "elsewhere", None], 2 * PEOPLE, p=[0.15, 0.45, 0.2, 0.1, 0.1])
WAGE = np.where(REGION == "west", 90.0, RNG.uniform(0, 10, 2 * PEOPLE))
SEX = np.where(IDS % 2 == 0, "f", "m")
AMONG = ["north", "south", "west"]
LEVELS = {"strict": 40.0, "open": 400.0}
TABLE = pa.table({
    "id": IDS, "region": pa.array(REGION.tolist()), "wage": WAGE, "sex": SEX,
    "privacy": np.where(IDS % 3 == 0, "strict", "open"),
})  # fmt: skip


@pytest.fixture
def people() -> Iterator[eps.Dataset]:
    """At epsilons so large that options are drawn nearly for certain."""
    preferences = eps.Preferences.from_levels("privacy", LEVELS)
    with eps.Dataset(
        TABLE,
        person="id",
        preferences=preferences,
        ledger="memory",
        ceiling=1e3,
        rows_per_person=2,
        keys={"region": AMONG},
    ) as opened:
        yield opened


def counted(kept: Any = True) -> dict[str, int]:
    return {option: int(((option == REGION) & kept).sum()) for option in AMONG}


def test_rows_count_that_meet_the_condition_and_name_an_option(people: eps.Dataset) -> None:
    north = people.mode("region", where="region <> 'south'")
    assert north.value == "west"
    assert max(counted(), key=counted().__getitem__) == "south" == people.mode("region").value
    assert people.mode("region", among=["north", "west"]).value == "west"


def test_groups_have_an_option_each(people: eps.Dataset) -> None:
    answer = people.mode("region", by={"sex": ["f", "m"]})
    expected = {sex: max(AMONG, key=counted(sex == SEX).__getitem__) for sex in ("f", "m")}
    assert answer.value == expected
    assert set(answer.error) == {"f", "m"}
    assert "north" not in str(answer.error)


def test_totals_decide_where_they_are_asked_for(people: eps.Dataset) -> None:
    assert people.top("region", 2).value == ["south", "west"]
    assert people.top("region", 1, total="wage", bounds=(0, 100)).value == ["west"]
    # Cut to 10 the many small wages of the south are more.
    sums = {option: np.minimum(WAGE[option == REGION], 10).sum() for option in AMONG}
    best = max(sums, key=sums.__getitem__)
    assert people.top("region", 1, total="wage", bounds=(0, 10)).value == [best]


def test_what_is_asked_again_is_stored_and_survives_json(people: eps.Dataset) -> None:
    for ask in (people.mode, people.top):
        first = ask("region", share=0.05, **({"k": 2} if ask == people.top else {}))
        before = people.remaining().epsilons
        again = ask("region", share=0.05, **({"k": 2} if ask == people.top else {}))
        assert again.number == first.number
        assert people.remaining().epsilons == before
        assert eps.Release.from_dict(first.to_dict()).value == first.value


def test_an_option_has_no_interval_and_its_error_says_what_it_is(people: eps.Dataset) -> None:
    answer = people.mode("region", mechanism="minimum")
    assert answer.error == pytest.approx(math.log(3) * 2 / (40 * 0.1))
    assert "how many rows more of the best option there may be" in str(answer)
    assert answer.guarantee.kind == "personalized DP"
    with pytest.raises(eps.PlanError, match="An option is no number"):
        answer.interval()


def test_a_query_and_a_batch_ask_the_same(people: eps.Dataset) -> None:
    assert people.sql("SELECT MODE(region) AS most FROM people", share=0.1)["most"].value == "south"
    given = people.sql("SELECT MODE(sex) AS most FROM people", keys={"sex": ["f", "m"]}, share=0.05)
    assert given["most"].value in ("f", "m")
    with people.batch(share=0.1) as ask:
        common, best = ask.mode("region"), ask.top("region", 1, total="wage", bounds=(0, 100))
    assert (common.value, best.value) == ("south", ["west"])


def test_the_level_of_most_people_is_known_from_the_roster() -> None:
    single = TABLE.take(list(range(0, 2 * PEOPLE, 2)))
    preferences = eps.Preferences.from_levels("privacy", LEVELS)
    with eps.Dataset(single, person="id", preferences=preferences, ledger="memory", ceiling=1e3) as opened:
        answer = opened.mode("privacy", among=["strict", "open"])
        assert (answer.value, answer.mechanism, set(answer.charges.values())) == ("open", "exact", {0.0})
        assert opened.top("privacy", 1, among=["strict", "open"]).value == ["open"]


def test_options_that_look_like_numbers_are_told_as_they_are_written() -> None:
    """Not 2,024 nor 0.1235 nor 1 ± 0; and no chart draws them as heights."""
    table = pa.table({"id": range(3), "year": [2024] * 3, "size": [0.123456] * 3, "new": [True] * 3, "e": [900.0] * 3})
    asked: dict[str, list[Any]] = {"year": [2023, 2024], "size": [0.123456, 2.0], "new": [False, True]}
    preferences = eps.Preferences.from_column("e")
    with eps.Dataset(table, person="id", preferences=preferences, ledger="memory", ceiling=1e3) as opened:
        for column, among in asked.items():
            best = str(among[column != "size"])
            answer = opened.mode(column, among=among)
            assert str(answer).startswith(f"mode of 2 options of {column}: {best} ± 0.00")
            assert answer.sheets()[0].rows[0][1] == best
            assert as_table(answer).table()[1][0][0] == best
            assert draw_answer(answer) is None
        assert draw_answer(opened.count()) is not None
        known = opened.mode("e", among=[900.0, 1.0])
        assert str(known).startswith("mode of 2 options on the roster of e: 900.0 (exact")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"column": "sex"}, "no registered keys"),
        ({"column": "region", "among": ["north"]}, "chosen among options"),
        ({"column": "region", "among": ["north", "north"]}, "Options repeat"),
        ({"column": "region", "among": "north"}, "chosen among options"),
        ({"column": "region", "mechanism": "exponential"}, "no further rows"),
        ({"column": "region", "mechanism": "robust"}, "it serves counts"),
        ({"column": "wage", "among": ["a", "b"]}, "Options of column 'wage'"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anybody_pays(
    people: eps.Dataset, given: dict[str, Any], said: str
) -> None:
    before = people.remaining().epsilons
    with pytest.raises(eps.EpsilonsError) as caught:
        people.mode(**given)
    assert said in str(caught.value)
    assert people.remaining().epsilons == before


def test_tops_refuse_more_than_there_are_and_bounds_of_nothing(people: eps.Dataset) -> None:
    with pytest.raises(eps.PlanError, match="fewer than options"):
        people.top("region", 3)
    with pytest.raises(eps.PlanError, match="those of the column whose totals are compared"):
        people.top("region", 1, bounds=(0, 1))
    with pytest.raises(eps.PlanError, match="needs bounds"):
        people.top("region", 1, total="wage")
    with pytest.raises(eps.EpsilonsError, match="not numbers"):
        people.top("region", 1, total="sex", bounds=(0, 1))


def test_a_concentrated_account_pays_for_a_range() -> None:
    """rho = e^2/8 of a single draw; k draws of e/sqrt(k) cost no more."""
    preferences = eps.Preferences.from_levels("privacy", {"strict": 1.0, "open": 2.0})
    with eps.Dataset(
        TABLE, person="id", preferences=preferences, rows_per_person=2, ledger="memory", measure="zcdp", delta=1e-6
    ) as opened:
        granted = opened.remaining().epsilons
        answer = opened.top("region", 2, among=AMONG, share=0.5, mechanism="weighted")
        assert answer.guarantee.delta == pytest.approx(1e-6)
        assert granted
        statistic = Mode(None, tuple(AMONG))
        assert statistic.loss_factor * 8 == 1

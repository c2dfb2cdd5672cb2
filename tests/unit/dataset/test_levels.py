"""Questions about people's preferences themselves: exact from the roster, or with nothing assumed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import epsilons as eps
from epsilons.arguments.checks import ASSUMPTIONS
from epsilons.dataset.question import ABOUT_PREFERENCES, BY_THE_ROSTER, ROWS_ARE_PRIVATE

WORDS = {"strict": 0.05, "standard": 0.5, "open": 2.0}
#: Of intervals that end where nothing else is possible, whatever the noise.
SURE = 0.999999
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


@pytest.mark.parametrize(
    ("condition", "number"),
    [
        ("privacy = 'strict'", 50),
        ("privacy IN ('strict', 'open') AND privacy <> 'open'", 50),
        ("NOT privacy = 'strict'", 50),
        ("privacy LIKE 's%'", 80),
        ("privacy NOT LIKE '%t'", 50),
        ("privacy LIKE '%an%' OR privacy = 'nobody'", 30),
        ("privacy > 'p'", 80),
        ("privacy IS NULL", 0),
        ("privacy IS NOT NULL", 100),
    ],
)
def test_a_condition_on_preferences_alone_is_free_and_exact(people: eps.Dataset, condition: str, number: int) -> None:
    answer = people.count(where=condition)
    assert (answer.value, answer.error, answer.interval()) == (number, 0, (number, number))
    assert set(answer.charges.values()) == {0.0}
    assert "on the roster" in str(answer)
    assert answer.number is None


def test_histograms_and_queries_about_preferences_alone_are_free(people: eps.Dataset) -> None:
    held = people.histogram("privacy", categories=["open", "strict", "nobody"])
    assert held.value == {"open": 20, "strict": 50, "nobody": 0}
    assert held.interval()["open"] == (20, 20)
    grouped = people.sql("SELECT privacy, COUNT(*) AS n FROM people GROUP BY privacy", keys={"privacy": list(WORDS)})
    assert [row["n"] for row in grouped.rows()] == [50, 30, 20]
    assert people.sql("SELECT COUNT(*) AS n FROM people WHERE privacy = 'open'").rows() == [{"n": 20}]
    assert people.remaining().epsilons == {0.05: 0.05, 0.5: 0.5, 2.0: 2.0}
    assert not people.history()


def test_rows_are_charged_for_where_people_may_have_several() -> None:
    frame = pd.DataFrame({"id": [1, 1, 2, 3], "epsilon": [0.5, 0.5, 1.0, 1.0]})
    grants = eps.Preferences.from_column("epsilon")
    with eps.Dataset(frame, person="id", preferences=grants, ledger="memory", ceiling=1e6, rows_per_person=2) as people:
        rows = people.count(where="epsilon = 0.5", of="rows")
        assert rows.number == 1
        assert any(ROWS_ARE_PRIVATE in caveat for caveat in rows.guarantee.caveats)
        assert people.count(where="epsilon <= 0.5", of="people").value == 1
        assert people.histogram("epsilon", edges=[0, 0.6, 1]).number is not None


def test_a_roster_that_cannot_tell_two_names_apart_does_not_count_them() -> None:
    frame = pd.DataFrame({"id": range(4), "privacy": ["strict", "cautious", "open", "open"]})
    words = {"strict": 0.1, "cautious": 0.1, "open": 2.0}
    grants = eps.Preferences.from_levels("privacy", words)
    with eps.Dataset(frame, person="id", preferences=grants, ledger="memory", ceiling=1e6) as people:
        assert people.count(by={"privacy": list(words)}).number == 1


def test_epsilons_fall_into_bins_as_rows_do() -> None:
    frame = pd.DataFrame({"id": range(5), "epsilon": [0.1, 0.5, 0.5, 1.0, 3.0]})
    grants = eps.Preferences.from_column("epsilon")
    with eps.Dataset(frame, person="id", preferences=grants, ledger="memory", ceiling=1e6) as people:
        counted = people.histogram("epsilon", edges=[0.2, 0.5, 1.0])
        assert counted.value == {(0.2, 0.5): 0, (0.5, 1.0): 3}
        clipped = people.histogram("epsilon", edges=[0.2, 0.5, 1.0], outside="clip")
        assert clipped.value == {(0.2, 0.5): 1, (0.5, 1.0): 4}


def test_it_is_the_roster_that_counts_not_the_rows(people: eps.Dataset) -> None:
    people.withdraw([0, 1])
    people.set_level({2: "open"})
    counted = people.count(by={"privacy": list(WORDS)}).value
    assert counted == {"strict": 47, "standard": 30, "open": 20 + (people.describe().pending == 0)}


def test_anything_else_assumes_nothing(people: eps.Dataset) -> None:
    for asked in ({"by": {"privacy": list(WORDS)}}, {"where": "privacy <> 'strict'"}):
        answer = people.mean("wage", bounds=(0, 100), assume="unrelated", **asked)  # type: ignore[arg-type]
        assert answer.assumption == "nothing is assumed about how preferences and values relate"
        assert any(ABOUT_PREFERENCES in caveat for caveat in answer.guarantee.caveats)
    # Whoever weighs nothing may count. An error as wide as the bounds would say nothing.
    some: dict[str, Any] = {"bounds": (0, 100), "mechanism": "threshold", "threshold": "max"}
    alone = people.mean("wage", where="privacy <> 'strict'", **some)
    assert (alone.error, alone.interval()) == (None, (0, 100))
    assert "whether all who do have weight" in alone.no_error
    counted = people.count(where="privacy = 'open' AND wage > 10", assume="unrelated")
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


def test_a_plan_takes_from_the_roster_whom_it_concerns(people: eps.Dataset) -> None:
    asked = {"bounds": (0, 100), "where": "privacy = 'open'"}
    plan = people.plan("mean", "wage", **asked)
    (guess,) = plan.guesses
    assert (guess.name, guess.value, guess.source) == ("density", pytest.approx(1, abs=1e-5), "the roster")
    assert plan.best.expected == people.plan("mean", "wage", **asked, density=1.0).best.expected
    assert plan.levels.sizes == (20,)
    grouped = people.plan("mean", "wage", bounds=(0, 100), by={"privacy": ["open", "strict"]})
    assert {one.name: one.value for one in grouped.guesses} == {"density": 0.35}


def test_what_the_roster_tells_takes_nothing_of_a_batch(people: eps.Dataset) -> None:
    ask = people.batch(share=0.2)
    free, wage = ask.count(where="privacy = 'open'"), ask.mean("wage", bounds=(0, 100))
    also = ask.count(by={"privacy": ["strict"]})
    assert [row.share for row in ask.plan().rows] == [0.0, 0.2, 0.0]
    assert "free" in str(ask.plan())
    ask.ask()
    assert (free.value, also.value, len(people.history())) == (20, {"strict": 50}, 1)
    assert wage.charges[0.05] == pytest.approx(0.2 * 0.05)
    alone = people.batch(share=0.2)
    alone.count(where="privacy = 'open'")
    assert alone.plan().share == 0.0


def test_a_total_over_rows_of_a_level_is_one_of_no_more_people_than_may_have_them(people: eps.Dataset) -> None:
    """Not even with so much noise. Of groups: those at the level and at stricter ones, whose rows may name others."""
    asked = {"share": 0.001, "fresh": True}
    for _ in range(4):
        by = people.count(by={"privacy": ["open", "strict"], "wage": [0.0, 100.0]}, **asked)
        for (level, _), (low, high) in by.interval(SURE).items():
            assert 0 <= low <= high == {"open": 100, "strict": 50}[level]
        assert all(by.value[key] <= by.interval(SURE)[key][1] and by.error[key] <= 100 for key in by.value)
    both = people.count(where="privacy = 'open' AND wage > 10", **asked)
    assert both.interval(SURE)[1] == pytest.approx(20, abs=0.01)
    assert people.count(where="privacy = 'open' OR wage > 10", **asked).interval(SURE)[1] == pytest.approx(
        100, abs=1e-3
    )
    bins = people.histogram("wage", edges=[0, 50, 100], where="privacy <> 'strict'", **asked)
    assert max(high for _, high in bins.interval(SURE).values()) == pytest.approx(50, abs=0.01)
    for _ in range(4):
        total = people.sum("wage", bounds=(-10, 100), where="privacy = 'strict' AND wage > 10", **asked)
        assert total.interval(SURE) == (-10 * 50, 100 * 50)
        assert -10 * 50 <= total.value <= 100 * 50
        assert total.error <= 110 * 50
    people.set_level({99: "strict", 98: "strict", 0: "open"})
    # Rows keep the word of their source; whom a condition concerns is what holds now.
    assert people.count(where="privacy = 'open' AND wage > 10", **asked).interval(SURE)[1] == pytest.approx(
        19, abs=1e-3
    )


def test_an_error_knows_that_noise_is_cut_to_a_level(people: eps.Dataset) -> None:
    """All of whom are used alike: nothing is left out, so that what remains of the noise is all of it."""
    asked = {"where": "privacy = 'open' AND wage > 95", "share": 0.02, "mechanism": "minimum"}
    truth, found = 5, [people.count(**asked, fresh=True) for _ in range(40)]
    real = math.sqrt(np.mean([(one.value - truth) ** 2 for one in found]))
    stated = {one.error for one in found}
    assert len(stated) == 1
    # At the worst truth: cut to 0 or 20 by half of the noise each, sqrt(1/2) of the width at most.
    assert real <= 1.3 * max(stated) <= 1.3 * 20 * math.sqrt(0.5)


SEVERAL = pd.DataFrame(
    {
        "id": [*range(60), *range(20)],
        "wage": [90.0] * 20 + [30.0] * 40 + [90.0] * 20,
        "privacy": ["strict"] * 20 + ["standard"] * 20 + ["open"] * 40,
    }
)


@pytest.mark.parametrize("where", ["privacy = 'open'", "privacy = 'open' AND wage > 1"])
def test_only_those_are_used_and_pay_whose_preference_on_the_roster_meets_a_condition(where: str) -> None:
    """Strict people have rows that say "open", with other wages: they move nothing and pay nothing."""
    told: dict[str, Any] = {"person": "id", "ledger": "memory", "rows_per_person": 2, "ceiling": 1e6}
    for levels in (WORDS, {**WORDS, "open": 1e5}):
        grants = eps.Preferences.from_levels("privacy", levels)
        with eps.Dataset(SEVERAL, preferences=grants, **told) as people:
            counted = people.count(where="privacy = 'open'", of="people")
            assert counted.value == 20
            total = people.count(where=f"{where} AND wage > 2", share=0.001)
            assert total.interval(SURE)[1] <= 40
            mean = people.mean("wage", bounds=(0, 100), where=where, share=0.9)
            assert any(BY_THE_ROSTER in caveat for caveat in mean.guarantee.caveats)
            assert [grant for grant, paid in mean.charges.items() if paid] == [levels["open"]]
            assert set(mean.charges) == set(levels.values())
    # With so little noise the answer itself shows whose rows it is of.
    assert mean.value == pytest.approx(30, abs=0.1)


def test_public_people_are_asked_about_exactly() -> None:
    words = ["strict", "strict", "all", "all"]
    frame = pd.DataFrame({"id": range(4), "wage": [10.0, 20.0, 30.0, 40.0], "privacy": words})
    grants = eps.Preferences.from_levels("privacy", {"strict": 0.1, "all": math.inf})
    with eps.Dataset(frame, person="id", preferences=grants, ledger="memory") as people:
        mean = people.mean("wage", bounds=(0, 100), where="privacy = 'all'")
        assert (mean.value, mean.error) == (pytest.approx(35), 0)
        assert mean.charges[0.1] == 0


MEETING = {
    "= 'open'": lambda word: word == "open",
    "= 'standard'": lambda word: word == "standard",
    "<> 'strict'": lambda word: word not in (None, "strict"),
    "IS NULL": lambda word: word is None,
    "LIKE '%st%'": lambda word: word in ("strict", "standard"),
}


def test_no_total_is_cut_below_what_rows_of_several_words_can_add_up_to() -> None:
    """By brute force: people whose rows name any levels, or none; whichever of their rows are kept."""
    dice, order = np.random.default_rng(18), [*WORDS]
    for rows in (1, 3):
        for _ in range(6):
            whose = np.sort(dice.integers(0, 6, 12)).tolist()
            said = dice.choice([*order, None], 12).tolist()
            frame = pd.DataFrame({"id": whose, "wage": 1.0, "privacy": said})
            told = eps.Preferences.from_levels("privacy", WORDS, default="standard")
            pairs = list(zip(whose, said, strict=True))
            roster = {
                one: min((word or "standard" for who, word in pairs if who == one), key=order.index) for one in whose
            }
            with eps.Dataset(frame, person="id", preferences=told, ledger="memory", rows_per_person=rows) as people:
                for condition, meets in MEETING.items():
                    asked = {"where": f"privacy {condition} AND wage > 0", "of": "people"}
                    concerned = {one for one, word in roster.items() if meets(word)}
                    concerned = set(whose) if meets(None) else concerned
                    if not concerned:
                        with pytest.raises(eps.PlanError, match="Nobody on the roster has a level that meets"):
                            people.count(**asked, share=0.001, fresh=True)
                        continue
                    counted = people.count(**asked, share=0.001, fresh=True)
                    most = len({who for who, word in pairs if who in concerned and meets(word)})
                    assert round(counted.interval(SURE)[1], 3) >= most
                groups = people.count(by={"privacy": order, "wage": [1.0]}, of="people", share=0.001, fresh=True)
                for (level, _), (_, high) in groups.interval(SURE).items():
                    assert round(high, 3) >= len({who for who, word in pairs if word == level})


@pytest.mark.parametrize("condition", ["IS NULL", "IS NULL OR wage < 0", "= 'low' OR privacy IS NULL"])
def test_rows_without_a_level_are_those_of_people_at_the_default_too(condition: str) -> None:
    """Also once somebody stands at an epsilon that has no name."""
    frame = pd.DataFrame({"id": range(20), "wage": 1.0, "privacy": [None] * 15 + ["high"] * 5})
    told = eps.Preferences.from_levels("privacy", {"low": 1.0, "high": 5.0}, default="low")
    with eps.Dataset(frame, person="id", preferences=told, ledger="memory") as people:
        people.set_level({1: 1.5})
        summed = people.sum("wage", bounds=(0, 1), where=f"privacy {condition}", share=0.9, mechanism="minimum")
        assert summed.interval(SURE)[0] <= 15 <= summed.interval(SURE)[1]
        assert {grant for grant, charge in summed.charges.items() if charge} == {1.0, 1.5, 5.0}


def test_a_level_keeps_those_who_chose_it_when_it_meant_another_epsilon(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": range(20), "wage": 1.0, "privacy": ["low"] * 10 + ["high"] * 10})
    named = {"person": "id", "name": "wages", "ledger": f"sqlite:///{tmp_path}/people.ledger", "ceiling": 50}

    def register(high: float, version: str, low: float = 1.0, **more: Any) -> eps.Dataset:
        told = eps.Preferences.from_levels("privacy", {"low": low, "high": high})
        table = frame.assign(version=version)
        return eps.Dataset.register(table, preferences=told, version=version, confirm=True, **named, **more)

    with register(10.0, "1") as people:
        people.set_level(dict.fromkeys(range(10, 15), "high"))
    with register(20.0, "2", redefine=True, loosen=5) as people:
        assert {(one.granted, one.level) for one in people.ledger.cohorts()} >= {(10**10, "high"), (2 * 10**10, "high")}
        summed = people.sum("wage", bounds=(0, 1), where="privacy = 'high'", share=0.9, mechanism="minimum")
        assert summed.interval(SURE)[0] <= 10 <= summed.interval(SURE)[1]
        assert summed.value == pytest.approx(10, abs=3)
        # The roster counts them by the level they are at, too, whoever asks in which way.
        for counted in (
            people.count(by={"privacy": ["low", "high"]}),
            people.histogram("privacy", categories=["low", "high"]),
        ):
            assert counted.value == {"low": 10, "high": 10}
            assert counted.charges == {1.0: 0.0, 10.0: 0.0, 20.0: 0.0}
        assert people.count(where="privacy = 'high'").value == 10
        assert people.sql("SELECT COUNT(*) AS n FROM people WHERE privacy = 'high'").rows() == [{"n": 10}]
    with register(20.0, "3", 10.0, redefine=True, loosen=10) as people:
        # Another level means what theirs meant: theirs is still theirs.
        assert people.count(by={"privacy": ["low", "high"]}).value == {"low": 10, "high": 10}
        people.sum("wage", bounds=(0, 1), where="privacy = 'low'", mechanism="minimum", share=0.5)
        assert [len(people.statement(who).uses) for who in (0, 10)] == [1, 1]
        assert [people.statement(who).uses[-1].number for who in (0, 10)] == [2, 1]


def test_a_column_of_epsilons_says_nothing_of_single_rows() -> None:
    frame = pd.DataFrame({"id": [1, 1, 2], "wage": [30.0, 30.0, 30.0], "epsilon": [0.5, 2.0, 2.0]})
    grants = eps.Preferences.from_column("epsilon")
    with eps.Dataset(frame, person="id", preferences=grants, ledger="memory", rows_per_person=2) as people:
        counted = people.count(where="epsilon = 2 AND wage > 20", of="people", share=0.001)
        assert counted.interval(SURE)[1] == pytest.approx(2, abs=0.01)


def test_an_error_is_reached_by_the_roster_without_a_rough_count(people: eps.Dataset) -> None:
    asked = {"bounds": (0, 100), "where": "privacy <> 'strict'"}
    error = 1.5 * people.plan("mean", "wage", **asked, share=1).best.expected
    plan = people.plan("mean", "wage", **asked, error=error)
    assert not plan.counts_first
    answer = people.mean("wage", **asked, error=error)
    assert answer.number is not None
    assert len(people.history()) == 1

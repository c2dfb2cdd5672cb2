"""Public columns: part of the roster, so that conditions and groups on them are about known people, who alone pay."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import epsilons as eps
from epsilons.dataset import table
from epsilons.dataset.facts import TableFacts
from epsilons.errors import BudgetExceeded, DataError, PlanError
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.merging import MOST
from epsilons.ledger.rosters import read_public
from epsilons.ledger.values import STORED, TOUCHED, Cohort
from epsilons.release.door import Spendable
from epsilons.testing import seeded

WORDS = {"strict": 0.5, "standard": 1.0, "open": 4.0}
REGIONS = ("north", "south", "east")
N = 600


def frame(**more: Any) -> pd.DataFrame:
    place = np.arange(N)
    columns = {
        "id": place,
        "region": [REGIONS[i % 3] for i in place],
        "sex": [i % 2 == 0 for i in place],
        "age": 18 + place % 60,
        "wage": 20.0 + place % 50,
        "privacy": [list(WORDS)[(i // 3) % 3] for i in place],
    }
    return pd.DataFrame({**columns, **more})


SETTLED: dict[str, Any] = {
    "person": "id",
    "preferences": eps.Preferences.from_levels("privacy", WORDS),
    "complete": ["wage", "age"],
    "bounds": {"wage": (0, 100)},
    "public": ["region", "sex"],
}


@pytest.fixture
def people() -> Iterator[eps.Dataset]:
    with eps.Dataset(frame(), **SETTLED, ledger="memory") as made:
        yield made


def spent(people: eps.Dataset) -> dict[str, set[int]]:
    """What cohorts have spent, by region."""
    found: dict[str, set[int]] = {}
    for cohort in people.ledger.cohorts():
        (known,) = read_public(cohort.datasets).values()
        found.setdefault(known["region"], set()).add(cohort.spent)
    return found


def count_spent(people: eps.Dataset) -> Counter[int]:
    """How many people have spent how much."""
    found: Counter[int] = Counter()
    for one in people.ledger.cohorts():
        found[one.spent] += one.people
    return found


CONDITIONS = {
    "region = 'north'": {"north"},
    "region IN ('north', 'east')": {"north", "east"},
    "NOT region = 'north'": {"south", "east"},
    "region LIKE '%th'": {"north", "south"},
    "region = 'north' AND age < 30": {"north"},
    "(region = 'north' AND age < 30) OR region = 'east'": {"north", "east"},
    "region = 'north' AND privacy = 'open'": {"north"},
    "region = 'north' OR age < 30": set(REGIONS),
    "age < 30": set(REGIONS),
}


@pytest.mark.parametrize(("condition", "pay"), CONDITIONS.items())
def test_only_those_whom_the_public_part_concerns_are_charged(
    people: eps.Dataset, condition: str, pay: set[str]
) -> None:
    people.mean("wage", where=condition, share=0.2)
    assert {region for region, nano in spent(people).items() if nano != {0}} == pay
    people.ledger.verify()


@pytest.mark.parametrize("condition", [*CONDITIONS, "sex = TRUE AND region <> 'south'", "sex = FALSE OR age > 70"])
def test_conditions_are_settled_as_rows_would_have_it(people: eps.Dataset, condition: str) -> None:
    """A slow obvious version: of every person, whether some age and some level would let them meet the condition."""
    import duckdb

    world = frame()[["region", "sex"]].drop_duplicates()
    others = pd.DataFrame([(age, word) for age in range(101) for word in WORDS], columns=["age", "privacy"])
    everything = world.merge(others, how="cross")
    found = duckdb.sql(f"SELECT DISTINCT region, sex FROM everything WHERE {condition}").fetchall()
    assert len(everything)
    people.sum("wage", where=condition, share=0.2)
    paid = {tuple(*(known.values() for known in read_public(one.datasets).values()))
            for one in people.ledger.cohorts() if one.spent}  # fmt: skip
    assert paid == set(found)


def test_counts_by_public_columns_are_free_and_exact(people: eps.Dataset) -> None:
    table = frame()
    for column in ("region", "sex"):
        assert people.count(by=column).value == table[column].value_counts().to_dict()
    both = people.count(by=["region", "sex"])
    assert both.value == table.groupby(["region", "sex"]).size().to_dict()
    assert (both.error, both.mechanism, set(both.charges.values())) == (0, "exact", {0.0})
    among = "region = 'north' AND privacy IN ('strict', 'open')"
    assert people.count(where=among).value == len(table.query("region == 'north' and privacy in ('strict', 'open')"))
    crossed = people.count(by={"region": ["south"], "privacy": ["open", "strict"]}).value
    assert crossed == {("south", word): len(table.query(f"region == 'south' and privacy == '{word}'"))
                       for word in ("open", "strict")}  # fmt: skip
    assert set.union(*spent(people).values()) == {0}
    with pytest.raises(PlanError, match="nothing to plan"):
        people.plan("count", where="region = 'north'")


def test_rows_of_people_who_have_several_are_private_and_charged() -> None:
    twice = pd.concat([frame(), frame()])
    with eps.Dataset(twice, **SETTLED, rows_per_person=2, ledger="memory") as people:
        assert people.count(of="people", where="region = 'north'").mechanism == "exact"
        rows = people.count(of="rows", where="region = 'north'", share=0.2)
    assert rows.mechanism != "exact"


def test_of_a_public_part_everything_is_as_if_nobody_else_were_there(people: eps.Dataset) -> None:
    """Its number is known: no private denominator, the mechanisms and errors of a table of these people alone."""
    part = frame().query("region == 'north'")
    with eps.Dataset(part, **SETTLED, ledger="memory") as alone:
        for asked in (("mean", "wage"), ("sum", "wage"), ("variance", "wage"), ("median", "wage")):
            here, there = people.plan(*asked, where="region = 'north'", share=0.2), alone.plan(*asked, share=0.2)
            assert here.to_dict()["rows"] == there.to_dict()["rows"]
        drawn = [one.mean("wage", share=0.2, entropy=seeded(3), **more)
                 for one, more in ((people, {"where": "region = 'north'"}), (alone, {}))]  # fmt: skip
    assert drawn[0].value == drawn[1].value
    assert drawn[0].error == drawn[1].error


def test_no_digit_of_a_plan_follows_the_order_in_which_an_engine_numbers_cohorts(
    people: eps.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = people.plan("mean", "wage", share=0.2).to_dict()
    calibrate, orders = table.stratify, []

    def stratify(spendable: Spendable, cohorts: Sequence[Cohort], facts: TableFacts) -> Spendable | None:
        orders.append(len(cohorts))
        made = [calibrate(spendable, order, facts) for order in (cohorts, cohorts[::-1], sorted(cohorts, key=str))]
        assert made[0] == made[1] == made[2] is not None
        return made[1]

    monkeypatch.setattr(table, "stratify", stratify)
    assert people.plan("mean", "wage", share=0.2).to_dict() == told
    assert orders == [18]


def test_one_of_twenty_regions_is_far_better_known_if_regions_are_public() -> None:
    """Theory, section 12: 22.4 -> .96 for one of 20 regions asked by itself."""
    place = np.arange(4_000)
    table = pd.DataFrame({"id": place, "region": place % 20, "wage": 40.0 + place % 20})
    settled: dict[str, Any] = {"person": "id", "preferences": 1.0, "complete": ["wage"], "bounds": {"wage": (0, 100)}}
    errors = []
    for public in ([], ["region"]):
        with eps.Dataset(table, **settled, public=public, ledger="memory") as people:
            density = {} if public else {"density": 0.05}
            share = 0.1 if public else 0.1 / 20  # each of 20 questions charges everybody
            errors.append(people.plan("mean", "wage", where="region = 3", share=share, **density).best.expected)
    assert errors[1] < errors[0] / 10


def test_groups_are_asked_about_by_themselves_in_one_release(people: eps.Dataset) -> None:
    grouped = people.mean("wage", by="region", share=0.2, mechanism="weighted")
    assert set(grouped.value) == set(REGIONS)
    charges = spent(people)
    assert people.history()[-1].number == grouped.number == 1
    for region, error in grouped.error.items():
        where = f"region = '{region}'"
        assert people.plan("mean", "wage", where=where, share=0.2)["weighted"].error == pytest.approx(error, rel=0.2)
        one = people.mean("wage", where=where, share=0.2, mechanism="weighted")
        assert max(charges[region]) * 2 == max(spent(people)[region])
        assert one.charges == grouped.charges
    assert grouped.interval().keys() == grouped.value.keys()
    assert people.mean("wage", by="region", share=0.2, mechanism="weighted").to_dict() == grouped.to_dict()
    people.ledger.verify()


def test_groups_come_near_the_truth_for_every_statistic() -> None:
    table = frame()
    settled = {**SETTLED, "preferences": 10.0}
    with eps.Dataset(table, **settled, ledger="memory") as people:
        north = table.query("region == 'north'")
        assert people.mean("wage", by="region", share=0.1).value["north"] == pytest.approx(north["wage"].mean(), abs=2)
        assert people.sum("wage", by="region", share=0.1).value["north"] == pytest.approx(north["wage"].sum(), rel=0.05)
        middle = people.median("wage", by="region", share=0.2).value["north"]
        assert middle == pytest.approx(north["wage"].median(), abs=8)
        bins = people.histogram("age", edges=[18, 48, 78], by="region", share=0.1)
        assert bins.value["north", (18, 48)] == pytest.approx(len(north.query("age < 48")), abs=10)
        young = people.count(where="age < 48", by=["region", "sex"], share=0.1)
        assert young.value["north", True] == pytest.approx(len(north.query("age < 48 and sex")), abs=12)
        answers = people.sql("SELECT region, AVG(wage) FROM people GROUP BY region", share=0.1)
    assert len(answers) == 1


def test_a_plan_of_groups_shows_the_worst_of_them_and_can_be_asked(people: eps.Dataset) -> None:
    plan = people.plan("mean", "wage", by="region", share=0.2)
    worst = max(people.plan("mean", "wage", where=f"region = '{one}'", share=0.2).best.expected for one in REGIONS)
    assert plan.best.expected == worst
    assert set(plan.ask().value) == set(REGIONS)
    with people.batch(share=0.2) as ask:
        both = ask.mean("wage", by="region"), ask.count(by="region")
    assert both[1].value["north"] == N / 3
    assert set(both[0].value) == set(REGIONS)


def test_groups_that_were_cut_off_midway_are_taken_up_by_their_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"sqlite:///{tmp_path}/a.ledger"
    with eps.Dataset.register(frame(), name="wages", ledger=path, **SETTLED) as people:
        store = Ledger.store

        def cut_off(*_: Any, **__: Any) -> bytes:
            raise KeyboardInterrupt

        monkeypatch.setattr(Ledger, "store", cut_off)
        with pytest.raises(KeyboardInterrupt):
            people.mean("wage", by=["region", "sex"], share=0.3)
        charged = spent(people)
        assert people.history()[-1].state == TOUCHED
        monkeypatch.setattr(Ledger, "store", store)
    with eps.Dataset.open("wages", ledger=path) as people:
        answer = people.mean("wage", by=["region", "sex"], share=0.3)
        assert (answer.number, people.history()[-1].state, spent(people)) == (1, STORED, charged)
        people.ledger.verify()


def test_a_part_that_has_nothing_left_does_not_end_the_others(people: eps.Dataset) -> None:
    for nth in range(3):
        people.mean("wage", where="region = 'north'", share=0.5 if nth else 0.25, mechanism="stretching", fresh=True)
    with pytest.raises(BudgetExceeded):
        people.mean("wage", where="region = 'north'", share=0.5, fresh=True)
    assert people.mean("wage", where="region = 'south'", share=0.5).number == 4


def test_nobody_there_is_told_before_anybody_is_charged(people: eps.Dataset) -> None:
    with pytest.raises(PlanError, match="Nobody on the roster has a public value") as told:
        people.mean("wage", where="region = 'west'")
    assert "east, north, south" in str(told.value)
    with pytest.raises(PlanError, match="Nobody on the roster is in group 'west'"):
        people.mean("wage", by={"region": ["north", "west"]})
    assert people.count(where="region = 'west'").value == 0
    assert set.union(*spent(people).values()) == {0}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a missing value": ({"region": ["north"] * (N - 1) + [None]}, "does not say something about everybody"),
    "a number that is not whole": ({"region": np.linspace(0, 1, N)}, "numbers that are not whole"),
    "too many values": ({"region": [f"place {i}" for i in range(N)]}, "too many values"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_public_fact_about_everybody_is_refused(case: str, tmp_path: Path) -> None:
    columns, told = REFUSED[case]
    address = f"sqlite:///{tmp_path}/a.ledger"
    with pytest.raises(DataError, match=told):
        eps.Dataset.register(frame(**columns), name="wages", ledger=address, **SETTLED)
    assert not (tmp_path / "a.ledger").exists()


def test_rows_that_disagree_and_people_without_rows_are_refused() -> None:
    moved = frame()
    moved.loc[0, "region"] = "south"
    with pytest.raises(DataError, match="different things in the rows of one person"):
        eps.Dataset(pd.concat([frame(), moved]), **SETTLED, rows_per_person=2, ledger="memory")
    listed = {**SETTLED, "preferences": dict.fromkeys(range(N + 1), 1.0)}
    with pytest.raises(DataError, match="does not say something about everybody"):
        eps.Dataset(frame(), **listed, ledger="memory")
    with pytest.raises(DataError, match="holds ids"):
        eps.Dataset(frame(), **{**SETTLED, "public": ["id"]}, ledger="memory")


def test_who_moves_pays_in_the_new_part_and_keeps_what_was_charged(tmp_path: Path) -> None:
    path = f"sqlite:///{tmp_path}/a.ledger"
    with eps.Dataset.register(frame(), name="wages", ledger=path, version="1", **SETTLED) as people:
        people.mean("wage", where="region = 'north'", share=0.25, mechanism="stretching")
        people.set_level({0: "standard"})
        before, stays = people.statement(0), people.statement(6).spent
    later = frame()
    later.loc[[0, 3], "region"] = "south"
    with eps.Dataset.register(later, name="wages", ledger=path, version="2", **SETTLED) as people:
        assert people.enrolment is not None
        assert (people.enrolment.reclassed, people.enrolment.unchanged) == (2, N - 1)
        assert "public values that changed" in str(people.enrolment)
        assert people.count(by="region").value == {"north": 198, "south": 202, "east": 200}
        assert (people.statement(0).spent, people.statement(0).granted) == (before.spent, before.granted)
        people.mean("wage", where="region = 'south'", share=0.25, mechanism="stretching")
        assert people.statement(0).spent > before.spent
        assert people.statement(6).spent == stays
        people.ledger.verify()
        lines = [json.loads(str(line["body"])) for line in people.ledger.export() if line["kind"] == "roster"]
    assert sum(group["people"] for group in lines[-1]["moved"]) == 2


def test_a_new_declaration_moves_everybody_and_loses_no_charge(tmp_path: Path) -> None:
    path = f"sqlite:///{tmp_path}/a.ledger"
    plain = {**SETTLED, "public": []}
    with eps.Dataset.register(frame(), name="wages", ledger=path, version="1", **plain) as people:
        people.mean("wage", share=0.25)
        before = count_spent(people)
    with eps.Dataset.register(frame(), name="wages", ledger=path, version="2", **SETTLED) as people:
        assert count_spent(people) == before
        people.mean("wage", where="region = 'north'", share=0.25)
        assert spent(people)["south"] == set(before)


def test_people_of_another_dataset_keep_what_is_public_of_them_there(tmp_path: Path) -> None:
    path = f"sqlite:///{tmp_path}/a.ledger"
    with eps.Dataset.register(frame(), name="wages", ledger=path, **SETTLED):
        other = {**SETTLED, "public": ["sex"]}
        with eps.Dataset.register(frame(), name="homes", ledger=path, confirm=True, **other) as homes:
            assert homes.count(by="sex").value == {True: N / 2, False: N / 2}
            with pytest.raises(PlanError, match="no registered keys"):
                homes.count(by="region")
        with eps.Dataset.open("wages", ledger=path) as again:
            assert again.count(by="region").value == dict.fromkeys(REGIONS, N / 3)


def test_years_of_regional_questions_leave_few_cohorts() -> None:
    """64 regions and four levels, every question about another one: cohorts are 256, and stay so."""
    place = np.arange(5_120)
    table = pd.DataFrame({"id": place, "region": place % 64, "wage": place % 50, "privacy": place // 64 % 4})
    levels = eps.Preferences.from_column("epsilon")
    table["epsilon"] = 0.5 * (1 + table["privacy"])
    settled = {"person": "id", "preferences": levels, "bounds": {"wage": (0, 50)}, "public": ["region"]}
    with eps.Dataset(table, **settled, ledger="memory") as people:
        for nth in range(40):
            where = f"region = {nth % 64}" if nth % 2 else f"region < {nth}" if nth else "region >= 0"
            people.sum("wage", where=where, share=0.01)
        assert len(people.ledger.cohorts()) == 256 <= MOST
        people.ledger.verify()


def test_an_older_registration_whose_public_columns_nobody_checked_changes_nothing(tmp_path: Path) -> None:
    """Earlier releases kept the declaration without effect: everybody pays, until it is registered anew."""
    path = f"sqlite:///{tmp_path}/a.ledger"
    with eps.Dataset.register(frame(), name="wages", ledger=path, **{**SETTLED, "public": []}) as people:
        assert "values" not in people._registry.registration.about
        object.__setattr__(people._facts, "public", frozenset({"region"}))
        people.sum("wage", where="region = 'north'", share=0.1)
        assert all(one.spent for one in people.ledger.cohorts())


def test_the_guarantee_says_what_is_public(people: eps.Dataset) -> None:
    answer = people.mean("wage", where="region = 'north'", share=0.1)
    assert any("region, as registered" in caveat for caveat in answer.guarantee.caveats)
    assert "Public" not in str(people.mean("wage", share=0.1).guarantee)

"""Who tries to be charged less by public columns, or to read somebody twice: other spellings, overlaps, moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import epsilons as eps
from epsilons.errors import BudgetExceeded
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.rosters import read_public

WORDS = {"strict": 0.5, "open": 2.0}
REGIONS = ("north", "south", "east")
N = 90
TERMS: list[dict[str, Any]] = [{}, {"measure": "zcdp", "delta": 1e-6}]


def frame(**more: Any) -> pd.DataFrame:
    place = np.arange(N)
    columns = {
        "id": place,
        "region": [REGIONS[i % 3] for i in place],
        "young": place % 2 == 0,
        "age": 18 + place % 60,
        "wage": 20.0 + place % 50,
        "privacy": [list(WORDS)[(i // 6) % 2] for i in place],
    }
    return pd.DataFrame({**columns, **more})


SETTLED: dict[str, Any] = {
    "person": "id",
    "preferences": eps.Preferences.from_levels("privacy", WORDS),
    "complete": ["wage"],
    "bounds": {"wage": (0, 100)},
    "public": ["region", "young"],
}


def spent(people: eps.Dataset) -> dict[tuple[str, bool], set[int]]:
    """What cohorts have spent, by region and age."""
    found: dict[tuple[str, bool], set[int]] = {}
    for cohort in people.ledger.cohorts():
        (known,) = read_public(cohort.datasets).values()
        found.setdefault((known["region"], known["young"]), set()).add(cohort.spent)
    return found


def account(people: eps.Dataset, who: int) -> int:
    return people.statement(who).spent


SPELLINGS = [
    "region = 'north'",
    "region IN ('north')",
    "NOT region <> 'north'",
    "region LIKE 'nor%' AND region = 'north'",
    "region = 'north' AND (age < 30 OR age >= 30 OR age IS NULL)",
    "NOT (region = 'south' OR region = 'east')",
]


@pytest.mark.parametrize("terms", TERMS)
def test_however_a_condition_is_spelt_its_people_pay_each_time(terms: dict[str, Any]) -> None:
    """What is one question may be answered from the store; what is another one is charged, and to nobody else."""
    with eps.Dataset(frame(), **SETTLED, ledger="memory", **terms) as people:
        paid = []
        for condition in SPELLINGS:
            before = account(people, 0), account(people, 1)
            answer = people.mean("wage", where=condition, share=0.01, mechanism="stretching")
            assert account(people, 1) == before[1]
            paid.append((answer.number, account(people, 0) - before[0]))
            again = people.mean("wage", where=condition, share=0.01, mechanism="stretching")
            assert (again.number, again.value) == (answer.number, answer.value)
        # One price for each release, and every release that is new has one.
        assert len({price for _, price in paid if price}) == 1
        assert len({number for number, _ in paid}) == sum(price > 0 for _, price in paid)
        people.ledger.verify()


@pytest.mark.parametrize("terms", TERMS)
def test_parts_that_overlap_add_up_by_person(terms: dict[str, Any]) -> None:
    with eps.Dataset(frame(), **SETTLED, ledger="memory", **terms) as people:
        for condition in ("region = 'north'", "young", "region <> 'south'"):
            where = "young = TRUE" if condition == "young" else condition
            people.mean("wage", where=where, share=0.1, mechanism="stretching")
        people.mean("wage", by="region", share=0.1, mechanism="stretching")
        one, strict = Counter[int](), [one for one in range(N) if frame()["privacy"][one] == "strict"]
        for who in strict:
            region, young = frame()["region"][who], bool(frame()["young"][who])
            one[account(people, who)] += 1
            times = (region == "north") + young + (region != "south") + 1
            # A tenth of a grant each time, rounded up to a unit.
            assert account(people, who) == pytest.approx(times * people.statement(who).granted / 10, rel=1e-4)
        assert len(one) == 4  # one to four times
        people.ledger.verify()


@pytest.mark.parametrize("terms", TERMS)
def test_groups_of_public_columns_cost_their_own_people_once(terms: dict[str, Any]) -> None:
    with eps.Dataset(frame(), **SETTLED, ledger="memory", **terms) as people:
        answer = people.mean("wage", by=["region", "young"], share=0.1, mechanism="mixed")
        assert answer.mechanism == "mixed"  # which has no denominator to pay for
        assert answer.guarantee.delta == terms.get("delta")
        assert len(set.union(*spent(people).values())) == 2  # one for each grant
        granted = {people.statement(who).granted: account(people, who) for who in range(12)}
        assert {loss for _, loss in answer.guarantee.losses} == set(granted.values())
        assert all(paid == pytest.approx((whole or 0) / 10, rel=1e-4) for whole, paid in granted.items())
        people.ledger.verify()


def test_groups_that_were_cut_off_midway_stay_charged_in_rho(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, store = f"sqlite:///{tmp_path}/a.ledger", Ledger.store

    def cut_off(*_: Any, **__: Any) -> bytes:
        raise KeyboardInterrupt

    with eps.Dataset.register(frame(), name="wages", ledger=path, **SETTLED, **TERMS[1]) as people:
        monkeypatch.setattr(Ledger, "store", cut_off)
        with pytest.raises(KeyboardInterrupt):
            people.mean("wage", by="region", share=0.1, mechanism="stretching")
        charged = spent(people)
        monkeypatch.setattr(Ledger, "store", store)
    with eps.Dataset.open("wages", ledger=path) as people:
        answer = people.mean("wage", by="region", share=0.1, mechanism="stretching")
        assert spent(people) == charged
        assert {loss for _, loss in answer.guarantee.losses} == set.union(*charged.values())
        people.ledger.verify()


def test_who_moved_is_charged_by_the_roster_whatever_an_older_handle_holds(tmp_path: Path) -> None:
    """A dataset that was opened before somebody moved: the part is read off the roster when it is asked."""
    path = f"sqlite:///{tmp_path}/a.ledger"
    with eps.Dataset.register(frame(), name="wages", ledger=path, version="1", **SETTLED) as older:
        later = frame()
        later.loc[0, "region"] = "south"
        with eps.Dataset.register(later, name="wages", ledger=path, version="2", **SETTLED) as newer:
            for where, moved, stayed in (("region = 'north'", 0, 3), ("region = 'south'", 0, 1)):
                before = account(newer, moved), account(newer, stayed)
                try:
                    older.mean("wage", where=where, share=0.1, mechanism="stretching", fresh=True)
                except eps.EpsilonsError:
                    continue  # it need not answer any more
                paid = account(newer, moved) - before[0], account(newer, stayed) - before[1]
                assert (paid[0] > 0, paid[1] > 0) == (where == "region = 'south'", True)
            newer.ledger.verify()


def test_a_person_who_goes_to_and_fro_has_one_account(tmp_path: Path) -> None:
    """Spent in the north, then in the south: back in the north nothing of it is forgotten."""
    path, tables = f"sqlite:///{tmp_path}/a.ledger", [frame(), frame()]
    tables[1].loc[0, "region"] = "south"
    for version in range(4):
        given = {**SETTLED, "name": "wages", "ledger": path, "version": str(version)}
        with eps.Dataset.register(tables[version % 2], **given) as people:
            here = tables[version % 2]["region"][0]
            people.mean("wage", where=f"region = '{here}'", share=0.25, mechanism="stretching")
            assert account(people, 0) == pytest.approx((version + 1) * people.statement(0).granted / 4, abs=10)
    with eps.Dataset.open("wages", ledger=path) as people:
        assert people.statement(0).left < 10
        people.ledger.verify()


def test_conditions_joined_by_or_charge_all_whom_either_side_may_concern() -> None:
    """A private condition may hold of anybody: beside OR a public one spares nobody."""
    with eps.Dataset(frame(), **SETTLED, ledger="memory") as people:
        people.sum("wage", where="region = 'north' OR age > 40", share=0.1)
        assert 0 not in set.union(*spent(people).values())
    with eps.Dataset(frame(), **SETTLED, ledger="memory") as people:
        people.sum("wage", where="region = 'north' AND (age > 40 OR young = TRUE)", share=0.1)
        assert {key for key, paid in spent(people).items() if paid != {0}} == {("north", True), ("north", False)}


@pytest.mark.parametrize("terms", TERMS)
def test_the_number_of_a_part_is_known_only_where_its_column_is_complete(terms: dict[str, Any]) -> None:
    gaps = frame(wage=[None if i == 0 else 30.0 for i in range(N)])
    with (
        eps.Dataset(frame(), **SETTLED, ledger="memory", **terms) as whole,
        eps.Dataset(gaps, **{**SETTLED, "complete": []}, ledger="memory", **terms) as some,
    ):
        where: dict[str, Any] = {"where": "region = 'north'", "share": 0.5}
        assert whole.mean("wage", mechanism="robust", **where).mechanism == "robust"
        with pytest.raises(eps.PlanError, match="public number of values"):
            some.mean("wage", mechanism="robust", **where)
        assert some.plan("mean", "wage", **where).best.expected > whole.plan("mean", "wage", **where).best.expected


def test_a_part_is_spent_out_and_no_spelling_opens_it_again() -> None:
    with eps.Dataset(frame(), **SETTLED, ledger="memory") as people:
        people.mean("wage", where="region = 'north'", share=1.0, mechanism="stretching")
        for condition in SPELLINGS[1:]:
            if "age" in condition or "LIKE" in condition or "NOT" in condition:
                with pytest.raises(BudgetExceeded):
                    people.mean("wage", where=condition, share=1.0, mechanism="stretching", fresh=True)
        assert people.mean("wage", where="region <> 'north'", share=1.0).number == 2


EVERY_WAY: dict[str, Callable[[eps.Dataset], Any]] = {
    "a mean": lambda people: people.mean("wage", share=0.1),
    "a mean by public groups": lambda people: people.mean("wage", by="region", share=0.1),
    "a count by public groups": lambda people: people.count(where="age < 40", by="region", share=0.1),
    "a sum by groups of both kinds": lambda people: people.sum(
        "wage", by={"region": ["north", "south"], "age": eps.ranges(0, 40, 90)}, share=0.1
    ),
    "a variance of a part": lambda people: people.variance("wage", where="young = TRUE", share=0.1),
    "a median by public groups": lambda people: people.median("wage", by="region", share=0.1),
    "a histogram by public groups": lambda people: people.histogram("wage", edges=[0, 9, 99], by="region", share=0.1),
    "a model of a part": lambda people: people.linear_regression("wage", ["age"], where="region = 'north'", share=0.1),
    "SQL": lambda people: people.sql("SELECT region, AVG(wage) FROM people GROUP BY region", share=0.1),
    "a plan that is asked": lambda people: people.plan("mean", "wage", by="region", share=0.1).ask(),
    "relation": lambda people: people.relation("wage", share=0.1),
}


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize("terms", TERMS)
def test_every_way_to_ask_takes_its_share_of_the_strictest(way: str, terms: dict[str, Any]) -> None:
    """In the units of the account: a loss that is taken for units, or units for a loss, is off by thousands."""
    settled = {**SETTLED, "complete": ["wage", "age"], "bounds": {"wage": (0, 100), "age": (0, 90)}}
    with eps.Dataset(frame(), **settled, ledger="memory", **terms) as people:
        EVERY_WAY[way](people)
        assert account(people, 0) == pytest.approx((people.statement(0).granted or 0) / 10, rel=1e-4)

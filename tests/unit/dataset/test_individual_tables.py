"""Individual and group privacy on tables: what arrays give, tables give; nothing of the scale is ever told."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.mechanisms.local_sensitivity import LocalMean, LocalTotal, LocalUnbounded
from epsilons.summaries.arrays import STEPS
from epsilons.testing import seeded

RNG = np.random.default_rng(11)
PEOPLE = 120
WAGE = RNG.uniform(0, 100, PEOPLE).round(2)
GRANTS = RNG.choice([0.5, 1.0, 4.0], PEOPLE)
REGION = RNG.choice(["north", "south"], PEOPLE)
TABLE = pa.table({"id": np.arange(PEOPLE), "wage": WAGE, "region": REGION, "epsilon": GRANTS})
WEAK: dict[str, Any] = {"privacy": "individual"}


@pytest.fixture
def people() -> Iterator[eps.Dataset]:
    with eps.Dataset(
        TABLE, person="id", preferences=eps.Preferences.from_column("epsilon"), ledger="memory", allow_individual=True
    ) as opened:
        yield opened


ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "sum": ("sum", {"bounds": (0, 100), "complete": True}),
    "sum of who counts": ("sum", {"bounds": (0, 100)}),
    "mean": ("mean", {"bounds": (0, 100), "complete": True}),
    "mean of who counts": ("mean", {"bounds": (0, 100)}),
    "median": ("median", {"complete": True, "step": 0.01}),
    "quantile": ("quantile", {"q": 0.3, "complete": True, "step": 0.01}),
    "kth largest": ("kth_largest", {"k": 7, "complete": True, "step": 0.01}),
    "bounded median": ("median", {"complete": True, "bounds": (0, 100)}),
    "histogram": ("histogram", {"edges": [0, 50, 100]}),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_table_answers_as_arrays_do(people: eps.Dataset, name: str) -> None:
    """The same draws on the same people: the same answer, and so the same scale."""
    statistic, own = ASKED[name]
    here = getattr(people, statistic)("wage", share=1, entropy=seeded(5), **own, **WEAK)
    there = getattr(eps, statistic)(WAGE, GRANTS, entropy=seeded(5), **own, **WEAK)
    assert here.value == there.value
    assert here.charges == there.charges
    assert here.error is None
    assert here.guarantee.kind == "individual DP (not DP)"


def test_conditions_and_groups_are_summed_and_averaged(people: eps.Dataset) -> None:
    asked: dict[str, Any] = {"bounds": (0, 100), "by": {"region": ["north", "south"]}, "share": 1, **WEAK}
    sums = people.sum("wage", **{**asked, "share": 0.5}).value
    for region in ("north", "south"):
        assert abs(sums[region] - WAGE[region == REGION].sum()) < 200 / 0.25 * 30
    half = people.mean("wage", where="wage >= 50", **{**asked, "share": 0.4, "by": None}).value
    assert 50 <= half <= 100


@pytest.mark.parametrize("mechanism", [LocalTotal, LocalMean, LocalUnbounded])
def test_nothing_that_is_told_depends_on_the_scale(
    people: eps.Dataset, mechanism: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With noise switched off, two tables of very different reach give releases that differ in the value alone."""
    asks = {
        LocalTotal: lambda one: one.sum("wage", bounds=(0, 1000), **WEAK),
        LocalMean: lambda one: one.mean("wage", bounds=(0, 1000), by={"region": ["north", "south"]}, **WEAK),
        LocalUnbounded: lambda one: one.median("wage", complete=True, step=0.01, **WEAK),
    }
    monkeypatch.setattr("epsilons.mechanisms.local_sensitivity._noise", lambda entropy, rate: 0)
    told = []
    for wage in (WAGE, WAGE * 10):
        table = TABLE.set_column(1, "wage", pa.array(wage))
        preferences = eps.Preferences.from_column("epsilon")
        with eps.Dataset(
            table, person="id", preferences=preferences, ledger="memory", allow_individual=True, name="one"
        ) as opened:
            plain = asks[mechanism](opened).to_dict()
            plain.pop("value"), plain.pop("at")
            told.append(re.sub("ledger [0-9a-f]{32}", "", json.dumps(plain, sort_keys=True, default=str)))
    assert told[0] == told[1]


def test_groups_of_people_have_their_own_epsilons_and_nobody_passes_a_grant(people: eps.Dataset) -> None:
    answer = people.median("wage", complete=True, privacy="group", group_epsilons=[0.08, 0.1], share=0.1)
    assert answer.charges == {0.5: 0.05, 1.0: 0.08, 4.0: 0.08}
    assert any("0.08 for 1, 0.1 for 2" in caveat for caveat in answer.guarantee.caveats)
    other = people.median("wage", complete=True, privacy="group", group_epsilons=[0.08, 0.2], share=0.1)
    assert other.number != answer.number  # another question


@pytest.mark.parametrize("given", [[], 0.1, [0.0], [0.1, float("inf")], "ab", ["a"], [0.1, None], [[0.1]], [-1.0]])
def test_epsilons_of_groups_are_refused_in_words_about_groups(people: eps.Dataset, given: Any) -> None:
    for ask in (people.count, lambda **named: eps.count(WAGE > 9, **named)):
        with pytest.raises(eps.PreferenceError, match=r"Group epsilons are finite numbers.*larger than 0") as caught:
            ask(privacy="group", group_epsilons=given)
        assert "group_epsilons=[1.0, 0.5]" in str(caught.value)
    assert people.history() == ()


def test_groups_of_public_columns_are_one_question_to_groups_of_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """One person of the north and one of the south lose together what two of the south do: asked about apart, each of
    the two would lose all of 0.1 and both together 0.2, not the 0.12 that is promised to two people."""
    rates: list[Any] = []
    monkeypatch.setattr("epsilons.mechanisms.local_sensitivity._noise", lambda entropy, rate: rates.append(rate) or 0)
    with eps.Dataset(
        TABLE, person="id", preferences=eps.Preferences.from_column("epsilon"), ledger="memory", allow_individual=True,
        public=["region"],
    ) as opened:  # fmt: skip
        asked: dict[str, Any] = {"by": {"region": ["north", "south"]}, "share": 0.2, "privacy": "group"}
        opened.count(where="wage > 9", group_epsilons=[0.1, 0.12], **asked)
        assert max(rates) * 2 <= Fraction(12, 100)  # both are replaced, and each moves a count by one at least
        rates.clear()
        opened.sum("wage", bounds=(0, 100), group_epsilons=[0.1, 0.12], **asked)
        north, south = (int(np.rint(max(WAGE[region == REGION]) / 100 * STEPS)) for region in ("north", "south"))
        assert max(rates) * (north + south) <= Fraction(12, 100)
        rates.clear()
        opened.count(where="wage > 9", **{**asked, "privacy": "individual"})  # everyone is in one group, as is public
        assert rates == [Fraction(1, 10)] * 2


def test_means_of_private_numbers_have_noise_for_groups_of_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two people replaced by two at a bound move the mean of the south so far; the noise allows for that at least."""
    rates: list[Any] = []
    monkeypatch.setattr("epsilons.mechanisms.local_sensitivity._noise", lambda entropy, rate: rates.append(rate) or 0)
    with eps.Dataset(
        TABLE, person="id", preferences=eps.Preferences.from_column("epsilon"), ledger="memory", allow_individual=True
    ) as opened:
        asked: dict[str, Any] = {"bounds": (0, 100), "share": 0.2, "privacy": "group", "group_epsilons": [0.1, 0.12]}
        answer = opened.mean("wage", where="region = 'south'", **asked)
        south = np.sort(WAGE[REGION == "south"])
        assert answer.value == pytest.approx(south.mean(), abs=1e-3)
        moved = (np.concatenate([south[2:], [100, 100]]).mean() - south.mean()) / 50 * STEPS
        assert max(rates) * round(moved) <= Fraction(12, 100)
        assert answer.error is None
        both = opened.mean("wage", by={"region": ["north", "south"]}, **asked)
        assert set(both.value) == {"north", "south"}


def test_refusals_name_the_reason_and_cost_nothing(people: eps.Dataset) -> None:
    for ask, said in (
        (lambda: people.median("wage", by={"region": ["north"]}, **WEAK), "It needs a public number of values"),
        (lambda: people.variance("wage", bounds=(0, 100), **WEAK), "It serves counts, histograms, sums, means"),
        (lambda: people.max("wage", complete=True, **WEAK), "needs bounds"),
        (lambda: people.count(privacy="group"), "Group privacy takes group_epsilons"),
    ):
        with pytest.raises(eps.EpsilonsError) as caught:
            ask()
        assert said in str(caught.value)
    assert people.history() == ()


def test_people_with_several_rows_are_protected_with_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two rows each a person moves a sum twice as far as of one."""
    preferences, rates = eps.Preferences.from_column("epsilon"), list[Any]()
    monkeypatch.setattr("epsilons.mechanisms.local_sensitivity._noise", lambda entropy, rate: rates.append(rate) or 0)
    for rows in (1, 2):
        table = TABLE if rows == 1 else pa.concat_tables([TABLE, TABLE])
        with eps.Dataset(
            table, person="id", preferences=preferences, ledger="memory", allow_individual=True, rows_per_person=rows
        ) as opened:
            assert opened.sum("wage", bounds=(0, 100), share=1, **WEAK).value == pytest.approx(rows * WAGE.sum())
    assert rates[0] == 2 * rates[1]

"""Several quantiles in one question: what each costs, that they rise, and that every front asks them alike."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import epsilons as eps
from epsilons.cli.app import main
from epsilons.dataset.documents import Asked, write_arguments
from epsilons.mechanisms.base import create
from epsilons.statistics.base import Question
from epsilons.statistics.order import Order
from epsilons.statistics.quantiles import Quantiles, several_quantiles
from epsilons.testing import seeded
from support.small_worlds import ABSENT, ROSTERS, audit_exactly

_GRID, _VALUES = (0.0, 4.0), (0.0, 2.0, 4.0, ABSENT)
_N = 900
TABLE = pa.table(
    {
        "id": list(range(_N)),
        "wage": [float((i * 37) % 101) for i in range(_N)],
        "region": [("north", "south")[i % 2] for i in range(_N)],
        "level": [("strict", "open")[i % 3 > 0] for i in range(_N)],
    }
)


@pytest.mark.parametrize("neighbors", ["absent", "replace"])
@pytest.mark.parametrize("name", ["weighted", "threshold", "sample", "minimum"])
def test_nobody_loses_more_than_they_are_charged(name: str, neighbors: str) -> None:
    question = Question(several_quantiles([0.3, 0.6], _GRID, 2), neighbors)
    for roster in ROSTERS[1:4]:
        verdict = audit_exactly(create(name, question.statistic), question, roster, _VALUES)
        assert verdict.holds, (name, roster, str(verdict))


def test_two_whole_quantiles_for_the_price_of_one_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    statistic = several_quantiles([0.3, 0.6], _GRID, 2)
    assert isinstance(statistic, Quantiles)
    assert [one.portion for one in statistic.each] == [Fraction(1, 2)] * 2
    planted = tuple(replace(one, portion=Fraction(1)) for one in statistic.each)
    true = audit_exactly(create("weighted", statistic), Question(statistic), (1.0, 1.0, 1.0), _VALUES)
    monkeypatch.setattr(Quantiles, "each", planted)
    bold = several_quantiles([0.3, 0.6], _GRID, 2)
    verdict = audit_exactly(create("weighted", bold), Question(bold), (1.0, 1.0, 1.0), _VALUES)
    assert true.holds
    assert not verdict.holds


def test_a_concentrated_account_adds_up_what_each_costs() -> None:
    alone = several_quantiles(0.5, (0, 100))
    for part in (Fraction(0), Fraction(2, 5)):
        both = several_quantiles([0.5, 0.25], (0, 100)).paying_for_interval(part)
        assert both.loss_factor == alone.paying_for_interval(part).loss_factor / 2


def test_answers_rise_and_are_those_of_the_values_where_everyone_is_public() -> None:
    values = [float(x) for x in range(101)]
    exact = eps.quantile(values, eps.PUBLIC, [0.75, 0.25, 0.5], bounds=(0, 100), step=1)
    assert exact.value == {0.25: 25, 0.5: 50, 0.75: 75}
    assert list(exact.value) == [0.25, 0.5, 0.75]
    entropy = seeded(7)
    for _ in range(40):
        drawn = eps.quantile([5.0] * 4, [0.01] * 4, [0.4, 0.5, 0.6], bounds=(0, 100), entropy=entropy).value
        assert list(drawn.values()) == sorted(drawn.values())


def test_intervals_hold_the_quantiles_each() -> None:
    """At 95%, 240 intervals of 80 seeded runs: fewer than 210 would be 5.3 deviations off, a chance below 1e-6."""
    values, epsilons = [float((i * 61) % 997) / 9.97 for i in range(1500)], [0.2, 1.0, 3.0] * 500
    true, held, errors = {q: float(np.quantile(values, q)) for q in (0.1, 0.5, 0.8)}, 0, []
    entropy = seeded(11)
    for _ in range(80):
        found = eps.quantile(values, epsilons, list(true), bounds=(0, 100), assume="unrelated", entropy=entropy)
        held += sum(low <= true[q] <= high for q, (low, high) in found.interval(0.95).items())
        errors += [(found.value[q] - true[q]) ** 2 - found.error[q] ** 2 for q in true if found.error[q]]
    assert held >= 210
    assert np.mean(errors) < 1.0  # on average no stated error is far too small


def test_one_of_a_list_is_the_quantile_itself() -> None:
    values, epsilons = [float(x) for x in range(50)], [1.0] * 50
    listed = eps.quantile(values, epsilons, [0.5], bounds=(0, 50), entropy=seeded(3))
    alone = eps.quantile(values, epsilons, 0.5, bounds=(0, 50), entropy=seeded(3))
    assert listed.value == {0.5: alone.value}
    assert listed.error == {0.5: alone.error}


@pytest.mark.parametrize(
    "q", [[], [0.5, 0.5], [0, 0.5], [0.5, 1], [0.5, 2], ["a"], "abc", [i / 40 for i in range(1, 40)]]
)
def test_what_are_no_quantiles(q: Any) -> None:
    with pytest.raises(eps.PlanError, match="quantile"):
        eps.quantile([1.0, 2.0], [1.0, 1.0], q, bounds=(0, 4))


def test_every_front_asks_them_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from epsilons.service.pages.asking import read_question

    monkeypatch.chdir(tmp_path)
    parquet.write_table(TABLE, "people.parquet")
    Path("people.toml").write_text(
        'source = "people.parquet"\nperson = "id"\nversion = "1"\nledger = "sqlite:///people.ledger"\n'
        '[preferences]\ncolumn = "level"\n[preferences.levels]\nstrict = 0.2\nopen = 2\n'
        '[bounds]\nwage = [0, 100]\n[keys]\nregion = ["north", "south"]\n'
    )
    assert main(["register", "people.toml"]) == 0, capsys.readouterr().err
    with eps.Dataset.from_toml("people.toml") as people:
        asked = people.quantile("wage", [0.25, 0.75], share=0.1)
        document = {
            "statistic": "quantile",
            "arguments": write_arguments({"column": "wage", "q": (0.75, 0.25), "share": 0.1}),
        }
        assert Asked(people, document, "ann", "1").ask()["release"]["number"] == asked.number
        fields = {"statistic": "quantile", "column": "wage", "q": "0.25; 0.75", "share": "0.1"}
        assert Asked(people, read_question(fields, people), "ann", "2").ask()["release"]["number"] == asked.number
        with people.batch(share=0.1) as ask:
            noted = ask.quantile("wage", [0.25, 0.75], by=["region"])
        value = noted.release.value
        assert list(value) == [(region, q) for region in ("north", "south") for q in (0.25, 0.75)]
        assert value["north", 0.25] <= value["north", 0.75]
        assert {key: low <= high for key, (low, high) in noted.release.interval(0.95).items()} == dict.fromkeys(
            value, True
        )
        plan = people.plan("quantile", "wage", q=[0.25, 0.75], share=0.1)
        assert plan.ask().number == asked.number
    capsys.readouterr()
    assert main(["quantile", "people.toml", "wage", "0.25,0.75", "--share", "0.1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["release"]["number"] == asked.number
    assert len(told["interval"]) == 2
    assert (
        main(
            [
                "quantile",
                "people.toml",
                "wage",
                "0.25,0.75",
                "--share",
                "0.1",
                "--by",
                "region",
                "--by",
                "level=strict,open",
            ]
        )
        == 0
    )
    shown = capsys.readouterr().out
    assert "north" in shown
    assert "0.75" in shown
    assert main(["plan", "people.toml", "quantile", "wage", "0.25,0.75"]) == 0
    assert "quantiles 0.25, 0.75" in capsys.readouterr().out


def test_the_parts_are_orders_by_themselves() -> None:
    statistic = several_quantiles([0.25, 0.5], (0, 100))
    assert isinstance(statistic, Quantiles)
    assert all(type(one) is Order for one in statistic.each)
    assert statistic.related(Question(statistic))[1] == pytest.approx(0.1875**0.5)
    assert several_quantiles([0.5, 0.25], (0, 100)).identity() == statistic.identity()
    assert "portion" not in several_quantiles(0.5, (0, 100)).identity()

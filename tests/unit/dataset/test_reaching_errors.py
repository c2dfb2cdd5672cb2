"""An error under a condition: how many meet it is said by the caller, or bought first, as a rough count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import epsilons as eps
from epsilons.cli import app
from epsilons.dataset.attempt import Attempt
from epsilons.errors import PlanError
from epsilons.ledger.ledger import Ledger
from epsilons.release.door import asked_of
from epsilons.testing import seeded
from support.wages import dataset

#: The youngest are one in twenty of everyone.
YOUNG, PART, ERROR = "age < 5", 0.05, 5.0
FILE = """
source = "people.parquet"
person = "id"
ledger = "sqlite:///people.ledger"
[preferences]
column = "epsilon"
[bounds]
wage = [0, 100]
"""
#: By name, so that no other mechanism has to be looked at.
ASKED: dict[str, Any] = {"bounds": (0, 100), "mechanism": "weighted"}


def many(missing: float = 0.0, count: int = 8000) -> pa.Table:
    random = np.random.default_rng(8)
    return pa.table(
        {
            "id": np.arange(count),
            "wage": np.where(random.random(count) < missing, np.nan, random.normal(40, 10, count)),
            "age": np.arange(count) % 100,
            "region": random.choice(["north", "south"], count),
            "epsilon": random.choice([0.5, 1.0, 4.0], count),
        }
    )


@pytest.fixture
def people() -> Iterator[eps.Dataset]:
    with dataset(many()) as made:
        yield made


def spent(people: eps.Dataset) -> dict[float, float]:
    return {grant: grant - left for grant, left in people.remaining().epsilons.items()}


def test_a_mean_of_few_reaches_its_error_since_it_counts_them_first(people: eps.Dataset) -> None:
    release = people.mean("wage", where=YOUNG, error=ERROR, entropy=seeded(1), **ASKED)
    assert release.error is not None  # sized for half of the people it could not even be told
    assert release.error <= 1.3 * ERROR
    *counts, question = people.history()
    assert 1 <= len(counts) <= 4
    assert all(count.description.startswith("count of rows where") for count in counts)
    assert question.description.startswith("mean")


def test_what_it_says_that_it_cost_is_what_was_charged(people: eps.Dataset) -> None:
    release = people.mean("wage", where=YOUNG, error=ERROR, **ASKED)
    assert spent(people) == pytest.approx(release.charges, rel=1e-9)
    assert release.guarantee.epsilons == pytest.approx(release.charges)
    assert "by a rough count that came first and is part of the price" in release.why
    assert len(people.history()) > 1
    again = people.mean("wage", where=YOUNG, error=ERROR, **ASKED)
    assert again == release
    assert spent(people) == pytest.approx(release.charges, rel=1e-9)


def test_a_rough_count_is_bought_once_for_all_questions_about_the_same_people(people: eps.Dataset) -> None:
    people.mean("wage", where=YOUNG, error=ERROR, **ASKED)
    counts = len(people.history()) - 1
    people.mean("wage", where=YOUNG, error=ERROR, fresh=True, **ASKED)
    assert len(people.history()) == counts + 2


def test_the_price_of_the_count_is_small_beside_that_of_the_question() -> None:
    with dataset(many(count=3000)) as people:
        people.mean("wage", where=YOUNG, error=ERROR, entropy=seeded(2), **ASKED)
        *counts, question = [past.charges for past in people.history()]
    for grant, charge in question.items():
        assert sum(count[grant] for count in counts) <= 0.6 * charge


def test_a_density_that_is_given_is_taken_instead(people: eps.Dataset) -> None:
    release = people.mean("wage", where=YOUNG, error=ERROR, density=PART, entropy=seeded(1), **ASKED)
    assert len(people.history()) == 1
    assert release.error <= 1.5 * ERROR
    assert "rough" not in release.why
    assert not people.plan("mean", "wage", where=YOUNG, error=20, density=PART, **ASKED).counts_first


@pytest.mark.parametrize(
    ("statistic", "more"), [("count", {}), ("mean", {"by": {"region": ["north", "south"]}}), ("mean", {})]
)
def test_nothing_is_bought_where_it_would_not_help(people: eps.Dataset, statistic: str, more: dict[str, Any]) -> None:
    """A count errs most if half of the people meet the condition, which is its guess; others have no condition."""
    where, column = (YOUNG, []) if statistic == "count" else (None, ["wage"])
    named = ASKED if column else {}
    getattr(people, statistic)(*column, where=where, error=50, **more, **named)
    assert len(people.history()) == 1


def test_missing_values_are_not_counted() -> None:
    """A rough count may be far off now and then: most of five questions reach their error, for these draws."""
    errors = []
    for draw in range(5, 10):
        with dataset(many(missing=0.8)) as people:
            errors.append(people.mean("wage", where="age < 50", error=ERROR, entropy=seeded(draw), **ASKED).error)
            assert '"wage" IS NOT NULL' in people.history()[0].description
    assert sorted(errors)[3] <= 1.3 * ERROR


def test_groups_are_sized_as_parts_of_those_who_meet_the_condition(people: eps.Dataset) -> None:
    groups = {"region": ["north", "south"]}
    release = people.mean("wage", where="age < 20", by=groups, error=8, entropy=seeded(1), **ASKED)
    assert max(release.error.values()) <= 1.5 * 8
    assert len(people.history()) > 1


def test_a_plan_says_so_and_costs_nothing(people: eps.Dataset) -> None:
    plan = people.plan("mean", "wage", where=YOUNG, error=ERROR, **ASKED)
    assert "it buys a rough count first" in str(plan).replace("\n", " ")
    assert plan.to_dict()["counts_first"] is True
    assert "counts_first" not in people.plan("mean", "wage", where=YOUNG, **ASKED).to_dict()
    assert people.history() == ()
    # A row is asked at the share that it shows, for the guess that it shows.
    assert plan.ask().charges == plan["weighted"].charges
    assert len(people.history()) == 1


def test_out_of_reach_for_so_few_is_told_with_what_was_charged(people: eps.Dataset) -> None:
    with pytest.raises(PlanError, match="A rough count came first and stays charged") as caught:
        people.mean("wage", where="age = 99", error=0.5, **ASKED)
    assert "out of reach" in str(caught.value)
    before = len(people.history())
    assert before >= 1
    with pytest.raises(PlanError, match="A rough count came first"):
        people.mean("wage", where="age = 99", error=0.5, **ASKED)
    assert len(people.history()) == before
    # What not even everyone could give is refused before anything is bought.
    with pytest.raises(PlanError, match="out of reach"):
        people.mean("wage", where="age = 98", error=1e-6, **ASKED)
    assert len(people.history()) == before


def test_everything_is_reserved_before_data_is_read(people: eps.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    reserve, read = Ledger.reserve, Attempt.read

    def reserved(self: Ledger, *given: Any, **named: Any) -> Any:
        events.append(f"reserve {asked_of(named['description']).split()[0]}")
        return reserve(self, *given, **named)

    def seen(self: Attempt, sketch: Any) -> Any:
        events.append(f"read {self.asked.kind}")
        return read(self, sketch)

    monkeypatch.setattr(Ledger, "reserve", reserved)
    monkeypatch.setattr(Attempt, "read", seen)
    people.mean("wage", where=YOUNG, error=ERROR, **ASKED)
    pairs = list(zip(events[::2], events[1::2], strict=True))
    assert set(pairs[:-1]) == {("reserve count", "read count")}
    assert pairs[-1] == ("reserve mean", "read mean")


def test_after_a_crash_the_question_is_taken_up_as_it_was_sized(
    people: eps.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Attempt.read

    def crash(self: Attempt, sketch: Any) -> Any:
        if self.asked.kind == "mean":
            raise KeyboardInterrupt
        return read(self, sketch)

    with monkeypatch.context() as patch:
        patch.setattr(Attempt, "read", crash)
        with pytest.raises(KeyboardInterrupt):
            people.mean("wage", where=YOUNG, error=ERROR, entropy=seeded(1), **ASKED)
    charged, asked = spent(people), len(people.history())
    release = people.mean("wage", where=YOUNG, error=ERROR, entropy=seeded(1), **ASKED)
    assert (spent(people), len(people.history())) == (charged, asked)
    assert release.charges == pytest.approx(charged, rel=1e-9)
    assert release.error <= 1.5 * ERROR


def test_the_command_line_goes_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    pq.write_table(many(), "people.parquet")
    Path("people.toml").write_text(FILE)
    given = [
        "mean",
        "people.toml",
        "wage",
        "--where",
        YOUNG,
        "--error",
        str(ERROR),
        "--json",
        "--mechanism",
        "weighted",
    ]
    assert app.main(["register", "people.toml"]) == 0
    assert app.main(given) == 0
    assert "by a rough count that came first" in capsys.readouterr().out

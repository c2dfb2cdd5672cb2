"""What a dataset promises besides its numbers: missing values, complete columns, individual privacy, silence."""

from __future__ import annotations

import logging
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.arguments.reading import AT_CENTRE, COMPLETE, LEFT_OUT, NOT_COUNTED
from epsilons.errors import DataError, LedgerError, PlanError
from epsilons.mechanisms.base import list_mechanisms
from support.wages import dataset, wages

#: Grants so large that answers are exact for our purposes.
PLENTY = 1e5


def exact(**columns: Any) -> pa.Table:
    count = len(next(iter(columns.values())))
    return pa.table({"id": [f"p{place}" for place in range(count)], "epsilon": np.full(count, PLENTY)} | columns)


# --- missing and complete -------------------------------------------------------------------------------------------

HOLES = [10.0, 20.0, None, math.nan, 90.0]


@pytest.mark.parametrize(
    ("options", "value", "note"),
    [
        ({}, 40.0, LEFT_OUT),
        ({"missing": "exclude"}, 40.0, LEFT_OUT),
        ({"missing": "center"}, (10 + 20 + 50 + 50 + 90) / 5, AT_CENTRE),
        ({"where": "x >= 15"}, 55.0, LEFT_OUT),
    ],
)
def test_missing_values_are_left_out_or_stand_at_the_centre(options: dict[str, Any], value: float, note: str) -> None:
    people = dataset(exact(x=pa.array(HOLES)))
    release = people.mean("x", bounds=(0, 100), share=0.5, mechanism="minimum", **options)
    assert release.value == pytest.approx(value, abs=0.1)
    assert note in release.guarantee.caveats
    assert {LEFT_OUT, AT_CENTRE, COMPLETE} & set(release.guarantee.caveats) == {note}


def test_a_complete_column_has_a_public_number_of_values() -> None:
    people = dataset(exact(x=pa.array(HOLES)), complete=["X"])
    release = people.mean("x", bounds=(0, 100), share=0.3, mechanism="minimum")
    assert release.value == pytest.approx((10 + 20 + 50 + 50 + 90) / 5, abs=0.1)
    assert COMPLETE in release.guarantee.caveats
    assert people.median("x", bounds=(0, 100), step=1, mechanism="exponential", share=0.3).value == 50
    assert LEFT_OUT in people.mean("x", bounds=(0, 100), missing="exclude", share=0.1).guarantee.caveats
    assert LEFT_OUT in people.mean("x", bounds=(0, 100), where="x > 1", share=0.1).guarantee.caveats
    with pytest.raises(DataError, match="no column"):
        dataset(complete=["nothing"])
    with pytest.raises(DataError, match="as a list"):
        dataset(complete="wage")


def test_counts_and_histograms_do_not_count_what_is_missing() -> None:
    people = dataset(exact(x=pa.array([1.0, 0.0, None, math.nan, 1.0])))
    count = people.count("x", share=0.3)
    assert count.value == pytest.approx(2, abs=0.1)
    assert NOT_COUNTED in count.guarantee.caveats
    found = people.histogram("x", edges=[0, 0.5, 1], share=0.3)
    assert [round(value) for value in found.value.values()] == [1, 2]


def test_several_rows_are_said() -> None:
    people = dataset(rows_per_person=3)
    caveats = people.mean("wage", bounds=(0, 100)).guarantee.caveats
    assert any("At most 3 rows" in caveat for caveat in caveats)
    with pytest.raises(PlanError, match="public number"):
        people.mean("wage", bounds=(0, 100), missing="center")


def test_public_bounds_of_columns() -> None:
    people = dataset(bounds={"WAGE": (0, 100)})
    assert people.mean("wage").statistic == "mean in [0, 100]"
    assert people.mean("wage", bounds=(0, 50)).statistic == "mean in [0, 50]"
    assert ("wage", "number", "in [0, 100]") in people.describe().columns
    with pytest.raises(PlanError, match="needs bounds"):
        people.mean("age")
    with pytest.raises(DataError, match="not numbers"):
        dataset(bounds={"union": (0, 1)})
    with pytest.raises(PlanError, match="reversed"):
        dataset(bounds={"wage": (1, 0)})


# --- every statistic with every mechanism ---------------------------------------------------------------------------

STATISTICS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "count": ((), {}),
    "sum": (("wage",), {"bounds": (0, 100)}),
    "mean": (("wage",), {"bounds": (0, 100)}),
    "variance": (("wage",), {"bounds": (0, 100)}),
    "median": (("wage",), {"bounds": (0, 100), "step": 1}),
    "quantile": (("wage", 0.3), {"bounds": (0, 100), "step": 1}),
    "min": (("wage",), {"bounds": (0, 100), "step": 1}),
    "max": (("wage",), {"bounds": (0, 100), "step": 1}),
    "kth_largest": (("wage", 3), {"bounds": (0, 100), "step": 1}),
    "histogram": (("wage",), {"edges": [0, 50, 100]}),
}
WAYS: list[dict[str, Any]] = [
    {},
    {"where": "age >= 40"},
    {"by": {"region": ["north", "south", "nowhere"]}},
    {"by": {"region": np.array(["north", "south"]), "union": ["yes", "no"]}},
]


@pytest.mark.parametrize("neighbors", ["absent", "replace"])
@pytest.mark.parametrize("epsilon", ["finite", "public"])
def test_whatever_is_served_is_answered_and_survives_its_storage(neighbors: str, epsilon: str) -> None:
    """Every statistic by every mechanism, filtered, grouped, or with a public number of values."""
    epsilons = wages()["epsilon"] if epsilon == "finite" else np.full(60, math.inf)
    people = dataset(wages(epsilon=epsilons), neighbors=neighbors)
    served = 0
    for name, (given, named) in STATISTICS.items():
        for place, way in enumerate((*WAYS, {"missing": "center"})):
            if name in ("count", "histogram") and "missing" in way:
                continue
            every = epsilon == "finite" and place in ((0, 4) if neighbors == "absent" else (2,))
            for mechanism in ("auto", *sorted(list_mechanisms())) if every else ("auto",):
                try:
                    release = getattr(people, name)(*given, **named, **way, mechanism=mechanism, share=0.001)
                except PlanError as error:
                    refusal = str(error)
                else:
                    refusal = ""
                    served += 1
                    assert release == eps.Release.from_dict(release.to_dict())
                    assert isinstance(release.value, dict) is (place in (2, 3) or name == "histogram")
                assert refusal == "" or "cannot serve" in refusal
    assert served >= 47
    assert len(people.history()) == served
    people.ledger.verify()


# --- individual privacy ---------------------------------------------------------------------------------------------


def test_individual_privacy_must_be_allowed_when_the_ledger_is_made() -> None:
    people = dataset()
    with pytest.raises(LedgerError, match="does not allow individual"):
        people.median("wage", bounds=(0, 100), missing="center", privacy="individual")
    assert people.remaining().epsilons == {0.5: 0.5, 1.0: 1.0, 4.0: 4.0}


def test_what_a_ledger_does_not_allow_is_neither_planned_nor_hinted_at() -> None:
    """A plan shows no price of a question that is refused, nor does a refusal lead on to another one."""
    people, weak = dataset(), {"privacy": "individual"}
    for ask in (
        lambda: people.plan("count", **weak),
        lambda: people.plan("count", privacy="group", group_epsilons=[0.1]),
        lambda: people.median("wage", bounds=(0, 100), **weak),  # whose values are not counted
        lambda: people.variance("wage", bounds=(0, 100), **weak),
    ):
        with pytest.raises(LedgerError, match="does not allow individual"):
            ask()
    assert people.history() == ()


def test_one_such_release_marks_all_that_follow(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'a.ledger'}"
    people = dataset(ledger=address, allow_individual=True, version="1")
    before = people.count()
    first = people.median("wage", bounds=(0, 100), missing="center", privacy="individual")
    assert first.mechanism == "local-sensitivity"
    assert first.error is None
    mark = "Not DP since release 2."
    after = people.count(share=0.05)
    assert mark not in before.guarantee.caveats
    assert first.guarantee.caveats[0] == after.guarantee.caveats[0] == mark
    assert mark in str(people)
    assert people.remaining().caveat == people.describe().caveat == mark
    assert [line.caveat for line in people.history()] == ["", mark, mark]
    people.close()
    with dataset(ledger=address, allow_individual=True, version="1") as again:
        assert again.count(share=0.01).guarantee.caveats[0] == mark
        assert again.count() == before  # what was stored is what left


def test_individual_privacy_where_it_is_not_to_be_had_costs_nothing() -> None:
    people = dataset(allow_individual=True)
    for ask in (
        lambda: people.median("wage", bounds=(0, 100), where="age > 3", privacy="individual"),
        lambda: people.median("wage", privacy="individual", by={"region": ["north", "south"]}),
        lambda: people.max("wage", missing="center", privacy="individual"),
        lambda: people.mode("region", among=["north", "south"], privacy="individual"),
        lambda: people.variance("wage", bounds=(0, 100), privacy="group", group_epsilons=[0.1, 0.2]),
        lambda: people.count(group_epsilons=[0.1]),
        lambda: people.variance("wage", bounds=(0, 100), missing="center", privacy="individual"),
        lambda: people.count(privacy="group"),
    ):
        with pytest.raises(PlanError):
            ask()
    assert people.history() == ()
    assert people.remaining().caveat == ""


# --- silence --------------------------------------------------------------------------------------------------------

SECRETS = {"wage": 31.4159, "note": "a-private-word", "id": "somebody-in-particular", "age": 271828}


def secret_table() -> pa.Table:
    table = wages(
        wage=[SECRETS["wage"]] * 60,
        age=[SECRETS["age"]] * 60,
        id=[f"{SECRETS['id']} {place}" for place in range(60)],
    )
    return table.append_column("note", pa.array([SECRETS["note"]] * 60))


def test_what_is_shown_for_free_holds_no_value() -> None:
    people = dataset(secret_table())
    people.mean("wage", bounds=(0, 100))
    shown = [str(people), people._repr_html_(), str(people.describe().to_dict()), str(people.remaining())]
    shown += [str(people.history()), str(people.plan("mean", "wage", bounds=(0, 100))), str(people.ledger.cohorts())]
    for text in shown:
        assert not any(str(secret) in text for secret in SECRETS.values())
    assert "60 people" in shown[0]


def test_logs_carry_neither_values_nor_ids_nor_conditions(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        people = dataset(secret_table())
        people.mean("wage", bounds=(0, 100), where=f"note = '{SECRETS['note']}' AND age = {SECRETS['age']}")
        people.count(by={"note": [SECRETS["note"]]}, mechanism="sample")
        people.set_level({f"{SECRETS['id']} 1": 0.2})
        people.withdraw([f"{SECRETS['id']} 2"])
        for refused in ("note = 7", f"note = '{SECRETS['note']}' OR 1 = 1"):
            with pytest.raises(PlanError):
                people.count(where=refused)
        people.close()
    assert caplog.records  # somebody does log
    for record in caplog.records:
        said = f"{record.getMessage()} {record.args}"
        assert not any(str(secret) in said for secret in SECRETS.values())
        assert "note" not in said


def test_errors_carry_no_value() -> None:
    people = dataset(secret_table())
    for where in (f"note > {SECRETS['age']}", "age LIKE 'a'", "wage = note"):
        with pytest.raises(PlanError) as caught:
            people.count(where=where)
        assert not any(str(secret) in str(caught.value) for secret in SECRETS.values())


# --- versions -------------------------------------------------------------------------------------------------------


def test_versions_stand_for_the_data_and_are_never_read_from_it(tmp_path: Path) -> None:
    from pyarrow import parquet

    path, ledger = tmp_path / "wages.parquet", f"sqlite:///{tmp_path}/people.ledger"
    parquet.write_table(wages(), path)

    def asked(source: Any, **options: Any) -> tuple[str, int]:
        with dataset(source, ledger=ledger, **options) as people:
            people.count()
            return people.describe().version, len(people.history())

    assert [asked(path), asked(path)] == [("1", 1), ("1", 1)]  # the same files are the same version
    parquet.write_table(wages(wage=np.zeros(60)), path)
    assert asked(path) == ("3", 2)
    assert [asked(wages()), asked(wages())] == [("4", 3), ("5", 4)]  # of frames that cannot be told
    assert [asked(wages(), version="2026-11") for _ in range(2)] == [("2026-11", 5)] * 2
    for label in ("", "  ", 7, "x" * 201):
        with pytest.raises(DataError, match="is not a label"):
            dataset(version=label)


def test_a_dataset_that_was_opened_elsewhere_keeps_its_ledger(tmp_path: Path) -> None:
    ledger = eps.ledger.open()
    with dataset(ledger=ledger) as people:
        people.count()
    assert len(ledger.history()) == 1
    with dataset(ledger=f"sqlite:///{tmp_path / 'a.ledger'}") as people:
        assert "a.ledger" in people.describe().ledger


def test_a_rank_that_nobody_can_have_is_refused_by_plans_and_answers_alike() -> None:
    """Before anybody is charged; as many ranks as people may have rows."""
    frame = pa.table({"id": np.repeat(np.arange(20), 2), "wage": np.linspace(0, 100, 40), "half": ["a", "b"] * 20})
    asked: dict[str, Any] = {"bounds": (0, 100), "share": 0.01}
    for rows in (1, 2):
        with eps.Dataset(frame, person="id", preferences=1.0, ledger="memory", rows_per_person=rows) as people:
            for some in ({}, {"where": "wage > 20"}, {"by": {"half": ["a", "b"]}}):
                for k in (20 * rows + 1, 10**40):
                    for ask in (people.kth_largest, partial(people.plan, "kth_largest")):
                        with pytest.raises(PlanError, match="There is no k"):
                            ask("wage", k=k, **asked, **some)
            assert not people.history()
            assert people.plan("kth_largest", "wage", k=20 * rows, **asked).rows
            assert people.kth_largest("wage", k=20 * rows, **asked).number == 1

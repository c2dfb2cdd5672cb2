"""Registered datasets as stewards keep them: rows that must not vanish, refusals that change nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import epsilons as eps
from epsilons.dataset.registering import Candidate
from epsilons.dataset.snapshot import remove_snapshot
from epsilons.errors import DataError, EpsilonsError, LedgerError, PreferenceError
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.values import NoLedgerError
from epsilons.release.answer import IN_MEMORY
from epsilons.storage import base, files
from support.ledger_servers import fresh
from support.wages import EPSILONS, dataset, wages


def address(home: Path, name: str = "a") -> str:
    return f"sqlite:///{home}/{name}.ledger"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.integration)])
def lasting(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a ledger that is not there yet, and a user who knows of no other."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return address(tmp_path) if request.param == "sqlite" else fresh(request.getfixturevalue("postgres_server"))


def copies(home: Path) -> list[Path]:
    return [path.parent for path in home.rglob("nonce")]


def test_an_earlier_snapshot_goes_with_the_next_registration(tmp_path: Path) -> None:
    for version in ("1", "2", "3"):
        dataset(ledger=address(tmp_path), version=version).close()
    assert len(copies(tmp_path)) == 1
    eps.Dataset.open("people", ledger=address(tmp_path)).close()


def test_the_rows_of_a_newer_registration_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process registers between our line in the ledger and our tidying up."""
    dataset(ledger=address(tmp_path), version="1").close()
    real = Ledger.register

    def and_another(self: Ledger, given: Any) -> Any:
        made = real(self, given)
        if given.version == "2":
            dataset(ledger=address(tmp_path), version="3").close()
        return made

    monkeypatch.setattr(Ledger, "register", and_another)
    dataset(ledger=address(tmp_path), version="2").close()
    with eps.Dataset.open("people", ledger=address(tmp_path)) as people:
        assert people.describe().version == "3"


def test_ledgers_that_share_a_place_leave_each_others_rows_alone(tmp_path: Path) -> None:
    place = tmp_path / "shared"
    for name in ("a", "b", "a"):
        version = str(len(copies(tmp_path)))
        dataset(ledger=address(tmp_path, name), name=name, version=version, snapshots=place).close()
        while files._held:  # as if every registration were a process of its own
            os.close(files._held.popitem()[1][1])
    for name in ("a", "b"):
        eps.Dataset.open(name, ledger=address(tmp_path, name)).close()


def test_a_registration_that_stands_keeps_its_rows_though_an_error_came_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset(ledger=address(tmp_path), version="1").close()

    real = Ledger.register

    def stumble(self: Ledger, given: Any) -> Any:
        real(self, given)
        raise LedgerError("The head cannot be written.")

    monkeypatch.setattr(Ledger, "register", stumble)
    with pytest.raises(LedgerError, match="head cannot be written"):
        dataset(ledger=address(tmp_path), version="2")
    with eps.Dataset.open("people", ledger=address(tmp_path)) as people:
        assert people.describe().version == "2"


def test_a_first_registration_that_is_refused_leaves_nothing_behind(tmp_path: Path, lasting: str) -> None:
    told: dict[str, Any] = {"person": "id", "name": "wages", "ledger": lasting}
    strangers = eps.Preferences({f"nobody {n}": 1.0 for n in range(30)}, default=0.5)
    for wrong, preferences, more in (
        ("no column", 1.0, {"bounds": {"salary": (0, 1)}}),
        ("above the ceiling", 20.0, {}),
        ("name nobody", strangers, {}),
        ("larger epsilon", 1.0, {"loosen": 3}),
    ):
        with pytest.raises(EpsilonsError, match=wrong):
            eps.Dataset.register(wages(), preferences=preferences, **told, **more)
        assert not (tmp_path / "state").exists()
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(NoLedgerError):
            eps.ledger.open(lasting, create=False)
    with eps.Dataset.register(wages(), preferences=1.0, **told, snapshots=tmp_path / "copies") as people:
        assert people.enrolment is not None
        assert people.enrolment.joined == 60
        people.verify()


def test_a_second_ledger_of_a_dataset_is_refused_before_it_is_made(tmp_path: Path) -> None:
    dataset(ledger=address(tmp_path), name="wages").close()
    told: dict[str, Any] = {"person": "id", "name": "wages", "preferences": 1.0}
    with pytest.raises(LedgerError, match="registered in another ledger before"):
        eps.Dataset.register(wages(), ledger=address(tmp_path, "b"), **told)
    assert not (tmp_path / "b.ledger").exists()


def test_a_ledger_that_another_makes_meanwhile_is_not_taken_for_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, told = Candidate.foresee, {"person": "id", "preferences": 1.0, "ledger": address(tmp_path)}

    def and_another(self: Candidate, *given: Any) -> Any:
        seen = real(self, *given)
        monkeypatch.setattr(Candidate, "foresee", real)
        eps.Dataset.register(wages(), name="first", **told).close()
        return seen

    monkeypatch.setattr(Candidate, "foresee", and_another)
    others = wages(id=[f"somebody {n}" for n in range(60)])
    with pytest.raises(LedgerError, match="60 are new to this ledger"):
        eps.Dataset.register(others, name="second", **told)
    assert len(copies(tmp_path)) == 1


def test_a_dataset_registered_anew_elsewhere_refuses_before_it_changes_anything(tmp_path: Path) -> None:
    old = dataset(ledger=address(tmp_path), version="1")
    with dataset(ledger=address(tmp_path), version="2") as new:
        for act in (lambda: old.withdraw(["person 3"]), lambda: old.set_level({"person 4": "public"}), old.count):
            with pytest.raises(DataError, match="registered anew"):
                act()
        assert new.statement("person 3").state == "active"
        assert new.statement("person 4").granted is not None
    old.close()


def test_one_label_is_one_way_of_reading_the_rows(tmp_path: Path) -> None:
    (tmp_path / "wages.csv").write_text("id,wage\n" + "".join(f"{n},{n}.5\n" for n in range(40)))
    given: dict[str, Any] = {"preferences": 1.0, "ledger": address(tmp_path), "name": "wages", "version": "1"}
    told: dict[str, Any] = {"person": "id", **given}
    eps.Dataset.register(tmp_path / "wages.csv", types={"wage": "float"}, **told).close()
    with pytest.raises(LedgerError, match="with other types of columns"):
        eps.Dataset.register(tmp_path / "wages.csv", types={"wage": "int"}, **told)


def test_every_answer_of_a_ledger_in_memory_says_so() -> None:
    with dataset(keys={"epsilon": [0.5, 1.0]}) as people:
        answers = [
            people.count(),
            people.count(by="epsilon"),
            people.apply(lambda data, epsilon: len(data), columns=["age"]),
            people.sql("SELECT COUNT(*) FROM people")["count"],
        ]
    for answer in answers:
        assert IN_MEMORY in answer.guarantee.caveats
        assert "ledger in memory" in answer.citation


def test_no_level_is_above_the_ceiling(tmp_path: Path) -> None:
    table = pa.table({"id": np.arange(30), "level": ["strict"] * 30})
    levels = eps.Preferences.from_levels("level", {"strict": 0.5, "huge": 50})
    with pytest.raises(PreferenceError, match="above the ceiling of 10"):
        eps.Dataset(table, person="id", preferences=levels, ledger="memory")
    for wrong in (0, -1, float("nan"), float("inf"), "x", None):
        with pytest.raises(PreferenceError, match="no epsilon"):
            eps.Dataset(table, person="id", preferences=levels, ledger="memory", ceiling=wrong)  # type: ignore[arg-type]


def test_a_lasting_ledger_is_named_by_register_and_open(tmp_path: Path) -> None:
    for given in (None, address(tmp_path)):
        with pytest.raises(LedgerError, match=r"Dataset\.register.*Dataset\.open"):
            eps.Dataset(wages(), person="id", preferences=1.0, ledger=given)
    for given in ("memory", eps.ledger.open()):
        with pytest.raises(LedgerError, match="ledger that lasts"):
            eps.Dataset.open("people", ledger=given)
    assert list(tmp_path.iterdir()) == []


def test_a_charge_while_a_registration_is_under_way_labels_nobody_wrongly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planned before the charge, the cohorts of people who move are others than those they then come to."""
    place, epsilons = address(tmp_path), EPSILONS.copy()
    dataset(ledger=place, version="1").close()
    epsilons[40:] = 1.0  # who granted 4 would now stand with those who granted 1, had nobody been charged
    most = {"mechanism": "threshold", "threshold": "max", "missing": "center", "bounds": (0, 100)}
    told = {"snapshot kept": True}

    def ask(reached: str) -> None:
        if told.pop(reached, False):
            with eps.Dataset.open("people", ledger=place) as others:
                others.sum("wage", share=0.5, **most)

    base.watchers.append(ask)
    try:
        people = dataset(wages(epsilon=epsilons), ledger=place, version="2")
    finally:
        base.watchers.remove(ask)
    with people:
        preparation, members = people._preparation, people.ledger.members()
        where = dict(zip(map(bytes, members.digests), members.cohorts.tolist(), strict=True))
        found = [preparation.cohorts[code] for code in preparation.places]
        assert found == [where[bytes(one)] for one in preparation.digests]


def test_only_snapshots_in_the_ledgers_own_place_are_removed(tmp_path: Path) -> None:
    dataset(ledger=address(tmp_path), version="1").close()
    mine = tmp_path / "documents"
    mine.mkdir()
    (mine / "nonce").write_bytes(bytes(32))
    remove_snapshot({"folder": str(mine)}, str(tmp_path / "snapshots"))
    remove_snapshot({"folder": str(tmp_path / "snapshots" / "..")}, str(tmp_path / "snapshots"))
    assert mine.exists()
    remove_snapshot({"folder": str(mine)}, str(tmp_path))
    assert not mine.exists()


@pytest.mark.parametrize("kind", ["mapping", "table"])
def test_whoever_was_asked_is_on_the_roster_with_or_without_rows_until_the_list_says_otherwise(
    tmp_path: Path, kind: str
) -> None:
    """That a person has no row is theirs to keep private: everybody's promise and charge would tell it."""
    settled: dict[str, Any] = {"person": "id", "name": "wages", "ledger": address(tmp_path)}

    def register(rows: int, listed: int) -> eps.Dataset:
        ids = wages()["id"].to_pylist()[:listed]
        by_id = eps.Preferences(dict.fromkeys(ids, 0.5), default=0.1)
        second = pa.table({"who": ids, "epsilon": np.full(listed, 0.5)})
        table = eps.Preferences.from_file(second, person="who", column="epsilon", default=0.1)
        wishes = by_id if kind == "mapping" else table
        return eps.Dataset.register(wages().slice(0, rows), preferences=wishes, **settled)

    register(60, 60).close()
    last = wages()["id"].to_pylist()[-1]
    with register(58, 60) as people:
        assert people.enrolment is not None
        assert (people.enrolment.known, people.enrolment.gone, people.enrolment.unmatched) == (60, 0, 2)
        people.count(share=0.5)
        assert people.statement(last).spent > 0
    spent = 0
    with register(58, 58) as people:
        assert people.enrolment is not None
        assert (people.enrolment.known, people.enrolment.gone) == (58, 2)
        spent = people.statement(last).spent
        people.count(share=0.5, where="wage > 3")
        assert people.statement(last).spent == spent


def test_a_file_is_known_again_by_its_content(tmp_path: Path) -> None:
    """Under another name or date it would give the same people a second budget in a second ledger."""
    first, linked, copied = (tmp_path / name for name in ("a.parquet", "linked.parquet", "copied.parquet"))
    pa.parquet.write_table(wages(), first)
    tomorrow = time.time() + 86_400
    os.utime(first, (tomorrow, tomorrow))
    os.link(first, linked)
    copied.write_bytes(first.read_bytes())
    told: dict[str, Any] = {"person": "id", "preferences": 1.0}
    eps.Dataset.register(first, name="a", ledger=address(tmp_path), **told).close()
    for path in (first, linked, copied):
        with pytest.raises(LedgerError, match=rf"{path.name} was registered in another ledger before"):
            eps.Dataset.register(path, name="b", ledger=address(tmp_path, "b"), **told)
    pa.parquet.write_table(wages().slice(0, 59), copied)
    eps.Dataset.register(copied, name="b", ledger=address(tmp_path, "b"), **told).close()


def test_what_is_described_as_waiting_is_what_a_registration_asks_for(tmp_path: Path) -> None:
    """Of people who said nothing, of own words against new ones, and of people whom another source holds back."""
    levels, names = {"strict": 0.1, "standard": 0.5, "open": 1.0}, [f"person {n}" for n in range(8)]

    def register(name: str, said: list[str | None], **more: Any) -> eps.Dataset:
        table = pa.table({"id": names, "level": pa.array(said, pa.string())})
        wishes = eps.Preferences.from_levels("level", levels, more.pop("default", "strict"))
        return eps.Dataset.register(
            table, name=name, person="id", preferences=wishes, ledger=address(tmp_path), confirm=True, **more
        )

    register("wages", ["strict"] * 8).close()
    with register("health", ["open"] * 6 + ["strict"] * 2) as other:
        other.set_level({names[0]: "strict", names[1]: "strict"})
    looser = ["open", "strict", "open", "standard", None, None, "open", "open"]
    with register("wages", looser, default="standard") as people:
        assert people.enrolment is not None
        waiting = people.describe().pending
        assert waiting == people.enrolment.pending == 5  # not the one who said strict, nor the two whom health holds
        assert people.describe().pending_own == people.enrolment.pending_own == 1
        for wrong in (waiting - 1, waiting + 1):
            with pytest.raises(LedgerError, match="5 people would have a larger epsilon"):
                register("wages", looser, default="standard", loosen=wrong)
    with register("wages", looser, default="standard", loosen=waiting) as people:
        assert people.describe().pending == 0
        granted = [people.statement(name).granted for name in names]
        assert granted == [one * 10**8 for one in (10, 1, 10, 5, 5, 5, 1, 1)]
        people.set_level({names[0]: "strict"})
        assert people.describe().pending == 0
        people.verify()


def test_another_dataset_first_makes_no_second_ledger_silent(tmp_path: Path) -> None:
    """The same people under another name first, then the dataset that another ledger knows."""

    def register(ledger: str, name: str, confirm: bool = False) -> None:
        wishes = eps.Preferences.from_column("epsilon")
        settled = {"person": "id", "preferences": wishes, "ledger": address(tmp_path, ledger), "confirm": confirm}
        eps.Dataset.register(wages(), name=name, **settled).close()

    register("a", "wages")
    register("b", "decoy")
    with pytest.raises(LedgerError, match="was registered in another ledger before"):
        register("b", "wages")
    register("b", "wages", confirm=True)


def in_levels(home: Path, name: str, said: list[str | None], levels: dict[str, float], **more: Any) -> eps.Dataset:
    """Registered with people 0, 1, ... who said so, in the ledger `a`."""
    table = pa.table({"id": range(len(said)), "level": pa.array(said, pa.string())})
    wishes = eps.Preferences.from_levels("level", levels, more.pop("default", None))
    return eps.Dataset.register(table, name=name, person="id", preferences=wishes, ledger=address(home), **more)


def test_a_level_that_means_less_reaches_those_who_have_it_by_default(tmp_path: Path) -> None:
    said: list[str | None] = [None, "strict", "open"]
    in_levels(tmp_path, "wages", said, {"strict": 0.05, "open": 1.0}, default="strict").close()
    in_levels(tmp_path, "health", ["open"] * 3, {"strict": 0.05, "open": 1.0}).close()
    less = {"strict": 0.02, "open": 1.0}
    with in_levels(tmp_path, "health", ["open"] * 3, less, redefine=True) as people:
        assert [people.statement(who).granted for who in range(3)] == [20_000_000, 20_000_000, 10**9]
    # Meaning more again, they are raised like those who named it: by the act of each dataset, never beyond a source.
    more = {"strict": 0.1, "open": 1.0}
    with in_levels(tmp_path, "health", ["open"] * 3, more, redefine=True, loosen=2) as people:
        assert [people.statement(who).granted for who in range(3)] == [10**8, 10**8, 10**9]
        people.verify()


def test_the_least_ceiling_of_a_persons_rosters_holds_through_whichever_dataset_they_speak(tmp_path: Path) -> None:
    levels = {"strict": 0.1, "open": 1.0}
    with in_levels(tmp_path, "wages", ["open"] * 40, levels) as wages_only:
        health = in_levels(tmp_path, "health", ["open"] * 20, levels, ceiling=2.0)
        refused = r"above 2, the ceiling of 'health'\. The least ceiling.*ceiling=3.0 when 'health' is registered"
        with pytest.raises(PreferenceError, match=refused):
            wages_only.set_level({3: 0.5, 4: 3.0})
        wages_only.set_level({5: 2.0, 6: eps.PUBLIC})
        health.set_level({30: 3.0})  # only on the roster of wages
        with pytest.raises(PreferenceError, match="the ceiling of 'health'"):
            health.set_level({77: 3.0})  # on no roster: perhaps on that of health, one day
        wages_only.set_level({77: 3.0})
        health.close()
        granted = [wages_only.statement(who).granted for who in (3, 4, 5, 6, 30)]
        assert granted == [10**9, 10**9, 2 * 10**9, None, 3 * 10**9]
    with in_levels(tmp_path, "wages", ["open"] * 40, levels, ceiling=2.0, version="low") as people:
        assert people.enrolment is not None
        assert people.enrolment.settled == (
            "1 own word above the ceiling; brought down to it",
            "ceiling 10 → 2; who had more comes down; stored answers stay",
        )
        assert people.statement(30).granted == 2 * 10**9
        assert people.enrolment.kept == 2  # those of 5 and 6
        day = people.describe().registered[:10]
        assert f"Own word: 3, brought down to 2, the ceiling of wages, on {day}." in people.statement(30).sentences
        assert people.statement(5).replaced is None
        people.set_level({31: 1.5})
        people.set_level({31: 0.5})
        assert people.statement(31).replaced is None
        with pytest.raises(PreferenceError, match=r"another kind than the table's.*the id as it stands in the data"):
            people.statement("30")
    with in_levels(tmp_path, "wages", ["open"] * 39, levels, ceiling=5.0, version="high") as people:
        assert "On no roster now, so not used in any question." in people.statement(39).sentences
        assert not any("roster" in told for told in people.statement(38).sentences)
        assert people.enrolment is not None
        assert people.enrolment.settled == ("ceiling 2 → 5; stored answers stay",)


def test_a_level_above_the_ceiling_is_named_with_both_ways_out(tmp_path: Path) -> None:
    with pytest.raises(PreferenceError) as caught:
        in_levels(tmp_path, "wages", ["open"] * 3, {"strict": 0.1, "open": 1.0}, ceiling=0.5)
    assert caught.value.what == "Level 'open' is 1, above the ceiling of 0.5."
    assert caught.value.hint == "ceiling=1.0, or levels={'strict': 0.1, 'open': 0.5}"


def test_an_own_word_that_gives_way_is_counted_and_the_person_is_told_to_what(tmp_path: Path) -> None:
    levels = {"strict": 0.1, "open": 1.0}
    with in_levels(tmp_path, "wages", ["open"] * 4, levels) as people:
        people.set_level({0: 0.5, 1: "open", 2: 0.3, 9: 0.7})
        said = str(people.statement(0))
    with in_levels(tmp_path, "health", ["strict", "strict", None], levels, default="strict") as people:
        assert people.enrolment is not None
        assert (people.enrolment.replaced, people.enrolment.tightened, people.enrolment.kept) == (2, 2, 1)
        assert "own words that give way to the source" in str(people.enrolment)
        day = people.describe().registered[:10]
        assert [people.statement(who).granted for who in range(3)] == [10**8, 10**8, 3 * 10**8]
        tail = f"until the preferences of health said something else on {day}."
        assert [people.statement(who).sentences[2:] for who in range(4)] == [
            (f"Own word: 0.5, {tail}",), (f"Own word: open, {tail}",), (), (),
        ]  # fmt: skip
        people.set_level({0: 0.5})
        assert str(people.statement(0)) == said
    with in_levels(tmp_path, "wages", ["strict", "open", "open", "open"], levels, version="2") as people:
        assert people.enrolment is not None
        assert people.enrolment.replaced == 1
        replaced = people.statement(0).replaced
        assert replaced is not None
        assert (replaced.granted, replaced.dataset) == (5 * 10**8, "wages")
        people.set_level({0: 0.5})
    with in_levels(tmp_path, "wages", ["open"] * 10, levels, version="3", confirm=True) as people:
        assert people.enrolment is not None  # nobody is overruled by what is looser, and nobody new by the same
        assert (people.enrolment.replaced, people.statement(9).granted) == (0, 7 * 10**8)


def test_who_is_stricter_is_counted_apart_on_the_roster_and_elsewhere(tmp_path: Path) -> None:
    levels, less = {"strict": 0.1, "open": 1.0}, {"strict": 0.1, "open": 0.5}
    in_levels(tmp_path, "wages", ["open"] * 30, levels).close()
    in_levels(tmp_path, "health", ["open"] * 40, levels, confirm=True).close()
    with in_levels(tmp_path, "wages", ["open"] * 20, less, redefine=True) as people:
        assert people.enrolment is not None
        assert (people.enrolment.gone, people.enrolment.tightened) == (10, 20)
        assert people.enrolment.tightened_elsewhere == 20
        assert "stricter elsewhere in the ledger" in str(people.enrolment)
        told = f"Level open: 1 until {people.describe().registered[:10]}, 0.5 since then."
        assert all(told in people.statement(who).sentences for who in (0, 25, 35))
        assert {people.statement(who).granted for who in range(40)} == {5 * 10**8}
        people.set_level({0: "strict"})
        assert people.statement(0).redefined == ()

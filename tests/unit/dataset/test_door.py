"""The one door: what happens in which order, what a failure leaves, and that nothing else reads a table."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import epsilons as eps
from epsilons.dataset.table import _TRIES
from epsilons.engines.duckdb import DuckDB
from epsilons.errors import BudgetExceeded, DataError, LedgerError
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.values import STORED, TOUCHED, StalePlanError, stale_plan
from epsilons.release.door import Sketch, asked_of
from support.wages import dataset, wages

SOURCE = Path(eps.__file__).parent
#: What a question does to the ledger, in this order.
STEPS = ["find", "reserve", "mark_read", "store"]


class Spy:
    """Writes down what is done to ledger and engine, and fails where it is told to."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self.fails: dict[str, Exception] = {}
        for kind, names in ((Ledger, ("cohorts", *STEPS)), (DuckDB, ("_ask", "keep"))):
            for name in names:
                patch.setattr(kind, name, self._watched(name, getattr(kind, name)))

    def _watched(self, name: str, method: Any) -> Any:
        def watched(*given: Any, **named: Any) -> Any:
            self.done.append(name)
            if name in self.fails:
                raise self.fails.pop(name)
            return method(*given, **named)

        return watched

    @contextmanager
    def watch(self) -> Iterator[list[str]]:
        self.done.clear()
        yield self.done


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    return Spy(monkeypatch)


QUESTIONS: dict[str, Any] = {
    "mean": lambda people, **more: people.mean("wage", bounds=(0, 100), **more),
    "count": lambda people, **more: people.count(where="age >= 40", **more),
    "median by region": lambda people, **more: people.median(
        "wage", bounds=(0, 100), by={"region": ["north", "south"]}, **more
    ),
    "sample": lambda people, **more: people.sum("wage", bounds=(0, 100), mechanism="sample", threshold="max", **more),
    "histogram": lambda people, **more: people.histogram("union", categories=["yes", "no"], **more),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_nothing_is_read_before_the_charge_is_durable(spy: Spy, name: str) -> None:
    people = dataset()
    with spy.watch() as done:
        QUESTIONS[name](people)
    assert [step for step in done if step not in ("cohorts", "_ask")] == STEPS
    assert done.index("mark_read") < done.index("_ask") < done.index("store")
    assert done.index("cohorts") < done.index("reserve")
    with spy.watch() as done:
        QUESTIONS[name](people)
    assert done == ["find"]


def test_what_is_free_reads_nothing(spy: Spy) -> None:
    people = dataset()
    with spy.watch() as done:
        people.plan("mean", "wage", bounds=(0, 100))
        people.plan("mean", "wage", bounds=(0, 100), error=5)
        people.describe()
        people.remaining()
        people.history()
        str(people)
    assert set(done) == {"cohorts"}


@pytest.mark.parametrize(
    "ask",
    [
        lambda people: people.mean("union", bounds=(0, 1)),
        lambda people: people.median("union", bounds=(0, 1)),
        lambda people: people.mean("wage"),
        lambda people: people.mean("nothing", bounds=(0, 1)),
        lambda people: people.mean("wage", bounds=(0, 100), where="wage + 1 > 2"),
        lambda people: people.count(where="union = 7"),
        lambda people: people.count(by={"region": [1]}),
        lambda people: people.histogram("age", categories=["old"]),
        lambda people: people.histogram("wage", edges=list(range(2000))),
        lambda people: people.kth_largest("wage", 0, bounds=(0, 100)),
        lambda people: people.quantile("wage", 2, bounds=(0, 100)),
        lambda people: people.mean("wage", bounds=(0, 100), mechanism="exponential"),
        lambda people: people.mean("wage", bounds=(0, 100), mechanism="weighted", threshold=1),
        lambda people: people.mean("wage", bounds=(0, 100), error=1e-9),
        lambda people: people.mean("wage", bounds=(0, 100), share=2),
        lambda people: people.mean("wage", bounds=(0, 100), share=0.1, error=1),
        lambda people: people.mean("wage", bounds=(0, 100), error=float("nan")),
        lambda people: people.mean("wage", bounds=(0, 100), missing="zero"),
        lambda people: people.mean("wage", bounds=(0, 100), missing="center", where="age > 1"),
        lambda people: people.count(missing="center"),
        lambda people: people.mean("wage", bounds=(0, 100), spread="wide"),
        lambda people: people.mean("wage", bounds=(0, 100), location="middle", where="age > 1"),
        lambda people: people.mean("wage", bounds=(0, 100), privacy="individual", missing="center"),
        lambda people: people.count("wage", privacy="individual"),
        lambda people: people.count(privacy="group"),
        lambda people: people.count(of="dogs"),
        lambda people: people.count(colour="red"),
        lambda people: people.count(mechanism=7),
    ],
)
def test_what_is_refused_costs_nothing_and_reads_nothing(spy: Spy, ask: Any) -> None:
    people = dataset(allow_individual=False)
    with spy.watch() as done, pytest.raises(eps.EpsilonsError):
        ask(people)
    assert "_ask" not in done
    assert people.remaining().epsilons == {0.5: 0.5, 1.0: 1.0, 4.0: 4.0}
    assert people.history() == ()


# --- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["find", "reserve", "mark_read", "_ask", "store"])
@pytest.mark.parametrize("name", ["mean", "median by region"])
def test_whatever_fails_the_charge_is_made_once_and_the_question_goes_on(spy: Spy, step: str, name: str) -> None:
    people = dataset()
    spy.fails[step] = KeyboardInterrupt() if step != "_ask" else DataError("The table could not be read.")  # type: ignore[assignment]
    with pytest.raises((KeyboardInterrupt, DataError)):
        QUESTIONS[name](people)
    before = people.remaining().epsilons
    charged = before != {0.5: 0.5, 1.0: 1.0, 4.0: 4.0}
    assert charged is (step in ("mark_read", "_ask", "store"))
    release = QUESTIONS[name](people)
    after = people.remaining().epsilons
    assert len(people.history()) == 1
    assert people.history()[0].state == STORED
    assert (after == before) is charged
    assert {granted: granted - left for granted, left in after.items()} == pytest.approx(release.charges)
    people.ledger.verify()


def test_a_question_that_was_cut_off_is_drawn_by_the_plan_that_was_charged(spy: Spy) -> None:
    """Meanwhile the budgets are spent, so that a fresh plan would leave nearly everybody out."""
    people = dataset()
    spy.fails["_ask"] = DataError("The table could not be read.")
    with pytest.raises(DataError):
        people.mean("wage", bounds=(0, 100), where="age >= 30")
    planned = json.loads(people.ledger.history()[0].description)["plan"]
    assert people.ledger.history()[0].state == TOUCHED
    people.count(share=0.89)
    release = people.mean("wage", bounds=(0, 100), where="age >= 30")
    assert release.mechanism == planned["mechanism"]
    assert release.why == planned["why"]
    assert release.charges == people.history()[0].epsilons
    assert len(people.history()) == 2


def test_a_draw_is_the_one_that_was_charged_although_people_move_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the charge and the draw half of the people withdraw: sizes and weights stay those of the plan."""
    people = dataset()
    reserve = Ledger.reserve
    seen: list[Any] = []

    def interrupted(self: Ledger, *given: Any, **named: Any) -> Any:
        held = reserve(self, *given, **named)
        if not seen:
            seen.append(held)
            people._registry.withdraw([f"person {place}" for place in range(40)])
        return held

    monkeypatch.setattr(Ledger, "reserve", interrupted)
    release = people.mean("wage", bounds=(0, 100))
    left = [cohort.people for cohort in people.ledger.cohorts() if cohort.people and cohort.state == "active"]
    assert left == [20]
    assert {granted: charge / 1e9 for granted, charge in seen[0].charges.items()} == pytest.approx(
        dict(zip(sorted(seen[0].charges), release.charges.values(), strict=True))
    )
    assert set(release.charges) == {0.5, 1.0, 4.0}


def test_the_loser_of_a_race_returns_the_winners_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    people = dataset()
    store, winner = Ledger.store, {}

    def raced(self: Ledger, number: int, answer: bytes) -> bytes:
        if not winner:
            other = json.loads(answer)
            other["value"] = 12.5
            winner["bytes"] = json.dumps(other).encode()
            store(self, number, winner["bytes"])
        return store(self, number, answer)

    monkeypatch.setattr(Ledger, "store", raced)
    assert people.mean("wage", bounds=(0, 100)).value == 12.5
    assert people.mean("wage", bounds=(0, 100)).value == 12.5
    assert len(people.history()) == 1


def test_others_who_spend_meanwhile_make_a_new_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    people = dataset()
    reserve, refused = Ledger.reserve, []

    def crowded(self: Ledger, *given: Any, **named: Any) -> Any:
        if len(refused) < 3:
            refused.append(1)
            raise stale_plan()
        return reserve(self, *given, **named)

    monkeypatch.setattr(Ledger, "reserve", crowded)
    people.count()
    assert len(refused) == 3
    assert len(people.history()) == 1

    def never(self: Ledger, *given: Any, **named: Any) -> Any:
        refused.append(1)
        raise stale_plan()

    monkeypatch.setattr(Ledger, "reserve", never)
    with pytest.raises(LedgerError, match="keep changing") as caught:
        people.count(share=0.2)
    assert not isinstance(caught.value, StalePlanError)
    assert len(refused) == 3 + _TRIES
    assert len(people.history()) == 1


def test_a_plan_that_this_release_cannot_read_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    people = dataset()
    with monkeypatch.context() as newer:
        newer.setattr(Sketch, "to_text", lambda sketch, asked: '{"asked": "count", "plan": {"mechanism": "new"}}')
        with pytest.raises(LedgerError, match="cannot be taken up again"):
            people.count()
    with pytest.raises(LedgerError, match="cannot be taken up again"):
        people.count()
    assert len(people.history()) == 1
    assert people.count(fresh=True).charges


# --- what comes back ------------------------------------------------------------------------------------------------


def test_the_same_question_gets_the_stored_bytes_from_any_process(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'wages.ledger'}"
    with dataset(ledger=address, version="1") as people:
        first = people.mean("wage", bounds=(0, 100), by={"region": ["north", "south"]})
        stored = people.ledger.find(_only_key(people))
        assert stored is not None
        assert stored.answer is not None
        assert json.loads(stored.answer) == first.to_dict()
    with dataset(ledger=address, version="1") as people:
        again = people.mean("WAGE", bounds=[0.0, 100.0], by={"region": ("north", "south")})
        assert again.to_dict() == first.to_dict()
        assert len(people.history()) == 1
        assert people.mean("wage", bounds=(0, 100), by={"region": ["north", "south"]}, fresh=True) != first
        assert len(people.history()) == 2
    with dataset(ledger=address, version="2") as people:
        people.mean("wage", bounds=(0, 100), by={"region": ["north", "south"]})
        assert len(people.history()) == 3
        people.ledger.verify()


def _only_key(people: eps.Dataset) -> bytes:
    with people.ledger._database.read() as connection:
        return bytes(connection.execute("SELECT key FROM reservations").fetchone()[0])


def test_history_has_the_question_in_words_and_no_plan() -> None:
    people = dataset()
    people.mean("wage", bounds=(0, 100), where="age>=40 and union='yes'", by={"region": ["north"]})
    (past,) = people.history()
    assert past.description == 'mean in [0, 100] of wage where ("age" >= 40 AND "union" = \'yes\') by region'
    assert asked_of("not JSON") == "not JSON"
    assert past.kind == "mean"


# --- no other path --------------------------------------------------------------------------------------------------

#: Which files may hand a query to an engine, and what for.
READERS = {
    "engines/duckdb.py": "the engine itself",
    "engines/spark.py": "the engine itself",
    "dataset/applying.py": "a sample's rows for an algorithm, inside the door",
    "dataset/gathering.py": "preferences and ids by person, which are public",
    "dataset/preferences.py": "preferences, which are public",
    "dataset/public.py": "public columns by person, at registration",
    "dataset/rows.py": "the copy, inside the engine",
    "dataset/steward.py": "private facts, for the steward's own check alone",
    "summaries/sql.py": "summaries, for those who are allowed to ask",
}


@cache
def names_in(file: Path) -> tuple[set[str], set[str]]:
    """(names of everything called as an attribute, module.name of everything imported, at the top or inside)."""
    calls, imported = set(), set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            calls.add(node.func.attr)
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    return calls, imported


def imported(file: Path) -> set[str]:
    return names_in(file)[1]


def test_only_few_files_hand_queries_to_an_engine() -> None:
    files = {str(file.relative_to(SOURCE)): file for file in SOURCE.rglob("*.py")}
    asking = {name for name, file in files.items() if {"run", "fetch", "keep"} & names_in(file)[0]}
    assert {name for name in asking if _knows_engines(files[name])} == set(READERS)


def _knows_engines(file: Path) -> bool:
    return any(name.startswith("epsilons.engines") for name in imported(file)) or file.name == "duckdb.py"


def test_summaries_are_asked_for_in_one_place_that_only_the_door_calls() -> None:
    """sql.tally and the like <- TablePeople <- read <- pass_through, and no other way."""
    files = {str(file.relative_to(SOURCE)): file for file in SOURCE.rglob("*.py")}
    room = "epsilons.summaries.sql"
    summaries = {f"{room}.{name}" for name in ("tally", "cells")} | {room}
    asking = {name for name, file in files.items() if imported(file) & summaries}
    assert asking == {"dataset/people.py"}
    making = {name for name, file in files.items() if "epsilons.dataset.people.TablePeople" in imported(file)}
    assert making == {"dataset/attempt.py", "dataset/applying.py"}
    for name in making:
        tree = ast.parse(files[name].read_text())
        (made,) = called(tree, "TablePeople")
        assert made in set(ast.walk(function(tree, "read")))
        used = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "read"]
        if name == "dataset/attempt.py":
            (door,) = called(tree, "pass_through")
            assert len(used) == 1
            assert used[0] in door.args
        else:
            assert not used
    rows = ast.parse(files["dataset/applying.py"].read_text())
    (taken,) = called(rows, "_rows")
    assert taken in set(ast.walk(function(rows, "read")))
    # Nobody else asks an attempt to read.
    attempts = {"epsilons.dataset.attempt.Attempt"}
    knowing = {name for name, file in files.items() if attempts & imported(file)}
    assert knowing == {"dataset/table.py", "dataset/applying.py", "dataset/parts.py"}
    parts = ast.parse(files["dataset/parts.py"].read_text())
    inside = set(ast.walk(function(parts, "read")))
    assert all(node in inside for node in ast.walk(parts) if isinstance(node, ast.Attribute) and node.attr == "read")
    table = ast.parse(files["dataset/table.py"].read_text())
    assert not [node for node in ast.walk(table) if isinstance(node, ast.Attribute) and node.attr == "read"]


def function(tree: ast.AST, name: str) -> ast.FunctionDef:
    return next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)


def called(tree: ast.AST, name: str) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name]


@pytest.mark.parametrize("method", sorted(name for name in dir(eps.Dataset) if not name.startswith("_")))
def test_every_method_that_answers_goes_through_the_door(method: str, spy: Spy) -> None:
    """Whatever of the public methods reads the table does so after `mark_read`; new ones have to be listed here."""
    statistics = {
        "count": ((), {}),
        "sum": (("wage",), {"bounds": (0, 100)}),
        "mean": (("wage",), {"bounds": (0, 100)}),
        "variance": (("wage",), {"bounds": (0, 100)}),
        "median": (("wage",), {"bounds": (0, 100)}),
        "quantile": (("wage", 0.5), {"bounds": (0, 100)}),
        "min": (("wage",), {"bounds": (0, 100)}),
        "max": (("wage",), {"bounds": (0, 100)}),
        "kth_largest": (("wage", 2), {"bounds": (0, 100)}),
        "histogram": (("union",), {"categories": ["yes"]}),
        "covariance": (("wage", "age"), {"bounds": {"wage": (0, 100), "age": (0, 100)}}),
        "correlation": (("wage", "age"), {"bounds": {"wage": (0, 100), "age": (0, 100)}}),
        "linear_regression": (("wage", ["age"]), {"bounds": {"wage": (0, 100), "age": (0, 100)}}),
        "mode": (("region",), {}),
        "top": (("region", 1), {}),
        "logistic_regression": (("union", ["age"]), {"bounds": {"age": (0, 100)}, "classes": ("no", "yes")}),
        "apply": ((lambda data, epsilon: len(data),), {"columns": ["age"]}),
        "sql": (("SELECT COUNT(*) FROM people",), {}),
        "relation": (("wage",), {"bounds": (0, 100), "share": 0.1}),
    }
    free = {
        "plan": ("count",),
        "describe": (),
        "remaining": (),
        "history": (),
        "answers": (),
        "verify": (),
        "close": (),
        "batch": (),
        "statement": ("person 1",),
        "key": ("age", "3"),
        "keys": ("region",),
        "count_charged": (),
        "budget": (200,),
    }
    #: Who stands where is joined to the copy.
    roster = {"set_level": ({"person 1": 0.2},), "withdraw": (["person 1"],)}
    former = {"set_preferences": ({"person 1": 0.2},), "sync_preferences": ()}
    people = dataset(keys={"region": ["north", "south"]})
    with spy.watch() as done:
        if method in statistics:
            given, named = statistics[method]
            getattr(people, method)(*given, **named)
            assert done.index("mark_read") < done.index("_ask") < done.index("store")
            assert "keep" not in done
        elif method in free:
            getattr(people, method)(*free[method])
            assert not {"_ask", "keep"} & set(done)
        elif method in roster:
            getattr(people, method)(*roster[method])
            assert "_ask" not in done
        elif method in former:
            with pytest.warns(DeprecationWarning, match=method):
                getattr(people, method)(*former[method])
            assert "_ask" not in done
        else:
            assert method in ("ledger", "from_toml", "open", "register")


def test_budgets_end_in_one_refusal(spy: Spy) -> None:
    people = dataset()
    people.count(share=1.0, mechanism="stretching")
    with spy.watch() as done, pytest.raises(BudgetExceeded) as caught:
        people.mean("wage", bounds=(0, 100))
    assert "_ask" not in done
    assert "reserve" not in done
    assert "Nobody has anything left" in str(caught.value)
    assert people.count(share=1.0, mechanism="stretching").value is not None


def test_a_relation_of_the_user_passes_the_same_door(spy: Spy) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.register("people", wages())
    people = dataset(connection.sql("SELECT * FROM people"))
    with spy.watch() as done:
        people.count(where="age > 40")
    assert done.index("mark_read") < done.index("_ask")

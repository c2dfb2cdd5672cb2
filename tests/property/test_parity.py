"""All fronts are one: the same arguments give the same answer or the same refusal, whoever is asked.

Arrays, their plans, a dataset's methods, its plans, batches, SQL, commands and estimators are walked through the
catalogue. Answers are compared by the draws of one seed (or exactly, where everyone is public), refusals by class, code
and text; after a refusal nobody is charged. A front that forgets an option is found, as the planted ones show.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import epsilons as eps
from epsilons.arguments.options import ARRAYS, BATCHES, OPTIONS, QUERIES, TABLES, options_of
from epsilons.cli import app
from epsilons.dataset.batch import Batch
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.statistics.entry import Entry
from epsilons.testing import seeded
from support.fronts import BOUNDS, EPSILONS, PEOPLE, SHARE, TABLE, data, facts, target
from support.lengths import short_and_long

Outcome = tuple[Any, ...]
Given = Mapping[str, Any]


def open_people() -> eps.Dataset:
    preferences = eps.Preferences.from_column("epsilon")
    return eps.Dataset(TABLE, person="id", preferences=preferences, version="parity", ledger="memory", ceiling=1e6)


@pytest.fixture(scope="module")
def people() -> Iterator[eps.Dataset]:
    with open_people() as opened:
        yield opened


@pytest.fixture(scope="module")
def uncharged() -> Iterator[eps.Dataset]:
    """For questions that are refused: its history stays empty, and is quick to read."""
    with open_people() as opened:
        yield opened


# The same question on every front -----------------------------------------------------------------------------------


AGGREGATES = {"sum": "SUM", "mean": "AVG", "variance": "VAR_POP", "median": "MEDIAN", "min": "MIN", "max": "MAX"}


def query(entry: Entry) -> str:
    called = f"QUANTILE({target(entry)}, 0.7)" if entry.name == "quantile" else f"{AGGREGATES[entry.name]}(wage)"
    return f"SELECT {called} AS answer FROM people"


def by_function(people: eps.Dataset, entry: Entry, given: Given) -> eps.Release:
    called: eps.Release = getattr(eps, entry.name)(
        *data(entry), epsilons=EPSILONS, share=SHARE, **facts(entry, ARRAYS), **given
    )
    return called


def by_plan(people: eps.Dataset, entry: Entry, given: Given) -> eps.Release:
    asked: eps.Release = eps.plan(entry.name, EPSILONS, **{"share": SHARE, **facts(entry, ARRAYS), **given}).ask(
        *data(entry)
    )
    return asked


def by_method(people: eps.Dataset, entry: Entry, given: Given) -> eps.Release:
    options = {"share": SHARE, "fresh": True, **facts(entry, TABLES), **given}
    called: eps.Release = getattr(people, entry.name)(target(entry), **options)
    return called


def by_table_plan(people: eps.Dataset, entry: Entry, given: Given) -> eps.Release:
    options = {"share": SHARE, "fresh": True, **facts(entry, TABLES), **given}
    asked: eps.Release = people.plan(entry.name, target(entry), **options).ask()
    return asked


def by_batch(people: eps.Dataset, entry: Entry, given: Given) -> eps.Release:
    batch = people.batch(SHARE)
    pending = getattr(batch, entry.name)(target(entry), **{"fresh": True, **facts(entry, BATCHES), **given})
    batch.ask()
    answered: eps.Release = pending.release
    return answered


def by_sql(people: eps.Dataset, entry: Entry, given: Given) -> eps.Release:
    return people.sql(query(entry), bounds=BOUNDS, **{"share": SHARE, "fresh": True, **given})["answer"]


@dataclass(frozen=True)
class Front:
    """A way to ask, and the options that it takes."""

    ask: Callable[[eps.Dataset, Entry, Given], eps.Release]
    options: str

    def serves(self, entry: Entry) -> bool:
        return self.ask is not by_sql or entry.name in (*AGGREGATES, "quantile")


FRONTS = {
    "function": Front(by_function, ARRAYS),
    "plan": Front(by_plan, ARRAYS),
    "method": Front(by_method, TABLES),
    "table plan": Front(by_table_plan, TABLES),
    "batch": Front(by_batch, BATCHES),
    "sql": Front(by_sql, QUERIES),
}


def outcome(front: Front, people: eps.Dataset, entry: Entry, given: Given) -> Outcome:
    try:
        release = front.ask(people, entry, given)
    except eps.EpsilonsError as error:
        return type(error), error.code, error.what
    return release.value, release.mechanism, dict(release.charges)


#: Right values of every option; some need a mechanism that takes them.
RIGHT: dict[str, list[dict[str, Any]]] = {
    "mechanism": [{"mechanism": "minimum"}, {"mechanism": "weighted"}],
    "threshold": [
        {"mechanism": "threshold", "threshold": 0.5},
        {"mechanism": "threshold", "threshold": "max"},
        {"mechanism": "threshold"},
    ],
    "rescale": [{"mechanism": "threshold", "rescale": True}, {"mechanism": "threshold", "rescale": False}],
    "assume": [{"assume": "nothing"}, {"assume": "unrelated"}, {"assume": 0.5}],
    "spread": [{"spread": 3}, {"spread": np.float32(40)}],
    "density": [{"density": 0.1}],
    "location": [{"location": 90}],
    "privacy": [{"privacy": "personalized"}],
    "scale": [{"mechanism": "smooth-sensitivity", "scale": "paper", "complete": True}],
    "gamma": [{"mechanism": "smooth-sensitivity", "gamma": 5, "complete": True}],
    "inside": [{"mechanism": "smooth-sensitivity", "inside": "threshold", "complete": True}],
    "missing": [{"missing": "exclude"}, {"missing": "center"}, {"missing": "center", "complete": True}],
    "complete": [{"complete": True}, {"complete": False}],
    "for_interval": [{"for_interval": 0}, {"for_interval": np.float32(0.6)}],
    "entropy": [{}],
}
#: Options that are not on all fronts, or that no seed can compare.
APART = {"neighbors", "group_epsilons", "share", "error", "where", "by", "fresh", "analyst", "delta"}


def disagreements(people: eps.Dataset, entry: Entry, fronts: Mapping[str, Front], given: Given) -> list[str]:
    """The fronts whose outcome is not that of the function on arrays."""
    if entry.name in ("min", "max", "kth_largest"):  # auto takes a sample, whose coins arrays and tables toss apart
        given = {"mechanism": "minimum", **given}
    expected = outcome(fronts["function"], people, entry, {**given, "entropy": seeded(3)})
    found = []
    for name, front in fronts.items():
        if name == "function" or not front.serves(entry):
            continue
        # Past answers are guesses for a table's plan: one that does not know of any guesses as the others do.
        with patch("epsilons.dataset.table.find_known", return_value=()):
            if outcome(front, people, entry, {**given, "entropy": seeded(3)}) != expected:
                found.append(name)
    return found


def test_every_option_is_walked() -> None:
    assert set(RIGHT) | APART == {option.name for option in OPTIONS}
    assert set(WRONG) == {option.name for option in OPTIONS}


@pytest.mark.parametrize("every", short_and_long(2, 1))
@pytest.mark.parametrize("name", CATALOGUE)
def test_all_fronts_give_the_same_answer(people: eps.Dataset, name: str, every: int) -> None:
    """Functions and methods with every option, in the short run every second one, by turns; the other fronts take
    turns, so that each has every option of several statistics and every statistic with several options."""
    first = list(CATALOGUE).index(name)
    turns = [front for front in FRONTS if front not in ("function", "method")]
    for turn, given in enumerate(given for settings in RIGHT.values() for given in settings):
        if (first + turn) % every:
            continue
        # Two at a time: what the query language does not serve would else be nobody's turn.
        chosen = {"function", "method", turns[(first + turn) % 4], turns[(first + turn + 1) % 4]}
        fronts = {front: FRONTS[front] for front in FRONTS if front in chosen}
        assert disagreements(people, CATALOGUE[name], fronts, given) == [], given


@pytest.mark.parametrize("name", CATALOGUE)
def test_exact_answers_are_the_same_on_the_command_line(name: str, home: Path) -> None:
    """Where everyone is public there is nothing to draw."""
    entry = CATALOGUE[name]
    exact = getattr(eps, name)(*data(entry), epsilons=eps.PUBLIC, **facts(entry, ARRAYS)).value
    own = facts(entry, TABLES)
    by_place = ["age"] if entry.model else [str(own[key]) for key in ("q",) if key in own]
    flags = ["--edges", "0,30,100"] if "edges" in own else ["--among", "0,1,2"] if "among" in own else []
    by_place += ["2"] if name == "top" else []
    document = command(home, name.replace("_", "-"), "people.toml", target(entry), *by_place, *flags, "--json")
    value = document["release"]["value"]
    if name == "top":
        assert value["list"] == exact
        return
    assert ([number for _, number in value] if isinstance(value, list) else value) == (
        list(exact.values()) if isinstance(exact, dict) else exact
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("public")
    pyarrow.parquet.write_table(TABLE.append_column("privacy", pa.array(["open"] * PEOPLE)), path / "table.parquet")
    (path / "people.toml").write_text(
        'source = "table.parquet"\nperson = "id"\nledger = "sqlite:///people.ledger"\n'
        '[preferences]\ncolumn = "privacy"\nlevels = { open = "public" }\n'
        "[bounds]\nwage = [0, 100]\nage = [18, 80]\n"
    )
    command(path, "register", "people.toml", "--json")
    return path


def command(home: Path, *arguments: str) -> Any:
    out, notes = io.StringIO(), io.StringIO()
    with contextlib.chdir(home), contextlib.redirect_stdout(out), contextlib.redirect_stderr(notes):
        status = app.main(list(arguments))
    assert status == 0, notes.getvalue()
    return json.loads(out.getvalue())


@pytest.mark.parametrize("name", ["linear_regression", "logistic_regression"])
def test_an_estimator_is_the_function(name: str) -> None:
    estimators = pytest.importorskip("epsilons.estimators")
    kinds = {
        "linear_regression": estimators.PersonalizedLinearRegression,
        "logistic_regression": estimators.PersonalizedLogisticRegression,
    }
    entry = CATALOGUE[name]
    known = {key: value for key, value in facts(entry, ARRAYS).items() if key != "features"}
    for settings in ({}, {"mechanism": "threshold", "threshold": "max"}, {"spread": 4}, {"neighbors": "replace"}):
        model = kinds[name](**known, share=SHARE, **settings)
        fitted = model.fit(*data(entry), epsilons=EPSILONS, entropy=seeded(3)).release_
        called = getattr(eps, name)(*data(entry), EPSILONS, **known, share=SHARE, **settings, entropy=seeded(3))
        assert (list(fitted.value.values()), fitted.charges) == (list(called.value.values()), called.charges)


# Refusals -----------------------------------------------------------------------------------------------------------

#: Wrong values of every option, and what makes them matter.
WRONG: dict[str, list[Any]] = {
    "mechanism": [None, 7, "magic", ["sample"]],
    "threshold": ["median", [1], True, math.nan, 1e9],
    "rescale": ["no", 1, [True]],
    "neighbors": [None, "add", 7],
    "assume": [None, "all", [], -0.1, math.nan, True],
    "spread": [0, -1, math.nan, "x", True, 1e200],
    "density": [-0.1, 1.1, "x", True],
    "location": [math.inf, "x", 1j],
    "privacy": [None, "none", "Individual", 7],
    "group_epsilons": [[1.0], []],
    "scale": ["loose", 7, []],
    "gamma": [1, 21, 2.5, "3", True],
    "inside": ["nothing", 7],
    "share": [0, -0.1, 1.01, math.nan, "all", True],
    "error": [0, -1, math.nan, math.inf, "small", True],
    "where": [7, "wage =", "nothing > 1"],
    "by": [7, {"nothing": [1]}, {"age": []}],
    "missing": ["drop", 7],
    "complete": [None, "yes", 1, ["wage"]],
    "for_interval": [None, -0.1, 0.95, math.nan, "most", True],
    "fresh": ["no", None, 1],
    "analyst": ["", 7],
    "delta": [0, -0.1, 1, math.nan, "small", True],
    "entropy": [7, "seed", np.random.default_rng(1), type(seeded(1))],
}
#: What must be given along for a wrong value to matter; not both a share and an error.
ALONG: dict[str, dict[str, Any]] = {
    "threshold": {"mechanism": "sample"},
    "scale": {"mechanism": "smooth-sensitivity"},
    "gamma": {"mechanism": "smooth-sensitivity"},
    "inside": {"mechanism": "smooth-sensitivity"},
    "error": {"share": None},
}


@pytest.mark.parametrize("option", WRONG)
@pytest.mark.parametrize("name", CATALOGUE)
def test_a_wrong_value_is_refused_alike_and_charges_nobody(uncharged: eps.Dataset, name: str, option: str) -> None:
    entry, people, before = CATALOGUE[name], uncharged, uncharged.remaining().epsilons
    for value in WRONG[option]:
        seen: dict[Outcome, list[str]] = {}
        for front, way in FRONTS.items():
            taken = option in options_of(way.options) or (option == "share" and way.ask is by_sql)
            if not taken or not way.serves(entry) or (option == "share" and way.ask is by_function):
                continue
            found = outcome(way, people, entry, {**ALONG.get(option, {}), option: value})
            seen.setdefault(found, []).append(front)
        assert len(seen) == 1, (value, seen)
        (refused,) = seen
        assert issubclass(refused[0], eps.EpsilonsError), (value, seen)
    assert (people.history(), people.remaining().epsilons) == ((), before)


MISSPELT = sorted({option.name for option in OPTIONS} | {a.name for e in CATALOGUE.values() for a in e.arguments})


@pytest.mark.parametrize("right", MISSPELT)
def test_a_misspelt_name_is_refused_alike_with_the_nearest_name(uncharged: eps.Dataset, right: str) -> None:
    wrong = right[:-1] + "_" + right[-1] if len(right) < 5 else right[:-2] + right[-1]
    for name, entry in CATALOGUE.items():
        for front in FRONTS.values():
            own = {} if front.ask is by_sql else entry.own(front.options)
            known = {**own, **options_of(front.options)}
            if not front.serves(entry):
                continue
            with pytest.raises(eps.PlanError) as caught:
                front.ask(uncharged, entry, {wrong: 1})
            called = "query" if front.ask is by_sql else name
            assert caught.value.what == f"A {called} takes no {wrong!r}."
            if right in known and len(right) > 3:
                assert right in caught.value.hint.split(" or ")
    assert uncharged.history() == ()


# A front that forgets an option -------------------------------------------------------------------------------------


def shown_options(name: str) -> dict[str, tuple[set[str], str]]:
    """{front: (what its signature or its flags show, the options that it has to take)}."""
    entry = CATALOGUE[name]
    flags = {parameter.name or "" for parameter in flags_of(name.replace("_", "-"))}
    planned = {parameter.name or "" for parameter in flags_of("plan")}
    return {
        "function": (set(inspect.signature(getattr(eps, name)).parameters), ARRAYS),
        "plan": ({*inspect.signature(eps.plan).parameters, *entry.own(ARRAYS)}, ARRAYS),
        "method": (set(inspect.signature(getattr(eps.Dataset, name)).parameters), TABLES),
        "table plan": ({*inspect.signature(eps.Dataset.plan).parameters, *entry.own(TABLES)}, TABLES),
        "batch": (set(inspect.signature(getattr(Batch, name)).parameters), BATCHES),
        "sql": ({*inspect.signature(eps.Dataset.sql).parameters, *entry.own(QUERIES)}, QUERIES),
        "command": (flags | {"entropy"}, TABLES),
        "plan command": (planned | {"entropy", "fresh"}, TABLES),
        "sql command": ({p.name or "" for p in flags_of("sql")} | {"entropy", *entry.own(QUERIES)}, QUERIES),
    }


def flags_of(called: str) -> list[click.Parameter]:
    found = app.epsilons.get_command(click.Context(app.epsilons), called)
    assert found is not None
    return found.params


def forgotten(name: str, shown: Mapping[str, tuple[set[str], str]]) -> list[tuple[str, str]]:
    """[(front, what it lacks)]."""
    entry = CATALOGUE[name]
    wanted = {front: {*entry.own(options), *options_of(options)} for front, (_, options) in shown.items()}
    return [(front, lacking) for front, (seen, _) in shown.items() for lacking in sorted(wanted[front] - seen)]


@pytest.mark.parametrize("name", CATALOGUE)
def test_no_front_forgets_an_option(name: str) -> None:
    assert forgotten(name, shown_options(name)) == []


def test_estimators_take_every_option() -> None:
    estimators = pytest.importorskip("epsilons.estimators")
    for kind in (estimators.PersonalizedLinearRegression, estimators.PersonalizedLogisticRegression):
        taken = {*kind().get_params(), *inspect.signature(kind.fit).parameters, "group_epsilons"}
        assert set(options_of(ARRAYS)) <= taken


def test_a_planted_front_that_forgets_an_option_is_found() -> None:
    shown = shown_options("median")
    seen, options = shown["batch"]
    assert forgotten("median", {**shown, "batch": (seen - {"gamma"}, options)}) == [("batch", "gamma")]


def test_a_planted_front_that_ignores_an_option_is_found(people: eps.Dataset) -> None:
    def deaf(people: eps.Dataset, entry: Entry, given: Given) -> eps.Release:
        return by_batch(people, entry, {name: value for name, value in given.items() if name != "mechanism"})

    fronts = {**FRONTS, "deaf": Front(deaf, BATCHES)}
    assert disagreements(people, CATALOGUE["mean"], fronts, {"mechanism": "minimum"}) == ["deaf"]

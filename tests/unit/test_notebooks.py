"""Every object shows itself: in a terminal as text of at most 80 columns, in a notebook with errors and conditions."""

import html
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.auditing import all_datasets, enumerate_losses
from epsilons.display import Sheet, Shown
from epsilons.local import RandomizedResponse


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """One of each, made of the same small table."""
    made = np.random.default_rng(5)
    table = pa.table(
        {
            "id": np.arange(400),
            "wage": made.uniform(10, 60, 400),
            "region": made.choice(["north", "<b>south</b>"], 400),
            "epsilon": made.choice([20.0, 50.0], 400),
        }
    )
    people = eps.Dataset(
        table, person="id", preferences=eps.Preferences.from_column("epsilon"), ledger="memory", ceiling=1e6
    )
    release = people.mean("wage", bounds=(0, 100), share=0.01)
    plan = people.plan("mean", "wage", bounds=(0, 100), share=0.01)
    preferences = eps.Preferences({"ann": 0.1, "bob": eps.PUBLIC}, default=0.05)
    protocol = RandomizedResponse(epsilon=1.0)
    verdict = enumerate_losses(lambda values: (["a"], [1.0]), all_datasets((0, 1), 1), [1.0])
    groups = people.mean("wage", bounds=(0, 100), by={"region": ["north", "<b>south</b>"]}, share=0.01)
    batch = people.batch(0.01)
    batch.mean("wage", bounds=(0, 100))
    return {
        "release": release,
        "groups": groups,
        "median": people.median("wage", bounds=(0, 100), share=0.01, for_interval=0),
        "plan": plan,
        "row of a plan": plan.best,
        "plan of a batch": batch.plan(),
        "answers": people.sql("SELECT AVG(wage) AS average FROM people", bounds={"wage": (0, 100)}, share=0.01),
        "guarantee": release.guarantee,
        "dataset": people,
        "remaining": people.remaining(),
        "history": people.history(),
        "preferences": preferences,
        "roster": preferences.assign(["ann", "bob", "cy"]),
        "protocol": protocol,
        "estimate": protocol.estimate([60, 40]),
        "verdict": verdict,
    }


def test_everything_has_a_page_and_a_text_and_nothing_escapes_into_html(shown: dict[str, Any]) -> None:
    for name, one in shown.items():
        page, text = one._repr_html_(), str(one)
        assert page.startswith(("<div>", "<pre")), name
        assert "<b>south</b>" not in page, name
        assert " object at 0x" not in text, name
        assert "np.float64" not in text + page, name


def test_tables_fit_eighty_columns(shown: dict[str, Any]) -> None:
    for name, one in shown.items():
        if isinstance(one, Shown) and one.sheets() and not isinstance(one, eps.Release):
            tables = (str(Sheet("", sheet.head, sheet.rows)) for sheet in one.sheets())
            assert max(len(line) for text in tables for line in text.splitlines()) <= 80, name


def test_an_answer_shows_its_error_interval_condition_price_and_promise(shown: dict[str, Any]) -> None:
    for name in ("release", "groups"):
        one, page = shown[name], html.unescape(shown[name]._repr_html_())
        errors = one.error.values() if isinstance(one.error, dict) else [one.error]
        assert all(f">{error:.4g}</td>" in page for error in errors)
        assert f"Condition: {one.assumption}." in page
        assert "95% interval" in page
        assert " to " in page
        assert "charged" in page
        assert str(one.guarantee) in page
    assert "No interval: " in shown["median"]._repr_html_()
    conditions = {name: shown[name].assumption for name in ("plan", "row of a plan")}
    for name, told in {**conditions, "answers": shown["answers"]["average"].assumption}.items():
        assert told in html.unescape(shown[name]._repr_html_()), name


def test_the_history_is_a_tuple_that_reads_as_a_table(shown: dict[str, Any]) -> None:
    history = shown["history"]
    assert isinstance(history, tuple)
    assert [past.number for past in history] == list(range(1, len(history) + 1))
    assert [row[2] for row in history.sheets()[0].rows] == [past.description for past in history]
    assert "median in [0, 100] of wage" in str(history)


def test_preferences_say_whose_they_are(shown: dict[str, Any]) -> None:
    assert str(shown["preferences"]) == "Preferences (2 people, default 0.05)"
    levels = eps.Preferences.from_levels("privacy", {"strict": 0.05, "open": 1})
    assert str(levels) == "Preferences (from column 'privacy', strict 0.05, open 1)"
    assert str(eps.Preferences([0.5, 1.0])) == "Preferences (in the data's order)"

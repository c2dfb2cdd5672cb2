"""A plan as a table: in a terminal and in a notebook."""

import re

import pytest

import epsilons as eps

PEOPLE = [0.05] * 60 + [0.2] * 30 + [1.0] * 10 + [eps.PUBLIC] * 2


def test_a_row_per_mechanism_in_the_plan_s_order() -> None:
    plan = eps.plan("count", PEOPLE)
    lines = str(plan).splitlines()
    assert lines[0] == "Plan for a count of ones, 102 people at 4 levels, share 1"
    assert lines[2].split() == ["mechanism", "error", "worst", "people", "charges", "how"]
    assert lines[3].split() == ["error", "used"]
    assert all(len(line) <= 80 for line in lines)
    assert set(lines[4]) == {"─", " "}
    named = [line.split()[0] for line in lines[5:] if line and not line.startswith(" ")]
    assert named[: len(plan.rows)] == [row.mechanism for row in plan.rows]


def test_it_says_what_it_takes_for_granted() -> None:
    text = " ".join(str(eps.plan("count", PEOPLE)).split())
    assert "Best first, by error: the expected RMSE if no level's expected share is further than 0.15 from" in text
    unrelated = " ".join(str(eps.plan("count", PEOPLE, assume="unrelated")).split())
    assert "if people's preferences say nothing about their values" in unrelated
    assert re.search(r"No personalized mechanism can promise a worst error below [\d.]+\.", text)
    assert "Best first, by worst error; nothing is assumed" in str(eps.plan("count", PEOPLE, assume="nothing"))


def test_a_dash_stands_for_what_cannot_be_predicted() -> None:
    text = str(eps.plan("max", PEOPLE, bounds=(0, 10)))
    assert "A dash: it cannot be predicted without looking at the data." in text
    assert "No error is known beforehand, so that the default comes first" in " ".join(text.split())
    assert "RMSE" not in text
    assert " – " in text
    assert "A dash" not in str(eps.plan("mean", PEOPLE, bounds=(0, 10)))


def test_charges_show_their_range() -> None:
    text = str(eps.plan("count", PEOPLE, share=0.5))
    minimum = next(line for line in text.splitlines() if line.startswith("minimum"))
    assert " 0.025 " in minimum
    stretching = next(line for line in text.splitlines() if line.startswith("stretching"))
    assert "0.025…0.5" in stretching
    assert "share 0.5" in text


@pytest.mark.parametrize("statistic", ["count", "mean", "median", "max"])
def test_a_notebook_shows_the_same(statistic: str) -> None:
    arguments = {} if statistic == "count" else {"bounds": (0, 10)}
    plan = eps.plan(statistic, PEOPLE, **arguments)
    page = plan._repr_html_()
    guesses = len(plan.guesses)
    assert (guesses > 0) == (statistic != "max")
    assert page.count("<tr>") == 1 + len(plan.rows) + (1 + guesses if guesses else 0)
    assert all(f">{row.mechanism}</td>" in page for row in plan.rows)
    assert page.count("<table>") == page.count("</table>") == (2 if guesses else 1)

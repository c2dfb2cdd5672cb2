"""For how many questions a dataset is registered, and the share that follows from it: by every way to ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.dataset.documents import Asked, read_facts, write_facts
from epsilons.errors import BudgetExceeded, LedgerError, PlanError
from epsilons.service.pages.asking import list_choices, read_question

TABLE = pa.table(
    {
        "id": range(90),
        "wage": [31.0, 45.0, 52.0] * 30,
        "age": [20.0, 40.0, 60.0] * 30,
        "region": ["north", "south", "south"] * 30,
    }
)
SETTLED: dict[str, Any] = {
    "name": "wages",
    "person": "id",
    "preferences": 0.8,
    "bounds": {"wage": (0, 100), "age": (0, 100)},
    "keys": {"region": ["north", "south"]},
}
TERMS = [{}, {"measure": "zcdp", "delta": 1e-6}]


@pytest.fixture(params=TERMS, ids=["pure", "zcdp"])
def people(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[eps.Dataset]:
    address = f"sqlite:///{tmp_path}/p.ledger"
    with eps.Dataset.register(TABLE, ledger=address, questions=40, public=["region"], **SETTLED, **request.param) as it:
        yield it


def apply(people: Any) -> Any:
    return people.apply(lambda data, epsilon: 1.0, columns=["wage"], name="one")


#: Each takes the share of one question.
WAYS = {
    "a statistic": lambda people: people.mean("wage"),
    "a condition": lambda people: people.count(where="wage > 40"),
    "groups of a public column": lambda people: people.sum("wage", by=["region"]),
    "a model": lambda people: people.linear_regression("wage", features=["age"]),
    "a plan": lambda people: people.plan("median", "wage").ask(),
    "a batch": lambda people: (ask := people.batch(), ask.count(where="age > 30"), ask.mean("age"), ask.ask()),
    "a query": lambda people: people.sql("SELECT AVG(wage), COUNT(*) FROM people WHERE age >= 30"),
    "an algorithm": apply,
    "a document": lambda people: Asked(
        people, {"statistic": "median", "arguments": {"column": "wage"}}, "ann", ""
    ).ask(),
    "a document of SQL": lambda people: Asked(people, {"sql": "SELECT SUM(age) FROM people"}, "ann", "").ask(),
    "a page": lambda people: Asked(
        people, read_question({"statistic": "max", "column": "age"}, people), "ann", ""
    ).ask(),
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_names_no_share_takes_that_of_one_question(way: str, people: eps.Dataset) -> None:
    whole = people.remaining().levels[0].least
    WAYS[way](people)
    cohorts = [one for one in people.ledger.cohorts() if one.people]
    taken = max(one.spent for one in cohorts)
    assert 0.9 * whole < 40 * taken <= whole  # charges never pass the share, and saturate nearly all of it


def test_it_is_the_same_question_as_one_that_names_that_share(people: eps.Dataset) -> None:
    assert people.mean("wage").value == people.mean("wage", share=1 / 40).value
    assert people.mean("wage", share=people.budget().share).value == people.mean("wage").value
    assert people.plan("mean", "wage").ask().value == people.mean("wage").value
    assert people.ledger.count("reservations") == 1


def test_a_third_is_known_again_as_well(tmp_path: Path) -> None:
    with eps.Dataset(TABLE, ledger="memory", questions=3, **SETTLED) as people:
        answers = {
            people.mean("wage").value,
            people.mean("wage", share=1 / 3).value,
            people.plan("mean", "wage").ask().value,
        }
        assert len(answers) == people.ledger.count("reservations") == 1


def test_so_many_fit_and_no_more() -> None:
    with eps.Dataset(TABLE, ledger="memory", questions=4, **SETTLED) as people:
        for number in range(4):
            people.count(where=f"wage > {number}")
        with pytest.raises(BudgetExceeded):
            people.count(where="wage > 4")


def test_it_is_said(people: eps.Dataset) -> None:
    told = "The default share, 0.025, leaves room for 40 questions."
    described = people.describe()
    assert told in " ".join(str(described).split())
    assert described.to_dict()["questions"] == 40
    plan = people.budget()
    assert (plan.questions, plan.share, plan.to_dict()["default_share"]) == (40, 0.025, 0.025)
    assert told in " ".join(str(plan).split())
    other = " ".join(str(people.budget(questions=200)).split())
    assert f"{told} Registered with questions = 200, it would be 0.005." in other
    assert list_choices(people._facts)["share"] == 0.025
    facts, behind = read_facts(write_facts(people._facts, described), "elsewhere")
    assert (facts.share, behind.questions) == (people._facts.share, 40)


def test_without_a_word_ten_are_planned_for() -> None:
    with eps.Dataset(TABLE, ledger="memory", **SETTLED) as people:
        assert people.mean("wage").charges == {0.8: 0.08}
        assert "questions" not in people.describe().to_dict()
        assert "default share" not in str(people.describe())
        assert people.budget().questions == 10


def test_another_number_is_settled_anew_and_said(tmp_path: Path) -> None:
    where: dict[str, Any] = {"ledger": f"sqlite:///{tmp_path}/p.ledger", **SETTLED}
    eps.Dataset.register(TABLE, version="1", questions=40, **where).close()
    with eps.Dataset.register(TABLE, version="2", questions=80, **where) as people:
        told = "questions 40 → 80; those that name no share are new ones, and charged"
        assert people.enrolment is not None
        assert told in people.enrolment.settled
        assert people.mean("wage").charges == {0.8: 0.01}
    with eps.Dataset.open("wages", ledger=where["ledger"]) as people:
        assert people.budget().questions == 80


def test_a_dataset_file_declares_it(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from epsilons.dataset.accounts import register_declared
    from epsilons.dataset.preview import foresee_budget

    pq.write_table(TABLE, tmp_path / "wages.parquet")
    file = tmp_path / "wages.toml"
    text = (
        'source = "wages.parquet"\nperson = "id"\nledger = "sqlite:///p.ledger"\nversion = "1"\nquestions = 40\n'
        "[preferences]\neveryone = 0.8\n[bounds]\nwage = [0, 100]\n"
    )
    file.write_text(text)
    assert foresee_budget(str(file), None, None, None).questions == 40
    register_declared(file, eps.Dataset, False, None, False)
    with eps.Dataset.from_toml(file) as people:
        assert people.mean("wage").charges == {0.8: 0.02}
    file.write_text(text.replace("questions = 40\n", ""))
    with pytest.raises(LedgerError, match="questions 40 → 10"):
        eps.Dataset.from_toml(file)


@pytest.mark.parametrize("wrong", [0, 2.5, "many", 1001])
def test_what_is_no_number_of_questions_is_refused(wrong: Any) -> None:
    with pytest.raises(PlanError, match="questions"):
        eps.Dataset(TABLE, ledger="memory", questions=wrong, **SETTLED)

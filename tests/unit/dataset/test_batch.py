"""Several questions for one share: split where the error is least, seen before it is spent."""

import json
from fractions import Fraction
from itertools import product

import pytest

import epsilons as eps
from small_tables import people_dataset


def test_a_batch_spends_its_share_and_no_more() -> None:
    with people_dataset() as people:
        with people.batch(share=0.2) as ask:
            wage = ask.mean("wage")
            old = ask.count(where="age >= 65")
            plan = ask.plan()
            assert people.history() == ()
            with pytest.raises(eps.PlanError, match="has not been asked yet"):
                _ = wage.value
            assert "not asked yet" in str(old)
        assert isinstance(wage.value, float)
        assert wage.interval(0.95)[0] < wage.value
        left = people.remaining().epsilons
        assert left[0.05] >= 0.05 * 0.8 - 1e-9
        assert sum(row.share for row in plan.rows) == pytest.approx(0.2)
        assert [row.error for row in plan.rows] == pytest.approx([wage.error, old.error], rel=0.01)
        assert "mean wage" in str(plan)
        assert "mean wage" in plan._repr_html_()


def test_the_split_is_the_best_of_all() -> None:
    """Against every way to hand out the pieces."""
    with people_dataset() as people:
        batch = people.batch(share=0.3)
        batch.mean("wage")
        batch.count(where="age >= 65")
        batch.median("age")
        predicted = [predict for _, predict in batch._asked]
        whole = [predict(Fraction(3, 10))[0] for predict in predicted]

        def total(pieces: tuple[int, ...]) -> float:
            shares = [Fraction(3, 10) * piece / 64 for piece in pieces]
            return sum((p(s)[0] / w) ** 2 for p, s, w in zip(predicted, shares, whole, strict=True))

        split = tuple(int(share / Fraction(3, 10) * 64) for share in batch.split())
        assert sum(split) == 64
        coarse = [(a, b, 64 - a - b) for a, b in product(range(8, 56, 8), repeat=2) if a + b <= 56]
        assert total(split) <= min(map(total, coarse)) * 1.0001


def test_a_block_that_fails_asks_nothing() -> None:
    with people_dataset() as people:
        batch = people.batch(share=0.2)
        batch.mean("wage")
        with pytest.raises(ZeroDivisionError), batch:
            _ = 1 / 0
        assert people.history() == ()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda ask: ask.mean("nothing"), "no column"),
        (lambda ask: ask.mean("wage", share=0.1), "no share of its own"),
        (lambda ask: ask.mean("wage", where="wage ="), "condition"),
        (lambda ask: ask.quantile("wage", 0.9), "one column by position"),
    ],
)
def test_a_wrong_question_shows_at_once(call: object, words: str) -> None:
    with people_dataset() as people:
        batch = people.batch(share=0.2)
        with pytest.raises(eps.EpsilonsError, match=words):
            call(batch)  # type: ignore[operator]
        with pytest.raises(eps.PlanError, match="no questions"):
            batch.ask()
        with pytest.raises(AttributeError):
            batch.close()


def test_a_batch_is_asked_once() -> None:
    with people_dataset() as people:
        batch = people.batch(share=0.1)
        batch.add("quantile", "wage", q=0.9, name="high")
        assert set(batch.ask()) == {"high"}
        with pytest.raises(eps.PlanError, match="is over"):
            batch.mean("wage")


def test_a_query_shows_its_plan_before_it_is_asked() -> None:
    """What the plan says is charged is what is charged then."""
    query = "SELECT region, AVG(wage) AS wage, COUNT(*) FROM people GROUP BY region"
    with people_dataset() as people:
        before = people.remaining().epsilons
        ask = people.batch(share=0.2)
        wage, count = ask.sql(query, keys={"region": ["north", "south"]})
        plan = ask.plan()
        assert (people.history(), people.remaining().epsilons) == ((), before)
        assert [row.question for row in plan.rows] == [wage.name, count.name] == ["wage", "count"]
        answers = ask.ask()
        assert answers.rows()[1]["region"] == "south"
        after = people.remaining().epsilons
    for granted, left in after.items():
        assert before[granted] - left == pytest.approx(plan.charges[granted], abs=1e-9)
        assert answers.charges[granted] == pytest.approx(plan.charges[granted], abs=1e-9)
        assert plan.charges[granted] > 0.19 * granted
    assert "strict: charges 0.01, leaves 0.04 of 0.05" in str(plan)
    document = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert document["charges"][0] == [0.05, 0.01]
    assert [row["mechanism"] for row in document["rows"]] == [row.mechanism for row in plan.rows]


def test_a_plan_charges_nobody_more_than_is_left() -> None:
    with people_dataset() as people:
        people.count(share=0.95, mechanism="stretching")
        ask = people.batch(share=0.2)
        ask.mean("wage")
        ask.count(where="age >= 65")
        left = people.remaining().epsilons
        assert all(ask.plan().charges[granted] <= left[granted] for granted in left)


def test_questions_of_one_name_are_all_answered() -> None:
    with people_dataset() as people:
        ask = people.batch(share=0.1)
        for age in (30, 40, 50):
            ask.count(where=f"age >= {age}")
        assert list(ask.ask()) == ["count", "count (2)", "count (3)"]
        other = people.batch(share=0.1)
        other.add("count", name="n")
        with pytest.raises(eps.PlanError, match="called 'n'"):
            other.sql("SELECT COUNT(*) AS n FROM people")


def test_a_batch_of_public_people_is_exact() -> None:
    with people_dataset(preferences=eps.Preferences({}, default=eps.PUBLIC)) as people:
        answers = people.sql("SELECT COUNT(*) FROM people")
        assert (answers["count"].value, answers["count"].mechanism) == (2000, "exact")
        ask = people.batch()
        ask.count()
        assert ask.plan().rows[0].mechanism == "exact"
        with pytest.raises(eps.DataError, match="no column"):
            ask.mean("nothing")

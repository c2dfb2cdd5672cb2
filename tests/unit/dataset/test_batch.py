"""Several questions for one share: split where the error is least, seen before it is spent."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import epsilons as eps
from epsilons.dataset.batch import Batch, split_share
from epsilons.dataset.facts import Level
from support.lengths import some
from support.small_tables import people_dataset

REGION = {"region": ["north", "south"]}
#: Then an answer's error is the one that its plan showed, whatever was released.
AS_PLANNED: dict[str, Any] = {"assume": "nothing"}


def test_a_batch_spends_its_share_and_no_more() -> None:
    with people_dataset() as people:
        with people.batch(share=0.2) as ask:
            wage = ask.mean("wage", missing="center", **AS_PLANNED)
            old = ask.count(where="age >= 65", **AS_PLANNED)
            plan = ask.plan()
            assert people.history() == ()
            with pytest.raises(eps.PlanError, match="has not been asked yet"):
                _ = wage.value
            assert "not asked yet" in repr(old)
        assert isinstance(wage.value, float)
        assert wage.interval(0.95)[0] < wage.value
        left = people.remaining().epsilons
        assert left[0.05] >= 0.05 * 0.8 - 1e-9
        assert sum(row.share for row in plan.rows) == pytest.approx(0.2)
        assert [row.error for row in plan.rows] == pytest.approx([wage.error, old.error], rel=0.01)
        assert "mean wage" in str(plan)
        assert "mean wage" in plan._repr_html_()
        assert "Errors are expected however preferences and values relate." in str(plan)


def test_a_plan_of_a_batch_says_what_its_errors_rest_on() -> None:
    with people_dataset() as people:
        ask = people.batch(share=0.2)
        ask.mean("wage", where="age >= 65", name="old")
        ask.median("wage")
        plan = ask.plan()
        alone = people.plan("mean", "wage", where="age >= 65", share=plan.rows[0].share)
        assert [guess.name for guess in plan.rows[0].guesses] == [guess.name for guess in alone.guesses]
        told = " ".join(str(plan).split())
        assert f"old: expected if {alone.best.assumption}, and the public guesses hold." in told
        assert "density" in told
        assert plan.to_dict()["rows"][0]["guesses"][0]["name"] == "density"


def by_region(ask: Batch) -> None:
    ask.mean("wage", by=REGION)
    ask.count(by=REGION)


def of_three_kinds(ask: Batch) -> None:
    ask.mean("wage")
    ask.count(where="age >= 65")
    ask.median("age")


def with_a_crowd(ask: Batch) -> None:
    ask.mean("wage")
    ask.count(where="age >= 30")
    ask.count(where="age >= 40")


SPLITS = list(product([by_region, of_three_kinds, with_a_crowd], [Fraction(1, 100), Fraction(3, 10), Fraction(1)]))


# For the short run every batch at one share or two, by turns.
@pytest.mark.parametrize(("note_down", "share"), some(SPLITS, lambda case: SPLITS.index(case) % 2 == 0))
def test_the_split_is_about_the_best_of_all(note_down: Callable[[Batch], None], share: Fraction) -> None:
    """Against every way to hand out sixteenths, an equal split among them."""
    with people_dataset() as people:
        batch = people.batch(share=share)
        note_down(batch)
        errors = [cache(partial(batch._error_of, pending)) for pending, *_ in batch._asked.values()]
        equal = [error(share / len(errors)) for error in errors]

        def total(shares: Sequence[Fraction]) -> float:
            ratios = [
                error(part) / base if math.isfinite(base) else float(share / len(errors) / part)
                for error, part, base in zip(errors, shares, equal, strict=True)
            ]
            return sum(ratio**2 for ratio in ratios) if max(ratios) <= 1.1 else math.inf

        found = batch.split()
        assert sum(found) == share
        ways = [way for way in product(range(1, 15), repeat=len(errors)) if sum(way) == 16]
        assert total(found) <= min(total([share * part / 16 for part in way]) for way in ways) * 1.02
        assert total(found) <= len(errors) + 1e-9


def test_the_split_does_not_stop_where_small_steps_help_nobody() -> None:
    """An error that falls only from a certain share on: one small step towards it is worth nothing."""
    found = split_share([lambda s: 1.0 if s < 0.7 else 0.01, lambda s: 1.0], Fraction(1))
    assert found[0] >= 0.7
    assert sum(found) == 1


def test_questions_of_one_kind_get_the_same() -> None:
    with people_dataset() as people:
        ask = people.batch(share=0.2)
        for age in range(20, 30):
            ask.count(where=f"age >= {age}")
        assert set(ask.split()) == {Fraction(1, 50)}


def test_questions_whose_error_nobody_knows_get_their_part() -> None:
    with people_dataset() as people:
        ask = people.batch(share=0.2)
        ask.max("wage")
        ask.mean("wage")
        ask.min("wage")
        assert min(ask.split()) > 0.2 / 3 / 2


def test_the_same_question_twice_is_one_question() -> None:
    with people_dataset() as people:
        with people.batch(share=0.2) as ask:
            one, other = ask.mean("wage"), ask.mean("wage")
            fresh, new = ask.sum("wage", fresh=True), ask.sum("wage", fresh=True)
            assert [row.question for row in ask.plan().rows] == ["mean wage, mean wage (2)", "sum wage", "sum wage (2)"]
        assert one.value == other.value
        assert one.release.to_dict() == other.release.to_dict()
        assert fresh.release.to_dict() != new.release.to_dict()
        assert len(people.history()) == 3


@pytest.mark.parametrize("spent", [0.9, 0.97])
def test_what_is_left_is_split_as_the_share_would_be(spent: float) -> None:
    """With little left no question takes what another was promised, and the plan says what happens."""
    with people_dataset() as people:
        people.count(share=spent, mechanism="sample", threshold="max")
        before = people.remaining().epsilons
        with people.batch(share=0.2) as ask:
            everything = AS_PLANNED | {"mechanism": "stretching"}
            wage, old = ask.mean("wage", missing="center", **everything), ask.count(where="age >= 65", **everything)
            plan = ask.plan()
        assert [wage.error, old.error] == pytest.approx([row.error for row in plan.rows], rel=1e-3)
        after = people.remaining().epsilons
        for granted, left in after.items():
            assert before[granted] - left == pytest.approx(plan.charges[granted], abs=3e-9)
            assert 0 <= left < 0.01 * granted


def test_a_batch_is_known_again_whatever_was_spent_since() -> None:
    query = "SELECT AVG(wage), VAR_POP(wage), COUNT(*) FROM people"
    with people_dataset() as people:
        first = people.sql(query, share=0.5)
        people.count(share=0.3, mechanism="stretching")
        before = people.remaining().epsilons
        assert people.sql(query, share=0.5).to_dict() == first.to_dict()
        assert people.remaining().epsilons == before
        people.count(share=1, mechanism="stretching")
        assert people.sql(query, share=0.5).to_dict() == first.to_dict()


def test_with_nothing_left_nothing_is_asked() -> None:
    with people_dataset() as people:
        people.count(share=1, mechanism="stretching")
        history = people.history()
        with pytest.raises(eps.BudgetExceeded):
            people.sql("SELECT AVG(wage), COUNT(*) FROM people")
        assert people.history() == history


def test_a_block_that_fails_asks_nothing() -> None:
    with people_dataset() as people:
        batch = people.batch(share=0.2)
        batch.mean("wage")
        with pytest.raises(ZeroDivisionError), batch:
            _ = 1 / 0
        assert people.history() == ()
        with pytest.raises(eps.PlanError, match="never asked"):
            _ = next(iter(batch)).value


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda ask: ask.mean("nothing"), "no column"),
        (lambda ask: ask.mean("wage", share=0.1), "A mean takes no 'share'. A batch splits one share"),
        (lambda ask: ask.mean("wage", where="wage ="), "condition"),
        (lambda ask: ask.quantile("wage", 0.9, 0.8), "at most 2 arguments by place"),
        (lambda ask: ask.quantile("wage"), "A quantile needs 'q'"),
        (lambda ask: ask.mean("wage", gama=3), "A mean takes no 'gama'"),
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


def test_a_batch_that_is_called_wrongly_is_told_so() -> None:
    with people_dataset() as people:
        with pytest.raises(eps.PlanError, match=r"A batch takes no 'shaer'\. Try: share"):
            people.batch(shaer=0.1)  # type: ignore[call-arg]
        with pytest.raises(eps.PlanError, match=r"A batch takes at most 1 arguments by place\."):
            people.batch(0.1, 0.2)  # type: ignore[call-arg]
        with pytest.raises(eps.PlanError, match=r"A run needs 'columns'\. Try: columns"):
            people.apply(len)  # type: ignore[call-arg]


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
        wage, count = ask.sql(query, keys={"region": ["north", "south"]}, assume="unrelated")
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
    many = tuple(Level(str(number), number / 100, 1, number / 100) for number in range(1, 101))
    assert str(replace(plan, rows=(), levels=many)).endswith("\n  100 levels: charges 0, leaves 0.01…1 of 0.01…1")
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
        for age in (30, 40, 40):
            ask.count(where=f"age >= {age}")
        assert list(ask.ask()) == ["count where age >= 30", "count where age >= 40", "count where age >= 40 (2)"]
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


def test_a_share_of_less_than_a_nano_epsilon_is_called_too_small() -> None:
    with people_dataset(preferences=eps.Preferences({}, default=1e-7)) as people:
        with pytest.raises(eps.PlanError, match="too small"):
            people.mean("wage", share=0.001)
        assert people.history() == ()
        # The search for the smallest share that reaches an error passes through such shares.
        assert people.count(error=1e12).error <= 1e12


def test_the_same_question_is_known_however_it_is_spelled() -> None:
    with people_dataset() as people:
        ask = people.batch(share=0.2)
        for bounds in ((0, 100), [0.0, 100.0], np.array([0, 100])):
            ask.mean("wage", bounds=bounds)
        assert ask.split() == [Fraction(1, 5)]


def test_questions_that_print_alike_are_told_apart() -> None:
    """numpy leaves out the middle of long arrays; a batch that went by what they print charged twice its share."""
    one, other = np.linspace(0, 100, 1002), np.linspace(0, 100, 1002)
    other[500] += 0.01
    with people_dataset() as people:
        ask = people.batch(share=0.2)
        ask.histogram("wage", edges=one)
        ask.histogram("wage", edges=other)
        assert sum(ask.split()) == Fraction(1, 5)
        assert len(ask.split()) == 2

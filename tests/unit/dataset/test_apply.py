"""Any private algorithm on a table: who is sampled, what it sees, and what is stored."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.dataset.applying import FAILED
from epsilons.noise.entropy import system
from epsilons.noise.laplace import discrete_laplace
from epsilons.testing import seeded
from support.small_tables import people_dataset, people_table


def noisy_length(data: Any, epsilon: float) -> int:
    return len(data) + discrete_laplace(system(), Fraction(repr(epsilon)))


class Spy:
    """Notes what it is called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, float]] = []

    def __call__(self, data: Any, epsilon: float) -> float:
        self.calls.append((data, epsilon))
        return 7.0


def test_people_are_kept_by_their_chances() -> None:
    """Over many fresh samples each level is kept as often as (e^eps - 1)/(e^t - 1) says; public people always."""
    table = people_table(3_000)
    spy = Spy()
    with people_dataset(table, preferences=eps.Preferences.from_levels(
        "privacy", {"strict": 0.5, "standard": 1.0, "open": 2.0, "public": eps.PUBLIC}
    )) as people:  # fmt: skip
        for seed in range(20):
            people.apply(spy, columns=["privacy"], share=0.05, entropy=seeded(seed))
    counts = {name: np.mean([np.sum(data == name) for data, _ in spy.calls]) for name in ("strict", "standard")}
    sizes = {name: table["privacy"].to_pylist().count(name) for name in ("strict", "standard", "open", "public")}
    t = 0.1
    for name, granted in (("strict", 0.025), ("standard", 0.05)):
        chance = np.expm1(granted) / np.expm1(t)
        spread = np.sqrt(sizes[name] * chance * (1 - chance) / 20)
        assert abs(counts[name] - sizes[name] * chance) < 4 * spread
    for data, epsilon in spy.calls:
        assert epsilon == t
        assert np.sum(data == "public") == sizes["public"]
        assert np.sum(data == "open") == sizes["open"]


def test_what_the_algorithm_gets() -> None:
    spy = Spy()
    with people_dataset() as people:
        people.apply(spy, columns=["wage", "age"], target="union", where="age >= 40", share=0.1)
        people.apply(spy, columns=["wage", "region"], share=0.1)
        people.apply(spy, columns=["age"], share=0.1)
    (features, target), _ = spy.calls[0]
    assert features.shape[1] == 2
    assert features[:, 1].min() >= 40
    assert set(target) == {"yes", "no"}
    assert isinstance(spy.calls[1][0], pa.Table)
    assert spy.calls[2][0].ndim == 1


def test_the_order_of_rows_depends_on_nobody_else() -> None:
    """Without one person, and with the rows of the table turned around, the others stand in the same order."""
    orders = []
    table = people_table(200)
    ledger = eps.ledger.open()
    for rows in (table, table.take(list(range(199, -1, -1))), table.slice(1)):
        spy = Spy()
        with people_dataset(rows, ledger=ledger, preferences=eps.Preferences({}, default=10)) as people:
            people.apply(spy, columns=["id"], share=0.01)
        orders.append(spy.calls[0][0].tolist())
    assert orders[0] == orders[1]
    assert [person for person in orders[0] if person != 0] == orders[2]


def test_a_named_run_is_stored_and_an_unnamed_one_is_not() -> None:
    with people_dataset() as people:
        first = people.apply(noisy_length, columns=["age"], name="length", share=0.1)
        assert people.apply(noisy_length, columns=["age"], name="length", share=0.1) == first
        assert len(people.history()) == 1
        people.apply(noisy_length, columns=["age"], share=0.1)
        people.apply(noisy_length, columns=["age"], share=0.1)
        assert len(people.history()) == 3
        assert first.charges[0.05] == 0.005
        assert first.charges[1.0] == 0.1
        assert "noisy_length" in str(first.guarantee)


def test_a_failure_is_a_result_and_is_stored() -> None:
    """A second try must not draw a second sample for one charge: whether it fails may be data."""
    calls = []

    def fails(data: Any, epsilon: float) -> float:
        calls.append(1)
        raise RuntimeError(f"the largest is {max(data)}")

    def odd(data: Any, epsilon: float) -> Any:
        return object()

    with people_dataset() as people:
        assert people.apply(fails, columns=["age"], name="fails").value == FAILED
        assert people.apply(fails, columns=["age"], name="fails").value == FAILED
        assert len(calls) == 1
        assert people.apply(odd, columns=["age"], name="odd").value == FAILED


def test_a_run_that_was_cut_off_is_taken_up_at_no_further_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    with people_dataset() as people:
        store = people.ledger.store
        monkeypatch.setattr(people.ledger, "store", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            people.apply(noisy_length, columns=["age"], name="length", share=0.1)
        monkeypatch.setattr(people.ledger, "store", store)
        left = people.remaining().epsilons
        assert isinstance(people.apply(noisy_length, columns=["age"], name="length", share=0.1).value, int)
        assert people.remaining().epsilons == left


def test_several_rows_share_the_threshold() -> None:
    spy = Spy()
    rows = pa.concat_tables([people_table(50)] * 3)
    with people_dataset(rows, rows_per_person=2, preferences=eps.Preferences({}, default=4.0)) as people:
        people.apply(spy, columns=["id"], share=0.5)
    data, epsilon = spy.calls[0]
    assert epsilon == 1.0
    assert sorted(np.unique(data, return_counts=True)[1].tolist()) == [2] * 50


def test_opendp_measurements_are_algorithms() -> None:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")

    def counting(epsilon: float) -> Any:
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.symmetric_distance()
        return space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon)

    with people_dataset(preferences=eps.Preferences({}, default=10)) as people:
        found = people.apply(counting, columns=["age"], share=0.5, name="OpenDP's count")
        assert abs(found.value - 2_000) < 20
        assert "OpenDP" in str(found.guarantee)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": []}, "No columns"),
        ({"columns": ["nothing"]}, "no column"),
        ({"columns": ["age"], "private_under": "replace"}, "cannot be personalized"),
        ({"columns": ["age"], "threshold": "best"}, "which threshold is best"),
        ({"columns": ["age"], "where": "age >"}, "condition"),
        ({"columns": ["age"], "share": 3}, "share"),
    ],
)
def test_what_cannot_be_run_is_said_before_anyone_is_charged(options: dict[str, Any], words: str) -> None:
    with people_dataset() as people:
        with pytest.raises(eps.EpsilonsError, match=words):
            people.apply(noisy_length, **options)
        assert people.history() == ()


def test_a_function_of_epsilon_alone_that_makes_no_measurement_is_refused_before_anyone_is_charged() -> None:
    def fail(epsilon: float) -> Any:
        raise ValueError

    with people_dataset() as people:
        before = people.remaining()
        for make in (lambda epsilon: 3, fail):
            with pytest.raises(eps.PlanError, match="must make an OpenDP measurement"):
                people.apply(make, columns=["age"], share=0.1)
        assert people.remaining() == before
        assert not people.history()

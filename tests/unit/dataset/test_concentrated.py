"""Ledgers that count rho: people choose epsilons, ten tenths fit and no more, statements say what is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.dataset.accounts import register_declared, set_quota, tell_quotas
from epsilons.errors import BudgetExceeded, EpsilonsError, LedgerError, PlanError, PreferenceError
from epsilons.guarantee import compose_all
from epsilons.measure import FEMTO, Measure, rho_of
from support.ledger_servers import fresh

DELTA = Fraction(1, 10**6)
LEVELS = {"strict": 0.1, "standard": 0.5, "open": 1.0}
TERMS: dict[str, Any] = {"measure": "zcdp", "delta": 1e-6}


def table(people: int = 600) -> pa.Table:
    rng = np.random.default_rng(4)
    return pa.table(
        {
            "id": np.arange(people),
            "wage": rng.uniform(0, 100, people),
            "age": rng.integers(18, 90, people),
            "level": [["strict", "standard", "open"][k % 3] for k in range(people)],
        }
    )


SETTLED: dict[str, Any] = {
    "person": "id",
    "preferences": eps.Preferences.from_levels("level", LEVELS),
    "bounds": {"wage": (0, 100)},
    "complete": ["wage"],
}


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.integration)])
def people(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[eps.Dataset]:
    if request.param == "memory":
        made = eps.Dataset(table(), ledger="memory", **SETTLED, **TERMS)
    else:
        server = request.param == "postgresql"
        address = fresh(request.getfixturevalue("postgres_server")) if server else f"sqlite:///{tmp_path}/p.ledger"
        where = {"ledger": address, "snapshots": tmp_path / "rows", "name": "wages"}
        made = eps.Dataset.register(table(), **where, **SETTLED, **TERMS)
    with made as opened:
        yield opened


@pytest.mark.parametrize("more", [{}, {"measure": "zcdp", "delta": 1e-6}], ids=["pure", "zcdp"])
def test_a_histogram_of_preferences_is_of_epsilons(more: dict[str, Any]) -> None:
    table = pa.table({"id": list(range(60)), "eps": [0.2, 0.5, 2.0] * 20})
    wishes = eps.Preferences.from_column("eps")
    with eps.Dataset(table, person="id", preferences=wishes, ledger="memory", **more) as people:
        assert list(people.histogram("eps", edges=[0, 0.3, 1, 10]).value.values()) == [20, 20, 20]
        assert people.histogram("eps", categories=[0.2, 0.7]).value == {0.2: 20, 0.7: 0}
        assert people.count(by={"eps": [0.5, 2.0]}).value == {0.5: 20, 2.0: 20}


def test_ten_tenths_of_everybodys_rho_fit_and_no_more(people: eps.Dataset) -> None:
    answers = [people.mean("wage", share=0.1, mechanism="minimum", fresh=True) for _ in range(10)]
    strict = rho_of(100_000_000, DELTA)
    assert all(one.charges[0.1] == pytest.approx(strict / 10 / FEMTO, rel=1e-6) for one in answers)
    assert all(one.guarantee.measure == Measure(DELTA) for one in answers)
    whole = compose_all([one.guarantee for one in answers])
    assert 0.0999 < whole.epsilons[0.1] <= 0.1
    # Tens of thousands of roundings against spending are left to the strict, and nothing is given to anyone.
    left = {one.epsilon: one.least for one in people.remaining().levels}
    assert 0 <= left[0.1] < 10**7
    assert left[1.0] == rho_of(10**9, DELTA) - sum(
        loss for one in answers for g, loss in one.guarantee.losses if g == 10**9
    )
    people.ledger.verify()
    later = people.mean("wage", share=0.1, mechanism="minimum", fresh=True)
    assert later.charges[0.1] == 0  # the strict are silently not used any more
    assert later.charges[0.5] > 0


def test_nothing_left_is_refused() -> None:
    with eps.Dataset(table(60), person="id", preferences=0.1, ledger="memory", **TERMS) as people:
        people.count(share=1.0, where="age >= 30")
        with pytest.raises(BudgetExceeded):
            people.count(share=0.5, where="age >= 40")


def test_every_front_is_counted_in_rho(people: eps.Dataset) -> None:
    batch = people.batch(share=0.2)
    batch.mean("wage")
    batch.count(where="age >= 30")
    answers = [*batch.ask().values(), *people.sql("SELECT avg(wage), count(*) FROM people", share=0.1).values()]
    answers += [
        people.median("wage", share=0.05),
        people.histogram("wage", edges=[0, 50, 100], by={"age": eps.ranges(18, 50, 90)}, share=0.05),
        people.variance("wage", share=0.05),
        people.linear_regression("wage", ["age"], bounds={"age": (18, 90)}, share=0.1),
        people.apply(lambda rows, epsilon: 0.0, columns=["wage"], share=0.05, private_under="absent"),
    ]
    plan = people.plan("mean", "wage", share=0.05, where="age >= 30")
    answers.append(plan.ask())
    assert dict(plan.best.charges) == pytest.approx(dict(answers[-1].charges))
    for answer in answers:
        assert answer.guarantee.delta == 1e-6, answer
        assert eps.Release.from_dict(answer.to_dict()) == answer
    told = people.history()
    spent = sum(past.charges.get(rho_of(100_000_000, DELTA), 0) for past in told)
    (strict,) = [one for one in people.remaining().levels if one.epsilon == 0.1]
    assert strict.least == strict.granted - spent
    people.ledger.verify()


def test_people_choose_epsilons_and_read_what_is_counted(people: eps.Dataset) -> None:
    people.mean("wage", share=0.1, mechanism="minimum")
    told = str(people.statement(0))
    assert "of 0.1 granted (10% of its rho), with a delta of 1e-06. Left: 90% of its rho." in told
    people.set_level({0: "open", 1: 0.7})
    opened = people.statement(0)
    assert opened.granted == rho_of(10**9, DELTA)
    assert opened.spent == rho_of(100_000_000, DELTA) // 10 or opened.spent <= rho_of(100_000_000, DELTA) // 10 + 1
    assert "of 0.7 granted" in str(people.statement(1))
    with pytest.raises(PreferenceError, match="above 10, the ceiling"):
        people.set_level({2: 11.0})
    levels = {one.name: one.epsilon for one in people.describe().levels}
    assert levels["strict"] == 0.1
    assert levels["0.7"] == 0.7


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"measure": "zcdp"}, "one delta"),
        ({"delta": 1e-6}, "one delta"),
        ({"measure": "renyi"}, "not kept here"),
        ({**TERMS, "allow_individual": True}, "exclude each other"),
        ({**TERMS, "ceiling": 5000}, "too high"),
        ({"measure": "zcdp", "delta": 0.5}, "no delta"),
    ],
)
def test_terms_that_cannot_be_kept(given: dict[str, Any], told: str) -> None:
    with pytest.raises(EpsilonsError, match=told):
        eps.Dataset(table(30), person="id", preferences=0.5, ledger="memory", **given)


def test_the_measure_is_fixed_for_the_life_of_a_ledger(tmp_path: Path) -> None:
    where: dict[str, Any] = {"ledger": f"sqlite:///{tmp_path}/p.ledger", "snapshots": tmp_path / "rows"}
    eps.Dataset.register(table(60), name="wages", **where, **SETTLED, **TERMS).close()
    for other in ({}, {**TERMS, "delta": 1e-7}):
        with pytest.raises(LedgerError, match="other terms") as refused:
            eps.Dataset.register(table(60), name="more", **where, **SETTLED, **other)
        assert "zcdp" in str(refused.value)
        assert "1e-06" in str(refused.value)
    with eps.Dataset.open("wages", ledger=where["ledger"]) as people:
        assert people.count(where="age >= 30").guarantee.delta == 1e-6
        # Registered again nobody moved: the same epsilons are worth the same rho.
    with eps.Dataset.register(table(60), name="wages", **where, **SETTLED, **TERMS) as again:
        assert again.enrolment is not None
        assert again.enrolment.changed == 0


def test_a_dataset_file_declares_it(tmp_path: Path) -> None:
    import pyarrow.parquet

    pyarrow.parquet.write_table(table(60), tmp_path / "wages.parquet")
    (tmp_path / "wages.toml").write_text(
        'source = "wages.parquet"\nperson = "id"\nledger = "memory"\nmeasure = "zcdp"\ndelta = 1e-6\n'
        "[preferences]\neveryone = 0.5\n"
    )
    with eps.Dataset.from_toml(tmp_path / "wages.toml") as people:
        assert people.count(where="age >= 30").guarantee.delta == 1e-6


DECLARED = 'source = "wages.parquet"\nperson = "id"\nledger = "sqlite:///wages.ledger"\n'
CHOSEN = (
    f'[preferences]\ncolumn = "level"\nlevels = {{ {", ".join(f"{name} = {one}" for name, one in LEVELS.items())} }}\n'
)
AS_IT_WAS = 'measure = "zcdp"\ndelta = 1e-6\nrenews = { open = "year" }\n'


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("", "measure zcdp with delta 1e-06 → pure; period of open year → none"),
        (AS_IT_WAS.replace("-6", "-7"), "measure zcdp with delta 1e-06 → zcdp with delta 1e-07"),
        (AS_IT_WAS.replace("year", "month"), "period of open year → month"),
        (AS_IT_WAS.replace("open", "strict"), "period of open year → none; period of strict none → year"),
    ],
)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, said: str, told: str) -> None:
    import pyarrow.parquet

    pyarrow.parquet.write_table(table(60), tmp_path / "wages.parquet")
    path = tmp_path / "wages.toml"
    path.write_text(DECLARED + AS_IT_WAS + CHOSEN)
    register_declared(str(path), eps.Dataset, True, None, False)
    with eps.Dataset.from_toml(path) as people:
        assert people.count(where="age >= 30").guarantee.delta == 1e-6
    path.write_text(DECLARED + said + CHOSEN)
    with pytest.raises(LedgerError, match="says something else") as refused:
        eps.Dataset.from_toml(path)
    assert told in str(refused.value)
    assert "cannot be settled anew" in str(refused.value)


def test_an_epsilon_that_is_worth_no_rho_is_refused_and_withdraws_nobody() -> None:
    tiny: dict[str, Any] = {"measure": "zcdp", "delta": 1e-9}
    assert Measure(Fraction(1, 10**9)).units(1) == 0
    with eps.Dataset(table(60), ledger="memory", **SETTLED, **tiny) as people:
        with pytest.raises(PreferenceError, match="too small to be counted in rho"):
            people.set_level({0: 1e-9})
        assert people.statement(0).state == "active"
    for wishes in (1e-9, eps.Preferences.from_levels("level", {**LEVELS, "strict": 1e-9})):
        with pytest.raises(PreferenceError, match="too small to be counted in rho"):
            eps.Dataset(table(60), person="id", preferences=wishes, ledger="memory", **tiny)


def test_an_error_is_reached_with_less_of_an_account() -> None:
    with eps.Dataset(table(), ledger="memory", **SETTLED, **TERMS) as people:
        answer = people.mean("wage", error=8.0, assume="unrelated")
        assert answer.error == pytest.approx(8.0, rel=0.05)
        with pytest.raises(PlanError, match="out of reach"):
            people.mean("wage", error=0.001, assume="unrelated")


def test_an_analysts_quota_is_in_epsilon_whatever_is_counted(people: eps.Dataset) -> None:
    """Of an epsilon of .5 a third of its rho is used up by a third of .5, not by a third of a rho."""
    set_quota(people.ledger, "office", 0.5, None)
    (told,) = tell_quotas(people.ledger)
    assert (told["epsilon"], told["used_epsilon"]) == (0.5, 0.0)
    people.mean("wage", share=0.3, mechanism="minimum", analyst="office")  # a third of the rho of .1
    (told,) = tell_quotas(people.ledger)
    assert told["used_epsilon"] == pytest.approx(0.0528, abs=5e-4)
    with pytest.raises(EpsilonsError, match="quota"):
        people.mean("wage", share=0.6, mechanism="stretching", analyst="office")  # most of the rho of 1


RNG = np.random.default_rng(8)
GRANTS = RNG.choice([0.3, 1.0, 2.0], 300)
NUMBERS, BITS = RNG.uniform(0, 10, 300), RNG.integers(0, 2, 300)
WIDE: dict[str, Any] = {"bounds": (0, 10), "complete": True}
MODEL: dict[str, Any] = {"bounds_X": ([0], [10])}
ARRAYS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "count": (lambda **k: eps.count(BITS, GRANTS, **k), ("minimum", "threshold", "robust", "weighted", "mixed")),
    "sum": (lambda **k: eps.sum(NUMBERS, GRANTS, **WIDE, **k), ("minimum", "threshold", "robust", "weighted", "mixed")),
    "mean": (
        lambda **k: eps.mean(NUMBERS, GRANTS, **WIDE, **k),
        ("minimum", "threshold", "robust", "weighted", "mixed"),
    ),
    "variance": (lambda **k: eps.variance(NUMBERS, GRANTS, **WIDE, **k), ("minimum", "threshold", "weighted")),
    "histogram": (
        lambda **k: eps.histogram(NUMBERS, GRANTS, edges=[0, 5, 10], **k),
        ("minimum", "threshold", "robust", "weighted"),
    ),
    "median": (
        lambda **k: eps.median(NUMBERS, GRANTS, step=0.1, **WIDE, **k),
        ("minimum", "threshold", "exponential", "weighted", "mixed"),
    ),
    "quantile": (
        lambda **k: eps.quantile(NUMBERS, GRANTS, q=0.3, step=0.1, **WIDE, **k),
        ("minimum", "threshold", "exponential", "weighted", "mixed"),
    ),
    "linear": (
        lambda **k: eps.linear_regression(NUMBERS[:, None], NUMBERS, GRANTS, bounds_y=(0, 10), **MODEL, **k),
        ("minimum", "threshold", "weighted"),
    ),
    "logistic": (
        lambda **k: eps.logistic_regression(NUMBERS[:, None], BITS, GRANTS, **MODEL, **k),
        ("minimum", "threshold", "weighted"),
    ),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("assume", ["unrelated", 0.3, "nothing"])
def test_arrays_take_a_delta_for_every_statistic_and_mechanism(name: str, assume: Any) -> None:
    """Whoever is used is charged rho, within what their epsilon is worth."""
    ask, mechanisms = ARRAYS[name]
    for mechanism in ("auto", *mechanisms):
        answer = ask(delta=1e-6, mechanism=mechanism, assume=assume)
        assert (answer.guarantee.delta, answer.guarantee.measure.name) == (1e-6, "zcdp")
        for granted, lost in answer.guarantee.losses:
            assert 0 <= (lost or 0) <= rho_of(granted or 0, DELTA)
        assert any(lost for _, lost in answer.guarantee.losses)

"""Covariance and correlation: what a person moves, what is said of the answer, and that every front asks them alike."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import epsilons as eps
from epsilons.cli.app import main
from epsilons.dataset.documents import Asked
from epsilons.preferences import roster_of
from epsilons.statistics.base import Scope
from epsilons.statistics.covariance import Correlation, Covariance
from epsilons.summaries.arrays import ArrayPeople, Rows
from epsilons.testing import seeded

_BOUNDS = ((0.0, 4.0), (-1.0, 3.0))
_NAN = math.nan
#: Both ends, the middle, what lies between and beyond, and nobody.
_FIRST, _SECOND = (0.0, 0.7, 2.0, 4.0, 9.0), (-1.0, 0.3, 1.0, 3.0, -math.inf)
_ROWS = [*itertools.product(_FIRST, _SECOND), (_NAN, 1.0), (2.0, _NAN)]


def _statistics() -> list[Any]:
    whole = [kind(("x",), _BOUNDS[:1], _BOUNDS[1], complete=True) for kind in (Covariance, Correlation)]
    return whole + [kind(("x",), _BOUNDS[:1], _BOUNDS[1], scope=Scope()) for kind in (Covariance, Correlation)]


def _cells(statistic: Any, row: tuple[float, float]) -> list[int]:
    people = ArrayPeople.of(Rows.of_two(np.array([row[0]]), np.array([row[1]])), roster_of([1.0]))
    return [int(cell) for cell in statistic.tally(people)[0][0]]


@pytest.mark.parametrize("place", range(4))
def test_nobody_moves_the_sums_further_than_is_declared(place: int) -> None:
    """By every pair of rows: and somebody moves a covariance exactly so far."""
    statistic = _statistics()[place]
    (part,) = statistic.parts
    added = [np.array(_cells(statistic, row), object) for row in _ROWS]
    there = [np.array(cells) for cells, row in zip(added, _ROWS, strict=True) if not math.isnan(sum(row))]
    pairs = {
        "absent": there,
        "replace": [
            one - other for one, other in itertools.combinations(added if not statistic.complete else there, 2)
        ],
    }
    for neighbors, moved in pairs.items():
        least, most = max(int(abs(one).sum()) for one in moved), max(int((one**2).sum()) for one in moved)
        assert least <= part.reach[neighbors]
        assert most <= part.square[neighbors]
        if isinstance(statistic, Covariance):
            assert least == part.reach[neighbors]
            assert most == part.square[neighbors]
            assert not least <= part.reach[neighbors] - 1  # one less would be too few


def test_random_rows_move_a_covariance_no_further_than_corners() -> None:
    random = np.random.default_rng(5)
    for statistic in (one for one in _statistics() if isinstance(one, Covariance)):
        (part,) = statistic.parts
        rows = random.uniform(-1, 5, (400, 2))
        added = [np.array(_cells(statistic, tuple(row)), object) for row in rows]
        assert max(int(abs(one).sum()) for one in added) <= part.reach["absent"]
        apart = [one - other for one, other in itertools.pairwise(added)]
        assert max(int(abs(one).sum()) for one in apart) <= part.reach["replace"]
        assert max(int((one**2).sum()) for one in apart) <= part.square["replace"]


def test_several_rows_of_a_person_reach_so_many_times_as_far() -> None:
    one, five = (Covariance(("x",), _BOUNDS[:1], _BOUNDS[1], scope=Scope(rows)).parts[0] for rows in (1, 5))
    assert five.reach == {name: 5 * reach for name, reach in one.reach.items()}
    assert five.square == {name: 25 * square for name, square in one.square.items()}


def test_where_everyone_is_public_they_are_numpy_s() -> None:
    random = np.random.default_rng(2)
    x, y = random.uniform(0, 4, 500), random.uniform(-1, 3, 500)
    y[:250] = x[:250] - 1
    x[7], y[9] = _NAN, _NAN
    kept = ~np.isnan(x) & ~np.isnan(y)
    bounds: dict[str, Any] = {"bounds_x": _BOUNDS[0], "bounds_y": _BOUNDS[1]}
    found = eps.covariance(x, y, eps.PUBLIC, **bounds).value
    assert found == pytest.approx(np.cov(x[kept], y[kept], bias=True)[0, 1], abs=1e-3)
    assert eps.correlation(x, y, eps.PUBLIC, **bounds).value == pytest.approx(
        np.corrcoef(x[kept], y[kept])[0, 1], abs=1e-3
    )
    assert eps.correlation(x[kept], x[kept], eps.PUBLIC, bounds_x=(0, 4), bounds_y=(0, 4)).value == pytest.approx(1.0)
    assert eps.covariance([3.0] * 9, [1.0] * 9, eps.PUBLIC, **bounds).value == pytest.approx(0, abs=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["covariance", "correlation"])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_stated_errors_are_honest(name: str, delta: float | None) -> None:
    """240 seeded answers: their RMSE is below 1.3 stated errors, and a third of them would not be enough.

    The RMSE of 240 answers is off by a part of sqrt(kurtosis/4/240), below 0.08 for Laplace noise; what is stated is
    larger than what is true by the guessed spreads. Seeded, so that it never fails by chance.
    """
    random, ask = np.random.default_rng(4), getattr(eps, name)
    x = np.clip(random.normal(50, 18, 3000), 0, 100)
    y = np.clip(0.6 * x + random.normal(20, 14, 3000), 0, 100)
    epsilons = np.where(np.arange(3000) % 3 > 0, 2.0, 0.5) if delta is None else np.full(3000, 2.0)
    bounds: dict[str, Any] = {"bounds_x": (0, 100), "bounds_y": (0, 100)}
    true, entropy, off, stated = ask(x, y, eps.PUBLIC, **bounds).value, seeded(8), [], []
    for _ in range(240):
        found = ask(x, y, epsilons, **bounds, assume="unrelated", entropy=entropy, delta=delta)
        off.append(found.value - true)
        stated.append(found.error)
    rmse = math.sqrt(np.mean(np.square(off)))
    assert None not in stated
    assert rmse < 1.3 * float(np.mean(stated))
    assert rmse > 0.33 * float(np.mean(stated))
    assert abs(np.mean(off)) < 0.4 * rmse
    with pytest.raises(eps.EpsilonsError, match="products of two columns"):
        found.interval(0.95)


def test_nothing_is_said_where_noise_hides_all() -> None:
    entropy = seeded(1)
    few = eps.correlation([50.0] * 8, [50.0] * 8, [0.1] * 8, bounds_x=(0, 100), bounds_y=(0, 100), entropy=entropy)
    assert -1 <= few.value <= 1
    assert few.error is None
    assert few.no_error


def test_a_concentrated_account_pays_by_l2() -> None:
    statistic = Covariance(("x",), _BOUNDS[:1], _BOUNDS[1], complete=True)
    (part,) = statistic.parts
    assert statistic.loss_factor == Fraction(1, 2)
    assert part.square["absent"] < part.reach["absent"] ** 2


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"bounds_x": (0, 1)}, "no bounds for y"),
        ({"bounds_y": (0, 1)}, "no bounds for x"),
        ({"bounds_x": (1, 0), "bounds_y": (0, 1)}, "bounds"),
    ],
)
def test_what_is_refused_on_arrays(named: Any, words: str) -> None:
    with pytest.raises(eps.PlanError, match=words):
        eps.covariance([1.0], [1.0], [1.0], **named)


def test_values_are_flat() -> None:
    with pytest.raises(eps.DataError, match="dimensions"):
        eps.covariance(np.ones((2, 2)), [1.0, 2.0], [1.0, 1.0], bounds_x=(0, 1), bounds_y=(0, 1))


def test_every_front_asks_them_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = 600
    table = pa.table(
        {
            "id": list(range(rows)),
            "wage": [float((i * 37) % 101) if i % 11 else None for i in range(rows)],
            "age": [15 + (i * 7) % 70 for i in range(rows)],
            "region": [("north", "south")[i % 2] for i in range(rows)],
        }
    )
    parquet.write_table(table, "people.parquet")
    text = (
        'source = "people.parquet"\nperson = "id"\nversion = "1"\nledger = "sqlite:///people.ledger"\n'
        '[preferences]\neveryone = 1\n[bounds]\nwage = [0, 100]\nage = [15, 90]\n[keys]\nregion = ["north", "south"]\n'
    )
    Path("people.toml").write_text(text)
    assert main(["register", "people.toml"]) == 0, capsys.readouterr().err
    with eps.Dataset.from_toml("people.toml") as people:
        for name, aggregate in (("covariance", "COVAR_POP"), ("correlation", "CORR")):
            asked = getattr(people, name)("wage", "age", share=0.05)
            document = {"statistic": name, "arguments": {"target": "wage", "other": "age", "share": 0.05}}
            assert Asked(people, document, "ann", "1").ask()["release"]["number"] == asked.number
            assert people.plan(name, "wage", other="age", share=0.05).ask().number == asked.number
            capsys.readouterr()
            assert main([name, "people.toml", "wage", "age", "--share", "0.05", "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["release"]["number"] == asked.number
            assert main([name, "people.toml", "wage", "age", "--share", "0.05"]) == 0
            assert main(["plan", "people.toml", name, "wage", "age", "--share", "0.05"]) == 0
            found = people.sql(
                f"SELECT {aggregate}(wage, age), COUNT(*) FROM people WHERE region = 'north'",
                bounds={"wage": (0, 100), "age": (15, 90)},
            )
            assert list(found) == [f"{name}_wage_age", "count"]
        with pytest.raises(eps.DataError, match="holds text"):
            people.covariance("wage", "region")
        with pytest.raises(eps.PlanError, match="everyone at once"):
            people.covariance("wage", "age", by=["region"])
        with people.batch(share=0.05) as ask:
            ask.covariance("wage", "age", where="region = 'north'")
            ask.mean("wage")
        assert "covariance wage with age" in str(ask.plan())
    with eps.Dataset(table, person="id", preferences=eps.PUBLIC, ledger="memory") as people:
        kept = [(row["wage"], row["age"]) for row in table.to_pylist() if row["wage"] is not None]
        x, y = (np.array(one, float) for one in zip(*kept, strict=True))
        bounds = {"wage": (0, 100), "age": (15, 90)}
        assert people.covariance("wage", "age", bounds=bounds).value == pytest.approx(
            np.cov(x, y, bias=True)[0, 1], abs=0.1
        )
        alike = eps.covariance(table["age"], table["wage"], eps.PUBLIC, bounds_x=(15, 90), bounds_y=(0, 100)).value
        assert people.covariance("wage", "age", bounds=bounds).value == alike


@pytest.mark.parametrize("ask", [eps.covariance, eps.correlation])
def test_conditions_speak_of_two_columns_and_not_of_a_model(ask: Any) -> None:
    answer = ask([1.0, 2.0, 3.0] * 100, [2.0, 3.0, 4.0] * 100, 5.0, bounds_x=(0, 5), bounds_y=(0, 5))
    assert "predict" not in str(answer) + answer.assumption

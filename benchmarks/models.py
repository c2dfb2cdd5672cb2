"""Models: accuracy and time against other libraries and numpy.

make bench-models                  measure and print
make bench-models ARGS=--write     and put the results into docs/models.md
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from page import write_between
from report import facts
from rosters import SHARES, THREE, generator
from timing import Group, Limit, Row, Size, again, time_both, time_by_turns

import epsilons as eps
from epsilons.estimators import PersonalizedLinearRegression, PersonalizedLogisticRegression
from epsilons.papers.pdp.incomes import WAGES, load_wages

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "models.md"
START, END = "<!-- figures: written by `make bench-models ARGS=--write` -->", "<!-- end of figures -->"
EPSILONS = (0.1, 1.0)
Floats = NDArray[np.float64]


# Time ----------------------------------------------------------------------------------------------------------------


def _fits(size: Size) -> Iterator[Row]:
    """One million people with 13 features, a target and an epsilon each."""
    people, random = size.people(1_000_000), generator(8)
    X, y = random.uniform(0, 100, (people, 13)), random.uniform(0, 100, people)
    three = random.choice(THREE, people, p=SHARES)
    rosters: dict[str, Any] = {
        "one epsilon for all": 1.0,
        "3 levels": three,
        "3 levels, a known roster": eps.Roster(np.arange(people), three),
        "100 levels": random.integers(1, 101, people) / 100,
        "256 levels": random.integers(1, 257, people) / 256,
    }
    for name, epsilons in rosters.items():
        models: dict[str, Callable[[], object]] = {
            "linear": partial(_linear, X, y, epsilons),
            "logistic": partial(_logistic, X, y > 50, epsilons),
        }
        for kind, fit in models.items():
            yield from time_both(
                f"{kind} fit, {people:,} × 13, {name}",
                fit,
                lambda: X.T @ X,
                against="numpy's X.T @ X of the same data",
                repetitions=size.repetitions(9),
                limit=Limit(2, "ratio"),
            )

    yield _table_fit(size, X, y, three)


def _table_fit(size: Size, X: Floats, y: Floats, epsilons: Floats) -> Row:
    """The moments of a model from a table, beside the same moments in plain SQL: doubles, grouped by the level."""
    import pyarrow as pa

    names = [f"x{place}" for place in range(X.shape[1])]
    columns = {name: X[:, place] for place, name in enumerate(names)}
    table = pa.table({"id": np.arange(len(y)), **columns, "y": y, "epsilon": epsilons * 1000})
    bounds = dict.fromkeys([*names, "y"], (0.0, 100.0))
    preferences = eps.Preferences.from_column("epsilon")
    people = eps.Dataset(
        table,
        person="id",
        preferences=preferences,
        ceiling=1000 * float(epsilons.max()),
        version="made up",
        bounds=bounds,
        threads=2,
        ledger="memory",
    )
    prepared = people._preparation.prepared
    pairs = [(a, b) for place, a in enumerate(names) for b in [*names[place:], "y"]]
    sums = ", ".join([f"SUM({a} * {b})" for a, b in pairs] + [f"SUM({name})" for name in [*names, "y"]])
    plain = f'SELECT "{prepared.level}", COUNT(*), {sums} FROM "{prepared.name}" GROUP BY 1'
    connection = prepared.engine._connection  # type: ignore[attr-defined]
    return time_by_turns(
        f"linear fit of a table, {len(y):,} × {len(names)}, 3 levels",
        again(lambda: people.linear_regression("y", names, share=0.001, fresh=True)),
        lambda: connection.execute(plain).fetchall(),
        against="the same moments in plain SQL",
        repetitions=size.repetitions(7),
        limit=Limit(1.5, "ratio"),
    )


def _linear(X: Floats, y: Floats, epsilons: Any) -> object:
    return PersonalizedLinearRegression(bounds_X=(0, 100), bounds_y=(0, 100)).fit(X, y, epsilons=epsilons)


def _logistic(X: Floats, y: Any, epsilons: Any) -> object:
    return PersonalizedLogisticRegression(bounds_X=(0, 100), classes=(False, True)).fit(X, y, epsilons=epsilons)


MODELS = Group("models", "A model of 1,000,000 people with 13 features", _fits)


# Accuracy ------------------------------------------------------------------------------------------------------------


def _error(fit: Callable[[], tuple[float, Floats]], X: Floats, y: Floats, models: int) -> float:
    squares = []
    for _ in range(models):
        intercept, slopes = fit()
        squares.append(float(np.mean((X @ slopes + intercept - y) ** 2)))
    return math.sqrt(np.mean(squares))


def _ours(X: Floats, y: Floats, epsilon: Any, bounds: Any) -> tuple[float, Floats]:
    intercept, *slopes = eps.linear_regression(X, y, epsilon, bounds_X=bounds, bounds_y=WAGES).value.values()
    return intercept, np.array(slopes)


def _opendp(X: Floats, y: Floats, epsilon: float, bounds: Any) -> tuple[float, Floats]:
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    (low,), (high,) = bounds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it divides by zero where two people have the same feature
        model = dp.sklearn.linear_model.LinearRegression(
            dp.max_divergence(), x_bounds=[(low, high)], y_bounds=WAGES, scale=2 / epsilon
        )
        assert model.measurement.map(1) <= epsilon * (1 + 1e-9)
        fitted = model.fit(X, y)
    return float(fitted.intercept_), np.asarray(fitted.coef_)


def _diffprivlib(X: Floats, y: Floats, bounds: Any, models: int) -> dict[str, Any] | None:
    """None where diffprivlib's own environment is missing."""
    python = ROOT / "build" / "diffprivlib" / "bin" / "python"
    if not python.exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.npz"
        facts = {"low": bounds[0], "high": bounds[1], "wages": WAGES, "epsilons": EPSILONS, "models": models}
        np.savez(path, X=X, y=y, **{name: np.asarray(fact) for name, fact in facts.items()})
        done = subprocess.run(
            [str(python), str(ROOT / "benchmarks" / "peer_diffprivlib.py"), str(path)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=True,
        )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def accuracy(quick: bool) -> tuple[list[str], list[str]]:
    """(a table in Markdown, notes): errors in dollars per hour at one epsilon for everyone."""
    data = load_wages()
    X, y, names, (low, high) = data.features, data.target, data.statistic.names, np.transpose(data.statistic.bounds)
    models = 2 if quick else 30
    school = names.index("education")
    lines = ["| model | ε | exact | epsilons | OpenDP | diffprivlib |", "|---|---:|---:|---:|---:|---:|"]
    notes: list[str] = []
    for name, columns in (("education alone", [school]), ("six features", list(range(len(names))))):
        some, bounds = X[:, columns], (low[columns].tolist(), high[columns].tolist())
        exact = _error(lambda some=some, bounds=bounds: _ours(some, y, eps.PUBLIC, bounds), some, y, 1)  # type: ignore[misc]
        peer = _diffprivlib(some, y, bounds, models)
        for epsilon in EPSILONS:
            ours = _error(partial(_ours, some, y, epsilon, bounds), some, y, models)
            opendp = (
                f"{_error(partial(_opendp, some, y, epsilon, bounds), some, y, models):.3f}"
                if len(columns) == 1
                else "–"
            )
            other = "–" if peer is None else f"{peer['errors'][str(epsilon)]:.3f}"
            lines.append(f"| {name} | {epsilon:g} | {exact:.3f} | {ours:.3f} | {opendp} | {other} |")
        if peer is not None:
            notes = [
                f"diffprivlib {peer['version']}: with bounds (0, 100) and no intercept the noise in its sum of squares "
                f"was {peer['noise']:.1g}."
            ]
    return lines, notes


# The command ---------------------------------------------------------------------------------------------------------


def time_table(rows: Sequence[Row], quick: bool) -> list[str]:
    """In Markdown; a quick run judges no limit."""
    lines = ["| what | ours | X.T @ X | ratio | limit | held? |", "|---|---:|---:|---:|---:|---|"]
    for row in rows:
        held = "" if quick else "yes" if row.held else "NO"
        lines.append(
            f"| {row.what} | {row.ours * 1e3:.0f} ms | {row.yardstick * 1e3:.0f} ms | {row.ratio:.2f}× | 2× | {held} |"
        )
    return lines


def _blocks(table: list[str], notes: list[str]) -> list[str]:
    return [*table, "", *notes]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0 also when a limit was missed, which is said plainly."""
    parser = argparse.ArgumentParser(description="Models: time against numpy, accuracy against other libraries.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that everything runs, measures nothing")
    parser.add_argument("--write", action="store_true", help="put the results into docs/models.md")
    options = parser.parse_args(arguments)
    if options.write and options.quick:
        parser.error("--write needs a whole run: leave out --quick")
    times = time_table(list(_fits(Size(options.quick))), options.quick)
    known = facts()
    text = "\n".join(
        [
            f"Of {known['date']}: epsilons {known['epsilons']}, Python {known['python']}, numpy {known['numpy']}.",
            *("", "### Compared with other libraries", ""),
            *_blocks(*accuracy(options.quick)),
            *("", "### Time", ""),
            *times,
        ]
    )
    print(text)
    if options.write:
        write_between(PAGE, (START, END), [text])
    return 0


if __name__ == "__main__":
    sys.exit(main())

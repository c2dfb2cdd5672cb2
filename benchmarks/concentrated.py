"""What concentrated accounts gain: 200 counts of one twentieth of 10,000 people each, who all grant 1 and pay for all.

Asked of a table through the public interface, each at 1/200 of everybody's grant: of a ledger that counts epsilons, and
of one that counts rho, with a delta of a millionth. Errors are root mean squares over all answers; beside them stands
what the releases say of their own error, and what follows from the noise alone. Counts are cut to what is possible, so
that wide noise around 500 people errs by less than its deviation; around 5,000 it is not cut.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from page import print_or_write

import epsilons as eps
from epsilons.measure import FEMTO, NANO, check_delta, rho_of

PAGE = Path(__file__).parents[1] / "docs" / "theory.md"
START = "<!-- concentrated: written by `make bench-concentrated ARGS=--write` -->"
END = "<!-- end of concentrated -->"
PEOPLE, QUESTIONS, PARTS, DELTA = 10_000, 200, 20, 1e-6
HEAD = ("account", "RMSE", "as releases state it", "RMSE of halves, not cut", "by the noise alone")
Line = tuple[str, float, float, float, float]


def ask_all(measure: str, rounds: int, questions: int, parts: int = PARTS) -> tuple[float, float]:
    """(root mean square of errors, of stated errors) over so many rounds of questions, each round on a new account."""
    random, errors, stated = np.random.default_rng(3), [], []
    for _ in range(rounds):
        columns = [random.permutation(np.arange(PEOPLE) % parts) for _ in range(QUESTIONS // parts)]
        table = pa.table({"id": range(PEOPLE), **{f"b{k}": column for k, column in enumerate(columns)}})
        counted: dict[str, Any] = {} if measure == "pure" else {"measure": measure, "delta": DELTA}
        with eps.Dataset(table, person="id", preferences=1.0, ledger="memory", **counted) as people:
            for number in range(questions):
                where = f"b{number % len(columns)} = {number // len(columns)}"
                answer = people.count(where=where, share=1 / QUESTIONS, assume="unrelated", density=1 / parts)
                errors.append(answer.value - PEOPLE // parts)
                stated.append(answer.error)
    return float(np.sqrt(np.mean(np.square(errors)))), float(np.sqrt(np.mean(np.square(stated))))


def measure_all(rounds: int, questions: int) -> Iterator[Line]:
    """(account, error, stated error, error where nothing is cut, error of the noise)."""
    rho = rho_of(NANO, check_delta(DELTA)) / FEMTO
    noises = {"pure": math.sqrt(2) * QUESTIONS, "zcdp": math.sqrt(QUESTIONS / (2 * rho))}
    called = {"pure": "pure epsilons, all pay", "zcdp": "zCDP with Gaussian noise, all pay"}
    for measure, noise in noises.items():
        halves, _ = ask_all(measure, rounds, questions, parts=2)
        yield called[measure], *ask_all(measure, rounds, questions), halves, noise


def tabulate(quick: bool) -> list[str]:
    """The table, line by line."""
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    for account, *numbers in measure_all(1 if quick else 20, 20 if quick else QUESTIONS):
        lines.append(f"| {account} | {' | '.join(f'{number:.3g}' for number in numbers)} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print, or write into the page."""
    return print_or_write(arguments, __doc__, PAGE, (START, END), tabulate)


if __name__ == "__main__":
    sys.exit(main())

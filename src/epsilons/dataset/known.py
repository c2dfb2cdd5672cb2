"""Guesses from past answers: what was released about this dataset and version serves the next plan.

Only released numbers are looked at, so that this is post-processing: free, and no promise changes. A guess of the
caller's own always wins. A number that says little beside its own error is left aside.
"""

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from epsilons.dataset.attempt import rough_count
from epsilons.dataset.facts import TableFacts
from epsilons.dataset.question import TableQuestion
from epsilons.ledger.values import Stored
from epsilons.planner.guesses import Known, in_use
from epsilons.release.answer import Release
from epsilons.release.stored import read_stored
from epsilons.statistics.regression import Regression

#: (guess, how far it may be off, number of the release)
_Found = tuple[float, float, int]


def find_known(asked: TableQuestion, facts: TableFacts, stored: Iterable[Stored], people: int) -> tuple[Known, ...]:
    """What past answers say of the guesses behind a question; `people` are those on the roster."""
    wanted = [name for name in in_use(asked.question) if getattr(asked.options, name) is None]
    read = map(read_stored, stored) if wanted else ()
    past = [one for one in read if one is not None and (one.dataset, one.version) == (facts.name, facts.version)]
    known = []
    for name in wanted:
        found = list(_LOOK[name](asked, facts, past, people))
        if found:
            # The most exact, of those the newest: stated errors differ with the answer, far behind the point.
            value, _, number = min(found, key=lambda one: (float(f"{one[1]:.3g}"), -one[2]))
            known.append(Known(name, value, number))
    return tuple(known)


def _density(asked: TableQuestion, facts: TableFacts, past: list[Release], people: int) -> Iterator[_Found]:
    """The part of people who count, from counts under the same condition; of groups their average."""
    scope, told = asked.question.statistic.scope, asked.about()
    if scope is None or scope.only_missing:
        return
    column = asked.column if asked.kind == "count" else None
    alike = {told["where"], rough_count(asked, facts, Fraction(1, 10)).condition}
    for one in past:
        if not one.statistic.startswith("count of ") or one.where not in alike or one.column != (column or ""):
            continue
        counted, error = one.value, one.error
        if one.by and one.by == told["by"] and isinstance(counted, dict) and isinstance(error, dict):
            if set(counted) != set(scope.groups or ()):
                continue
            counted, error = sum(counted.values()), math.hypot(*(part or math.inf for part in error.values()))
        elif one.by:
            continue
        if _says_much(counted, error):
            whole = people * scope.cells * (1 if one.statistic == "count of people" else scope.average)
            yield min(counted / whole, 1.0), error / whole, one.number or 0


def _spread(asked: TableQuestion, facts: TableFacts, past: list[Release], people: int) -> Iterator[_Found]:
    """From variances of the column; how far a model's targets stray from it is another matter."""
    if isinstance(asked.question.statistic, Regression):
        return
    for one in _of_column(asked, past, "variance"):
        if _says_much(one.value, one.error):
            yield math.sqrt(one.value), one.error / 2 / math.sqrt(one.value), one.number or 0


def _location(asked: TableQuestion, facts: TableFacts, past: list[Release], people: int) -> Iterator[_Found]:
    """From means and medians of the column that err by a tenth of the bounds at most."""
    statistic: Any = asked.question.statistic
    low, high = statistic.bounds
    for one in _of_column(asked, past, "mean", "median"):
        if isinstance(one.error, (int, float)) and one.error <= (high - low) / 10:
            yield min(max(one.value, low), high), one.error, one.number or 0


def _of_column(asked: TableQuestion, past: list[Release], *names: str) -> list[Release]:
    """Single numbers about the column under the same condition; else those without any."""
    starts = tuple(f"{name} in [" for name in names)
    own = [one for one in past if one.column == asked.column and not one.by and one.statistic.startswith(starts)]
    return [one for one in own if one.where == asked.condition] or [one for one in own if not one.where]


def _says_much(value: Any, error: Any) -> bool:
    return all(isinstance(one, (int, float)) for one in (value, error)) and 0 <= 2 * error <= value and value > 0


_LOOK = {"density": _density, "spread": _spread, "location": _location}

"""Any private algorithm on a table: a sample of people, their rows handed to the algorithm, its result stored.

The result is stored like every answer, also the fact that the algorithm failed: asked again, the same result comes
back, and no second sample is drawn for one charge. So the result must survive JSON: numbers, text, lists, dicts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from epsilons.arrays.algorithms import Algorithm, run_algorithm
from epsilons.arrays.personalize import Sampling, algorithm_release
from epsilons.dataset.attempt import Attempt, spendable_for
from epsilons.dataset.facts import TableFacts
from epsilons.dataset.levels import require_concerned
from epsilons.dataset.people import TablePeople
from epsilons.dataset.question import TableQuestion
from epsilons.dataset.rows import PERSON
from epsilons.engines.base import NUMBER, TRUTH
from epsilons.engines.trees import Predicate, column
from epsilons.errors import DataError, PlanError
from epsilons.ledger.values import Reservation
from epsilons.noise.entropy import is_private, system
from epsilons.preferences import Levels
from epsilons.release.answer import Release, tell_question
from epsilons.release.door import Sketch, cannot_resume
from epsilons.summaries.sql import Prepared

if TYPE_CHECKING:
    import pyarrow as pa

FAILED = "The algorithm failed."
_WHO = "epsilons who"


@dataclass(frozen=True, eq=False)
class Applied(TableQuestion):
    """What is to be run on which columns, all of them checked; of a statistic only its neighbours matter."""

    recipe: Algorithm
    columns: tuple[str, ...]
    target: str | None
    name: str | None
    threshold: float | str | None
    private_under: str | None
    rescale: bool

    @property
    def kind(self) -> str:
        return "apply"

    def about(self) -> dict[str, Any]:
        return {**super().about(), "column": ", ".join(self.columns)}

    def describe(self) -> str:
        return tell_question(self.recipe.name, **self.about())

    def identity(self) -> dict[str, Any]:
        return {
            "algorithm": self.recipe.name,
            "name": self.name,
            "columns": self.columns,
            "target": self.target,
            "where": None if self.where is None else self.where.text,
            "threshold": repr(self.threshold),
            "under": self.private_under,
            **({"rescale": True} if self.rescale else {}),
        }


class ApplyAttempt(Attempt):
    """One attempt at an algorithm: the sample's rows are handed to it, and its result is stored."""

    asked: Applied

    @property
    def seeded(self) -> bool:
        return super().seeded or self.asked.recipe.seeded

    def plan(self) -> Sketch:
        concerned = require_concerned(self.asked, self.facts, self.cohorts)
        _, spendable = spendable_for(self.asked, concerned, self.registry.names)
        spendable = spendable.among(self.cohorts)
        if spendable.levels.all_public:
            rule, hint = "There is nothing to protect.", "run it on the data itself"
            raise PlanError("Everyone is public.", rule=rule, suggest=hint)
        sampling = self._sampling(spendable.levels)
        why = f"A random sample of people, then the algorithm at {sampling.epsilon:.4g}."
        return Sketch(None, why, self.asked.question, spendable, sampling.threshold)

    def _sampling(self, levels: Levels) -> Sampling:
        return Sampling.plan(self.asked.recipe, levels, self.asked.threshold, self.facts.neighbors, self.facts.rows)

    def resume(self, held: Reservation) -> Sketch:
        sketch = super().resume(held)
        if not isinstance(sketch.threshold, int):
            raise cannot_resume()
        return sketch

    def read(self, sketch: Sketch) -> Release:
        assert sketch.threshold is not None
        asked, recipe, levels = self.asked, self.asked.recipe, sketch.spendable.levels
        sampling = self._sampling(levels)
        places = sketch.spendable.places(self.preparation.cohorts)
        people = TablePeople(self.preparation, None, asked.where, None, levels, places)
        entropy = system() if asked.options.entropy is None else asked.options.entropy
        with people.sampled(sampling.chances(levels), entropy) as sampled:
            wanted = [*asked.columns, *([asked.target] if asked.target else [])]
            rows = _rows(sampled, wanted, asked.where)
        sample = _hand_over(rows, asked.columns, self.facts)
        if asked.target is not None:
            sample = sample, _hand_over(rows, [asked.target], self.facts)
        told = sampling.tell(levels, asked.rescale)
        value = _run(recipe, sample, sampling.epsilon, told)
        private = is_private(entropy) and not recipe.seeded
        facts = sketch.threshold, self.facts.neighbors, recipe.claim, private, told
        called = recipe.name if asked.name is None else asked.name
        return algorithm_release(called, value, levels, sketch.account, *facts)


def _rows(prepared: Prepared, columns: Sequence[str], where: Predicate | None) -> pa.Table:
    """The sample's rows, in an order that depends on nobody else: by person, as digests are, then by the row itself."""
    wanted = [exp.alias_(column(PERSON), _WHO), *(column(name) for name in dict.fromkeys(columns))]
    found = prepared.engine.run(prepared.select(wanted, [], where))
    keys = [(_WHO, "ascending"), *((name, "ascending") for name in dict.fromkeys(columns))]
    return found.sort_by(keys).drop_columns([_WHO])


def _hand_over(rows: pa.Table, columns: Sequence[str], facts: TableFacts) -> Any:
    """One column as an array, numbers as a matrix, anything else as an Arrow table."""
    if len(columns) == 1:
        return rows[columns[0]].combine_chunks().to_numpy(zero_copy_only=False)
    if all(facts.schema[name].family in (NUMBER, TRUTH) for name in columns):
        numbers = (rows[name].combine_chunks().cast("float64", safe=False).fill_null(np.nan) for name in columns)
        return np.column_stack([one.to_numpy(zero_copy_only=False) for one in numbers])
    return rows.select(list(columns))


def _run(recipe: Algorithm, sample: Any, epsilon: float, told: Mapping[str, Any]) -> Any:
    """What the algorithm gives, if it can be stored. That it failed is its answer too, and is stored like one."""

    def to_plain(value: Any) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            return value.tolist()
        raise TypeError

    try:
        found = run_algorithm(recipe, sample, epsilon, None, told)
        return json.loads(json.dumps(found, default=to_plain, allow_nan=False))
    except (DataError, TypeError, ValueError, OverflowError, RecursionError):
        return FAILED

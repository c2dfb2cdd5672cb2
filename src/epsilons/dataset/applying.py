"""Any private algorithm on a table: a sample of people, their rows handed to the algorithm, its result stored.

The result is stored like every answer, also the fact that the algorithm failed: asked again, the same result comes
back, and no second sample is drawn for one charge. So the result must survive JSON: numbers, words, lists, dicts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.arguments import AskOptions
from epsilons.arrays.algorithms import Algorithm, read_algorithm, run_algorithm
from epsilons.arrays.personalize import Sampling
from epsilons.dataset.attempt import Attempt, spendable_at
from epsilons.dataset.people import TablePeople
from epsilons.dataset.preparation import PERSON
from epsilons.dataset.question import Terms
from epsilons.engines.base import NUMBER, TRUTH
from epsilons.engines.conditions import parse
from epsilons.engines.trees import Predicate, column, table
from epsilons.errors import DataError, PlanError
from epsilons.noise.entropy import system
from epsilons.preferences import Levels
from epsilons.release import Release, algorithm_release
from epsilons.release.door import Request, Sketch, cannot_resume, pass_through
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count
from epsilons.summaries.sql import KEPT, Prepared

FAILED = "The algorithm failed."
_WHO, _PLACE = "epsilons who", "epsilons place"


@dataclass(frozen=True, eq=False)
class Applied:
    """What is to be run on which columns."""

    algorithm: Any
    columns: tuple[str, ...]
    target: str | None
    name: str | None
    threshold: float | str | None
    private_under: str | None
    options: AskOptions


@dataclass(frozen=True)
class AppliedSketch(Sketch):
    """A sketch whose charge is Sample's: the threshold, or all that was granted if that is less."""

    threshold: int = 0

    def to_text(self, asked: str) -> str:
        stored = json.loads(super().to_text(asked))
        stored["plan"]["threshold"] = self.threshold
        return json.dumps(stored, separators=(",", ":"))

    @cached_property
    def charges(self) -> tuple[int | None, ...]:
        return tuple(None if grant is None else min(grant, self.threshold) for grant in self.spendable.levels.grants)


class ApplyAttempt(Attempt):
    """The same for an algorithm: the sample's rows are handed to it, and its result is stored."""

    asked: Applied  # type: ignore[assignment]

    def release(self) -> Release:
        """One run, through the one door."""
        asked, terms = self.asked, self.terms
        self._recipe = read_algorithm(asked.algorithm, asked.private_under, terms.rows, terms.neighbors)
        if asked.target is not None and not isinstance(asked.target, str):
            raise PlanError("The target is one column.", suggest='target="wage"')
        self._columns = [terms.schema.askable(name).name for name in asked.columns]
        if not self._columns:
            raise PlanError("No columns were named.", suggest='columns=["wage"]')
        self._target = None if asked.target is None else terms.schema.askable(asked.target).name
        where = asked.options.where
        self._where = None if where is None else parse(where, terms.schema)
        identity = {
            "algorithm": self._recipe.name,
            "name": asked.name,
            "columns": self._columns,
            "target": self._target,
            "where": None if self._where is None else self._where.text,
            "threshold": repr(asked.threshold),
            "under": asked.private_under,
        }
        # An algorithm has no content that could be compared: without a name every run is a question of its own.
        key = self._key(identity, asked.options, asked.options.fresh or asked.name is None)
        condition = "" if self._where is None else f" where {self._where.text}"
        words = f"{self._recipe.name} of {', '.join(self._columns)}{condition}"
        request = Request(key, self.preparation.epoch, "apply", words, analyst=asked.options.analyst)
        return pass_through(self.registry.ledger, request, self.plan, self.resume, self.read)

    def plan(self) -> Sketch:
        share = self.asked.options.share
        assert share is not None
        spendable = spendable_at(share, self.cohorts(), self.registry.names)
        if spendable.levels.all_public:
            raise PlanError(
                "Everyone is public.", rule="There is nothing to protect.", suggest="run it on the data itself"
            )
        sampling = self._sampling(spendable.levels)
        why = f"A random sample of people, then the algorithm at {sampling.epsilon:.4g}."
        return AppliedSketch(None, why, Question(Count(), self.terms.neighbors), spendable, sampling.threshold)

    def _sampling(self, levels: Levels) -> Sampling:
        return Sampling.plan(self._recipe, levels, self.asked.threshold, self.terms.neighbors, self.terms.rows)

    def resume(self, text: str) -> Sketch:
        cohorts, names = self._cohorts or self.registry.ledger.cohorts(), self.registry.names
        found = Sketch.from_text(text, Question(Count(), self.terms.neighbors), cohorts, names)
        return AppliedSketch(None, found.why, found.question, found.spendable, _threshold(text))

    def read(self, sketch: Sketch) -> Release:
        assert isinstance(sketch, AppliedSketch)
        recipe, asked, levels = self._recipe, self.asked, sketch.spendable.levels
        sampling = self._sampling(levels)
        places = sketch.spendable.places(self.preparation.cohorts)
        people = TablePeople(self.preparation, None, self._where, None, levels, places)
        entropy = system() if asked.options.entropy is None else asked.options.entropy
        with people.sampled(sampling.chances(levels), entropy) as sampled:
            wanted = [*self._columns, *([self._target] if self._target else [])]
            rows = _rows(sampled, self.preparation.digests, wanted, self._where)
        value = _result(recipe, _handed(rows, self._columns, self._target, self.terms), sampling.epsilon)
        private = entropy.private and not recipe.seeded
        called = recipe.name if asked.name is None else asked.name
        neighbors = self.terms.neighbors
        return algorithm_release(
            called, value, levels, sketch.threshold, neighbors, recipe.claim, private, sketch.account
        )


def _threshold(text: str) -> int:
    try:
        return int(json.loads(text)["plan"]["threshold"])
    except (ValueError, KeyError, TypeError):
        raise cannot_resume() from None


def _rows(prepared: Prepared, digests: NDArray[np.uint8], columns: Sequence[str], where: Predicate | None) -> pa.Table:
    """The sample's rows, in an order that depends on nobody else: by the person's digest, then by the row itself."""
    assert prepared.only is not None
    same = exp.EQ(this=column(PERSON), expression=column(KEPT))
    wanted = [exp.alias_(column(PERSON), _WHO), *(column(name) for name in dict.fromkeys(columns))]
    query = exp.select(*wanted).from_(table(prepared.name)).join(table(prepared.only), on=same)
    query = query if where is None else query.where(where.tree())
    found = prepared.engine.run(query)
    rank = np.empty(len(digests), np.int64)
    rank[np.argsort(digests.view("S16").reshape(-1), kind="stable")] = np.arange(len(digests))
    place = rank[found[_WHO].combine_chunks().to_numpy(zero_copy_only=False)]
    found = found.append_column(_PLACE, pa.array(place))
    keys = [(_PLACE, "ascending"), *((name, "ascending") for name in dict.fromkeys(columns))]
    return found.sort_by(keys).drop_columns([_WHO, _PLACE])


def _handed(rows: pa.Table, columns: Sequence[str], target: str | None, terms: Terms) -> Any:
    """One column as an array, numbers as a matrix, anything else as an Arrow table; with a target a pair."""
    features = _columns(rows, columns, terms)
    return features if target is None else (features, _columns(rows, [target], terms))


def _columns(rows: pa.Table, columns: Sequence[str], terms: Terms) -> Any:
    if len(columns) == 1:
        return rows[columns[0]].combine_chunks().to_numpy(zero_copy_only=False)
    if all(terms.schema[name].family in (NUMBER, TRUTH) for name in columns):
        return np.column_stack([_numbers(rows[name]) for name in columns])
    return rows.select(list(columns))


def _numbers(values: pa.ChunkedArray) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = (
        values.combine_chunks().cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False)
    )
    return numbers


def _result(recipe: Algorithm, sample: Any, epsilon: float) -> Any:
    """What the algorithm gives, if it can be stored. That it failed is its answer too, and is stored like one."""
    try:
        value = run_algorithm(recipe, sample, epsilon)
        return json.loads(json.dumps(value, default=_plain, allow_nan=False))
    except (DataError, TypeError, ValueError, OverflowError, RecursionError):
        return FAILED


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError

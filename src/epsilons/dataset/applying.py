"""Any private algorithm on a table: a sample of people, their rows handed to the algorithm, its result stored.

The result is stored like every answer, also the fact that the algorithm failed: asked again, the same result comes
back, and no second sample is drawn for one charge. So the result must survive JSON: numbers, words, lists, dicts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.algorithms import Algorithm, algorithm_of, run
from epsilons.dataset.asking import Terms
from epsilons.dataset.identity import question_key
from epsilons.dataset.options import Manner
from epsilons.dataset.people import TablePeople
from epsilons.dataset.preparation import PERSON, Preparation
from epsilons.dataset.spending import spendable_at
from epsilons.engines.base import NUMBER, TRUTH
from epsilons.engines.conditions import parse
from epsilons.engines.trees import Predicate, column, table
from epsilons.errors import DataError, PlanError
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.values import Cohort
from epsilons.noise.entropy import system
from epsilons.personalizing import Call
from epsilons.release import Release, algorithm_release
from epsilons.release.door import Request, pass_through
from epsilons.release.sketch import Sketch, cannot_resume
from epsilons.statistics.count import Count
from epsilons.statistics.queries import KEPT, Prepared
from epsilons.statistics.question import Question

FAILED = "The algorithm failed."
_WHO, _PLACE = "epsilons who", "epsilons place"


@dataclass(frozen=True, eq=False)
class Applied:
    """What is to be run on which columns."""

    algorithm: Any
    columns: tuple[str, ...]
    target: str | None
    name: str | None
    where: str | None
    threshold: float | str | None
    private_under: str | None


@dataclass(frozen=True)
class AppliedSketch(Sketch):
    """A sketch whose charge is Sample's: the threshold, or all that was granted if that is less."""

    threshold: int = 0

    def to_text(self, asked: str) -> str:
        stored = json.loads(super().to_text(asked))
        stored["plan"]["threshold"] = self.threshold
        return json.dumps(stored, separators=(",", ":"))

    @property
    def charges(self) -> tuple[int | None, ...]:
        return tuple(None if grant is None else min(grant, self.threshold) for grant in self.spendable.levels.grants)


def apply_through(
    asked: Applied,
    manner: Manner,
    terms: Terms,
    version: str,
    preparation: Preparation,
    ledger: Ledger,
    names: Mapping[float, str],
) -> Release:
    """One run, through the one door."""
    recipe = algorithm_of(asked.algorithm, asked.private_under, terms.rows, terms.neighbors)
    if asked.target is not None and not isinstance(asked.target, str):
        raise PlanError("The target is one column.", hint='target="wage"')
    columns = [terms.schema.askable(name).name for name in asked.columns]
    if not columns:
        raise PlanError("No columns were named.", hint='columns=["wage"]')
    target = None if asked.target is None else terms.schema.askable(asked.target).name
    where = None if asked.where is None else parse(asked.where, terms.schema)
    known: list[Cohort] = []
    share = manner.share
    assert share is not None

    def plan() -> Sketch:
        known[:] = ledger.cohorts()
        spendable = spendable_at(share, known, names)
        if spendable.levels.all_public:
            raise PlanError(
                "Everyone is public.", rule="There is nothing to protect.", hint="run it on the data itself"
            )
        call = Call.plan(recipe, spendable.levels, asked.threshold, terms.neighbors, terms.rows)
        why = f"A random sample of people, then the algorithm at {call.epsilon:.4g}."
        return AppliedSketch(None, why, Question(Count(), terms.neighbors), spendable, call.threshold)

    def resume(text: str) -> Sketch:
        found = Sketch.from_text(text, Question(Count(), terms.neighbors), known or ledger.cohorts(), names)
        return AppliedSketch(None, found.why, found.question, found.spendable, _threshold(text))

    def read(sketch: Sketch) -> Release:
        assert isinstance(sketch, AppliedSketch)
        levels = sketch.spendable.levels
        call = Call.plan(recipe, levels, asked.threshold, terms.neighbors, terms.rows)
        places = sketch.spendable.places(preparation.cohorts)
        people = TablePeople(preparation, None, where, None, levels, places)
        entropy = system() if manner.entropy is None else manner.entropy
        with people.sampled(call.chances(levels), entropy) as sampled:
            rows = _rows(sampled, preparation.digests, [*columns, *([target] if target else [])], where)
        value = _result(recipe, _handed(rows, columns, target, terms), call.epsilon)
        private = entropy.private and not recipe.seeded
        called = recipe.name if asked.name is None else asked.name
        return algorithm_release(called, value, levels, sketch.threshold, terms.neighbors, recipe.claim, private)

    identity = {
        "algorithm": recipe.name,
        "name": asked.name,
        "columns": columns,
        "target": target,
        "where": None if where is None else where.text,
        "threshold": repr(asked.threshold),
        "under": asked.private_under,
    }
    # An algorithm has no content that could be compared: without a name every run is a question of its own.
    fresh = manner.fresh or asked.name is None
    key = question_key(terms, version, preparation.epoch, identity, manner.identity(), fresh)
    words = f"{recipe.name} of {', '.join(columns)}" + ("" if where is None else f" where {where.text}")
    return pass_through(
        ledger, Request(key, preparation.epoch, "apply", words, analyst=manner.analyst), plan, resume, read
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
        value = run(recipe, sample, epsilon)
        return json.loads(json.dumps(value, default=_plain, allow_nan=False))
    except (DataError, TypeError, ValueError, OverflowError, RecursionError):
        return FAILED


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError

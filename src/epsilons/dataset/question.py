"""From a call to a question of a table: which statistic, over which rows, what of it is private, and its digest.

A number of contributions is public only if everybody on the roster has exactly one: no condition, no groups, one row
per person, and a column that is complete by the steward's word or whose missing values stand at the centre. Otherwise
the statistic is one that pays for its denominator.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epsilons.arguments import AskOptions
from epsilons.arguments.reading import Call
from epsilons.engines.base import NUMBER, Column, Schema
from epsilons.engines.conditions import parse
from epsilons.engines.trees import MismatchError, Predicate, canonical
from epsilons.errors import DataError, PlanError
from epsilons.noise.entropy import system
from epsilons.statistics.base import Question, Scope, Statistic
from epsilons.statistics.entry import RowScope
from epsilons.summaries.columns import Keys

LEFT_OUT = "Missing values are left out; how many there are is private, and paid for where an answer divides by it."
AT_CENTRE = "Missing values stand at the centre of the bounds."
COMPLETE = "Nothing is missing in this column, by the steward's word; a value that is missing stands at the centre."
NOT_COUNTED = "Missing values are not counted."
INCOMPLETE = "People of whom a feature or the target is missing add nothing."
_MODEL = 'people.linear_regression("wage", ["age", "schooling"], bounds={"wage": (0, 100), "age": (15, 90), ...})'


@dataclass(frozen=True)
class Terms:
    """What a dataset fixes for all questions."""

    schema: Schema
    person: str
    neighbors: str
    rows: int
    complete: frozenset[str]
    bounds: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class TableQuestion:
    """What a call asks of a table: the statistic and its assumptions, the rows that it is taken over, the options."""

    question: Question
    column: str | None
    where: Predicate | None
    by: Keys | None
    notes: tuple[str, ...]
    options: AskOptions

    @property
    def words(self) -> str:
        """The question in a line, for the ledger."""
        parts = [self.question.statistic.describe()]
        parts += [f"of {self.column}"] if self.column is not None else []
        parts += [f"where {self.where.text}"] if self.where is not None else []
        parts += ["by " + ", ".join(kind.name for kind in self.by.columns)] if self.by is not None else []
        return " ".join(parts)

    def identity(self) -> dict[str, Any]:
        """What is asked of which rows, whatever the options."""
        keys = None
        if self.by is not None:
            keys = [
                [kind.name, [repr(key) for key in given]]
                for kind, given in zip(self.by.columns, self.by.given, strict=True)
            ]
        return {
            "statistic": self.question.statistic.identity(),
            "column": self.column,
            "where": None if self.where is None else self.where.text,
            "by": keys,
        }


def parse_question(call: Call, terms: Terms) -> TableQuestion:
    """Check a call against the table's columns and make it a question. Reads nothing."""
    entry, options = call.entry, call.options
    if entry.model:
        return _parse_model(call, terms)
    where = None if options.where is None else parse(options.where, terms.schema)
    by = None if options.by is None else Keys.of(options.by, terms.schema)
    column = None if call.column is None else terms.schema.askable(call.column).name
    if column is None and entry.column == "required":
        raise PlanError(f"A {entry.name} needs a column.", suggest=f'people.{entry.name}("wage", ...)')
    if column is not None and not entry.text:
        terms.schema.number(column)
    missing, note = _missing(call, column, terms)
    fixed = where is None and by is None and terms.rows == 1
    groups = None if by is None else tuple(by.labels)
    fraction = (1.0 if where is None else 0.5) / (1 if groups is None else len(groups))
    if entry.column == "optional":  # of one group, or of a column, a half: else everyone would count for certain
        fraction = min(fraction, 0.5)
    over = RowScope(
        Scope(terms.rows, groups, fraction if options.density is None else options.density),
        fixed=fixed,
        complete=fixed and missing != "exclude",
        column=column is not None,
        neighbors=terms.neighbors,
        location=options.location,
    )
    own = dict(call.own)
    if "bounds" in own and own["bounds"] is None:
        own["bounds"] = terms.bounds.get(column or "")
    return _made(entry.build(own, over), column, where, by, note, options, terms)


def _made(
    statistic: Statistic,
    column: str | None,
    where: Predicate | None,
    by: Keys | None,
    note: str,
    options: AskOptions,
    terms: Terms,
) -> TableQuestion:
    notes = [note]
    if terms.rows > 1:
        notes.append(f"At most {terms.rows} rows of each person are used, and all of them are protected together.")
    question = Question.of(statistic, options, terms.neighbors)
    return TableQuestion(question, column, where, by, tuple(notes), options)


def _missing(call: Call, column: str | None, terms: Terms) -> tuple[str, str]:
    """(what happens to missing values, in words for the release)."""
    options, name = call.options, call.entry.name
    if call.entry.missing == "not counted":
        if options.missing == "center":
            raise PlanError(f"A {name} has no centre.", rule=NOT_COUNTED, suggest="leave missing= out")
        return "count", NOT_COUNTED
    if options.missing == "center":
        if options.where is not None or options.by is not None or terms.rows > 1:
            raise PlanError(
                'missing="center" needs a public number of values.',
                rule="With a condition, groups or several rows per person it is private.",
                suggest='missing="exclude"',
            )
        return "center", AT_CENTRE
    if options.missing is None and column in terms.complete and options.where is None and options.by is None:
        return "complete", COMPLETE
    return "exclude", LEFT_OUT


# Models -------------------------------------------------------------------------------------------------------------


def _parse_model(call: Call, terms: Terms) -> TableQuestion:
    """A model of a column by others: bounds of all of them are found by name."""
    own, options, schema = call.own, call.options, terms.schema
    if options.missing == "center":
        raise PlanError(f"A {call.entry.name} has no centre.", rule=INCOMPLETE, suggest="leave missing= out")
    names = _features(call.column, own["features"], terms)
    aim = schema.askable(call.column) if call.entry.text else schema.number(call.column)
    known = _bounds(own["bounds"], terms)
    found: dict[str, Any] = {"features": names, "bounds": tuple(_pair(name, known) for name in names)}
    found["target"] = None if call.entry.text else _pair(aim.name, known)
    statistic = call.entry.build({**own, **found}, RowScope(Scope(terms.rows)))
    for label in getattr(statistic, "classes", ()):
        _check_label(label, aim)
    if options.by is not None:
        raise PlanError(
            "Models are fitted to everyone at once.", rule="There are no groups of models.", suggest="where="
        )
    where = None if options.where is None else parse(options.where, schema)
    return _made(statistic, aim.name, where, None, INCOMPLETE, options, terms)


def _features(target: Any, features: Any, terms: Terms) -> tuple[str, ...]:
    if isinstance(features, (str, bytes)) or not isinstance(features, Sequence) or not features:
        raise PlanError("Features are given as a list of columns.", suggest=_MODEL)
    names = tuple(terms.schema.number(name).name for name in features)
    if terms.schema.find(target).name in names:
        raise PlanError("The target is among the features.", suggest=_MODEL)
    return names


def _bounds(given: Any, terms: Terms) -> Mapping[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise PlanError("Bounds of a model are given by column.", suggest=_MODEL)
    return {**terms.bounds, **{terms.schema.find(name).name: pair for name, pair in (given or {}).items()}}


def _pair(name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        raise PlanError(
            f"Column {name!r} has no bounds.",
            rule="Bounds are public facts; reading them from the data would leak it.",
            suggest=_MODEL,
        )
    return known[name]


def _check_label(label: Any, aim: Column) -> None:
    try:
        fine = canonical(label, aim) is not None
    except (MismatchError, OverflowError):
        fine = False
    if not fine:
        kind = "numbers" if aim.family == NUMBER else aim.family
        raise DataError(
            f"A class is not a value of column {aim.name!r}.", rule=f"The column holds {kind}.", suggest=_MODEL
        )


# Which question, of which data --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Version:
    """Which data a question was asked of: `label` goes into every question's digest; `words` are for people.

    It is the steward's label, never anything read from the contents. Without one, the version of files is where they
    lie, how long they are and when they were written; of anything else it is this one object, so that nothing asked of
    one frame is ever answered from another.
    """

    label: str
    words: str


def version_of(given: Any, files: Sequence[str]) -> Version:
    """The steward's label, or what stands in for it."""
    if given is not None:
        if not isinstance(given, str) or not given.strip() or len(given) > 200:
            raise DataError(
                "A version is a short label.", rule="It names the data's state.", suggest='version="2026-11"'
            )
        return Version(f"label:{given}", given)
    if files:
        facts = [[path, os.stat(path).st_size, os.stat(path).st_mtime_ns] for path in files]
        return Version(f"files:{json.dumps(facts)}", "no label: path, size and time of the files stand in for it")
    label = system().bytes(16).hex()
    return Version(f"object:{label}", "no label: answers are kept for this object only")


def question_key(
    terms: Terms, version: str, epoch: int, asked: Mapping[str, Any], manner: Mapping[str, Any], fresh: bool
) -> bytes:
    """32 bytes, the same for the same question; `fresh` makes it another one every time.

    Everything that affects the answer or its promise, and nothing else: the version label and the table's columns stand
    for the data, the epoch for the roster. Never anything read from the data: that two questions are the same must not
    say anything about a value.
    """
    about = {
        "columns": [[kind.name, kind.family] for kind in terms.schema.values()],
        "version": version,
        "epoch": epoch,
        "terms": [terms.person, terms.neighbors, terms.rows, sorted(terms.complete)],
        "asked": asked,
        "manner": manner,
        "fresh": system().bytes(32).hex() if fresh else None,
    }
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).digest()

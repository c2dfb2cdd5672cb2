"""From a call to a question of a table: which statistic, over which rows, what of it is private, and its digest."""

import hashlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from epsilons.arguments.checks import BOUNDS_RULE
from epsilons.arguments.reading import COMPLETE, AskOptions, Call
from epsilons.dataset.facts import TableFacts
from epsilons.engines.base import NUMBER, TEXT, Column
from epsilons.engines.conditions import parse
from epsilons.engines.trees import MismatchError, Predicate, canonical
from epsilons.errors import Argument, DataError, PlanError
from epsilons.noise.entropy import system
from epsilons.preferences.groups import read_groups
from epsilons.release.answer import tell_question
from epsilons.statistics.base import Question, RowScope, Scope, Statistic
from epsilons.statistics.entry import Entry
from epsilons.statistics.features import check_words
from epsilons.summaries.columns import Keys
from epsilons.summaries.words import word_names

ABOUT_PREFERENCES = "It is about preferences themselves, so nothing is assumed about how they relate to values."
BY_THE_ROSTER = (
    "Only people are used, and charged, whose preference on the roster can meet the condition, whatever their rows say."
)
ROWS_ARE_PRIVATE = "How many rows people have is private, and charged for; how many people there are is free."
_FEATURES = Argument("features", ["age", "schooling"])
_MODEL_BOUNDS = Argument("bounds", {"wage": (0, 100), "age": (15, 90)})


@dataclass(frozen=True, eq=False)
class TableQuestion:
    """What a call asks of a table: the statistic and its assumptions, the rows that it is taken over, the options."""

    question: Question
    column: str | None
    where: Predicate | None
    by: Keys | None
    notes: tuple[str, ...]
    options: AskOptions
    #: Whether the column of preferences is all that it looks at.
    on_preference: bool = field(default=False, kw_only=True)
    #: Whether preferences decide which rows it is about: not at all, among other columns, or alone.
    rows_by_preference: Literal["no", "also", "alone"] = field(default="no", kw_only=True)
    #: Whether its condition is about levels by name, so that the roster says whom it can concern.
    concerns_levels: bool = field(default=False, kw_only=True)
    #: The public columns that its condition or its groups look at: the roster says whom they can concern.
    public: frozenset[str] = field(default=frozenset(), kw_only=True)
    #: Whether all that it looks at is known of the roster, public columns among it.
    on_roster: bool = field(default=False, kw_only=True)
    #: Where public columns alone say which group a person is in: the call. Each group is then asked about by itself.
    parted: Call | None = field(default=None, kw_only=True)

    @property
    def kind(self) -> str:
        """What the ledger lists it under."""
        return self.question.statistic.name

    @property
    def condition(self) -> str:
        """Which rows it is about, in normal form; empty for all."""
        return "" if self.where is None else self.where.text

    def about(self) -> dict[str, Any]:
        """Which column and rows of the dataset it is about, as a release says it."""
        groups = () if self.by is None else tuple(kind.name for kind in self.by.columns)
        return {"column": self.column or "", "where": self.condition, "by": groups}

    def describe(self) -> str:
        """The question in a line, for the ledger."""
        return tell_question(self.question.statistic.describe(), **self.about())

    def identity(self) -> dict[str, Any]:
        """What is asked of which rows, whatever the options."""
        return {
            "statistic": self.question.statistic.identity(),
            "column": self.column,
            "where": None if self.where is None else self.where.text,
            "by": None if self.by is None else self.by.spelled,
        }


def parse_question(call: Call, facts: TableFacts) -> TableQuestion:
    """Check a call against the table's columns and make it a question. Reads nothing."""
    entry, options = call.entry, call.options
    if options.share is None and options.error is None:
        options = replace(options, share=facts.share)
    if facts.measure.delta is not None:
        options = replace(options, delta=facts.measure.delta)
    call = replace(call, options=options)
    where, by = None if options.where is None else parse(options.where, facts.schema), None
    known, by_public = facts.on_roster, False
    # Of whom a condition on public columns concerns, everybody meets it: nothing of that is private.
    among_some = bool(known) and where is not None and where.columns <= known
    column: str | None
    if entry.model:
        statistic, column, note = _parse_model(call, replace(options, where=None) if among_some else options, facts)
    else:
        given = None if options.by is None else _with_keys(options.by, facts)
        by = None if given is None else Keys.of(given, facts.schema)
        if known and by is not None and given is not None:
            listed = not any(isinstance(keys, Mapping) for keys in given.values())
            # People of several groups lose together, which a group asked about by itself does not know of.
            apart = listed and options.privacy != "group"
            by_public = apart and {kind.name for kind in by.columns} <= known
        column = None if call.column is None else facts.schema.askable(call.column).name
        if column is None and entry.column == "required":
            raise PlanError(f"A {entry.name} needs a column.", suggest=Argument("column", "wage"))
        if column is not None and not entry.text:
            facts.schema.number(column)
        own = dict(call.own)
        own |= _declared(own, column or "", facts)
        groups, declared = None if by is None else tuple(by.labels), COMPLETE if column in facts.complete else ""
        weak = options.privacy != "personalized"
        rows = RowScope(Scope(facts.rows, groups), column=column is not None, neighbors=facts.neighbors, unbounded=weak)
        over, note = rows.asked(entry, replace(options, where=None) if among_some else options, declared)
        statistic = _build(entry, own, over)
    rows_by = {*(where.columns if where else ()), *(kind.name for kind in (by.columns if by else ()))}
    looked_at = rows_by if column is None else {*rows_by, column}
    on_preference = looked_at == {facts.preference}
    if facts.preference in looked_at:
        options, note = replace(options, assume=math.inf, bought=None), f"{note} {ABOUT_PREFERENCES}"
    levels = facts.named and facts.tells_apart and where is not None and facts.preference in where.columns
    note = f"{note} {BY_THE_ROSTER}" if levels else note
    public = known & rows_by
    note = f"{note} {_tell_public(public)}" if public else note
    if on_preference and facts.rows > 1 and entry.column == "optional":
        note = f"{note} {ROWS_ARE_PRIVATE}"
    capped = f"At most {facts.rows} rows of each person are used, and all of them are protected together."
    notes = (note, capped) if facts.rows > 1 else (note,)
    of_groups = options.privacy == "group" or options.group_epsilons is not None
    sizes = read_groups(options) if of_groups else ()
    question = Question.of(statistic, options, facts.neighbors, sizes, (column or "", facts.name))
    among: Literal["no", "also", "alone"] = "also" if facts.preference in rows_by else "no"
    among = "alone" if rows_by == {facts.preference} else among
    told = question, column, where, by, notes, options
    on_roster = bool(looked_at & known) and looked_at <= known | {facts.preference}
    return TableQuestion(
        *told, on_preference=on_preference, rows_by_preference=among, concerns_levels=levels, public=public,
        on_roster=on_roster, parted=call if by_public else None,
    )  # fmt: skip


def _declared(own: Mapping[str, Any], column: str, facts: TableFacts) -> dict[str, Any]:
    """What was registered of the columns, where a call leaves it out: bounds of values, keys as options."""
    found: dict[str, Any] = {}
    about = column
    if own.get("total") is not None:
        found["total"] = column = facts.schema.number(own["total"]).name
    if "bounds" in own and own["bounds"] is None and own.get("total", column) is not None:
        found["bounds"] = facts.bounds.get(column)
    if "among" in own and own["among"] is None:
        found["among"] = registered_keys(about, facts, Argument("among", ["north", "south"]))
    return found


def _tell_public(names: Collection[str]) -> str:
    told = "Only people are used, and charged, whom it can concern by what is public of them"
    return f"{told}: {', '.join(sorted(names))}, as registered."


def _with_keys(by: Any, facts: TableFacts) -> Any:
    """Columns of groups that are named alone have the keys that were registered for them."""
    named = [by] if isinstance(by, str) else by
    if isinstance(named, Mapping) or not isinstance(named, Sequence):
        return by
    return {name: registered_keys(name, facts) for name in named}


def registered_keys(name: str, facts: TableFacts, wanted: Argument | None = None) -> Sequence[Any]:
    """The keys of a column that were registered with the dataset; else a hint at what could be given."""
    example = ["north", "south"]
    column = facts.schema.find(name).name
    if column not in facts.keys:
        rule, hint = "Keys are public; they are never read from the data.", wanted or Argument("by", {column: example})
        raise PlanError(f"Column {column!r} has no registered keys.", rule=rule, suggest=hint)
    return facts.keys[column]


def plain_keys(kind: Column, given: Any) -> tuple[str, Any]:
    """Keys of a column as values that survive JSON: days and times as text, ranges and the like by their word."""
    if isinstance(given, Mapping):
        Keys((kind,), (given,))
        return kind.name, {word: [_plain_key(key) for key in edges] for word, edges in given.items()}
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence) or not given:
        raise DataError("Keys are given as a list.", suggest=Argument("keys", {kind.name: ["north", "south"]}))
    try:
        for key in given:
            canonical(key, kind)
    except (MismatchError, OverflowError):
        what = f"A key is not a value of column {kind.name!r}."
        raise DataError(what, rule=f"The column holds {kind.family}.", suggest=Argument("keys")) from None
    return kind.name, [_plain_key(key) for key in given]


def _plain_key(key: Any) -> Any:
    return key if isinstance(key, (str, int, float, bool)) else str(key)


def _build(entry: Entry, given: Mapping[str, Any], over: RowScope) -> Statistic:
    """What an entry makes; one from another package may know of everybody's one row alone, and of noise for that."""
    statistic = entry.build(given, over)
    if not over.fixed and statistic.scope is None:
        rule = "Its package made it for everyone, with one row each."
        raise PlanError(f"A {entry.name} takes no condition, no groups and no further rows.", rule=rule)
    return statistic


def _parse_model(call: Call, options: AskOptions, facts: TableFacts) -> tuple[Any, str, str]:
    """(statistic, target, note) of a model of a column by others: bounds of all of them are found by name."""
    own, schema = call.own, facts.schema
    features, given = [own["other"]] if call.entry.pair else own["features"], own["bounds"]
    if isinstance(features, (str, bytes)) or not isinstance(features, Sequence) or not features:
        raise PlanError("Features are given as a list of columns.", suggest=_FEATURES)
    columns = [schema.find(name) for name in features]
    texts = [column.name for column in columns if column.family == TEXT and column.name in facts.keys]
    texts = [] if call.entry.pair else texts
    words = {name: check_words(name, facts.keys[name]) for name in texts}
    names = tuple(column.name if column.name in words else schema.number(column.name).name for column in columns)
    if schema.find(call.column).name in names:
        raise PlanError("The target is among the features.", suggest=_FEATURES)
    aim = schema.askable(call.column) if call.entry.text else schema.number(call.column)
    if given is not None and not isinstance(given, Mapping):
        raise PlanError("Bounds of a model are given by column.", suggest=_MODEL_BOUNDS)
    known = {**facts.bounds, **{schema.find(name).name: pair for name, pair in (given or {}).items()}}
    for name in names if call.entry.text else (*names, aim.name):
        if name not in known and name not in words:
            raise PlanError(f"Column {name!r} has no bounds.", rule=BOUNDS_RULE, suggest=_MODEL_BOUNDS)
    spread: dict[str, Any] = {}
    for name in names:
        spread |= dict.fromkeys(word_names(name, words[name]), (0, 1)) if name in words else {name: known[name]}
    found = {"features": tuple(spread), "bounds": tuple(spread.values()), "target": known.get(aim.name)}
    declared = COMPLETE if facts.complete.issuperset((*names, aim.name)) else ""
    rows = RowScope(Scope(facts.rows), neighbors=facts.neighbors)
    over, note = rows.asked(call.entry, options, declared)
    statistic: Any = _build(call.entry, {**own, **found, "words": tuple(words.items())}, over)
    for label in getattr(statistic, "classes", ()):
        if not _is_value(label, aim):
            kind = "numbers" if aim.family == NUMBER else aim.family
            what = f"A class is not a value of column {aim.name!r}."
            raise DataError(what, rule=f"The column holds {kind}.", suggest=(Argument("classes"), " of that kind"))
    if call.options.by is not None:
        rule, hint = "There are no groups of models.", ("rows of one group by ", Argument("where"))
        raise PlanError("Models are fitted to everyone at once.", rule=rule, suggest=hint)
    return statistic, aim.name, note


def _is_value(label: Any, aim: Column) -> bool:
    try:
        return canonical(label, aim) is not None
    except (MismatchError, OverflowError):
        return False


def question_key(facts: TableFacts, asked: TableQuestion) -> bytes:
    """32 bytes, the same for the same question; `fresh` makes it another one every time.

    Everything that affects the answer or its promise, and nothing else: the dataset's name and version stand for the
    data. Never anything read from the data: that two questions are the same must not say anything about a value. Nor
    the roster: whoever changed their mind since, the answer that was given stays the answer.
    """
    about = {
        "columns": [[kind.name, kind.family] for kind in facts.schema.values()],
        "dataset": [facts.name, facts.version],
        "terms": [facts.person, facts.neighbors, facts.rows, sorted(facts.complete)],
        "asked": asked.identity(),
        "manner": asked.options.identity(),
        "fresh": asked.options.once or system().bytes(32).hex() if asked.options.fresh else None,
    }
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).digest()

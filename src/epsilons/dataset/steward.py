"""What only the steward of a table may see of it before it is registered: private facts, not for publication.

They come from people's rows, without any noise. `epsilons check --steward` shows them; nothing else may ask for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlglot import exp

from epsilons.dataset.rows import STAGED
from epsilons.display import Sheet, Shown, show_count
from epsilons.engines.base import TEXT, UNREAD, Column, Engine
from epsilons.engines.trees import bit, cast, column, double, join_bits, literal, met, present, table
from epsilons.preferences import Preferences
from epsilons.summaries.columns import as_double, integers

PRIVATE = "Private, for the steward alone: exact facts of people's rows, not for publication."
#: So many words that are no level are told, and shown up to this length: of a column named by mistake there are many.
_WORDS, _LONGEST = 20, 40


@dataclass(frozen=True)
class StewardFacts(Shown):
    """Rows that the cap cuts off or that have no id; by column, cells that did not parse or lie out of bounds.

    `lines`: what was no good about lines of text, and how often. `words`: in place of a level, and in how many rows.
    """

    cut: int
    unread: Mapping[str, int]
    outside: Mapping[str, int]
    without_id: int = 0
    lines: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        by_column = {"unread": dict(self.unread), "outside": dict(self.outside)}
        return {
            "private": PRIVATE,
            "cut": self.cut,
            "without_id": self.without_id,
            **by_column,
            "lines": dict(self.lines),
            "words": dict(self.words),
        }

    def sheets(self) -> list[Sheet]:
        names = dict.fromkeys((*self.unread, *self.outside))
        rows = [[name, *(f"{facts.get(name, 0):,}" for facts in (self.unread, self.outside))] for name in names]
        told = (f"The cap leaves out {show_count(self.cut, 'row')}.", f"Rows without an id: {self.without_id:,}.")
        lines = [f"{name.capitalize()}: {count:,}." for name, count in self.lines.items() if count]
        notes = [*told, *lines, PRIVATE]
        words = [(repr(word[:_LONGEST]), f"{count:,}") for word, count in self.words.items()]
        return [
            *([Sheet("", ("no level, but stands there", "rows"), words)] if words else []),
            Sheet("", ("column", "not read", "out of bounds"), rows, notes),
        ]


def steward_facts(
    engine: Engine,
    person: Column,
    rows: int,
    bounds: Mapping[str, tuple[float, float]],
    preferences: Preferences | None = None,
) -> StewardFacts:
    """Of what was staged; people have `rows` rows at most, `bounds` and `preferences` are those declared."""
    each = exp.alias_(exp.Count(this=exp.Star(), big_int=True), "rows")
    crowd = exp.select(each).from_(table(STAGED)).where(met(present(person))).group_by(column(person.name))
    counts = engine.fetch(crowd)["rows"]
    sums: dict[tuple[str, str], exp.Expr] = {("unread", name): column(UNREAD + name) for name in engine.declared}
    for name, (low, high) in bounds.items():
        kind = engine.schema.number(name)
        ends = [
            exp.LT(this=as_double(kind), expression=double(low)),
            exp.GT(this=as_double(kind), expression=double(high)),
        ]
        beyond = join_bits([bit(end) for end in ends], every=False)
        # Engines hold NaN for larger than every number; it is missing.
        sums["outside", kind.name] = join_bits([beyond, present(kind)])
    everything = exp.alias_(exp.Count(this=exp.Star(), big_int=True), "everything")
    totals = [exp.alias_(cast(exp.Sum(this=tree), "BIGINT"), f"sum{place}") for place, tree in enumerate(sums.values())]
    found = engine.fetch(exp.select(everything, *totals).from_(table(STAGED)))
    without = int(found.pop("everything")[0]) - int(counts.sum())
    facts: dict[str, dict[str, int]] = {"unread": {}, "outside": {}}
    for (fact, name), total in zip(sums, found.values(), strict=True):
        facts[fact][name] = int(integers(total)[0])
    cut, words = int(np.maximum(counts - rows, 0).sum()), _words_that_are_no_level(engine, preferences)
    return StewardFacts(cut, **facts, without_id=without, lines=engine.faults, words=words)


def _words_that_are_no_level(engine: Engine, preferences: Preferences | None) -> dict[str, int]:
    """The most frequent of them, if levels stand in a column of the table itself."""
    given = None if preferences is None else preferences.column
    if given is None or given.levels is None or given.source is not None:
        return {}
    kind = engine.schema.find(given.column)
    if kind.family != TEXT:
        return {}
    listed = exp.In(this=column(kind.name), expressions=[literal(name, kind) for name in given.levels])
    other = join_bits([bit(exp.Not(this=listed)), present(kind)])
    word, rows = exp.alias_(column(kind.name), "word"), exp.alias_(exp.Count(this=exp.Star(), big_int=True), "rows")
    often = exp.select(word, rows).from_(table(STAGED)).where(met(other)).group_by(column(kind.name))
    found = engine.run(often.order_by(exp.Ordered(this=column("rows"), desc=True), column("word")).limit(_WORDS))
    return dict(zip(found["word"].to_pylist(), found["rows"].to_pylist(), strict=True))

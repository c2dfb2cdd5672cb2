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
from epsilons.engines.base import UNREAD, Column, Engine
from epsilons.engines.trees import bit, cast, column, double, join_bits, met, present, table
from epsilons.summaries.columns import as_double, integers

PRIVATE = "Private, for the steward alone: exact facts of people's rows, not for publication."


@dataclass(frozen=True)
class StewardFacts(Shown):
    """Rows that the cap cuts off or that have no id; by column, cells that did not parse or lie out of bounds.

    `lines`: what was no good about lines of text, and how often.
    """

    cut: int
    unread: Mapping[str, int]
    outside: Mapping[str, int]
    without_id: int = 0
    lines: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        by_column = {"unread": dict(self.unread), "outside": dict(self.outside)}
        return {
            "private": PRIVATE,
            "cut": self.cut,
            "without_id": self.without_id,
            **by_column,
            "lines": dict(self.lines),
        }

    def sheets(self) -> list[Sheet]:
        names = dict.fromkeys((*self.unread, *self.outside))
        rows = [[name, *(f"{facts.get(name, 0):,}" for facts in (self.unread, self.outside))] for name in names]
        told = (f"The cap leaves out {show_count(self.cut, 'row')}.", f"Rows without an id: {self.without_id:,}.")
        lines = [f"{name.capitalize()}: {count:,}." for name, count in self.lines.items() if count]
        notes = [*told, *lines, PRIVATE]
        return [Sheet("", ("column", "not read", "out of bounds"), rows, notes)]


def steward_facts(engine: Engine, person: Column, rows: int, bounds: Mapping[str, tuple[float, float]]) -> StewardFacts:
    """Of what was staged; people have `rows` rows at most, and `bounds` are those declared."""
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
    return StewardFacts(int(np.maximum(counts - rows, 0).sum()), **facts, without_id=without, lines=engine.faults)

"""What registering a dataset would change, without writing anything, charging anybody or enrolling anyone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsilons import ledger as ledgers
from epsilons.dataset.facts import too_many_levels
from epsilons.dataset.registering import Candidate, Declared, read_candidate
from epsilons.dataset.steward import StewardFacts, steward_facts
from epsilons.display import Sheet, Shown, show, show_count
from epsilons.errors import LedgerError
from epsilons.guarantee import to_epsilon
from epsilons.ledger.values import Enrolment, NoLedgerError
from epsilons.preferences import name_grant


@dataclass(frozen=True)
class Preview(Shown):
    """What would be registered: columns, people by level, and what would become of people whom the ledger knows."""

    name: str
    version: str
    new_ledger: bool
    columns: tuple[tuple[str, str, str], ...]
    levels: tuple[tuple[str, float, int], ...]
    enrolment: Enrolment
    hints: tuple[str, ...]
    many_levels: bool
    #: Only where the steward asked for it.
    private: StewardFacts | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        columns = [dict(zip(("name", "holds", "known"), column, strict=True)) for column in self.columns]
        levels = [{"name": n, "epsilon": None if math.isinf(e) else e, "people": p} for n, e, p in self.levels]
        listed = {} if self.many_levels else {"levels": levels}
        people = sum(people for *_, people in self.levels)
        private = {} if self.private is None else {"private": self.private.to_dict()}
        plain = {name: value for name, value in vars(self).items() if name != "private"}
        told = {
            **plain,
            "columns": columns,
            "levels": None,
            **listed,
            "people": people,
            "enrolment": dict(vars(self.enrolment)),
        }
        return {**told, **private}

    def sheets(self) -> list[Sheet]:
        rows = [(name, show(epsilon), f"{people:,}") for name, epsilon, people in self.levels]
        if self.many_levels:
            rows = [(f"{len(rows):,} levels", "not listed", f"{sum(people for *_, people in self.levels):,}")]
        ledger = "A new ledger would be made." if self.new_ledger else "The ledger knows people already."
        notes = [f"{self.name}, version {self.version}. {ledger} Nothing was registered."]
        notes += self.hints
        return [
            Sheet("", ("level", "epsilon", "people"), rows),
            Sheet("", ("column", "holds", "known"), self.columns),
            *(Sheet(one.title, one.head, one.rows, notes) for one in self.enrolment.sheets()),
            *([] if self.private is None else self.private.sheets()),
        ]


def look_over(
    source: Any, *, ledger: str, preferences: Any, steward: bool = False, snapshots: str | None = None, **settled: Any
) -> Preview:
    """What `Dataset.register` would do with the same arguments."""
    declared = Declared(**settled)
    try:
        new = ledger == "memory"
        book = ledgers.open() if new else ledgers.open(ledger, create=False, upgrade=False)
    except NoLedgerError:
        book, new = ledgers.open(), True
    try:
        with read_candidate(source, preferences, declared, book) as candidate:
            seen, bounds = _preview(candidate, new), candidate.about["bounds"]
            if steward:
                private = steward_facts(candidate.engine, candidate.person, declared.rows_per_person, bounds)
                seen = replace(seen, private=private)
            return seen
    finally:
        book.close()


def _preview(candidate: Candidate, new: bool) -> Preview:
    codes, sizes = np.unique(candidate.asked.nano, return_counts=True)
    grants = [None if code < 0 else code for code in codes.tolist()]
    names = candidate.preferences.names
    levels = [(name_grant(one, names), to_epsilon(one), int(size)) for one, size in zip(grants, sizes, strict=True)]
    columns = tuple(
        (kind.name, kind.family, _known(candidate.about, kind.name)) for kind in candidate.engine.schema.values()
    )
    many = too_many_levels(len(levels), candidate.asked.rounding_loss)
    hints = [f"{len(levels):,} levels: is the column of preferences the right one?"] if many else []
    hints += _hints(candidate, columns)
    try:
        candidate.check_first_ledger()
    except LedgerError as refused:
        hints.append(str(refused))
    return Preview(
        candidate.declared.name, candidate.version, new, columns, tuple(sorted(levels, key=lambda one: one[1])),
        candidate.preview(), tuple(hints), many,
    )  # fmt: skip


def _known(about: Mapping[str, Any], name: str) -> str:
    facts = ["in [{:g}, {:g}]".format(*about["bounds"][name])] if name in about["bounds"] else []
    facts += [word for word in ("complete", "public") if name in about[word]]
    facts += [show_count(len(about["keys"][name]), "key")] if name in about["keys"] else []
    return ", ".join(facts) or "–"


def _hints(candidate: Candidate, columns: tuple[tuple[str, str, str], ...]) -> list[str]:
    """What a steward may still want to say; about declarations only, never about values."""
    person = candidate.about["person"]
    unbounded = [name for name, holds, known in columns if holds == "number" and name != person and "in [" not in known]
    hints = [f"No bounds: {', '.join(unbounded)}. Questions about them must give their own."] if unbounded else []
    if not candidate.about["complete"]:
        hints.append("No column is declared complete: means pay for the number of values as well.")
    return hints

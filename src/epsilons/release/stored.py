"""Every answer that a ledger stored, to be seen again by its number. Free: what was released is public for good."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from epsilons.accuracy.relation import holds
from epsilons.display import Sheet, Shown, show, show_key
from epsilons.errors import LedgerError, PlanError
from epsilons.ledger.ledger import Ledger
from epsilons.ledger.values import Stored
from epsilons.release.answer import Release
from epsilons.release.door import asked_of

_HEAD = ("release", "date", "dataset", "question", "answer, 95% interval")
#: More keys than these are counted, not listed.
_MOST_KEYS = 4


class StoredAnswers(Shown, Mapping[int, Release]):
    """{number: release}, newest last: `people.answers()[17]` is release 17 as it was released."""

    def __init__(self, stored: Iterable[Stored]) -> None:
        found = [(one, read_stored(one)) for one in stored]
        self._releases = {one.number: release for one, release in found if release is not None}
        #: What was asked, in a line each; also where an answer cannot be read.
        self.questions = {one.number: asked_of(one.description) for one, _ in found}

    @classmethod
    def of(cls, ledger: Ledger, number: int | None = None, dataset: int | None = None) -> StoredAnswers:
        """All that a ledger stored, or what it did about a dataset, or the one of a number."""
        found = cls(ledger.answers(number, dataset))
        if number is not None and not found:
            rule = "None was stored, or one that this version cannot read."
            raise LedgerError(f"Release {number} has no answer.", rule=rule, suggest="ask it again, at no charge")
        return found

    def __getitem__(self, number: int) -> Release:
        return self._releases[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._releases)

    def __len__(self) -> int:
        return len(self._releases)

    def sheets(self) -> list[Sheet]:
        rows = [
            [str(number), one.at[:10], " ".join([one.dataset, one.version]).strip(), self.questions[number], _cell(one)]
            for number, one in self.items()
        ]
        known = [place for place in range(len(_HEAD)) if place != 2 or any(row[place] for row in rows)]
        unread = ", ".join(str(number) for number in self.questions if number not in self)
        notes = self._conditions()
        notes += [f"Stored by a newer version or another program, and not read: {unread}."] if unread else []
        return [Sheet("", [_HEAD[place] for place in known], [[row[place] for place in known] for row in rows], notes)]

    def _conditions(self) -> list[str]:
        """When intervals hold, each condition once, with the numbers of its releases."""
        told: dict[str, list[str]] = {}
        for number, one in self.items():
            if one.models:
                told.setdefault(holds(one.assumption), []).append(str(number))
        if len(told) == 1:
            return [f"Intervals hold {clause}." for clause in told]
        return [f"Intervals of release {', '.join(numbers)} hold {clause}." for clause, numbers in told.items()]

    __repr__ = Shown.__str__


def read_stored(stored: Stored) -> Release | None:
    """A stored answer as a release, None if it is none; an earlier version's gets number and date from the ledger."""
    try:
        return replace(Release.from_dict(json.loads(stored.answer)), number=stored.number, at=stored.at)
    except (ValueError, PlanError):
        return None


def _cell(release: Release) -> str:
    """Its number with its interval, or those of the first keys."""
    intervals = None if release.models is None else release.interval()
    if not isinstance(release.value, dict):
        return _beside(release.value, intervals)
    bars = intervals if isinstance(intervals, dict) else {}
    first = list(release.value.items())[:_MOST_KEYS]
    cells = [f"{show_key(key)}: {_beside(value, bars.get(key))}" for key, value in first]
    more = len(release.value) - len(first)
    return "; ".join([*cells, *([f"{more} more"] if more else [])])


def _beside(value: Any, bar: tuple[float, float] | None) -> str:
    shown = show(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else show_key(str(value))
    return shown if bar is None else f"{shown} ({show(bar[0])} to {show(bar[1])})"

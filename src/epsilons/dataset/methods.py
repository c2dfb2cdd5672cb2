"""The statistics as methods of a dataset and of a batch, made from the catalogue.

Type checkers read `methods.pyi`, which `make signatures` writes from the same catalogue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epsilons.arguments import BATCHES, TABLES
from epsilons.calls import make_method, name_statistic
from epsilons.release import Release
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.statistics.entry import Entry


class Questions:
    """The statistics of a dataset: each goes through the one door."""

    def _ask(self, call: Any) -> Any:
        raise NotImplementedError


class BatchQuestions:
    """The statistics of a batch, without share and error: each is noted down."""

    def _note(self, entry: Entry, given: Any, named: Any) -> Any:
        raise NotImplementedError


def _noted(entry: Entry) -> Callable[..., Any]:
    def question(self: BatchQuestions, *given: Any, **named: Any) -> Any:
        return self._note(entry, given, named)

    name_statistic(entry, BATCHES, question, "Batch", "Pending")
    return question


for _entry in CATALOGUE.values():
    setattr(Questions, _entry.name, make_method(_entry, TABLES, "Dataset", Release))
    setattr(BatchQuestions, _entry.name, _noted(_entry))

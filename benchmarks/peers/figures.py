"""What was measured, as plain values, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from answering import TASKS

OURS = "epsilons"

#: How many times as fast as a peer epsilons means to be.
AIM = 10

#: The best of so many answers is a task's time.
BEST_OF = 5


@dataclass(frozen=True)
class Figure:
    """One library, one task, one size: seconds (the best of the first few), root mean squared error, or the reason."""

    library: str
    rows: int
    task: str
    seconds: float | None = None
    answers: int = 0
    error: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Ready:
    """One library at one size: seconds to load the table (imports apart), bytes of memory at the highest."""

    library: str
    version: str
    rows: int
    seconds: float | None
    memory: int | None


@dataclass(frozen=True)
class Measured:
    """A whole run. `personal`: epsilons with people at several levels, and a peer with the strictest for all."""

    figures: Sequence[Figure]
    ready: Sequence[Ready]
    personal: Sequence[Figure]

    @property
    def sizes(self) -> list[int]:
        """Numbers of rows, ascending."""
        return sorted({figure.rows for figure in self.figures})

    @property
    def libraries(self) -> list[str]:
        """In the order in which they were asked."""
        return list(dict.fromkeys(figure.library for figure in self.figures))

    def find(self, library: str, rows: int, task: str) -> Figure | None:
        """One figure; None if that was not asked."""
        return next((f for f in self.figures if (f.library, f.rows, f.task) == (library, rows, task)), None)

    def ratio(self, figure: Figure) -> float | None:
        """How many times our time a peer's is; None where either has none, and for ourselves."""
        ours = self.find(OURS, figure.rows, figure.task)
        if figure.library == OURS or figure.seconds is None or ours is None or ours.seconds is None:
            return None
        return figure.seconds / ours.seconds

    @property
    def compared(self) -> list[tuple[Figure, float]]:
        """Every peer's figure that has a ratio."""
        pairs = [(figure, self.ratio(figure)) for figure in self.figures]
        return [(figure, ratio) for figure, ratio in pairs if ratio is not None]

    @property
    def short(self) -> list[tuple[Figure, float]]:
        """Where the aim was missed, the worst first."""
        return sorted((pair for pair in self.compared if pair[1] < AIM), key=lambda pair: pair[1])


def figure_of(
    library: str, rows: int, task: str, seconds: Sequence[float], answers: Sequence[Any], truth: Any
) -> Figure:
    """What follows from the times and the answers."""
    return Figure(library, rows, task, min(seconds[:BEST_OF]), len(answers), rmse(answers, truth))


def rmse(answers: Sequence[Any], truth: float | Mapping[str, float]) -> float:
    """The root of the mean squared error, over all answers and all groups."""
    if isinstance(truth, Mapping):
        squares = [(answer[key] - true) ** 2 for answer in answers for key, true in truth.items()]
    else:
        squares = [(answer - truth) ** 2 for answer in answers]
    return math.sqrt(sum(squares) / len(squares))


def tasks_for_next_size(figures: Sequence[Figure], library: str, rows: int, times: float, most: float) -> list[str]:
    """The tasks that a library did fast enough at `rows` rows to stay under `most` seconds with `times` as many."""
    done = {f.task: f.seconds for f in figures if (f.library, f.rows) == (library, rows) and f.seconds is not None}
    return [task for task in TASKS if task in done and done[task] * times < most]

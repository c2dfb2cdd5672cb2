"""Plans that a gateway made: they show themselves as they do there, and a row of them can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from epsilons.arguments.reading import Call
from epsilons.dataset.documents import read_sheets
from epsilons.display import Sheet, Shown
from epsilons.errors import PlanError
from epsilons.planner.guesses import Known
from epsilons.release import Release

if TYPE_CHECKING:
    from epsilons.remote.client import RemoteDataset


@dataclass(frozen=True)
class RemoteRow:
    """What one mechanism would cost, and how far it would err."""

    mechanism: str
    error: float | None
    worst_error: float | None
    used: float
    charges: Mapping[float, float]
    options: Mapping[str, Any]
    assumption: str
    reason: str
    expectations: Mapping[str, float]
    _plan: RemotePlan = field(repr=False)

    def ask(self) -> Release:
        """Ask this mechanism, and get what the row shows, or nothing if what people have left has changed."""
        return self._plan.ask_as(self.mechanism)


class RemotePlan(Shown):
    """A plan that a gateway made: every mechanism that can serve, the best first. It shows itself as it does there."""

    def __init__(self, plain: Mapping[str, Any], people: RemoteDataset, call: Call) -> None:
        self._plain, self._people, self._call = plain, people, call
        #: What of the question's guesses comes from past answers or from the roster.
        self.known = tuple(Known(**one) for one in plain["known"])
        #: Whether the answer is stored, so that asking is free.
        self.answered = plain["answered"]
        self.rows = tuple(RemoteRow(**{**row, "charges": dict(row["charges"])}, _plan=self) for row in plain["rows"])

    @property
    def best(self) -> RemoteRow:
        """The row that `mechanism="auto"` takes."""
        return self.rows[0]

    def __getitem__(self, mechanism: str) -> RemoteRow:
        for row in self.rows:
            if mechanism in ("auto", row.mechanism):
                return row
        names = ", ".join(["auto", *(row.mechanism for row in self.rows)])
        raise PlanError(f"{mechanism!r} cannot serve this question.", suggest=names)

    def ask(self) -> Release:
        """Ask what was planned, as its row shows."""
        return self.ask_as(self._plain["mechanism"])

    def ask_as(self, mechanism: str) -> Release:
        """Ask a row by the name that the caller gave."""
        planned = {"mark": self._plain["mark"], "past": self._plain["past"], "mechanism": mechanism}
        return self._people._ask(self._call, planned)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        apart = ("sheets", "mark", "past", "mechanism", "known", "answered")
        return {name: value for name, value in self._plain.items() if name not in apart}

    def sheets(self) -> list[Sheet]:
        return read_sheets(self._plain["sheets"])


class RemoteBatchPlan(Shown):
    """How a gateway would split a batch's share."""

    def __init__(self, plain: Mapping[str, Any]) -> None:
        self._plain, self.share, self.answered = plain, plain["share"], plain["answered"]

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        return {name: value for name, value in self._plain.items() if name not in ("sheets", "answered")}

    def sheets(self) -> list[Sheet]:
        return read_sheets(self._plain["sheets"])

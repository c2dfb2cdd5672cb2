"""What an audit found, by claim and level: in words, as a table, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from epsilons.display import Sheet, Shown, show, show_count
from epsilons.plots import plot_audit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Finding:
    """The largest loss that was found for people who granted `granted`, of what they are `charged`, in one `unit`.

    From draws it is a lower bound, which is wrong with a chance of at most 1 - `confidence`. With a delta the loss is
    the least epsilon that holds but for it, or the rho that an account counts.
    """

    name: str
    granted: float
    charged: float
    loss: float
    holds: bool
    how: str
    data: tuple[Any, ...] = ()
    neighbour: tuple[Any, ...] = ()
    event: str = ""
    confidence: float | None = None
    unit: str = "epsilon"
    delta: float | None = None

    @property
    def counted(self) -> str:
        """In what the loss is told."""
        return self.unit if self.delta is None or self.unit == "rho" else f"{self.unit} at delta {self.delta:g}"

    @property
    def part(self) -> float:
        """Of what is charged."""
        return self.loss / self.charged if self.charged else 0.0 if self.loss == 0 else float("inf")

    def __str__(self) -> str:
        said = "at least " if self.confidence is not None else ""
        verdict = "holds" if self.holds else "REFUTED"
        unit = "" if self.counted == "epsilon" else f"in {self.counted}; "
        text = f"{self.name}: {verdict}. Whoever granted {self.granted:g} is charged {self.charged:.6g} and loses "
        text += f"{said}{self.loss:.6g} ({unit}{self.how})"
        return (
            f"{text}: {self.event} of {_tell(self.data)} against {_tell(self.neighbour)}." if self.event else f"{text}."
        )


@dataclass(frozen=True)
class Audit(Shown):
    """What was found of one claim or several. It can refute a claim; it cannot prove one.

    `holds` says that nothing was refuted: exactly, on the data that were enumerated, or by draws, which show only what
    so many draws can.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return all(finding.holds for finding in self.findings)

    @property
    def refuted(self) -> tuple[str, ...]:
        """The names of claims that do not hold."""
        return tuple(dict.fromkeys(finding.name for finding in self.findings if not finding.holds))

    @property
    def worst(self) -> Finding:
        """The finding that comes closest to what is charged, or passes it most."""
        return max(self.findings, key=lambda finding: finding.part)

    def __add__(self, other: Audit) -> Audit:
        return Audit((*self.findings, *other.findings), tuple(dict.fromkeys((*self.notes, *other.notes))))

    def sheets(self) -> Sequence[Sheet]:
        several = any(finding.counted != "epsilon" for finding in self.findings)
        rows = [
            [f.name, show(f.granted), *[f.unit][:several], f"{f.charged:.4g}", _show_loss(f), _show_part(f)]
            for f in self.findings
        ]
        deltas = dict.fromkeys(finding.delta for finding in self.findings if finding.delta is not None)
        said = [f"Epsilons hold but for a delta of {delta:g}." for delta in deltas]
        columns = ("claim", "granted", *["in"][:several], "charged", "found", "of it")
        names = dict.fromkeys(finding.name for finding in self.findings)
        count = show_count(len(names), "claim")
        title = f"{count}: none refuted" if self.holds else f"{count}: REFUTED {', '.join(self.refuted)}"
        told = [str(finding) for finding in self.findings if not finding.holds] or [f"Closest: {self.worst}"]
        return [Sheet(title, columns, rows, (*told, *said, *self.notes))]

    def plot(self, axes: Axes | None = None) -> Axes:
        """Each claim's largest loss as a part of what is charged: beyond 1 it is refuted."""
        labels = [f"{f.name}, {f.granted:g}{'' if f.counted == 'epsilon' else f', {f.counted}'}" for f in self.findings]
        bounds = [f.confidence is not None for f in self.findings]
        return plot_audit(labels, [f.part for f in self.findings], bounds, axes)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        listed = [{**asdict(f), "data": _plain(f.data), "neighbour": _plain(f.neighbour)} for f in self.findings]
        return {"holds": self.holds, "refuted": list(self.refuted), "findings": listed, "notes": list(self.notes)}


def _show_loss(finding: Finding) -> str:
    return f"{'≥ ' if finding.confidence is not None else ''}{finding.loss:.4g}"


def _show_part(finding: Finding) -> str:
    return f"{finding.part:.0%}{'' if finding.holds else ' REFUTED'}"


def _plain(data: Sequence[Any]) -> list[Any]:
    return [value if value is None or isinstance(value, str | int | float) else repr(value) for value in data]


def _tell(data: Sequence[Any]) -> str:
    shown = ["none" if value is None else f"{value:g}" if isinstance(value, float) else str(value) for value in data]
    return f"({', '.join(shown if len(shown) <= 12 else [*shown[:8], '...', *shown[-2:]])})"

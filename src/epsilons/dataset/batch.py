"""Several questions at once: one share for all of them, split where the error is least, seen before it is spent.

    with people.batch(share=.2) as ask:
        wage = ask.mean("wage", bounds=(0, 100))
        old = ask.count(where="age >= 65")
        print(ask.plan())
    print(wage.value, old.value)

Questions have different units, so each error is measured against what the question could have with the whole share:
the split minimises the sum of (error_i(s_i)/error_i(S))^2 over s_1 + s_2 + ... = S. It depends on public facts alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from epsilons.dataset.answers import Answers
from epsilons.dataset.asking import Terms
from epsilons.dataset.description import Level
from epsilons.dataset.spending import NothingToPlanError
from epsilons.display import html_table, show, text_table
from epsilons.errors import PlanError
from epsilons.planner.plan import check_share
from epsilons.release import Release

if TYPE_CHECKING:
    from epsilons.dataset.table import Dataset

#: A share is split in this many pieces, which are handed out one by one.
_PIECES = 64
_HEAD = ("question", "share", "error", "mechanism")


class Pending:
    """A question of a batch. After the batch it is its release: `.value`, `.error`, `.interval()` and the rest."""

    def __init__(self, name: str, words: str, ask: Callable[[Fraction], Release], groups: tuple[str, ...] = ()) -> None:
        self.name = name
        self.words = words
        self.groups = groups
        self._ask = ask
        self._release: Release | None = None

    @property
    def release(self) -> Release:
        """The answer, once the batch is over."""
        if self._release is None:
            raise PlanError(
                "This question has not been asked yet.",
                rule="The questions of a batch are asked together, at the end of its block.",
                hint="look at it after the with block",
            )
        return self._release

    def answer(self, share: Fraction) -> None:
        """Ask it, at its share."""
        self._release = self._ask(share)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.release, name)

    def __str__(self) -> str:
        return f"{self.words} (not asked yet)" if self._release is None else str(self._release)


@dataclass(frozen=True)
class BatchRow:
    """What one question of a batch gets: its part of the share, the error expected of it, how, and what it charges."""

    question: str
    share: float
    error: float | None
    mechanism: str
    charges: Mapping[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        return {**self.__dict__, "charges": _finite(self.charges)}


@dataclass(frozen=True)
class BatchPlan:
    """How a batch splits its share, and what it would charge. Free."""

    share: float
    rows: tuple[BatchRow, ...]
    levels: tuple[Level, ...]

    @property
    def charges(self) -> dict[float, float]:
        """{granted epsilon: what all questions together charge at most}; nobody pays more than is left."""
        found = {}
        for level in self.levels:
            asked = round(sum(row.charges.get(level.epsilon, 0.0) for row in self.rows), 9)
            found[level.epsilon] = 0.0 if level.left is None else min(asked, level.left)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON; public people pay nothing and are left out of the charges."""
        rows = [row.to_dict() for row in self.rows]
        return {"share": self.share, "rows": rows, "charges": _finite(self.charges)}

    def _title(self) -> str:
        number = "1 question" if len(self.rows) == 1 else f"{len(self.rows)} questions"
        return f"Plan for {number}, share {self.share:.4g} in all"

    def _cells(self) -> list[tuple[str, ...]]:
        return [(row.question, f"{row.share:.4g}", show(row.error), row.mechanism) for row in self.rows]

    def _notes(self) -> list[str]:
        return [
            f"  {level.name}: charges {show(self.charges[level.epsilon])}, "
            f"leaves {show(round(level.left - self.charges[level.epsilon], 9))} of {show(level.epsilon)}"
            for level in self.levels
            if level.left is not None
        ]

    def __str__(self) -> str:
        return "\n".join([self._title(), "", text_table(_HEAD, self._cells()), "", *self._notes()])

    def _repr_html_(self) -> str:
        return html_table(self._title(), _HEAD, self._cells(), self._notes())


def _finite(charges: Mapping[float, float]) -> list[list[float]]:
    return [[granted, spent] for granted, spent in charges.items() if math.isfinite(granted)]


class Expected(NamedTuple):
    """What a question would do at a share."""

    error: float
    mechanism: str
    charges: Mapping[float, float]


class Batch:
    """Collects questions; asks them all at the end of its block, or none if the block fails."""

    def __init__(self, people: Dataset, share: Any, terms: Terms) -> None:
        self._people = people
        self._terms = terms
        self._share = check_share(share)
        self._asked: list[tuple[Pending, Callable[[Fraction], Expected]]] = []
        self._over = False

    def __enter__(self) -> Batch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.ask()

    def __getattr__(self, statistic: str) -> Callable[..., Pending]:
        """`ask.mean("wage", ...)`: the methods of a dataset, without share and error."""
        if statistic.startswith("_") or statistic not in _METHODS:
            raise AttributeError(f"a batch has no {statistic!r}; it has {', '.join(sorted(_METHODS))}")

        def add(*arguments: Any, **options: Any) -> Pending:
            return self.add(statistic, *arguments, **options)

        return add

    def add(self, statistic: str, *arguments: Any, name: str | None = None, **options: Any) -> Pending:
        """Note a question down; whatever is wrong with it shows now, not when others have been charged."""
        if self._over:
            raise PlanError("This batch is over.", hint="with people.batch(share=0.2) as ask: ...")
        if "share" in options or "error" in options:
            raise PlanError(
                "A question of a batch has no share of its own.",
                rule="The batch splits one share among its questions.",
                hint="people.batch(share=0.2)",
            )
        method = getattr(self._people, statistic)

        def ask(share: Fraction) -> Release:
            release: Release = method(*arguments, share=share, **options)
            return release

        def predict(share: Fraction) -> Expected:
            planned = _planned(statistic, arguments)
            try:
                best = self._people.plan(*planned, share=share, **options).chosen(options.get("mechanism", "auto"))
            except NothingToPlanError:
                return Expected(0.0, "exact", {})
            return Expected(best.judged_by(options.get("assume", "unrelated")), best.mechanism, best.charges)

        predict(self._share)
        words = f"{statistic} {' '.join(str(argument) for argument in arguments)}".strip()
        # The keys of a histogram are groups and bins, which is no row of a table by groups.
        groups = () if statistic == "histogram" else tuple(options.get("by") or ())
        pending = Pending(self._called(name, words), words, ask, groups)
        self._asked.append((pending, predict))
        return pending

    def _called(self, name: str | None, words: str) -> str:
        """A name of its own for every question: answers are found by it."""
        taken = {pending.name for pending in self}
        if name is not None and name in taken:
            raise PlanError(
                f"Two answers are called {name!r}.", rule="Answers go by name.", hint="AVG(wage) AS average"
            )
        if name is not None:
            return name
        numbered = (f"{words} ({n})" for n in range(2, len(taken) + 2))
        return words if words not in taken else next(one for one in numbered if one not in taken)

    def sql(
        self,
        query: str,
        *,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        keys: Mapping[str, Sequence[Hashable]] | None = None,
        **options: Any,
    ) -> tuple[Pending, ...]:
        """Note down every aggregate of a query, with the arguments of `people.sql` but its share."""
        from epsilons.dataset.sql import read_query

        schema = self._terms.schema
        wanted = read_query(query, schema, self._terms.person)
        known = {**self._terms.bounds, **{schema.find(name).name: pair for name, pair in (bounds or {}).items()}}
        listed = {schema.find(name).name: values for name, values in (keys or {}).items()}
        return wanted.note_down(self, known, listed, options)

    def split(self) -> list[Fraction]:
        """Each question's part of the share."""
        if not self._asked:
            raise PlanError("This batch has no questions.", hint='ask.mean("wage", bounds=(0, 100))')
        curves = [_Curve(predict, self._share) for _, predict in self._asked]
        if len(curves) > _PIECES:
            return [self._share / len(curves)] * len(curves)
        pieces = [1] * len(curves)
        for _ in range(_PIECES - len(curves)):
            gains = [curve.at(piece) - curve.at(piece + 1) for curve, piece in zip(curves, pieces, strict=True)]
            pieces[max(range(len(gains)), key=gains.__getitem__)] += 1
        return [self._share * piece / _PIECES for piece in pieces]

    def plan(self) -> BatchPlan:
        """Who gets how much of the share, and the error to expect. Free."""
        rows = []
        for (pending, predict), share in zip(self._asked, self.split(), strict=True):
            error, mechanism, charges = predict(share)
            known = None if math.isinf(error) else error
            rows.append(BatchRow(pending.name, float(share), known, mechanism, charges))
        return BatchPlan(float(self._share), tuple(rows), self._people.describe().levels)

    def ask(self) -> Answers:
        """Ask everything now."""
        shares = self.split()
        self._over = True
        for (pending, _), share in zip(self._asked, shares, strict=True):
            pending.answer(share)
        groups = {pending.groups for pending in self}
        return Answers({pending.name: pending.release for pending in self}, groups.pop() if len(groups) == 1 else ())

    def __iter__(self) -> Iterator[Pending]:
        return (pending for pending, _ in self._asked)


class _Curve:
    """A question's squared error, in units of what it could have with the whole share, by pieces of it."""

    def __init__(self, predict: Callable[[Fraction], Expected], share: Fraction) -> None:
        self._predict = predict
        self._share = share
        self._known: dict[int, float] = {}

    def at(self, pieces: int) -> float:
        """(error(s)/error(S))^2; 0 for all where nothing can be predicted, so that others go first."""
        if pieces not in self._known:
            whole = self._predict(self._share)[0]
            error = self._predict(self._share * pieces / _PIECES)[0] if math.isfinite(whole) else whole
            known = (error / whole) ** 2 if math.isfinite(error) and whole > 0 else 1.0 / pieces**2
            self._known[pieces] = known
        return self._known[pieces]


_METHODS = {
    "count", "sum", "mean", "variance", "median", "quantile", "min", "max", "kth_largest", "histogram",
}  # fmt: skip


def _planned(statistic: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of `plan` for those of a statistic's method: q and k have a name there."""
    if len(arguments) > 1:
        raise PlanError(
            f"A {statistic} of a batch takes one column by position.", hint=f'ask.{statistic}("wage", q=0.9, ...)'
        )
    return (statistic, *arguments)

"""Several questions at once: one share for all of them, split where the error is least, seen before it is spent.

    with people.batch(share=.2) as ask:
        wage = ask.mean("wage", bounds=(0, 100))
        old = ask.count(where="age >= 65")
        print(ask.plan())
    print(wage.value, old.value)

Everybody's share is split (see `splitting.split`) by the grants alone, so that the same batch is known again later.
Where less than the share is left, what is left is split alike: no question takes what another was promised.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from epsilons.arguments import BATCHES, QUERIES, check_share, options_of
from epsilons.arguments.reading import Call, check_known, read_call
from epsilons.calls import query_signature
from epsilons.dataset.answers import Answers
from epsilons.dataset.attempt import NothingToPlanError
from epsilons.dataset.description import Level
from epsilons.dataset.methods import BatchQuestions
from epsilons.dataset.question import Terms
from epsilons.dataset.splitting import split
from epsilons.display import html_table, show, text_table
from epsilons.errors import PlanError
from epsilons.release import Release
from epsilons.statistics.catalogue import CATALOGUE, find_statistic
from epsilons.statistics.entry import Entry

if TYPE_CHECKING:
    from epsilons.dataset.table import Dataset

_HEAD = ("question", "share", "error", "mechanism")


#: Asks a question with its share of every grant, but at most a part of what is left.
_Ask = Callable[[Fraction, Fraction], Release]


class Pending:
    """A question of a batch. After the batch it is its release: `.value`, `.error`, `.interval()` and the rest."""

    def __init__(self, name: str, words: str, ask: _Ask, groups: tuple[str, ...] = ()) -> None:
        self.name = name
        self.words = words
        self.groups = groups
        self._ask = ask
        self._release: Release | None = None
        self._dropped = False

    @property
    def release(self) -> Release:
        """The answer, once the batch is over."""
        if self._release is None and self._dropped:
            raise PlanError("This question was never asked.", rule="Its batch failed before; nothing was charged.")
        if self._release is None:
            raise PlanError(
                "This question has not been asked yet.",
                rule="The questions of a batch are asked together, at the end of its block.",
                suggest="look at it after the with block",
            )
        return self._release

    def answer(self, share: Fraction, part: Fraction) -> None:
        """Ask it, with its share of every grant, but at most this part of what is left."""
        self._release = self._ask(share, part)

    def drop(self) -> None:
        """It will not be asked."""
        self._dropped = True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.release, name)

    def __str__(self) -> str:
        return f"{self.words} (not asked yet)" if self._release is None else str(self._release)

    __repr__ = __str__


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


class Batch(BatchQuestions):
    """Collects questions; asks them all at the end of its block, or none if the block fails."""

    def __init__(self, people: Dataset, share: Any, terms: Terms) -> None:
        self._people = people
        self._terms = terms
        self._share = check_share(share)
        #: Questions that differ, in the order in which they were noted; each may be wanted under several names.
        self._asked: dict[Hashable, _Question] = {}
        self._over = False

    def __enter__(self) -> Batch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.ask()
            return
        self._over = True
        for pending in self:
            pending.drop()

    def __getattr__(self, statistic: str) -> Any:
        raise AttributeError(f"a batch has no {statistic!r}; it has {', '.join(sorted([*CATALOGUE, 'sql']))}")

    def add(self, statistic: str, *arguments: Any, **options: Any) -> Pending:
        """Note a question down by the name of its statistic; `name=` is what its answer is called."""
        return self._note(find_statistic(statistic), arguments, options)

    def _note(self, entry: Entry, arguments: Sequence[Any], options: Mapping[str, Any]) -> Pending:
        """Note a question down; whatever is wrong with it shows now, not when others have been charged."""
        if self._over:
            raise PlanError("This batch is over.", suggest="with people.batch(share=0.2) as ask: ...")
        if "share" in options or "error" in options:
            raise PlanError(
                "A question of a batch has no share of its own.",
                rule="The batch splits one share among its questions.",
                suggest="people.batch(share=0.2)",
            )
        call = read_call(entry, BATCHES, arguments, options)

        def ask(share: Fraction, part: Fraction) -> Release:
            return self._people._ask(replace(call, options=call.options.at(share, part)))

        def predict(share: Fraction, unspent: bool = False) -> Expected:
            options = call.options.at(share, share / self._share, unspent=unspent)
            try:
                plan = self._people._plan(replace(call, options=options))
            except NothingToPlanError:
                return Expected(0.0, "exact", {})
            best = plan[options.mechanism]
            return Expected(best.judged_by(options.assume), best.mechanism, best.charges)

        predict(self._share, unspent=True)
        words = _in_words(call)
        # The keys of a histogram are groups and bins, which is no row of a table by groups.
        groups = () if call.entry.name == "histogram" else tuple(call.options.by or ())
        pending = Pending(self._called(call.data["name"], words), words, ask, groups)
        # The same question is asked once; a fresh one is never the same.
        same = len(self._asked) if call.options.fresh else self._identity(call)
        self._asked.setdefault(same, _Question(predict, [])).wanted.append(pending)
        return pending

    def _identity(self, call: Call) -> str:
        """The same for the same question, however its arguments are spelled."""
        return json.dumps([self._people._parse(call).identity(), call.options.identity()], sort_keys=True)

    def _called(self, name: str | None, words: str) -> str:
        """A name of its own for every question: answers are found by it."""
        taken = {pending.name for pending in self}
        if name is not None and name in taken:
            raise PlanError(
                f"Two answers are called {name!r}.", rule="Answers go by name.", suggest="AVG(wage) AS average"
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

        for name, given in (("bounds", bounds), ("keys", keys)):
            if given is not None and not isinstance(given, Mapping):
                hint = 'bounds={"wage": (0, 100)}' if name == "bounds" else 'keys={"region": ["north", "south"]}'
                raise PlanError(f"A query's {name} go by column.", suggest=hint)
        for name, instead in (("where", "WHERE in the query"), ("by", "GROUP BY in the query"), ("error", "share=0.2")):
            if name in options:
                raise PlanError(f"A query takes no {name!r}.", suggest=instead)
        check_known("query", options, ("bounds", "keys", *options_of(QUERIES)), QUERIES)
        schema = self._terms.schema
        wanted = read_query(query, schema, self._terms.person)
        known = {**self._terms.bounds, **{schema.find(name).name: pair for name, pair in (bounds or {}).items()}}
        listed = {schema.find(name).name: values for name, values in (keys or {}).items()}
        return wanted.note_down(self, known, listed, options)

    sql.__signature__ = query_signature(tuple[Pending, ...])  # type: ignore[attr-defined]

    def split(self) -> list[Fraction]:
        """Each question's part of the share; the same question twice has one."""
        if not self._asked:
            raise PlanError("This batch has no questions.", suggest='ask.mean("wage", bounds=(0, 100))')
        if len(self._asked) == 1:
            return [self._share]
        return split([question.error for question in self._asked.values()], self._share)

    def plan(self) -> BatchPlan:
        """Who gets how much of the share, and the error to expect. Free."""
        rows = []
        for question, share in zip(self._asked.values(), self.split(), strict=True):
            error, mechanism, charges = question.predict(share)
            known = None if math.isinf(error) else error
            names = ", ".join(pending.name for pending in question.wanted)
            rows.append(BatchRow(names, float(share), known, mechanism, charges))
        return BatchPlan(float(self._share), tuple(rows), self._people.describe().levels)

    def ask(self) -> Answers:
        """Ask everything now."""
        shares = self.split()
        self._over = True
        to_come = self._share
        for question, share in zip(self._asked.values(), shares, strict=True):
            for pending in question.wanted:
                pending.answer(share, share / to_come)
            to_come -= share
        groups = {pending.groups for pending in self}
        return Answers({pending.name: pending.release for pending in self}, groups.pop() if len(groups) == 1 else ())

    def __iter__(self) -> Iterator[Pending]:
        return (pending for question in self._asked.values() for pending in question.wanted)


#: What is expected of a question at a share, of what is left or (True) as if nothing had been spent.
_Predict = Callable[..., Expected]


@dataclass(frozen=True)
class _Question:
    """What is expected of a question at a share, and everyone who waits for its answer."""

    predict: _Predict
    wanted: list[Pending]

    def error(self, share: Fraction) -> float:
        """By the grants alone: whatever was spent since, the same batch is split in the same way, and known again."""
        return self.predict(share, True).error


def _in_words(call: Call) -> str:
    """A question as a plan shows it: enough to tell it from the others."""
    words = [call.entry.name, *([] if call.column is None else [str(call.column)])]
    words += [f"{name}={call.own[name]}" for name in ("q", "k") if name in call.given]
    words += [f"on {', '.join(map(str, call.own['features']))}"] if call.entry.model else []
    words += [f"by {', '.join(map(str, call.options.by))}"] if call.options.by else []
    words += [f"where {call.options.where}"] if call.options.where else []
    return " ".join(words)

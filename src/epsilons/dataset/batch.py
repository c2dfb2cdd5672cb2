"""Several questions at once: one share for all of them, split where the error is least, seen before it is spent.

    with people.batch(share=.2) as ask:
        wage = ask.mean("wage", bounds=(0, 100))
        old = ask.count(where="age >= 65")
        print(ask.plan())
    print(wage.value, old.value)

Everybody's share is split (see `split_share`) by the grants alone, so that the same batch is known again later.
Where less than the share is left, what is left is split alike: no question takes what another was promised.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from itertools import permutations
from typing import TYPE_CHECKING, Any

from epsilons.accuracy.relation import holds
from epsilons.arguments.checks import check_share
from epsilons.arguments.options import BATCHES, QUERIES, options_of
from epsilons.arguments.reading import Call, check_known, read_call
from epsilons.calls import query_signature
from epsilons.dataset.answers import Answers
from epsilons.dataset.attempt import NothingToPlanError
from epsilons.dataset.facts import Level, TableFacts
from epsilons.dataset.levels import counts_levels
from epsilons.dataset.methods import BatchQuestions
from epsilons.display import Sheet, Shown, group_levels, show, show_count, show_span
from epsilons.errors import Argument, PlanError, Text
from epsilons.measure import PLAIN, Measure
from epsilons.planner.choose import list_finite
from epsilons.planner.guesses import GUESSES, Guess
from epsilons.release import Release
from epsilons.statistics.catalogue import CATALOGUE, find_statistic

if TYPE_CHECKING:
    from epsilons.dataset.table import Dataset

_HEAD = ("question", "share", "error", "mechanism")
#: What a query says itself.
_INSTEAD: dict[str, Text] = {"where": "its WHERE", "by": "its GROUP BY", "error": Argument("share", 0.2)}


class Pending:
    """A question of a batch. After the batch it is its release: `.value`, `.error`, `.interval()` and the rest."""

    def __init__(self, name: str, people: Dataset, call: Call, free: bool) -> None:
        self.name = name
        #: Whether the roster tells: then it takes no part of the share.
        self.free = free
        # The keys of a histogram are groups and bins, which is no row of a table by groups.
        self.groups = () if call.entry.name == "histogram" else tuple(call.options.by or ())
        self._people, self._call = people, call
        self._release: Release | None = None
        self._dropped = False

    @property
    def release(self) -> Release:
        """The answer, once the batch is over."""
        if self._release is None and self._dropped:
            raise PlanError("This question was never asked.", rule="Its batch failed before; nothing was charged.")
        if self._release is None:
            raise PlanError("This question has not been asked yet.", rule="A batch is asked at the end of its block.")
        return self._release

    def _at(self, share: Fraction, part: Fraction, unspent: bool = False) -> Call:
        """With its share of every grant, but at most this part of what is left."""
        return replace(self._call, options=replace(self._call.options, share=share, part=part, unspent=unspent))

    def _predict(self, share: Fraction, whole: Fraction, unspent: bool = False) -> BatchRow:
        """What to expect at a share of the batch's whole: of what is left, or as if nothing had been spent."""
        call = self._at(share, share / whole, unspent)
        try:
            # A batch is split and asked by what its caller knows, whatever was answered since.
            plan = self._people._plan(call, past=False)
        except NothingToPlanError:
            return BatchRow(self.name, float(share), 0.0, "exact", {})
        best, error = plan[call.options.mechanism], plan[call.options.mechanism].expected
        facts = best.mechanism, best.charges, best.assumption
        guesses = () if unspent else plan.guesses  # not while shares are being compared
        return BatchRow(self.name, float(share), None if math.isinf(error) else error, *facts, guesses)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.release, name)

    def __str__(self) -> str:
        return f"{_describe(self._call)} (not asked yet)" if self._release is None else str(self._release)

    __repr__ = __str__


def _describe(call: Call) -> str:
    """A question as a plan shows it: enough to tell it from the others."""
    parts = [call.entry.name, *([] if call.column is None else [str(call.column)])]
    parts += [f"{name}={call.own[name]}" for name in ("q", "k") if name in call.given]
    parts += [f"with {call.own['other']}"] if call.entry.pair else []
    parts += [f"on {', '.join(map(str, call.own['features']))}"] if call.entry.model and not call.entry.pair else []
    parts += [f"by {', '.join(map(str, call.options.by))}"] if call.options.by else []
    parts += [f"where {call.options.where}"] if call.options.where else []
    return " ".join(parts)


@dataclass(frozen=True)
class BatchRow:
    """What one question of a batch gets: its part of the share, the error expected of it, how, and what it charges.

    The error holds under its assumption, if the guesses hold.
    """

    question: str
    share: float
    #: None where it cannot be known.
    error: float | None
    mechanism: str
    charges: Mapping[float, float]
    #: Empty where the answer is exact.
    assumption: str = ""
    guesses: tuple[Guess, ...] = ()


@dataclass(frozen=True)
class BatchPlan(Shown):
    """How a batch splits its share, and what it would charge. Free."""

    share: float
    rows: tuple[BatchRow, ...]
    levels: tuple[Level, ...]
    measure: Measure = PLAIN

    @property
    def charges(self) -> dict[float, float]:
        """{granted epsilon: what all questions together charge at most}; nobody pays more than is left."""
        asked = {one.epsilon: sum(row.charges.get(one.epsilon, 0.0) for row in self.rows) for one in self.levels}
        return {epsilon: round(charge * self.measure.one) / self.measure.one for epsilon, charge in asked.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON; public people pay nothing and are left out of the charges."""
        rows = [
            {**vars(row), "charges": list_finite(row.charges), "guesses": [vars(guess) for guess in row.guesses]}
            for row in self.rows
        ]
        return {"share": self.share, "rows": rows, "charges": list_finite(self.charges)}

    def sheets(self) -> list[Sheet]:
        charges, notes = self.charges, self._conditions()
        finite = [level for level in self.levels if level.left is not None]
        for name, places in group_levels([(level.name, level.people) for level in finite]):
            some = [finite[place] for place in places]
            spent = self.measure.show((level.epsilon, charges[level.epsilon]) for level in some)
            # Whoever has less left pays less, so that on average at least this stays.
            stays = [(level.epsilon, (level.left or 0.0) - charges[level.epsilon]) for level in some]
            left = self.measure.show((granted, max(0.0, round(one, 15))) for granted, one in stays)
            granted = show_span([level.epsilon for level in some])
            notes.append(f"  {name}: charges {spent}, leaves {left} of {granted}")
        notes += self.measure.notes
        shares = [f"{row.share:.4g}" if row.share else "free" for row in self.rows]
        pairs = zip(self.rows, shares, strict=True)
        cells = [[row.question, share, show(row.error), row.mechanism] for row, share in pairs]
        title = f"Plan for {show_count(len(self.rows), 'question')}, share {self.share:.4g} in all"
        guesses = [[row.question, *guess.cells()] for row in self.rows for guess in row.guesses]
        plan = Sheet(title, _HEAD, cells, notes)
        return [plan, *([Sheet("", ("question", *GUESSES), guesses)] if guesses else [])]

    def _conditions(self) -> list[str]:
        """When which error holds: said once where it is the same for all of them."""
        told: dict[str, list[str]] = {}
        for row in self.rows:
            if row.assumption and row.error is not None:
                clause = holds(row.assumption)
                guessed = f", {'and' if clause.startswith('if ') else 'if'} the public guesses hold"
                told.setdefault(clause + guessed * bool(row.guesses), []).append(row.question)
        if len(told) == 1:
            return [f"Errors are expected {clause}." for clause in told]
        return [f"{', '.join(questions)}: expected {clause}." for clause, questions in told.items()]


class Batch(BatchQuestions):
    """Collects questions; asks them all at the end of its block, or none if the block fails."""

    def __init__(self, people: Dataset, share: Any, facts: TableFacts) -> None:
        self._people, self._facts = people, facts
        self._share = facts.share if share is None else check_share(share)
        #: Questions that differ, in the order in which they were noted; each may be wanted under several names.
        self._asked: dict[Hashable, list[Pending]] = {}
        self._over = False

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        if kind is None:
            self.ask()
        self._over = True
        for pending in self:
            pending._dropped = kind is not None

    def __getattr__(self, statistic: str) -> Any:
        raise AttributeError(f"a batch has no {statistic!r}; it has {', '.join(sorted([*CATALOGUE, 'sql']))}")

    def add(self, statistic: str, *arguments: Any, **options: Any) -> Pending:
        """Note a question down by the name of its statistic; `name=` is what its answer is called."""
        return self._ask(read_call(find_statistic(statistic), BATCHES, arguments, options))

    def _ask(self, call: Call) -> Pending:
        """Note a question down; whatever is wrong with it shows now, not when others have been charged."""
        if self._over:
            raise PlanError("This batch is over.", suggest="a new batch")
        asked = self._people._parse(call)
        free = (asked.on_preference or asked.on_roster) and counts_levels(asked, self._facts)
        pending = Pending(self._name(call), self._people, call, free)
        pending._predict(self._share, self._share, unspent=True)
        # The same question, however its arguments are spelled, is asked once; a fresh one is never the same.
        same: Hashable = len(self._asked)
        if not call.options.fresh:
            same = json.dumps([asked.identity(), call.options.identity()], sort_keys=True)
        self._asked.setdefault(same, []).append(pending)
        return pending

    def _name(self, call: Call) -> str:
        """A name of its own for every question: answers are found by it."""
        taken, name, described = {pending.name for pending in self}, call.data["name"], _describe(call)
        if name is not None and name in taken:
            raise PlanError(f"Two answers are called {name!r}.", suggest=("another ", Argument("name")))
        numbered = (f"{described} ({n})" for n in range(2, len(taken) + 2))
        return next(one for one in (described, *numbered) if one not in taken) if name is None else str(name)

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

        examples = {"bounds": (bounds, {"wage": (0, 100)}), "keys": (keys, {"region": ["north", "south"]})}
        for name, (given, example) in examples.items():
            if given is not None and not isinstance(given, Mapping):
                raise PlanError(f"A query's {name} go by column.", suggest=Argument(name, example))
        for name in (one for one in _INSTEAD if one in options):
            raise PlanError(f"A query takes no {name!r}.", suggest=_INSTEAD[name])
        check_known("query", options, ("bounds", "keys", *options_of(QUERIES)), QUERIES)
        schema = self._facts.schema
        wanted = read_query(query, schema, self._facts.person)
        known = {**self._facts.bounds, **{schema.find(name).name: pair for name, pair in (bounds or {}).items()}}
        listed = {name: self._facts.keys[name] for name in wanted.groups if name in self._facts.keys}
        listed |= {schema.find(name).name: values for name, values in (keys or {}).items()}
        return wanted.note_down(self, known, listed, options)

    sql.__signature__ = query_signature(tuple[Pending, ...])  # type: ignore[attr-defined]

    def split(self) -> list[Fraction]:
        """Each question's part of the share; the same question twice has one, what is free has none."""
        if not self._asked:
            raise PlanError("This batch has no questions.", suggest="one question at least")
        firsts = [pending for pending, *_ in self._asked.values()]
        errors = [partial(self._error_of, pending) for pending in firsts if not pending.free]
        parts = iter([self._share] if len(errors) == 1 else split_share(errors, self._share) if errors else ())
        return [Fraction(0) if pending.free else next(parts) for pending in firsts]

    def _error_of(self, pending: Pending, share: Fraction) -> float:
        """By the grants alone: whatever was spent since, the same batch is split in the same way, and known again."""
        found = pending._predict(share, self._share, unspent=True).error
        return math.inf if found is None else found

    def plan(self) -> BatchPlan:
        """Who gets how much of the share, and the error to expect. Free."""
        named = ((wanted[0], ", ".join(pending.name for pending in wanted)) for wanted in self._asked.values())
        shares = self.split()
        pairs = zip(named, shares, strict=True)
        rows = [replace(first._predict(share, self._share), question=names) for (first, names), share in pairs]
        described = self._people.describe()
        return BatchPlan(float(sum(shares)), tuple(rows), described.levels, Measure.of_text(described.measure))

    def ask(self) -> Answers:
        """Ask everything now."""
        calls = self._calls()
        self._over = True
        for pending, call in calls:
            pending._release = self._people._ask(call)
        return self._answers()

    def is_answered(self) -> bool:
        """Whether all of it was answered before, so that asking is free."""
        return all(self._people._find(call) is not None for _, call in self._calls())

    def find(self) -> Answers | None:
        """What was answered before, if all of it was; nothing is charged or read."""
        found = [(pending, self._people._find(call)) for pending, call in self._calls()]
        if any(release is None for _, release in found):
            return None
        self._over = True
        for pending, release in found:
            pending._release = release
        return self._answers()

    def _calls(self) -> list[tuple[Pending, Call]]:
        """Every question with its part of the share."""
        found, to_come = [], self._share
        for wanted, share in zip(self._asked.values(), self.split(), strict=True):
            part = share / to_come if share else Fraction(1)
            found += [(pending, pending._at(share, part)) for pending in wanted]
            to_come -= share
        return found

    def _answers(self) -> Answers:
        groups = {pending.groups for pending in self}
        return Answers({pending.name: pending.release for pending in self}, groups.pop() if len(groups) == 1 else ())

    def __iter__(self) -> Iterator[Pending]:
        return (pending for wanted in self._asked.values() for pending in wanted)


# Splitting a share, by public facts only ----------------------------------------------------------------------------

#: How much more than with an equal part a question may err.
WORST = 1.1
#: Parts of an equal part that change hands, from large to small; and how often at most.
_STEPS = tuple(Fraction(1, parts) for parts in (2, 4, 8, 16))
_MOVES = 200
#: Errors that agree in so many digits are the same.
_DIGITS = 9

#: The error that is expected of a question at a share; infinite where it cannot be known.
Error = Callable[[Fraction], float]


def split_share(errors: Sequence[Error], share: Fraction) -> list[Fraction]:
    """Each question's part of the share, split where the error is least. Depends on public facts alone.

    Questions have different units, so each error is measured against what the question would have with an equal part of
    the share: r_i = error_i(s_i) / error_i(S/n). The split minimises the sum of r_i^2 over s_1 + ... + s_n = S, and no
    r_i may pass 1.1: a question that hardly needs its part gives of it, and none starves for the others. Questions that
    err alike get the same. The search begins with the equal split; errors need not be convex, so large steps are tried
    before small ones.
    """
    equal = share / len(errors)
    errors = [cache(error) for error in errors]
    alike: dict[tuple[str, ...], _Group] = {}
    for place, error in enumerate(errors):
        kind = tuple(f"{error(part):.{_DIGITS}g}" for part in (equal / 2, equal, equal * 2))
        alike.setdefault(kind, _Group(error, equal, equal, [])).places.append(place)
    groups = list(alike.values())
    for step in _STEPS:
        for _ in range(_MOVES):
            move = _best_move(groups, step * equal)
            if move is None:
                break
            giver, taker, amount = move
            giver.part -= amount / len(giver.places)
            taker.part += amount / len(taker.places)
    parts = {place: group.part for group in groups for place in group.places}
    return [parts[place] for place in range(len(errors))]


@dataclass
class _Group:
    """Questions that err alike, and the part of the share that each of them has."""

    error: Error
    equal: Fraction
    part: Fraction
    places: list[int]

    def ratio(self, part: Fraction) -> float:
        """The error against that of an equal part; where it cannot be known it falls as noise does, with the part."""
        base = self.error(self.equal)
        if base == 0:
            return 0.0
        return float(self.equal / part) if math.isinf(base) else self.error(part) / base

    def change(self, by: Fraction) -> float:
        """What the sum of squares gains or loses if each of them gets so much more."""
        return len(self.places) * (self.ratio(self.part + by) ** 2 - self.ratio(self.part) ** 2)


def _best_move(groups: Sequence[_Group], step: Fraction) -> tuple[_Group, _Group, Fraction] | None:
    """Who should give how much to whom; None where nothing is gained by it."""
    best, worth = None, -1e-9
    for giver, taker in permutations(groups, 2):
        amount = step * min(len(giver.places), len(taker.places))
        less, more = amount / len(giver.places), amount / len(taker.places)
        if giver.part <= less or giver.ratio(giver.part - less) > WORST:
            continue
        change = giver.change(-less) + taker.change(more)
        if change < worth and taker.ratio(taker.part + more) <= WORST:
            best, worth = (giver, taker, amount), change
    return best

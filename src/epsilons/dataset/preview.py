"""What registering a dataset would change, without writing anything, charging anybody or enrolling anyone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from epsilons import ledger as ledgers
from epsilons.arguments.options import DEFAULT_QUESTIONS
from epsilons.dataset.facts import TableFacts, too_many_levels
from epsilons.dataset.registering import Act, Candidate, Declared, place_of_snapshots, read_candidate
from epsilons.dataset.registry import name_grants
from epsilons.dataset.snapshot import check_place
from epsilons.dataset.steward import StewardFacts, steward_facts
from epsilons.display import Sheet, Shown, show, show_count
from epsilons.engines.base import Column, Engine
from epsilons.errors import Argument, DataError, EpsilonsError, PlanError, PreferenceError
from epsilons.guarantee import to_epsilon
from epsilons.ledger.consent import PUBLIC_CODE, WITHDRAW_CODE
from epsilons.ledger.values import Digests, Enrolment, LedgerGoneError, NoLedgerError, tell_waiting
from epsilons.planner.budget import BudgetPlan, find_delta, plan_budget
from epsilons.preferences import Preferences, name_grant

if TYPE_CHECKING:
    from epsilons.dataset.preferences import PreferenceTable

#: In place of preferences that cannot be read: nobody's is looser, and no level is named.
_UNREAD = Preferences({}, default=to_epsilon(1))


@dataclass(frozen=True)
class Preview(Shown):
    """What would be registered: columns, people by level, and what would become of people whom the ledger knows."""

    name: str
    version: str
    new_ledger: bool
    columns: tuple[tuple[str, str, str], ...]
    levels: tuple[tuple[str, float, int], ...]
    enrolment: Enrolment
    #: What registering is refused for, with what to say if it is right.
    refused: tuple[str, ...]
    hints: tuple[str, ...]
    many_levels: bool
    #: The stable code of the first of `refused`, with which registering fails; empty if nothing stands against it.
    code: str = ""
    #: On the roster, and not used any more; `levels` have everyone else as they would stand once it is registered.
    withdrawn: int = 0
    #: Only where the steward asked for it.
    private: StewardFacts | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        columns = [dict(zip(("name", "holds", "known"), column, strict=True)) for column in self.columns]
        levels = [{"name": n, "epsilon": None if math.isinf(e) else e, "people": p} for n, e, p in self.levels]
        listed = {} if self.many_levels else {"levels": levels}
        people = sum(people for *_, people in self.levels) if self.levels else None
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
        notes += [f"Withdrawn: {show_count(self.withdrawn, 'person', 'people')}, not used."] if self.withdrawn else []
        notes += [f"Registering would be refused: {told}" for told in self.refused]
        notes += self.hints
        return [
            *([Sheet("", ("level", "epsilon", "people"), rows)] if rows else []),
            Sheet("", ("column", "holds", "known"), self.columns),
            *(Sheet(one.title, one.head, one.rows, [*one.notes, *notes]) for one in self.enrolment.sheets()),
            *([] if self.private is None else self.private.sheets()),
        ]


def look_over(
    source: Any,
    *,
    ledger: str,
    preferences: Any,
    steward: bool = False,
    write: Callable[[Argument], str] = str,
    snapshots: str | None = None,
    refused: Sequence[EpsilonsError] = (),
    **settled: Any,
) -> Preview:
    """What `Dataset.register` would do with the same arguments; `write` puts arguments into the reader's language.

    `refused` is what stands against it already.
    """
    declared, against = Declared(**settled), list(refused)
    try:
        new = unasked = ledger == "memory"
        book = ledgers.open() if new else ledgers.open(ledger, create=False, look=True)
    except (NoLedgerError, LedgerGoneError) as none:
        book, new = ledgers.open(), True
        # What that ledger knew is no second matter: it is forgotten with the ledger.
        unasked = isinstance(none, LedgerGoneError)
        against += [none] * unasked
    try:
        book.verify(thorough=False, note=False)
        with read_candidate(source, preferences, declared, book, reader := _Reader(against)) as candidate:
            asked = candidate.preferences
            candidate.preferences = _UNREAD if reader.failed else asked
            try:
                if ledger != "memory":
                    check_place(place_of_snapshots(book, ledger, snapshots))
            except DataError as wide:
                against.append(wide)
            seen, bounds = _preview(candidate, new, unasked, against, write), candidate.about["bounds"]
            seen = _without_preferences(seen) if reader.failed else seen
            if steward:
                rows = declared.rows_per_person
                private = steward_facts(candidate.engine, candidate.person, rows, bounds, asked)
                seen = replace(seen, private=private)
            return seen
    finally:
        book.close()


def foresee_budget(path: str, questions: int | None, column: str | None, delta: float | None) -> BudgetPlan:
    """The budget plan of a dataset file that is not registered yet: by what people ask for in it."""
    from epsilons.dataset.declared import arguments_of

    arguments = arguments_of(path)
    seen = look_over(**{**arguments, "ledger": "memory"})
    about: dict[str, Any] = {}
    if column is not None:
        if column not in arguments["bounds"]:
            raise PlanError(f"Column {column!r} has no bounds in the file.", suggest=f"[bounds] {column} = [0, 100]")
        low, high = arguments["bounds"][column]
        about = {"column": column, "width": high - low}
    known = [epsilon for _, epsilon, _ in seen.levels], [people for *_, people in seen.levels]
    planned = arguments.get("questions", DEFAULT_QUESTIONS)
    often = planned if questions is None else questions
    return plan_budget(*known, often, delta=find_delta(delta, arguments.get("delta")), planned=planned, **about)


class _Reader:
    """Reads what everyone asked for, or where that cannot be read, who they are; what stands against it is noted."""

    def __init__(self, against: list[EpsilonsError]) -> None:
        self._against, self.failed = against, False

    def __call__(
        self, engine: Engine, person: Column, wishes: Preferences, *of: Any, **how: Any
    ) -> tuple[PreferenceTable, Digests]:
        from epsilons.dataset.preferences import read_preferences  # with Arrow

        # Levels above the ceiling are the file's; numbers may be those of a column that was named by mistake.
        for given in (how, *([{**how, "ceiling": None}] if wishes.levels else [])):
            try:
                return read_preferences(engine, person, wishes, *of, **given)
            except PreferenceError as refused:
                if refused.args not in [known.args for known in self._against]:
                    self._against.append(refused)
        self.failed = True
        return read_preferences(engine, person, _UNREAD, *of, **how)


def _without_preferences(seen: Preview) -> Preview:
    """Only what can be told of people whose preferences were not read."""
    known = {name: getattr(seen.enrolment, name) for name in ("epoch", "known", "joined", "gone", "settled")}
    told = "Preferences cannot be read: levels are not shown, and only people of the table are counted."
    return replace(seen, levels=(), withdrawn=0, enrolment=Enrolment(**known), hints=(told, *seen.hints))


def _preview(
    candidate: Candidate, new: bool, unasked: bool, against: list[EpsilonsError], write: Callable[[Argument], str]
) -> Preview:
    # What is kept in memory asks for no word of the steward.
    ahead = candidate.foresee(Act(confirm=unasked))
    standing = ahead.change.count_standing(ahead.dataset)
    measure = candidate.terms.counted
    withdrawn, names = standing.pop(WITHDRAW_CODE, 0), name_grants(ahead.levels, measure)
    grants = {measure.granted(None if code == PUBLIC_CODE else code): people for code, people in standing.items()}
    levels = [(name_grant(one, names), to_epsilon(one), people) for one, people in grants.items()]
    facts = TableFacts.of(candidate.engine.schema, candidate.about, candidate.declared.neighbors)
    many = too_many_levels(len(levels), candidate.asked.rounding_loss)
    hints = [f"{len(levels):,} levels: is the column of preferences the right one?"] if many else []
    if waiting := ahead.expected.pending:
        told = tell_waiting(waiting, ahead.expected.pending_own)
        also = f" and {write(Argument('confirm', True))}" if ahead.unsure else ""
        hints.append(f"{told}: registering with {write(Argument('loosen', waiting))}{also} grants it.")
    hints.append(f"Rows without a value of {facts.person!r} are nobody's, and are left out.")
    refused = [*against, *ahead.objections]
    return Preview(
        candidate.declared.name, candidate.version, new, facts.describe_columns(),
        tuple(sorted(levels, key=lambda one: one[1])), ahead.expected,
        tuple(error.message(write) for error in refused), (*hints, *facts.hints()), many,
        refused[0].code if refused else "", withdrawn,
    )  # fmt: skip

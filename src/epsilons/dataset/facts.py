"""What is publicly known of a dataset: what it fixes for all questions, how that changed, and its description."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

from epsilons.arguments.checks import check_share
from epsilons.arguments.options import DEFAULT_QUESTIONS
from epsilons.arguments.spans import read_spans
from epsilons.display import Sheet, Shown, group_levels, show, show_count, show_key, show_span
from epsilons.engines.base import NUMBER, OTHER, Column, Schema
from epsilons.engines.postgresql import is_address
from epsilons.ledger.renewal import tell_renewal
from epsilons.ledger.values import tell_waiting
from epsilons.measure import PLAIN, PURE, Measure
from epsilons.planner.budget import tell_planned
from epsilons.preferences import Preferences
from epsilons.storage import show_address

#: More levels than this are counted, not listed.
_MOST_SHOWN = 64
_COLUMNS = ("column", "holds", "known")
_AGAINST = {"absent": "absent", "replace": "replaced by anyone else"}


@dataclass(frozen=True)
class TableFacts:
    """What a dataset fixes for all questions."""

    schema: Schema
    person: str
    neighbors: str
    rows: int
    complete: frozenset[str]
    bounds: Mapping[str, tuple[float, float]]
    #: The column of this table that holds people's preferences, and the epsilons of the names in it, if it has names.
    preference: str | None = None
    levels: Mapping[str, float] = field(default_factory=dict)
    #: Whether that column holds names of levels.
    named: bool = False
    #: What answers are cited by.
    name: str = ""
    version: str = ""
    #: Public keys of columns, for groups that name none.
    keys: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    #: Columns that were declared public, and are part of the roster.
    public: frozenset[str] = frozenset()
    #: Those of them that the ledger has beside everybody: earlier releases kept none.
    on_roster: frozenset[str] = frozenset()
    #: By what the ledger knows the dataset.
    dataset: int = 0
    #: The period of levels that have one.
    renews: Mapping[str, str] = field(default_factory=dict)
    #: Whether charges outlive this process.
    lasting: bool = True
    #: In what accounts are kept.
    measure: Measure = PLAIN
    #: How many questions were planned for when it was registered.
    questions: int = DEFAULT_QUESTIONS

    @property
    def share(self) -> Fraction:
        """What a request takes that names no share: that of one of as many as were planned for."""
        return check_share(1 / self.questions)

    @classmethod
    def of(cls, schema: Schema, about: Mapping[str, Any], neighbors: str, **more: Any) -> Self:
        """Out of what a registration settles."""
        return cls(
            schema=schema,
            person=about["person"],
            neighbors=neighbors,
            rows=about["rows_per_person"],
            complete=frozenset(about["complete"]),
            bounds={name: (low, high) for name, (low, high) in about["bounds"].items()},
            preference=about.get("preference"),
            named=bool(about.get("named")) and about.get("preference") is not None,
            # A public column's values are public, too: groups of it need not name them.
            keys={**about.get("values", {}), **about["keys"]},
            public=frozenset(about["public"]),
            renews=about.get("renews", {}),
            questions=about.get("questions", DEFAULT_QUESTIONS),  # earlier releases asked nobody
            on_roster=frozenset(about.get("values", ())),
            **more,
        )

    @property
    def tells_apart(self) -> bool:
        """Whether no two names of levels stand for the same epsilon, so that a grant has one name at most."""
        return len(set(self.levels.values())) == len(self.levels)

    def describe_columns(self) -> tuple[tuple[str, str, str], ...]:
        """Every column: its name, what it holds, what is known of it."""
        return tuple((column.name, column.family, self._describe(column)) for column in self.schema.values())

    def _describe(self, column: Column) -> str:
        name = column.name
        facts = ["in [{:g}, {:g}]".format(*self.bounds[name])] if name in self.bounds else []
        facts += [word for word, those in {"complete": self.complete, "public": self.public}.items() if name in those]
        facts += [_tell_keys(name, self.keys[name])] if name in self.keys else []
        facts += ["cannot be asked about"] if column.family == OTHER else []
        return ", ".join(facts) or "–"

    def hints(self) -> list[str]:
        """What a steward may still want to say or know; about declarations only, never about values."""
        numbers = [column.name for column in self.schema.values() if column.family == NUMBER]
        unbounded = [name for name in numbers if name not in self.bounds and name != self.person]
        hints = [f"No bounds: {', '.join(unbounded)}. Questions about them must give their own."] if unbounded else []
        if not self.complete:
            hints.append("No column is declared complete: means pay for the number of values as well.")
        if self.public:
            told = "What they say of everybody may be known by all; their values are not protected."
            hints.append(f"Public, as the roster is: {', '.join(sorted(self.public))}. {told}")
        return hints


def _tell_keys(name: str, keys: Any) -> str:
    """Few keys by name, so that who asks can type them; many are counted."""
    listed = read_spans(name, keys).labels if isinstance(keys, Mapping) else keys
    return show_count(len(listed), "key") if len(listed) > _FEW else f"keys {', '.join(map(show_key, listed))}"


_BEFORE = "stored answers stay, under the version before"
_WITHOUT = "questions that give none of their own are new ones, and charged"
#: What is settled by a registration and may be another thing in the next one: what it is called, and what follows.
_SETTLED = {
    "origin": ("source", _BEFORE),
    "table": ("table", _BEFORE),
    "types": ("type of", _BEFORE),
    "dialect": ("dialect's", _BEFORE),
    "complete": ("complete", _BEFORE),
    "bounds": ("bounds of", _WITHOUT),
    "keys": ("keys of", _WITHOUT),
    "ceiling": ("ceiling", "stored answers stay"),
    **{name: (name, "stored answers stay") for name in ("person", "rows_per_person", "public")},
    "preferences": ("preferences'", "stored answers stay"),
    "levels": ("level", "stored answers stay"),
    "renews": ("period of", "stored answers stay"),
    "questions": ("questions", "those that name no share are new ones, and charged"),
    # Only of what has no label of the steward's.
    "version": ("version", "its questions are new ones, and charged"),
}
#: Longer lists are counted.
_FEW = 8


def tell_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every fact that was settled in one way and is declared in another: (what it was and is, what follows from it).

    What either of them does not know is left out: earlier releases settled less, and a frame has no path.
    """
    for name, (called, follows) in _SETTLED.items():
        was, now = before.get(name), after.get(name)
        if was is None or now is None or was == now:
            continue
        if isinstance(was, Mapping):
            parts = [part for part in {**was, **now} if was.get(part) != now.get(part)]
            told = [_tell_part(called, part, was.get(part), now.get(part)) for part in parts]
        else:
            told = [f"{called} {_tell(was)} → {_tell(now)}"]
        follows = f"who had more comes down; {follows}" if name == "ceiling" and now < was else follows
        yield from ((one, follows) for one in told)
    for name in before.get("named", ()):
        if name not in after.get("named", before["named"]):
            yield f"level {name}: no longer in this file", "the ledger keeps it"


def _tell_part(called: str, part: str, was: Any, now: Any) -> str:
    if called == "level" and was is None:
        return f"level {part}: new, {_tell(now)}"
    return f"{called} {part} {_tell(was)} → {_tell(now)}"


def _tell(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_tell, value))}]" if len(value) <= _FEW else show_count(len(value), "value")
    if isinstance(value, float):
        return "public" if math.isinf(value) else f"{value:g}"
    return "none" if value is None else str(value)


def find_origin(source: Any, local: bool) -> list[str] | None:
    """The paths or names that a source was given by; patterns stay as they are. None for what has no path."""
    listed = source if isinstance(source, (list, tuple)) else [source]
    if not all(isinstance(one, (str, os.PathLike)) for one in listed):
        return None
    told = [show_address(one) if is_address(one) else one for one in listed]  # no password is kept
    return [os.path.realpath(one) if local and "://" not in str(one) else os.fspath(one) for one in told]


def tell_preferences(wishes: Preferences, schema: Schema) -> dict[str, Any]:
    """Where preferences come from, as plain values, and the levels that are `named`.

    `preference` is the column of the table itself, where it is one.
    """
    told: dict[str, Any] = {}
    named = {"named": sorted(wishes.levels)}
    if wishes.default is not None:
        told["default"] = wishes.default_level or ("public" if math.isinf(wishes.default) else float(wishes.default))
    if wishes.column is None:
        return {**named, "preferences": told}
    if wishes.column.source is not None:
        other = {"file": find_origin(wishes.column.source, True), "person": wishes.column.person}
        return {**named, "preferences": {**told, **other, "column": wishes.column.column}}
    column = schema.find(wishes.column.column).name
    return {**named, "preferences": {**told, "column": column}, "preference": column}


def too_many_levels(levels: int, rounding_loss: float) -> bool:
    """So many levels may well be a column of something else, named by mistake: they are counted, not listed."""
    return levels > _MOST_SHOWN or rounding_loss > 0


@dataclass(frozen=True)
class Level:
    """People of one grant: what they have left on average and at least (None for public), and who has nothing left."""

    name: str
    epsilon: float
    people: int
    left: float | None
    least: float | None = None
    nothing_left: int = 0


@dataclass(frozen=True)
class Description(Shown):
    """Public facts; asking for them costs nothing."""

    columns: tuple[tuple[str, str, str], ...]
    levels: tuple[Level, ...]
    withdrawn: int
    pending: int
    pending_own: int
    name: str
    person: str
    rows_per_person: int
    neighbors: str
    version: str
    registered: str
    ledger: str
    epoch: int
    releases: int
    caveat: str
    rounding_loss: float
    preparation_seconds: float
    #: In what accounts are kept, as the ledger writes it, and the period of levels that have one.
    measure: str = PURE
    renews: Mapping[str, str] = field(default_factory=dict)
    #: How many questions were planned for.
    questions: int = DEFAULT_QUESTIONS

    @property
    def people(self) -> int:
        """How many people are on the roster and have not withdrawn."""
        return sum(level.people for level in self.levels)

    @property
    def _many(self) -> bool:
        return too_many_levels(len(self.levels), self.rounding_loss)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        columns = [dict(zip(("name", "holds", "facts"), column, strict=True)) for column in self.columns]
        shown = () if self._many else self.levels
        levels = [{**vars(level), "epsilon": None if level.left is None else level.epsilon} for level in shown]
        told = {**vars(self), "columns": columns, "levels": levels, "people": self.people}
        # Not told of accounts in epsilons that are for good, nor where nobody planned otherwise.
        plain = {"measure": PURE, "renews": {}, "questions": DEFAULT_QUESTIONS}
        return {name: one for name, one in told.items() if name not in plain or one != plain[name]}

    def _level_rows(self) -> list[tuple[str, ...]]:
        if self._many:
            return [(f"{len(self.levels):,} levels", "not listed", f"{self.people:,}", "", "", "")]
        rows: list[tuple[str, ...]] = []
        measure = Measure.of_text(self.measure)
        for name, places in group_levels([(one.name, one.people) for one in self.levels]):
            those = [self.levels[place] for place in places]
            finite = [one for one in those if one.left is not None]
            spans = [show_span([one.epsilon for one in finite])] if finite else []
            granted = " or ".join([*spans, *(["public"] if len(finite) < len(those) else [])])
            left = measure.show((one.epsilon, one.left or 0.0) for one in finite) if finite else "–"
            least = min(finite, key=lambda one: one.least or 0.0, default=None)
            lowest = "–" if least is None else measure.show([(least.epsilon, least.least or 0.0)])
            nothing = show(sum(one.nothing_left for one in finite)) if finite else "–"
            rows.append((name, granted, f"{sum(one.people for one in those):,}", left, lowest, nothing))
        return rows

    def _notes(self) -> list[str]:
        notes = [
            f"A person is a value of {self.person!r}, has at most {show_count(self.rows_per_person, 'row')}, "
            f"and is protected against being {_AGAINST[self.neighbors]}.",
            f"{self.name}, version {self.version}, registered on {self.registered[:10]}.",
            f"Ledger: {self.ledger}; {show_count(self.releases, 'release')} so far, roster of epoch {self.epoch}.",
            "The roster (who is there, with which preference) is public and is not protected.",
            f"Preparation took {self.preparation_seconds:.2g} s.",
        ]
        if self.withdrawn:
            notes.insert(2, f"Withdrawn: {show_count(self.withdrawn, 'person', 'people')}, not used any more.")
        if self.pending:
            told = tell_waiting(self.pending, self.pending_own)
            notes.insert(2, f"{told}: registering with loosen={self.pending} grants it.")
        if self.rounding_loss:
            notes.insert(2, f"Preferences were rounded down to a fixed ladder, by {self.rounding_loss:.1%} on average.")
        notes[2:2] = self.tell_accounts()
        return notes + ([self.caveat] if self.caveat else [])

    def tell_accounts(self) -> list[str]:
        """In what grants and what is left are told, where that is not plain epsilon for good."""
        measure = Measure.of_text(self.measure)
        planned = [] if self.questions == DEFAULT_QUESTIONS else [tell_planned(self.questions)]
        return [*measure.notes, *([tell_renewal(self.renews, measure)] if self.renews else []), *planned]

    def sheets(self) -> list[Sheet]:
        left = map(Measure.of_text(self.measure).head, ("left on average", "least left"))
        head = ("level", "epsilon", "people", *left, "nothing left")
        levels = Sheet(show_count(self.people, "person", "people"), head, self._level_rows())
        return [levels, Sheet("", _COLUMNS, self.columns, self._notes())]

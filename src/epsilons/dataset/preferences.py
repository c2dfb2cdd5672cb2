"""Who asked for what, read from tables: one preference per person, the strictest of all their rows.

Preferences are public, but a column named by mistake is not: nothing that was read from a table is in a message, but
for a word that is a known level in all but case and blanks. What a caller wrote as a value of Python may be.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.arguments.checks import check_real
from epsilons.dataset.gathering import StagedRows, read_held
from epsilons.dataset.public import NOTHING_PUBLIC, PublicValues
from epsilons.dataset.rows import STAGED, Held, stage
from epsilons.engines.base import NUMBER, TEXT, Column, Engine, open_table
from epsilons.engines.sources import has_types
from epsilons.engines.trees import bit, cast, column, literal, met, missing, table, whole
from epsilons.errors import Argument, DataError, PreferenceError, Text
from epsilons.ledger.consent import PUBLIC_CODE, Word
from epsilons.ledger.identity import digests, normalise
from epsilons.ledger.order import as_sorted, is_new, sort_by, tell_apart
from epsilons.ledger.values import Digests
from epsilons.preferences import Preferences, roster_of
from epsilons.storage.base import reach

#: A word with more blanks than this around it is not shown.
_BLANKS = 20
_COLUMN = Argument("column")
_AS_NUMBERS: Text = (Argument("types", {"id": "int"}), " for ids in a CSV file")
_AS_IN_DATA = "the id as it stands in the data"
#: In place of a level: an epsilon was said as a number; nothing was said, so that the default applies.
A_NUMBER, SAID_NOTHING = -1, -2


class _Asked(NamedTuple):
    """Ids, an epsilon for each of them (NaN: none), and the place of the level that was named, or one of the above."""

    ids: pa.Array
    epsilons: NDArray[np.float64]
    words: NDArray[np.integer]
    held: Held | None = None


@dataclass(frozen=True, eq=False)
class PreferenceTable:
    """Person `ids[i]` asked for `grants[codes[i]]` nano-epsilon, -1 for public; every id occurs once.

    `ids` are written as in the data, where they have the rows `held`, and `normal` as the ledger knows them. `words[i]`
    is the place in `names` of the level that was named, `A_NUMBER` or `SAID_NOTHING`: who said nothing has the level
    `default`, if the default is one. `defaulted` people had no preference; `unmatched` ones name nobody in the data.
    """

    ids: pa.Array
    normal: pa.Array
    held: Held
    grants: NDArray[np.int64]
    codes: NDArray[np.uint8]
    words: NDArray[np.integer]
    names: tuple[str, ...]
    default: str | None
    rounding_loss: float
    defaulted: int
    unmatched: int
    public: PublicValues = NOTHING_PUBLIC

    def sort(self, salt: bytes, kind: str) -> tuple[Self, Digests]:
        """The same in the order of people's digests in a ledger, and these; refused if two are one person's."""
        people = digests(self.normal, salt, kind)
        order = sort_by(as_sorted(people))
        people = people if isinstance(order, slice) else people.take(order, 0)  # the largest column is let go first
        if not is_new(as_sorted(people)).all():
            rule = "Case, blanks around an id, how accents are composed, and zeros before a number make no difference."
            hint = "one spelling for each person"
            raise DataError("Two spellings of an id are one person's.", rule=rule, suggest=hint)
        if isinstance(order, slice):
            return self, people
        ids = self.ids.take(pa.array(order))
        normal = ids if self.normal is self.ids else self.normal.take(pa.array(order))
        codes, words, public = self.codes[order], self.words[order], self.public.take(order)
        held = self.held.take(order)
        return replace(self, ids=ids, normal=normal, held=held, codes=codes, words=words, public=public), people

    def distinct_words(self) -> tuple[list[Word], NDArray[np.unsignedinteger]]:
        """The words that occur, and which of them each person said; the default is a word unsaid."""
        span, named = len(self.names) + 2, [self.default, None, *self.names]
        pairs, places = tell_apart(self.codes * np.int32(span) + self.words + 2)
        codes, which = np.divmod(pairs, span)
        words = [
            Word(code, named[word], word - 2 != SAID_NOTHING)
            for code, word in zip(self.grants[codes].tolist(), which.tolist(), strict=True)
        ]
        return self.public.join(words, places)


def check_id_column(engine: Engine, name: Any) -> Column:
    """The column that says whose row it is."""
    found = engine.schema.find(name)
    if not _can_hold_ids(found):
        others = ", ".join(repr(one.name) for one in engine.schema.values() if _can_hold_ids(one))
        typed = (Argument("types", {found.name: "int"}), " if it does, or ") if found.name in engine.declared else ()
        named = (Argument("person"), f", if one of these says whose row it is: {others}") if others else ()
        hint: Text = (*typed, *(named or ("a table that has ids",)))
        rule = "Ids are whole numbers of at most 64 bits, or text."
        raise DataError(f"Column {found.name!r} cannot hold people's ids.", rule=rule, suggest=hint)
    return found


def _can_hold_ids(kind: Column) -> bool:
    whole_number = kind.family == NUMBER and not kind.floating and kind.precision == 0
    return kind.family == TEXT or (whole_number and (kind.high or 0) < 1 << 64)


def read_preferences(
    engine: Engine, person: Column, preferences: Preferences, salt: bytes, kind: str, normal: bool = True,
    ceiling: float | None = None,
) -> tuple[PreferenceTable, Digests]:  # fmt: skip
    """What everyone asked for: who is in the data, and who is listed by a second table or a mapping; and their digests.

    Whoever is listed was asked, and is on the roster with or without rows: that is theirs to keep private. People are
    in the order of their digests, of that `kind`, and matched by the normal form of their ids, or with `normal=False`
    as those are written. A finite epsilon above the `ceiling`, and a level that is, are refused.
    """
    if ceiling is not None:
        check_levels(preferences.levels, ceiling)
    given = preferences.column
    if given is not None and given.source is None:
        listed = None
    elif given is not None:
        listed = _read_other(given.source, given.person, preferences, person)
    elif preferences.by_person is not None:
        listed = _read_mapping(preferences.by_person, person, preferences.default)
    else:
        hint = "an epsilon for each id, or a column of epsilons or levels"
        raise PreferenceError("These preferences are in the order of some array.", suggest=hint)
    rows, others = StagedRows(engine, person), (preferences, listed, normal, ceiling)
    # To gather rows by person takes long, and much memory: it is tried without where everybody seems to have one. What
    # is then refused of a row may be fine of a person.
    found = None
    if engine.embedded and rows.seem_alone():
        with suppress(DataError, PreferenceError):
            found = _read(rows._replace(alone=True), *others).sort(salt, kind)
    found = _read(rows, *others).sort(salt, kind) if found is None else found
    pa.default_memory_pool().release_unused()
    return found


def _read(
    rows: StagedRows, preferences: Preferences, listed: _Asked | None, normal: bool, ceiling: float | None
) -> PreferenceTable:
    person = rows.person
    if listed is None:
        asked = _read_column(rows, preferences)
        held = asked.held
        known, unmatched = normalise(asked.ids) if normal else asked.ids, 0
    else:
        found = rows.by_person({})
        in_data = _check_ids(found["id"], person)
        listed = listed._replace(ids=_check_ids(listed.ids, person))
        known, asked, unmatched = _match(listed, in_data, preferences, person, normal)
        held = read_held(found).and_others(unmatched)
    reach("preferences read")
    pa.default_memory_pool().release_unused()  # it would be kept for later, and is as large as what is left
    defaulted = int((asked.words[: len(asked.ids) - unmatched] == SAID_NOTHING).sum())
    grants, codes, rounding_loss = _to_grants(asked.epsilons, preferences, ceiling)
    said = asked.words, tuple(preferences.levels), preferences.default_level
    assert held is not None
    return PreferenceTable(asked.ids, known, held, grants, codes, *said, rounding_loss, defaulted, unmatched)


def check_levels(levels: Mapping[str, float], ceiling: float) -> None:
    """No level but public is above the ceiling."""
    for name, epsilon in levels.items():
        if ceiling < epsilon < math.inf:
            what, lower = f"Level {name!r} is {epsilon:g}, above the ceiling of {ceiling:g}.", {**levels, name: ceiling}
            rule = "A finite epsilon is at most the ceiling; public people have an infinite one."
            hint = (Argument("ceiling", epsilon), ", or ", Argument("levels", lower))
            raise PreferenceError(what, rule=rule, suggest=hint)


def _read_mapping(given: Mapping[Any, Any], person: Column, default: float | None) -> _Asked:
    """{id: epsilon} as columns; the default where it is None."""
    try:
        epsilons = np.array([math.nan if one is None else check_real(one) for one in given.values()], float)
    except TypeError:
        rule = "An epsilon is a number, or the name of a level."
        raise PreferenceError("A preference is not a number.", rule=rule) from None
    unsaid = np.isnan(epsilons)
    filled = np.where(unsaid, math.nan if default is None else default, epsilons)
    return _Asked(as_ids(list(given), person, normal=False), filled, np.where(unsaid, SAID_NOTHING, A_NUMBER))


def as_ids(ids: Any, person: Column, normal: bool = True) -> pa.Array:
    """People's ids as a column of the data's kind, in their normal form unless it is not asked for."""
    try:
        if hasattr(ids, "to_arrow"):  # polars
            ids = ids.to_arrow()
        elif hasattr(ids, "to_numpy") and not isinstance(ids, (pa.Array, pa.ChunkedArray)):
            ids = ids.to_numpy()
        if isinstance(ids, (str, bytes)):
            raise PreferenceError("People are given as a list of ids.", suggest="a list, also for one person")
        found = ids if isinstance(ids, (pa.Array, pa.ChunkedArray)) else _as_arrow(list(ids))
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError, UnicodeError):
        raise _other_kind(person, _AS_IN_DATA) from None
    checked = _check_ids(found, person, _AS_IN_DATA)
    return normalise(checked) if normal else checked


def _as_arrow(ids: list[Any]) -> pa.Array:
    """Arrow itself takes numbers for signed ones."""
    wide = any(isinstance(one, (int, np.integer)) and one >= 1 << 63 for one in ids)
    return pa.array(ids, pa.uint64() if wide else None)


def _check_ids(ids: Any, person: Column, hint: Text = _AS_NUMBERS) -> pa.Array:
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    text = pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)
    if len(ids) and not (text if person.family == TEXT else pa.types.is_integer(ids.type)):
        raise _other_kind(person, hint)
    if ids.null_count:
        raise PreferenceError("An id is missing.", suggest="rows with ids only")
    return ids.cast(pa.large_string() if person.family == TEXT else ids.type)


def _other_kind(person: Column, hint: Text = _AS_NUMBERS) -> PreferenceError:
    kind = "text" if person.family == TEXT else "whole numbers"
    rule = f"Column {person.name!r} holds {kind}; 1 and '1' are two people."
    return PreferenceError("These ids are of another kind than the table's.", rule=rule, suggest=hint)


def _read_other(source: Any, name: Any, preferences: Preferences, person: Column) -> _Asked:
    assert preferences.column is not None
    types = preferences.column.types or {}
    other = open_table(source, types=types or None, dialect=preferences.column.dialect or None)
    try:
        kind = check_id_column(other, name)
        stage(other)
        found = _read_column(StagedRows(other, kind), preferences)
        # Ids of lines and sheets are text only because nothing says otherwise: they are of the data's kind.
        undeclared = kind.name not in types and not all(map(has_types, other.files))
        as_numbers = undeclared and person.family == NUMBER
        return found._replace(ids=_as_numbers(found.ids, person)) if as_numbers else found
    finally:
        other.close()


def _as_numbers(ids: pa.Array, person: Column) -> pa.Array:
    """Ids that are written out. One that is no whole number is refused: nobody's preference is passed over."""
    written = pc.utf8_trim_whitespace(ids)
    if pc.all(pc.match_substring_regex(written, "^-?[0-9]+$")).as_py() is not False:
        for whole_numbers in (pa.int64(), pa.uint64()):
            with suppress(pa.ArrowInvalid):
                return written.cast(whole_numbers)
    rule = f"Column {person.name!r} of the data holds whole numbers, and so must the preferences'."
    raise PreferenceError("An id in the preferences is not a whole number.", rule=rule, suggest="ids as in the data")


def _read_column(rows: StagedRows, preferences: Preferences) -> _Asked:
    """(ids, epsilons) of a table with people and what they asked for; NaN: nothing."""
    given, default = preferences.column, preferences.default
    assert given is not None
    kind = rows.engine.schema.find(given.column)
    if given.levels is not None:
        return _read_levels(rows, kind, given.levels, default)
    if kind.family not in (NUMBER, TEXT):
        hint = "levels with their epsilons, if it holds names of levels"
        raise PreferenceError(f"Column {kind.name!r} holds {kind.family}, not epsilons.", suggest=hint)
    value: exp.Expr = cast(column(kind.name), "DOUBLE")
    if kind.family == TEXT:
        value = exp.TryCast(this=column(kind.name), to=exp.DataType.build("DOUBLE"))
    # Text that is no number says nothing: the default takes its place, like that of an empty cell.
    unread = exp.Is(this=value.copy(), expression=exp.null())
    nothing = exp.Or(this=unread, expression=exp.IsNan(this=value.copy()))
    endless = default is None or math.isinf(default)
    fallback = exp.null() if endless else cast(exp.Literal.number(repr(default)), "DOUBLE")
    least = exp.Case(ifs=[exp.If(this=nothing, true=fallback)], default=value)
    ids, asked, unsaid, held = rows.take_least(least, nothing)
    filled = asked.cast(pa.float64()).fill_null(math.nan if default is None else default)
    epsilons = filled.to_numpy(zero_copy_only=False)
    return _Asked(ids, epsilons, np.where(unsaid, np.int8(SAID_NOTHING), np.int8(A_NUMBER)), held)


def _read_levels(rows: StagedRows, kind: Column, levels: Mapping[str, float], default: float | None) -> _Asked:
    """Names of levels become their rank, the strictest first, so that the least rank is the strictest preference."""
    if kind.family != TEXT:
        what = f"Column {kind.name!r} holds {kind.family}, not names of levels."
        hint = ("no ", Argument("levels"), ", if it holds epsilons; or another ", _COLUMN)
        raise PreferenceError(what, rule="A level goes by its name.", suggest=hint)
    ranked = sorted(levels, key=lambda name: float(levels[name]))
    strictness = [float(levels[name]) for name in ranked]
    named = [exp.EQ(this=column(kind.name), expression=literal(name, kind)) for name in ranked]
    ifs = [exp.If(this=same, true=whole(rank)) for rank, same in enumerate(named)]
    ifs.append(exp.If(this=missing(kind), true=exp.null() if default is None else whole(strictness.index(default))))
    ids, asked, unsaid, held = rows.take_least(exp.Case(ifs=ifs, default=whole(-1)), missing(kind))
    ranks = asked.fill_null(len(ranked)).to_numpy(zero_copy_only=False)
    if (ranks < 0).any():
        raise _unknown_level(rows.engine, kind, ranked)
    epsilons = np.array([*strictness, math.nan if default is None else default])[ranks]
    words = np.array([*map(list(levels).index, ranked), SAID_NOTHING], np.int16)[ranks]
    words[unsaid] = SAID_NOTHING
    return _Asked(ids, epsilons, words, held)


def _unknown_level(engine: Engine, kind: Column, known: list[str]) -> PreferenceError:
    """A word of the column is shown only if it is a known level but for case and blanks around it."""
    plain = exp.Lower(this=exp.Trim(this=column(kind.name), expression=exp.Literal.string(" \t\r\n")))
    alike = exp.In(this=plain, expressions=[literal(name.strip().lower(), kind) for name in known])
    listed = exp.In(this=column(kind.name), expressions=[literal(name, kind) for name in known])
    query = exp.select(exp.alias_(exp.Min(this=column(kind.name)), "word")).from_(table(STAGED))
    (word,) = engine.run(query.where(met(bit(alike), bit(exp.Not(this=listed)))))["word"].to_pylist()
    # Engines may fold letters otherwise than Python: what is named is one of the levels by Python's own rules.
    meant = [name for name in known if word is not None and name.strip().casefold() == word.strip().casefold()]
    levels = f"The levels are {', '.join(known)}; every word in the column is one of them, or missing."
    if meant and len(word) < len(meant[0]) + _BLANKS:
        what = f"Column {kind.name!r}: {word!r} is not a level; did you mean {meant[0]!r}?"
        return PreferenceError(what, rule=levels, suggest=f"{word!r} as a level too, or the column in one case")
    rule = f"{levels} Others are not shown, since the column may be another one than was meant."
    look = "epsilons check --steward shows them to the steward of a dataset file; add one to "
    hint = (look, Argument("levels"), ", or name another ", _COLUMN)
    return PreferenceError(f"Column {kind.name!r} holds unknown levels.", rule=rule, suggest=hint)


def _match(
    listed: _Asked, in_data: pa.Array, preferences: Preferences, person: Column, normal: bool
) -> tuple[pa.Array, _Asked, int]:
    """(ids as they are known, what is asked for, how many of them, who come last, are not in the data).

    Those of the data who are not listed have the default. All ids become one type: a number is the same id whatever its
    width, and ids that are not in the data may be wider.
    """
    default = preferences.default
    if person.family == TEXT or len(listed.ids) == 0:
        listed = listed._replace(ids=listed.ids.cast(in_data.type))
    else:
        wide = pa.uint64() if pa.uint64() in (listed.ids.type, in_data.type) else pa.int64()
        try:
            listed, in_data = listed._replace(ids=listed.ids.cast(wide)), in_data.cast(wide)
        except pa.ArrowInvalid:  # a negative number beside one of 64 bits, which Arrow quotes
            wide = None
        if wide is None:
            raise _other_kind(person)
    here, there = (normalise(ids) if normal else ids for ids in (in_data, listed.ids))
    place = pc.index_in(here, value_set=there).fill_null(-1).to_numpy(zero_copy_only=False)
    if (place < 0).any() and default is None:
        rule, hint = "A default applies only if you give one.", _default(preferences.levels)
        raise PreferenceError("A person in the data is not listed in the preferences.", rule=rule, suggest=hint)
    others = np.setdiff1d(np.arange(len(there)), place)
    place = np.concatenate([place, others])
    epsilons = np.append(listed.epsilons, math.nan if default is None else default)[place]
    elsewhere = there.take(pa.array(others))
    ids, known = (pa.concat_arrays([some, elsewhere]) for some in (in_data, here))
    return known, _Asked(ids, epsilons, np.append(listed.words, SAID_NOTHING)[place]), len(others)


def _default(levels: Mapping[str, float]) -> Argument:
    """What to give those who said nothing: an epsilon, or the strictest of the levels that are declared."""
    return Argument("default", min(levels, key=lambda name: levels[name], default=0.05))


def _to_grants(
    epsilons: NDArray[np.float64], preferences: Preferences, ceiling: float | None
) -> tuple[NDArray[np.int64], NDArray[np.uint8], float]:
    """(grants, which of them each person has, rounding loss)."""
    source = None if preferences.column is None else preferences.column.column  # None: a caller gave them
    if len(epsilons) == 0:
        raise DataError("There are no people.", rule="A roster has at least one person.", suggest="a table with rows")
    roster, rule = None, ""
    hint: Text = ""
    try:
        roster = roster_of(epsilons)
    except PreferenceError as refused:
        if source is None:
            raise
        rule, hint = refused.rule, refused.parts[2]
    if roster is None:  # raised out here without the refusal, which quotes an epsilon that was read from a table
        what = f"Column {source!r} holds an epsilon that is not allowed."
        if np.isnan(epsilons).any():
            what, named = f"A person has no preference in column {source!r}.", {"strict": 0.05, "open": 1}
            names = () if preferences.levels else (Argument("levels", named), " if it holds names, or ")
            hint = (*names, _default(preferences.levels))
        parts = hint if isinstance(hint, tuple) else (hint,)
        raise PreferenceError(what, rule=rule, suggest=(*parts, "; or another ", _COLUMN))
    if ceiling is not None and (np.isfinite(epsilons) & (epsilons > ceiling)).any():
        rule = "A finite epsilon is at most the ceiling; public people have an infinite one."
        other = ("epsilons from another ", _COLUMN, ", or a larger ", Argument("ceiling"))
        raise PreferenceError(f"An epsilon is above the ceiling of {ceiling:g}.", rule=rule, suggest=other)
    grants = np.array([PUBLIC_CODE if grant is None else grant for grant in roster.levels.grants], np.int64)
    return grants, roster.codes, roster.levels.rounding_loss

"""Who asked for what, read from tables: one wish per person, the strictest of all their rows.

Preferences are public, but a column named by mistake is not: nothing that was read from a table is in a message, but
for a word that is a known level in all but case and blanks. What a caller wrote as a value of Python may be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.arguments import check_real
from epsilons.engines.base import NUMBER, SOURCE, TEXT, Column, Engine
from epsilons.engines.trees import both, cast, column, literal, missing, table, whole
from epsilons.errors import DataError, PreferenceError
from epsilons.preferences import Preferences, Roster, roster_of, to_nano

if TYPE_CHECKING:
    from collections.abc import Callable

#: How the ledger writes a public grant.
PUBLIC_CODE = -1
#: A word with more blanks than this around it is not shown.
_BLANKS = 20


@dataclass(frozen=True, eq=False)
class Asked:
    """`nano[i]` is the wish of person `ids[i]` in nano-epsilon, -1 for public; every id occurs once."""

    ids: pa.Array
    nano: NDArray[np.int64]
    rounding_loss: float


def check_person(engine: Engine, name: Any) -> Column:
    """The column that says whose row it is."""
    found = engine.schema.find(name)
    whole_number = found.family == NUMBER and not found.floating and found.precision == 0
    if not (found.family == TEXT or (whole_number and (found.high or 0) < 1 << 64)):
        raise DataError(
            f"Column {found.name!r} cannot hold people's ids.",
            rule="Ids are whole numbers of at most 64 bits, or text.",
            suggest='types={"id": "int"} for a CSV file',
        )
    return found


def read_wishes(engine: Engine, person: Column, preferences: Preferences, open_table: Callable[..., Engine]) -> Asked:
    """Everybody's wish: whoever is in the data, and whoever a second table or a mapping lists."""
    wishes = preferences.column
    if wishes is not None and wishes.source is None:
        ids, epsilons = _read(engine, person, wishes.column, wishes.levels, preferences.default)
        return _asked(ids, epsilons, wishes.column)
    in_data = _distinct(engine, person)
    if wishes is not None:
        other = open_table(wishes.source, types=wishes.types)
        try:
            ids, epsilons = _read(
                other, check_person(other, wishes.person), wishes.column, wishes.levels, preferences.default
            )
        finally:
            other.close()
    elif preferences.by_person is not None:
        ids, epsilons = from_mapping(preferences.by_person, person)
    else:
        raise PreferenceError(
            "These preferences are in the order of some array.",
            rule="A table's rows have no order; preferences go by person.",
            suggest='eps.Preferences({"ann": 0.1}) or eps.Preferences.from_column("epsilon")',
        )
    everyone = _with_default(_as_ids(ids, person), epsilons, in_data, preferences.default, person)
    return _asked(*everyone, None if wishes is None else wishes.column)


def read_table(source: Any, person: Column, preferences: Preferences, open_table: Callable[..., Engine]) -> Asked:
    """Wishes in a table of their own, whose columns are called as those that the preferences come from."""
    wishes = preferences.column
    if wishes is None:
        raise PreferenceError(
            "Nobody said which column holds the wishes.",
            rule="A table of wishes has the columns that the dataset's preferences were read from.",
            suggest='{"ann": 0.1}, or preferences from a column',
        )
    other = open_table(source, types=wishes.types)
    try:
        whose = check_person(other, wishes.person or person.name)
        ids, epsilons = _read(other, whose, wishes.column, wishes.levels, preferences.default)
    finally:
        other.close()
    return _asked(_as_ids(ids, person), epsilons, wishes.column)


def from_mapping(mapping: Mapping[Any, float], person: Column) -> tuple[pa.Array, NDArray[np.float64]]:
    """{id: epsilon} as columns."""
    try:
        epsilons = np.array([math.nan if e is None else check_real(e) for e in mapping.values()], float)
    except TypeError:
        raise PreferenceError(
            "A preference is not a number.", rule="An epsilon is a number.", suggest='{"ann": 0.1, "bob": eps.PUBLIC}'
        ) from None
    return as_ids(list(mapping), person), epsilons


def as_ids(ids: Any, person: Column) -> pa.Array:
    """People's ids as a column of the data's kind."""
    try:
        if hasattr(ids, "to_arrow"):  # polars
            ids = ids.to_arrow()
        elif hasattr(ids, "to_numpy") and not isinstance(ids, (pa.Array, pa.ChunkedArray)):
            ids = ids.to_numpy()
        if isinstance(ids, (str, bytes)):
            raise TypeError
        found = ids if isinstance(ids, (pa.Array, pa.ChunkedArray)) else pa.array(list(ids))
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError):
        raise _other_kind(person) from None
    return _as_ids(found, person)


def _as_ids(ids: Any, person: Column) -> pa.Array:
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    text = pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)
    if len(ids) and not (text if person.family == TEXT else pa.types.is_integer(ids.type)):
        raise _other_kind(person)
    if ids.null_count:
        raise PreferenceError(
            "A preference has no id.", rule="Preferences are found by id.", suggest="rows with ids only"
        )
    return ids.cast(pa.large_string() if person.family == TEXT else ids.type)


def _other_kind(person: Column) -> PreferenceError:
    kind = "text" if person.family == TEXT else "whole numbers"
    return PreferenceError(
        "People are named by ids of another kind than in the table.",
        rule=f"Column {person.name!r} holds {kind}; 1 and '1' are two people.",
        suggest='types={"id": "int"} for ids in a CSV file',
    )


def _distinct(engine: Engine, person: Column) -> pa.Array:
    name = column(person.name)
    query = exp.select(exp.alias_(name, "id")).distinct().from_(table(SOURCE)).where(_there(person))
    return _as_ids(engine.run(query)["id"], person)


def _there(person: Column) -> exp.Expr:
    return exp.Not(this=exp.Is(this=column(person.name), expression=exp.null()))


def _read(
    engine: Engine, person: Column, name: str, levels: Mapping[str, float] | None, default: float | None
) -> tuple[pa.Array, NDArray[np.float64]]:
    """(ids, epsilons) of a table with people and their wishes; NaN: no wish."""
    kind = engine.schema.find(name)
    if levels is not None:
        return _read_levels(engine, person, kind, levels, default)
    if kind.family not in (NUMBER, TEXT):
        raise PreferenceError(
            f"Column {kind.name!r} holds {kind.family}, not epsilons.",
            rule="An epsilon is a number.",
            suggest='eps.Preferences.from_levels("privacy", {"strict": 0.05, ...}) for names of levels',
        )
    value: exp.Expr = cast(column(kind.name), "DOUBLE")
    if kind.family == TEXT:
        value = exp.TryCast(this=column(kind.name), to=exp.DataType.build("DOUBLE"))
    # A word that is no number says nothing: the default takes its place, like that of an empty cell.
    unread = exp.Is(this=value.copy(), expression=exp.null())
    nothing = exp.Or(this=unread, expression=exp.IsNan(this=value.copy()))
    fallback = (
        exp.null() if default is None or math.isinf(default) else cast(exp.Literal.number(repr(default)), "DOUBLE")
    )
    wish = exp.Case(ifs=[exp.If(this=nothing, true=fallback)], default=value)
    query = (
        exp.select(exp.alias_(column(person.name), "id"), exp.alias_(exp.Min(this=wish), "wish"))
        .from_(table(SOURCE))
        .where(_there(person))
        .group_by(exp.Literal.number(1))
    )
    result = engine.run(query)
    wished = result["wish"].combine_chunks().cast(pa.float64()).fill_null(math.nan if default is None else default)
    return result["id"], wished.to_numpy(zero_copy_only=False).astype(float)


def _read_levels(
    engine: Engine, person: Column, kind: Column, levels: Mapping[str, float], default: float | None
) -> tuple[pa.Array, NDArray[np.float64]]:
    """Names of levels become their rank, the strictest first, so that the least rank is the strictest wish."""
    if kind.family != TEXT:
        raise PreferenceError(
            f"Column {kind.name!r} holds {kind.family}, not names of levels.",
            rule="A level goes by its name.",
            suggest='eps.Preferences.from_column("epsilon") for numbers',
        )
    ranked = sorted(levels, key=lambda name: float(levels[name]))
    strictness = [float(levels[name]) for name in ranked]
    ifs = [
        exp.If(this=exp.EQ(this=column(kind.name), expression=literal(name, kind)), true=whole(rank))
        for rank, name in enumerate(ranked)
    ]
    fallback = exp.null() if default is None else whole(strictness.index(default))
    ifs.append(exp.If(this=missing(kind), true=fallback))
    rank = exp.Case(ifs=ifs, default=whole(-1))
    query = (
        exp.select(exp.alias_(column(person.name), "id"), exp.alias_(exp.Min(this=rank), "wish"))
        .from_(table(SOURCE))
        .where(_there(person))
        .group_by(exp.Literal.number(1))
    )
    result = engine.run(query)
    ranks = result["wish"].combine_chunks().cast(pa.int64()).fill_null(len(ranked)).to_numpy(zero_copy_only=False)
    if (ranks < 0).any():
        raise _unknown_level(kind, ranked, _nearly(engine, kind, ranked))
    return result["id"], np.array([*strictness, math.nan if default is None else default])[ranks]


def _nearly(engine: Engine, kind: Column, known: list[str]) -> tuple[str, str] | None:
    """A word of the column that is a known level but for case and blanks around it, and that level."""
    plain = exp.Lower(this=exp.Trim(this=column(kind.name), expression=exp.Literal.string(" \t\r\n")))
    alike = exp.In(this=plain, expressions=[literal(name.strip().lower(), kind) for name in known])
    listed = exp.In(this=column(kind.name), expressions=[literal(name, kind) for name in known])
    query = exp.select(exp.alias_(exp.Min(this=column(kind.name)), "word")).from_(table(SOURCE))
    (word,) = engine.run(query.where(both(alike, exp.Not(this=listed))))["word"].to_pylist()
    # Engines may fold letters otherwise than Python: what is named is one of the levels by Python's own rules.
    meant = [name for name in known if word is not None and name.strip().casefold() == word.strip().casefold()]
    return (word, meant[0]) if meant else None


def _unknown_level(kind: Column, known: list[str], nearly: tuple[str, str] | None) -> PreferenceError:
    levels = f"The levels are {', '.join(known)}; every word in the column is one of them, or missing."
    if nearly is not None and len(nearly[0]) < len(nearly[1]) + _BLANKS:
        word, meant = nearly
        return PreferenceError(
            f"Column {kind.name!r}: {word!r} is not a level; did you mean {meant!r}?",
            rule=levels,
            suggest=f"{word!r} as a level too, or the column without blanks and in one case",
        )
    return PreferenceError(
        f"Column {kind.name!r} holds levels that are not known.",
        rule=f"{levels} Others are not shown, since the column may be another one than was meant.",
        suggest="look at the distinct words in it yourself; then name another column, or add the missing level",
    )


def _alike(ids: pa.Array, in_data: pa.Array, person: Column) -> tuple[pa.Array, pa.Array]:
    """Both as one type. A number is the same id whatever its width, and ids that are not in the data may be wider."""
    if person.family == TEXT or len(ids) == 0:
        return ids.cast(in_data.type), in_data
    wide = pa.uint64() if pa.uint64() in (ids.type, in_data.type) else pa.int64()
    try:
        return ids.cast(wide), in_data.cast(wide)
    except pa.ArrowInvalid:  # a negative number beside one of 64 bits, which Arrow quotes
        pass
    raise _other_kind(person)


def _with_default(
    ids: pa.Array, epsilons: NDArray[np.float64], in_data: pa.Array, default: float | None, person: Column
) -> tuple[pa.Array, NDArray[np.float64]]:
    """Listed people, and those of the data who are not listed, at the default."""
    ids, in_data = _alike(ids, in_data, person)
    new = in_data.filter(pc.invert(pc.is_in(in_data, value_set=ids)))
    if len(new) and default is None:
        raise PreferenceError(
            "Somebody in the table has no preference.",
            rule="A default applies only if you give one.",
            suggest="eps.Preferences(..., default=0.05)",
        )
    joined = pa.concat_arrays([ids, new])
    return joined, np.concatenate([epsilons, np.full(len(new), math.nan if default is None else default)])


def _asked(ids: Any, epsilons: NDArray[np.float64], source: str | None) -> Asked:
    """`source` is the column that the epsilons were read from; None if a caller gave them."""
    if len(epsilons) == 0:
        raise DataError("There are no people.", rule="A roster has at least one person.", suggest="a table with rows")
    roster = roster_of(epsilons) if source is None else _roster_of_column(epsilons, source)
    grants = np.array([PUBLIC_CODE if grant is None else grant for grant in roster.levels.grants], np.int64)
    plain = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    return Asked(plain, grants[roster.codes], roster.levels.rounding_loss)


def _roster_of_column(epsilons: NDArray[np.float64], source: str) -> Roster:
    """As `roster_of`, whose refusals quote the epsilon that they are about; here it was read from a table."""
    try:
        return roster_of(epsilons)
    except PreferenceError as refused:
        rule, hint = refused.rule, refused.hint
    nobody = bool(np.isnan(epsilons).any())
    raise PreferenceError(
        f"Somebody has no preference in column {source!r}."
        if nobody
        else f"Column {source!r} holds an epsilon that is not allowed.",
        rule=rule,
        suggest=f"{hint}; or another column, if {source!r} does not hold preferences",
    )


def grants_of(epsilons: NDArray[np.float64]) -> NDArray[np.int64]:
    """Epsilons as the ledger writes them."""
    distinct, codes = np.unique(epsilons, return_inverse=True)
    nano = [to_nano(float(epsilon)) for epsilon in distinct]
    return np.array([PUBLIC_CODE if one is None else one for one in nano], np.int64)[codes]

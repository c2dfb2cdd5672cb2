"""The rows of a table's people: read once, numbered, capped, and labelled with the cohorts of their people.

The source is read exactly once, into the engine, before anything else is looked at (`stage`). Ids, preferences and rows
then come from one and the same reading, whatever becomes of the source meanwhile.

Of people who have too many rows those with the smallest keyed hash of their content stay: which ones stay depends on
nobody else, on no order of rows, and on nothing that an engine does differently. Rows without a person are left out.
That nobody has more rows than they may is checked on what was written. The number of dropped rows is private and is
never reported to those who ask.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.engines.base import DATE, NUMBER, OTHER, RESERVED, SOURCE, TEXT, TRUTH, Column, Engine, Schema
from epsilons.engines.trees import cast, column, double, missing, table, whole
from epsilons.errors import DataError
from epsilons.ledger.values import Members
from epsilons.storage.base import reach
from epsilons.summaries.sql import Prepared

PERSON, COHORT = f"{RESERVED}person", f"{RESERVED}cohort"
#: The copy of the source from which everything is read.
STAGED = f"{RESERVED}staged"
_PEOPLE, _ID, _CROWDED, _PLACE = (RESERVED + word for word in ("people", "id", "crowded", "place"))
#: Doubles are hashed on a grid of 2^-10, cut off where it would leave 64 bits.
_FINE, _FAR = 1024.0, 1e15
#: More bytes of digests than this are not kept in memory.
_MUCH = 1 << 24


def stage(engine: Engine) -> None:
    """Read the source, once, as `STAGED`; whoever reads people or rows reads them there."""
    if any(name.casefold().startswith(RESERVED) for name in engine.schema):
        rule = f"Names that begin with {RESERVED!r} are taken, in upper and lower case."
        raise DataError("A column has a reserved name.", rule=rule, suggest="rename it")
    reach("source unread")
    engine.stage(STAGED)
    reach("source read")


@dataclass(frozen=True, eq=False)
class Preparation:
    """The copy, and for each person of the table their digest and the place of their cohort in `cohorts`."""

    prepared: Prepared
    epoch: int
    digests: NDArray[np.uint8]
    places: NDArray[Any]
    cohorts: tuple[int, ...]


def prepare(
    engine: Engine, person: Column, ids: pa.Array, digests: NDArray[np.uint8], members: Members, rows: int, salt: bytes
) -> Preparation:
    """Of what was staged: number the people, cap their rows and label them, inside the engine."""
    places, cohorts = _find_places(digests, members)
    name = _labelled(members)
    with cap_rows(engine, person, ids, rows, salt, {COHORT: places}) as capped:
        schema = engine.keep(name, capped)
    reach("rows capped")
    if exceeds_cap(engine, name, rows):
        engine.drop(name)
        raise above_cap()
    if digests.nbytes >= _MUCH:
        # They lie in a file without a name: they are asked for only when people are sampled or change cohorts.
        with tempfile.TemporaryFile(prefix="epsilons-") as file:
            file.write(digests.data)
            file.flush()
            digests = np.memmap(file, np.uint8, "r", shape=digests.shape)
    asked = Schema([kind for kind in schema.values() if kind.name not in (PERSON, COHORT)])
    prepared = Prepared(engine, name, asked, COHORT, len(cohorts), len(ids) * rows, PERSON)
    return Preparation(prepared, members.epoch, digests, places, cohorts)


def label(engine: Engine, digests: NDArray[np.uint8], members: Members, rows: int) -> Preparation:
    """Of a snapshot that was opened: its rows with the cohorts of their people. People have `rows` rows at most."""
    return _label(engine, SOURCE, Schema(list(engine.schema.values())), digests, members, len(digests) * rows)


def renew(before: Preparation, members: Members) -> Preparation:
    """After people changed their minds: the rows stay, the cohorts' codes are new."""
    old = before.prepared
    renewed = _label(old.engine, old.name, old.schema, before.digests, members, old.rows)
    old.engine.drop(old.name)
    return renewed


def _label(
    engine: Engine, name: str, schema: Schema, digests: NDArray[np.uint8], members: Members, rows: int
) -> Preparation:
    places, cohorts = _find_places(digests, members)
    engine.add(_PEOPLE, pa.table({_ID: np.arange(len(places), dtype=np.int32), COHORT: places}))
    asked = Schema([kind for kind in schema.values() if kind.family != OTHER])
    kept = [_of(name, each) for each in (*asked, PERSON)]
    same = exp.EQ(this=_of(name, PERSON), expression=_of(_PEOPLE, _ID))
    tree = exp.select(*kept, _of(_PEOPLE, COHORT)).from_(table(name)).join(table(_PEOPLE), on=same)
    engine.keep(_labelled(members), tree)
    engine.drop(_PEOPLE)
    prepared = Prepared(engine, _labelled(members), asked, COHORT, len(cohorts), rows, PERSON)
    return Preparation(prepared, members.epoch, digests, places, cohorts)


def _labelled(members: Members) -> str:
    return f"{RESERVED}rows {members.epoch}"


def _find_places(digests: NDArray[np.uint8], members: Members) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Each person's cohort as a place in the list of cohorts, in a byte where it fits. Members are sorted by digest.

    Whoever is no member any more has the place after the last, which no question uses.
    """
    cohorts, found = np.unique(members.cohorts, return_inverse=True)
    nobody = len(cohorts)
    codes = found.astype(np.min_scalar_type(nobody))
    known, asked = _first_half(members.digests), _first_half(digests)
    if (known[1:] == known[:-1]).any():
        # Two people agree in 64 bits, which among ten million happens once in 370,000 rosters.
        known, asked = (np.ascontiguousarray(all_).view("S16").reshape(-1) for all_ in (members.digests, digests))
    # Sorted questions walk through the members in order, which a processor's cache rewards.
    order = np.argsort(asked)
    asked = asked[order]
    at = np.searchsorted(known, asked)
    there = at < len(known)
    there[there] = known[at[there]] == asked[there]
    places = np.full(len(asked), nobody, codes.dtype)
    places[order[there]] = codes[at[there]]
    return places, tuple(int(cohort) for cohort in cohorts)


def _first_half(digests: NDArray[np.uint8]) -> NDArray[Any]:
    """The first 8 bytes as numbers, which sort as the bytes do."""
    return np.ascontiguousarray(digests[:, :8]).view(">u8").reshape(-1).astype(np.uint64)


@contextmanager
def cap_rows(
    engine: Engine, person: Column, ids: pa.Array, rows: int, salt: bytes, beside: Mapping[str, Any]
) -> Iterator[exp.Query]:
    """The query for everybody's rows, as many as they may have, with their person's number and what stands `beside` it.

    What was staged is dropped afterwards.
    """
    crowd = engine.run(_find_crowd(STAGED, person.name, rows))[_ID]
    crowded = pc.is_in(ids, value_set=crowd.combine_chunks().cast(ids.type))
    numbers = np.arange(len(ids), dtype=np.int32)
    engine.add(_PEOPLE, pa.table({_ID: ids, PERSON: numbers, **beside, _CROWDED: crowded}))
    columns = [kind for kind in engine.schema.values() if kind.family != OTHER]
    ours = (PERSON, *beside)
    reach("crowd counted")
    yield _cap(person, columns, ours, rows, salt) if len(crowd) else _join(person, columns, ours, None)
    engine.drop(_PEOPLE)
    engine.drop(STAGED)


def exceeds_cap(engine: Engine, name: str, rows: int) -> bool:
    """Whether anybody has more rows in a copy than they may, which would be a mistake of ours."""
    return len(engine.run(_find_crowd(name, PERSON, rows))) > 0


def above_cap() -> DataError:
    what = "The rows of this table were not capped; nothing was kept."
    return DataError(what, rule="Nobody has more rows than was declared.", suggest="report this as a bug")


def _find_crowd(name: str, key: str, rows: int) -> exp.Select:
    """Who has more rows than this."""
    query = exp.select(exp.alias_(column(key), _ID)).from_(table(name)).group_by(exp.Literal.number(1))
    return query.having(exp.GT(this=exp.Count(this=exp.Star(), big_int=True), expression=whole(rows)))


def _of(source: str, name: str) -> exp.Column:
    return exp.column(name, table=source, quoted=True)


def _join(person: Column, columns: list[Column], ours: tuple[str, ...], crowded: bool | None) -> exp.Select:
    """Everybody's rows with what is ours; with `crowded` only of those who have too many, or few enough."""
    on = exp.EQ(this=_of(STAGED, person.name), expression=_of(_PEOPLE, _ID))
    taken = [*(_of(STAGED, kind.name) for kind in columns), *(_of(_PEOPLE, name) for name in ours)]
    query = exp.select(*taken).from_(table(STAGED)).join(table(_PEOPLE), on=on)
    if crowded is None:
        return query
    return query.where(_of(_PEOPLE, _CROWDED) if crowded else exp.Not(this=_of(_PEOPLE, _CROWDED)))


def _cap(person: Column, columns: list[Column], ours: tuple[str, ...], rows: int, salt: bytes) -> exp.Query:
    """The rows of people who have few enough, and of the others the first ones by their hash."""
    names = [column(name) for name in (*(kind.name for kind in columns), *ours)]
    # SHA-256 of the salt and the row, then the row itself: rows that hash alike are alike, or ordered by value.
    # CONCAT_WS is named as it is, since no piece is null: for some engines the writer would wrap it in tests for that.
    pieces = [_text("|"), _text(salt.hex()), *(_piece(kind) for kind in columns)]
    hashed = exp.SHA2(this=exp.Anonymous(this="CONCAT_WS", expressions=pieces), length=exp.Literal.number(256))
    trees = [hashed, *(column(kind.name) for kind in columns)]
    order = exp.Order(expressions=[exp.Ordered(this=tree, nulls_first=True) for tree in trees])
    place = exp.Window(this=exp.RowNumber(), partition_by=[column(PERSON)], order=order)
    crowd = _join(person, columns, ours, True).subquery("crowd")
    ranked = exp.select(*names, exp.alias_(place, _PLACE, quoted=True)).from_(crowd).subquery("ranked")
    first = exp.select(*(name.copy() for name in names)).from_(ranked)
    first = first.where(exp.LTE(this=column(_PLACE), expression=whole(rows)))
    return exp.union(_join(person, columns, ours, False), first, distinct=False)


def _piece(kind: Column) -> exp.Expr:
    """A value as text that every engine writes alike; what no engine writes alike only orders rows of equal hash."""
    if kind.family == TEXT:
        shown: exp.Expr = column(kind.name)
    elif kind.family == DATE or (kind.family == NUMBER and not kind.floating and kind.scale == 0):
        shown = cast(column(kind.name), "VARCHAR")
    elif kind.family == TRUTH:
        shown = exp.Case(ifs=[exp.If(this=column(kind.name), true=_text("t"))], default=_text("f"))
    elif kind.family == NUMBER:
        value = cast(column(kind.name), "DOUBLE")
        cut = exp.Least(this=exp.Greatest(this=value, expressions=[double(-_FAR)]), expressions=[double(_FAR)])
        shown = cast(cast(exp.Floor(this=exp.Mul(this=cut, expression=double(_FINE))), "BIGINT"), "VARCHAR")
    else:
        shown = _text("")
    return exp.Case(ifs=[exp.If(this=missing(kind), true=_text("-"))], default=shown)


def _text(text: str) -> exp.Expr:
    return exp.Literal.string(text)

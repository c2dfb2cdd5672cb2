"""Before the first question, once per data version: whose row is whose, at most so many each, and a copy that is quick.

The copy has the table's columns, a number for each person and a code for each person's cohort. Rows that belong to
nobody are left out. Of people who have too many rows those with the smallest keyed hash of their content stay: which
ones stay depends on nobody else, on no order of rows, and on nothing that an engine does differently. How many rows
were left out is nobody's to know, so it is not reported.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.engines.base import DATE, NUMBER, OTHER, SOURCE, TEXT, TRUTH, Column, Engine, Schema
from epsilons.engines.trees import cast, column, double, missing, table, whole
from epsilons.errors import DataError
from epsilons.ledger.values import Members
from epsilons.summaries.sql import Prepared

PERSON, COHORT = "epsilons person", "epsilons cohort"
_PEOPLE, _STAGED = "epsilons people", "epsilons staged"
_ID, _CROWDED, _PLACE = "epsilons id", "epsilons crowded", "epsilons place"
#: Doubles are hashed on a grid of 2^-10, cut off where it would leave 64 bits.
_FINE, _FAR = 1024.0, 1e15
#: More bytes of digests than this are not kept in memory.
_MUCH = 1 << 24


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
    """Number the people, cap their rows, and copy. `ids[i]` has the digest `digests[i]`."""
    if any(name.casefold() in (PERSON, COHORT) for name in engine.schema):
        raise DataError(
            "A column is called as one that the copy needs.",
            rule=f"{PERSON!r} and {COHORT!r} are taken.",
            suggest="rename it",
        )
    places, cohorts = _places(digests, members)
    columns = [kind for kind in engine.schema.values() if kind.family != OTHER]
    origin = SOURCE
    if not engine.joins:
        engine.keep(_STAGED, exp.select(*(column(kind.name) for kind in columns)).from_(table(SOURCE)))
        origin = _STAGED
    crowd = _crowded(engine, origin, person, rows)
    numbers = np.arange(len(ids), dtype=np.int32)
    people = {_ID: ids, PERSON: numbers, COHORT: places}
    people[_CROWDED] = pc.is_in(ids, value_set=crowd.combine_chunks().cast(ids.type))
    engine.add(_PEOPLE, pa.table(people))
    name = _name(members.epoch)
    if len(crowd):
        schema = engine.keep(name, _capped(origin, person, columns, rows, salt))
    else:
        schema = engine.keep(name, _joined(origin, person, columns, None))
    engine.drop(_PEOPLE)
    if origin == _STAGED:
        engine.drop(_STAGED)
    asked = Schema([kind for kind in schema.values() if kind.name not in (PERSON, COHORT)])
    prepared = Prepared(engine, name, asked, COHORT, len(cohorts), len(ids) * rows, PERSON)
    return Preparation(prepared, members.epoch, _aside(digests), places, cohorts)


def renew(before: Preparation, members: Members) -> Preparation:
    """The same rows after people changed their minds: only the cohorts' codes are new."""
    engine, old = before.prepared.engine, before.prepared
    places, cohorts = _places(before.digests, members)
    numbers = np.arange(len(places), dtype=np.int32)
    engine.add(_PEOPLE, pa.table({_ID: numbers, COHORT: places}))
    name = _name(members.epoch)
    kept = [_of(old.name, column_name) for column_name in (*old.schema, PERSON)]
    query = (
        exp.select(*kept, _of(_PEOPLE, COHORT))
        .from_(table(old.name))
        .join(table(_PEOPLE), on=exp.EQ(this=_of(old.name, PERSON), expression=_of(_PEOPLE, _ID)))
    )
    engine.keep(name, query)
    engine.drop(_PEOPLE)
    engine.drop(old.name)
    prepared = Prepared(engine, name, old.schema, COHORT, len(cohorts), old.rows, PERSON)
    return Preparation(prepared, members.epoch, before.digests, places, cohorts)


def _aside(digests: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Many digests lie in a file without a name: they are asked for only when people are sampled or change cohorts."""
    if digests.nbytes < _MUCH:
        return digests
    with tempfile.TemporaryFile(prefix="epsilons-") as file:
        file.write(digests.data)
        file.flush()
        return np.memmap(file, np.uint8, "r", shape=digests.shape)


def _name(epoch: int) -> str:
    return f"epsilons rows {epoch}"


def _of(source: str, name: str) -> exp.Column:
    return exp.column(name, table=source, quoted=True)


def _places(digests: NDArray[np.uint8], members: Members) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Each person's cohort as a place in the list of cohorts, in a byte where it fits. Members are sorted by digest."""
    cohorts, found = np.unique(members.cohorts, return_inverse=True)
    codes = found.astype(np.uint8 if len(cohorts) <= 256 else np.int32)
    known, asked = _first_half(members.digests), _first_half(digests)
    if (known[1:] == known[:-1]).any():
        # Two people agree in 64 bits, which among ten million happens once in 370,000 rosters.
        known, asked = (np.ascontiguousarray(all_).view("S16").reshape(-1) for all_ in (members.digests, digests))
    # Sorted questions walk through the members in order, which a processor's cache rewards.
    order = np.argsort(asked)
    places = np.empty(len(asked), codes.dtype)
    places[order] = codes[np.searchsorted(known, asked[order])]
    return places, tuple(int(cohort) for cohort in cohorts)


def _first_half(digests: NDArray[np.uint8]) -> NDArray[Any]:
    """The first 8 bytes as numbers, which sort as the bytes do."""
    return np.ascontiguousarray(digests[:, :8]).view(">u8").reshape(-1).astype(np.uint64)


def _crowded(engine: Engine, origin: str, person: Column, rows: int) -> pa.ChunkedArray:
    """The ids of people with more rows than they may have."""
    crowd = exp.GT(this=exp.Count(this=exp.Star(), big_int=True), expression=whole(rows))
    query = exp.select(exp.alias_(column(person.name), "id")).from_(table(origin)).group_by(exp.Literal.number(1))
    return engine.run(query.having(crowd))["id"]


def _joined(origin: str, person: Column, columns: list[Column], crowded: bool | None) -> exp.Select:
    """Everybody's rows with PERSON and COHORT; with `crowded` only of those who have too many, or have not."""
    on = exp.EQ(this=_of(origin, person.name), expression=_of(_PEOPLE, _ID))
    taken: list[exp.Expr] = [_of(origin, kind.name) for kind in columns]
    query = exp.select(*taken, _of(_PEOPLE, PERSON), _of(_PEOPLE, COHORT)).from_(table(origin))
    query = query.join(table(_PEOPLE), on=on)
    if crowded is None:
        return query
    return query.where(_of(_PEOPLE, _CROWDED) if crowded else exp.Not(this=_of(_PEOPLE, _CROWDED)))


def _capped(origin: str, person: Column, columns: list[Column], rows: int, salt: bytes) -> exp.Query:
    """The rows of people who have few enough, and of the others the first ones by their hash."""
    names = [column(name) for name in (*(kind.name for kind in columns), PERSON, COHORT)]
    order = exp.Order(expressions=[exp.Ordered(this=tree, nulls_first=True) for tree in _ordering(columns, salt)])
    place = exp.Window(this=exp.RowNumber(), partition_by=[column(PERSON)], order=order)
    crowd = _joined(origin, person, columns, True).subquery("crowd")
    ranked = exp.select(*names, exp.alias_(place, _PLACE, quoted=True)).from_(crowd).subquery("ranked")
    first = exp.select(*(name.copy() for name in names)).from_(ranked)
    first = first.where(exp.LTE(this=column(_PLACE), expression=whole(rows)))
    return exp.union(_joined(origin, person, columns, False), first, distinct=False)


def _ordering(columns: list[Column], salt: bytes) -> list[exp.Expr]:
    """SHA-256 of the salt and the row, then the row itself: rows that hash alike are alike, or ordered by value."""
    pieces: list[exp.Expr] = [exp.Literal.string(salt.hex())]
    pieces += [_piece(kind) for kind in columns]
    # Named as it is, since no piece is null: for some engines the writer would wrap the function in tests for that.
    content = exp.Anonymous(this="CONCAT_WS", expressions=[exp.Literal.string("|"), *pieces])
    hashed = exp.SHA2(this=content, length=exp.Literal.number(256))
    return [hashed, *(column(kind.name) for kind in columns)]


def _piece(kind: Column) -> exp.Expr:
    """A value as text that every engine writes alike; what no engine writes alike only orders rows of equal hash."""
    if kind.family == TEXT:
        shown: exp.Expr = column(kind.name)
    elif kind.family == DATE or (kind.family == NUMBER and not kind.floating and kind.scale == 0):
        shown = cast(column(kind.name), "VARCHAR")
    elif kind.family == TRUTH:
        shown = exp.Case(ifs=[exp.If(this=column(kind.name), true=exp.Literal.string("t"))], default=_text("f"))
    elif kind.family == NUMBER:
        value = cast(column(kind.name), "DOUBLE")
        cut = exp.Least(this=exp.Greatest(this=value, expressions=[double(-_FAR)]), expressions=[double(_FAR)])
        fine = exp.Floor(this=exp.Mul(this=cut, expression=double(_FINE)))
        shown = cast(cast(fine, "BIGINT"), "VARCHAR")
    else:
        shown = _text("")
    return exp.Case(ifs=[exp.If(this=missing(kind), true=_text("-"))], default=shown)


def _text(word: str) -> exp.Expr:
    return exp.Literal.string(word)

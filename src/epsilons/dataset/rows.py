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
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.engines.base import DATE, NUMBER, OTHER, RESERVED, TEXT, TRUTH, Column, Engine, Schema
from epsilons.engines.trees import cast, column, double, missing, table, whole
from epsilons.errors import DataError
from epsilons.ledger.departures import Departures
from epsilons.ledger.order import Codes, Sorted, as_sorted, locate, look_up, tell_apart
from epsilons.ledger.values import Moves
from epsilons.storage.base import reach
from epsilons.summaries.sql import Prepared

if TYPE_CHECKING:
    import pyarrow as pa

PERSON, COHORT = f"{RESERVED}person", f"{RESERVED}cohort"
#: The copy of the source from which everything is read.
STAGED = f"{RESERVED}staged"
_PEOPLE, _ID, _CROWDED, _PLACE, _MOVED = (RESERVED + word for word in ("people", "id", "crowded", "place", "moved"))
_OURS = (PERSON, COHORT)
#: Doubles are hashed on a grid of 2^-10, cut off where it would leave 64 bits.
_FINE, _FAR = 1024.0, 1e15
#: An embedded engine's own name for the place of a row.
ROW = "rowid"
#: More bytes of digests than this are not kept in memory.
_MUCH = 1 << 24
#: So many people's rows are compared with their ids at a time.
_MANY = 1 << 22


def stage(engine: Engine) -> None:
    """Read the source, once, as `STAGED`; whoever reads people or rows reads them there."""
    if any(name.casefold().startswith(RESERVED) for name in engine.schema):
        rule = f"Names that begin with {RESERVED!r} are taken, in upper and lower case."
        raise DataError("A column has a reserved name.", rule=rule, suggest="rename it")
    reach("source unread")
    engine.stage(STAGED)
    reach("source read")


class Held(NamedTuple):
    """How many rows everybody has, and, in an embedded engine, where the first of them stands in what was staged."""

    counts: NDArray[np.integer]
    places: NDArray[np.unsignedinteger] | None

    def take(self, order: NDArray[np.integer]) -> Self:
        """The same in another order."""
        return self._replace(counts=self.counts[order], places=None if self.places is None else self.places[order])

    def and_others(self, number: int) -> Self:
        """With so many people after them who have no rows."""
        none = np.zeros(number, np.uint8)
        places = None if self.places is None else np.concatenate([self.places, none])
        return self._replace(counts=np.concatenate([self.counts, none]), places=places)


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows beside which the cohorts of their people stand, as they were when the rows were written.

    People are numbered in the order of their digests; `codes[i]` is the place of person i's cohort in `cohorts`, and
    stands beside their rows in the column `COHORT`. `line` is the last line of the ledger's journal that it knows of.
    """

    engine: Engine
    name: str
    schema: Schema
    digests: NDArray[np.uint8]
    codes: NDArray[Any]
    cohorts: tuple[int, ...]
    line: int
    rows: int


@dataclass(frozen=True, eq=False)
class Preparation:
    """What is asked: the rows, with the cohorts of those who changed their minds since in place of what was written.

    `numbers` are these people, `codes` the places of their cohorts in `cohorts`.
    """

    labelled: Labelled
    prepared: Prepared
    epoch: int
    cohorts: tuple[int, ...]
    numbers: Codes
    codes: NDArray[Any]

    @property
    def digests(self) -> NDArray[np.uint8]:
        """People's digests, by number."""
        return self.labelled.digests

    @cached_property
    def places(self) -> NDArray[Any]:
        """The place of each person's cohort in `cohorts`."""
        found = np.array(self.labelled.codes, np.min_scalar_type(len(self.cohorts)))
        found[self.numbers] = self.codes
        return found


def find_cohorts(digests: NDArray[np.uint8], people: Sorted, cohorts: Codes) -> Codes:
    """Everybody's cohort, of people who are among these, all sorted; -1 for those who are not."""
    return look_up(as_sorted(digests), people, cohorts, -1)


def as_codes(cohorts: Codes) -> tuple[NDArray[Any], tuple[int, ...]]:
    """(the place of each person's cohort, in a byte where it fits; the cohorts)."""
    listed, places = tell_apart(cohorts)
    return places, tuple(listed.tolist())


def prepare(
    engine: Engine, person: Column, ids: pa.Array, held: Held, digests: NDArray[np.uint8], standing: Moves, rows: int,
    salt: bytes,
) -> Preparation:  # fmt: skip
    """Of what was staged: cap people's rows and label them, inside the engine; people are in the order of digests.

    `standing` says where everyone is; whoever is nowhere has a cohort that no question uses.
    """
    codes, listed = as_codes(find_cohorts(digests, standing.people, standing.cohorts))
    name = f"{RESERVED}written {standing.epoch}"
    with cap_rows(engine, person, ids, held, rows, salt, {COHORT: codes}) as capped:
        schema = engine.keep(name, capped)
    reach("rows capped")
    try:
        check_copy(engine, name, person, ids, rows)
    except DataError:
        engine.drop(name)
        raise
    if digests.nbytes >= _MUCH:
        # They lie in a file without a name: they are asked for only when people are sampled or change cohorts.
        with tempfile.TemporaryFile(prefix="epsilons-") as file:
            file.write(digests.data)
            file.flush()
            digests = np.memmap(file, np.uint8, "r", shape=digests.shape)
    written = Labelled(engine, name, schema, digests, codes, listed, standing.line, len(ids) * rows)
    nobody = standing.people[:0], standing.cohorts[:0]
    return follow(written, Moves(standing.epoch, standing.line, *nobody, Departures.of([])))


def follow(written: Labelled, moves: Moves, before: Preparation | None = None) -> Preparation:
    """The rows with everybody's cohort of today: `moves` are those who changed theirs since the rows were written.

    Nothing is copied: where there are any, every question looks them up beside the rows that it reads.
    """
    engine, name = written.engine, written.name
    asked = Schema([kind for kind in written.schema.values() if kind.family != OTHER and kind.name not in _OURS])
    place = locate(as_sorted(written.digests), moves.people)
    here = place >= 0
    numbers, new = place[here], moves.cohorts[here]
    listed, which = np.unique(new, return_inverse=True)
    # Where everybody left a cohort at once, its code stands for the one that they went to, as another code may.
    stand: list[int] = moves.left.follow(np.array(written.cohorts, np.int64)).tolist()
    cohorts = (*stand, *sorted(set(listed.tolist()) - set(stand)))
    code_of = {cohort: code for code, cohort in enumerate(cohorts)}
    codes = np.array([code_of[cohort] for cohort in listed.tolist()], np.int32)[which.reshape(-1)]
    if before is not None and before.prepared.name != name:
        for old in (before.prepared.name, _moved(before.epoch)):
            engine.drop(old)
    if len(numbers):
        name = f"{RESERVED}rows {moves.epoch}"
        engine.add(_moved(moves.epoch), {_ID: numbers.astype(np.int32), _MOVED: codes})
        engine.define(name, _replace_cohorts(written, asked, _moved(moves.epoch)))
    prepared = Prepared(engine, name, asked, COHORT, len(cohorts), written.rows, PERSON)
    return Preparation(written, prepared, moves.epoch, cohorts, numbers, codes)


def _moved(epoch: int) -> str:
    return f"{_MOVED} {epoch}"


def _replace_cohorts(written: Labelled, asked: Schema, moved: str) -> exp.Select:
    kept = [_of(written.name, each) for each in (*asked, PERSON)]
    present = exp.Coalesce(this=_of(moved, _MOVED), expressions=[cast(_of(written.name, COHORT), "INT")])
    same = exp.EQ(this=_of(written.name, PERSON), expression=_of(moved, _ID))
    tree = exp.select(*kept, exp.alias_(present, COHORT, quoted=True)).from_(table(written.name))
    return tree.join(table(moved), on=same, join_type="left")


@contextmanager
def cap_rows(
    engine: Engine, person: Column, ids: pa.Array, held: Held, rows: int, salt: bytes, beside: Mapping[str, Any]
) -> Iterator[exp.Query]:
    """The query for everybody's rows, as many as they may have, with their person's number and what stands `beside` it.

    What was staged is dropped afterwards.
    """
    import pyarrow as pa

    columns, ours = [kind for kind in engine.schema.values() if kind.family != OTHER], (PERSON, *beside)
    labels = {PERSON: np.arange(len(ids), dtype=np.int32), **beside}
    if held.places is not None and (held.counts <= 1).all():
        _put_in_place(engine, held.counts, held.places, labels)
        query: exp.Query = _put_beside(columns, ours)
    else:
        crowded = held.counts > rows
        engine.add(_PEOPLE, pa.table({_ID: ids, **labels, _CROWDED: crowded}))
        query = _cap(person, columns, ours, rows, salt) if crowded.any() else _join(person, columns, ours, None)
    labels.clear()  # a column is as large as everybody
    reach("crowd counted")
    yield query
    engine.drop(_PEOPLE)
    engine.drop(STAGED)


def check_copy(engine: Engine, name: str, person: Column, ids: pa.Array, rows: int) -> None:
    """Refuse a copy in which anybody has more rows than they may, or another's: either would be a mistake of ours.

    People are numbered as their ids are listed.
    """
    if engine.embedded:  # comparing and counting here is quicker than grouping by people there
        wrong = any(_is_wrong(engine, name, person, ids, rows, start) for start in range(0, len(ids), _MANY))
    else:
        wrong = len(engine.fetch(_find_crowd(name, PERSON, rows))[_ID]) > 0
    if wrong:
        what = "The rows of this table were not capped, or not put beside their people; nothing was kept."
        rule = "Nobody has more rows than was declared, and everybody has their own."
        raise DataError(what, rule=rule, suggest="report this as a bug")


def _is_wrong(engine: Engine, name: str, person: Column, ids: pa.Array, rows: int, start: int) -> bool:
    """Of so many people from one on: they are as many as there is room for."""
    from_, before = exp.GTE(this=column(PERSON), expression=whole(start)), whole(start + _MANY)
    query = exp.select(column(person.name), column(PERSON)).from_(table(name))
    found = engine.run(query.where(from_, exp.LT(this=column(PERSON), expression=before)))
    numbers = found[PERSON].combine_chunks()
    own = found[person.name].combine_chunks().cast(ids.type).equals(ids.take(numbers))
    return not own or int(np.bincount(numbers.to_numpy() - start).max(initial=0)) > rows


def _find_crowd(name: str, key: str, rows: int) -> exp.Select:
    """Who has more rows than this."""
    query = exp.select(exp.alias_(column(key), _ID)).from_(table(name)).group_by(exp.Literal.number(1))
    return query.having(exp.GT(this=exp.Count(this=exp.Star(), big_int=True), expression=whole(rows)))


def _of(source: str, name: str) -> exp.Column:
    return exp.column(name, table=source, quoted=True)


def _put_in_place(
    engine: Engine, counts: NDArray[np.integer], places: NDArray[np.unsignedinteger], labels: Mapping[str, NDArray[Any]]
) -> None:
    """Labels of people who have one row at most, as columns in which they stand at the places of their rows."""
    everything = exp.select(exp.alias_(exp.Count(this=exp.Star(), big_int=True), "rows")).from_(table(STAGED))
    total, here = int(engine.fetch(everything)["rows"][0]), slice(None) if counts.all() else counts == 1
    engine.add(_PEOPLE, {name: _scatter(values[here], places[here], total) for name, values in labels.items()})


def _scatter(values: NDArray[Any], places: NDArray[np.unsignedinteger], total: int) -> NDArray[Any]:
    """Everybody's value at the place of their row, of so many rows; -1, or the largest, at those of nobody."""
    found = np.full(total, np.array(-1).astype(values.dtype))
    found[places] = values
    return found


def _put_beside(columns: list[Column], ours: tuple[str, ...]) -> exp.Select:
    """Rows of people who have one at most, with what is ours, by their places: quick, and in little memory.

    Both sides are whole: of a part of the rows, or a query of them, DuckDB need not keep the order.
    """
    taken = [*(_of(STAGED, kind.name) for kind in columns), *(_of(_PEOPLE, name) for name in ours)]
    query = exp.select(*taken).from_(table(STAGED))
    query.append("joins", exp.Join(this=table(_PEOPLE), method="POSITIONAL"))
    return query.where(exp.GTE(this=_of(_PEOPLE, PERSON), expression=whole(0)))


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

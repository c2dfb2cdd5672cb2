"""The people of a table: a copy of their rows that is quick to ask, and the summaries of it that mechanisms see.

The copy is made before the first question, once per data version. It has the table's columns, a number for each person
and a code for each person's cohort. Rows without a person are left out. Of people who have too many rows those with the
smallest keyed hash of their content stay: which ones stay depends on nobody else, on no order of rows, and on nothing
that an engine does differently. The number of dropped rows is private and is never reported.

Each summary is one query, and only summaries leave the engine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.engines.base import DATE, NUMBER, OTHER, SOURCE, TEXT, TRUTH, Column, Engine, Schema
from epsilons.engines.trees import Predicate, cast, column, double, missing, table, whole
from epsilons.errors import DataError
from epsilons.ledger.values import Members
from epsilons.noise.coins import binomial, keep_digests
from epsilons.noise.entropy import ALWAYS, Entropy
from epsilons.preferences import Levels
from epsilons.statistics.additive import Additive
from epsilons.statistics.order import Order
from epsilons.summaries import sql
from epsilons.summaries.arrays import too_many_samples
from epsilons.summaries.cells import SortedCells
from epsilons.summaries.columns import Keys
from epsilons.summaries.sql import Prepared

PERSON, COHORT = "epsilons person", "epsilons cohort"
_PEOPLE, _STAGED, _SAMPLED = "epsilons people", "epsilons staged", "epsilons sampled"
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
        raise DataError("A column has a reserved name.", rule=f"{PERSON!r} and {COHORT!r} are taken.")
    places, cohorts = _find_places(digests, members)
    columns = [kind for kind in engine.schema.values() if kind.family != OTHER]
    origin = SOURCE if engine.joins else _STAGED
    if origin == _STAGED:
        engine.keep(_STAGED, exp.select(*(column(kind.name) for kind in columns)).from_(table(SOURCE)))
    # The ids of people with more rows than they may have.
    query = exp.select(exp.alias_(column(person.name), "id")).from_(table(origin)).group_by(exp.Literal.number(1))
    many = exp.GT(this=exp.Count(this=exp.Star(), big_int=True), expression=whole(rows))
    crowd = engine.run(query.having(many))["id"]
    crowded = pc.is_in(ids, value_set=crowd.combine_chunks().cast(ids.type))
    numbers = np.arange(len(ids), dtype=np.int32)
    engine.add(_PEOPLE, pa.table({_ID: ids, PERSON: numbers, COHORT: places, _CROWDED: crowded}))
    name = f"epsilons rows {members.epoch}"
    capped = _cap(origin, person, columns, rows, salt) if len(crowd) else _join(origin, person, columns, None)
    schema = engine.keep(name, capped)
    engine.drop(_PEOPLE)
    if origin == _STAGED:
        engine.drop(_STAGED)
    asked = Schema([kind for kind in schema.values() if kind.name not in (PERSON, COHORT)])
    prepared = Prepared(engine, name, asked, COHORT, len(cohorts), len(ids) * rows, PERSON)
    if digests.nbytes >= _MUCH:
        # They lie in a file without a name: they are asked for only when people are sampled or change cohorts.
        with tempfile.TemporaryFile(prefix="epsilons-") as file:
            file.write(digests.data)
            file.flush()
            digests = np.memmap(file, np.uint8, "r", shape=digests.shape)
    return Preparation(prepared, members.epoch, digests, places, cohorts)


def renew(before: Preparation, members: Members) -> Preparation:
    """After people changed their minds: the rows stay, the cohorts' codes are new."""
    engine, old = before.prepared.engine, before.prepared
    places, cohorts = _find_places(before.digests, members)
    engine.add(_PEOPLE, pa.table({_ID: np.arange(len(places), dtype=np.int32), COHORT: places}))
    name = f"epsilons rows {members.epoch}"
    kept = [_of(old.name, column_name) for column_name in (*old.schema, PERSON)]
    same = exp.EQ(this=_of(old.name, PERSON), expression=_of(_PEOPLE, _ID))
    engine.keep(name, exp.select(*kept, _of(_PEOPLE, COHORT)).from_(table(old.name)).join(table(_PEOPLE), on=same))
    engine.drop(_PEOPLE)
    engine.drop(old.name)
    prepared = Prepared(engine, name, old.schema, COHORT, len(cohorts), old.rows, PERSON)
    return Preparation(prepared, members.epoch, before.digests, places, cohorts)


def _of(source: str, name: str) -> exp.Column:
    return exp.column(name, table=source, quoted=True)


def _find_places(digests: NDArray[np.uint8], members: Members) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Each person's cohort as a place in the list of cohorts, in a byte where it fits. Members are sorted by digest."""
    cohorts, found = np.unique(members.cohorts, return_inverse=True)
    codes = found.astype(np.min_scalar_type(max(len(cohorts) - 1, 0)))
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


def _join(origin: str, person: Column, columns: list[Column], crowded: bool | None) -> exp.Select:
    """Everybody's rows with PERSON and COHORT; with `crowded` only of those who have too many, or few enough."""
    on = exp.EQ(this=_of(origin, person.name), expression=_of(_PEOPLE, _ID))
    taken = [*(_of(origin, kind.name) for kind in columns), _of(_PEOPLE, PERSON), _of(_PEOPLE, COHORT)]
    query = exp.select(*taken).from_(table(origin)).join(table(_PEOPLE), on=on)
    if crowded is None:
        return query
    return query.where(_of(_PEOPLE, _CROWDED) if crowded else exp.Not(this=_of(_PEOPLE, _CROWDED)))


def _cap(origin: str, person: Column, columns: list[Column], rows: int, salt: bytes) -> exp.Query:
    """The rows of people who have few enough, and of the others the first ones by their hash."""
    names = [column(name) for name in (*(kind.name for kind in columns), PERSON, COHORT)]
    # SHA-256 of the salt and the row, then the row itself: rows that hash alike are alike, or ordered by value.
    # CONCAT_WS is named as it is, since no piece is null: for some engines the writer would wrap it in tests for that.
    pieces = [_text("|"), _text(salt.hex()), *(_piece(kind) for kind in columns)]
    hashed = exp.SHA2(this=exp.Anonymous(this="CONCAT_WS", expressions=pieces), length=exp.Literal.number(256))
    trees = [hashed, *(column(kind.name) for kind in columns)]
    order = exp.Order(expressions=[exp.Ordered(this=tree, nulls_first=True) for tree in trees])
    place = exp.Window(this=exp.RowNumber(), partition_by=[column(PERSON)], order=order)
    crowd = _join(origin, person, columns, True).subquery("crowd")
    ranked = exp.select(*names, exp.alias_(place, _PLACE, quoted=True)).from_(crowd).subquery("ranked")
    first = exp.select(*(name.copy() for name in names)).from_(ranked)
    first = first.where(exp.LTE(this=column(_PLACE), expression=whole(rows)))
    return exp.union(_join(origin, person, columns, False), first, distinct=False)


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


@dataclass(frozen=True, eq=False)
class TablePeople:
    """What a question sees: a prepared table, a column, a condition, groups, and the level of each cohort.

    `places[c]` is the level of the c-th cohort of the preparation, -1 for those who are not used.
    """

    preparation: Preparation
    column: str | None
    where: Predicate | None
    by: Keys | None
    levels: Levels
    places: NDArray[np.int64]

    def tally(self, statistic: Additive) -> list[NDArray[np.int64]]:
        return self._tally(statistic, self.preparation.prepared)

    def sampled_tally(self, statistic: Additive, chances: Sequence[int], entropy: Entropy) -> list[NDArray[np.int64]]:
        with self._sampled(chances, entropy) as sampled:
            return self._tally(statistic, sampled)

    def cells(self, statistic: Order) -> SortedCells:
        (found,) = self.grouped_cells(statistic)
        return found

    def grouped_cells(self, statistic: Order) -> list[SortedCells]:
        found = self._cells(statistic, self.preparation.prepared)
        if statistic.scope is not None:
            return found
        # A public number of values: people on the roster without a row are missing, as those without a value are.
        return [cells.with_missing(np.array(self.levels.sizes, np.int64) - cells.totals) for cells in found]

    def sampled_cells(self, statistic: Order, chances: Sequence[int], entropy: Entropy) -> list[SortedCells]:
        with self._sampled(chances, entropy) as sampled:
            found = self._cells(statistic, sampled)
        if not statistic.imputes:
            return found
        # People on the roster without a row have coins, too.
        there = np.bincount(self.places[self.preparation.places] + 1, minlength=len(chances) + 1)[1:]
        without = (np.array(self.levels.sizes) - there).tolist()
        pairs = zip(without, chances, strict=True)
        others = [n if chance >= ALWAYS else binomial(entropy, n, chance) for n, chance in pairs]
        return [cells.with_missing(cells.missing + np.array(others, np.int64)) for cells in found]

    def _tally(self, statistic: Additive, prepared: Prepared) -> list[NDArray[np.int64]]:
        """From [group, cohort, cell] to [level, group and cell]; cohorts that are not used are left out."""
        tallies, size, used = [], len(self.levels.grants), self.places >= 0
        for part in sql.tally(prepared, statistic, self.column, where=self.where, by=self.by):
            levels = np.zeros((size, part.shape[0], part.shape[2]), np.int64)
            np.add.at(levels, self.places[used], part[:, used].transpose(1, 0, 2))
            tallies.append(levels.reshape(size, -1))
        return tallies

    def _cells(self, statistic: Order, prepared: Prepared) -> list[SortedCells]:
        assert self.column is not None
        found = sql.cells(prepared, statistic, self.column, where=self.where, by=self.by)
        return [cells.sorted_cells(self.places, len(self.levels.grants)) for cells in found]

    def samples(self, chances: Sequence[int] | None) -> Iterator[tuple[float, TablePeople]]:
        if chances is not None:
            raise too_many_samples()
        yield 1.0, self

    def _sampled(self, chances: Sequence[int], entropy: Entropy) -> AbstractContextManager[Prepared]:
        """No sample where grants alone say that everyone who is used is certain to be in; others have no level."""
        return nullcontext(self.preparation.prepared) if min(chances) >= ALWAYS else self.sampled(chances, entropy)

    @contextmanager
    def sampled(self, chances: Sequence[int], entropy: Entropy) -> Iterator[Prepared]:
        """The table with the rows of a fresh random sample of people only, all of a person's rows or none."""
        prepared = self.preparation.prepared
        codes = self.places.astype(np.int16)[self.preparation.places]  # at most 256 levels
        kept = keep_digests(entropy, self.preparation.digests, codes, chances)
        prepared.engine.add(_SAMPLED, pa.table({sql.KEPT: np.flatnonzero(kept).astype(np.int32)}))
        try:
            yield replace(prepared, only=_SAMPLED)
        finally:
            prepared.engine.drop(_SAMPLED)

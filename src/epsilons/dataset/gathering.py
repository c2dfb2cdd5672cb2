"""What rows say of their people, gathered by person: ids, how many rows there are and where, the least of a value."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.dataset.rows import ROW, STAGED, Held
from epsilons.engines.base import Column, Engine
from epsilons.engines.trees import bit, cast, column, met, present, table, whole

#: As many people as rows, as far as a rough count can tell.
_NEARLY = 0.9


class StagedRows(NamedTuple):
    """Rows that were staged, and whose they are; `alone`: it is taken that everybody has one at most."""

    engine: Engine
    person: Column
    alone: bool = False

    def take_least(self, value: exp.Expr, nothing: exp.Expr) -> tuple[pa.Array, pa.Array, NDArray[np.bool_], Held]:
        """(ids, the least value of each person's rows, whether none of these says anything, the rows)."""
        found = self.by_person({"asked": value, "unsaid": cast(bit(nothing.copy()), "TINYINT")})
        ids, asked, unsaid = (found[name].combine_chunks() for name in ("id", "asked", "unsaid"))
        return ids, asked, unsaid.to_numpy(zero_copy_only=False) == 1, read_held(found)

    def by_person(self, wanted: Mapping[str, exp.Expr]) -> pa.Table:
        """The least of what is wanted of everybody's rows, their ids, and how many rows they have where."""
        least = wanted if self.alone else {name: exp.Min(this=tree) for name, tree in wanted.items()}
        query = self._select({"id": column(self.person.name), **least, **self._held()})
        return self.engine.run(query if self.alone else query.group_by(exp.Literal.number(1)))

    def seem_alone(self) -> bool:
        """A rough look, which costs next to nothing."""
        people, rows = exp.ApproxDistinct(this=column(self.person.name)), exp.Count(this=exp.Star(), big_int=True)
        found = self.engine.fetch(self._select({"people": people, "rows": rows}))
        return bool(found["people"][0] > _NEARLY * found["rows"][0])

    def _select(self, outputs: Mapping[str, exp.Expr]) -> exp.Select:
        query = exp.select(*(exp.alias_(tree, name) for name, tree in outputs.items())).from_(table(STAGED))
        return query.where(met(present(self.person)))

    def _held(self) -> dict[str, exp.Expr]:
        """What to ask for `read_held`."""
        counted = cast(whole(1), "TINYINT") if self.alone else exp.Count(this=exp.Star(), big_int=True)
        # A column of that name would hide the number of a row.
        placed = self.engine.embedded and ROW not in map(str.casefold, self.engine.schema)
        # Places that need more than four bytes are an error: people are then gathered.
        place = cast(exp.column(ROW), "UINT") if self.alone else exp.Min(this=exp.column(ROW))
        return {"rows": counted} | ({"place": place} if placed else {})


def read_held(found: pa.Table) -> Held:
    """Of a result by person."""
    return Held(_read_small(found["rows"]), _read_small(found["place"]) if "place" in found.column_names else None)


def _read_small(numbers: pa.ChunkedArray) -> NDArray[np.unsignedinteger]:
    """In as few bytes as they need: there are as many as people."""
    read: NDArray[np.integer] = numbers.to_numpy()
    return read.astype(np.min_scalar_type(read.max(initial=0)), copy=False)

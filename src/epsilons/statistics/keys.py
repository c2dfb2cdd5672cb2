"""The groups and categories that a caller asked for by name: how a query finds them, and their places in its result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.engines.base import TEXT, Column, Schema
from epsilons.engines.trees import MismatchError, canonical, column, literal, whole
from epsilons.errors import DataError, PlanError
from epsilons.statistics.steps import MISSING

MOST_GROUPS = 100_000
_KEYS_RULE = "Keys come from the caller; reading them from the table would show who is in it."
_KEYS_HINT = 'by={"region": ["north", "south"]}'


class Keys:
    """The groups asked for, given by the caller: every combination of the keys of one or more columns.

    Words are looked up in a list of their own, which is joined (several times as quick as IN, and groups by number);
    other keys are compared. `role` keeps apart the lists of two sets of keys in one query.
    """

    def __init__(self, columns: tuple[Column, ...], given: tuple[tuple[Any, ...], ...], role: str = "key") -> None:
        self.columns = columns
        self.given = given
        self._lists = [f"epsilons {role} {place}" for place in range(len(columns))]
        self._known = [self._places(kind, values) for kind, values in zip(columns, given, strict=True)]
        if math.prod(map(len, given)) > MOST_GROUPS:
            raise PlanError("Too many groups.", rule=f"At most {MOST_GROUPS:,} combinations.", hint="fewer keys")

    @classmethod
    def of(cls, by: Mapping[str, Sequence[Any]], schema: Schema) -> Keys:
        """Checked against the schema, before anything is read."""
        if not isinstance(by, Mapping) or not by:
            raise PlanError("Groups are not columns with keys.", rule=_KEYS_RULE, hint=_KEYS_HINT)
        given = []
        for values in by.values():
            if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
                raise PlanError("Keys are not a list.", rule=_KEYS_RULE, hint=_KEYS_HINT)
            given.append(tuple(value.item() if isinstance(value, np.generic) else value for value in values))
        return cls(tuple(schema.askable(name) for name in by), tuple(given))

    @property
    def labels(self) -> list[Any]:
        """The groups in the caller's order; tuples for several columns, the last running fastest."""
        return [key[0] if len(key) == 1 else key for key in product(*self.given)]

    @property
    def count(self) -> int:
        """How many groups there are."""
        return math.prod(len(values) for values in self.given)

    @property
    def trees(self) -> list[exp.Expr]:
        """What to group by: the place of a word in its list, or the value itself."""
        pairs = zip(self.columns, self._lists, strict=True)
        return [column(listed if kind.family == TEXT else kind.name) for kind, listed in pairs]

    def join(self, query: exp.Select) -> exp.Select:
        """With the lists of words; rows of no group that was asked for are not even read into a group."""
        for kind, known, listed in zip(self.columns, self._known, self._lists, strict=True):
            if kind.family == TEXT:
                rows = [exp.Tuple(expressions=[literal(word, kind), whole(place)]) for word, place in known.items()]
                names = [exp.to_identifier(name, quoted=True) for name in (listed + " word", listed)]
                alias = exp.TableAlias(this=exp.to_identifier(listed, quoted=True), columns=names)
                same = exp.EQ(this=column(kind.name), expression=column(listed + " word"))
                query = query.join(exp.Values(expressions=rows, alias=alias), on=same, copy=False)
        return query

    def compare(self, query: exp.Select) -> exp.Select:
        """The same without lists, for engines to which a joined list is a job of its own: words become their places."""
        for kind, known, listed in zip(self.columns, self._known, self._lists, strict=True):
            if kind.family == TEXT:
                words = {literal(word, kind): place for word, place in known.items()}
                ifs = [
                    exp.If(this=exp.EQ(this=column(kind.name), expression=w), true=whole(p)) for w, p in words.items()
                ]
                place = exp.Case(ifs=ifs) if ifs else exp.null()
                moved = query.transform(partial(_replaced, listed, place))
                assert isinstance(moved, exp.Select)
                among = exp.In(this=column(kind.name), expressions=[word.copy() for word in words])
                query = moved.where(among if words else exp.false(), copy=False)
        return query

    def conditions(self) -> list[exp.Expr]:
        """What the rows of the groups meet, where no list of words says it."""
        trees: list[exp.Expr] = []
        for kind, known in zip(self.columns, self._known, strict=True):
            if kind.family != TEXT:
                values = [literal(value, kind) for value in known]
                trees.append(exp.In(this=column(kind.name), expressions=values) if values else exp.false())
        return trees

    def groups(self, columns: list[pa.ChunkedArray]) -> NDArray[np.int64]:
        """The group of each row of a result."""
        group = np.zeros(len(columns[0]), np.int64)
        for kind, known, given, values in zip(self.columns, self._known, self.given, columns, strict=True):
            if kind.family == TEXT:
                found = integers(values, MISSING)
            else:
                encoded = values.combine_chunks().dictionary_encode()
                places = [known.get(_returned(value, kind), MISSING) for value in encoded.dictionary.to_pylist()]
                found = np.array([*places, MISSING], np.int64)[integers(encoded.indices, MISSING)]
            group = np.where((group < 0) | (found < 0), MISSING, group * len(given) + found)
        return group

    @staticmethod
    def _places(kind: Column, values: tuple[Any, ...]) -> dict[Any, int]:
        """Canonical value to place; what the column's type cannot hold has no rows and is left out."""
        try:
            known = [canonical(value, kind) for value in values]
        except (MismatchError, OverflowError):
            known = []
        if not known:
            raise DataError(
                f"Keys of column {kind.name!r} are missing or of another type.",
                rule=f"The column holds {kind.family}; keys are given, as they stand in the table.",
                hint=_KEYS_HINT,
            )
        held = [value for value in known if value is not None]
        if len(set(held)) < len(held):
            raise PlanError("Keys repeat.", rule="Every row is in one group.", hint=_KEYS_HINT)
        return {value: place for place, value in enumerate(known) if value is not None}


def _replaced(name: str, tree: exp.Expr, node: exp.Expr) -> exp.Expr:
    return tree.copy() if isinstance(node, exp.Column) and node.name == name else node


def integers(values: Any, default: int = 0) -> NDArray[np.int64]:
    """A column of a result as numpy; null is the default."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    numbers: NDArray[np.int64] = array.cast(pa.int64()).fill_null(default).to_numpy(zero_copy_only=False)
    return numbers


def _returned(value: Any, kind: Column) -> Any:
    """A value of a result in canonical form; None for null."""
    try:
        return None if value is None else canonical(value, kind)
    except MismatchError:  # NaN
        return None

"""Public columns: what everybody may know of everybody on the roster, such as the region they live in.

They are read once, at registration, and are then part of the roster: each person has one value, the same in all their
rows, and it is known for everyone. A column that says different things in a person's rows, or nothing, is no fact about
people that all may know, and is refused: who is asked about, and so who pays, would depend on rows, which are private.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from epsilons.dataset.rows import STAGED
from epsilons.engines.base import DATE, NUMBER, TEXT, TRUTH, Column, Engine
from epsilons.engines.trees import bit, column, met, missing, present, table
from epsilons.errors import Argument, DataError
from epsilons.ledger.consent import Word
from epsilons.ledger.journal import to_json
from epsilons.ledger.order import tell_apart

if TYPE_CHECKING:
    import pyarrow as pa

#: People are told apart by so many combinations of public values at most: cohorts stay few.
MOST = 256
_PUBLIC = Argument("public")
_FROM_ROWS = "A public column is part of the roster: one value for everybody, the same in all their rows."


class PublicValues(NamedTuple):
    """What public columns say: `told[codes[i]]` of person i, as JSON."""

    told: tuple[str, ...] = ("",)
    codes: NDArray[np.integer] | None = None

    def take(self, order: NDArray[np.integer]) -> PublicValues:
        """The same in another order of people."""
        return self if self.codes is None else self._replace(codes=self.codes[order])

    def join(
        self, words: list[Word], places: NDArray[np.unsignedinteger]
    ) -> tuple[list[Word], NDArray[np.unsignedinteger]]:
        """Words, each with what public columns say of who said it; and which of them each person said."""
        if self.codes is None:
            return words, places
        pairs, found = tell_apart(places.astype(np.int32) * len(self.told) + self.codes)
        both = [divmod(pair, len(self.told)) for pair in pairs.tolist()]
        return [words[word]._replace(public=self.told[code]) for word, code in both], found

    def list_values(self) -> dict[str, list[Any]]:
        """The values that occur, by column."""
        found: dict[str, dict[Any, None]] = {}
        for known in map(json.loads, filter(None, self.told)):
            for name, value in known.items():
                found.setdefault(name, {})[value] = None
        return {name: sorted(values) for name, values in found.items()}


NOTHING_PUBLIC = PublicValues()


def check_public(kind: Column, person: str) -> Column:
    """A column whose values are told apart exactly, and are not ids."""
    exact = kind.family in (TEXT, TRUTH, DATE) or (kind.family == NUMBER and not kind.floating and kind.scale == 0)
    if kind.name == person or not exact:
        held = "ids" if kind.name == person else "numbers that are not whole" if kind.family == NUMBER else kind.family
        rule = "Public columns hold text, whole numbers, days or truth values, a few of them for many people."
        raise DataError(f"Column {kind.name!r} holds {held}, and cannot be public.", rule=rule, suggest=_PUBLIC)
    return kind


def read_public(engine: Engine, person: Column, names: Sequence[str], ids: pa.Array) -> PublicValues:
    """What was staged says of these people; refused where it is not one thing for everybody.

    Nothing that was read is in a message: the column may be another one than was meant.
    """
    import pyarrow.compute as pc

    if not names:
        return NOTHING_PUBLIC
    kinds = [check_public(engine.schema.find(name), person.name) for name in names]
    outputs: dict[str, exp.Expr] = {"id": column(person.name)}
    for place, kind in enumerate(kinds):
        outputs[f"least {place}"] = exp.Min(this=column(kind.name))
        outputs[f"most {place}"] = exp.Max(this=column(kind.name))
        outputs[f"unsaid {place}"] = exp.Max(this=bit(missing(kind)))
    query = exp.select(*(exp.alias_(tree, name, quoted=True) for name, tree in outputs.items()))
    found = engine.run(query.from_(table(STAGED)).where(met(present(person))).group_by(exp.Literal.number(1)))
    at = pc.index_in(ids, value_set=found["id"].combine_chunks().cast(ids.type))
    for place, kind in enumerate(kinds):
        unsaid = at.null_count or pc.any(pc.equal(found[f"unsaid {place}"], 1)).as_py()
        differs = pc.any(pc.not_equal(found[f"least {place}"], found[f"most {place}"])).as_py()
        check_alike(kind.name, bool(unsaid), bool(differs))
    codes = np.zeros(len(found), np.int64)
    told: list[dict[str, Any]] = [{}]
    for place, kind in enumerate(kinds):
        values = found[f"least {place}"].combine_chunks().dictionary_encode()
        span = len(values.dictionary)
        both = codes * span + values.indices.to_numpy(zero_copy_only=False)
        pairs, codes = np.unique(both, return_inverse=True)
        if len(pairs) > MOST:
            rule = f"They tell people apart by {MOST} combinations of values at most."
            raise DataError("These public columns have too many values.", rule=rule, suggest=("fewer of ", _PUBLIC))
        plain = [one.as_py() for one in values.dictionary]
        told = [{**told[pair // span], kind.name: _plain(plain[pair % span])} for pair in pairs.tolist()]
    places = codes[at.to_numpy(zero_copy_only=False)].astype(np.uint8)
    return PublicValues(tuple(map(to_json, told)), places)


def check_alike(name: str, unsaid: bool, differs: bool) -> None:
    """A column says one thing of everybody: else who is asked about would depend on rows, which are private."""
    if unsaid:
        what = f"Column {name!r} does not say something about everybody on the roster."
        hint = ("a value in every row, and a row of everybody who is listed; or leave it out of ", _PUBLIC)
        raise DataError(what, rule=_FROM_ROWS, suggest=hint)
    if differs:
        what = f"Column {name!r} says different things in the rows of one person."
        raise DataError(what, rule=_FROM_ROWS, suggest=("leave it out of ", _PUBLIC))


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int)) else str(value)


def as_known(told: Mapping[str, Any], kinds: Mapping[str, Column]) -> dict[str, Any]:
    """Public values of a cohort in the form in which conditions compare them."""
    from epsilons.engines.trees import canonical

    return {name: canonical(value, kinds[name]) for name, value in told.items() if name in kinds}

"""What the catalogue says of a statistic: how fronts call it, how arguments make it, and what is said about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from epsilons.arguments.options import ARRAYS, BATCHES, TABLES, Parameter
from epsilons.statistics.base import RowScope, Statistic


@dataclass(frozen=True, eq=False)
class Entry:
    """One statistic, as all fronts know it."""

    name: str
    build: Callable[[Mapping[str, Any], RowScope], Statistic]
    #: Its own arguments; each says on which fronts it is taken.
    arguments: tuple[Parameter, ...]
    #: What the function on arrays says of itself, what the method of a table does, and examples for the function.
    doc: str
    table_doc: str
    examples: str = ""
    #: The command: its summary, and an example that works as pasted.
    help: str = ""
    command: str = ""
    #: The aggregates of SQL that mean it, by sqlglot's names.
    sql: tuple[str, ...] = ()
    #: "required" or "optional": whether it is taken of a column.
    column: Literal["required", "optional"] = "required"
    #: Whether it is a model of a target by features, rather than a number of one column.
    model: bool = False
    #: Whether that is of one other column alone, and the answer a number.
    pair: bool = False
    #: Whether its column may hold words.
    text: bool = False
    #: What becomes of a person whose value is missing: not counted, or left out; at the centre if asked for, and
    #: against the word that nothing is missing, but for mechanisms that leave them out then, too.
    missing: Literal["left out", "not counted", "left out or centred"] = "left out"
    #: Whether a part of its budget pays for its interval: `for_interval` says which.
    pays_for_interval: bool = False
    #: A small one of it and values to audit it with: before "auto" may choose what is from another package.
    example: tuple[Statistic, tuple[Any, ...]] | None = None

    def own(self, front: str) -> dict[str, Parameter]:
        """Its own arguments on a front, by name."""
        return {argument.name: argument for argument in self.arguments if front in argument.fronts}


ON_ARRAYS, ON_TABLES = frozenset({ARRAYS}), frozenset({TABLES, BATCHES})
Bounds = tuple[float, float] | None
BOUNDS = Parameter("bounds", Bounds, None, "Public bounds of the values: (low, high).")
STEP = Parameter("step", float | None, None, "Distance between possible answers (65,536 steps unless given).")

"""What becomes of missing values: one rule for arrays and tables.

A number of values is public only if everybody on the roster has exactly one: no condition, no groups, one row per
person, and nothing that can be missing. Nothing is missing by the caller's word (`complete=True`), by the steward's
(the columns that a table declares), or by type (whole numbers and truths of numpy, as values of an array); and with
`missing="center"` whatever is missing stands at the public centre. Otherwise missing values are left out, and the
statistic is one that pays for its denominator. Counts and histograms do not count what is missing, models do not use
people of whom something is missing: there is no denominator to pay for.

A table's columns are not complete by type: people on the roster may have no row.
"""

from collections.abc import Hashable
from typing import Any

import numpy as np

from epsilons.arguments.reading import AskOptions
from epsilons.errors import Argument, PlanError, Text
from epsilons.statistics.base import Scope
from epsilons.statistics.entry import Entry, RowScope

LEFT_OUT = "Missing values are left out; how many there are is private, and paid for where an answer divides by it."
AT_CENTRE = "Missing values stand at the centre of the bounds."
COMPLETE = "Nothing is missing in this column, by the steward's word; a value that is missing stands at the centre."
BY_WORD = "Nothing is missing, by the caller's word; a value that is missing stands at the centre."
BY_TYPE = "Nothing is missing: whole numbers and truths of numpy are all there."
NOT_COUNTED = "Missing values are not counted."
INCOMPLETE = "People of whom a feature or the target is missing add nothing."


def scope_rows(
    entry: Entry,
    options: AskOptions,
    neighbors: str,
    *,
    rows: int = 1,
    groups: tuple[Hashable, ...] | None = None,
    column: bool = True,
    declared: str = "",
    unbounded: bool = False,
) -> tuple[RowScope, str]:
    """(which rows a statistic is taken over, what its release says of missing values).

    `declared` says why nothing is missing where the data's description says so; `missing="exclude"`, spelled out,
    relies on nobody's word. Where nothing is known of how many count, a condition is taken to let half of the people
    pass; without one nearly everyone is taken to have a value.
    """
    fixed = options.where is None and options.by is None and rows == 1
    _check(entry, options, fixed)
    left_out = not entry.model and entry.missing == "left out"
    note = INCOMPLETE if entry.model else LEFT_OUT if left_out else NOT_COUNTED
    why = {"center": AT_CENTRE, "exclude": ""}.get(options.missing or "", BY_WORD if options.complete else declared)
    complete = fixed and why != ""
    fraction = (1.0 if options.where is None else 0.5) / (1 if groups is None else len(groups))
    if entry.column == "optional":  # of one group, or of a column, a half: else everyone would count for certain
        fraction = min(fraction, 0.5)
    guessed = fraction if options.density is None else options.density
    scope = Scope(rows, groups, guessed, only_missing=fixed and left_out)
    over = RowScope(scope, fixed, complete, column, neighbors, options.location, unbounded)
    said = left_out or entry.model or (entry.name == "count" and over.centred)
    return over, why if complete and said else note


def _check(entry: Entry, options: AskOptions, fixed: bool) -> None:
    """Refuse words about missing values that contradict the question or one another."""
    centre, word = Argument("missing", "center"), Argument("complete", True)
    without: Text = ("leave ", Argument("missing" if options.missing else "complete"), " out")
    if options.complete and options.missing is not None:
        both = ("Both ", Argument("missing"), " and ", Argument("complete"), " were given.")
        raise PlanError(both, rule="Where nothing is missing, there is nothing to treat.", suggest=without)
    if options.missing == "center" and (entry.model or entry.missing == "not counted"):
        rule = INCOMPLETE if entry.model else NOT_COUNTED
        raise PlanError(f"A {entry.name} has no centre.", rule=rule, suggest=without)
    if (options.complete or options.missing == "center") and not fixed:
        what = (word if options.complete else centre, " needs a public number of values.")
        rule = "With a condition, groups or several rows per person it is private."
        raise PlanError(what, rule=rule, suggest=without if options.complete else Argument("missing", "exclude"))


def never_missing(values: Any) -> bool:
    """Whether the declared type has no missing values: whole numbers and truths of numpy, in pandas too.

    All other types have some: nulls, NaN or masks. What declares nothing is not looked at.
    """
    if hasattr(values, "columns"):
        return bool(kinds := list(getattr(values, "dtypes", ()))) and all(map(_is_whole, kinds))
    return _is_whole(getattr(values, "dtype", None)) and not isinstance(values, np.ma.MaskedArray)


def _is_whole(kind: Any) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in "biu"

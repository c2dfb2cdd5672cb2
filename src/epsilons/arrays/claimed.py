"""A function of one's own: how it sees people, how it is called, and how a claim about it is tested.

A claim such as a sensitivity is the caller's word. Where a public `domain` of values is given, it is tested on made-up
data of as many people before any value is read, and refused with the pair that breaks it. Private values are never
searched: a refusal would tell of them.
"""

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from inspect import signature
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import NUMBERS, check_name
from epsilons.auditing.made_up import MANY_PEOPLE, Pair, check_domain, list_pairs
from epsilons.display import show
from epsilons.errors import DataError, PlanError
from epsilons.guarantee import NEIGHBORS, to_epsilon
from epsilons.preferences import Roster
from epsilons.summaries.arrays import as_numbers, check_values

HIDDEN = "What it raised or returned is not shown: it may be data."
#: An error would tell of the values, so that there is none; whoever makes a claim makes it of that, too.
FAILURES = "It covers failures: where the function fails or gives no number its answer is 0, and nobody is told."
UNTESTED = "{what} is the caller's word; nothing here tested it."
TESTED = "{what} is the caller's word; a search of {pairs:,} pairs of made-up data did not refute it."
#: How many values a search hands to a function altogether, and how many data sets it makes at most.
WORK, MOST = 2_000_000, 256
FEWEST = 12
_TWO = "lambda value, option: ..."


def show_people(values: Any, people: int) -> NDArray[Any]:
    """Everybody's values as a function sees them: numbers as floats with NaN for none, all else as it is, or None."""
    array = check_values(values, people)
    if isinstance(array, np.ma.MaskedArray):
        array = np.array(array.tolist(), dtype=object)
    if array.dtype.kind == "O" and all(value is None or isinstance(value, NUMBERS) for value in array):
        return as_numbers(array)
    return array.copy()


def call_quietly(
    compute: Callable[[], Any], read: Callable[[Any], Any], what: str, loudly: bool = False, instead: Any = None
) -> Any:
    """What a function gives, as `read` reads it; where it fails that is `instead`, or else an error of one fixed text.

    That there is an error tells of the values: where a promise is DP, and they are not public, there is an `instead`.
    Only on made-up data may it be `loudly`.
    """
    if loudly:
        return read(compute())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = read(compute())
    except (Exception, SystemExit, GeneratorExit):
        found = None
    if found is None and instead is not None:
        return instead
    if found is None:
        raise DataError(f"The function did not give {what}.", rule=HIDDEN)
    return found


def tell_claim(pairs: int | None, what: str) -> str:
    """Whose word a promise rests on, and whether anything tested it."""
    told = UNTESTED.format(what=what) if pairs is None else TESTED.format(what=what, pairs=pairs)
    return f"{told} {FAILURES}"


def try_out(function: Callable[..., Any], name: str, domain: Any, options: Sequence[Any]) -> int | None:
    """On how many made-up values a function of a value and an option gave numbers; refused where it did not.

    What it does on people's values is never told. Whether it takes two arguments can be told without any.
    """
    with suppress(ValueError):  # some built-in functions have no signature
        try:
            signature(function).bind(None, options[0])
        except TypeError:
            rule = "It is called with a value and an option; where it fails nobody would be told."
            raise PlanError(f"The {name} does not take two arguments.", rule=rule, suggest=_TWO) from None
    if domain is None:
        return None
    values = check_domain(domain)
    for value, option in product(values, options):
        try:
            fine = not np.isnan(float(function(value, option)))
        except Exception as error:
            failed = f"On made-up data the {name} failed with {type(error).__name__}."
            raise PlanError(failed, rule=f"It is called with {tell_data((value, option))}.", suggest=_TWO) from error
        if not fine:
            rule = f"It was called with {tell_data((value, option))}."
            raise PlanError(f"On made-up data the {name} gave no number.", rule=rule)
    return len(values)


def search_claim(
    move: Callable[[NDArray[Any], NDArray[Any]], float],
    allowed: Sequence[float],
    roster: Roster,
    domain: Any,
    neighbors: str,
    what: str,
) -> int | None:
    """How many pairs of made-up data were tried, none of which breaks a claim; None without a domain.

    `move(one, other)` is how far the function moves between neighbours, `allowed` how far it may, for each person.
    Of a few people all are tried, of many the first and the last of every level, and who may move it least and most.
    """
    check_name("neighbors", neighbors, NEIGHBORS)
    if domain is None:
        return None
    values, size = check_domain(domain), len(roster)
    substitutes = (None,) if neighbors == "absent" else values
    those = whom_to_try(allowed, roster)
    most = max(FEWEST, min(MOST, WORK // (size * max(1, len(those) * len(substitutes)))))
    tried = 0
    for pair in list_pairs(values, those, size, substitutes, most):
        tried += 1
        one, other = (show_people(list(data), size) for data in (pair.data, pair.neighbour))
        try:
            moved = float(move(one, other))
        except Exception as error:
            failed = f"On made-up data the function failed with {type(error).__name__}."
            rule = f"It is called with {tell_data(pair.data)}, and None or NaN for who has no value."
            raise PlanError(failed, rule=rule, suggest="a function that takes such values") from error
        if not moved <= allowed[pair.person] * (1 + 1e-9) + 1e-12:
            raise _refuted(what, pair, moved, allowed[pair.person], roster)
    return tried


def whom_to_try(allowed: Sequence[float], roster: Roster) -> list[int]:
    """Those of whom something finite is claimed; of many the ends of every level, and of what is claimed."""
    finite = np.flatnonzero(np.isfinite(allowed))
    if len(finite) <= MANY_PEOPLE:
        return list(finite.tolist())
    by_level = (finite[roster.codes[finite] == code] for code in range(len(roster.levels.grants)))
    found = {int(one) for people in by_level if len(people) for one in people[[0, -1]]}
    stated = np.asarray(allowed)[finite]
    return sorted(found | {int(finite[stated.argmin()]), int(finite[stated.argmax()])})


def _refuted(what: str, pair: Pair, moved: float, allowed: float, roster: Roster) -> PlanError:
    granted = to_epsilon(roster.levels.grants[roster.codes[pair.person]])
    found = f"{what} does not hold: person {pair.person}, of epsilon {granted:g}, moves the function by {moved:.6g}"
    rule = f"Found on made-up data, {tell_data(pair.data)} against {tell_data(pair.neighbour)}."
    return PlanError(f"{found}, and {allowed:.6g} is allowed.", rule=rule, suggest="a claim that holds for all data")


def tell_data(data: Sequence[Any]) -> str:
    """Made-up data in a message."""
    shown = ["none" if value is None else show(value) if isinstance(value, float) else repr(value) for value in data]
    listed = shown if len(shown) <= 8 else [*shown[:4], "...", *shown[-2:]]
    return f"({', '.join(listed)})"

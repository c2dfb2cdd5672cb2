"""Public facts about a model's features and target: names, bounds, words, classes.

A feature of k words stands for k - 1 features, 1 for who has the word and 0 for others: the last word is the one that
all others are compared with. Whoever has none of the words lacks the feature.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import BOUNDS_RULE, as_written, check_real
from epsilons.engines.readings import find_places, read_entry
from epsilons.errors import Argument, PlanError
from epsilons.summaries.words import word_names

_BOUNDS = (Argument("bounds_X", (0, 1)), ", or ", Argument("bounds_X", ([0, 18], [1, 90])), " by feature")
_NAMES = Argument("features", ["age", "schooling"])
_IN_ORDER = "Every feature has bounds or words, in the order of the columns."
_WORDS = Argument("bounds_X", {"age": (18, 90), "region": ["south", "west", "north"]})


def feature_bounds(bounds: Any, names: Any) -> tuple[tuple[str, ...], tuple[tuple[float, float], ...]]:
    """(names, a pair of public bounds for each of them), of features by name with those of words spread."""
    if bounds is None:
        raise PlanError("There are no bounds for the features.", rule=BOUNDS_RULE, suggest=_BOUNDS)
    if isinstance(bounds, Mapping):
        if names is not None:
            raise PlanError("Features are named twice.", rule="Facts by name name them.", suggest=_WORDS)
        spread = {name: public for key, given in bounds.items() for name, public in _spread(key, given).items()}
        return feature_bounds(tuple(map(list, zip(*spread.values(), strict=True))), tuple(spread))
    if isinstance(names, str):
        raise PlanError("One name for all features.", suggest=_NAMES)
    try:
        low, high = bounds
        listed = tuple(names) if names is not None else _number(max(np.size(low), np.size(high)))
        lows, highs = ([side] * len(listed) if np.ndim(side) == 0 else side for side in (low, high))
        sides = zip(listed, map(check_real, lows), map(check_real, highs), strict=True)
        pairs = tuple((least, most) for _, least, most in sides)
    except (TypeError, ValueError):
        what = "Bounds for the features are neither a pair of numbers nor of lists with a number for each feature."
        raise PlanError(what, rule="Every feature has public bounds.", suggest=_BOUNDS) from None
    _check_spelling(bounds, pairs)
    return listed, pairs


def _check_spelling(bounds: Any, pairs: tuple[tuple[float, float], ...]) -> None:
    """Two rows of two numbers may be lows and highs or a pair for each feature: only a tuple of two lists is clear.

    Where a row decreases it is no pair, and nothing is unclear.
    """
    clear = isinstance(bounds, tuple) and not any(isinstance(side, tuple) for side in bounds)
    if clear or len(pairs) != 2:
        return
    lows, highs = ([*map(as_written, side)] for side in zip(*pairs, strict=True))
    if lows[0] < lows[1] and highs[0] < highs[1]:
        by_feature = Argument("bounds_X", ([lows[0], highs[0]], [lows[1], highs[1]]))
        by_side = Argument("bounds_X", (lows, highs))
        both = all(low < high for low, high in pairs)
        hint = (by_feature, " if these are pairs by feature, ", by_side, " if they are lows and highs")
        rule = "A tuple of two lists holds the lows of all features, then their highs."
        raise PlanError(
            "Bounds of two features look like a pair for each.", rule=rule, suggest=hint if both else by_feature
        )


def _spread(name: Any, public: Any) -> dict[Any, Any]:
    """The feature itself with its bounds, or a feature for each word but the last."""
    if not are_words(public):
        return {name: public if np.ndim(public) == 1 and len(public) == 2 else (None, None)}
    return dict.fromkeys(word_names(name, check_words(name, public)), (0, 1))


def are_words(public: Any) -> TypeGuard[Sequence[str]]:
    """Whether a feature's public fact is what words it has, and not between which bounds it lies."""
    return not isinstance(public, str) and np.ndim(public) == 1 and any(isinstance(entry, str) for entry in public)


def check_words(name: Any, words: Sequence[Any]) -> tuple[str, ...]:
    """Two or more words, all different."""
    listed = tuple(words)
    if len(listed) < 2 or len({*listed}) < len(listed) or not all(isinstance(word, str) for word in listed):
        rule = "Two or more different words, which are public; the others are compared with the last."
        raise PlanError(f"Feature {name!r} has no such words.", rule=rule, suggest=_WORDS)
    return listed


def check_order(X: Any, bounds: Mapping[Any, Any]) -> None:
    """The columns of a frame have names of their own."""
    columns = getattr(X, "columns", None)
    if columns is not None and all(isinstance(column, str) for column in columns) and [*columns] != [*bounds]:
        raise PlanError("X has other columns, or in another order.", rule=_IN_ORDER, suggest=_WORDS)


def spread_words(columns: Sequence[NDArray[Any]], bounds: Mapping[Any, Any]) -> list[NDArray[Any]]:
    """Columns as people have them, with a column of ones and zeros for each word but the last; NaN for none of them."""
    if len(columns) != len(bounds):
        what = f"{len(columns)} columns and public facts about {len(bounds)}."
        raise PlanError(what, rule=_IN_ORDER, suggest=_WORDS)
    spread = []
    for column, (name, public) in zip(columns, bounds.items(), strict=True):
        if not are_words(public):
            spread.append(column)
            continue
        words = check_words(name, public)
        place = find_places(column, words)
        spread += [np.where(place < 0, np.nan, place == number) for number in range(len(words) - 1)]
    return spread


def feature_names(X: Any, given: Any, width: int) -> Any:
    """The caller's names, a frame's columns, or x1, x2, ..."""
    if given is not None:
        return given
    columns = getattr(X, "columns", None)
    if columns is not None and all(isinstance(column, str) for column in columns):
        return tuple(columns)
    return _number(width)


def _number(width: int) -> tuple[str, ...]:
    return tuple(f"x{place + 1}" for place in range(width))


def check_names(names: Any, features: int) -> tuple[str, ...]:
    """One name per feature, all different: they are the keys of the answer."""
    listed = tuple(names)
    if len(listed) != features or len({*listed, "intercept"}) != features + 1:
        what = f"{len(listed)} names for {features} features, or one name twice."
        raise PlanError(what, rule='A model names every feature once; "intercept" is taken.', suggest=_NAMES)
    if not all(isinstance(name, str) for name in listed):
        raise PlanError("A feature's name is not a word.", suggest=_NAMES)
    return listed


def check_classes(classes: Any) -> tuple[Any, Any]:
    """Two public labels, which are never read from the data: that would show who is there."""
    try:
        first, second = map(read_entry, classes)
        plain = all(isinstance(c, str | int | float) and c == c for c in (first, second))
        fine = plain and not isinstance(classes, str) and first != second
    except (TypeError, ValueError):  # ValueError: not two of them
        fine = False
    if not fine:
        rule = "The two labels are public facts, different words or numbers; the second is the one predicted."
        raise PlanError("There are not two classes.", rule=rule, suggest=Argument("classes", ("no", "yes")))
    return first, second

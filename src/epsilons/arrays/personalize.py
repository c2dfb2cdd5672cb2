"""Any private algorithm made personal: a sample in which open people are likelier, then the algorithm on it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import check_entropy, check_name
from epsilons.arrays.algorithms import Algorithm, algorithm_of, run
from epsilons.errors import DataError, PlanError, PreferenceError
from epsilons.guarantee import NANO, NEIGHBORS, to_epsilon
from epsilons.mechanisms.base import resolve_threshold
from epsilons.noise.bernoulli import keep_people
from epsilons.noise.entropy import ALWAYS, Entropy, system
from epsilons.noise.weighing import keep_chance
from epsilons.preferences import Levels, Preferences, Roster, aligned_roster, roster_of
from epsilons.release import Release, algorithm_release


def personalize(
    algorithm: Any,
    data: Any,
    epsilons: Any,
    *,
    threshold: float | str | None = None,
    neighbors: str = "absent",
    private_under: str | None = None,
    person: Any = None,
    rows_per_person: int = 1,
    entropy: Entropy | None = None,
) -> Release:
    """Run an epsilon-private algorithm on a random sample of people, so that everyone keeps their own epsilon.

    `algorithm` is a function (data, epsilon) -> result, an OpenDP measurement or a function of epsilon that makes one,
    or a model or tool of diffprivlib. `data` has one entry per person: a list, an array, a frame, or a tuple of these
    side by side (features and target). `threshold` is "max" (default), "mean" or a number: the epsilon that the
    algorithm runs at. `private_under` says under which neighbours the algorithm is private: "absent" (a record added or
    removed; what a plain function is taken to claim) or "both". With several rows per person, `person` has an id per
    row, at most `rows_per_person` rows of each are used, and the algorithm runs at a share of the threshold.

    The algorithm's claim covers all it does with any sample, an empty one included, and when it fails: that is an
    answer too, if only the text that it failed.

    >>> import epsilons as eps
    >>> from fractions import Fraction
    >>> from epsilons.noise.entropy import system
    >>> from epsilons.noise.laplace import discrete_laplace
    >>> def noisy_length(data, epsilon):
    ...     return len(data) + discrete_laplace(system(), Fraction(repr(epsilon)))
    >>> answer = eps.personalize(noisy_length, ["a", "b", "c"], [0.1, 1.0, 1.0])
    >>> answer.charges
    {0.1: 0.1, 1.0: 1.0}
    """
    check_name("neighbors", neighbors, NEIGHBORS)
    if entropy is not None:
        check_entropy(entropy)
    rows = _check_rows(rows_per_person, person)
    recipe = algorithm_of(algorithm, private_under, rows, neighbors)
    owners, roster = _people(data, epsilons, person)
    if roster.levels.all_public:
        raise PlanError(
            "Everyone is public.", rule="There is nothing to protect.", suggest="run the algorithm on the data itself"
        )
    source = system() if entropy is None else entropy
    call = Call.plan(recipe, roster.levels, threshold, neighbors, rows)
    kept = keep_people(source, roster.codes, call.chances(roster.levels))
    chosen = kept if owners is None else _cap(owners, kept, rows, source)
    value = run(recipe, _pick(data, chosen), call.epsilon)
    return algorithm_release(
        recipe.name, value, roster.levels, call.threshold, neighbors, recipe.claim, source.private and not recipe.seeded
    )


class Call:
    """At which threshold people are sampled, and at which epsilon the algorithm is called."""

    def __init__(self, threshold: int, share: int, epsilon: float) -> None:
        self.threshold = threshold
        #: 2 where an algorithm that is private only under "absent" must serve "replace": everything at half.
        self._share = share
        self.epsilon = epsilon

    @classmethod
    def plan(cls, recipe: Algorithm, levels: Levels, threshold: Any, neighbors: str, rows: int) -> Call:
        """From public facts alone; the epsilon is rounded down to a whole nano-epsilon."""
        share = 2 if neighbors == "replace" and recipe.private_under != "both" else 1
        if recipe.fixed is not None:
            if threshold is not None:
                raise PlanError("A measurement has its own epsilon.", suggest="leave the threshold out")
            return cls(_up(recipe.fixed), 1, float(recipe.fixed))
        t = _threshold(threshold, levels)
        nano = t // (share * (1 if recipe.takes_rows else rows))
        if nano == 0:
            raise PlanError(
                "The threshold leaves nothing for each row.",
                rule="A billionth at least.",
                suggest="fewer rows_per_person",
            )
        return cls(t, share, to_epsilon(nano))

    def chances(self, levels: Levels) -> list[int]:
        """Of staying in the sample, per level, out of 2^64: (e^eps - 1)/(e^t - 1), rounded down."""
        return [ALWAYS if g is None else self._chance(g) for g in levels.grants]

    def _chance(self, grant: int) -> int:
        if grant >= self.threshold:
            return ALWAYS
        # Halves round towards privacy: the grant down, the threshold up.
        return keep_chance(grant // self._share, -(-self.threshold // self._share)) if grant >= self._share else 0


def _threshold(threshold: Any, levels: Levels) -> int:
    return resolve_threshold("max" if threshold is None else threshold, levels, _refuse_best)


def _refuse_best() -> int:
    raise PlanError(
        "Nobody can say which threshold is best for an algorithm of one's own.",
        rule="No error can be predicted for it.",
        suggest='a number, "max" or "mean"',
    )


def _up(epsilon: Fraction) -> int:
    """In nano-epsilon, rounded up."""
    if epsilon <= 0:
        raise PlanError("The measurement's map gives no loss at all.", rule="Its noise is for one record at least.")
    return math.ceil(epsilon * NANO)


# Who owns what -------------------------------------------------------------------------------------------------------


def _check_rows(rows: Any, person: Any) -> int:
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise PlanError(f"rows_per_person={rows!r} is not allowed.", rule="A whole number from 1 on.", suggest="1")
    if rows > 1 and person is None:
        raise PlanError(
            "Several rows per person, and nobody says whose they are.",
            suggest="person=ids, with one id per row",
        )
    return rows


def _people(data: Any, epsilons: Any, person: Any) -> tuple[NDArray[np.int64] | None, Roster]:
    """(the place of each row's owner on the roster, the roster); None where row i is person i."""
    length = _length(data)
    if person is None:
        roster = aligned_roster(epsilons, range(length))
        if len(roster) != length:
            raise DataError(f"{length} entries and {len(roster)} epsilons.", rule="One epsilon per person.")
        _check_some(len(roster))
        return None, roster
    ids = list(person)
    if len(ids) != length:
        raise DataError(f"{length} rows and {len(ids)} ids.", rule="One id per row.")
    try:
        if isinstance(epsilons, Mapping):  # who was asked is on the roster, with or without rows
            places = {owner: place for place, owner in enumerate(epsilons)}
            roster = roster_of(list(epsilons.values()))
        else:
            places = {owner: place for place, owner in enumerate(dict.fromkeys(ids))}
            roster = _strictest(epsilons, ids, places)
        owners = np.array([places[owner] for owner in ids], np.int64)
    except TypeError:
        raise DataError(
            "An id cannot be looked up.", rule="People are found by id.", suggest="words or numbers"
        ) from None
    except KeyError:
        raise PreferenceError(
            "A row belongs to somebody without a preference.",
            rule="Who has rows must be on the roster.",
            suggest="an epsilon for every id",
        ) from None
    _check_some(len(roster))
    return owners, roster


def _check_some(people: int) -> None:
    if people == 0:
        raise DataError("There are no people.", rule="One entry and one epsilon per person.")


def _strictest(epsilons: Any, ids: list[Any], places: Mapping[Any, int]) -> Roster:
    """By id, or by row: then a person with several preferences has the strictest of them."""
    if isinstance(epsilons, Preferences):
        return epsilons.assign(list(places))
    try:
        given = np.asarray(epsilons, dtype=np.float64)
    except (TypeError, ValueError):
        raise PreferenceError("Epsilons are not numbers.", rule="One per row, or one per id.") from None
    if given.ndim == 0:
        return roster_of(given, people=len(places))
    if given.shape != (len(ids),):
        raise DataError(f"{len(ids)} rows and {given.size} epsilons.", rule="One epsilon per row, or one per id.")
    strictest = np.full(len(places), math.inf)
    np.minimum.at(strictest, [places[owner] for owner in ids], given)
    return roster_of(strictest)


def _cap(owners: NDArray[np.int64], kept: NDArray[np.bool_], rows: int, entropy: Entropy) -> NDArray[np.bool_]:
    """At most `rows` rows of everyone who was kept, chosen by lot."""
    order = np.lexsort((entropy.words(len(owners)), owners))
    sorted_owners = owners[order]
    first = np.searchsorted(sorted_owners, sorted_owners)
    chosen = np.zeros(len(owners), bool)
    chosen[order] = (np.arange(len(owners)) - first < rows) & kept[sorted_owners]
    return chosen


# Data of any kind ----------------------------------------------------------------------------------------------------


def _length(data: Any) -> int:
    if isinstance(data, tuple):
        lengths = {_length(part) for part in data}
        if len(lengths) != 1:
            raise DataError("Columns of different lengths.", rule="A tuple holds columns side by side.")
        return lengths.pop()
    try:
        if not isinstance(data, Mapping | Set | str | bytes):
            return int(data.shape[0]) if hasattr(data, "shape") else len(data)
    except (TypeError, IndexError):
        pass
    raise DataError("The data are not a list or table.", rule="One entry per person.", suggest="a list, array or frame")


def _pick(data: Any, chosen: NDArray[np.bool_]) -> Any:
    """The entries of those chosen, in the same kind of container, as a copy of its own."""
    if isinstance(data, tuple):
        return tuple(_pick(part, chosen) for part in data)
    places = np.flatnonzero(chosen)
    if hasattr(data, "iloc"):  # pandas
        return data.iloc[places].copy()
    if hasattr(data, "to_pylist"):  # Arrow
        return data.take(places)
    if hasattr(data, "shape"):  # numpy, polars, sparse matrices
        return data[places]
    return [data[place] for place in places.tolist()]

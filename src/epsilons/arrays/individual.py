"""Individual privacy for a function of one's own: noise for a local sensitivity that the caller states."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import LARGEST_NUMBER, check_entropy, check_share
from epsilons.arrays.claimed import (
    FAILURES,
    FEWEST,
    HIDDEN,
    MOST,
    TESTED,
    WORK,
    call_quietly,
    tell_data,
    whom_to_try,
)
from epsilons.arrays.gridded import Gridded
from epsilons.auditing.made_up import check_domain, extremes_first, list_datasets
from epsilons.errors import Argument, DataError, PlanError
from epsilons.guarantee import INDIVIDUAL, NANO, Guarantee
from epsilons.mechanisms.base import Account
from epsilons.mechanisms.local_sensitivity import LocalSensitivity
from epsilons.noise.entropy import Entropy, is_private, system
from epsilons.noise.laplace import discrete_laplace
from epsilons.preferences import Roster, aligned_roster
from epsilons.preferences.groups import take_groups
from epsilons.release.answer import Release, build_release, list_caveats, tell_groups
from epsilons.summaries.arrays import check_values

_FAILED = object()
_CLAIM = "The local sensitivity"
WHOSE_WORD = f"{_CLAIM} is the caller's word; nothing here checked it."


def individually(
    function: Callable[[Any], float],
    values: Any,
    epsilons: Any = None,
    *,
    sensitivity: float | Sequence[float] | Callable[[Any], Any],
    step: float,
    size: int | None = None,
    whole: bool = False,
    group_epsilons: Sequence[float] | None = None,
    domain: Sequence[Any] | None = None,
    share: float = 1.0,
    entropy: Entropy | None = None,
) -> Release:
    """Any number computed from everybody's values, or `size` numbers, with individual privacy (which is not DP).

    `sensitivity` is how far replacing one person's value could move the answer on the data as they are: a number, or a
    function of the values that gives one number, or one per person; of several numbers the sum of their moves
    (Soria-Comas et al. 2017, Proposition 5). Answers fall on multiples of `step`, which is public; beyond 10^30 they
    are cut before the noise. `whole` says that they are multiples of it anyway, and sensitivities too (Theorem 5). At a
    `share` below 1 everyone is taken to have granted that part, which must be something for everyone. Neither the
    sensitivity nor the noise's scale is shown. Values raise no error, unless everyone is public: where the function
    fails its answer is 0, where a function of the sensitivity does, noise hides everything.

    With `group_epsilons` in place of `epsilons` any i people together lose at most the i-th of them; the sensitivity
    then has one number for each size of group, from 1 person on: how far so many people could move the answer.

    With a public `domain` of values a function of the sensitivity is tested on made-up data before any value is read:
    how far replacing a person, or so many, moves the answer there. It is the caller's word all the same.

    >>> import epsilons as eps
    >>> ages = [23, 35, 41, 52, 60]
    >>> spread = lambda values: max(values) - min(values)
    >>> answer = eps.individually(spread, ages, 1.0, sensitivity=40, step=1)
    >>> answer.guarantee.kind
    'individual DP (not DP)'
    """
    asked = Gridded.read(function, step, size, whole)
    source = system() if entropy is None else check_entropy(entropy)
    groups, granted = ((), epsilons) if group_epsilons is None else take_groups(epsilons, group_epsilons)
    roster, part = aligned_roster(granted, values), check_share(share)
    if groups and part != 1:
        raise PlanError("Group epsilons are taken as they are.", suggest=("leave ", Argument("share"), " out"))
    scaled, used = roster.take_share(part)
    if used is not None:  # a function of everybody's values cannot leave anyone out
        raise PlanError(f"A share of {float(part):g} leaves somebody with nothing.", suggest="a larger share")
    tried = _search(asked, sensitivity, roster, len(groups), domain)
    array = check_values(values, len(roster))
    if isinstance(array, np.ma.MaskedArray):  # the function sees None, and nothing warns
        array = np.array(array.tolist(), dtype=object)
    public = scaled.levels.all_public
    places = asked.places(array, instead=None if public else 0)  # an error would tell of the values
    # A copy, so that a function that sorts in place moves neither the caller's values nor whose sensitivity is whose.
    silent, wanted = callable(sensitivity) and not public, (len(groups), "size") if groups else (len(array), "person")
    stated = _numbers(
        lambda: sensitivity(array.copy()) if callable(sensitivity) else sensitivity, wanted[0], silent, wanted[1]
    )
    rate = _rate(zip(groups, stated, strict=True) if groups else _by_level(stated, scaled), asked)
    value = asked.values([place if rate is None else place + discrete_laplace(source, rate) for place in places])
    account = Account.of(scaled.levels, scaled.levels.grants).at_share(roster.levels, part)
    word = f"{WHOSE_WORD if tried is None else TESTED.format(what=_CLAIM, pairs=tried)} {FAILURES}"
    caveats = list_caveats(roster.levels, is_private(source), (*LocalSensitivity.caveats, *tell_groups(groups), word))
    made = build_release(
        account,
        Guarantee("replace", account.losses, INDIVIDUAL, caveats),
        statistic="function of everybody's values",
        value=value,
        mechanism=LocalSensitivity.name,
        why="Asked for by name: noise for a local sensitivity that the caller stated.",
        no_interval="Its width would be data.",
    )
    return made.about(roster.covered)


def _search(asked: Gridded, sensitivity: Any, roster: Roster, groups: int, domain: Any) -> int | None:
    """How many replacements on made-up data were tried, none of which moves the answer farther than is said of them."""
    if domain is None:
        return None
    if not callable(sensitivity):
        rule, hint = "It is said of the data as they are; made-up data have another.", "a function of the values"
        raise PlanError("A sensitivity that is a number cannot be tested.", rule=rule, suggest=hint)
    values, people, tried = check_domain(domain), len(roster), 0
    grants = [roster.levels.grants[code] for code in roster.codes]
    those = whom_to_try([math.inf if grant is None else 1.0 for grant in grants], roster)
    changes = [
        (group, new)
        for size in range(1, max(groups, 1) + 1)
        for group in combinations(those, size)
        for new in product(extremes_first(values)[: None if size == 1 else 2], repeat=size)
    ]
    most = max(FEWEST, min(MOST, WORK // (people * max(1, len(changes)))))
    for data in list_datasets(values, people, most):
        here = _measure(asked, data)
        stated = _made_up(data, lambda given: np.broadcast_to(sensitivity(given), (groups or people,)))
        for group, new in changes:
            changed, allowed = list(data), float(stated[len(group) - 1 if groups else group[0]])
            for person, value in zip(group, new, strict=True):
                changed[person] = value
            moved, tried = float(np.abs(here - _measure(asked, changed)).sum()), tried + 1
            if not moved <= allowed * (1 + 1e-9) + 1e-12:
                who = " and ".join(f"person {person}" for person in group)
                found = f"{_CLAIM} does not hold: {who} can move the function by {moved:.6g}"
                rule = f"Found on made-up data, {tell_data(data)} against {tell_data(changed)}."
                hint = "a sensitivity that holds on all data"
                raise PlanError(f"{found}, and {allowed:.6g} is stated.", rule=rule, suggest=hint)
    return tried


def _measure(asked: Gridded, data: Sequence[Any]) -> NDArray[np.float64]:
    """The answer on made-up data; where nothing allows for rounding, as it is rounded."""
    if asked.whole:
        return _made_up(data, lambda given: [float(step * asked.grid) for step in asked.places(given, loudly=True)])
    return np.atleast_1d(_made_up(data, asked.function))


def _made_up(data: Sequence[Any], compute: Callable[[Any], Any]) -> NDArray[np.float64]:
    """What a function gives of made-up data, of which an error may tell."""
    try:
        return np.asarray(compute(check_values(list(data), len(data))), np.float64)
    except Exception as error:
        failed = f"On made-up data a function failed with {type(error).__name__}."
        hint = "a function that takes such values"
        raise PlanError(failed, rule=f"It is called with {tell_data(data)}.", suggest=hint) from error


def _by_level(reach: Any, roster: Roster) -> Iterator[tuple[int | None, float]]:
    """(what a level granted, the largest sensitivity of its people)."""
    for level, grant in enumerate(roster.levels.grants):
        yield grant, reach[roster.codes == level].max(initial=0.0)


def _rate(stated: Iterable[tuple[int | None, float]], asked: Gridded) -> Fraction | None:
    """1/scale in steps: the least of epsilon over sensitivity, one step for each number added for rounding."""
    pairs = [(grant, asked.steps(Fraction(float(far)))) for grant, far in stated]
    return min((Fraction(grant, NANO * steps) for grant, steps in pairs if grant is not None and steps), default=None)


def _numbers(compute: Callable[[], Any], count: int, silent: bool, each: str = "person") -> Any:
    """So many sensitivities; where a function of the values fails and nobody may be told, all that there could be."""

    def read(given: Any) -> NDArray[np.float64] | None:
        numbers = np.asarray(given, dtype=np.float64)
        reach = np.broadcast_to(numbers, (count,)) if numbers.ndim == 0 else numbers
        return reach if reach.shape == (count,) and bool((np.isfinite(reach) & (reach >= 0)).all()) else None

    reach = call_quietly(compute, read, "", instead=_FAILED)
    if reach is _FAILED and silent:
        return np.full(count, 2 * LARGEST_NUMBER)
    if reach is _FAILED:
        what = f"The sensitivity did not give finite numbers from 0 on, one for all or one per {each}."
        raise DataError(what, rule=HIDDEN)
    return np.minimum(reach, 2 * LARGEST_NUMBER)  # no two answers are farther apart

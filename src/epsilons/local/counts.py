"""What published counts give away about one owner, to somebody who knows everybody else's answer.

Sampling Privacy publishes each output's count in both rounds. The difference of the two counts of option v is the
number of sampled owners among the n_v who have it: Bin(n_v, s) with the owner, Bin(n_v - 1, s) without. That pair is
`difference_pair`. The counts of round one add something in a small crowd, since whoever answered an option in round one
was not sampled: `crowd_pair` is the exact law of everything published. The difference alone is a function of that, so
its delta is never larger; with a growing crowd the two become the same.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import PlanError
from epsilons.local.binomials import FAR_REACH, pmf_window
from epsilons.local.leakage import Pair

#: The law of more owners of one option than this is bounded by the law of so many.
MOST_ALIKE = 10_000_000
_MOST_OUTCOMES = 30_000_000


def difference_pair(count: int, sampling: float) -> Pair:
    """The sampled among `count` owners of an option, with one of them and with that one absent.

    A further owner adds the same independent coin to both, which is post-processing: delta falls with `count`, so the
    pair of a smaller count bounds that of a larger one.
    """
    return _aligned(_binomial(count, sampling), _binomial(count - 1, sampling))


def replaced_pair(count: int, other: int, sampling: float) -> Pair:
    """The sampled of two options, if one owner moves from an option of `count` owners to one of `other` owners."""
    stay, go = difference_pair(count, sampling)
    joined, without = difference_pair(other + 1, sampling)
    _check_size(len(stay) * len(without))
    return np.outer(stay, without).ravel(), np.outer(go, joined).ravel()


def crowd_size(count: int, others: int, other_values: bool) -> int:
    """How many outcomes `crowd_pair` goes through."""
    return (count + 1) * ((others if other_values else 0) + 1) * (count + others + 1)


def crowd_pair(count: int, others: int, sampling: float, zero: float, *, other_values: bool) -> Pair:
    """Both rounds' counts, with one owner of an option and with that owner's answer absent (they then answer as none).

    d of the option's owners are sampled; a is the number of owners, of all, who answered an option in round one. The
    others either have no option (binary), or an option each, so that k of them are seen to be sampled too. The latter
    hides less, and is what is taken for several options.
    """
    named = 1 - sampling - zero
    unsampled = named / (1 - sampling)
    people = count + others
    seen_too = others if other_values else 0
    _check_size(crowd_size(count, others, other_values))
    with_owner = np.zeros((count + 1, seen_too + 1, people + 1))
    without = np.zeros_like(with_owner)
    sampled, fewer = _full(count, sampling), _full(count - 1, sampling)
    elsewhere = _full(seen_too, sampling)
    quiet = _full(0 if other_values else others, named)
    for d in range(count + 1):
        for k in range(seen_too + 1):
            rest = seen_too - k
            law = np.convolve(_full(count - d + rest, unsampled), quiet)
            with_owner[d, k, : len(law)] = sampled[d] * elsewhere[k] * law
            if d < count:
                law = np.convolve(np.convolve(_full(count - 1 - d + rest, unsampled), quiet), (1 - named, named))
                without[d, k, : len(law)] = fewer[d] * elsewhere[k] * law
    return with_owner.ravel(), without.ravel()


def answers_pair(count: int, others: int, high: float, low: float) -> Pair:
    """The number of Yes in one round of randomized response, if the last of `count` owners has a Yes, or a No."""
    (_, one), (_, two) = _binomial(count - 1, high), _binomial(others, low)
    _check_size(min(len(one), len(two)) * 100)
    rest = np.convolve(one, two)
    return np.convolve(rest, (1 - high, high)), np.convolve(rest, (1 - low, low))


_Window = tuple[int, NDArray[np.float64]]


def _binomial(n: int, chance: float) -> _Window:
    _check_size(math.ceil(2 * FAR_REACH * math.sqrt(n * chance * (1 - chance))))
    return pmf_window(n, chance, FAR_REACH)


def _full(n: int, chance: float) -> NDArray[np.float64]:
    """All of 0..n; what lies beyond the window is too small for a double."""
    start, law = _binomial(n, chance)
    full = np.zeros(n + 1)
    full[start : start + len(law)] = law
    return full


def _aligned(one: _Window, two: _Window) -> Pair:
    """Two windows on one axis."""
    start = min(one[0], two[0])
    stop = max(one[0] + len(one[1]), two[0] + len(two[1]))
    laws = []
    for first, law in (one, two):
        laws.append(np.pad(law, (first - start, stop - first - len(law))))
    return laws[0], laws[1]


def _check_size(outcomes: int) -> None:
    if outcomes > _MOST_OUTCOMES:
        raise PlanError(
            "There are too many outcomes to go through.",
            rule=f"At most {_MOST_OUTCOMES:,}.",
            suggest="smaller numbers, or leave out population= for the law in a large crowd",
        )

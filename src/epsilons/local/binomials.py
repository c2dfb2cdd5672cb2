"""Laws of counts, for intervals and for what published counts give away. Nothing here draws anything.

A count of answers is Bin(n, a) + Bin(N - n, b): n owners who have the option name it with probability a, the other
N - n with probability b < a. Sampling Privacy's difference of two rounds is the case b = 0.

Counts leak to an observer who knows everyone else's answer. Sampling Privacy publishes each output's count in both
rounds. The difference of the two counts of option v is the number of sampled owners among the n_v who have it: Bin(n_v,
s) with the owner, Bin(n_v - 1, s) without. That pair is `difference_pair`. The counts of round one add something in a
small crowd, since owners who answered an option in round one were not sampled: `crowd_pair` is the exact law of
everything published. The difference alone is a function of that, so its delta is never larger; with a growing crowd the
two become the same.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import Argument, PlanError
from epsilons.local.estimate import Ends
from epsilons.local.leakage import Floats, Pair

#: Beyond so many standard deviations a binomial has less mass than a double can show beside 1.
_INTERVAL_REACH = 12
_LARGEST_VARIANCE = 10**8
#: And beyond so many less than the smallest double: for deltas such as 1e-30.
_FAR_REACH = 40
#: The law of more owners of one option than this is bounded by the law of so many.
MOST_ALIKE = 10_000_000
_MOST_OUTCOMES = 30_000_000


@lru_cache(maxsize=32)
def pmf_window(n: int, chance: float, reach: int = _INTERVAL_REACH) -> tuple[int, Floats]:
    """(k0, P(X = k0), P(X = k0 + 1), ...) of X ~ Bin(n, chance), where it is not negligible.

    Built from the mode outwards by the ratio of neighbours and then normalised, so that no large logarithm cancels.
    """
    if n == 0 or chance <= 0:
        return 0, np.ones(1)
    if chance >= 1:
        return n, np.ones(1)
    spread = reach * math.sqrt(n * chance * (1 - chance)) + reach**2 / 2
    low, high = max(0, math.floor(n * chance - spread)), min(n, math.ceil(n * chance + spread))
    k = np.arange(low, high, dtype=np.float64)
    steps = np.log((n - k) / (k + 1)) + math.log(chance / (1 - chance))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logs - logs.max())
    weights /= math.fsum(weights)
    weights.flags.writeable = False
    return low, weights


def _tail(seen: int, n: int, others: int, high: float, low: float, *, upper: bool) -> float:
    """P(Bin(n, high) + Bin(others, low) >= seen), or <= seen: one binomial's probabilities times the other's tail."""
    first, one = pmf_window(n, high)
    second, two = pmf_window(others, low)
    tails = np.cumsum(two[::-1])[::-1] if upper else np.cumsum(two)
    places = seen - (first + np.arange(len(one))) - second
    found = tails[np.clip(places, 0, len(tails) - 1)]
    found = np.where(places < 0, float(upper), np.where(places >= len(tails), float(not upper), found))
    return min(1.0, float(one @ found))


def possible_sizes(seen: int, population: int, high: float, low: float, level: float) -> tuple[int, int]:
    """The sizes n in 0..population of a group that a count of `seen` leaves open at this level, as an interval.

    n is left out when the count would be too large or too small for it with probability at most (1 - level)/2, in the
    exact law of the count (Clopper and Pearson's way, 1934). So it covers at least `level`, whatever n is. A count
    whose standard deviation passes 10,000 is as good as normal and is taken so.
    """
    miss = (1 - level) / 2
    if max(seen * (1 - high), population * low * (1 - low)) > _LARGEST_VARIANCE:
        return _normal_sizes(seen, population, high, low, NormalDist().inv_cdf(1 - miss))
    guess = (seen - population * low) / (high - low)
    spread = NormalDist().inv_cdf(1 - miss) * math.sqrt(max(1.0, population * low * (1 - low) + seen)) / (high - low)

    def left_out(n: int, upper: bool) -> bool:
        return _tail(seen, n, population - n, high, low, upper=upper) <= miss

    lower = _first(lambda n: not left_out(n, True), population, max(0, math.floor(guess - spread)))
    upper = _first(lambda n: left_out(n, False), population, max(0, math.ceil(guess + spread)))
    return min(lower, population), max(0, upper - 1)


def size_intervals(seen: NDArray[np.int64], population: int, high: Any, low: Any, level: float) -> Ends:
    """The possible sizes of many groups: the lower ends and the upper ends."""
    keys = list(zip(*(one.tolist() for one in np.broadcast_arrays(seen, high, low)), strict=True))
    known = {(n, a, b): possible_sizes(n, population, a, b, level) for n, a, b in set(keys)}
    lows, highs = np.array([known[key] for key in keys], dtype=np.float64).T
    return lows, highs


def _normal_sizes(seen: int, population: int, high: float, low: float, z: float) -> tuple[int, int]:
    """Possible sizes by the normal law: the n with |seen - E(n)| <= z sd(n) + 1/2, between roots of two quadratics.

    E(n) = N low + n (high - low), and Var(n) = N low (1 - low) + n (high (1 - high) - low (1 - low)).
    """
    slope, alike, above = high - low, population * low * (1 - low), seen - population * low
    extra = high * (1 - high) - low * (1 - low)

    def root(shifted: float, sign: int) -> float:
        a, b, c = slope**2, -2 * slope * shifted - z**2 * extra, shifted**2 - z**2 * alike
        return (-b + sign * math.sqrt(max(0.0, b * b - 4 * a * c))) / (2 * a)

    lower, upper = math.floor(root(above - 0.5, -1)), math.ceil(root(above + 0.5, 1))
    return min(max(0, lower), population), min(max(0, upper), population)


def _first(holds: Callable[[int], bool], largest: int, guess: int) -> int:
    """The smallest n in 0..largest from which on a condition holds, else largest + 1; gallops from a guess."""
    low, known, step, at = -1, largest + 1, 1, min(guess, largest)
    while low < at < known:
        low, known, at = (low, at, at - step) if holds(at) else (at, known, at + step)
        step *= 2
    return low + 1 + bisect_left(range(low + 1, known), True, key=holds)


def difference_pair(count: int, sampling: float) -> Pair:
    """The sampled among `count` owners of an option, with one of them and with that one absent.

    A further owner adds the same independent coin to both, which is post-processing: delta falls with `count`, so the
    pair of a smaller count bounds that of a larger one.
    """
    windows = _binomial(count, sampling), _binomial(count - 1, sampling)
    start, stop = min(first for first, _ in windows), max(first + len(law) for first, law in windows)
    one, two = (np.pad(law, (first - start, stop - first - len(law))) for first, law in windows)
    return one, two


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
    named, seen_too = 1 - sampling - zero, others if other_values else 0
    unsampled = named / (1 - sampling)
    _check_size(crowd_size(count, others, other_values))
    with_owner, without = np.zeros((2, count + 1, seen_too + 1, count + others + 1))
    sampled, fewer, elsewhere = _full(count, sampling), _full(count - 1, sampling), _full(seen_too, sampling)
    quiet = _full(others - seen_too, named)
    for d in range(count + 1):
        for k in range(seen_too + 1):
            asked = count - d + seen_too - k
            law = np.convolve(_full(asked, unsampled), quiet)
            with_owner[d, k, : len(law)] = sampled[d] * elsewhere[k] * law
            if d < count:
                law = np.convolve(np.convolve(_full(asked - 1, unsampled), quiet), (1 - named, named))
                without[d, k, : len(law)] = fewer[d] * elsewhere[k] * law
    return with_owner.ravel(), without.ravel()


def answers_pair(count: int, others: int, high: float, low: float) -> Pair:
    """The number of Yes in one round of randomized response, if the last of `count` owners has a Yes, or a No."""
    (_, one), (_, two) = _binomial(count - 1, high), _binomial(others, low)
    _check_size(min(len(one), len(two)) * 100)
    rest = np.convolve(one, two)
    return np.convolve(rest, (1 - high, high)), np.convolve(rest, (1 - low, low))


def _binomial(n: int, chance: float) -> tuple[int, Floats]:
    _check_size(math.ceil(2 * _FAR_REACH * math.sqrt(n * chance * (1 - chance))))
    return pmf_window(n, chance, _FAR_REACH)


def _full(n: int, chance: float) -> Floats:
    """All of 0..n; what lies beyond the window is too small for a double."""
    start, law = _binomial(n, chance)
    full = np.zeros(n + 1)
    full[start : start + len(law)] = law
    return full


def _check_size(outcomes: int) -> None:
    if outcomes > _MOST_OUTCOMES:
        hint = ("smaller numbers, or leave out ", Argument("population"), " for the law in a large crowd")
        raise PlanError("There are too many outcomes to go through.", rule=f"At most {_MOST_OUTCOMES:,}.", suggest=hint)

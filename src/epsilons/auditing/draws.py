"""A lower bound on a loss from draws of two neighbours: it only ever refutes."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from epsilons.accuracy.intervals import logistic, normal_quantile, secant
from epsilons.arguments.checks import check_confidence, check_name, check_whole, refuse
from epsilons.display import Shown
from epsilons.errors import Argument, DataError
from epsilons.noise.entropy import working_precision
from epsilons.statistics.base import Floats

Draw = Callable[[int], NDArray[Any]]
#: Of a bound that only says where to look, in standard deviations: right nine times of ten.
_LOOKING = 1.28


@dataclass(frozen=True)
class LossBound(Shown):
    """With probability `confidence` over the draws, the true loss of this pair is at least `lower`."""

    lower: float
    event: str
    draws: int
    confidence: float
    delta: float = 0.0

    def refutes(self, epsilon: float) -> bool:
        return self.lower > epsilon

    def __str__(self) -> str:
        but = f", but for a delta of {self.delta:g}" if self.delta else ""
        sure = f"({self.confidence:.6g} confidence, {self.draws} draws of each{but})"
        return f"the loss is at least {self.lower:.6g} {sure}: {self.event}"


def bound_loss(
    draw_one: Draw,
    draw_other: Draw,
    *,
    draws: int = 1_000_000,
    confidence: float = 0.999,
    bins: int = 256,
    delta: float = 0.0,
) -> LossBound:
    """A lower confidence bound on the loss between two neighbours, from `draws` outcomes of each.

    `draw_one(size)` and `draw_other(size)` return `size` independent outcomes, numbers or anything that sorts (encode a
    tuple as one number), on a dataset and on its neighbour; each is called once.

    The first half of the draws chooses one event E (a tail, a single value or an interval) and a direction (as in Ding
    et al. 2018, "Detecting Violations of Differential Privacy"); the second half, independent of that choice, tests it:
    ln P[E]/Q[E] >= ln lower(P)/upper(Q) by the Clopper-Pearson bounds, each wrong with probability at most
    (1 - confidence)/2. So the bound is honest however many events were looked at. The event chosen has the largest
    bound on the first half, not the largest ratio: a far tail has a large ratio by chance. `bins` is the number of
    quantiles at which intervals begin and end; up to so many distinct values are all used. With a `delta` the bound is
    of the epsilon in (epsilon, delta): ln (lower(P) - delta)/upper(Q).
    """
    draws, bins = _check_number("draws", draws, 2), _check_number("bins", bins, 1)
    check_confidence(confidence)
    one, other = _outcomes(draw_one, draws), _outcomes(draw_other, draws)
    half, each = draws // 2, 1 - (1 - confidence) / 2
    event, forward, _ = _choose_event(one[:half], other[:half], bins, normal_quantile(each), delta)
    likely, unlikely = (one[half:], other[half:]) if forward else (other[half:], one[half:])
    p = clopper_pearson(int(event.holds(likely).sum()), draws - half, each, "lower") - delta
    q = clopper_pearson(int(event.holds(unlikely).sum()), draws - half, each, "upper")
    lower = max(0.0, math.log(p / q)) if p > 0 else 0.0
    return LossBound(lower, f"{event}, likelier by draw_{'one' if forward else 'other'}", draws, confidence, delta)


def promise_loss(one: NDArray[Any], other: NDArray[Any], delta: float = 0.0, bins: int = 256) -> float:
    """About how large a bound such draws would allow; it holds for nothing, and says where more draws are worth it."""
    return _choose_event(one, other, bins, _LOOKING, delta)[2]


def _check_number(name: str, number: int, least: int, most: int | None = None) -> int:
    rule = f"A whole number from {least}{'' if most is None else f' to {most}'}."
    return check_whole(number, least, most, refuse(name, number, rule, Argument(name, least)))


def _outcomes(draw: Draw, draws: int) -> NDArray[Any]:
    drawn = np.asarray(draw(draws))
    if drawn.shape != (draws,):
        raise DataError(f"{draws} draws were asked for, an array of shape {drawn.shape} came back.")
    if np.any(drawn != drawn):
        raise DataError("A drawn outcome is NaN.", rule="It has no place in an order.", suggest="encode it as a number")
    return drawn


Edge = tuple[Any, bool] | None  # just before (False) or just after (True) a value; None: the end of the line


@dataclass(frozen=True)
class _Interval:
    start: Edge
    end: Edge

    def holds(self, x: NDArray[Any]) -> NDArray[np.bool_]:
        inside = np.ones(len(x), dtype=np.bool_)
        if self.start is not None:
            inside &= x > self.start[0] if self.start[1] else x >= self.start[0]
        if self.end is not None:
            inside &= x <= self.end[0] if self.end[1] else x < self.end[0]
        return inside

    def __str__(self) -> str:
        if self.start is not None and self.end is not None and self.start[0] == self.end[0]:
            return f"X = {self.start[0]}"
        left = "" if self.start is None else f"{self.start[0]} {'<' if self.start[1] else '<='} "
        return f"{left}X" + ("" if self.end is None else f" {'<=' if self.end[1] else '<'} {self.end[0]}")


def _choose_event(
    one: NDArray[Any], other: NDArray[Any], bins: int, z: float, delta: float
) -> tuple[_Interval, bool, float]:
    """The interval and the direction (True: likelier under `one`) that promise the largest lower bound, and that."""
    one, other, n = np.sort(one), np.sort(other), len(one)
    cuts = _cuts(one, other, bins, z, delta)
    edges: list[Edge] = [None, *((cut, after) for cut in cuts for after in (False, True)), None]

    def below(drawn: NDArray[Any]) -> NDArray[np.int64]:  # how many draws lie left of each edge
        before, after = np.searchsorted(drawn, cuts, "left"), np.searchsorted(drawn, cuts, "right")
        return np.concatenate([[0], np.stack([before, after], axis=1).ravel(), [n]]).astype(np.int64)

    start, end = np.triu_indices(len(edges), 1)  # every interval between two edges, both tails among them
    in_one, in_other = (np.diff(below(drawn)[np.stack([start, end])], axis=0)[0] for drawn in (one, other))
    forward, backward = _promise(in_one, in_other, n, z, delta), _promise(in_other, in_one, n, z, delta)
    direction = bool(forward.max() >= backward.max())
    promised = forward if direction else backward
    best = int(promised.argmax())
    return _Interval(edges[start[best]], edges[end[best]]), direction, float(promised[best])


def _cuts(one: NDArray[Any], other: NDArray[Any], bins: int, z: float, delta: float) -> NDArray[Any]:
    """Values at which intervals may begin or end: all when they are few, else by rank and by promise."""
    pooled = np.sort(np.concatenate([one, other]))
    values = np.unique(pooled)
    if len(values) <= bins:
        return values
    last = len(pooled) - 1
    outward = 2 ** np.arange(last.bit_length()) - 1  # ranks 0, 1, 3, 7, ... from both ends: far tails
    ranks = np.concatenate([np.linspace(0, last, bins).astype(np.int64), outward, last - outward])
    # A rare single value falls between quantiles; the most telling one in each direction is looked at too.
    in_one, in_other = (
        np.searchsorted(drawn, values, "right") - np.searchsorted(drawn, values, "left") for drawn in (one, other)
    )
    telling = [_promise(a, b, len(one), z, delta).argmax() for a, b in ((in_one, in_other), (in_other, in_one))]
    return np.unique(np.concatenate([pooled[ranks], values[telling]]))


def _promise(likely: NDArray[np.int64], unlikely: NDArray[np.int64], n: int, z: float, delta: float) -> Floats:
    """About the lower bound of ln (P - delta)/Q for many events at once, by Wilson's intervals.

    Wilson 1927: the ends of the interval for k of n are (k + z^2/2 -+ z sqrt(k(n-k)/n + z^2/4)) / (n + z^2).
    Approximate is enough here: it only chooses the event that is then tested exactly.
    """

    def log_end(k: NDArray[np.int64], sign: int, less: float) -> Floats:
        spread = z * np.sqrt(k * ((n - k) / n) + z * z / 4)
        return np.asarray(np.log(np.maximum((k + z * z / 2 + sign * spread) / (n + z * z) - less, 1e-300)))

    return log_end(likely, -1, delta) - log_end(unlikely, +1, 0.0)


def clopper_pearson(successes: int, trials: int, confidence: float, side: Literal["lower", "upper"]) -> float:
    """One-sided exact bound on a binomial probability; it covers the truth with probability >= confidence.

    Clopper and Pearson 1934: the lower bound is the p with P[Bin(n, p) >= k] = 1 - confidence, the upper bound the p
    with P[Bin(n, p) <= k] = 1 - confidence. P[Bin(n, p) >= k] = I_p(k, n-k+1), the regularised incomplete beta
    function, is bracketed by interval arithmetic; the bisection returns the end that is proven to be excluded, so the
    result errs outward only, by about 1e-12 of itself.

    >>> round(clopper_pearson(0, 10, .95, "upper"), 9), round(1 - .05**.1, 9)
    (0.258865551, 0.258865551)
    """
    trials = _check_number("trials", trials, 1)
    successes = _check_number("successes", successes, 0, trials)
    check_confidence(confidence)
    check_name("side", side, ("lower", "upper"))
    if successes == (0 if side == "lower" else trials):
        return 0.0 if side == "lower" else 1.0
    from flint import arb

    with working_precision(64):
        beyond = arb(1) - arb(confidence)

        def tail(p: float) -> arb:  # P[Bin(n, p) <= k] = P[Bin(n, 1-p) >= n-k]
            share, reach = (arb(p), successes) if side == "lower" else (arb(1) - arb(p), trials - successes)
            return share.beta_lower(arb(reach), arb(trials - reach + 1), True)

        outside, inside = (0.0, 1.0) if side == "lower" else (1.0, 0.0)
        further_out, sign = (operator.le, -1) if side == "lower" else (operator.ge, 1)
        proven, refused, odds = outside, inside, (successes + 0.5) / (trials - successes + 0.5)
        aside = sign * 3 * math.sqrt((1 + odds) ** 2 / odds / (trials + 1))  # three deviations of the logarithm of odds
        near = secant(lambda x: float((tail(logistic(x)) / beyond).log()), math.log(odds), math.log(odds) + aside)
        # Tails are monotone in p: what is proven, or not, close to the crossing is so for all p beyond it.
        for p in (min(logistic(near) * (1 + way * 2.0**-38), 1.0) for way in (sign, -sign) if not math.isnan(near)):
            proven, refused = (p, refused) if tail(p) <= beyond else (proven, p)
        while abs(outside - inside) > 2.0**-40 * outside:  # stopping early is safe, `outside` is proven
            middle = (outside + inside) / 2
            # "<=" is true only if it holds for the whole interval.
            known = further_out(middle, proven) or (further_out(middle, refused) and bool(tail(middle) <= beyond))
            outside, inside = (middle, inside) if known else (outside, middle)
    return outside

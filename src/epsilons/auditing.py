"""Tries to falsify a guarantee: exactly by enumerating small datasets, or statistically from draws.

The claim under attack (personalized differential privacy, Jorgensen et al. 2015, Definition 6): for every person i,
every dataset D, every neighbour D' that differs in i's records only, and every event E,

    |ln P[M(D) in E] - ln P[M(D') in E]| <= epsilon_i.

The roster (who was asked, with which epsilon) is public and stays the same in D and D'. Nothing here proves a
guarantee: `enumerate_losses` speaks for the datasets it was given, `bound_loss` only ever refutes.
"""

import itertools
import math
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsilons.accuracy.intervals import logistic, secant
from epsilons.arguments.checks import check_confidence, check_name, check_number, check_whole, refuse
from epsilons.display import Shown, show_count
from epsilons.errors import Argument, DataError, PlanError, PreferenceError
from epsilons.guarantee import NEIGHBORS
from epsilons.noise.entropy import working_precision
from epsilons.statistics.base import Floats

ABSENT = float("nan")  # a person whose records were replaced by nothing

Dataset = tuple[float, ...]
Outcomes = Sequence[Hashable] | NDArray[Any]
Distribution = Callable[[Floats], tuple[Outcomes, ArrayLike]]
Draw = Callable[[int], NDArray[Any]]

#: Mass that a distribution may leave out: up to `_ROUNDING` nobody can tell it from rounding, beyond `_UNLISTED` it is
#: refused, between the two it is one more outcome.
_ROUNDING, _UNLISTED = 1e-12, 1e-6
_NOT_LISTED = "(not listed)"


# Exact: every outcome of every neighbour ----------------------------------------------------------------------------


def _divide(loss: float, allowed: float) -> float:
    """How many times what is allowed was lost; nothing is never too much."""
    return 0.0 if loss == 0 else loss / allowed if allowed > 0 else math.inf


@dataclass(frozen=True)
class PersonLoss:
    """What one outcome tells about one person: |ln P/Q| between a dataset and its neighbour."""

    person: int
    epsilon: float
    loss: float
    data: Dataset
    neighbour: Dataset
    outcome: object

    @property
    def ratio(self) -> float:
        return _divide(self.loss, self.epsilon)


@dataclass(frozen=True)
class Verdict(Shown):
    """The pair of neighbours that came closest to breaking the claim, or broke it."""

    worst: PersonLoss | None
    pairs: int
    holds: bool
    delta: float = 0.0  # the largest mass that a distribution did not list: for that much nothing but its sum is known

    def __str__(self) -> str:
        if self.worst is None:
            return "nothing was checked: no person with a finite epsilon has a neighbour here"
        worst, verdict = self.worst, "holds" if self.holds else "REFUTED"
        left = f", up to a delta of {self.delta:.2g} that is not listed" if self.delta else ""
        shown = [["absent" if math.isnan(x) else f"{x:g}" for x in data] for data in (worst.data, worst.neighbour)]
        one, other = map(", ".join, shown)
        return (
            f"{verdict} on {self.pairs} pairs{left}: person {worst.person} loses {worst.loss:.6g} "
            f"of epsilon {worst.epsilon:.6g} ({worst.ratio:.4g} times)\n"
            f"  outcome {worst.outcome} of ({one}) against ({other})"
        )


def all_datasets(domain: Iterable[float], n: int) -> Iterator[Dataset]:
    """Every dataset of n people with values in the domain.

    >>> list(all_datasets((0, 1), 2))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    return itertools.product(domain, repeat=n)


def enumerate_losses(
    distribution: Distribution,
    datasets: Iterable[Sequence[float]],
    epsilons: Sequence[float],
    *,
    domain: Iterable[float] | None = None,
    neighbors: Literal["absent", "replace"] = "absent",
    tolerance: float = 1e-9,
    log: bool = False,
) -> Verdict:
    """The largest exact loss of anyone over all given datasets and their neighbours.

    `distribution(values)` returns the outcomes of the mechanism on those values and their exact probabilities (natural
    logarithms of them with `log=True`, which keeps far tails from underflowing to "impossible"). A value may be
    `ABSENT`. Neighbours replace one person's value by `ABSENT` (`neighbors="absent"`) or by every other value of
    `domain` (`neighbors="replace"`). An outcome possible on one side only is an infinite loss. People with epsilon inf
    are public: nothing is checked for them. The claim holds when every loss is at most epsilon*(1 + tolerance). A loss
    is what is certain in spite of the last bits of the probabilities; the tolerance is for coarser rounding.

    Outcomes that are not listed, of a mass up to 1e-6, are one more outcome: it is held to epsilon like the others, and
    since nothing is known of its parts the verdict then says with which `delta` it holds.

    >>> def coin(values):  # the truth with 3/4; a fair coin for a person who is absent
    ...     yes = {0: .25, 1: .75}.get(values[0], .5)
    ...     return ("no", "yes"), (1 - yes, yes)
    >>> print(enumerate_losses(coin, all_datasets((0, 1), 1), [.7]))
    holds on 2 pairs: person 0 loses 0.693147 of epsilon 0.7 (0.9902 times)
      outcome yes of (0) against (absent)
    """
    check_name("neighbors", neighbors, NEIGHBORS)
    substitutes = (ABSENT,) if neighbors == "absent" else () if domain is None else tuple(domain)
    if not substitutes:
        rule = "These are the values that a person's own may be replaced by."
        raise PlanError((Argument("neighbors", "replace"), " needs ", Argument("domain"), "."), rule=rule)
    if any(math.isnan(epsilon) or epsilon < 0 for epsilon in epsilons):
        raise PreferenceError("An epsilon is negative or missing.", rule="At least 0; infinite for a public person.")
    check_number("tolerance", tolerance)
    index: dict[tuple[bool, Hashable], int] = {}  # outcome -> its place in every vector of log-probabilities

    @lru_cache(maxsize=4096)  # under "replace" most neighbours are datasets of the enumeration themselves
    def law(data: Dataset) -> _Law:
        return _read_law(*distribution(np.array(data, dtype=np.float64)), index, log)

    worst: PersonLoss | None = None
    worst_share, delta, pairs, done = -1.0, 0.0, 0, set[Dataset]()
    for dataset in datasets:
        data = tuple(dataset)
        if len(data) != len(epsilons):
            raise DataError(
                f"A dataset of {show_count(len(data), 'person', 'people')} does not match a roster of {len(epsilons)}."
            )
        for person, epsilon in enumerate(epsilons):
            if math.isinf(epsilon):
                continue
            for value in substitutes:
                if value == data[person] or (math.isnan(value) and math.isnan(data[person])):
                    continue
                neighbour, pairs = (*data[:person], value, *data[person + 1 :]), pairs + 1
                if neighbour in done and data[person] in substitutes:
                    continue  # compared from the other side, with the same losses
                one, other = law(data), law(neighbour)
                loss, place = _largest_loss(one, other)
                delta = max(delta, one.unlisted, other.unlisted)
                # Ranked by the share of what is allowed, so that the worst pair alone decides for all.
                if (share := _divide(loss, epsilon * (1 + tolerance))) > worst_share:
                    outcome = _NOT_LISTED if place < 0 else next(itertools.islice(index, place, None))[1]
                    worst, worst_share = PersonLoss(person, epsilon, loss, data, neighbour, outcome), share
        done.add(data)
    if not done:
        raise DataError("There are no datasets.", rule="An iterator serves only once.", suggest="pass a fresh one")
    return Verdict(worst, pairs, 0 <= worst_share <= 1, delta)


class _Law(NamedTuple):
    """Log-probabilities by the outcomes' places in an index, and the mass beyond rounding that is not listed."""

    logs: Floats
    unlisted: float


def _read_law(outcomes: Outcomes, given: ArrayLike, index: dict[tuple[bool, Hashable], int], log: bool) -> _Law:
    """A distribution as it was given; `index` grows by the outcomes not seen before."""
    listed = outcomes.tolist() if isinstance(outcomes, np.ndarray) else list(outcomes)
    logs = np.asarray(given, dtype=np.float64)
    if logs.shape != (len(listed),):
        raise DataError(f"{len(listed)} outcomes need one probability each, not shape {logs.shape}.")
    if not log:
        if np.any(logs < 0):
            raise DataError("A probability is negative.", suggest=(Argument("log", True), " if these are logarithms"))
        with np.errstate(divide="ignore"):
            logs = np.log(logs)
    # Mass that is not listed is mass that is not audited: a window cut short must not pass for the whole law.
    unlisted = 1 - float(np.exp(logs).sum())
    if not -_ROUNDING <= unlisted <= _UNLISTED:
        raise DataError("The probabilities do not add up to 1.", suggest="normalise them or widen the window")
    # A NaN outcome differs from itself; ABSENT, one object, stands for all of them. The sign of a zero can be seen.
    told = [ABSENT if x != x else "-0.0" if x == 0 and str(x) == "-0.0" else x for x in listed]
    # Seen by whoever sees the answer, True is not 1.
    places = [index.setdefault((isinstance(x, bool | np.bool), x), len(index)) for x in told]
    vector = np.full(len(index), -np.inf)
    np.logaddexp.at(vector, places, logs)  # an outcome listed twice has the sum of both
    return _Law(vector, unlisted if unlisted > _ROUNDING else 0.0)


def certain_losses(p: Floats, q: Floats) -> Floats:
    """|ln P/Q| by outcome, less what the last bits of the two logarithms may add; 0 where both are impossible."""
    loss = np.abs(np.subtract(p, q, out=np.zeros(p.shape), where=p != q))
    loss -= 2.0**-50 * (1 + np.abs(np.maximum(p, q), out=np.zeros(p.shape), where=loss > 0))
    return np.maximum(loss, 0.0, out=loss)


def _largest_loss(one: _Law, other: _Law) -> tuple[float, int]:
    """The largest loss over the union of outcomes, and where: -1 for what is not listed."""
    size = min(len(one.logs), len(other.logs))
    for alone in (one.logs[size:], other.logs[size:]):
        if np.any(possible := alone > -np.inf):
            return math.inf, size + int(possible.argmax())
    losses = certain_losses(one.logs[:size], other.logs[:size])
    place = int(losses.argmax())
    less, more = sorted((one.unlisted, other.unlisted))
    beyond = math.log((more - _ROUNDING) / (less + _ROUNDING)) if more else 0.0
    return (beyond, -1) if beyond > losses[place] else (float(losses[place]), place)


# Statistical: draws from one pair of neighbours ---------------------------------------------------------------------


@dataclass(frozen=True)
class LossBound(Shown):
    """With probability `confidence` over the draws, the true loss of this pair is at least `lower`."""

    lower: float
    event: str
    draws: int
    confidence: float

    def refutes(self, epsilon: float) -> bool:
        return self.lower > epsilon

    def __str__(self) -> str:
        sure = f"({self.confidence:.6g} confidence, {self.draws} draws of each)"
        return f"the loss is at least {self.lower:.6g} {sure}: {self.event}"


def bound_loss(
    draw_one: Draw, draw_other: Draw, *, draws: int = 1_000_000, confidence: float = 0.999, bins: int = 256
) -> LossBound:
    """A lower confidence bound on the loss between two neighbours, from `draws` outcomes of each.

    `draw_one(size)` and `draw_other(size)` return `size` independent outcomes, numbers or anything that sorts (encode a
    tuple as one number), on a dataset and on its neighbour; each is called once.

    The first half of the draws chooses one event E (a tail, a single value or an interval) and a direction (as in Ding
    et al. 2018, "Detecting Violations of Differential Privacy"); the second half, independent of that choice, tests it:
    ln P[E]/Q[E] >= ln lower(P)/upper(Q) by the Clopper-Pearson bounds, each wrong with probability at most
    (1 - confidence)/2. So the bound is honest however many events were looked at. The event chosen has the largest
    bound on the first half, not the largest ratio: a far tail has a large ratio by chance. `bins` is the number of
    quantiles at which intervals begin and end; up to so many distinct values are all used.
    """
    draws, bins = _check_number("draws", draws, 2), _check_number("bins", bins, 1)
    check_confidence(confidence)
    one, other = _outcomes(draw_one, draws), _outcomes(draw_other, draws)
    half, each = draws // 2, 1 - (1 - confidence) / 2
    event, forward = _choose_event(one[:half], other[:half], bins, NormalDist().inv_cdf(each))
    likely, unlikely = (one[half:], other[half:]) if forward else (other[half:], one[half:])
    p = clopper_pearson(int(event.holds(likely).sum()), draws - half, each, "lower")
    q = clopper_pearson(int(event.holds(unlikely).sum()), draws - half, each, "upper")
    lower = max(0.0, math.log(p / q)) if p > 0 else 0.0
    return LossBound(lower, f"{event}, likelier by draw_{'one' if forward else 'other'}", draws, confidence)


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


def _choose_event(one: NDArray[Any], other: NDArray[Any], bins: int, z: float) -> tuple[_Interval, bool]:
    """The interval and the direction (True: likelier under `one`) that promise the largest lower bound."""
    one, other, n = np.sort(one), np.sort(other), len(one)
    cuts = _cuts(one, other, bins, z)
    edges: list[Edge] = [None, *((cut, after) for cut in cuts for after in (False, True)), None]

    def below(drawn: NDArray[Any]) -> NDArray[np.int64]:  # how many draws lie left of each edge
        before, after = np.searchsorted(drawn, cuts, "left"), np.searchsorted(drawn, cuts, "right")
        return np.concatenate([[0], np.stack([before, after], axis=1).ravel(), [n]]).astype(np.int64)

    start, end = np.triu_indices(len(edges), 1)  # every interval between two edges, both tails among them
    in_one, in_other = (np.diff(below(drawn)[np.stack([start, end])], axis=0)[0] for drawn in (one, other))
    forward, backward = _promise(in_one, in_other, n, z), _promise(in_other, in_one, n, z)
    direction = bool(forward.max() >= backward.max())
    best = int((forward if direction else backward).argmax())
    return _Interval(edges[start[best]], edges[end[best]]), direction


def _cuts(one: NDArray[Any], other: NDArray[Any], bins: int, z: float) -> NDArray[Any]:
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
    telling = [_promise(a, b, len(one), z).argmax() for a, b in ((in_one, in_other), (in_other, in_one))]
    return np.unique(np.concatenate([pooled[ranks], values[telling]]))


def _promise(likely: NDArray[np.int64], unlikely: NDArray[np.int64], n: int, z: float) -> Floats:
    """About the lower bound of ln P/Q for many events at once, by Wilson's intervals.

    Wilson 1927: the ends of the interval for k of n are (k + z^2/2 -+ z sqrt(k(n-k)/n + z^2/4)) / (n + z^2).
    Approximate is enough here: it only chooses the event that is then tested exactly.
    """

    def log_end(k: NDArray[np.int64], sign: int) -> Floats:
        spread = z * np.sqrt(k * ((n - k) / n) + z * z / 4)
        return np.asarray(np.log(np.maximum((k + z * z / 2 + sign * spread) / (n + z * z), 1e-300)))

    return log_end(likely, -1) - log_end(unlikely, +1)


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

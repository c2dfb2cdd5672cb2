"""Every outcome of every neighbour, on small data sets.

The claim under attack (personalized differential privacy, Jorgensen et al. 2015, Definition 6): for every person i,
every dataset D, every neighbour D' that differs in i's records only, and every event E,

    |ln P[M(D) in E] - ln P[M(D') in E]| <= epsilon_i.

The roster (who was asked, with which epsilon) is public and stays the same in D and D'. Nothing here proves a
guarantee: `enumerate_losses` speaks for the datasets it was given.
"""

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epsilons.arguments.checks import check_name, check_number
from epsilons.display import Shown, show_count
from epsilons.errors import Argument, DataError, PlanError, PreferenceError
from epsilons.guarantee import NEIGHBORS
from epsilons.statistics.base import Floats

ABSENT = float("nan")  # a person whose records were replaced by nothing

Dataset = tuple[float, ...]
Outcomes = Sequence[Hashable] | NDArray[Any]
Distribution = Callable[[Floats], tuple[Outcomes, ArrayLike]]

#: Mass that a distribution may leave out: up to `_ROUNDING` nobody can tell it from rounding, beyond `_UNLISTED` it is
#: refused, between the two it is one more outcome.
_ROUNDING, _UNLISTED = 1e-12, 1e-6
_NOT_LISTED = "(not listed)"


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
        return read_law(*distribution(np.array(data, dtype=np.float64)), index, log)

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


def read_law(outcomes: Outcomes, given: ArrayLike, index: dict[tuple[bool, Hashable], int], log: bool) -> _Law:
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

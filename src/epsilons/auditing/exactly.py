"""The largest exact loss of a claim: by listed laws, or by the sums that answers are made from.

Noisy sums with one case need no list. A discrete Laplace noise loses inverse scale times move in every cell at once,
where all sums lie beyond both centres; of Gaussian noises the rho is exact, and the least epsilon at a delta is bounded
from below (`divergence.py`). Where coins decide who counts, the law of sums is a mixture, and the loss is looked at far
out in the directions in which two cases differ.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from epsilons.auditing.claims import Claim, Data, Law
from epsilons.auditing.divergence import gaussian_epsilon, gaussian_rho, least_epsilon, least_rho
from epsilons.auditing.exact import ABSENT, enumerate_losses, read_law
from epsilons.auditing.made_up import Pair
from epsilons.auditing.report import Finding
from epsilons.guarantee import NANO
from epsilons.statistics.additive import Laplace
from epsilons.statistics.base import Floats
from epsilons.statistics.distributions import NoisySums
from epsilons.statistics.gaussian import Gaussian

#: How many data sets are enumerated, and how many outcomes of all of them together.
_MOST_DATASETS, _FEWEST_DATASETS, _MOST_OUTCOMES = 625, 12, 4_000_000
#: Data sets whose sums are compared: what one person moves hardly depends on the others. Of so few sums outcomes are
#: listed where coins decide who counts.
_MOST_SUMMED, _FEW_SUMS = 125, 2
RHO, EPSILON = "rho", "epsilon"


# Listed laws ---------------------------------------------------------------------------------------------------------


def by_law(claim: Claim, law: Law, level: float) -> list[Finding]:
    """The largest exact loss of anybody of a level."""
    return [_pure_by_law(claim, law, level)] if claim.delta is None else _by_law_at_delta(claim, law, level)


def _bound_work(claim: Claim, law: Law) -> int:
    """How many data sets there is time for."""
    outcomes, _ = law((claim.domain[0],) * len(claim.granted))
    return max(_FEWEST_DATASETS, min(_MOST_DATASETS, _MOST_OUTCOMES // max(1, len(outcomes))))


def _pure_by_law(claim: Claim, law: Law, level: float) -> Finding:
    """Data sets are told by the places of values in the domain."""
    places = [ABSENT if value is None else float(place) for place, value in enumerate(claim.values)]

    def decode(data: Sequence[float]) -> Data:
        return tuple(None if math.isnan(place) else claim.values[int(place)] for place in data)

    def encode(data: Data) -> tuple[float, ...]:
        return tuple(places[claim.values.index(value)] for value in data)

    promised = [c if g == level else math.inf for g, c in zip(claim.granted, claim.charged, strict=True)]
    verdict = enumerate_losses(
        lambda data: law(decode(data.tolist())),
        map(encode, claim.datasets(_bound_work(claim, law))),
        promised,
        domain=places,
        neighbors="absent" if claim.neighbors == "absent" else "replace",
        log=True,
    )
    worst, charged = verdict.worst, min(promised)
    if worst is None:
        return Finding(claim.name, level, charged, 0.0, True, f"exact, {verdict.pairs:,} pairs")
    pair = (decode(worst.data), decode(worst.neighbour))
    found, holds, how = worst.loss, verdict.holds, f"exact, {verdict.pairs:,} pairs"
    known = None if claim.known is None else max(claim.known[person] for person in claim.at(level))
    if known is not None and known > min(charged, level) * (1 + 1e-15) and holds:  # smaller than enumeration can see
        found, holds, how = known, False, "exact, by its weights and noise"
    rest = f", with a delta of {verdict.delta:.2g} not listed" if verdict.delta else ""
    return Finding(claim.name, level, charged, found, holds, how + rest, *pair, f"outcome {worst.outcome}")


class _Worst(NamedTuple):
    """The largest loss in one unit, and where."""

    loss: Any
    pair: Pair | None


def _by_law_at_delta(claim: Claim, law: Law, level: float) -> list[Finding]:
    assert claim.delta is not None
    index: dict[Any, int] = {}
    laws: dict[Data, Floats] = {}
    allowed, most = float(claim.delta), _bound_work(claim, law)

    def logs(data: Data) -> Floats:
        if data not in laws:
            listed = read_law(*law(data), index, True)
            rest = math.log(listed.unlisted) if listed.unlisted else -math.inf
            laws[data] = np.append(rest, listed.logs)
        found = laws[data]
        return np.append(found, np.full(1 + len(index) - len(found), -np.inf))

    worst = {unit: _Worst(-1.0, None) for unit in (EPSILON, RHO)[: 1 if claim.rhos is None else 2]}
    count = 0
    for pair in claim.pairs(level, most):
        logs(pair.data), logs(pair.neighbour)  # both, so that both know all outcomes
        one, other, count = logs(pair.data), logs(pair.neighbour), count + 1
        for unit in worst:
            loss = least_rho(one, other) if unit == RHO else least_epsilon(one, other, allowed)
            if loss > worst[unit].loss:
                worst[unit] = _Worst(loss, pair)
    return [_tell(claim, level, unit, *found, f"exact, {count:,} pairs", 1e-9) for unit, found in worst.items()]


def _tell(
    claim: Claim, level: float, unit: str, loss: Any, pair: Pair | None, how: str, tolerance: float = 0.0
) -> Finding:
    """A finding with a delta, in rho or as the least epsilon."""
    assert claim.delta is not None
    first = claim.at(level)[0]
    charged: Any = claim.charged[first]
    if unit == RHO:
        assert claim.rhos is not None
        charged = claim.rhos[first]
    holds = loss <= charged * (1 + Fraction(tolerance))
    event = "all outcomes" if unit == RHO else "the most telling outcomes"
    shown = (pair.data, pair.neighbour, event) if pair is not None and loss > 0 else ((), (), "")
    found = max(0.0, float(loss))
    return Finding(
        claim.name, level, float(charged), found, bool(holds), how, *shown, unit=unit, delta=float(claim.delta)
    )


# Noisy sums ----------------------------------------------------------------------------------------------------------


def can_be_summed(claim: Claim) -> bool:
    """Whether its sums say all: of one case, or of so many sums that their outcomes cannot be listed."""
    if claim.sums is None:
        return False
    sums = claim.sums((claim.domain[0],) * len(claim.granted))
    kinds, one_case = {type(law) for law in sums.laws}, len(sums.mixture) == 1
    if claim.delta is not None:
        return kinds == {Laplace} or (kinds == {Gaussian} and one_case)
    return kinds == {Laplace} and (one_case or len(sums.laws) > _FEW_SUMS)


def by_sums(claim: Claim) -> list[Finding]:
    """The largest losses at all levels by the sums that answers are made from."""
    known: dict[Data, NoisySums] = {}

    def sums(data: Data) -> NoisySums:
        assert claim.sums is not None
        if data not in known:
            known[data] = claim.sums(data)
        return known[data]

    return [finding for level in claim.levels for finding in _level_by_sums(claim, sums, level)]


def _level_by_sums(claim: Claim, sums: Callable[[Data], NoisySums], level: float) -> list[Finding]:
    pairs = list(claim.pairs(level, _MOST_SUMMED))
    if not pairs:
        return [Finding(claim.name, level, claim.charged[claim.at(level)[0]], 0.0, True, "no neighbours")]
    compared = [(sums(pair.data), sums(pair.neighbour)) for pair in pairs]
    normal = all(isinstance(law, Gaussian) for law in compared[0][0].laws)
    losses = [gaussian_rho(moves(*two)) if normal else pure_loss(*two) for two in compared]
    place = max(range(len(losses)), key=losses.__getitem__)
    pair, loss, how = pairs[place], losses[place], f"exact, by sums of {len(pairs):,} pairs"
    if claim.delta is None:
        return [_tell_pure(claim, level, loss, pair, how)]
    if not normal:  # an account counts half the square of a pure loss
        return [_tell(claim, level, RHO, loss**2 / 2, pair, f"{how}, half the square of a pure loss", 1e-9)]
    least = gaussian_epsilon(moves(*compared[place]), float(claim.delta))
    found = [_tell(claim, level, EPSILON, least, pair, how)]
    return found if claim.rhos is None else [*found, _tell(claim, level, RHO, loss, pair, how)]


def _tell_pure(claim: Claim, level: float, loss: Any, pair: Pair, how: str) -> Finding:
    """Held to what is charged and to what was granted, in whole nano-epsilon."""
    charged = claim.charged[claim.at(level)[0]]
    limit = Fraction(round(min(charged, level) * NANO), NANO)
    slack = Fraction(0) if isinstance(loss, Fraction) else Fraction(1, 10**9)
    told = (pair.data, pair.neighbour, "sums far out") if loss else ((), (), "")
    return Finding(claim.name, level, charged, float(loss), bool(loss <= limit * (1 + slack)), how, *told)


def moves(one: NoisySums, other: NoisySums) -> tuple[tuple[int, Fraction], ...]:
    """(how far each sum moves, the variance of its Gaussian noise)."""
    ((_, first),), ((_, second),) = one.mixture, other.mixture
    laws: Iterable[Any] = one.laws
    return tuple((a - b, law.variance) for a, b, law in zip(first, second, laws, strict=True))


def pure_loss(one: NoisySums, other: NoisySums) -> Fraction | float:
    """With Laplace noise: exact where there is one case, else the largest far out where two cases differ."""
    laws: Sequence[Any] = one.laws
    rates = [law.inverse for law in laws]
    if len(one.mixture) == len(other.mixture) == 1:
        ((_, first),), ((_, second),) = one.mixture, other.mixture
        return sum((abs(a - b) * rate for a, b, rate in zip(first, second, rates, strict=True)), Fraction(0))
    sides = [(np.log([c for c, _ in side.mixture]), _scaled(side, rates)) for side in (one, other)]
    (logs, here), (others, there) = sides
    signs = np.unique(np.sign(here[:, None, :] - there[None, :, :]).reshape(-1, len(rates)), axis=0)
    largest = 0.0
    for sign in itertools.chain(signs, -signs):
        first_log, second_log = (_log_sum(log + centres @ sign) for log, centres in ((logs, here), (others, there)))
        largest = max(largest, abs(first_log - second_log) - 1e-12 * (1 + abs(first_log)))
    return largest


def _scaled(sums: NoisySums, rates: Sequence[Fraction]) -> Floats:
    """Centres in units of what a loss of one moves, which no float cuts: they are small."""
    return np.array([[float(c * rate) for c, rate in zip(centres, rates, strict=True)] for _, centres in sums.mixture])


def _log_sum(logs: Floats) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))

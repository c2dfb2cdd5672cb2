"""A claim under attack: who is charged how much, and what a mechanism does on made-up data, as laws or as draws.

`audit_claim` looks for the neighbours that break it: exactly where there are laws, by enumeration, else from draws, in
two rounds. The first tries many pairs with few draws, the second draws afresh on the pair that looked worst for each
level, so that the choice costs no confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.auditing.draws import bound_loss
from epsilons.auditing.exact import ABSENT, PersonLoss, enumerate_losses
from epsilons.auditing.made_up import Pair, list_datasets, list_pairs
from epsilons.auditing.report import Finding
from epsilons.errors import PlanError

#: How many data sets are enumerated, how many pairs are tried with draws for each level, and of how many draws.
_MOST_DATASETS, _MOST_PAIRS, _TRIED = 625, 24, 8
#: What stands for an outcome that is no number, among numbers.
_NOT_A_NUMBER = -1.7e308
Law = Callable[[tuple[Any, ...]], tuple[Any, Any]]
Draw = Callable[[tuple[Any, ...], int], Any]


@dataclass(frozen=True)
class Claim:
    """ "Nobody loses more than they are charged", about a roster whose values are in a public domain.

    `law(data)` gives outcomes and the logarithms of their chances, `draw(data, size)` so many outcomes. Data hold None
    for who has no value. `known` are losses that follow from weights and noise by exact arithmetic, if there are such.
    """

    name: str
    granted: tuple[float, ...]
    charged: tuple[float, ...]
    neighbors: str
    domain: tuple[Any, ...]
    law: Law | None = None
    draw: Draw | None = None
    known: tuple[float, ...] | None = None

    @cached_property
    def levels(self) -> list[float]:
        """The grants for which something is promised."""
        pairs = zip(self.granted, self.charged, strict=True)
        return sorted({granted for granted, charged in pairs if math.isfinite(charged)})

    @property
    def substitutes(self) -> tuple[Any, ...]:
        """What a person's value may become."""
        return (None,) if self.neighbors == "absent" else self.domain


def audit_claim(
    claim: Claim, draws: int, confidence: float, pairs: int = _MOST_PAIRS, levels: int | None = None
) -> list[Finding]:
    """What was found for each level, exactly where that can be; where draws are dear, on few pairs for few levels."""
    if claim.law is not None:
        try:
            return [_enumerate(claim, claim.law, level) for level in claim.levels]
        except PlanError:  # too many outcomes to list
            if claim.draw is None:
                raise
    looked_at = claim.levels[:levels]
    each = 1 - (1 - confidence) / max(1, len(looked_at))
    return [_attack(claim, level, draws, each, pairs) for level in looked_at]


def _at(claim: Claim, level: float) -> list[int]:
    return [person for person, granted in enumerate(claim.granted) if granted == level]


def _enumerate(claim: Claim, law: Law, level: float) -> Finding:
    """The largest exact loss of anybody of a level. Data sets are told by the places of values in the domain."""
    values = (*claim.domain, None) if claim.neighbors == "absent" and None not in claim.domain else claim.domain
    places = [ABSENT if value is None else float(place) for place, value in enumerate(values)]

    def decode(data: Sequence[float]) -> tuple[Any, ...]:
        return tuple(None if math.isnan(place) else values[int(place)] for place in data)

    promised = [c if g == level else math.inf for g, c in zip(claim.granted, claim.charged, strict=True)]
    verdict = enumerate_losses(
        lambda data: law(decode(data.tolist())),
        list_datasets(places, len(claim.granted), _MOST_DATASETS),
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
    known = None if claim.known is None else max(claim.known[person] for person in _at(claim, level))
    if known is not None and known > min(charged, level) * (1 + 1e-15) and holds:  # smaller than enumeration can see
        found, holds, how = known, False, "exact, by its weights and noise"
    rest = f", with a delta of {verdict.delta:.2g} not listed" if verdict.delta else ""
    return Finding(claim.name, level, charged, found, holds, how + rest, *pair, f"outcome {_tell(worst)}")


def _tell(worst: PersonLoss) -> str:
    return str(worst.outcome)


def _attack(claim: Claim, level: float, draws: int, confidence: float, most: int) -> Finding:
    """A lower bound on the loss of somebody of a level, on the pair that looked worst with a few draws."""
    people = _at(claim, level)
    those, charged = sorted({people[0], people[-1]}), claim.charged[people[0]]
    pairs = list(list_pairs(claim.domain, those, len(claim.granted), claim.substitutes, most))
    if not pairs:
        return Finding(claim.name, level, charged, 0.0, True, "no neighbours")
    few = max(50, draws // _TRIED)
    tried = pairs[:: max(1, len(pairs) // most)][:most]
    looked = [_bound(claim, pair, few, 0.9).lower for pair in tried]
    worst = tried[int(np.argmax(looked))]
    bound = _bound(claim, worst, draws, confidence)
    how = f"{draws:,} draws of each of two, {len(tried)} pairs tried first"
    holds = not bound.refutes(charged)
    return Finding(
        claim.name, level, charged, bound.lower, holds, how, worst.data, worst.neighbour, bound.event, confidence
    )


def _bound(claim: Claim, pair: Pair, draws: int, confidence: float) -> Any:
    assert claim.draw is not None
    one, other = encode_outcomes(claim.draw(pair.data, draws), claim.draw(pair.neighbour, draws))
    return bound_loss(lambda _: one, lambda _: other, draws=draws, confidence=confidence)


def encode_outcomes(one: Any, other: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Outcomes of any kind as something that sorts: numbers as they are, all else as it is written."""
    listed = [given.tolist() if isinstance(given, np.ndarray) else list(given) for given in (one, other)]
    if all(isinstance(outcome, Real) for side in listed for outcome in side):
        first, second = (np.array(side, np.float64) for side in listed)
        return np.nan_to_num(first, nan=_NOT_A_NUMBER), np.nan_to_num(second, nan=_NOT_A_NUMBER)
    first, second = (np.array([repr(outcome) for outcome in side]) for side in listed)
    return first, second

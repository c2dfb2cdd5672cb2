"""What aggregators publish together: sums per level, the estimate from them, and the promise that goes with them."""

import json
import math
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.options import DEFAULT_ASSUME
from epsilons.collection.terms import Collection, noise_variance
from epsilons.display import Shown, show_count
from epsilons.errors import PlanError, ProtocolError
from epsilons.guarantee import ROSTER_IS_PUBLIC, Guarantee, to_epsilon
from epsilons.local.estimate import Combination, Ends, Estimate, check_combination
from epsilons.local.leakage import COUNTS, Leakage
from epsilons.local.sampling_privacy import SamplingPrivacy

_PUBLICATION_FORMAT = 1
#: A sum is called impossible if honest noise reaches it with less than this probability: 2^-40.
_IMPOSSIBLE_BITS = 40
HONEST_ONE = (
    "It holds if at least one aggregator is honest, whatever the others, the coordinator and other owners do; an "
    "honest one keeps its key, its shares and its noise to itself and runs this protocol."
)
SENT_ONCE = "An owner who sends n reports, in this collection or another, loses n times as much."
PAPER_CAVEATS = (
    "The paper's epsilon holds against an observer who sees round two alone. Here both rounds' sums are published "
    "without noise: read the leakage from published counts.",
    "All aggregators together, or one that reads another's shares, see every owner in both rounds.",
)
#: The grid of the noise's law: points per standard deviation, and how many standard deviations on each side.
_FINE, _WIDE = 400, 40


@dataclass(frozen=True)
class LevelSums:
    """One level: how many reports were added up, refused by their proofs, or seen by some aggregators only.

    `sums` has a row per round and a number per published cell; it is empty if the batch stayed below the minimum.
    """

    level: str
    nano: int | None
    reports: int
    refused: int
    partial: int
    sums: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Publication(Shown):
    """Everything that a collection makes public."""

    collection: Collection
    batches: tuple[LevelSums, ...]

    @property
    def label(self) -> str:
        return "Sampling Privacy (Joy)" if self.guarantee is None else "shares with every aggregator's own noise"

    @property
    def published(self) -> tuple[LevelSums, ...]:
        """The levels that reached the minimum."""
        return tuple(batch for batch in self.batches if batch.sums)

    def check(self) -> None:
        """Refuse sums that honest aggregators cannot have sent: one of them lied, or lost shares."""
        for batch in self.published:
            room = self._room(batch.nano)
            usable = all(-room <= number <= batch.reports + room for row in batch.sums for number in row)
            if not usable or (batch.nano is None and any(sum(row) != batch.reports for row in batch.sums)):
                rule = "A cell counts some of the reports, give or take the noise."
                hint = "ask the aggregators: one of them lost shares or did not add them up"
                raise ProtocolError("The aggregators' sums do not fit together.", rule=rule, suggest=hint)

    def _room(self, nano: int | None) -> float:
        """How far noise of all aggregators takes any cell, but for a chance of 2^-40."""
        if nano is None:
            return 0.0
        aggregators, scale = len(self.collection.aggregators), to_epsilon(nano) / self.collection.cells_moved
        draws = aggregators * len(self.collection.cells)
        return aggregators * ((_IMPOSSIBLE_BITS + 1) * math.log(2) + math.log(draws)) / scale

    def estimate(self, *, assume: Any = DEFAULT_ASSUME, density: float = 0.5) -> Estimate:
        """How many owners have each option.

        `assume=g`: no level's expected share of an option is further than g spreads from everyone's. "unrelated" is 0,
        and combines levels by the inverse of their variance; "nothing" counts every owner alike, and is unbiased
        however answers follow levels.
        """
        if not self.published:
            rule = f"At least {self.collection.minimum:,} reports."
            raise PlanError("No level reached the minimum.", rule=rule, suggest="more owners")
        survey, notes = self.collection.survey, self._notes()
        if isinstance(survey.protocol, SamplingPrivacy):
            found = survey.protocol.estimate(*self.published[0].sums)
            return replace(found, labels=survey.options, notes=(*found.notes, *notes))
        combined = self._combine(assume, density)
        people, weights = combined.people, combined.weights * combined.people
        values = weights @ np.array([batch.sums[0] for batch in self.published], dtype=np.float64)
        noise = float(weights**2 @ self._noise())
        within = np.clip(values, 0, people)
        errors = np.hypot(np.sqrt(noise + combined.split(within)), combined.bias(within))
        epsilons = [to_epsilon(batch.nano) / self.collection.cells_moved for batch in self.published]
        scales = tuple(zip(weights.tolist(), epsilons, strict=True))

        def bounds(level: float) -> Ends:
            z = NormalDist().inv_cdf((1 + level) / 2)
            reach = max(noise_quantile(scales, len(self.collection.aggregators), level), z * math.sqrt(noise))
            return combined.ends(values, lambda n: np.sqrt(reach**2 + z**2 * combined.split(n)))

        said = (f"One owner who lies moves a count by at most {float(weights.max()):.4g}.", *combined.condition(values))
        return Estimate(values, errors, int(people), self.leakages, bounds, survey.options, (*said, *notes))

    def weights(self, *, assume: Any = DEFAULT_ASSUME, density: float = 0.5) -> NDArray[np.float64]:
        """What one owner's report counts for, per published level; 1 on average. From public facts only."""
        combined = self._combine(assume, density)
        return combined.weights * combined.people

    def _combine(self, assume: Any, density: float) -> Combination:
        related, density = check_combination(assume, density)
        sizes = np.array([batch.reports for batch in self.published], dtype=np.float64)
        # A cell's noise is that of the level, a share of which falls to each owner.
        return Combination.best(sizes, self._noise() / sizes, related, density)

    def _noise(self) -> NDArray[np.float64]:
        """The variance of a cell per published level."""
        each = [noise_variance(batch.nano or 0, self.collection.neighbors) for batch in self.published]
        return len(self.collection.aggregators) * np.array(each)

    def _notes(self) -> tuple[str, ...]:
        few = [batch.level for batch in self.batches if not batch.sums]
        notes = [f"Level {name} is left out: fewer than {self.collection.minimum:,} reports." for name in few]
        if refused := sum(batch.refused for batch in self.batches):
            notes.append(f"{show_count(refused, 'report was', 'reports were')} refused: their proofs do not hold.")
        if partial := sum(batch.partial for batch in self.batches):
            who = show_count(partial, "owner did", "owners did")
            notes.append(f"{who} not reach every aggregator in every round: left out.")
        return tuple(notes)

    @property
    def guarantee(self) -> Guarantee | None:
        """The promise in the form that composes with other releases; Joy's protocol has none."""
        if not self.collection.survey.levels:
            return None
        losses = tuple(sorted({(batch.nano, batch.nano) for batch in self.published}, key=lambda pair: pair[0] or 0))
        return Guarantee(self.collection.neighbors, losses, caveats=(ROSTER_IS_PUBLIC, HONEST_ONE, SENT_ONCE))

    def leakages(self) -> tuple[Leakage, ...]:
        """What all aggregators but one learn, with the publication: exactly epsilon under "absent"."""
        if self.guarantee is None:
            return self.estimate().leakages
        found, neighbors = [], self.collection.neighbors
        for batch in self.published:
            epsilon = to_epsilon(batch.nano)
            # With all other noise known, a cell moved by 1 shows one bit, which is randomized response at epsilon;
            # two cells moved by 1 show no more than that (Kairouz, Oh, Viswanath 2015, Theorem 2).
            more, less = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
            pair = (np.array([more, less]), np.array([less, more]))
            sees, exact = f"all but one aggregator, level {batch.level}", neighbors == "absent"
            found.append(Leakage(COUNTS, sees, epsilon, [pair], epsilon, neighbors=neighbors, exact=exact))
        return tuple(found)

    def caveats(self) -> tuple[str, ...]:
        return PAPER_CAVEATS if self.guarantee is None else self.guarantee.caveats

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": _PUBLICATION_FORMAT,
            "label": self.label,
            "collection": self.collection.to_dict(),
            "batches": [asdict(batch) | {"sums": [list(row) for row in batch.sums]} for batch in self.batches],
            "guarantee": None if self.guarantee is None else self.guarantee.to_dict(),
            "caveats": list(self.caveats()),
        }

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """The inverse of `to_dict`; label, guarantee and caveats follow from the terms."""
        try:
            if document["format"] != _PUBLICATION_FORMAT:
                raise KeyError
            batches = tuple(
                LevelSums(**{**batch, "sums": tuple(tuple(int(n) for n in row) for row in batch["sums"])})
                for batch in document["batches"]
            )
            collection = Collection.from_dict(document["collection"])
        except (KeyError, TypeError, ValueError):
            raise ProtocolError("This is not a publication.", suggest="epsilons collect run writes one") from None
        return cls(collection, batches)

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"

    def __str__(self) -> str:
        promise = [str(self.guarantee)] if self.guarantee is not None else list(self.caveats())
        head = [self.collection.survey.question, f"Collected by {self.label}."]
        if not self.published:  # a batch that is too small is no secret, and no mistake of who prints it
            return "\n".join([*head, "", *self._notes()])
        return "\n".join([*head, "", self.estimate().table(), "", *promise])


@lru_cache(maxsize=256)
def noise_quantile(scales: tuple[tuple[float, float], ...], draws: int, level: float) -> float:
    """The smallest x with P(|S| <= x) >= level, rounded up by less than a hundredth of S's standard deviation.

    S adds up, for each (weight, inverse scale), `draws` independent discrete Laplace draws times the weight. For
    printing intervals only; no draw uses it.
    """
    kept = [(weight, scale) for weight, scale in scales if weight > 0 and scale < 700]
    spread = math.sqrt(sum(draws * weight**2 / (2 * math.sinh(scale / 2) ** 2) for weight, scale in kept))
    if not spread:
        return 0.0
    step, half = spread / _FINE, _FINE * _WIDE
    size = 1 << (2 * half).bit_length()
    product = np.ones(size // 2 + 1, np.complex128)
    for weight, scale in kept:
        masses = np.zeros(size)
        cells = _masses(weight, scale, step, half)
        masses[: half + 1], masses[size - half :] = cells[half:], cells[:half]
        product *= np.fft.rfft(masses) ** draws
    law = np.maximum(np.fft.irfft(product, size), 0)
    inside = np.cumsum(law[: half + 1]) + np.concatenate([[0.0], np.cumsum(law[: size - half - 1 : -1])])[: half + 1]
    place = int(np.searchsorted(inside, level * law.sum()))
    # Every draw was moved to a grid point, by half a step at most; these moves add up like independent errors.
    return (place + math.sqrt(len(kept) * draws)) * step


def _masses(weight: float, scale: float, step: float, half: int) -> NDArray[np.float64]:
    """The chance that weight * draw lies in each cell of the grid -half*step, ..., half*step."""
    edges = np.floor((np.arange(-half, half + 2) - 0.5) * step / weight)
    q = math.exp(-scale)
    # F(k) = 1 - q^(k+1)/(1+q) for k >= 0 and q^(-k)/(1+q) below; symmetric tails keep every difference exact enough.
    with np.errstate(under="ignore"):
        upper = 1 - np.exp(-scale * (np.maximum(edges, 0) + 1)) / (1 + q)
        below = np.where(edges >= 0, upper, np.exp(scale * np.minimum(edges, 0)) / (1 + q))
    return np.asarray(np.diff(below))

"""What aggregators publish together: sums per level, the estimate from them, and the promise that goes with them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.collection.noise_sums import quantile
from epsilons.collection.terms import Collection, noise_variance
from epsilons.errors import PlanError, ProtocolError
from epsilons.guarantee import ROSTER_IS_PUBLIC, Guarantee, to_epsilon
from epsilons.local.estimate import Estimate
from epsilons.local.leakage import COUNTS, Leakage
from epsilons.local.sampling_privacy import SamplingPrivacy

FORMAT = 1
#: A sum is called impossible if honest noise reaches it with less than this probability: 2^-40.
_IMPOSSIBLE_BITS = 40
PAPER_LABEL = "Sampling Privacy (paper 3)"
REPAIRED_LABEL = "shares with every aggregator's own noise"
HONEST_ONE = (
    "It holds if at least one aggregator is honest, whatever the others, the coordinator and other owners do; an "
    "honest one keeps its key, its shares and its noise to itself and runs this protocol."
)
SENT_ONCE = "Whoever sends n reports, in this collection or another, loses n times as much."


@dataclass(frozen=True)
class Batch:
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
class Publication:
    """Everything that a collection makes public."""

    collection: Collection
    batches: tuple[Batch, ...]

    @property
    def label(self) -> str:
        """Which protocol this is."""
        return PAPER_LABEL if self.collection.two_rounds else REPAIRED_LABEL

    @property
    def published(self) -> tuple[Batch, ...]:
        """The levels that reached the minimum."""
        return tuple(batch for batch in self.batches if batch.sums)

    def check(self) -> None:
        """Refuse sums that honest aggregators cannot have sent: somebody lied, or lost shares."""
        for batch in self.published:
            room = self._room(batch.nano)
            usable = all(-room <= number <= batch.reports + room for row in batch.sums for number in row)
            if usable and self.collection.two_rounds:
                usable = all(sum(row) == batch.reports for row in batch.sums)
            if not usable:
                raise ProtocolError(
                    "The aggregators' sums do not fit together.",
                    rule="A cell counts some of the reports, give or take the noise.",
                    suggest="ask the aggregators: one of them lost shares or did not add them up",
                )

    def _room(self, nano: int | None) -> float:
        """How far noise of all aggregators takes any cell, but for a chance of 2^-40."""
        if nano is None:
            return 0.0
        aggregators = len(self.collection.aggregators)
        draws = aggregators * len(self.collection.cells)
        scale = to_epsilon(nano) / (2 if self.collection.neighbors == "replace" else 1)
        return aggregators * ((_IMPOSSIBLE_BITS + 1) * math.log(2) + math.log(draws)) / scale

    # The estimate -----------------------------------------------------------------------------------------------------

    def estimate(self, *, assume: str = "unrelated", density: float = 0.5) -> Estimate:
        """How many owners have each option.

        `assume="unrelated"` (levels say nothing about answers) combines levels by the inverse of their variance;
        "nothing" counts every owner alike, and is unbiased however answers follow levels.
        """
        if not self.published:
            raise PlanError(
                "No level reached the minimum.",
                rule=f"At least {self.collection.minimum:,} reports.",
                suggest="more owners",
            )
        notes = self._notes()
        labels = self.collection.survey.options
        protocol = self.collection.survey.protocol
        if isinstance(protocol, SamplingPrivacy):
            found = protocol.estimate(*self.published[0].sums).named(labels)
            return Estimate(
                found.values, found.errors, found.respondents, found.leak, found.bounds, labels, (*found.notes, *notes)
            )
        weights = self.weights(assume=assume, density=density)
        return self._combine(weights, assume, labels, notes)

    def weights(self, *, assume: str = "unrelated", density: float = 0.5) -> NDArray[np.float64]:
        """What one owner's report counts for, per published level; 1 on average. From public facts only."""
        if assume not in ("unrelated", "nothing"):
            raise PlanError("Unknown assumption.", rule='"unrelated" or "nothing".', suggest='assume="unrelated"')
        if isinstance(density, bool) or not isinstance(density, (int, float)) or not 0 < density < 1:
            raise PlanError("This density is not usable.", rule="It lies between 0 and 1.", suggest="density=0.5")
        sizes = np.array([batch.reports for batch in self.published], dtype=np.float64)
        if assume == "nothing":
            return np.ones(len(sizes))
        # A level's share of an option has variance noise/n^2 + density(1 - density)/n; a weight per owner divides by n.
        base = 1 / (self._noise() / sizes + density * (1 - density))
        return np.asarray(base * sizes.sum() / float(sizes @ base))

    def _noise(self) -> NDArray[np.float64]:
        """The variance of a cell per published level."""
        each = [noise_variance(batch.nano or 0, self.collection.neighbors) for batch in self.published]
        return len(self.collection.aggregators) * np.array(each)

    def _combine(
        self, weights: NDArray[np.float64], assume: str, labels: tuple[str, ...], notes: tuple[str, ...]
    ) -> Estimate:
        sizes = np.array([batch.reports for batch in self.published], dtype=np.float64)
        people = float(sizes.sum())
        values = weights @ np.array([batch.sums[0] for batch in self.published], dtype=np.float64)
        noise = float(weights**2 @ self._noise())
        # What the split of an option's owners over levels adds if it is by chance: `local.personal` has the formula.
        split = 0.0
        if assume == "unrelated" and people > 1:
            split = max(0.0, float(sizes @ (weights / people) ** 2) - 1 / people) * people / (people - 1)
        within = np.clip(values, 0, people)
        errors = np.sqrt(noise + split * within * (people - within))
        halves = 2 if self.collection.neighbors == "replace" else 1
        scales = tuple(
            (float(weight), to_epsilon(batch.nano) / halves)
            for weight, batch in zip(weights, self.published, strict=True)
        )

        def bounds(level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            z = NormalDist().inv_cdf((1 + level) / 2)
            reach = max(quantile(scales, len(self.collection.aggregators), level), z * math.sqrt(noise))
            # The n with (value - n)^2 <= reach^2 + z^2 split n (people - n): between the roots of a quadratic.
            a, b, c = 1 + z**2 * split, -2 * values - z**2 * split * people, values**2 - reach**2
            root = np.sqrt(np.maximum(0, b**2 - 4 * a * c))
            return np.clip((-b - root) / (2 * a), 0, people), np.clip((-b + root) / (2 * a), 0, people)

        most = float(weights.max())
        said = [f"One owner who lies moves a count by at most {most:.4g}."]
        if assume == "unrelated" and len(weights) > 1:
            said.append("Levels are combined as if they said nothing about answers.")
        return Estimate(values, errors, int(people), self.leakages, bounds, labels, (*said, *notes))

    def _notes(self) -> tuple[str, ...]:
        notes = [
            f"Level {batch.level} is left out: fewer than {self.collection.minimum:,} reports."
            for batch in self.batches
            if not batch.sums
        ]
        if refused := sum(batch.refused for batch in self.batches):
            notes.append(f"{refused:,} reports were refused: their proofs do not hold.")
        if partial := sum(batch.partial for batch in self.batches):
            notes.append(f"{partial:,} owners did not reach every aggregator in every round and are not counted.")
        return tuple(notes)

    # The promise ------------------------------------------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee | None:
        """The promise in the form that composes with other releases; the paper's protocol has none."""
        if self.collection.two_rounds:
            return None
        losses = tuple(sorted({(batch.nano, batch.nano) for batch in self.published}, key=lambda pair: pair[0] or 0))
        return Guarantee(self.collection.neighbors, losses, caveats=(ROSTER_IS_PUBLIC, HONEST_ONE, SENT_ONCE))

    def leakages(self) -> tuple[Leakage, ...]:
        """What all aggregators but one learn, with the publication: exactly epsilon under "absent"."""
        protocol = self.collection.survey.protocol
        if protocol is not None:
            return self.estimate().leakages
        found = []
        for batch in self.published:
            epsilon = to_epsilon(batch.nano)
            # With all other noise known, a cell moved by 1 shows one bit, which is randomized response at epsilon;
            # two cells moved by 1 show no more than that (Kairouz, Oh, Viswanath 2015, Theorem 2).
            more, less = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
            pair = (np.array([more, less]), np.array([less, more]))
            sees = f"all but one aggregator, level {batch.level}"
            exact = self.collection.neighbors == "absent"
            found.append(
                Leakage.of(
                    COUNTS,
                    sees,
                    epsilon,
                    [pair],
                    epsilon=None,
                    claim=None,
                    neighbors=self.collection.neighbors,
                    exact=exact,
                )
            )
        return tuple(found)

    def caveats(self) -> tuple[str, ...]:
        """What must be said beside the numbers."""
        if not self.collection.two_rounds:
            return () if self.guarantee is None else self.guarantee.caveats
        return (
            "The paper's epsilon holds for somebody who sees round two alone. Here both rounds' sums are published "
            "without noise: read the leakage from published counts.",
            "All aggregators together, or one that reads another's shares, see every owner in both rounds.",
        )

    # The file ---------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        return {
            "format": FORMAT,
            "label": self.label,
            "collection": self.collection.to_dict(),
            "batches": [
                {
                    "level": batch.level,
                    "nano": batch.nano,
                    "reports": batch.reports,
                    "refused": batch.refused,
                    "partial": batch.partial,
                    "sums": [list(row) for row in batch.sums],
                }
                for batch in self.batches
            ],
            "guarantee": None if self.guarantee is None else self.guarantee.to_dict(),
            "caveats": list(self.caveats()),
        }

    @classmethod
    def from_dict(cls, document: Any) -> Publication:
        """The inverse of `to_dict`."""
        try:
            if document["format"] != FORMAT:
                raise KeyError
            batches = tuple(
                Batch(**{**batch, "sums": tuple(tuple(int(n) for n in row) for row in batch["sums"])})
                for batch in document["batches"]
            )
            collection = Collection.from_dict(document["collection"])
        except (KeyError, TypeError, ValueError):
            raise ProtocolError("This is no publication.", suggest="epsilons collect run writes one") from None
        return cls(collection, batches)

    def to_json(self) -> str:
        """The file."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"

    def __str__(self) -> str:
        lines = [self.collection.survey.question, f"Collected by {self.label}.", "", self.estimate().table(), ""]
        if self.guarantee is not None:
            lines.append(str(self.guarantee))
        else:
            lines += self.caveats()
        return "\n".join(lines)

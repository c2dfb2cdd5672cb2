"""A collection: a survey, the aggregators that collect it, and the terms that each of them holds to.

Everything in it is public, and the same file goes to owners and aggregators. Its id is a hash of all of it, and every
share is sealed for that id, so all parties see the same terms. What is collected follows from the survey: with `levels`
one round of the repaired protocol, whose sums carry noise; with Sampling Privacy Joy's two rounds, without noise.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from epsilons.arguments.checks import check_whole
from epsilons.collection.proof import ReportShape
from epsilons.collection.sealing import SealingKey
from epsilons.errors import Argument, ProtocolError
from epsilons.guarantee import NEIGHBORS, to_epsilon
from epsilons.local.sampling_privacy import SamplingPrivacy
from epsilons.local.survey import Survey, read_document
from epsilons.noise import system
from epsilons.preferences import to_nano
from epsilons.storage.exchange import is_web_address

_TERMS_FORMAT = 1
LEAST_BATCH = 10
MOST_AGGREGATORS = 16
_MOST_LEVELS = 255
_KEYS = {"format", "survey", "aggregators", "neighbors", "minimum", "salt"}


@dataclass(frozen=True)
class Place:
    """An aggregator: where it listens and the key that owners seal to."""

    url: str
    key: str


@dataclass(frozen=True)
class Collection:
    """`minimum` is the smallest batch of a level that any aggregator adds up; `salt` tells equal collections apart."""

    survey: Survey
    aggregators: tuple[Place, ...]
    neighbors: str = "absent"
    minimum: int = 100
    salt: str = ""

    @classmethod
    def start(
        cls, survey: Survey, aggregators: Sequence[Place], *, neighbors: str = "absent", minimum: int = 100
    ) -> Self:
        return cls(survey, tuple(aggregators), neighbors, minimum, system().bytes(16).hex())

    def __post_init__(self) -> None:
        if not self.survey.levels and not isinstance(self.survey.protocol, SamplingPrivacy):
            rule = "Owners have levels, whose epsilons set the aggregators' noise, or take part in Joy's two rounds."
            suggest = "a survey with levels, or with Sampling Privacy"
            raise ProtocolError("Aggregators do not collect by this protocol.", rule=rule, suggest=suggest)
        if len(self.survey.levels) > _MOST_LEVELS:
            raise ProtocolError("There are too many levels.", rule=f"At most {_MOST_LEVELS}.", suggest="fewer levels")
        if not 2 <= len({place.key for place in self.aggregators}) == len(self.aggregators) <= MOST_AGGREGATORS:
            rule = f"From 2 to {MOST_AGGREGATORS}, each with a key of its own."
            raise ProtocolError("The aggregators are not usable.", rule=rule)
        for place in self.aggregators:
            SealingKey.from_text(place.key)
            check_address(place.url)
        if self.neighbors not in NEIGHBORS:
            raise ProtocolError("Unknown neighbours.", suggest=Argument("neighbors", "absent"))
        rule = f"A whole number of reports, at least {LEAST_BATCH}."
        refusal = ProtocolError("The minimum is not usable.", rule=rule, suggest=Argument("minimum", 100))
        check_whole(self.minimum, LEAST_BATCH, refusal=refusal)

    @cached_property
    def id(self) -> bytes:
        """32 bytes that stand for exactly these terms."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(b"epsilons collection 1" + text.encode()).digest()

    @cached_property
    def shape(self) -> ReportShape:
        """What a report looks like. Cell 0 is none of the options."""
        return ReportShape(len(self.survey.options) + 1)

    @property
    def rounds(self) -> int:
        return self.survey.rounds

    @cached_property
    def levels(self) -> tuple[tuple[str, int | None], ...]:
        """(name, nano-epsilon) of each batch; None where the aggregators add no noise."""
        picked = tuple((name, to_nano(epsilon)) for name, epsilon in self.survey.levels.items())
        return picked or (("everyone", None),)

    @property
    def cells(self) -> range:
        """The cells that are published: without cell 0 an answer and none differ in one of them, two answers in two.

        Joy's rounds carry no noise, and their estimate needs every cell.
        """
        return range(1 if self.survey.levels else 0, self.shape.cells)

    @property
    def cells_moved(self) -> int:
        """How many published cells another answer moves by 1; noise at epsilon over this keeps the loss at epsilon."""
        return 2 if self.neighbors == "replace" else 1

    def level(self, name: str | None) -> int:
        """The number of a level by its name; there may be only one."""
        names = [known for known, _ in self.levels]
        if name is None and len(names) == 1:
            return 0
        if name not in names:
            raise ProtocolError("This collection needs a level.", suggest=f"one of {', '.join(names)}")
        return names.index(name)

    def to_dict(self) -> dict[str, Any]:
        places = [asdict(place) for place in self.aggregators]
        head = {"format": _TERMS_FORMAT, "survey": self.survey.to_dict(), "aggregators": places}
        return {**head, "neighbors": self.neighbors, "minimum": self.minimum, "salt": self.salt}

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """The inverse of `to_dict`; checks terms that anyone may have written."""
        if not isinstance(document, Mapping) or document.get("format") != _TERMS_FORMAT or set(document) != _KEYS:
            rule = f"It says format = {_TERMS_FORMAT} and has {', '.join(sorted(_KEYS))}."
            raise ProtocolError("This is not a collection.", rule=rule, suggest="epsilons collect run writes one")
        places, salt = document["aggregators"], document["salt"]
        try:
            listed = tuple(Place(**place) for place in places)
        except TypeError:
            listed = ()
        usable = isinstance(places, list) and listed and isinstance(salt, str) and len(salt) <= 64
        if not usable or not all(isinstance(text, str) for place in listed for text in (place.url, place.key)):
            raise ProtocolError("The aggregators are not usable.", rule="A list of url and key, and a salt.")
        return cls(Survey.from_dict(document["survey"]), listed, document["neighbors"], document["minimum"], salt)

    def save(self, path: str | Path) -> None:
        Path(path).write_text(json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        return cls.from_dict(read_document(path, "collection", json_only=True))


def check_address(url: str) -> None:
    """An address that can be spoken to, and that an owner who reads it takes for the host it is."""
    if not is_web_address(url):
        rule = "A host with its port and path, in plain letters and digits, without a user's name."
        raise ProtocolError("An aggregator has no usable address.", rule=rule, suggest="https://one.example.org")


def noise_variance(nano: int, neighbors: str) -> float:
    """The variance of one aggregator's noise in one cell: 2q/(1 - q)^2, q = exp(-epsilon) or exp(-epsilon/2)."""
    scale = to_epsilon(nano) / (2 if neighbors == "replace" else 1)
    return 1 / (2 * math.sinh(scale / 2) ** 2) if scale < 700 else 0.0

"""A collection: a survey, the aggregators that collect it, and the terms that each of them holds to.

Everything in it is public, and the same file goes to owners and aggregators. Its id is a hash of all of it, and every
share is sealed for that id, so nobody can show different terms to different parties. What is collected follows from the
survey: with `levels` the repaired protocol, with Sampling Privacy the paper's two rounds.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from epsilons.collection.proof import Shape
from epsilons.collection.sealing import SealingKey
from epsilons.errors import ProtocolError
from epsilons.guarantee import NEIGHBORS
from epsilons.local.sampling_privacy import SamplingPrivacy
from epsilons.local.survey import Survey
from epsilons.noise import system
from epsilons.preferences import to_nano

FORMAT = 1
#: The name of the only level where owners pick none.
EVERYONE = "everyone"
LEAST_BATCH = 10
MOST_AGGREGATORS = 16
_MOST_LEVELS = 255
_LARGEST_FILE = 1 << 26
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
    ) -> Collection:
        """A new collection of a survey."""
        return cls(survey, tuple(aggregators), neighbors, minimum, system().bytes(16).hex())

    def __post_init__(self) -> None:
        if not self.survey.levels and not isinstance(self.survey.protocol, SamplingPrivacy):
            raise ProtocolError(
                "Aggregators do not collect by this protocol.",
                rule="Owners have levels, whose epsilons the aggregators' noise follows, or take part in the paper's "
                "two rounds.",
                suggest="epsilons collect design --level everyone=1, or --sampling",
            )
        if len(self.survey.levels) > _MOST_LEVELS:
            raise ProtocolError("There are too many levels.", rule=f"At most {_MOST_LEVELS}.", suggest="fewer levels")
        keys = {place.key for place in self.aggregators}
        if not 2 <= len(self.aggregators) <= MOST_AGGREGATORS or len(keys) < len(self.aggregators):
            raise ProtocolError(
                "The aggregators are not usable.",
                rule=f"From 2 to {MOST_AGGREGATORS}, each with a key of its own.",
                suggest="one more aggregator",
            )
        for place in self.aggregators:
            SealingKey.from_text(place.key)
            if urlsplit(place.url).scheme not in ("http", "https") or not urlsplit(place.url).hostname:
                raise ProtocolError("An aggregator has no usable address.", suggest="https://one.example.org")
        if self.neighbors not in NEIGHBORS:
            raise ProtocolError("Unknown neighbours.", rule='"absent" or "replace".', suggest='neighbors="absent"')
        if isinstance(self.minimum, bool) or not isinstance(self.minimum, int) or self.minimum < LEAST_BATCH:
            raise ProtocolError("The minimum is not usable.", rule=f"At least {LEAST_BATCH} reports.", suggest="100")

    # What follows from the terms --------------------------------------------------------------------------------------

    @cached_property
    def id(self) -> bytes:
        """32 bytes that stand for exactly these terms."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(b"epsilons collection 1" + text.encode()).digest()

    @cached_property
    def shape(self) -> Shape:
        """What a report looks like. Cell 0 is none of the options."""
        return Shape(len(self.survey.options) + 1)

    @property
    def two_rounds(self) -> bool:
        """Whether this is the paper's protocol; otherwise it is the repaired one."""
        return not self.survey.levels

    @property
    def rounds(self) -> int:
        """How many reports an owner sends."""
        return 2 if self.two_rounds else 1

    @cached_property
    def levels(self) -> tuple[tuple[str, int | None], ...]:
        """(name, nano-epsilon) of each batch; None where the aggregators add no noise."""
        if self.two_rounds:
            return ((EVERYONE, None),)
        return tuple((name, to_nano(epsilon)) for name, epsilon in self.survey.levels.items())

    @property
    def cells(self) -> range:
        """The cells that are published: cell 0 follows from nobody's noise, so it stays where it is.

        With cell 0 left out, an answer and none differ in one published cell, two answers in two. The paper's rounds
        carry no noise, and their estimate needs every cell.
        """
        return range(0 if self.two_rounds else 1, self.shape.cells)

    def level(self, name: str | None) -> int:
        """The number of a level by its name; there may be only one."""
        names = [known for known, _ in self.levels]
        if name is None and len(names) == 1:
            return 0
        if name not in names:
            raise ProtocolError("This collection needs a level.", suggest=f"one of {', '.join(names)}")
        return names.index(name)

    # The file ---------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "format": FORMAT,
            "survey": self.survey.to_dict(),
            "aggregators": [{"url": place.url, "key": place.key} for place in self.aggregators],
            "neighbors": self.neighbors,
            "minimum": self.minimum,
            "salt": self.salt,
        }

    @classmethod
    def from_dict(cls, document: Any) -> Collection:
        """The inverse of `to_dict`, and the border where a stranger's terms are checked."""
        if not isinstance(document, Mapping) or document.get("format") != FORMAT or set(document) != _KEYS:
            raise ProtocolError(
                "This is no collection.",
                rule=f"It says format = {FORMAT} and has {', '.join(sorted(_KEYS))}.",
                suggest="epsilons collect run writes one",
            )
        places, salt = document["aggregators"], document["salt"]
        usable = isinstance(places, list) and isinstance(salt, str) and len(salt) <= 64
        if not usable or not all(
            isinstance(place, dict)
            and set(place) == {"url", "key"}
            and all(isinstance(text, str) for text in place.values())
            for place in places
        ):
            raise ProtocolError("The aggregators are not usable.", rule="A list of url and key.")
        survey = Survey.from_dict(document["survey"])
        listed = tuple(Place(place["url"], place["key"]) for place in places)
        return cls(survey, listed, document["neighbors"], document["minimum"], salt)

    def save(self, path: str | Path) -> None:
        """Write the file (JSON)."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Collection:
        """Read the file."""
        try:
            if Path(path).stat().st_size > _LARGEST_FILE:
                raise ProtocolError("The collection's file is too large.", rule=f"At most {_LARGEST_FILE >> 20} MB.")
            document = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise ProtocolError(f"The collection cannot be read: {error.strerror}.", suggest="another path") from None
        except (ValueError, RecursionError):
            raise ProtocolError("The collection's file is not valid.", rule="JSON.") from None
        return cls.from_dict(document)


def noise_variance(nano: int, neighbors: str) -> float:
    """The variance of one aggregator's noise in one cell: 2q/(1 - q)^2, q = exp(-epsilon) or exp(-epsilon/2)."""
    scale = nano / 1e9 / (2 if neighbors == "replace" else 1)
    return 1 / (2 * math.sinh(scale / 2) ** 2) if scale < 700 else 0.0

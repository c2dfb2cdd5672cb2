"""A survey: a question, its options and the protocol, as a file that collector and owners share.

The file is TOML or JSON, by its ending. Everything in it is public. Probabilities are text, so that they are exact.

    format = 1
    question = "Have you ever cheated in an exam?"
    options = ["yes"]
    none = "no"

    [protocol]
    mechanism = "sampling-privacy"
    sampling = "0.45"

With `mechanism = "personal-response"` the protocol has `levels`, a table of names and epsilons, and every owner picks
one. A table `places` says how the options are cells on a map (`epsilons.local.places`).
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from epsilons.display import toml_key, toml_value
from epsilons.errors import EpsilonsError, ProtocolError
from epsilons.guarantee import to_epsilon
from epsilons.local.base import ResponseProtocol, protocol_from
from epsilons.local.probability import MAX_OPTIONS
from epsilons.local.randomized_response import RandomizedResponse
from epsilons.noise import Entropy
from epsilons.preferences import to_nano

FORMAT = 1
PERSONAL = "personal-response"
_LARGEST_FILE = 1 << 26
_KEYS = {"format", "question", "options", "none", "protocol", "places"}


@dataclass(frozen=True)
class Survey:
    """`options` are the labels of 1..V, `none` that of 0. Either `protocol` or `levels` (name -> epsilon) is there."""

    question: str
    options: tuple[str, ...]
    protocol: ResponseProtocol | None = None
    levels: Mapping[str, float] = field(default_factory=dict)
    none: str = "none"
    places: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_labels((self.none, *self.options))
        if (self.protocol is None) == (not self.levels):
            raise ProtocolError("A survey has either one protocol or levels.", suggest="protocol=SamplingPrivacy(...)")
        if self.protocol is not None and self.protocol.options != len(self.options):
            raise ProtocolError(
                f"There are {len(self.options)} labels for {self.protocol.options} options.",
                rule="One label for each option; none has its own.",
                suggest=f"options={len(self.options)} in the protocol",
            )
        try:
            json.dumps(dict(self.places), allow_nan=False)
        except (TypeError, ValueError):
            raise ProtocolError("The places are not usable.", rule="Plain values, all numbers finite.") from None
        for name, epsilon in self.levels.items():
            if to_nano(epsilon) is None or not name or name != name.strip() or not name.isprintable():
                raise ProtocolError(
                    "A level is not usable.", rule="A name and a finite epsilon.", suggest="strict = 0.1"
                )

    # Owners -----------------------------------------------------------------------------------------------------------

    def truth(self, answer: str) -> int | None:
        """The number of an option by its label or number; None if there is no such option."""
        asked = answer.strip().casefold()
        for number, label in enumerate((self.none, *self.options)):
            if asked == label.casefold():
                return number
        if asked.isdecimal() and asked.isascii() and len(asked) <= 9 and int(asked) <= len(self.options):
            return int(asked)
        return None

    def protocol_for(self, level: str | None = None) -> ResponseProtocol:
        """What an owner follows: the survey's protocol, or the one of the level they picked."""
        if self.protocol is not None:
            if level is not None:
                raise ProtocolError("This survey has no levels.", suggest="leave out the level")
            return self.protocol
        if level is None or level not in self.levels:
            raise ProtocolError("This survey needs a level.", suggest=f"one of {', '.join(self.levels)}")
        return RandomizedResponse(epsilon=self.levels[level], options=len(self.options))

    @property
    def rounds(self) -> int:
        """How many outputs an owner sends."""
        return 1 if self.protocol is None else self.protocol.rounds

    def respond(self, answer: str, level: str | None = None, *, entropy: Entropy | None = None) -> tuple[int, ...]:
        """One owner's outputs, one for each round. The answer stays where this runs."""
        (outputs,) = self.respond_all([answer], level, entropy=entropy)
        return outputs

    def respond_all(
        self, answers: Sequence[str], level: str | None = None, *, entropy: Entropy | None = None
    ) -> list[tuple[int, ...]]:
        """The outputs of several owners; nothing is drawn unless every answer is one of the survey's."""
        protocol, known = self.protocol_for(level), {answer: self.truth(answer) for answer in set(answers)}
        truths = [known[answer] for answer in answers]
        if None in truths:
            raise ProtocolError(
                "An answer is none of the survey's.", rule="A label or a number.", suggest=_listed(self)
            )
        rounds = protocol.respond(np.array(truths, dtype=np.int64), entropy=entropy)
        return list(zip(*(outputs.tolist() for outputs in rounds), strict=True))

    # The file ---------------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """A short name that belongs to exactly this survey: question, options and every probability."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        if self.protocol is None:
            protocol: dict[str, Any] = {"mechanism": PERSONAL, "levels": {k: float(v) for k, v in self.levels.items()}}
        else:
            protocol = self.protocol.to_dict()
            protocol.pop("options", None)
        document: dict[str, Any] = {"format": FORMAT, "question": self.question, "options": list(self.options)}
        document |= {"none": self.none, "protocol": protocol}
        return document | ({"places": dict(self.places)} if self.places else {})

    @classmethod
    def from_dict(cls, document: Any) -> Survey:
        """The inverse of `to_dict`, and the border where a stranger's file is checked."""
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ProtocolError(
                "This is no protocol file.",
                rule=f"It says format = {FORMAT}.",
                suggest="epsilons collect design writes one",
            )
        unknown = sorted(str(key) for key in set(document) - _KEYS)
        if unknown:
            raise ProtocolError("A protocol file has an unknown entry.", rule=f"Known: {', '.join(sorted(_KEYS))}.")
        options = document.get("options")
        if not isinstance(options, list) or not all(isinstance(label, str) for label in options):
            raise ProtocolError("The options are not usable.", rule="A list of labels.", suggest='options = ["yes"]')
        question, none = document.get("question", ""), document.get("none", "none")
        protocol, places = document.get("protocol"), _plain(document.get("places", {}), float)
        if not isinstance(question, str) or not isinstance(none, str) or not isinstance(places, dict):
            raise ProtocolError("Question and none are text, places is a table.", suggest='question = "..."')
        if not isinstance(protocol, dict):
            raise ProtocolError("The protocol is missing.", rule="It is a table.", suggest="[protocol]")
        if protocol.get("mechanism") == PERSONAL:
            levels = protocol.get("levels")
            if not isinstance(levels, dict) or not levels or set(protocol) != {"mechanism", "levels"}:
                raise ProtocolError("The levels are not usable.", rule="Names and epsilons.", suggest="strict = 0.1")
            numbers = {str(name): _read_epsilon(value) for name, value in levels.items()}
            return cls(question, tuple(options), None, numbers, none, places)
        settings = _plain(protocol, str)
        if len(options) > 1:
            settings["options"] = len(options)
        return cls(question, tuple(options), protocol_from(settings), {}, none, places)

    def save(self, path: str | Path) -> None:
        """Write the file; .json gives JSON, anything else TOML."""
        text = self.to_json() if Path(path).suffix.lower() == ".json" else self.to_toml()
        Path(path).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Survey:
        """Read the file."""
        try:
            if Path(path).stat().st_size > _LARGEST_FILE:
                raise ProtocolError("The protocol file is too large.", rule=f"At most {_LARGEST_FILE >> 20} MB.")
            text = Path(path).read_text(encoding="utf-8-sig")
            if Path(path).suffix.lower() == ".json":
                document = json.loads(text, parse_float=Decimal)
            else:
                document = tomllib.loads(text, parse_float=Decimal)
        except OSError as error:
            raise ProtocolError(
                f"The protocol file cannot be read: {error.strerror}.", suggest="another path"
            ) from None
        except (ValueError, RecursionError):
            raise ProtocolError(
                "The protocol file is not valid.",
                rule="TOML, or JSON if its name ends in .json.",
                suggest="epsilons collect design writes one",
            ) from None
        return cls.from_dict(document)

    def to_json(self) -> str:
        """The file as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_toml(self) -> str:
        """The file as TOML."""
        document = self.to_dict()
        tables: dict[str, Any] = {key: document.pop(key) for key in ("protocol", "places") if key in document}
        if "levels" in tables["protocol"]:
            tables["protocol.levels"] = tables["protocol"].pop("levels")
        lines = [f"{key} = {toml_value(value)}" for key, value in document.items()]
        for name, table in tables.items():
            lines += ["", f"[{name}]", *(f"{toml_key(key)} = {toml_value(value)}" for key, value in table.items())]
        return "\n".join(lines) + "\n"


def _listed(survey: Survey) -> str:
    labels = (survey.none, *survey.options)
    return ", ".join(labels[:8]) + (", ..." if len(labels) > 8 else "")


def _check_labels(labels: Sequence[str]) -> None:
    """Labels that can stand in one cell of a spreadsheet and are not taken for a number of an output."""
    if not 2 <= len(labels) <= MAX_OPTIONS + 1:
        raise ProtocolError("The number of options is not usable.", rule=f"From 1 to {MAX_OPTIONS:,}.", suggest="yes")
    usable = all(
        label == label.strip() and label and label.isprintable() and len(label) <= 200 and not label.isdecimal()
        for label in labels
    )
    if not usable:
        raise ProtocolError(
            "A label is not usable.",
            rule="Printable text of at most 200 characters, without blanks around it, that is not just a number.",
            suggest='"50 to 59" rather than "50"',
        )
    if len({label.casefold() for label in labels}) < len(labels):
        raise ProtocolError(
            "Two options have the same label.", rule="Capitals make no difference.", suggest="other labels"
        )


def _read_epsilon(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise ProtocolError("The epsilon of a level is not a number.", suggest="strict = 0.1")
    try:
        return to_epsilon(to_nano(float(value)))
    except EpsilonsError:
        raise ProtocolError(
            "The epsilon of a level is not usable.", rule="Positive and finite.", suggest="0.1"
        ) from None


def _plain(value: Any, number: Callable[[Decimal], str | float]) -> Any:
    """The decimals of a file as `number` writes them."""
    if isinstance(value, dict):
        return {key: _plain(item, number) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, number) for item in value]
    return number(value) if isinstance(value, Decimal) else value

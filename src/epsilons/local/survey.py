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

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from epsilons.arguments.checks import check_real
from epsilons.display import toml_key, toml_value
from epsilons.errors import Argument, EpsilonsError, ProtocolError
from epsilons.guarantee import to_epsilon
from epsilons.local.base import MAX_OPTIONS, ResponseProtocol, protocol_from
from epsilons.local.randomized_response import RandomizedResponse
from epsilons.noise import Entropy
from epsilons.preferences import to_nano

PERSONAL = "personal-response"
_SURVEY_FORMAT = 1
_LARGEST_FILE = 1 << 26
_ENTRIES = {"format": int, "question": str, "options": list, "none": str, "protocol": dict, "places": dict}
_UNLESS_GIVEN: dict[str, Any] = {"question": "", "none": "none", "places": {}}


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
            either = (Argument("protocol"), " or ", Argument("levels", {"strict": 0.1}))
            raise ProtocolError("A survey has either one protocol or levels.", suggest=either)
        if self.protocol is not None and self.protocol.options != len(self.options):
            what = f"There are {len(self.options)} labels for {self.protocol.options} options."
            hint = Argument("options", len(self.options))
            raise ProtocolError(what, rule="One label for each option; none has its own.", suggest=hint)
        try:
            json.dumps(dict(self.places), allow_nan=False)
        except (TypeError, ValueError):
            raise ProtocolError("The places are not usable.", rule="Plain values, all numbers finite.") from None
        for name, epsilon in self.levels.items():
            if to_nano(epsilon) is None or not name or name != name.strip() or not name.isprintable():
                raise ProtocolError("A level is not usable.", rule="A name and a finite epsilon.")

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {label.casefold(): number for number, label in enumerate((self.none, *self.options))}

    def truth(self, answer: str, largest: int | None = None) -> int | None:
        """The number of an option by its label or number (up to `largest`); None if there is no such option."""
        asked, most = answer.strip().casefold(), len(self.options) if largest is None else largest
        if asked.isdecimal() and asked.isascii() and len(asked) <= 9:
            return int(asked) if int(asked) <= most else None
        return self._numbers.get(asked)

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
        return 1 if self.protocol is None else self.protocol.rounds

    def respond(self, answer: str, level: str | None = None, *, entropy: Entropy | None = None) -> tuple[int, ...]:
        """One owner's outputs, one for each round. The answer stays where this runs."""
        return self.respond_all([answer], level, entropy=entropy)[0]

    def respond_all(
        self, answers: Sequence[str], level: str | None = None, *, entropy: Entropy | None = None
    ) -> list[tuple[int, ...]]:
        """The outputs of several owners; nothing is drawn unless every answer is one of the survey's."""
        protocol, truths = self.protocol_for(level), [self.truth(answer) for answer in answers]
        if None in truths:
            labels = (self.none, *self.options)
            hint = ", ".join(labels[:8]) + (", ..." if len(labels) > 8 else "")
            raise ProtocolError("An answer is none of the survey's.", rule="A label or a number.", suggest=hint)
        rounds = protocol.respond(np.array(truths, dtype=np.int64), entropy=entropy)
        return list(zip(*(outputs.tolist() for outputs in rounds), strict=True))

    @property
    def id(self) -> str:
        """A short name that belongs to exactly this survey: question, options and every probability."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        protocol: dict[str, Any] = {"mechanism": PERSONAL, "levels": {k: float(v) for k, v in self.levels.items()}}
        if self.protocol is not None:
            protocol = {key: value for key, value in self.protocol.to_dict().items() if key != "options"}
        head = {"format": _SURVEY_FORMAT, "question": self.question, "options": list(self.options), "none": self.none}
        return {**head, "protocol": protocol, **({"places": dict(self.places)} if self.places else {})}

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """The inverse of `to_dict`, for a file that anyone may have written."""
        if not isinstance(document, dict) or document.get("format") != _SURVEY_FORMAT:
            rule, hint = f"It says format = {_SURVEY_FORMAT}.", "epsilons collect design writes one"
            raise ProtocolError("This is not a protocol file.", rule=rule, suggest=hint)
        if not set(document) <= set(_ENTRIES):
            raise ProtocolError("Unknown entry in a protocol file.", rule=f"Known: {', '.join(sorted(_ENTRIES))}.")
        given = _UNLESS_GIVEN | document
        wrong = [name for name, kind in _ENTRIES.items() if not isinstance(given.get(name), kind)]
        if wrong or not all(isinstance(label, str) for label in given["options"]):
            rule = "Question and none are text, options a list of labels, protocol and places tables."
            raise ProtocolError(f"The entry {(wrong or ['options'])[0]} is not usable.", rule=rule)
        protocol, levels = _plain(given["protocol"], str), {}
        if protocol.get("mechanism") == PERSONAL:
            stated = given["protocol"].get("levels")
            if not isinstance(stated, dict) or not stated or set(protocol) != {"mechanism", "levels"}:
                raise ProtocolError("The levels are not usable.", rule="Names and epsilons.")
            levels = {str(name): _read_epsilon(value) for name, value in stated.items()}
        elif len(given["options"]) > 1:
            protocol["options"] = len(given["options"])
        followed = None if levels else protocol_from(protocol)
        places = _plain(given["places"], float)
        return cls(given["question"], tuple(given["options"]), followed, levels, given["none"], places)

    def save(self, path: str | Path) -> None:
        """Write the file; .json gives JSON, anything else TOML."""
        text = self.to_json() if Path(path).suffix.lower() == ".json" else self.to_toml()
        Path(path).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        return cls.from_dict(read_document(path, "protocol"))

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_toml(self) -> str:
        document = self.to_dict()
        tables: dict[str, Any] = {key: document.pop(key) for key in ("protocol", "places") if key in document}
        if "levels" in tables["protocol"]:
            tables["protocol.levels"] = tables["protocol"].pop("levels")
        lines = [f"{key} = {toml_value(value)}" for key, value in document.items()]
        for name, table in tables.items():
            lines += ["", f"[{name}]", *(f"{toml_key(key)} = {toml_value(value)}" for key, value in table.items())]
        return "\n".join(lines) + "\n"


def read_document(path: str | Path, what: str, *, json_only: bool = False) -> Any:
    """What a JSON or TOML file holds, with decimals as they are written there."""
    is_json = json_only or Path(path).suffix.lower() == ".json"
    try:
        if Path(path).stat().st_size > _LARGEST_FILE:
            raise ProtocolError(f"The {what} file is too large.", rule=f"At most {_LARGEST_FILE >> 20} MB.")
        text = Path(path).read_text(encoding="utf-8-sig")
        return (json.loads if is_json else tomllib.loads)(text, parse_float=Decimal)
    except OSError as error:
        raise ProtocolError(f"The {what} file cannot be read: {error.strerror}.", suggest="another path") from None
    except (ValueError, RecursionError):
        rule = "JSON." if json_only else "TOML, or JSON if its name ends in .json."
        raise ProtocolError(f"The {what} file is not valid.", rule=rule) from None


def _check_labels(labels: Sequence[str]) -> None:
    """Labels that can stand in one cell of a spreadsheet and are not taken for a number of an output."""
    if not 2 <= len(labels) <= MAX_OPTIONS + 1:
        raise ProtocolError("The number of options is not usable.", rule=f"From 1 to {MAX_OPTIONS:,}.", suggest="yes")
    if not all(
        label == label.strip() and label and label.isprintable() and len(label) <= 200 and not label.isdecimal()
        for label in labels
    ):
        rule = "Printable text of at most 200 characters, without blanks around it, that is not just a number."
        raise ProtocolError("A label is not usable.", rule=rule, suggest='"50 to 59" rather than "50"')
    if len({label.casefold() for label in labels}) < len(labels):
        raise ProtocolError("Two options have the same label.", rule="Capitals make no difference.")


def _read_epsilon(value: Any) -> float:
    try:
        return to_epsilon(to_nano(check_real(value)))
    except (TypeError, EpsilonsError):
        raise ProtocolError("The epsilon of a level is not usable.", rule="A positive, finite number.") from None


def _plain(value: Any, number: Callable[[Decimal], str | float]) -> Any:
    """The decimals of a file as `number` writes them."""
    if isinstance(value, dict):
        return {key: _plain(item, number) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, number) for item in value]
    return number(value) if isinstance(value, Decimal) else value

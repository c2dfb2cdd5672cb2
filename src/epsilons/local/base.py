"""The shape that every protocol of the local model has, and its probabilities as exact fractions.

An owner's truth is 0 (none of the options) or 1..options. `respond` gives one array of outputs per round, `count` turns
a round's outputs into its count vector, `estimate` takes one count vector per round, `leakage` says what a view gives
away. `law` is the exact law of what one owner sends, in all rounds; tests hold everything else to it.

A probability given as a float stands for the decimal that it prints as, as everywhere in this package: .45 is 9/20.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import check_name, check_whole
from epsilons.display import Sheet, Shown
from epsilons.errors import Argument, DataError, PlanError, ProtocolError
from epsilons.guarantee import NEIGHBORS
from epsilons.local import leakage
from epsilons.local.estimate import Estimate
from epsilons.local.leakage import BOTH_ROUNDS, COUNTS, SECOND_ROUND, Leakage, Pair
from epsilons.noise import Entropy, system

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_OPTIONS = 100_000
#: Every protocol by its name in protocol files.
PROTOCOLS: dict[str, type[ResponseProtocol]] = {}

Outputs = NDArray[np.unsignedinteger[Any]]
#: What one owner sends, one output per round, and with which probability.
Law = dict[tuple[int, ...], Fraction]
#: Who sees what, the pure epsilon, the pairs of laws that are hardest to hide, and whether that is exact.
Seen = tuple[str, float, Sequence[Pair], bool]

#: Who sees what where there is one round.
ONE_ROUND = {
    SECOND_ROUND: "one owner's answer",
    BOTH_ROUNDS: "all that one owner sends (one round)",
    COUNTS: "published counts",
}
_CHUNK = 1 << 18
_MOST_OWNERS = 1 << 53
_TEXT = re.compile(r"[+-]?(\d{1,60}(\.\d{0,60})?|\.\d{1,60})([eE][+-]?\d{1,2})?|\d{1,60}/\d{1,60}", re.ASCII)


@dataclass(frozen=True)
class Crowd:
    """What published counts are judged by; see `ResponseProtocol.leakage`."""

    count: int
    population: int | None
    neighbors: str
    other: int


class ResponseProtocol(Shown, ABC):
    """How owners answer a question so that an observer cannot be sure of anyone's answer."""

    #: The name in protocol files.
    name: ClassVar[str]
    #: How often each owner is asked.
    rounds: ClassVar[int] = 1

    def __init_subclass__(cls) -> None:
        # A class derived from a protocol does not take its place in files unless it has a name of its own.
        if "name" in vars(cls):
            PROTOCOLS[cls.name] = cls

    def __init__(self, options: int) -> None:
        self.options = read_options(options)
        #: How many different outputs an owner may send; they are numbered from 0.
        self.outputs = self.options + 1

    @property
    def claim(self) -> float | None:
        """The epsilon that Joy states for these probabilities; None where the paper states none."""
        return None

    @abstractmethod
    def law(self, truth: int) -> Law:
        """The exact law of everything that an owner with this truth sends."""

    @abstractmethod
    def _chances(self) -> dict[str, Any]:
        """The settings, with probabilities as fractions; None and equal chances of a die need not be written."""

    def settings(self) -> dict[str, Any]:
        """The probabilities as plain values, from which `type(self)(**settings)` makes the same protocol."""
        chances = self._chances()
        fair = {name for name, value in chances.items() if isinstance(value, tuple) and len(set(value)) == 1}
        return {name: _write(value) for name, value in chances.items() if value is not None and name not in fair}

    @abstractmethod
    def describe(self) -> str:
        """One line: what owners do."""

    def respond(self, truths: Any, *, entropy: Entropy | None = None) -> tuple[Any, ...]:
        """What owners send: one array of outputs per round, or, for a single truth, one integer per round.

        A truth that is no whole number from 0 to `options` counts as 0, so that no answer can raise an error.
        """
        cleaned, single = read_truths(truths, self.options)
        rounds = self._respond(cleaned, system() if entropy is None else entropy)
        return tuple(int(outputs[0]) for outputs in rounds) if single else tuple(rounds)

    @abstractmethod
    def _respond(self, truths: NDArray[np.uint32], entropy: Entropy) -> Sequence[Outputs]:
        """One array per round, for truths that are known to be in range."""

    def count(self, answers: Any) -> NDArray[np.int64]:
        """The count vector of one round's outputs."""
        array = check_outputs(answers, self.outputs)
        counts = np.zeros(self.outputs, np.int64)
        # In chunks, since `numpy.bincount` copies its input to eight bytes an owner.
        for start in range(0, len(array), _CHUNK):
            counts += np.bincount(array[start : start + _CHUNK], minlength=self.outputs)
        return counts

    @abstractmethod
    def estimate(self, *counts: Any) -> Estimate:
        """How many owners have each option, from one count vector per round."""

    @abstractmethod
    def spread(self, count: float, population: float) -> float:
        """The standard deviation of the estimate of an option that `count` of `population` owners have (the worst)."""

    def _read_rounds(self, counts: Sequence[Any]) -> list[NDArray[np.int64]]:
        if len(counts) != self.rounds:
            rule = f"One for each round of this protocol: {self.rounds}."
            raise ProtocolError(f"{len(counts)} count vectors were given.", rule=rule)
        return [_read_counts(one, self.outputs, number) for number, one in enumerate(counts, 1)]

    def leakage(
        self,
        view: str | None = None,
        *,
        epsilon: float | None = None,
        count: int = 1,
        population: int | None = None,
        neighbors: str = "absent",
        other: int = 0,
    ) -> Leakage:
        """What an observer learns about one owner; without a view, the strongest observer.

        "second-round" sees one owner's last answer, "both-rounds" all that this owner sends, "counts" what is
        published. For counts: `count` owners (this one included) have the same option, `population` owners take part
        (None: a large crowd), and the owner's answer is compared with none (`neighbors="absent"`) or with an option
        that `other` owners have ("replace"). With `epsilon`, delta is the one at that epsilon.
        """
        view = check_name("view", BOTH_ROUNDS if view is None else view, ONE_ROUND)
        for name, number, least in (("count", count, 1), ("population", population, count), ("other", other, 0)):
            refusal = PlanError(f"{name} must be a whole number from {least} on.", suggest=Argument(name, least))
            if view == COUNTS and number is not None:
                check_whole(number, least, refusal=refusal)
        check_name("neighbors", neighbors, NEIGHBORS)
        sees, pure, pairs, exact = self._look(view, Crowd(count, population, neighbors, other))
        asked = leakage.check_epsilon(pure if epsilon is None else epsilon)
        return Leakage(view, sees, pure, pairs, asked, self.claim, neighbors if view == COUNTS else "replace", exact)

    @abstractmethod
    def _look(self, view: str, crowd: Crowd) -> Seen:
        """What the observer of a view has before them; only "counts" looks at the crowd."""

    def leakages(
        self, *, epsilon: float = 1.0, counts: Sequence[int] = (1,), population: int | None = None
    ) -> tuple[Leakage, ...]:
        """All views, that of counts once for each number of owners of the same option.

        In a crowd that is too large to go through all outcomes, counts are judged as in an unlimited one.
        """
        published = {}
        for count in sorted({max(1, n) for n in counts}):
            crowd = population if population is not None and self._is_small(count, population) else None
            one = self.leakage(COUNTS, epsilon=epsilon, count=count, population=crowd)
            published[one.sees] = one
        return (self.leakage(SECOND_ROUND), self.leakage(BOTH_ROUNDS), *published.values())

    def _is_small(self, count: int, population: int) -> bool:
        """Whether all outcomes of the counts of such a crowd can be gone through in no time."""
        return population >= count

    def plot_leakage(self, axes: Axes | None = None, *, counts: Sequence[int] = (1, 7, 25, 100)) -> Axes:
        """Delta against epsilon, a curve for each view."""
        return leakage.draw_leakages(self.leakages(counts=counts), axes)

    def to_dict(self) -> dict[str, Any]:
        return {"mechanism": self.name, **self.settings()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResponseProtocol) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"{type(self).__name__}({said if len(said) <= 200 else said[:200] + '...'})"

    def sheets(self) -> list[Sheet]:
        return [leakage.leakage_sheet(self.leakages(), self.describe())]


def protocol_from(document: Mapping[str, Any]) -> ResponseProtocol:
    settings = dict(document)
    name = settings.pop("mechanism", None)
    kind = PROTOCOLS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ProtocolError("The mechanism is unknown.", suggest=f"one of {', '.join(sorted(PROTOCOLS))}")
    try:
        return kind(**settings)
    except TypeError:
        rule, hint = "Each is known and no needed one is missing.", "epsilons collect design writes a file that fits"
        raise ProtocolError(f"The settings do not fit {name}.", rule=rule, suggest=hint) from None


def read_truths(truths: Any, options: int) -> tuple[NDArray[np.uint32], bool]:
    """Truths as whole numbers, and whether there is a single one. Anything that is no option is none: 0."""
    array = np.asarray(truths)
    if array.dtype.kind == "O" and array.ndim == 1:
        array = np.array([math.nan if item is None else item for item in array.tolist()])
    if array.ndim > 1 or array.dtype.kind not in "biuf":
        rule = f"One number for each owner: 0 for none, 1..{options} for an option."
        raise DataError("Truths are not a list of whole numbers.", rule=rule, suggest="[0, 1, 1], or 1 for one owner")
    flat = np.atleast_1d(array)
    if flat.dtype.kind == "b" or (flat.dtype.kind == "u" and np.iinfo(flat.dtype).max <= options):
        return flat.astype(np.uint32), array.ndim == 0
    known = (flat >= 0) & (flat <= options) & (np.floor(flat) == flat if flat.dtype.kind == "f" else True)
    return np.where(known, flat, 0).astype(np.uint32), array.ndim == 0


def check_outputs(answers: Any, outputs: int) -> NDArray[Any]:
    """One round's outputs: a flat array of whole numbers below `outputs`."""
    array = np.asarray(answers)
    flat = array.ndim == 1 and array.dtype.kind in "iu"
    if not flat or (len(array) and not 0 <= array.min() <= array.max() < outputs):
        rule = f"A flat array of whole numbers from 0 to {outputs - 1}."
        raise ProtocolError("These are not one round's outputs.", rule=rule)
    return array


def _read_counts(counts: Any, outputs: int, number: int) -> NDArray[np.int64]:
    """One round's count vector: how many owners sent each output 0, 1, ..."""
    rule = f"One whole number, not negative, for each of the outputs 0..{outputs - 1}."
    refusal = ProtocolError(f"The counts of round {number} are not usable.", rule=rule)
    try:
        array = np.asarray(counts)
    except (TypeError, ValueError, OverflowError):
        raise refusal from None
    shaped = array.shape == (outputs,) and array.dtype.kind in "iuf"
    if not shaped or not ((array >= 0) & (array < _MOST_OWNERS) & (np.floor(array) == array)).all():
        raise refusal
    return array.astype(np.int64)


def read_probability(value: Any, name: str, *, strict: bool = False) -> Fraction:
    """An exact probability from 0 to 1 (`strict`: between them), from a number or text such as "0.45" or "9/20"."""
    try:
        if isinstance(value, bool):
            raise ValueError
        if not isinstance(value, (int, np.integer, Fraction)):
            # Text of a bounded length with a bounded exponent: "1e999999999" must not become a number of that size.
            value = str(float(value) if isinstance(value, np.floating) else value).strip()
            if not _TEXT.fullmatch(value):
                raise ValueError
        exact = Fraction(value)
        if not 0 <= exact <= 1:
            raise ValueError
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise ProtocolError(f"{name} must be a number from 0 to 1.", suggest=Argument(name, 0.45)) from None
    if strict and exact in (0, 1):
        raise ProtocolError(f"{name} must lie strictly between 0 and 1.", suggest=Argument(name, 0.45))
    return exact


def read_die(values: Any, sides: int, total: Fraction, name: str) -> tuple[Fraction, ...]:
    """The probabilities of outputs 0..options, which must add up to `total` exactly; uniform when not given."""
    if values is None:
        return (total / sides,) * sides
    if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)):
        raise ProtocolError(f"{name} is not a list.", rule="One probability for each output.")
    chances = tuple(read_probability(value, name) for value in values)
    if len(chances) != sides:
        rule, hint = "One for none and one for each option.", ("leave out ", Argument(name), " for equal ones")
        raise ProtocolError(f"{name} has {len(chances)} probabilities for {sides} outputs.", rule=rule, suggest=hint)
    if sum(chances) != total:
        what = f"The probabilities of {name} add up to {float(sum(chances)):.10g}, not to {float(total):.10g}."
        hint = ('fractions as text, such as "1/3", or leave out ', Argument(name), " for equal ones")
        raise ProtocolError(what, rule="All probabilities of a round add up to 1.", suggest=hint)
    return chances


def read_options(options: Any) -> int:
    """How many options there are besides "none"."""
    what = f"options must be a whole number from 1 to {MAX_OPTIONS:,}."
    return check_whole(options, 1, MAX_OPTIONS, ProtocolError(what, suggest=Argument("options", 11)))


def _write(value: Any) -> Any:
    """Text that `read_probability` reads back exactly: a decimal where one is exact and short, else a fraction."""
    if isinstance(value, tuple):
        return [_write(chance) for chance in value]
    if not isinstance(value, Fraction):
        return value
    short = f"{float(value):.12g}"
    return short if "e" not in short and Fraction(short) == value else f"{value.numerator}/{value.denominator}"

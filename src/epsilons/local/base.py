"""The shape that every protocol of the local model has.

An owner's truth is 0 (none of the options) or 1..options. `respond` gives one array of outputs per round, `count` turns
a round's outputs into its count vector, `estimate` takes one count vector per round, `leakage` says what a view gives
away. `law` is the exact law of what one owner sends, in all rounds; tests hold everything else to it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import DataError, PlanError, ProtocolError
from epsilons.local.estimate import Estimate
from epsilons.local.leakage import (
    BOTH_ROUNDS,
    COUNTS,
    SECOND_ROUND,
    VIEWS,
    Leakage,
    draw_leakages,
    leakage_html,
    leakage_table,
)
from epsilons.noise import Entropy, system

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Outputs = NDArray[np.unsignedinteger[Any]]
_CHUNK = 1 << 18
#: What one owner sends, one output per round, and with which probability.
Law = dict[tuple[int, ...], Fraction]


class ResponseProtocol(ABC):
    """How owners answer a question so that nobody can be sure of anyone's answer."""

    #: The name in protocol files, found there by a registry.
    name: ClassVar[str]
    #: How often each owner is asked.
    rounds: ClassVar[int]

    def __init__(self, options: int) -> None:
        self.options = options

    @property
    def outputs(self) -> int:
        """How many different outputs an owner may send; they are numbered from 0."""
        return self.options + 1

    @abstractmethod
    def law(self, truth: int) -> Law:
        """The exact law of everything that an owner with this truth sends."""

    @property
    @abstractmethod
    def claim(self) -> float | None:
        """The epsilon that paper 3 states for these probabilities; None where it states none."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The probabilities as plain values, from which `type(self)(**settings)` makes the same protocol."""

    @abstractmethod
    def describe(self) -> str:
        """One line: what owners do."""

    # Owners -----------------------------------------------------------------------------------------------------------

    def respond(self, truths: Any, *, entropy: Entropy | None = None) -> tuple[Any, ...]:
        """What owners send: one array of outputs per round, or, for a single truth, one integer per round.

        A truth that is no whole number from 0 to `options` counts as 0, so that nobody's answer can raise an error.
        """
        cleaned, single = read_truths(truths, self.options)
        rounds = self._respond(cleaned, system() if entropy is None else entropy)
        return tuple(int(outputs[0]) for outputs in rounds) if single else tuple(rounds)

    @abstractmethod
    def _respond(self, truths: NDArray[np.uint32], entropy: Entropy) -> Sequence[Outputs]:
        """One array per round, for truths that are known to be in range."""

    def count(self, answers: Any) -> NDArray[np.int64]:
        """The count vector of one round's outputs."""
        array = np.asarray(answers)
        if (
            array.ndim != 1
            or array.dtype.kind not in "iu"
            or (len(array) and not 0 <= array.min() <= array.max() < self.outputs)
        ):
            raise ProtocolError(
                "These are not one round's outputs.",
                rule=f"A flat array of whole numbers from 0 to {self.outputs - 1}.",
                suggest="protocol.count(answers) for each round on its own",
            )
        counts = np.zeros(self.outputs, np.int64)
        # In chunks, since `numpy.bincount` copies its input to eight bytes an owner.
        for start in range(0, len(array), _CHUNK):
            counts += np.bincount(array[start : start + _CHUNK], minlength=self.outputs)
        return counts

    # The collector ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def estimate(self, *counts: Any) -> Estimate:
        """How many owners have each option, from one count vector per round."""

    @abstractmethod
    def spread(self, count: float, population: float) -> float:
        """The standard deviation of the estimate of an option that `count` of `population` owners have (the worst)."""

    def _check_rounds(self, counts: Sequence[Any]) -> None:
        if len(counts) != self.rounds:
            raise ProtocolError(
                f"{len(counts)} count vectors were given.",
                rule=f"One for each round of this protocol: {self.rounds}.",
                suggest="protocol.estimate(*[protocol.count(answers) for answers in rounds])",
            )

    # Observers --------------------------------------------------------------------------------------------------------

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
        if view is None or view == BOTH_ROUNDS:
            return self._leak_all(epsilon)
        if view == SECOND_ROUND:
            return self._leak_last(epsilon)
        if view == COUNTS:
            check_crowd(count, population, neighbors, other)
            return self._leak_counts(epsilon, count, population, neighbors, other)
        raise PlanError("There is no such view.", rule=f"One of {', '.join(VIEWS)}.", suggest='leakage("both-rounds")')

    @abstractmethod
    def _leak_last(self, epsilon: float | None) -> Leakage: ...

    @abstractmethod
    def _leak_all(self, epsilon: float | None) -> Leakage: ...

    @abstractmethod
    def _leak_counts(
        self, epsilon: float | None, count: int, population: int | None, neighbors: str, other: int
    ) -> Leakage: ...

    def leakages(
        self, *, epsilon: float = 1.0, counts: Sequence[int] = (1,), population: int | None = None
    ) -> tuple[Leakage, ...]:
        """All views, that of counts once for each number of owners of the same option.

        In a crowd that is too large to go through all outcomes, counts are judged as in an unlimited one.
        """
        published = {}
        for count in sorted({max(1, n) for n in counts}):
            crowd = population if population is not None and self._is_small(count, population) else None
            one = self._leak_counts(epsilon, count, crowd, "absent", 0)
            published[one.sees] = one
        return (self._leak_last(None), self._leak_all(None), *published.values())

    def _is_small(self, count: int, population: int) -> bool:
        """Whether all outcomes of the counts of such a crowd can be gone through in no time."""
        return population >= count

    def plot_leakage(self, axes: Axes | None = None, *, counts: Sequence[int] = (1, 7, 25, 100)) -> Axes:
        """Delta against epsilon, a curve for each view."""
        return draw_leakages(self.leakages(counts=counts), axes)

    def to_dict(self) -> dict[str, Any]:
        """The protocol as plain values; `protocol_from` reads them."""
        return {"mechanism": self.name, **self.settings()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResponseProtocol) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"{type(self).__name__}({said if len(said) <= 200 else said[:200] + '...'})"

    def __str__(self) -> str:
        return "\n".join([self.describe(), "", leakage_table(self.leakages())])

    def _repr_html_(self) -> str:
        return leakage_html(self.leakages(), self.describe())


_REGISTRY: dict[str, type[ResponseProtocol]] = {}


def register(kind: type[ResponseProtocol]) -> type[ResponseProtocol]:
    """Make a protocol known to protocol files by its name."""
    _REGISTRY[kind.name] = kind
    return kind


def registered() -> Mapping[str, type[ResponseProtocol]]:
    """Every protocol by name."""
    return dict(_REGISTRY)


def protocol_from(document: Mapping[str, Any]) -> ResponseProtocol:
    """The inverse of `to_dict`."""
    settings = dict(document)
    name = settings.pop("mechanism", None)
    kind = _REGISTRY.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ProtocolError("The mechanism is unknown.", suggest=f"one of {', '.join(sorted(_REGISTRY))}")
    try:
        return kind(**settings)
    except TypeError:
        raise ProtocolError(
            f"The settings do not fit {name}.",
            rule="Every setting is known and every needed one is there.",
            suggest="epsilons collect design writes a file that fits",
        ) from None


def read_truths(truths: Any, options: int) -> tuple[NDArray[np.uint32], bool]:
    """Truths as whole numbers, and whether there is a single one. Whatever is no option is none: 0."""
    array = np.asarray(truths)
    if array.dtype.kind == "O" and array.ndim == 1:
        array = np.array([math.nan if item is None else item for item in array.tolist()])
    if array.ndim > 1 or array.dtype.kind not in "biuf":
        raise DataError(
            "Truths are not a list of whole numbers.",
            rule=f"One number for each owner: 0 for none, 1..{options} for an option.",
            suggest="respond([0, 1, 1]), or respond(1) for one owner",
        )
    flat = np.atleast_1d(array)
    if flat.dtype.kind == "b" or (flat.dtype.kind == "u" and np.iinfo(flat.dtype).max <= options):
        return flat.astype(np.uint32), array.ndim == 0
    if flat.dtype.kind == "f":
        known = (flat >= 0) & (flat <= options) & (np.floor(flat) == flat)
        return np.where(known, flat, 0).astype(np.uint32), array.ndim == 0
    out_of_range = (flat < 0) | (flat > options)
    cleaned = flat.astype(np.uint32)
    cleaned[out_of_range] = 0
    return cleaned, array.ndim == 0


def check_crowd(count: int, population: int | None, neighbors: str, other: int) -> None:
    """The facts that the view of published counts is judged by."""
    for name, number, least in (("count", count, 1), ("population", population, count), ("other", other, 0)):
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < least:
            raise PlanError(
                f"{name} is not usable.", rule=f"A whole number from {least} on.", suggest=f"{name}={least}"
            )
    if neighbors not in ("absent", "replace"):
        raise PlanError("Unknown neighbours.", rule='"absent" or "replace".', suggest='neighbors="absent"')

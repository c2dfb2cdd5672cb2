"""The shape that every mechanism has, and the registry of all of them.

A mechanism is a frozen value that holds its options. From public facts alone (a question and the roster's levels) it
says whether it can serve, what each level is charged, and how large the error will be; only `draw` sees people. The
guarantee stands beside the code: `charge` is what `draw` costs, and the audits hold one to the other.

Most mechanisms only say who weighs how much (`Weighing`); the statistic's family draws by the weights (`statistics/`)
and says how far the answer errs (`accuracy/`). Several classes may have one name, each for other families of
statistics; which one serves is decided by the statistic.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epsilons.accuracy import FAMILIES
from epsilons.accuracy.intervals import ErrorBar
from epsilons.errors import PlanError
from epsilons.guarantee import PERSONALIZED, to_epsilon
from epsilons.noise.entropy import Entropy
from epsilons.preferences import Levels, to_nano
from epsilons.statistics.base import Answer, Question, Rest, Statistic, Weighting, Weightings
from epsilons.summaries import People

#: Why some mechanisms cannot serve a filtered or grouped question.
NEEDS_PUBLIC_COUNT = (
    "it needs a public number of values: no condition, no groups, one row per person, no values left out"
)

#: Thresholds tried where the best one is looked for.
_TRIED = 48
#: How much is remembered about a roster.
_MOST_WORKED_OUT = 4096

#: A level's charge in nano-epsilon; None for public people, who have no balance.
Charges = tuple[int | None, ...]


class Mechanism(ABC):
    """Turn people's values into one answer that keeps every person's own epsilon."""

    name: ClassVar[str]
    #: The families of statistics that it serves, and which of their statistics if not all.
    families: ClassVar[tuple[str, ...]] = ("linear", "ratio", "variance", "regression", "order")
    statistics: ClassVar[tuple[str, ...] | None] = None
    #: What to say where it serves something else: "it serves counts and order statistics".
    serves_only: ClassVar[str] = ""
    #: Whether it needs to know how many values there are.
    needs_public_count: ClassVar[bool] = False
    #: One short clause on what it does, for plans.
    gist: ClassVar[str] = ""
    #: In words, what the predicted error takes for granted.
    assumption: ClassVar[str] = "unrelated"
    #: Which kind of privacy it gives, and what must be said of it.
    privacy: ClassVar[str] = "personalized"
    kind: ClassVar[str] = PERSONALIZED
    caveats: ClassVar[tuple[str, ...]] = ()
    #: Whether an absent person stands at a fixed public value, so that "replace" implies "absent".
    imputes: ClassVar[bool] = False

    @classmethod
    def serves(cls, statistic: Statistic) -> bool:
        """Whether it can serve such a statistic at all."""
        named = cls.statistics is None or statistic.name in cls.statistics
        return named and statistic.family in cls.families

    def refuses(self, question: Question, levels: Levels) -> str | None:
        """Why this mechanism cannot serve the question, or None if it can."""
        if self.needs_public_count and question.statistic.private_count:
            return NEEDS_PUBLIC_COUNT
        return None if self.serves(question.statistic) else self.serves_only

    @abstractmethod
    def charge(self, question: Question, levels: Levels) -> Charges:
        """What each level pays, in nano-epsilon, rounded up; never more than it granted."""

    @abstractmethod
    def predict_error(self, question: Question, levels: Levels) -> float | None:
        """Expected root mean squared error against the roster's own statistic; None where it would be data."""

    @abstractmethod
    def worst_error(self, question: Question, levels: Levels) -> float | None:
        """The same for the worst values people could have, however these relate to their preferences."""

    @abstractmethod
    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        """One answer."""

    @abstractmethod
    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> NDArray[np.float64]:
        """Many independent answers to one question on one data set, for audits and simulations."""

    @abstractmethod
    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """(outcomes, natural logarithms of their probabilities) on small inputs, for audits and teaching."""

    def stated_error(self, question: Question, levels: Levels, answer: Answer) -> float | None:
        """The expected error once an answer is out: what its noisy sums say about the values is public by then."""
        return predicted_error(self, question, levels)

    def error_bars(self, question: Question, levels: Levels, answer: Answer) -> tuple[ErrorBar, ...] | None:
        """An error bar for each number of the answer; None where nobody can honestly give one."""
        return None

    def used(self, question: Question, levels: Levels) -> float:
        """The share of people whose values can move the answer (expected, for a sample)."""
        charged = zip(self.charge(question, levels), levels.sizes, strict=True)
        return sum(size for charge, size in charged if charge != 0) / levels.size

    def options(self, question: Question, levels: Levels) -> dict[str, Any]:
        """The mechanism's options as numbers, for people and plans."""
        return {}

    def explain(self, question: Question, levels: Levels) -> str:
        """One short clause on what the mechanism does with these people."""
        return self.gist

    def why_no_interval(self, question: Question) -> str:
        """One sentence for people who ask for an error bar that nobody can honestly give."""
        return f"How far the answer of {self.name!r} to this question strays depends on the private values."


class Weighing(Mechanism):
    """A mechanism that gives each level a weight, and every answer one noise."""

    @abstractmethod
    def weigh(self, question: Question, levels: Levels) -> Weighting:
        """The weights and what weight one costs, from public facts alone."""

    def charge(self, question: Question, levels: Levels) -> Charges:
        return weighting_of(self, question, levels).charges(levels)

    def used(self, question: Question, levels: Levels) -> float:
        return weighting_of(self, question, levels).used(levels)

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        weighting = weighting_of(self, question, levels)
        return FAMILIES[question.statistic.family].predict(question, levels, weighting)

    def worst_error(self, question: Question, levels: Levels) -> float | None:
        return FAMILIES[question.statistic.family].worst(question, levels, weighting_of(self, question, levels))

    def stated_error(self, question: Question, levels: Levels, answer: Answer) -> float | None:
        weighting, predicted = weighting_of(self, question, levels), predicted_error(self, question, levels)
        return FAMILIES[question.statistic.family].state(question, levels, weighting, answer, predicted)

    def error_bars(self, question: Question, levels: Levels, answer: Answer) -> tuple[ErrorBar, ...] | None:
        weighting = weighting_of(self, question, levels)
        return FAMILIES[question.statistic.family].bars(question, levels, weighting, answer)

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        return question.statistic.draw(question, weighting_of(self, question, people.levels), people, entropy)

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> NDArray[np.float64]:
        weighting = weighting_of(self, question, people.levels)
        return question.statistic.simulate(question, weighting, people, entropy, size)

    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], NDArray[np.float64]]:
        return question.statistic.distribution(question, weighting_of(self, question, people.levels), people)


# What is worked out about a roster is kept with its levels, which threads share: whoever puts something in does not
# read it back, since another may have forgotten it. Every release asks for one of the errors, so these mind the size.


def weighting_of(mechanism: Weighing, question: Question, levels: Levels) -> Weighting:
    """Its weights, remembered: a release asks several times."""
    known, key = levels.worked_out, ("weighting", mechanism, question)
    weighting: Weighting | None = known.get(key)
    if weighting is None:
        known[key] = weighting = mechanism.weigh(question, levels)
    return weighting


def predicted_error(mechanism: Mechanism, question: Question, levels: Levels) -> float | None:
    """The predicted error, remembered: whoever plans and whoever releases ask for the same number."""
    known, key = levels.worked_out, ("predicted", mechanism, question)
    found: tuple[float | None] | None = known.get(key)
    if found is None:
        if len(known) > _MOST_WORKED_OUT:
            known.clear()
        known[key] = found = (mechanism.predict_error(question, levels),)
    return found[0]


def worst_error(mechanism: Mechanism, question: Question, levels: Levels) -> float | None:
    """The worst error, remembered likewise."""
    known, key = levels.worked_out, ("worst", mechanism, question)
    found: tuple[float | None] | None = known.get(key)
    if found is None:
        if len(known) > _MOST_WORKED_OUT:
            known.clear()
        known[key] = found = (mechanism.worst_error(question, levels),)
    return found[0]


# One threshold for everyone ----------------------------------------------------------------------------------------


class Thresholded(Weighing):
    """What threshold and sample share: one threshold for everyone, and whether totals are rescaled."""

    threshold: float | str
    rescale: bool
    #: Whether people are kept by coins.
    coins: ClassVar[bool] = False

    @abstractmethod
    def weigh_many(self, levels: Levels, thresholds: NDArray[np.float64]) -> Weightings:
        """What is expected of people at each of several thresholds in nano-epsilon."""

    def at(self, question: Question, levels: Levels) -> int:
        """The threshold in nano-epsilon."""
        return resolve_threshold(self.threshold, levels, lambda: _best(self, question, levels))

    @property
    def rest(self) -> Rest:
        """What becomes of what the threshold leaves out."""
        return Rest.RESCALED if self.rescale else Rest.OMITTED

    def options(self, question: Question, levels: Levels) -> dict[str, Any]:
        return {"threshold": to_epsilon(self.at(question, levels)), "rescale": self.rescale}


def resolve_threshold(threshold: Any, levels: Levels, best: Callable[[], int]) -> int:
    """A threshold in nano-epsilon, from the roster and other public facts alone, within the finite preferences."""
    if threshold == "max":
        return levels.largest
    if threshold == "mean":
        return levels.mean
    if threshold == "best":
        return best()
    if isinstance(threshold, (str, bool)) or not isinstance(threshold, (int, float)) or math.isnan(threshold):
        raise PlanError(f"Unknown threshold {threshold!r}.", suggest='a number, "max", "mean" or "best"')
    low, high = to_epsilon(levels.smallest), to_epsilon(levels.largest)
    if not low <= threshold <= high:
        raise PlanError(
            f"A threshold of {threshold:g} lies outside the preferences.",
            rule=f"It must lie between the strictest and the most open finite epsilon, {low:g} and {high:g}.",
        )
    nano = to_nano(float(threshold))
    assert nano is not None
    return nano


def _best(mechanism: Thresholded, question: Question, levels: Levels) -> int:
    """The best threshold, remembered."""
    known, key = levels.worked_out, ("threshold", mechanism, question)
    found: int | None = known.get(key)
    if found is None:
        known[key] = found = _find_best(mechanism, question, levels)
    return found


def _find_best(mechanism: Thresholded, question: Question, levels: Levels) -> int:
    """The preference on the roster, or a number between two of them, with the least predicted error."""
    steps = max(1, len(levels.finite) // _TRIED)
    candidates = {*levels.finite[::steps], levels.largest, levels.mean}
    # Without coins a number below the next preference keeps the same people with more noise: preferences are enough.
    if len(levels.finite) > 1 and (mechanism.coins or steps > 1):
        ratio = levels.largest / levels.smallest
        candidates |= {math.floor(levels.smallest * ratio ** (k / _TRIED)) for k in range(1, _TRIED)}
    # Where nothing can be predicted, the largest: it keeps the noise least.
    ordered = sorted(candidates, reverse=True)
    weightings = mechanism.weigh_many(levels, np.array(ordered, float))
    errors = FAMILIES[question.statistic.family].predict_many(question, levels, weightings)
    return ordered[int(errors.argmin())]


# What there is --------------------------------------------------------------------------------------------------------


def charge_table(levels: Levels, charges: Charges) -> dict[float, float]:
    """{granted epsilon: epsilon spent}; public people have no balance and spend nothing."""
    pairs = zip(levels.grants, charges, strict=True)
    return {to_epsilon(granted): 0.0 if spent is None else to_epsilon(spent) for granted, spent in pairs}


_REGISTRY: dict[str, list[type[Mechanism]]] = {}


def register(mechanism: type[Mechanism]) -> type[Mechanism]:
    """Make a mechanism known by its name; its file needs nothing else.

    Classes of one file may share a name if they serve different statistics; defined again, a class takes its own place.
    The name of a mechanism of another file is taken.
    """
    kinds = _REGISTRY.get(mechanism.name, [])
    if any(kind.__module__ != mechanism.__module__ for kind in kinds):
        raise PlanError(
            f"There is a mechanism {mechanism.name!r} already.",
            rule="What a name promises must not change under those who ask for it.",
            suggest=f'name = "{mechanism.name}-2"',
        )
    apart = [kind for kind in kinds if not _overlap(kind, mechanism)]
    _REGISTRY[mechanism.name] = [*apart, mechanism]
    return mechanism


def _overlap(one: type[Mechanism], other: type[Mechanism]) -> bool:
    """Whether two classes could serve the same statistic."""
    if not set(one.families) & set(other.families):
        return False
    return one.statistics is None or other.statistics is None or bool(set(one.statistics) & set(other.statistics))


def registered(privacy: str = "personalized") -> dict[str, type[Mechanism]]:
    """Every mechanism that gives a kind of privacy, by name; "group" is served by those for "individual"."""
    wanted = "individual" if privacy == "group" else privacy
    return {name: kinds[0] for name, kinds in _REGISTRY.items() if kinds[0].privacy == wanted}


def kind_for(name: str, statistic: Statistic) -> type[Mechanism]:
    """The class of that name which serves a statistic; where none does, the one that says so."""
    kinds = _REGISTRY[name]
    return next((kind for kind in kinds if kind.serves(statistic)), kinds[0])


@dataclass(frozen=True)
class Settings:
    """What a caller may set on mechanisms; None leaves a mechanism's own default."""

    threshold: float | str | None = None
    rescale: bool | None = None
    scale: str | None = None
    gamma: int | None = None
    inside: str | None = None

    def given(self) -> dict[str, Any]:
        """Those that were set."""
        return {key: value for key, value in self.__dict__.items() if value is not None}


def create(name: str, statistic: Statistic, **options: Any) -> Mechanism:
    """A mechanism by name, for a statistic; options left at None keep the mechanism's defaults."""
    if name not in _REGISTRY:
        raise PlanError(f"Unknown mechanism {name!r}.", suggest=", ".join(["auto", *sorted(_REGISTRY)]))
    given = {key: value for key, value in options.items() if value is not None}
    kind = kind_for(name, statistic)
    unknown = sorted(set(given) - options_of(kind))
    if unknown:
        takers = sorted(other for other, kinds in _REGISTRY.items() if unknown[0] in options_of(kinds[0]))
        raise PlanError(f"{name!r} takes no {unknown[0]!r}.", suggest=f"one of {', '.join(takers)}")
    build: Callable[..., Mechanism] = kind
    return build(**given)


def options_of(kind: type[Mechanism]) -> set[str]:
    """The names of a mechanism's options."""
    return set(getattr(kind, "__dataclass_fields__", {}))


def serving(question: Question, levels: Levels, settings: Settings) -> list[Mechanism]:
    """Every mechanism that can serve, with the options that it takes."""
    found, given = [], settings.given()
    for name in registered(question.privacy):
        kind = kind_for(name, question.statistic)
        if not kind.serves(question.statistic):
            continue
        taken = options_of(kind)
        options = {key: value for key, value in given.items() if key in taken}
        mechanism = create(name, question.statistic, **options)
        if mechanism.refuses(question, levels) is None:
            found.append(mechanism)
    if not found:
        raise PlanError(f'Nothing gives privacy="{question.privacy}" for a {question.statistic.name}.')
    return found


def take_named(name: str, question: Question, levels: Levels, settings: Settings) -> tuple[Mechanism, str]:
    """(the mechanism of that name, why it was taken), if it can serve the question."""
    mechanism = create(name, question.statistic, **settings.given())
    if question.privacy != "personalized" and name not in registered(question.privacy):
        refusal: str | None = f'it gives personalized privacy, not privacy="{question.privacy}"'
    else:
        refusal = mechanism.refuses(question, levels)
    if refusal is None:
        return mechanism, f"Asked for by name: {mechanism.explain(question, levels)}."
    others = [create(other, question.statistic) for other in registered(question.privacy)]
    able = sorted(other.name for other in others if other.refuses(question, levels) is None)
    raise PlanError(
        f"{name!r} cannot serve a {question.statistic.name}: {refusal}.",
        suggest=f'one of {", ".join(able)}, or "auto"' if able else 'privacy="personalized"',
    )

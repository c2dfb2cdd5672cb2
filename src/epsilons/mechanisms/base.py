"""The shape that every mechanism has, and the registry of all of them.

A mechanism is a frozen value that holds its options. From public facts (a question, a roster's levels) it says whether
it serves, what levels are charged, how large the error is; only `draw` sees people. Audits hold `charge` to `draw`.

Most mechanisms only say who weighs how much (`Weighing`); the statistic's family draws by the weights (`statistics/`)
and says how far the answer errs (`accuracy/`). Several classes may have one name, each for other statistics.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, TypeVar

from numpy.typing import NDArray

from epsilons.accuracy import FAMILIES
from epsilons.accuracy.additive import Bars, Effect, Errors, spreads_shown
from epsilons.arguments.reading import Settings
from epsilons.errors import Argument, EpsilonsError, PlanError, Text
from epsilons.guarantee import PERSONALIZED, to_epsilon
from epsilons.measure import ANY_LOSS, NANO, PLAIN, Measure, Rate
from epsilons.mechanisms.vetting import is_vetted
from epsilons.noise.entropy import Entropy
from epsilons.preferences import Levels, name_grant
from epsilons.statistics.base import Answer, Floats, Question, Statistic, Weighting
from epsilons.statistics.distributions import NoisySums
from epsilons.summaries import People

_MOST_WORKED_OUT = 4096  # how much is remembered about a roster
Charges = tuple[int | None, ...]  # in nano-epsilon; None for public people, who have no balance
_NEEDS = "it needs a public number of values: no condition, no groups, one row per person, no values left out"
_UNAUDITED = "from another package, it is chosen for what it was audited with; a mechanism by its name serves it"
#: What makes the number of values public where they are all asked for.
_PUBLIC: Text = (Argument("missing", "center"), ", or ", Argument("complete", True), " if nothing is missing")
_GIVEN = {"personalized": "personalized", "individual": "individual", "group": "individual"}  # {asked for: served by}
T = TypeVar("T")


@dataclass(frozen=True)
class Account:
    """What people are charged at most, in units of a measure: (grant, charge), None for public; names by epsilon."""

    losses: tuple[tuple[int | None, int | None], ...]
    names: Mapping[float, str] = field(default_factory=dict, compare=False)
    measure: Measure = PLAIN

    @classmethod
    def of(cls, levels: Levels, charges: Iterable[int | None], measure: Measure = PLAIN) -> Account:
        """Of people who are all used with what they granted."""
        return cls(tuple(zip(levels.grants, charges, strict=True)), levels.names, measure)

    def at_share(self, levels: Levels, share: Fraction, rate: Rate | None = None) -> Account:
        """By what people granted, where this is by the share of it that was used; people left out pay nothing."""
        spent = dict(self.losses)
        paid = [None if part is None else spent.get(part, 0) for part in levels.parts_at(share, rate)]
        return Account.of(levels, paid) if rate is None else Account.of(levels, map(rate.cost, paid), rate.measure)

    def after(self, earlier: Account) -> Account:
        """What both cost the same people together."""
        pairs = zip(self.losses, earlier.losses, strict=True)
        both = tuple((grant, None if paid is None else paid + (more or 0)) for (grant, paid), (_, more) in pairs)
        return Account(both, self.names, self.measure)

    @cached_property
    def charges(self) -> dict[float, float]:
        """{granted epsilon: epsilon spent, or rho}; public people spend nothing."""
        one = self.measure.one
        return {math.inf if grant is None else grant / NANO: (loss or 0) / one for grant, loss in self.losses}

    @property
    def called(self) -> dict[float, str]:
        """{granted epsilon: its name}."""
        return dict(zip(self.charges, [name_grant(granted, self.names) for granted, _ in self.losses], strict=True))


class Mechanism(ABC):
    """Turn people's values into one answer that keeps every person's own epsilon."""

    name: ClassVar[str]
    #: The families of statistics that it serves, and which of their statistics if not all.
    families: ClassVar[tuple[str, ...]] = ("linear", "ratio", "variance", "regression", "order", "quantiles", "choice")
    statistics: ClassVar[tuple[str, ...] | None] = None
    serves_only: ClassVar[str] = ""  # what to say where it serves something else: "it serves counts"
    needs_public_count: ClassVar[bool] = False  # whether it needs to know how many values there are
    gist: ClassVar[str] = ""  # one short clause on what it does, for plans
    #: Which kind of privacy it gives, and what must be said of it.
    privacy: ClassVar[str] = "personalized"
    kind: ClassVar[str] = PERSONALIZED
    caveats: ClassVar[tuple[str, ...]] = ()
    imputes: ClassVar[bool] = False  # whether who is absent stands at a public value: "replace" implies "absent"
    bounded_range: ClassVar[bool] = False  # whether order statistics come from exponential mechanisms alone

    def refuses(self, question: Question, levels: Levels) -> str | None:
        """Why this mechanism cannot serve the question, or None if it can."""
        kinds, statistic = _lineage(type(self)), question.statistic
        for privacy in (kind.privacy for kind in kinds if kind.privacy != _GIVEN[question.privacy]):
            return f"it gives {privacy} privacy, not {question.privacy} privacy"
        if any(kind.needs_public_count for kind in kinds) and statistic.private_count:
            return _NEEDS
        if not _keeps_range(self) and question.measure.delta is not None and statistic.loss_factor != ANY_LOSS:
            return "a concentrated account pays for exponential mechanisms alone here"
        return None if serves(type(self), statistic) else self.serves_only or f"it serves no {statistic.name}"

    def charge(self, question: Question, levels: Levels) -> Charges:
        """What each level pays, in nano-epsilon, rounded up: all that it granted, unless a mechanism takes less."""
        return levels.grants

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        """Expected root mean squared error against the roster's own statistic; None where it would be data."""
        return None

    def worst_error(self, question: Question, levels: Levels) -> float | None:
        """That error for the worst values people could have, however these relate to their preferences."""
        return None

    def predict_if(self, truth: Question, question: Question, levels: Levels) -> float | None:
        """The error of an answer that is planned by a question's guesses, if those of another one are true."""
        return find_error(self, truth, levels)

    @abstractmethod
    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        """One answer."""

    @abstractmethod
    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
        """Many independent answers to one question on one data set, for audits and simulations."""

    @abstractmethod
    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], Floats]:
        """(outcomes, natural logarithms of their probabilities) on small inputs, for audits and teaching."""

    def noisy_sums(self, question: Question, people: People) -> NoisySums | None:
        """The sums that an answer is made from and the laws of their noises, where that is all; for audits."""
        return None

    def condition(self, question: Question, levels: Levels, answer: Answer | None = None) -> str:
        """What errors and intervals take for granted about preferences and values, as a clause."""
        return question.condition()

    def stated_error(self, question: Question, levels: Levels, answer: Answer) -> Errors:
        """The expected error once an answer is out: what its noisy sums say about the values is public by then."""
        return find_error(self, question, levels)

    def error_bars(self, question: Question, levels: Levels, answer: Answer) -> Bars:
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

    def expectations(self, question: Question, levels: Levels) -> dict[str, Any]:
        """What else can be expected of an answer, from public facts and guesses."""
        return {}

    def why_no_interval(self, question: Question) -> str:
        """One sentence for people who ask for an error bar that nobody can honestly give."""
        return f"How far the answer of {self.name!r} to this question strays depends on the private values."


class Weighing(Mechanism):
    """A mechanism that gives each level a weight, and every answer one noise."""

    bounded_range: ClassVar[bool] = True

    @abstractmethod
    def weigh(self, question: Question, levels: Levels) -> Weighting:
        """The weights and what weight one costs, from public facts alone."""

    def charge(self, question: Question, levels: Levels) -> Charges:
        return weighting_of(self, question, levels).charges(levels)

    def used(self, question: Question, levels: Levels) -> float:
        return weighting_of(self, question, levels).used(levels)

    def predict_error(self, question: Question, levels: Levels) -> float | None:
        return FAMILIES[question.statistic.family].predict_error(question, levels, weighting_of(self, question, levels))

    def worst_error(self, question: Question, levels: Levels) -> float | None:
        return FAMILIES[question.statistic.family].worst_error(question, levels, weighting_of(self, question, levels))

    def predict_if(self, truth: Question, question: Question, levels: Levels) -> float | None:
        accuracy, made = FAMILIES[question.statistic.family], weighting_of(self, question, levels)
        return (accuracy.worst_error if math.isinf(truth.assume) else accuracy.predict_error)(truth, levels, made)

    def condition(self, question: Question, levels: Levels, answer: Answer | None = None) -> str:
        """Where everyone has the same weight, it does not matter who chose which level."""
        weighting, statistic = weighting_of(self, question, levels), question.statistic
        seen = statistic.one_each and not statistic.labels and answer  # its numbers count people once each
        alike = levels.left_out == 0 and weighting.coins is None and len(set(weighting.weights)) == 1
        spreads = spreads_shown(question, Effect.of(question, levels, weighting), seen) if seen else ()
        return question.condition(alike=alike, spreads=spreads)

    def stated_error(self, question: Question, levels: Levels, answer: Answer) -> Errors:
        accuracy, predicted = FAMILIES[question.statistic.family], find_error(self, question, levels)
        if math.isinf(question.assume) and not accuracy.worst_after:
            # The coefficients of a model have one error together.
            return predicted if question.statistic.family == "regression" else answer.each(lambda _: predicted)
        return accuracy.stated_error(question, levels, weighting_of(self, question, levels), answer, predicted)

    def error_bars(self, question: Question, levels: Levels, answer: Answer) -> Bars:
        made = weighting_of(self, question, levels)
        return FAMILIES[question.statistic.family].error_bars(question, levels, made, answer)

    def expectations(self, question: Question, levels: Levels) -> dict[str, Any]:
        return FAMILIES[question.statistic.family].expectations(question, levels, weighting_of(self, question, levels))

    def why_no_interval(self, question: Question) -> str:
        return question.statistic.no_interval or super().why_no_interval(question)

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        return question.statistic.draw(question, weighting_of(self, question, people.levels), people, entropy)

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
        return question.statistic.simulate(question, weighting_of(self, question, people.levels), people, entropy, size)

    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], Floats]:
        return question.statistic.distribution(question, weighting_of(self, question, people.levels), people)

    def noisy_sums(self, question: Question, people: People) -> NoisySums | None:
        return question.statistic.noisy_sums(question, weighting_of(self, question, people.levels), people)


# What is worked out about a roster ---------------------------------------------------------------------------------


def remember(levels: Levels, key: Hashable, work_out: Callable[[], T]) -> T:
    """What was worked out from public facts, kept with the levels."""
    known = levels.worked_out  # threads share it, and any may forget it all: nothing is read back once it was put in
    found: tuple[T] | None = known.get(key)
    if found is None:
        if len(known) > _MOST_WORKED_OUT:
            known.clear()
        known[key] = found = (work_out(),)
    return found[0]


def _ask(mechanism: Mechanism, work_out: Callable[[Question, Levels], T], question: Question, levels: Levels) -> T:
    """What a mechanism makes of public facts; where one's own raises, it is named, before anyone is charged."""
    try:
        return work_out(question, levels)
    except EpsilonsError:
        raise
    except Exception as error:
        what = f"The mechanism {mechanism.name!r} failed with {type(error).__name__} in {work_out.__name__!r}."
        hint = "correct it, or ask for another mechanism by name"
        raise PlanError(what, rule="It works from public facts, before anyone is charged.", suggest=hint) from error


def weighting_of(mechanism: Weighing, question: Question, levels: Levels) -> Weighting:
    """A mechanism's weights, remembered: a release asks several times."""

    def work_out() -> Weighting:
        found = _ask(mechanism, mechanism.weigh, question, levels)
        if not isinstance(found, Weighting):
            raise PlanError(f"The mechanism {mechanism.name!r} made no Weighting.", rule="Its weigh returns one.")
        return found

    return remember(levels, ("weighting", mechanism, question), work_out)


def find_error(mechanism: Mechanism, question: Question, levels: Levels, *, worst: bool = False) -> float | None:
    """The predicted error, which is the worst one if nothing is assumed; remembered, since releases ask as well."""
    worst = worst or math.isinf(question.assume)
    work_out = mechanism.worst_error if worst else mechanism.predict_error
    return remember(levels, ("error", worst, mechanism, question), partial(_ask, mechanism, work_out, question, levels))


# What every mechanism is held to, whoever wrote it -------------------------------------------------------------------


@lru_cache
def _lineage(kind: type[Mechanism]) -> tuple[type[Mechanism], ...]:
    """A class and those that it comes from: what one of them cannot do, no subclass can, whatever it says of itself."""
    return tuple(one for one in kind.__mro__ if issubclass(one, Mechanism) and one is not Mechanism)


def _keeps_range(mechanism: Mechanism) -> bool:
    """Whether order statistics have a bounded range; one from outside may not just say so, its draw must be ours."""
    kind = type(mechanism)
    return mechanism.bounded_range and (kind in OWN or kind.draw is Weighing.draw)


def serves(kind: type[Mechanism], statistic: Statistic) -> bool:
    """Whether a class can serve such a statistic at all."""
    return _serves(kind, statistic.name, statistic.family)


@lru_cache(1024)
def _serves(kind: type[Mechanism], name: str, family: str) -> bool:
    lineage = _lineage(kind)
    named = all(one.statistics is None or name in one.statistics for one in lineage)
    return named and all(family in one.families for one in lineage)


def why_refused(mechanism: Mechanism, question: Question, levels: Levels) -> str | None:
    """Why a mechanism cannot serve a question, or None if it can: also where a subclass leaves a reason out."""
    kinds: list[Any] = [Mechanism, *_lineage(type(mechanism))]
    refusals = (kind.refuses(mechanism, question, levels) for kind in kinds if "refuses" in vars(kind))
    return next(filter(None, refusals), None)


def charges_of(mechanism: Mechanism, question: Question, levels: Levels) -> Charges:
    """What each level pays, checked before any data is read. No other way leads to a charge: none passes a grant."""
    found = _check_charges(mechanism, question, levels)
    if isinstance(found, str):
        rule = "A mechanism charges what people lose by it, and never more than they granted."
        raise PlanError(f"{mechanism.name!r} cannot serve a {question.statistic.name}: {found}.", rule=rule)
    return found


def _check_charges(mechanism: Mechanism, question: Question, levels: Levels) -> Charges | str:
    """What each level pays, or in words what is wrong with that."""

    def check() -> Charges | str:
        losses: Charges = (0,) * len(levels.grants)
        if isinstance(mechanism, Weighing):
            weighting = weighting_of(mechanism, question, levels)
            if (misfit := weighting.misfit(levels) or question.statistic.misfit(weighting)) is not None:
                return misfit
            ranged = question.measure.delta is not None and question.statistic.loss_factor != ANY_LOSS
            if ranged and weighting.coins is not None:
                return "a sample has no bounded range, which a concentrated account pays for here"
            losses = weighting.charges(levels)
        plain = type(mechanism).charge is Weighing.charge
        charges = losses if plain else tuple(_ask(mechanism, mechanism.charge, question, levels))
        if len(charges) != len(levels.grants):
            return f"it makes {len(charges)} charges for {len(levels.grants)} levels"
        for grant, charge, loss in zip(levels.grants, charges, losses, strict=True):
            if grant is None and charge is not None:
                return "it charges people who chose public"
            if grant is not None and (type(charge) is not int or charge < 0):
                return f"a charge of {charge!r} is not an int of nano-epsilon from 0"
            if grant is not None and charge is not None and not (loss or 0) <= charge <= grant:
                lost = f" and {to_epsilon(loss):.10g} is lost" if loss else ""
                return f"it charges {to_epsilon(charge):.10g} where {to_epsilon(grant):.10g} was granted{lost}"
        return charges

    return remember(levels, ("charges", mechanism, question), check)


# What there is -----------------------------------------------------------------------------------------------------

_REGISTRY: dict[str, list[type[Mechanism]]] = {}
REGISTERED: list[type[Mechanism]] = []  # whoever ever was
#: Those of this package, which its tests hold to their word; others are vetted before "auto" may choose them.
OWN: set[type[Mechanism]] = set()


def register(mechanism: type[Mechanism]) -> type[Mechanism]:
    """Make a mechanism known by its name, which no other file has; classes of one file serve other statistics."""
    name, kinds = mechanism.name, _REGISTRY.get(mechanism.name, [])
    if any(kind.__module__ != mechanism.__module__ for kind in kinds):
        rule = "What a name promises must not change under those who ask for it."
        raise PlanError(f"There is a mechanism {name!r} already.", rule=rule, suggest=f'name = "{name}-2"')
    _REGISTRY[name] = [*(kind for kind in kinds if not _overlap(kind, mechanism)), mechanism]
    REGISTERED.append(mechanism)
    return mechanism


def _overlap(one: type[Mechanism], other: type[Mechanism]) -> bool:
    """Whether two classes could serve the same statistic."""
    named = one.statistics is None or other.statistics is None or set(one.statistics) & set(other.statistics)
    return bool(named and set(one.families) & set(other.families))


def list_mechanisms(privacy: str = "personalized") -> dict[str, type[Mechanism]]:
    """Every mechanism that gives a kind of privacy, by name."""
    return {name: kinds[0] for name, kinds in _REGISTRY.items() if kinds[0].privacy == _GIVEN.get(privacy)}


def kind_for(name: str, statistic: Statistic) -> type[Mechanism]:
    """The class of that name which serves a statistic; where none does, the one that says so."""
    return next((kind for kind in _REGISTRY[name] if serves(kind, statistic)), _REGISTRY[name][0])


def create(name: str, statistic: Statistic, **options: Any) -> Mechanism:
    """A mechanism by name, for a statistic; options left at None keep the mechanism's defaults."""
    if name not in _REGISTRY:
        raise PlanError(f"Unknown mechanism {name!r}.", suggest=", ".join(["auto", *sorted(_REGISTRY)]))
    given = {key: value for key, value in options.items() if value is not None}
    kind: Callable[..., Mechanism] = kind_for(name, statistic)
    for option in sorted(set(given) - option_names(kind)):
        takers = sorted(other for other, kinds in _REGISTRY.items() if option in option_names(kinds[0]))
        raise PlanError((f"{name!r} takes no ", Argument(option), "."), suggest=f"one of {', '.join(takers)}")
    return kind(**given)


def option_names(kind: Any) -> set[str]:
    return set(getattr(kind, "__dataclass_fields__", {}))


def serving(question: Question, levels: Levels, settings: Settings) -> list[Mechanism]:
    """Every mechanism that can serve, with the options that it takes."""
    statistic, scope, found = question.statistic, question.statistic.scope, []
    kinds: list[Any] = [kind_for(name, statistic) for name in list_mechanisms(question.privacy)]
    own = type(statistic).__module__.startswith("epsilons.")
    for kind in (kind for kind in kinds if serves(kind, statistic)):
        given = {name: value for name, value in vars(settings).items() if value is not None}
        made = kind(**{name: value for name, value in given.items() if name in option_names(kind)})
        fits = why_refused(made, question, levels) is None and isinstance(_check_charges(made, question, levels), tuple)
        # A draw or a statistic from outside is vouched for where it was audited: one row of everybody.
        as_audited = scope is None or (kind.draw is Weighing.draw and (own or scope.rows == scope.cells == 1))
        if fits and ((own and kind in OWN) or (as_audited and is_vetted(kind, question, own))):
            found.append(made)
    if not found:
        what = ("Nothing gives ", Argument("privacy", question.privacy), f" for a {statistic.name}.")
        if (complete := statistic.completed()) is None:
            reason, *others = dict.fromkeys(why_refused(kind(), question, levels) for kind in kinds)
            rule = _UNAUDITED if None in (reason, *others) else "" if others else f"{reason}."
            raise PlanError(what, rule=rule[:1].upper() + rule[1:])
        serving(replace(question, statistic=complete), levels, settings)
        raise PlanError(what, rule="It needs a public number of values; missing ones are left out.", suggest=_PUBLIC)
    return found


def take_named(name: str, question: Question, levels: Levels, settings: Settings) -> tuple[Mechanism, str]:
    """(the mechanism of that name, why it was taken), if it can serve the question."""
    mechanism = create(name, question.statistic, **vars(settings))
    if (refusal := why_refused(mechanism, question, levels)) is None:
        charges_of(mechanism, question, levels)
        return mechanism, f"Asked for by name: {mechanism.explain(question, levels)}."
    others = [create(other, question.statistic) for other in list_mechanisms(question.privacy)]
    able = sorted(other.name for other in others if why_refused(other, question, levels) is None)
    alike = mechanism.privacy == _GIVEN[question.privacy]
    other: Text = Argument("privacy", "personalized" if alike else mechanism.privacy)
    hint = f'one of {", ".join(able)}, or "auto"' if able and alike else other
    if (complete := question.statistic.completed()) is not None:
        made = create(name, complete, **vars(settings))
        if why_refused(made, replace(question, statistic=complete), levels) is None:
            refusal, hint = _NEEDS, _PUBLIC
    raise PlanError(f"{name!r} cannot serve a {question.statistic.name}: {refusal}.", suggest=hint)

"""What comes out with which chance, and many answers at once, of any mechanism or function.

`what` is the name of a statistic, with its arguments; a mechanism of one's own, with the `statistic` that it is to
serve; `eps.select` or `eps.noisy`, with theirs; or a function of one's own: of the values, and of `epsilons` where it
names them.
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import check_share, check_whole, refuse
from epsilons.arrays.asking import Prepared, prepare
from epsilons.arrays.claimed import show_people
from epsilons.arrays.gridded import Gridded
from epsilons.arrays.noisy import Noisy, noisy
from epsilons.arrays.select import Choice, select
from epsilons.auditing.divergence import tail_of
from epsilons.display import Sheet, Shown, show
from epsilons.errors import Argument, PlanError
from epsilons.mechanisms.base import Mechanism, Weighing, weighting_of, why_refused
from epsilons.noise.entropy import system
from epsilons.plots import plot_law
from epsilons.preferences import aligned_roster
from epsilons.statistics.additive import Additive, Laplace
from epsilons.statistics.distributions import NoisySums
from epsilons.statistics.gaussian import Gaussian

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 12
#: Answers that are listed one by one; beyond, their law is told by so many ranges. Noise reaches so many scales.
_MOST_ANSWERS, _RANGES, _FAR = 500, 100, 20


@dataclass(frozen=True)
class Between:
    """Answers from `low` on and below `high`."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.6g} to {self.high:.6g}"


@dataclass(frozen=True)
class Distribution(Shown):
    """What comes out with which chance: exactly, or counted in so many `draws`.

    Where answers are too many to list, outcomes are ranges of them.
    """

    outcomes: tuple[Any, ...]
    probabilities: NDArray[np.float64]
    draws: int | None = None

    def __getitem__(self, outcome: Any) -> float:
        """The chance of an outcome, or of the range that it lies in."""
        pairs = zip(self.outcomes, self.probabilities, strict=True)
        return float(sum(p for one, p in pairs if one == outcome or _holds(one, outcome)))

    def sheets(self) -> Sequence[Sheet]:
        order = np.argsort(-self.probabilities, kind="stable")[:_SHOWN]
        rows = [[_show(self.outcomes[place]), f"{self.probabilities[place]:.4g}"] for place in order.tolist()]
        how = "exact" if self.draws is None else f"counted in {self.draws:,} draws"
        return [Sheet(f"{len(self.outcomes):,} outcomes, {how}; the likeliest", ("outcome", "chance"), rows)]

    def plot(self, axes: Axes | None = None) -> Axes:
        """Chances by outcome."""
        places = [(one.low + one.high) / 2 if isinstance(one, Between) else one for one in self.outcomes]
        return plot_law(places, self.probabilities, axes)


def _holds(one: Any, outcome: Any) -> bool:
    return isinstance(one, Between) and isinstance(outcome, int | float) and one.low <= outcome < one.high


def _show(outcome: Any) -> str:
    return str(outcome) if isinstance(outcome, Between) else show(outcome)


def distribution(
    what: Any, values: Any, epsilons: Any, *, statistic: str | None = None, draws: int = 10_000, **arguments: Any
) -> Distribution:
    """What comes out with which chance: exactly where that can be, else counted in so many draws.

    Exact are single noisy numbers, `eps.noisy` included, order statistics without an interval, the exponential
    mechanism and `eps.select`, where people are sampled for a few of them. A noisy sum has too many answers to list:
    they are put into ranges. The first and the last outcome stand for all beyond them: answers are cut to what is
    possible, and those of `eps.noisy` that lie twenty scales of the noise away have a chance of 2e-9.

    >>> import epsilons as eps
    >>> law = eps.distribution("count", [1, 0], [1.0, 2.0], mechanism="exponential", complete=True)
    >>> [round(law[count], 4) for count in (0, 1, 2)]
    [0.3072, 0.5065, 0.1863]
    """
    if what is select:
        listed, logs = read_choice(arguments).law(values, aligned_roster(epsilons, values))
        return Distribution(tuple(listed), np.exp(logs))
    found = None
    if isinstance(what, str) or is_mechanism(what):
        found = _law_of_values(_prepare(what, values, epsilons, statistic, arguments))
    elif what is noisy:
        found = _law_of_noisy(values, epsilons, arguments)
    if found is not None:
        return found
    drawn = _draw_many(what, values, epsilons, statistic, draws, arguments)
    counted = Counter(hashable(outcome) for outcome in drawn)
    outcomes, chances = tuple(counted), np.array(list(counted.values()), np.float64) / draws
    if len(outcomes) > _MOST_ANSWERS and drawn.dtype != object:
        return _in_ranges(np.array(outcomes), chances, draws)
    return Distribution(outcomes, chances, draws)


def _in_ranges(answers: NDArray[np.float64], chances: NDArray[np.float64], draws: int) -> Distribution:
    """Numbers of which most came up once: in ranges, but for those that came up often."""
    often = chances >= 1 / _RANGES
    rest, weights = answers[~often], chances[~often]
    edges = np.linspace(rest.min(), rest.max(), _RANGES + 1)
    found, _ = np.histogram(rest, edges, weights=weights)
    edges[-1] = np.nextafter(edges[-1], np.inf)  # the last one is inside, too
    ranges = [Between(low, high) for low, high in pairwise(edges.tolist())]
    return Distribution((*answers[often].tolist(), *ranges), np.append(chances[often], found), draws)


def simulate(
    what: Any, values: Any, epsilons: Any, *, statistic: str | None = None, size: int = 1_000, **arguments: Any
) -> NDArray[Any]:
    """So many independent answers. On made-up data alone: together they cost as many times as much.

    Of a model the values are a pair (X, y), and every answer has its coefficients by name.

    >>> import epsilons as eps
    >>> eps.simulate("mean", [0, 50, 100], 1.0, bounds=(0, 100), mechanism="minimum", size=5).shape
    (5,)
    """
    return _draw_many(what, values, epsilons, statistic, size, arguments)


def _draw_many(
    what: Any, values: Any, epsilons: Any, statistic: str | None, size: int, arguments: dict[str, Any]
) -> NDArray[Any]:
    size = check_whole(size, refusal=refuse("size", size, "A whole number from 1.", Argument("size", 1000)))
    if isinstance(what, str) or is_mechanism(what):
        made = _prepare(what, values, epsilons, statistic, arguments)
        source = arguments.get("entropy") or system()
        try:
            drawn = made.mechanism.simulate(made.question, made.people, source, size)
            if made.question.statistic.family != "choice":
                return drawn
            outcomes = [made.question.statistic.tell_outcome(int(code)) for code in drawn]
        except PlanError:  # only single numbers are drawn in bulk
            outcomes = [made.mechanism.draw(made.question, made.people, source).value for _ in range(size)]
    else:
        call = as_call(what, arguments)
        outcomes = [call(values, epsilons) for _ in range(size)]
    found = np.empty(size, object)
    found[:] = outcomes
    numbers = all(isinstance(outcome, int | float | np.number) for outcome in outcomes)
    return found.astype(np.float64) if numbers else found


def is_mechanism(what: Any) -> bool:
    """Whether it is a mechanism, or the class of one."""
    return isinstance(what, Mechanism) or (isinstance(what, type) and issubclass(what, Mechanism))


def prepare_own(what: Any, statistic: str | None, values: Any, epsilons: Any, arguments: dict[str, Any]) -> Prepared:
    """A question as a mechanism of one's own would answer it."""
    asked, own = statistic or "count", what() if isinstance(what, type) else what
    made = prepare(asked, values, epsilons, {"mechanism": "minimum", **arguments})
    if (refusal := why_refused(own, made.question, made.people.levels)) is not None:
        raise PlanError(f"{own.name!r} cannot serve a {asked}: {refusal}.")
    return replace(made, mechanism=own)


def _prepare(what: Any, values: Any, epsilons: Any, statistic: str | None, arguments: dict[str, Any]) -> Prepared:
    if is_mechanism(what):
        return prepare_own(what, statistic, values, epsilons, arguments)
    if statistic is not None:
        raise PlanError((Argument("statistic"), " goes with a mechanism of one's own."), suggest="leave it out")
    return prepare(what, values, epsilons, arguments)


# Laws of answers -----------------------------------------------------------------------------------------------------


def _law_of_values(made: Prepared) -> Distribution | None:
    """The law of what is released; None where only draws can tell it."""
    mechanism, question, people = made.mechanism, made.question, made.people
    if (sums := mechanism.noisy_sums(question, people)) is not None:
        one = len(sums.laws) == 1 and isinstance(mechanism, Weighing)
        return _law_of_sum(made, cast(Weighing, mechanism), sums) if one else None
    statistic = question.statistic
    one_answer = not statistic.labels or statistic.family == "choice"
    if mechanism.privacy != "personalized" or statistic.has_bracket or not one_answer:
        return None
    outcomes, logs = mechanism.distribution(question, people)
    listed = [hashable(statistic.tell_outcome(outcome)) for outcome in outcomes.tolist()]
    plain = statistic.family == "choice" or all(isinstance(outcome, int | float) for outcome in listed)
    return Distribution(tuple(listed), np.exp(logs)) if plain else None


def _law_of_sum(made: Prepared, mechanism: Weighing, sums: NoisySums) -> Distribution:
    """Of one noisy sum, as it is turned into an answer: a straight line, cut to what is possible."""
    question, people = made.question, made.people
    statistic = cast(Additive, question.statistic)
    weighting = weighting_of(mechanism, question, people.levels)

    def answer(place: int) -> Any:
        found = statistic.finish(question, [[Fraction(place, weighting.one)]], weighting, people.levels)
        return statistic.cut(found, people.levels.size)

    (law,), (low, high) = sums.laws, statistic.limits(people.levels.size)
    zero, one = (statistic.finish(question, [[Fraction(k)]], weighting, people.levels) for k in (0, 1))
    step = float(one - zero) / weighting.one
    least, most = math.floor((low - zero) / step), math.ceil((high - zero) / step)

    def above(place: int) -> float:
        """The chance of sums from here on."""
        return math.fsum(chance * _tail(law, place - centre) for chance, (centre,) in sums.mixture)

    if most - least <= _MOST_ANSWERS:
        places = list(range(least, most + 1))
        return _merged([answer(place) for place in places], _masses([above(place) for place in places[1:]]))
    cuts = [least + (most - least) * part // _RANGES for part in range(_RANGES + 1)]
    ends = [float(answer(cut)) for cut in cuts]
    inner = [Between(a, b) for a, b in pairwise(ends)]
    chances = _masses([above(place) for place in (cuts[0] + 1, *cuts[1:-1], cuts[-1])])
    return Distribution((float(low), *inner, float(high)), np.array(chances))


def _law_of_noisy(values: Any, epsilons: Any, arguments: dict[str, Any]) -> Distribution | None:
    """Of a function's one number; None where everyone is public, or where it has several."""
    asked, roster = read_noisy(arguments), aligned_roster(epsilons, values)
    scaled, used = asked.take_share(roster, check_share(arguments.get("share", 1)))
    if roster.levels.all_public or used is not None or asked.answer.size is not None:
        return None
    law = asked.plan(scaled).law
    (centre,) = asked.answer.places(show_people(values, len(roster)), instead=0)
    far = math.ceil(_FAR * law.scale)
    parts = 2 * far if 2 * far <= _MOST_ANSWERS else _RANGES
    cuts = [centre - far + 2 * far * part // parts for part in range(parts + 1)]
    ends = [asked.answer.values([cut]) for cut in cuts]
    outcomes = ends if parts == 2 * far else [Between(low, high) for low, high in pairwise(ends)]
    return Distribution(
        tuple(outcomes), np.array(_masses([_tail(law, cut - centre) for cut in cuts[1:][: len(outcomes) - 1]]))
    )


def _masses(above: Sequence[float]) -> list[float]:
    """Of what lies before the first place, between two, and from the last on."""
    return [max(0.0, here - beyond) for here, beyond in zip((1.0, *above), (*above, 0.0), strict=True)]


def _merged(answers: Sequence[Any], chances: Sequence[float]) -> Distribution:
    """Answers that were cut to the same one are one."""
    found: dict[Any, float] = {}
    for outcome, chance in zip(answers, chances, strict=True):
        found[outcome] = found.get(outcome, 0.0) + chance
    return Distribution(tuple(found), np.array(list(found.values())))


def _tail(law: Any, least: int) -> float:
    """The chance that a noise is so large or larger."""
    if isinstance(law, Gaussian):
        return sum(tail_of(law.variance)(least)) / 2
    assert isinstance(law, Laplace)
    rate = float(law.inverse)
    beyond = math.exp(-rate * max(least, 1 - least)) / (1 + math.exp(-rate))
    return beyond if least > 0 else 1 - beyond


# Functions -----------------------------------------------------------------------------------------------------------


def read_choice(arguments: dict[str, Any]) -> Choice:
    """The arguments of `eps.select`."""
    given = {"cost": None, "score": None, "bounds": (0.0, 1.0), "k": 1, "neighbors": "absent", "domain": None}
    return Choice.read(**{**given, **arguments})


def read_noisy(arguments: dict[str, Any]) -> Noisy:
    """The arguments of `eps.noisy`."""
    given = {"size": None, "whole": False, "neighbors": "absent", "delta": None, "domain": None, **arguments}
    for needed in ("function", "sensitivity", "step"):
        if needed not in given:
            raise PlanError(("eps.noisy needs a ", Argument(needed), "."), suggest="the arguments of eps.noisy")
    answer = Gridded.read(*(given[key] for key in ("function", "step", "size", "whole")))
    return Noisy.read(answer, *(given[key] for key in ("sensitivity", "neighbors", "delta", "domain")))


def as_call(what: Any, arguments: dict[str, Any]) -> Callable[[Any, Any], Any]:
    """A function as one of values and epsilons; a release is told by its value."""
    if not callable(what):
        hint = '"count", or any function of the values'
        raise PlanError("This is no statistic, mechanism or function.", suggest=hint)

    told, name = names_epsilons(what), _name_of_values(what, arguments)

    def call(values: Any, epsilons: Any) -> Any:
        given = {**arguments, "epsilons": epsilons} if told else arguments
        found = what(values, **given) if name is None else what(**{name: values}, **given)
        return found.value if hasattr(found, "guarantee") else found

    return call


def _name_of_values(what: Any, arguments: dict[str, Any]) -> str | None:
    """By which name a function takes its values: None if they are its first argument."""
    names, taken = _list_names(what), {*arguments, "epsilons"}
    if {"values", "epsilons"} <= set(names):
        return "values"
    return next((name for name in names if name not in taken), None) if names and names[0] in taken else None


def names_epsilons(what: Any) -> bool:
    """Whether a function names an argument `epsilons`: then it is told everybody's."""
    return "epsilons" in _list_names(what)


def _list_names(what: Any) -> list[str]:
    """The arguments that a function takes by name; none where it does not say."""
    try:
        listed = inspect.signature(what).parameters
    except (TypeError, ValueError):
        return []
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [name for name, one in listed.items() if one.kind in named]


def hashable(outcome: Any) -> Any:
    """An outcome that can be counted."""
    plain = outcome.tolist() if isinstance(outcome, np.ndarray) else outcome
    if isinstance(plain, dict):
        return tuple(plain.items())
    return tuple(map(hashable, plain)) if isinstance(plain, list) else plain

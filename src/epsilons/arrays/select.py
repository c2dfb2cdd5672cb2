"""One of several options, or the best few: the exponential mechanism for any score, PE in its general form."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import (
    ASSUMPTIONS,
    BOUNDS_RULE,
    check_bounds,
    check_entropy,
    check_name,
    check_share,
    check_whole,
    refuse,
)
from epsilons.arrays.claimed import call_quietly, search_claim, show_people, tell_claim, try_out
from epsilons.engines.readings import is_list, quietly
from epsilons.errors import Argument, PlanError
from epsilons.guarantee import NANO, NEIGHBORS, NO_PROMISE, Guarantee, to_epsilon
from epsilons.mechanisms.base import Account
from epsilons.noise.entropy import Entropy, is_private, system
from epsilons.noise.segments import Block, SegmentSampler
from epsilons.planner.plan import nobody_left
from epsilons.preferences import Roster, aligned_roster
from epsilons.release.answer import EVERYONE_PUBLIC, EXACT, Release, build_release, list_caveats
from epsilons.summaries.arrays import as_matrix, check_values

#: A score is a whole number of these steps between its bounds: nobody's weight is rounded, so nobody passes a grant.
STEPS = 1 << 20
#: In epsilon: an option that costs more costs so much. No two costs are farther apart than before.
_MOST_COST = 10**6
_CLAIM = "That nobody moves the cost of an option by more than their epsilon"
_FUNCTION = "lambda values, epsilons, option: ..."
_VOICES = "Everyone's voice weighs as much as they granted."


def select(
    options: Sequence[Hashable],
    values: Any,
    epsilons: Any,
    *,
    cost: Callable[[Any, Any, Any], float] | None = None,
    score: Callable[[Any, Any], float] | None = None,
    bounds: tuple[float, float] | None = None,
    k: int = 1,
    neighbors: str = "absent",
    domain: Sequence[Any] | None = None,
    share: float = 1.0,
    entropy: Entropy | None = None,
) -> Release:
    """One of the public options, a good one the likelier, or the best `k` as a list, the best one first.

    What is good is said in one of four ways. Without more, a value that equals an option is a voice for it: the most
    frequent value (a mode). An array or frame of one row per person and one column per option has scores within the
    `bounds`: the largest total (an arg-max); in a list, a list is a value like any other. `score(value, option)` gives
    scores for values of any kind, within (0, 1) unless `bounds` say otherwise. In these three a voice weighs as much as
    its epsilon, whoever has no value has none, and the promise rests on nobody's word. Where a score fails that person
    has no voice, silently, since an error would tell of the values; a public `domain` of values tries it out before.

    `cost(values, epsilons, option)` is for all the rest: the least sum of the epsilons of people whose values could be
    changed so that the option became the true answer (Jorgensen et al. 2015, Definition 10, Equation 5). That nobody
    moves it by more than their own epsilon is the caller's claim; with a public `domain` of values it is tested on
    made-up data first. It covers failures too: an option for which it fails, or gives no number, costs 0, since an
    error would tell of the values. Public people have an infinite epsilon there, and weigh as much as the most open one
    elsewhere.

    >>> import epsilons as eps
    >>> answer = eps.select(["red", "green", "blue"], ["red"] * 60 + ["blue"] * 9, 1.0)
    >>> answer.value
    'red'
    >>> def unlike(values, epsilons, option):  # what making it the maximum costs
    ...     above = sum(e for x, e in zip(values, epsilons) if x > option)
    ...     return above or (0.0 if option in values else min(epsilons))
    >>> most = eps.select(range(5), [0, 1, 1, 2] * 30, 2.0, cost=unlike, domain=range(5), neighbors="replace")
    >>> most.charges
    {2.0: 2.0}
    """
    source = system() if entropy is None else check_entropy(entropy)
    choice = Choice.read(options, cost, score, bounds, k, neighbors, domain)
    roster, part = aligned_roster(epsilons, values), check_share(share)
    if roster.levels.all_public:
        return choice.release(roster, roster, choice.best(values, roster), part, source, EXACT).about(roster.covered)
    scaled, used = roster.take_share(part)
    if scaled.levels.all_public:
        raise nobody_left(part)
    tried = choice.test(scaled, used)
    costs = choice.costs(values, scaled, used)
    unit, drawn = choice.unit(scaled), list[int]()
    while len(drawn) < choice.k:  # one after the other, each at a k-th of everybody's part
        left = [place for place in range(len(costs)) if place not in drawn]
        drawn.append(left[sampler([costs[place] for place in left], unit).draw(source)])
    return choice.release(roster, scaled, drawn, part, source, "exponential", tried).about(roster.covered)


def sampler(costs: Sequence[int], unit: Fraction) -> SegmentSampler:
    """What draws a place by its cost, exactly."""
    block = Block(first=range(len(costs)), direction=1, count=1, cost=costs, slope=0, left_over=0, floor=0)
    return SegmentSampler([block], unit)


@dataclass(frozen=True)
class Choice:
    """The public arguments of a selection."""

    options: tuple[Hashable, ...]
    cost: Callable[[Any, Any, Any], float] | None
    score: Callable[[Any, Any], float] | None
    bounds: tuple[float, float] | None
    k: int
    neighbors: str
    domain: Any

    @classmethod
    def read(cls, options: Any, cost: Any, score: Any, bounds: Any, k: Any, neighbors: Any, domain: Any) -> Choice:
        listed = tuple(options.tolist() if isinstance(options, np.ndarray) else options) if _lists(options) else ()
        if len(listed) < 2 or quietly(set, listed) is None or len(set(listed)) < len(listed):
            rule = "At least two, each once: public, and not read from the values."
            raise refuse("options", options, rule, Argument("options", ["red", "green"]))
        if cost is None and any(map(_is_missing, listed)):  # whoever leaves would become a voice for it, and lose twice
            rule = "A missing value is no option: who has none has no voice."
            raise refuse(
                "options", options, rule, ("another name for it, such as ", Argument("options", ["red", "none"]))
            )
        for name, function in (("cost", cost), ("score", score)):
            if function is not None and not callable(function):
                raise PlanError((Argument(name), " cannot be called."), suggest=_FUNCTION)
        if cost is not None and score is not None:
            raise PlanError("Either a cost or a score.", suggest=("leave ", Argument("score"), " out"))
        most = len(listed) - 1
        most_text = f"A whole number from 1 to {most}: fewer than there are options."
        number = check_whole(k, 1, most, refuse("k", k, most_text, Argument("k", 1)))
        check_name("neighbors", neighbors, NEIGHBORS)
        if domain is not None and cost is None and score is None:
            what = (Argument("domain"), " tests a ", Argument("cost"), " or a ", Argument("score"), ".")
            raise PlanError(what, rule="Voices need no test.", suggest=("leave ", Argument("domain"), " out"))
        ends = None if bounds is None else check_bounds(bounds, "score")
        return cls(listed, cost, score, ends, number, neighbors, domain)

    def unit(self, roster: Roster) -> Fraction:
        """What one unit of `costs` is in the exponent.

        Whoever comes or goes moves all voices one way, and so the ratio of two chances by their weight at most; a
        replaced one moves them both ways, and any cost may move so: hence the 1/2 of the exponential mechanism
        (McSherry and Talwar 2007). A stated cost is rounded to a nano-epsilon, which may add one to what somebody
        moves, and its arithmetic another: the unit allows for both.
        """
        if self.cost is not None:
            least = roster.levels.smallest
            return Fraction(least, least + 2) / (2 * NANO * self.k)
        return Fraction(1, (1 if self.neighbors == "absent" else 2) * NANO * STEPS * self.k)

    def costs(self, values: Any, roster: Roster, used: NDArray[np.bool_] | None) -> list[int]:
        """What each option costs, in whole units; the cheapest voices cost nothing."""
        if self.cost is not None:
            found = self._price(show_people(values, len(roster)), roster)
            return [round(Fraction(price) * NANO) for price in found]
        totals, largest = self.tally(values, roster, used), max(roster.levels.finite, default=1)
        grants = [largest if grant is None else grant for grant in roster.levels.grants]
        voices = [sum(grant * int(n) for grant, n in zip(grants, column, strict=True)) for column in totals.T]
        return [max(voices) - one for one in voices]

    def law(self, values: Any, roster: Roster) -> tuple[list[Any], NDArray[np.float64]]:
        """(every choice, natural logarithms of their chances), for audits and teaching."""
        costs, unit = self.costs(values, roster, None), self.unit(roster)
        found: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
        for _ in range(self.k):
            longer: list[tuple[tuple[int, ...], float]] = []
            for drawn, log in found:
                left = [place for place in range(len(costs)) if place not in drawn]
                _, chances = sampler([costs[place] for place in left], unit).probabilities()
                with np.errstate(divide="ignore"):
                    longer += zip([(*drawn, place) for place in left], (log + np.log(chances)).tolist(), strict=True)
            found = longer
        chosen = [tuple(self.options[place] for place in drawn) for drawn, _ in found]
        return chosen if self.k > 1 else [one for (one,) in chosen], np.array([log for _, log in found])

    def best(self, values: Any, roster: Roster) -> list[int]:
        """Of public people: the cheapest options, the first of equals first."""
        costs = self.costs(values, roster, None)
        return sorted(range(len(costs)), key=costs.__getitem__)[: self.k]

    def tally(self, values: Any, roster: Roster, used: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """Voices by level and option, in steps; whoever is not used, or has no value, has none."""
        people, width, levels = len(roster) if used is None else len(used), len(self.options), len(roster.levels.grants)
        if self.score is None and not any(map(is_list, self.options)) and _has_rows(values):
            if self.bounds is None:
                raise PlanError("A table of scores needs bounds.", rule=BOUNDS_RULE, suggest=Argument("bounds", (0, 5)))
            scores = as_matrix(values)
            if scores.shape != (people, width):
                what = f"Scores come as {scores.shape[0]} rows of {scores.shape[1]}."
                raise PlanError(what, rule="One row per person, one column per option.")
            steps = self._steps(scores)
        else:
            voices = show_people(values, people).tolist() if self.score else check_values(values, people).tolist()
            steps = self._heard(voices)
        kept = steps if used is None else steps[used]
        return np.array([kept[roster.codes == level].sum(axis=0) for level in range(levels)], np.int64)

    def _heard(self, voices: list[Any]) -> NDArray[np.int64]:
        if self.score is not None:
            scores = [[_quiet_score(self.score, value, option) for option in self.options] for value in voices]
            return self._steps(np.array(scores, np.float64).reshape(len(voices), len(self.options)))
        places = {option: place for place, option in enumerate(self.options)}
        heard = np.zeros((len(voices), len(self.options)), np.int64)
        for person, value in enumerate(voices):
            place = quietly(places.get, value)
            if place is not None:
                heard[person, place] = STEPS
        return heard

    def _steps(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Scores as whole steps between the bounds; a missing one is the lower bound."""
        low, high = self.bounds or (0.0, 1.0)
        part = np.where(np.isnan(scores), 0.0, (np.clip(scores, low, high) - low) / (high - low))
        steps: NDArray[np.int64] = np.rint(np.clip(part, 0.0, 1.0) * STEPS).astype(np.int64)
        return steps

    def _price(self, people: NDArray[Any], roster: Roster, loudly: bool = False) -> list[float]:
        """The stated cost of each option, within limits."""
        grants, cost = _grants(roster), cast("Callable[..., Any]", self.cost)
        failed = None if roster.levels.all_public else 0.0  # an error would tell of the values

        def price(option: Any) -> float:
            def compute() -> Any:
                return cost(people.copy(), grants.copy(), option)

            found = call_quietly(compute, _read_cost, "a number", loudly, failed)
            return float(min(max(found, 0.0), _MOST_COST))

        return [price(option) for option in self.options]

    def test(self, roster: Roster, used: NDArray[np.bool_] | None) -> int | None:
        """Whether a stated cost moves by no more than allowed, on made-up data."""
        if self.score is not None:
            return try_out(self.score, "score", self.domain, self.options)
        if self.cost is None:
            return None
        if used is not None:
            raise PlanError("A share so small leaves somebody with nothing.", suggest="a larger share")

        def move(one: NDArray[Any], other: NDArray[Any]) -> float:
            here, there = (np.array(self._price(people, roster, loudly=True)) for people in (one, other))
            return float(np.abs(here - there).max())

        return search_claim(move, _grants(roster).tolist(), roster, self.domain, self.neighbors, _CLAIM)

    def release(
        self,
        roster: Roster,
        scaled: Roster,
        places: list[int],
        part: Fraction,
        source: Entropy,
        mechanism: str,
        tried: int | None = None,
    ) -> Release:
        """What is told of a choice."""
        account, chosen = Account.of(scaled.levels, scaled.levels.grants), [self.options[place] for place in places]
        told = {"statistic": f"choice among {len(self.options)} options", "value": chosen if self.k > 1 else chosen[0]}
        if mechanism == EXACT:
            caveats = list_caveats(roster.levels, True, ())
            promise = Guarantee(self.neighbors, account.losses, NO_PROMISE, caveats)
            return build_release(account, promise, mechanism=EXACT, why=EVERYONE_PUBLIC, error=None, **told)
        account = account.at_share(roster.levels, part)
        claim = () if self.cost is None else (tell_claim(tried, _CLAIM),)
        caveats = list_caveats(roster.levels, is_private(source), claim)
        way = "an option is likely if few and open people would make it the answer"
        return build_release(
            account,
            Guarantee(self.neighbors, account.losses, caveats=caveats),
            mechanism=mechanism,
            why=f"Asked for by name: {way}." if self.cost else f"{_VOICES}{self._tell_score(tried)}",
            no_interval="An option is no number; its details say how far from the best it may be.",
            assumption=ASSUMPTIONS["nothing" if self.cost else "unrelated"],
            details={"short_of_best": self.shortfall(scaled)},
            **told,
        )

    def _tell_score(self, tried: int | None) -> str:
        """What is said of a score that may fail, which nobody would see."""
        if self.score is None:
            return ""
        tested = "nothing here tested it" if tried is None else f"it gave numbers for all {tried} made-up values"
        return f" Where the score fails, or gives no number, that person has no voice, and nobody is told; {tested}."

    def shortfall(self, roster: Roster) -> float:
        """In epsilons: but for 5% of draws no option that was left out is better by more (McSherry and Talwar 2007)."""
        in_epsilons = float(self.unit(roster) * NANO * (1 if self.cost else STEPS))
        return math.log(len(self.options) * self.k / 0.05) / in_epsilons


def _lists(options: Any) -> bool:
    return isinstance(options, np.ndarray) or (is_list(options) and not isinstance(options, bytes))


def _has_rows(values: Any) -> bool:
    """Whether there is a table. The container says so: were it an entry, one person would decide for all."""
    return getattr(values, "ndim", 1) == 2 or hasattr(values, "columns")


def _grants(roster: Roster) -> NDArray[np.float64]:
    """Everybody's epsilon; infinite for public people."""
    return np.array([to_epsilon(grant) for grant in roster.levels.grants])[roster.codes]


def _is_missing(value: Any) -> bool:
    unlike = value != value  # NaN and NaT are; of pandas' NA it is NA again, of an array another array
    return value is None or (bool(unlike) if isinstance(unlike, bool | np.bool_) else unlike is value)


def _quiet_score(score: Callable[[Any, Any], Any], value: Any, option: Any) -> float:
    """One person's score of an option: none where there is no value, or where the function fails on it."""

    def compute() -> Any:
        return None if _is_missing(value) else score(value, option)

    return float(call_quietly(compute, float, "a number", instead=math.nan))


def _read_cost(given: Any) -> float | None:
    number = float(given)
    return None if math.isnan(number) else number

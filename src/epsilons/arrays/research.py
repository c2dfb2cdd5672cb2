"""The researcher's front door: exact distributions, simulations and audits of any mechanism or function.

`what` is the name of a statistic, with its arguments; `eps.select` or `eps.noisy`, with theirs; or a function of one's
own: of the values, and of `epsilons` where it names them. Who is absent is None to a function that is told epsilons,
and left out of the values of any other.
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import check_confidence, check_name, check_whole, refuse
from epsilons.arrays.asking import Prepared, prepare
from epsilons.arrays.claimed import show_people
from epsilons.arrays.gridded import Gridded
from epsilons.arrays.noisy import Noisy, noisy
from epsilons.arrays.select import Choice, select
from epsilons.auditing.built_in import claim_of
from epsilons.auditing.claims import Claim, audit_claim
from epsilons.auditing.made_up import check_domain, list_datasets
from epsilons.auditing.report import Audit
from epsilons.display import Sheet, Shown, show
from epsilons.errors import Argument, PlanError
from epsilons.guarantee import NEIGHBORS, to_epsilon
from epsilons.mechanisms.base import Mechanism, list_mechanisms, why_refused
from epsilons.noise.entropy import system
from epsilons.plots import plot_law
from epsilons.preferences import Roster, aligned_roster, roster_of
from epsilons.statistics.distributions import Axis, product_distribution

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NO_PROOF = "An audit can refute a claim; it cannot prove one."
_SHOWN = 12


@dataclass(frozen=True)
class Distribution(Shown):
    """What comes out with which chance: exactly, or counted in so many `draws`."""

    outcomes: tuple[Any, ...]
    probabilities: NDArray[np.float64]
    draws: int | None = None

    def __getitem__(self, outcome: Any) -> float:
        return float(sum(p for x, p in zip(self.outcomes, self.probabilities, strict=True) if x == outcome))

    def sheets(self) -> Sequence[Sheet]:
        order = np.argsort(-self.probabilities, kind="stable")[:_SHOWN]
        rows = [[show(self.outcomes[place]), f"{self.probabilities[place]:.4g}"] for place in order.tolist()]
        how = "exact" if self.draws is None else f"counted in {self.draws:,} draws"
        return [Sheet(f"{len(self.outcomes):,} outcomes, {how}; the likeliest", ("outcome", "chance"), rows)]

    def plot(self, axes: Axes | None = None) -> Axes:
        """Chances by outcome."""
        return plot_law(self.outcomes, self.probabilities, axes)


def distribution(what: Any, values: Any, epsilons: Any, *, draws: int = 10_000, **arguments: Any) -> Distribution:
    """What comes out with which chance: exactly where that can be, else counted in so many draws.

    Exact distributions are for a few people. Of noisy sums they list points between which chances change geometrically,
    as sums of whole steps, and everything else as "elsewhere".

    >>> import epsilons as eps
    >>> law = eps.distribution("count", [1, 0], [1.0, 2.0], mechanism="exponential", complete=True)
    >>> [round(law[count], 4) for count in (0, 1, 2)]
    [0.3072, 0.5065, 0.1863]
    """
    if isinstance(what, str):
        made = prepare(what, values, epsilons, arguments)
        outcomes, logs = made.mechanism.distribution(made.question, made.people)
    elif what is select:
        listed, logs = _choice(arguments).law(values, aligned_roster(epsilons, values))
        outcomes = np.empty(len(listed), object)
        outcomes[:] = listed
    else:
        counted = Counter(_key(outcome) for outcome in simulate(what, values, epsilons, size=draws, **arguments))
        chances = np.array(list(counted.values()), np.float64) / draws
        return Distribution(tuple(counted), chances, draws)
    return Distribution(tuple(outcomes.tolist()), np.exp(logs))


def simulate(what: Any, values: Any, epsilons: Any, *, size: int = 1_000, **arguments: Any) -> NDArray[Any]:
    """So many independent answers. On made-up data alone: together they cost as many times as much.

    >>> import epsilons as eps
    >>> eps.simulate("mean", [0, 50, 100], 1.0, bounds=(0, 100), mechanism="minimum", size=5).shape
    (5,)
    """
    size = check_whole(size, refusal=refuse("size", size, "A whole number from 1.", Argument("size", 1000)))
    if isinstance(what, str):
        made = prepare(what, values, epsilons, arguments)
        source = arguments.get("entropy") or system()
        try:
            return made.mechanism.simulate(made.question, made.people, source, size)
        except PlanError:  # only single numbers are drawn in bulk
            outcomes = [made.mechanism.draw(made.question, made.people, source).value for _ in range(size)]
    else:
        call = _caller(what, arguments)
        outcomes = [call(values, epsilons) for _ in range(size)]
    found = np.empty(size, object)
    found[:] = outcomes
    numbers = all(isinstance(outcome, int | float | np.number) for outcome in outcomes)
    return found.astype(np.float64) if numbers else found


def audit(
    what: Any,
    epsilons: Any,
    *,
    domain: Sequence[Any] | None = None,
    neighbors: str = "absent",
    mechanism: str | None = None,
    statistic: str | None = None,
    law: bool = False,
    draws: int = 20_000,
    confidence: float = 0.999,
    name: str = "",
    **arguments: Any,
) -> Audit:
    """Try to break the promise that nobody loses more than their epsilon, on made-up data of these few people.

    Neighbours are searched for: all data sets of values in the `domain` where they are few, else those that strain
    mechanisms (all alike, two halves, others) with each person's value gone (`neighbors="absent"`) or replaced.
    Losses are exact where distributions are known: of every statistic by name (all mechanisms that serve it, or one
    `mechanism`), of a mechanism of one's own with the `statistic` that it is to serve, of `eps.select` and `eps.noisy`,
    and of a function that returns (outcomes, chances), with `law=True`. For any other function they are lower bounds
    from so many `draws`: an event is chosen on one half of them and tested on the other (Clopper and Pearson 1934), so
    that a claim that holds is refuted with a chance of at most 1 - `confidence`.

    >>> import epsilons as eps
    >>> found = eps.audit("count", [0.5, 1.0], mechanism="minimum")
    >>> found.holds, round(found.worst.loss, 6)
    (True, 0.5)
    """
    check_name("neighbors", neighbors, NEIGHBORS)
    check_confidence(confidence)
    draws = check_whole(
        draws, 200, refusal=refuse("draws", draws, "A whole number from 200.", Argument("draws", 20_000))
    )
    claims, notes = [], [_NO_PROOF]
    if isinstance(what, str):
        names = (
            [mechanism] if mechanism is not None else list(list_mechanisms(arguments.get("privacy", "personalized")))
        )
        arguments, more = _coarse(what, arguments)
        notes += more
        tried = check_domain(_guess_domain(what, arguments) if domain is None else domain)
        claims = [
            c for one in names if (c := _claim_by_name(what, one, epsilons, tried, neighbors, arguments, mechanism))
        ]
    elif isinstance(what, Mechanism) or (isinstance(what, type) and issubclass(what, Mechanism)):
        claims = [_claim_of_own(what, statistic or "count", epsilons, domain, neighbors, arguments)]
    else:
        if domain is None:
            hint = Argument("domain", [0, 50, 100])
            raise PlanError("It is not known which values people could have.", rule="They are made up.", suggest=hint)
        claims = [_claim_of_function(what, epsilons, check_domain(domain), neighbors, law, arguments)]
    if name:
        claims = [replace(claim, name=name) for claim in claims]
    findings = [finding for claim in claims for finding in audit_claim(claim, draws, confidence)]
    if not findings:
        raise PlanError("There is nothing to audit.", rule="Nothing is promised to public people.")
    return Audit(tuple(findings), tuple(notes))


# By name ------------------------------------------------------------------------------------------------------------


def _coarse(statistic: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Order statistics on a grid of twenty steps, unless one is given: every point of it is an outcome."""
    bounds = arguments.get("bounds")
    ranked = statistic in ("median", "quantile", "min", "max", "kth_largest")
    if not ranked or bounds is None or arguments.get("step") is not None:
        return arguments, []
    low, high = bounds
    note = f"On a grid of 20 steps between {low:g} and {high:g}."
    paid = statistic in ("median", "quantile") and arguments.get("privacy", "personalized") == "personalized"
    plain = {"for_interval": 0} if paid else {}
    return {**plain, **arguments, "step": (high - low) / 20}, [note]


def _guess_domain(statistic: str, arguments: dict[str, Any]) -> Sequence[Any]:
    """Values at both bounds and between them, at every edge, or of every category; bits where there are none."""
    if (bounds := arguments.get("bounds")) is not None:
        return bounds[0], (bounds[0] + bounds[1]) / 2, bounds[1]
    return arguments.get("categories") or arguments.get("edges") or (0.0, 1.0)


def _prepared(
    statistic: str, name: str, epsilons: Any, domain: tuple[Any, ...], neighbors: str, arguments: dict[str, Any]
) -> Prepared:
    people = len(roster_of(epsilons))
    return prepare(statistic, [domain[0]] * people, epsilons, {"mechanism": name, "neighbors": neighbors, **arguments})


def _claim_by_name(
    statistic: str,
    name: str,
    epsilons: Any,
    domain: tuple[Any, ...],
    neighbors: str,
    arguments: dict[str, Any],
    asked: str | None,
) -> Claim | None:
    try:
        made = _prepared(statistic, name, epsilons, domain, neighbors, arguments)
    except PlanError:
        if asked is not None:
            raise
        return None  # it does not serve this question
    return claim_of(made.mechanism, made.question, _grants(made.people.roster), domain)


def _claim_of_own(
    what: Any, statistic: str, epsilons: Any, domain: Any, neighbors: str, arguments: dict[str, Any]
) -> Claim:
    arguments, _ = _coarse(statistic, arguments)
    tried = check_domain(_guess_domain(statistic, arguments) if domain is None else domain)
    made, own = (
        _prepared(statistic, "minimum", epsilons, tried, neighbors, arguments),
        what() if isinstance(what, type) else what,
    )
    if (refusal := why_refused(own, made.question, made.people.levels)) is not None:
        raise PlanError(f"{own.name!r} cannot serve a {statistic}: {refusal}.")
    return claim_of(own, made.question, _grants(made.people.roster), tried)


def _grants(roster: Roster) -> list[float]:
    return [to_epsilon(roster.levels.grants[code]) for code in roster.codes]


# Functions ----------------------------------------------------------------------------------------------------------


def _choice(arguments: dict[str, Any]) -> Choice:
    given = {"cost": None, "score": None, "bounds": (0.0, 1.0), "k": 1, "neighbors": "absent", "domain": None}
    return Choice.read(**{**given, **arguments})


def _caller(what: Any, arguments: dict[str, Any]) -> Callable[[Any, Any], Any]:
    """A function as one of values and epsilons; a release is told by its value."""
    if not callable(what):
        hint = '"count", or any function of the values'
        raise PlanError("This is no statistic, mechanism or function.", suggest=hint)

    def call(values: Any, epsilons: Any) -> Any:
        found = what(values=values, epsilons=epsilons, **arguments) if told else what(values, **arguments)
        return found.value if hasattr(found, "guarantee") else found

    told = names_epsilons(what)
    return call


def names_epsilons(what: Any) -> bool:
    """Whether a function names an argument `epsilons`: then it is told everybody's."""
    try:
        return "epsilons" in inspect.signature(what).parameters
    except (TypeError, ValueError):
        return False


def _key(outcome: Any) -> Any:
    """An outcome that can be counted."""
    plain = outcome.tolist() if isinstance(outcome, np.ndarray) else outcome
    return tuple(plain) if isinstance(plain, list) else plain


def _claim_of_function(
    what: Any, epsilons: Any, domain: tuple[Any, ...], neighbors: str, law: bool, arguments: dict[str, Any]
) -> Claim:
    roster = roster_of(epsilons)
    granted = tuple(_grants(roster))
    label = getattr(what, "__name__", type(what).__name__)
    claim = Claim(f"{label}, {neighbors}", granted, granted, neighbors, domain)
    if what is select:
        choice = _choice({**arguments, "neighbors": neighbors})
        rows = all(isinstance(one, tuple) for one in domain) and not any(isinstance(o, tuple) for o in choice.options)
        scores = rows and choice.score is None and choice.cost is None
        nothing = (math.nan,) * len(choice.options)  # rows of a made-up table

        def show(data: tuple[Any, ...]) -> Any:
            return np.array([nothing if one is None else one for one in data]) if scores else list(data)

        return replace(claim, law=lambda data: choice.law(show(data), roster))
    if what is noisy:
        return _noisy_claim(claim, roster, arguments)
    call = _caller(what, arguments)
    told = names_epsilons(what)

    def outcome(data: tuple[Any, ...]) -> Any:
        values = list(data) if told else [value for value in data if value is not None]
        try:
            return call(values, list(granted))
        except Exception as error:  # what it does then is seen as well
            return f"raised {type(error).__name__}"

    if law:

        def chances(data: tuple[Any, ...]) -> tuple[Any, Any]:
            listed, given = outcome(data)
            with np.errstate(divide="ignore"):
                return listed, np.log(np.asarray(given, np.float64))

        return replace(claim, law=chances)
    return replace(claim, draw=lambda data, size: [_key(outcome(data)) for _ in range(size)])


def _noisy_claim(claim: Claim, roster: Roster, arguments: dict[str, Any]) -> Claim:
    """Exact, at points between which chances change geometrically, from the least answer to the largest."""
    given = {"size": None, "whole": False, **arguments}
    answer = Gridded.read(*(given[key] for key in ("function", "step", "size", "whole")))
    if given.get("delta") is not None:
        raise PlanError("A claim with a delta is not audited here.", suggest="leave delta out")
    asked = Noisy.read(answer, given["sensitivity"], claim.neighbors, None, None)
    plan = asked.plan(roster)

    def places(data: tuple[Any, ...]) -> list[int]:
        return answer.places(show_people(list(data), len(data)), loudly=True)

    domain = claim.domain if claim.neighbors == "replace" else (*claim.domain, None)
    seen = [places(data) for data in list_datasets(domain, len(roster), 256)]
    far = max(1, max(abs(place) for one in seen for place in one))
    axes = [Axis(math.ceil(far / len(roster)), len(roster), plan.law)] * len(seen[0])
    charged = tuple(to_epsilon(plan.charges[code]) for code in roster.codes)
    return replace(claim, charged=charged, law=lambda data: product_distribution(axes, [(1.0, places(data))]))

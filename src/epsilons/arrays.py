"""The statistics on plain arrays: `eps.count(values, epsilons)`.

`values[i]` belongs to a person whose epsilon is `epsilons[i]`; `eps.PUBLIC` (infinite) means public. Epsilons may
also be one number for everyone, or `eps.Preferences`. Each call is one release at everybody's whole epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypedDict, Unpack

from epsilons.errors import PlanError, PreferenceError
from epsilons.guarantee import to_epsilon
from epsilons.mechanisms.base import Settings
from epsilons.noise.entropy import Entropy, system
from epsilons.planner.choose import choose
from epsilons.planner.plan import Plan, check_share
from epsilons.preferences import aligned_roster, roster_of
from epsilons.release import Release, exact_release, make_release
from epsilons.statistics import order
from epsilons.statistics.base import Statistic, check_real
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.people import ArrayPeople
from epsilons.statistics.question import Question
from epsilons.statistics.regression import LinearRegression, LogisticRegression
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.unbounded import UnboundedOrder
from epsilons.statistics.variance import Variance

Bounds = tuple[float, float] | None


class Options(TypedDict, total=False):
    """The keywords that all statistics share.

    mechanism: "auto" (default) or a mechanism's name. threshold: for threshold and sample, a number, "max" (default),
    "mean" or "best". rescale: make up for what a mechanism leaves out. neighbors: "absent" (default) or "replace".
    assume: "unrelated" (default) or "nothing". spread, density, location: public guesses of the standard deviation, of
    the fraction of ones and of the mean; they steer weights and plans, never the guarantee. privacy: "personalized"
    (default), or "individual" or "group" (with group_epsilons=[...], for groups of 1, 2, ... people, instead of
    epsilons), which are weaker: individual DP is not DP. scale, gamma, inside: for smooth-sensitivity. entropy: the
    operating system's.
    """

    mechanism: str
    threshold: float | str | None
    rescale: bool | None
    neighbors: str
    assume: str
    spread: float | None
    density: float | None
    location: float | None
    privacy: str
    group_epsilons: Sequence[float] | None
    scale: str | None
    gamma: int | None
    inside: str | None
    entropy: Entropy | None


def ask(
    statistic: Statistic,
    values: Any,
    epsilons: Any,
    *,
    mechanism: str = "auto",
    threshold: float | str | None = None,
    rescale: bool | None = None,
    neighbors: str = "absent",
    assume: str = "unrelated",
    spread: float | None = None,
    density: float | None = None,
    location: float | None = None,
    privacy: str = "personalized",
    group_epsilons: Sequence[float] | None = None,
    scale: str | None = None,
    gamma: int | None = None,
    inside: str | None = None,
    entropy: Entropy | None = None,
) -> Release:
    """One release of any statistic: check the arguments, choose a mechanism, draw."""
    groups = _groups(privacy, epsilons, group_epsilons)
    question = Question(statistic, neighbors, assume, spread, density, location, privacy, groups)
    settings = Settings(_check_options(mechanism, threshold, rescale, entropy), rescale, scale, gamma, inside)
    people = ArrayPeople.of(values, aligned_roster(to_epsilon(groups[0]) if groups else epsilons, values))
    statistic.check_people(people.levels)
    source = system() if entropy is None else entropy
    if people.levels.all_public:
        return exact_release(question, people)
    chosen, why = choose(mechanism, question, people.levels, settings)
    return make_release(chosen, question, people, source, why)


def _groups(privacy: Any, epsilons: Any, group_epsilons: Any) -> tuple[int, ...]:
    """For group privacy the epsilons of groups of 1, 2, ... people, which take the place of personal ones."""
    if privacy != "group":
        if group_epsilons is not None:
            raise PlanError("group_epsilons go with group privacy.", hint='privacy="group"')
        if epsilons is None:
            raise PreferenceError("There are no epsilons.", rule="One per person.", hint="eps.count(values, epsilons)")
        return ()
    if epsilons is not None or group_epsilons is None:
        raise PlanError(
            "Group privacy takes group_epsilons instead of epsilons.",
            rule="The i-th one holds for groups of i people.",
            hint='eps.median(values, privacy="group", group_epsilons=[1.0, 0.5], bounds=(0, 100))',
        )
    grants = roster_of(group_epsilons)
    if len(grants) == 0 or None in grants.levels.grants:
        raise PreferenceError("Group epsilons are finite numbers, at least one.", hint="group_epsilons=[1.0, 0.5]")
    return tuple(grants.levels.grants[code] or 0 for code in grants.codes)


def _check_options(mechanism: Any, threshold: Any, rescale: Any, entropy: Any = None) -> float | str | None:
    """Types only, since what a name or a number means is the mechanisms' affair; gives the threshold back."""
    if not isinstance(mechanism, str):
        raise PlanError(f"Unknown mechanism {mechanism!r}.", rule="Mechanisms go by name.", hint='mechanism="auto"')
    if not isinstance(rescale, bool | None):
        raise PlanError(f"rescale={rescale!r} is not allowed.", rule="It is True or False.", hint="rescale=True")
    if not isinstance(entropy, Entropy | None):
        raise PlanError(
            f"entropy={entropy!r} is not a source of random bits.",
            rule="Answers draw on the operating system; only tests draw on anything else.",
            hint="epsilons.testing.seeded(7) in a test, else nothing",
        )
    if isinstance(threshold, str | None):
        return threshold
    try:
        return check_real(threshold)
    except TypeError:
        raise PlanError(
            f"Unknown threshold {threshold!r}.",
            rule="A threshold is one epsilon.",
            hint='a number, "max", "mean" or "best"',
        ) from None


def count(values: Any, epsilons: Any = None, **options: Unpack[Options]) -> Release:
    """How many people have a 1; whatever is not exactly 1 counts as 0.

    >>> import epsilons as eps
    >>> answer = eps.count([1, 0, 1, 1], [0.5, 1, 2, eps.PUBLIC], mechanism="exponential")
    >>> 0 <= answer.value <= 4
    True
    """
    return ask(Count(), values, epsilons, **options)


def sum(values: Any, epsilons: Any = None, *, bounds: Bounds = None, **options: Unpack[Options]) -> Release:
    """The sum of values clipped to public bounds; a missing value counts as their centre."""
    return ask(Sum(bounds), values, epsilons, **options)  # type: ignore[arg-type]


def mean(values: Any, epsilons: Any = None, *, bounds: Bounds = None, **options: Unpack[Options]) -> Release:
    """The mean of values clipped to public bounds; a missing value counts as their centre.

    >>> import epsilons as eps
    >>> answer = eps.mean([20, 30, 40], [0.5, 1, 1], bounds=(0, 100), mechanism="minimum")
    >>> answer.charges
    {0.5: 0.5, 1.0: 0.5}
    """
    return ask(Mean(bounds), values, epsilons, **options)  # type: ignore[arg-type]


def variance(values: Any, epsilons: Any = None, *, bounds: Bounds = None, **options: Unpack[Options]) -> Release:
    """The variance (divided by n) of values clipped to public bounds."""
    return ask(Variance(bounds), values, epsilons, **options)  # type: ignore[arg-type]


def median(
    values: Any, epsilons: Any = None, *, bounds: Bounds = None, step: float | None = None, **options: Unpack[Options]
) -> Release:
    """The median, on a public grid of possible answers (65,536 steps unless `step` is given)."""
    return ask(order.median(bounds, step), values, epsilons, **options)


def quantile(
    values: Any,
    epsilons: Any,
    q: float,
    *,
    bounds: Bounds = None,
    step: float | None = None,
    **options: Unpack[Options],
) -> Release:
    """The value below which a fraction `q` of the people lie, on a public grid of possible answers."""
    return ask(order.quantile(q, bounds, step), values, epsilons, **options)


def min(
    values: Any, epsilons: Any = None, *, bounds: Bounds = None, step: float | None = None, **options: Unpack[Options]
) -> Release:
    """The smallest value, on a public grid of possible answers."""
    return ask(order.minimum(bounds, step), values, epsilons, **options)


def max(
    values: Any, epsilons: Any = None, *, bounds: Bounds = None, step: float | None = None, **options: Unpack[Options]
) -> Release:
    """The largest value, on a public grid of possible answers."""
    return ask(order.maximum(bounds, step), values, epsilons, **options)


def kth_largest(
    values: Any,
    epsilons: Any = None,
    k: int = 2,
    *,
    bounds: Bounds = None,
    step: float | None = None,
    **options: Unpack[Options],
) -> Release:
    """The k-th largest value (k=1 is the maximum), on a public grid of possible answers.

    With individual or group privacy, k=2 and more need no bounds.
    """
    if bounds is None and options.get("privacy", "personalized") != "personalized":
        return ask(UnboundedOrder(k, step), values, epsilons, **options)
    return ask(order.kth_largest(k, bounds, step), values, epsilons, **options)


def histogram(
    values: Any,
    epsilons: Any = None,
    *,
    edges: Sequence[float] | None = None,
    categories: Sequence[Hashable] | None = None,
    outside: str = "drop",
    **options: Unpack[Options],
) -> Release:
    """People per bin [edge, next edge), or per category; outside is dropped, or clipped with `outside="clip"`.

    >>> import epsilons as eps
    >>> answer = eps.histogram(["a", "b", "a"], [1, 1, 2], categories=["a", "b"])
    >>> list(answer.value)
    ['a', 'b']
    """
    return ask(Histogram.of(edges, categories, outside), values, epsilons, **options)


def plan(
    statistic: str,
    epsilons: Any = None,
    *,
    share: float = 1.0,
    error: float | None = None,
    threshold: float | str | None = None,
    rescale: bool | None = None,
    neighbors: str = "absent",
    assume: str = "unrelated",
    spread: float | None = None,
    density: float | None = None,
    location: float | None = None,
    privacy: str = "personalized",
    group_epsilons: Sequence[float] | None = None,
    people: int | None = None,
    **arguments: Any,
) -> Plan:
    """What every mechanism would cost and how far it would err; free, since it needs no values.

    `arguments` are those of the statistic (bounds, q, step, edges, ...). With `error` the plan is the one with the
    smallest share of everybody's epsilon that reaches it. Mechanisms for individual privacy, which is weaker, appear
    only with `privacy="individual"`, and without a predicted error: it would be data. With one epsilon for everyone, or
    for groups, say how many `people` there are.

    >>> import epsilons as eps
    >>> print(eps.plan("count", [0.1] * 500 + [1.0] * 500).best.mechanism)
    weighted
    """
    groups = _groups(privacy, epsilons, group_epsilons)
    if privacy != "personalized" and statistic == "kth_largest" and arguments.get("bounds") is None:
        asked: Statistic = UnboundedOrder(arguments.get("k", 2), arguments.get("step"))
    else:
        asked = _statistic(statistic, arguments)
    question = Question(asked, neighbors, assume, spread, density, location, privacy, groups)
    settings = Settings(_check_options("auto", threshold, rescale), rescale)
    levels = roster_of(to_epsilon(groups[0]) if groups else epsilons, people=people).levels
    if levels.all_public:
        raise PlanError("There is nothing to plan.", rule="Everyone is public (or nobody is there): answers are exact.")
    made = Plan.make(question, levels, check_share(share), settings)
    return made if error is None else made.reaching(error)


def _statistic(name: str, arguments: dict[str, Any]) -> Statistic:
    if not isinstance(name, str) or name not in _STATISTICS:
        raise PlanError(f"Unknown statistic {name!r}.", rule="Statistics go by name.", hint=", ".join(_STATISTICS))
    needed, build = _STATISTICS[name]
    strange = sorted(set(arguments) - set(needed))
    if strange:
        raise PlanError(f"A {name} takes no {strange[0]!r}.", hint=", ".join(needed) or "no arguments at all")
    return build(*(arguments.get(key, _DEFAULTS.get(key)) for key in needed))


_DEFAULTS: dict[str, Any] = {"outside": "drop", "classes": (0, 1)}
#: What can be planned by name: its arguments, and how they make a statistic.
_STATISTICS: dict[str, tuple[tuple[str, ...], Callable[..., Statistic]]] = {
    "count": ((), Count),
    "sum": (("bounds",), Sum),
    "mean": (("bounds",), Mean),
    "variance": (("bounds",), Variance),
    "median": (("bounds", "step"), order.median),
    "quantile": (("q", "bounds", "step"), order.quantile),
    "min": (("bounds", "step"), order.minimum),
    "max": (("bounds", "step"), order.maximum),
    "kth_largest": (("k", "bounds", "step"), order.kth_largest),
    "histogram": (("edges", "categories", "outside"), Histogram.of),
    "linear_regression": (("bounds_X", "bounds_y", "features"), LinearRegression.of),
    "logistic_regression": (("bounds_X", "classes", "features"), LogisticRegression.of),
}

"""The researcher's front door: audits of any mechanism or function, by the name of a statistic or as it stands.

A function that names `epsilons` is told everybody's, and sees None for who is absent; of the values of any other, who
is absent is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from epsilons.arguments.checks import check_confidence, check_name, check_whole, refuse
from epsilons.arrays.asking import Prepared, prepare
from epsilons.arrays.claimed import show_people
from epsilons.arrays.examples import coarsen, guess_domain, shaper
from epsilons.arrays.laws import as_call, is_mechanism, names_epsilons, prepare_own, read_choice, read_noisy
from epsilons.arrays.noisy import noisy
from epsilons.arrays.select import select
from epsilons.auditing.attack import audit_claim
from epsilons.auditing.built_in import claim_of
from epsilons.auditing.claims import Claim, Data
from epsilons.auditing.made_up import check_domain
from epsilons.auditing.report import Audit
from epsilons.auditing.views import Raised, observe, outcome_of
from epsilons.errors import Argument, PlanError
from epsilons.guarantee import NANO, NEIGHBORS, to_epsilon
from epsilons.measure import FEMTO, check_delta
from epsilons.mechanisms.base import list_mechanisms
from epsilons.preferences import Roster, roster_of
from epsilons.statistics.catalogue import find_statistic
from epsilons.statistics.distributions import NoisySums
from epsilons.summaries.arrays import Rows

_NO_PROOF = "An audit can refute a claim; it cannot prove one."
#: Data sets on which a function is tried before it is audited.
_RUNS = 12
_SEEN = "Draws show answers, errors, warnings, and what the next answer remembers; not how long they take."


def audit(
    what: Any,
    epsilons: Any,
    *,
    domain: Sequence[Any] | None = None,
    neighbors: str = "absent",
    delta: float | None = None,
    mechanism: str | None = None,
    statistic: str | None = None,
    law: bool = False,
    draws: int = 20_000,
    confidence: float = 0.999,
    name: str = "",
    progress: Callable[[int, int], None] | None = None,
    **arguments: Any,
) -> Audit:
    """Try to break the promise that nobody loses more than their epsilon, on made-up data of these few people.

    Neighbours are searched for: all data sets of values in the `domain` where they are few, else those that strain
    mechanisms (all alike, two halves, others) with each person's value gone (`neighbors="absent"`) or replaced.
    Losses are exact where distributions are known: of every statistic by name (all mechanisms that serve it, or one
    `mechanism`), models included, of a mechanism of one's own with the `statistic` that it is to serve, of `eps.select`
    and `eps.noisy`, and of a function that returns (outcomes, chances), with `law=True`. For any other function they
    are lower bounds from so many `draws`: an event is chosen on one half of them and tested on the other (Clopper and
    Pearson 1934), so that a claim that holds is refuted with a chance of at most 1 - `confidence`.

    With a `delta` the promise is (epsilon_i, delta): losses are the least epsilons that hold but for it and, where
    accounts count it, rho. A model's domain has rows (features ..., target). `progress(done, of)` is told how many
    claims are done.

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
    allowed = None if delta is None else check_delta(delta)
    if arguments.get("privacy") == "group":
        rule, hint = "It looks for what one person loses.", Argument("privacy", "individual")
        raise PlanError("Group privacy is not audited here.", rule=rule, suggest=hint)
    asked = {**arguments, "neighbors": neighbors, **({} if delta is None else {"delta": delta})}
    notes = [_NO_PROOF]
    if isinstance(what, str) or is_mechanism(what):
        served = what if isinstance(what, str) else statistic or "count"
        asked, more = coarsen(served, asked)
        notes += more
        tried = check_domain(domain if domain is not None else guess_domain(served, asked))
        if domain is None and neighbors == "replace":  # a value may be replaced by none
            tried = (*tried, None)
        own = None if isinstance(what, str) else what
        claims = _claims_by_name(served, own, mechanism, epsilons, tried, asked)
    else:
        if domain is None:
            hint = Argument("domain", [0, 50, 100])
            raise PlanError("It is not known which values people could have.", rule="They are made up.", suggest=hint)
        claims = [_claim_of_function(what, epsilons, check_domain(domain), neighbors, allowed, law, arguments)]
    notes += [_SEEN] if any(claim.call is not None for claim in claims) else []
    if name:
        claims = [replace(claim, name=name) for claim in claims]
    findings = []
    for done, claim in enumerate(claims):
        findings += audit_claim(claim, draws, confidence)
        if progress is not None:
            progress(done + 1, len(claims))
    if not findings:
        raise PlanError("There is nothing to audit.", rule="Nothing is promised to public people.")
    return Audit(tuple(findings), tuple(notes))


# By name ------------------------------------------------------------------------------------------------------------


def _claims_by_name(
    statistic: str, own: Any, mechanism: str | None, epsilons: Any, domain: tuple[Any, ...], asked: dict[str, Any]
) -> list[Claim]:
    """One for each mechanism that serves, or for one of them."""
    entry = find_statistic(statistic)
    shape = shaper(entry, domain)
    roster = roster_of(epsilons)
    example = shape((domain[0],) * len(roster))
    if own is not None:
        made = [prepare_own(own, statistic, example, epsilons, asked)]
    elif mechanism is not None:
        made = [prepare(statistic, example, epsilons, {"mechanism": mechanism, **asked})]
    else:
        prepare(statistic, example, epsilons, asked)  # where nothing serves, or something is wrong, this says why
        names = list_mechanisms(asked.get("privacy", "personalized"))
        tried = [_try_mechanism(statistic, one, example, epsilons, asked) for one in names]
        made = [one for one in tried if one is not None]
    read = Rows.of_two if entry.pair else Rows.pair
    rows = (lambda data: read(*shape(data))) if entry.model else None
    return [_claim_of_prepared(one, roster, domain, rows) for one in made]


def _try_mechanism(statistic: str, name: str, example: Any, epsilons: Any, asked: dict[str, Any]) -> Prepared | None:
    try:
        return prepare(statistic, example, epsilons, {"mechanism": name, **asked})
    except PlanError:
        return None  # it does not serve this question


def _claim_of_prepared(
    made: Prepared, roster: Roster, domain: tuple[Any, ...], rows: Callable[[Data], Any] | None
) -> Claim:
    scaled = made.people.roster
    if len(scaled) != len(roster):
        raise PlanError("At this share somebody has nothing to spend.", suggest="a larger share")
    return claim_of(made.mechanism, made.question, _grants(roster), domain, scaled=scaled, shape=rows)


def _grants(roster: Roster) -> list[float]:
    return [to_epsilon(roster.levels.grants[code]) for code in roster.codes]


# Functions ----------------------------------------------------------------------------------------------------------


def _claim_of_function(
    what: Any,
    epsilons: Any,
    domain: tuple[Any, ...],
    neighbors: str,
    delta: Fraction | None,
    law: bool,
    arguments: dict[str, Any],
) -> Claim:
    roster = roster_of(epsilons)
    granted = tuple(_grants(roster))
    label = getattr(what, "__name__", type(what).__name__)
    claim = Claim(f"{label}, {neighbors}", granted, granted, neighbors, domain, delta=delta)
    if what is select:
        return _claim_of_choice(claim, roster, arguments)
    if what is noisy:
        return _claim_of_noisy(claim, roster, arguments)
    call = as_call(what, arguments)
    told = names_epsilons(what)

    def outcome(data: Data) -> Any:
        values = list(data) if told else [value for value in data if value is not None]
        return call(values, list(granted))

    if law:

        def chances(data: Data) -> tuple[Any, Any]:
            listed, given = outcome(data)
            with np.errstate(divide="ignore"):
                return listed, np.log(np.asarray(given, np.float64))

        return replace(claim, law=chances)
    claim = replace(claim, call=lambda data: observe(lambda: outcome(data)))
    _check_runs(claim)
    return claim


def _check_runs(claim: Claim) -> None:
    """Refuse a function that always fails alike: of its errors nothing is lost, and nothing was audited."""
    assert claim.call is not None
    data, *others = claim.datasets(_RUNS)
    first = outcome_of(claim.call(data))
    if isinstance(first, Raised) and all(outcome_of(claim.call(one)) == first for one in others):
        what = f"On made-up data the function {first}."
        rule = "It is called with a list of values; who names `epsilons` sees None for who is absent."
        raise PlanError(what.rstrip(".") + ".", rule=rule, suggest="lambda values: ...")


def _claim_of_choice(claim: Claim, roster: Roster, arguments: dict[str, Any]) -> Claim:
    """Of `eps.select`, exactly."""
    if claim.delta is not None:
        raise PlanError("A choice promises epsilons without a delta.", suggest=("leave ", Argument("delta"), " out"))
    choice, domain = read_choice({**arguments, "neighbors": claim.neighbors}), claim.domain
    rows = all(isinstance(one, tuple) for one in domain) and not any(isinstance(o, tuple) for o in choice.options)
    scores = rows and choice.score is None and choice.cost is None
    nothing = (math.nan,) * len(choice.options)  # rows of a made-up table

    def show(data: Data) -> Any:
        return np.array([nothing if one is None else one for one in data]) if scores else list(data)

    return replace(claim, law=lambda data: choice.law(show(data), roster))


def _claim_of_noisy(claim: Claim, roster: Roster, arguments: dict[str, Any]) -> Claim:
    """Of `eps.noisy`, exactly: by how far its answer moves, and its noise."""
    asked = read_noisy({**arguments, "neighbors": claim.neighbors, "delta": claim.delta})
    answer, rate, (scaled, _) = asked.answer, asked.rate, asked.take_share(roster, Fraction(1))
    plan = asked.plan(scaled)

    def sums(data: Data) -> NoisySums:
        places = answer.places(show_people(list(data), len(data)), loudly=True)
        return NoisySums((plan.law,) * len(places), ((1.0, tuple(places)),))

    charges = [plan.charges[code] for code in scaled.codes]
    if rate is None:
        return replace(claim, charged=tuple(map(to_epsilon, charges)), sums=sums)
    costs = [rate.cost(charge) for charge in charges]
    charged = tuple(math.inf if cost is None else rate.measure.epsilon(cost) / NANO for cost in costs)
    rhos = tuple(None if cost is None else Fraction(cost, FEMTO) for cost in costs)
    return replace(claim, charged=charged, rhos=rhos, sums=sums)

"""What is promised, to whom, against which neighbours; and how promises add up.

Epsilons here are integers of nano-epsilon (`NANO` to one); `None` stands for public, which carries no promise. Losses
are nano-epsilon as well, or femto-rho where a promise has a delta (`measure.py`).
Whatever is granted rounds down and whatever is charged rounds up, so a promise is never overstated.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.display import Shown
from epsilons.errors import Argument, PlanError
from epsilons.measure import NANO as NANO
from epsilons.measure import PLAIN, Measure, check_delta

PERSONALIZED = "personalized DP"
INDIVIDUAL = "individual DP (not DP)"
NO_PROMISE = "no privacy (public data only)"
#: From the strongest to the weakest; composing two releases gives the weaker of their kinds.
KINDS = (NO_PROMISE, PERSONALIZED, INDIVIDUAL)

NEIGHBORS = ("absent", "replace")

ROSTER_IS_PUBLIC = "The roster (who was asked, with which preference) is public and is not protected."
PUBLIC_PEOPLE = "People who chose public are not protected."
#: How the mark begins that a release without DP leaves on all that follow.
NOT_DP = "Not DP since release"
SEEDED = "NOT PRIVATE: the randomness was seeded for a test, so anyone with the seed can remove the noise."
APART = "Its parts are about rosters that cannot be aligned: everyone may have lost the most in each of the others."
BY_PLACE = "People have no ids: the same epsilons in the same order are taken to be those of the same people."
WITH_DELTA = (
    "It holds for each person singly, but for events of a chance of at most {delta:g} (delta). What adds up is rho, in "
    "which charges are told: convert a total, never one release after the other."
)
TWO_GRANTS = "Somebody with two grants is among those who granted the larger one."
DISJOINT = "Composed in parallel: sound only because the groups are defined by public facts of the roster."
RELATION = {
    "absent": "Compared with data in which one person's records are replaced by nothing.",
    "replace": "Compared with data in which one person's records are replaced by any others.",
}
#: More levels than this are told by their number and range; `to_dict` lists them all.
_LISTED = 6


def to_epsilon(nano: int | None) -> float:
    """The number people read; public is infinite."""
    return math.inf if nano is None else nano / NANO


_PLACES = "places"
_Losses = Mapping[int | None, int | None]
#: (grant, what these people lost in one release, and in another)
_Lost = tuple[int | None, int | None, int | None]


@dataclass(frozen=True, eq=False)
class Covered:
    """Who a promise is about: person i, called `people[i]` where ids are known, granted `grants[codes[i]]`.

    Equal digests are the same people with the same grants. What was stored has nothing but its digest.
    """

    stored: str = ""
    grants: tuple[int | None, ...] = ()
    codes: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.uint8))
    people: Sequence[Hashable] | None = None

    @cached_property
    def digest(self) -> str:
        """Worked out when it is needed: a release does not."""
        if self.stored:
            return self.stored
        named = repr((self.grants, self.people)).encode(errors="surrogatepass")
        digest = hashlib.sha256(named + self.codes.astype("<u2").tobytes()).hexdigest()
        return f"{_PLACES if self.people is None else 'ids'} {digest}"

    @property
    def by_place(self) -> bool:
        """Whether people are known by their place in the data alone."""
        return self.digest.startswith(_PLACES)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Covered) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def align(self, other: Covered, mine: _Losses, yours: _Losses) -> tuple[Covered, list[_Lost]] | None:
        """(everyone on either roster, who lost what in each, by what they granted); None where nobody can tell.

        Somebody with two grants is known by the more open one.
        """
        if self == other:
            return self, [(grant, mine.get(grant, 0), yours.get(grant, 0)) for grant in {**mine, **yours}]
        if self.people is None or other.people is None:
            return None
        if len({type(person) for person in (*self.people[:1], *other.people[:1])}) > 1:
            return None  # numbers here and text there may be the same people
        places = {person: place for place, person in enumerate(dict.fromkeys((*self.people, *other.people)))}
        each = len(other.grants) + 1
        pairs, whose = np.unique(self._place(places) * each + other._place(places), return_inverse=True)
        # Who is not on a roster granted it nothing and lost nothing.
        here = [*((grant, mine.get(grant, 0)) for grant in self.grants), (0, 0)]
        there = [*((grant, yours.get(grant, 0)) for grant in other.grants), (0, 0)]
        met = [(here[pair // each], there[pair % each]) for pair in pairs.tolist()]
        lost = [(max(granted, other, key=to_epsilon), a, b) for (granted, a), (other, b) in met]
        grants = sorted({grant for grant, _, _ in lost}, key=to_epsilon)
        codes = np.array([grants.index(grant) for grant, _, _ in lost], np.int64)[whose]
        return Covered("", tuple(grants), codes, tuple(places)), lost

    def _place(self, places: Mapping[Hashable, int]) -> NDArray[np.int64]:
        """Everyone's code; those who are not on this roster have the number after the last."""
        found = np.full(len(places), len(self.grants))
        found[[places[person] for person in self.people or ()]] = self.codes
        return found


@dataclass(frozen=True)
class Guarantee(Shown):
    """A promise to every person on the roster, by the epsilon they granted.

    `losses` pairs each granted epsilon with the bound that holds for its people, both in nano-epsilon; where `measure`
    has a delta, the bound is in femto-rho, and `epsilons` says what it implies. `imputes` says that a missing person
    stands at a fixed public value, so that a bound under "replace" also holds under "absent" (the record is then
    "replaced" by that value). `covers` tells who these people are; without it nobody can tell whether two promises are
    about the same ones, and together they say the worst.

    >>> one = Guarantee(neighbors="absent", losses=((100_000_000, 50_000_000),))
    >>> one.compose(one).epsilons
    {0.1: 0.1}
    """

    neighbors: str
    losses: tuple[tuple[int | None, int | None], ...]
    kind: str = PERSONALIZED
    caveats: tuple[str, ...] = field(default=(ROSTER_IS_PUBLIC,))
    imputes: bool = False
    covers: Covered | None = None
    measure: Measure = PLAIN

    def __post_init__(self) -> None:
        if self.neighbors not in NEIGHBORS:
            given = f"Unknown neighbours {self.neighbors!r}."
            raise PlanError(given, suggest=(Argument("neighbors", "absent"), " or ", Argument("neighbors", "replace")))

    @property
    def epsilons(self) -> dict[float, float]:
        """{granted epsilon: bound on the loss}; infinite means public. With a delta: the epsilon that goes with it."""
        found = [(granted, None if loss is None else self.measure.epsilon(loss)) for granted, loss in self.losses]
        return {to_epsilon(granted): to_epsilon(loss) for granted, loss in found}

    @property
    def delta(self) -> float | None:
        """The chance of events for which nothing is promised, for each person singly; None: there are none."""
        return None if self.measure.delta is None else float(self.measure.delta)

    @property
    def title(self) -> str:
        """Its kind, and delta if it has one."""
        return self.kind if self.delta is None else f"{self.kind} with delta {self.delta:g}"

    def with_delta(self, delta: Any) -> Guarantee:
        """This release counted in rho, so that it adds up with others that are; or at another delta."""
        losses, measure = self.losses, Measure(check_delta(delta))
        if self.measure.delta is None:
            losses = tuple((g, None if e is None else measure.cost(e)) for g, e in losses)
        return replace(self, losses=losses, measure=measure)

    def with_neighbors(self, neighbors: str) -> Guarantee:
        """This release, promised against other neighbours.

        A replacement is a removal and an addition, so "absent" at epsilon gives "replace" at twice epsilon, and at
        four times rho (Bun and Steinke 2016, Proposition 1.9). The way back holds at the same loss, but only for
        mechanisms that impute a missing person.
        """
        if neighbors == self.neighbors:
            return self
        if neighbors == "replace":
            twice = 2 if self.measure.delta is None else 4
            both = tuple((g, None if e is None else twice * e) for g, e in self.losses)
            return replace(self, neighbors="replace", losses=both)
        if neighbors == "absent" and self.imputes:
            return replace(self, neighbors="absent")
        what = f"This promise against {self.neighbors!r} says nothing against {neighbors!r}."
        rule = "Only a mechanism that lets a missing person stand at a public value allows the step."
        raise PlanError(what, rule=rule, suggest=("ask again with ", Argument("neighbors", neighbors)))

    def compose(self, other: Any) -> Guarantee:
        """This and another release, or its guarantee: a person's losses add up (Jorgensen et al. 2015, Theorem 4).

        Person by person: somebody who lost .3 to one and .7 to the other lost 1, whatever their levels are called.
        Where the rosters cannot be aligned, everyone may have lost the most to the other. The weaker kind remains.
        """
        return self._join(other, lambda a, b: a + b)

    def compose_parallel(self, other: Any) -> Guarantee:
        """Both releases, made from disjoint groups of people: everyone lost to one of them at most.

        Only named people can be told to be disjoint, and only groups that are defined by public facts of the roster may
        be asked so: who matches a predicate is private.
        """
        other = _promise_of(other)
        aligned = self._aligned(other)
        if aligned is None or any(a != 0 and b != 0 and grant is not None for grant, a, b in aligned[1]):
            hint = "eps.Roster(ids, epsilons) for each group, or compose, which adds their losses"
            rule = "In parallel nobody takes part in both, which only ids can tell."
            raise PlanError("These releases may be about the same people.", rule=rule, suggest=hint)
        return _add_caveats(self.compose(other), DISJOINT)

    def post_process(self) -> Guarantee:
        """Whatever is computed from a release alone keeps its promise (first privacy axiom)."""
        return self

    def choice(self, other: Any) -> Guarantee:
        """One of two releases, chosen by a coin that does not depend on the data: the larger loss (second axiom)."""
        return self._join(other, max)

    def _aligned(self, other: Guarantee) -> tuple[Covered, list[_Lost]] | None:
        if self.covers is None or other.covers is None:
            return None
        return self.covers.align(other.covers, dict(self.losses), dict(other.losses))

    def _join(self, other: Any, join: Callable[[int, int], int]) -> Guarantee:
        one, two = self._share_neighbors(_promise_of(other))
        one, two = one._share_measure(two)
        aligned = one._aligned(two)
        if aligned is not None:
            covers, lost = aligned
        else:
            # Somebody in one may be anyone in the other.
            covers, lost = None, [(grant, loss, two._most()) for grant, loss in one.losses]
            lost += [(grant, one._most(), loss) for grant, loss in two.losses]
        losses: dict[int | None, int | None] = {}
        for grant, a, b in sorted(lost, key=lambda person: to_epsilon(person[0])):
            known = losses.get(grant, 0)
            losses[grant] = None if a is None or b is None or known is None else max(known, join(a, b))
        joined = replace(
            one,
            losses=tuple(losses.items()),
            kind=max(one.kind, two.kind, key=KINDS.index),
            imputes=one.imputes and two.imputes,
            covers=covers,
        )
        if covers is None:
            said = APART if one.losses and two.losses else ""
        else:
            said = BY_PLACE if covers.by_place else "" if one.covers == two.covers else TWO_GRANTS
        joined = _add_caveats(joined, *two.caveats, *filter(None, [said]))
        if NO_PROMISE in (one.kind, two.kind) or one.kind == two.kind:
            return joined
        return _add_caveats(joined, f"Composed of {one.kind} and {two.kind}: the weaker kind is all that remains.")

    def _most(self) -> int:
        """What anyone lost who is not public."""
        return max((loss for _, loss in self.losses if loss is not None), default=0)

    def _share_neighbors(self, other: Guarantee) -> tuple[Guarantee, Guarantee]:
        if self.neighbors == other.neighbors:
            return self, other
        if all(g.imputes for g in (self, other) if g.neighbors == "replace"):
            return self.with_neighbors("absent"), other.with_neighbors("absent")
        return self.with_neighbors("replace"), other.with_neighbors("replace")

    def _share_measure(self, other: Guarantee) -> tuple[Guarantee, Guarantee]:
        """Both in rho where one of them is. rho promises something at every delta; the larger one is told."""
        deltas = [one.measure.delta for one in (self, other) if one.measure.delta is not None]
        return (self.with_delta(max(deltas)), other.with_delta(max(deltas))) if deltas else (self, other)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        counted = {} if self.measure.delta is None else {"measure": self.measure.to_text()}
        return {
            "kind": self.kind,
            "neighbors": self.neighbors,
            "losses": [list(pair) for pair in self.losses],
            "caveats": list(self.caveats),
            "imputes": self.imputes,
            "roster": None if self.covers is None else self.covers.digest,
            **counted,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Guarantee:
        """The inverse of `to_dict`. What the first release of epsilons wrote names no roster."""
        try:
            losses = tuple((granted, loss) for granted, loss in data["losses"])
            covers = Covered(data["roster"]) if data.get("roster") else None
            flags = {name: data[name] for name in ("neighbors", "kind", "imputes")}
            flags |= {"measure": Measure.of_text(data["measure"])} if "measure" in data else {}
            return cls(losses=losses, caveats=tuple(data["caveats"]), covers=covers, **flags)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            pass
        raise PlanError("This is not a guarantee.", suggest="the dict of a guarantee")

    def __str__(self) -> str:
        finite = {granted: loss for granted, loss in self.epsilons.items() if math.isfinite(granted)}
        if len(finite) > _LISTED:
            people = f"{_range(finite.values())} by level ({len(finite)} levels, granted {_range(finite)})"
        else:
            listed = (f"{loss:.6g} to those who granted {granted:.6g}" for granted, loss in finite.items())
            people = ", ".join(listed) or "nothing to anyone"
        # What takes the promise away comes before it.
        marks = [caveat for caveat in self.caveats if caveat == SEEDED or caveat.startswith(NOT_DP)]
        others = [caveat for caveat in self.caveats if caveat not in marks]
        promise = f"{self.kind}: a loss of at most {people}."
        exceptions = [] if self.delta is None else [WITH_DELTA.format(delta=self.delta)]
        return " ".join((*marks, promise, *exceptions, RELATION[self.neighbors], *others))


def _promise_of(given: Any) -> Guarantee:
    """A guarantee, or that of an answer."""
    found = getattr(given, "guarantee", given)
    if not isinstance(found, Guarantee):
        rule = "Promises are composed with promises."
        raise PlanError(f"{type(given).__name__!r} has no guarantee.", rule=rule, suggest="answer.guarantee")
    return found


def _range(epsilons: Iterable[float]) -> str:
    low, high = (f"{bound:.6g}" for bound in (min(epsilons), max(epsilons)))
    return low if low == high else f"{low} to {high}"


def _add_caveats(guarantee: Guarantee, *caveats: str) -> Guarantee:
    return replace(guarantee, caveats=tuple(dict.fromkeys((*guarantee.caveats, *caveats))))


def compose_all(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Everything released so far, in order: losses add up, and individual privacy leaves a permanent mark.

    From the first release that is not DP on, whatever is said of the whole says "not DP since release N".

    >>> exact = Guarantee(neighbors="absent", losses=((NANO, NANO),), kind=INDIVIDUAL)
    >>> fine = Guarantee(neighbors="absent", losses=((NANO, NANO),))
    >>> compose_all([fine, exact, fine]).caveats[0]
    'Not DP since release 2.'
    """
    parts = list(guarantees)
    if not parts:
        raise PlanError("There is nothing to compose.", suggest="at least one guarantee")
    whole = reduce(Guarantee.compose, parts)
    first = next((number for number, part in enumerate(parts, 1) if part.kind == INDIVIDUAL), None)
    if first is None:
        return whole
    return _add_caveats(replace(whole, caveats=(f"{NOT_DP} {first}.",)), *whole.caveats)

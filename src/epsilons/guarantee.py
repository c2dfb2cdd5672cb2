"""What is promised, to whom, against which neighbours; and how promises add up.

Epsilons here are integers of nano-epsilon (`NANO` to one); `None` stands for public, which carries no promise.
Whatever is granted rounds down and whatever is charged rounds up, so a promise is never overstated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from epsilons.display import Shown
from epsilons.errors import Argument, PlanError

NANO = 10**9

PERSONALIZED = "personalized DP"
INDIVIDUAL = "individual DP (not DP)"
NO_PROMISE = "no privacy (public data only)"
#: From the strongest to the weakest; composing two releases gives the weaker of their kinds.
KINDS = (NO_PROMISE, PERSONALIZED, INDIVIDUAL)

NEIGHBORS = ("absent", "replace")

ROSTER_IS_PUBLIC = "The roster (who was asked, with which preference) is public and is not protected."
PUBLIC_PEOPLE = "People who chose public are not protected."
SEEDED = "NOT PRIVATE: the randomness was seeded for a test, so anyone with the seed can remove the noise."
RELATION = {
    "absent": "Compared with data in which one person's records are replaced by nothing.",
    "replace": "Compared with data in which one person's records are replaced by any others.",
}
#: More levels than this are told by their number and range; `to_dict` lists them all.
_LISTED = 6


def to_epsilon(nano: int | None) -> float:
    """The number people read; public is infinite."""
    return math.inf if nano is None else nano / NANO


@dataclass(frozen=True)
class Guarantee(Shown):
    """A promise to every person on the roster, by the epsilon they granted.

    `losses` pairs each granted epsilon with the bound that holds for its people, both in nano-epsilon. `imputes`
    says that a missing person stands at a fixed public value, so that a bound under "replace" also holds under
    "absent" (the record is then "replaced" by that value).

    >>> one = Guarantee(neighbors="absent", losses=((100_000_000, 50_000_000),))
    >>> one.compose(one).epsilons
    {0.1: 0.1}
    """

    neighbors: str
    losses: tuple[tuple[int | None, int | None], ...]
    kind: str = PERSONALIZED
    caveats: tuple[str, ...] = field(default=(ROSTER_IS_PUBLIC,))
    imputes: bool = False
    #: Whether preferences were rounded down to the ladder: a granted epsilon then stands for those up to the next one.
    rounded: bool = False

    def __post_init__(self) -> None:
        if self.neighbors not in NEIGHBORS:
            given = f"Unknown neighbours {self.neighbors!r}."
            raise PlanError(given, suggest=(Argument("neighbors", "absent"), " or ", Argument("neighbors", "replace")))

    @property
    def epsilons(self) -> dict[float, float]:
        """{granted epsilon: bound on the loss}; infinite means public."""
        return {to_epsilon(granted): to_epsilon(loss) for granted, loss in self.losses}

    def with_neighbors(self, neighbors: str) -> Guarantee:
        """This release, promised against other neighbours.

        A replacement is a removal and an addition, so "absent" at epsilon gives "replace" at twice epsilon. The
        way back holds at the same epsilon, but only for mechanisms that impute a missing person.
        """
        if neighbors == self.neighbors:
            return self
        if neighbors == "replace":
            doubled = tuple((g, None if e is None else 2 * e) for g, e in self.losses)
            return replace(self, neighbors="replace", losses=doubled)
        if neighbors == "absent" and self.imputes:
            return replace(self, neighbors="absent")
        raise PlanError(
            f"This promise against {self.neighbors!r} says nothing against {neighbors!r}.",
            rule="Only a mechanism that lets a missing person stand at a public value allows the step.",
            suggest=("ask again with ", Argument("neighbors", neighbors)),
        )

    def compose(self, other: Guarantee) -> Guarantee:
        """Both releases seen together: a person's losses add up (Jorgensen et al. 2015, Theorem 4).

        A level that one release does not mention has lost nothing to it. Of two kinds the weaker one remains.
        """
        return self._join(other, lambda a, b: a + b)

    def compose_parallel(self, other: Guarantee) -> Guarantee:
        """Both releases, made from disjoint groups of people: a person loses the larger of the two.

        Sound only if the groups are defined by public facts of the roster. Who matches a predicate is private.
        """
        note = "Composed in parallel: sound only because the groups are defined by public facts of the roster."
        return _add_caveats(self._join(other, max), note)

    def post_process(self) -> Guarantee:
        """Whatever is computed from a release alone keeps its promise (first privacy axiom)."""
        return self

    def choice(self, other: Guarantee) -> Guarantee:
        """One of two releases, chosen by a coin that does not depend on the data: the larger loss (second axiom)."""
        return self._join(other, max)

    def _join(self, other: Guarantee, add: Callable[[int, int], int]) -> Guarantee:
        one, two = self._align(other)
        grants = sorted({granted for granted, _ in (*one.losses, *two.losses)}, key=to_epsilon)
        pairs = [(granted, one._loss(granted), two._loss(granted)) for granted in grants]
        joined = replace(
            one,
            losses=tuple((granted, None if a is None or b is None else add(a, b)) for granted, a, b in pairs),
            kind=max(one.kind, two.kind, key=KINDS.index),
            imputes=one.imputes and two.imputes,
            rounded=one.rounded or two.rounded,
        )
        joined = _add_caveats(joined, *two.caveats)
        if NO_PROMISE in (one.kind, two.kind) or one.kind == two.kind:
            return joined
        return _add_caveats(joined, f"Composed of {one.kind} and {two.kind}: the weaker kind is all that remains.")

    def _loss(self, granted: int | None) -> int | None:
        """What a person with this grant lost: nothing if no such level took part, the rung's loss if it was rounded."""
        found = dict(self.losses)
        if granted in found or granted is None:
            return found.get(granted, 0)
        rungs = [g for g, _ in self.losses if g is not None and g <= granted]
        return found[max(rungs)] if self.rounded and rungs else 0

    def _align(self, other: Guarantee) -> tuple[Guarantee, Guarantee]:
        if self.neighbors == other.neighbors:
            return self, other
        if all(g.imputes for g in (self, other) if g.neighbors == "replace"):
            return self.with_neighbors("absent"), other.with_neighbors("absent")
        return self.with_neighbors("replace"), other.with_neighbors("replace")

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        return {
            "kind": self.kind,
            "neighbors": self.neighbors,
            "losses": [list(pair) for pair in self.losses],
            "caveats": list(self.caveats),
            "imputes": self.imputes,
            "rounded": self.rounded,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Guarantee:
        """The inverse of `to_dict`."""
        losses = tuple((granted, loss) for granted, loss in data["losses"])
        flags = {name: data[name] for name in ("neighbors", "kind", "imputes", "rounded")}
        return cls(losses=losses, caveats=tuple(data["caveats"]), **flags)

    def __str__(self) -> str:
        finite = {granted: loss for granted, loss in self.epsilons.items() if math.isfinite(granted)}
        if len(finite) > _LISTED:
            people = f"{_range(finite.values())} by level ({len(finite)} levels, granted {_range(finite)})"
        else:
            listed = (f"{loss:.6g} to those who granted {granted:.6g}" for granted, loss in finite.items())
            people = ", ".join(listed) or "nothing to anyone"
        return " ".join((f"{self.kind}: a loss of at most {people}.", RELATION[self.neighbors], *self.caveats))


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
    return _add_caveats(replace(whole, caveats=(f"Not DP since release {first}.",)), *whole.caveats)

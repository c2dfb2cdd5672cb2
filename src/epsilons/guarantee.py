"""What is promised, to whom, against which neighbours; and how promises add up.

Epsilons here are integers of nano-epsilon (`NANO` to one); `None` stands for public, which carries no promise.
Whatever is granted rounds down and whatever is charged rounds up, so a promise is never overstated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from epsilons.errors import PlanError

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


def to_epsilon(nano: int | None) -> float:
    """The number people read; public is infinite."""
    return math.inf if nano is None else nano / NANO


@dataclass(frozen=True)
class Guarantee:
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
            raise PlanError(
                f"Unknown neighbours {self.neighbors!r}.",
                rule='A promise compares with "absent" or "replace".',
                suggest='neighbors="absent"',
            )

    @property
    def epsilons(self) -> dict[float, float]:
        """{granted epsilon: bound on the loss}; infinite means public."""
        return {to_epsilon(granted): to_epsilon(loss) for granted, loss in self.losses}

    def with_neighbors(self, neighbors: str) -> Guarantee:
        """The same release, promised against other neighbours.

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
            suggest=f'ask again with neighbors="{neighbors}"',
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
        joined = self._join(other, max)
        return replace(joined, caveats=_merge(joined.caveats, (note,)))

    def post_process(self) -> Guarantee:
        """Whatever is computed from a release alone keeps its promise (first privacy axiom)."""
        return self

    def choice(self, other: Guarantee) -> Guarantee:
        """One of two releases, chosen by a coin that does not depend on the data: the larger loss (second axiom)."""
        return self._join(other, max)

    def _join(self, other: Guarantee, add: Callable[[int, int], int]) -> Guarantee:
        one, two = self._align(other)
        losses: list[tuple[int | None, int | None]] = []
        for granted in sorted({g for g, _ in (*one.losses, *two.losses)}, key=to_epsilon):
            a, b = one._loss(granted), two._loss(granted)
            losses.append((granted, None if a is None or b is None else add(a, b)))
        caveats = _merge(one.caveats, two.caveats)
        kind = max(one.kind, two.kind, key=KINDS.index)
        if NO_PROMISE not in (one.kind, two.kind) and one.kind != two.kind:
            caveats = _merge(caveats, (f"Composed of {one.kind} and {two.kind}: the weaker kind is all that remains.",))
        return Guarantee(
            neighbors=one.neighbors,
            losses=tuple(losses),
            kind=kind,
            caveats=caveats,
            imputes=one.imputes and two.imputes,
            rounded=one.rounded or two.rounded,
        )

    def _loss(self, granted: int | None) -> int | None:
        """What somebody with this grant lost: nothing if no such level took part, the rung's loss if it was rounded."""
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
        return cls(
            neighbors=data["neighbors"],
            losses=tuple((pair[0], pair[1]) for pair in data["losses"]),
            kind=data["kind"],
            caveats=tuple(data["caveats"]),
            imputes=data["imputes"],
            rounded=data["rounded"],
        )

    def __str__(self) -> str:
        finite = [(g, e) for g, e in self.epsilons.items() if math.isfinite(g)]
        people = ", ".join(f"{e:.6g} to those who granted {g:.6g}" for g, e in finite) or "nothing to anyone"
        head = f"{self.kind}: a loss of at most {people}. {RELATION[self.neighbors]}"
        return " ".join((head, *self.caveats))


def _merge(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


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
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    marked = [number for number, part in enumerate(parts, 1) if part.kind == INDIVIDUAL]
    if not marked:
        return whole
    return replace(whole, caveats=_merge((f"Not DP since release {marked[0]}.",), whole.caveats))

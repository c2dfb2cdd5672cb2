"""A proof that an owner's vector holds a single 1 and else 0, checked on shares, that shows nothing else.

The owner thinks of the polynomial f of degree below N with f(1) = u, a random word, and f(w^i) = cell i - 1, where w is
a root of unity of order N, larger than the number of cells m; f is 0 at the points that remain. All cells are 0 or 1
exactly if f^2 - f is divisible by Z(x) = (x^N - 1)/(x - 1). The owner sends u and the quotient q by its values at N
other points, shared like the cells. For a point t, drawn after the reports are in, each aggregator publishes three
linear functions of its share: the sum of the cells, f(t) and q(t). The report is accepted if they add up to values with

    sum = 1   and   f(t)^2 - f(t) = q(t) Z(t).

Sound:   otherwise f^2 - f - qZ is a polynomial other than 0, of degree at most 2N - 2, and t is none of its roots but
         with probability below 2N/p: 2^-59 for ten options, 2^-49 for ten thousand.
Secret:  f(t) = u L(t) + ... with L(t) != 0 unless t^N = 1, so f(t) is uniform for every answer; q(t) follows.
         Each aggregator speaks once, before it hears the others, so no aggregator can steer what another one shows.

It is the proof system of Prio (Corrigan-Gibbs, Boneh 2017, section 4.2) in the form of Boneh, Boneh, Corrigan-Gibbs,
Gilboa, Ishai 2019, "Zero-Knowledge Proofs on Secret-Shared Data via Fully Linear PCPs", section 4. Owners who follow
the protocol find f at the other points without any transform: there L_j is a rotation of L_0.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from epsilons.collection.field import (
    GENERATOR,
    P,
    Words,
    add,
    dot,
    inverse,
    mul,
    powers,
    root_of_unity,
    sub,
    subgroup_order,
    to_words,
    total,
)

#: What an aggregator publishes of each report: the sum of its cells, f(t), q(t).
SHOWN = 3


def round_challenge(challenge: bytes, round_number: int) -> bytes:
    """Each round's proofs have a point of their own."""
    return challenge + bytes((round_number,))


@dataclass(frozen=True)
class ReportShape:
    """What a report looks like: `cells` words of the answer, u, then `order` words of q."""

    cells: int

    @cached_property
    def order(self) -> int:
        """N."""
        return subgroup_order(self.cells + 1)

    @property
    def words(self) -> int:
        """The length of a share."""
        return self.cells + 1 + self.order

    @cached_property
    def _root(self) -> int:
        return root_of_unity(self.order)

    @cached_property
    def _rotated(self) -> Words:
        """L_0 at the other points y_i = 7 w^i; L_j(y_i) is its entry i - j."""
        scale = (pow(GENERATOR, self.order, P) - 1) * inverse(self.order)
        return to_words(scale * inverse(y - 1) for y in self._others)

    @cached_property
    def _others(self) -> list[int]:
        return powers(self._root, self.order, GENERATOR)

    @cached_property
    def _by_vanishing(self) -> Words:
        """1/Z(y_i) = (y_i - 1)/(7^N - 1)."""
        scale = inverse(pow(GENERATOR, self.order, P) - 1)
        return to_words(scale * (y - 1) for y in self._others)

    def prove(self, answers: NDArray[np.int64], blinds: Words) -> Words:
        """One row per owner, from the cell of each and a uniform word of each: the answer with its proof."""
        rows = np.zeros((len(answers), self.words), np.uint64)
        rows[np.arange(len(answers)), answers] = 1
        rows[:, self.cells] = blinds
        turned = (np.arange(self.order)[None, :] - (answers[:, None] + 1)) % self.order
        f = add(mul(self._rotated[None, :], blinds[:, None]), self._rotated[turned])
        rows[:, self.cells + 1 :] = mul(sub(mul(f, f), f), self._by_vanishing)
        return rows

    def query(self, challenge: bytes) -> Query:
        """The point that a challenge stands for, and the weights of the linear functions there."""
        t = self._point(challenge)
        order, root = self.order, self._root
        whole = pow(t, order, P)
        scale = (whole - 1) * inverse(order)
        lagrange = [scale * x * inverse(t - x) for x in powers(root, self.cells + 1)]
        shift = pow(GENERATOR, order, P)
        scale = (whole - shift) * inverse(order * shift)
        others = [scale * y * inverse(t - y) for y in self._others]
        vanishing = (whole - 1) * inverse(t - 1) % P
        # In a share the cells stand before u.
        return Query(self.cells, to_words([*lagrange[1:], lagrange[0]]), to_words(others), vanishing)

    def _point(self, challenge: bytes) -> int:
        """Uniform among the points that are neither roots of unity nor of the other coset, where q is given."""
        shift = pow(GENERATOR, self.order, P)
        for number in range(1 << 16):
            t = int.from_bytes(hashlib.sha256(b"epsilons point" + number.to_bytes(2) + challenge).digest()[:8])
            if 0 < t < P and pow(t, self.order, P) not in (1, shift):
                return t
        raise AssertionError("a hash that avoids almost all points")


@dataclass(frozen=True)
class Query:
    """Three linear functions of a share, and what must hold of their sums."""

    cells: int
    lagrange: Words
    others: Words
    vanishing: int

    def show(self, shares: Words) -> Words:
        """What an aggregator publishes: a row of three words per report."""
        first = self.cells + 1
        found = (
            total(shares[:, : self.cells], axis=1),
            dot(shares[:, :first], self.lagrange),
            dot(shares[:, first:], self.others),
        )
        return np.stack(found, axis=1)

    def accept(self, shown: Words) -> NDArray[np.bool_]:
        """Which reports are one answer each, from the sums over all aggregators of what they published."""
        one, f, q = shown[:, 0], shown[:, 1], shown[:, 2]
        holds = sub(mul(f, f), f) == mul(q, np.uint64(self.vanishing))
        return np.asarray((one == 1) & holds)

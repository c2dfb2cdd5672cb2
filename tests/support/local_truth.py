"""The slow truth about protocols of the local model: laws of counts by convolution, losses outcome by outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction

from epsilons.local import ResponseProtocol

Law = dict[Hashable, Fraction]


def owner_law(protocol: ResponseProtocol, truth: int) -> Law:
    """What one owner sends."""
    law = {path: chance for path, chance in protocol.law(truth).items() if chance}
    assert sum(law.values()) == 1
    return dict(law)


def image(law: Law, function: Callable[[Hashable], Hashable]) -> Law:
    """The law of a function of what is seen."""
    found: Law = {}
    for outcome, chance in law.items():
        seen = function(outcome)
        found[seen] = found.get(seen, Fraction(0)) + chance
    return found


def counts_law(protocol: ResponseProtocol, truths: Sequence[int]) -> Law:
    """The published counts of every output in every round, for owners with these truths."""
    nothing = ((0,) * protocol.outputs,) * protocol.rounds
    law: Law = {nothing: Fraction(1)}
    for truth in truths:
        grown: Law = {}
        for seen, before in law.items():
            for path, chance in owner_law(protocol, truth).items():
                after = tuple(
                    tuple(n + (output == place) for place, n in enumerate(counts))
                    for counts, output in zip(seen, path, strict=True)  # type: ignore[call-overload]
                )
                grown[after] = grown.get(after, Fraction(0)) + before * chance
        law = grown
    return law


def pure_epsilon(one: Law, two: Law) -> float:
    """The largest |ln P/Q| over all outcomes."""
    worst = 0.0
    for outcome in {*one, *two}:
        p, q = one.get(outcome, Fraction(0)), two.get(outcome, Fraction(0))
        if p == 0 or q == 0:
            return math.inf
        worst = max(worst, abs(math.log(p / q)))
    return worst


def delta(one: Law, two: Law, epsilon: float) -> float:
    """The hockey-stick divergence, in both orders; differences are taken between fractions."""
    factor = Fraction(math.exp(epsilon))
    outcomes = {*one, *two}
    none = Fraction(0)
    return max(
        float(sum(max(none, p.get(o, none) - factor * q.get(o, none)) for o in outcomes))
        for p, q in ((one, two), (two, one))
    )

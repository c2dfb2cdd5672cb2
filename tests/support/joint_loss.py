"""A certificate, by interval arithmetic, for what noise that is shifted and stretched costs: no theorem is used.

Densities f(z) and f((z - d)/k)/k, f proportional to 1/(1 + |z|^g), k = e^b. Mirrored and with the narrower one first,
four cases remain, each a function of one number z >= 0:

- narrow over wide: b + ln(1 + ((z + d)/k)^g) - ln(1 + z^g), which is convex in b: at b = 0 and at the largest b;
- wide over narrow: -b + ln(1 + (z + d)^g) - ln(1 + (z/k)^g), which is concave in b: at b = 0 up to z^g = 1/(g-1), at
  the largest b from there times its k on, and between at the b with (z/k)^g = 1/(g-1).

All of them grow with d, so that the largest shift decides.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from epsilons.noise.entropy import as_ball, working_precision

Curve = Callable[[arb], arb]
#: Beyond this z a closed bound serves: every curve is within g*(d + 1)/z of its limit there.
FAR = 1 << 20


def certify_loss(gamma: int, shift: Fraction, stretch: Fraction, most: Fraction) -> int:
    """How many intervals it took to prove that the loss stays within `most`; 0 where it could not be proved."""
    with working_precision(96):
        g, d, b, limit = arb(gamma), as_ball(shift), as_ball(stretch), as_ball(most)
        k, turn = b.exp(), (1 / (g - 1)) ** (1 / g)

        def height(z: arb) -> arb:
            return (1 + z**gamma).log()

        def slope(z: arb) -> arb:
            return g * z ** (gamma - 1) / (1 + z**gamma)

        ends = [(arb(0), arb(1)), (b, k)]
        curves: list[tuple[Curve, Curve, arb, arb]] = [
            (
                lambda z, b=b_, k=k_: b + height((z + d) / k) - height(z),
                lambda z, k=k_: slope((z + d) / k) / k - slope(z),
                arb(0),
                arb(FAR),
            )
            for b_, k_ in ends
        ]
        curves += [
            (
                lambda z, b=b_, k=k_: -b + height(z + d) - height(z / k),
                lambda z, k=k_: slope(z + d) - slope(z / k) / k,
                low,
                high,
            )
            for (b_, k_), low, high in ((ends[0], arb(0), turn), (ends[1], turn * k, arb(FAR)))
        ]
        level = turn.log() - (1 + 1 / (g - 1)).log()
        curves.append((lambda z: height(z + d) - z.log() + level, lambda z: slope(z + d) - 1 / z, turn, turn * k))
        if not (g - 1) * b + g * (d + 1) / FAR <= limit:
            return 0
        steps = [_stays_below(*curve, limit) for curve in curves]
        return sum(steps) if all(steps) else 0


def _stays_below(curve: Curve, slope: Curve, low: arb, high: arb, limit: arb) -> int:
    """By halves, until every interval's bound, or its mean-value bound, is proved; 0 if one is too small to go on."""
    waiting, seen = [(low.lower(), high.upper())], 0
    while waiting:
        (first, last), seen = waiting.pop(), seen + 1
        middle, radius = ((first + last) / 2).mid(), ((last - first) / 2).upper()
        box = arb(middle, radius)
        around = curve(middle) + arb(0, 1) * radius * slope(box) if first > 0 else curve(box)
        if around <= limit or curve(box) <= limit:
            continue
        if radius < arb(2) ** -40 or seen > 200_000:
            return 0
        waiting += [(first, middle), (middle, last)]
    return seen

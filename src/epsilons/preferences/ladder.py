"""The fixed ladder to which more than 256 distinct preferences are rounded down."""

from decimal import Decimal

from epsilons.guarantee import NANO


def _ladder() -> tuple[int, ...]:
    """At most 255 rungs in nano-epsilon: 199 over [.01, 10), where people choose, and 28 over each of the far ends.

    Rungs are geometric and cut to three digits so that they can be read; neighbours in the middle are 3.5% apart.
    """
    rungs = set()
    for low, high, count in (("1e-9", "0.01", 28), ("0.01", "10", 199), ("10", "1e6", 28)):
        ratio: Decimal = (Decimal(high) / Decimal(low)) ** (Decimal(1) / count)
        for k in range(count):
            whole = int(Decimal(low) * ratio**k * NANO)
            unit: int = 10 ** max(0, len(str(whole)) - 3)
            rungs.add(whole // unit * unit)
    return tuple(sorted(rungs))


LADDER = _ladder()

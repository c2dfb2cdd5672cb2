"""Levels: the distinct epsilons of a roster and how many people stand at each.

A preference is kept as an integer of nano-epsilon and rounds DOWN. Up to 256 distinct preferences are kept
exactly; more are rounded down to `LADDER`, which is fixed and so does not depend on who is there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

from epsilons.errors import PreferenceError
from epsilons.guarantee import NANO, to_epsilon

#: The preference of somebody who asks for no privacy at all.
PUBLIC = math.inf
MAX_LEVELS = 256
LARGEST_EPSILON = 10**6


def _ladder() -> tuple[int, ...]:
    """At most 255 rungs in nano-epsilon: 199 over [.01, 10), where people choose, and 28 over each of the far ends.

    Rungs are geometric and cut to three digits so that they can be read; neighbours in the middle are 3.5% apart.
    """

    def rungs(low: str, high: str, count: int) -> list[int]:
        start, stop = Decimal(low), Decimal(high)
        ratio: Decimal = (stop / start) ** (Decimal(1) / count)
        return [_three_digits(start * ratio**k * NANO) for k in range(count)]

    return tuple(sorted({*rungs("1e-9", "0.01", 28), *rungs("0.01", "10", 199), *rungs("10", "1e6", 28)}))


def _three_digits(value: Decimal) -> int:
    whole = int(value)
    unit: int = 10 ** max(0, len(str(whole)) - 3)
    return whole // unit * unit


LADDER = _ladder()


@dataclass(frozen=True)
class Levels:
    """The public facts of a roster: the distinct grants, ascending, and how many people stand at each.

    A grant is in nano-epsilon; `None` is public and comes last. `rounding_loss` is the average fraction of a
    finite grant given up by rounding down to the ladder (0 when all preferences are kept exactly). `left_out` people
    are on the roster with nothing to spend: nobody looks at their values, but answers are about them as well.
    """

    grants: tuple[int | None, ...]
    sizes: tuple[int, ...]
    names: Mapping[float, str] = field(default_factory=dict, compare=False)
    rounding_loss: float = field(default=0.0, compare=False)
    left_out: int = 0

    @cached_property
    def _hash(self) -> int:
        # Of whole numbers alone, whose hashes are the same in every process: it may be pickled along.
        return hash((tuple(grant or 0 for grant in self.grants), self.sizes, self.left_out))

    def __hash__(self) -> int:
        """Worked out once: planning looks up what it remembers of a roster hundreds of times."""
        return self._hash

    @cached_property
    def people(self) -> int:
        """How many people are on the roster."""
        return sum(self.sizes) + self.left_out

    @cached_property
    def finite(self) -> tuple[int, ...]:
        """The grants of everyone who is not public."""
        return tuple(g for g in self.grants if g is not None)

    @property
    def smallest(self) -> int:
        """The strictest grant on the roster."""
        return self.finite[0]

    @property
    def largest(self) -> int:
        """The most open finite grant."""
        return self.finite[-1]

    @property
    def mean(self) -> int:
        """The average finite grant over people, rounded down to a nano-epsilon."""
        pairs = [(g, n) for g, n in zip(self.grants, self.sizes, strict=True) if g is not None]
        return math.floor(Fraction(sum(g * n for g, n in pairs), sum(n for _, n in pairs)))

    @property
    def all_public(self) -> bool:
        """Whether nobody on the roster asked for any privacy."""
        return not self.finite

    def scaled(self, share: Fraction) -> Levels:
        """What a question may use at a share of every grant, rounded down; whoever is left with nothing is left out."""
        merged: dict[int | None, int] = {}
        left_out = self.left_out
        for grant, size in zip(self.grants, self.sizes, strict=True):
            part = None if grant is None else math.floor(grant * share)
            if part == 0:
                left_out += size
            else:
                merged[part] = merged.get(part, 0) + size
        ordered = sorted(merged.items(), key=lambda item: to_epsilon(item[0]))
        grants, sizes = tuple(g for g, _ in ordered), tuple(n for _, n in ordered)
        return Levels(grants, sizes, {}, self.rounding_loss, left_out)

    def name(self, grant: int | None) -> str:
        """What to call a level: its given name, or its epsilon."""
        epsilon = to_epsilon(grant)
        return self.names.get(epsilon, "public" if grant is None else f"{epsilon:.6g}")


def to_nano(epsilon: float) -> int | None:
    """The largest number of nano-epsilon that is not above `epsilon`; `None` for public.

    A float stands for the decimal that it prints as: .7 is 700,000,000 nano-epsilon.

    >>> to_nano(.7), to_nano(.12345678919), to_nano(PUBLIC)
    (700000000, 123456789, None)
    """
    if math.isnan(epsilon):
        raise PreferenceError(
            "A person has no preference (NaN or missing).",
            rule="A default applies only if you give one.",
            hint="eps.Preferences(..., default=0.05)",
        )
    if epsilon <= 0:
        raise PreferenceError(
            f"An epsilon of {epsilon:.6g} is not allowed.",
            rule="An epsilon is larger than zero; whoever grants nothing is not on the roster.",
            hint="leave these people out",
        )
    if math.isinf(epsilon):
        return None
    if epsilon > LARGEST_EPSILON:
        raise PreferenceError(
            f"An epsilon of {epsilon:.6g} is not allowed.",
            rule=f"A finite epsilon is at most {LARGEST_EPSILON:,}.",
            hint="eps.PUBLIC for people who ask for no privacy",
        )
    nano = round(epsilon * NANO)
    if nano / NANO > epsilon:
        nano -= 1
    if nano == 0:
        raise PreferenceError(
            f"An epsilon of {epsilon:.6g} rounds down to nothing.",
            rule="The smallest epsilon is a billionth.",
            hint="leave these people out",
        )
    return nano

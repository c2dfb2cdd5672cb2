"""In what losses are counted: epsilons, which add up as they are, or rho, for accounts that are to last.

People always choose epsilons. A measure turns a grant into units of an account, units into the strength at which a
mechanism may use somebody, and what a mechanism takes back into units:

    pure    units are nano-epsilon, and all of it is the identity.
    zcdp    with one delta: units are femto-rho. rho-zCDP (Bun and Steinke 2016, arXiv:1605.02065v1, Definition 1.1)
            bounds the Renyi divergence D_a by a*rho at every a > 1. It adds up, also where later questions follow from
            earlier answers (Feldman and Zrnic 2021; Whitehouse et al. 2023), and grows with the square of a loss: twice
            as many questions at the same rho cost an account 1.4 times the accuracy, not twice.

A pure loss e is e^2/2-zCDP (Bun and Steinke 2016, Proposition 1.4); an exponential mechanism of loss e has a bounded
range and is e^2/8-zCDP (Dong, Durfee, Rogers 2020, arXiv:1909.13830v2, with Cesar and Rogers 2021, arXiv:2004.07223);
Gaussian noise of deviation s on what a person moves by r is (r/s)^2/2-zCDP. So one number serves for all: the
`strength` e = sqrt(rho/factor), with a factor of 1/2 or 1/8, at which a mechanism runs as if e were an epsilon.

Whatever is granted rounds down and whatever is charged rounds up. Logarithms are those of `decimal`, rounded correctly
to 50 digits; the last eight are given away at every step towards less privacy spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

from epsilons.display import show_span
from epsilons.errors import Argument, PlanError, PreferenceError

NANO = 10**9
FEMTO = 10**15

PURE, ZCDP = "pure", "zcdp"
MEASURES = (PURE, ZCDP)
#: What a loss e costs of a concentrated account, as a multiple of e^2: any mechanism, and one of bounded range.
ANY_LOSS, BOUNDED_RANGE = Fraction(1, 2), Fraction(1, 8)
#: Between which deltas are: below, nobody could tell it from 0; above, too many people would have no promise at all.
LEAST_DELTA, MOST_DELTA = Fraction(1, 10**18), Fraction(1, 100)

_DIGITS = 50
_SLACK = Decimal(10) ** (8 - _DIGITS)


@dataclass(frozen=True)
class Measure:
    """How an account counts; `delta` is None for epsilons as they are.

    >>> lasting = Measure(Fraction(1, 10**6))
    >>> lasting.units(NANO) / FEMTO  # of an epsilon of 1
    0.024355970359538
    >>> lasting.epsilon(lasting.units(NANO))
    1000000000
    """

    delta: Fraction | None = None
    #: How many units are one epsilon, or one rho.
    one: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "one", NANO if self.delta is None else FEMTO)

    @property
    def name(self) -> str:
        """Either "pure" or "zcdp"."""
        return PURE if self.delta is None else ZCDP

    def units(self, nano: int) -> int:
        """The units that an epsilon grants, rounded down."""
        return nano if self.delta is None else rho_of(nano, self.delta)

    def epsilon(self, units: int) -> int:
        """The nano-epsilon that so many units are worth, rounded up."""
        return units if self.delta is None else epsilon_of(units, self.delta)

    def coded(self, code: int) -> int:
        """The units of a grant as ledgers write it: public and withdrawn people (-1 and 0) have none.

        An epsilon that is worth no unit at all would be written as a withdrawal, which nobody asked for.
        """
        units = self.units(code) if code > 0 else code
        if code > 0 and not units:
            what = f"An epsilon of {code / NANO:g} is too small to be counted in rho."
            rule = f"With a delta of {float(self.delta or 0):g} it is worth less than {1 / self.one:g}."
            raise PreferenceError(what, rule=rule, suggest="a larger epsilon, or a withdrawal")
        return units

    def granted(self, units: int | None) -> int | None:
        """The nano-epsilon that somebody with so many units granted; None is public."""
        return units if units is None or self.delta is None else self.epsilon(units)

    def grant(self, units: int | None) -> float:
        """The same as a number; public is infinite."""
        nano = self.granted(units)
        return math.inf if nano is None else nano / NANO

    def amount(self, units: int) -> float:
        """So many units as a number: epsilon, or rho."""
        return units / self.one

    def strength(self, units: int, factor: Fraction = ANY_LOSS) -> int:
        """The largest loss, in nano-epsilon, that so many units pay for where a loss e costs factor * e^2.

        With units of 10^-15 and losses of 10^-9: e^2 = 1000 * units/factor.
        """
        return units if self.delta is None else math.isqrt(1000 * units * factor.denominator // factor.numerator)

    def cost(self, nano: int, factor: Fraction = ANY_LOSS) -> int:
        """The units that such a loss costs, rounded up; never more than the units whose `strength` it is."""
        if self.delta is None:
            return nano
        return -(-nano * nano * factor.numerator // (1000 * factor.denominator))

    @property
    def unit(self) -> str:
        """What adds up in an account, as a word."""
        return "epsilon" if self.delta is None else "rho"

    @property
    def notes(self) -> list[str]:
        """What is said below a table of amounts that are not epsilons."""
        told = "Charges and what is left are in rho, which adds up where epsilons do not; in brackets: of the grant"
        return [] if self.delta is None else [f"{told}. Delta: {float(self.delta):g}."]

    def head(self, name: str) -> str:
        """The head of a column of amounts."""
        return name if self.delta is None else f"{name}, rho"

    def part(self, granted: float, amount: float) -> float:
        """An amount as a part of what an epsilon grants; of one that is worth no unit at all nothing is charged."""
        return amount / self.amount(self.units(round(granted * NANO)) or 1)

    def show(self, amounts: Iterable[tuple[float, float]]) -> str:
        """Amounts in a table, as (granted epsilon, amount): of rho also the part of what was granted, if not public.

        >>> Measure(Fraction(1, 10**6)).show([(1.0, 0.0024356), (0.1, 0.0000321)])
        '3.21e-05…0.002436 (10%)'
        """
        several = list(amounts)
        shown = show_span([amount for _, amount in several])
        finite = [(granted, amount) for granted, amount in several if math.isfinite(granted)]
        if self.delta is None or not finite:
            return shown
        parts = [100 * self.part(granted, amount) for granted, amount in finite]
        return f"{shown} ({'…'.join(dict.fromkeys(f'{one:.3g}' for one in (min(parts), max(parts))))}%)"

    def __str__(self) -> str:
        return self.name if self.delta is None else f"{self.name} with delta {float(self.delta):g}"

    def to_text(self) -> str:
        """As ledgers keep it: "pure", or "zcdp delta 1/1000000"."""
        return PURE if self.delta is None else f"{ZCDP} delta {self.delta}"

    @classmethod
    def of_text(cls, text: str) -> Measure:
        """The inverse."""
        name, _, delta = text.partition(" delta ")
        if (name == ZCDP) != bool(delta) or name not in MEASURES:
            raise ValueError("no measure")
        return cls(Fraction(delta) if delta else None)


PLAIN = Measure()


@dataclass(frozen=True)
class Rate:
    """What a question pays with: a measure, and what a loss e costs there as a multiple of e^2."""

    measure: Measure
    factor: Fraction = ANY_LOSS

    def part(self, grant: int, share: Fraction) -> int:
        """The loss, in nano-epsilon, that a share of an epsilon's units pays for."""
        return self.strength(self.measure.units(grant) * share.numerator // share.denominator)

    def strength(self, units: int) -> int:
        """The loss that so many units pay for."""
        return self.measure.strength(units, self.factor)

    def cost(self, nano: int | None) -> int | None:
        """The units that a loss costs; public people pay nothing."""
        return None if nano is None else self.measure.cost(nano, self.factor)


@dataclass(frozen=True)
class Remainder(Rate):
    """The same for people whose account was looked at already: what is to be shared is a loss that they can pay for."""

    def part(self, grant: int, share: Fraction) -> int:
        return self.strength((self.cost(grant) or 0) * share.numerator // share.denominator)


def check_delta(given: Any) -> Fraction:
    """A delta as the decimal that it prints as, so that 1e-6 is a millionth exactly."""
    try:
        if not isinstance(given, (bool, str)):
            delta = given if isinstance(given, Fraction) else Fraction(repr(float(given)))
            if LEAST_DELTA <= delta <= MOST_DELTA:
                return delta
    except (TypeError, ValueError, OverflowError):
        pass
    rule = f"A number from {float(LEAST_DELTA):g} to {float(MOST_DELTA):g}, well below one over the number of people."
    raise PlanError(("This is no ", Argument("delta"), "."), rule=rule, suggest=Argument("delta", 1e-6))


@lru_cache(maxsize=1 << 14)
def rho_of(nano: int, delta: Fraction) -> int:
    """The largest femto-rho, but for rounding down, such that rho-zCDP implies (epsilon, delta)-DP.

    Canonne, Kamath, Steinke 2020 (arXiv:2004.00010v6), Proposition 12: it does if for some a > 1

        exp((a-1)(a rho - epsilon)) * (1 - 1/a)^a / (a-1) <= delta.

    Solved for rho every a gives a rho that is good; the best has rho (a-1)^2 = -log(a delta), which without rho reads
    (a-1)^2 (epsilon - log(1 - 1/a)) + (2a-1) log(a delta) = 0.
    """
    epsilon, log_delta = nano / NANO, math.log(delta)

    def slope(order: float) -> float:
        return (order - 1) ** 2 * (epsilon - math.log1p(-1 / order)) + (2 * order - 1) * (math.log(order) + log_delta)

    order = _order(slope, delta)
    with localcontext(prec=_DIGITS):
        rho = (Decimal(nano) / NANO - _price(order, delta)) / order - _SLACK
        return max(0, int((rho * FEMTO).to_integral_value(ROUND_FLOOR)))


@lru_cache(maxsize=1 << 14)
def epsilon_of(femto: int, delta: Fraction) -> int:
    """The least nano-epsilon, but for rounding up, such that rho-zCDP implies (epsilon, delta)-DP: the inverse."""
    if femto == 0:
        return 0
    rho, log_delta = femto / FEMTO, math.log(delta)
    order = _order(lambda order: rho * (order - 1) ** 2 + math.log(order) + log_delta, delta)
    with localcontext(prec=_DIGITS):
        epsilon = order * Decimal(femto) / FEMTO + _price(order, delta) + _SLACK
        return max(0, int((epsilon * NANO).to_integral_value(ROUND_CEILING)))


def _price(order: Decimal, delta: Fraction) -> Decimal:
    """What delta costs at an order a: epsilon = a rho + (a log(1 - 1/a) - log(a-1) - log(delta))/(a-1)."""
    log_delta = Decimal(delta.numerator).ln() - Decimal(delta.denominator).ln()
    return (order * (1 - 1 / order).ln() - (order - 1).ln() - log_delta) / (order - 1)


def _order(slope: Callable[[float], float], delta: Fraction) -> Decimal:
    """About where a slope passes 0, in ten digits: any order is good, and one so near to the best nearly as good.

    Few digits, so that all machines find the same one.
    """
    low, high = math.log(1e-9), math.log(1 / float(delta))
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(1 + math.exp(middle)) < 0 else (low, middle)
    return 1 + Decimal(f"{math.exp(low):.9e}")

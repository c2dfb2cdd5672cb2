"""`epsilons demo`: what the library does on arrays of made-up people, with nothing installed besides the package.

Nobody of this is real: incomes follow a gamma distribution, levels are drawn at random, both by a public seed. Noise
comes from the operating system as always, so that answers differ from run to run.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import epsilons as eps
from epsilons.display import text_table
from epsilons.preferences.odds import count_right

PEOPLE, SEED, BOUNDS, SPREAD = 500, 1, (0, 2000), 300
#: {level: (its epsilon, the part of all people who chose it)}.
LEVELS = {"strict": (0.05, 0.3), "standard": (0.5, 0.45), "open": (2.0, 0.2), "public": (eps.PUBLIC, 0.05)}


@dataclass(frozen=True, eq=False)
class MadeUp:
    """What each person earns, and the level that each chose."""

    wages: NDArray[np.float64]
    chosen: NDArray[np.str_]

    @property
    def preferences(self) -> eps.Preferences:
        return eps.Preferences.from_levels(list(self.chosen), {name: epsilon for name, (epsilon, _) in LEVELS.items()})


@dataclass(frozen=True)
class Shown:
    """What the demo shows: a plan, the answer to it, and the same for everyone at the strictest epsilon."""

    people: MadeUp
    plan: eps.Plan
    answer: eps.Release
    truth: float
    strictest_error: float | None


def make_people() -> MadeUp:
    """The same in every run: only preferences and incomes are made up by a seed."""
    draw = np.random.default_rng(SEED)
    shares = [share for _, share in LEVELS.values()]
    return MadeUp(draw.gamma(4, 150, PEOPLE), draw.choice(list(LEVELS), PEOPLE, p=shares))


def ask_people() -> Shown:
    """One mean: planned, then asked as planned."""
    people = make_people()
    plan = eps.plan("mean", people.preferences, bounds=BOUNDS, spread=SPREAD, complete=True)
    truth = float(np.clip(people.wages, *BOUNDS).mean())
    return Shown(people, plan, plan.ask(people.wages), truth, plan["minimum"].error)


def tell(shown: Shown) -> str:
    """All of it as text, in the order of a first question."""
    answer, low_high = shown.answer, shown.answer.interval(0.95)
    assert low_high is not None
    assert not isinstance(low_high, dict)
    heads = ("level", "people", "epsilon", "of 100 guesses who took part, right")
    rows = [
        (name, f"{(shown.people.chosen == name).sum():,}", f"{epsilon:g}", f"at most {count_right(epsilon)}")
        if epsilon != eps.PUBLIC
        else (name, f"{(shown.people.chosen == name).sum():,}", "none", "nothing is promised")
        for name, (epsilon, _) in LEVELS.items()
    ]
    charges = {f"{granted:g}": f"{spent:g}" for granted, spent in answer.charges.items() if granted != eps.PUBLIC}
    paid = "; ".join(f"granted {granted}, charged {spent}" for granted, spent in charges.items())
    return "\n\n".join(
        [
            f"{PEOPLE:,} made-up people: an income each, and a level of privacy that each chose. None of them is real.",
            text_table(heads, rows).rstrip() + "\nA coin is right about 50.",
            "1. A plan is free: it looks at nobody's income.",
            str(shown.plan).rstrip(),
            "2. The question, asked as planned.",
            f"{answer}\n95% interval: {low_high[0]:,.0f} to {low_high[1]:,.0f}. The true mean, which only a demo may "
            f"show: {shown.truth:,.0f}. With everyone at the strictest epsilon the expected error would have been "
            f"{shown.strictest_error:,.0f}.",
            f"3. What it cost.\n\n{paid}.",
            f"4. What is promised.\n\n{answer.guarantee}",
            "Next, for arrays of your own: python -c 'import epsilons; help(epsilons.mean)'",
            "For tables, with accounts that last: pip install 'epsilons[tables]'; then epsilons init TABLE.csv",
        ]
    )

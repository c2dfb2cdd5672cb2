"""A budget plan: how far answers will be off if so many questions are asked, under each kind of account.

Everybody's grant is split evenly. Under `pure` accounts epsilons add up, so that each of k questions has e_i/k, with
Laplace noise. Under `zcdp` accounts a person's (e_i, delta) is an amount rho_i of concentrated privacy (Bun and
Steinke 2016), which adds up, so that each has rho_i/k, with Gaussian noise, which grows with the root of k alone. In
both one weighted sum has w_i <= s b_i: with b_i = e_i/k and noise of variance 2 (s r)^2, or with b_i = sqrt(2 rho_i/k)
and (s r)^2 (docs/theory.md). It is a forecast from public facts: of a mean or a count that everyone enters.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilons.accuracy.additive import uneven
from epsilons.arguments.checks import LEAST_SHARE, check_whole
from epsilons.arguments.options import DEFAULT_ASSUME, DEFAULT_QUESTIONS
from epsilons.display import Sheet, Shown, show, show_count
from epsilons.errors import Argument, PlanError
from epsilons.measure import Measure, check_delta
from epsilons.preferences import to_nano
from epsilons.statistics.base import Floats

#: Of a concentrated account, unless the steward says otherwise.
DEFAULT_DELTA = 1e-6
#: How many are told beside those that were asked about.
_CURVE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
MOST_QUESTIONS = int(1 / LEAST_SHARE)
_ACCOUNTS = ("pure", "zcdp")
#: A count: ones and zeros, half of each; a mean: half as wide as its bounds, and half of that is its spread.
_COUNT, _MEAN = (1.0, 0.5), (0.5, 0.25)


@dataclass(frozen=True)
class Forecast:
    """What to expect if so many questions are asked: the error of a count, in people, and of a mean, in its units."""

    account: str
    questions: int
    count: float
    mean: float


@dataclass(frozen=True)
class BudgetPlan(Shown):
    """What each kind of account makes of so many questions; `curve` has other numbers of them as well."""

    questions: int
    people: int
    delta: float
    assume: float
    #: What a mean is measured in: its column, and how wide its bounds are.
    column: str
    width: float
    rows: tuple[Forecast, ...]
    curve: tuple[Forecast, ...]
    #: For how many questions the dataset was registered.
    planned: int = DEFAULT_QUESTIONS

    @property
    def share(self) -> float:
        """The share that each of so many questions may take under pure accounts."""
        return 1 / self.questions

    @property
    def best(self) -> str:
        """The kind of account under which answers are better."""
        return min(self.rows, key=lambda row: row.mean).account

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        told = {"questions": self.questions, "share": self.share, "best": self.best, "people": self.people}
        told |= {"planned": self.planned, "default_share": 1 / self.planned}
        about = {"delta": self.delta, "assume": self.assume, "column": self.column, "width": self.width}
        rows = {name: [vars(row) for row in getattr(self, name)] for name in ("rows", "curve")}
        return {**told, **about, **rows}

    def sheets(self) -> list[Sheet]:
        asked: dict[int, dict[str, Forecast]] = {}
        for row in sorted({*self.rows, *self.curve}, key=lambda one: one.questions):
            asked.setdefault(row.questions, {})[row.account] = row
        cells = [
            [f"{often:,}", f"{1 / often:.4g}", *(show(both[name].count) for name in _ACCOUNTS)]
            + [show(both[name].mean) for name in _ACCOUNTS]
            for often, both in asked.items()
        ]
        head = ("questions", "share of each", "count, pure", "count, zcdp", "mean, pure", "mean, zcdp")
        of_what = f"of {self.column}" if self.column else "as a part of the width of its bounds"
        of_width, (share, mean) = "" if self.column else " of it", (self.assume * part for _, part in (_COUNT, _MEAN))
        notes = [
            f"Expected error of a count of people and of a mean {of_what}, if all questions are alike,",
            f"everyone has a value, and no level's expected share is further than {show(share)} from everyone's,",
            f"nor its mean further than {show(mean * self.width)}{of_width}.",
            f"pure: epsilons add up. zcdp: (epsilon, {self.delta:g}) for everyone, with Gaussian noise.",
            f"For {self.questions:,} questions {self.best} accounts are better; the share of each is {self.share:.4g}.",
            tell_planned(self.planned),
        ]
        if self.questions != self.planned:
            notes.append(f"Registered with questions = {self.questions}, it would be {self.share:.4g}.")
        return [Sheet(f"Budget for {self.questions:,} questions", head, cells, notes)]


def tell_planned(questions: int) -> str:
    """What a question takes unless it says otherwise, and why."""
    return f"The default share, {1 / questions:.4g}, leaves room for {show_count(questions, 'question')}."


def check_questions(given: Any) -> int:
    """How many questions are planned for: each has a share, which is not as small as anybody likes."""
    refusal = PlanError("This is no number of questions.", suggest=Argument("questions", 200))
    often = check_whole(given, refusal=refusal)
    if often > MOST_QUESTIONS:
        rule = f"A share is at least {float(LEAST_SHARE):g}, so that there is room for {MOST_QUESTIONS:,} at most."
        raise PlanError("So many questions cannot be asked.", rule=rule, suggest=Argument("questions", MOST_QUESTIONS))
    return often


def plan_budget(
    epsilons: Sequence[float],
    sizes: Sequence[int],
    questions: Any = DEFAULT_QUESTIONS,
    *,
    delta: float = DEFAULT_DELTA,
    assume: float = DEFAULT_ASSUME,
    column: str = "",
    width: float = 1.0,
    planned: int = DEFAULT_QUESTIONS,
) -> BudgetPlan:
    """Of so many people at each epsilon; infinite ones are public."""
    often = check_questions(questions)
    measure = Measure(check_delta(delta))
    if not any(math.isfinite(epsilon) for epsilon in epsilons):
        raise PlanError("There is nothing to plan.", rule="Everyone is public: answers are exact.")
    granted, people = np.array(epsilons, float), np.array(sizes, float)
    units = [None if nano is None else measure.coded(nano) for nano in map(to_nano, granted.tolist())]
    rho = np.array([math.inf if one is None else measure.amount(one) for one in units])

    def forecast(account: str, number: int) -> Forecast:
        budgets, noise = (granted / number, 2.0) if account == "pure" else (np.sqrt(2 * rho / number), 1.0)
        count, mean = (best_error(budgets, people, reach, spread, noise, assume) for reach, spread in (_COUNT, _MEAN))
        # Neither is further off than what is possible.
        return Forecast(account, number, min(count, 1.0) * float(people.sum()), min(mean, 1.0) * width)

    rows = tuple(forecast(account, often) for account in _ACCOUNTS)
    curve = tuple(forecast(account, number) for account in _ACCOUNTS for number in _CURVE)
    return BudgetPlan(often, int(people.sum()), delta, assume, column, width, rows, curve, planned)


def find_delta(given: float | None, own: Any) -> float:
    """The delta that was asked for; else that of the account itself, where it has one."""
    return given if given is not None else DEFAULT_DELTA if own is None else float(own)


def best_error(budgets: Floats, sizes: Floats, reach: float, spread: float, noise: float, assume: float) -> float:
    """The least root mean squared error of a mean by weights w_i = min(s b_i, kappa), sum w_i = 1, and one noise.

    sigma^2 sum (w_i - 1/n)^2 + noise (s r)^2 + (assume sigma B)^2, with B = sum |w_i - median(w)|; one search over s.
    """
    people, finite = float(sizes.sum()), np.isfinite(budgets)
    public, largest = float(sizes[~finite].sum()), float(budgets[finite].max())
    least = 1 / float(budgets[finite] @ sizes[finite])  # kappa caps nobody who is not public
    alike = 1 / (people * float(budgets[finite].min()))  # everyone weighs the same
    tried = np.geomspace(least, alike, 120)
    if public:  # who have all of the weight without any noise
        tried = np.concatenate([[0.0], np.geomspace(least * 1e-6, least, 80), tried])
    weights = np.stack([_fill(np.where(finite, s * np.minimum(budgets, largest), np.inf), sizes) for s in tried])
    luck = spread**2 * (weights - 1 / people) ** 2 @ sizes
    drift = assume * spread * uneven(weights, sizes)
    return float(np.sqrt(luck + noise * (tried * reach) ** 2 + drift**2).min())


def _fill(most: Floats, sizes: Floats) -> Floats:
    """min(most_i, kappa), kappa filling the sum over people up to 1."""
    order = np.argsort(most)
    upto, behind = np.cumsum((most * sizes)[order]), sizes[order][::-1].cumsum()[::-1]
    upto = np.where(np.isfinite(upto), upto, np.inf)
    before = np.concatenate([[0.0], upto[:-1]])
    caps = (1 - before) / behind  # kappa, if all from here on are capped by it
    fits = caps <= most[order]
    return np.minimum(most, caps[fits.argmax()] if fits.any() else np.inf)

"""Noise scaled to how far this order statistic could move on data like these."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import INSIDE, SCALES, check_gamma, check_name
from epsilons.errors import Argument, PlanError
from epsilons.guarantee import NANO, to_epsilon
from epsilons.mechanisms.base import Charges, Mechanism, register
from epsilons.mechanisms.sample import Coins
from epsilons.mechanisms.threshold import resolve_threshold
from epsilons.noise.entropy import ALWAYS, Entropy
from epsilons.noise.heavy import draw_many_on_grid, draw_on_grid, largest_shift
from epsilons.noise.pmf import heavy_log_probabilities
from epsilons.preferences import Levels
from epsilons.statistics.base import Answer, Floats, Question
from epsilons.statistics.order import Order
from epsilons.statistics.sensitivity import RELATIVE_ERROR, smooth_sensitivity
from epsilons.summaries import People
from epsilons.summaries.cells import SortedCells

#: Above about ln 2 the best window among evenly spaced values is a single gap, whatever beta is.
_ENOUGH_BETA = Fraction(7, 10)
#: What the rounding of S adds to beta: two factors of 1 +- RELATIVE_ERROR, and a little room.
_ROUNDING = 4 * RELATIVE_ERROR
#: The "paper" calibration costs more than epsilon from the next gamma on: (g-1)^(g-1) > 4^g (g+1).
_LAST_OF_PAPER = 7


@dataclass(frozen=True)
class Calibration:
    """Noise S_beta/alpha * Z, where Z has a density proportional to 1/(1 + |z|^gamma)."""

    alpha: Fraction
    beta: Fraction


@lru_cache(maxsize=256)
def calibrate(scale: str, gamma: int, nano: int) -> Calibration:
    """At so many nano-epsilons; see `noise.heavy.largest_shift` for what alpha and beta cost together.

    "tight": all of epsilon, less what the rounding of S may cost. S falls about like 1/beta and the noise grows like
    1/alpha, so beta is where their product is largest for small epsilons: the positive root of 2(g-1) r^2 + 2(g-2) r =
    1, times epsilon; but beta has enough at 0.7. "paper": Soria-Comas et al. 2017, section 6.1.4: noise 4
    gamma/epsilon S_beta Z; beta = epsilon/gamma, not epsilon.
    """
    epsilon, g = Fraction(nano, NANO), gamma
    if scale == "paper":
        return Calibration(epsilon / (4 * g), epsilon / g)
    root = Fraction(math.isqrt((g * g - 2 * g + 2) << 64), 1 << 32)
    beta = min(epsilon * (root - (g - 2)) / (2 * (g - 1)), _ENOUGH_BETA)
    return Calibration(largest_shift(Fraction(g), epsilon, beta + _ROUNDING) * (1 - RELATIVE_ERROR), beta)


@register
@dataclass(frozen=True)
class SmoothSensitivity(Mechanism):
    """Add heavy-tailed noise scaled to the smooth sensitivity of the value at the rank asked for.

    Definition: x_k + S_beta/alpha * Z on the grid, S_beta the smooth sensitivity (see `statistics.sensitivity`), Z of a
                density proportional to 1/(1 + |z|^g), g = gamma; at one epsilon: the roster's minimum, or that of those
                kept by a threshold, or of a random sample. scale="tight" has the largest alpha for which a shift by
                alpha and a stretch by e^beta cost epsilon *together*; "paper": alpha = epsilon/(4g), beta = epsilon/g.
    Theorem:    Nissim, Raskhodnikova and Smith 2007, Lemma 2.5: between neighbours x_k moves by S_beta at most and
                ln S_beta by beta. What both cost together is ours: a^g (g-1)^(g-1) <= (epsilon + beta) (epsilon -
                (g-1) beta)^(g-1) with a = alpha beta/(e^beta - 1), for g=2 the hyperbolic distance (docs/theory.md,
                "smooth"). Rounding to the grid is post-processing. Soria-Comas et al. 2017, section 6.1.
    Guarantee:  eps_i-PDP, one person absent or replaced, at the same epsilon: a missing person stands at the grid point
                nearest the centre; in a sample they are left out, and S_beta is smooth also when the rank moves along.
    Cost:       inside="minimum": the least eps_i charged to everyone; "threshold": t to those kept, nothing to the
                rest; "sample": min(eps_i, t).
    Error:      none is predicted: it hangs on the gaps between people's values. 95% of the noise lies within 6.7
                times S_beta at epsilon 1 (gamma=3; the paper's scale: 34.2).
    """

    scale: str = "tight"
    gamma: int = 3
    inside: str = "minimum"
    threshold: float | str = "best"

    name: ClassVar[str] = "smooth-sensitivity"
    families: ClassVar[tuple[str, ...]] = ("order",)
    serves_only: ClassVar[str] = "it serves order statistics"
    needs_public_count: ClassVar[bool] = True
    gist: ClassVar[str] = "noise scaled to how far the answer could move on data like these"
    #: Also inside a sample: there nobody stands in for a missing person, but the same draws are private against both.
    imputes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_name("scale", self.scale, SCALES)
        check_name("inside", self.inside, INSIDE)
        object.__setattr__(self, "gamma", check_gamma(self.gamma))
        if self.scale == "paper" and self.gamma > _LAST_OF_PAPER:
            what = (Argument("scale", "paper"), " is not private at ", Argument("gamma", self.gamma), ".")
            rule = f"From gamma {_LAST_OF_PAPER + 1} on its loss passes epsilon."
            hint = (Argument("gamma"), f" from 2 to {_LAST_OF_PAPER}, or ", Argument("scale", "tight"))
            raise PlanError(what, rule=rule, suggest=hint)

    def epsilon(self, question: Question, levels: Levels) -> int:
        """The one epsilon at which the noise is drawn, in nano-epsilon; no error can be predicted."""
        return levels.smallest if self.inside == "minimum" else resolve_threshold(self.threshold, levels)

    def charge(self, question: Question, levels: Levels) -> Charges:
        t, cut = self.epsilon(question, levels), self.inside == "threshold"
        return tuple(0 if cut and most is not None and most < t else most for most in levels.cut_at(t))

    def used(self, question: Question, levels: Levels) -> float:
        if self.inside != "sample":
            return super().used(question, levels)
        pairs = zip(self._chances(question, levels), levels.sizes, strict=True)
        return float(Fraction(sum(c * n for c, n in pairs), ALWAYS * levels.size))

    def draw(self, question: Question, people: People, entropy: Entropy) -> Answer:
        statistic = _order(question)
        if self.inside == "sample":
            (cells,) = people.sampled_cells(statistic, self._chances(question, people.levels), entropy)
        else:
            cells = self._cells(question, people)
        centre, scale = self.noise(question, people.levels, cells)
        return Answer(statistic.value(draw_on_grid(entropy, centre, scale, Fraction(self.gamma), statistic.points)))

    def simulate(self, question: Question, people: People, entropy: Entropy, size: int) -> Floats:
        if self.inside == "sample":
            return np.array([self.draw(question, people, entropy).value for _ in range(size)], float)
        statistic = _order(question)
        centre, scale = self.noise(question, people.levels, self._cells(question, people))
        drawn = draw_many_on_grid(entropy, centre, scale, Fraction(self.gamma), statistic.points, size)
        cells, place = np.unique(drawn, return_inverse=True)
        return np.array([statistic.value(int(cell)) for cell in cells], float)[place]

    def noise(self, question: Question, levels: Levels, cells: SortedCells) -> tuple[int, Fraction]:
        """(the true answer's grid point, the scale of its noise in grid points): both private.

        With nobody there the answer may be anything and its sensitivity is the whole grid: the first person can move
        it no further, and then has a smooth sensitivity within a factor e^beta of that.
        """
        statistic = _order(question)
        calibration = calibrate(self.scale, self.gamma, self.epsilon(question, levels))
        if cells.people == 0:
            return statistic.default_cell, (statistic.points - 1) / calibration.alpha
        places, rank = cells.cells(0, cells.people), statistic.rank(cells.people)
        sensitivity = smooth_sensitivity(places, rank, statistic.points, calibration.beta)
        return int(places[rank]), sensitivity / calibration.alpha

    def _cells(self, question: Question, people: People) -> SortedCells:
        """Everybody who is used, missing people at their public stand-in, so that their number is public."""
        statistic = _order(question)
        cells = people.cells(statistic)
        used = np.array([charge != 0 for charge in self.charge(question, people.levels)])
        if not used.all():
            keys = cells.keys[used[cells.codes(0, cells.people)]]
            cells = SortedCells(keys, np.where(used, cells.missing, 0), cells.levels)
        return cells.with_missing_at(statistic.default_cell)

    def _chances(self, question: Question, levels: Levels) -> tuple[int, ...]:
        return Coins(levels.grants, self.epsilon(question, levels)).chances

    def distribution(self, question: Question, people: People) -> tuple[NDArray[Any], Floats]:
        """On the whole grid; inside a sample a mixture over every sample that can be drawn: 2^n of them."""
        statistic = _order(question)
        if self.inside != "sample":
            return statistic.outcomes(), self._law(question, people.levels, self._cells(question, people))
        total = np.full(statistic.points, -np.inf)
        for weight, sample in people.samples(self._chances(question, people.levels)):
            total = np.logaddexp(total, math.log(weight) + self._law(question, people.levels, sample.cells(statistic)))
        return statistic.outcomes(), total

    def _law(self, question: Question, levels: Levels, cells: SortedCells) -> Floats:
        centre, scale = self.noise(question, levels, cells)
        return _log_probabilities(centre, scale, self.gamma, _order(question).points)

    def options(self, question: Question, levels: Levels) -> dict[str, Any]:
        at = {} if self.inside == "minimum" else {"threshold": to_epsilon(self.epsilon(question, levels))}
        return {"scale": self.scale, "gamma": self.gamma, "inside": self.inside, **at}

    def explain(self, question: Question, levels: Levels) -> str:
        t = question.tell_loss(self.epsilon(question, levels))
        kept = f"only people who granted enough to be charged {t}"
        who = {"minimum": "everyone", "threshold": f"{kept},", "sample": "a random sample"}[self.inside]
        return f"{self.gist}, {who} at {t}"


def _order(question: Question) -> Order:
    return cast(Order, question.statistic)


@lru_cache(maxsize=1024)
def _log_probabilities(centre: int, scale: Fraction, gamma: int, points: int) -> Floats:
    """Remembered, since an enumeration of neighbours meets the same law again and again; so nobody may write to it."""
    logs = heavy_log_probabilities(centre, scale, Fraction(gamma), points)
    logs.setflags(write=False)
    return logs

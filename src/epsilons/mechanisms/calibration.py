"""Calibration: public groups fill up to their own size each, with one noise for all of them.

Weights are w = min(s e_i, kappa_k), with kappa_k such that those of group k add up to its N_k people, left out or not.
With one noise of scale s r that is eps_i-PDP, as every weighted sum is; and however groups differ from each other, it
biases nothing: only relations within a group can (docs/theory.md, "calibration"). So s is looked for where every group
can fill by itself. A group of strict people forces a large s, and so much noise that these weights are not taken.
"""

from fractions import Fraction

import numpy as np

from epsilons.accuracy import FAMILIES
from epsilons.accuracy.strata import GroupEffect
from epsilons.guarantee import NANO
from epsilons.preferences.strata import Strata
from epsilons.statistics.base import FINE, Floats, Question, Rest, Weighting

#: So many noises are tried at first, and then ever nearer to the best.
_TRIED = 24


def calibrate(question: Question, levels: Strata) -> Weighting:
    """The weights of least predicted error that fill groups by themselves."""
    facts = _Facts(levels)
    accuracy = FAMILIES[question.statistic.family]
    found: list[tuple[float, float, Weighting]] = []
    scales = np.geomspace(facts.least, facts.most, _TRIED)
    for _ in range(3):
        for scale in scales.tolist():
            made = facts.weigh(scale)
            GroupEffect.note(question, levels, made)
            found.append((accuracy.predict_error(question, levels, made) or 0.0, scale, made))
        best = min(found, key=lambda one: one[:2])
        tried = sorted({scale for _, scale, _ in found})
        place = tried.index(best[1])
        scales = np.geomspace(tried[max(place - 1, 0)], tried[min(place + 1, len(tried) - 1)], 7)[1:-1]
    return best[2]


class _Facts:
    """Who stands in which group with which epsilon."""

    def __init__(self, levels: Strata) -> None:
        self._grants, self._groups = levels.grants, np.array(levels.groups)
        self._epsilons = np.array([np.inf if one is None else one / NANO for one in levels.grants])
        self._sizes, finite = np.array(levels.sizes, float), np.isfinite(self._epsilons)
        count = len(levels.left_by)
        self._people = np.bincount(self._groups, self._sizes, count) + np.array(levels.left_by, float)
        held = np.bincount(self._groups, np.where(finite, self._epsilons, 0.0) * self._sizes, count)
        private = np.bincount(self._groups, np.where(finite, 0.0, self._sizes), count) == 0
        # From the scale at which every group can fill by itself, to that at which everyone of one weighs the same.
        used = np.bincount(self._groups, self._sizes, count)
        self.most = 1.01 * float((self._people / used).max() / self._epsilons[finite].min())
        needed = (self._people[private] / held[private]).max(initial=self.most * 1e-6)  # public people fill any
        self.least = float(needed) * (1 + 1e-9)

    def weigh(self, scale: float) -> Weighting:
        """The weights at a scale, rounded down."""
        most, filled = scale * self._epsilons, np.zeros(len(self._groups))
        for group, people in enumerate(self._people.tolist()):
            here = self._groups == group
            filled[here] = _fill(most[here], self._sizes[here], people)
        top = float(filled.max())
        rate = max(1, int(top / scale * NANO))
        caps = np.floor(filled / top * FINE).astype(int).tolist()
        grants = zip(self._grants, caps, strict=True)
        weights = tuple(cap if grant is None else min(cap, grant * FINE // rate) for grant, cap in grants)
        return Weighting(weights, FINE, Fraction(rate), Rest.RESCALED)


def _fill(most: Floats, sizes: Floats, people: float) -> Floats:
    """min(most_i, kappa), kappa filling the sum up to so many people; where that is too little, as much as there is."""
    order = np.argsort(most)
    before = np.concatenate([[0.0], np.cumsum((np.where(np.isfinite(most), most, 0.0) * sizes)[order])[:-1]])
    caps = (people - before) / sizes[order][::-1].cumsum()[::-1]
    fits = caps <= most[order]
    return np.minimum(most, caps[fits.argmax()] if fits.any() else np.inf)

"""Calibration: public groups fill up to their own size each, with one noise for all of them.

Weights are w = min(s e_i, kappa_k), with kappa_k such that those of group k add up to its N_k people, left out or not.
With one noise of scale s r that is eps_i-PDP, as every weighted sum is; and however groups differ from each other, it
biases nothing: only relations within a group can (docs/theory.md, "calibration"). A group of strict people would force
a large s, and so much noise. So s is what is looked for, and groups that cannot fill at some s are put together with
those that have most to spare, by this public rule, until they can.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
            made, pools = facts.weigh(scale)
            GroupEffect.note(question, levels, made, pools)
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
        held = np.where(finite, self._epsilons, 0.0) * self._sizes
        self._held = np.bincount(self._groups, held, count)
        self._public = np.bincount(self._groups, np.where(finite, 0.0, self._sizes), count) > 0
        # From the scale at which everybody together can fill, to that at which everyone weighs the same.
        used = np.bincount(self._groups, self._sizes, count)
        self.most = 1.01 * float((self._people / used).max() / self._epsilons[finite].min())
        self.least = min(self._people.sum() / max(self._held.sum(), 1e-300) * (1 + 1e-9), self.most / 1.001)
        self.least = self.most * 1e-6 if self._public.any() else self.least

    def _pool(self, scale: float) -> NDArray[Any]:
        """The pool of each group: its own, or one for those that cannot fill, with those that have most to spare."""
        spare = np.where(self._public, np.inf, scale * self._held - self._people)
        pools, poor = np.arange(len(spare)), spare < 0
        if not poor.any():
            return pools
        lacks = -float(spare[poor].sum())
        for group in np.argsort(-np.where(poor, -np.inf, spare), kind="stable").tolist():
            if lacks <= 0 or poor[group]:
                break
            lacks, poor[group] = lacks - spare[group], True
        pools[poor] = int(np.flatnonzero(poor)[0])
        return pools

    def weigh(self, scale: float) -> tuple[Weighting, tuple[int, ...]]:
        """The weights at a scale, rounded down, and the pool that each is in."""
        pools = self._pool(scale)[self._groups]
        most, filled = scale * self._epsilons, np.zeros(len(pools))
        for pool in np.unique(pools).tolist():
            here = pools == pool
            people = float(self._people[np.unique(self._groups[here])].sum())
            filled[here] = _fill(most[here], self._sizes[here], people)
        top = float(filled.max())
        rate = max(1, int(top / scale * NANO))
        caps = np.floor(filled / top * FINE).astype(int).tolist()
        grants = zip(self._grants, caps, strict=True)
        weights = tuple(cap if grant is None else min(cap, grant * FINE // rate) for grant, cap in grants)
        return Weighting(weights, FINE, Fraction(rate), Rest.RESCALED), tuple(pools.tolist())


def _fill(most: Floats, sizes: Floats, people: float) -> Floats:
    """min(most_i, kappa), kappa filling the sum up to so many people; where that is too little, as much as there is."""
    order = np.argsort(most)
    before = np.concatenate([[0.0], np.cumsum((np.where(np.isfinite(most), most, 0.0) * sizes)[order])[:-1]])
    caps = (people - before) / sizes[order][::-1].cumsum()[::-1]
    fits = caps <= most[order]
    return np.minimum(most, caps[fits.argmax()] if fits.any() else np.inf)

"""Audits what comes from outside the package before "auto" may choose it, on small data that are made up."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

from epsilons.auditing.attack import audit_claim
from epsilons.auditing.built_in import claim_of
from epsilons.mechanisms import vetting
from epsilons.mechanisms.base import why_refused
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.base import Question, Scope, Statistic
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import Variance

_BOUNDS, _GRID = (-1.0, 2.0), (0.0, 4.0)
_SUMS, _RANKS = (-1.0, 0.5, 2.0, 9.0), (0.0, 2.0, 4.0)
#: Small statistics by name, and values that hold both bounds, the middle and a stranger.
STAND_INS: dict[str, tuple[Statistic, tuple[Any, ...]]] = {
    "count": (Count(), (0.0, 1.0, 7.0)),
    "sum": (Sum(_BOUNDS), _SUMS),
    "mean": (Mean(_BOUNDS), _SUMS),
    "variance": (Variance(_BOUNDS), _SUMS[:3]),
    "histogram": (Histogram(edges=(0.0, 1.0, 2.0)), (0.0, 2.0)),
    "median": (order.median(_GRID, 1), _RANKS),
    "quantile": (order.quantile(0.3, _GRID, 1), _RANKS),
    "min": (order.minimum(_GRID, 1), _RANKS),
    "max": (order.maximum(_GRID, 1), _RANKS),
    "kth_largest": (order.kth_largest(2, _GRID, 1), _RANKS),
}
#: Alike, all different, one of them public.
_ROSTERS = ((0.7, 0.7), (0.2, 0.5, 1.0), (0.3, math.inf, 1.0))

#: Of draws: a mechanism that says itself how it draws is waited for by whoever asks for a plan.
_FEW_PAIRS = 8


def approve(kind: Any, statistic: str, neighbors: str, scoped: bool = False) -> bool:
    """Whether a mechanism loses no more than it charges on the stand-in of a statistic, wherever it serves that.

    Who has no value does not count where a statistic from outside is `scoped`, as who does not meet a condition.
    """
    example = STAND_INS.get(statistic) or (CATALOGUE[statistic].example if statistic in CATALOGUE else None)
    if example is None:
        return False
    (stand_in, domain), audited = example, 0
    if neighbors == "replace":  # by no value, too
        domain = (*domain, None)
    try:
        if scoped:
            stand_in = replace(cast(Any, stand_in), scope=Scope())
        for epsilons in _ROSTERS:
            question, mechanism = Question(stand_in, neighbors), kind()
            if why_refused(mechanism, question, roster_of(list(epsilons)).levels) is None:
                claim = claim_of(mechanism, question, epsilons, domain)
                findings = audit_claim(claim, draws=2000, confidence=0.999, pairs=_FEW_PAIRS)
                audited += 1
                if not all(finding.holds for finding in findings):
                    return False
    except Exception:  # it cannot even be looked at
        return False
    return audited > 0


vetting.AUDITORS.append(approve)

"""What "auto" may choose: the package's own, which its tests hold to their word, and from outside what was audited.

Mechanisms and statistics from other packages, or from a notebook, can be asked for by name. Before "auto" may choose
one, an audit runs on small made-up data, once for each pair of the two: rooms above bring it (`AUDITORS`). A statistic
from outside is audited anew where not everybody counts. The audit looks at pure losses. A concentrated account takes
half the square of one for granted, and no less: less is for bounded ranges, which no audit shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from epsilons.measure import ANY_LOSS

if TYPE_CHECKING:
    from epsilons.mechanisms.base import Mechanism
    from epsilons.preferences import Levels
    from epsilons.statistics.base import Question

#: Each says of a mechanism's class, a statistic's name, the neighbours, and whether it is asked of some people only,
#: whether no loss passes what is charged.
AUDITORS: list[Callable[[Any, str, str, bool], bool]] = []
_vetted: dict[tuple[Any, Any, str, bool], bool] = {}


def is_vetted(kind: Any, question: Question, own: bool) -> bool:
    """Whether "auto" may choose a mechanism for a question where one of them is from outside; an `own` statistic is not."""
    if question.measure.delta is not None and question.statistic.loss_factor != ANY_LOSS:
        return False
    statistic, neighbors = question.statistic, question.neighbors
    scoped = statistic.scope is not None and not own
    key = kind, type(statistic), neighbors, scoped
    if key not in _vetted:
        _vetted[key] = bool(AUDITORS) and all(f(kind, statistic.name, neighbors, scoped) for f in AUDITORS)
    return _vetted[key]


def stated_charges(mechanism: Mechanism, question: Question, levels: Levels) -> tuple[int | None, ...]:
    """What a mechanism says that it charges, whether or not that is allowed: for audits, which hold it to that."""
    return tuple(mechanism.charge(question, levels))

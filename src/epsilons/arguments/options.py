"""The options that every question takes besides its own arguments, as data.

Arrays, tables, plans, batches, SQL, commands and estimators all take their options from `OPTIONS`, each of which knows
its type, its default, its check and the fronts that take it; `reading.py` reads calls by them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal, get_args

from epsilons.arguments import checks
from epsilons.arguments.checks import check_error, check_gamma, check_mechanism, check_share, check_threshold
from epsilons.guarantee import NEIGHBORS
from epsilons.measure import check_delta

#: A question's part of everybody's grant, on arrays unless it says otherwise; on tables it follows from how many are
#: planned for, which are so many unless a dataset is registered for others.
WHOLE_SHARE, DEFAULT_QUESTIONS = 1.0, 10
#: The part of a quantile's budget that pays for its interval.
FOR_INTERVAL = 0.4
#: How far preferences may be related to values, unless a caller says otherwise.
DEFAULT_ASSUME = 0.3

ARRAYS, TABLES, BATCHES, QUERIES = "arrays", "tables", "batches", "queries"
_ARRAYS, _TABLES = frozenset({ARRAYS}), frozenset({TABLES, BATCHES, QUERIES})
_EVERYWHERE = _TABLES | _ARRAYS


@dataclass(frozen=True)
class Parameter:
    """One argument of a question: its name, its type, what it is unless given, and one line about it.

    `check` gives the value in one spelling or raises a PlanError; it is not asked about None where None is the default.
    """

    name: str
    annotation: Any
    default: Any
    help: str
    check: Callable[[Any], Any] | None = None
    #: By place as well as by name.
    positional: bool = False
    required: bool = False
    #: The fronts that take it.
    fronts: frozenset[str] = _EVERYWHERE

    @property
    def names(self) -> tuple[str, ...]:
        """The names that its value may have, if it is one of several."""
        kinds = (self.annotation, *get_args(self.annotation))
        return tuple(name for kind in kinds for name in get_args(kind) if isinstance(name, str))


def _choice(
    name: str, names: Iterable[str], default: str | None, help: str, fronts: frozenset[str] = _EVERYWHERE
) -> Parameter:
    """An option that is one of several names."""
    kind: Any = Literal[tuple(names)]
    check = partial(checks.check_name, name, allowed=tuple(names))
    return Parameter(name, kind | None if default is None else kind, default, help, check, fronts=fronts)


def _optional(
    name: str, kind: Any, help: str, check: Callable[[Any], Any] | None = None, fronts: frozenset[str] = _EVERYWHERE
) -> Parameter:
    """An option that is None unless it is given."""
    return Parameter(name, kind | None, None, help, check, fronts=fronts)


def _guess(name: str, help: str) -> Parameter:
    return _optional(name, float, help, partial(checks.check_guess, name))


def _truth(name: str, default: bool | None, help: str, fronts: frozenset[str] = _EVERYWHERE) -> Parameter:
    kind = bool | None if default is None else bool
    return Parameter(name, kind, default, help, partial(checks.check_truth, name), fronts=fronts)


_LIMIT = float | Literal["best", "max", "mean"]
_RELATED = float | Literal["unrelated", "nothing"]
_ASSUME = "No level's expected mean lies further than so many spreads from everyone's; unrelated is 0."
_SHARE = "At most this part of what each person granted; 0.001 at least."
_PLANNED = f"Default: that of as many questions as are planned for the dataset, or {1 / DEFAULT_QUESTIONS:g}."
_FOR_INTERVAL = "For medians and quantiles: the part of the budget that pays for their interval; 0 for none."
_BY = "Groups: the columns, each with its keys; or columns whose keys are registered."
_GROUPS = 'With privacy="group": epsilons of groups of 1, 2, ... people; on arrays instead of personal ones.'
_DELTA = "For many questions or vectors: losses are counted in rho, noise may be Gaussian; 1e-6, say."
_ALONE, _ROWS = frozenset({TABLES}), frozenset({TABLES, BATCHES})

OPTIONS: tuple[Parameter, ...] = (
    Parameter("mechanism", str, "auto", "Which mechanism answers; auto takes the best of the plan.", check_mechanism),
    _optional("threshold", _LIMIT, "For threshold and sample: a number, max, mean, best (default).", check_threshold),
    _truth("rescale", None, "Whether to make up for what a mechanism leaves out."),
    _choice(
        "neighbors", NEIGHBORS, "absent", "Protection against data without a person, or with other values.", _ARRAYS
    ),
    Parameter("assume", _RELATED, DEFAULT_ASSUME, _ASSUME, checks.check_assume),
    _guess("spread", "Public guess of the standard deviation; guesses steer plans, never the guarantee."),
    _guess("density", "Public guess of the part of people who count."),
    _guess("location", "Public guess of the mean."),
    Parameter("for_interval", float, FOR_INTERVAL, _FOR_INTERVAL, checks.check_for_interval),
    _choice("privacy", checks.PRIVACIES, "personalized", "individual and group are weaker: individual DP is not DP."),
    _optional("group_epsilons", Sequence[float], _GROUPS),
    _choice("scale", checks.SCALES, None, "For smooth-sensitivity: which scale of its noise."),
    _optional("gamma", int, "For smooth-sensitivity: the power of its noise's tails.", check_gamma),
    _choice("inside", checks.INSIDE, None, "For smooth-sensitivity: how it treats different epsilons."),
    Parameter("share", float, WHOLE_SHARE, _SHARE, check_share, fronts=_ARRAYS),
    _optional("share", float, f"{_SHARE} {_PLANNED}", check_share, _ALONE),
    _optional("error", float, "Instead of a share: the error that it is to reach.", check_error, _ALONE),
    _optional("where", str, "A condition, such as \"age >= 18 AND region IN ('north', 'south')\".", fronts=_ROWS),
    _optional("by", Mapping[str, Any] | Sequence[str], _BY, fronts=_ROWS),
    _choice("missing", ("exclude", "center"), None, "What becomes of missing values: exclude (default), center."),
    _truth("complete", False, "Your word that nothing is missing; a value that is stands at the centre."),
    _truth("fresh", False, "Ask anew and pay, also if it was asked before.", _TABLES),
    _optional("analyst", str, "Who asks, for quotas: for fairness only.", checks.check_analyst, _TABLES),
    _optional("delta", float, _DELTA, check_delta, _ARRAYS),
    Parameter("entropy", Any, None, "For tests: another source of random bits.", checks.check_entropy),
)


@cache
def options_of(front: str) -> Mapping[str, Parameter]:
    """The options that a front takes, by name and in order."""
    return {option.name: option for option in OPTIONS if front in option.fronts}

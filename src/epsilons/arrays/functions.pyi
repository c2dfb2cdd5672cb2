"""The functions on arrays. Written by `make signatures`: change the catalogue, not this file."""

from collections.abc import Hashable, Sequence
from typing import Any, Literal, TypedDict, Unpack

from epsilons.accuracy.relation import Relation
from epsilons.noise.entropy import Entropy
from epsilons.planner.plan import Plan
from epsilons.release import Release
from epsilons.statistics.entry import Bounds

Mechanism = (
    Literal["auto", "exponential", "weighted", "minimum", "mixed", "robust", "threshold", "sample"]
    | Literal["smooth-sensitivity", "stretching", "local-sensitivity"]
    | str
)
Statistic = (
    Literal["count", "sum", "mean", "variance", "median", "quantile", "min", "max", "kth_largest", "histogram"]
    | Literal["linear_regression", "logistic_regression", "covariance", "correlation", "mode", "top"]
    | str
)
Step = float | None

class SharedOptions(TypedDict, total=False):
    """Options of every question, with their defaults."""

    mechanism: Mechanism  # "auto"
    threshold: float | Literal["best", "max", "mean"] | None  # None
    rescale: bool | None  # None
    assume: float | Literal["unrelated", "nothing"]  # 0.3
    spread: float | None  # None
    density: float | None  # None
    location: float | None  # None
    for_interval: float  # 0.4
    privacy: Literal["personalized", "individual", "group"]  # "personalized"
    group_epsilons: Sequence[float] | None  # None
    scale: Literal["tight", "paper"] | None  # None
    gamma: int | None  # None
    inside: Literal["minimum", "threshold", "sample"] | None  # None
    missing: Literal["exclude", "center"] | None  # None
    complete: bool  # False
    entropy: Entropy | None  # None

class Options(SharedOptions, total=False):
    """Options of questions on arrays."""

    neighbors: Literal["absent", "replace"]  # "absent"
    share: float  # 1.0
    delta: float | None  # None

class PlanOptions(Options, total=False):
    """Plans take what their statistic takes."""

    error: float | None  # None
    people: int | None  # None
    bounds: Bounds  # None
    step: float | None  # None
    q: float | Sequence[float]
    k: int  # 2
    edges: Sequence[float] | dict[str, list[Any]] | None  # None
    categories: Sequence[Hashable] | None  # None
    outside: Literal["drop", "clip"]  # "drop"
    bounds_X: Any  # None
    bounds_y: Bounds  # None
    features: Sequence[str] | None  # None
    classes: Sequence[Any]  # (0, 1)
    bounds_x: Bounds  # None
    among: Sequence[Hashable] | None  # None

__all__ = ["correlation", "count", "covariance", "histogram", "kth_largest", "linear_regression"]
__all__ += ["logistic_regression", "max", "mean", "median", "min", "mode", "plan", "quantile", "relation"]
__all__ += ["sum", "top", "variance"]

def count(values: Any, epsilons: Any = None, **options: Unpack[Options]) -> Release: ...
def sum(values: Any, epsilons: Any = None, *, bounds: Bounds = None, **options: Unpack[Options]) -> Release: ...
def mean(values: Any, epsilons: Any = None, *, bounds: Bounds = None, **options: Unpack[Options]) -> Release: ...
def variance(values: Any, epsilons: Any = None, *, bounds: Bounds = None, **options: Unpack[Options]) -> Release: ...
def median(
    values: Any, epsilons: Any = None, *, bounds: Bounds = None, step: Step = None, **options: Unpack[Options]
) -> Release: ...
def quantile(
    values: Any,
    epsilons: Any,
    q: float | Sequence[float],
    *,
    bounds: Bounds = None,
    step: Step = None,
    **options: Unpack[Options],
) -> Release: ...
def min(
    values: Any, epsilons: Any = None, *, bounds: Bounds = None, step: Step = None, **options: Unpack[Options]
) -> Release: ...
def max(
    values: Any, epsilons: Any = None, *, bounds: Bounds = None, step: Step = None, **options: Unpack[Options]
) -> Release: ...
def kth_largest(
    values: Any,
    epsilons: Any = None,
    k: int = 2,
    *,
    bounds: Bounds = None,
    step: Step = None,
    **options: Unpack[Options],
) -> Release: ...
def histogram(
    values: Any,
    epsilons: Any = None,
    *,
    edges: Sequence[float] | dict[str, list[Any]] | None = None,
    categories: Sequence[Hashable] | None = None,
    outside: Literal["drop", "clip"] = "drop",
    **options: Unpack[Options],
) -> Release: ...
def linear_regression(
    X: Any,
    y: Any,
    epsilons: Any = None,
    *,
    bounds_X: Any = None,
    bounds_y: Bounds = None,
    features: Sequence[str] | None = None,
    **options: Unpack[Options],
) -> Release: ...
def logistic_regression(
    X: Any,
    y: Any,
    epsilons: Any = None,
    *,
    bounds_X: Any = None,
    classes: Sequence[Any] = (0, 1),
    features: Sequence[str] | None = None,
    **options: Unpack[Options],
) -> Release: ...
def covariance(
    X: Any,
    y: Any,
    epsilons: Any = None,
    *,
    bounds_x: Bounds = None,
    bounds_y: Bounds = None,
    **options: Unpack[Options],
) -> Release: ...
def correlation(
    X: Any,
    y: Any,
    epsilons: Any = None,
    *,
    bounds_x: Bounds = None,
    bounds_y: Bounds = None,
    **options: Unpack[Options],
) -> Release: ...
def mode(
    values: Any, epsilons: Any = None, *, among: Sequence[Hashable] | None = None, **options: Unpack[Options]
) -> Release: ...
def top(
    values: Any,
    epsilons: Any = None,
    k: int = 3,
    *,
    among: Sequence[Hashable] | None = None,
    **options: Unpack[Options],
) -> Release: ...
def plan(statistic: Statistic, epsilons: Any = None, **options: Unpack[PlanOptions]) -> Plan: ...
def relation(values: Any, epsilons: Any = None, *, bounds: Bounds = None, **options: Unpack[Options]) -> Relation: ...

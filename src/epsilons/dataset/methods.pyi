"""The statistics as methods. Written by `make signatures`: change the catalogue, not this file."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, Unpack

from epsilons.arrays.functions import SharedOptions, Statistic, Step
from epsilons.dataset.batch import Pending
from epsilons.planner.plan import Plan
from epsilons.release import Release
from epsilons.statistics.entry import Bounds

ColumnBounds = Mapping[str, tuple[float, float]] | None

class TableOptions(SharedOptions, total=False):
    where: str | None  # None
    by: Mapping[str, Any] | Sequence[str] | None  # None
    fresh: bool  # False
    analyst: str | None  # None

class Options(TableOptions, total=False):
    share: float | None  # None
    error: float | None  # None

class BatchOptions(TableOptions, total=False):
    name: str | None  # None

class PlanOptions(Options, total=False):
    past: bool  # True
    of: Literal["people", "rows"] | None  # None
    bounds: tuple[float, float] | Mapping[str, tuple[float, float]] | None  # None
    step: float | None  # None
    q: float | Sequence[float]
    k: int  # 2
    edges: Sequence[float] | dict[str, list[Any]] | None  # None
    categories: Sequence[Hashable] | None  # None
    outside: Literal["drop", "clip"]  # "drop"
    features: Sequence[str]
    classes: Sequence[Any]  # (0, 1)
    other: str
    among: Sequence[Hashable] | None  # None
    total: str | None  # None

class Questions:
    def count(
        self, column: str | None = None, *, of: Literal["people", "rows"] | None = None, **options: Unpack[Options]
    ) -> Release: ...
    def sum(self, column: str, *, bounds: Bounds = None, **options: Unpack[Options]) -> Release: ...
    def mean(self, column: str, *, bounds: Bounds = None, **options: Unpack[Options]) -> Release: ...
    def variance(self, column: str, *, bounds: Bounds = None, **options: Unpack[Options]) -> Release: ...
    def median(
        self, column: str, *, bounds: Bounds = None, step: Step = None, **options: Unpack[Options]
    ) -> Release: ...
    def quantile(
        self,
        column: str,
        q: float | Sequence[float],
        *,
        bounds: Bounds = None,
        step: Step = None,
        **options: Unpack[Options],
    ) -> Release: ...
    def min(self, column: str, *, bounds: Bounds = None, step: Step = None, **options: Unpack[Options]) -> Release: ...
    def max(self, column: str, *, bounds: Bounds = None, step: Step = None, **options: Unpack[Options]) -> Release: ...
    def kth_largest(
        self, column: str, k: int = 2, *, bounds: Bounds = None, step: Step = None, **options: Unpack[Options]
    ) -> Release: ...
    def histogram(
        self,
        column: str,
        *,
        edges: Sequence[float] | dict[str, list[Any]] | None = None,
        categories: Sequence[Hashable] | None = None,
        outside: Literal["drop", "clip"] = "drop",
        **options: Unpack[Options],
    ) -> Release: ...
    def linear_regression(
        self, target: str, features: Sequence[str], *, bounds: ColumnBounds = None, **options: Unpack[Options]
    ) -> Release: ...
    def logistic_regression(
        self,
        target: str,
        features: Sequence[str],
        *,
        classes: Sequence[Any] = (0, 1),
        bounds: ColumnBounds = None,
        **options: Unpack[Options],
    ) -> Release: ...
    def covariance(
        self, target: str, other: str, *, bounds: ColumnBounds = None, **options: Unpack[Options]
    ) -> Release: ...
    def correlation(
        self, target: str, other: str, *, bounds: ColumnBounds = None, **options: Unpack[Options]
    ) -> Release: ...
    def mode(self, column: str, *, among: Sequence[Hashable] | None = None, **options: Unpack[Options]) -> Release: ...
    def top(
        self,
        column: str,
        k: int = 3,
        *,
        among: Sequence[Hashable] | None = None,
        total: str | None = None,
        bounds: Bounds = None,
        **options: Unpack[Options],
    ) -> Release: ...
    def plan(self, statistic: Statistic, column: str | None = None, **options: Unpack[PlanOptions]) -> Plan: ...

class BatchQuestions:
    def count(
        self, column: str | None = None, *, of: Literal["people", "rows"] | None = None, **options: Unpack[BatchOptions]
    ) -> Pending: ...
    def sum(self, column: str, *, bounds: Bounds = None, **options: Unpack[BatchOptions]) -> Pending: ...
    def mean(self, column: str, *, bounds: Bounds = None, **options: Unpack[BatchOptions]) -> Pending: ...
    def variance(self, column: str, *, bounds: Bounds = None, **options: Unpack[BatchOptions]) -> Pending: ...
    def median(
        self, column: str, *, bounds: Bounds = None, step: Step = None, **options: Unpack[BatchOptions]
    ) -> Pending: ...
    def quantile(
        self,
        column: str,
        q: float | Sequence[float],
        *,
        bounds: Bounds = None,
        step: Step = None,
        **options: Unpack[BatchOptions],
    ) -> Pending: ...
    def min(
        self, column: str, *, bounds: Bounds = None, step: Step = None, **options: Unpack[BatchOptions]
    ) -> Pending: ...
    def max(
        self, column: str, *, bounds: Bounds = None, step: Step = None, **options: Unpack[BatchOptions]
    ) -> Pending: ...
    def kth_largest(
        self, column: str, k: int = 2, *, bounds: Bounds = None, step: Step = None, **options: Unpack[BatchOptions]
    ) -> Pending: ...
    def histogram(
        self,
        column: str,
        *,
        edges: Sequence[float] | dict[str, list[Any]] | None = None,
        categories: Sequence[Hashable] | None = None,
        outside: Literal["drop", "clip"] = "drop",
        **options: Unpack[BatchOptions],
    ) -> Pending: ...
    def linear_regression(
        self, target: str, features: Sequence[str], *, bounds: ColumnBounds = None, **options: Unpack[BatchOptions]
    ) -> Pending: ...
    def logistic_regression(
        self,
        target: str,
        features: Sequence[str],
        *,
        classes: Sequence[Any] = (0, 1),
        bounds: ColumnBounds = None,
        **options: Unpack[BatchOptions],
    ) -> Pending: ...
    def covariance(
        self, target: str, other: str, *, bounds: ColumnBounds = None, **options: Unpack[BatchOptions]
    ) -> Pending: ...
    def correlation(
        self, target: str, other: str, *, bounds: ColumnBounds = None, **options: Unpack[BatchOptions]
    ) -> Pending: ...
    def mode(
        self, column: str, *, among: Sequence[Hashable] | None = None, **options: Unpack[BatchOptions]
    ) -> Pending: ...
    def top(
        self,
        column: str,
        k: int = 3,
        *,
        among: Sequence[Hashable] | None = None,
        total: str | None = None,
        bounds: Bounds = None,
        **options: Unpack[BatchOptions],
    ) -> Pending: ...

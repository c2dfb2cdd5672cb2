"""How much of a test `make test` runs, and how much `make soak`: the long form is the same test, marked `soak`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import settings


def short_and_long(short: Any, long: Any) -> list[Any]:
    """Two values of one parameter, as a number of draws or people: a small one, and the full one for the long run."""
    return [pytest.param(short, id="short"), pytest.param(long, id="long", marks=pytest.mark.soak)]


def examples(short: int) -> settings:
    """So many made-up inputs; in the long run as many as its profile says."""
    return settings() if settings.get_current_profile_name() == "soak" else settings(max_examples=short)


def some(cases: Iterable[Any], short: Callable[[Any], bool]) -> list[Any]:
    """All cases, those that are not `short` for the long run only. A case of several parameters is a tuple."""
    return [case if short(case) else _long(case) for case in cases]


def _long(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.soak)

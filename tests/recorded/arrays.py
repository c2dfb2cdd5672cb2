"""What is asked of arrays: every statistic and mechanism, options, values of every kind, plans, and refusals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

import epsilons as eps
from recorded.outcomes import (
    Case,
    Outcome,
    attempt,
    digest,
    entropy_of,
    on_ladder,
    plan_outcome,
    release_outcome,
    rounded,
    short,
)

N = 60
MECHANISMS = (
    "auto", "minimum", "threshold", "sample", "stretching", "exponential", "mixed", "weighted", "robust",
    "smooth-sensitivity", "local-sensitivity",
)  # fmt: skip
_SUMS = ("auto", "minimum", "threshold", "sample", "stretching", "mixed", "weighted", "robust")
_ORDER = ("auto", "minimum", "threshold", "sample", "exponential", "mixed", "weighted", "smooth-sensitivity")
_EXTREMES = ("auto", "minimum", "threshold", "sample", "exponential", "smooth-sensitivity")
_CELLS = ("auto", "minimum", "threshold", "sample", "stretching", "weighted", "robust")
_SQUARES = ("auto", "minimum", "threshold", "sample", "stretching", "weighted")
#: Which mechanisms answer which statistic today.
SERVES = {
    "count": (*_SUMS, "exponential"),
    "sum": _SUMS,
    "mean": _SUMS,
    "variance": _SQUARES,
    "median": _ORDER,
    "quantile": _ORDER,
    "min": _EXTREMES,
    "max": _EXTREMES,
    "kth_largest": _EXTREMES,
    "bins": _CELLS,
    "categories": _CELLS,
    "linear_regression": _SQUARES,
    "logistic_regression": _SQUARES,
}
MODELS = ("linear_regression", "logistic_regression")

#: The arguments of each statistic but values and epsilons; tables have questions without the word that all is there.
_ALL: dict[str, Any] = {"complete": True}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "count": {},
    "sum": {"bounds": (0, 100), **_ALL},
    "mean": {"bounds": (0, 100), **_ALL},
    "variance": {"bounds": (0, 100), **_ALL},
    "median": {"bounds": (0, 100), **_ALL},
    "quantile": {"q": 0.3, "bounds": (0, 100), "step": 1, **_ALL},
    "min": {"bounds": (0, 100), "step": 0.5, **_ALL},
    "max": {"bounds": (-10, 120), "step": 1, **_ALL},
    "kth_largest": {"k": 3, "bounds": (0, 100), "step": 0.25, **_ALL},
    "bins": {"edges": [0, 25, 50, 100]},
    "categories": {"categories": ["a", "b", "c"]},
    "linear_regression": {"bounds_X": ([0, 0], [20, 6]), "bounds_y": (0, 100)},
    "logistic_regression": {"bounds_X": (0, 20), "classes": ("no", "yes")},
}
STATISTICS = tuple(ARGUMENTS)


def numbers(n: int = N) -> list[float]:
    return [round((37 * i) % 101 * 0.97 + (i % 7) * 0.1, 2) for i in range(n)]


def ones(n: int = N) -> list[int]:
    return [int((5 * i) % 8 < 3) for i in range(n)]


def words(n: int = N) -> list[str]:
    return ["aabcbd"[(i * i) % 6] for i in range(n)]


def features(n: int = N) -> list[list[float]]:
    return [[(13 * i) % 21, (7 * i) % 6 + 0.5] for i in range(n)]


def values_of(statistic: str, n: int = N) -> tuple[Any, ...]:
    """The values (or features and target) that a statistic is asked about."""
    if statistic == "linear_regression":
        return features(n), [3 * a - 2 * b + 20 + i % 9 for i, (a, b) in enumerate(features(n))]
    if statistic == "logistic_regression":
        return features(n), ["yes" if a + i % 5 > 11 else "no" for i, (a, _) in enumerate(features(n))]
    return ({"count": ones, "categories": words}.get(statistic, numbers)(n),)


def rosters() -> dict[str, Any]:
    """Who granted what: a few levels, one level, many levels with public people, more levels than are kept apart."""
    many = [0.05, 0.1, 0.2, 0.25, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, eps.PUBLIC]
    return {
        "few": [(0.1, 0.5, 2.0)[(i * i + i // 7) % 3] for i in range(N)],
        "one": 0.7,
        "many": [many[(5 * i + i // 11) % 12] for i in range(N)],
        "fine": [0.1 + 0.0131 * ((77 * i) % 300) for i in range(300)],
        "named": eps.Preferences.from_levels(
            [("strict", "standard", "open", "public")[(3 * i + i // 5) % 4] for i in range(N)],
            {"strict": 0.05, "standard": 0.4, "open": 1.5, "public": eps.PUBLIC},
        ),
        "public": eps.PUBLIC,
    }


def people_of(roster: str) -> int:
    return 300 if roster == "fine" else N


def ask(statistic: str, given: tuple[Any, ...], epsilons: Any, **options: Any) -> Any:
    """One call of the public function."""
    function = getattr(eps, {"bins": "histogram", "categories": "histogram"}.get(statistic, statistic))
    arguments = {**ARGUMENTS[statistic], **options}
    if statistic == "quantile" and "q" in arguments:
        return function(*given, epsilons, arguments.pop("q"), **arguments)
    return function(*given, epsilons, **arguments)


def asked(front: str, name: str, statistic: str, roster: str = "few", **options: Any) -> Case:
    """A case of one call; among the options `values` and `epsilons` replace those of the roster."""
    full = f"{front}/{statistic}/{name}"
    given, granted = options.pop("values", None), options.pop("epsilons", roster)

    def run(_: Any) -> Outcome:
        def do() -> Outcome:
            epsilons = rosters()[roster] if granted is roster else granted
            values = values_of(statistic, people_of(roster)) if given is None else given() if callable(given) else given
            values = values if isinstance(values, tuple) else (values,)
            release = ask(statistic, values, epsilons, **{"entropy": entropy_of(full), **options})
            return release_outcome(release, statistic in MODELS)

        return attempt(do)

    return Case(full, run)


# Answers -------------------------------------------------------------------------------------------------------------


def answers() -> Iterator[Case]:
    """Every statistic by every mechanism, for both neighbours and assumptions, on several rosters."""
    for statistic in STATISTICS:
        for mechanism in MECHANISMS:
            if mechanism not in SERVES[statistic]:
                yield asked("arrays", f"few {mechanism}", statistic, mechanism=mechanism)
                continue
            for neighbors, assume in itertools.product(("absent", "replace"), ("unrelated", "nothing")):
                manner = {"mechanism": mechanism, "neighbors": neighbors, "assume": assume}
                yield asked("arrays", f"few {mechanism} {neighbors} {assume}", statistic, **manner)
            for roster in ("one", "many", "fine"):
                yield asked("arrays", f"{roster} {mechanism}", statistic, roster, mechanism=mechanism)
            manner = {"mechanism": mechanism, "neighbors": "replace", "assume": "nothing"}
            yield asked("arrays", f"named {mechanism} replace nothing", statistic, "named", **manner)
        yield asked("arrays", "public", statistic, "public")
        yield asked("arrays", "public replace", statistic, "public", neighbors="replace", assume="nothing")


def options() -> Iterator[Case]:
    """Thresholds, rescaling, guesses, the options of smooth sensitivity, and weaker kinds of privacy."""
    for statistic in ("count", "mean", "variance", "median", "bins", "linear_regression"):
        for mechanism in ("threshold", "sample", "auto"):
            for threshold in ("max", "mean", "best", 0.5) if mechanism != "auto" else ("mean", 0.5):
                manner = {"mechanism": mechanism, "threshold": threshold}
                yield asked("options", f"{mechanism} threshold {threshold}", statistic, **manner)
        yield asked("options", "sample many mean", statistic, "many", mechanism="sample", threshold="mean")
        yield asked("options", "threshold fine best", statistic, "fine", mechanism="threshold", threshold="best")
    for statistic in ("count", "sum", "mean", "variance", "bins", "median", "linear_regression"):
        for mechanism in ("auto", "threshold", "sample", "stretching"):
            for rescale in (True, False):
                manner = {"mechanism": mechanism, "rescale": rescale}
                yield asked("options", f"{mechanism} rescale {rescale}", statistic, **manner)
    guesses: list[dict[str, Any]] = [
        {"spread": 5}, {"spread": 40.0}, {"density": 0.05}, {"density": 0.9}, {"location": 20},
        {"spread": 10, "location": 80.5}, {"density": Fraction(1, 3)},
    ]  # fmt: skip
    for statistic in ("count", "sum", "mean", "variance", "median", "bins"):
        for guess in guesses:
            label = " ".join(f"{name}={value}" for name, value in guess.items())
            yield asked("options", f"auto {label}", statistic, **guess)
            yield asked("options", f"many weighted {label}", statistic, "many", mechanism="weighted", **guess)
    for statistic in ("sum", "mean", "bins", "count"):
        for mechanism in ("robust", "stretching", "mixed", "threshold"):
            yield asked("options", f"{mechanism} spread 8", statistic, "many", mechanism=mechanism, spread=8)
            yield asked("options", f"{mechanism} density .2", statistic, "many", mechanism=mechanism, density=0.2)
    for statistic in ("median", "quantile", "kth_largest"):
        for settings in _smooth():
            label = " ".join(f"{name}={value}" for name, value in settings.items())
            manner = {"mechanism": "smooth-sensitivity", **settings}
            yield asked("options", f"smooth {label}", statistic, "many", **manner)
    for q in (0, 0.01, 0.25, 0.5, 0.9, 1):
        for mechanism in ("auto", "weighted", "mixed", "exponential"):
            yield asked("options", f"q={q} {mechanism}", "quantile", "many", q=q, mechanism=mechanism)
    for k in (1, 2, 10, 59, 60):
        yield asked("options", f"k={k}", "kth_largest", k=k)
        yield asked("options", f"k={k} sample", "kth_largest", "many", k=k, mechanism="sample")
    for step in (1, 0.1, 7, 33, 99, 0.003):
        for statistic in ("median", "min", "max"):
            yield asked("options", f"step={step}", statistic, step=step)
    for pair in ((-1, 1), (0, 1e6), (1e-9, 2e-9), (-1e25, 1e25), (50, 50.5), (-100, 0)):
        for statistic in ("sum", "mean", "variance", "median", "max"):
            grid = {"step": None} if statistic in ("median", "max") else {}
            yield asked("options", f"bounds={pair}", statistic, "many", bounds=pair, **grid)
    for edges in ([0, 1], [-math.inf, 0, math.inf], [0, 50, 60], list(range(0, 101, 2)), (0.5, 20.25), np.arange(4)):
        for outside in ("drop", "clip"):
            yield asked("options", f"edges {len(edges)} {edges[-1]} {outside}", "bins", edges=edges, outside=outside)
    for categories in (["a"], ["c", "b", "a", "x"], ("a", 1, None), [1, 2.0, "3"], [True, False], range(3)):
        yield asked("options", f"categories {categories!r}", "categories", categories=categories)


def _smooth() -> Iterator[dict[str, Any]]:
    for gamma in (2, 3, 20):
        yield {"gamma": gamma}
    for gamma in (2, 6):
        yield {"gamma": gamma, "scale": "paper"}
    for inside in ("minimum", "threshold", "sample"):
        yield {"inside": inside}
        yield {"inside": inside, "threshold": "mean"}
        yield {"inside": inside, "threshold": 0.5, "scale": "paper"}


def weaker() -> Iterator[Case]:
    """Individual and group privacy, also for functions of one's own."""
    for statistic in STATISTICS:
        for neighbors in ("absent", "replace"):
            for roster in ("few", "many") if neighbors == "replace" else ("few",):
                manner = {"privacy": "individual", "neighbors": neighbors}
                yield asked("individual", f"{roster} {neighbors}", statistic, roster, **manner)
        for groups in ([1.0], [1.0, 0.5], [0.3, 0.3, 0.2], (2,)):
            manner = {"privacy": "group", "group_epsilons": groups}
            yield asked("individual", f"groups {groups}", statistic, epsilons=None, **manner)
        yield asked("individual", "by name", statistic, privacy="individual", mechanism="local-sensitivity")
        yield asked("individual", "by another name", statistic, privacy="individual", mechanism="minimum")
    for k in (1, 2, 5, 30, 59, 60):
        manner = {"bounds": None, "privacy": "individual", "k": k, "step": 1}
        yield asked("individual", f"no bounds k={k}", "kth_largest", **manner)
        grouped = {"bounds": None, "privacy": "group", "k": k, "group_epsilons": [1.0, 0.5], "step": None}
        yield asked("individual", f"no bounds groups k={k}", "kth_largest", epsilons=None, **grouped)
    functions: dict[str, tuple[Any, Any, Any, Any]] = {
        "max": (max, 1.0, 10, 1),
        "range": (lambda v: max(v) - min(v), [0.5, 1.0, eps.PUBLIC] * 20, lambda v: 3.5, 0.5),
        "each": (lambda v: float(np.sum(v)), [0.5, 1.0, 2.0] * 20, lambda v: np.abs(v), 0.01),
        "nothing to hide": (lambda v: 7, 1.0, 0, 1),
        "public": (max, eps.PUBLIC, 10, 1),
        "fails": (lambda v: v.nonsense, 1.0, 1, 1),
        "not finite": (lambda v: math.nan, 1.0, 1, 1),
        "not a function": (3, 1.0, 1, 1),
        "negative": (max, 1.0, -1, 1),
        "wrong length": (max, 1.0, [1, 2], 1),
        "sensitivity fails": (max, 1.0, lambda v: v.nonsense, 1),
        "step zero": (max, 1.0, 1, 0),
        "step word": (max, 1.0, 1, "a"),
        "wrong roster": (max, [1.0, 2.0], 1, 1),
        "fine roster": (lambda v: float(np.mean(v)), [0.1 + i / 1000 for i in range(N)], 1.5, 0.125),
    }
    for name, (function, epsilons, sensitivity, step) in functions.items():
        yield _individually(f"individual/function/{name}", function, epsilons, sensitivity, step)


def _individually(full: str, function: Any, epsilons: Any, sensitivity: Any, step: Any) -> Case:
    def do() -> Outcome:
        options = {"sensitivity": sensitivity, "step": step, "entropy": entropy_of(full)}
        return release_outcome(eps.individually(function, numbers(), epsilons, **options))

    return Case(full, lambda _: attempt(do))


def personal() -> Iterator[Case]:
    """Any private algorithm made personal."""

    def length(data: Any, epsilon: float) -> list[Any]:
        return [len(data), epsilon]

    def shapes(data: Any, epsilon: float) -> list[Any]:
        return [type(data).__name__, repr(np.asarray(data[0] if isinstance(data, tuple) else data).tolist()[:6])]

    def fails(data: Any, epsilon: float) -> None:
        raise ValueError("private")

    def by_name(data: Any, *, epsilon: float) -> float:
        return epsilon

    plain: dict[str, Any] = {"data": numbers(), "epsilons": "few"}
    owners = [i // 2 for i in range(N)]
    per_person = {i: (0.1, 0.5, 2.0)[i % 3] for i in range(N)}
    tried: dict[str, tuple[Any, dict[str, Any]]] = {
        "length": (length, plain),
        "length many": (length, {**plain, "epsilons": "many"}),
        "length fine": (length, {"data": numbers(300), "epsilons": "fine"}),
        "replace": (length, {**plain, "neighbors": "replace"}),
        "replace both": (length, {**plain, "neighbors": "replace", "private_under": "both"}),
        "under absent": (length, {**plain, "private_under": "absent"}),
        "under replace": (length, {**plain, "private_under": "replace"}),
        "under nonsense": (length, {**plain, "private_under": "nonsense"}),
        "mean": (length, {**plain, "threshold": "mean"}),
        "number": (length, {**plain, "threshold": 0.5}),
        "beyond": (length, {**plain, "threshold": 50}),
        "best": (length, {**plain, "threshold": "best"}),
        "list": (shapes, plain),
        "array": (shapes, {**plain, "data": np.array(numbers())}),
        "matrix": (shapes, {**plain, "data": np.array(features())}),
        "pair": (shapes, {**plain, "data": (features(), numbers())}),
        "uneven": (shapes, {**plain, "data": (features(), numbers(7))}),
        "mapping": (shapes, {**plain, "data": {"a": 1}}),
        "word": (shapes, {**plain, "data": "words"}),
        "fails": (fails, plain),
        "by name": (by_name, plain),
        "not an algorithm": (7, plain),
        "public": (length, {**plain, "epsilons": "public"}),
        "rows": (length, {**plain, "person": owners, "rows_per_person": 1, "epsilons": per_person}),
        "two rows": (length, {**plain, "person": owners, "rows_per_person": 2, "epsilons": per_person}),
        "rows aligned": (length, {**plain, "person": owners, "rows_per_person": 2}),
        "rows without ids": (length, {**plain, "rows_per_person": 2}),
        "rows zero": (length, {**plain, "person": owners, "rows_per_person": 0}),
        "neighbours": (length, {**plain, "neighbors": "nobody"}),
        "entropy": (length, {**plain, "entropy": 7}),
        "too short": (length, {**plain, "data": [1, 2, 3]}),
    }
    for name, (algorithm, given) in tried.items():
        yield _personalized(f"personalize/{name}", algorithm, dict(given))


def _personalized(full: str, algorithm: Any, given: dict[str, Any]) -> Case:
    def do() -> Outcome:
        options = {"entropy": entropy_of(full), **given}
        data, epsilons = options.pop("data"), options.pop("epsilons")
        epsilons = rosters()[epsilons] if isinstance(epsilons, str) else epsilons
        return release_outcome(eps.personalize(algorithm, data, epsilons, **options))

    return Case(full, lambda _: attempt(do))


# Values and refusals -------------------------------------------------------------------------------------------------


def strange_values() -> Iterator[Case]:
    """Values of every kind, most of which are taken as they are."""
    kinds: dict[str, Callable[[], Any]] = {
        "missing": lambda: [math.nan if i % 5 == 0 else v for i, v in enumerate(numbers())],
        "none": lambda: [None if i % 4 == 0 else v for i, v in enumerate(numbers())],
        "all missing": lambda: [None] * N,
        "beyond": lambda: [v * 10 - 200 for v in numbers()],
        "infinite": lambda: [(math.inf, -math.inf, 3.0)[i % 3] for i in range(N)],
        "ints": lambda: [int(v) for v in numbers()],
        "bools": lambda: [v > 30 for v in numbers()],
        "large ints": lambda: [10 ** (i % 40) for i in range(N)],
        "numpy": lambda: np.array(numbers()),
        "float32": lambda: np.array(numbers(), np.float32),
        "int8": lambda: np.array([int(v) for v in numbers()], np.int8),
        "truths": lambda: np.array([v > 30 for v in numbers()]),
        "decimals": lambda: [Decimal(str(v)) for v in numbers()],
        "fractions": lambda: [Fraction(str(v)) for v in numbers()],
        "words": words,
        "numerals": lambda: [str(v) for v in numbers()],
        "complex": lambda: [complex(v, 1) for v in numbers()],
        "mixed": lambda: [(1, "a", None, 2.5, True)[i % 5] for i in range(N)],
        "objects": lambda: [object()] * N,
        "lists": lambda: [[v] for v in numbers()],
        "table": lambda: np.ones((N, 2)),
        "tuple": lambda: (tuple(numbers()),),
        "range": lambda: range(N),
        "generator": lambda: (v for v in numbers()),
        "set": lambda: set(range(N)),
        "dict": lambda: dict(enumerate(numbers())),
        "word": lambda: "a" * N,
        "empty": list,
        "short": lambda: numbers(7),
        "long": lambda: numbers(N + 1),
        "nothing": lambda: None,
        "number": lambda: 3.5,
        "zeros": lambda: [0.0] * N,
        "negative zeros": lambda: [-0.0] * N,
    }
    for name, make in kinds.items():
        if name in (
            "generator",
            "set",
            "dict",
            "word",
            "empty",
            "short",
            "long",
            "nothing",
            "number",
            "lists",
            "table",
        ):
            about: tuple[str, ...] = ("count", "mean", "median", "categories")
        else:
            about = ("count", "mean", "variance", "median", "bins", "categories")
        for statistic in about:
            yield asked("values", name, statistic, values=make)
    for statistic in ("count", "mean", "median", "kth_largest"):
        for values, epsilons in (([5], [1.0]), ([1, 0], [0.5, 1.0]), ([1], [eps.PUBLIC]), ([], []), ([1, 1, 1], 1.0)):
            yield asked("values", f"tiny {len(values)} {epsilons}", statistic, epsilons=epsilons, values=(values,))
    yield from _strange_rows()


def _strange_rows() -> Iterator[Case]:
    good = features()
    kinds: dict[str, Callable[[], Any]] = {
        "missing features": lambda: ([[None if i % 6 == 0 else a, b] for i, (a, b) in enumerate(good)], numbers()),
        "missing target": lambda: (good, [math.nan if i % 6 == 0 else v for i, v in enumerate(numbers())]),
        "one feature": lambda: ([[a] for a, _ in good], numbers()),
        "flat": lambda: ([a for a, _ in good], numbers()),
        "ragged": lambda: ([[1], [1, 2]] * 30, numbers()),
        "three features": lambda: ([[a, b, 1] for a, b in good], numbers()),
        "words": lambda: ([["a", "b"]] * N, numbers()),
        "targets of words": lambda: (good, words()),
        "array": lambda: (np.array(good), np.array(numbers())),
        "short target": lambda: (good, numbers(7)),
        "empty": lambda: ([], []),
        "constant": lambda: ([[1.0, 2.0]] * N, [1.0] * N),
        "classes": lambda: (good, ["yes" if i % 3 else "maybe" for i in range(N)]),
    }
    for name, make in kinds.items():
        for statistic in MODELS:
            yield asked("values", name, statistic, values=make)
    for statistic in MODELS:
        for features_given in (["a", "b"], ["a"], ["a", "a"], "ab", ["intercept", "b"], [1, 2], ("age", "wage")):
            yield asked("values", f"names {features_given!r}", statistic, features=features_given)
        for pair in (
            None,
            (0, 1),
            ([0, 0], [20, 6]),
            ([0], [20]),
            ([0, 0, 0], [1, 1, 1]),
            (20, 0),
            (0, math.inf),
            "ab",
            7,
        ):
            yield asked("values", f"bounds {pair!r}", statistic, bounds_X=pair)
    for pair in (None, (0, 50), (5, 5), (9, 1), "ab", (0, math.nan)):
        yield asked("values", f"target bounds {pair!r}", "linear_regression", bounds_y=pair)
    for classes in (("yes", "no"), ("yes",), ("yes", "yes"), (0, 1), "no", (None, 1), ("a", "b", "c"), 7):
        yield asked("values", f"classes {classes!r}", "logistic_regression", classes=classes)


def refusals() -> Iterator[Case]:
    """Wrong options of every kind."""
    wrong: dict[str, list[Any]] = {
        "mechanism": ["laplace", "", None, 7, "Minimum", "exact", ["minimum"]],
        "threshold": ["middle", -1, 0, 100, math.nan, math.inf, True, [1], "0.5", 0.1, 1e-12],
        "rescale": ["yes", 1, 0.5, None],
        "neighbors": ["nobody", None, "Absent", 7],
        "assume": ["everything", None, 7, ["nothing"]],
        "spread": [-1, 0, math.nan, math.inf, "a", True, [1], None],
        "density": [-0.1, 1.1, 0, 1, math.nan, "a", True, None],
        "location": [-5, math.nan, math.inf, "a", True, None],
        "privacy": ["none", None, 7, "group", "Individual"],
        "group_epsilons": [[1.0], [], 7],
        "scale": ["tight", "loose", 7],
        "gamma": [3, 1, 2.5, "a", True],
        "inside": ["minimum", "nothing"],
        "entropy": [7, "seed", None.__class__],
        "nonsense": [1],
        "share": [0.5],
        "error": [0.5],
    }
    for statistic in ("mean", "median"):
        for option, values in wrong.items():
            for value in values:
                yield asked("refusals", f"{option}={value!r}", statistic, **{option: value})
        for option in ("threshold", "rescale", "scale", "gamma", "inside"):
            for mechanism in ("minimum", "weighted", "sample", "smooth-sensitivity"):
                value = {"threshold": 0.5, "rescale": True, "scale": "paper", "gamma": 4, "inside": "sample"}[option]
                name = f"{mechanism} {option}={value!r}"
                yield asked("refusals", name, statistic, mechanism=mechanism, **{option: value})
    for settings in ({"gamma": 1}, {"gamma": 21}, {"gamma": 2.5}, {"gamma": True}, {"gamma": 7, "scale": "paper"},
                     {"scale": "loose"}, {"inside": "nothing"}, {"inside": "minimum", "threshold": 0.5},
                     {"inside": "sample", "threshold": "middle"}, {"inside": "threshold",
                     "threshold": 99}):  # fmt: skip
        name = "smooth " + " ".join(f"{key}={value}" for key, value in settings.items())
        yield asked("refusals", name, "median", mechanism="smooth-sensitivity", **settings)
    pairs: list[Any] = [
        None, (100, 0), (5, 5), (0, math.inf), (math.nan, 1), ("a", "b"), (0,), (0, 1, 2), 7, "ab", (0, 1e40),
        (0, 1e-40), [0, 100], (True, 5), (None, 5), {"low": 0}, (Fraction(1, 2), Decimal(9)), np.array([0, 9]),
    ]  # fmt: skip
    for statistic in ("sum", "variance", "median"):
        for pair in pairs:
            yield asked("refusals", f"bounds={pair!r}", statistic, bounds=pair)
    for step in (0, -1, math.nan, math.inf, "a", True, 1e-12, 1000, 100, [1], Fraction(1, 3)):
        yield asked("refusals", f"step={step!r}", "median", step=step)
    for q in (-0.1, 1.1, math.nan, "a", None, True, [0.5], 1e-12, 1 - 1e-13, Fraction(1, 3), np.float64(0.25)):
        yield asked("refusals", f"q={q!r}", "quantile", q=q)
    for k in (0, -1, 2.5, "2", None, True, 61, 10**9, np.int64(2), 2.0):
        yield asked("refusals", f"k={k!r}", "kth_largest", k=k)
    bins: list[dict[str, Any]] = [
        {"edges": None}, {"edges": []}, {"edges": [1]}, {"edges": [1, 1]}, {"edges": [2, 1]}, {"edges": "ab"},
        {"edges": [0, math.nan]}, {"edges": ["a", "b"]}, {"edges": 7}, {"edges": [0, 1], "categories": ["a"]},
        {"edges": [0, 1], "outside": "wrap"}, {"edges": [0, 1], "outside": None}, {"edges": {0, 1}},
        {"edges": None, "categories": []}, {"edges": None, "categories": ["a", "a"]},
        {"edges": None, "categories": "abc"}, {"edges": None, "categories": 7}, {"edges": None, "categories": [[1]]},
        {"edges": None, "categories": ["a"], "outside": "clip"}, {"edges": None, "categories": [math.nan]},
        {"edges": None, "categories": [1, True]}, {"edges": None, "categories": [1, 1.0]},
    ]  # fmt: skip
    for given in bins:
        yield asked("refusals", " ".join(f"{key}={value}" for key, value in given.items()), "bins", **given)
    odd: dict[str, Any] = {
        "none": None, "zero": 0, "negative": -1.0, "nan": math.nan, "word": "strict", "huge": 1e7, "tiny": 1e-10,
        "smallest": 1e-9, "largest": 1e6, "true": True, "short": [1.0] * 7, "with nan": [1.0, math.nan] * 30,
        "with none": [1.0, None] * 30, "with zero": [1.0, 0.0] * 30, "words": ["strict"] * N, "empty": [],
        "table": [[1.0]] * N, "ints": [1, 2] * 30, "numpy": np.linspace(0.1, 2, N), "dict": {0: 1.0}, "set": {1.0},
        "mixed": [1.0, eps.PUBLIC] * 30, "close": [0.5, 0.5 + 1e-12] * 30, "fractions": [Fraction(1, 3)] * N,
        "numerals": ["0.5"] * N, "minus infinity": [-math.inf, 1.0] * 30, "one strict": [1e-6] + [1.0] * 59,
    }  # fmt: skip
    for name, epsilons in odd.items():
        for statistic in ("count", "median"):
            yield asked("epsilons", name, statistic, epsilons=epsilons)


# Plans and preferences -----------------------------------------------------------------------------------------------


def planned(name: str, statistic: str, roster: str = "few", **options: Any) -> Case:
    """A case of one plan; `then` is done with it."""
    full = f"plans/{statistic}/{name}"
    then, granted = options.pop("then", lambda plan: plan), options.pop("epsilons", roster)

    def do() -> Outcome:
        epsilons = rosters()[roster] if granted is roster else granted
        given = dict(options)
        if epsilons is not None and np.ndim(epsilons) == 0 and isinstance(epsilons, float):
            given.setdefault("people", N)
        known = {"bins": "histogram", "categories": "histogram"}.get(statistic, statistic)
        return plan_outcome(then(eps.plan(known, epsilons, **{**ARGUMENTS.get(statistic, {}), **given})))

    return Case(full, lambda _: attempt(do))


def plans() -> Iterator[Case]:
    """What every statistic would cost, on every roster; plans for an error; people who move."""
    for statistic in STATISTICS:
        for neighbors, assume in (("absent", "unrelated"), ("replace", "unrelated"), ("replace", "nothing")):
            yield planned(f"few {neighbors} {assume}", statistic, neighbors=neighbors, assume=assume)
        for roster in ("one", "many", "fine", "public"):
            yield planned(roster, statistic, roster)
        yield planned("individual", statistic, privacy="individual")
        yield planned("groups", statistic, epsilons=None, privacy="group", group_epsilons=[1.0, 0.5], people=40)
        yield planned("share .2", statistic, "named", share=0.2)
        yield planned("error 12", statistic, "many", error=12)
        yield planned("error nothing", statistic, "many", error=25, assume="nothing")
        yield planned("error out of reach", statistic, error=1e-9)
        yield planned("spread", statistic, "many", spread=12, density=0.2, location=40)
    for statistic in ("count", "median"):
        for share in (1, 0.5, 1e-3, 1e-12, 0, -1, 1.5, math.nan, "a", True, None, Fraction(1, 3)):
            yield planned(f"share={share!r}", statistic, share=share)
        for error in (0, -1, math.nan, "a", True, 7, Fraction(9, 2)):
            yield planned(f"error={error!r}", statistic, error=error)
        for threshold in ("max", "mean", "best", 0.5, "middle", 99, True):
            yield planned(f"threshold={threshold!r}", statistic, threshold=threshold)
        for people in (None, 0, 1, 10**6, -1, 2.5, "a"):
            yield planned(f"people={people!r}", statistic, epsilons=0.5, people=people)
        for rescale in (True, False, 1):
            yield planned(f"rescale={rescale!r}", statistic, rescale=rescale)
        yield planned("nonsense", statistic, nonsense=1)
        yield planned("neighbors", statistic, neighbors="nobody")
    moves: list[Any] = [
        {"strict": ("standard", 0.5)}, {"strict": ("public", 1)}, {0.05: (0.4, 0.25)}, {"strict": ("nowhere", 0.5)},
        {"strict": ("open", 2)}, {"strict": 0.5}, None, {"strict": ("open", 0.3), "open": ("strict", 1)},
        {"strict": ("open", math.nan)}, {"public": ("strict", 1)}, {},
    ]  # fmt: skip
    for move in moves:
        yield planned(f"what if {move!r}", "mean", "named", then=lambda plan, move=move: plan.what_if(move))
    for name in ("auto", "minimum", "exponential", "nonsense"):
        yield planned(f"chosen {name}", "count", then=lambda plan, name=name: (plan.chosen(name), plan)[1])
    for given in ("mode", "", None, 7, "Mean", "exact"):
        yield planned("unknown", f"{given!r}".strip("'") or "nothing")
    full = "plans/count/shown"
    shown = lambda: {"text": digest(str(eps.plan("count", rosters()["named"], density=0.3)))}  # noqa: E731
    yield Case(full, lambda _: attempt(shown))


def preferences() -> Iterator[Case]:
    """Who stands at which level."""
    levels = {"strict": 0.05, "open": 1, "public": eps.PUBLIC}
    made: dict[str, Callable[[], Any]] = {
        "by id": lambda: eps.Preferences({"ann": 0.1, "bob": eps.PUBLIC}, default=0.05).assign(["bob", "cy", "ann"]),
        "by id, nobody named": lambda: eps.Preferences({"ann": 0.1}).assign(),
        "by id, unknown": lambda: eps.Preferences({"ann": 0.1}).assign(["bob"]),
        "by id, lists": lambda: eps.Preferences({"ann": 0.1}).assign([["bob"]]),
        "aligned": lambda: eps.Preferences([0.1, 0.2, math.nan], default=0.3).assign(),
        "no default": lambda: eps.Preferences([0.1, math.nan]).assign(),
        "bad default": lambda: eps.Preferences([0.1], default=-1),
        "names": lambda: eps.Preferences.from_levels(["strict", "open", None], levels, "open").assign(),
        "unknown name": lambda: eps.Preferences.from_levels(["strict", "loose"], levels).assign(),
        "unknown default": lambda: eps.Preferences.from_levels(["strict"], levels, "loose"),
        "number as default": lambda: eps.Preferences.from_levels(["strict"], levels, 0.5),  # type: ignore[arg-type]
        "no levels": lambda: eps.Preferences.from_levels(["strict"], {}),
        "levels without words": lambda: eps.Preferences.from_levels(["strict"], {1: 0.5}),  # type: ignore[dict-item]
        "level of nothing": lambda: eps.Preferences.from_levels(["strict"], {"strict": 0}),
        "one epsilon twice": lambda: eps.Preferences.from_levels(["a", "b"], {"a": 1, "b": 1}).assign(),
        "column": lambda: eps.Preferences.from_column("epsilon").assign(),
        "no column": lambda: eps.Preferences.from_column(""),
        "column of names": lambda: eps.Preferences.from_levels("privacy", levels).assign(),
        "word as default": lambda: eps.Preferences.from_column("epsilon", "strict"),  # type: ignore[arg-type]
        "fine": lambda: eps.Preferences([0.1 + i / 7000 for i in range(600)]).assign(),
    }
    for name, make in made.items():
        yield _levels(f"preferences/{name}", make)


def _levels(full: str, make: Callable[[], Any]) -> Case:
    def do() -> Outcome:
        levels = make().levels
        facts = {"grants": short(list(levels.grants)), "sizes": short(list(levels.sizes))}
        return {**facts, "names": rounded(levels.names), "loss": rounded(levels.rounding_loss)}

    return Case(full, lambda _: attempt(do))


def promises() -> Iterator[Case]:
    """How promises add up."""
    made = {
        "few": {"mechanism": "weighted"},
        "replace": {"mechanism": "minimum", "neighbors": "replace"},
        "imputes": {"mechanism": "robust", "neighbors": "replace"},
        "individual": {"privacy": "individual"},
    }
    joins: dict[str, Callable[[Any, Any], Any]] = {
        "compose": lambda a, b: a.compose(b),
        "parallel": lambda a, b: a.compose_parallel(b),
        "choice": lambda a, b: a.choice(b),
        "as the other": lambda a, b: a.with_neighbors(b.neighbors),
    }
    for first, manner in made.items():
        for second, other in made.items():
            for join, how in joins.items():
                if join == "choice" and first != "few":
                    continue  # the same sums as in parallel
                yield _promise(f"promises/{first} {join} {second}", manner, other, how)


def _promise(full: str, first: dict[str, Any], second: dict[str, Any], how: Callable[[Any, Any], Any]) -> Case:
    def do() -> Outcome:
        one = ask("mean", values_of("mean"), rosters()["few"], entropy=entropy_of(full), **first).guarantee
        two = ask("mean", values_of("mean"), rosters()["many"], entropy=entropy_of(full), **second).guarantee
        joined = how(one, two)
        told = {"promise": f"{joined.kind}, {joined.neighbors}, {joined.imputes}, {on_ladder(joined)}"}
        return {**told, "epsilons": rounded(joined.epsilons), "words": digest(list(joined.caveats))}

    return Case(full, lambda _: attempt(do))


def cases() -> Iterator[Case]:
    for part in (answers, options, weaker, personal, strange_values, refusals, plans, preferences, promises):
        yield from part()

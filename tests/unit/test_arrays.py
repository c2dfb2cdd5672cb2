"""The borders of the statistics on arrays: every wrong argument has its own words, and no value has any say."""

import inspect
import math
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import epsilons as eps
from epsilons.mechanisms.base import create, list_mechanisms
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.base import Question, Statistic
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import Variance
from epsilons.testing import seeded
from support.lengths import examples

VALUES, EPSILONS, BOUNDS = [1, 2, 3], [0.5, 1.0, 2.0], (0, 10)


def count(**options: Any) -> Callable[[], eps.Release]:
    return lambda: eps.count(VALUES, EPSILONS, **options)


def mean(values: Any = VALUES, epsilons: Any = EPSILONS, **options: Any) -> Callable[[], eps.Release]:
    return lambda: eps.mean(values, epsilons, **{"bounds": BOUNDS, **options})


def plan(statistic: Any = "count", **arguments: Any) -> Callable[[], eps.Plan]:
    return lambda: eps.plan(statistic, EPSILONS, **arguments)


# (what is asked, the error, its code, what happened, what to try)
REFUSED: dict[str, tuple[Callable[[], Any], type[eps.EpsilonsError], str, str]] = {
    # Values
    "lengths differ": (mean([1, 2]), eps.DataError, "2 values and 3 epsilons.", "lists of one length"),
    "no values": (mean([]), eps.DataError, "There are no people.", "one value and one epsilon per person"),
    "nobody at all": (mean([], []), eps.DataError, "There are no people.", "one value and one epsilon"),
    "nobody, one epsilon": (mean([], 0.5), eps.DataError, "There are no people.", "one value and one epsilon"),
    "no epsilons": (mean([1], []), eps.DataError, "There are no people.", "one value and one epsilon"),
    "a single value": (mean(1), eps.DataError, "Values are not a list or array.", "a flat list or array"),
    "a generator": (mean(iter(VALUES)), eps.DataError, "Values are not a list or array.", "a flat list or array"),
    "no list": (mean(None), eps.DataError, "Values are not a list or array.", "a flat list or array"),
    "a word": (mean("abc"), eps.DataError, "Values come in 0 dimensions.", "a flat list or array"),
    "a dictionary": (mean({1: 1, 2: 2, 3: 3}), eps.DataError, "Values come in 0 dimensions.", "a flat list"),
    "a matrix": (mean(np.ones((3, 2))), eps.DataError, "Values come in 2 dimensions.", "a flat list or array"),
    "words": (mean(np.array(["a", "b", "c"])), eps.DataError, "Values hold text, not numbers.", "categories="),
    "bytes": (mean(np.array([b"a"] * 3)), eps.DataError, "Values of type bytes_ cannot be asked about.", "another"),
    "dates": (
        mean(np.array(["2020-01-01"] * 3, "datetime64[D]")),
        eps.DataError, "Values hold date, not numbers.", "categories=",
    ),
    "durations": (
        mean(np.array([1, 2, 3], "timedelta64[s]")),
        eps.DataError, "Values of type timedelta64 cannot be asked about.", "another type",
    ),
    "complex numbers": (
        mean(np.array([1j, 2, 3])), eps.DataError, "Values of type complex128 cannot be asked about.", "another",
    ),
    # Epsilons (test_preferences.py has them all)
    "epsilon zero": (mean(epsilons=[0.5, 0, 1]), eps.PreferenceError, "An epsilon of 0 is not allowed.", "leave these"),
    "epsilon words": (mean(epsilons=["a"] * 3), eps.PreferenceError, "Epsilons are not numbers.", "levels={"),
    # Bounds
    "no bounds": (mean(bounds=None), eps.PlanError, "A mean needs bounds.", "bounds=(0, 100)"),
    "no bounds, sum": (lambda: eps.sum(VALUES, EPSILONS), eps.PlanError, "A sum needs bounds.", "bounds=(0, 100)"),
    "no bounds, max": (lambda: eps.max(VALUES, EPSILONS), eps.PlanError, "A max needs bounds.", "bounds=(0, 100)"),
    "no bounds, rank": (
        lambda: eps.kth_largest(VALUES, EPSILONS, 2), eps.PlanError, "A kth_largest needs bounds.", "bounds=(0, 100)",
    ),
    "reversed bounds": (mean(bounds=(10, 0)), eps.PlanError, "Bounds (10, 0) are reversed or empty.", "bounds=(0, 10)"),
    "equal bounds": (mean(bounds=(5, 5)), eps.PlanError, "Bounds (5, 5) are reversed or empty.", "room between them"),
    "NaN bounds": (mean(bounds=(0, math.nan)), eps.PlanError, "Bounds (0.0, nan) are not finite.", "bounds=(0, 100)"),
    "endless bounds": (mean(bounds=(-math.inf, 0)), eps.PlanError, "(-inf, 0.0) are not finite.", "bounds=(0, 100)"),
    "too large an integer": (mean(bounds=(0, 10**400)), eps.PlanError, "are not finite.", "bounds=(0, 100)"),
    "word bounds": (mean(bounds=("a", "b")), eps.PlanError, "Bounds ('a', 'b') are not a pair", "bounds=(0, 100)"),
    "digit bounds": (mean(bounds="19"), eps.PlanError, "Bounds '19' are not a pair of numbers.", "bounds=(0, 100)"),
    "three bounds": (mean(bounds=(1, 2, 3)), eps.PlanError, "(1, 2, 3) are not a pair of numbers.", "bounds=(0, 100)"),
    "one bound": (mean(bounds=5), eps.PlanError, "Bounds 5 are not a pair of numbers.", "bounds=(0, 100)"),
    "true bounds": (mean(bounds=(False, True)), eps.PlanError, "are not a pair of numbers.", "bounds=(0, 100)"),
    "complex bounds": (mean(bounds=(0, 1j)), eps.PlanError, "are not a pair of numbers.", "bounds=(0, 100)"),
    "vast bounds": (mean(bounds=(0, 1e31)), eps.PlanError, "Bounds (0, 1e+31) are out of scale.", "other units"),
    "tight bounds": (mean(bounds=(0, 1e-31)), eps.PlanError, "Bounds (0, 1e-31) are out of scale.", "other units"),
    # Names
    "mechanism": (count(mechanism="magic"), eps.PlanError, "Unknown mechanism 'magic'.", "auto, exponential"),
    "no name": (count(mechanism=None), eps.PlanError, "mechanism=None is not allowed.", "mechanism='auto'"),
    "a list of names": (count(mechanism=["sample"]), eps.PlanError, "mechanism=['sample'] is not allowed.", "auto"),
    "neighbors": (count(neighbors="add"), eps.PlanError, "Unknown neighbors='add'.", "neighbors='absent'"),
    "assume": (count(assume="all"), eps.PlanError, "assume='all' is not allowed.", "assume=0.3"),
    "assume a list": (count(assume=[]), eps.PlanError, "assume=[] is not allowed.", "assume=0.3"),
    "statistic": (plan("modus"), eps.PlanError, "Unknown statistic 'modus'.", "count, sum, mean"),
    "statistic a list": (plan(["mean"]), eps.PlanError, "Unknown statistic ['mean'].", "count, sum, mean"),
    "argument": (plan(bounds=BOUNDS), eps.PlanError, "A count takes no 'bounds'.", "mechanism, threshold"),
    "argument of a median": (plan("median", q=0.5), eps.PlanError, "A median takes no 'q'.", "bounds, step"),
    "no q": (plan("quantile", bounds=BOUNDS), eps.PlanError, "A quantile needs its q.", "q=0.9"),
    "no k": (plan("kth_largest", k=None, bounds=BOUNDS), eps.PlanError, "k=None is not allowed.", "k=2"),
    # Options
    "threshold word": (count(threshold="median"), eps.PlanError, "threshold='median' is not allowed.", "='best'"),
    "threshold list": (count(threshold=[1]), eps.PlanError, "threshold=[1] is not allowed.", "threshold='best'"),
    "threshold true": (
        count(mechanism="sample", threshold=True), eps.PlanError, "threshold=True is not allowed.", "threshold='best'",
    ),
    "threshold for minimum": (
        count(mechanism="minimum", threshold=1), eps.PlanError, "'minimum' takes no threshold.", "one of sample",
    ),
    "rescale for robust": (
        count(mechanism="robust", rescale=True), eps.PlanError, "'robust' takes no rescale.", "one of sample",
    ),
    "rescale word": (count(rescale="yes"), eps.PlanError, "rescale='yes' is not allowed.", "rescale=True"),
    "spread zero": (mean(spread=0), eps.PlanError, "spread=0 is not allowed.", "leave spread out"),
    "spread negative": (mean(spread=-1), eps.PlanError, "spread=-1 is not allowed.", "leave spread out"),
    "spread NaN": (mean(spread=math.nan), eps.PlanError, "spread=nan is not allowed.", "leave spread out"),
    "spread endless": (mean(spread=math.inf), eps.PlanError, "spread=inf is not allowed.", "leave spread out"),
    "spread word": (mean(spread="x"), eps.PlanError, "spread='x' is not allowed.", "leave spread out"),
    "spread wide": (mean(spread=51), eps.PlanError, "spread=51.0 is not allowed.", "leave spread out"),
    "spread of targets": (
        plan("linear_regression", features=["a"], bounds_X=(0, 1), bounds_y=(0, 10), spread=6),
        eps.PlanError, "spread=6.0 is not allowed.", "leave spread out",
    ),
    "location outside": (mean(location=500), eps.PlanError, "location=500.0 is not allowed.", "leave location out"),
    "location below": (
        plan("median", bounds=(0, 100), location=-1),
        eps.PlanError, "location=-1.0 is not allowed.", "leave location out",
    ),
    "spread vast": (mean(spread=1e200), eps.PlanError, "spread=1e+200 is not allowed.", "leave spread out"),
    "density negative": (count(density=-0.1), eps.PlanError, "density=-0.1 is not allowed.", "leave density out"),
    "density above 1": (count(density=1.1), eps.PlanError, "density=1.1 is not allowed.", "leave density out"),
    "density NaN": (count(density=math.nan), eps.PlanError, "density=nan is not allowed.", "leave density out"),
    "density word": (count(density="x"), eps.PlanError, "density='x' is not allowed.", "leave density out"),
    "entropy": (count(entropy=7), eps.PlanError, "entropy=7 is not a source of random bits.", "a seeded one in a test"),
    # Plans
    "share 0": (plan(share=0), eps.PlanError, "share=0 is not allowed.", "share=0.1"),
    "share negative": (plan(share=-0.1), eps.PlanError, "share=-0.1 is not allowed.", "share=0.1"),
    "share above 1": (plan(share=1.01), eps.PlanError, "share=1.01 is not allowed.", "share=0.1"),
    "share NaN": (plan(share=math.nan), eps.PlanError, "share=nan is not allowed.", "share=0.1"),
    "share word": (plan(share="all"), eps.PlanError, "share='all' is not allowed.", "share=0.1"),
    "share of an answer": (count(share=2), eps.PlanError, "share=2 is not allowed.", "share=0.1"),
    "too small a share": (
        count(share=0.00099), eps.PlanError, "share=0.00099 is not allowed.", "share=0.1",
    ),
    "too small a plan": (
        lambda: plan()().at(Fraction(1, 1001)), eps.PlanError, "share=Fraction(1, 1001) is not allowed.", "share=0.1",
    ),
    "a share of next to nothing": (
        lambda: eps.count(VALUES, [1e-7] * 3, share=0.001), eps.PlanError, "A share of 0.001 leaves nobody", "a larger",
    ),
    "error endless": (plan(error=math.inf), eps.PlanError, "error=inf is not allowed.", "error=0.5"),
    "share true": (plan(share=True), eps.PlanError, "share=True is not allowed.", "share=0.1"),
    "error 0": (plan(error=0), eps.PlanError, "error=0 is not allowed.", "error=0.5"),
    "error NaN": (plan(error=math.nan), eps.PlanError, "error=nan is not allowed.", "error=0.5"),
    "error word": (plan(error="small"), eps.PlanError, "error='small' is not allowed.", "error=0.5"),
    "error out of reach": (plan(error=1e-6), eps.PlanError, "An error of 1e-06 is out of reach.", "error="),
    "error of a maximum": (
        plan("max", bounds=BOUNDS, error=1), eps.PlanError, "No error can be predicted for a max.", "share=",
    ),
    "one epsilon for nobody knows how many": (
        lambda: eps.plan("count", 0.5), eps.PreferenceError, "unknown number of people", "[0.5] * 1000",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_argument_is_told_what_happened_and_what_to_try(case: str) -> None:
    asked, kind, what, hint = REFUSED[case]
    with pytest.raises(kind) as caught:
        asked()
    error = caught.value
    assert type(error) is kind
    assert what in error.what
    assert hint in error.hint
    assert str(error) == " ".join(part for part in (error.what, error.rule, f"Try: {error.hint}") if part)


@pytest.mark.parametrize("threshold", [0.49, 2.01, 0, -1, math.inf, -math.inf])
@pytest.mark.parametrize("mechanism", ["threshold", "sample", "auto"])
def test_a_threshold_lies_within_the_finite_preferences(threshold: float, mechanism: str) -> None:
    with pytest.raises(eps.PlanError) as caught:
        eps.count([1, 0, 1, 1], [0.5, 1, 2, eps.PUBLIC], mechanism=mechanism, threshold=threshold)
    assert f"A threshold of {threshold:g} lies outside the preferences." in str(caught.value)
    assert "0.5 and 2" in str(caught.value)


@pytest.mark.parametrize(
    "threshold", [0.5, 0.7, 1, 2, np.float32(1.5), np.int64(2), Fraction(3, 2), "max", "mean", "best"]
)
def test_thresholds_within_the_preferences_serve(threshold: Any) -> None:
    for mechanism in ("threshold", "sample"):
        release = eps.count(VALUES, EPSILONS, mechanism=mechanism, threshold=threshold)
        assert max(release.charges.values()) <= 2


@pytest.mark.parametrize("mechanism", list_mechanisms())
def test_a_mechanism_that_cannot_serve_lists_those_that_can(mechanism: str) -> None:
    levels = roster_of(EPSILONS).levels
    for statistic in (Variance(BOUNDS), order.maximum(BOUNDS), Histogram.of([0, 1], None, "drop"), Mean(BOUNDS)):
        question = Question(statistic)
        if create(mechanism, statistic).refuses(question, levels) is None:
            continue
        able = sorted(m for m in list_mechanisms() if create(m, statistic).refuses(question, levels) is None)
        with pytest.raises(eps.PlanError) as caught:
            ask(statistic, VALUES, EPSILONS, mechanism=mechanism, complete=True)
        assert f"{mechanism!r} cannot serve a {statistic.name}: " in str(caught.value)
        assert caught.value.hint == f'one of {", ".join(able)}, or "auto"'


@pytest.mark.parametrize(
    ("call", "what", "hint"),
    [
        (lambda: eps.mean(VALUES, EPSILONS, bounds=BOUNDS, bound=BOUNDS), "A mean takes no 'bound'.", "bounds"),
        (lambda: eps.median(VALUES, EPSILONS, gama=3), "A median takes no 'gama'.", "gamma"),
        (lambda: eps.median(VALUES, EPSILONS, fresh=True), "A median takes no 'fresh'.", "bounds, step, mechanism"),
        (lambda: eps.median(), "A median needs 'values'.", "values"),
        (lambda: eps.median(VALUES, EPSILONS, BOUNDS), "A median takes at most 2 arguments by place.", ""),
        (lambda: eps.median(VALUES, EPSILONS, epsilons=1), "A median got 'epsilons' twice.", "give epsilons once"),
        (lambda: eps.quantile(VALUES, EPSILONS), "A quantile needs 'q'.", "q=0.9"),
        (lambda: eps.linear_regression([[1]]), "A linear_regression needs 'y'.", "y"),
        (lambda: eps.plan("median", EPSILONS, gama=3), "A median takes no 'gama'.", "gamma"),
        (lambda: eps.plan(), "A plan needs 'statistic'.", "statistic"),
        (lambda: eps.plan("median", EPSILONS, BOUNDS), "A plan takes at most 2 arguments by place.", ""),
    ],
)  # fmt: skip
def test_a_call_that_does_not_fit_names_the_function(call: Callable[[], Any], what: str, hint: str) -> None:
    with pytest.raises(eps.PlanError) as caught:
        call()
    assert caught.value.what == what
    assert hint in caught.value.hint


def test_a_function_shows_its_signature() -> None:
    signature = inspect.signature(eps.median)
    assert list(signature.parameters)[:4] == ["values", "epsilons", "bounds", "step"]
    assert get_args(signature.parameters["neighbors"].annotation) == ("absent", "replace")
    names, other = get_args(signature.parameters["mechanism"].annotation)
    assert get_args(names) == ("auto", *list_mechanisms(), *list_mechanisms("individual"))
    assert other is str
    assert signature.return_annotation is eps.Release
    for name in CATALOGUE:
        function = getattr(eps, name)
        assert (function.__name__, function.__qualname__) == (name, name)
        assert all(f"\n{argument}: " in function.__doc__ for argument in inspect.signature(function).parameters)
    assert "Dataset" in dir(eps)
    assert set(CATALOGUE) < set(dir(eps))
    assert {name for name in dir(eps) if not name.startswith("__")} == set(eps.__all__)
    assert set(CATALOGUE) < set(eps.__all__)


# At a share of everybody's epsilon ----------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.5, np.float32(0.5), Fraction(1, 2)])
def test_a_share_is_charged_by_grant_and_drawn_like_smaller_grants(share: Any) -> None:
    half = eps.mean(VALUES, [*EPSILONS[:2], eps.PUBLIC], bounds=BOUNDS, share=share, entropy=seeded(3))
    same = eps.mean(VALUES, [0.25, 0.5, eps.PUBLIC], bounds=BOUNDS, entropy=seeded(3))
    assert (half.value, half.error) == (same.value, same.error)
    assert half.charges == {0.5: same.charges[0.25], 1.0: same.charges[0.5], math.inf: 0.0}
    assert half.guarantee.epsilons == {**half.charges, math.inf: math.inf}
    assert list(half.levels) == list(half.charges)


def test_at_a_small_share_nobody_looks_at_those_who_have_nothing_left() -> None:
    """A billionth of a billionth is nothing, so their values have no say; answers are about them all the same."""
    epsilons = [1e-9] * 50 + [1.0] * 50
    for mechanism in ("minimum", "weighted", "sample"):
        answers = [
            eps.count(ones, epsilons, share=0.1, mechanism=mechanism, entropy=seeded(1))
            for ones in ([0] * 50 + [1] * 50, [1] * 100)
        ]
        assert answers[0].value == answers[1].value
        assert answers[0].charges == {1e-9: 0.0, 1.0: 0.1}
    rows = eps.linear_regression([[1.0]] * 100, [2.0] * 100, epsilons, bounds_X=(0, 2), bounds_y=(0, 4), share=0.1)
    assert rows.charges[1e-9] == 0


def test_a_share_of_group_privacy_is_a_share_of_every_group_s_epsilon() -> None:
    options: dict[str, Any] = {"bounds": BOUNDS, "privacy": "group", "entropy": seeded(1), "complete": True}
    half = eps.median(VALUES * 30, group_epsilons=[1.0, 0.5], share=0.5, **options)
    same = eps.median(VALUES * 30, group_epsilons=[0.5, 0.25], **{**options, "entropy": seeded(1)})
    assert half.value == same.value
    assert half.charges == {1.0: 0.5}
    assert any("0.5 for 1, 0.25 for 2" in caveat for caveat in half.guarantee.caveats)


# No value has any say -----------------------------------------------------------------------------------------------


def ask(statistic: Statistic, values: Any, epsilons: Any, **options: Any) -> eps.Release:
    match statistic:
        case Count():
            return eps.count(values, epsilons, **options)
        case Histogram(edges=edges, categories=categories, outside=outside):
            return eps.histogram(values, epsilons, edges=edges, categories=categories, outside=outside, **options)
        case Variance(bounds=bounds):
            return eps.variance(values, epsilons, bounds=bounds, **options)
        case Sum(bounds=bounds):
            return eps.sum(values, epsilons, bounds=bounds, **options)
        case Mean(bounds=bounds):
            return eps.mean(values, epsilons, bounds=bounds, **options)
        case order.Order(bounds=bounds, step=step, q=q, from_low=low, from_high=high):
            if q is not None:
                return eps.quantile(values, epsilons, q, bounds=bounds, step=step, **options)
            if low is not None:
                return eps.min(values, epsilons, bounds=bounds, step=step, **options)
            if high == 0:
                return eps.max(values, epsilons, bounds=bounds, step=step, **options)
            return eps.kth_largest(values, epsilons, (high or 0) + 1, bounds=bounds, step=step, **options)
    raise AssertionError(statistic)


ASKED: dict[str, Statistic] = {
    "count": Count(),
    "sum": Sum((-5, 10)),
    "mean": Mean((-5, 10)),
    "variance": Variance((-5, 10)),
    "median": order.median((-5, 10)),
    "whole quantile": order.quantile(0.9, (-5, 10), 1),
    "min": order.minimum((-5, 10), 0.1),
    "max": order.maximum((-5, 10)),
    "third largest": order.kth_largest(3, (-5, 10)),
    "bins": Histogram.of([-5, 0, 0.5, 10], None, "drop"),
    "clipped bins": Histogram.of([-5, 0, 10], None, "clip"),
    "categories": Histogram.of(None, ["a", 1, ("x", 2)], "drop"),
}
NEEDS_A_PUBLIC_NUMBER = ("exponential", "mixed", "robust", "smooth-sensitivity")
#: What may be said of missing values; the first is nothing.
WORDS: list[dict[str, Any]] = [{}, {"missing": "exclude"}, {"complete": True}, {"missing": "center"}]
SERVED = [
    (name, mechanism)
    for name, statistic in ASKED.items()
    for mechanism in ("auto", *list_mechanisms())
    if mechanism == "auto"
    or create(mechanism, statistic).refuses(Question(statistic), roster_of(EPSILONS).levels) is None
]

numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, 1, 1.0, True, 10**400, -(10**400), -(2**63), 2**63, -0.0, 5e-324]),
)
hostile = st.one_of(
    numbers,
    st.none(),
    st.text(max_size=3),
    st.binary(max_size=2),
    st.complex_numbers(),
    st.decimals(),
    st.fractions(),
    st.dates(),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=1), st.none(), max_size=1),
    st.builds(object),
)
typed = st.one_of(
    st.sampled_from(["float16", "float32", "float64", "longdouble"]).flatmap(
        lambda kind: st.lists(st.floats(width=16), min_size=1, max_size=8).map(lambda v: np.array(v, kind))
    ),
    st.lists(st.integers(-128, 127), min_size=1, max_size=8).map(lambda v: np.array(v, np.int8)),
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8).map(lambda v: np.array(v, np.uint64)),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8).map(lambda v: np.array(v, np.int64)),
    st.lists(st.booleans(), min_size=1, max_size=8).map(np.array),
    st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8).map(lambda v: np.array(v, np.uint32).view(np.float32)),
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8).map(lambda v: np.array(v, np.uint64).view(np.float64)),
    st.lists(hostile, min_size=1, max_size=8),
    st.lists(hostile, min_size=1, max_size=8).map(tuple),
    st.lists(hostile, min_size=1, max_size=8).map(lambda v: np.fromiter(v, object, len(v))),
)
granted = st.sampled_from([1e-9, 0.01, 0.1, 0.5, 1.0, 3.0, 50.0, 1e6, math.inf])


def possible(statistic: Statistic, mechanism: str, people: int) -> tuple[float, float]:
    """The range of answers, where there is one."""
    if isinstance(statistic, order.Order):
        return statistic.bounds
    if isinstance(statistic, Variance):
        return 0, 7.5**2
    if mechanism == "exponential":
        return 0, people
    return -math.inf, math.inf


def check_answers(name: str, mechanism: str, values: Any, data: st.DataObject) -> None:
    """No value raises or warns, and answers stay in range."""
    statistic = ASKED[name]
    assume((getattr(statistic, "from_high", None) or 0) < len(values))
    epsilons = data.draw(st.lists(granted, min_size=len(values), max_size=len(values)))
    neighbors = data.draw(st.sampled_from(["absent", "replace"]))
    counted = isinstance(statistic, Count | Histogram)
    words = WORDS[:3] if counted else WORDS[2:] if mechanism in NEEDS_A_PUBLIC_NUMBER else WORDS
    word = data.draw(st.sampled_from(words))
    release = ask(statistic, values, epsilons, mechanism=mechanism, neighbors=neighbors, **word)
    low, high = possible(statistic, release.mechanism, len(values))
    for value in release.value.values() if isinstance(release.value, dict) else [release.value]:
        assert math.isfinite(value)
        assert low <= value <= high
    errors = release.error.values() if isinstance(release.error, dict) else [release.error]
    assert all(error is None or math.isfinite(error) for error in errors)
    assert all(spent <= grant for grant, spent in release.charges.items())
    assert "\n" not in str(release)


def each_served(tries: int) -> Callable[..., None]:
    """One test of so many examples for everything that a mechanism serves."""
    tried = settings(max_examples=tries)(given(values=typed, data=st.data())(check_answers))
    return pytest.mark.parametrize(("name", "mechanism"), SERVED)(tried)


test_no_value_raises_or_warns_and_answers_stay_in_range = each_served(4)
test_no_value_raises_or_warns_and_answers_stay_in_range_long = pytest.mark.soak(each_served(100))


@examples(20)
@given(values=st.lists(hostile, min_size=3, max_size=3), other=hostile, said=st.sampled_from(WORDS))
def test_a_neighbour_is_refused_or_served_alike(values: list[Any], other: Any, said: dict[str, Any]) -> None:
    """With the same coins, whether one person has this value or that never decides whether there is an answer."""
    for statistic in ASKED.values():
        word = {} if isinstance(statistic, Count | Histogram) and said == WORDS[-1] else said
        served = [
            ask(statistic, people, EPSILONS, entropy=seeded(1), **word).charges
            for people in (values, [other, *values[1:]])
        ]
        assert served[0] == served[1]


@examples(40)
@given(
    low=st.one_of(st.just(0.0), st.floats(-1e30, 9e29)),
    width=st.floats(-30, 29).map(lambda exponent: 10**exponent),
    spread=st.none() | st.floats(1e-30, 1e30) | st.floats(-30, 30).map(lambda e: min(max(10**e, 1e-30), 1e30)),
    density=st.none() | st.floats(0, 1),
    q=st.sampled_from([0.0, 1.0]) | st.floats(1e-9, 1 - 1e-9),
    epsilons=st.lists(granted, min_size=3, max_size=3),
    mechanism=st.sampled_from(["auto", *list_mechanisms()]),
)
def test_public_arguments_of_any_scale_give_finite_answers(
    low: float,
    width: float,
    spread: float | None,
    density: float | None,
    q: float,
    epsilons: list[float],
    mechanism: str,
) -> None:
    bounds = (low, low + width)
    if bounds[1] - bounds[0] < 1e-30:
        return
    values = [low, low + width / 2, math.nan]
    for statistic in (Sum(bounds), Mean(bounds), Variance(bounds), order.quantile(q, bounds), order.maximum(bounds)):
        levels = roster_of(epsilons).levels
        if mechanism != "auto" and create(mechanism, statistic).refuses(Question(statistic), levels) is not None:
            continue
        half = bounds[1] / 2 - bounds[0] / 2
        guesses = {"spread": None if spread is None or half < 1e-30 else min(spread, half), "density": density}
        release = ask(statistic, values, epsilons, mechanism=mechanism, missing="center", **guesses)
        assert math.isfinite(release.value)
        assert release.error is None or math.isfinite(release.error)
        low_end, high_end = possible(statistic, release.mechanism, 3)
        assert isinstance(statistic, Variance) or low_end <= release.value <= high_end


@pytest.mark.parametrize("mechanism", ["auto", *list_mechanisms()])
def test_a_quantile_of_nobody_s_values_is_an_answer_too(mechanism: str) -> None:
    """A q with sixteen digits makes large integers, and how many people have a value must not decide what they fit."""
    for values in ([None] * 3, [1.0, None, None], [1.0, 2.0, 3.0]):
        try:
            release = eps.quantile(values, [1e-9, 1.0, 1e6], 0.4773353155325203, bounds=BOUNDS, mechanism=mechanism)
        except eps.PlanError as error:
            assert "cannot serve" in error.what  # noqa: PT017
        else:
            assert 0 <= release.value <= 10


@pytest.mark.parametrize("q", [0.7, 0.9, 0.999999])
def test_a_quantile_that_mostly_public_people_decide_is_an_answer_too(q: float) -> None:
    """The predicted error is unknown where the public stand-in leaves no answer possible."""
    release = eps.quantile(
        [0, 0, 0], [1e-9, eps.PUBLIC, eps.PUBLIC], q, bounds=(-5, 10), mechanism="exponential", complete=True
    )
    assert release.error is None or math.isfinite(release.error)


def test_a_refusal_contains_no_value() -> None:
    secret = "sécret-7741"
    for values in (np.array([secret] * 3), [[secret]] * 2, np.array([[secret]] * 3)):
        with pytest.raises(eps.DataError) as caught:
            eps.mean(values, EPSILONS, bounds=BOUNDS)
        assert "7741" not in str(caught.value)


# Several at once ----------------------------------------------------------------------------------------------------


def test_threads_do_not_disturb_each_other() -> None:
    """The interval arithmetic below keeps one precision for the whole process."""
    rng = np.random.default_rng(5)
    values, epsilons = rng.normal(5, 2, 200), rng.choice([0.01, 0.1, 1.0, 5.0], 200)
    known: dict[str, Any] = {"bounds": (0, 10), "complete": True}

    def answers(seed: int) -> list[Any]:
        found: list[Any] = []
        for k in range(6):
            entropy = seeded(100 * seed + k)
            found.append(eps.median(values, epsilons, mechanism="exponential", **known, entropy=entropy).value)
            found.append(eps.count(values > 5, epsilons, mechanism="sample", threshold="max", entropy=entropy).value)
            found.append(eps.mean(values, epsilons, bounds=(0, 10), mechanism="weighted", entropy=entropy).value)
        return found

    alone = [answers(seed) for seed in range(4)]
    together: list[Any] = [None] * 4

    def work(seed: int) -> None:
        together[seed] = answers(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert together == alone


# What one person has must not change what others have -----------------------------------------------------------------

BIG = 2**53 + 1


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), 0.5, None, -1, "word"])
def test_one_person_s_value_does_not_round_everybody_else_s_large_numbers(odd: object) -> None:
    """A list with one float in it must not become floats: 2^53 + 1 would no longer be its own category."""
    answer = eps.histogram([BIG] * 50 + [odd], eps.PUBLIC, categories=[BIG])
    assert answer.value == {BIG: 50}


def test_nullable_columns_keep_large_numbers_exact() -> None:
    import pandas as pd
    import pyarrow as pa

    for column in (
        pa.array([BIG] * 50 + [None], pa.int64()),
        pa.chunked_array([pa.array([BIG] * 50), pa.array([None], pa.int64())]),
        pd.array([BIG] * 50 + [None], dtype="Int64"),
        pd.Series([BIG] * 50 + [None], dtype="Int64"),
    ):
        assert eps.histogram(column, eps.PUBLIC, categories=[BIG]).value == {BIG: 50}


def test_a_rank_beyond_the_people_is_refused() -> None:
    with pytest.raises(eps.PlanError, match="There is no k=9 among 3 people"):
        eps.kth_largest([1, 2, 3], 1.0, k=9, bounds=(0, 10))


def test_exact_distributions_check_their_arguments() -> None:
    with pytest.raises(eps.PlanError, match="rank=-1 is not allowed"):
        eps.mechanisms.exponential.order_pmf([1, 2], [1, 1], rank=-1, bounds=(0, 3), step=1)
    with pytest.raises(eps.PlanError, match="q=0 is not allowed"):
        eps.mechanisms.weighted.quantile_pmf([1, 2], [1, 1], 0, bounds=(0, 3), step=1)

"""An answer with its error, its promise and its price: told, shown, stored."""

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import epsilons as eps
from epsilons.guarantee import NO_PROMISE, SEEDED
from epsilons.mechanisms.base import create, list_mechanisms
from epsilons.preferences import roster_of
from epsilons.statistics import order
from epsilons.statistics.base import Question, Statistic
from epsilons.statistics.count import Count
from epsilons.statistics.histogram import Histogram
from epsilons.statistics.total import Mean, Sum
from epsilons.statistics.variance import Variance
from epsilons.testing import seeded

VALUES = np.array([1, 0, 3, 1, 9, 1, 2, 5])  # all there, by their type
EPSILONS = [0.1, 0.1, 0.5, 0.5, 1, 1, eps.PUBLIC, eps.PUBLIC]
BOUNDS: dict[str, Any] = {"bounds": (0, 10)}
ASKED: dict[str, Any] = {
    "count": lambda **o: eps.count(VALUES, EPSILONS, **o),
    "sum": lambda **o: eps.sum(VALUES, EPSILONS, **BOUNDS, **o),
    "mean": lambda **o: eps.mean(VALUES, EPSILONS, **BOUNDS, **o),
    "variance": lambda **o: eps.variance(VALUES, EPSILONS, **BOUNDS, **o),
    "median": lambda **o: eps.median(VALUES, EPSILONS, **BOUNDS, **o),
    "whole median": lambda **o: eps.median(VALUES, EPSILONS, step=1, **BOUNDS, **o),
    "quantile": lambda **o: eps.quantile(VALUES, EPSILONS, 0.9, **BOUNDS, **o),
    "min": lambda **o: eps.min(VALUES, EPSILONS, **BOUNDS, **o),
    "max": lambda **o: eps.max(VALUES, EPSILONS, **BOUNDS, **o),
    "kth_largest": lambda **o: eps.kth_largest(VALUES, EPSILONS, 2, **BOUNDS, **o),
    "bins": lambda **o: eps.histogram(VALUES, EPSILONS, edges=[0, 1, 5, 10], **o),
    "categories": lambda **o: eps.histogram(["a", "b"] * 4, EPSILONS, categories=["a", "<script>", "b"], **o),
}


STATISTICS: dict[str, Statistic] = {
    "count": Count(),
    "sum": Sum((0, 10)),
    "mean": Mean((0, 10)),
    "variance": Variance((0, 10)),
    "median": order.median((0, 10)),
    "whole median": order.median((0, 10), 1),
    "quantile": order.quantile(0.9, (0, 10)),
    "min": order.minimum((0, 10)),
    "max": order.maximum((0, 10)),
    "kth_largest": order.kth_largest(2, (0, 10)),
    "bins": Histogram.of([0, 1, 5, 10], None, "drop"),
    "categories": Histogram.of(None, ["a", "<script>", "b"], "drop"),
}


def serving(name: str) -> list[str]:
    question, levels = Question(STATISTICS[name]), roster_of(EPSILONS).levels
    kinds = {kind: create(kind, question.statistic) for kind in list_mechanisms()}
    return [kind for kind, mechanism in kinds.items() if mechanism.refuses(question, levels) is None]


PAIRS = [(name, mechanism) for name in ASKED for mechanism in serving(name)]


@pytest.fixture(scope="module")
def releases() -> dict[tuple[str, str], eps.Release]:
    """One answer of every mechanism to every question that it serves."""
    return {(name, mechanism): ASKED[name](mechanism=mechanism) for name, mechanism in PAIRS}


Releases = dict[tuple[str, str], eps.Release]


def stored(release: eps.Release) -> eps.Release:
    return eps.Release.from_dict(json.loads(json.dumps(release.to_dict(), allow_nan=False)))


def test_every_question_is_served_by_several() -> None:
    assert min(sum(name == n for n, _ in PAIRS) for name in ASKED) >= 3


def test_a_release_survives_json(releases: Releases) -> None:
    for pair, release in releases.items():
        again = stored(release)
        assert again == release, pair
        assert (str(again), again._repr_html_()) == (str(release), release._repr_html_()), pair
        if isinstance(release.value, dict):
            assert list(again.value) == list(release.value), pair


def test_an_interval_survives_too(releases: Releases) -> None:
    for pair, release in releases.items():
        again = stored(release)
        if release.models is not None:
            check_intervals(release, again, pair)
            continue
        for one in (release, again):
            with pytest.raises(eps.PlanError, match="There is no honest interval for this answer") as caught:
                one.interval()
            assert len(caught.value.rule) > 20, pair
    assert {release.models is None for release in releases.values()} == {True, False}


def check_intervals(release: eps.Release, again: eps.Release, pair: tuple[str, str]) -> None:
    for target in ("roster", "population"):
        found = release.interval(0.9, target)
        assert again.interval(0.9, target) == found, pair
        pairs = found.values() if isinstance(found, dict) else [found]
        assert all(math.isfinite(low) and low <= high for low, high in pairs), pair
    wide, narrow = release.interval(0.99), release.interval(0.5)
    for key in release.value if isinstance(release.value, dict) else [None]:
        (a, b), (c, d) = (wide[key], narrow[key]) if key is not None else (wide, narrow)
        assert b - a >= d - c, pair


def test_it_says_itself_in_one_line(releases: Releases) -> None:
    for (name, mechanism), release in releases.items():
        text = str(release)
        assert "\n" not in text, name
        assert release.mechanism == mechanism
        assert mechanism in text
        assert release.guarantee.kind in text
        assert "NOT PRIVATE" not in text
        assert release.private


def test_charges_by_what_was_granted(releases: Releases) -> None:
    for pair, release in releases.items():
        assert list(release.charges) == [0.1, 0.5, 1.0, math.inf], pair
        assert all(type(granted) is float and type(spent) is float for granted, spent in release.charges.items()), pair
        assert release.charges[math.inf] == 0.0, pair
        assert all(0 <= spent <= granted for granted, spent in release.charges.items()), pair
        assert release.levels == {0.1: "0.1", 0.5: "0.5", 1.0: "1", math.inf: "public"}, pair
        for granted, loss in release.guarantee.epsilons.items():
            assert math.isinf(granted) or loss == release.charges[granted], pair


def test_a_row_per_key(releases: Releases) -> None:
    for pair, release in releases.items():
        table = release.to_arrow()
        if not isinstance(release.value, dict):
            assert table.to_pydict() == {"value": [release.value]}, pair
            continue
        assert table.column("value").to_pylist() == list(release.value.values()), pair
        if table.column_names == ["key", "value"]:
            assert table.column("key").to_pylist() == list(release.value), pair
        else:
            assert table.column_names == ["low", "high", "value"], pair
            ends = zip(table.column("low").to_pylist(), table.column("high").to_pylist(), strict=True)
            assert list(ends) == list(release.value), pair


def test_pandas_shows_the_same(releases: Releases) -> None:
    pytest.importorskip("pandas")
    for pair, release in releases.items():
        assert release.to_pandas().to_dict("list") == release.to_arrow().to_pydict(), pair


@pytest.mark.parametrize("name", ASKED)
def test_a_seeded_release_says_everywhere_that_it_is_not_private(name: str) -> None:
    release = ASKED[name](entropy=seeded(7))
    assert not release.private
    assert SEEDED in release.guarantee.caveats
    for text in (str(release), str(release.guarantee), release._repr_html_()):
        assert "NOT PRIVATE" in text
    again = eps.Release.from_dict(json.loads(json.dumps(release.to_dict())))
    assert not again.private
    composed = release.guarantee.compose(ASKED["count"]().guarantee)
    assert SEEDED in composed.caveats
    assert ASKED[name](entropy=seeded(7)) == release


def test_a_notebook_shows_no_foreign_markup() -> None:
    bad = "<script>alert(1)</script>"
    levels = {"<img src=x>": 0.5, "open": 1}
    asked = eps.Preferences.from_levels(["<img src=x>", "open", "open"], levels)
    histogram = eps.histogram([bad, "a", "a"], asked, categories=[bad, "a"])
    for page in (
        histogram._repr_html_(),
        eps.count([1, 0, 1], asked)._repr_html_(),
        eps.plan("count", asked)._repr_html_(),
    ):
        assert "<script" not in page
        assert "<img" not in page
    assert "&lt;script&gt;" in histogram._repr_html_()
    assert "&lt;img src=x&gt;" in eps.count([1, 0, 1], asked)._repr_html_()


def test_a_strange_category_does_not_break_the_line() -> None:
    release = eps.histogram(["a\nb", "c"], [1, 1], categories=["a\nb", "\x1b[31m"])
    assert str(release).isprintable()


def test_a_long_table_is_cut_in_one_line() -> None:
    release = eps.histogram([1, 2], [1, 1], edges=range(50))
    assert ", ...}" in str(release)
    assert len(str(release)) < 300


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", 3),
        ("sum", 22),
        ("mean", 2.75),
        ("median", 2),
        ("min", 0),
        ("max", 9),
        ("kth_largest", 5),
        ("quantile", 9),
        ("bins", {(0.0, 1.0): 1, (1.0, 5.0): 5, (5.0, 10.0): 2}),
        ("categories", {"a": 4, "<script>": 0, "b": 4}),
    ],
)
def test_with_everyone_public_the_answer_is_exact_and_labelled_so(
    name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "EPSILONS", [eps.PUBLIC] * 8)
    release = ASKED[name]()
    assert release.value == pytest.approx(value, rel=1e-4)
    rounded = 10 / 65_536 / 2 if name in ("median", "min", "max", "kth_largest", "quantile") else 0.0
    assert (release.mechanism, release.error) == ("exact", pytest.approx(rounded / math.sqrt(3)))
    assert release.guarantee.kind == NO_PROMISE
    assert "no privacy" in str(release)
    assert release.charges == {math.inf: 0.0}
    assert release.levels == {math.inf: "public"}
    assert "Everyone on the roster chose public" in release.why
    same = {key: (one, one) for key, one in release.value.items()} if isinstance(release.value, dict) else None
    about = None if same else (max(release.value - rounded, 0.0), release.value + rounded)
    assert release.interval() == (same or pytest.approx(about))
    with pytest.raises(eps.PlanError, match="exact for the people on the roster"):
        release.interval(target="population")
    assert eps.Release.from_dict(json.loads(json.dumps(release.to_dict(), allow_nan=False))) == release


def test_an_error_that_is_not_stated_has_a_reason() -> None:
    values, few = [10.0, 20.0, 30.0, 90.0] * 5, [0.1] * 20
    unknown = eps.median(values, few, bounds=(0, 100), entropy=seeded(1))
    assert unknown.error is None
    assert "± unknown" in str(unknown)
    assert "how much lies on either side" in unknown.no_error
    assert f"No error: {unknown.no_error}" in unknown.sheets()[0].notes
    rare = eps.mean([math.nan] * 19 + [5.0], few, bounds=(0, 100), entropy=seeded(2))
    assert (rare.error, "whether anybody counts" in rare.no_error) == (None, True)
    largest = eps.max(values, few, bounds=(0, 100))
    assert (largest.error, largest.no_error) == (None, largest.no_interval)
    differ = [0.1, 0.2] * 10
    unpaid = eps.median(values, differ, bounds=(0, 100), for_interval=0, assume="nothing")
    for bare in (
        largest,
        eps.min(values, few, bounds=(0, 100)),
        eps.kth_largest(values, few, 2, bounds=(0, 100)),
        unpaid,
    ):
        assert "± unknown however preferences and values relate (" in str(bare)
    assert eps.count([1] * 20, few).no_error == ""


def test_a_median_has_an_error_whatever_is_assumed() -> None:
    """Where all weigh the same nothing can be related; else it is as large as the most related preferences make it."""
    values, alike = np.random.default_rng(1).normal(20, 10, 2000).clip(0, 100), np.full(2000, 0.3)
    nothing, unrelated = (
        eps.median(values, alike, bounds=(0, 100), assume=assume, entropy=seeded(3)) for assume in ("nothing", 0)
    )
    assert nothing.error == unrelated.error is not None
    unpaid = {
        assume: eps.median(values, alike, bounds=(0, 100), assume=assume, for_interval=0) for assume in ("nothing", 0)
    }
    assert unpaid["nothing"].error == unpaid[0].error is not None
    differ = np.repeat([0.5, 1.0], [100, 1900])
    worse, least = (
        eps.median(
            values, differ, bounds=(0, 100), assume=assume, mechanism="threshold", threshold=1.0, entropy=seeded(3)
        )
        for assume in ("nothing", 0)
    )
    assert least.error < worse.error < worse.interval()[1] - worse.interval()[0]


def test_an_error_that_only_the_plan_expects_says_so() -> None:
    values, grants = list(range(100)) * 10, [1.0] * 1000
    planned = eps.median(values, grants, bounds=(0, 100), for_interval=0)
    assert planned.error is not None
    assert "by the plan's guesses" in str(planned)
    assert "The error is that expected by the plan's guesses." in planned.sheets()[0].notes
    paid = eps.median(values, grants, bounds=(0, 100))
    assert paid.error is not None
    assert "guesses" not in str(paid)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, math.nan])
def test_a_confidence_outside_0_to_1_is_refused(confidence: float) -> None:
    with pytest.raises(eps.PlanError, match=r"confidence=.* is not allowed\. .* Try: confidence=0\.95"):
        ASKED["count"]().interval(confidence)


def test_an_unknown_target_or_format_is_refused() -> None:
    release = ASKED["count"]()
    with pytest.raises(eps.PlanError, match=r"Unknown target='all'\. Try: target='roster' or"):
        release.interval(target="all")
    with pytest.raises(eps.PlanError, match="This is not a release in format 1"):
        eps.Release.from_dict({"format": 99})


def test_the_release_tells_why() -> None:
    assert ASKED["mean"]().why.startswith("Least predicted error of all, assuming that")
    assert ASKED["mean"](assume="nothing").why.startswith("Least worst-case error of all")
    assert ASKED["mean"](mechanism="minimum").why.startswith("Asked for by name")
    assert "No error can be predicted for a max" in ASKED["max"]().why


def test_frames_of_histograms_name_groups_and_ends_of_bins() -> None:
    table = pa.table({"id": [1, 2, 3], "wage": [20.0, 30.0, 40.0], "size": [1, 2, 1], "epsilon": [5.0] * 3})
    people = eps.Dataset(
        table, person="id", preferences=eps.Preferences.from_column("epsilon"), ledger="memory", ceiling=1e6
    )
    groups = {"size": [2, 1]}
    ends = people.histogram("wage", edges=[0, 25, 50], by=groups, share=0.1).to_arrow()
    assert ends.column_names == ["key1", "low", "high", "value"]
    assert ends["low"].to_pylist() == [0, 25, 0, 25]
    assert people.histogram("wage", edges=[0, 25, 50], share=0.1).to_arrow().column_names == ["low", "high", "value"]
    named = people.histogram("size", categories=[1, 2], by=groups, share=0.1).to_arrow()
    assert named.column_names == ["key1", "key2", "value"]


def test_an_answer_about_some_rows_says_which() -> None:
    table = pa.table({"id": [1, 2, 3], "wage": [1.0, 2.0, 3.0]})
    with eps.Dataset(
        table, person="id", preferences=1.0, bounds={"wage": (0, 3)}, ledger="memory", ceiling=1e6
    ) as people:
        asked = people.sum("wage", where="wage > 1", share=0.1)
        assert asked.where == '"wage" > 1.0'
        assert str(asked).startswith(f"{asked.statistic} of wage where {asked.where}: ")
        for again in (eps.Release.from_dict(asked.to_dict()), people.sum("wage", where="wage > 1", share=0.1)):
            assert again == asked
        (told,) = people.sql("SELECT SUM(wage) FROM people WHERE wage > 1", share=0.1).values()
        assert told.where == asked.where
        everyone = people.sum("wage", share=0.1)
        assert everyone.where == ""
        plain = everyone.to_dict()
        assert eps.Release.from_dict(plain) == everyone
        assert plain.pop("where") == ""  # what was stored before there were conditions reads the same
        assert eps.Release.from_dict(plain) == everyone


@pytest.mark.parametrize("epsilons", [5.0, eps.PUBLIC])
def test_a_coarse_grid_is_part_of_the_error_and_the_interval(epsilons: float) -> None:
    """Values between 40 and 45 all stand at 40: nobody can tell where among them the median is."""
    for value in (35.1, 42.1, 44.9):
        answer = eps.median([value] * 4000, epsilons, bounds=(0, 100), step=10)
        low, high = answer.interval()
        assert low <= value <= high
        assert (answer.value, low, high) == (40, 35, 45)
        assert answer.error == pytest.approx(10 / math.sqrt(12), rel=0.01)
    # Where the grid ends before the bounds, its last point stands for all that lies beyond.
    last = eps.max([99.0] * 4000, eps.PUBLIC, bounds=(0, 100), step=60)
    assert (last.value, last.interval()) == (60, (20, 100))
    fine = eps.median([42.1] * 4000, epsilons, bounds=(0, 100))
    assert 0 < fine.error < 0.001
    assert fine.interval()[0] <= 42.1 <= fine.interval()[1]


@pytest.mark.parametrize(
    ("name", "limits"), [("mean", (0, 100)), ("median", (0, 100)), ("max", (0, 100)), ("variance", (0, 2500))]
)
def test_an_exact_answer_of_nobody_has_no_error(name: str, limits: tuple[float, float]) -> None:
    answer = getattr(eps, name)([None] * 40, eps.PUBLIC, bounds=(0, 100))
    assert (answer.error, answer.interval()) == (None, limits)
    assert "± unknown (exact" in str(answer)
    assert "Nobody counts" in answer.no_error
    assert eps.Release.from_dict(json.loads(json.dumps(answer.to_dict()))) == answer
    somebody = getattr(eps, name)([*[None] * 39, 7.0], eps.PUBLIC, bounds=(0, 100))
    assert somebody.error < 0.001
    assert eps.count([None] * 40, eps.PUBLIC).error == eps.sum([None] * 40, eps.PUBLIC, bounds=(0, 100)).error == 0


def test_exact_groups_and_models_of_nobody_have_no_error() -> None:
    table = pa.table({"id": range(40), "x": [7.0] * 40, "r": ["a"] * 40})
    given: dict[str, Any] = {"preferences": eps.PUBLIC, "ledger": "memory", "bounds": {"x": (0, 100)}}
    with eps.Dataset(table, person="id", **given) as people:
        answer = people.mean("x", by={"r": ["a", "z"]})
        assert answer.error == {"a": 0.0, "z": None}
        assert answer.interval()["z"] == (0, 100)
        assert people.median("x", where="r = 'z'").error is None
    missing = [math.nan] * 40
    model = eps.linear_regression([[x] for x in missing], missing, eps.PUBLIC, bounds_X=(0, 1), bounds_y=(0, 1))
    assert model.error is None
    assert "±" not in str(model)
    with pytest.raises(eps.PlanError, match="Nobody counts"):
        model.interval()
    assert "Nobody counts" in model._repr_html_()

"""Plans: what every mechanism would cost and err, before anything is spent."""

import math
from fractions import Fraction
from typing import Any

import pytest

import epsilons as eps
from epsilons.arguments.checks import ASSUMPTIONS
from epsilons.arguments.options import ARRAYS
from epsilons.mechanisms.base import Weighing, create, list_mechanisms
from epsilons.planner.choose import _DIGITS, choose, rank_mechanisms
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.statistics.total import Mean
from epsilons.testing import seeded

LEVELS = {"strict": 0.05, "standard": 0.2, "open": 1.0, "public": eps.PUBLIC}
NAMES = ["strict"] * 600 + ["standard"] * 300 + ["open"] * 100
PEOPLE = eps.Preferences.from_levels(NAMES, LEVELS)
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("count", {}),
    ("count", {"density": 0.1}),
    ("sum", {"bounds": (0, 100)}),
    ("mean", {"bounds": (0, 100), "spread": 15}),
    ("variance", {"bounds": (0, 100)}),
    ("median", {"bounds": (0, 100)}),
    ("quantile", {"bounds": (0, 100), "q": 0.9, "step": 1}),
    ("min", {"bounds": (0, 100)}),
    ("max", {"bounds": (0, 100)}),
    ("kth_largest", {"bounds": (0, 100), "k": 3}),
    ("histogram", {"edges": [0, 50, 100]}),
    ("histogram", {"categories": ["a", "b"]}),
]


@pytest.fixture(params=QUESTIONS, ids=lambda question: question[0])
def question(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    asked: tuple[str, dict[str, Any]] = request.param
    return asked


@pytest.mark.parametrize("assume", ASSUMPTIONS)
@pytest.mark.parametrize("neighbors", ["absent", "replace"])
def test_rows_stand_best_first_and_keep_within_the_grants(
    question: tuple[str, dict[str, Any]], assume: str, neighbors: str
) -> None:
    statistic, arguments = question
    plan = eps.plan(statistic, PEOPLE, assume=assume, neighbors=neighbors, **arguments)
    # Errors that agree in the planner's digits are the same. Quantiles with an interval come before those without.
    without = [plan.question.statistic.has_bracket and not isinstance(row.chosen, Weighing) for row in plan.rows]
    errors = [float(f"{row.expected:.{_DIGITS}g}") for row in plan.rows]
    judged = list(zip(without, errors, strict=True))
    assert judged == sorted(judged)
    assert plan.best is plan.rows[0]
    assert plan.assumption.startswith(ASSUMPTIONS[assume])
    assert {row.mechanism for row in plan.rows} == {
        name
        for name in list_mechanisms()
        if create(name, plan.question.statistic).refuses(plan.question, plan.levels) is None
    }
    for row in plan.rows:
        assert list(row.charges) == [0.05, 0.2, 1.0]
        assert all(0 <= spent <= granted for granted, spent in row.charges.items())
        assert 0 < row.used <= 1
        assert row.reason
        assert row.assumption.split("; for a population")[0] in (plan.assumption, ASSUMPTIONS["nothing"])
        for error in (row.error, row.worst_error):
            assert error is None or 0 < error < math.inf


def test_auto_takes_the_best_row_of_the_plan() -> None:
    values = [50.0] * 1000
    for assume in ASSUMPTIONS:
        plan = eps.plan("mean", PEOPLE, bounds=(0, 100), spread=15, assume=assume)
        release = eps.mean(values, PEOPLE, bounds=(0, 100), spread=15, assume=assume, entropy=seeded(4))
        assert release.mechanism == plan.best.mechanism
        assert release.error <= plan.best.expected
        assert dict(release.charges) == dict(plan.best.charges)


def test_a_plan_needs_no_values_and_says_the_same_twice() -> None:
    first, second = (eps.plan("mean", PEOPLE, bounds=(0, 100), spread=15) for _ in range(2))
    assert first.rows == second.rows
    assert str(first) == str(second)


def test_a_share_costs_no_more_than_itself_and_errs_more() -> None:
    whole = eps.plan("mean", PEOPLE, bounds=(0, 100), spread=15)
    tenth = eps.plan("mean", PEOPLE, bounds=(0, 100), spread=15, share=0.1)
    assert (whole.share, tenth.share) == (1, Fraction(1, 10))
    assert tenth.best.expected > whole.best.expected
    for row in tenth.rows:
        assert all(spent <= granted for granted, spent in row.charges.items())
        assert max(row.charges.values()) <= 0.1
    assert whole.at(Fraction(1, 10)).rows == tenth.rows
    assert eps.plan("count", PEOPLE, share=Fraction(1, 3)).share == Fraction(1, 3)
    assert eps.plan("count", PEOPLE, share=1).share == 1


def test_options_reach_the_mechanisms_that_take_them() -> None:
    plan = eps.plan("count", PEOPLE, threshold=0.2, rescale=True)
    options = {row.mechanism: dict(row.options) for row in plan.rows}
    assert options["sample"] == {"threshold": 0.2, "rescale": True}
    assert options["threshold"] == {"threshold": 0.2, "rescale": True}
    assert "threshold" not in options["minimum"]


# The smallest share that reaches an error ---------------------------------------------------------------------------


@pytest.mark.parametrize("error", [0.7, 1, 3, 20])
def test_the_smallest_share_that_reaches_an_error(error: float) -> None:
    plan = eps.plan("mean", PEOPLE, bounds=(0, 100), spread=15, error=error, complete=True, assume="unrelated")
    assert Fraction(1, 1000) <= plan.share <= 1
    assert plan.best.expected <= error
    if Fraction(1, 1000) < plan.share < 1 and math.isfinite(error):
        assert plan.at(plan.share * Fraction(99, 100)).best.expected > error * 0.99


def test_the_error_of_the_whole_grant_needs_the_whole_grant_at_most() -> None:
    whole = eps.plan("count", PEOPLE)
    assert whole.reaching(whole.best.expected).share <= 1
    assert whole.reaching(10**9).share == Fraction(1, 1000)
    assert eps.plan("count", [1e-7] * 9).reaching(10**9).share == Fraction(1, 100)  # of a nano-epsilon nothing is left


def test_out_of_reach_says_what_is_within() -> None:
    whole = eps.plan("mean", PEOPLE, bounds=(0, 100))
    best = whole.best.expected
    with pytest.raises(eps.PlanError) as caught:
        whole.reaching(best / 2)
    assert f"An error of {best / 2:g} is out of reach." in caught.value.what
    assert f"All that people may be charged gives {best:.4g}." in caught.value.rule
    assert eps.plan("mean", PEOPLE, bounds=(0, 100), error=float(caught.value.hint.removeprefix("error=")))


# What consent is worth ----------------------------------------------------------------------------------------------


def test_more_openness_errs_less() -> None:
    plan = eps.plan("mean", PEOPLE, bounds=(0, 100), spread=15)
    moved = plan.what_if({"strict": ("open", 0.5)})
    assert moved.levels.sizes == (300, 300, 400)
    assert moved.levels.grants == plan.levels.grants
    assert moved.best.expected < plan.best.expected
    assert plan.levels.sizes == (600, 300, 100)


def test_levels_move_by_name_or_by_epsilon_all_at_once() -> None:
    plan = eps.plan("count", PEOPLE)
    by_name = plan.what_if({"strict": ("standard", 0.2), "open": ("strict", 1)})
    by_epsilon = plan.what_if({0.05: (0.2, 0.2), 1: (0.05, 1)})
    assert by_name.levels.sizes == by_epsilon.levels.sizes == (580, 420)
    assert by_name.levels.grants == (50_000_000, 200_000_000)
    assert plan.what_if({}).rows == plan.rows


def test_people_move_to_public_and_back() -> None:
    people = eps.Preferences.from_levels([*NAMES, "public"], LEVELS)
    plan = eps.plan("count", people)
    for public in ("public", math.inf):
        assert plan.what_if({"open": (public, 1)}).levels.sizes == (600, 300, 101)
        assert plan.what_if({public: ("open", 1)}).levels.sizes == (600, 300, 101)


def test_a_share_is_kept_when_people_move() -> None:
    plan = eps.plan("count", PEOPLE, share=0.1, threshold="mean")
    moved = plan.what_if({"strict": ("open", 0.1)})
    assert (moved.share, moved.settings.threshold) == (plan.share, "mean")


@pytest.mark.parametrize(
    ("move", "text"),
    [
        ({"lax": ("open", 0.5)}, "There is no level 'lax'. Try: one of strict, standard, open"),
        ({"strict": ("lax", 0.5)}, "There is no level 'lax'."),
        ({0.3: ("open", 0.5)}, "There is no level 0.3."),
        ({"strict": ("open", 1.5)}, "Nobody can be moved this way. level: (other level, fraction from 0 to 1)."),
        ({"strict": ("open", -0.1)}, "Nobody can be moved this way."),
        ({"strict": ("open", math.nan)}, "Nobody can be moved this way."),
        ({"strict": ("open", "half")}, "Nobody can be moved this way."),
        ({"strict": "open"}, "Nobody can be moved this way."),
        ({"strict": 0.5}, "Nobody can be moved this way."),
        ([("strict", "open", 0.5)], "Nobody can be moved this way."),
        ("strict", "Nobody can be moved this way."),
        ({"strict": ("standard", 0.8), 0.05: ("open", 0.5)}, "The level strict is moved twice. By name and by epsilon"),
        ({0.05: ("open", 0), 0.0500000001: ("open", 1)}, "The level strict is moved twice."),
    ],
)
def test_moves_that_cannot_be_are_refused(move: Any, text: str) -> None:
    with pytest.raises(eps.PlanError) as caught:
        eps.plan("count", PEOPLE).what_if(move)
    assert text in str(caught.value)
    assert "Try: " in str(caught.value)


def test_with_everyone_public_there_is_nothing_to_plan() -> None:
    with pytest.raises(eps.PlanError, match="There is nothing to plan"):
        eps.plan("count", [eps.PUBLIC] * 3)
    with pytest.raises(eps.PlanError, match="There is nothing to plan"):
        eps.plan("count", [])
    plan = eps.plan("count", [0.5, 1.0, eps.PUBLIC])
    with pytest.raises(eps.PlanError, match="There would be nothing to plan"):
        plan.what_if({0.5: (eps.PUBLIC, 1), 1.0: (eps.PUBLIC, 1)})


# Choosing -----------------------------------------------------------------------------------------------------------


def test_ranking_is_remembered_and_choosing_agrees_with_it() -> None:
    question, levels = Question(Mean((0, 100))), roster_of([0.1, 1.0]).levels
    assert rank_mechanisms(question, levels) is rank_mechanisms(question, levels)
    mechanism, why = choose("auto", question, levels)
    assert mechanism == rank_mechanisms(question, levels)[0].chosen
    assert why.startswith("Least predicted error of all, assuming that people's preferences say nothing")


@pytest.mark.parametrize(("assume", "fallback"), [("unrelated", "sample"), ("nothing", "exponential")])
def test_where_nothing_can_be_predicted_there_is_a_default(assume: str, fallback: str) -> None:
    plan = eps.plan("max", PEOPLE, bounds=(0, 100), assume=assume, complete=True)
    assert plan.best.mechanism == fallback
    assert plan.best.error is None


def test_where_the_number_of_values_is_private_the_default_is_the_strictest() -> None:
    """The exponential mechanism needs it to be public."""
    assert eps.plan("max", PEOPLE, bounds=(0, 100), assume="nothing").best.mechanism == "minimum"


@pytest.mark.parametrize("statistic", ["count", "sum", "mean"])
def test_among_equals_the_plainest_mechanism_is_taken(statistic: str) -> None:
    """Where everyone granted the same no coin helps; where nobody knows the error, the order is another one."""
    bounds = {} if statistic == "count" else {"bounds": (0, 100)}
    plan = eps.plan(statistic, [1.0] * 1000, **bounds)
    error = next(row.error for row in plan.rows if row.mechanism == "minimum")
    tied = [row.mechanism for row in plan.rows if row.error == pytest.approx(error, rel=1e-9)]
    assert len(tied) > 2
    assert (tied[0], tied[-1]) == ("minimum", "sample")


# A plan is a value that can be asked --------------------------------------------------------------------------------

SMALL = [0.1] * 20 + [0.5] * 30 + [2.0] * 10 + [eps.PUBLIC] * 5
VALUES = [float(place % 50) for place in range(len(SMALL))]


def arguments_of(name: str) -> dict[str, Any]:
    """The public facts that a statistic needs on arrays."""
    own = CATALOGUE[name].own(ARRAYS)
    known = {"bounds": (0, 50), "q": 0.7, "edges": [0, 20, 50], "bounds_X": (0, 50), "bounds_y": (0, 50)}
    known["bounds_x"] = (0, 50)
    found = {key: value for key, value in known.items() if key in own}
    found |= {"among": [0, 1, 2]} if "among" in own else {}
    return found | ({"k": 2} if name == "top" else {}) | ({"classes": (0, 1)} if "classes" in own else {})


def data_of(name: str) -> tuple[Any, ...]:
    entry = CATALOGUE[name]
    return (
        (VALUES, VALUES[::-1]) if entry.pair else ([[value] for value in VALUES], VALUES) if entry.model else (VALUES,)
    )


@pytest.mark.parametrize("assume", ASSUMPTIONS)
@pytest.mark.parametrize("share", [1, 0.25])
@pytest.mark.parametrize("name", CATALOGUE)
def test_a_row_gives_what_it_showed(name: str, share: float, assume: str) -> None:
    plan = eps.plan(name, SMALL, share=share, assume=assume, **arguments_of(name))
    for row in plan.rows:
        release = plan[row.mechanism].ask(*data_of(name))
        assert release.mechanism == row.mechanism
        assert release.charges == pytest.approx(dict(row.charges))
        assert list(release.charges) == [0.1, 0.5, 2.0, math.inf]
        shown = row.expected
        # After an answer its error is read off what was released; the worst of a mean of rows, too, within the bounds.
        rows = plan.question.statistic.private_count and name in ("mean", "variance")
        if assume == "nothing" and (rows or CATALOGUE[name].model):
            most = plan.question.statistic.max_error  # type: ignore[attr-defined]
            assert release.no_error if release.error is None else 0 < release.error <= most
        elif math.isfinite(shown) and assume == "nothing":
            assert release.error == (dict.fromkeys(release.value, shown) if name == "histogram" else shown)
    best = plan.ask(*data_of(name))
    assert best.mechanism == plan.best.mechanism
    assert best.why.startswith(("Least", "No error can be predicted"))
    assert plan.best.ask(*data_of(name)).why.startswith("Asked for by name")


def test_a_row_is_what_the_same_mechanism_gives_by_name() -> None:
    """Also its threshold, whose default was another one in plans than in answers."""
    plan = eps.plan("count", [0.001] * 900 + [0.1] * 100)
    for row in plan.rows:
        named = eps.count([1] * 1000, [0.001] * 900 + [0.1] * 100, mechanism=row.mechanism)
        assert (named.charges, named.mechanism) == (dict(row.charges), row.mechanism)


def test_a_plan_takes_every_option_of_its_statistic() -> None:
    smooth: dict[str, Any] = {"gamma": 4, "scale": "tight", "inside": "sample"}
    plan = eps.plan("median", SMALL, bounds=(0, 50), mechanism="smooth-sensitivity", missing="center", **smooth)
    assert plan["smooth-sensitivity"].chosen == create("smooth-sensitivity", plan.question.statistic, **smooth)
    assert len(plan.rows) > 3
    assert plan.ask(VALUES).mechanism == "smooth-sensitivity"
    with pytest.raises(eps.PlanError, match="'exponential' takes no gamma"):
        eps.plan("median", SMALL, bounds=(0, 50), mechanism="exponential", **smooth)
    # What another mechanism takes does not keep a row from being asked.
    assert plan["minimum"].ask(VALUES).mechanism == "minimum"
    with pytest.raises(eps.PlanError, match="'exponential' cannot serve a mean"):
        eps.plan("mean", SMALL, bounds=(0, 50), mechanism="exponential")
    seen = eps.plan("median", SMALL, bounds=(0, 50), entropy=seeded(4)).ask(VALUES)
    assert seen.value == eps.median(VALUES, SMALL, bounds=(0, 50), entropy=seeded(4)).value


def test_a_plan_at_another_share_is_asked_at_that_share() -> None:
    plan = eps.plan("count", SMALL, error=20)
    assert plan.share < 1
    assert plan.ask(VALUES).charges == pytest.approx(dict(plan.best.charges))
    assert plan.at(Fraction(1, 100)).ask(VALUES).charges[2.0] <= 0.02


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: eps.plan("count", SMALL).what_if({0.1: (0.5, 1)}).ask(VALUES), "This plan cannot be asked."),
        (lambda: eps.plan("count", SMALL)["nothing"], "'nothing' cannot serve this question."),
        (lambda: eps.plan("count", SMALL).ask(), "plan.ask needs 'values'."),
        (lambda: eps.plan("count", SMALL).ask(VALUES, VALUES), "plan.ask takes at most 1 arguments by place."),
        (lambda: eps.plan("count", SMALL).ask(VALUES, share=0.1), "plan.ask takes no share."),
        (lambda: eps.plan("count", SMALL, share=0.5, error=9), "Both a share and an error were given."),
        (lambda: eps.plan("count", 0.5, people="65"), "people='65' is not allowed."),
        (lambda: eps.plan("count", SMALL, people=3), "3 people and 65 epsilons."),
        (lambda: eps.plan("kth_largest", SMALL, k=99, bounds=(0, 1)), "There is no k=99 among 65 people."),
        (lambda: eps.plan("count", SMALL).ask(VALUES[1:]), "64 values and 65 epsilons."),
        (
            lambda: eps.plan("linear_regression", SMALL, bounds_X=(0, 1), bounds_y=(0, 1)).ask(
                [[1, 2]] * len(SMALL), VALUES
            ),
            "This plan is for 1 features, and there are 2.",
        ),
    ],
)
def test_what_cannot_be_asked_says_why(ask: Any, words: str) -> None:
    with pytest.raises(eps.EpsilonsError) as caught:
        ask()
    assert caught.value.what == words

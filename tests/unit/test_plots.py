"""Pictures of plans and of a ledger's spending."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

import epsilons as eps
from epsilons.accuracy.relation import holds
from epsilons.ledger.ledger import Ledger
from epsilons.mechanisms.base import list_mechanisms
from epsilons.plots import new_axes, pick_color, plot_answer, plot_change, plot_health, plot_plan, plot_spending
from support.ledgers import key, nano, person

if TYPE_CHECKING:
    from matplotlib.axes import Axes

pytest.importorskip("matplotlib")


@pytest.fixture
def plan() -> eps.Plan:
    return eps.plan("mean", [0.05] * 50 + [1.0] * 50 + [eps.PUBLIC] * 5, bounds=(0, 100), spread=15)


def test_a_plan_draws_one_curve_per_mechanism(plan: eps.Plan) -> None:
    axes = plan.plot()
    names = {line.get_label() for line in axes.get_lines()}
    assert names == {r.mechanism for r in plan.rows} - {plan.best.mechanism} | {f"{plan.best.mechanism} (best)"}
    assert "mean in [0, 100]" in axes.get_title()
    assert "no level's expected mean, weighted by how many of it count, is further than" in axes.get_title()
    assert axes.get_yscale() == "log"
    thick = [line for line in axes.get_lines() if line.get_linewidth() > 2]
    assert [line.get_label() for line in thick] == [f"{plan.best.mechanism} (best)"]
    assert all(len(line.get_xdata()) == 20 for line in axes.get_lines())


def shown_within(axes: Axes, text: Any) -> bool:
    """Whether all of a text lies on the picture, at its size on paper."""
    figure: Any = axes.figure
    figure.draw_without_rendering()
    box, page = text.get_window_extent(), figure.bbox
    return bool(page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1)


def test_a_condition_is_all_on_the_picture(plan: eps.Plan) -> None:
    """It is longer than a line; what is above or below an axis goes beyond the edge unless it is broken."""
    axes = plan.plot()
    assert "and values spread by about 15 (given)" in axes.get_title()
    assert shown_within(axes, axes.title)
    axes.title.set_wrap(False)
    assert not shown_within(axes, axes.title)
    held = holds(plan.assumption)
    answered = plot_answer(["wage"], [1.0], [(0.0, 2.0)], "weighted", f"mean\n{held}", new_axes(5.4, 1.9))
    for drawn in (answered, plot_change(["weighted"], [1.0], [0.5], held, new_axes(5.4, 1.9))):
        assert held in drawn.get_xlabel()
        assert shown_within(drawn, drawn.xaxis.label)


def test_a_plan_draws_on_the_axes_it_is_given(plan: eps.Plan) -> None:
    axes = new_axes()
    assert plan.plot(axes) is axes


def test_what_cannot_be_predicted_is_left_out() -> None:
    axes = plot_plan("x", [0.5, 1.0], {"a": [math.inf, math.inf], "b": [2.0, 0.0], "c": [3.0, 1.0]}, "c")
    assert {line.get_label(): len(line.get_xdata()) for line in axes.get_lines()} == {"b": 1, "c (best)": 2}


def colors(plan: eps.Plan) -> dict[str, str]:
    return {str(line.get_label()).removesuffix(" (best)"): str(line.get_color()) for line in plan.plot().get_lines()}


def test_a_mechanism_has_one_color_in_every_picture(plan: eps.Plan) -> None:
    """Another statistic, other people, another best one: what was drawn before keeps its colour."""
    other = colors(eps.plan("count", [0.5] * 9 + [0.6], density=0.1, assume="nothing"))
    both = colors(plan).keys() & other.keys()
    assert len(both) >= 4
    assert {name: other[name] for name in both} == {name: colors(plan)[name] for name in both}
    assert other == {name: pick_color(name) for name in other}


def test_no_two_mechanisms_share_a_color() -> None:
    names = [*list_mechanisms(), "local-sensitivity", "sampling-privacy", "randomized-response", "quartile", "my-own"]
    assert len({pick_color(name) for name in names}) == len(set(names))


def luminance(color: str) -> float:
    channels = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("mechanism", [*list_mechanisms(), "local-sensitivity", *(f"made-up-{n}" for n in range(40))])
def test_a_color_shows_on_white_and_on_a_dark_page(mechanism: str) -> None:
    """Contrast as WCAG defines it, at least 2 on both."""
    color = luminance(pick_color(mechanism))
    assert 1.05 / (color + 0.05) > 2
    assert (color + 0.05) / (luminance("#1a2128") + 0.05) > 2


@pytest.mark.parametrize("share", [0.001, 1.0])
@pytest.mark.parametrize("assume", ["unrelated", "nothing"])
def test_every_predictable_question_can_be_drawn(share: float, assume: str) -> None:
    epsilons = [0.01, 0.0100000001, 0.5, 2.0, eps.PUBLIC]
    for statistic, arguments in (("count", {}), ("mean", {"bounds": (0, 10)}), ("histogram", {"edges": [0, 1, 2]})):
        drawn = eps.plan(statistic, epsilons, share=share, assume=assume, **arguments).plot()
        drawn.figure.canvas.draw()


@pytest.mark.parametrize(("statistic", "assume"), [("max", "unrelated"), ("median", "nothing")])
def test_what_nobody_can_predict_is_not_drawn(statistic: str, assume: str) -> None:
    plan = eps.plan(statistic, [0.5, 1.0], bounds=(0, 10), assume=assume)
    with pytest.raises(eps.PlanError, match=rf"No error can be predicted for a {statistic}.*Try: print\(plan\)"):
        plan.plot()


def spend(book: Ledger, name: str, share: Fraction, **more: bool) -> int:
    may = book.allowance(share)
    number = book.reserve(key(name), may.nano, epoch=may.epoch, kind="count", **more).number
    book.mark_read(number)
    return number


@pytest.fixture
def book() -> Ledger:
    made = eps.ledger.open()
    made.settle_terms("absent", 1, allow_individual=True)
    made.enroll([person("ann"), person("bob"), person("cy")], [nano("0.1"), nano("1"), None])
    return made


def test_spending_is_a_line_of_steps_for_each_level(book: Ledger) -> None:
    spend(book, "one", Fraction(1, 2))
    may = book.allowance(Fraction(1, 10))
    book.refund(book.reserve(key("back"), may.nano, epoch=may.epoch, kind="count").number)
    book.set_grants([person("bob")], [nano("2")])
    spend(book, "two", Fraction(1, 4))
    drawn = steps(plot_spending(book.history()))
    assert drawn == {"epsilon 0.1": [0, 50, 75], "epsilon 1": [0, 50, 50], "epsilon 2": [0, 0, 25]}
    # With the cohorts: bob came to the level of 2 with half an epsilon spent.
    drawn = steps(plot_spending(book.history(), book.cohorts()))
    assert math.isnan(drawn["epsilon 2"][0])
    assert drawn["epsilon 2"][2] == 50
    assert (drawn["epsilon 0.1"], drawn["epsilon 1"]) == ([0, 50, 75], [0, 50, 50])


def steps(axes: Axes) -> dict[str, list[float]]:
    axes.figure.canvas.draw()
    assert all(list(line.get_xdata()) == [0, 1, 3] for line in axes.get_lines())
    return {str(line.get_label()): list(line.get_ydata()) for line in axes.get_lines()}


def test_those_who_paid_most_are_shown(book: Ledger) -> None:
    spend(book, "one", Fraction(1, 2))
    book.enroll([person("dora")], [nano("1")])
    spend(book, "two", Fraction(1, 4))
    axes = plot_spending(book.history(), book.cohorts())
    assert [list(line.get_ydata()) for line in axes.get_lines()] == [[0, 50, 75], [0, 50, 75]]


def test_spending_shows_the_mark_of_individual_privacy(book: Ledger) -> None:
    spend(book, "one", Fraction(1, 10))
    marked = spend(book, "two", Fraction(1, 10), individual=True)
    spend(book, "three", Fraction(1, 10))
    labels = [line.get_label() for line in plot_spending(book.history()).get_lines()]
    assert labels[-1] == f"not DP since release {marked}"


def test_a_ledger_that_nobody_asked_can_be_drawn(book: Ledger) -> None:
    axes = new_axes()
    assert plot_spending(book.history(), axes=axes) is axes
    axes.figure.canvas.draw()


def test_budgets_have_a_few_dates_however_long_they_lasted() -> None:
    """Some spans lie between two units; matplotlib warned of them, and wrote twice as many."""
    first = datetime(2026, 11, 19, 6, 5, tzinfo=UTC)
    for seconds in (1.7**power for power in range(2, 38)):  # to eighteen years
        axes = plot_health([first, first + timedelta(seconds=seconds)], {"strict": [0.0, 1.0]})
        assert 2 <= len(axes.xaxis.get_majorticklocs()) <= 6, seconds

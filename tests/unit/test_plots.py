"""Pictures of plans."""

import math

import pytest

import epsilons as eps
from epsilons.plots import new_axes, plot_plan

pytest.importorskip("matplotlib")


@pytest.fixture
def plan() -> eps.Plan:
    return eps.plan("mean", [0.05] * 50 + [1.0] * 50 + [eps.PUBLIC] * 5, bounds=(0, 100), spread=15)


def test_a_plan_draws_one_curve_per_mechanism(plan: eps.Plan) -> None:
    axes = plan.plot()
    names = {line.get_label() for line in axes.get_lines()}
    assert names == {r.mechanism for r in plan.rows} - {plan.best.mechanism} | {f"{plan.best.mechanism} (best)"}
    assert "mean in [0, 100]" in axes.get_title()
    assert axes.get_yscale() == "log"
    thick = [line for line in axes.get_lines() if line.get_linewidth() > 2]
    assert [line.get_label() for line in thick] == [f"{plan.best.mechanism} (best)"]
    assert all(len(line.get_xdata()) == 20 for line in axes.get_lines())


def test_a_plan_draws_on_the_axes_it_is_given(plan: eps.Plan) -> None:
    axes = new_axes()
    assert plan.plot(axes) is axes


def test_what_cannot_be_predicted_is_left_out() -> None:
    axes = plot_plan("x", [0.5, 1.0], {"a": [math.inf, math.inf], "b": [2.0, 0.0], "c": [3.0, 1.0]}, "c")
    assert {line.get_label(): len(line.get_xdata()) for line in axes.get_lines()} == {"b": 1, "c (best)": 2}


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

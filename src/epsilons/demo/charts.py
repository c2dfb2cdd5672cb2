"""The pictures of the report: each is (inline SVG that follows the page's colours, what it shows in words)."""

import html
import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from epsilons.accuracy.relation import holds
from epsilons.demo.people import GROUPS, Population
from epsilons.demo.questions import DemoResult, LedgerSummary
from epsilons.plots import INK, draw_svg, new_axes, pick_color, pick_line

TRUTH = "#8b95a1"
#: The groups of people, and what is written on them.
SHADES = ("#14606f", "#1f8a9e", "#6cc3cf")
ON_SHADES = ("#ffffff", "#ffffff", "#0b2a30")

#: The level that strict people move to in the chart of consent.
MOVED_TO = 0.5

Arguments = ParamSpec("Arguments")


def _as_svg(draw: Callable[Arguments, tuple[Axes, str]]) -> Callable[Arguments, tuple[str, str]]:
    """Draw in the page's style without touching the user's, and turn the axes into an <svg> element."""
    # Keeps the ids of one chart apart from those of the others.
    name = draw.__name__.removeprefix("chart_")

    @wraps(draw)
    def drawn(*args: Arguments.args, **kwargs: Arguments.kwargs) -> tuple[str, str]:
        told: list[str] = []

        def draw_axes() -> Axes:
            axes, text = draw(*args, **kwargs)
            told.append(text)
            return axes

        svg, (text,) = draw_svg(draw_axes), told
        # The metadata and namespaces name addresses that a page does not need.
        svg = re.sub(r'<metadata>.*?</metadata>|\sxmlns(:\w+)?="[^"]*"', "", svg, flags=re.DOTALL)
        svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
        # Only the viewBox stays, so that the page decides on the size.
        head, body = svg.split(">", 1)
        head = re.sub(r'\s(width|height)="[^"]*"', "", head)
        label = html.escape(text, quote=True)
        return f'{head} role="img" aria-label="{label}"><title>{html.escape(text)}</title>{body}', text

    return drawn


def _put_condition(axes: Axes, label: str, what: str, assumption: str) -> str:
    """Below the label of the lower axis: when what is shown holds; the words of it."""
    held = f"{what} {holds(assumption)}"
    axes.set_xlabel(f"{label}\n{held}", wrap=True)
    return held


@_as_svg
def chart_preferences(people: Population) -> tuple[Axes, str]:
    sizes = [len(people.granted(place)) for place in range(len(GROUPS))]
    axes = new_axes(8, 2.9)
    bars = axes.barh([f"{group.name}\nε {group.range}" for group in GROUPS], sizes, color=SHADES, height=0.68)
    axes.bar_label(bars, [f" {n:,} people ({n / len(people):.0%})" for n in sizes], padding=3)
    axes.invert_yaxis()
    axes.set(xlim=(0, max(sizes) * 1.32), xlabel="number of people")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.tick_params(axis="y", length=0)
    listed = "; ".join(f"{g.name} (epsilon {g.range}): {n:,}" for g, n in zip(GROUPS, sizes, strict=True))
    return axes, f"Bar chart of people by group. {listed}."


@_as_svg
def chart_mean(one: DemoResult) -> tuple[Axes, str]:
    """Every mechanism's mean with its 95% interval, against the true one."""
    answers = [answer for answer in one.answers if answer.interval is not None]
    show = one.question.show
    low, high = min(a.interval[0] for a in answers), max(a.interval[1] for a in answers)
    room = (high - low) * 0.08
    axes = new_axes(8, 0.5 * len(answers) + 2.2)
    axes.axvline(one.truth, color=TRUTH, linewidth=2.5, zorder=0)
    for place, answer in enumerate(answers):
        value, color = answer.release.value, pick_color(answer.mechanism)
        axes.plot(answer.interval, (place, place), color=color, linewidth=5, alpha=0.7, solid_capstyle="round")
        if low - room <= value <= high + room:
            axes.plot(value, place, "o", color=color, markersize=9, markeredgecolor="white")
        else:
            # An arrow for an answer that lies beyond the edge.
            edge, start, side = (1.0, 0.965, "right") if value > high else (0.0, 0.035, "left")
            across = axes.get_yaxis_transform()
            arrow = {"arrowstyle": "-|>", "color": color, "linewidth": 2}
            axes.annotate("", (edge, place), (start, place), across, across, arrowprops=arrow)
            text = f"answer: {show(value)}"
            axes.text(start, place - 0.14, text, transform=across, ha=side, va="bottom", fontsize=11)
    names = [f"{a.mechanism}\n{one.praise}" if a is one.best else a.mechanism for a in answers]
    axes.set_yticks(range(len(answers)), names)
    axes.set(ylim=(len(answers) - 0.5, -0.5), xlim=(low - room, high + room))
    held = _put_condition(axes, f"mean wage ({one.question.unit})", "95% intervals", one.best.release.assumption)
    axes.xaxis.set_major_formatter("${x:,.0f}")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    handles = [
        Line2D([], [], color=TRUTH, linewidth=2.5, label=f"truth ({show(one.truth)})"),
        Line2D([], [], color=INK, marker="o", markersize=8, linewidth=5, alpha=0.7, label="answer, 95% interval"),
    ]
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    listed = "; ".join(
        f"{a.mechanism}: answer {show(a.release.value)}, interval {show(a.interval[0])} to {show(a.interval[1])}"
        for a in answers
    )
    return axes, f"The mean weekly wage by mechanism with {held}; the truth is {show(one.truth)}. {listed}."


@_as_svg
def chart_histogram(one: DemoResult) -> tuple[Axes, str]:
    """People per class of wages: the private answer beside the truth."""
    private, spans, color = one.best.release.value, one.best.interval, pick_color(one.best.mechanism)
    axes = new_axes(8, 4.3)
    width = 0.4
    for place, key in enumerate(private):
        axes.bar(place - width / 2, one.truth[key], width, color=TRUTH)
        axes.bar(place + width / 2, private[key], width, color=color)
        axes.plot((place + width / 2,) * 2, spans[key], color=INK, linewidth=1.6)
    names = [f"${low:,.0f}–\n{high:,.0f}" for low, high in private]
    names[-1] = f"${list(private)[-1][0]:,.0f}\nor more"
    axes.set_xticks(range(len(private)), names, fontsize=10)
    axes.set_ylabel("number of people")
    held = _put_condition(axes, "weekly wage (dollars)", "95% intervals", one.best.release.assumption)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    handles = [
        Patch(color=TRUTH, label="truth"),
        Patch(color=color, label=f"private answer ({one.best.mechanism})"),
        Line2D([], [], color=INK, linewidth=1.6, label="95% interval"),
    ]
    axes.legend(handles=handles)
    listed = "; ".join(f"${k[0]:,.0f} to ${k[1]:,.0f}: {n:,.0f} (truth {one.truth[k]:,})" for k, n in private.items())
    return axes, f"People by weekly wage, the private answer with {held} beside the truth. {listed}."


@_as_svg
def chart_consent(one: DemoResult) -> tuple[Axes, str]:
    """What the mean's error would be if some of the strict people asked for less privacy."""
    strict = [granted for granted in one.best.release.charges if granted < GROUPS[0].high]
    fractions = [step / 20 for step in range(20)] + [0.98, 1.0]
    curves: dict[str, list[float]] = {name: [] for name in ("minimum", "sample", one.best.mechanism)}
    for fraction in fractions:
        # Levels of a table's plan go by the names of the grants; their epsilons are what a question may use.
        plan = one.plan.what_if({f"{granted:g}": (f"{MOVED_TO:g}", fraction) for granted in strict})
        errors = {row.mechanism: row.expected for row in plan.rows}
        for name, curve in curves.items():
            curve.append(errors[name])
    axes = new_axes(8, 4.3)
    for name, curve in curves.items():
        label = f"{name} ({one.praise})" if name == one.best.mechanism else name
        axes.plot([100 * f for f in fractions], curve, **pick_line(name), linewidth=3, label=label)
    # One curve is twenty times the others: equal steps are equal factors.
    axes.set(xlim=(0, 101), yscale="log", yticks=[1, 2, 5, 10, 20, 50], ylabel="predicted error\n(dollars a week)")
    axes.minorticks_off()
    label = f"strict people (ε below {GROUPS[0].high:g}) who would move to ε = {MOVED_TO:g} (percent)"
    held = _put_condition(axes, label, "errors", one.plan.assumption)
    axes.xaxis.set_major_formatter("{x:.0f}%")
    axes.yaxis.set_major_formatter("${x:,.0f}")
    axes.grid()
    axes.legend(loc="center left", bbox_to_anchor=(0.02, 0.62))
    show = one.question.show
    ends = "; ".join(f"{n}: {show(c[0])} now, {show(c[-1])} if all move" for n, c in curves.items())
    return axes, f"Predicted error of the mean wage as strict people move to epsilon {MOVED_TO:g}; {held}. {ends}."


@_as_svg
def chart_spending(ledger: LedgerSummary) -> tuple[Axes, str]:
    axes = new_axes(8, 2.9)
    for place, group in enumerate(ledger.groups):
        parts = [0.0, *(100 * step[place] for step in ledger.spending)]
        # Groups often spend in step; lines of falling width stay visible under each other.
        width = 1.5 + 1.5 * (len(ledger.groups) - 1 - place)
        axes.step(range(len(parts)), parts, where="post", color=SHADES[place], linewidth=width, label=group.name)
    axes.set(xlim=(0, len(ledger.spending) + 0.2), ylim=(0, 105), xlabel="release", ylabel="spent of the grant")
    axes.yaxis.set_major_formatter("{x:.0f}%")
    axes.locator_params(axis="x", integer=True)
    axes.legend(loc="upper left")
    last = ", ".join(f"{g.name} {100 * part:.0f}%" for g, part in zip(ledger.groups, ledger.spending[-1], strict=True))
    return axes, f"Steps of what people spent of their grants, release by release. After the last one: {last}."


@_as_svg
def chart_left(ledger: LedgerSummary) -> tuple[Axes, str]:
    groups = ledger.groups
    axes = new_axes(8, 2.9)
    names, left = [group.name for group in groups], [100 * group.part for group in groups]
    axes.barh(names, left, color=SHADES, height=0.62)
    axes.barh(names, [100 - part for part in left], left=left, color=TRUTH, alpha=0.35, height=0.62)
    for place, (group, color) in enumerate(zip(groups, ON_SHADES, strict=True)):
        axes.text(2, place, f"{group.left:.3g} of {group.granted:.3g} left", color=color, va="center")
        axes.text(101.5, place, f"{group.more} more", va="center")
    axes.invert_yaxis()
    axes.set(xlim=(0, 118), xticks=range(0, 101, 25))
    axes.xaxis.set_major_formatter("{x:.0f}%")
    axes.set_xlabel("of what people granted, on average; right: more questions like the last one")
    axes.tick_params(axis="y", length=0)
    more = "{0.name}: {0.left:.3f} of {0.granted:.3f} left, {0.more} more like the last one"
    listed = "; ".join(map(more.format, groups))
    return axes, f"Bars of what is left of people's grants after {len(ledger.spending)} answers. {listed}."


@_as_svg
def chart_budget(ledger: LedgerSummary) -> tuple[Axes, str]:
    """A mean's error against the number of questions, under each kind of account."""
    axes, plan = new_axes(8, 3.4), ledger.budget
    lines = {"pure": ("-", "epsilons add up (pure)"), "zcdp": ("--", f"concentrated, delta {plan.delta:g} (zcdp)")}
    for account, (style, label) in lines.items():
        curve = [(row.questions, row.mean) for row in plan.curve if row.account == account]
        axes.plot(*zip(*curve, strict=True), style, color=INK, linewidth=3, label=label)
    axes.axvline(plan.questions, color=TRUTH, linewidth=2.5, zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="questions", ylabel="expected error of a mean\n(part of its bounds)")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:.1%}")
    axes.grid()
    axes.legend(loc="upper left")
    told = "; ".join(f"{row.account}: {row.mean:.2%}" for row in plan.rows)
    return (
        axes,
        f"Expected error of a mean, of its bounds' width, by number of questions. At {plan.questions}: {told}.",
    )

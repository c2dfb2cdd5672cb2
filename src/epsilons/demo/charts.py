"""The pictures of the report. Each function gives (inline SVG, what it shows in words)."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from epsilons.demo.budgets import Books
from epsilons.demo.people import GROUPS, Population
from epsilons.demo.questions import Answered
from epsilons.demo.svg import INK, new_axes, page_style, to_svg

PRIVATE = "#1f8a9e"
BEST = "#e07b28"
TRUTH = "#8b95a1"
SHADES = ("#14606f", "#1f8a9e", "#6cc3cf")
#: What is written on them.
ON_SHADES = ("#ffffff", "#ffffff", "#0b2a30")

#: The level that strict people move to in the last chart.
MOVED_TO = 0.5


def chart_preferences(people: Population) -> tuple[str, str]:
    """People by how private they asked to be."""
    sizes = [people.size(place) for place in range(len(GROUPS))]
    listed = "; ".join(f"{g.name} (epsilon {g.range}): {n:,}" for g, n in zip(GROUPS, sizes, strict=True))
    words = f"Bar chart of people by group. {listed}."
    with page_style():
        axes = new_axes(8, 2.9)
        labels = [f"{group.name}\nε {group.range}" for group in GROUPS]
        bars = axes.barh(labels, sizes, color=SHADES, height=0.68)
        notes = [f" {n:,} people ({n / len(people):.0%})" for n in sizes]
        axes.bar_label(bars, notes, padding=3)
        axes.invert_yaxis()
        axes.set_xlim(0, max(sizes) * 1.32)
        axes.set_xlabel("number of people")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.tick_params(axis="y", length=0)
        return to_svg(axes, "preferences", words), words


def chart_mean(one: Answered) -> tuple[str, str]:
    """Every mechanism's mean with its 95% interval, against the true one."""
    answers = [answer for answer in one.answers if answer.interval is not None]
    show = one.asked.show
    listed = "; ".join(
        f"{a.mechanism}: answer {show(a.release.value)}, interval {show(a.interval[0])} to {show(a.interval[1])}"
        for a in answers
    )
    words = f"The mean weekly wage by mechanism with 95% intervals; the truth is {show(one.truth)}. {listed}."
    low, high = min(a.interval[0] for a in answers), max(a.interval[1] for a in answers)
    room = (high - low) * 0.08
    with page_style():
        axes = new_axes(8, 0.5 * len(answers) + 1.8)
        axes.axvline(one.truth, color=TRUTH, linewidth=2.5, zorder=0)
        for place, answer in enumerate(answers):
            value, colour = answer.release.value, BEST if answer is one.best else PRIVATE
            axes.plot(answer.interval, (place, place), color=colour, linewidth=5, alpha=0.55, solid_capstyle="round")
            if low - room <= value <= high + room:
                axes.plot(value, place, "o", color=colour, markersize=9, markeredgecolor="white")
            else:
                _point_outside(axes, place, colour, f"answer: {show(value)}", right=value > high)
        axes.set_yticks(range(len(answers)), [answer.mechanism for answer in answers])
        axes.set_ylim(len(answers) - 0.5, -0.5)
        axes.set_xlim(low - room, high + room)
        axes.set_xlabel(f"mean wage ({one.asked.unit})")
        axes.xaxis.set_major_formatter("${x:,.0f}")
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        handles = [
            Line2D([], [], color=TRUTH, linewidth=2.5, label=f"truth ({show(one.truth)})"),
            Line2D(
                [], [], color=PRIVATE, marker="o", markersize=8, linewidth=5, alpha=0.7, label="answer, 95% interval"
            ),
            Line2D([], [], color=BEST, marker="o", markersize=8, linewidth=5, alpha=0.7, label="best by the plan"),
        ]
        axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
        return to_svg(axes, "mean", words), words


def _point_outside(axes: Axes, place: int, colour: str, text: str, right: bool) -> None:
    """An arrow for an answer that lies beyond the edge."""
    edge, start = (1.0, 0.965) if right else (0.0, 0.035)
    axes.annotate(
        "",
        xy=(edge, place),
        xycoords=("axes fraction", "data"),
        xytext=(start, place),
        textcoords=("axes fraction", "data"),
        arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2},
    )
    side = "right" if right else "left"
    axes.text(start, place, text, transform=axes.get_yaxis_transform(), ha=side, va="center", fontsize=11)


def chart_histogram(one: Answered) -> tuple[str, str]:
    """People per class of wages: the private answer beside the truth."""
    private, spans = one.best.release.value, one.best.interval
    listed = "; ".join(
        f"${low:,.0f} to ${high:,.0f}: {private[low, high]:,.0f} (truth {one.truth[low, high]:,})"
        for low, high in private
    )
    words = f"People by weekly wage, the private answer beside the truth. {listed}."
    with page_style():
        axes = new_axes(8, 3.9)
        width = 0.4
        for place, key in enumerate(private):
            axes.bar(place - width / 2, one.truth[key], width, color=TRUTH)
            axes.bar(place + width / 2, private[key], width, color=PRIVATE)
            axes.plot((place + width / 2,) * 2, spans[key], color=INK, linewidth=1.6)
        names = [f"${low:,.0f}–\n{high:,.0f}" for low, high in private]
        low, _ = list(private)[-1]
        names[-1] = f"${low:,.0f}\nor more"
        axes.set_xticks(range(len(private)), names, fontsize=10)
        axes.set_xlabel("weekly wage (dollars)")
        axes.set_ylabel("number of people")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.grid(axis="y")
        axes.set_axisbelow(True)
        handles = [
            Patch(color=TRUTH, label="truth"),
            Patch(color=PRIVATE, label=f"private answer ({one.best.mechanism})"),
            Line2D([], [], color=INK, linewidth=1.6, label="95% interval"),
        ]
        axes.legend(handles=handles)
        return to_svg(axes, "histogram", words), words


def chart_consent(one: Answered) -> tuple[str, str]:
    """What the mean's error would be if some of the strict people asked for less privacy."""
    strict = [granted for granted in one.best.release.charges if granted < GROUPS[0].high]
    fractions = [step / 20 for step in range(20)] + [0.98, 1.0]
    curves: dict[str, list[float]] = {name: [] for name in ("minimum", "sample", one.best.mechanism)}
    for fraction in fractions:
        # Levels of a table's plan go by the names of the grants; their epsilons are what a question may use.
        plan = one.plan.what_if({f"{granted:g}": (f"{MOVED_TO:g}", fraction) for granted in strict})
        errors = {row.mechanism: row.judged_by("unrelated") for row in plan.rows}
        for name, curve in curves.items():
            curve.append(errors[name])
    ends = "; ".join(f"{n}: {one.asked.show(c[0])} now, {one.asked.show(c[-1])} if all move" for n, c in curves.items())
    words = f"Predicted error of the mean wage as strict people move to epsilon {MOVED_TO:g}. {ends}."
    colours = {"minimum": TRUTH, "sample": PRIVATE, one.best.mechanism: BEST}
    with page_style():
        axes = new_axes(8, 3.9)
        for name, curve in curves.items():
            label = f"{name} (best by the plan)" if name == one.best.mechanism else name
            axes.plot([100 * f for f in fractions], curve, color=colours[name], linewidth=3, label=label)
        axes.set_xlim(0, 101)
        # One curve is twenty times the others: equal steps are equal factors.
        axes.set_yscale("log")
        axes.set_yticks([1, 2, 5, 10, 20, 50], minor=False)
        axes.minorticks_off()
        axes.set_xlabel(f"strict people (ε below {GROUPS[0].high:g}) who would move to ε = {MOVED_TO:g} (percent)")
        axes.set_ylabel("predicted error\n(dollars a week)")
        axes.xaxis.set_major_formatter("{x:.0f}%")
        axes.yaxis.set_major_formatter("${x:,.0f}")
        axes.grid()
        axes.legend(loc="center left", bbox_to_anchor=(0.02, 0.62))
        return to_svg(axes, "consent", words), words


def chart_spending(books: Books) -> tuple[str, str]:
    """What every group had spent of its grants after each release."""
    last = ", ".join(f"{g.name} {100 * part:.0f}%" for g, part in zip(books.groups, books.spending[-1], strict=True))
    words = f"Steps of what people spent of their grants, release by release. After the last one: {last}."
    with page_style():
        axes = new_axes(8, 2.9)
        numbers = range(len(books.spending) + 1)
        for place, group in enumerate(books.groups):
            parts = [0.0, *(100 * step[place] for step in books.spending)]
            # Groups often spend in step; lines of falling width stay visible under each other.
            width = 1.5 + 1.5 * (len(books.groups) - 1 - place)
            axes.step(numbers, parts, where="post", color=SHADES[place], linewidth=width, label=group.name)
        axes.set_xlim(0, len(books.spending) + 0.2)
        axes.set_ylim(0, 105)
        axes.yaxis.set_major_formatter("{x:.0f}%")
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("release")
        axes.set_ylabel("spent of the grant")
        axes.legend(loc="upper left")
        return to_svg(axes, "spending", words), words


def chart_left(books: Books) -> tuple[str, str]:
    """What every group has left of its grants."""
    listed = "; ".join(
        f"{g.name}: {g.left:.3f} of {g.granted:.3f} left, {g.more} more questions like the last one"
        for g in books.groups
    )
    words = f"Bars of what is left of people's grants after {books.releases} answers. {listed}."
    with page_style():
        axes = new_axes(8, 2.9)
        names = [group.name for group in books.groups]
        left, spent = [100 * g.part for g in books.groups], [100 * (1 - g.part) for g in books.groups]
        axes.barh(names, left, color=SHADES, height=0.62)
        axes.barh(names, spent, left=left, color=TRUTH, alpha=0.35, height=0.62)
        for place, (group, colour) in enumerate(zip(books.groups, ON_SHADES, strict=True)):
            axes.text(2, place, f"{group.left:.3g} of {group.granted:.3g} left", color=colour, va="center")
            axes.text(101.5, place, f"{group.more} more", va="center")
        axes.invert_yaxis()
        axes.set_xlim(0, 118)
        axes.set_xticks(range(0, 101, 25))
        axes.xaxis.set_major_formatter("{x:.0f}%")
        axes.set_xlabel("of what people granted, on average; right: more questions like the last one")
        axes.tick_params(axis="y", length=0)
        return to_svg(axes, "left", words), words

"""Paper 3, Sampling Privacy: its figures and its claims, run again.

    python -m epsilons.papers.sampling_privacy --out figures

The answers are drawn from the operating system's randomness, as in a real collection; nobody's answer is real.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from epsilons.display import text_table
from epsilons.local import RandomizedResponse, ResponseProtocol, SamplingPrivacy
from epsilons.noise import Entropy, system

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Recurrences by tumour size, groups 1..11, among 10,000 owners (Figure 6).
FIGURE_6_TRUTH = (1, 0, 1, 7, 16, 18, 25, 7, 6, 1, 3)
FIGURE_6_PRINTED = {
    "Sampling Privacy": (3, 0, 3, 12, 24, 27, 36, 12, 11, 3, 6),
    "randomized response": (64, 63, 64, 70, 79, 81, 88, 70, 69, 64, 66),
}
POPULATION = 10_000
SAMPLING = SamplingPrivacy(options=11, sampling=0.45)
RESPONSE = RandomizedResponse(truth=0.8, yes=0.2)
#: Figure 6 draws Sampling Privacy at 2 standard deviations, randomized response at the 99% of a normal, 2.576.
PRINTED_DEVIATIONS = {"Sampling Privacy": 2.0, "randomized response": NormalDist().inv_cdf(0.995)}

CROWDS = tuple(10**k for k in range(3, 8))
YES = 100


@dataclass(frozen=True)
class Crowd:
    """The error of one protocol in one population: over `runs` runs, and as predicted."""

    protocol: str
    population: int
    runs: int
    measured: float
    predicted: float


def figure_6(deviations: dict[str, float] | None = None) -> dict[str, tuple[int, ...]]:
    """Each protocol's bars: the truth and so many standard deviations of the estimate above it, rounded down.

    Without `deviations` as printed, where the two protocols stand at different levels of confidence.

    >>> figure_6() == FIGURE_6_PRINTED
    True
    """
    protocols: dict[str, ResponseProtocol] = {"Sampling Privacy": SAMPLING, "randomized response": RESPONSE}
    above = PRINTED_DEVIATIONS if deviations is None else deviations
    return {
        name: tuple(math.floor(truth + above[name] * protocol.spread(truth, POPULATION)) for truth in FIGURE_6_TRUTH)
        for name, protocol in protocols.items()
    }


def figure_6_at(level: float) -> dict[str, tuple[int, ...]]:
    """The same with both protocols at one level of confidence (two-sided, normal)."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    return figure_6(dict.fromkeys(PRINTED_DEVIATIONS, z))


def constant_error(
    populations: Sequence[int] = CROWDS, yes: int = YES, runs: int = 40, entropy: Entropy | None = None
) -> list[Crowd]:
    """The error as the crowd grows and the group of Yes stays: every owner of every run answers by the protocol."""
    entropy = system() if entropy is None else entropy
    protocols: dict[str, ResponseProtocol] = {
        "Sampling Privacy": SamplingPrivacy(sampling=0.45),
        "randomized response": RESPONSE,
    }
    found = []
    for population in populations:
        truths = np.zeros(population, np.uint8)
        truths[:yes] = 1
        for name, protocol in protocols.items():
            errors = []
            for _ in range(runs):
                rounds = protocol.respond(truths, entropy=entropy)
                errors.append(protocol.estimate(*map(protocol.count, rounds)).value - yes)
            measured = math.sqrt(math.fsum(error**2 for error in errors) / runs)
            found.append(Crowd(name, population, runs, measured, protocol.spread(yes, population)))
    return found


def intro_deviations() -> list[tuple[int, float, float]]:
    """(population, as printed, true) standard deviations of randomized response at (.85, .3), 100 of them Yes."""
    response = RandomizedResponse(truth=0.85, yes=0.3)
    return [
        (population, math.sqrt(0.15 * 0.3 * population), response.spread(YES, population))
        for population in (10_000, 1_000_000)
    ]


def delta_table() -> list[tuple[str, float]]:
    """How likely published counts give more than epsilon 1 away, at a sampling rate of .45."""
    rows = [(f"{count:,} alike", SAMPLING.leakage("counts", count=count, epsilon=1).delta) for count in (1, 7, 25, 100)]
    moved = SAMPLING.leakage("counts", count=25, epsilon=1, neighbors="replace").delta
    binary = SamplingPrivacy(sampling=0.45)
    alone = binary.leakage("counts", count=7, population=7, epsilon=1).delta
    return [*rows, ("25 alike, against an option nobody has", moved), ("7 alike, and nobody else was asked", alone)]


# Figures --------------------------------------------------------------------------------------------------------------


def draw_constant_error(found: Sequence[Crowd]) -> Axes:
    """Error against population, measured and predicted."""
    from epsilons.plots import new_axes

    axes = new_axes(7.5, 4.8)
    colours = {"Sampling Privacy": "#1f8a9e", "randomized response": "#e07b28"}
    for name, colour in colours.items():
        rows = [row for row in found if row.protocol == name]
        populations = [row.population for row in rows]
        axes.plot(populations, [row.predicted for row in rows], color=colour, label=f"{name}, predicted")
        axes.plot(populations, [row.measured for row in rows], "o", color=colour, label=f"{name}, {rows[0].runs} runs")
    axes.axhline(YES, color="grey", linestyle=":", label=f"the group itself: {YES} people")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("people asked, of whom 100 have a Yes")
    axes.set_ylabel("error (RMSE), in people")
    axes.set_title("As the crowd grows, Sampling Privacy's error stays")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return axes


def draw_figure_6() -> Axes:
    """The printed bars, and both protocols at 95% beside them."""
    from epsilons.plots import new_axes

    axes = new_axes(9.5, 4.8)
    printed, alike = figure_6(), figure_6_at(0.95)
    series = {
        "truth": (FIGURE_6_TRUTH, "#8b95a1"),
        "Sampling Privacy, as printed (2 sd)": (printed["Sampling Privacy"], "#14606f"),
        "Sampling Privacy, 95%": (alike["Sampling Privacy"], "#6cc3cf"),
        "randomized response, as printed (2.58 sd)": (printed["randomized response"], "#a84f0c"),
        "randomized response, 95%": (alike["randomized response"], "#f0a868"),
    }
    places = np.arange(1, len(FIGURE_6_TRUTH) + 1)
    for number, (name, (bars, colour)) in enumerate(series.items()):
        drawn = axes.bar(places + (number - 2) * 0.17, bars, width=0.17, label=name, color=colour)
        axes.bar_label(drawn, fontsize=5.5)
    axes.set_xticks(places)
    axes.set_xlabel("tumour size, group")
    axes.set_ylabel("people with a recurrence: truth and upper bounds")
    axes.set_title("Figure 6: recurrences among 10,000 people")
    axes.legend(frameon=False, fontsize="small")
    return axes


def draw_figure_3() -> Axes:
    """Leakage against the second coin: as printed (Eqs. 29 and 30), and true."""
    from epsilons.plots import new_axes

    axes = new_axes(7.5, 4.8)
    chances = [k / 100 for k in range(2, 99)]
    responses = [RandomizedResponse(truth=0.8, yes=chance) for chance in chances]
    axes.plot(
        chances, [one.claim or 0.0 for one in responses], "--", color="#e07b28", label="randomized response, Eq. 30"
    )
    axes.plot(chances, [one.epsilon for one in responses], color="#e07b28", label="randomized response, true")
    rates = [chance for chance in chances if chance < 0.5]
    claims = [math.log1p(0.45 / chance) for chance in rates]
    axes.plot(rates, claims, "--", color="#1f8a9e", label="Sampling Privacy, Eq. 29: round two alone")
    top = 5.5
    axes.annotate(
        "Sampling Privacy, owner seen in both rounds:\nepsilon infinite, delta 0.45",
        (0.5, top * 0.97), ha="center", va="top", color="#1f8a9e",
    )  # fmt: skip
    axes.axhline(top * 0.99, color="#1f8a9e", linewidth=3)
    axes.set_ylim(0, top)
    axes.set_xlabel("probability of the second coin, or of the truthful output by chance")
    axes.set_ylabel("epsilon")
    axes.set_title("Figure 3: what is claimed, and what leaks")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="lower right")
    return axes


# Words ----------------------------------------------------------------------------------------------------------------


def report(found: Sequence[Crowd]) -> str:
    """Everything as text."""
    alike = figure_6_at(0.95)
    parts = [
        "Constant error: 100 people have a Yes, the crowd grows",
        text_table(
            ("population", "protocol", "RMSE measured", "RMSE predicted", ""),
            [(f"{r.population:,}", r.protocol, f"{r.measured:.1f}", f"{r.predicted:.1f}", "") for r in found],
        ),
        "Figure 6: upper bounds by group",
        text_table(
            ("", *(str(group) for group in range(1, 12)), ""),
            [
                _bars("truth", FIGURE_6_TRUTH),
                *(_bars(f"{name}, as printed", bars) for name, bars in figure_6().items()),
                *(_bars(f"{name}, 95%", bars) for name, bars in alike.items()),
            ],
        ),
        "Introduction: standard deviation of randomized response at (.85, .3)",
        text_table(
            ("population", "printed", "true", ""),
            [(f"{n:,}", f"{printed:.0f}", f"{true:.1f}", "") for n, printed, true in intro_deviations()],
        ),
        "Sampling Privacy, 11 options at .45: the paper's claim and what leaks",
        str(SAMPLING),
        "Randomized response at (.8, .2): the paper's claim and what leaks",
        str(RESPONSE),
        "Published counts, at epsilon 1",
        text_table(("whose answer", "delta", ""), [(name, f"{delta:.3g}", "") for name, delta in delta_table()]),
    ]
    return "\n\n".join(parts)


def _bars(name: str, bars: Sequence[int]) -> tuple[str, ...]:
    return (name, *(str(bar) for bar in bars), "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything, print it, write the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="directory for the figures (default: none are drawn)")
    parser.add_argument("--runs", type=int, default=40, help="runs of each protocol in each population (default 40)")
    parser.add_argument("--largest", type=int, default=7, choices=range(3, 8), help="populations up to 10^LARGEST")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs is at least 1")
    found = constant_error([n for n in CROWDS if n <= 10**options.largest], runs=options.runs)
    print(report(found))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        drawn = {
            "constant-error": draw_constant_error(found),
            "figure-3": draw_figure_3(),
            "figure-6": draw_figure_6(),
            "leakage": SAMPLING.plot_leakage(),
        }
        for name, axes in drawn.items():
            path = options.out / f"sampling-privacy-{name}.png"
            axes.get_figure(root=True).savefig(path, dpi=150)  # type: ignore[union-attr]
            print(f"figure in {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

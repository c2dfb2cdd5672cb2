"""Joy and Gerla 2017, Sampling Privacy: the paper's figures and its claims, run again.

    python -m epsilons.papers.sampling_privacy --out figures

The answers are drawn from the operating system's randomness, as in a real collection; no answer is a real person's.
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
from epsilons.noise import Entropy
from epsilons.plots import new_axes, pick_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Recurrences by tumour size, groups 1..11, among 10,000 owners (Figure 6).
FIGURE_6_TRUTH = (1, 0, 1, 7, 16, 18, 25, 7, 6, 1, 3)
POPULATION = 10_000
SAMPLING = SamplingPrivacy(options=11, sampling=0.45)
RESPONSE = RandomizedResponse(truth=0.8, yes=0.2)
PROTOCOLS: dict[str, ResponseProtocol] = {"Sampling Privacy": SAMPLING, "randomized response": RESPONSE}
COLORS = {"Sampling Privacy": pick_color("sampling-privacy"), "randomized response": pick_color("randomized-response")}
#: Figure 6 draws Sampling Privacy at 2 standard deviations, randomized response at the 99% of a normal, 2.576.
PRINTED_DEVIATIONS = {"Sampling Privacy": 2.0, "randomized response": NormalDist().inv_cdf(0.995)}

#: How many have a Yes while the crowd grows.
YES = 100


@dataclass(frozen=True)
class Crowd:
    """The error of one protocol in one population: over `runs` runs, and as predicted."""

    protocol: str
    population: int
    runs: int
    measured: float
    predicted: float


def figure_6(level: float | None = None) -> dict[str, tuple[int, ...]]:
    """Each protocol's bars: the truth and some standard deviations of the estimate above it, rounded down.

    At one level of confidence (two-sided, normal); by default as printed, where the protocols stand at different ones.

    >>> figure_6()["Sampling Privacy"]
    (3, 0, 3, 12, 24, 27, 36, 12, 11, 3, 6)
    """
    bars = {}
    for name, protocol in PROTOCOLS.items():
        above = PRINTED_DEVIATIONS[name] if level is None else NormalDist().inv_cdf((1 + level) / 2)
        bars[name] = tuple(math.floor(truth + above * protocol.spread(truth, POPULATION)) for truth in FIGURE_6_TRUTH)
    return bars


def constant_error(populations: Sequence[int], runs: int = 40, entropy: Entropy | None = None) -> list[Crowd]:
    """The error as the crowd grows and the group of Yes stays: every owner of every run answers by the protocol."""
    found = []
    for population in populations:
        truths = (np.arange(population) < YES).astype(np.uint8)
        for name, protocol in {**PROTOCOLS, "Sampling Privacy": SamplingPrivacy(sampling=0.45)}.items():
            rounds = (protocol.respond(truths, entropy=entropy) for _ in range(runs))
            errors = [protocol.estimate(*map(protocol.count, counted)).value - YES for counted in rounds]
            measured = math.sqrt(math.fsum(error**2 for error in errors) / runs)
            found.append(Crowd(name, population, runs, measured, protocol.spread(YES, population)))
    return found


def intro_deviations() -> list[tuple[int, float, float]]:
    """(population, as printed, true) standard deviations of randomized response at (.85, .3), 100 of them Yes."""
    response = RandomizedResponse(truth=0.85, yes=0.3)
    return [(n, math.sqrt(0.15 * 0.3 * n), response.spread(YES, n)) for n in (10_000, 1_000_000)]


def draw_constant_error(found: Sequence[Crowd]) -> Axes:
    axes = new_axes(7.5, 4.8)
    for name, color in COLORS.items():
        rows = [row for row in found if row.protocol == name]
        populations = [row.population for row in rows]
        axes.plot(populations, [row.predicted for row in rows], color=color, label=f"{name}, predicted")
        axes.plot(populations, [row.measured for row in rows], "o", color=color, label=f"{name}, {rows[0].runs} runs")
    axes.axhline(YES, color="grey", linestyle=":", label=f"the group itself: {YES} people")
    axes.set(title="As the crowd grows, Sampling Privacy's error stays", xscale="log", yscale="log")
    axes.set(xlabel=f"people asked, of whom {YES} have a Yes", ylabel="error (RMSE), in people")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return axes


def draw_figure_6() -> Axes:
    """The printed bars, and both protocols at 95% beside them in a lighter colour."""
    axes = new_axes(9.5, 4.8)
    series: list[tuple[str, Sequence[int], str, float]] = [("truth", FIGURE_6_TRUTH, "#8b95a1", 1.0)]
    for name, color in COLORS.items():
        printed = f"{name}, as printed ({PRINTED_DEVIATIONS[name]:.3g} sd)"
        series += [(printed, figure_6()[name], color, 1.0), (f"{name}, 95%", figure_6(0.95)[name], color, 0.5)]
    places = np.arange(1, len(FIGURE_6_TRUTH) + 1)
    for number, (label, bars, color, alpha) in enumerate(series):
        drawn = axes.bar(places + (number - 2) * 0.17, bars, width=0.17, label=label, color=color, alpha=alpha)
        axes.bar_label(drawn, fontsize=5.5)
    axes.set(xticks=places, xlabel="tumour size, group", ylabel="people with a recurrence: truth and upper bounds")
    axes.set(title="Figure 6: recurrences among 10,000 people")
    axes.legend(frameon=False, fontsize="small")
    return axes


def draw_figure_3() -> Axes:
    """Leakage against the second coin: as printed (Eqs. 29 and 30), and true."""
    axes = new_axes(7.5, 4.8)
    response, sampling = COLORS["randomized response"], COLORS["Sampling Privacy"]
    chances = [k / 100 for k in range(2, 99)]
    responses = [RandomizedResponse(truth=0.8, yes=chance) for chance in chances]
    claimed = [one.claim or 0.0 for one in responses]
    axes.plot(chances, claimed, "--", color=response, label="randomized response, Eq. 30")
    axes.plot(chances, [one.epsilon for one in responses], color=response, label="randomized response, true")
    rates = [chance for chance in chances if chance < 0.5]
    claims = [math.log1p(0.45 / chance) for chance in rates]
    axes.plot(rates, claims, "--", color=sampling, label="Sampling Privacy, Eq. 29: round two alone")
    top = 5.5
    both = "Sampling Privacy, owner seen in both rounds:\nepsilon infinite, delta 0.45"
    axes.annotate(both, (0.5, top * 0.97), ha="center", va="top", color=sampling)
    axes.axhline(top * 0.99, color=sampling, linewidth=3)
    axes.set(ylim=(0, top), xlabel="probability of the second coin, or of the truthful output by chance")
    axes.set(ylabel="epsilon", title="Figure 3: what is claimed, and what leaks")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="lower right")
    return axes


def describe(found: Sequence[Crowd]) -> str:
    bars: dict[str, tuple[int, ...]] = {"truth": FIGURE_6_TRUTH}
    bars |= {f"{name}, as printed": printed for name, printed in figure_6().items()}
    bars |= {f"{name}, 95%": alike for name, alike in figure_6(0.95).items()}
    crowds = [(f"{r.population:,}", r.protocol, f"{r.measured:.1f}", f"{r.predicted:.1f}", "") for r in found]
    # How likely published counts give more than epsilon 1 away, at a sampling rate of .45.
    leakages = [(f"{count:,} alike", SAMPLING.leakage("counts", count=count, epsilon=1)) for count in (1, 7, 25, 100)]
    replaced = SAMPLING.leakage("counts", count=25, epsilon=1, neighbors="replace")
    alone = SamplingPrivacy(sampling=0.45).leakage("counts", count=7, population=7, epsilon=1)
    leakages += [("25 alike, against an option of no one", replaced), ("7 alike, and no one else was asked", alone)]
    deviations = [(f"{n:,}", f"{printed:.0f}", f"{true:.1f}", "") for n, printed, true in intro_deviations()]
    parts = (
        "Constant error: 100 people have a Yes, the crowd grows",
        text_table(("population", "protocol", "RMSE measured", "RMSE predicted", ""), crowds),
        "Figure 6: upper bounds by group",
        text_table(("", *map(str, range(1, 12)), ""), [(name, *map(str, row), "") for name, row in bars.items()]),
        "Introduction: standard deviation of randomized response at (.85, .3)",
        text_table(("population", "printed", "true", ""), deviations),
        "Sampling Privacy, 11 options at .45: the paper's claim and what leaks",
        str(SAMPLING),
        "Randomized response at (.8, .2): the paper's claim and what leaks",
        str(RESPONSE),
        "Published counts, at epsilon 1",
        text_table(("whose answer", "delta", ""), [(name, f"{one.delta:.3g}", "") for name, one in leakages]),
    )
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="directory for the figures (default: none are drawn)")
    parser.add_argument("--runs", type=int, default=40, help="runs of each protocol in each population (default 40)")
    parser.add_argument("--largest", type=int, default=7, choices=range(3, 8), help="populations up to 10^LARGEST")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs is at least 1")
    found = constant_error([10**k for k in range(3, options.largest + 1)], runs=options.runs)
    print(describe(found))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        drawn = {"constant-error": draw_constant_error(found), "figure-3": draw_figure_3(), "figure-6": draw_figure_6()}
        for name, axes in {**drawn, "leakage": SAMPLING.plot_leakage()}.items():
            path = options.out / f"sampling-privacy-{name}.png"
            axes.get_figure(root=True).savefig(path, dpi=150)  # type: ignore[union-attr]
            print(f"figure in {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

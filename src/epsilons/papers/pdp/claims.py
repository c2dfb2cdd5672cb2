"""What Jorgensen et al. 2015 claim, and what the rerun says."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from epsilons.mechanisms.base import Weighing, create, find_error
from epsilons.mechanisms.exponential import order_pmf
from epsilons.papers.claims import Claim, Finding, Tables, Verdict, compare, span, worst
from epsilons.papers.figures import Curve, Table
from epsilons.papers.pdp.comparing import best_of, crossing, divide, ends, fall, holds, judge, some
from epsilons.papers.pdp.counts import MECHANISMS
from epsilons.papers.pdp.incomes import load_census
from epsilons.papers.pdp.models import Run, trim
from epsilons.papers.pdp.settings import COUNTED, MODELLED
from epsilons.papers.population import Users
from epsilons.preferences import roster_of
from epsilons.statistics.base import Question
from epsilons.statistics.count import Count

#: The paper's mechanisms in Figures 1 and 2, and what it calls them.
NAMES = {
    "minimum": "M",
    "threshold": "T",
    "sample": "S",
    "sample-mean": "S-avg",
    "exponential": "PE",
    "stretching": "Alag.",
}
#: Those that count, besides PE; those of medians.
OTHERS = ("minimum", "threshold", "sample", "sample-mean", "stretching")
MEDIANS = ("minimum", "threshold", "sample", "sample-mean", "exponential")


# Sections III and IV --------------------------------------------------------------------------------------------------


def example_1(tables: Tables) -> Finding:
    before, after = (tables["example-1"].value("", "example-total", t) for t in (1.0, 0.2))
    best = tables["example-1"].value("", "weighted", 1.0)
    found = f"{before:.4g} at t = 1, {after:.4g} at t = .2; one weighted sum has {best:.3g}"
    return Finding(found, holds((round(before), round(after)) == (152, 100)))


def costs_of_the_median(tables: Tables) -> Finding:
    """From the law itself: cost = -2 ln Pr, against the true median, whose cost is 0."""
    values, epsilons = [3, 5, 6, 9, 11], [0.1, 1, 1, 0.5, 1]
    answers, chances = order_pmf(values, epsilons, rank=2, bounds=(1, 12), step=1)
    cost = dict(zip(answers.tolist(), 2 * np.log(chances / chances.max()), strict=True))
    found = ", ".join(f"d({r}) = −{-cost[r]:.4g}" for r in (3, 4, 5, 11))
    right = np.allclose([cost[r] for r in (3, 4, 5, 11)], [-1.5, -1.5, -0.5, -0.6])
    return Finding(found, holds(right))


def cost_by_rank(tables: Tables) -> Finding:
    """Where several have the same value; as nearly everyone has in Figure 2, whole numbers from 1 to 1,000."""
    values, epsilons, middle = [1, 5, 5, 5, 9], [1.0] * 5, 2
    answers, chances = order_pmf(values, epsilons, rank=middle, bounds=(1, 9), step=1)
    cost = 2 * math.log(chances.max() / chances[answers.tolist().index(5)])
    by_rank = middle - values.index(5)
    found = (
        f"of 1, 5, 5, 5, 9 at epsilon 1 the median, 5, costs {cost:.3g} by the definition, {by_rank} by its first rank"
    )
    return judge(found, holds(cost == by_rank), "with ties a value has several ranks")


# Figure 1: counts ----------------------------------------------------------------------------------------------------


def sampling_at_low_density(tables: Tables) -> Finding:
    table, others = tables["1"], ("minimum", "threshold", "exponential")
    least = some(best_of(table, "a", others), high=0.09)
    verdicts = [compare(some(table.curve("a", one), high=0.09), least) for one in ("sample", "sample-mean")]
    shown = {NAMES[name]: table.curve("a", name).values[:2] for name in ("sample-mean", "sample", "stretching")}
    told = [f"{name} {low:.3g} and {high:.3g}" for name, (low, high) in shown.items()]
    found = f"at densities of .01 and .05 {', '.join(told)}, the best of M, T and PE"
    return Finding(f"{found} {least.values[0]:.3g} and {least.values[1]:.3g}", worst(verdicts))


def sampling_exceeds_minimum(tables: Tables) -> Finding:
    minimum = tables["1"].curve("a", "minimum")
    single, mean = (crossing(minimum, tables["1"].curve("a", name)) for name in ("sample", "sample-mean"))
    found = f"S errs more than M from a density of {single:.2g} on, S-avg from {mean:.2g} on"
    return Finding(found, holds(max(single, mean) < 0.5))


def exponential_wins(tables: Tables) -> Finding:
    table = tables["1"]
    mine, theirs = some(table.curve("a", "exponential"), 0.12), some(best_of(table, "a", OTHERS), 0.12)
    ours = divide(table, "a", "exponential", "weighted")[-len(mine.x) :]
    found = f"from a density of .15 on the next best of the paper errs {span(theirs.values / mine.values, '.2f')} times"
    return Finding(f"{found} as much as PE, PE {span(ours, '.2f')} times as much as `weighted`", compare(mine, theirs))


def half_of_the_next(tables: Tables) -> Finding:
    mine, next_best = tables["1"].value("a", "exponential", 0.3), best_of(tables["1"], "a", OTHERS).at(0.3)[0]
    found = f"{mine:.3g}; the next best of the paper {next_best:.3g}: {mine / next_best:.2f} times"
    return Finding(found, holds(mine < next_best / 2))


def exponential_and_density(tables: Tables) -> Finding:
    values, sample = (tables["1"].curve("a", name).values for name in ("exponential", "sample"))
    spread = float(values.max() / values.min())
    found = f"{values[0]:.3g} at a density of .01, {values[-1]:.3g} at .5; S grows {sample[-1] / sample[0]:.2g} times"
    why = "far less than sampling is, but not quite: where ones are few, nearly all cheap changes lead upwards"
    return judge(found, holds(spread < 1.1, Verdict.OTHER_CONSTANT if spread < 1.5 else Verdict.FAILS), why)


def relative_error_vanishes(tables: Tables) -> Finding:
    curve = tables["1"].curve("a", "exponential")
    by_density = curve.values / (np.array(curve.x, float) * COUNTED)
    epsilons, count = Users().epsilons(np.random.default_rng(1)), Count()
    question, by_size = Question(count, density=Users().density), {}
    for times in (1, 1_000):
        levels = roster_of(np.tile(epsilons, times)).levels
        error = find_error(create("exponential", count), question, levels) or math.nan
        by_size[times] = error / (Users().density * levels.size)
    found = (
        f"{by_density[0]:.2g} of the count at a density of .01, {by_density[-1]:.2g} at .5; predicted for 1,000 people"
    )
    found += f" {by_size[1]:.2g}, for 1,000,000 {by_size[1_000]:.2g}"
    return Finding(found, holds(bool((np.diff(by_density) < 0).all()) and by_size[1_000] < by_size[1] / 100))


def stretching_below_sample(tables: Tables) -> Finding:
    table = tables["1"]
    below = compare(table.curve("a", "stretching"), table.curve("a", "sample"))
    ahead = compare(some(table.curve("a", "exponential"), 0.12), some(table.curve("a", "stretching"), 0.12))
    ratios = divide(table, "a", "stretching", "sample")
    dense = np.array(table.curve("a", "sample").x, float) > 0.12
    found = f"Alag. errs {span(ratios, '.2f')} times as much as S; from a density of .15 on"
    found += f" {span(divide(table, 'a', 'stretching', 'exponential')[dense], '.1f')} times as much as PE"
    return Finding(found, worst([below, ahead]))


def mean_threshold_for_counts(tables: Tables) -> Finding:
    table = tables["1"]
    found = f"S-avg errs {span(divide(table, 'a', 'sample-mean', 'sample'), '.2f')} times as much as S"
    return Finding(found, compare(table.curve("a", "sample-mean"), table.curve("a", "sample")))


# Figure 2: medians ---------------------------------------------------------------------------------------------------


def errors_grow_with_spread(tables: Tables) -> Finding:
    curves = {name: tables["2"].curve("a", name) for name in MEDIANS}
    falling = [name for name, curve in curves.items() if (np.diff(curve.values) < -2 * np.hypot(*ends(curve))).any()]
    grown = {name: float(curve.values[-1] / curve.values[0]) for name, curve in curves.items()}
    minimum = curves["minimum"].values
    found = (
        f"from σ = 100 to 1,000 {', '.join(f'{NAMES[n]} grows {g:.2g} times' for n, g in grown.items())}; but M errs"
    )
    found += f" by {minimum[0]:.4g} at 100 and {minimum[1]:.4g} at 200"
    why = "where values are alike most answers are far from them, and at epsilon .01 these are hardly less likely"
    return judge(found, holds(not falling), why)


def medians_resist_sampling(tables: Tables) -> Finding:
    table = tables["2"]
    baselines = best_of(table, "a", ("minimum", "threshold"))
    verdicts = [compare(table.curve("a", name), baselines) for name in ("sample", "sample-mean")]
    told = [f"{NAMES[name]} {span(divide(table, 'a', name, 'threshold'), '.2f')}" for name in ("sample", "sample-mean")]
    return Finding(f"{', '.join(told)} times the error of T; M errs more than T", worst(verdicts))


def exponential_like_threshold(tables: Tables) -> Finding:
    table = tables["2"]
    ahead = compare(table.curve("a", "exponential"), table.curve("a", "minimum"))
    ratios = divide(table, "a", "exponential", "threshold")
    found = f"PE errs {span(divide(table, 'a', 'exponential', 'minimum'), '.2f')} times as much as M and"
    found += f" {span(ratios, '.2f')} times as much as T"
    alike = holds(float(np.mean(ratios)) > 0.9)
    return Finding(
        found, worst([ahead, alike]), "as it appears in the figure; by these numbers PE is a little ahead of T"
    )


def mean_threshold_for_medians(tables: Tables) -> Finding:
    median, count = (float(np.mean(divide(tables[n], "a", "sample-mean", "sample"))) for n in ("2", "1"))
    found = f"{1 - median:.0%} below S, averaged over Figure 2(a); for counts, in Figure 1(a), {1 - count:.0%}"
    return judge(found, holds(0 < 1 - median < 0.15, Verdict.OTHER_CONSTANT), "less than for counts, but not slight")


# Preferences ---------------------------------------------------------------------------------------------------------


def fewer_conservatives(tables: Tables) -> Finding:
    told, fine = [], []
    for number, task in (("1", "count"), ("2", "median")):
        falls = {n: tables[number].curve("b", n) for n in ("sample", "sample-mean", "exponential")}
        fine += [c.values[0] < c.values[-1] - 2 * math.hypot(*c.errors[[0, -1]]) for c in falls.values()]
        gains = [f"{NAMES[n]} {c.values[0] / c.values[-1]:.2f}" for n, c in falls.items()]
        told.append(f"{task} {', '.join(gains)}")
    return Finding(f"errors at f_C = .1 in units of those at .6: {'; '.join(told)}", holds(all(fine)))


def threshold_rises_for_medians(tables: Tables) -> Finding:
    return _threshold_rises(tables["2"], "b")


def threshold_rises_for_models(tables: Tables) -> Finding:
    return _threshold_rises(tables["3"], "c", tables["3"].value("c", "not-private", 0.6))


def _threshold_rises(table: Table, panel: str, floor: float = 0.0) -> Finding:
    before, default, last = (table.value(panel, "threshold", x) for x in (0.5, 0.54, 0.6))
    found = f"{before:.3g} at f_C = .5, {default:.3g} at .54, {last:.3g} at .6"
    found += f" ({floor:.3g} without noise)" if floor else ""
    return Finding(found, holds((last - floor) > 1.5 * (default - floor)))


def minimum_falls_exponentially(tables: Tables) -> Finding:
    curve = tables["1"].curve("c", "minimum")
    products = curve.values * np.array(curve.x, float)
    found = f"error times ε_C is {span(products, '.4g')} for counts; √2 = {math.sqrt(2):.4g}"
    return Finding(found, Verdict.FAILS, "the error is √2/ε_C: inversely proportional, not exponential")


def minimum_best_for_counts(tables: Tables) -> Finding:
    place = crossing(tables["1"].curve("c", "minimum"), best_of(tables["1"], "c", tuple(NAMES), but="minimum"))
    ours = divide(tables["1"], "c", "minimum", "weighted")
    found = f"from ε_C = {place:.2g} on M errs less than the paper's others; `weighted` never errs more"
    found += f" (M {span(ours, '.2f')} times as much)"
    verdict = Verdict.HOLDS if 0.07 < place < 0.09 else Verdict.OTHER_CONSTANT if place < 0.2 else Verdict.FAILS
    return judge(found, verdict, "PE is overtaken earlier")


def mean_threshold_best_for_medians(tables: Tables) -> Finding:
    table = tables["2"]
    others = best_of(table, "c", MEDIANS, but="sample-mean")
    place = crossing(others, table.curve("c", "sample-mean"))
    verdict = Verdict.HOLDS if 0.2 < place < 0.3 else Verdict.OTHER_CONSTANT if math.isfinite(place) else Verdict.FAILS
    return Finding(f"S-avg errs least of the paper's mechanisms up to ε_C = {place:.2g}", verdict)


def counts_gain_more(tables: Tables) -> Finding:
    gains = {n: [fall(tables[number], "d", n) for number in ("1", "2")] for n in ("sample", "sample-mean")}
    told = [f"{NAMES[n]} {count:.0%} for counts, {median:.0%} for medians" for n, (count, median) in gains.items()]
    drops = {n: [float(tables[k].curve("d", n).values[[0, -1]] @ (1, -1)) for k in ("1", "2")] for n in gains}
    amounts = [f"{NAMES[n]} {count:.3g} people, {median:.3g} units of a value" for n, (count, median) in drops.items()]
    more = all(count > 2 * median for count, median in drops.values())
    found = f"RMSEs fall from ε_M = .05 to .5 by: {'; '.join(amounts)}; in proportion {'; '.join(told)}"
    return Finding(found, holds(more), "as RMSEs are drawn, both on 0 to 1,000; in proportion medians gain more")


def exponential_gains(tables: Tables) -> Finding:
    count, median = (fall(tables[number], "d", "exponential") for number in ("1", "2"))
    found = f"its error falls from ε_M = .05 to .5 by {count:.0%} for counts, by {median:.0%} for medians"
    return Finding(found, holds(min(count, median) > 0.5))


# Figure 3: models ----------------------------------------------------------------------------------------------------


def sample_beats_baselines(tables: Tables) -> Finding:
    table = tables["3"]
    mine, baselines = table.curve("a", "sample"), best_of(table, "a", ("minimum", "threshold"))
    place = crossing(baselines, mine)
    above = some(baselines, high=0.25).values - table.value("a", "not-private", 0.01)
    own = some(mine, high=0.25).values - table.value("a", "not-private", 0.01)
    far = f"up to ε_C = {place:.2g}" if math.isfinite(place) else "at every ε_C up to .5"
    found = f"S errs less than M and T {far}; above the error without noise, the better of M and T has"
    found += f" {span(above / own, '.2g')} times as much for ε_C from .01 to .2"
    return Finding(found, compare(some(mine, high=0.25), some(baselines, high=0.25)))


def sample_beats_others(tables: Tables) -> Finding:
    table, told, verdicts = tables["3"], [], []
    for name in ("sample-mean", "stretching"):
        mine, theirs = table.curve("d", "sample"), table.curve("d", name)
        floor = table.curve("d", "not-private").values
        ratios = (theirs.values - floor) / (mine.values - floor)
        told.append(f"{NAMES[name]} {span(ratios, '.2f')}")
        verdicts.append(compare(mine, theirs))
    found = f"above the error without noise, in units of S, for 10,000 to 100,000 people: {', '.join(told)}"
    return Finding(found, worst(verdicts))


def third_below_threshold(tables: Tables) -> Finding:
    mine, theirs, floor = (tables["3"].value("c", n, 0.5) for n in ("sample", "threshold", "not-private"))
    found = f"{mine:.3g} and {theirs:.3g}: {1 - mine / theirs:.0%} lower; above the error without noise"
    found += f" ({floor:.3g}) {1 - (mine - floor) / (theirs - floor):.0%} lower"
    why = "how much of the error is noise depends on the census and on the fit"
    verdict = Verdict.HOLDS if 0.31 < 1 - mine / theirs < 0.41 else Verdict.OTHER_CONSTANT
    return judge(found, verdict if mine < theirs else Verdict.FAILS, why)


def minimum_is_unstable(tables: Tables) -> Finding:
    """How far runs stray, from some more of them at the defaults."""
    users, random, errors = Users(people=MODELLED), np.random.default_rng(1), {}
    runs = [Run(load_census, users, random) for _ in range(25)]
    for name in ("minimum", "sample"):
        kind, options = MECHANISMS[name]
        mechanism = cast(Weighing, create(kind, runs[0].statistic, **options))
        losses = [run.losses(Question(run.statistic), mechanism) for run in runs]
        errors[name] = [math.sqrt(run.square([*map(trim, own)])) for run, own in zip(runs, losses, strict=True)]
    value, other = tables["3"].value("d", "minimum", MODELLED), tables["fits"].value("", "minimum", MODELLED)
    found = f"{value:.3g} in the middle run; 25 more runs have {span(errors['minimum'], '.2g')}, those of S"
    found += f" {span(errors['sample'], '.2g')}. As the library fits it, M has {other:.3g}"
    stable = max(errors["minimum"]) / min(errors["minimum"]) < 1.2
    level = Verdict.HOLDS if value > 0.77 else Verdict.OTHER_CONSTANT
    return judge(found, Verdict.FAILS if stable else level, "it strays far more than all others, at a lower level")


def minimum_needs_people(tables: Tables) -> Finding:
    curve, ours = tables["3"].curve("d", "minimum"), tables["fits"].curve("", "minimum")
    told = [f"{curve.at(n)[0]:.3g}" for n in (10_000, 20_000, 30_000, 40_000)]
    found = f"{', '.join(told)} for 10,000 to 40,000 people; as the library fits it, at most {ours.values.max():.2g}"
    early, late = curve.values[:3], curve.values[3:]
    if (early > 1.4).all() and (late < 1.4).all():
        return Finding(found, Verdict.HOLDS)
    other = Verdict.OTHER_CONSTANT if early.min() > late.max() else Verdict.FAILS
    return Finding(found, other, "it falls with the number of people, through lower numbers")


def people_help(tables: Tables) -> Finding:
    table, told, fine = tables["3"], [], []
    for name in ("threshold", "sample", "sample-mean", "stretching"):
        curve = table.curve("d", name)
        above = curve.values - table.curve("d", "not-private").values
        told.append(f"{NAMES[name]} {above[0] / above[-1]:.2g}")
        fine.append(
            compare(Curve([0], curve.values[-1:], curve.errors[-1:]), Curve([0], curve.values[:1], curve.errors[:1]))
        )
    found = f"above the error without noise, 10,000 people have this many times that of 100,000: {', '.join(told)}"
    return Finding(found, worst(fine))


CLAIMS = (
    Claim(1, "A threshold of .2 instead of 1 lowers the squared error of Sample from 152 to 100.",
          "section IV-B, Example 1", example_1),
    Claim(2, "Of the values 3, 5, 6, 9, 11 with epsilons .1, 1, 1, .5, 1 the median's costs are d(3) = d(4) = −1.5,"
          " d(5) = −.5, d(11) = −.6.", "section IV-C, Concrete Examples", costs_of_the_median),
    Claim(3, "At densities below .1 S and S-avg count with the lowest error.", "section V-A; Figure 1(a)",
          sampling_at_low_density),
    Claim(4, "As density grows, the error of sampling soon exceeds that of M.", "section V-A; Figure 1(a)",
          sampling_exceeds_minimum),
    Claim(5, "For densities above .1 PE is the clear winner.", "section V-A; Figure 1(a)", exponential_wins),
    Claim(6, "At a density of .3 the error of PE is less than half that of the next best.", "section V-A; Figure 1(a)",
          half_of_the_next),
    Claim(7, "PE is generally unaffected by the density.", "section V-A; Figure 1(a)", exponential_and_density),
    Claim(8, "The relative error of PE tends to zero as density or the number of people grows.", "section V-A",
          relative_error_vanishes),
    Claim(9, "Alag. counts with slightly lower error than S, and with much more than PE.", "section V-A; Figure 1(a)",
          stretching_below_sample),
    Claim(10, "For counts S-avg errs significantly less than S.", "section V-A; Figure 1(a)",
          mean_threshold_for_counts),
    Claim(11, "As σ grows, the errors of all medians grow.", "section V-A; Figure 2(a)", errors_grow_with_spread),
    Claim(12, "Of medians S and S-avg err considerably less than both baselines.", "section V-A; Figure 2(a)",
          medians_resist_sampling),
    Claim(13, "Of medians PE errs significantly less than M, but appears to be no better than T.",
          "section V-A; Figure 2(a)", exponential_like_threshold),
    Claim(14, "Of medians S-avg errs only slightly less than S.", "section V-A; Figure 2(a)",
          mean_threshold_for_medians),
    Claim(15, "With fewer conservative users the personalized mechanisms err less.",
          "section V-A; Figures 1(b) and 2(b)", fewer_conservatives),
    Claim(16, "The error of T's median rises sharply at f_C = .6, where it uses 3% of the people.",
          "section V-A; Figure 2(b)", threshold_rises_for_medians),
    Claim(17, "The error of M decreases exponentially with ε_C.", "section V-A; Figures 1(c) and 2(c)",
          minimum_falls_exponentially, instead="Plans predict √2/ε for a count at one epsilon."),
    Claim(18, "For counts M is the best choice once ε_C is larger than about .08.", "section V-A; Figure 1(c)",
          minimum_best_for_counts,
          instead="`weighted` is as good as M where epsilons are alike, and better elsewhere."),
    Claim(19, "For medians S-avg remains the best choice until ε_C is larger than about .25.",
          "section V-A; Figure 2(c)", mean_threshold_best_for_medians),
    Claim(20, "As ε_M grows, the errors of sampling are reduced much more for counts than for medians.",
          "section V-A; Figures 1(d) and 2(d)", counts_gain_more),
    Claim(21, "As ε_M grows, PE gains greatly in both tasks.", "section V-A; Figures 1(d) and 2(d)",
          exponential_gains),
    Claim(22, "S predicts incomes with significantly less error than M and T while ε_C is below .3.",
          "section V-B; Figure 3(a)", sample_beats_baselines),
    Claim(23, "S predicts incomes with less error than S-avg and Alag.", "section V-B; Figure 3",
          sample_beats_others),
    Claim(24, "Where half of the users are conservative, the error of S is about 36% lower than that of T.",
          "section V-B; Figure 3(c)", third_below_threshold),
    Claim(25, "The error of T's models spikes as f_C approaches .6.", "section V-B; Figure 3(c)",
          threshold_rises_for_models),
    Claim(26, "The error of M's models is above .77 and unstable.", "section V-B", minimum_is_unstable,
          instead="Models shrink towards the middle of the bounds as noise grows: none errs much more than it."),
    Claim(27, "The error of M's models stays above 1.4 until there are 40,000 people.", "section V-B; Figure 3(d)",
          minimum_needs_people,
          instead="Models shrink towards the middle of the bounds as noise grows: none errs much more than it."),
    Claim(28, "The number of people has a big impact on all models.", "section V-B; Figure 3(d)", people_help),
    Claim(29, "The cost of a median r is that of as many people beside r as its rank is away from the middle.",
          "section IV-C, Median", cost_by_rank,
          instead="Costs count the people strictly below and strictly above r: any ties, rank and number of people."),
)  # fmt: skip

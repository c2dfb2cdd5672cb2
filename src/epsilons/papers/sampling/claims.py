"""What Joy claims, and what the rerun says."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from epsilons.local import RandomizedResponse, SamplingOnly
from epsilons.papers.claims import Claim, Finding, Tables, Verdict, span
from epsilons.papers.figures import Floats, Table
from epsilons.papers.sampling.errors import CROWDS, PRINTED, RESPONSE, SAMPLING, SIZES, YES
from epsilons.papers.sampling.leakage import PROTOCOL

_SAMPLING, _RESPONSE = "sampling-privacy", "randomized-response"


def constant_error(tables: Tables) -> Finding:
    found = tables["crowds"].curve("a", _SAMPLING)
    expected = SAMPLING.spread(YES, CROWDS[0])
    told = f"RMSE {span(found.values)} people, {YES} among {CROWDS[0]:,} to {CROWDS[-1]:,}, by the law of every answer"
    same = np.allclose(found.values, expected, rtol=1e-9)
    return Finding(f"{told}; by the formula {expected:.3g}", Verdict.HOLDS if same else Verdict.FAILS)


def response_grows(tables: Tables) -> Finding:
    return _grows(tables, _RESPONSE)


def toy_grows(tables: Tables) -> Finding:
    return _grows(tables, "sampling-deniability")


def _grows(tables: Tables, curve: str) -> Finding:
    found = tables["crowds"].curve("a", curve)
    slope = float(np.polyfit(np.log(CROWDS[1:]), np.log(found.values[1:]), 1)[0])
    told = f"RMSE {span(found.values, ',.0f')} people; it grows like the population to the power {slope:.2f}"
    return Finding(told, Verdict.HOLDS if slope > 0.3 else Verdict.FAILS)


def stronger_in_crowds(tables: Tables) -> Finding:
    found = tables["leakage"].curve("c", "counts-7")
    told = [f"{found.at(crowd)[0]:.4f} ({crowd})" for crowd in (7, 10, 30, 100)]
    stronger = bool(found.values[-1] < found.values[0])
    still = math.isclose(found.values[-1], found.at(30)[0], rel_tol=0.01)
    why = (
        "at first, as in the paper's example, where most had a Yes; once most have a No, others add nothing: it depends"
    )
    why += " on how many gave the same answer"
    verdict = Verdict.FAILS if not stronger else Verdict.OTHER_CONSTANT if still else Verdict.HOLDS
    return Finding(f"delta at epsilon 1, seven alike, by population: {', '.join(told)}", verdict, why)


def private_by_sampling_alone(tables: Tables) -> Finding:
    both = PROTOCOL.leakage("both-rounds")
    counts = {alike: PROTOCOL.leakage("counts", count=alike, epsilon=1) for alike in (1, 7, 25, 100)}
    told = ", ".join(f"{one.delta:.2g} ({alike} alike)" for alike, one in counts.items())
    found = f"one owner in both rounds: no epsilon but for delta {both.delta:g}"
    found += f"; published counts: no pure epsilon, delta at epsilon 1 {told}"
    infinite = math.isinf(both.pure) and all(math.isinf(one.pure) for one in counts.values())
    why = "a sampled owner goes from 0 to the truth, which nothing else does; Eq. 29 looks at round two alone"
    return Finding(found, Verdict.FAILS if infinite else Verdict.HOLDS, why)


def four_times_lower(tables: Tables) -> Finding:
    claim, other = tables["3"].curve("", "sampling-claim"), tables["3"].curve("", "response-claim")
    ratios = other.values[: len(claim.values)] / claim.values
    found = f"by Equations 29 and 30 at the same chance, randomized response leaks {span(ratios)} times as much"
    why = "that compares an observer of one round of two with an observer of everything"
    return Finding(f"{found}; Sampling Privacy in both rounds: infinite", Verdict.FAILS, why)


def introduction(tables: Tables) -> Finding:
    table = tables["crowds"]
    pairs = [(table.value("b", "printed", n), table.value("b", _RESPONSE, n)) for n in (10_000, 1_000_000)]
    as_printed = [f"{printed:.0f}" for printed, _ in pairs] == ["21", "212"]
    told = f"{pairs[0][1]:.1f} and {pairs[1][1]:.1f}"
    why = "the printed formula leaves out a factor of the binomial's variance and the division by the first coin"
    return Finding(told, Verdict.OTHER_CONSTANT if as_printed else Verdict.FAILS, why)


def figure_6(tables: Tables) -> Finding:
    """The printed bars, one by one."""
    printed = {
        _SAMPLING: [3, 0, 3, 12, 24, 27, 36, 12, 11, 3, 6],
        _RESPONSE: [64, 63, 64, 70, 79, 81, 88, 70, 69, 64, 66],
    }
    same = all([tables["6"].value("a", curve, g) for g in SIZES] == bars for curve, bars in printed.items())
    return Finding("all 22 bars as printed" if same else "other bars", Verdict.HOLDS if same else Verdict.FAILS)


def figure_6_levels(tables: Tables) -> Finding:
    first = next(iter(SIZES))
    bars = [tables["6"].value(panel, _RESPONSE, first) - SIZES[first] for panel in "ab"]
    levels = [math.erf(deviations / math.sqrt(2)) for deviations in PRINTED.values()]
    found = f"Sampling Privacy's bars stand at 2 standard deviations ({levels[0]:.2%}), randomized response's at 2.576"
    found += f" ({levels[1]:.0%}): truth + {bars[0]:.0f}, which is truth + {bars[1]:.0f} at 95%"
    why = "or three of the introduction's standard deviations, sqrt(.15 * .3 * N): also 63"
    return Finding(found, Verdict.FAILS if bars[0] != bars[1] else Verdict.HOLDS, why)


def ahead_in_crowds(tables: Tables) -> Finding:
    return _compare_bars(tables, ("6", "7"), "10,000")


def ahead_at_286(tables: Tables) -> Finding:
    return _compare_bars(tables, ("4", "5"), "286")


def _above(table: Table, curve: str) -> Floats:
    return table.curve("b", curve).values - table.curve("b", "truth").values


def _compare_bars(tables: Tables, figures: tuple[str, str], crowd: str) -> Finding:
    """At the same level for both."""
    ours, other = (np.concatenate([_above(tables[n], curve) for n in figures]) for curve in (_SAMPLING, _RESPONSE))
    truths = np.concatenate([tables[number].curve("b", "truth").values for number in figures])
    behind = ours > other
    found = f"{crowd} people, 95% for both: Sampling Privacy's bound is {span(ours, '.0f')} above the truth"
    found += f", randomized response's {span(other, '.0f')}"
    if behind.any():
        least = truths[behind].min()
        found += f"; randomized response is ahead in {behind.sum()} of {len(ours)} groups, of {least:.0f} and more"
    return Finding(found, Verdict.FAILS if behind.any() else Verdict.HOLDS)


def leakage_grows(tables: Tables) -> Finding:
    claim = tables["3"].curve("", "sampling-claim").values
    falls = bool((np.diff(claim) < 0).all())
    found = f"by Eq. 29 it falls, from {claim[0]:.2f} to {claim[-1]:.2f}"
    why = "the more likely an output is by chance, the less it says"
    return Finding(found if falls else "it grows", Verdict.FAILS if falls else Verdict.HOLDS, why)


def worst_case_ratio(tables: Tables) -> Finding:
    table = tables["2"]
    ours = np.concatenate([table.curve("", curve).values for curve in (_SAMPLING, "sampling-rarer")])
    ratios = np.tile(table.curve("", _RESPONSE).values, 2) / ours
    fits = [n for n in range(100, 50_000, 100) if 1.6 <= RESPONSE.spread(n, 1e6) / SAMPLING.spread(n, 1e6) <= 3.5]
    found = f"{span(ratios, '.2f')} times at four places of a made-up city, or of the file that was given"
    found += f"; 1.6 to 3.5 times (sampling .45) where {fits[0]:,} to {fits[-1]:,} of a million are"
    why = "Gowalla's check-ins do not come with the library (`--checkins`), and it depends on how full a place is"
    return Finding(found, Verdict.UNDECIDED, why)


def equation_30(tables: Tables) -> Finding:
    response = RandomizedResponse(truth=0.8, yes=0.9)
    found = f"coins .8 and .9: {response.epsilon:.2f}, by Eq. 30 {response.claim or 0:.2f}; the same up to .5"
    verdict = Verdict.FAILS if response.epsilon > (response.claim or 0) else Verdict.HOLDS
    return Finding(found, verdict, "a No leaks as well: the larger of both losses counts")


def below_half(tables: Tables) -> Finding:
    """Prior 1/2, a yes-or-no question: how often the better guess is right, and the surest one."""
    yes, no = SAMPLING.law(1), SAMPLING.law(0)
    outputs = set(yes) | set(no)
    right = float(sum(max(yes.get(o, 0), no.get(o, 0)) for o in outputs)) / 2
    surest = max(float(yes.get(o, 0) / (yes.get(o, 0) + no.get(o, 0))) for o in outputs)
    found = f"sampling .45, a priori 1/2: the better guess is right in {right:.1%} of cases, an advantage of"
    found += f" {2 * right - 1:.0%}; after some answers in {surest:.0%}"
    why = (
        "as an advantage over a coin, which is the sampling itself; by section 1, where nobody is to find a value with"
    )
    why += " more than 50%, no protocol whose answers can be counted is private"
    return Finding(found, Verdict.HOLDS if 2 * right - 1 < 0.5 else Verdict.FAILS, why)


def first_round(tables: Tables) -> Finding:
    laws = []
    for truth in range(PROTOCOL.options + 1):
        law = dict.fromkeys(range(PROTOCOL.outputs), Fraction(0))
        for (first, *_), chance in PROTOCOL.law(truth).items():
            law[first] += chance
        laws.append(law)
    same = all(law == laws[0] for law in laws)
    told = f"the exact law of round one is {'the same' if same else 'not the same'} for all twelve truths"
    return Finding(told, Verdict.HOLDS if same else Verdict.FAILS)


def not_estimable(tables: Tables) -> Finding:
    same = SamplingOnly(0.45).law(0) == SamplingOnly(0.45).law(1)
    return Finding("owners with a Yes and with a No have the same exact law", Verdict.HOLDS if same else Verdict.FAILS)


CLAIMS = (
    Claim(1, "Sampling Privacy's error stays constant as the population grows.", "sections 1, 4, 5.1 and 6",
          constant_error),
    Claim(2, "Privacy, this is the goal, strengthens as the population grows: others protect those who have a Yes.",
          "section 1", stronger_in_crowds,
          instead="Leakage from published counts is stated for as many as gave the same answer."),
    Claim(3, "Sampling Privacy is differentially private, by sampling alone.", "abstract, sections 4.3 and 6",
          private_by_sampling_alone,
          instead="Every estimate lists what each observer learns; a collection with several aggregators adds noise."),
    Claim(4, "Its leakage is as much as four times lower than that of randomized response.", "section 6, Figure 3",
          four_times_lower,
          instead="The claim stands beside the true loss of every view."),
    Claim(5, "Randomized response at .85 and .3 has standard deviations of 21 among 10,000 and 212 among a million.",
          "section 1", introduction,
          instead="`spread` is the estimate's own standard deviation."),
    Claim(6, "Figure 6: upper bounds of recurrences by tumour size among 10,000 people.", "Figure 6", figure_6),
    Claim(7, "Sampling Privacy bounds all groups more closely among 286 patients, too.", "Figures 4 and 5 (implied)",
          ahead_at_286,
          instead="`epsilons.local.plan` compares both for the counts and the crowd at hand."),
    Claim(8, "The leakage of Sampling Privacy grows with the chance of the true output.",
          "section 5.2, text of Figure 3", leakage_grows),
    Claim(9, "At four places of Gowalla randomized response has 1.6 to 3.5 times the worst-case error.",
          "section 5.1, Figure 2", worst_case_ratio),
    Claim(10, "The bars of Figure 6 are bounds at 95% confidence.", "section 5.1", figure_6_levels,
          instead="Both readings are drawn; intervals of estimates are exact, at the level asked for."),
    Claim(11, "Among 10,000 people Sampling Privacy bounds all groups more closely.", "Figures 6 and 7",
          ahead_in_crowds),
    Claim(12, "Randomized response's error quickly grows with the population.", "sections 1 and 5.1", response_grows),
    Claim(13, "Randomized response leaks the log-ratio of the chances of a Yes.", "appendix A, Eq. 30", equation_30,
          instead="The larger of the losses of a Yes and of a No."),
    Claim(14, "With sampling below 50% who inspects the answers of an owner has no inference advantage above 50%.",
          "section 3.1", below_half,
          instead="Sampling from 1/2 on is warned of, and what an observer learns is stated below it as well."),
    Claim(15, "Round one leaks nothing.", "section 4.4", first_round),
    Claim(16, "Sampling and noise alone cannot be estimated.", "section 3.2", not_estimable),
    Claim(17, "Sampling with plausible deniability errs more the more people have a No.", "section 3.3", toy_grows),
)  # fmt: skip

"""The hundred settings in which intervals and stated errors are held to what many answers show (`honesty.py`)."""

from __future__ import annotations

from support.honesty import EDGES, Setting

GROUPS = (0.5, 0.25, 0.1, 0.05)
EVEN = (0.2,) * 5
BINS = {"edges": EDGES}
WHOLE = {"complete": True}

COUNTS = [
    Setting("count", assume=0.0, fraction=0.15),
    Setting("count", fraction=0.15, relation=1),
    Setting("count", fraction=0.15, relation=-1, more=WHOLE),
    Setting("count", "many", 5000, fraction=0.005, relation=-1),
    Setting("count", "two", 400, fraction=0.5, relation=1),
    Setting("count", "three", 200, fraction=0.03, assume=0.0),
    Setting("count", "public", 1000, fraction=0.1, relation=-1, assume=0.1),
    Setting("count", "public", 2000, fraction=0.6, relation=1, assume=0.5),
    Setting("count", "few open", 1000, fraction=0.3, relation=1),
    Setting("count", "few open", 1000, fraction=0.02, assume=0.0, mechanism="weighted"),
    Setting("count", "strict", 3000, fraction=0.9, relation=-1, assume=0.5),
    Setting("count", fraction=0.4, relation=1, assume="nothing"),
    Setting("count", "two", 500, fraction=0.3, relation=-1, assume="nothing"),
    Setting("count", fraction=0.15, relation=-1, mechanism="exponential"),
    Setting("count", "three", 600, fraction=0.5, relation=1, mechanism="exponential", assume=0.1),
    Setting("count", "many", 300, fraction=0.05, mechanism="sample", assume=0.0, more={"threshold": "mean"}),
    Setting("count", "three", 1000, fraction=0.25, relation=1, mechanism="sample"),
    Setting("count", "few open", 800, fraction=0.4, relation=-1, mechanism="threshold"),
    Setting("count", "alike", 250, fraction=0.02, mechanism="minimum"),
    Setting("count", "public", 900, fraction=0.2, relation=1, mechanism="mixed"),
    Setting("count", "paper", 1000, fraction=0.1, relation=-1, mechanism="robust"),
    Setting("count", "three", 2000, fraction=0.1, relation=1, mechanism="stretching"),
    Setting("count", "many", 10000, fraction=0.15, relation=1, more={"density": 0.15}),
    Setting("count", "paper", 1000, fraction=0.3, assume=0.0, more={"density": 0.01}),
    Setting("count", "paper", 2000, groups=GROUPS, relation=1),
    Setting("count", "three", 10000, groups=(0.5, 0.1, 0.005), relation=-1, assume=0.1),
    Setting("count", "many", 3000, rows=5, where=True, fraction=0.3, relation=1, more={"of": "rows"}),
    Setting("count", "two", 2000, rows=3, groups=GROUPS, relation=-1, more={"of": "rows"}),
    Setting("count", "three", 2000, rows=5, groups=GROUPS, relation=1, together=False),
    Setting("count", "public", 1500, where=True, fraction=0.01, relation=1),
]
HISTOGRAMS = [
    Setting("histogram", assume=0.0, more=BINS),
    Setting("histogram", "three", 2000, "skewed", relation=1, more=BINS),
    Setting("histogram", "public", 500, "two points", relation=-1, more=BINS),
    Setting("histogram", "many", 3000, "uniform", relation=1, assume="nothing", more=BINS),
    Setting("histogram", "few open", 1000, "discrete", relation=-1, assume=0.5, fraction=0.3, more=BINS),
]
SUMS = [
    Setting("sum", assume=0.0),
    Setting("sum", relation=1, more=WHOLE),
    Setting("sum", "three", 2000, "skewed", relation=-1, more=WHOLE),
    Setting("sum", "two", 600, "two points", assume=0.0, more=WHOLE),
    Setting("sum", "public", 1000, "uniform", relation=1, fraction=0.5),
    Setting("sum", "many", 5000, "skewed", relation=-1, fraction=0.02),
    Setting("sum", "three", 2000, "narrow", assume=0.0, fraction=0.3),
    Setting("sum", "few open", 1000, "uniform", relation=1, assume="nothing"),
    Setting("sum", "three", 3000, "skewed", groups=GROUPS, relation=1),
    Setting("sum", "many", 2000, "normal", rows=5, groups=EVEN, relation=-1, assume=0.1),
    Setting("sum", "paper", 1000, "discrete", relation=1, mechanism="mixed", more={"missing": "center"}),
    Setting("sum", "three", 500, "uniform", mechanism="sample", assume=0.0, more=WHOLE),
]
MEANS = [
    Setting("mean", assume=0.0, more=WHOLE),
    Setting("mean", relation=1, more=WHOLE),
    Setting("mean", "three", 500, "two points", relation=-1, assume=0.1, more=WHOLE),
    Setting("mean", "public", 800, "skewed", relation=1, more=WHOLE),
    Setting("mean", "many", 4000, "rare", relation=-1, more=WHOLE),
    Setting("mean", "few open", 1000, "uniform", assume=0.0, more=WHOLE),
    Setting("mean", "two", 300, "two peaks", relation=1, assume="nothing", more=WHOLE),
    Setting("mean", relation=1),
    Setting("mean", "three", 1000, "skewed", assume=0.0, fraction=0.8),
    Setting("mean", "many", 3000, "uniform", relation=-1, fraction=0.1),
    Setting("mean", "paper", 10000, "normal", relation=1, fraction=0.005),
    Setting("mean", "three", 5000, "two points", relation=1, fraction=0.02, assume=0.5),
    Setting("mean", "public", 2000, "narrow", relation=-1, fraction=0.3),
    Setting("mean", "strict", 2000, "uniform", assume=0.0, fraction=0.5),
    Setting("mean", "three", 1500, "two points", relation=1, fraction=0.4, assume="nothing"),
    Setting("mean", "three", 600, "normal", relation=1, mechanism="sample", fraction=0.5),
    Setting("mean", "few open", 2000, "skewed", relation=-1, mechanism="threshold", fraction=0.6),
    Setting("mean", "three", 5000, "skewed", groups=GROUPS, relation=1),
    Setting("mean", "many", 5000, "normal", rows=5, groups=EVEN, relation=-1),
    Setting("mean", "two", 2000, "two points", rows=3, where=True, fraction=0.1, relation=1, assume=0.1),
    Setting("mean", "public", 1000, "uniform", rows=2, groups=(0.4, 0.05), assume=0.0, together=False),
    Setting("mean", "paper", 1000, "normal", relation=1, more={**WHOLE, "spread": 15, "location": 45}),
    Setting("mean", "paper", 1000, "normal", relation=-1, mechanism="mixed", more={"missing": "center", "spread": 15}),
    Setting("mean", "three", 1000, "two points", relation=1, mechanism="robust", more=WHOLE),
]
VARIANCES = [
    Setting("variance", assume=0.0, more=WHOLE),
    Setting("variance", "three", 2000, "skewed", relation=1, more=WHOLE),
    Setting("variance", "public", 1000, "uniform", relation=-1, more=WHOLE),
    Setting("variance", "many", 3000, "narrow", assume=0.0),
    Setting("variance", "three", 1000, "rare", assume=0.0, more=WHOLE),
    Setting("variance", "paper", 5000, "normal", relation=1, fraction=0.1),
    Setting("variance", "three", 2000, "two points", relation=-1, fraction=0.3, assume=0.1),
    Setting("variance", "three", 5000, "discrete", groups=GROUPS, relation=1),
    Setting("variance", "two", 2000, "skewed", rows=4, where=True, fraction=0.3, assume=0.0),
    Setting("variance", "two", 500, "uniform", relation=1, assume="nothing", more=WHOLE),
]
MEDIANS = [
    Setting("median", assume=0.0, more=WHOLE),
    Setting("median", relation=1, more=WHOLE),
    Setting("median", "three", 500, "skewed", relation=-1, more={"for_interval": 0.6}),
    Setting("median", "two", 1000, "two points", assume=0.0),
    Setting("median", "public", 1000, "discrete", relation=1),
    Setting("median", "many", 5000, "uniform", relation=-1, fraction=0.05),
    Setting("median", "three", 10000, "normal", relation=1, fraction=0.005),
    Setting("median", "two", 400, "two peaks", relation=1, assume="nothing"),
    Setting("median", "three", 3000, "normal", groups=GROUPS, relation=1),
    Setting("median", "three", 2000, "skewed", rows=3, where=True, fraction=0.5, relation=-1, assume=0.1),
]
QUANTILES = [
    Setting("quantile", "paper", 1000, "skewed", assume=0.0, more={"q": 0.1}),
    Setting("quantile", "three", 600, "normal", relation=1, more={"q": 0.25, "for_interval": 0.6}),
    Setting("quantile", "public", 1000, "uniform", relation=-1, more={"q": 0.9}),
    Setting("quantile", "many", 4000, "discrete", relation=1, more={"q": 0.25, "step": 1}),
    Setting("quantile", "three", 2000, "rare", assume=0.0, more={"q": 0.9}),
    Setting("quantile", "three", 1000, "skewed", relation=1, mechanism="sample", more={"q": 0.25}),
    Setting("quantile", "two", 500, "uniform", relation=-1, assume="nothing", more={"q": 0.9}),
    Setting("quantile", "paper", 3000, "skewed", fraction=0.2, relation=1, assume=0.5, more={"q": 0.9}),
    Setting("quantile", "three", 5000, "uniform", groups=GROUPS, relation=-1, more={"q": 0.25}),
]
SETTINGS = (*COUNTS, *HISTOGRAMS, *SUMS, *MEANS, *VARIANCES, *MEDIANS, *QUANTILES)

"""The one argument model: what questions take, and how each argument is checked.

checks.py    numbers, names, truths: one check each, with one text
options.py   the options that all statistics share, as data
reading.py   how a call is read: against what a statistic takes, to `AskOptions`
"""

from epsilons.arguments.checks import (
    ASSUMPTIONS,
    INSIDE,
    LARGEST_NUMBER,
    NUMBERS,
    PRIVACIES,
    SCALES,
    check_bounds,
    check_confidence,
    check_entropy,
    check_error,
    check_gamma,
    check_guess,
    check_name,
    check_rank,
    check_real,
    check_share,
    check_step,
    check_truth,
    check_unbounded_step,
    check_whole,
    exact,
)
from epsilons.arguments.options import (
    ARRAYS,
    BATCHES,
    DEFAULT_SHARE,
    OPTIONS,
    QUERIES,
    TABLES,
    WHOLE_SHARE,
    Parameter,
    options_of,
)
from epsilons.arguments.reading import AskOptions, Call, read_call, read_plan

__all__ = [
    "ARRAYS",
    "ASSUMPTIONS",
    "BATCHES",
    "DEFAULT_SHARE",
    "INSIDE",
    "LARGEST_NUMBER",
    "NUMBERS",
    "OPTIONS",
    "PRIVACIES",
    "QUERIES",
    "SCALES",
    "TABLES",
    "WHOLE_SHARE",
    "AskOptions",
    "Call",
    "Parameter",
    "check_bounds",
    "check_confidence",
    "check_entropy",
    "check_error",
    "check_gamma",
    "check_guess",
    "check_name",
    "check_rank",
    "check_real",
    "check_share",
    "check_step",
    "check_truth",
    "check_unbounded_step",
    "check_whole",
    "exact",
    "options_of",
    "read_call",
    "read_plan",
]

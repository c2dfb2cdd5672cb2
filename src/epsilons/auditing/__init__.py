"""Tries to falsify a guarantee: exactly by enumerating small data sets, or statistically from draws.

claims.py       a claim under attack; built_in.py makes those of mechanisms
attack.py       by what is known of a claim: exactly.py, by laws or by sums, or by_draws.py
exact.py        every outcome of every neighbour
divergence.py   how far two laws are apart where a delta is allowed, or in rho
draws.py        a lower bound on a loss from draws of two neighbours; views.py says what of an outcome is looked at
made_up.py      small data sets that nobody's values went into, and the neighbours to try
report.py       what was found; plugins.py holds mechanisms and statistics from outside to it
"""

from epsilons.auditing import plugins as plugins
from epsilons.auditing.draws import LossBound, bound_loss, clopper_pearson
from epsilons.auditing.exact import ABSENT, PersonLoss, Verdict, all_datasets, certain_losses, enumerate_losses

__all__ = [
    "ABSENT", "LossBound", "PersonLoss", "Verdict", "all_datasets", "bound_loss", "certain_losses", "clopper_pearson",
    "enumerate_losses",
]  # fmt: skip

"""Tries to falsify a guarantee: exactly by enumerating small data sets, or statistically from draws.

exact.py     every outcome of every neighbour
draws.py     a lower bound on a loss from draws of two neighbours
made_up.py   small data sets that nobody's values went into, and the neighbours to try
"""

from epsilons.auditing import plugins as plugins
from epsilons.auditing.draws import LossBound, bound_loss, clopper_pearson
from epsilons.auditing.exact import ABSENT, PersonLoss, Verdict, all_datasets, certain_losses, enumerate_losses

__all__ = [
    "ABSENT", "LossBound", "PersonLoss", "Verdict", "all_datasets", "bound_loss", "certain_losses", "clopper_pearson",
    "enumerate_losses",
]  # fmt: skip

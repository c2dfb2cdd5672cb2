"""Jorgensen, Yu and Cormode 2015: counts, medians and models of people who each have an epsilon of their own."""

from epsilons.papers.figures import Paper
from epsilons.papers.pdp.claims import CLAIMS
from epsilons.papers.pdp.counts import EXAMPLE_1, FIGURE_1
from epsilons.papers.pdp.medians import FIGURE_2
from epsilons.papers.pdp.models import FIGURE_3, FITS, WAGES
from epsilons.papers.pdp.settings import TABLE_1

PAPER = Paper("pdp", "Jorgensen et al. 2015", (TABLE_1, EXAMPLE_1, FIGURE_1, FIGURE_2, FIGURE_3, FITS, WAGES), CLAIMS)

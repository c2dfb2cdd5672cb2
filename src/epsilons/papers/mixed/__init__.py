"""Ferrando, Gillenwater and Kulesza 2021: means and medians mixed from the answers of groups."""

from epsilons.papers.figures import Paper
from epsilons.papers.mixed.claims import CLAIMS
from epsilons.papers.mixed.means import FIGURE_1, GROUPS, RANGES, TWO_GROUPS
from epsilons.papers.mixed.medians import FIGURE_2

PAPER = Paper("mixed", "Ferrando et al. 2021", (FIGURE_1, RANGES, TWO_GROUPS, GROUPS, FIGURE_2), CLAIMS)

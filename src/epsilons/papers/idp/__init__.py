"""Soria-Comas, Domingo-Ferrer, Sanchez and Megias 2017: individual differential privacy."""

from epsilons.papers.figures import Paper
from epsilons.papers.idp.claims import CLAIMS
from epsilons.papers.idp.maxima import MAXIMUM, RANGES
from epsilons.papers.idp.medians import FIGURE_2, GAMMA
from epsilons.papers.idp.noise import FIGURE_1, TABLE_1

PAPER = Paper("idp", "Soria-Comas et al. 2017", (FIGURE_1, TABLE_1, FIGURE_2, GAMMA, MAXIMUM, RANGES), CLAIMS)

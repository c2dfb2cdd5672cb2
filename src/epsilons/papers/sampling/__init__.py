"""Joy and Gerla 2017: Sampling Privacy, beside randomized response."""

from epsilons.papers.figures import Paper
from epsilons.papers.sampling.city import FIGURE_2, MAP
from epsilons.papers.sampling.claims import CLAIMS
from epsilons.papers.sampling.errors import FIGURE_4, FIGURE_5, FIGURE_6, FIGURE_7, PLACES, SCALING
from epsilons.papers.sampling.leakage import FIGURE_3, LEAKAGE

FIGURES = (FIGURE_2, FIGURE_3, FIGURE_4, FIGURE_5, FIGURE_6, FIGURE_7, SCALING, PLACES, LEAKAGE, MAP)
PAPER = Paper("sampling", "Joy and Gerla 2017", FIGURES, CLAIMS)

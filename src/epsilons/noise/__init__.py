"""Exact draws: the only room with randomness.

Every draw has exactly the distribution its docstring states, given uniform random bits. No float decides
one: a float Laplace leaks its input through the gaps between floats (Mironov 2012, "On Significance of the
Least Significant Bits for Differential Privacy"). Probabilities are integers out of 2^64, or real numbers
enclosed by interval arithmetic and compared with as many random bits as the comparison needs.

    entropy.py   random bits, integers below a bound, real numbers rounded exactly
    coins.py     coins, binomials, dice, who stays in a sample
    laplace.py   discrete Laplace noise, from geometrics drawn digit by digit
    gaussian.py  discrete Gaussian noise, from discrete Laplace noise by rejection
    segments.py  exponential mechanisms over runs of outcomes
    weighing.py  the masses of those runs, as integers
    heavy.py     heavy-tailed noise on a grid
    pmf.py       probabilities as floats, for teaching and audits; no draw uses them

Importing this room loads numpy only: `flint` and `cryptography` are imported by the first draw.
"""

from epsilons.noise.coins import bernoulli, binomial
from epsilons.noise.entropy import Entropy, floor_dyadic, system
from epsilons.noise.gaussian import discrete_gaussian, discrete_gaussian_many
from epsilons.noise.laplace import discrete_laplace, discrete_laplace_many
from epsilons.noise.segments import Block, SegmentSampler
from epsilons.noise.weighing import keep_chance

__all__ = [
    "Block", "Entropy", "SegmentSampler", "bernoulli", "binomial", "discrete_gaussian", "discrete_gaussian_many",
    "discrete_laplace", "discrete_laplace_many", "floor_dyadic", "keep_chance", "system",
]  # fmt: skip

"""The local model: owners randomize their own answers, a collector estimates from many of them (Joy, Sampling Privacy).

base.py                 the shape of a protocol: respond, count, estimate, leakage; exact probabilities
randomized_response.py  two coins, or a coin and a die
personal.py             randomized response where every owner has an epsilon of their own
sampling_privacy.py     Joy's two rounds, and the toy constructions
estimate.py             what a collector gets;  leakage.py: what an observer gets;  binomials.py: the laws of counts
planning.py             how many respondents, which sampling rate
survey.py               a question with its options and protocol, as a file;  answers.py: a spreadsheet of answers
places.py               coordinates to cells and back to a picture; files of check-ins
"""

from epsilons.local.base import ResponseProtocol
from epsilons.local.estimate import Estimate
from epsilons.local.leakage import Leakage
from epsilons.local.personal import PersonalResponse
from epsilons.local.planning import CollectionPlan, plan
from epsilons.local.randomized_response import RandomizedResponse
from epsilons.local.sampling_privacy import SamplingDeniability, SamplingOnly, SamplingPrivacy
from epsilons.local.survey import Survey

__all__ = [
    "CollectionPlan", "Estimate", "Leakage", "PersonalResponse", "RandomizedResponse", "ResponseProtocol",
    "SamplingDeniability", "SamplingOnly", "SamplingPrivacy", "Survey", "plan",
]  # fmt: skip

"""The local model: owners randomize their own answers, a collector estimates from many of them (paper 3).

base.py                 the shape of a protocol: respond, count, estimate, leakage
randomized_response.py  two coins, or a coin and a die
personal.py             randomized response where every owner has an epsilon of their own
sampling_privacy.py     paper 3's two rounds
toys.py                 paper 3's toy constructions
estimate.py             what a collector gets;  binomials.py: its intervals
leakage.py              what an observer gets;  counts.py: from published counts
planning.py             how many respondents, which sampling rate
survey.py               a question with its options and protocol, as a file;  answers.py: a spreadsheet of answers
places.py               coordinates to cells and back to a picture;  checkins.py: files of check-ins
probability.py          exact probabilities

Through aggregators that need not trust each other:

collection.py           a survey, its aggregators, the terms
owner.py                an answer as sealed shares;  courier.py, transport.py: their way;  reports.py: their form
shares.py, sealing.py   additive shares over field.py;  onehot.py: the proof that they are one answer
aggregator/             an aggregator and its store
coordinator.py          from terms to a publication
publication.py          sums, estimate, promise;  noise_sums.py: its intervals
"""

from epsilons.local.base import ResponseProtocol
from epsilons.local.collection import Collection, Place
from epsilons.local.coordinator import Coordinator
from epsilons.local.courier import Courier
from epsilons.local.estimate import Estimate
from epsilons.local.leakage import Leakage
from epsilons.local.owner import OwnerClient
from epsilons.local.personal import PersonalResponse
from epsilons.local.planning import CollectionPlan, plan
from epsilons.local.publication import Publication
from epsilons.local.randomized_response import RandomizedResponse
from epsilons.local.sampling_privacy import SamplingPrivacy
from epsilons.local.survey import Survey
from epsilons.local.toys import SamplingDeniability, SamplingOnly
from epsilons.local.transport import HttpAggregator

__all__ = [
    "Collection",
    "CollectionPlan",
    "Coordinator",
    "Courier",
    "Estimate",
    "HttpAggregator",
    "Leakage",
    "OwnerClient",
    "PersonalResponse",
    "Place",
    "Publication",
    "RandomizedResponse",
    "ResponseProtocol",
    "SamplingDeniability",
    "SamplingOnly",
    "SamplingPrivacy",
    "Survey",
    "plan",
]

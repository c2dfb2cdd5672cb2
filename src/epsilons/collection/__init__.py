"""Several aggregators that need not trust each other collect one sum (Joy's Sampling Privacy, and randomized response).

terms.py                what is collected: a survey, its aggregators, the terms that all of them sign
owner.py                an answer as sealed shares;  reports.py: their form;  courier.py, transport.py: their way
shares.py, sealing.py   additive shares over field.py;  proof.py: the proof that they are one answer
aggregator.py           what an aggregator does;  store.py: what it keeps;  refusals.py: when it refuses
coordinator.py          from terms to a publication
publication.py          sums, estimate, promise;  noise_sums.py: its intervals
"""

from epsilons.collection.aggregator import Aggregator
from epsilons.collection.coordinator import Coordinator
from epsilons.collection.courier import Courier
from epsilons.collection.owner import OwnerClient
from epsilons.collection.publication import Publication
from epsilons.collection.store import Store
from epsilons.collection.terms import Collection, Place
from epsilons.collection.transport import HttpAggregator

__all__ = [
    "Aggregator",
    "Collection",
    "Coordinator",
    "Courier",
    "HttpAggregator",
    "OwnerClient",
    "Place",
    "Publication",
    "Store",
]

"""Several aggregators that need not trust each other collect one sum (Joy's Sampling Privacy, and randomized response).

terms.py           what is collected: a survey, its aggregators, the terms that all of them sign
transport.py       an answer as sealed shares, their way, and aggregators behind HTTP
reports.py         shares and reports, and why an aggregator refuses;  sealing.py: keys
proof.py           the prime field, and the proof that shares are one answer
aggregator.py      what an aggregator does;  store.py: what it keeps;  chain.py: why no older copy of it goes on
coordinator.py     from terms to a publication
publication.py     sums, estimate with intervals, promise
"""

from epsilons.collection.aggregator import Aggregator
from epsilons.collection.coordinator import Coordinator
from epsilons.collection.publication import Publication
from epsilons.collection.store import Store
from epsilons.collection.terms import Collection, Place
from epsilons.collection.transport import Courier, HttpAggregator, OwnerClient

__all__ = [
    "Aggregator", "Collection", "Coordinator", "Courier", "HttpAggregator", "OwnerClient", "Place", "Publication",
    "Store",
]  # fmt: skip

"""An aggregator, without the network: what it keeps (`store`), what it does (`core`), when it refuses (`refusals`)."""

from epsilons.local.aggregator.core import Aggregator
from epsilons.local.aggregator.store import Store

__all__ = ["Aggregator", "Store"]

"""Tables about people: `Dataset`."""

from epsilons.dataset.table import Dataset

__all__ = ["Dataset"]

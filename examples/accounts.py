"""A table with accounts: everyone is charged before a row is read; asking again is free. python examples/accounts.py"""

import numpy as np
import pyarrow as pa

import epsilons as eps

draw = np.random.default_rng(2)  # made-up people
table = pa.table(
    {
        "id": range(5000),
        "wage": draw.gamma(4, 150, 5000),
        "privacy": draw.choice(["strict", "open"], 5000),
    }
)
people = eps.Dataset(
    table,
    person="id",
    preferences=eps.Preferences.from_levels("privacy", {"strict": 0.1, "open": 1}),
    bounds={"wage": (0, 2000)},
    ledger="memory",
)
first = people.mean("wage", share=0.2)
again = people.mean("wage", share=0.2)
assert first.value == again.value, "the stored answer, at no charge"
print(first)
print(people.remaining())

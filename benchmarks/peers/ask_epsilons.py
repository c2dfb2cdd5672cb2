"""epsilons: a `Dataset` over the Parquet file, people as the unit, a ledger in memory.

Everyone granted 1000 times what an answer may cost, so that a thousandth (`share=0.001`) is the epsilon of one answer.
Nothing is declared complete: like the peers, it does not take for granted that everybody has a value.
"""

from __future__ import annotations

from answering import HIGH, LOW, REGIONS, STEP, Ask, Job, answer

import epsilons as eps

ANSWERS = 1000


def load(job: Job) -> dict[str, Ask]:
    preferences = eps.Preferences.from_column("granted") if job.levels else ANSWERS * job.epsilon
    settled = {"version": "made up", "ceiling": ANSWERS * job.epsilon, "ledger": "memory"}
    people = eps.Dataset(job.path, person="id", preferences=preferences, **settled)
    once = {"share": 1 / ANSWERS, "fresh": True}
    wage = {"bounds": (LOW, HIGH), **once}
    return {
        "count": lambda: people.count(**once).value,
        "sum": lambda: people.sum("wage", **wage).value,
        "mean": lambda: people.mean("wage", **wage).value,
        "mean by region": lambda: people.mean("wage", by={"region": REGIONS}, **wage).value,
        "median": lambda: people.median("wage", step=STEP, **wage).value,
    }


if __name__ == "__main__":
    answer(load)

"""One of the other packages on the task of `local.py`; runs in their environment, prints one JSON line.

Only numpy and the package itself are there. What each does is its own code as documented: a call per owner on the
owner's side, then its aggregator.
"""

import json
import math
import sys
import time
from importlib.metadata import version

import numpy as np


def people_of(task):
    """As in `local.py`."""
    random = np.random.default_rng(task["seed"])
    shares = 1 / np.arange(1, task["values"] + 1)
    truths = random.choice(task["values"], task["owners"], p=shares / shares.sum())
    return truths, np.bincount(truths, minlength=task["values"])


def pure_ldp(task, truths):
    """Direct encoding."""
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer

    def same(value):
        return value

    client = DEClient(task["epsilon"], task["values"], index_mapper=same)
    server = DEServer(task["epsilon"], task["values"], index_mapper=same)
    for truth in truths:
        server.aggregate(client.privatise(truth))
    return np.array([server.estimate(value, suppress_warnings=True) for value in range(task["values"])])


def multi_freq_ldpy(task, truths):
    """Generalized randomized response."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client

    reports = [GRR_Client(truth, task["values"], task["epsilon"]) for truth in truths]
    return GRR_Aggregator_MI(reports, task["values"], task["epsilon"]) * len(truths)


NOTES = {
    "pure-ldp": "noise from Python's `random`; needs scikit-learn and statsmodels, which it does not declare",
    "multi-freq-ldpy": "noise from numba's generator; negative estimates set to 0 and rescaled",
}


def main():
    package, task = sys.argv[1], json.loads(sys.argv[2])
    run = {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq_ldpy}[package]
    truths, truth = people_of(task)
    owners = truths.tolist()
    run(task, owners[:1000])
    seconds, errors = [], []
    for _ in range(task["runs"]):
        start = time.process_time()
        found = run(task, owners)
        seconds.append(time.process_time() - start)
        errors.append(float(np.mean((found[1:] - truth[1:]) ** 2)))
    result = {
        "version": version(package),
        "seconds": float(np.median(seconds)),
        "error": math.sqrt(np.mean(errors)),
        "note": NOTES[package],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

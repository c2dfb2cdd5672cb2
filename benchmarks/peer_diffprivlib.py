"""diffprivlib's side of the comparison, run by benchmarks/models.py in an environment of its own.

Reads an .npz file with X, y, low, high, wages, epsilons and models; prints {epsilon: root mean squared error} as JSON.
Then tries `eps.personalize` with a tool and a model of diffprivlib, as the documentation shows it.
"""

from __future__ import annotations

import functools
import json
import math
import sys
import warnings

import numpy as np
from diffprivlib import __version__, models, tools

import epsilons as eps


def errors(path: str) -> dict[str, float]:
    """Over several models at each epsilon, for all people in the file."""
    with np.load(path) as file:
        X, y, epsilons, repeats = file["X"], file["y"], file["epsilons"], int(file["models"])
        bounds_X, bounds_y = (file["low"], file["high"]), tuple(file["wages"].tolist())
    found = {}
    for epsilon in epsilons.tolist():
        squares = []
        for _ in range(repeats):
            model = models.LinearRegression(epsilon=epsilon, bounds_X=bounds_X, bounds_y=bounds_y).fit(X, y)
            squares.append(float(np.mean((model.predict(X) - y) ** 2)))
        found[str(epsilon)] = math.sqrt(np.mean(squares))
    return found


def zero_sensitivity() -> float:
    """The noise in the sum of squares for bounds (0, 100) without an intercept (diffprivlib issue 105)."""
    values = np.linspace(0, 100, 500)[:, None]
    model = models.LinearRegression(epsilon=1.0, bounds_X=(0, 100), bounds_y=(0, 100), fit_intercept=False)
    model.fit(values, values[:, 0])
    return abs(float(model._obj_coefs[2][0, 0] - (values**2).sum()))


def personalized() -> None:
    """The examples of docs/models.md."""
    ages = np.linspace(18, 90, 1_000)
    epsilons = [0.1] * 400 + [0.5] * 400 + [1.0] * 200
    histogram = functools.partial(tools.histogram, bins=4, range=(18, 90))
    release = eps.personalize(histogram, ages, epsilons)
    assert release.charges == {0.1: 0.1, 0.5: 0.5, 1.0: 1.0}
    clusters = models.KMeans(n_clusters=2, bounds=(18, 90))
    fitted = eps.personalize(clusters, ages.reshape(-1, 1), epsilons, private_under="absent").value
    assert fitted.cluster_centers_.shape == (2, 1)
    try:
        eps.personalize(models.KMeans(n_clusters=2), ages.reshape(-1, 1), epsilons, private_under="absent")
    except eps.PlanError:
        return
    raise AssertionError("missing bounds were not refused")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    personalized()
    json.dump({"version": __version__, "errors": errors(sys.argv[1]), "noise": zero_sensitivity()}, sys.stdout)

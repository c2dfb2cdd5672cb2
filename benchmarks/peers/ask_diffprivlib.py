# /// script
# dependencies = [
#     "diffprivlib==0.6.6",
#     "cloudpickle==3.1.2",
#     "joblib==1.6.0",
#     "numpy==2.4.6",
#     "pyarrow==26.0.1",
#     "scikit-learn==1.6.1",
#     "scipy==1.17.1",
#     "threadpoolctl==3.8.0",
# ]
# ///
"""diffprivlib: its tools on numpy arrays. It imports only with scikit-learn 1.6.

Its mean and median take the number of rows as public; so does the mean by region, where it is the number in each
region. Its count never passes the length of the array, which is public too then. It has no groups, so each region's
rows are picked by numpy, with the whole epsilon for each region.
"""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as parquet
from answering import HIGH, LOW, REGIONS, Ask, Job, answer
from diffprivlib import tools


def load(job: Job) -> dict[str, Ask]:
    table = parquet.read_table(job.path, columns=["wage", "region"])
    wages = table["wage"].to_numpy()
    regions = table["region"].to_numpy().astype("U5")
    present = np.ones(len(wages), dtype=bool)
    epsilon, bounds = job.epsilon, (LOW, HIGH)

    def by_region() -> dict[str, float]:
        return {key: tools.mean(wages[regions == key], epsilon=epsilon, bounds=bounds) for key in REGIONS}

    return {
        "count": lambda: tools.count_nonzero(present, epsilon=epsilon),
        "sum": lambda: tools.sum(wages, epsilon=epsilon, bounds=bounds),
        "mean": lambda: tools.mean(wages, epsilon=epsilon, bounds=bounds),
        "mean by region": by_region,
        "median": lambda: tools.median(wages, epsilon=epsilon, bounds=bounds),
    }


if __name__ == "__main__":
    answer(load)

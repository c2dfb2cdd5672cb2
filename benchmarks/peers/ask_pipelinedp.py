# /// script
# dependencies = [
#     "pipeline-dp==0.3.1",
#     "python-dp==1.1.5",
#     "dill==0.4.1",
#     "numpy==2.4.6",
#     "pyarrow==26.0.1",
#     "scipy==1.17.1",
# ]
# ///
"""PipelineDP: the local backend on a list of rows, Laplace noise, public partitions.

That no person has more than one row is taken as given (`contribution_bounds_already_enforced`), which spares it the
counting of everyone's rows and about half of its time.
"""

from __future__ import annotations

import pipeline_dp
import pyarrow.parquet as parquet
from answering import HIGH, LOW, REGIONS, Ask, Job, answer
from pipeline_dp import Metrics


def load(job: Job) -> dict[str, Ask]:
    table = parquet.read_table(job.path, columns=["wage", "region"])
    rows = list(zip(table["wage"].to_pylist(), table["region"].to_pylist(), strict=True))

    def ask(metric: pipeline_dp.Metric, partitions: tuple[str, ...] = ()) -> dict[str, float]:
        """The metric of each partition; without partitions, of all rows under the key "all"."""
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=job.epsilon, total_delta=0)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        bounds = {} if metric == Metrics.COUNT else {"min_value": LOW, "max_value": HIGH}
        params = pipeline_dp.AggregateParams(
            noise_kind=pipeline_dp.NoiseKind.LAPLACE,
            metrics=[metric],
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            contribution_bounds_already_enforced=True,
            **bounds,
        )
        extractors = pipeline_dp.DataExtractors(
            partition_extractor=(lambda row: row[1]) if partitions else (lambda row: "all"),
            value_extractor=lambda row: row[0],
        )
        found = engine.aggregate(rows, params, extractors, public_partitions=list(partitions) or ["all"])
        accountant.compute_budgets()
        return {key: metrics[0] for key, metrics in found}

    return {
        "count": lambda: ask(Metrics.COUNT)["all"],
        "sum": lambda: ask(Metrics.SUM)["all"],
        "mean": lambda: ask(Metrics.MEAN)["all"],
        "mean by region": lambda: ask(Metrics.MEAN, REGIONS),
        "median": lambda: ask(Metrics.PERCENTILE(50))["all"],
    }


if __name__ == "__main__":
    answer(load)

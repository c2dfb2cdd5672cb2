# /// script
# dependencies = [
#     "opendp==0.16.0",
#     "cloudpickle==3.1.2",
#     "deprecated==1.3.1",
#     "joblib==1.6.0",
#     "narwhals==2.28.0",
#     "numpy==2.4.6",
#     "polars==1.36.1",
#     "polars-runtime-32==1.36.1",
#     "pyarrow==26.0.1",
#     "randomgen==2.3.0",
#     "scikit-learn==1.9.1",
#     "scipy==1.17.1",
#     "threadpoolctl==3.8.0",
#     "wrapt==2.5.2",
# ]
# ///
"""OpenDP: the context API on a Polars frame that is in memory; pure epsilon, contributions=1.

Sums of floats need a public limit on the number of rows (`max_length`), which is twice the rows here. The groups' keys
are public (`with_keys`). The medians' candidates are the common grid.
"""

from __future__ import annotations

import opendp.prelude as dp
import polars as pl
from answering import HIGH, LOW, MOST_ANSWERS, REGIONS, STEP, TASKS, Ask, Job, answer

dp.enable_features("contrib")


def load(job: Job) -> dict[str, Ask]:
    frame = pl.read_parquet(job.path, columns=["wage", "region"])
    queries = MOST_ANSWERS * len(TASKS)
    context = dp.Context.compositor(
        data=frame.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=job.epsilon * queries),
        split_evenly_over=queries,
        margins=[dp.polars.Margin(max_length=2 * job.rows)],
    )
    bounds = (LOW, HIGH)
    candidates = [LOW + step * STEP for step in range(round((HIGH - LOW) / STEP) + 1)]
    wage = pl.col("wage").fill_null(0.0).fill_nan(0.0)
    keys = pl.LazyFrame({"region": REGIONS})

    def number(expression: pl.Expr) -> float:
        return context.query().select(expression).release().collect().item()

    def by_region() -> dict[str, float]:
        query = context.query().group_by("region").agg(wage.dp.mean(bounds)).with_keys(keys)
        return dict(query.release().collect().select("region", "wage").rows())

    return {
        "count": lambda: number(dp.len()),
        "sum": lambda: number(wage.dp.sum(bounds)),
        "mean": lambda: number(wage.dp.mean(bounds)),
        "mean by region": by_region,
        "median": lambda: number(wage.dp.median(candidates)),
    }


if __name__ == "__main__":
    answer(load)

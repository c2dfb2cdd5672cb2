# /// script
# dependencies = [
#     "smartnoise-sql==1.0.10",
#     "antlr4-python3-runtime==4.9.3",
#     "deprecated==1.3.1",
#     "graphviz==0.21",
#     "numpy==2.4.6",
#     "opendp==0.14.2",
#     "pandas==2.3.3",
#     "pyarrow==26.0.1",
#     "python-dateutil==4.0.0",
#     "pytz==2026.6",
#     "pyyaml==6.0.3",
#     "sqlalchemy==2.1.8",
#     "typing-extensions==4.16.0",
#     "tzdata==2026.6",
#     "wrapt==2.5.2",
# ]
# ///
"""SmartNoise SQL: the reader of pandas frames, each row a person, the groups public.

Its epsilon is that of one column of sums or counts; an average has two. So its own `get_privacy_cost` is asked what a
query would cost at epsilon 1, and the query gets the part of epsilon with which it costs what everybody's does.
"""

from __future__ import annotations

from functools import cache

import pandas as pd
import snsql
from answering import HIGH, LOW, Ask, Job, answer

#: It cannot do without a delta, though Laplace noise with public groups needs none.
DELTA = 1e-9


def load(job: Job) -> dict[str, Ask | str]:
    frame = pd.read_parquet(job.path, columns=["wage", "region"])
    columns = {
        "wage": {"type": "float", "lower": LOW, "upper": HIGH, "nullable": False},
        "region": {"type": "string"},
    }
    facts = {"row_privacy": True, "max_ids": 1, "sample_max_ids": False, "censor_dims": False}
    metadata = {"": {"people": {"people": {**facts, **columns}}}}

    @cache
    def reader_at(epsilon: float) -> snsql.sql.PrivateReader:
        return snsql.from_df(frame, privacy=snsql.Privacy(epsilon=epsilon, delta=DELTA), metadata=metadata)

    def prepare(query: str) -> snsql.sql.PrivateReader:
        cost, _ = reader_at(1.0).get_privacy_cost(query)
        return reader_at(job.epsilon / float(cost))

    def number(expression: str) -> Ask:
        query = f"SELECT {expression} AS answer FROM people.people"
        reader = prepare(query)
        return lambda: reader.execute(query)[1][0]

    def by_region() -> Ask:
        query = "SELECT region, AVG(wage) AS answer FROM people.people GROUP BY region"
        reader = prepare(query)
        return lambda: dict(reader.execute(query)[1:])

    return {
        "count": number("COUNT(*)"),
        "sum": number("SUM(wage)"),
        "mean": number("AVG(wage)"),
        "mean by region": by_region(),
        "median": "its SQL has no median",
    }


if __name__ == "__main__":
    answer(load)

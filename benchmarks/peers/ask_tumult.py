# /// script
# dependencies = [
#     "tmlt.analytics==0.21.0",
#     "tmlt.core==0.19.1",
#     "mpmath==1.3.0",
#     "numpy==1.26.4",
#     "pandas==1.5.3",
#     "py4j==0.10.9.9",
#     "pyarrow==18.1.0",
#     "pyspark==3.5.9",
#     "python-dateutil==4.0.0",
#     "pytz==2026.6",
#     "randomgen==2.3.0",
#     "scipy==1.17.1",
#     "sympy==1.12.1",
#     "tabulate==0.8.10",
#     "tqdm==4.70.1",
#     "typeguard==4.6.0",
#     "types-tabulate==0.8.11",
#     "typing-extensions==4.16.0",
#     "tzdata==2026.6",
# ]
# ///
"""Tumult Analytics: a session on a local Spark, the table cached there, one row added or removed, pure epsilon.

Spark shuffles into as many parts as there are cores instead of its usual 200, which are meant for clusters.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

# Spark's workers run this Python, not whichever is first on the path.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

from answering import HIGH, LOW, REGIONS, Ask, CannotError, Job, answer
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session
from tmlt.analytics.utils import cleanup


def load(job: Job) -> dict[str, Ask]:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise CannotError("Java is missing; on Debian: apt-get install openjdk-17-jre-headless")
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", os.cpu_count() or 1)
        .config("spark.sql.warehouse.dir", str(Path(job.path).parent / "spark-warehouse"))
        .getOrCreate()
    )
    frame = spark.read.parquet(job.path).select("wage", "region").cache()
    frame.count()  # Spark caches at the first use
    session = Session.from_dataframe(
        privacy_budget=PureDPBudget(float("inf")),
        source_id="people",
        dataframe=frame,
        protected_change=AddOneRow(),
    )
    people, budget = QueryBuilder("people"), PureDPBudget(job.epsilon)
    by_region = people.groupby(KeySet.from_dict({"region": list(REGIONS)})).average("wage", LOW, HIGH, name="answer")

    def number(query: object) -> Ask:
        return lambda: session.evaluate(query, budget).collect()[0]["answer"]

    return {
        "count": number(people.count(name="answer")),
        "sum": number(people.sum("wage", LOW, HIGH, name="answer")),
        "mean": number(people.average("wage", LOW, HIGH, name="answer")),
        "mean by region": lambda: {
            row["region"]: row["answer"] for row in session.evaluate(by_region, budget).collect()
        },
        "median": number(people.median("wage", LOW, HIGH, name="answer")),
    }


if __name__ == "__main__":
    answer(load)
    if SparkSession.getActiveSession() is not None:
        cleanup()  # the tables it keeps between queries

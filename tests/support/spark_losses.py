"""A cluster on this machine whose executor is killed while it works; prints what was answered before and after.

Run as a program: `PYTHONPATH=tests python -m support.spark_losses FOLDER`.
A process has one Spark, so this one has its own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import epsilons as eps
from epsilons.testing import seeded
from support.spark_session import start

PEOPLE, FILES = 3_000, 8
#: A lost executor is noticed at once, and what it held is not waited for.
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "200ms",
    "spark.rpc.io.maxRetries": "1",
    "spark.network.timeout": "60s",
    "spark.executor.heartbeatInterval": "2s",
    "spark.ui.liveUpdate.period": "0",
}
BEFORE, AFTER = "before the loss", "in the midst of it"


def executor() -> int:
    """Called in a task: the process of its executor, which started the daemon that started the task's worker."""
    with open(f"/proc/{os.getppid()}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def executors(spark: Any) -> set[int]:
    """The executors that run tasks now."""
    return set(spark.sparkContext.parallelize(range(2), 2).map(lambda _: executor()).collect())


def kill_during(spark: Any, pids: set[int], group: str) -> None:
    """Kill when tasks of the group run."""
    tracker = spark.sparkContext.statusTracker()
    for _ in range(5_000):
        for job in tracker.getJobIdsForGroup(group):
            known = tracker.getJobInfo(job)
            for stage in known.stageIds if known else ():
                found = tracker.getStageInfo(stage)
                if found and found.numActiveTasks:
                    for pid in pids:
                        os.kill(pid, signal.SIGKILL)
                    return
        time.sleep(0.002)


def failures(spark: Any, group: str) -> int:
    """Tasks of a group that failed, and stages that were begun again."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    return sum(stage.numFailedTasks + (stage.currentAttemptId > 0) for stage in stages if stage)


def table() -> pa.Table:
    """People with up to three rows each."""
    random = np.random.default_rng(4)
    who = np.repeat(np.arange(PEOPLE), random.integers(1, 4, PEOPLE))
    wages = random.normal(50, 20, len(who))
    return pa.table({"id": who, "wage": wages, "epsilon": np.where(who % 3, 0.5, 2.0)})


def ask(people: eps.Dataset, seed: int) -> list[float]:
    """A summary of all, and one of a sample of the people, with frozen noise."""
    options: dict[str, Any] = {"bounds": (0, 100), "share": 0.01, "entropy": seeded(seed), "fresh": True}
    return [people.mean("wage", **options).value, people.mean("wage", mechanism="sample", **options).value]


def opened(source: Any) -> eps.Dataset:
    wishes = eps.Preferences.from_column("epsilon")
    ledger = eps.ledger.open()
    ledger.salt = bytes(16)  # the same for every ledger here
    return eps.Dataset(source, person="id", preferences=wishes, rows_per_person=2, version="1", ledger=ledger)


def main(folder: Path) -> dict[str, Any]:
    """All that the test looks at."""
    from pyspark.sql.functions import col, udf
    from pyspark.storagelevel import StorageLevel

    spark = start(str(folder), "local-cluster[1,2,1024]", **SETTINGS)
    context = spark.sparkContext
    rows = table()
    frame = spark.createDataFrame(rows).repartition(FILES, "id")
    mark = str(folder / "killed")

    def kills_its_executor(value: float) -> float:
        if not os.path.exists(mark):
            Path(mark).touch()
            os.kill(executor(), signal.SIGKILL)
        return value

    def never_twice_the_same(value: float) -> float:
        return value + float(np.random.default_rng().uniform(-20, 20))

    killing = frame.withColumn("wage", udf(kills_its_executor, "double", useArrow=False)(col("wage")))
    with opened(killing) as people, opened(rows) as here:
        prepared = [ask(people, 1), ask(here, 1)]

    fickle = udf(never_twice_the_same, "double", useArrow=False).asNondeterministic()
    changing = frame.withColumn("wage", fickle(col("wage")))
    cached = changing.persist(StorageLevel.DISK_ONLY)
    plain = {BEFORE: cached.selectExpr("sum(wage)").collect()[0][0]}
    with opened(changing) as people:
        ours = {BEFORE: ask(people, 2)}
        context.setJobGroup("during", "a summary")
        killer = threading.Thread(target=kill_during, args=(spark, executors(spark), "during"))
        killer.start()
        ours[AFTER] = ask(people, 2)
        killer.join()
        failed = failures(spark, "during")
    plain[AFTER] = cached.selectExpr("sum(wage)").collect()[0][0]
    spark.stop()
    return {"prepared": prepared, "killed in preparation": os.path.exists(mark), "ours": ours, "plain": plain,
            "failed tasks": failed}  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))

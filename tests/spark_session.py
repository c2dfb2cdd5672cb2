"""One local Spark for all tests that need it; where Java is missing they are skipped, and the summary says so."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import pytest

#: Small data: few partitions, one compiler only, and a task that fails is tried again up to three times.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "3",
    "spark.default.parallelism": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


def start(folder: str, master: str = "local[2,4]", **more: str) -> Any:
    """A session; `folder` takes what Spark would write to the working directory."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("JAVA IS MISSING: Spark is not tested. apt-get install openjdk-17-jre-headless")
    sql = pytest.importorskip("pyspark.sql", reason="PYSPARK IS MISSING: Spark is not tested.")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = sql.SparkSession.builder.master(master).appName("tests")
    for key, value in {**SETTINGS, "spark.sql.warehouse.dir": folder, **more}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()

"""One local Spark for all tests that need it; where Java is missing they are skipped, and the summary says so."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from typing import Any

#: One compiler only, which Java gives 48 MB for code: some thousand questions filled them, and then it ended.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xms512m"
#: Small data: few partitions, one collector only; a task that fails is tried again up to three times.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "3",
    "spark.default.parallelism": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": _JAVA,
}


def missing() -> str | None:
    """What is missing for Spark to be tested, loudly."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "JAVA IS MISSING, SPARK IS NOT TESTED: apt-get install openjdk-17-jre-headless"
    return None if find_spec("pyspark") else "PYSPARK IS MISSING, SPARK IS NOT TESTED: pip install 'epsilons[spark]'"


def start(folder: str, master: str = "local[2,4]", **more: str) -> Any:
    """A session; `folder` takes what Spark would write to the working directory."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName("tests")
    for key, value in {**SETTINGS, "spark.sql.warehouse.dir": folder, **more}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()

"""Sessions of Spark: the user's, which is found or started, and one of our own beside it.

Ours has the user's settings but for those on which the trees depend. Both share the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epsilons.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What the trees rely on, and what must not depend on a value: in our own session only.
_SETTINGS = {
    "spark.sql.ansi.enabled": "false",  # with it a cast or an overflow would fail on some values and not on others
    "spark.sql.variable.substitute": "false",  # '${system:...}' in a literal means itself
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.caseSensitive": "true",
    # Blocks of a file would be left out by the least and largest value in them, rows by nulls before the rest of a
    # condition is computed, and a list would be searched up to the first find.
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.optimizer.inSetConversionThreshold": "0",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",  # otherwise dates before 1582 are an error
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
}


def find_session() -> SparkSession:
    """The active session, or a new one that logs nothing."""
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is not None:
        return found
    try:
        quiet = SparkSession.builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "OFF")
        return quiet.appName("epsilons").getOrCreate()
    except Exception:
        pass
    raise DataError("Spark could not be started.", suggest="Java 17 or newer, or a session that runs already")


def check_running(session: SparkSession) -> None:
    """Refuse a session that was stopped, by Python or by another user of the cluster."""
    try:
        context: Any = session.sparkContext._jsc
        running = context is not None and not context.sc().isStopped()
    except Exception:  # the process that Spark ran in is gone
        running = False
    if not running:
        hint = "a new session, and the dataset opened again with the same ledger"
        rule = "Nothing is charged for a table that cannot be read."
        raise DataError("The Spark session of this table was stopped.", rule=rule, suggest=hint)


def own_session(theirs: SparkSession) -> SparkSession:
    """A session beside theirs: their settings, but for those that the trees rely on."""
    ours = theirs.newSession()
    as_started = ours.conf.getAll
    for key, value in theirs.conf.getAll.items():
        if as_started.get(key) != value and ours.conf.isModifiable(key):
            ours.conf.set(key, value)
    for key, value in _SETTINGS.items():
        if ours.conf.get(key, None) != value:  # some are deprecated, and setting them is logged
            ours.conf.set(key, value)
    return ours

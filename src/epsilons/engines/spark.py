"""Spark: the same trees, run where the table lies; only summaries and people's ids come to this process.

Everything runs in a Spark session of our own beside the user's, with the settings on which the trees depend. It shares
the cluster with the user's session; settings, temporary views and the log level there stay as they are.

What `keep` makes is written to files before anything reads it. Spark computes again what a lost executor held, and a
frame need not give the same rows twice: a random number in it, a table that grows. The number of rows per person would
not be capped then, and two answers would come from two tables. A file that every executor reaches has no such second
reading, and Spark takes over the files of one attempt of each task only.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from sqlglot import exp

from epsilons.engines import base
from epsilons.engines.base import SOURCE, Schema, make_column, register
from epsilons.engines.sessions import check_running, find_session, own_session
from epsilons.engines.trees import column, in_years, table
from epsilons.errors import Argument, DataError
from epsilons.noise.entropy import system
from epsilons.storage.files import claim_folder, release_folder, write_private

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession

_T = TypeVar("_T")

_PLAIN = {"string": base.TEXT, "boolean": base.TRUTH, "date": base.DATE, "timestamp_ntz": base.TIME}
_COLLATED = "string collate "
_TEXT = re.compile(rf"{_COLLATED}|(var)?char\(\d+\)$")

_ADAPTIVE, _PARTITIONS = "spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions"
#: A path without it may lie on whatever file system the cluster prefers.
_HERE = "file://"
#: What a snapshot's files are called, and what Spark takes for a pattern in a path.
_WRITTEN, _COLUMNS = "rows", "columns.json"
_PATTERN = re.compile(r"([\\{}\[\]*?])")
#: What Spark calls the absence of what was named.
_ABSENT = ("TABLE_OR_VIEW_NOT_FOUND", "PATH_NOT_FOUND")
#: Where pyspark writes what a failed query was about, values included.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@register
class Spark:
    """A table in Spark: a DataFrame, or with `engine="spark"` the name of a table or the path of Parquet files."""

    name: ClassVar[str] = "spark"
    options: ClassVar[frozenset[str]] = frozenset()
    #: What Spark reads need not lie on this machine.
    files: tuple[str, ...] = ()
    #: The driver holds only summaries.
    embedded = False
    declared: tuple[str, ...] = ()
    faults: ClassVar[Mapping[str, int]] = {}

    @staticmethod
    def takes(source: Any) -> bool:
        """What pyspark calls a DataFrame; looking at its name does not load pyspark."""
        return type(source).__module__.partition(".")[0] == "pyspark" and type(source).__name__ == "DataFrame"

    def __init__(self, source: Any) -> None:
        frame = _find_frame(source)
        self._home = _hide_errors(lambda: _home(frame.sparkSession))
        self._session: SparkSession = _hide_errors(lambda: own_session(frame.sparkSession))
        self._known: dict[str, str | None] = {}  # names of views, and the path of those that were kept
        self._closing = weakref.finalize(self, _close, self._session, self._home, self._known)
        self._usual = _hide_errors(lambda: [str(self._session.conf.get(key)) for key in (_ADAPTIVE, _PARTITIONS)])
        self.schema: Schema = _hide_errors(lambda: self._view(frame))

    def _view(self, frame: DataFrame) -> Schema:
        """The table under the name `SOURCE`; texts are compared letter by letter, whatever their collation was."""
        from pyspark.sql import functions

        found = _hand_over(frame, self._session)
        columns = []
        for field in found.schema.fields:
            one = functions.col(_quote(field.name))
            collated = field.dataType.simpleString().startswith(_COLLATED)
            columns.append(functions.collate(one, "UTF8_BINARY").alias(field.name) if collated else one)
        return self._name(SOURCE, found.select(columns))

    def _name(self, name: str, frame: DataFrame, path: str | None = None) -> Schema:
        frame.createOrReplaceTempView(_quote(name))
        self._known[name] = path
        return _make_schema(frame)

    def check_ready(self) -> None:
        """As every engine: the session lives in the user's cluster, which they may have stopped."""
        check_running(self._session)

    def run(self, tree: exp.Query) -> pa.Table:
        """As every engine: one Spark job, since nothing is planned anew in the middle of it."""

        def work() -> pa.Table:
            self._set("false", str(min(int(self._usual[1]), max(self._session.sparkContext.defaultParallelism, 1))))
            return self._session.sql(tree.sql("spark")).toArrow()

        return _hide_errors(work)

    def fetch(self, tree: exp.Query) -> dict[str, NDArray[Any]]:
        return base.as_columns(self.run(tree))

    def stage(self, name: str) -> Schema:
        asked = [kind for kind in self.schema.values() if kind.family != base.OTHER]
        cells = [exp.alias_(in_years(column(kind.name), kind), kind.name, quoted=True) for kind in asked]
        return self.keep(name, exp.select(*cells).from_(table(SOURCE)))

    def keep(self, name: str, tree: exp.Query) -> Schema:
        """As every engine: written to files, and read from there ever after."""

        def work() -> Schema:
            path = f"{self._home}/{_token()}"
            return self._name(name, _read_placed(self._session, path, *self._write_placed(tree, path)), path)

        return _hide_errors(work)

    def define(self, name: str, tree: exp.Query) -> None:
        _hide_errors(lambda: self._name(name, self._session.sql(tree.sql("spark"))))

    def _write_placed(self, tree: exp.Query, path: str) -> tuple[Any, list[str]]:
        """Files know the columns by their place: a name may hold signs that some format refuses."""
        self._set(*self._usual)
        frame = self._session.sql(tree.sql("spark"))
        placed = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
        placed.write.parquet(path)
        return placed.schema, frame.columns

    def write(self, tree: exp.Query, folder: str) -> None:
        """As every engine: Parquet files, in a folder that every executor must reach."""

        def work() -> None:
            schema, names = self._write_placed(tree, f"{_HERE}{folder}/{_WRITTEN}")
            write_private(os.path.join(folder, _COLUMNS), json.dumps({"schema": schema.jsonValue(), "names": names}))

        _hide_errors(work)
        if not any(name.endswith(".parquet") for name in os.listdir(os.path.join(folder, _WRITTEN))):
            rule = "Spark's executors write the rows, and this process finds them."
            hint = "a folder on a disk that all of them share"
            raise DataError("The snapshot did not arrive in its folder.", rule=rule, suggest=hint)

    @classmethod
    def reopen(cls, folder: str, **options: Any) -> Spark:
        def work() -> DataFrame:
            from pyspark.sql.types import StructType

            with open(os.path.join(folder, _COLUMNS), encoding="utf-8") as file:
                known = json.load(file)
            path = _PATTERN.sub(r"\\\1", f"{folder}/{_WRITTEN}")
            return _read_placed(find_session(), _HERE + path, StructType.fromJson(known["schema"]), known["names"])

        return cls(_hide_errors(work))

    def add(self, name: str, table: pa.Table | Mapping[str, NDArray[np.integer]]) -> Schema:
        def work() -> Schema:
            import pyarrow as pa
            from pyspark.sql import SparkSession

            # Spark has no whole numbers without a sign.
            signs = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
            signs[pa.uint64()] = pa.decimal128(20)
            given = pa.table(table)
            signed = given.cast(pa.schema([(f.name, signs.get(f.type, f.type)) for f in given.schema]))
            before = SparkSession.getActiveSession()
            try:
                return self._name(name, self._session.createDataFrame(signed))
            finally:
                # Making a frame makes its session the active one; an empty one makes the user's active again.
                if before is not None:
                    before.createDataFrame([], "nothing int")

        return _hide_errors(work)

    def drop(self, name: str) -> None:
        def work() -> None:
            path = self._known.pop(name)
            self._session.catalog.dropTempView(name)  # by the name itself, unlike when a view is made
            if path is not None:
                _remove(self._session, path)

        _hide_errors(work)

    def close(self) -> None:
        self._closing()

    def _set(self, adaptive: str, partitions: str) -> None:
        self._session.conf.set(_ADAPTIVE, adaptive)
        self._session.conf.set(_PARTITIONS, partitions)


def _read_placed(session: SparkSession, path: str, schema: Any, names: list[str]) -> DataFrame:
    reader = session.read.schema(schema).options(ignoreMissingFiles=False, ignoreCorruptFiles=False)
    return reader.parquet(path).toDF(*names)


def _find_frame(source: Any) -> DataFrame:
    """The source as a DataFrame of the session that it belongs to."""
    try:
        from pyspark.sql import DataFrame
        from pyspark.sql.classic.dataframe import DataFrame as Classic
    except ImportError:
        install = "pip install 'epsilons[spark]', and Java 17 or newer"
        raise DataError("Spark is not installed.", suggest=install) from None
    if isinstance(source, Classic):
        check_running(source.sparkSession)
        if source.isStreaming:
            raise DataError("A stream has no end to be asked about.", suggest="a DataFrame that was read, not streamed")
        return source
    if isinstance(source, DataFrame) or Spark.takes(source):
        rule = "A DataFrame of a session in this process; not of Spark Connect, not of pandas on Spark."
        hint = "a DataFrame of a session that runs here"
        raise DataError("This kind of Spark frame cannot be read.", rule=rule, suggest=hint)
    paths = [source] if isinstance(source, (str, os.PathLike)) else source
    if not isinstance(paths, (list, tuple)) or not paths or not all(isinstance(p, (str, os.PathLike)) for p in paths):
        rule, named = "A Spark DataFrame, the name of a table, or paths of Parquet files.", Argument("engine", "spark")
        unread = f"Spark cannot read a table from {type(source).__name__!r}."
        raise DataError(unread, rule=rule, suggest=('"wages" with ', named))
    session = find_session()
    if isinstance(source, str) and not ("/" in source or source.endswith((".parquet", ".pq"))):
        return _look_up(
            lambda: session.table(source),
            # A view that is there may be made of tables that are not.
            lambda no: None if session.catalog.tableExists(source) else f"There is no table {source!r}.",
            "a name that spark.catalog.listTables() shows, or a path with a / in it",
        )
    return _look_up(
        lambda: session.read.parquet(*map(os.fspath, paths)),
        lambda no: f"There is no file {no.getMessageParameters()['path']!r}.",
        "a path that spark.read.parquet reads; file:///... for a file on this machine",
    )


def _look_up(look: Callable[[], DataFrame], absent: Callable[[Any], str | None], hint: str) -> DataFrame:
    """That there is no such table or file says nothing about what one holds; every other reason is hidden."""
    from pyspark.errors import AnalysisException

    def work() -> DataFrame | str:
        try:
            return look()
        except AnalysisException as no:
            said = absent(no) if no.getCondition() in _ABSENT else None
            if said is None:
                raise
            return said

    found = _hide_errors(work)
    if isinstance(found, str):
        raise DataError(found, rule="The name of a table, or paths of Parquet files.", suggest=hint)
    return found


def _hand_over(frame: DataFrame, session: SparkSession) -> DataFrame:
    """The table as a DataFrame of another session, by a view that all sessions see for as long as that takes."""
    name = f"epsilons_{_token()}"
    frame.createGlobalTempView(name)
    try:
        return session.table(f"{session.conf.get('spark.sql.globalTempDatabase')}.{name}")
    finally:
        frame.sparkSession.catalog.dropGlobalTempView(name)


def _home(session: SparkSession) -> str:
    """A new directory that only this user may enter: in the checkpoint directory, or on this machine if all is here."""
    context = session.sparkContext
    shared = context.getCheckpointDir()
    if shared is None:
        if str(context.master).startswith("local"):
            return _HERE + claim_folder()
        what = "There is no directory for the prepared copy that every executor reaches."
        rule = "The copy is written to files, so that a lost executor changes nothing."
        hint = "a checkpoint directory of the session, such as hdfs:///private/epsilons"
        raise DataError(what, rule=rule, suggest=hint)
    home = f"{shared}/epsilons-{_token()}"
    files, path = _hadoop(session, home)
    jvm: Any = session._jvm
    only_us = jvm.org.apache.hadoop.fs.permission.FsPermission("700")
    files.mkdirs(path, only_us)
    files.setPermission(path, only_us)
    files.deleteOnExit(path)
    return home


def _hadoop(session: SparkSession, place: str) -> tuple[Any, Any]:
    """The file system that a path is on, and the path."""
    jvm: Any = session._jvm
    path = jvm.org.apache.hadoop.fs.Path(place)
    return path.getFileSystem(session.sparkContext._jsc.hadoopConfiguration()), path


def _remove(session: SparkSession, place: str) -> None:
    files, path = _hadoop(session, place)
    files.delete(path, True)


def _close(session: SparkSession, home: str, known: dict[str, str | None]) -> None:
    """Remove what is still there: the user may have stopped Spark before. The session's cluster is theirs."""
    release_folder(home.removeprefix(_HERE))
    try:
        if session.sparkContext._jsc is not None:
            for name in known:
                session.catalog.dropTempView(name)
            _remove(session, home)
    except Exception:
        pass
    known.clear()


def _make_schema(frame: DataFrame) -> Schema:
    kinds = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
    plain = [(name, "string" if _TEXT.match(kind) else kind) for name, kind in kinds]
    return Schema([make_column(name, kind, _PLAIN, re.split(r"[<(]", kind)[0]) for name, kind in plain])


def _quote(name: str) -> str:
    return table(name).sql("spark")


def _token() -> str:
    return system().bytes(8).hex()


def _hide_errors(work: Callable[[], _T]) -> _T:
    """pyspark logs errors as it makes them, with the values they are about: not in this thread, meanwhile."""
    from pyspark.logger import PySparkLogger

    here = threading.get_ident()

    def elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != here

    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(elsewhere)
    try:
        return base.hide_engine_errors(work, "Spark")
    finally:
        for logger in loggers:
            logger.removeFilter(elsewhere)

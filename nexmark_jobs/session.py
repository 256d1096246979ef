"""Work in a directory on Spark's file systems, and stop streaming queries."""

import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
_POLL_S = 0.05
_MAX_STOP_S = 10
_NEWEST_JOBS = 5
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class WorkDirectory:
    """A directory on any file system that Spark's Hadoop libraries know."""

    spark: SparkSession
    path: str

    def child(self, name: str) -> str:
        """Return the path of a file or directory in the directory."""
        return f"{self.path}/{name}"

    def make(self, name: str) -> str:
        """Create a directory in the directory and return its path."""
        path, files = self._at(self.child(name))
        files.mkdirs(path)
        return self.child(name)

    def write(self, name: str, text: str, age_s: int = 0) -> None:
        """Write a file in one step: a reader sees all of it or nothing.

        Args:
            name: the path of the file in the directory.
            text: its content.
            age_s: the file gets a modification time this many seconds ago. A file system that
                keeps no given times has files in the order in which they are written.
        """
        target, files = self._at(self.child(name))
        hidden, _ = self._at(f"{target.getParent()}/.{target.getName()}.tmp")
        stream = files.create(hidden)
        stream.write(bytearray(text.encode()))
        stream.close()
        if age_s:
            files.setTimes(hidden, int((time.time() - age_s) * 1000), -1)
        files.rename(hidden, target)

    def read(self, name: str) -> str | None:
        """Return the text of a file in the directory; None if there is no such file."""
        path, files = self._at(self.child(name))
        if not files.exists(path):
            return None
        stream = files.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def remove(self) -> None:
        """Delete the directory and all below it."""
        path, files = self._at(self.path)
        files.delete(path, True)

    def _at(self, name: str) -> tuple[Any, Any]:
        """Return the JVM's object of a path, and the object of its file system."""
        jsc = self.spark.sparkContext._jsc
        assert jsc is not None
        path = self._jvm.org.apache.hadoop.fs.Path(name)
        return path, path.getFileSystem(jsc.hadoopConfiguration())

    @property
    def _jvm(self) -> Any:
        return self.spark.sparkContext._jvm


@contextmanager
def work_directory(spark: SparkSession, label: str) -> Iterator[WorkDirectory]:
    """Yield a new directory; it is removed afterwards.

    It is below `spark.sql.streaming.checkpointLocation`, by default below the system's temporary
    directory. With executors on other hosts, this conf must name a place that all hosts see.
    """
    root = spark.conf.get(_CHECKPOINTS, None) or tempfile.gettempdir()
    directory = WorkDirectory(spark, f"{root.rstrip('/')}/nexmark-{label}-{uuid.uuid4().hex}")
    try:
        yield directory
    finally:
        directory.remove()


def stop(spark: SparkSession, running: StreamingQuery) -> None:
    """Stop a query, and wait for its tasks for at most 10 seconds.

    Spark logs nothing meanwhile: it would log stack traces of the interrupted batch. Other queries
    of the application go on.
    """
    context = spark.sparkContext
    logging = context._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    with _ONE_AT_A_TIME:  # the level is the application's
        level = logging.LogManager.getRootLogger().getLevel().toString()
        context.setLogLevel("OFF")
        try:
            running.stop()
            deadline = time.monotonic() + _MAX_STOP_S
            while _has_tasks(context, str(running.runId)) and time.monotonic() < deadline:
                time.sleep(_POLL_S)
        finally:
            context.setLogLevel(level)


def _has_tasks(context: SparkContext, group: str) -> bool:
    """Return whether tasks of the newest jobs of a group are running; a query is a group."""
    tracker = context.statusTracker()
    jobs = map(tracker.getJobInfo, sorted(tracker.getJobIdsForGroup(group))[-_NEWEST_JOBS:])
    stages = (tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds)
    return any(stage.numActiveTasks for stage in stages if stage)

"""Ends a streaming query that still runs, without the stack traces of the batch it interrupts."""

from __future__ import annotations

import time

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

_POLL_S = 0.05
_MAX_STOP_S = 10


def stop(spark: SparkSession, running: StreamingQuery) -> None:
    """Stop the query and wait, at most 10 seconds, until none of its tasks runs."""
    context = spark.sparkContext
    logging = context._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    level = logging.LogManager.getRootLogger().getLevel().toString()
    context.setLogLevel("OFF")
    try:
        running.stop()
        deadline = time.monotonic() + _MAX_STOP_S
        while _running_tasks(spark) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
    finally:
        context.setLogLevel(level)


def _running_tasks(spark: SparkSession) -> int:
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    return sum(executor.numRunningTasks() for executor in tracker.getExecutorInfos())

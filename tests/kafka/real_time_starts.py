"""Run by a test under an engine: starts every query in Real-Time Mode, and tells what came of it.

Reads {"servers": LIST, "source": TOPIC, "sink": TOPIC} from stdin; writes a line of JSON for each
query: its name and the error class of Spark's refusal, "" where it ran.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from nexmark_jobs.paced_query import PacedTopic, rows
from nexmark_jobs.queries import QUERIES, Streams
from nexmark_jobs.session import stop
from nexmark_jobs.sources.kafka_topic import Brokers

RUNS_S, LONGEST_S = 1.0, 60.0
_CLASS = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")


def causes(error: Any) -> str:
    """The last error class in a chain of Java's exceptions."""
    found = []
    while error is not None:
        found += _CLASS.findall(error.toString())
        error = error.getCause()
    return next((x for x in reversed(found) if x != "STREAM_FAILED"), "no error class")


def outcome(spark: SparkSession, name: str, given: dict[str, str]) -> str:
    """The error class with which Spark refuses a query, "" if it runs for some seconds."""
    query = QUERIES[name]
    brokers = Brokers(spark, given["servers"])
    source = PacedTopic(spark, brokers, given["source"])
    frame = query.formulation(spark.version).build(Streams(spark, source))
    writer = rows(frame).writeStream.format("kafka").outputMode("update")
    writer = writer.option("kafka.bootstrap.servers", given["servers"])
    writer = writer.option("topic", given["sink"]).trigger(realTime="5 minutes")
    with tempfile.TemporaryDirectory() as checkpoint:
        try:
            running = writer.start(checkpointLocation=checkpoint)
        except PySparkException as error:
            return str(error.getCondition())
        try:
            until = time.monotonic() + LONGEST_S
            while running.isActive and time.monotonic() < until:
                if spark.sparkContext.statusTracker().getActiveJobsIds():  # it was planned
                    until = min(until, time.monotonic() + RUNS_S)
                time.sleep(0.1)
            failure = running._jsq.exception()
            return causes(failure.get()) if failure.isDefined() else ""
        finally:
            stop(spark, running)


def main() -> None:
    given = json.load(sys.stdin)
    spark = (
        SparkSession.builder.master("local[8]")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    for name in QUERIES:
        print(json.dumps([name, outcome(spark, name, given)]), flush=True)
    spark.stop()


main()

"""Runs one Nexmark query from a Kafka topic to another until a file appears: see --help.

For measurements of latency: events come at a rate of their own, and every output row goes to a
topic whose records carry the time at which the broker appended them. The key of an output record is
the `dateTime` of its row in milliseconds, if the query keeps it; the value is the row as JSON.

Prints `started` when the query runs. Exit codes: 0 it ran until the file was there, 1 it failed,
2 wrong arguments; the reason is one line on stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # spark-submit puts this file's own directory first
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from nexmark_jobs.ending import JobError, UsageError, end, one_line
from nexmark_jobs.generator.generator_options import OneLineParser
from nexmark_jobs.progress import is_batch
from nexmark_jobs.queries import QUERIES, Query, Streams
from nexmark_jobs.sources.event_files import ByKind, entities
from nexmark_jobs.sources.kafka import is_wanted, parsed
from nexmark_jobs.sources.kafka_topic import Brokers
from nexmark_jobs.stopping import stop
from nexmark_jobs.workdir import WorkDirectory, work_directory

TRIGGERS = ("micro-batch", "real-time")
"""Spark's default trigger, and Real-Time Mode (Spark 4.2)."""

_REAL_TIME = "5 minutes"
"""How often Real-Time Mode ends a batch: not while a measurement runs."""
_POLL_S = 0.1


@dataclass(frozen=True)
class PacedTopic(ByKind):
    """The three streams of a topic that is still written to; its events have numbers."""

    spark: SparkSession
    brokers: Brokers
    topic: str

    def _entity(self, name: str) -> DataFrame:
        options = {f"kafka.{key}": value for key, value in self.brokers.options.items()}
        reader = self.spark.readStream.format("kafka").options(**options)
        reader = reader.option("subscribe", self.topic).option("startingOffsets", "earliest")
        wanted = parsed(reader.load()).where(is_wanted(name, numbered=True))
        return entities(wanted, name, numbered=True)


def rows(frame: DataFrame) -> DataFrame:
    """The rows of a query as Kafka's sink takes them."""
    key = F.unix_millis("dateTime") if "dateTime" in frame.columns else F.lit(None)
    return frame.select(
        key.cast("string").alias("key"), F.to_json(F.struct(*frame.columns)).alias("value")
    )


def start(spark: SparkSession, given: argparse.Namespace, work: WorkDirectory) -> Any:
    """Start the query; its checkpoint is in `work`."""
    query: Query = QUERIES[given.query]
    brokers = Brokers(spark, given.bootstrap_servers)
    source = PacedTopic(spark, brokers, given.source)
    frame = query.formulation(spark.version).build(Streams(spark, source))
    options = {f"kafka.{key}": value for key, value in brokers.options.items()}
    writer = rows(frame).writeStream.format("kafka").options(**options)
    # In update mode a row is written as soon as it is known; without state it is append mode.
    writer = writer.option("topic", given.sink).outputMode("update")
    return _triggered(spark, writer, given.trigger).start(
        checkpointLocation=work.child("checkpoint")
    )


def _triggered(spark: SparkSession, writer: DataStreamWriter, trigger: str) -> DataStreamWriter:
    if trigger == "micro-batch":
        return writer
    try:
        return writer.trigger(realTime=_REAL_TIME)  # type: ignore[call-overload,no-any-return]
    except TypeError:
        raise UsageError(
            f"--trigger: Spark {spark.version} has no Real-Time Mode; take micro-batch, or Spark "
            "4.2 or newer"
        ) from None


def follow(running: Any, until: Path) -> None:
    """Wait for the file `until`; JobError if the query ends before."""
    while not until.exists():
        if not running.isActive:
            failure = running._jsq.exception()
            why = one_line(failure.get().getMessage()) if failure.isDefined() else "it ended early"
            raise JobError(f"the query failed: {why}")
        time.sleep(_POLL_S)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The checked arguments.

    Raises:
        UsageError: One is missing or unknown.
    """
    parser = OneLineParser(prog="paced_query.py", description=__doc__, allow_abbrev=False)
    parser.add_argument("--query", required=True, choices=tuple(QUERIES))
    parser.add_argument("--bootstrap-servers", required=True, metavar="LIST")
    parser.add_argument("--source", required=True, metavar="TOPIC")
    parser.add_argument("--sink", required=True, metavar="TOPIC")
    parser.add_argument("--trigger", choices=TRIGGERS, default=TRIGGERS[0])
    parser.add_argument("--until", type=Path, required=True, metavar="FILE", help="stop if it is")
    parser.add_argument("--result", type=Path, required=True, metavar="FILE.json")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run as a command; returns the exit code."""
    spark = None
    try:
        given = parse(arguments)
        spark = SparkSession.builder.appName(f"nexmark {given.query} paced").getOrCreate()
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        with work_directory(spark, given.query) as work:
            running = start(spark, given, work)
            print("started", flush=True)
            try:
                follow(running, given.until)
            finally:
                batches = [json.loads(p.json()) for p in running._jsq.recentProgress()]
                stop(spark, running)
        durations = [p["durationMs"]["triggerExecution"] for p in batches if is_batch(p)]
        told = {"spark_version": spark.version, "batch_ms": durations}
        given.result.write_text(json.dumps(told))
    except JobError as error:
        print(f"paced_query.py: error: {error}", file=sys.stderr)
        return error.exit_code
    except (PySparkException, OSError) as error:
        print(f"paced_query.py: error: {one_line(error)}", file=sys.stderr)
        return 1
    finally:
        if spark is not None:
            spark.stop()
    return 0


if __name__ == "__main__":
    end(main(sys.argv[1:]))

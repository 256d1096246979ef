"""Run one Nexmark query from a Kafka topic to another until a file appears: see --help.

For measurements of latency: events come at a rate of their own, and every output row goes to a
topic whose records carry the time at which the broker appended them. The key of an output record is
the `dateTime` of its row in milliseconds, if the query keeps it; the value is the row as JSON.

When the query runs it writes the file of `--started`. The result file is like the one of
`run_query.py`, without what the query does not know: how many events were sent to it, and when.

Exit codes: 0 it ran until the file was there, 1 it failed, 2 wrong arguments; the reason is one
line on stderr.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # spark-submit puts this file's own directory first
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from nexmark_jobs.bytecode import use_directory

    use_directory()

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nexmark_jobs import result
from nexmark_jobs.errors import JobError, UsageError, one_line
from nexmark_jobs.exit_code import command, exit_with
from nexmark_jobs.generator.generator_options import OneLineParser
from nexmark_jobs.plan_fingerprint import Fingerprint, fingerprint
from nexmark_jobs.progress import batch, is_batch
from nexmark_jobs.queries import QUERIES, Query, Streams
from nexmark_jobs.real_time import EVERY, refusal
from nexmark_jobs.session import WorkDirectory, stop, work_directory
from nexmark_jobs.sources.event_files import entities
from nexmark_jobs.sources.kafka import is_wanted, parsed
from nexmark_jobs.sources.kafka_topic import Brokers

TRIGGERS = ("micro-batch", "real-time")
"""Spark's default trigger, and Real-Time Mode (Spark 4.2)."""

_REAL_TIME = "5 minutes"
"""The length of a batch of Real-Time Mode: longer than a measurement."""
_SHUFFLE, _CORES = "spark.sql.shuffle.partitions", "spark.cores.max"
_POLL_S = 0.1


@dataclass(frozen=True)
class PacedTopic:
    """The three streams of a topic that is still written to; its events have numbers."""

    spark: SparkSession
    brokers: Brokers
    topic: str

    def of_kind(self, kind: str) -> DataFrame:
        """Return the stream of the events of a kind, without a watermark."""
        reader = self.spark.readStream.format("kafka").options(**self.brokers.spark_options)
        reader = reader.option("subscribe", self.topic).option("startingOffsets", "earliest")
        wanted = parsed(reader.load()).where(is_wanted(kind, numbered=True))
        return entities(wanted, kind, numbered=True)


def rows(frame: DataFrame) -> DataFrame:
    """Return the rows of a query as Kafka's sink takes them."""
    key = F.unix_millis("dateTime") if "dateTime" in frame.columns else F.lit(None)
    value = F.to_json(F.struct(*frame.columns)).alias("value")
    return frame.select(key.cast("string").alias("key"), value)


def start(
    spark: SparkSession, given: argparse.Namespace, work: WorkDirectory
) -> tuple[Any, dict[str, Any]]:
    """Start the query, with its checkpoint in `work`; return it and fields of the result file."""
    query: Query = QUERIES[given.query]
    brokers = Brokers(spark, given.bootstrap_servers)
    source = PacedTopic(spark, brokers, given.source)
    formulation = query.formulation(spark.version)
    carried = () if "dateTime" in query.columns or query.key else ("dateTime",)
    frame = formulation.build(Streams(spark, source, carried))
    plan = fingerprint(frame)
    if given.trigger != TRIGGERS[0]:
        check_real_time(spark, query, len(brokers.topic(given.source).ends), plan)
    description = {
        **result.head(spark, query.name, formulation, "update"),
        "conf_profile": given.conf_profile,
        "trigger": given.trigger,
        "plan": asdict(plan),
        "kafka": brokers.versions(),
    }
    writer = rows(frame).writeStream.format("kafka").options(**brokers.spark_options)
    # In update mode a row is written as soon as it is known; without state it is append mode.
    writer = writer.option("topic", given.sink).outputMode("update")
    if given.trigger != TRIGGERS[0]:
        writer = writer.trigger(realTime=_REAL_TIME)  # type: ignore[call-overload]
    elif interval := spark.conf.get(EVERY, None):
        writer = writer.trigger(processingTime=interval)
    return writer.start(checkpointLocation=work.child("checkpoint")), description


def check_real_time(spark: SparkSession, query: Query, partitions: int, plan: Fingerprint) -> None:
    """Raise UsageError if Real-Time Mode cannot run the query, or has too few slots for it.

    In this mode all tasks run at once. If a query keeps no state, Spark reports no error, but never
    reads the partitions whose tasks have no slot.

    Args:
        spark: the session.
        query: the query.
        partitions: number of partitions of the topic.
        plan: the plan of the query.
    """
    refused = refusal(query.name, spark.version)
    if refused is not None:
        error = f" ({refused.error})" if refused.error else ""
        where = f"{query.name} cannot run in Real-Time Mode on Spark {spark.version}"
        raise UsageError(f"--trigger: {where}: {refused.why}{error}; take micro-batch")
    readers = partitions * plan.text.count("StreamingRelation kafka")
    shuffle = int(str(spark.conf.get(_SHUFFLE))) if plan.exchanges else 0
    context = spark.sparkContext
    slots = int(context.getConf().get(_CORES, "0")) or context.defaultParallelism
    if readers + shuffle > slots:
        raise UsageError(
            f"slots: {query.name} needs {readers + shuffle} at once in Real-Time Mode, {readers} "
            f"to read and {shuffle} for its shuffle, and there are {slots}; give more cores, or "
            "fewer partitions"
        )


def finished(running: Any) -> dict[str, Any]:
    """Return the figures of the batches; Real-Time Mode reports none before a batch has ended."""
    progress = [json.loads(each.json()) for each in running._jsq.recentProgress()]
    batches = [batch(each, "data", each["numInputRows"]) for each in progress if is_batch(each)]
    return {
        "batch_ms": [each.duration_ms for each in batches],
        "state": result.state(batches),
        "late_rows": sum(each.late_rows for each in batches),
    }


def follow(running: Any, until: Path) -> None:
    """Wait for the file `until`; raise JobError if the query ends before."""
    while not until.exists():
        if not running.isActive:
            failure = running._jsq.exception()
            why = one_line(failure.get().getMessage()) if failure.isDefined() else "it ended early"
            raise JobError(f"the query failed: {why}")
        time.sleep(_POLL_S)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the checked arguments; UsageError if one is missing or unknown."""
    parser = OneLineParser(prog="paced_query.py", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--query", required=True, type=str.lower, choices=tuple(QUERIES))
    add("--bootstrap-servers", required=True, metavar="LIST")
    add("--source", required=True, metavar="TOPIC")
    add("--sink", required=True, metavar="TOPIC")
    add("--trigger", choices=TRIGGERS, default=TRIGGERS[0])
    add(
        "--until",
        type=Path,
        required=True,
        metavar="FILE",
        help="the query stops once this file exists",
    )
    add(
        "--started",
        type=Path,
        required=True,
        metavar="FILE",
        help="a file that is made when the query runs",
    )
    add("--conf-profile", default="default", metavar="NAME")
    add("--result", type=Path, required=True, metavar="FILE.json")
    return parser.parse_args(arguments)


@command("paced_query.py")
def main(arguments: list[str]) -> None:
    """Run the query of the arguments, and write its result."""
    given = parse(arguments)
    with SparkSession.builder.appName(f"nexmark {given.query} paced").getOrCreate() as spark:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        with work_directory(spark, given.query) as work:
            running, description = start(spark, given, work)
            given.started.touch()
            try:
                follow(running, given.until)
                description |= finished(running)
            finally:
                stop(spark, running)
        result.write(description, given.result)


if __name__ == "__main__":
    exit_with(main(sys.argv[1:]))

"""Run by a test under an engine, all in one application: queries over topics that change meanwhile.

Reads {"runs": [{"arguments": [...], "fault": NAME or null, "topic": NAME}], "servers": LIST,
"lines": [...]} from stdin; writes a line of JSON per run: its result or {"error", "exit_code"}.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from nexmark_jobs.ending import JobError
from nexmark_jobs.options import parse
from nexmark_jobs.run_query import run
from nexmark_jobs.sources.kafka import KafkaFeed

PARTITIONS = 2


class Topics:
    """What somebody else does to a topic while it is read."""

    def __init__(self, servers: str, lines: Sequence[str]) -> None:
        self.settings = {"bootstrap.servers": servers}
        self.admin = AdminClient(self.settings)
        self.lines = lines

    def delete(self, topic: str) -> None:
        for done in self.admin.delete_topics([topic]).values():
            done.result()

    def recreate(self, topic: str) -> None:
        self.delete(topic)
        for done in self.admin.create_topics([NewTopic(topic, PARTITIONS)]).values():
            done.result()
        self.grow(topic)

    def truncate(self, topic: str) -> None:
        last = TopicPartition(topic, 1, len(self.lines) // PARTITIONS - 1)
        for done in self.admin.delete_records([last]).values():
            done.result()

    def grow(self, topic: str) -> None:
        producer = Producer(self.settings)
        for number, line in enumerate(self.lines):
            producer.produce(topic, line, partition=number % PARTITIONS)
        assert producer.flush(30) == 0


def after_a_batch(act: Any) -> None:
    """Let the feed call `act` when it hears of the second batch, and once only."""
    original = KafkaFeed.take

    def take(self: KafkaFeed, progress: Mapping[str, Any]) -> int:
        if progress["batchId"] == 1:
            act()
            KafkaFeed.take = original  # type: ignore[method-assign]
        return original(self, progress)

    KafkaFeed.take = take  # type: ignore[method-assign]


def main() -> None:
    given = json.load(sys.stdin)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")  # short runs
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        # What a consumer has fetched in advance it reads even if it is gone.
        .config("spark.nexmark.kafka.max.poll.records", "50")
        .config("spark.nexmark.kafka.max.partition.fetch.bytes", "20000")
        .config("spark.nexmark.kafka.default.api.timeout.ms", "5000")
        .config("spark.nexmark.kafka.request.timeout.ms", "5000")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    topics = Topics(given["servers"], given["lines"])
    for each in given["runs"]:
        if each["fault"]:
            act, topic = getattr(topics, each["fault"]), each["topic"]
            after_a_batch(lambda act=act, topic=topic: act(topic))
        try:
            line: dict[str, Any] = run(spark, parse(each["arguments"]), quiet=True)
        except JobError as error:
            line = {"error": str(error), "exit_code": error.exit_code}
        print(json.dumps(line), flush=True)
    spark.stop()


main()

"""Run by a test under an engine, all in one application: queries over topics that change meanwhile.

Reads {"runs": [{"arguments": [...], "fault": NAME or null, "topic": NAME}], "servers": LIST,
"lines": [...], "brokers": {NUMBER: PID}, "up": [COMMAND...], "confs": {...}} from stdin; writes a
line of JSON per run: its result or {"error", "exit_code"}.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from threading import Timer
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from nexmark_jobs.errors import JobError
from nexmark_jobs.options import parse
from nexmark_jobs.run_query import run
from nexmark_jobs.sources.kafka import KafkaFeed
from tests.quick_jvm import QUICK_JVM

PARTITIONS = 2
AWAY_S = 5.0


class Topics:
    """What happens to a topic, or to its broker, while it is read."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.settings = {"bootstrap.servers": given["servers"]}
        self.admin = AdminClient(self.settings)
        self.lines: Sequence[str] = given["lines"]
        self.brokers, self.up = given["brokers"], given["up"]

    def leader(self, topic: str) -> int:
        """The process of the broker that leads partition 1."""
        found = self.admin.list_topics(topic).topics[topic]
        return int(self.brokers[str(found.partitions[1].leader)])

    def kill(self, topic: str) -> None:
        """A broker is killed, and started again a few seconds later, while the query goes on."""
        os.kill(self.leader(topic), signal.SIGKILL)
        Timer(AWAY_S, lambda: subprocess.run(self.up, check=True, stdout=sys.stderr)).start()

    def pause(self, topic: str) -> None:
        """A broker answers nobody for some seconds."""
        leader = self.leader(topic)
        os.kill(leader, signal.SIGSTOP)
        Timer(AWAY_S, lambda: os.kill(leader, signal.SIGCONT)).start()

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
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", QUICK_JVM)
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        # What a consumer has fetched in advance it reads even if it is gone.
        .config("spark.nexmark.kafka.max.poll.records", "50")
        .config("spark.nexmark.kafka.max.partition.fetch.bytes", "20000")
    )
    for name, value in given["confs"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    topics = Topics(given)
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

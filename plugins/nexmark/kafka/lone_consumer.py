"""The rate at which a lone consumer reads a topic: the most that the broker gives to one.

By librdkafka, with the fetch settings that queries have, and assigned to the partitions instead of
joined to a group. Kafka's own ConsumerPerformance joins one, and on a short topic it would mostly
measure the start of its JVM.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from nexmark.kafka.kafka_error import KafkaError
from nexmark.kafka.topics import KafkaCluster
from nexmark_jobs.sources import CONSUMER

_FETCH = ("fetch.min.bytes", "fetch.max.bytes", "max.partition.fetch.bytes", "check.crcs")
"""Settings that librdkafka has under the JVM's names."""
_CRCS = {"check.crcs": "true"}  # the default of the JVM's client
_MOST = 2_000_000
_LEAST_S, _PATIENCE_S = 2.0, 15.0
_CHUNK = 10_000


def read_alone(kafka: KafkaCluster, topic: str, partitions: int, given: Mapping[str, str]) -> float:
    """Read `topic` again and again for two seconds; returns records per second of the fastest pass.

    The fastest, because other load makes a pass slower and nothing makes it faster. A pass ends
    after two million records.

    Args:
        kafka: the cluster.
        topic: a topic that is filled.
        partitions: of the topic.
        given: settings of the queries' consumers that are not the usual ones.

    Raises:
        KafkaError: The broker refuses, or does not send all that it has.
    """
    wanted = {**_CRCS, **CONSUMER, **given}
    fetch = {name: wanted[name] for name in _FETCH if name in wanted}
    end = sum(last - first for first, last in kafka.offsets(topic, partitions))
    count = min(end, _MOST)
    until, best = time.monotonic() + _LEAST_S, 0.0
    while best == 0.0 or time.monotonic() < until:
        consumer = Consumer({**kafka.client(), **fetch, "group.id": "nexmark"})
        try:
            best = max(best, _pass(consumer, topic, partitions, count))
        except KafkaException as error:
            raise KafkaError(f"kafka: topic {topic}: {error.args[0].str()}") from None
        finally:
            consumer.close()
    return best


def _pass(consumer: Consumer, topic: str, partitions: int, count: int) -> float:
    """Read `count` records; the time runs from the first of them."""
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)])
    first = consumer.consume(1, timeout=_PATIENCE_S)
    began, read = time.monotonic(), len(first)
    while read < count:
        found = consumer.consume(min(_CHUNK, count - read), timeout=_PATIENCE_S)
        if not found:
            raise KafkaError(
                f"kafka: topic {topic} sent {read:,} of {count:,} records within "
                f"{_PATIENCE_S:.0f} s; see: nexmark kafka status"
            )
        read += len(found)
    return read / max(time.monotonic() - began, 1e-3)

"""The topics of a Kafka cluster: made, described, removed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._metadata import TopicMetadata
from confluent_kafka.cimpl import NewTopic

from nexmark.kafka.kafka_error import KafkaError, TopicExistsError

_POLL_S = 0.1


@dataclass(frozen=True)
class TopicStatus:
    """A topic: its partitions, the copies of each, and its records (end less begin offsets)."""

    name: str
    partitions: int
    replicas: int
    records: int


@dataclass(frozen=True)
class KafkaCluster:
    """A Kafka cluster as a client sees it.

    Attributes:
        servers: the bootstrap servers, `HOST:PORT,HOST:PORT`.
        settings: the client's other settings (librdkafka's names), secrets among them.
        time_out_s: how long a request may take.
    """

    servers: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    time_out_s: float = 15

    def brokers(self) -> set[int]:
        """The numbers of the brokers that are there; none if no one answers."""
        try:
            return set(self._admin().list_topics(timeout=self.time_out_s).brokers)
        except KafkaException:
            return set()

    def topics(self) -> list[TopicStatus]:
        """The topics that users made, by name.

        Raises:
            KafkaError: No broker answers.
        """
        try:
            found = self._admin().list_topics(timeout=self.time_out_s).topics
        except KafkaException as error:
            raise self._refused("no answer", error) from None
        return [self._topic(name, found[name]) for name in sorted(found) if name[:2] != "__"]

    def create(
        self,
        name: str,
        partitions: int,
        config: Mapping[str, str] | None = None,
        replicas: int = -1,
    ) -> None:
        """Make a topic with `replicas` copies of each partition; -1 is the default of the brokers.

        Raises:
            TopicExistsError: There is one of this name already.
            KafkaError: The brokers refuse.
        """
        admin = self._admin()  # a client that is gone cannot answer
        new = NewTopic(name, partitions, replicas, config=dict(config or {}))
        try:
            self._wait(admin.create_topics([new], operation_timeout=self.time_out_s), name)
        except KafkaError:
            if any(each.name == name for each in self.topics()):
                raise TopicExistsError(f"kafka: there is a topic {name} already") from None
            raise

    def delete(self, name: str) -> None:
        """Remove a topic.

        Raises:
            KafkaError: There is none of this name, or the brokers refuse.
        """
        admin = self._admin()
        self._wait(admin.delete_topics([name], operation_timeout=self.time_out_s), name)

    def offsets(self, name: str, partitions: int) -> list[tuple[int, int]]:
        """The begin and end offsets of each partition.

        Raises:
            KafkaError: No broker answers.
        """
        consumer = Consumer({**self.client(), "group.id": "nexmark"})
        try:
            return [self._range(consumer, TopicPartition(name, each)) for each in range(partitions)]
        finally:
            consumer.close()

    def _range(self, consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
        """Begin and end; asked again while the partition, new or moved, has no leader yet."""
        deadline = time.monotonic() + self.time_out_s
        while True:
            try:
                return consumer.get_watermark_offsets(partition, timeout=self.time_out_s)
            except KafkaException as error:
                if time.monotonic() > deadline:
                    raise self._refused(f"topic {partition.topic}", error) from None
                time.sleep(_POLL_S)

    def client(self) -> dict[str, str | int | float | bool]:
        """The settings of any client of this cluster."""
        return {
            **self.settings,
            "bootstrap.servers": self.servers,
            "log_level": 0,  # the exceptions have the failures
            "socket.timeout.ms": int(self.time_out_s * 1000),
        }

    def _admin(self) -> AdminClient:
        return AdminClient(self.client())

    def _topic(self, name: str, found: TopicMetadata) -> TopicStatus:
        partitions = found.partitions
        replicas = max((len(each.replicas) for each in partitions.values()), default=0)
        ranges = self.offsets(name, len(partitions))
        return TopicStatus(
            name, len(partitions), replicas, sum(end - begin for begin, end in ranges)
        )

    def _wait(self, futures: Mapping[str, Future[None]], name: str) -> None:
        try:
            futures[name].result()
        except KafkaException as error:
            raise self._refused(f"topic {name}", error) from None

    def _refused(self, what: str, error: KafkaException) -> KafkaError:
        reason = error.args[0].str()
        return KafkaError(f"kafka {self.servers}: {what}: {reason}; see: nexmark kafka status")


#: Settings that the JVM's client has under the same name as librdkafka.
_COMMON = ("security.protocol", "sasl.mechanism", "ssl.endpoint.identification.algorithm")
_LOGIN = "org.apache.kafka.common.security.{module} required username={name} password={word};"


def spark_confs(settings: Mapping[str, str]) -> dict[str, str]:
    """The confs with which `run_query.py` connects as a client with these settings does."""
    confs = {name: settings[name] for name in _COMMON if name in settings}
    if "sasl.mechanisms" in settings:
        confs["sasl.mechanism"] = settings["sasl.mechanisms"]
    if "ssl.ca.location" in settings:
        confs |= {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": settings["ssl.ca.location"],
        }
    if "sasl.username" in settings:
        plain = confs.get("sasl.mechanism", "PLAIN") == "PLAIN"
        confs["sasl.jaas.config"] = _LOGIN.format(
            module="plain.PlainLoginModule" if plain else "scram.ScramLoginModule",
            name=json.dumps(settings["sasl.username"]),
            word=json.dumps(settings.get("sasl.password", "")),
        )
    return {f"spark.nexmark.kafka.{name}": value for name, value in confs.items()}

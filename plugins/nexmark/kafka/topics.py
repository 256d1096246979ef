"""Create, describe and remove topics of a Kafka cluster."""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from types import MappingProxyType

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._metadata import TopicMetadata
from confluent_kafka.cimpl import NewTopic

from nexmark.kafka import KafkaError
from nexmark_jobs.sources import CONSUMER

_POLL_S = 0.1
_NONE: Mapping[str, str] = MappingProxyType({})
#: Settings of every topic of ours, so that no record is removed before the topic is.
_KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


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
        servers: Its bootstrap servers.
        settings: The client's other settings, by librdkafka's names; some are secrets.
        time_out_s: How long a request may take.
    """

    servers: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    time_out_s: float = 15

    def brokers(self) -> set[int]:
        """Return the numbers of the brokers that are up; none if no broker answers."""
        try:
            return set(self._admin().list_topics(timeout=self.time_out_s).brokers)
        except KafkaException:
            return set()

    def topics(self) -> list[TopicStatus]:
        """Return the topics that users made, by name; KafkaError if no broker answers."""
        topics = []
        for name, topic in sorted(self._listed().items()):
            partitions = topic.partitions
            try:
                ranges = self.offsets(name, len(partitions))
            except KafkaError:
                if name in self.names():
                    raise
                continue  # it was removed meanwhile
            replicas = max((len(each.replicas) for each in partitions.values()), default=0)
            records = sum(end - begin for begin, end in ranges)
            topics.append(TopicStatus(name, len(partitions), replicas, records))
        return topics

    def names(self) -> set[str]:
        """Return the names of the topics that users made; KafkaError if no broker answers."""
        return set(self._listed())

    def partitions(self) -> dict[str, int]:
        """Return the partitions of each topic that users made; KafkaError if no broker answers."""
        return {name: len(topic.partitions) for name, topic in self._listed().items()}

    def problem(self) -> str:
        """Return why this client cannot create topics, or ''; no topic is created."""
        probe = NewTopic("nexmark-preflight", 1, -1, config=_KEPT)
        admin = self._admin()  # kept in a variable: a client that Python has freed cannot answer
        try:
            admin.create_topics([probe], validate_only=True)[probe.topic].result()
        except KafkaException as error:
            needs = "answer this machine, and to let the user of the connection make topics"
            problem = f"no topic can be made: {error.args[0].str()}"
            return f"kafka {self.servers}: {problem}; it has to {needs}"
        return ""

    def create(
        self, name: str, partitions: int, config: Mapping[str, str] = _NONE, replicas: int = -1
    ) -> None:
        """Create a topic that keeps its records.

        Args:
            name: The name of the topic.
            partitions: Its number of partitions.
            config: Kafka's settings of the topic, beside ours.
            replicas: The copies of each partition; -1 leaves it to the brokers.

        Raises:
            KafkaError: The topic exists already, or the brokers refuse.
        """
        admin = self._admin()  # kept in a variable: a client that Python has freed cannot answer
        new = NewTopic(name, partitions, replicas, config={**_KEPT, **config})
        self._wait(admin.create_topics([new], operation_timeout=self.time_out_s), name)

    def delete(self, name: str) -> None:
        """Remove a topic; KafkaError if there is none of this name, or the brokers refuse."""
        admin = self._admin()
        self._wait(admin.delete_topics([name], operation_timeout=self.time_out_s), name)
        deadline = time.monotonic() + self.time_out_s
        while name in self.names() and time.monotonic() < deadline:
            time.sleep(_POLL_S)  # the controller has removed it, a broker learns that later

    def offsets(self, name: str, partitions: int) -> list[tuple[int, int]]:
        """Return the begin and end offset of each partition; KafkaError if no broker answers."""
        with self.consumer() as consumer:
            return [self._range(consumer, TopicPartition(name, each)) for each in range(partitions)]

    def records(self, name: str) -> Iterator[Message]:
        """Yield the records of the first partition, in order; KafkaError if some do not come."""
        ((begin, end),) = self.offsets(name, 1)
        read = 0
        with self.consumer() as consumer:
            consumer.assign([TopicPartition(name, 0, begin)])
            while read < end - begin:
                records = consumer.consume(5_000, timeout=10)
                if not records:
                    raise KafkaError(f"kafka: {name} has {end - begin} records, got {read}")
                read += len(records)
                yield from records

    def consumer(self, fetch: Mapping[str, str] = _NONE) -> closing[Consumer]:
        """Return a context with a consumer; `fetch` has more settings for the consumer.

        The consumer commits no offsets: another program's group may have the same name.
        """
        group = {"group.id": "nexmark", "enable.auto.commit": False}
        return closing(Consumer({**self.client(), **fetch, **group}))

    def _range(self, consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
        """Return the begin and end offset of a partition.

        A partition that is new or was moved may have no leader yet, so it is asked again.
        """
        deadline = time.monotonic() + self.time_out_s
        while True:
            try:
                return consumer.get_watermark_offsets(partition, timeout=self.time_out_s)
            except KafkaException as error:
                if time.monotonic() > deadline:
                    raise self._refused(f"topic {partition.topic}", error) from None
                time.sleep(_POLL_S)

    def client(self) -> dict[str, str | int | float | bool]:
        """Return the settings of any client of this cluster."""
        return {
            **self.settings,
            "bootstrap.servers": self.servers,
            "log_level": 0,  # the exceptions have the failures
            "socket.timeout.ms": int(self.time_out_s * 1000),
        }

    def _admin(self) -> AdminClient:
        try:
            return AdminClient(self.client())
        except KafkaException as error:  # a setting that librdkafka does not have, or a bad value
            raise KafkaError(f"kafka {self.servers}: {error.args[0].str()}; correct it") from None

    def _listed(self) -> dict[str, TopicMetadata]:
        try:
            topics = self._admin().list_topics(timeout=self.time_out_s).topics
        except KafkaException as error:
            raise self._refused("no answer", error) from None
        return {name: topic for name, topic in topics.items() if not name.startswith("__")}

    def _wait(self, futures: Mapping[str, Future[None]], name: str) -> None:
        try:
            futures[name].result()
        except KafkaException as error:
            raise self._refused(f"topic {name}", error) from None

    def _refused(self, what: str, error: KafkaException) -> KafkaError:
        reason = error.args[0].str()
        return KafkaError(f"kafka {self.servers}: {what}: {reason}; see: nexmark kafka status")


_FETCH = ("fetch.min.bytes", "fetch.max.bytes", "max.partition.fetch.bytes", "check.crcs")
"""Settings that librdkafka has under the JVM's names."""
_CRCS = {"check.crcs": "true"}  # the default of the JVM's client
_MOST = 2_000_000
_LEAST_S, _PATIENCE_S = 2.0, 15.0
_CHUNK = 10_000


def read_alone(kafka: KafkaCluster, topic: str, partitions: int, given: Mapping[str, str]) -> float:
    """Read a topic again and again for two seconds; return records per second of the fastest pass.

    The fastest pass counts, because other load makes a pass slower and nothing makes it faster. A
    pass ends after two million records.

    Args:
        kafka: The brokers.
        topic: The topic.
        partitions: Its number of partitions.
        given: Settings in which the consumers of queries differ from the usual ones.

    Raises:
        KafkaError: The broker refuses, or does not send all records.
    """
    wanted = {**_CRCS, **CONSUMER, **given}
    fetch = {name: wanted[name] for name in _FETCH if name in wanted}
    end = sum(last - first for first, last in kafka.offsets(topic, partitions))
    count = min(end, _MOST)
    until, best = time.monotonic() + _LEAST_S, 0.0
    while best == 0.0 or time.monotonic() < until:
        try:
            with kafka.consumer(fetch) as consumer:
                best = max(best, _pass(consumer, topic, partitions, count))
        except KafkaException as error:
            raise KafkaError(f"kafka: topic {topic}: {error.args[0].str()}") from None
    return best


def _pass(consumer: Consumer, topic: str, partitions: int, count: int) -> float:
    """Read records once, and return how many came per second, from the first one on.

    Args:
        consumer: The client.
        topic: The topic.
        partitions: Its number of partitions.
        count: How many records are read.
    """
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)])
    first = consumer.consume(1, timeout=_PATIENCE_S)
    began, read = time.monotonic(), len(first)
    while read < count:
        records = consumer.consume(min(_CHUNK, count - read), timeout=_PATIENCE_S)
        if not records:
            late = f"sent {read:,} of {count:,} records within {_PATIENCE_S:.0f} s"
            raise KafkaError(f"kafka: topic {topic} {late}; see: nexmark kafka status")
        read += len(records)
    return read / max(time.monotonic() - began, 1e-3)

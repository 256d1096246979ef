"""Ask Kafka's brokers about a topic, by the Java clients that come with Spark's connector."""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from nexmark_jobs.errors import UsageError, one_line
from nexmark_jobs.given_confs import KAFKA_CONFS
from nexmark_jobs.redaction import HIDDEN, without_secrets

_JARS = 'start it with spark-submit --jars "$(nexmark kafka jars --engine NAME)"'
_CLASSES = {
    "spark-sql-kafka-0-10": "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "spark-token-provider-kafka-0-10": "org.apache.spark.kafka010.KafkaConfigUpdater",
    "kafka-clients": "org.apache.kafka.clients.consumer.KafkaConsumer",
    "commons-pool2": "org.apache.commons.pool2.PooledObjectFactory",
}
_TEXT = "org.apache.kafka.common.serialization.StringDeserializer"
_ONE_RECORD = {
    "key.deserializer": _TEXT,
    "value.deserializer": _TEXT,
    "max.poll.records": "1",
    "max.partition.fetch.bytes": "65536",
}
_TIMEOUT_S = 10
_UNKNOWN = ("UnknownTopicOrPartitionException", "UnknownTopicIdException")
_MIN_HIDDEN = 3


@dataclass(frozen=True)
class Topic:
    """The content of a topic at one moment."""

    name: str
    id: str  # a later topic of the same name has another id
    begins: tuple[int, ...]  # for each partition the first offset
    ends: tuple[int, ...]  # for each partition the offset after the last
    cleanup: str = ""  # its cleanup.policy, if the user may read it

    @property
    def records(self) -> int:
        """Return the number of offsets in all partitions."""
        return sum(self.ends) - sum(self.begins)


class UnknownTopicError(UsageError):
    """The brokers have no such topic."""


class Brokers:
    """The Kafka brokers at a list of addresses. Every call ends within about ten seconds."""

    def __init__(self, spark: SparkSession, servers: str) -> None:
        """Find the Kafka classes, without connecting; UsageError for a missing or a wrong jar."""
        self._jvm: Any = spark.sparkContext._jvm
        self.servers = servers
        confs = spark.sparkContext.getConf().getAll()
        given = {
            name[len(KAFKA_CONFS) :]: value for name, value in confs if name.startswith(KAFKA_CONFS)
        }
        self.options: Mapping[str, str] = given | {"bootstrap.servers": servers}
        self._hidden = sorted(given.values(), key=len, reverse=True)
        missing = [jar for jar, name in _CLASSES.items() if self._class(name) is None]
        if missing:
            problem = f"Spark {spark.version} cannot load the jar {missing[0]}"
            raise UsageError(f"--source: {problem}; {_JARS}")

    @property
    def spark_options(self) -> dict[str, str]:
        """Return the options in the form that Spark's source and sink take."""
        return {f"kafka.{name}": value for name, value in self.options.items()}

    def versions(self) -> dict[str, str]:
        """Return the loaded versions of Spark's connector and of Kafka's clients."""
        connector = self._class(_CLASSES["spark-sql-kafka-0-10"])
        package = connector._java_lang_class.getPackage()  # type: ignore[union-attr]
        clients = self._jvm.org.apache.kafka.common.utils.AppInfoParser.getVersion()
        return {"connector": package.getImplementationVersion(), "clients": clients}

    def topic(self, name: str) -> Topic:
        """Return the topic as it is now; UsageError if it does not exist or no broker answers."""
        with self._errors(name), contextlib.ExitStack() as stack:
            admin = self._jvm.org.apache.kafka.clients.admin.AdminClient.create(self._settings())
            stack.callback(admin.close, self._seconds(0))
            described = admin.describeTopics([name]).allTopicNames().get().get(name)
            partitions = self._partitions(name, described.partitions().size())
            spec = self._jvm.org.apache.kafka.clients.admin.OffsetSpec
            asked = (dict.fromkeys(partitions, each) for each in (spec.earliest(), spec.latest()))
            answers = [admin.listOffsets(each).all().get() for each in asked]
            begins, ends = (
                tuple(answer.get(partition).offset() for partition in partitions)
                for answer in answers
            )
            cleanup = self._cleanup(admin, name)
            return Topic(name, described.topicId().toString(), begins, ends, cleanup)

    def _cleanup(self, admin: Any, name: str) -> str:
        config = self._jvm.org.apache.kafka.common.config.ConfigResource
        topic = config(config.Type.TOPIC, name)
        try:
            settings = admin.describeConfigs([topic]).all().get().get(topic)
        except Py4JJavaError:  # who may read a topic need not be allowed to read its settings
            return ""
        return str(settings.get("cleanup.policy").value())

    def first_numbers(self, topic: Topic) -> tuple[Any, ...]:
        """Return for each partition the event number of its first record; None without one."""
        with self._errors(topic.name), contextlib.ExitStack() as stack:
            settings = self._settings() | _ONE_RECORD
            consumer = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
            stack.callback(consumer.close, self._seconds(0))
            places = self._partitions(topic.name, len(topic.ends))
            parts = zip(places, topic.begins, topic.ends, strict=True)
            return tuple(_number(self._first(consumer, *part)) for part in parts)

    def without_options(self, text: str) -> str:
        """Return a text with `***` for the values of the options, which may be secrets."""
        for value in self._hidden:
            if len(value) >= _MIN_HIDDEN:
                text = text.replace(value, HIDDEN)
        return without_secrets(text)

    def _first(self, consumer: Any, place: Any, begin: int, end: int) -> str | None:
        """Return the first record of a partition; None if none comes in time.

        Args:
            consumer: The client of the JVM.
            place: The partition.
            begin: The offset of its first record.
            end: The offset after its last record.
        """
        consumer.assign([place])
        consumer.seek(place, begin)
        deadline = time.monotonic() + _TIMEOUT_S
        while consumer.position(place) < end and time.monotonic() < deadline:
            for record in consumer.poll(self._seconds(1)).records(place):
                value: str | None = record.value()
                return value
        return None

    def _settings(self) -> dict[str, str]:
        """Return the options, with time-outs for every call."""
        limits = ("default.api.timeout.ms", "request.timeout.ms")
        return {**dict.fromkeys(limits, str(_TIMEOUT_S * 1000)), **self.options}

    def _seconds(self, seconds: int) -> Any:
        return self._jvm.java.time.Duration.ofSeconds(seconds)

    def _partitions(self, name: str, partitions: int) -> list[Any]:
        make = self._jvm.org.apache.kafka.common.TopicPartition
        return [make(name, partition) for partition in range(partitions)]

    def _class(self, name: str) -> JavaClass | None:
        member: Any = self._jvm
        try:
            for part in name.split("."):
                member = getattr(member, part)
        except Py4JError:  # the class is there, but built for another Scala
            return None
        return member if isinstance(member, JavaClass) else None

    @contextlib.contextmanager
    def _errors(self, topic: str) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as error:
            raise self._reason(topic, error.java_exception) from None

    def _reason(self, topic: str, error: Any) -> UsageError:
        while (cause := error.getCause()) is not None:
            error = cause
        name = error.getClass().getSimpleName()
        if name in _UNKNOWN:
            problem = f"the brokers have no topic '{topic}'"
            return UnknownTopicError(f"--source: {problem}; `nexmark kafka fill` makes one")
        if name in ("TimeoutException", "DisconnectException"):
            return UsageError(
                f"--bootstrap-servers: no broker answers at {self.servers} within {_TIMEOUT_S} s; "
                "start one (nexmark kafka up), correct the addresses, or set the security options"
            )
        why = self.without_options(one_line(error.getMessage() or name))
        if "bootstrap.servers" in why:
            return UsageError(f"--bootstrap-servers: {self.servers}: {why}")
        return UsageError(f"--source: kafka:{topic} cannot be read: {name}: {why}")


def _number(text: str | None) -> Any:
    try:
        event = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    return event.get("n") if isinstance(event, dict) else None

"""The Kafka that a night reads, if its kind reads any."""

from typing import TYPE_CHECKING

from nexmark.cluster.kafka_connection import kafka_at, kafka_confs
from nexmark.errors import NexmarkError
from nexmark.night.kinds import kind_of
from nexmark.night.kinds.kafka import NightKafka
from nexmark.night.night_plan import Night

if TYPE_CHECKING:
    from nexmark.kafka.topics import KafkaCluster


def connected_kafka(night: Night) -> "KafkaCluster | None":
    """Return the Kafka of the cluster's connection; None where the night reads no such Kafka."""
    connection = kind_of(night.workload).kafka_connection(night)
    return None if connection is None else kafka_at(connection)


def kafka_to_read(night: Night) -> "KafkaCluster":
    """Return the Kafka that the night reads: its own, or the one of the cluster's connection."""
    from nexmark.kafka.topics import KafkaCluster

    return connected_kafka(night) or KafkaCluster(NightKafka.read(night).servers)


def kafka_problem(night: Night) -> str:
    """Return why the night cannot have its topics in the Kafka of its connection; '' if it can."""
    try:
        kafka_confs(kind_of(night.workload).kafka_connection(night))
        kafka = connected_kafka(night)
        return "" if kafka is None else kafka.problem()
    except NexmarkError as error:
        return str(error)

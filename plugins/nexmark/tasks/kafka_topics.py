"""The topics of a night that reads Kafka: filled before its queries, removed after them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexmark.errors import NexmarkError
from nexmark.night import kafka_input
from nexmark.night.night_progress import say
from nexmark.night.plan import Deployments, Night
from nexmark.tasks import failing

if TYPE_CHECKING:
    from nexmark.kafka.topics import KafkaCluster


def fill_topics(night: Night, deployments: Deployments) -> None:
    """Write the events to the topics; on the embedded cluster, start a broker first."""
    if night.workload.source == "kafka":
        kafka_input.fill_topics(night, deployments, _kafka_of(night), say)


def remove_topics(night: Night) -> None:
    """Remove the topics of the night from a Kafka that it did not start."""
    if (kafka := _kafka_of(night)) is not None:
        kafka_input.remove_topics(night, kafka)
        say("the topics of this night are removed")


@contextlib.contextmanager
def events_beside(night: Night, submission: Mapping[str, Any]) -> Iterator[None]:
    """Send events to an application that the context runs, if it is a paced repetition."""
    if "paced" not in submission:
        yield
        return
    from nexmark.kafka.topics import KafkaCluster
    from nexmark.night.paced_night import sent_to

    kafka = _kafka_of(night) or KafkaCluster(kafka_input.NightKafka.read(night).servers)
    place = Path(submission["directories"][0])
    with failing(NexmarkError), sent_to(night, kafka, submission["paced"], place):
        yield


def kafka_confs(connection: str | None) -> dict[str, str]:
    """The Spark confs with which a query connects to the Kafka of an Airflow connection."""
    if connection is None:
        return {}
    from nexmark.kafka.topics import spark_confs

    return spark_confs(_settings(connection))


def _kafka_of(night: Night) -> KafkaCluster | None:
    """The Kafka of the cluster's connection; None on the embedded cluster."""
    connection = kafka_input.connection_of(night)
    if connection is None:
        return None
    from nexmark.kafka.topics import KafkaCluster

    settings = _settings(connection)
    servers = settings.pop("bootstrap.servers", "")
    if not servers:
        raise NexmarkError(
            f"connection {connection}: no bootstrap.servers in its extra; add HOST:PORT,..."
        )
    return KafkaCluster(servers, settings)


def _settings(connection: str) -> dict[str, str]:
    """The extra of a connection of Airflow's Kafka provider: librdkafka's settings."""
    from airflow.sdk.bases.hook import BaseHook

    extra = BaseHook.get_connection(connection).extra_dejson
    return {str(name): str(value) for name, value in extra.items()}

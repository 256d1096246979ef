"""The Kafka of an Airflow connection, whose extra has the settings of librdkafka."""

from typing import TYPE_CHECKING

from nexmark.kafka import KafkaError

if TYPE_CHECKING:
    from nexmark.kafka.topics import KafkaCluster


def kafka_at(connection: str) -> "KafkaCluster":
    """Return the Kafka of a connection; KafkaError for one that is missing or has no servers."""
    from nexmark.kafka.topics import KafkaCluster

    settings = _settings(connection)
    servers = settings.pop("bootstrap.servers", "")
    if not servers:
        problem = "no bootstrap.servers in its extra; add HOST:PORT,..."
        raise KafkaError(f"connection {connection}: {problem}")
    return KafkaCluster(servers, settings)


def kafka_confs(connection: str | None) -> dict[str, str]:
    """Return the Spark confs with which a query connects to the Kafka of a connection.

    No connection needs no confs. KafkaError for a connection that is missing, or has a setting
    that Spark's client does not have.
    """
    if connection is None:
        return {}
    from nexmark.kafka.jvm_settings import spark_confs

    settings = _settings(connection)
    try:
        return spark_confs(settings)
    except KafkaError as error:
        raise KafkaError(f"connection {connection}: {error}") from None


def _settings(connection: str) -> dict[str, str]:
    """Return the extra of a connection of Airflow's Kafka provider."""
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        extra = BaseHook.get_connection(connection).extra_dejson
    except AirflowNotFoundException:
        problem = "there is none; create it, with bootstrap.servers in its extra"
        raise KafkaError(f"connection {connection}: {problem}") from None
    return {str(name): str(value) for name, value in extra.items()}

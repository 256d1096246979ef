"""Kafka beside a cluster: a broker of our own, its jars, topics and their filling."""

from nexmark.errors import NexmarkError


class KafkaError(NexmarkError):
    """A problem with Kafka, its jars or a topic, and the remedy, in one line."""

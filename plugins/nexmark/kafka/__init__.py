"""Kafka for a night: its brokers, their jars, and topics that are filled with events."""

from nexmark.errors import NexmarkError


class KafkaError(NexmarkError):
    """A problem with Kafka, its jars or a topic, and the remedy, in one line."""

"""Count the records that did not reach their topic, and say why and what to do about it."""

from dataclasses import dataclass

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import Message

from nexmark.kafka import KafkaError

ONLY_FAILURES = {"delivery.report.only.error": True}
"""The setting of a producer whose reports `Undelivered` counts."""

_REMEDIES = {
    ClientError.TOPIC_AUTHORIZATION_FAILED: "let the user of the connection write to topics",
    ClientError.CLUSTER_AUTHORIZATION_FAILED: "let the user of the connection write to topics",
    ClientError.MSG_SIZE_TOO_LARGE: "raise message.max.bytes of the brokers",
    ClientError.NOT_ENOUGH_REPLICAS: "start the other brokers, or lower their min.insync.replicas",
    ClientError.INVALID_RECORD: "look at cleanup.policy and the schemas that the topic asks for",
}
_USUAL = "look at the brokers (nexmark kafka status)"


@dataclass
class Undelivered:
    """The records that a producer could not deliver; the producer calls it with each report."""

    records: int = 0
    first: str = ""

    def __call__(self, error: ClientError | None, message: Message) -> None:
        """Note a report."""
        if error is None:
            return
        self.records += 1
        if not self.first:
            place = f"topic {message.topic()}, partition {message.partition()}"
            remedy = _REMEDIES.get(error.code(), _USUAL)
            self.first = f"{place}: {error.str()} ({error.name()}); {remedy}"

    def check(self) -> None:
        """Raise KafkaError if a record was not delivered."""
        if self.records:
            raise KafkaError(f"kafka: {self.records:,} events were not taken, first {self.first}")

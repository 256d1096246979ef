"""Fill a topic with recorded events: event n goes to partition n mod P, in order.

Spark takes the same number of records from every partition. So a query that reads R events per
batch, R a multiple of P, reads the same batches as from the generator.
"""

import gzip
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException, Producer

from nexmark.kafka import KafkaError
from nexmark.kafka.topics import KafkaCluster
from nexmark.kafka.undelivered import ONLY_FAILURES, Undelivered

PARTITIONS = 8
SayNumber = Callable[[int], None]

_SUFFIXES = (".json", ".jsonl", ".ndjson")
_EVERY_S = 1.0
_PATIENCE_S = 120
_CHUNK = 16_000

_PRODUCER = {
    "acks": "all",
    "enable.idempotence": True,  # each event once and in order, also where a broker is restarted
    "linger.ms": 20,
    "batch.size": 262_144,
    "queue.buffering.max.kbytes": 131_072,
}


@dataclass(frozen=True)
class Filled:
    """The records that were written, and their cost to this process."""

    topic: str
    partitions: int
    events: int
    wall_s: float
    cpu_s: float

    def __str__(self) -> str:
        """Return one line for a person."""
        rate = self.events / self.cpu_s if self.cpu_s else 0.0
        filled = f"{self.topic}: {self.events:,} events in {self.partitions} partitions"
        return f"{filled}, {self.wall_s:.1f} s; {rate:,.0f} events per CPU-second of this client"


def fill(
    kafka: KafkaCluster,
    events: Path,
    topic: str,
    partitions: int = PARTITIONS,
    *,
    limit: int | None = None,
    replace: bool = False,
    say: SayNumber = lambda written: None,
) -> Filled:
    """Write events to a new topic; if not all reach it, remove the topic again.

    Args:
        kafka: The brokers.
        events: A file of JSON lines, gzip or not, or a directory of such files.
        topic: The name of the topic.
        partitions: Its number of partitions.
        limit: How many events are written; None writes all.
        replace: Whether a topic of this name is removed first.
        say: Called about once a second with the number of events so far.

    Raises:
        KafkaError: The events cannot be read, the topic exists already, or not every event has
            reached it.
    """
    files = event_files(events)
    if topic in kafka.names():
        if not replace:
            remedy = "take another name, or --replace it"
            raise KafkaError(f"kafka: there is a topic {topic} already; {remedy}")
        kafka.delete(topic)
    kafka.create(topic, partitions)
    try:
        wall, cpu = time.monotonic(), time.process_time()
        lines = islice(_lines(files), limit)
        sent = _produce(kafka, lines, topic, partitions, say)
        took = time.monotonic() - wall, time.process_time() - cpu
        written = sum(end - begin for begin, end in kafka.offsets(topic, partitions))
        if written != sent:
            remedy = "look at the broker (nexmark kafka status) and fill it again"
            raise KafkaError(f"kafka: topic {topic} has {written:,} of {sent:,} events; {remedy}")
        if not sent:
            raise KafkaError(f"kafka fill: {events} holds no events; record some first")
    except BaseException:
        kafka.delete(topic)
        raise
    return Filled(topic, partitions, sent, *took)


def event_files(events: Path) -> list[Path]:
    """Return the files of recorded events at a path, by name; KafkaError if there are none."""
    if not events.exists():
        raise KafkaError(f"kafka fill: {events}: there is no such file or directory")
    if events.is_file():
        return [events]
    files = sorted(f for f in events.iterdir() if f.is_file() and f.name[0] not in "._")
    strange = [f for f in files if not f.name.removesuffix(".gz").endswith(_SUFFIXES)]
    if strange or not files:
        problem = f"{strange[0].name} is not a file of JSON lines" if strange else "holds no files"
        remedy = "give a directory that dump_events.py has written with --format json"
        raise KafkaError(f"kafka fill: {events}: {problem}; {remedy}")
    return files


def _produce(
    kafka: KafkaCluster, lines: Iterator[bytes], topic: str, partitions: int, say: SayNumber
) -> int:
    """Send every event; return how many there were.

    Args:
        kafka: The brokers.
        lines: The events.
        topic: The topic.
        partitions: Its number of partitions.
        say: Called about once a second with the number of events so far.
    """
    failures: list[str] = []
    lost = Undelivered()
    reports = {**ONLY_FAILURES, "error_cb": lambda error: failures.append(error.str())}
    producer = Producer({**kafka.client(), **_PRODUCER, **reports})
    number, next_say = 0, time.monotonic() + _EVERY_S
    try:
        while not lost.records and (chunk := list(islice(lines, _CHUNK))):
            for partition in range(partitions):
                values = chunk[(partition - number) % partitions :: partitions]
                _send(producer, topic, partition, values, lost)
            number += len(chunk)
            if time.monotonic() > next_say:
                say(number)
                next_say = time.monotonic() + _EVERY_S
        if left := producer.flush(_PATIENCE_S):
            raise TimeoutError(f"{left:,} events were not taken within {_PATIENCE_S} s")
    except (KafkaException, TimeoutError) as error:
        producer.purge()
        because = f" ({failures[-1]})" if failures else ""
        problem = f"topic {topic}: {error}{because}"
        raise KafkaError(f"kafka: {problem}; see: nexmark kafka status") from None
    lost.check()
    return number


def _send(
    producer: Producer, topic: str, partition: int, values: list[bytes], lost: Undelivered
) -> None:
    """Queue events for a partition, in order, and wait while the client's queue is full.

    Args:
        producer: The client.
        topic: The topic.
        partition: The partition.
        values: The events.
        lost: Called with each report of the client.

    Raises:
        TimeoutError: The queue stays full.
        KafkaException: The client refuses an event for another reason.
    """
    waiting: list[dict[str, Any]] = [{"value": value} for value in values]
    deadline = time.monotonic() + _PATIENCE_S
    while producer.produce_batch(topic, waiting, partition=partition, on_delivery=lost) < len(
        waiting
    ):
        left = [message for message in waiting if "_error" in message]
        if len(left) < len(waiting):
            deadline = time.monotonic() + _PATIENCE_S
        waiting = [{"value": message["value"]} for message in left]
        if left[0]["_error"].code() != ClientError._QUEUE_FULL:
            raise KafkaException(left[0]["_error"])
        if time.monotonic() > deadline:
            raise TimeoutError(f"no event was taken for {_PATIENCE_S} s")
        producer.poll(0.05)


def _lines(files: list[Path]) -> Iterator[bytes]:
    """Yield every line that is not blank, without its end."""
    for file in files:
        try:
            with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
                for line in lines:
                    if event := line.rstrip(b"\r\n"):
                        yield event
        except (gzip.BadGzipFile, zlib.error, EOFError, OSError) as error:
            raise KafkaError(f"kafka fill: {file} cannot be read: {error}") from None

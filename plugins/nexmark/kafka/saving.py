"""Save the records of a topic as files of JSON lines, which a job of a person's own reads.

A topic changes and forgets; a night and its repetition in a month have to read the same rows. So
the records that the topic holds at one moment are copied once, and the files are the input.
"""

import heapq
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import Message, TopicPartition

from nexmark.errors import suggest
from nexmark.kafka import KafkaError
from nexmark.kafka.filling import SayNumber
from nexmark.kafka.topics import KafkaCluster

_PER_FILE = 1_000_000
_CHUNK = 5_000
_EVERY_S = 1.0
_PATIENCE_S = 30.0
#: Each partition has a consumer, which would take up to 64 MB of records in advance.
_FETCH = {"enable.partition.eof": "true", "queued.max.messages.kbytes": "4096"}
_NEWLINES = bytes.maketrans(b"\r\n", b"  ")


@dataclass(frozen=True)
class Saved:
    """The records that were saved."""

    topic: str
    records: int
    files: int
    directory: Path

    def __str__(self) -> str:
        """Return one line for a person."""
        return f"{self.topic}: {self.records:,} records in {self.files} files in {self.directory}"


def save(
    kafka: KafkaCluster,
    topic: str,
    directory: Path,
    *,
    limit: int | None = None,
    say: SayNumber = lambda saved: None,
) -> Saved:
    """Write what a topic holds now into a new directory, which appears whole or not at all.

    The records are in the order of their times; records of one partition stay in their order.

    Args:
        kafka: The brokers.
        topic: The name of the topic.
        directory: The new directory.
        limit: How many records are saved; None for all.
        say: Called about once a second with the number of records so far.

    Raises:
        KafkaError: There is no such topic or no broker answers, a record is no JSON object, or the
            directory is there already.
    """
    if directory.exists():
        raise KafkaError(f"kafka save: {directory} is there already; name a new directory")
    partitions = kafka.partitions()
    if topic not in partitions:
        raise KafkaError(f"kafka save: there is no topic {topic!r}; {suggest(topic, partitions)}")
    work = directory.with_name(f".{directory.name}.unfinished")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        with ExitStack() as consumers:
            ranges = kafka.offsets(topic, partitions[topic])
            read = [
                _partition(kafka, TopicPartition(topic, number, begin), end, consumers)
                for number, (begin, end) in enumerate(ranges)
            ]
            merged = islice(heapq.merge(*read, key=_place), limit)
            records, files = _write(merged, work, say)
        if not records:
            raise KafkaError(f"kafka save: topic {topic} holds no record; name another one")
        work.rename(directory)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Saved(topic, records, files, directory)


def _partition(
    kafka: KafkaCluster, begin: TopicPartition, end: int, consumers: ExitStack
) -> Iterator[Message]:
    """Yield the records of a partition, in order.

    Args:
        kafka: The brokers.
        begin: The partition, with the offset of the first record.
        end: The offset behind the last record.
        consumers: Closes the consumer.

    Raises:
        KafkaError: The records do not come.
    """
    if begin.offset == end:
        return
    consumer = consumers.enter_context(kafka.consumer(_FETCH))
    consumer.assign([begin])
    last = time.monotonic()
    while True:
        messages = consumer.consume(_CHUNK, timeout=1.0)
        if messages:
            last = time.monotonic()
        elif time.monotonic() > last + _PATIENCE_S:
            where = f"partition {begin.partition} of topic {begin.topic}"
            problem = f"{where} sends nothing for {_PATIENCE_S:.0f} s"
            raise KafkaError(f"kafka save: {problem}; see: nexmark kafka status")
        for message in messages:
            if (error := message.error()) is not None:
                if error.code() == ClientError._PARTITION_EOF:
                    return
                raise KafkaError(f"kafka save: topic {begin.topic}: {error.str()}")
            if (message.offset() or 0) >= end:
                return
            yield message


def _place(message: Message) -> tuple[int, int, int]:
    """Return the place of a record among the records of all partitions."""
    return message.timestamp()[1], message.partition() or 0, message.offset() or 0


def _write(messages: Iterator[Message], directory: Path, say: SayNumber) -> tuple[int, int]:
    """Write records as JSON lines; return the numbers of records and of files."""
    records = files = 0
    said = time.monotonic()
    while first := next(messages, None):
        with (directory / f"{files:05}.jsonl").open("wb") as file:
            file.write(_line(first))
            records += 1
            for message in islice(messages, _PER_FILE - 1):
                file.write(_line(message))
                records += 1
                if time.monotonic() > said + _EVERY_S:
                    say(records)
                    said = time.monotonic()
        files += 1
    return records, files


def _line(message: Message) -> bytes:
    """Return the value of a record as a line; KafkaError if it is no JSON object."""
    value = message.value() or b""
    try:
        is_object = isinstance(json.loads(value), dict)
    except ValueError:
        is_object = False
    if not is_object:
        place = f"offset {message.offset()} of partition {message.partition()}"
        problem = f"topic {message.topic()}: the record at {place} is no JSON object"
        remedy = "write the topic's rows to files by a program of yours, and name these"
        raise KafkaError(f"kafka save: {problem}; {remedy}")
    return bytes(value).translate(_NEWLINES) + b"\n"  # inside of texts, JSON writes newlines as \n

"""Send events at a fixed rate: event i is due at start + i / rate, which is its `dateTime`."""

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import Producer

from nexmark.kafka import KafkaError
from nexmark.kafka.topics import KafkaCluster
from nexmark.kafka.undelivered import ONLY_FAILURES, Undelivered

_TIMES = {"person": ("dateTime",), "auction": ("dateTime", "expires"), "bid": ("dateTime",)}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORMAT = "%Y-%m-%d %H:%M:%S.%f"
_SPIN_S = 0.002
_ASK_S = 1.0
_FLUSH_S = 30
_NICE = -19
Check = Callable[[], None]  # raises an error if the query that reads the events has ended
_PRODUCER = {"acks": "1", "linger.ms": 0, "queue.buffering.max.messages": 1_000_000}


@dataclass(frozen=True)
class PacedEvent:
    """An event in the form in which it is sent."""

    due_ms: int  # when it is due, in milliseconds since 1970; its `dateTime`
    kind: str  # person, auction or bid
    entity: dict[str, Any]  # the fields of that person, auction or bid
    line: bytes  # the record


def paced(lines: Iterable[str], start_ms: int) -> list[PacedEvent]:
    """Return recorded events, moved in time so that the first of them is due at `start_ms`."""
    shift, events = None, []
    for line in lines:
        event = json.loads(line)
        kind = next(name for name in _TIMES if event.get(name))
        entity = event[kind]
        if shift is None:
            shift = start_ms - _millis(entity["dateTime"])
        for name in _TIMES[kind]:
            entity[name] = _text(_millis(entity[name]) + shift)
        due = _millis(entity["dateTime"])
        record = json.dumps(event, separators=(",", ":")).encode()
        events.append(PacedEvent(due, kind, entity, record))
    return events


def _millis(text: str) -> int:
    moment = datetime.strptime(text, _FORMAT).replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _text(millis: int) -> str:
    return (_EPOCH + timedelta(milliseconds=millis)).strftime(_FORMAT)[:-3]


def send(
    kafka: KafkaCluster, topic: str, partitions: int, events: Sequence[PacedEvent], alive: Check
) -> list[float]:
    """Send every event when it is due, event n to partition n mod `partitions`.

    Args:
        kafka: The brokers.
        topic: The topic.
        partitions: Its number of partitions.
        events: The events, in their order.
        alive: Raises an error if the query that reads them has ended; called once a second.

    Returns:
        How many milliseconds after its due time each event was given to the client.

    Raises:
        KafkaError: Not every event has reached the topic.
    """
    with _before_others():
        producer = Producer({**kafka.client(), **_PRODUCER, **ONLY_FAILURES})
        lost = Undelivered()
        lags, ask = [], time.monotonic() + _ASK_S
        for number, event in enumerate(events):
            due = event.due_ms / 1000
            while (wait := due - time.time()) > 0:
                time.sleep(min(wait, _SPIN_S))
            _give(producer, topic, event.line, number % partitions, lost)
            lags.append((time.time() - due) * 1000)
            if time.monotonic() > ask:
                alive()
                lost.check()
                ask = time.monotonic() + _ASK_S
        left = producer.flush(_FLUSH_S)
    lost.check()
    if left:
        raise KafkaError(f"kafka: {left} of {len(events)} paced events did not reach {topic}")
    return lags


def _give(producer: Producer, topic: str, line: bytes, partition: int, lost: Undelivered) -> None:
    """Give a record to Kafka's client; wait while the client's queue is full.

    Args:
        producer: The client.
        topic: The topic.
        line: The record.
        partition: The partition.
        lost: Called with each report of the client.
    """
    wait_s = 0.0
    while True:
        producer.poll(wait_s)
        try:
            return producer.produce(topic, line, partition=partition, on_delivery=lost)
        except BufferError:
            wait_s = _SPIN_S


@contextlib.contextmanager
def _before_others() -> Iterator[None]:
    """Give this thread, and threads it starts, a higher priority than the query's, if allowed."""
    thread = threading.get_native_id()
    usual = os.getpriority(os.PRIO_PROCESS, thread)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, thread, _NICE)
    try:
        yield
    finally:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, thread, usual)

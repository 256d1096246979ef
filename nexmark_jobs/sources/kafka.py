"""Read event streams from a Kafka topic: the records that it holds when the run begins.

Event n is in partition n mod P, as `nexmark kafka fill` does it. Then micro-batches of B events, a
multiple of P, are the generator's: batch b has the events [b * B, (b + 1) * B). In any other layout
a batch has events that are too late for the one before it. So numbered events are checked as they
are read, and a query that drops rows behind the watermark fails.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from nexmark_jobs.errors import JobError, QueryFailedError, UsageError
from nexmark_jobs.options import KafkaOptions
from nexmark_jobs.session import WorkDirectory
from nexmark_jobs.sources import CONSUMER
from nexmark_jobs.sources.datagen import Feed
from nexmark_jobs.sources.event_files import Sentinels, entities, has_field, is_event, json_schema
from nexmark_jobs.sources.kafka_topic import Brokers, Topic, UnknownTopicError
from nexmark_jobs.sources.recorded_events import FIELDS, KINDS

_NO_EVENT = "nexmark: no event at"
_LOST = re.compile(r"DATA_LOSS|some data may have been|OffsetOutOfRange|Cannot fetch offset", re.I)
_MISPLACED = "not in its place"
_MAX_KINDS = 8
_LARGE = 2**62  # its negative, less the number of offsets of a topic, is still a bigint
_SCAN = "nexmark_scan_"
_RAW = "event_type string, person string, auction string, bid string, _corrupt_record string"
_CONSUMER = {f"kafka.{name}": value for name, value in CONSUMER.items()}


@dataclass(frozen=True)
class Kafka:
    """The three streams of a topic, up to its end when the run began, and the sentinels."""

    spark: SparkSession
    brokers: Brokers
    topic: Topic
    rows_per_batch: int
    first_numbers: Sequence[Any]
    sentinels: Sentinels
    _scans: Iterator[int] = field(default_factory=count, init=False)

    @property
    def numbered(self) -> bool:
        """Tell whether the events have numbers."""
        return any(number is not None for number in self.first_numbers)

    def facts(self) -> dict[str, Any]:
        """Return the description of the topic for the result file."""
        return {
            "topic": self.topic.name,
            "partitions": len(self.topic.ends),
            "numbered": self.numbered,
            **self.brokers.versions(),
        }

    def explain(self, error: JobError) -> JobError:
        """Return an error of a query, with what is wrong with the topic that it has read."""
        text = self.brokers.without_options(str(error))
        if isinstance(error, QueryFailedError):
            if _NO_EVENT in error.causes:
                return JobError(self._no_events())
            changed = self.what_changed(lost=_LOST.search(error.causes) is not None)
            text = f"{changed}: {text}" if changed else text
        return UsageError(text) if isinstance(error, UsageError) else JobError(text)

    def __str__(self) -> str:
        """Return the topic as messages have it."""
        return f"kafka:{self.topic.name}"

    def of_kind(self, kind: str) -> DataFrame:
        """Return the stream of the events of a kind, without a watermark."""
        reader = self.spark.readStream.format("kafka").options(**self._options())
        # A batch is split in proportion to what is left in the partitions, each share rounded
        # down. These few offsets more keep the shares right where the partitions are not all of
        # one length, and where the share of one is no exact number.
        partitions = len(self.topic.ends)
        spare = self.topic.records % partitions or partitions // 2
        reader = reader.option("maxOffsetsPerTrigger", self.rows_per_batch + spare)
        ends = F.array(*(F.lit(number).cast("bigint") for number in self.topic.ends))
        end = F.get(ends, F.col("partition"))
        # Counted here, because in a query that reads files as well Spark 3.5 counts no rows.
        count_of_records = F.count("*").alias("records")
        counted = reader.load().observe(f"{_SCAN}{next(self._scans)}", count_of_records)
        records = parsed(counted.where(F.col("offset") < end))
        wanted = records.where(is_wanted(kind, numbered=self.numbered, placed=self._placed()))
        events = entities(wanted, kind, numbered=self.numbered)
        return self.sentinels.follow(events, kind, numbered=self.numbered)

    def _options(self) -> dict[str, str]:
        return {
            **_CONSUMER,
            **self.brokers.spark_options,
            "subscribe": self.topic.name,
            "startingOffsets": _offsets(self.topic.name, self.topic.begins),
            "failOnDataLoss": "true",
        }

    def _placed(self) -> Column | None:
        """Return the condition that an event is in its place; None if events have no numbers."""
        return in_place(self.topic, self.first_numbers) if self.numbered else None

    def _no_events(self) -> str:
        """Return a sentence on the records that are no events: by problem, how many, the first one.

        If all records are events, the sentence is on those that are not in their place.
        """
        reader = self.spark.read.format("kafka").options(**self._options())
        read = reader.option("endingOffsets", _offsets(self.topic.name, self.topic.ends)).load()
        checked = problems(read, numbered=self.numbered, placed=self._placed())
        bad = checked.where(F.col("problem").isNotNull()).groupBy("problem")
        first = F.min(F.struct("partition", "offset")).alias("at")
        every = bad.agg(F.count("*").alias("records"), first).orderBy("at").collect()
        kinds = [kind for kind in every if kind["problem"] != _MISPLACED]
        if every and not kinds:
            return self._other_layout(every[0]["records"], every[0]["at"])
        sentences = "; ".join(
            f"{kind['records']} {kind['problem']} (first: partition {kind['at']['partition']}, "
            f"offset {kind['at']['offset']})"
            for kind in kinds[:_MAX_KINDS]
        )
        more = f"; {len(kinds) - _MAX_KINDS} more kinds" if len(kinds) > _MAX_KINDS else ""
        number = sum(kind["records"] for kind in kinds)
        return f"{self}: {number} of {self.topic.records} records are no events: {sentences}{more}"

    def _other_layout(self, records: int, first: Row) -> str:
        place = f"partition {first['partition']}, offset {first['offset']}"
        wrong = f"{records} of {self.topic.records} events are not in their place (first: {place})"
        return f"{self}: {wrong}: {self.layout}"

    @property
    def layout(self) -> str:
        """Return the layout that a topic has to have, and the command that makes it."""
        partitions = len(self.topic.ends)
        has_to = f"event n has to be in partition n mod {partitions}, in the order of the numbers"
        return f"{has_to}; topics that `nexmark kafka fill` has made are so"

    def what_changed(self, *, lost: bool = False) -> str | None:
        """Return what has changed in the topic, also first records if `lost`; None if nothing."""
        try:
            now = self.brokers.topic(self.topic.name)
        except UnknownTopicError:
            return f"{self}: it was deleted while it was read"
        except UsageError as error:
            return str(error)
        if now.id != self.topic.id:
            return f"{self}: it was deleted and created again while it was read"
        begins = zip(now.begins, self.topic.begins, strict=False)
        for partition, (begin, first) in enumerate(begins):
            if lost and begin > first:
                now_at = f"partition {partition} begins at offset {begin}, no longer at {first}"
                return f"{self}: it was truncated while it was read: {now_at}"
        return None


def open_kafka(
    spark: SparkSession, given: KafkaOptions, work: WorkDirectory, *, end_of_input: bool
) -> "tuple[Kafka, KafkaFeed]":
    """Return the streams and the feed of a topic.

    Args:
        spark: the session.
        given: the topic, its brokers, and the size of a micro-batch.
        work: the directory of the sentinels.
        end_of_input: whether sentinels follow the events.

    Raises:
        UsageError: the topic is unknown, empty, compacted or out of reach, or Spark lacks jars.
    """
    brokers = Brokers(spark, given.servers)
    topic = brokers.topic(given.topic)
    if "compact" in topic.cleanup:
        problem = f"kafka:{given.topic} has cleanup.policy={topic.cleanup}, which removes events"
        raise UsageError(f"--source: {problem}; fill another topic (nexmark kafka fill)")
    if not topic.records:
        remedy = "`nexmark kafka fill` writes some"
        raise UsageError(f"--source: kafka:{given.topic} holds no records; {remedy}")
    sentinels = Sentinels(work if end_of_input else None)
    numbers = brokers.first_numbers(topic)
    source = Kafka(spark, brokers, topic, given.rows_per_batch, numbers, sentinels)
    return source, KafkaFeed(source)


class KafkaFeed(Feed):
    """How far a query has read a topic; its scans have to read the same offsets in each batch.

    `data_batches` is `sys.maxsize` until the last of them is done: a topic that grows has more.
    """

    def __init__(self, source: Kafka) -> None:
        """Follow a query that reads `source`."""
        is_over = source.sentinels.closed_all
        super().__init__(source.topic.records, sys.maxsize, None, lambda _: 0, is_over)
        self._source = source
        self._topic = source.topic
        self._grew = False

    def take(self, progress: Mapping[str, Any]) -> int:
        """Return the number of events in the batch just finished.

        Raises JobError if records are missing, or if the scans have read different offsets.
        """
        scans = [scan for scan in progress["sources"] if scan["description"].startswith("KafkaV2")]
        starts, ends, latest = (
            [self._offsets(scan[name]) for scan in scans]
            for name in ("startOffset", "endOffset", "latestOffset")
        )
        batch = progress["batchId"]
        self._check_whole(batch, progress, sum(map(sum, ends)) - sum(map(sum, starts)))
        self._grew = any(offsets != self._topic.ends for offsets in latest)
        if not self._grew and len(set(ends)) > 1:
            other = next(offsets for offsets in ends if offsets != ends[0])
            unequal = f"batch {batch} ends at {ends[0]} in one scan and at {other} in another"
            raise JobError(f"{self._source}: {unequal}; run again")
        whole = sum(self._topic.ends)
        is_read = all(self._events_before(offsets) == whole for offsets in ends)
        if self.data_batches == sys.maxsize and is_read:
            self.data_batches = batch + 1
        return self._events_before(ends[0]) - self._events_before(starts[0])

    def finished(self, progress: Mapping[str, Any]) -> bool:
        """Return whether the batch just finished was the last; JobError for a changed topic."""
        if (is_over := super().finished(progress)) and (changed := self._source.what_changed()):
            raise JobError(f"{changed}; run again")
        return is_over

    def _check_whole(self, batch: int, progress: Mapping[str, Any], offsets: int) -> None:
        """Raise JobError if the scans of a batch did not yield a record for each offset."""
        observed = progress.get("observedMetrics", {})
        records = sum(observed[name]["records"] for name in observed if name.startswith(_SCAN))
        if records != offsets:
            lack = "some were deleted, compacted or belong to transactions; fill another topic"
            problem = f"batch {batch} has {offsets} offsets but {records} records"
            raise JobError(f"{self._source}: {problem}: {lack}")

    def why_late(self, progress: Mapping[str, Any]) -> str:
        """Return why rows came behind the watermark.

        Spark reads more from partitions that grow more, so that the others fall behind.
        """
        if self._grew:
            return f"{self._source} grew while it was read; run again when it is filled"
        return f"{self._source}: {self._source.layout}"

    def _offsets(self, offsets: Mapping[str, Mapping[str, int]] | None) -> tuple[int, ...]:
        """Return the offset of every partition; before the first batch Spark reports none."""
        if not offsets:
            return self._topic.begins
        by_partition = offsets[self._topic.name]
        if len(by_partition) != len(self._topic.ends):
            before, now = len(self._topic.ends), len(by_partition)
            raise JobError(f"{self._source}: it had {before} partitions and now has {now}")
        return tuple(by_partition[str(partition)] for partition in range(len(by_partition)))

    def _events_before(self, offsets: Sequence[int]) -> int:
        return sum(map(min, offsets, self._topic.ends))


def _offsets(topic: str, offsets: Sequence[int]) -> str:
    return json.dumps({topic: {str(partition): at for partition, at in enumerate(offsets)}})


def parsed(records: DataFrame, **more: Column) -> DataFrame:
    """Return partition and offset of records, the columns of their events, and `more` columns."""
    others = {"partition": F.col("partition"), "offset": F.col("offset"), **more}
    columns = [column.alias(name) for name, column in others.items()]
    events = records.select(_once(json_schema()).alias("event"), *columns)
    return events.select("event.*", *others)


def in_place(topic: Topic, first_numbers: Sequence[Any]) -> Column:
    """Return the condition that the number of a record of `parsed` fits its place in the layout.

    The number at a place is at least the first one of its partition, and P more for each offset
    before it. It is higher where numbers are left out. If no number is left out or comes
    twice, all events are in their place if and only if the condition holds for each.
    """
    partitions = len(topic.ends)
    lowest = [
        (first if type(first) is int and abs(first) < _LARGE else -_LARGE) - begin * partitions
        for first, begin in zip(first_numbers, topic.begins, strict=True)
    ]
    bases = F.array(*(F.lit(number).cast("bigint") for number in lowest))
    return F.col("n") >= F.get(bases, F.col("partition")) + F.col("offset") * partitions


def is_wanted(name: str, *, numbered: bool, placed: Column | None = None) -> Column:
    """Return the condition that a record of `parsed` is of the kind `name`.

    It fails on a record that is no event, and on one that is not `placed`.
    """
    good = is_event() & F.col("n").isNotNull() if numbered else is_event()
    good = good if placed is None else good & placed
    place = F.concat(F.lit(f"{_NO_EVENT} "), F.col("partition"), F.lit(":"), F.col("offset"))
    is_kind = F.col("event_type") == KINDS.index(name)
    return _here(F.when(good, is_kind).otherwise(F.raise_error(place).cast("boolean")))


def _once(schema: str) -> Column:
    """Return the value as JSON of a schema, read once: Spark would read it for every field."""
    return _here(F.from_json(F.col("value").cast("string"), schema))


def _here(column: Column) -> Column:
    """Return a column that is computed in this place of the plan and nowhere else.

    The condition is always true, but not deterministic, so that Spark neither repeats what depends
    on it nor moves a query's own conditions before it, which would drop bad records unseen.
    """
    return F.when(F.spark_partition_id() >= 0, column)


def problems(records: DataFrame, *, numbered: bool, placed: Column | None = None) -> DataFrame:
    """Return for each record its `problem` (NULL if none), partition and offset."""
    text = F.col("value").cast("string")
    read = parsed(records, value=text, raw=_once(_RAW))
    problem = _problem(numbered=numbered, placed=placed)
    return read.select(problem.alias("problem"), "partition", "offset")


def _problem(*, numbered: bool, placed: Column | None) -> Column:
    is_known = F.col("event_type").between(0, 2)
    conditions = [
        (F.col("value").isNull(), "without a value"),
        (F.col("value").rlike(r"^\s*$"), "empty"),
        (F.col("raw").isNull() | F.col("raw._corrupt_record").isNotNull(), "not a JSON object"),
        (~F.coalesce(is_known, F.lit(False)), "without an event_type of 0, 1 or 2"),
    ]
    for place, name in enumerate(KINDS):
        is_kind = F.col("event_type") == place
        conditions.append((is_kind & F.col(f"raw.{name}").isNull(), f"without '{name}'"))
        for each in FIELDS[name]:
            conditions.append((is_kind & ~has_field(name, each), f"without a right {name}.{each}"))
    if numbered:
        conditions.append((F.col("n").isNull(), "without a number n"))
    if placed is not None:
        conditions.append((~placed, _MISPLACED))
    return F.coalesce(*(F.when(condition, F.lit(text)) for condition, text in conditions))

"""Event streams generated on the fly from Spark's `rate-micro-batch` source,
and how far a query has read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from nexmark_jobs import generator
from nexmark_jobs import progress as reported
from nexmark_jobs.ending import JobError
from nexmark_jobs.generator import GeneratorConfig
from nexmark_jobs.generator.draws import div
from nexmark_jobs.generator.timeline import Kind, check_span, offsets_of


@dataclass(frozen=True)
class Datagen:
    """The streams of events 0..events-1; micro-batch b has those in [b, b + 1) * rows_per_batch.

    Each stream reads its own source, in step with the others. If the events keep their order and
    a batch is a whole number of cycles (50 events by default), a source counts only the events of
    its kind, which saves up to nine tenths of the reading; otherwise it counts all events and
    drops the other kinds. Both give the same batches.

    No source ever ends: from batch ceil(events / rows_per_batch) on the streams are empty, but for
    the sentinels if `end_of_input` (see `generator.timeline`), which follow the last event.

    Attributes:
        spark: the session.
        config: the generator's knobs.
        events: number of events of all kinds.
        rows_per_batch: event numbers per micro-batch.
        end_of_input: whether sentinels follow the events.
        partitions: partitions of a micro-batch; None means the session's default parallelism.
    """

    spark: SparkSession
    config: GeneratorConfig
    events: int
    rows_per_batch: int
    end_of_input: bool = False
    partitions: int | None = None

    def __post_init__(self) -> None:
        """Check that the events end well before the sentinels; ValueError if not."""
        check_span(self.events, self.config)

    def persons(self) -> DataFrame:
        """The stream of persons, without a watermark."""
        return generator.persons(self._numbers(Kind.PERSON), self.config, self._end())

    def auctions(self) -> DataFrame:
        """The stream of auctions, without a watermark."""
        return generator.auctions(self._numbers(Kind.AUCTION), self.config, self._end())

    def bids(self) -> DataFrame:
        """The stream of bids, without a watermark."""
        return generator.bids(self._numbers(Kind.BID), self.config, self._end())

    def batches(self) -> int:
        """How many micro-batches hold the events and, if asked for, the sentinels."""
        sentinels = self.config.total_proportion if self.end_of_input else 0
        return -(-(self.events + sentinels) // self.rows_per_batch)

    def events_in(self, batch: int) -> int:
        """How many events (of all kinds, without sentinels) micro-batch `batch` holds."""
        left = self.events - batch * self.rows_per_batch
        return min(max(left, 0), self.rows_per_batch)

    def _end(self) -> int | None:
        return self.events if self.end_of_input else None

    def _numbers(self, kind: Kind) -> DataFrame:
        """A stream of event numbers, `n`; it has every event of `kind`, and may have others."""
        total = self.config.total_proportion
        in_order = self.config.out_of_order_group_size == 1
        if in_order and self.rows_per_batch % total == 0:
            first, last = offsets_of(kind, self.config)
            width = last - first
            counts = self._counts(self.rows_per_batch // total * width)
            shift = self.config.first_event_id + self.config.first_event_number
            number = _nth_of_kind(F.col("value"), width, (first - shift) % total, total)
        else:
            counts = self._counts(self.rows_per_batch)
            number = F.col("value")
        numbers = counts.select(number.alias("n"))
        return numbers if self.end_of_input else numbers.where(F.col("n") < self.events)

    def _counts(self, rows_per_batch: int) -> DataFrame:
        reader = self.spark.readStream.format("rate-micro-batch")
        reader = reader.option("rowsPerBatch", rows_per_batch)
        if self.partitions is not None:
            reader = reader.option("numPartitions", self.partitions)
        return reader.load()


def _nth_of_kind(index: Column, width: int, first: int, total: int) -> Column:
    """Number of the index-th event of a kind with `width` events, from `first` on, per cycle."""
    offset = index % width + first
    if first + width > total:
        offset = offset % total
    return div(index, width) * total + offset


_FAR_FUTURE = "9998"
"""Watermarks from this year on are the doing of a sentinel."""


class Feed(Protocol):
    """Tells data from the end of input, and when there is no more of either."""

    @property
    def events(self) -> int:
        """Number of events in the input, without sentinels."""

    @property
    def data_batches(self) -> int:
        """Number of batches with events; later ones are of the end of the input."""

    @property
    def last_batch(self) -> int | None:
        """Number of the last batch, where that is known beforehand."""

    def take(self, progress: Mapping[str, Any]) -> int:
        """Number of events in the batch just finished; 0 from the end of the input on."""

    def finished(self, progress: Mapping[str, Any]) -> bool:
        """Whether the batch just finished was the last one."""


def has_closed_all(progress: Mapping[str, Any]) -> bool:
    """Whether the batch ran with a watermark beyond every event, so that all windows closed."""
    watermark = reported.watermark(progress)
    return watermark is not None and watermark >= _FAR_FUTURE


class DatagenFeed:
    """The batches of generated events."""

    def __init__(self, source: Datagen) -> None:
        """Follow a query that reads `source`."""
        self._source = source

    @property
    def events(self) -> int:
        """Number of events in the input, without sentinels."""
        return self._source.events

    @property
    def data_batches(self) -> int:
        """Number of batches with events; later ones are of the end of the input."""
        return -(-self._source.events // self._source.rows_per_batch)

    @property
    def last_batch(self) -> int:
        """Number of the last batch: the one after the sentinels', or the last one with events."""
        return self._source.batches() - (0 if self._source.end_of_input else 1)

    def take(self, progress: Mapping[str, Any]) -> int:
        """Number of events in the batch just finished; 0 from the end of the input on."""
        return self._source.events_in(progress["batchId"])

    def finished(self, progress: Mapping[str, Any]) -> bool:
        """Whether the batch just finished was the last one.

        Raises:
            JobError: It was, but the sentinels have not closed the windows.
        """
        last = int(progress["batchId"]) >= self.last_batch
        if last and self._source.end_of_input and not has_closed_all(progress):
            raise JobError("the sentinels did not move the watermark; windows are still open")
        return last

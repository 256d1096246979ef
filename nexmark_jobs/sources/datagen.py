"""Event streams generated on the fly from Spark's `rate-micro-batch` source."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from nexmark_jobs import generator
from nexmark_jobs.generator import GeneratorConfig
from nexmark_jobs.generator.hashing import div
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
        """A stream of event numbers, `n`, with at least those of `kind`."""
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

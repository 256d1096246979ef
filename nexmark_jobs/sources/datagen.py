"""Generate event streams with Spark's `rate-micro-batch`, and know how far a query has read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from nexmark_jobs import progress as reported
from nexmark_jobs.errors import JobError, LateRowsError
from nexmark_jobs.generator import EVENTS, GeneratorConfig
from nexmark_jobs.generator.draws import div
from nexmark_jobs.generator.timeline import offsets_of


@dataclass(frozen=True)
class Datagen:
    """The streams of events 0..events-1; micro-batch b has those in [b, b + 1) * rows_per_batch.

    Each stream reads its own source, in step with the others. If the events keep their order and
    a batch is a whole number of cycles (50 events by default), a source counts only the events of
    its kind, which saves up to nine tenths of the reading; otherwise it counts all events and
    drops the other kinds. Both give the same batches.

    No source ever ends: from batch ceil(events / rows_per_batch) on the streams are empty, but for
    the sentinels if `end_of_input` (see `generator.timeline`), which follow the last event.
    """

    spark: SparkSession
    config: GeneratorConfig
    events: int
    rows_per_batch: int
    end_of_input: bool = False

    def of_kind(self, kind: str) -> DataFrame:
        """Return the stream of the events of a kind, without a watermark."""
        end = self.events if self.end_of_input else None
        return EVENTS[kind](self._numbers(kind), self.config, end)

    def batches(self) -> int:
        """Return the number of micro-batches with the events and, if asked for, the sentinels."""
        sentinels = self.config.total_proportion if self.end_of_input else 0
        return -(-(self.events + sentinels) // self.rows_per_batch)

    def events_in(self, batch: int) -> int:
        """Return the number of events, of all kinds but without sentinels, in a micro-batch."""
        left = self.events - batch * self.rows_per_batch
        return min(max(left, 0), self.rows_per_batch)

    def feed(self) -> "Feed":
        """Return the feed of these streams; its last batch comes after the sentinels, if any."""
        last = self.batches() - (0 if self.end_of_input else 1)

        def is_over(progress: Mapping[str, Any]) -> bool:
            if progress["batchId"] < last:
                return False
            if self.end_of_input and not has_closed_all(progress):
                raise JobError(STILL_OPEN)
            return True

        data_batches = -(-self.events // self.rows_per_batch)
        return Feed(self.events, data_batches, last, self.events_in, is_over)

    def _numbers(self, kind: str) -> DataFrame:
        """Return a stream of event numbers `n`, with every event of `kind` and maybe others."""
        total, size, number = self.config.total_proportion, self.rows_per_batch, F.col("value")
        if self.config.out_of_order_group_size == 1 and size % total == 0:
            first, last = offsets_of(kind, self.config)
            width = last - first
            size = size // total * width
            shift = self.config.first_event_id + self.config.first_event_number
            number = _nth_of_kind(number, width, (first - shift) % total, total)
        reader = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", size)
        numbers = reader.load().select(number.alias("n"))
        return numbers if self.end_of_input else numbers.where(F.col("n") < self.events)


def _nth_of_kind(index: Column, width: int, first: int, total: int) -> Column:
    """Return the number of the index-th event of a kind.

    Args:
        index: the place among the events of the kind, from 0.
        width: how many events of the kind a cycle has.
        first: the offset of the first of them in a cycle.
        total: length of a cycle.
    """
    offset = index % width + first
    if first + width > total:
        offset = offset % total
    return div(index, width) * total + offset


_FAR_FUTURE = "9998"
"""A watermark from this year on comes from a sentinel."""

_DISORDER = (
    "the events are not in the order of their time; order them "
    "(generated ones: take a smaller out_of_order_group_size)"
)

STILL_OPEN = "the sentinels did not move the watermark; windows are still open"


@dataclass
class Feed:
    """How far a query has read its input: first batches of data, then of the end.

    Attributes:
        events: number of events in the input, without sentinels.
        data_batches: number of batches with these events.
        last_batch: number of the last batch; None if it is not known beforehand.
        events_in: returns how many events a batch has.
        is_over: returns whether the batch just finished was the last one; asked from the last batch
            of data on. It raises JobError if the end can no longer come.
    """

    events: int
    data_batches: int
    last_batch: int | None
    events_in: Callable[[int], int]
    is_over: Callable[[Mapping[str, Any]], bool]

    def take(self, progress: Mapping[str, Any]) -> int:
        """Return the number of events in the batch just finished; 0 after the end of the input."""
        return self.events_in(progress["batchId"])

    def check_in_time(self, progress: Mapping[str, Any]) -> None:
        """Raise LateRowsError if the batch just finished dropped rows behind the watermark."""
        if late := reported.late_rows(progress):
            dropped = f"{late} rows came behind the watermark and were dropped"
            wrong = f"batch {progress['batchId']}: {dropped}, so that the result is wrong"
            raise LateRowsError(f"{wrong}: {self.why_late(progress)}")

    def why_late(self, progress: Mapping[str, Any]) -> str:
        """Return why rows of a batch came behind the watermark, and what to do about it."""
        return _DISORDER

    def finished(self, progress: Mapping[str, Any]) -> bool:
        """Return whether the batch just finished was the last one."""
        return progress["batchId"] >= self.data_batches - 1 and self.is_over(progress)


def has_closed_all(progress: Mapping[str, Any]) -> bool:
    """Return whether the watermark of a batch was beyond every event: all windows are closed."""
    watermark = reported.watermark(progress)
    return watermark is not None and watermark >= _FAR_FUTURE

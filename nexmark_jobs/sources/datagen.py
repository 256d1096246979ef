"""Event streams generated on the fly from Spark's `rate-micro-batch` source."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nexmark_jobs import generator
from nexmark_jobs.generator import GeneratorConfig


@dataclass(frozen=True)
class Datagen:
    """The three streams of events 0..events-1, `rows_per_batch` event numbers per micro-batch.

    The source itself never ends: from batch ceil(events / rows_per_batch) on it is empty, or, with
    `end_of_input`, holds the sentinels first, one of each kind and all far in the future.

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

    def numbers(self) -> DataFrame:
        """The stream of event numbers, one bigint column `n`."""
        reader = self.spark.readStream.format("rate-micro-batch")
        reader = reader.option("rowsPerBatch", self.rows_per_batch)
        if self.partitions is not None:
            reader = reader.option("numPartitions", self.partitions)
        numbers = reader.load().select(F.col("value").alias("n"))
        return numbers if self.end_of_input else numbers.where(F.col("n") < self.events)

    def persons(self) -> DataFrame:
        """The stream of persons, without a watermark."""
        return generator.persons(self.numbers(), self.config, self._end())

    def auctions(self) -> DataFrame:
        """The stream of auctions, without a watermark."""
        return generator.auctions(self.numbers(), self.config, self._end())

    def bids(self) -> DataFrame:
        """The stream of bids, without a watermark."""
        return generator.bids(self.numbers(), self.config, self._end())

    def _end(self) -> int | None:
        return self.events if self.end_of_input else None

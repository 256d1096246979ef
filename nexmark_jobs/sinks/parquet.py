"""The final table of a query as parquet files."""

from __future__ import annotations

import math
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import LongType, StructType

from nexmark_jobs.ending import JobError
from nexmark_jobs.options import CheckpointOptions
from nexmark_jobs.queries import Query
from nexmark_jobs.sinks.sink import Sink, Staging

_BATCHES = "batches"
_TABLE = "table"
_CLOCK = "clock"
_BATCH = "batch"
_ROW = "row"


class ParquetSink(Sink):
    """Keeps every batch apart (a replayed batch replaces itself) and folds them at the end."""

    def __init__(
        self,
        spark: SparkSession,
        query: Query,
        directory: Path,
        last_batch: int | None,
        checkpoint: CheckpointOptions | None = None,
    ) -> None:
        """Write the final table of `query` to `directory`, which is empty or does not exist.

        Batches after `last_batch`, if known, are empty and passed over, so that the query is idle
        when it is stopped. With `checkpoint`, the batches of a run that does not reach its end stay
        for the run that goes on from it; if only the table is missing, that run learns of the end
        from such an empty batch. What follows the batch to stop after is refused, so that no batch
        ends while the query is being stopped.
        """
        self._kept = checkpoint is not None
        self._stop_after = checkpoint.last_batch if checkpoint else None
        self._pace_s = checkpoint.pace_s if checkpoint else 0.0
        self._last_batch = math.inf if last_batch is None else last_batch
        self._spark = spark
        self._query = query
        self._staging = Staging(directory, kept=self._kept)
        self._batches = self._staging.path / _BATCHES
        self._schema: StructType | None = None

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Tell the writer of the query where its rows go."""

        def keep(rows: DataFrame, batch: int) -> None:
            if batch > self._last_batch and not self._kept:
                return
            if self._stop_after is not None and batch > self._stop_after:
                raise JobError(f"batch {batch} is left to a later run")
            if self._pace_s and batch <= self._last_batch:
                time.sleep(max(0.0, self._due(batch) - time.time()))
            self._schema = rows.schema
            target = self._batches / f"{_BATCH}={batch}"
            rows.write.mode("overwrite").parquet(f"file:{target}")

        return writer.foreachBatch(keep)

    def _due(self, batch: int) -> float:
        """When the rows of a batch are all there: a run that goes on has the clock of the first."""
        clock = self._staging.path / _CLOCK
        if not clock.exists():
            clock.parent.mkdir(parents=True, exist_ok=True)
            clock.touch()
        return clock.stat().st_mtime + batch * self._pace_s

    def finish(self, last_batch: int) -> None:
        """Fold the batches into the final table and put it in place."""
        assert self._schema is not None
        schema = self._schema.add(_BATCH, LongType())
        kept = self._spark.read.schema(schema).parquet(f"file:{self._batches}")
        kept = kept.where(F.col(_BATCH) <= min(last_batch, self._last_batch))
        target = self._staging.path / _TABLE
        self._fold(kept).write.mode("overwrite").parquet(f"file:{target}")
        self._staging.publish(_TABLE)

    def discard(self) -> None:
        """Remove what is half-done, after a failure."""
        self._staging.discard()

    def _fold(self, kept: DataFrame) -> DataFrame:
        """Return all rows, or, with a key, the row of the latest batch for each key."""
        columns, key = self._query.columns, self._query.key
        if not key:
            return kept.select(*columns)
        last = kept.groupBy(*key).agg(F.max_by(F.struct(*columns), _BATCH).alias(_ROW))
        return last.select(f"{_ROW}.*")

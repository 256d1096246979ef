"""The sink of a formulation that makes the query's rows of each micro-batch, which it keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql.streaming.readwriter import DataStreamWriter

from nexmark_jobs import digest
from nexmark_jobs.progress import Batch
from nexmark_jobs.sinks.sink import Sink


class PerBatchSink(Sink):
    """Counts and digests the rows, and keeps none: the noop sink of batches that are kept."""

    def __init__(self, rows_of: Callable[[DataFrame], DataFrame], *, hashed: bool) -> None:
        """`rows_of` makes the query's rows of a batch; with `hashed`, they are digested."""
        self._rows_of = rows_of
        self._hashed = hashed
        self._observed: dict[int, dict[str, int | None]] = {}

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Tell the writer of the query where its rows go."""

        def each(batch_rows: DataFrame, batch: int) -> None:
            kept = batch_rows.persist()
            try:
                found = Observation()
                rows = digest.observe(self._rows_of(kept), digest=self._hashed, by=found)
                rows.write.format("noop").mode("overwrite").save()
                self._observed[batch] = dict(found.get)
            finally:
                kept.unpersist()

        return writer.foreachBatch(each)

    def observed(self, batch: Batch) -> Batch:
        """The batch with the counts and hashes of its rows."""
        return replace(batch, observed=self._observed.get(batch.id, {}))

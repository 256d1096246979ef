"""The sink of a formulation that makes the query's rows of each micro-batch, which it keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql.streaming.readwriter import DataStreamWriter

from nexmark_jobs import digest
from nexmark_jobs.progress import Batch
from nexmark_jobs.sinks.sink import Sink


class PerBatchSink(Sink):
    """Counts and digests the rows, and keeps none: the noop sink of batches that are kept."""

    def __init__(
        self, rows_of: Callable[[DataFrame], Sequence[DataFrame]], *, hashed: bool
    ) -> None:
        """`rows_of` makes the frames of a batch's rows; with `hashed`, they are digested."""
        self._rows_of = rows_of
        self._hashed = hashed
        self._observed: dict[int, dict[str, int | None]] = {}

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Tell the writer of the query where its rows go."""

        def each(batch_rows: DataFrame, batch: int) -> None:
            kept = batch_rows.persist()
            try:
                found = [self._written(rows) for rows in self._rows_of(kept)]
                names = {name for one in found for name in one}
                self._observed[batch] = {x: sum(one.get(x) or 0 for one in found) for x in names}
            finally:
                kept.unpersist()

        return writer.foreachBatch(each)

    def _written(self, rows: DataFrame) -> dict[str, int | None]:
        """Write rows to nowhere; their counts and hashes."""
        found = Observation()
        counted = digest.observe(rows, digest=self._hashed, by=found)
        counted.write.format("noop").mode("overwrite").save()
        return dict(found.get)

    def observed(self, batch: Batch) -> Batch:
        """The batch with the counts and hashes of its rows."""
        return replace(batch, observed=self._observed.get(batch.id, {}))

"""A sink that computes every row and keeps none."""

from __future__ import annotations

from pyspark.sql.streaming.readwriter import DataStreamWriter

from nexmark_jobs.progress import Batch


class NoopSink:
    """Spark's own noop sink."""

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Tell the writer of the query where its rows go."""
        return writer.format("noop")

    def batch_done(self, batch: Batch) -> None:
        """Do nothing: no batch leaves anything."""

    def finish(self, last_batch: int) -> None:
        """Do nothing: there is no result to put in place."""

    def discard(self) -> None:
        """Do nothing: nothing is kept."""

"""What every sink does."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql.streaming.readwriter import DataStreamWriter

from nexmark_jobs.progress import Batch


class Sink(Protocol):
    """Takes the rows of one streaming query."""

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Tell the writer of the query where its rows go."""

    def batch_done(self, batch: Batch) -> None:
        """Act on a finished batch, e.g. on its watermark."""

    def finish(self, last_batch: int) -> None:
        """Put the result in place, once the query has stopped after batch `last_batch`."""

    def discard(self) -> None:
        """Remove what is half-done, after a failure."""

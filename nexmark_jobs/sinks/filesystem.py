"""The sink of q10: CSV files in a directory per minute, each marked once it is complete.

As in nexmark-flink, a partition dt=../hm=.. is committed, by an empty file `_SUCCESS`, when the
watermark is a minute past the partition's end, and at the end of the input.
"""

from __future__ import annotations

import math
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from nexmark_jobs.progress import Batch
from nexmark_jobs.sinks.sink import Sink

PARTITION_COLUMNS = ("dt", "hm")
COMMITTED = "_SUCCESS"
CSV = {
    "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSS",
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
"""Spark's writer takes away the blanks around a text by default."""

_PARTITION_LENGTH = timedelta(minutes=1)
_COMMIT_DELAY = timedelta(minutes=1)


class FilesystemSink(Sink):
    """Writes each batch aside, then moves its files to their partitions.

    Files carry the number of their batch, so that a replayed batch replaces what it left before.
    """

    def __init__(self, directory: Path, last_batch: int | None) -> None:
        """Write to `directory`, which is empty or does not exist, on a file system all share.

        Batches after `last_batch`, if known, are empty and passed over.
        """
        self._directory = directory
        self._last_batch = math.inf if last_batch is None else last_batch
        self._staging = directory / ".staging"

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Tell the writer of the query where its rows go."""

        def keep(rows: DataFrame, batch: int) -> None:
            if batch <= self._last_batch:
                self._write(rows, batch)

        return writer.foreachBatch(keep)

    def batch_done(self, batch: Batch) -> None:
        """Commit the partitions that the watermark of a batch has left behind."""
        if batch.watermark is not None:
            self._commit(datetime.fromisoformat(batch.watermark) - _COMMIT_DELAY)

    def finish(self, last_batch: int) -> None:
        """Commit what is left."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._commit(None)
        shutil.rmtree(self._staging, ignore_errors=True)

    def discard(self) -> None:
        """Remove all that was written, after a failure."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def _write(self, rows: DataFrame, batch: int) -> None:
        staged = self._staging / f"batch={batch}"
        writer = rows.write.mode("overwrite").partitionBy(*PARTITION_COLUMNS)
        writer.options(**CSV).csv(f"file:{staged}")
        prefix = f"part-{batch:06d}-"
        for left_over in self._directory.glob(f"dt=*/hm=*/{prefix}*"):
            left_over.unlink()
        for partition in sorted(staged.glob("dt=*/hm=*")):
            target = self._directory / partition.relative_to(staged)
            target.mkdir(parents=True, exist_ok=True)
            for place, file in enumerate(sorted(partition.glob("*.csv"))):
                file.rename(target / f"{prefix}{place:05d}.csv")
        shutil.rmtree(staged)

    def _commit(self, until: datetime | None) -> None:
        """Mark the partitions that end by `until`; None means all."""
        for partition in self._directory.glob("dt=*/hm=*"):
            marker = partition / COMMITTED
            if not marker.exists() and (until is None or _end(partition) <= until):
                marker.touch()


def _end(partition: Path) -> datetime:
    day = partition.parent.name.removeprefix("dt=")
    minute = unquote(partition.name.removeprefix("hm="))
    start = datetime.fromisoformat(f"{day} {minute}").replace(tzinfo=UTC)
    return start + _PARTITION_LENGTH

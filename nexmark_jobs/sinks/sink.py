"""What every sink does, the sink that keeps nothing, and the directory where results grow."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

from pyspark.sql.streaming.readwriter import DataStreamWriter

from nexmark_jobs.progress import Batch


class Sink:
    """Takes the rows of one streaming query. What a sink does not need to do, it leaves out."""

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Tell the writer of the query where its rows go."""
        raise NotImplementedError

    def observed(self, batch: Batch) -> Batch:
        """A finished batch, with what the sink knows of its rows."""
        return batch

    def batch_done(self, batch: Batch) -> None:
        """Act on a finished batch, e.g. on its watermark."""

    def finish(self, last_batch: int) -> None:
        """Put the result in place, once the query has stopped after batch `last_batch`."""

    def discard(self) -> None:
        """Remove what is half-done, after a failure."""


class NoopSink(Sink):
    """Spark's own noop sink."""

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Tell the writer of the query where its rows go."""
        return writer.format("noop")


class Staging:
    """A sibling of a directory, on the same file system, that becomes the directory.

    Driver and executors must share that file system.
    """

    def __init__(self, target: Path, *, kept: bool = False) -> None:
        """Create nothing yet; `target` is the directory to be.

        With `kept`, it outlives the run: the next one finds it under the same name.
        """
        self._target = target
        self._kept = kept
        # No leading dot: Spark finds no files below a directory that begins with one.
        name = "unfinished" if kept else f"{uuid.uuid4().hex}.tmp"
        self.path = target.parent / f"{target.name}.{name}"

    def publish(self, child: str) -> None:
        """Make the directory `child` of the staging directory the target, and drop the rest."""
        if self._target.is_dir():
            self._target.rmdir()  # refuses if somebody has filled it meanwhile
        (self.path / child).rename(self._target)
        shutil.rmtree(self.path, ignore_errors=True)

    def discard(self) -> None:
        """Remove the staging directory, unless a later run goes on with it."""
        if not self._kept:
            shutil.rmtree(self.path, ignore_errors=True)

"""Where the rows of a query go: nowhere, by batch, to the final table, or to q10's files.

The sink of q10 writes CSV files in a directory per minute, each marked once it is complete: as in
nexmark-flink, a partition dt=../hm=.. is committed, by an empty file `_SUCCESS`, when the watermark
is a minute past the partition's end, and at the end of the input.
"""

import math
import shutil
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import LongType, StructType

from nexmark_jobs.errors import JobError
from nexmark_jobs.options import CheckpointOptions
from nexmark_jobs.progress import Batch, observe
from nexmark_jobs.queries import Query


class Sink:
    """Takes the rows of one streaming query; this one is Spark's own noop sink.

    What another sink does not need to do, it leaves out.
    """

    def rows(self, frame: DataFrame) -> DataFrame:
        """The rows of the query as the sink takes them."""
        return frame

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Tell the writer of the query where its rows go."""
        return writer.format("noop")

    def observed(self, batch: Batch) -> Batch:
        """A finished batch, with what the sink knows of its rows."""
        return batch

    def batch_done(self, batch: Batch) -> None:
        """Act on a finished batch, e.g. on its watermark."""

    def finish(self, last_batch: int) -> None:
        """Put the result in place, once the query has stopped after batch `last_batch`."""

    def discard(self) -> None:
        """Remove what is half-done, after a failure."""


@dataclass(frozen=True)
class KafkaSink(Sink):
    """Spark's own sink: each row is a record as JSON. A replayed batch writes its rows again."""

    options: Mapping[str, str]
    topic: str

    def rows(self, frame: DataFrame) -> DataFrame:
        """The rows as records."""
        return frame.select(F.to_json(F.struct(*frame.columns)).alias("value"))

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Tell the writer of the query where its rows go."""
        return writer.format("kafka").options(**self.options).option("topic", self.topic)


class _EachBatch(Sink):
    """A sink that is given the rows of a batch and the batch's number."""

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Tell the writer of the query where its rows go."""
        return writer.foreachBatch(self._keep)

    def _keep(self, rows: DataFrame, batch: int) -> None:
        raise NotImplementedError


class Staging:
    """A sibling of a directory, on the same file system, that becomes this directory, `target`.

    Driver and executors must share that file system. With `kept`, it outlives the run: the next one
    finds it under the same name.
    """

    def __init__(self, target: Path, *, kept: bool = False) -> None:
        """Create nothing yet."""
        self._target, self._kept = target, kept
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


@dataclass
class PerBatchSink(_EachBatch):
    """Counts and digests the rows, and keeps none: the noop sink of batches that are kept."""

    rows_of: Callable[[DataFrame], Sequence[DataFrame]]  # makes the frames of a batch's rows
    hashed: bool  # whether they are digested
    by_batch: dict[int, dict[str, int | None]] = field(default_factory=dict)

    def _keep(self, rows: DataFrame, batch: int) -> None:
        kept = rows.persist()
        try:
            found = [self._written(part) for part in self.rows_of(kept)]
            names = {name for one in found for name in one}
            self.by_batch[batch] = {x: sum(one.get(x) or 0 for one in found) for x in names}
        finally:
            kept.unpersist()

    def _written(self, rows: DataFrame) -> dict[str, int | None]:
        found = Observation()
        counted = observe(rows, digest=self.hashed, by=found)
        counted.write.format("noop").mode("overwrite").save()
        return dict(found.get)

    def observed(self, batch: Batch) -> Batch:
        """The batch with the counts and hashes of its rows."""
        return replace(batch, observed=self.by_batch.get(batch.id, {}))


_BATCHES = "batches"
_TABLE = "table"
_CLOCK = "clock"
_BATCH = "batch"
_ROW = "row"


@dataclass
class ParquetSink(_EachBatch):
    """Keeps every batch apart (a replayed batch replaces itself) and folds them at the end.

    The final table of `query` goes to `directory`, which is empty or does not exist. Batches after
    `last_batch`, if known, are empty and passed over, so that the query is idle when it is stopped.
    With `checkpoint`, the batches of a run that does not reach its end stay for the run that goes
    on from it; if only the table is missing, that run learns of the end from such an empty batch.
    What follows the batch to stop after is refused, so that no batch ends while the query is being
    stopped.
    """

    spark: SparkSession
    query: Query
    directory: Path
    last_batch: int | None
    checkpoint: CheckpointOptions | None = None

    def __post_init__(self) -> None:
        """Write nothing yet."""
        self._last_batch = math.inf if self.last_batch is None else self.last_batch
        self._staging = Staging(self.directory, kept=self.checkpoint is not None)
        self._batches = self._staging.path / _BATCHES
        self._schema: StructType | None = None

    def _keep(self, rows: DataFrame, batch: int) -> None:
        if self.checkpoint is not None:
            self._wait(self.checkpoint, batch)
        elif batch > self._last_batch:
            return
        self._schema = rows.schema
        target = self._batches / f"{_BATCH}={batch}"
        rows.write.mode("overwrite").parquet(f"file:{target}")

    def _wait(self, checkpoint: CheckpointOptions, batch: int) -> None:
        """Wait until a batch is due: a run that goes on has the clock of the first."""
        if checkpoint.last_batch is not None and batch > checkpoint.last_batch:
            raise JobError(f"batch {batch} is left to a later run")
        if checkpoint.pace_s and batch <= self._last_batch:
            clock = self._staging.path / _CLOCK
            if not clock.exists():
                clock.parent.mkdir(parents=True, exist_ok=True)
                clock.touch()
            due = clock.stat().st_mtime + batch * checkpoint.pace_s
            time.sleep(max(0.0, due - time.time()))

    def finish(self, last_batch: int) -> None:
        """Fold the batches into the final table and put it in place."""
        assert self._schema is not None
        schema = self._schema.add(_BATCH, LongType())
        kept = self.spark.read.schema(schema).parquet(f"file:{self._batches}")
        kept = kept.where(F.col(_BATCH) <= min(last_batch, self._last_batch))
        columns, key = self.query.columns, self.query.key
        if key:  # of the rows with a key, the one of the latest batch
            row = F.max_by(F.struct(*columns), _BATCH).alias(_ROW)
            table = kept.groupBy(*key).agg(row).select(f"{_ROW}.*")
        else:
            table = kept.select(*columns)
        target = self._staging.path / _TABLE
        table.write.mode("overwrite").parquet(f"file:{target}")
        self._staging.publish(_TABLE)

    def discard(self) -> None:
        """Remove what is half-done, after a failure."""
        self._staging.discard()


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


class FilesystemSink(_EachBatch):
    """Writes each batch aside, then moves its files to their partitions.

    Files carry the number of their batch, so that a replayed batch replaces what it left before.
    Batches after `last_batch`, if known, are empty and passed over.
    """

    def __init__(self, directory: Path, last_batch: int | None) -> None:
        """Write to `directory`, which is empty or does not exist, on a file system all share."""
        self._directory = directory
        self._last_batch = math.inf if last_batch is None else last_batch
        self._staging = directory / ".staging"

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

    def _keep(self, rows: DataFrame, batch: int) -> None:
        if batch > self._last_batch:
            return
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

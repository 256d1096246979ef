"""Take the rows of a query: drop them, count them by batch, keep the final table or q10's files.

The sink of q10 writes CSV files in a directory per minute, each marked once it is complete: as in
nexmark-flink, a partition dt=../hm=.. is committed, by an empty file `_SUCCESS`, when the watermark
is a minute past the partition's end, and at the end of the input.
"""

import math
import shutil
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import LongType, StructField, StructType

from nexmark_jobs.errors import JobError, UsageError
from nexmark_jobs.options import CheckpointOptions
from nexmark_jobs.progress import Batch, observe
from nexmark_jobs.queries import Query
from nexmark_jobs.queries.formulation import PerBatch


class Sink:
    """A sink takes the rows of one streaming query; this one is Spark's own noop sink.

    Other sinks override the methods that they need. `mistake` is the one in a person's own code
    that has ended the query, if any: Spark has only its text.
    """

    mistake: UsageError | None = None

    def rows(self, frame: DataFrame) -> DataFrame:
        """Return the rows of the query in the form that the sink takes."""
        return frame

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Configure the writer of the query for this sink."""
        return writer.format("noop")

    def observed(self, batch: Batch) -> Batch:
        """Return a finished batch, with the counts and hashes that the sink has of its rows."""
        return batch

    def batch_done(self, batch: Batch) -> None:
        """Act on a finished batch, e.g. on its watermark."""

    def finish(self, last_batch: int) -> None:
        """Put the result in place, once the query has stopped after batch `last_batch`."""

    def discard(self) -> None:
        """Remove unfinished files after a failure."""


@dataclass(frozen=True)
class KafkaSink(Sink):
    """Spark's own Kafka sink: each row is a record in JSON. A replayed batch writes rows again."""

    options: Mapping[str, str]
    topic: str

    def rows(self, frame: DataFrame) -> DataFrame:
        """Return the rows as records in JSON."""
        return frame.select(F.to_json(F.struct(*frame.columns)).alias("value"))

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Configure the writer of the query for this sink."""
        return writer.format("kafka").options(**self.options).option("topic", self.topic)


class _EachBatch(Sink):
    """A sink that is given the rows of a batch and the batch's number."""

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Configure the writer of the query for this sink."""
        return writer.foreachBatch(self._kept)

    def _kept(self, rows: DataFrame, batch: int) -> None:
        try:
            self._keep(rows, batch)
        except UsageError as error:
            self.mistake = error
            raise

    def _keep(self, rows: DataFrame, batch: int) -> None:
        raise NotImplementedError


class Staging:
    """A directory beside `target`, on the same file system, which is renamed to it at the end.

    Driver and executors must share this file system. With `kept`, the directory outlives the run:
    the next run uses it under the same name.
    """

    def __init__(self, target: Path, *, kept: bool = False) -> None:
        """Choose the name of the directory, and create nothing yet."""
        self._target, self._kept = target, kept
        # No leading dot: Spark finds no files below a directory that begins with one.
        name = "unfinished" if kept else f"{uuid.uuid4().hex}.tmp"
        self.path = target.parent / f"{target.name}.{name}"

    def publish(self, child: str) -> None:
        """Rename the directory `child` of the staging directory to the target; remove the rest."""
        if self._target.is_dir():
            self._target.rmdir()  # fails if somebody has filled it meanwhile
        (self.path / child).rename(self._target)
        shutil.rmtree(self.path, ignore_errors=True)

    def discard(self) -> None:
        """Remove the staging directory, unless a later run resumes with it."""
        if not self._kept:
            shutil.rmtree(self.path, ignore_errors=True)


@dataclass
class PerBatchSink(_EachBatch):
    """Counts and digests the rows of each batch, which it persists meanwhile, and keeps none."""

    rows_of: PerBatch  # makes the frames of a batch's rows
    hashed: bool  # whether they are digested
    by_batch: dict[int, dict[str, int | None]] = field(default_factory=dict)

    def _keep(self, rows: DataFrame, batch: int) -> None:
        kept = rows.persist()
        try:
            metrics = [self._written(part) for part in self.rows_of(kept, batch)]
            names = {name for part in metrics for name in part}
            self.by_batch[batch] = {
                name: sum(part.get(name) or 0 for part in metrics) for name in names
            }
        finally:
            kept.unpersist()

    def _written(self, rows: DataFrame) -> dict[str, int | None]:
        observation = Observation()
        counted = observe(rows, digest=self.hashed, by=observation)
        counted.write.format("noop").mode("overwrite").save()
        return dict(observation.get)

    def observed(self, batch: Batch) -> Batch:
        """Return the batch with the counts and hashes of its rows."""
        return replace(batch, observed=self.by_batch.get(batch.id, {}))


_BATCHES = "batches"
_TABLE = "table"
_CLOCK = "clock"
_BATCH = "batch"
_ROW = "row"


@dataclass
class ParquetSink(_EachBatch):
    """Writes every batch to files of its own, and folds all into the final table at the end.

    A replayed batch replaces its files. Batches after `last_batch`, if that is known, are empty and
    not written, so that the query is idle when it is stopped. With `checkpoint`, the batches of a
    run that does not reach its end stay for the run that resumes; if only the table is missing, the
    resumed run learns of the end from such an empty batch. A batch after the one to stop after is
    refused, so that no batch ends while the query is being stopped.

    Attributes:
        spark: the session.
        query: the query, with the columns and the key of its result.
        directory: the directory of the final table, which is empty or does not exist.
        last_batch: number of the last batch with rows; None if it is not known beforehand.
        checkpoint: where to stop and how fast to go; None for a run without a kept checkpoint.
        rows_of: makes the frames of a batch's rows; None where these are the rows of the query.
    """

    spark: SparkSession
    query: Query
    directory: Path
    last_batch: int | None
    checkpoint: CheckpointOptions | None = None
    rows_of: PerBatch | None = None

    def __post_init__(self) -> None:
        """Choose the directories, and write nothing yet."""
        self._last_batch = math.inf if self.last_batch is None else self.last_batch
        self._staging = Staging(self.directory, kept=self.checkpoint is not None)
        self._batches = self._staging.path / _BATCHES
        self._schema: StructType | None = None

    def _keep(self, rows: DataFrame, batch: int) -> None:
        if self.checkpoint is not None:
            self._wait(self.checkpoint, batch)
        elif batch > self._last_batch:
            return
        target = f"file:{self._batches / f'{_BATCH}={batch}'}"
        if self.rows_of is None:
            self._schema = rows.schema
            rows.write.mode("overwrite").parquet(target)
            return
        kept = rows.persist()
        try:
            for place, part in enumerate(self.rows_of(kept, batch)):
                self._schema = part.schema
                part.write.mode("append" if place else "overwrite").parquet(target)
        finally:
            kept.unpersist()

    def _wait(self, checkpoint: CheckpointOptions, batch: int) -> None:
        """Wait until a batch is due; a resumed run has the clock of the first run."""
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
        """Fold the batches into the final table, and rename it to the directory."""
        assert self._schema is not None
        columns = self._schema.names
        schema = StructType([*self._schema.fields, StructField(_BATCH, LongType())])
        kept = self.spark.read.schema(schema).parquet(f"file:{self._batches}")
        last = min(last_batch, self._last_batch)
        is_complete = self.query.output_mode == "complete"  # each batch has the whole table
        kept = kept.where(F.col(_BATCH) == last if is_complete else F.col(_BATCH) <= last)
        key = self.query.key
        if (
            key and not is_complete
        ):  # of the rows with the same key, keep the one of the latest batch
            row = F.max_by(F.struct(*columns), _BATCH).alias(_ROW)
            table = kept.groupBy(*key).agg(row).select(f"{_ROW}.*")
        else:
            table = kept.select(*columns)
        target = self._staging.path / _TABLE
        table.write.mode("overwrite").parquet(f"file:{target}")
        self._staging.publish(_TABLE)

    def discard(self) -> None:
        """Remove unfinished files after a failure."""
        self._staging.discard()


PARTITION_COLUMNS = ("dt", "hm")
COMMITTED = "_SUCCESS"
CSV = {
    "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSS",
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
"""Options of Spark's CSV writer, which removes the blanks around a text by default."""

_PARTITION_LENGTH = timedelta(minutes=1)
_COMMIT_DELAY = timedelta(minutes=1)


class FilesystemSink(_EachBatch):
    """Writes each batch to a staging directory, then moves its files to their partitions.

    Files carry the number of their batch, so that a replayed batch replaces what it left before.
    Batches after `last_batch`, if that is known, are empty and not written.
    """

    def __init__(self, directory: Path, last_batch: int | None) -> None:
        """Write to `directory`, empty or missing, on a file system that all hosts share."""
        self._directory = directory
        self._last_batch = math.inf if last_batch is None else last_batch
        self._staging = directory / ".staging"

    def batch_done(self, batch: Batch) -> None:
        """Commit the partitions that the watermark of a batch has left behind."""
        if batch.watermark is not None:
            self._commit(datetime.fromisoformat(batch.watermark) - _COMMIT_DELAY)

    def finish(self, last_batch: int) -> None:
        """Commit the remaining partitions."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._commit(None)
        shutil.rmtree(self._staging, ignore_errors=True)

    def discard(self) -> None:
        """Remove all files after a failure."""
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
        """Mark the partitions that end by `until` as complete; None means all."""
        for partition in self._directory.glob("dt=*/hm=*"):
            marker = partition / COMMITTED
            if not marker.exists() and (until is None or _end(partition) <= until):
                marker.touch()


def _end(partition: Path) -> datetime:
    day = partition.parent.name.removeprefix("dt=")
    minute = unquote(partition.name.removeprefix("hm="))
    start = datetime.fromisoformat(f"{day} {minute}").replace(tzinfo=UTC)
    return start + _PARTITION_LENGTH

"""Read the tables of a person's own: streams of laid out files, and static tables."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from nexmark_jobs import progress as reported
from nexmark_jobs.errors import JobError, UsageError
from nexmark_jobs.generator import SENTINEL_TIME
from nexmark_jobs.session import WorkDirectory
from nexmark_jobs.sources.datagen import STILL_OPEN, Feed, has_closed_all
from nexmark_jobs.sources.event_files import (
    NO_DATA_BATCHES,
    spark_pattern,
    without_sentinels,
)
from nexmark_jobs.sources.laid_out_tables import LaidOutTable, read_tables

_SENTINELS = "sentinels"
_MOST = 10


@dataclass(frozen=True)
class Tables:
    """The tables in a directory, and the sentinels that close all windows after their rows.

    A sentinel is a row with an event time far in the future and nothing else. It moves the
    watermark of its table, and is dropped before the query sees it.

    Attributes:
        spark: the session.
        directory: where the tables are.
        tables: what is known of them.
        work: the directory of the run, in which the sentinels are; None for no sentinels.
    """

    spark: SparkSession
    directory: Path
    tables: Sequence[LaidOutTable]
    work: WorkDirectory | None

    def of_kind(self, kind: str) -> DataFrame:
        """Raise UsageError: the streams of Nexmark are not among these tables."""
        raise UsageError(f"--source: {self.directory} holds no events of Nexmark; use datagen")

    def frames(self) -> dict[str, DataFrame]:
        """Return each table by its name, the streams with their watermarks."""
        return {table.name: self._frame(table) for table in self.tables}

    def check_all_read(self, frame: DataFrame) -> None:
        """Raise UsageError for a stream that a query does not read.

        The end of the input comes after the last row of every stream.
        """
        sources = _leaves(frame)
        for table in self.tables:
            if not table.static and f"FileSource[{self._pattern(table)}]" not in sources:
                problem = f"the query does not read the table {table.name}"
                raise UsageError(f"tables: {problem}; remove it from the job, or read it")

    def _frame(self, table: LaidOutTable) -> DataFrame:
        path = self._pattern(table)
        schema = self.spark.read.parquet(path).schema
        if table.static:
            return self.spark.read.schema(schema).parquet(path)
        reader = self.spark.readStream.schema(schema)
        rows = reader.option("maxFilesPerTrigger", table.files_per_batch).parquet(path)
        if table.event_time is None or table.watermark is None:
            return rows
        if self.work is None:
            return rows.withWatermark(_quoted(table.event_time), table.watermark)
        sentinels = self.spark.readStream.schema(schema).json(self.work.make(_place(table)))
        united = rows.unionByName(sentinels)
        events = united.withWatermark(_quoted(table.event_time), table.watermark)
        return without_sentinels(events, _quoted(table.event_time))

    def _pattern(self, table: LaidOutTable) -> str:
        return spark_pattern(str(self.directory / table.name))


class _End:
    """Writes sentinels after the rows, one for each table, until all windows are closed."""

    def __init__(self, source: Tables, work: WorkDirectory) -> None:
        self._tables = [each for each in source.tables if each.event_time is not None]
        self._work = work
        self._written = 0

    def is_over(self, progress: Mapping[str, Any]) -> bool:
        """Return whether all windows closed in a batch after the rows; if not, write sentinels.

        A query whose plan has no watermark has no windows. Raises JobError if windows are open
        after ten sentinels.
        """
        if reported.watermark(progress) is None or has_closed_all(progress):
            return True
        if self._written == _MOST:
            raise JobError(STILL_OPEN)
        for table in self._tables:
            line = json.dumps({table.event_time: SENTINEL_TIME}) + "\n"
            self._work.write(f"{_place(table)}/sentinel-{self._written}.json", line)
        self._written += 1
        return False


class _TableFeed(Feed):
    """How far a query has read the tables.

    The first batch of a run that goes on may have the rows of two: Spark's file source writes the
    files of a batch into a log of its own before the batch begins, and the run before may have been
    stopped between the two. Then `data_batches` becomes smaller with the last row.
    """

    def __init__(
        self,
        streams: Sequence[LaidOutTable],
        last_batch: int | None,
        is_over: Callable[[Mapping[str, Any]], bool],
    ) -> None:
        """Follow a query that reads all of `streams`."""
        batches = max(len(table.rows) for table in streams)
        events = sum(sum(table.rows) for table in streams)
        super().__init__(events, batches, last_batch, lambda _: 0, is_over)
        self._streams = streams

    def take(self, progress: Mapping[str, Any]) -> int:
        """Return the number of rows in the batch just finished, each table counted once."""
        taken, left = {}, False
        for table in self._streams:
            for source in filter(partial(_reads, table), progress["sources"]):
                start, end = (_position(source[name]) for name in ("startOffset", "endOffset"))
                taken[table.name] = sum(table.rows[start:end])
                left |= end < len(table.rows)
        if not left:
            self.data_batches = min(self.data_batches, progress["batchId"] + 1)
        return sum(taken.values())

    def why_late(self, progress: Mapping[str, Any]) -> str:
        """Return why rows of a batch came behind the watermark, and what to do about it."""
        problem = "the rows of the files are further out of order than the job's watermark allows"
        return f"{problem}; give a longer watermark, or order the files by their event time"


def _reads(table: LaidOutTable, source: Mapping[str, Any]) -> bool:
    """Tell whether a source in a progress reads a table, and not its sentinels."""
    path = source["description"].removesuffix("]")
    return path.endswith(f"/{table.name}") and not path.endswith(f"/{_place(table)}")


def _position(offset: Mapping[str, Any] | None) -> int:
    """Return how many micro-batches of a table are before an offset of Spark's file source."""
    return 0 if offset is None else int(offset["logOffset"]) + 1


def open_tables(
    spark: SparkSession, directory: Path, work: WorkDirectory, *, end_of_input: bool
) -> tuple[Tables, Feed]:
    """Return the tables of a directory, and the feed of their streams.

    Args:
        spark: the session.
        directory: where the tables are.
        work: the directory of the sentinels.
        end_of_input: whether the end of the input closes all windows.
    """
    tables = read_tables(directory)
    streams = [table for table in tables if not table.static]
    closes = end_of_input and any(table.event_time is not None for table in streams)
    source = Tables(spark, directory, tables, work if closes else None)
    if not closes:
        last = max(len(table.rows) for table in streams) - 1
        return source, _TableFeed(streams, last, lambda progress: True)
    spark.conf.set(NO_DATA_BATCHES, "false")  # Spark 3.5 does not observe the rows of such batches
    return source, _TableFeed(streams, None, _End(source, work).is_over)


def _leaves(frame: DataFrame) -> list[str]:
    """Return the leaves of the analysed plan of a frame, as Spark names its sources."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    return [str(leaves.apply(place).toString()) for place in range(leaves.size())]


def _place(table: LaidOutTable) -> str:
    return f"{_SENTINELS}/{table.name}"


def _quoted(name: str) -> str:
    """Return the name of a column in backticks."""
    return f"`{name.replace('`', '``')}`"

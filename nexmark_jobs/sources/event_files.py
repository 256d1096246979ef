"""Read event streams from recorded events: JSON lines of a Nexmark topic, or parquet."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from nexmark_jobs import boundary
from nexmark_jobs.errors import JobError, UsageError
from nexmark_jobs.generator import SENTINEL_TIME
from nexmark_jobs.session import WorkDirectory
from nexmark_jobs.sources.datagen import STILL_OPEN, Feed, has_closed_all
from nexmark_jobs.sources.recorded_events import FIELDS, KINDS, Recording

_SENTINELS = "sentinels"
_MOST = 10
_AFTER_THE_INPUT = "9998-01-01 00:00:00"
"""Sentinels, which move the watermark past every event, are later than this."""
NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
_GLOB_CHARACTERS = "\\{}[]*?"


@dataclass(frozen=True)
class Files:
    """The three streams of the files in a directory, and the sentinels that follow the events.

    Timestamps are cut to milliseconds, as the Nexmark schema has them.

    Attributes:
        spark: the session.
        path: a pattern of Spark's for the files.
        schema: the schema of parquet, or as text the schema of JSON, whose timestamps are text.
        sentinels: the sentinels.
        is_in_order: files were modified in the order of their names, so that each is a micro-batch;
            otherwise the first micro-batch has all.
        numbered: whether the events have numbers.
    """

    spark: SparkSession
    path: str
    schema: StructType | str
    sentinels: "Sentinels"
    is_in_order: bool = True
    numbered: bool = True

    def lines(self) -> DataFrame:
        """Return the unparsed lines of JSON in the column `value`, without sentinels."""
        return self._reader().text(self.path)

    def _reader(self) -> DataStreamReader:
        reader = self.spark.readStream
        return reader.option("maxFilesPerTrigger", 1) if self.is_in_order else reader

    def of_kind(self, kind: str) -> DataFrame:
        """Return the stream of the events of a kind, without a watermark."""
        reader = self._reader().schema(self.schema)
        read = reader.json if isinstance(self.schema, str) else reader.parquet
        events = events_of_kind(read(self.path), kind, numbered=self.numbered)
        return self.sentinels.follow(events, kind, numbered=self.numbered)


class Sentinels:
    """Events far in the future, in files of their own: after the input they close all windows.

    The first sentinels move the watermark, and the windows close in the batch of the next ones. A
    batch without data would close them as well, but Spark 3.5 does not observe the rows of such a
    batch, so these batches are switched off.
    """

    def __init__(self, work: WorkDirectory | None, directory: str = _SENTINELS) -> None:
        """Keep the files in `directory` in `work`; without `work` there are no sentinels."""
        self._work = work
        self._directory = directory
        self._written = 0
        if work:
            work.make(directory)
            work.spark.conf.set(NO_DATA_BATCHES, "false")

    def follow(self, events: DataFrame, name: str, *, numbered: bool) -> DataFrame:
        """Return events of the kind `name`, united with the sentinels of this kind."""
        if self._work is None:
            return events
        reader = self._work.spark.readStream.schema(json_schema())
        sentinels = reader.json(self._work.child(self._directory))
        return events.unionByName(events_of_kind(sentinels, name, numbered=numbered))

    def __bool__(self) -> bool:
        """Return whether there are sentinels."""
        return self._work is not None

    def closed_all(self, progress: Mapping[str, Any]) -> bool:
        """Return whether all windows closed in a batch after the data; if not, write sentinels.

        Raises JobError if windows are open after ten of them.
        """
        if self._work is None or has_closed_all(progress):
            return True
        if self._written == _MOST:
            raise JobError(STILL_OPEN)
        self._work.write(f"{self._directory}/sentinels-{self._written}.json", _sentinel_lines())
        self._written += 1
        return False


def without_sentinels(events: DataFrame, event_time: str) -> DataFrame:
    """Return a stream with a watermark without its sentinels, which have moved the watermark.

    Spark moves conditions of a query below the watermark, where they could drop the sentinels
    before they have moved it. It moves nothing below a condition that is not deterministic, as the
    number of a partition is none.

    Args:
        events: The stream.
        event_time: The column of its event time.
    """
    before = F.col(event_time) < F.lit(_AFTER_THE_INPUT).cast("timestamp")
    return events.where(F.col(event_time).isNull() | before | (F.spark_partition_id() < 0))


def _feed(events: Sequence[int], sentinels: Sentinels) -> Feed:
    """Return the feed of recorded events; `events` has the number of them in each batch."""

    def events_in(batch: int) -> int:
        return events[batch] if batch < len(events) else 0

    last = None if sentinels else len(events) - 1
    return Feed(sum(events), len(events), last, events_in, sentinels.closed_all)


def open_files(
    spark: SparkSession, recording: Recording, work: WorkDirectory, *, end_of_input: bool
) -> tuple[Files, Feed]:
    """Return the streams and the feed of a recording.

    Args:
        spark: the session.
        recording: the files.
        work: the directory of the sentinels.
        end_of_input: whether sentinels follow the events.

    Raises:
        UsageError: a parquet file lacks a column, or has an event that lacks a field.
    """
    schema: StructType | str = json_schema()
    if recording.is_parquet:
        recording, schema = _check_parquet(spark, recording)
    sentinels = Sentinels(work if end_of_input else None)
    path = spark_pattern(str(recording.directory))
    is_in_order = recording.is_in_order
    files = Files(spark, path, schema, sentinels, is_in_order, recording.numbered)
    batches = recording.events if is_in_order else (sum(recording.events),)
    return files, _feed(batches, sentinels)


def spark_pattern(path: str) -> str:
    """Return the pattern of Spark's that matches a path and nothing else."""
    return "".join(f"\\{each}" if each in _GLOB_CHARACTERS else each for each in path)


def json_schema() -> str:
    """Return the schema of a line of JSON, with timestamps as text."""
    entities = []
    for name, fields in FIELDS.items():
        columns = ", ".join(f"{field}: {kind}" for field, kind in fields.items())
        entities.append(f"{name} struct<{columns.replace('timestamp', 'string')}>")
    return f"n bigint, event_type int, {', '.join(entities)}"


def events_of_kind(events: DataFrame, name: str, *, numbered: bool) -> DataFrame:
    """Return the entities of the kind `name` among `events`, in the types of the schema."""
    wanted = events.where(F.col("event_type") == KINDS.index(name))
    return entities(wanted, name, numbered=numbered)


def entities(events: DataFrame, name: str, *, numbered: bool) -> DataFrame:
    """Return the fields of `events`, all of the kind `name`, in the types of the schema."""
    columns = [_typed(f"{name}.{field}", kind).alias(field) for field, kind in FIELDS[name].items()]
    return events.select(*([F.col("n").cast("bigint").alias("n")] if numbered else []), *columns)


def _typed(field: str, kind: str) -> Column:
    column = F.col(field).cast(kind)
    return F.timestamp_millis(F.unix_millis(column)) if kind == "timestamp" else column


def _check_parquet(spark: SparkSession, recording: Recording) -> tuple[Recording, StructType]:
    read = spark.read.parquet(*(str(file) for file in recording.files))
    fields = {name: read.schema[name].dataType for name in read.columns}
    if "event_type" not in fields:
        raise UsageError(f"--source: {recording.directory}: no column event_type; dump it again")
    for name in KINDS:
        entity = fields.get(name)
        known = set(entity.names) if isinstance(entity, StructType) else set()
        missing = [field for field in FIELDS[name] if field not in known]
        if missing:
            column = f"{name}.{missing[0]}"
            raise UsageError(f"--source: {recording.directory}: no column {column}; dump it again")
    number = F.col("n") if "n" in fields else F.lit(None)
    per_file = read.groupBy(F.input_file_name().alias("file")).agg(
        F.count(F.lit(1)).alias("events"),
        F.count(number).alias("numbered"),
        F.count_if(~is_event()).alias("bad"),
    )
    rows = {row["file"].rsplit("/", 1)[-1]: row for row in per_file.collect()}
    for name in sorted(rows):
        if rows[name]["bad"]:
            bad = f"{rows[name]['bad']} events lack a field or an event_type of 0, 1 or 2"
            raise UsageError(f"--source: {recording.directory / name}: {bad}; dump it again")
    events = tuple(
        rows[file.name]["events"] if file.name in rows else 0 for file in recording.files
    )
    if not sum(events):
        raise UsageError(f"--source: {recording.directory} holds no events; record some first")
    numbered = all(row["numbered"] == row["events"] for row in rows.values())
    return replace(recording, events=events, numbered=numbered), read.schema


def is_event() -> Column:
    """Return whether a row has an event_type and every field of its entity, each of its type."""
    complete = [
        reduce(
            Column.__and__,
            (has_field(name, field) for field in FIELDS[name]),
            F.col("event_type") == place,
        )
        for place, name in enumerate(KINDS)
    ]
    return F.coalesce(reduce(Column.__or__, complete), F.lit(False))


def has_field(name: str, field: str) -> Column:
    """Return whether a row has a field of its entity `name` in the right type."""
    return F.expr(f"try_cast({name}.{field} AS {FIELDS[name][field]})").isNotNull()


def _sentinel_lines() -> str:
    values = {"bigint": 0, "string": "", "timestamp": SENTINEL_TIME}
    lines = (
        {
            "event_type": place,
            name: {field: values[kind] for field, kind in FIELDS[name].items()},
        }
        for place, name in enumerate(KINDS)
    )
    return "".join(json.dumps(line) + "\n" for line in lines)


_PARTS = "boundary"


def open_boundary(work: WorkDirectory, *, end_of_input: bool) -> tuple[Files, Feed]:
    """Return the streams and the feed of the boundary events, which are written below `work`.

    The sentinels go to the same directory, so that the streams read them as events.
    """
    directory = work.make(_PARTS)
    parts = boundary.lines()
    for number, part in enumerate(parts):
        # A second apart, because Spark reads files in the order of their ages.
        text = "".join(f"{line}\n" for line in part)
        work.write(f"{_PARTS}/events-{number}.json", text, age_s=len(parts) - number)
    sentinels = Sentinels(work if end_of_input else None, _PARTS)
    files = Files(work.spark, directory, json_schema(), Sentinels(None))
    return files, _feed([len(part) for part in parts], sentinels)

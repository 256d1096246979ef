"""Event streams read from recorded events: JSON lines of a Nexmark topic, or parquet."""

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
_NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
_GLOB_CHARACTERS = "\\{}[]*?"


@dataclass(frozen=True)
class Files:
    """The three streams of the files in a directory, and the sentinels that follow its events.

    `path` is a pattern of Spark's. Files are read one per micro-batch if they are as old as their
    names are in order, otherwise all in the first one. Timestamps are cut to milliseconds, as the
    schema has them; the `schema` of JSON, which is a text, has them as text.
    """

    spark: SparkSession
    path: str
    schema: StructType | str
    sentinels: "Sentinels"
    is_in_order: bool = True
    numbered: bool = True

    def lines(self) -> DataFrame:
        """Return the lines of JSON in the column `value`, unparsed, without an end of input."""
        return self._reader().text(self.path)

    def _reader(self) -> DataStreamReader:
        reader = self.spark.readStream
        return reader.option("maxFilesPerTrigger", 1) if self.is_in_order else reader

    def of_kind(self, kind: str) -> DataFrame:
        """The stream of the events of a kind, without a watermark."""
        reader = self._reader().schema(self.schema)
        read = reader.json if isinstance(self.schema, str) else reader.parquet
        events = events_of_kind(read(self.path), kind, numbered=self.numbered)
        return self.sentinels.follow(events, kind, numbered=self.numbered)


class Sentinels:
    """Events far in the future, in files of their own: behind the input they close all windows.

    The first ones move the watermark, and the windows close in the batch of the next ones. Batches
    without data would do that as well, but Spark 3.5 does not observe what these yield, so there
    are none.
    """

    def __init__(self, work: WorkDirectory | None, directory: str = _SENTINELS) -> None:
        """Keep them in `directory` in `work`; without `work` there are none."""
        self._work = work
        self._directory = directory
        self._written = 0
        if work:
            work.make(directory)
            work.spark.conf.set(_NO_DATA_BATCHES, "false")

    def follow(self, events: DataFrame, name: str, *, numbered: bool) -> DataFrame:
        """`events`, which are all called `name`, united with the sentinels of that name."""
        if self._work is None:
            return events
        reader = self._work.spark.readStream.schema(json_schema())
        sentinels = reader.json(self._work.child(self._directory))
        return events.unionByName(events_of_kind(sentinels, name, numbered=numbered))

    def __bool__(self) -> bool:
        """Return whether there are such files."""
        return self._work is not None

    def closed_all(self, progress: Mapping[str, Any]) -> bool:
        """Whether nothing more can come after a batch behind the data; if it can, write some.

        JobError if enough were written, but the windows are still open.
        """
        if self._work is None or has_closed_all(progress):
            return True
        if self._written == _MOST:
            raise JobError(STILL_OPEN)
        self._work.write(f"{self._directory}/sentinels-{self._written}.json", _sentinel_lines())
        self._written += 1
        return False


def _feed(events: Sequence[int], sentinels: Sentinels) -> Feed:
    """The batches of recorded events, each with its number of them, and the sentinels behind."""

    def events_in(batch: int) -> int:
        return events[batch] if batch < len(events) else 0

    last = None if sentinels else len(events) - 1
    return Feed(sum(events), len(events), last, events_in, sentinels.closed_all)


def open_files(
    spark: SparkSession, recording: Recording, work: WorkDirectory, *, end_of_input: bool
) -> tuple[Files, Feed]:
    """Streams and feed of a recording; sentinels go below `work` if `end_of_input`.

    UsageError for a parquet file that lacks a column or has an event that lacks a field.
    """
    schema: StructType | str = json_schema()
    if recording.is_parquet:
        recording, schema = _check_parquet(spark, recording)
    sentinels = Sentinels(work if end_of_input else None)
    path = "".join(f"\\{c}" if c in _GLOB_CHARACTERS else c for c in str(recording.directory))
    is_in_order = recording.is_in_order
    files = Files(spark, path, schema, sentinels, is_in_order, recording.numbered)
    batches = recording.events if is_in_order else (sum(recording.events),)
    return files, _feed(batches, sentinels)


def json_schema() -> str:
    """Schema of a line, timestamps as text."""
    entities = []
    for name, fields in FIELDS.items():
        columns = ", ".join(f"{field}: {kind}" for field, kind in fields.items())
        entities.append(f"{name} struct<{columns.replace('timestamp', 'string')}>")
    return f"n bigint, event_type int, {', '.join(entities)}"


def events_of_kind(events: DataFrame, name: str, *, numbered: bool) -> DataFrame:
    """The entities called `name` among `events`, in the types of the schema."""
    wanted = events.where(F.col("event_type") == KINDS.index(name))
    return entities(wanted, name, numbered=numbered)


def entities(events: DataFrame, name: str, *, numbered: bool) -> DataFrame:
    """Return the fields of `events`, all of the kind `name`, in the types of the schema."""
    columns = [_typed(f"{name}.{f}", kind).alias(f) for f, kind in FIELDS[name].items()]
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
    found = {row["file"].rsplit("/", 1)[-1]: row for row in per_file.collect()}
    for name in sorted(found):
        if found[name]["bad"]:
            bad = f"{found[name]['bad']} events lack a field or an event_type of 0, 1 or 2"
            raise UsageError(f"--source: {recording.directory / name}: {bad}; dump it again")
    events = tuple(found[f.name]["events"] if f.name in found else 0 for f in recording.files)
    if not sum(events):
        raise UsageError(f"--source: {recording.directory} holds no events; record some first")
    numbered = all(row["numbered"] == row["events"] for row in found.values())
    return replace(recording, events=events, numbered=numbered), read.schema


def is_event() -> Column:
    """Whether a row has an event_type and every field of its entity, each of its type."""
    whole = (reduce(Column.__and__, (has_field(x, field) for field in FIELDS[x])) for x in KINDS)
    complete = [(F.col("event_type") == place) & x for place, x in enumerate(whole)]
    return F.coalesce(reduce(Column.__or__, complete), F.lit(False))


def has_field(name: str, field: str) -> Column:
    """Whether a row has a field of the entity called `name`, of the right type."""
    return F.expr(f"try_cast({name}.{field} AS {FIELDS[name][field]})").isNotNull()


def _sentinel_lines() -> str:
    values = {"bigint": 0, "string": "", "timestamp": SENTINEL_TIME}
    lines = (
        {"event_type": place, name: {f: values[kind] for f, kind in FIELDS[name].items()}}
        for place, name in enumerate(KINDS)
    )
    return "".join(json.dumps(line) + "\n" for line in lines)


_PARTS = "boundary"


def open_boundary(work: WorkDirectory, *, end_of_input: bool) -> tuple[Files, Feed]:
    """Streams and feed of the boundary events, which are written below `work`.

    The sentinels of the feed go to the same directory: the streams need not follow them.
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

"""Event streams read from recorded events: JSON lines of a Nexmark topic, or parquet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from nexmark_jobs.errors import UsageError
from nexmark_jobs.generator import SENTINEL_TIME
from nexmark_jobs.sources.feed import has_closed_all
from nexmark_jobs.sources.recording import FIELDS, KINDS, Recording
from nexmark_jobs.workdir import WorkDirectory

_SENTINELS = "sentinels"
_NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
_GLOB_CHARACTERS = "\\{}[]*?"


@dataclass(frozen=True)
class Files:
    """The three streams of a recording; each reads the files anew.

    Files are read one per micro-batch if they are as old as their names are in order, otherwise
    all in the first one. Timestamps are cut to milliseconds, as the schema has them.

    Attributes:
        spark: the session.
        recording: what is in the directory.
        schema: the files' schema; of JSON, with timestamps as text.
        sentinels: directory in which the feed puts sentinel events, or None.
    """

    spark: SparkSession
    recording: Recording
    schema: StructType | str
    sentinels: str | None

    def persons(self) -> DataFrame:
        """The stream of persons, without a watermark."""
        return self._entity("person")

    def auctions(self) -> DataFrame:
        """The stream of auctions, without a watermark."""
        return self._entity("auction")

    def bids(self) -> DataFrame:
        """The stream of bids, without a watermark."""
        return self._entity("bid")

    def _entity(self, name: str) -> DataFrame:
        reader = self.spark.readStream.schema(self.schema)
        if self.recording.is_in_order:
            reader = reader.option("maxFilesPerTrigger", 1)
        path = _escaped(str(self.recording.directory))
        recorded = reader.parquet(path) if self.recording.is_parquet else reader.json(path)
        events = _select(recorded, name, numbered=self.recording.numbered)
        if self.sentinels is None:
            return events
        later = self.spark.readStream.schema(json_schema()).json(self.sentinels)
        return events.unionByName(_select(later, name, numbered=self.recording.numbered))


class FilesFeed:
    """The batches of a recording, and the sentinels behind it.

    Sentinels are written after the last batch of the recording. Where Spark runs no batches
    without data, which close the windows, they are written again, to give it some.
    """

    def __init__(self, recording: Recording, work: WorkDirectory | None) -> None:
        """Follow a query over `recording`; `work` is where the sentinels go, None for none."""
        self._events = recording.events if recording.is_in_order else (sum(recording.events),)
        self._work = work
        self._sentinels = 0
        self._enough = 1
        if work and work.spark.conf.get(_NO_DATA_BATCHES) == "false":
            self._enough = 2

    @property
    def events(self) -> int:
        """Number of events in the input, without sentinels."""
        return sum(self._events)

    @property
    def data_batches(self) -> int:
        """Number of batches with events; later ones are of the end of the input."""
        return len(self._events)

    @property
    def last_batch(self) -> int | None:
        """Number of the last batch, where that is known beforehand."""
        return None if self._work else self.data_batches - 1

    def take(self, progress: Mapping[str, Any]) -> int:
        """Number of events in the batch just finished; 0 from the end of the input on."""
        batch = int(progress["batchId"])
        return self._events[batch] if batch < self.data_batches else 0

    def finished(self, progress: Mapping[str, Any]) -> bool:
        """Whether the batch just finished was the last one."""
        if progress["batchId"] < self.data_batches - 1:
            return False
        if self._work is None or has_closed_all(progress):
            return True
        if self._sentinels < self._enough:
            self._work.write(f"{_SENTINELS}/{self._sentinels}.json", _sentinel_lines())
            self._sentinels += 1
        return False


def open_files(
    spark: SparkSession, recording: Recording, work: WorkDirectory, *, end_of_input: bool
) -> tuple[Files, FilesFeed]:
    """Streams and feed of a recording; sentinels go below `work` if `end_of_input`.

    Raises:
        UsageError: A parquet file lacks a column or has an event that lacks a field.
    """
    schema: StructType | str = json_schema()
    if recording.is_parquet:
        recording, schema = _check_parquet(spark, recording)
    sentinels = work.make(_SENTINELS) if end_of_input else None
    files = Files(spark, recording, schema, sentinels)
    return files, FilesFeed(recording, work if end_of_input else None)


def json_schema() -> str:
    """Schema of a line, timestamps as text."""
    entities = (f"{name} struct<{_ddl(name).replace('timestamp', 'string')}>" for name in KINDS)
    return f"n bigint, event_type int, {', '.join(entities)}"


def _ddl(name: str) -> str:
    return ", ".join(f"{field}: {kind}" for field, kind in FIELDS[name].items())


def _select(events: DataFrame, name: str, *, numbered: bool) -> DataFrame:
    """The entities called `name` among `events`, in the types of the schema."""
    wanted = events.where(F.col("event_type") == KINDS.index(name))
    columns = [_typed(f"{name}.{f}", kind).alias(f) for f, kind in FIELDS[name].items()]
    return wanted.select(*([F.col("n").cast("bigint").alias("n")] if numbered else []), *columns)


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
            raise UsageError(
                f"--source: {recording.directory}: no column {name}.{missing[0]}; dump it again"
            )
    number = F.col("n") if "n" in fields else F.lit(None)
    per_file = read.groupBy(F.input_file_name().alias("file")).agg(
        F.count(F.lit(1)).alias("events"),
        F.count(number).alias("numbered"),
        F.count_if(~F.coalesce(_is_event(), F.lit(False))).alias("bad"),
    )
    found = {row["file"].rsplit("/", 1)[-1]: row for row in per_file.collect()}
    for name in sorted(found):
        if found[name]["bad"]:
            raise UsageError(
                f"--source: {recording.directory / name}: {found[name]['bad']} events lack a field "
                "or an event_type of 0, 1 or 2; dump it again"
            )
    events = tuple(found[f.name]["events"] if f.name in found else 0 for f in recording.files)
    if not sum(events):
        raise UsageError(f"--source: {recording.directory} holds no events; record some first")
    numbered = all(row["numbered"] == row["events"] for row in found.values())
    return replace(recording, events=events, numbered=numbered), read.schema


def _is_event() -> Column:
    """Whether a row has an event_type and every field of its entity; NULL counts as no."""
    complete = [
        (F.col("event_type") == place)
        & reduce(Column.__and__, (F.col(f"{name}.{field}").isNotNull() for field in FIELDS[name]))
        for place, name in enumerate(KINDS)
    ]
    return reduce(Column.__or__, complete)


def _sentinel_lines() -> str:
    """One event of each kind, far in the future."""
    values = {"bigint": 0, "string": "", "timestamp": SENTINEL_TIME}
    lines = (
        {"event_type": place, name: {f: values[kind] for f, kind in FIELDS[name].items()}}
        for place, name in enumerate(KINDS)
    )
    return "".join(json.dumps(line) + "\n" for line in lines)


def _escaped(path: str) -> str:
    """The path, safe from being taken for a pattern."""
    return "".join(f"\\{c}" if c in _GLOB_CHARACTERS else c for c in path)

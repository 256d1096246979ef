"""A Spark session for the query tests, and ways to run a query over a handful of events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from nexmark_jobs.options import parse
from nexmark_jobs.queries import QUERIES, Streams
from nexmark_jobs.run_query import run
from nexmark_jobs.sources.recorded_events import FIELDS, KINDS
from tests.queries.event_builders import Event
from tests.quick_jvm import QUICK_JVM

Rows = list[tuple[Any, ...]]
Evaluate = Callable[..., Rows]
RunJob = Callable[..., tuple[dict[str, Any], Rows]]


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session with two cores for all tests of the queries."""
    session = (
        SparkSession.builder.master("local[2]")
        .appName("query tests")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", QUICK_JVM)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@dataclass(frozen=True)
class Table:
    """The three streams as fixed tables: a formulation means the same over them."""

    spark: SparkSession
    events: Sequence[Event]
    numbered: bool

    def of_kind(self, kind: str) -> DataFrame:
        columns = {"n": "bigint"} if self.numbered else {}
        columns |= FIELDS[kind]
        rows = [
            tuple((fields | {"n": number})[column] for column in columns)
            for number, (own, fields) in enumerate(self.events)
            if own == kind
        ]
        schema = ", ".join(f"{column} {type_}" for column, type_ in columns.items())
        return self.spark.createDataFrame(rows, schema)


@pytest.fixture
def evaluate(spark: SparkSession) -> Evaluate:
    """evaluate(query, formulation, events, numbered=True): the sorted rows, by position."""

    def rows(query: str, formulation: str, events: Sequence[Event], numbered: bool = True) -> Rows:
        chosen = QUERIES[query].formulation(spark.version, formulation)
        frame = chosen.build(Streams(spark, Table(spark, events, numbered)))
        assert tuple(frame.columns) == QUERIES[query].columns
        return plain(frame.collect())

    return rows


@pytest.fixture
def run_job(spark: SparkSession, tmp_path: Path) -> RunJob:
    """run_job(*arguments): the result of a run into a parquet sink, and the sorted rows."""
    numbers = count()

    def job(*arguments: str) -> tuple[dict[str, Any], Rows]:
        out = tmp_path / f"out-{next(numbers)}"
        result = run(
            spark,
            parse([*arguments, "--sink", f"parquet:{out}", "--result", f"{out}.json"]),
            quiet=True,
        )
        return result, plain(spark.read.parquet(str(out)).collect())

    return job


def plain(rows: Sequence[Row]) -> Rows:
    """The rows as sorted tuples; moments in UTC."""
    tuples = (tuple(_utc(value) for value in row) for row in rows)
    return sorted(tuples, key=lambda row: [(value is not None, value) for value in row])


def _utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def write_topic(file: Path, events: Sequence[Event]) -> None:
    """Write a file of JSON lines, without event numbers and without absent keys."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        {"event_type": KINDS.index(kind), kind: {k: _json(v) for k, v in fields.items()}}
        for kind, fields in events
    )
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _json(value: Any) -> Any:
    return f"{value:%Y-%m-%d %H:%M:%S}.{value.microsecond // 1000:03d}" if isinstance(
        value, datetime
    ) else value  # fmt: skip

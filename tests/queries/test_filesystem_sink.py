"""The files of q10: each row in its partition, once, and partitions committed by the watermark."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from nexmark.expectations.suites import validate
from nexmark_jobs import boundary
from nexmark_jobs.options import parse
from nexmark_jobs.progress import Batch
from nexmark_jobs.run_query import run
from nexmark_jobs.sinks import FilesystemSink

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, times: list[str]) -> DataFrame:
    values = [(1, 2, 3, datetime.fromisoformat(t), 'a,"\\b', t[:10], t[11:16]) for t in times]
    return spark.createDataFrame(
        values,
        "auction bigint, bidder bigint, price bigint, dateTime timestamp, extra string, "
        "dt string, hm string",
    )


def batch(watermark: str) -> Batch:
    now = datetime.now()
    return Batch(0, "data", now, now, 1, 1, {}, watermark)


def committed(directory: Path) -> list[str]:
    return sorted(f"{m.parent.parent.name}/{m.parent.name}" for m in directory.rglob("_SUCCESS"))


def test_partition_is_committed_a_minute_after_its_end(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sink = FilesystemSink(out, None)
    sink._keep(rows(spark, ["2015-07-15T23:58:59", "2015-07-15T23:59:00"]), 0)
    sink.batch_done(batch("2015-07-15T23:59:59.999Z"))
    assert committed(out) == []
    sink.batch_done(batch("2015-07-16T00:00:00.000Z"))
    assert committed(out) == ["dt=2015-07-15/hm=23%3A58"]
    sink.batch_done(batch("2015-07-16T00:01:00.000Z"))
    assert committed(out) == ["dt=2015-07-15/hm=23%3A58", "dt=2015-07-15/hm=23%3A59"]


def test_replayed_batch_replaces_its_files(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sink = FilesystemSink(out, None)
    minutes = ["2015-07-15T00:00:01", "2015-07-15T00:01:01", "2015-07-15T00:01:02"]
    sink._keep(rows(spark, minutes[:1]), 0)
    sink._keep(rows(spark, minutes), 1)
    sink._keep(rows(spark, minutes), 1)
    sink.finish(1)
    lines = [line for file in out.rglob("*.csv") for line in file.read_text().splitlines()]
    assert len(lines) == 4
    assert {file.parent.name: None for file in out.rglob("*.csv")}.keys() == {
        "hm=00%3A00",
        "hm=00%3A01",
    }
    assert lines[0] == r'1,2,3,2015-07-15 00:00:01.000,"a,\"\\b"'
    assert not (out / ".staging").exists()


def test_run_commits_every_partition_and_loses_no_row(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["--query", "q10", "--events", "1000", "--tps", "5", "--rows-per-batch", "300"]
    options = parse([*arguments, "--sink", f"filesystem:{out}", "--result", f"{tmp_path}/r.json"])
    result = run(spark, options, quiet=True)
    partitions = [minute for day in out.iterdir() for minute in day.iterdir()]
    assert len(partitions) == 4  # 200 s
    assert all((partition / "_SUCCESS").exists() for partition in partitions)
    written = sum(len(file.read_text().splitlines()) for file in out.rglob("*.csv"))
    assert written == result["output_rows"] == 920


def test_every_text_is_written_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    """Blanks around it, too, which Spark's CSV writer takes away by default."""
    out, events = tmp_path / "out", tmp_path / "events"
    events.mkdir()
    boundary.write(events)
    arguments = ["--query", "q10", "--source", "boundary", "--result", f"{tmp_path}/r.json"]
    run(spark, parse([*arguments, "--sink", f"filesystem:{out}"]), quiet=True)
    assert validate("q10", str(out), str(events), None, "filesystem").success

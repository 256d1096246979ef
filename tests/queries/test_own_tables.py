"""A job over files of a person's own reads every row once, and the end closes its windows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from nexmark.config import Job
from nexmark.config.job_tables import JobTable
from nexmark.inputs.layout import lay_out
from nexmark_jobs import own_jobs
from nexmark_jobs.errors import LateRowsError, UsageError
from nexmark_jobs.options import parse
from nexmark_jobs.run_query import run
from nexmark_jobs.sources.laid_out_tables import LaidOutTable, write_tables
from tests.queries.conftest import RunJob, plain

TIME = "TIMESTAMPTZ '2026-01-01 00:00:00+00' + INTERVAL (range) SECOND"
WINDOWS = """\
SELECT country, window.start AS begin, count(*) AS orders
FROM orders JOIN country USING (code)
GROUP BY country, window(at, '10 seconds')
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the jobs of this process."""
    monkeypatch.setattr(own_jobs.own_query, "__defaults__", (tmp_path / "own",))
    return tmp_path / "own"


def job(own: Path, sql: str, output_mode: str = "append", **more: Any) -> None:
    """Write the job `mine`."""
    (own / "mine").mkdir(parents=True)
    (own / "mine" / "mine.sql").write_text(sql)
    content = {"name": "mine", "formulation": "sql-1", "file": "mine.sql", "function": ""}
    content |= {"output_mode": output_mode, "key": [], "py_files": [], **more}
    (own / "mine" / "job.json").write_text(json.dumps(content))


def tables(directory: Path, *made: tuple[LaidOutTable, list[str]]) -> str:
    """Write tables, each with a SELECT for every file; return the argument for them."""
    for table, selects in made:
        (directory / table.name).mkdir(parents=True)
        for place, select in enumerate(selects):
            batch, part = divmod(place, table.files_per_batch)
            file = directory / table.name / f"{batch:05}-{part:02}.parquet"
            duckdb.execute(f"SET TimeZone = 'UTC'; COPY ({select}) TO '{file}'")
    write_tables(directory, [table for table, _ in made])
    return f"tables:{directory}"


def orders(rows: tuple[int, ...], name: str = "orders") -> tuple[LaidOutTable, list[str]]:
    """Return a stream with an order each second, of two countries, in two files a batch."""
    selects, first = [], 0
    for count in rows:
        for low, high in ((first, first + count // 2), (first + count // 2, first + count)):
            codes = "CASE range % 2 WHEN 0 THEN 'ch' ELSE 'at' END AS code"
            selects.append(f"SELECT range AS id, {codes}, {TIME} AS at FROM range({low}, {high})")
        first += count
    return LaidOutTable(name, rows, 2, event_time="at", watermark="5 seconds"), selects


COUNTRY = (
    LaidOutTable("country", (2,), 1, static=True),
    ["SELECT * FROM (VALUES ('ch', 'Switzerland'), ('at', 'Austria')) AS made(code, country)"],
)


def test_every_window_comes_out_with_every_row(own: Path, run_job: RunJob, tmp_path: Path) -> None:
    job(own, WINDOWS)
    source = tables(tmp_path / "in", orders((40, 40, 15)), COUNTRY)
    result, rows = run_job("--query", "mine", "--source", source)
    assert result["input_rows"] == 95
    assert [each["input_rows"] for each in result["batches"]][:3] == [40, 40, 15]
    assert len(rows) == 2 * 10
    assert {row[2] for row in rows[:-1]} <= {5, 3, 2}
    assert sum(row[2] for row in rows) == 95
    assert {row[0] for row in rows} == {"Switzerland", "Austria"}


@pytest.mark.parametrize("streams", [("orders",), ("orders", "paid")])
def test_a_run_that_goes_on_may_read_two_batches_in_one(
    own: Path, spark: SparkSession, run_job: RunJob, tmp_path: Path, streams: tuple[str, ...]
) -> None:
    """The log of Spark's file source had the next files when the run before was stopped."""
    union = " UNION ALL ".join(f"SELECT code, at FROM {name}" for name in streams)
    job(own, WINDOWS.replace("FROM orders", f"FROM ({union}) AS orders"))
    made = [orders((40, 40, 40, 15), name) for name in streams]
    words = ["--query", "mine", "--source", tables(tmp_path / "in", *made, COUNTRY)]
    _, rows = run_job(*words)
    kept = [f"--checkpoint={tmp_path}/kept", f"--sink=parquet:{tmp_path}/table"]
    kept += [f"--result={tmp_path}/result.json"]
    run(spark, parse([*words, *kept, "--stop-after-batch", "1"]), quiet=True)
    for path in (tmp_path / "kept" / "checkpoint").rglob("[2-9]"):
        if path.parent.name == "offsets" or path.parent.parent.name == "sources":
            path.unlink()
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    entries = (tmp_path / "kept" / "checkpoint" / "sources").glob("*/0")
    (log,) = [each.parent for each in entries if "/orders/00000-" in each.read_text()]
    entry = (log / "1").read_text().replace("/00001-", "/00002-")
    (log / "2").write_text(entry.replace('"batchId":1', '"batchId":2'))
    rest = run(spark, parse([*words, *kept]), quiet=True)
    assert rest["input_rows"] == 55 * len(streams)
    assert rest["batches"][0]["input_rows"] == 55 + 40 * (len(streams) - 1)
    assert plain(spark.read.parquet(f"{tmp_path}/table").collect()) == rows


def test_what_follows_the_input_puts_out_no_row(own: Path, run_job: RunJob, tmp_path: Path) -> None:
    """A row without an event time is a row as well."""
    job(own, "SELECT id, at FROM orders")
    table, selects = orders((4, 4))
    selects[0] = selects[0].replace(f"{TIME} AS at", "NULL::TIMESTAMPTZ AS at")
    source = tables(tmp_path / "in", (table, selects))
    result, rows = run_job("--query", "mine", "--source", source)
    assert (result["output_rows"], len(rows)) == (8, 8)


def test_a_condition_that_no_sentinel_meets_leaves_no_window_open(
    own: Path, run_job: RunJob, tmp_path: Path
) -> None:
    job(
        own, "SELECT window.start, count(*) FROM orders WHERE id >= 60 GROUP BY window(at, '1 day')"
    )
    source = tables(tmp_path / "in", orders((40, 40)))
    _, rows = run_job("--query", "mine", "--source", source)
    assert [row[1] for row in rows] == [20]


def test_two_streams_are_read_in_step_and_to_the_end_of_both(
    own: Path, run_job: RunJob, tmp_path: Path
) -> None:
    joined = "SELECT o.id FROM orders o JOIN paid p ON o.id = p.id AND p.at >= o.at"
    left = f"{joined} AND p.at <= o.at + INTERVAL 3 SECONDS".replace("JOIN", "LEFT JOIN")
    job(own, left.replace("SELECT o.id", "SELECT o.id, p.id AS paid"))
    source = tables(tmp_path / "in", orders((20, 20, 20)), orders((20, 20), "paid"))
    result, rows = run_job("--query", "mine", "--source", source)
    assert [each["input_rows"] for each in result["batches"]][:3] == [40, 40, 20]
    assert len(rows) == 60
    assert sum(row[1] is None for row in rows) == 20


def test_in_update_mode_the_last_row_of_a_key_counts(
    own: Path, run_job: RunJob, tmp_path: Path
) -> None:
    job(own, "SELECT code, count(*) AS orders FROM orders GROUP BY code", "update", key=["code"])
    source = tables(tmp_path / "in", orders((40, 40)))
    _, rows = run_job("--query", "mine", "--source", source)
    assert rows == [("at", 40), ("ch", 40)]


def test_a_stream_without_event_time(own: Path, run_job: RunJob, tmp_path: Path) -> None:
    job(own, "SELECT id FROM orders WHERE code = 'ch'")
    plain = LaidOutTable("orders", (40, 40), 2)
    source = tables(tmp_path / "in", (plain, orders((40, 40))[1]))
    result, rows = run_job("--query", "mine", "--source", source)
    assert len(rows) == 40
    assert len(result["batches"]) == 2


def test_a_table_read_twice_is_read_as_two(own: Path, run_job: RunJob, tmp_path: Path) -> None:
    job(own, "SELECT id FROM orders WHERE code = 'ch' UNION ALL SELECT id FROM orders")
    source = tables(tmp_path / "in", orders((40,)))
    result, rows = run_job("--query", "mine", "--source", source)
    assert (result["input_rows"], len(rows)) == (40, 60)


def test_a_stream_that_is_not_read_is_named(own: Path, run_job: RunJob, tmp_path: Path) -> None:
    job(own, "SELECT id FROM orders")
    source = tables(tmp_path / "in", orders((40,)), orders((40, 40), "paid"))
    with pytest.raises(UsageError, match="tables: the query does not read the table paid; remove"):
        run_job("--query", "mine", "--source", source)


def test_rows_behind_the_watermark_are_no_result(
    own: Path, run_job: RunJob, tmp_path: Path
) -> None:
    job(own, WINDOWS)
    table, selects = orders((40, 40, 40))
    source = tables(tmp_path / "in", (table, [*selects[2:], *selects[:2]]), COUNTRY)
    with pytest.raises(LateRowsError, match="further out of order than the job's watermark allows"):
        run_job("--query", "mine", "--source", source)


NESTED = """\
SELECT TIMESTAMPTZ '2026-01-01 00:00:00+00' AS at, TIMESTAMP '2026-01-01 00:00:00' AS plain,
    TIMESTAMP_NS '2026-01-01 00:00:00.000000001' AS nano, 1::UBIGINT AS big, 1::HUGEINT AS huge,
    1::UTINYINT AS tiny, TIME '10:00:00' AS clock, INTERVAL 1 DAY AS span, '101'::BIT AS bits,
    {'id': uuid(), 'at': TIMESTAMP '2026-01-01 00:00:00', 'a b': [2::USMALLINT]} AS made,
    [{'big': 3::UBIGINT, 'day': DATE '2026-01-01'}] AS list, array_value(1.5, 2.5) AS pair,
    MAP {'a': {'at': TIMESTAMP_MS '2026-01-01 00:00:00', 'clock': TIME '10:00:00'}} AS by_name,
    [[TIMESTAMP_S '2026-01-01 00:00:00']] AS deep, 'ch'::ENUM('ch', 'at') AS code
FROM range(3)
"""


@pytest.mark.spark
def test_every_engine_reads_nested_types_as_they_are_laid_out(
    own: Path, run_job: RunJob, spark: SparkSession, tmp_path: Path
) -> None:
    """What Spark lacks has another type, also in structs, lists and maps; times are TIMESTAMP."""
    duckdb.execute(f"COPY ({NESTED}) TO '{tmp_path}/in.parquet'")
    files = {"files": f"{tmp_path}/in.parquet", "event_time": "at", "watermark": "1 minute"}
    orders = JobTable.model_validate(files)
    of = Job(name="mine", tables={"orders": orders}, sql="mine.sql", text="SELECT * FROM orders")
    lay_out(of, tmp_path / "in", lambda line: None)
    job(own, "SELECT *, by_name['a'].at AS inner_time FROM orders WHERE made.at = deep[0][0]")
    _, rows = run_job("--query", "mine", "--source", f"tables:{tmp_path / 'in'}")
    assert len(rows) == 3
    schema = spark.read.parquet(f"file:{tmp_path}/in/orders").schema
    kinds = {each.name: each.dataType.simpleString() for each in schema}
    assert kinds["made"] == "struct<id:string,at:timestamp,a b:array<int>>"
    assert kinds["list"] == "array<struct<big:decimal(20,0),day:date>>"
    assert kinds["by_name"] == "map<string,struct<at:timestamp,clock:string>>"
    assert kinds["deep"] == "array<array<timestamp>>"


def test_a_directory_without_tables_is_named(own: Path, run_job: RunJob, tmp_path: Path) -> None:
    job(own, "SELECT 1")
    with pytest.raises(UsageError, match=r"--source: .* holds no tables.json"):
        run_job("--query", "mine", "--source", f"tables:{own}")

"""Runs of the job itself: ends of the input, ways to cut it, sources, reruns, failures."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nexmark_jobs.errors import JobError, LateRowsError, UsageError
from nexmark_jobs.options import parse
from nexmark_jobs.progress import combine
from nexmark_jobs.run_query import complete, run
from tests.queries.conftest import RunJob, write_topic
from tests.queries.event_builders import at, auction, bid, person
from tests.quick_jvm import QUICK_JVM

pytestmark = pytest.mark.spark

DATAGEN = ("--events", "2000", "--tps", "100", "--rows-per-batch", "500")


def test_all_windows_close_at_the_end(run_job: RunJob, tmp_path: Path) -> None:
    write_topic(tmp_path / "topic" / "a.json", [bid(1, 1), bid(2, 1), bid(2, 11)])
    result, rows = run_job("--query", "q5", "--source", f"files:{tmp_path / 'topic'}")
    first = [(a, 1, at(s), at(s + 10)) for s in (-8, -6, -4, -2, 0) for a in (1, 2)]
    assert rows == sorted(first + [(2, 1, at(s), at(s + 10)) for s in (2, 4, 6, 8, 10)])
    assert (result["input_rows"], result["output_rows"], result["late_rows"]) == (3, 15, 0)
    phases = [batch["phase"] for batch in result["batches"]]
    assert phases[0] == "data"
    assert set(phases[1:]) == {"end_of_input"}


@pytest.mark.parametrize("query", ["q4", "q7", "q8", "q16"])
def test_cut_of_the_input_does_not_matter(run_job: RunJob, query: str) -> None:
    """All at once (one batch) and in many batches: the same rows and the same digest."""
    whole, whole_rows = run_job("--query", query, *DATAGEN[:4], "--rows-per-batch", "5000")
    parts, parts_rows = run_job("--query", query, *DATAGEN)
    assert len(whole["batches"]) < len(parts["batches"])
    assert whole_rows == parts_rows != []
    assert whole["digest"] == parts["digest"]
    assert parts["late_rows"] == 0


def test_update_query_is_folded_and_repeats_its_digest(run_job: RunJob) -> None:
    first, first_rows = run_job("--query", "q18", *DATAGEN)
    again, again_rows = run_job("--query", "q18", *DATAGEN)
    assert first["output_rows"] > len(first_rows) == len({row[:2] for row in first_rows})
    assert first["digest"] == again["digest"]
    assert first_rows == again_rows
    assert first["plan"] == again["plan"]


def test_events_out_of_order_by_less_than_the_delay_change_nothing(run_job: RunJob) -> None:
    """Groups of 100 events at 100 per second: up to one second of disorder, four allowed."""
    disorder = ("--generator", "out_of_order_group_size=100")
    result, rows = run_job("--query", "q5", *DATAGEN, *disorder)
    assert result["late_rows"] == 0
    assert result["workload"]["generator"] == {"out_of_order_group_size": 100}
    _, plain_rows = run_job("--query", "q5", *DATAGEN[:4], *disorder, "--rows-per-batch", "5000")
    assert rows == plain_rows


def test_a_run_that_dropped_late_rows_fails_and_leaves_nothing(
    run_job: RunJob, tmp_path: Path
) -> None:
    """The watermark of a batch makes rows late from the next but one batch on."""
    topic = tmp_path / "topic"
    for age, seconds in enumerate((60, 61, 5, 65)):
        write_topic(topic / f"{age}.json", [bid(1, seconds)])
        os.utime(topic / f"{age}.json", (1e9 + age, 1e9 + age))
    with pytest.raises(LateRowsError) as error:
        run_job("--query", "q11", "--source", f"files:{topic}")
    assert str(error.value).startswith(
        "batch 2: 1 rows came behind the watermark and were dropped, so that the result is wrong: "
    )
    assert list(tmp_path.iterdir()) == [topic]


def test_generated_events_that_are_further_out_of_order_than_the_delay(run_job: RunJob) -> None:
    with pytest.raises(LateRowsError, match="take a smaller out_of_order_group_size"):
        run_job("--query", "q5", *DATAGEN, "--generator", "out_of_order_group_size=1500")


def test_a_failed_run_leaves_no_result_of_an_earlier_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    """q7 refuses a thousand equal bids."""
    kept = tmp_path / "result.json"
    kept.write_text("of an earlier run")
    write_topic(tmp_path / "topic" / "a.json", [bid(number) for number in range(1000)])
    arguments = ["--query", "q7", "--source", f"files:{tmp_path / 'topic'}", "--result", str(kept)]
    with pytest.raises(JobError, match="1000 or more bids"):
        complete(spark, parse(arguments), quiet=True)
    assert not kept.exists()


def test_files_without_order_make_one_batch(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for age, (name, seconds) in enumerate((("b.json", 60), ("a.json", 5))):
        write_topic(tmp_path / "topic" / name, [bid(1, seconds)])
        os.utime(tmp_path / "topic" / name, (1e9 + age, 1e9 + age))
    options = ["--query", "q11", "--source", f"files:{tmp_path / 'topic'}"]
    result = run(spark, parse([*options, "--result", str(tmp_path / "r.json")]))
    assert (result["output_rows"], result["late_rows"]) == (2, 0)
    assert result["batches"][0]["input_rows"] == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(
        "2 files, all in one batch: they were not last modified in the order of their names"
    )
    assert lines[1].startswith("batch 0  2 of 2 events  100 %")


def test_accepted_forms_are_read_alike(run_job: RunJob, tmp_path: Path) -> None:
    """A T or a blank, fractions of 0 to 9 digits (cut to milliseconds), gzip or not."""
    times = ["2015-07-15T00:00:01", "2015-07-15 00:00:02.1", "2015-07-15T00:00:03.123999999"]
    lines = []
    for time in times:
        fields = bid()[1] | {"dateTime": time}
        lines.append(json.dumps({"event_type": 2, "bid": fields}))
    (tmp_path / "topic").mkdir()
    (tmp_path / "topic" / "a.json").write_text("\n".join(lines[:2]) + "\n\n")
    (tmp_path / "topic" / "b.jsonl.gz").write_bytes(gzip.compress(lines[2].encode()))
    _, rows = run_job("--query", "q0", "--source", f"files:{tmp_path / 'topic'}")
    assert [row[3] for row in rows] == [at(1), at(2.1), at(3.123)]


def write_parquet(spark: SparkSession, directory: Path, **missing: str) -> None:
    """Three events as dump_events.py writes them; `missing` sets a bid's field to an expression."""
    topic = directory / "json"
    write_topic(topic / "a.json", [person(1), auction(1, seller=1), bid(1, 5)])
    events = spark.read.json(str(topic), timestampFormat="yyyy-MM-dd HH:mm:ss.SSS")
    for name, field in missing.items():
        events = events.withColumn(name, events[name].dropFields(field))
    events.coalesce(1).write.parquet(str(directory / "parquet"))


def test_parquet_is_read_as_json_is(spark: SparkSession, run_job: RunJob, tmp_path: Path) -> None:
    write_parquet(spark, tmp_path)
    found = [
        run_job("--query", "q20", "--source", f"files:{tmp_path / kind}")
        for kind in ("json", "parquet")
    ]
    assert found[0][1] == found[1][1] != []
    assert found[0][0]["digest"] == found[1][0]["digest"]
    assert found[1][0]["input_rows"] == 3


def test_parquet_that_lacks_a_field(spark: SparkSession, run_job: RunJob, tmp_path: Path) -> None:
    write_parquet(spark, tmp_path, bid="price")
    with pytest.raises(UsageError, match=r"parquet: no column bid\.price; dump it again"):
        run_job("--query", "q0", "--source", f"files:{tmp_path / 'parquet'}")


def digest_of_table(frame: DataFrame) -> str:
    """The digest that a run of the query reports which yields the rows of this batch frame."""
    halves = F.xxhash64(*frame.columns)
    sums = frame.select(halves.alias("hash")).agg(
        F.sum(F.col("hash").bitwiseAND(0xFFFF_FFFF)).alias("low"),
        F.sum(F.shiftrightunsigned("hash", 32)).alias("high"),
    )
    return combine([sums.collect()[0].asDict()])


def test_digest_is_that_of_the_table(spark: SparkSession, run_job: RunJob, tmp_path: Path) -> None:
    result, _ = run_job("--query", "q1", *DATAGEN)
    table = spark.read.parquet(str(tmp_path / "out-0"))
    assert digest_of_table(table) == result["digest"]
    assert digest_of_table(table.repartition(5)) == result["digest"]
    assert digest_of_table(table.limit(10)) != result["digest"]


def test_digest_sees_rows_that_come_in_pairs(spark: SparkSession) -> None:
    once = spark.range(10)
    twice = spark.createDataFrame([(number,) for number in (*range(10), 4, 4)], "id bigint")
    assert digest_of_table(once) != digest_of_table(twice)
    assert digest_of_table(once.limit(0)) == "0" * 16


def test_digest_can_be_left_out(run_job: RunJob) -> None:
    result, rows = run_job("--query", "q2", *DATAGEN, "--digest", "off")
    assert (result["digest"], result["digest_kind"]) == (None, None)
    assert result["output_rows"] == len(rows)


def test_result_has_all_that_is_promised(run_job: RunJob) -> None:
    result, rows = run_job("--query", "q17", *DATAGEN)
    assert result["schema_version"] == 1
    assert (result["query"], result["formulation"], result["output_mode"]) == (
        *("q17", "aggregate"),
        "update",
    )
    assert result["workload"] | {"sink": ""} == {
        "source": "datagen",
        "events": 2000,
        "tps": 100,
        "seed": 1,
        "rows_per_batch": 500,
        "sink": "",
        "generator": {},
    }
    assert [batch["input_rows"] for batch in result["batches"]] == [500] * 4
    assert result["input_rows"] == 2000
    assert result["start"] < result["batches"][0]["start"] < result["end"]
    assert result["end"] == result["batches"][-1]["end"]
    assert result["state"]["rows_final"] == result["state"]["rows_max"] == len(rows)
    assert result["state"]["operators"][0]["name"] == "stateStoreSave"
    assert result["state"]["commit_ms_total"] > 0
    assert result["plan"]["stateful_operators"] == result["plan"]["exchanges"] == 1
    assert result["confs"]["spark.sql.session.timeZone"] == "UTC"


def test_no_secret_reaches_the_result(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a fingerprint in its place, by the key of the installation."""
    from nexmark_jobs import redaction, result

    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    monkeypatch.setenv(redaction.KEY_VARIABLE, str(key))
    conf, name = spark.sparkContext._conf, "spark.hadoop.fs.azure.account.key.store"
    conf.set(name, "hunter2")
    try:
        found: dict[str, Any] = result.confs(spark)
    finally:
        conf._jconf.remove(name)
    assert "hunter2" not in found.values()
    assert found[name] == redaction.fingerprint("hunter2", b"k" * 32)
    assert found["spark.ui.enabled"] == "false"


def test_failing_query_is_reported_in_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    """q7 refuses a thousand equal bids while it runs."""
    write_topic(tmp_path / "topic" / "a.json", [bid(number) for number in range(1000)])
    before = set(tmp_path.iterdir())
    script = Path(__file__).parents[2] / "nexmark_jobs" / "run_query.py"
    submit = "--conf spark.sql.shuffle.partitions=1 --driver-memory 1g"
    submit += f' --driver-java-options "{QUICK_JVM}" pyspark-shell'
    environment = {"PYSPARK_SUBMIT_ARGS": submit, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [
            *(sys.executable, script, "--query", "q7", "--source", f"files:{tmp_path / 'topic'}"),
            *("--sink", f"parquet:{tmp_path / 'out'}", "--result", tmp_path / "result.json"),
        ],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    reasons = [line for line in done.stderr.splitlines() if line.startswith("run_query.py: error")]
    assert done.returncode == 1
    assert len(reasons) == 1
    assert "1000 or more bids of a window tie; use --formulation join" in reasons[0]
    assert set(tmp_path.iterdir()) == before


def test_query_that_needs_a_newer_spark(spark: SparkSession, tmp_path: Path) -> None:
    from nexmark_jobs.queries import QUERIES

    assert QUERIES["q19"].formulation("4.2.1").name == "sorted_list"
    assert QUERIES["q19"].formulation("4.3.0").name == "max_by_k"
    with pytest.raises(JobError, match=r"q19 has no 'max_by_k' on Spark 3\.5\.9; use one of sort"):
        QUERIES["q19"].formulation("3.5.9", "max_by_k")

"""Several queries in one application: none reaches another; the log has the outcome of each."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from nexmark_jobs.session import stop
from nexmark_jobs.verify_queries import main, verify

pytestmark = pytest.mark.spark

DATAGEN = ("--source", "datagen", "--events", "1000", "--tps", "100", "--rows-per-batch", "500")


def planned(query: str, directory: Path, *more: str) -> dict[str, Any]:
    arguments = [
        *("--query", query, *DATAGEN, "--sink", f"parquet:{directory / query / 'output'}"),
        *("--result", str(directory / f"{query}.json"), *more),
    ]
    return {"query": query, "arguments": arguments}


def states(log: Path) -> list[tuple[str, str]]:
    lines = map(json.loads, log.read_text().splitlines())
    return [(line["query"], line["state"]) for line in lines]


def test_a_query_that_fails_is_noted_and_the_others_have_their_results(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, before = tmp_path / "log", spark.conf.get("spark.sql.shuffle.partitions")
    boundary = ("--boundary", str(tmp_path / "q5" / "boundary"))
    full = tmp_path / "q2" / "output"
    full.mkdir(parents=True)
    (full / "not ours").touch()
    plan = [planned("q5", tmp_path, *boundary), planned("q2", tmp_path), planned("q0", tmp_path)]
    assert verify(spark, plan, log, at_once=2) == 1
    assert sorted(states(log)[:2]) == [("q2", "begun"), ("q5", "begun")]
    assert {query: state for query, state in states(log)[2:] if state != "begun"} == {
        "q5": "done",
        "q2": "failed",
        "q0": "done",
    }
    assert json.loads((tmp_path / "q5.json").read_text())["query"] == "q5"
    assert (tmp_path / "q5" / "boundary").is_dir()
    assert not (tmp_path / "q2.json").exists()
    assert json.loads((tmp_path / "q0.json").read_text())["output_rows"] == 920
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_a_query_that_ends_does_not_wait_for_another(spark: SparkSession) -> None:
    """Both are in one application: only a query's own tasks hold its end up."""
    asleep = spark.range(1).selectExpr("reflect('java.lang.Thread', 'sleep', 20000L)")

    def sleep() -> None:
        with suppress(PySparkException, Py4JError):
            asleep.collect()

    other = threading.Thread(target=sleep)
    other.start()
    query = spark.readStream.format("rate").load().writeStream.format("noop").start()
    query.processAllAvailable()
    begun = time.monotonic()
    stop(spark, query)
    assert time.monotonic() - begun < 8
    spark.sparkContext.cancelAllJobs()
    other.join()


@pytest.mark.parametrize("text", ["", "{}", '[{"query": "q0"}]'])
def test_a_plan_that_is_none_is_one_line(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    assert main(["--plan", str(path), "--log", str(tmp_path / "log")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"verify_queries.py: error: --plan {path}")
    assert error.count("\n") == 1

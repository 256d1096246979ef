"""Runs that go on from the checkpoint of another: the same final table, each batch once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nexmark_jobs.errors import JobError, UsageError
from nexmark_jobs.options import parse
from nexmark_jobs.run_query import run
from nexmark_jobs.sinks import ParquetSink
from tests.queries.conftest import plain

pytestmark = pytest.mark.spark

DATAGEN = ("--events", "2000", "--tps", "100", "--rows-per-batch", "500")


def arguments(work: Path, query: str, *more: str) -> list[str]:
    """A run of `query` whose checkpoint and final table are in `work`."""
    kept = ("--checkpoint", f"{work}/kept", "--sink", f"parquet:{work}/table")
    return ["--query", query, *DATAGEN, *kept, "--result", f"{work}/result.json", *more]


@pytest.mark.parametrize("query", ["q9", "q18"])
def test_a_stopped_run_goes_on_to_the_table_of_an_unbroken_one(
    spark: SparkSession, tmp_path: Path, query: str
) -> None:
    (tmp_path / "whole").mkdir()
    run(spark, parse(arguments(tmp_path / "whole", query)), quiet=True)
    first = run(spark, parse(arguments(tmp_path, query, "--stop-after-batch", "1")), quiet=True)
    assert first["checkpoint"]["is_complete"] is False
    assert [batch["id"] for batch in first["batches"]] == [0, 1]
    assert not (tmp_path / "table").exists()
    rest = run(spark, parse(arguments(tmp_path, query)), quiet=True)
    assert rest["checkpoint"] == {
        "directory": f"{tmp_path}/kept",
        "first_batch": 2,
        "is_complete": True,
    }
    assert (first["input_rows"], rest["input_rows"]) == (1000, 1000)
    found, wanted = (
        plain(spark.read.parquet(str(work / "table")).collect())
        for work in (tmp_path, tmp_path / "whole")
    )
    assert found == wanted != []
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["kept", "result.json.progress", "table", "whole"]
    lines = (tmp_path / "result.json.progress").read_text().splitlines()
    assert [json.loads(line)["batchId"] for line in lines] == [0, 1, 2, 3]


def test_a_run_that_failed_before_its_table_was_made_is_finished_by_the_next(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(sink: ParquetSink, last_batch: int) -> None:
        raise JobError("no disk")

    with monkeypatch.context() as broken:
        broken.setattr(ParquetSink, "finish", lost)
        with pytest.raises(JobError, match="no disk"):
            run(spark, parse(arguments(tmp_path, "q18")), quiet=True)
    assert not (tmp_path / "table").exists()
    rest = run(spark, parse(arguments(tmp_path, "q18")), quiet=True)
    assert rest["input_rows"] == 0
    assert spark.read.parquet(str(tmp_path / "table")).count() > 0


def test_a_checkpoint_of_another_input_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, parse(arguments(tmp_path, "q18", "--stop-after-batch", "0")), quiet=True)
    with pytest.raises(UsageError, match=r"is of another input, .*\"seed\": 1.*\"seed\": 2"):
        run(spark, parse(arguments(tmp_path, "q18", "--seed", "2")), quiet=True)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            ("--source", "boundary"),
            "--checkpoint: only a run of generated events, or of tables, can go on",
        ),
        (("--stop-after-batch", "-1"), "'-1' is not a batch number; give 0, 1, 2, ..."),
        (("--stop-after-batch", "1", "--sink", "noop"), "only the sink parquet:DIR stops"),
    ],
)
def test_wrong_arguments(tmp_path: Path, changed: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(arguments(tmp_path, "q18", *changed))

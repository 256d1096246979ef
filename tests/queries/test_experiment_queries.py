"""The formulations of an experiment's query put out the same rows: else nothing is compared."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nexmark_jobs.errors import UsageError
from nexmark_jobs.experiments import EXPERIMENT_QUERIES
from nexmark_jobs.options import parse
from nexmark_jobs.run_query import run
from tests.queries.conftest import plain

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
STATE = "org.apache.spark.sql.execution.streaming.state"
#: What `make test` runs: a view that is used twice, and a union of two streams.
OFTEN = ("reused_view", "new_sellers")
GENERATED = [
    pytest.param(name, marks=[] if name in OFTEN else pytest.mark.long)
    for name in EXPERIMENT_QUERIES
    if not name.startswith("json")
]
#: The exchanges of each formulation, in their order: they are what some experiments are about.
EXCHANGES = {
    "long_window": [1, 2, 2],
    "reused_view": [2, 1, 1],
    "distinct_bidders": [2, 1],
    "new_sellers": [3, 2],
    "joined_counts": [4, 2, 1],
}


@pytest.mark.parametrize("query", GENERATED)
def test_formulations_agree_and_differ_by_their_exchanges(
    spark: SparkSession, tmp_path: Path, query: str
) -> None:
    found = []
    spark = spark.newSession()
    for formulation in EXPERIMENT_QUERIES[query].formulations:
        if formulation.name == "retraction":  # state of our own is only in RocksDB
            spark.conf.set(PROVIDER, f"{STATE}.RocksDBStateStoreProvider")
        arguments = ["--query", query, "--formulation", formulation.name, "--events", "2000"]
        arguments += ["--tps", "100", "--rows-per-batch", "1000", "--result", str(tmp_path / "r")]
        found.append(run(spark, parse(arguments), quiet=True))
    assert len({one["digest"] for one in found}) == 1
    assert found[0]["output_rows"] > 0
    assert [one["plan"]["exchanges"] for one in found] == EXCHANGES[query]


def test_a_kept_batch_is_computed_once(spark: SparkSession, tmp_path: Path) -> None:
    """If it was computed again for its second consumer, the state's rows would count twice."""
    rows = []
    for formulation in ("explode", "kept_batch"):
        arguments = ["--query", "reused_view", "--formulation", formulation, "--events", "1000"]
        arguments += ["--rows-per-batch", "1000", "--result", str(tmp_path / "r")]
        rows.append(run(spark, parse(arguments), quiet=True)["state"]["rows_max"])
    assert rows[0] == rows[1] > 0


@pytest.mark.parametrize("query", ["json_all_fields", "json_two_fields"])
def test_lines_are_parsed_to_the_rows_that_the_files_hold(
    spark: SparkSession, tmp_path: Path, query: str
) -> None:
    (tmp_path / "events").mkdir()
    shutil.copy(ROOT / "tests" / "data" / "recorded_nexmark_10k.jsonl.gz", tmp_path / "events")
    digests = set()
    for formulation in ("columns", "from_json"):
        arguments = ["--query", query, "--formulation", formulation]
        arguments += ["--source", f"files:{tmp_path / 'events'}", "--result", str(tmp_path / "r")]
        digests.add(run(spark, parse(arguments), quiet=True)["digest"])
    assert len(digests) == 1


def test_from_json_needs_lines_of_json(spark: SparkSession, tmp_path: Path) -> None:
    arguments = ["--query", "json_two_fields", "--formulation", "from_json", "--events", "100"]
    with pytest.raises(UsageError, match="from_json reads JSON; give --source files:DIR of JSON"):
        run(spark, parse([*arguments, "--result", str(tmp_path / "r")]), quiet=True)


def test_a_kept_batch_leaves_the_rows_of_the_query(spark: SparkSession, tmp_path: Path) -> None:
    rows = []
    for formulation in ("explode", "kept_batch"):
        out = tmp_path / formulation
        arguments = ["--query", "reused_view", "--formulation", formulation, "--events", "500"]
        arguments += ["--sink", f"parquet:{out}", "--result", str(tmp_path / "r")]
        run(spark, parse(arguments), quiet=True)
        rows.append(plain(spark.read.parquet(str(out)).collect()))
    assert rows[0] == rows[1] != []

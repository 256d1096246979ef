"""Real-Time Mode: the table of queries says what Spark does, and too few slots are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nexmark.engines import Build
from nexmark.kafka.jars import connector
from nexmark_jobs.queries import QUERIES
from nexmark_jobs.real_time import NEVER, STATEFUL, STATELESS, refusal
from tests.conftest import engine_environment
from tests.kafka.conftest import BrokerOfTests, fill
from tests.kafka.test_source import LINES


def test_every_query_is_in_the_table_once() -> None:
    assert sorted((*STATELESS, *STATEFUL, *NEVER)) == sorted(QUERIES)


@pytest.mark.parametrize(
    ("query", "spark", "runs"),
    [
        *(("q0", "4.3.0", True), ("q0", "4.2.1", True), ("q0", "4.1.4", False)),
        *(("q17", "4.3.0", True), ("q17", "4.2.1", False), ("q17", "5.0.0", True)),
        *(("q5", "4.3.0", False), ("q3", "4.2.1", False), ("q0", "3.5.9", False)),
    ],
)
def test_who_can_run(query: str, spark: str, runs: bool) -> None:
    assert (refusal(query, spark) is None) is runs


def submit_environment(build: Build) -> dict[str, str]:
    jars = ",".join(map(str, connector(build.version, print)))
    return engine_environment(build) | {"PYSPARK_SUBMIT_ARGS": f"--jars {jars} pyspark-shell"}


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("engine", ["spark-4.3.0", "spark-4.2.1"])
def test_the_table_says_what_spark_does(
    engine: str, broker: BrokerOfTests, engine_build: Callable[[str], Build]
) -> None:
    build = engine_build(engine)
    fill(broker, f"rtm-{engine}", LINES[:1000], 1)
    broker.kafka.create(f"rtm-{engine}-out", 1)
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("real_time_starts.py")],
        input=json.dumps(
            {"servers": broker.servers, "source": f"rtm-{engine}", "sink": f"rtm-{engine}-out"}
        ),
        env=submit_environment(build),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = dict(map(json.loads, done.stdout.splitlines()))
    expected = {}
    for query in QUERIES:
        refused = refusal(query, build.version)
        expected[query] = refused.error if refused else ""
    assert found == expected


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long
def test_too_few_slots_are_refused_before_the_start(
    broker: BrokerOfTests, engine_build: Callable[[str], Build], tmp_path: Path
) -> None:
    """Spark would run q0, and never read one of the partitions."""
    build = engine_build("spark-4.3.0")
    fill(broker, "slots", LINES[:100], 2)
    job = Path(__file__).parents[2] / "nexmark_jobs" / "paced_query.py"
    done = subprocess.run(
        [
            *(str(build.spark_home / "bin" / "spark-submit"), "--master", "local[1]"),
            *("--conf", "spark.ui.enabled=false", "--conf", "spark.log.level=ERROR"),
            *("--jars", ",".join(map(str, connector(build.version, print))), str(job)),
            *("--query", "q0", "--trigger", "real-time", "--source", "slots", "--sink", "slots"),
            *("--bootstrap-servers", broker.servers, "--started", str(tmp_path / "started")),
            *("--until", str(tmp_path / "stop"), "--result", str(tmp_path / "result.json")),
        ],
        env=engine_environment(build) | {"PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 2, done.stdout
    said = "slots: q0 needs 2 at once in Real-Time Mode, 2 to read and 0 for its shuffle, and there"
    assert said in done.stdout
    assert not list(tmp_path.iterdir())

"""What becomes of a topic while it is read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nexmark.engines import Build
from nexmark.kafka.jars import connector
from tests.conftest import engine_environment, engines
from tests.engines.test_results import FULL, NEWEST
from tests.kafka.conftest import BrokerOfTests, fill
from tests.kafka.test_source import LINES

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PARTITIONS = 2
EVENTS = LINES[:2000]
RUNS = {
    "still": ("q8", None, 500),
    "grow": ("q8", "grow", 500),
    "delete": ("q0", "delete", 200),
    "recreate": ("q0", "recreate", 200),
    "truncate": ("q0", "truncate", 200),
}


@engines(NEWEST, of=FULL)
def test_a_topic_that_changes_while_it_is_read(
    engine: str, broker: BrokerOfTests, engine_build: Callable[[str], Build], tmp_path: Path
) -> None:
    build = engine_build(engine)
    runs = []
    for name, (query, fault, rows) in RUNS.items():
        topic = f"{name}-{engine}"
        fill(broker, topic, EVENTS, PARTITIONS)
        arguments = [
            *("--query", query, "--source", f"kafka:{topic}", "--rows-per-batch", str(rows)),
            *("--bootstrap-servers", broker.servers, "--result", f"{tmp_path}/{name}.json"),
        ]
        runs.append({"arguments": arguments, "fault": fault, "topic": topic})
    jars = ",".join(map(str, connector(build.version, print)))
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("topic_runs.py")],
        input=json.dumps({"runs": runs, "servers": broker.servers, "lines": EVENTS}),
        env=engine_environment(build) | {"PYSPARK_SUBMIT_ARGS": f"--jars {jars} pyspark-shell"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results = map(json.loads, done.stdout.splitlines())
    found = dict(zip(RUNS, results, strict=True))

    for name in ("digest", "input_rows", "output_rows", "late_rows"):
        assert found["grow"][name] == found["still"][name]
    for name, said in {
        "delete": "it was deleted while it was read",
        "recreate": "it was deleted and created again while it was read",
        "truncate": "it was truncated while it was read: partition 1 begins at offset 999, no lon",
    }.items():
        assert found[name].get("exit_code") == 1, name
        assert found[name]["error"].startswith(f"kafka:{name}-{engine}: {said}")
        assert "\n" not in found[name]["error"]

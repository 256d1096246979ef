"""What becomes of a topic while it is read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from nexmark.engines import Build
from nexmark.kafka.jars import connector
from tests.conftest import engine_environment, engines
from tests.engines.test_results import FULL, NEWEST
from tests.kafka.conftest import COMMAND, BrokerOfTests, fill, new_broker
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


QUICK = {
    "spark.nexmark.kafka.default.api.timeout.ms": "5000",
    "spark.nexmark.kafka.request.timeout.ms": "5000",
}
"""So that a client soon gives a topic up."""


def results_of(
    broker: BrokerOfTests,
    build: Build,
    runs: Mapping[str, tuple[str, str | None, int]],
    confs: Mapping[str, str],
) -> dict[str, dict[str, Any]]:
    """The result of each run of a query over a topic of its own, in one application."""
    given = []
    for name, (query, fault, rows) in runs.items():
        topic = f"{name}-{build.version}"
        fill(broker, topic, EVENTS, PARTITIONS)
        arguments = [
            *("--query", query, "--source", f"kafka:{topic}", "--rows-per-batch", str(rows)),
            *("--bootstrap-servers", broker.servers, "--result", f"{broker.home}/{topic}.json"),
        ]
        given.append({"arguments": arguments, "fault": fault, "topic": topic})
    jars = ",".join(map(str, connector(build.version, print)))
    told = {
        **{"runs": given, "servers": broker.servers, "lines": EVENTS, "confs": dict(confs)},
        **{"brokers": broker.numbered(), "up": [str(COMMAND), "kafka", *broker.up]},
    }
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("topic_runs.py")],
        input=json.dumps(told),
        env=engine_environment(build)
        | {"PYSPARK_SUBMIT_ARGS": f"--jars {jars} pyspark-shell", "NEXMARK_HOME": str(broker.home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(zip(runs, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.long
@engines(NEWEST, of=FULL)
def test_a_topic_that_changes_while_it_is_read(
    engine: str, broker: BrokerOfTests, engine_build: Callable[[str], Build]
) -> None:
    build = engine_build(engine)
    found = results_of(broker, build, RUNS, QUICK)

    for name in ("digest", "input_rows", "output_rows", "late_rows"):
        assert found["grow"][name] == found["still"][name]
    for name, said in {
        "delete": "it was deleted while it was read",
        "recreate": "it was deleted and created again while it was read",
        "truncate": "it was truncated while it was read: partition 1 begins at offset 999, no lon",
    }.items():
        assert found[name].get("exit_code") == 1, name
        assert found[name]["error"].startswith(f"kafka:{name}-{build.version}: {said}")
        assert "\n" not in found[name]["error"]


@pytest.mark.long
@engines(NEWEST, of=FULL)
def test_a_broker_that_is_killed_or_stands_still_costs_time_and_no_event(
    engine: str, broker: BrokerOfTests, engine_build: Callable[[str], Build]
) -> None:
    """q8 reads the topic twice, and its windows show an event that is there twice or not at all."""
    runs = {"quiet": ("q8", None, 500), "pause": ("q8", "pause", 500), "kill": ("q8", "kill", 500)}
    assert_alike(results_of(broker, engine_build(engine), runs, {}))
    broker.command(*broker.up)  # once more changes nothing


@pytest.mark.long
def test_a_leader_that_moves_costs_time_and_no_event(
    tmp_path: Path, engine_build: Callable[[str], Build]
) -> None:
    three = new_broker(tmp_path, 29292, 3)
    three.command(*three.up)
    try:
        build = engine_build(NEWEST)
        runs = {"quiet": ("q8", None, 500), "kill": ("q8", "kill", 500)}
        assert_alike(results_of(three, build, runs, {}))
        topic = f"kill-{build.version}"
        moved = AdminClient({"bootstrap.servers": three.servers}).list_topics(topic).topics[topic]
        assert moved.partitions[1].leader != moved.partitions[1].replicas[0]
    finally:
        three.command("down")
    assert three.processes() == set()


def assert_alike(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Each run of q8 read every event once, as the one in which nothing happened."""
    for name, result in found.items():
        assert "error" not in result, result
        for figure in ("digest", "input_rows", "output_rows", "late_rows"):
            assert result[figure] == found["quiet"][figure], (name, figure)
    assert found["quiet"]["input_rows"] == len(EVENTS)

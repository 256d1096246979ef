"""The command that measures brokers, on one that runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kafka.conftest import BrokerOfTests


@pytest.mark.slow
def test_brokers_that_run_are_measured_and_nothing_is_left(
    broker: BrokerOfTests, tmp_path: Path
) -> None:
    at = ("--bootstrap-servers", broker.servers, "--records", "2000", "--runs", "1")
    before = {topic.name for topic in broker.kafka.topics()}
    out = tmp_path / "bench.json"
    done = broker.command("bench", *at, "--tests", "K1", "--out", str(out))
    assert "K1: 1 producer, no replication, not counted" in done.stdout
    (test,) = json.loads(out.read_text())["tests"]
    assert test["id"] == "K1"
    assert test["records"]["median"] > 0
    assert test["clients_cpu_s"] > 0
    assert test["brokers_cpu_s"] is None
    refused = broker.command("bench", *at, "--tests", "k3", code=2)
    assert refused.stderr == (
        "kafka: K3 needs 3 brokers, and there are 1; leave it out with --tests, or take a cluster "
        "that has them\n"
    )
    assert (
        "no test 'K99'; known: K1, K2" in broker.command("bench", "--tests", "K99", code=2).stderr
    )
    assert {topic.name for topic in broker.kafka.topics()} == before

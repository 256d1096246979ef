"""A killed query that writes to Kafka: at least once, and right where equal rows count once."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.kafka.conftest import COMMAND, BrokerOfTests

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.mark.parametrize("query", ["q5", "q18", "q20"])
def test_no_row_is_missing_and_one_that_came_again_counts_once(
    broker: BrokerOfTests, tmp_path: Path, query: str
) -> None:
    before = broker.kafka.topics()
    size = ("--events", "6000", "--tps", "100", "--rows-per-batch", "1000", "--kills", "5")
    given = ("--query", query, *size, "--out", str(tmp_path / "out"))
    run = subprocess.run(
        [COMMAND, "recovery", *given, "--bootstrap-servers", broker.servers],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert told["right"] is True
    assert broker.kafka.topics() == before, "the topic of the rows is removed"

"""Generated events give the same from a topic as from the generator: batches, digests, results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nexmark.engines import Build
from tests.conftest import engines
from tests.engines.test_results import FULL, run_queries
from tests.kafka.conftest import BrokerOfTests, fill
from tests.kafka.test_source import generated, source, with_connector

__all__ = ["with_connector"]

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.extended]

QUERIES = ("q0", "q9", "q18")
"""A projection; two scans, windows and ties by event number; rows that replace earlier ones."""
EVENTS, BATCH, PARTITIONS = 8_999, 3000, 4
"""The last batch is short, and the partitions are not of one length."""


@engines(of=FULL)
def test_batches_and_digests_are_the_generators(
    engine: str,
    broker: BrokerOfTests,
    engine_build: Callable[[str], Build],
    with_connector: Callable[[Build], Build],
    tmp_path: Path,
) -> None:
    timeline = ("--events", str(EVENTS), "--tps", "1000", "--seed", "1")
    lines = generated(EVENTS, tmp_path / "events")
    fill(broker, f"generated-{engine}", lines, PARTITIONS)
    sources = {
        "kafka": source(broker, f"generated-{engine}", BATCH),
        "datagen": (*timeline, "--rows-per-batch", str(BATCH)),
    }
    runs = [(name, query) for query in QUERIES for name in sources]
    results = run_queries(
        with_connector(engine_build(engine)),
        [
            ["--query", query, *sources[name], "--result", str(tmp_path / "r.json")]
            for name, query in runs
        ],
    )
    found = dict(zip(runs, results, strict=True))
    for query in QUERIES:
        topic, generator = found["kafka", query], found["datagen", query]
        assert "error" not in topic, topic
        for name in ("digest", "input_rows", "late_rows"):
            assert topic[name] == generator[name], (query, name)
        data = [
            [batch["input_rows"] for batch in run["batches"] if batch["phase"] == "data"]
            for run in (topic, generator)
        ]
        assert data[0] == data[1] == [3000, 3000, 2999], query
        plan = topic["plan"]["text"]  # parsed once, not once for every field
        assert plan.count("from_json(") == plan.count("StreamingRelation kafka") > 0, query
    told = found["kafka", "q0"]["workload"]["kafka"]
    assert (told["partitions"], told["numbered"]) == (PARTITIONS, True)
    assert json.dumps(found["kafka", "q0"]).count(broker.servers) == 0

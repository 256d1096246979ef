"""Queries that read a topic: right, in the generator's batches, and loud about what is no event."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from nexmark.config import paths
from nexmark.engines import Build
from nexmark.kafka.jars import connector
from nexmark_jobs.queries import QUERIES
from tests.conftest import ENGINES, engines
from tests.engines.test_results import (
    FULL,
    KINDS,
    NEWEST,
    RECORDED,
    Events,
    assert_all_right,
    run_queries,
)
from tests.kafka.conftest import BrokerOfTests, fill

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LINES = gzip.decompress(RECORDED.read_bytes()).decode().splitlines()
BID = (
    '{"event_type":2,"bid":{"auction":1,"bidder":2,"price":3,"channel":"c","url":"u",'
    '"dateTime":"2015-07-15 00:00:00.000","extra":""}}'
)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A directory with the recorded topic, for the reference."""
    directory = tmp_path / "recorded"
    directory.mkdir()
    shutil.copy(RECORDED, directory)
    return directory


@pytest.fixture
def with_connector(monkeypatch: pytest.MonkeyPatch) -> Callable[[Build], Build]:
    """with_connector(build): applications of the build get the jars that it reads Kafka with."""

    def prepared(build: Build) -> Build:
        jars = ",".join(map(str, connector(build.version, print)))
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {jars} pyspark-shell")
        return build

    return prepared


def source(broker: BrokerOfTests, topic: str, rows: int) -> tuple[str, ...]:
    servers = ("--bootstrap-servers", broker.servers)
    return ("--source", f"kafka:{topic}", *servers, "--rows-per-batch", str(rows))


def generated(count: int, directory: Path) -> list[str]:
    """Generated events at 1000 per second, as lines of JSON and in files of `directory`."""
    dump = paths.repository() / "nexmark_jobs" / "dump_events.py"
    size = ("--events", str(count), "--tps", "1000", "--seed", "1")
    subprocess.run(
        [sys.executable, dump, *size, "--out", directory, "--format", "json"],
        check=True,
        capture_output=True,
    )
    return [line for f in sorted(directory.iterdir()) for line in f.read_text().splitlines()]


def run(build: Build, work: Path, query: str, *arguments: str) -> dict[str, Any]:
    (done,) = run_queries(build, [["--query", query, *arguments, "--result", f"{work}/r.json"]])
    return done


@pytest.mark.long
def test_a_recorded_topic_gives_the_right_results(
    broker: BrokerOfTests,
    engine_build: Callable[[str], Build],
    with_connector: Callable[[Build], Build],
    recorded: Path,
    tmp_path: Path,
) -> None:
    """In 3 partitions, which the recording does not fill equally."""
    fill(broker, "recorded-3", LINES, 3)
    events = Events(source(broker, "recorded-3", 3000), recorded)
    assert_all_right(with_connector(engine_build(NEWEST)), events, tmp_path, ("q1", "q5", "q20"))


@pytest.mark.long
@engines()
@pytest.mark.parametrize("partitions", [3, 8])
def test_every_query_gives_the_right_result(
    engine: str,
    partitions: int,
    broker: BrokerOfTests,
    engine_build: Callable[[str], Build],
    with_connector: Callable[[Build], Build],
    tmp_path: Path,
) -> None:
    """On the newest and the oldest engine; those between run each kind of query."""
    full = engine in FULL
    lines = generated(100_000 if full else 20_000, tmp_path / "events")
    topic = f"every-{engine}-{partitions}"
    fill(broker, topic, lines, partitions)
    events = Events(source(broker, topic, len(lines) // 3), tmp_path / "events")
    queries = tuple(QUERIES) if full else KINDS
    assert_all_right(with_connector(engine_build(engine)), events, tmp_path, queries)


def test_batches_and_digests_are_those_of_the_files_and_bad_records_are_named(
    broker: BrokerOfTests,
    engine_build: Callable[[str], Build],
    with_connector: Callable[[Build], Build],
    tmp_path: Path,
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for number in range(5):
        part = LINES[number * 2000 : number * 2000 + 2000]
        (files / f"part-{number}.json").write_text("".join(f"{line}\n" for line in part))
    fill(broker, "batches", LINES, 4)
    bad = ["no json", '{"event_type":7}', '{"event_type":2,"bid":{"auction":"x"}}', "  ", BID]
    fill(broker, "bad", [*LINES[:95], *bad], 4)
    fill(broker, "numbered", [f'{{"n":1,{BID[1:]}', BID, f'{{"n":3,{BID[1:]}'], 1)
    nothing = Producer({"bootstrap.servers": broker.servers})
    fill(broker, "null", LINES[:8], 2)
    nothing.produce("null", None, partition=1)
    assert nothing.flush(10) == 0
    arguments = {
        "files": ("q5", "--source", f"files:{files}"),
        "topic": ("q5", *source(broker, "batches", 2000)),
        "bad": ("q0", *source(broker, "bad", 40)),
        "numbered": ("q0", *source(broker, "numbered", 3)),
        "null": ("q3", *source(broker, "null", 10)),
        "unknown": ("q0", *source(broker, "unknown", 10)),
    }
    results = run_queries(
        with_connector(engine_build(NEWEST)),
        [
            ["--query", query, *rest, "--result", str(tmp_path / f"{name}.json")]
            for name, (query, *rest) in arguments.items()
        ],
    )
    found = dict(zip(arguments, results, strict=True))
    for name in ("digest", "input_rows", "output_rows", "late_rows"):
        assert found["topic"][name] == found["files"][name]
    assert [batch["input_rows"] for batch in found["topic"]["batches"]][:5] == [2000] * 5
    assert found["topic"]["workload"]["source"] == "kafka:batches"
    assert found["topic"]["workload"]["kafka"]["connector"] == "4.2.0"
    said = found["bad"]["error"]
    assert "kafka:bad: 5 of 100 records are no events: " in said
    assert "1 not a JSON object (first: partition 3, offset 23)" in said
    assert "1 without an event_type of 0, 1 or 2 (first: partition 0, offset 24)" in said
    assert "1 without a right bid.auction (first: partition 1, offset 24)" in said
    assert "1 empty (first: partition 2, offset 24)" in said
    assert "1 without a number n (first: partition 3, offset 24)" in said
    assert "1 without a number n (first: partition 0, offset 1)" in found["numbered"]["error"]
    assert "1 without a value (first: partition 1, offset 4)" in found["null"]["error"]
    assert (
        "the brokers have no topic 'unknown'; `nexmark kafka fill` makes one"
        in found["unknown"]["error"]
    )


def test_a_topic_in_another_layout_is_refused(
    broker: BrokerOfTests,
    engine_build: Callable[[str], Build],
    with_connector: Callable[[Build], Build],
    tmp_path: Path,
) -> None:
    """Its first half is in partition 0 and its second in 1: batches do not follow the events."""
    half = len(LINES) // 2
    halves = [line for both in zip(LINES[:half], LINES[half:], strict=True) for line in both]
    fill(broker, "halves", halves, 2)
    unnumbered = [json.loads(line) for line in halves]
    for each in unnumbered:
        del each["n"]
    fill(broker, "halves-unnumbered", [json.dumps(each) for each in unnumbered], 2)
    broker.kafka.create("compacted", 2, {"cleanup.policy": "compact,delete"})
    names = ("halves", "halves-unnumbered", "compacted")
    results = {name: tmp_path / f"{name}.json" for name in names}
    numbered, without_numbers, compacted = run_queries(
        with_connector(engine_build(NEWEST)),
        [
            ["--query", "q5", *source(broker, name, 2000), "--result", str(result)]
            for name, result in results.items()
        ],
    )
    remedy = (
        "event n has to be in partition n mod 2, in the order of the numbers; "
        "topics that `nexmark kafka fill` has made are so"
    )
    # 0, 2, 4, ... are the least numbers in partition 0, and half, half + 2, ... in partition 1.
    place = "(first: partition 0, offset 1)"
    assert numbered["error"] == (
        f"kafka:halves: {2 * (half - 1)} of {2 * half} events are not in their place {place}: "
        + remedy
    )
    assert re.fullmatch(
        r"batch 2: \d+ rows came behind the watermark and were dropped, so that the result is "
        rf"wrong: kafka:halves-unnumbered: {remedy}",
        without_numbers["error"],
    )
    assert compacted["error"].startswith(
        "--source: kafka:compacted has cleanup.policy=compact,delete, which removes events; "
    )
    assert list(tmp_path.iterdir()) == []


def test_without_the_connector_the_remedy_is_said(
    broker: BrokerOfTests, engine_build: Callable[[str], Build], tmp_path: Path
) -> None:
    fill(broker, "no-connector", LINES[:10], 1)
    build = engine_build(ENGINES[0])
    failed = run(build, tmp_path, "q0", *source(broker, "no-connector", 10))
    assert "nexmark kafka jars --engine NAME" in failed["error"]
    assert json.dumps(failed).count("\\n") == 0

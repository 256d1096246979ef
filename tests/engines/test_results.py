"""Queries on every engine equal the reference, over generated, recorded and boundary events."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nexmark.config import paths
from nexmark.engines import Build
from nexmark.expectations.suites import validate
from nexmark_jobs import boundary
from nexmark_jobs.feature_release import feature_release
from nexmark_jobs.queries import QUERIES
from tests.conftest import ENGINES, engine_environment, engines

RECORDED = Path(__file__).parents[1] / "data" / "recorded_nexmark_10k.jsonl.gz"
NEWEST, OLDEST = FULL = (ENGINES[0], ENGINES[-1])
"""These run every query: in CI the newest on 30,000 generated events, in `make test-long` both on
100,000, the recorded topic and the boundary events."""
SECONDS = 100
"""Of event time, whatever the number of events: all windows and sessions come to an end."""
KINDS = ("q1", "q5", "q6", "q8", "q11", "q13", "q16", "q18", "q20")
"""`make test`, and the engines between, run these on a small input: projection, windows, last n, a
union of streams, sessions, a broadcast, distinct counts, de-duplication, a join."""


@dataclass(frozen=True)
class Events:
    """An input: how the job gets it, and the same events dumped for the reference."""

    arguments: tuple[str, ...]
    directory: Path


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Events]:
    """generated(events): generated events of 100 seconds of event time, dumped once."""
    dumped: dict[int, Events] = {}

    def events(count: int) -> Events:
        if count not in dumped:
            directory = tmp_path_factory.mktemp("events") / str(count)
            timeline = ("--events", str(count), "--tps", str(count // SECONDS), "--seed", "1")
            subprocess.run(
                [
                    sys.executable,
                    paths.repository() / "nexmark_jobs" / "dump_events.py",
                    *timeline,
                    *("--out", directory, "--format", "parquet"),
                ],
                check=True,
                capture_output=True,
            )
            batches = ("--rows-per-batch", str(count // 3))
            dumped[count] = Events(("--source", "datagen", *timeline, *batches), directory)
        return dumped[count]

    return events


@pytest.mark.slow
@pytest.mark.spark
@engines(NEWEST)
def test_generated_events(
    engine: str,
    engine_build: Callable[[str], Build],
    generated: Callable[[int], Events],
    tmp_path: Path,
) -> None:
    assert_all_right(engine_build(engine), generated(30_000), tmp_path, KINDS)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.extended
@engines(NEWEST, of=FULL)
def test_generated_events_of_the_other_queries(
    engine: str,
    engine_build: Callable[[str], Build],
    generated: Callable[[int], Events],
    tmp_path: Path,
) -> None:
    others = tuple(query for query in QUERIES if query not in KINDS)
    assert_all_right(engine_build(engine), generated(30_000), tmp_path, others)


@pytest.mark.slow
@pytest.mark.spark
@engines(of=FULL)
def test_many_generated_events(
    engine: str,
    engine_build: Callable[[str], Build],
    generated: Callable[[int], Events],
    tmp_path: Path,
) -> None:
    assert_all_right(engine_build(engine), generated(100_000), tmp_path, tuple(QUERIES))


@pytest.mark.slow
@pytest.mark.spark
@engines(of=FULL)
def test_recorded_events(engine: str, engine_build: Callable[[str], Build], tmp_path: Path) -> None:
    topic = tmp_path / "topic"
    topic.mkdir()
    shutil.copy(RECORDED, topic)
    events = Events(("--source", f"files:{topic}"), topic)
    assert_all_right(engine_build(engine), events, tmp_path, tuple(QUERIES))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.long
@engines(OLDEST)
def test_boundary_events(engine: str, engine_build: Callable[[str], Build], tmp_path: Path) -> None:
    """What a verification run reads beside the generated events."""
    assert_all_right(engine_build(engine), boundary_events(tmp_path), tmp_path, KINDS)


@pytest.mark.slow
@pytest.mark.spark
@engines(of=FULL)
def test_all_boundary_events(
    engine: str, engine_build: Callable[[str], Build], tmp_path: Path
) -> None:
    events = boundary_events(tmp_path)
    assert_all_right(engine_build(engine), events, tmp_path, tuple(QUERIES))


def boundary_events(work: Path) -> Events:
    """The boundary events."""
    directory = work / "events"
    directory.mkdir()
    boundary.write(directory)
    return Events(("--source", "boundary"), directory)


def assert_all_right(build: Build, events: Events, work: Path, queries: Sequence[str]) -> None:
    """Each query, with every formulation that the engine can run, equals the reference."""
    version = feature_release(build.version)
    runs = {
        (query.name, formulation.name): work / f"{query.name}-{formulation.name}"
        for query in map(QUERIES.__getitem__, queries)
        for formulation in query.formulations
        if formulation.min_spark <= version
    }
    results = run_queries(
        build,
        [
            [
                *("--query", query, "--formulation", name, *events.arguments),
                *("--sink", f"parquet:{out}", "--result", f"{out}.json"),
            ]
            for (query, name), out in runs.items()
        ],
    )
    confs = {name for result in results for name in result.get("confs", {})}
    assert not [name for name in confs if name.startswith("spark.hadoop.")]  # nobody gave any
    wrong = []
    for (query, name), out, result in zip(runs, runs.values(), results, strict=True):
        if "error" in result:
            wrong.append(f"{query} ({name}): {result['error']}")
            continue
        outcome = validate(query, out, events.directory)
        wrong += [f"{query} ({name}): {failure}" for failure in outcome.failures]
        if result["late_rows"]:
            wrong.append(f"{query} ({name}): {result['late_rows']} rows dropped as late")
    assert wrong == []


def run_queries(build: Build, runs: list[list[str]]) -> list[dict[str, Any]]:
    """The results of the runs, in their order."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("run_queries.py")],
        input=json.dumps(runs),
        env=engine_environment(build),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stderr[:3000]}\n...\n{done.stderr[-3000:]}"  # cause, end
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

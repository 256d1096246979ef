"""A query is held between two batches: one is reported, and the next one is not planned."""

from __future__ import annotations

import json
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from nexmark_jobs.errors import JobError, UsageError
from nexmark_jobs.options import parse
from nexmark_jobs.run_query import run

HELD_S = 1.5
ARGUMENTS = ["--query", "q0", "--events", "3000", "--rows-per-batch", "100", "--tps", "100"]


def held(
    spark: SparkSession, directory: Path, *, failing: bool = False
) -> tuple[dict[str, Any], list[tuple[int, int, list[str], float]]]:
    """Run q0 in 30 batches, held after batch 5, and then after every ten.

    Returns:
        The result, and for each pause the batch, the dropped events, and the numbers of the batches
        whose offsets were written until the end of the pause, and the time of its end.
    """
    pauses, seen, ended = directory / "pauses", [], threading.Event()
    pauses.mkdir()
    checkpoints = directory / "checkpoints"
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(checkpoints))

    def look() -> None:
        file = pauses / "pause.json"
        while not ended.wait(0.01):
            if file.exists():
                said = json.loads(file.read_text())
                time.sleep(HELD_S)
                written = checkpoints.glob("*/checkpoint/offsets/[0-9]*")
                names = [path.name for path in written]
                seen.append((said["batch"], said["dropped"], names, time.time()))
                if failing:
                    (pauses / "failed").write_text("it could not be measured: no reason\n")
                file.unlink()

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        more = ["--pause-from", "5", "--pause-every", "10", "--pauses", str(pauses)]
        result = str(directory / "result.json")
        done = run(spark, parse([*ARGUMENTS, *more, "--result", result]), quiet=True)
    finally:
        ended.set()
        watcher.join()
        spark.conf.unset("spark.sql.streaming.checkpointLocation")
    return done, seen


def test_a_held_query_has_ended_a_batch_and_not_begun_the_next(
    spark: SparkSession, tmp_path: Path
) -> None:
    done, seen = held(spark, tmp_path)
    assert len(seen) >= 2
    assert 5 <= seen[0][0] < 15
    went_on_at = {batch: at for batch, _, _, at in seen}
    for batch, dropped, written, _ in seen:
        assert max(map(int, written)) == batch
        assert dropped == 0
    # The time of the pause is none of the batch that waited: it began when the query went on.
    by_number = {each["id"]: each for each in done["batches"]}
    for batch, went_on in went_on_at.items():
        waited = by_number[batch + 1]
        start = datetime.fromisoformat(waited["start"]).timestamp()
        assert start > went_on - HELD_S / 2
        length = datetime.fromisoformat(waited["end"]).timestamp() - start
        assert waited["duration_ms"] == pytest.approx(1000 * length, abs=2)
        assert waited["steps_ms"]["triggerExecution"] == waited["duration_ms"]
    plain = run(spark, parse([*ARGUMENTS, "--result", str(tmp_path / "plain.json")]), quiet=True)
    assert (done["digest"], len(done["batches"])) == (plain["digest"], 30)


def test_a_query_that_cannot_be_measured_fails_with_the_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(JobError, match="it could not be measured: no reason"):
        held(spark, tmp_path, failing=True)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["--pause-every", "10"], "--pause-every: goes with --pauses DIR"),
        (["--pauses", "somewhere"], "--pause-every: goes with --pauses DIR"),
        (["--pause-every", "10", "--pauses", "nowhere/at/all"], "there is no directory"),
    ],
)
def test_pauses_are_checked_before_anything_starts(
    tmp_path: Path, given: list[str], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        parse([*ARGUMENTS, *given, "--result", str(tmp_path / "result.json")])

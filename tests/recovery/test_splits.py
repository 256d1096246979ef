"""What a kill and a commit cost."""

from __future__ import annotations

from typing import Any

import pytest

from nexmark.recovery.splits import KillRecord, catch_up, commit_splits, kill_split, regular_gap

COMMITS = {0: 10.0, 1: 12.0, 2: 14.0, 3: 25.0, 4: 27.0}
KILL = KillRecord(at=15.0, restarted=15.5, batch=3, moment="commit")


def progress(**metrics: int) -> dict[str, Any]:
    """The first batch after the kill, which began 20 s after the epoch."""
    return {
        "batchId": 3,
        "timestamp": "1970-01-01T00:00:20.000Z",
        "durationMs": {"queryPlanning": 750},
        "stateOperators": [operator(**metrics), operator(**metrics)],
    }


def operator(**metrics: int) -> dict[str, Any]:
    return {
        "operatorName": "symmetricHashJoin",
        "commitTimeMs": 120,
        "numRowsTotal": 7,
        "memoryUsedBytes": 700,
        "customMetrics": metrics,
    }


def test_an_interruption_is_what_exceeds_the_regular_gap() -> None:
    found = kill_split(1, KILL, 5.0, COMMITS, [], float("inf"))
    assert (found["at_s"], found["batch"], found["moment"]) == (10.0, 3, "commit")
    assert found["interruption_s"] == 25.0 - 14.0 - 2.0
    assert found["session_start_s"] is found["load_s"] is found["first_commit_s"] is None


def test_a_restart_is_split() -> None:
    told = progress(
        rocksdbLoadLatencyMs=300, rocksdbReplayChangeLogLatencyMs=0, rocksdbNumLoadedFromDfs=2
    )
    found = kill_split(1, KILL, 5.0, COMMITS, [told], float("inf"))
    assert found["session_start_s"] == 4.5
    assert found["planning_s"] == 0.75
    assert found["load_s"] == 0.6
    assert found["replay_s"] == 0.0
    assert found["first_commit_s"] == 5.0
    assert found["stores_loaded_from_checkpoint"] == 4


def test_what_an_engine_does_not_report_is_null_and_not_zero() -> None:
    found = kill_split(1, KILL, 5.0, COMMITS, [progress()], float("inf"))
    assert found["load_s"] is found["replay_s"] is None
    assert found["stores_loaded_from_checkpoint"] is None


@pytest.mark.parametrize("name", ["stateStoreSave", "sessionWindowStateStoreSaveExec"])
def test_the_operator_that_saves_an_aggregation_says_nothing_of_loading(name: str) -> None:
    metrics = {"rocksdbLoadLatencyMs": 2, "rocksdbNumLoadedFromDfs": 0}
    saves = operator(**metrics, rocksdbReplayChangeLogLatencyMs=0) | {"operatorName": name}
    told = progress() | {"stateOperators": [saves]}
    found = kill_split(1, KILL, 5.0, COMMITS, [told], float("inf"))
    assert found["load_s"] is found["replay_s"] is found["stores_loaded_from_checkpoint"] is None
    assert commit_splits([told])[0]["stores_loaded"] is None
    joined = told | {"stateOperators": [saves, operator(rocksdbLoadLatencyMs=300)]}
    assert kill_split(1, KILL, 5.0, COMMITS, [joined], float("inf"))["load_s"] == 0.3


def test_a_kill_before_the_next_commit_has_no_interruption_of_its_own() -> None:
    found = kill_split(1, KILL, 5.0, COMMITS, [], 20.0)
    assert found["interruption_s"] is None


@pytest.mark.parametrize(
    ("commits", "kills", "expected"),
    [(COMMITS, [15.0], 2.0), ({0: 1.0}, [], None), ({0: 1.0, 1: 2.0}, [1.5], None)],
)
def test_the_regular_gap_has_no_kill_in_it(
    commits: dict[int, float], kills: list[float], expected: float | None
) -> None:
    assert regular_gap(commits, kills) == expected


def test_commits_of_every_batch_and_operator() -> None:
    lines = commit_splits([progress(rocksdbCommitFlushLatency=40, rocksdbBytesCopied=5000)])
    assert [line["batch"] for line in lines] == [3, 3]
    assert (lines[0]["commit_s"], lines[0]["flush_s"], lines[0]["zip_s"]) == (0.12, 0.04, None)
    assert (lines[0]["uploaded_bytes"], lines[0]["files_copied"]) == (5000, None)
    assert (lines[0]["state_rows"], lines[0]["state_bytes"]) == (7, 700)


def test_a_lost_executor_has_no_session_to_start() -> None:
    kill = KillRecord(15.0, None, batch=3, moment="batch", what="executor", left_behind_bytes=9)
    before = progress(rocksdbLoadLatencyMs=9000) | {"batchId": 2}
    told = progress(rocksdbLoadLatencyMs=300)
    found = kill_split(1, kill, 5.0, COMMITS, [before, told], float("inf"))
    assert (found["what"], found["session_start_s"], found["load_s"]) == ("executor", None, 0.6)
    assert found["left_behind_bytes"] == 9


def test_caught_up_is_who_is_as_late_as_before_the_kill() -> None:
    due_every_2_s = {0: 3.0, 1: 4.0, 2: 6.0, 3: 19.0, 4: 19.5, 5: 20.0, 8: 20.5, 9: 20.9}
    assert catch_up(7.0, due_every_2_s, 2.0) == 13.9
    assert catch_up(7.0, {0: 3.0, 1: 5.0, 2: 19.0}, 2.0) is None
    assert catch_up(7.0, {5: 19.0}, 2.0) is None
    assert kill_split(1, KILL, 5.0, COMMITS, [], 99.0)["catch_up_s"] is None
    assert kill_split(1, KILL, 5.0, COMMITS, [], 99.0, pace_s=2.0)["catch_up_s"] is None

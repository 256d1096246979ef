"""A recovery night is planned with its kills and judged by its own metric."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nexmark.acceptance.accepted_baselines import self_test_of
from nexmark.config import load
from nexmark.errors import NexmarkError
from nexmark.model import CATCH_UP, COMMIT, FIRST_COMMIT, INTERRUPTION, RESTORE, Arm
from nexmark.night.deployments import Deployment
from nexmark.night.kinds import recovery
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import ApplicationDirectory
from nexmark.recovery.recovery_run import splits_of
from nexmark.recovery.splits import KillRecord
from nexmark.recovery.supervisor import Attempt, Story
from nexmark_jobs.host.processes import OWNER_VARIABLE, owned, owner_mark
from tests.waiting import wait_for

DEPLOYMENT = Deployment(
    program="fedc",
    **{"build": "b", "spark_version": "4.3.0", "spark_home": "/spark", "source": "pypi:4.3.0"},
    **{"jobs": "j", "jobs_home": "/jobs"},
)


def planned(**params: Any) -> Night:
    return make_night(
        load(), "spark-4.3.0", "dag", "run", {"workload": "recovery", "cluster": "local", **params}
    )


def changed(**recovery: Any) -> Night:
    night = planned()
    asked = night.workload.recovered.model_copy(update=recovery)
    return night.model_copy(
        update={"workload": night.workload.model_copy(update={"recovery": asked})}
    )


def test_it_is_judged_by_what_gate_yaml_says_and_never_by_bounds() -> None:
    night = planned()
    assert (night.mode, night.gate.metric) == ("paired", night.gate.recovery_metric)
    assert recovery.problems_of(night) == []
    assert list(self_test_of(night, ["q5", "q20"], 0)) == [Arm.CONTROL]
    with pytest.raises(NexmarkError, match="recovery is of kind recovery, which is judged by pair"):
        planned(mode="bounds")


def test_every_repetition_is_verified_so_there_are_no_more_events_to_verify() -> None:
    with pytest.raises(NexmarkError, match="verify_scale: workload recovery: verify: has to have"):
        planned(verify_scale=2)


def test_queries_that_cannot_be_compared_are_named() -> None:
    (said,) = recovery.problems_of(planned(queries="q10,q20"))
    assert said.startswith("queries: the result of q10 cannot be compared after a kill")


def test_kills_are_spread_over_the_batches_and_leave_one_to_restart_for() -> None:
    assert [kill.after_batch for kill in recovery.kills_of(planned())] == [4]
    assert [kill.after_batch for kill in recovery.kills_of(changed(at=0.2, times=2))] == [
        1,
        5,
    ]
    assert [kill.after_batch for kill in recovery.kills_of(changed(at=0.0))] == [-1]


def test_confs_of_the_storage_can_be_set_for_the_candidate_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    confs = recovery.recovery_confs(planned(), DEPLOYMENT)
    assert confs["spark.hadoop.fs.slow.latency.ms"] == "20"
    assert confs["spark.executor.extraClassPath"].startswith(f"{tmp_path}/remote-fs/")
    assert not (tmp_path / "remote-fs").exists()  # it is compiled when it is needed
    there = recovery.recovery_confs(planned(cluster="nexmark"), DEPLOYMENT)
    shared = load().clusters["nexmark"].shared
    assert there["spark.executor.extraClassPath"].startswith(f"{shared}/")
    local = recovery.recovery_confs(changed(checkpoint="local", state="hdfs"), DEPLOYMENT)
    assert local["spark.sql.streaming.stateStore.providerClass"].endswith(
        "HDFSBackedStateStoreProvider"
    )
    assert not any("slow" in name for name in local)


def told(**kill: Any) -> dict[str, Any]:
    one = {"load_s": 1.5, "first_commit_s": 4.0, "interruption_s": 9.0, "catch_up_s": None}
    commits = [
        {"batch": batch, "commit_s": second} for batch, second in ((0, 0.1), (0, 0.2), (1, 0.5))
    ]
    return {"kills": [one | kill], "commit": commits, "regular_gap_s": 1.0, "failures": []}


def figures(directory: Path, splits: dict[str, Any]) -> dict[str, float]:
    ApplicationDirectory(directory).recovery_file.write_text(json.dumps(splits))
    return recovery.recovery_figures(ApplicationDirectory(directory))


def test_commits_are_summed_over_operators(tmp_path: Path) -> None:
    found = figures(tmp_path, told())
    assert found == {RESTORE: 1.5, COMMIT: 400.0, INTERRUPTION: 9.0, FIRST_COMMIT: 4.0}
    assert figures(tmp_path, told(catch_up_s=7.0))[CATCH_UP] == 7.0


def test_a_silent_engine_has_its_restore_from_the_gaps(tmp_path: Path) -> None:
    assert figures(tmp_path, told(load_s=None))[RESTORE] == 3.0
    assert figures(tmp_path, told(load_s=0.0))[RESTORE] == 0.0
    assert RESTORE not in figures(tmp_path, told(load_s=None, first_commit_s=None))


def test_a_night_reads_what_the_room_recovery_writes(tmp_path: Path) -> None:
    progress = {
        "batchId": 3,
        "timestamp": "1970-01-01T00:00:20.000Z",
        "durationMs": {"addBatch": 900, "triggerExecution": 1000},
        "stateOperators": [
            {
                "operatorName": "stateStoreSave",
                "numRowsTotal": 7,
                "memoryUsedBytes": 700,
                "commitTimeMs": 120,
            }
        ],
        "numInputRows": 50,
    }
    kill = KillRecord(at=15.0, restarted=15.5, batch=3, moment="commit")
    attempts = [Attempt(5.0, []), Attempt(15.5, [progress])]
    splits = splits_of(Story(attempts, [kill]), {1: 12.0, 2: 14.0, 3: 25.0})
    batch = recovery._shown_batch(progress)
    read = figures(tmp_path, splits | {"failures": [], "batches": [batch]})
    assert read == {RESTORE: 3.0, COMMIT: 120.0, INTERRUPTION: 9.0, FIRST_COMMIT: 5.0}
    shown = recovery.Recovered().shown_result(ApplicationDirectory(tmp_path), {"query": "q5"})
    assert shown == {"query": "q5", "batches": [batch]}
    assert batch == {
        "id": 3,
        "phase": "data",
        "input_rows": 50,
        "duration_ms": 1000,
        "state_rows": 7,
        "state_bytes": 700,
        "state_commit_ms": 120,
        "state_restore_ms": None,
    }


def test_a_wrong_table_has_no_figures(tmp_path: Path) -> None:
    with pytest.raises(NexmarkError, match="after a kill: 3 rows are missing"):
        figures(tmp_path, told() | {"failures": ["3 rows are missing"]})
    assert recovery.recovery_figures(ApplicationDirectory(tmp_path / "other")) == {}


def test_what_spark_submit_started_is_killed_whatever_it_is_by_now(tmp_path: Path) -> None:
    mark, result = owner_mark(tmp_path, "local"), tmp_path / "attempt-0.json"
    child = [sys.executable, "-c", "import time; time.sleep(60)", str(result)]
    command = [sys.executable, "-c", f"import subprocess; subprocess.run({child})", str(result)]
    environment = {**os.environ, OWNER_VARIABLE: mark}
    running = recovery._Submitted(
        lambda: subprocess.run(command, env=environment, check=True),
        *(mark, result, tmp_path / "last-words.log"),
    )
    wait_for(lambda: len(owned(mark)) == 2, within_s=30)
    assert running.poll() is None
    running.kill()
    assert running.poll() == 1
    assert "SIGKILL" in (tmp_path / "last-words.log").read_text()
    assert owned(mark) == []

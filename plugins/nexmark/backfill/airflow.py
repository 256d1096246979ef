"""Airflow's side of a backfill: created by its own command, followed in its database."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from nexmark.airflow_home import airflow_command, airflow_home
from nexmark.errors import NexmarkError

_COMMAND_TIMEOUT_S = 300
_LOCK_TIMEOUT_S = 60
_TRIES = 5
_ENDED = ("success", "failed")
_RUNS = """
    SELECT b.logical_date, r.run_id, r.state, b.exception_reason
    FROM backfill_dag_run b LEFT JOIN dag_run r ON r.id = b.dag_run_id
    WHERE b.backfill_id = ? ORDER BY b.logical_date
"""
_CLOSE = (
    """
    UPDATE task_instance SET state = 'failed'
    WHERE state IN ('scheduled', 'queued', 'running', 'up_for_retry', 'restarting', 'deferred')
      AND EXISTS (SELECT 1 FROM dag_run r WHERE r.dag_id = task_instance.dag_id
                  AND r.run_id = task_instance.run_id AND r.backfill_id = :id)
    """,
    """
    UPDATE dag_run SET state = 'failed'
    WHERE backfill_id = :id AND state IN ('queued', 'running')
    """,
    "UPDATE backfill SET completed_at = CURRENT_TIMESTAMP WHERE id = :id AND completed_at IS NULL",
)


@dataclass(frozen=True)
class DagRun:
    """A run of a backfill; where `left_out` says why, there was a run of that date before."""

    day: date
    run_id: str
    state: str
    left_out: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return bool(self.left_out) or self.state in _ENDED


def create(
    environment: Mapping[str, str],
    dag_id: str,
    days: tuple[date, date],
    conf: Mapping[str, Any],
    reprocess: str,
) -> int:
    """Create a backfill, one night at a time, and return its id; NexmarkError if it cannot be."""
    command = [
        *("backfill", "create", "--dag-id", dag_id, "--max-active-runs", "1"),
        *("--from-date", f"{days[0]}T00:00:00+00:00", "--to-date", f"{days[1]}T23:59:59+00:00"),
        *("--dag-run-conf", json.dumps(conf), "--reprocess-behavior", reprocess),
    ]
    for again in reversed(range(_TRIES)):
        problem = command_problem(environment, command)
        if not problem:
            break
        if "locked" not in problem or not again:  # SQLite, beside a scheduler
            raise NexmarkError(f"airflow backfill create: {problem}")
        time.sleep(1)
    with _database() as database:
        ((found,),) = database.execute("SELECT max(id) FROM backfill WHERE dag_id = ?", (dag_id,))
    return int(found)


def command_problem(environment: Mapping[str, str], arguments: list[str]) -> str:
    """Run Airflow's own program; its last words if it fails, else ''."""
    run = subprocess.run(
        airflow_command(arguments),
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=_COMMAND_TIMEOUT_S,
    )
    if run.returncode == 0:
        return ""
    lines = [line.strip() for line in (run.stdout + run.stderr).splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {run.returncode}"


def runs(backfill: int) -> list[DagRun]:
    """The runs of a backfill by date."""
    with _database() as database:
        rows = database.execute(_RUNS, (backfill,)).fetchall()
    return [
        DagRun(datetime.fromisoformat(moment).date(), run_id or "", state or "", reason or "")
        for moment, run_id, state, reason in rows
    ]


def close(backfill: int) -> None:
    """End a backfill that no scheduler works on: what has not ended has failed."""
    with _database() as database:
        for statement in _CLOSE:
            database.execute(statement, {"id": backfill})


def close_all() -> None:
    """End what a backfill that was killed has left: Airflow allows one at a time for a DAG."""
    with _database() as database:
        open_ = database.execute("SELECT id FROM backfill WHERE completed_at IS NULL").fetchall()
    for (backfill,) in open_:
        close(backfill)


def is_paused(dag_id: str) -> bool:
    """Whether the runs of a DAG wait until it is switched on; NexmarkError if there is no such."""
    with _database() as database:
        rows = database.execute("SELECT is_paused FROM dag WHERE dag_id = ?", (dag_id,)).fetchall()
    if not rows:
        raise NexmarkError(f"{dag_id}: Airflow does not know this DAG; see its import errors")
    return bool(rows[0][0])


@contextlib.contextmanager
def unpaused(environment: Mapping[str, str], dag_id: str) -> Iterator[None]:
    """A DAG whose runs are run; afterwards it is paused again, if it was."""
    if not is_paused(dag_id):
        yield
        return
    problem = command_problem(environment, ["dags", "unpause", dag_id, "--yes"])
    if problem:
        raise NexmarkError(f"airflow dags unpause {dag_id}: {problem}")
    try:
        yield
    finally:
        command_problem(environment, ["dags", "pause", dag_id, "--yes"])


@contextlib.contextmanager
def _database() -> Iterator[sqlite3.Connection]:
    path = airflow_home() / "airflow.db"
    with contextlib.closing(sqlite3.connect(path, timeout=_LOCK_TIMEOUT_S)) as database, database:
        yield database


__all__ = [
    "DagRun",
    "close",
    "close_all",
    "command_problem",
    "create",
    "is_paused",
    "runs",
    "unpaused",
]

"""The night of the task that runs."""

from __future__ import annotations

from airflow.sdk import get_current_context

from nexmark.night.plan import Night


def current_night() -> Night:
    """The plan of the running task's DAG run; NexmarkError before its preflight has passed."""
    run = get_current_context()["dag_run"]
    return Night.read(run.dag_id, run.run_id)

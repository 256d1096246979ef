"""Runs in Airflow that nobody works on any more: found and ended by its REST API."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from nexmark.airflow_site.api import AirflowApi, ApiError, quote
from nexmark.cluster import Lease, open_cluster
from nexmark.config import Config, paths
from nexmark.terminal import say

#: Whom Airflow names as the user of a run of `airflow dags test`.
DAG_TEST_USER = "dag_test"
UNFINISHED = ("queued", "running")
_OVER = ("success", "failed", "skipped", "upstream_failed", "removed")


def close_abandoned(config: Config, api: AirflowApi) -> None:
    """Fail the runs of `airflow dags test` that were killed, which Airflow takes for running.

    A scheduler would go on with them, so this is for a time when there is none.
    """
    clusters = [open_cluster(cluster, paths.home()) for cluster in config.clusters.values()]
    live = {night.run_id for night in _living(cluster.holder() for cluster in clusters)}
    # Commands may have begun a run that has not claimed its cluster yet.
    beginning = {
        night.dag_id for night in _living(cluster.at_the_prompt.holder() for cluster in clusters)
    }
    for dag_id, run_id in list(abandoned(api, live)):
        if dag_id in beginning:
            continue
        try:
            end_run(api, dag_id, run_id)
        except ApiError as error:  # of a DAG that is gone, which no scheduler runs either
            say(f"{dag_id} run {run_id}: cannot be ended: {error}")


def _living(leases: Iterable[Lease | None]) -> Iterator[Lease]:
    for lease in leases:
        if lease and lease.holder and lease.holder.alive:
            yield lease


def abandoned(api: AirflowApi, live: Collection[str]) -> Iterator[tuple[str, str]]:
    """DAG and run ids of the unfinished runs of `airflow dags test`, but for the live ones."""
    for run in api.every("dags/~/dagRuns", "dag_runs", state=UNFINISHED):
        if run["triggering_user_name"] == DAG_TEST_USER and run["dag_run_id"] not in live:
            yield str(run["dag_id"]), str(run["dag_run_id"])


def end_run(api: AirflowApi, dag_id: str, run_id: str) -> None:
    """Fail a run that no process works on.

    Airflow fails what runs and skips what waits, but keeps teardowns, and the run with them, for a
    scheduler. Whoever ended the run has stopped its cluster: they are skipped, too.
    """
    run = f"dags/{quote(dag_id)}/dagRuns/{quote(run_id)}"
    api.patch(run, {"state": "failed"})
    left = [
        {"task_id": task["task_id"], "map_index": task["map_index"], "new_state": "skipped"}
        for task in api.every(f"{run}/taskInstances", "task_instances")
        if task["state"] not in _OVER
    ]
    if left:
        update = {"action": "update", "entities": left, "action_on_non_existence": "skip"}
        api.patch(f"{run}/taskInstances", {"actions": [update]})
        api.patch(run, {"state": "failed"})

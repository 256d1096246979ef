"""Create and end runs in Airflow by its REST API: runs of a backfill, and abandoned runs."""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, NamedTuple

from nexmark.airflow_site.api import CONFLICT, ENDED, NOT_FOUND, AirflowApi, ApiError, quote
from nexmark.cluster import Lease, open_cluster
from nexmark.config import Config, paths
from nexmark.errors import NexmarkError
from nexmark.interrupts import undisturbed
from nexmark.model import RunKey
from nexmark.store import Store, open_store
from nexmark.terminal import show_line

#: The user that Airflow names for a run of `airflow dags test`.
DAG_TEST_USER = "dag_test"
UNFINISHED = ("queued", "running")
_OVER = ("success", "failed", "skipped", "upstream_failed", "removed")


def close_abandoned(config: Config, api: AirflowApi) -> None:
    """Fail the runs of `airflow dags test` that were killed.

    Airflow believes that they are running, and a scheduler would go on with them. So call this
    before a scheduler is started.
    """
    clusters = [open_cluster(cluster, paths.home()) for cluster in config.clusters.values()]
    live = {
        (night.dag_id, night.run_id) for night in _living(cluster.holder() for cluster in clusters)
    }
    # A command may have begun a run of its DAG that has not claimed a cluster yet.
    beginning = {
        night.dag_id for night in _living(cluster.at_the_prompt.holder() for cluster in clusters)
    }
    for dag_id, run_id in list(abandoned(api, live)):
        if dag_id in beginning:
            continue
        try:
            end_run(api, dag_id, run_id)
        except ApiError as error:  # its DAG may be gone; then no scheduler runs it either
            show_line(f"{dag_id} run {run_id}: cannot be ended: {error}")


def _living(leases: Iterable[Lease | None]) -> Iterator[Lease]:
    """Yield the leases whose holder is a process that still runs."""
    for lease in leases:
        if lease and lease.holder and lease.holder.alive:
            yield lease


def abandoned(api: AirflowApi, live: Collection[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the DAG id and run id of each unfinished run of `airflow dags test` that is not `live`.

    `live` are pairs of DAG id and run id: a schedule gives runs of several DAGs the same run id.
    """
    for run in api.every("dags/~/dagRuns", "dag_runs", state=UNFINISHED):
        key = str(run["dag_id"]), str(run["dag_run_id"])
        if run["triggering_user_name"] == DAG_TEST_USER and key not in live:
            yield key


def end_run(api: AirflowApi, dag_id: str, run_id: str) -> None:
    """Fail a run that no process works on.

    When a run is set to failed, Airflow fails its running tasks and skips its waiting ones, but
    leaves the teardowns to a scheduler, and the run stays unfinished. Here the teardowns are
    skipped, too: whoever ended the run has stopped its cluster.
    """
    run = f"dags/{quote(dag_id)}/dagRuns/{quote(run_id)}"
    api.ask(run, {"state": "failed"}, "PATCH")
    left = [
        {"task_id": task["task_id"], "map_index": task["map_index"], "new_state": "skipped"}
        for task in api.every(f"{run}/taskInstances", "task_instances")
        if task["state"] not in _OVER
    ]
    if left:
        update = {"action": "update", "entities": left, "action_on_non_existence": "skip"}
        api.ask(f"{run}/taskInstances", {"actions": [update]}, "PATCH")
        api.ask(run, {"state": "failed"}, "PATCH")


_BACKFILL = "backfill"
_BEGIN, _END = "T00:00:00Z", "T23:59:59Z"


@dataclass(frozen=True)
class DagRun:
    """A run of a backfill, or an earlier run of the same date.

    `left_out` says why the backfill made no run for the date; '' if it made one.
    """

    day: date
    run_id: str
    state: str
    left_out: str = ""

    @property
    def ended(self) -> bool:
        """Tell whether the run has ended, or was left out."""
        return bool(self.left_out) or self.state in ENDED


@dataclass(frozen=True)
class Backfill:
    """A backfill that was created.

    Attributes:
        id: Airflow's id of the backfill.
        dag_id: The id of its DAG.
        moments: The logical dates of its runs, also of those that were left out.
        left_out: By logical date, the run that was there before.
    """

    id: int
    dag_id: str
    moments: tuple[datetime, ...]
    left_out: Mapping[datetime, DagRun]


class Outcome(NamedTuple):
    """The outcome of a date.

    `state` is green, red, no build, or the reason why there was no night. `verdicts` are the
    numbers of queries by verdict, in words.
    """

    day: date
    build: str
    state: str
    verdicts: str
    failed: bool
    found_red: bool = False


def create(
    api: AirflowApi, dag_id: str, days: tuple[date, date], conf: Mapping[str, Any], reprocess: str
) -> Backfill:
    """Create a backfill that runs one night at a time; ApiError if Airflow refuses it.

    Args:
        api: The API server.
        dag_id: The id of the DAG.
        days: The first and the last date.
        conf: The params of each run.
        reprocess: Which earlier runs are run again, as Airflow calls it: none, failed, completed.
    """
    body = {"dag_id": dag_id, "max_active_runs": 1, "dag_run_conf": dict(conf)}
    body |= {"from_date": f"{days[0]}{_BEGIN}", "to_date": f"{days[1]}{_END}"}
    scheduled = _moments(api, {**body, "reprocess_behavior": "completed"})
    planned = _moments(api, {**body, "reprocess_behavior": reprocess})
    left_out = {
        moment: replace(
            _run(moment, run), left_out="already exists" if run["state"] in ENDED else "in flight"
        )
        for moment, run in _runs(api, dag_id, days).items()
        if moment not in planned and (moment in scheduled or run["run_type"] != "manual")
    }
    made = api.ask("backfills", {**body, "reprocess_behavior": reprocess})
    return Backfill(int(made["id"]), dag_id, tuple(sorted(planned | left_out.keys())), left_out)


def runs(api: AirflowApi, backfill: Backfill) -> list[DagRun]:
    """Return the runs of a backfill in the order of their dates."""
    if not backfill.moments:
        return []
    days = backfill.moments[0].date(), backfill.moments[-1].date()
    runs = _runs(api, backfill.dag_id, days)
    return [
        backfill.left_out.get(moment) or _run(moment, runs.get(moment))
        for moment in backfill.moments
    ]


def close(api: AirflowApi, backfill: int, dag_id: str) -> None:
    """End a backfill that no scheduler works on; its unfinished runs have failed."""
    try:
        api.ask(f"backfills/{backfill}/cancel", method="PUT")
    except ApiError as error:
        if error.status != CONFLICT:  # it is complete
            raise
    path = f"dags/{quote(dag_id)}/dagRuns"
    for run in list(api.every(path, "dag_runs", state=UNFINISHED, run_type=_BACKFILL)):
        end_run(api, dag_id, str(run["dag_run_id"]))


def close_all(api: AirflowApi, dag_ids: Iterable[str]) -> None:
    """End the backfills of DAGs that a killed command has left unfinished.

    Airflow allows a DAG only one unfinished backfill.
    """
    for dag_id in dag_ids:
        for backfill in list(api.every("backfills", "backfills", dag_id=dag_id)):
            if backfill["completed_at"] is None:
                close(api, int(backfill["id"]), dag_id)


def is_paused(api: AirflowApi, dag_id: str) -> bool:
    """Tell whether a DAG is paused, so that its runs wait; NexmarkError if it is unknown."""
    try:
        return bool(api.ask(f"dags/{quote(dag_id)}")["is_paused"])
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise
        problem = f"{dag_id}: Airflow does not know this DAG; see its import errors"
        raise NexmarkError(problem) from None


@contextlib.contextmanager
def unpaused(api: AirflowApi, dag_id: str) -> Iterator[None]:
    """Unpause a DAG while the block runs; pause it again afterwards, if it was paused."""
    if not is_paused(api, dag_id):
        yield
        return
    api.ask(f"dags/{quote(dag_id)}", {"is_paused": False}, "PATCH")
    try:
        yield
    finally:
        with undisturbed():
            api.ask(f"dags/{quote(dag_id)}", {"is_paused": True}, "PATCH")


def outcomes(dag_id: str, runs: Sequence[DagRun]) -> list[Outcome]:
    """Return the outcome of each run of a backfill."""
    with open_store(paths.database_url()) as store:
        recorded = {row.id for row in store.nights()}
        return [_outcome(store, str(RunKey(dag_id, run.run_id)), run, recorded) for run in runs]


def _outcome(store: Store, name: str, run: DagRun, recorded: set[str]) -> Outcome:
    """Return the outcome of a run of a backfill.

    Args:
        store: The results database.
        name: The name of the night, `<dag_id>/<run_id>`.
        run: The run.
        recorded: The names of all nights that the database has.
    """
    if run.left_out:
        return Outcome(run.day, "-", f"left out: {run.left_out}", "", False)
    failed = run.state != "success"
    if name not in recorded:
        state = f"{run.state}, before a build was there" if failed else "no build"
        return Outcome(run.day, "-", state, "", failed)
    build = store.build(store.night(name).build_id)
    counts = Counter(row.value for row in store.verdicts(name) if row.decides)
    state = {"success": "green", "failed": "red"}.get(run.state, run.state)
    verdicts = ", ".join(f"{count} {value}" for value, count in counts.most_common())
    return Outcome(run.day, build.name, state, verdicts, failed, failed and store.found_red(name))


def _moments(api: AirflowApi, body: Mapping[str, Any]) -> set[datetime]:
    """Return the logical dates of the runs that a backfill with this request would make."""
    planned = api.ask("backfills/dry_run", body)["backfills"]
    return {datetime.fromisoformat(each["logical_date"]) for each in planned}


def _runs(api: AirflowApi, dag_id: str, days: tuple[date, date]) -> dict[datetime, dict[str, Any]]:
    """Return by logical date the runs of a DAG whose date is within `days`, first and last day."""
    within = {"logical_date_gte": f"{days[0]}{_BEGIN}", "logical_date_lte": f"{days[1]}{_END}"}
    runs = api.every(f"dags/{quote(dag_id)}/dagRuns", "dag_runs", **within)
    return {datetime.fromisoformat(run["logical_date"]): run for run in runs}


def _run(moment: datetime, run: Mapping[str, Any] | None) -> DagRun:
    """Return the run of a date from Airflow's answer; None is a run that Airflow did not make."""
    if run is None:
        return DagRun(moment.date(), "", "", "Airflow made no run for it")
    return DagRun(moment.date(), str(run["dag_run_id"]), str(run["state"]))

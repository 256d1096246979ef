"""The tasks around the queries: reap, deploy, start the cluster, stop it."""

import os

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowRuntimeError

from nexmark.cluster import Lease, identify
from nexmark.errors import NexmarkError
from nexmark.night.applications import dump_submission
from nexmark.night.deployments import Deployments
from nexmark.night.night_clusters import NightClusters
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import Json
from nexmark.night.submission import written
from nexmark.reaper import command_of_environment
from nexmark.recording.night_records import record_night
from nexmark.tasks import DAG_TEST_USER, current_night, failing

_NOT_FOUND = 404


def reap() -> None:
    """Claim the cluster for this night, and end what an earlier, killed night left on it.

    Where another night uses it, a scheduler tries again later; `airflow dags test` fails at once.
    """
    clusters = clusters_of(current_night())
    error = AirflowFailException if clusters.lease.holder else AirflowException
    with failing(NexmarkError, error):
        clusters.reap()


def deploy() -> None:
    """Bring the builds and the jobs to where they run from, and record that the night begins."""
    night = current_night()
    with failing(NexmarkError):
        record_night(night, clusters_of(night).deploy())


def start_cluster() -> Json:
    """Start the cluster and wait until it is ready; fill the topics of a night of Kafka.

    Returns the submission with which SparkSubmit dumps the events of the verification runs.
    """
    night = current_night()
    with failing(NexmarkError):
        clusters_of(night).start()
    return written(dump_submission(night, Deployments.read(night).candidate))


def heal(night: Night, query: str) -> None:
    """Make the clusters whole that `query` needs, each on the build that it is to run."""
    with failing(NexmarkError):
        clusters_of(night).heal(query)


def stop_cluster() -> None:
    """End the cluster and trim the disk."""
    with failing(NexmarkError):
        clusters_of(current_night()).stop()


def clusters_of(night: Night) -> NightClusters:
    """Return the clusters of a night, which this DAG run may use."""
    return NightClusters(night, _lease(night), _is_active)


def _lease(night: Night) -> Lease:
    run = get_current_context()["dag_run"]
    in_this_process = run.triggering_user_name == DAG_TEST_USER
    holder = identify(os.getpid()) if in_this_process else None
    return Lease(night.dag_id, night.run_id, holder, command_of_environment())


def _is_active(lease: Lease) -> bool:
    """Tell whether Airflow still runs the DAG run of a lease; one it does not know has ended."""
    instance = get_current_context()["ti"]
    try:
        return instance.get_dagrun_state(lease.dag_id, lease.run_id) in ("queued", "running")
    except AirflowRuntimeError as error:
        if (error.error.detail or {}).get("status_code") == _NOT_FOUND:
            return False
        raise

"""Everything that can be known to fail is found before anything costs time."""

from __future__ import annotations

from airflow.sdk import BaseHook, get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from nexmark.config import Cluster, SshCluster, load
from nexmark.errors import NexmarkError
from nexmark.tasks.checks import find_problems, make_night
from nexmark.tasks.progress import say


def preflight(engine: str) -> None:
    """Decide what the night does and check that it can; writes the Night.

    Fails without a retry, with one line for each thing that is wrong.
    """
    context = get_current_context()
    run = context["dag_run"]
    try:
        night = make_night(load(), engine, run.dag_id, run.run_id, context["params"])
        problems = [*filter(None, [connection_problem(night.cluster)]), *find_problems(night)]
        if isinstance(night.cluster, SshCluster):
            problems += night.spark_cluster.problems(say)
    except NexmarkError as error:
        problems = [str(error)]
    if problems:
        raise AirflowFailException(" | ".join(problems))
    night.write()
    say(
        f"{night.engine.name} on cluster {night.cluster.name}: workload {night.workload.name}, "
        f"{len(night.queries)} queries, {night.workload.repetitions} timed repetitions each, "
        f"build {night.candidate}"
    )


def connection_problem(cluster: Cluster) -> str:
    """What is wrong with the Airflow connection of SparkSubmit, or ''.

    Without the connection the provider would submit to YARN, without a word.
    """
    name = cluster.spark_connection
    host, port = cluster.master_url.rsplit(":", 1)
    remedy = (
        f'set AIRFLOW_CONN_{name.upper()}=\'{{"conn_type": "spark", "host": "{host}", '
        f'"port": {port}, "extra": {{"deploy-mode": "client"}}}}\''
    )
    try:
        connection = BaseHook.get_connection(name)
    except AirflowNotFoundException:
        return f"connection {name}: there is none; {remedy}"
    found = f"{connection.host or ''}:{connection.port or ''}"
    if connection.conn_type != "spark" or found != cluster.master_url:
        return (
            f"connection {name}: is {connection.conn_type} {found}, but the master of cluster "
            f"{cluster.name} will be at {cluster.master_url}; {remedy}"
        )
    mode = connection.extra_dejson.get("deploy-mode", "client")
    if mode != "client":
        return f"connection {name}: deploy-mode is {mode}, the driver must run here; {remedy}"
    return ""


__all__ = ["connection_problem", "preflight"]

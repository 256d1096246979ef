"""A private Airflow under `.nexmark`: its environment, made ready for `make run` and `make ui`."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from nexmark.cluster import open_cluster
from nexmark.config import BASELINE, CANDIDATE, Cluster, Config, paths
from nexmark.errors import NexmarkError
from nexmark_jobs.host.processes import owner_mark

#: The Airflow pool that a night's tasks run in; one slot.
POOL = "nexmark_cluster"

_SECRETS_BACKEND = "airflow.secrets.local_filesystem.LocalFilesystemBackend"
_SETUP_TIMEOUT_S = 300
_KEPT = ("AIRFLOW_CONN_", "AIRFLOW__METRICS__")
_LOCK_TIMEOUT_S = 60
_ABANDONED = """
    SELECT dag_id, run_id FROM dag_run
    WHERE triggering_user_name = 'dag_test' AND state IN ('queued', 'running')
"""
_CLOSE = (
    """
    UPDATE task_instance SET state = 'failed'
    WHERE dag_id = ? AND run_id = ?
      AND state IN ('scheduled', 'queued', 'running', 'up_for_retry', 'restarting', 'deferred')
    """,
    "UPDATE dag_run SET state = 'failed' WHERE dag_id = ? AND run_id = ?",
)


def airflow_home() -> Path:
    """AIRFLOW_HOME of the private Airflow."""
    return paths.home() / "airflow"


def connections_file() -> Path:
    """Connections of the private Airflow, by id: JSON as `airflow connections export` writes it."""
    return airflow_home() / "connections.json"


def airflow_environment(config: Config, port: int = 8080) -> dict[str, str]:
    """The environment of every process of the private Airflow.

    Nothing of another Airflow's configuration gets in; connections that are set do, and where
    metrics go to.
    """
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("AIRFLOW_") or key.startswith(_KEPT)
    }
    home = airflow_home()
    address = f"http://127.0.0.1:{port}"
    settings = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(paths.repository() / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(paths.repository() / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__SECRETS__BACKEND": _SECRETS_BACKEND,
        "AIRFLOW__SECRETS__BACKEND_KWARGS": json.dumps(
            {"connections_file_path": str(connections_file())}
        ),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{_database()}",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__BASE_URL": address,
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "GX_ANALYTICS_ENABLED": "False",
        "NEXMARK_HOME": str(paths.home()),
        "NEXMARK_CONF": str(paths.conf_dir()),
        "PYTHONUNBUFFERED": "1",
    }
    return {**_spark_connections(config), **kept, **settings}


def _spark_connections(config: Config) -> dict[str, str]:
    """The connections of all clusters, the candidates' and the baselines'."""
    return dict(
        connection_variable(cluster.of_arm(arm))
        for cluster in config.clusters.values()
        for arm in (CANDIDATE, BASELINE)
    )


def connection_variable(cluster: Cluster) -> tuple[str, str]:
    """The environment variable that is the Airflow connection of `cluster`: name and value."""
    host, port = cluster.master_url.rsplit(":", 1)
    value = {
        "conn_type": "spark",
        "host": host,
        "port": int(port),
        "extra": {"deploy-mode": "client"},
    }
    return f"AIRFLOW_CONN_{cluster.spark_connection.upper()}", json.dumps(value)


def prepare(environment: Mapping[str, str]) -> None:
    """Create or migrate Airflow's database, and the pool; done once for each Airflow version."""
    home = airflow_home()
    home.mkdir(parents=True, exist_ok=True)
    if not connections_file().exists():
        connections_file().touch(mode=0o600)
        connections_file().write_text("{}")
    done = home / f"ready-{metadata.version('apache-airflow')}"
    if done.exists():
        return
    _airflow(["db", "migrate"], environment)
    description = "What uses the Spark cluster runs alone"
    _airflow(["pools", "set", POOL, "1", description], environment)
    done.touch()


def ui_mark() -> str:
    """What NEXMARK_OWNER is in the processes of `make ui`."""
    return owner_mark(paths.home(), "ui")


def close_abandoned(config: Config) -> None:
    """Fail the runs of `airflow dags test` that were killed, which Airflow takes for running.

    A scheduler would wait for them for ever, as a DAG has one run at a time.
    """
    nights = [open_cluster(cluster, paths.home()).holder() for cluster in config.clusters.values()]
    live = {night.run_id for night in nights if night and night.holder and night.holder.alive}
    with contextlib.closing(sqlite3.connect(_database(), timeout=_LOCK_TIMEOUT_S)) as database:
        rows = database.execute(_ABANDONED).fetchall()
        for dag_id, run_id in rows:
            if run_id not in live:
                for statement in _CLOSE:
                    database.execute(statement, (dag_id, run_id))
        database.commit()


def _database() -> Path:
    return airflow_home() / "airflow.db"


def airflow_command(arguments: list[str]) -> list[str]:
    """The command line of Airflow's own program, run by this Python."""
    return [sys.executable, "-m", "airflow", *arguments]


def _airflow(arguments: list[str], environment: Mapping[str, str]) -> None:
    run = subprocess.run(
        airflow_command(arguments),
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=_SETUP_TIMEOUT_S,
    )
    if run.returncode != 0:
        words = " ".join((run.stderr or run.stdout).split())[-300:]
        raise NexmarkError(
            f"airflow {' '.join(arguments[:2])} failed: {words}; remove {airflow_home()} to begin "
            "anew (the results are not in it)"
        )


__all__ = [
    "POOL",
    "airflow_command",
    "airflow_environment",
    "airflow_home",
    "close_abandoned",
    "connections_file",
    "prepare",
    "ui_mark",
]

"""Set up and run a private Airflow below the home: its environment, database and components."""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from nexmark.airflow_site.api import OwnAirflow
from nexmark.config import Config, paths
from nexmark.config.airflow_names import POOL, connection_variable
from nexmark.errors import NexmarkError
from nexmark.home import make_home
from nexmark.interrupts import undisturbed
from nexmark.reaper import command_variables
from nexmark_jobs.host.leases import locked
from nexmark_jobs.host.ports import is_free, listener
from nexmark_jobs.host.processes import Process, end, owner_mark, start_detached

_SETUP_TIMEOUT_S = 300
_DATABASE = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
_KEPT = ("AIRFLOW_CONN_", "AIRFLOW__METRICS__")
_API_TIMEOUT_S = 60
#: In AIRFLOW_HOME: connections by id, as `airflow connections export` writes them, and where the
#: API server listens, for commands that find it running.
CONNECTIONS, _ADDRESS = "connections.json", "address.txt"


def airflow_home() -> Path:
    """Return the directory AIRFLOW_HOME of the private Airflow."""
    return paths.home() / "airflow"


def airflow_environment(config: Config, port: int = 8080) -> dict[str, str]:
    """Return the environment of every process of the private Airflow.

    The configuration of another Airflow is left out. Of the variables that are set for Airflow,
    only the connections and the receiver of metrics are kept.
    """
    given = os.environ.items()
    kept = {
        name: value
        for name, value in given
        if not name.startswith("AIRFLOW_") or name.startswith(_KEPT)
    }
    home, address = airflow_home(), f"http://127.0.0.1:{port}"
    connections = home / CONNECTIONS
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
        # Not 5 s: where the machine is busy, the server answers later, and a task would have failed
        # before it began.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": str(_API_TIMEOUT_S),
        # Not every 30 s: the cluster that is measured may be on this machine.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300",
        "AIRFLOW__SECRETS__BACKEND": "airflow.secrets.local_filesystem.LocalFilesystemBackend",
        "AIRFLOW__SECRETS__BACKEND_KWARGS": json.dumps({"connections_file_path": str(connections)}),
        **_database_settings(),
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
        **command_variables(),
    }
    return {**dict(map(connection_variable, config.all_clusters)), **kept, **settings}


def prepare(environment: Mapping[str, str]) -> None:
    """Create or migrate Airflow's database, and create the pool.

    This is done once for each version of Airflow and each database. If several processes come at
    the same time, one does it and the others wait.
    """
    make_home()
    home = airflow_home()
    with locked(home / ".prepare.lock", _SETUP_TIMEOUT_S):
        if not (connections := home / CONNECTIONS).exists():
            connections.touch(mode=0o600)
            connections.write_text("{}")
        if not (done := prepared_mark(environment)).exists():
            remedy = f"remove {home} to begin again (the results are not in it)"
            if not environment[_DATABASE].startswith("sqlite:"):
                remedy = "check NEXMARK_AIRFLOW_DB, and that its database is Airflow's alone"
            pool = ["pools", "set", POOL, "1", "What uses the Spark cluster runs alone"]
            for arguments in (["db", "migrate"], pool):
                run_airflow(arguments, environment, remedy)
            done.touch()


def prepared_mark(environment: Mapping[str, str]) -> Path:
    """Return the file that says that the database of this Airflow's version is prepared."""
    database = hashlib.sha256(environment[_DATABASE].encode()).hexdigest()[:8]
    return airflow_home() / f"ready-{metadata.version('apache-airflow')}-{database}"


def own_airflow(port: int) -> OwnAirflow:
    """Return the API server of the private Airflow.

    Its URL is the one that the running server has written to a file; without this file, `port` of
    this machine.
    """
    address = airflow_home() / _ADDRESS
    url = address.read_text() if address.exists() else f"http://127.0.0.1:{port}"
    return OwnAirflow(url, "", direct=True, passwords=airflow_home() / "passwords.json")


def ui_mark() -> str:
    """Return the value of NEXMARK_OWNER in the processes of `nexmark ui`."""
    return owner_mark(paths.home(), "ui")


def _database_settings() -> dict[str, str]:
    """Return the variables for Airflow's database.

    Airflow opens a PostgreSQL database twice, by SQLAlchemy's engines with and without asyncio:
    both use our driver, psycopg.
    """
    url = paths.airflow_database_url()
    if url.startswith("sqlite:"):
        return {_DATABASE: url}
    url, is_postgresql = re.subn(r"^postgresql(\+\w+)?://", "postgresql+psycopg://", url)
    if not is_postgresql:  # not shown: a password may be in it
        remedy = "write it like postgresql://me@db.example/airflow"
        raise NexmarkError(f"NEXMARK_AIRFLOW_DB: is not a URL of PostgreSQL; {remedy}")
    options = "nexmark.airflow_site.driver_options.UNPREPARED"
    arguments = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS"
    both = {arguments: options, f"{arguments}_ASYNC": options}
    return {_DATABASE: url, f"{_DATABASE}_ASYNC": url, **both}


def airflow_command(arguments: list[str]) -> list[str]:
    """Return the command line of Airflow's own program, run by this Python."""
    return [sys.executable, "-m", "airflow", *arguments]


def run_airflow(arguments: list[str], environment: Mapping[str, str], remedy: str) -> None:
    """Run Airflow's own program to its end; NexmarkError with the remedy if it fails."""
    command = airflow_command(arguments)
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=_SETUP_TIMEOUT_S
    )
    if run.returncode != 0:
        words = " ".join((run.stderr or run.stdout).split())[-300:] or f"exit {run.returncode}"
        raise NexmarkError(f"airflow {' '.join(arguments[:2])} failed: {words}; {remedy}")


API_SERVER = "api-server"
#: The arguments of each component. Logs are read from the same disk, so no log server is started.
_COMPONENTS: dict[str, list[str]] = {
    API_SERVER: [],
    "scheduler": ["--skip-serve-logs"],
    "dag-processor": [],
    "triggerer": ["--skip-serve-logs"],
}
#: Seconds in which components may end by themselves, before they are killed.
_GRACE_S = 15.0
_START_TIMEOUT_S = 180.0
_POLL_S = 0.5


def check_port(port: int, other: str) -> None:
    """Raise NexmarkError if a process listens on `port`.

    `other` is the command with another port, for the message.
    """
    if not is_free(port):
        holder = listener(port)
        who = f"process {holder.pid} ({holder.command})" if holder else "another process"
        raise NexmarkError(f"port {port}: taken by {who}; end it, or choose another: {other}")


@dataclass
class Components:
    """The components of the private Airflow.

    Attributes:
        environment: The environment of every component.
        port: The port of the API server.
        logs: The directory for the logs of the components.
        running: The process of each component that was started.
    """

    environment: dict[str, str]
    port: int
    logs: Path
    running: dict[str, Process] = field(default_factory=dict)

    def bring_up(self, *names: str) -> None:
        """Start the components with these names; without names, all of them.

        The API server is started first, unless it runs already: a task fails if the scheduler
        starts it before the API server answers.
        """
        if API_SERVER not in self.running:
            self._start(API_SERVER)
            self._wait_ready()
            (airflow_home() / _ADDRESS).write_text(f"http://127.0.0.1:{self.port}")
        for name in set(names or _COMPONENTS) - self.running.keys():
            self._start(name)

    def check_alive(self) -> None:
        """Raise NexmarkError if a component has ended."""
        for name, process in self.running.items():
            if not process.alive:
                raise NexmarkError(f"airflow {name} has ended; see {self.logs}/ui-{name}.log")

    def close(self, *kept: str) -> None:
        """End all components but those with the names in `kept`."""
        with undisturbed():
            left = end(
                [process for name, process in self.running.items() if name not in kept], _GRACE_S
            )
        if left:
            print(f"did not end: {left}", file=sys.stderr)

    def _start(self, name: str) -> None:
        command, log = airflow_command([name, *_COMPONENTS[name]]), self.logs / f"ui-{name}.log"
        self.running[name] = start_detached(command, self.environment, ui_mark(), log)

    def _wait_ready(self) -> None:
        """Wait until the API server answers; NexmarkError if it does not, or a component ends."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            self.check_alive()
            try:
                with direct.open(f"http://127.0.0.1:{self.port}/api/v2/version", timeout=5):
                    return
            except OSError:  # so is URLError
                pass
            if time.monotonic() > deadline:
                problem = f"did not answer on port {self.port} within {_START_TIMEOUT_S:.0f} s"
                raise NexmarkError(f"Airflow {problem}; see {self.logs}/ui-{API_SERVER}.log")
            time.sleep(_POLL_S)

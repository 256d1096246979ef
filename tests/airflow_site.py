"""A real Airflow of the tests' own: API server, DAG processor and scheduler, and its REST API."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from nexmark.airflow_site.airflow_home import airflow_command, airflow_environment, prepare
from nexmark.config import load
from tests.site import Site

#: What the API gives at most at a time.
_PAGE = 100
#: A machine that is busy with other things is several times slower.
START_S, NIGHT_S, ANSWER_S = 300, 1200, 120
ENDED = ("success", "failed")
#: No triggerer: Airflow 3.3 waits for people without one.
COMPONENTS = {
    "api-server": (),
    "dag-processor": (),
    "scheduler": ("--skip-serve-logs",),
}


@dataclass
class Airflow:
    """Airflow's components, each a process group of its own."""

    environment: dict[str, str]
    logs: Path
    port: int
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    token: str = ""

    def start(self, name: str) -> None:
        with (self.logs / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                airflow_command([name, *COMPONENTS[name]]),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.running[name] = process
        self.started.append(process)

    def kill_scheduler(self) -> None:
        self.running["scheduler"].kill()
        self.running["scheduler"].wait()

    def ask(self, path: str, body: dict[str, Any] | None = None, method: str | None = None) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=ANSWER_S) as response:
            return json.load(response)

    def log_in(self, dags: Sequence[str]) -> None:
        """Wait for the API server and the DAGs, and let these run."""
        passwords = Path(self.environment["AIRFLOW_HOME"]) / "passwords.json"
        deadline = time.monotonic() + START_S
        while True:
            try:
                self.token = self.token_of("admin", json.loads(passwords.read_text())["admin"])
                for dag in dags:
                    self.ask(f"/api/v2/dags/{dag}", {"is_paused": False}, "PATCH")
                return
            except (OSError, ValueError, urllib.error.URLError):
                assert time.monotonic() < deadline, self.logs
                time.sleep(1)

    def token_of(self, user: str, password: str) -> str:
        login = {"username": user, "password": password}
        return str(self.ask("/auth/token", login)["access_token"])

    def trigger(self, dag: str, conf: Mapping[str, Any]) -> str:
        """Begin a run of a DAG; its run id."""
        body = {"logical_date": None, "conf": dict(conf)}
        return str(self.ask(f"/api/v2/dags/{dag}/dagRuns", body)["dag_run_id"])

    def run(self, dag: str, conf: Mapping[str, Any]) -> str:
        """Run a DAG to its end; the state that it ends in."""
        run = self.trigger(dag, conf)
        self.wait(lambda: self.state(dag, run) in ENDED, dag, run)
        return self.state(dag, run)

    def state(self, dag: str, run: str) -> str:
        return str(self.ask(f"/api/v2/dags/{dag}/dagRuns/{run}")["state"])

    def task(self, dag: str, run: str, name: str) -> str:
        """The state of one task that is not mapped."""
        found = self.ask(f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{name}")
        return str(found["state"])

    def tasks(self, dag: str, run: str) -> dict[str, str]:
        """The states of the tasks that were not skipped."""
        path = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances?limit={_PAGE}&offset="
        first = self.ask(f"{path}0")
        found = first["task_instances"]
        for offset in range(_PAGE, first["total_entries"], _PAGE):
            found += self.ask(f"{path}{offset}")["task_instances"]
        return {
            f"{x['task_id']}[{x['map_index']}] try {x['try_number']}": x["state"]
            for x in found
            if x["state"] not in ("skipped", None)
        }

    def wait(self, condition: Callable[[], bool], dag: str, run: str) -> None:
        deadline = time.monotonic() + NIGHT_S
        while not condition():
            assert time.monotonic() < deadline, self.tasks(dag, run)
            time.sleep(2)

    def end(self) -> None:
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        time.sleep(3)
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def airflow_of(
    site: Site, logs: Path, *dags: str, components: Iterable[str] = COMPONENTS, **variables: str
) -> Iterator[Airflow]:
    """A running Airflow on `site` in which `dags` can be run; `variables` are of its processes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEXMARK_HOME", str(site.home))
        patch.setenv("NEXMARK_CONF", str(site.conf))
        environment = airflow_environment(load(), port) | variables
        prepare(environment)
    made = Airflow(environment, logs, port)
    try:
        for name in components:
            made.start(name)
        made.log_in(dags)
        yield made
    finally:
        made.end()

"""The scheduler killed and started anew in mid-query: that night is right, and the next one too."""

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from nexmark.airflow_home import airflow_command, airflow_environment, prepare
from nexmark.config import load
from nexmark.engines import Build
from nexmark.store import open_store
from tests.cluster.nights import under_way, workload
from tests.cluster.testbed import Testbed
from tests.site import DAG_ID, ENGINE, Site, make_site

pytestmark = [pytest.mark.spark, pytest.mark.slow]

START_S, NIGHT_S = 180, 600
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
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    def log_in(self) -> None:
        """Wait for the API server and the DAG, and let the DAG run."""
        passwords = Path(self.environment["AIRFLOW_HOME"]) / "passwords.json"
        deadline = time.monotonic() + START_S
        while True:
            try:
                ((user, password),) = json.loads(passwords.read_text()).items()
                login = {"username": user, "password": password}
                self.token = self.ask("/auth/token", login)["access_token"]
                self.ask(f"/api/v2/dags/{DAG_ID}", {"is_paused": False}, "PATCH")
                return
            except (OSError, ValueError, urllib.error.URLError):
                assert time.monotonic() < deadline, self.logs
                time.sleep(1)

    def trigger(self, queries: str) -> str:
        """Begin a night; its run id."""
        conf = {"queries": queries, "workload": "tiny", "cluster": "namespaces"}
        body = {"logical_date": None, "conf": conf}
        return str(self.ask(f"/api/v2/dags/{DAG_ID}/dagRuns", body)["dag_run_id"])

    def state(self, run: str) -> str:
        return str(self.ask(f"/api/v2/dags/{DAG_ID}/dagRuns/{run}")["state"])

    def tasks(self, run: str) -> dict[str, str]:
        """The states of the tasks that were not skipped."""
        path = f"/api/v2/dags/{DAG_ID}/dagRuns/{run}/taskInstances?limit=1000"
        found = self.ask(path)["task_instances"]
        return {
            f"{x['task_id']}[{x['map_index']}] try {x['try_number']}": x["state"]
            for x in found
            if x["state"] not in ("skipped", None)
        }

    def wait(self, condition: Callable[[], bool], run: str) -> None:
        deadline = time.monotonic() + NIGHT_S
        while not condition():
            assert time.monotonic() < deadline, self.tasks(run)
            time.sleep(0.5)

    def end(self) -> None:
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        time.sleep(3)
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def site(
    session_testbed: Testbed,
    tmp_path_factory: pytest.TempPathFactory,
    engine_build: Callable[[str], Build],
) -> Site:
    session_testbed.up()
    made = make_site(session_testbed.home, tmp_path_factory.mktemp("s") / "c", engine_build(ENGINE))
    workload(made)
    return made


@pytest.fixture(scope="module")
def airflow(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEXMARK_HOME", str(site.home))
        patch.setenv("NEXMARK_CONF", str(site.conf))
        environment = airflow_environment(load(), port)
        prepare(environment)
    made = Airflow(environment, tmp_path_factory.mktemp("logs"), port)
    try:
        for name in COMPONENTS:
            made.start(name)
        made.log_in()
        yield made
    finally:
        made.end()


@dataclass
class Nights:
    """The states that two nights ended in, and their run ids."""

    hit: str
    hit_state: str
    next: str
    next_state: str
    seconds: float


@pytest.fixture(scope="module")
def nights(airflow: Airflow, session_testbed: Testbed) -> Nights:
    run = airflow.trigger("q0")
    ended = ("success", "failed")
    airflow.wait(lambda: under_way(session_testbed, "q0-rep-1") or airflow.state(run) in ended, run)
    begin = time.monotonic()
    airflow.kill_scheduler()
    time.sleep(2)
    airflow.start("scheduler")
    airflow.wait(lambda: airflow.state(run) in ended, run)
    seconds = time.monotonic() - begin
    print(run, airflow.state(run), seconds, airflow.tasks(run))
    following = airflow.trigger("q0")
    airflow.wait(lambda: airflow.state(following) in ended, following)
    print(following, airflow.state(following), airflow.tasks(following))
    return Nights(run, airflow.state(run), following, airflow.state(following), seconds)


@pytest.mark.fault("scheduler killed in mid-query")
def test_the_night_ends_right_or_tells_why(
    site: Site, nights: Nights, record_property: Callable[[str, object], None]
) -> None:
    record_property("seconds", f"{nights.seconds:.1f}")
    with open_store(f"sqlite:///{site.home / 'results.db'}") as store:
        rows = store.repetitions(f"{DAG_ID}/{nights.hit}")
        verdicts = store.verdicts(f"{DAG_ID}/{nights.hit}")
    (row,) = rows
    record_property("outcome", "right" if row.status == "ok" else f"{row.status}: {row.reason}")
    if row.status == "ok":
        assert nights.hit_state == "success"
    else:
        assert nights.hit_state == "failed"
        assert row.reason
    assert [verdict.value for verdict in verdicts if verdict.value == "REGRESSION"] == []


@pytest.mark.fault("the night after, same scheduler", outcome="green")
def test_the_next_night_is_green(nights: Nights) -> None:
    assert nights.next_state == "success"

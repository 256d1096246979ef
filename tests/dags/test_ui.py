"""`nexmark ui`: Airflow's own components with these DAGs, and nothing left when they are ended."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from nexmark.config import load
from nexmark.example.story import ENGINES
from nexmark_jobs.host.processes import identify
from tests.prepared_airflow import share_prepared_airflow

pytestmark = pytest.mark.slow


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ui")


@pytest.fixture(scope="module")
def ui(home: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The running command and what it has printed until it was ready."""
    with started(home) as running:
        yield running


@contextlib.contextmanager
def started(
    home: Path, *options: str, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The running command and what it has printed until it was ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "nexmark.cli", "ui", "--port", str(free_port()), *options],
        env={**os.environ, "NEXMARK_HOME": str(home), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    printed = ""
    for line in process.stdout:
        printed += line
        if line.startswith("Ctrl-C"):
            break
    try:
        yield process, printed
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def members(groups: set[int]) -> list[int]:
    """What lives in these process groups (marks do not help: Airflow renames its processes)."""
    found = []
    for directory in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            pid = int(directory.name)
            if os.getpgid(pid) in groups and identify(pid):
                found.append(pid)
    return found


def components(ui: subprocess.Popen[str]) -> set[int]:
    """The process groups of the components, which the command has started itself."""
    children = Path(f"/proc/{ui.pid}/task/{ui.pid}/children").read_text()
    return {int(pid) for pid in children.split()}


def ask(url: str, token: str = "", body: Mapping[str, object] | None = None) -> Any:
    request = urllib.request.Request(
        url,
        data=json.dumps(body).encode() if body else None,
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def read(url: str, token: str) -> str:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return str(response.read().decode())


@pytest.fixture(scope="module")
def api(ui: tuple[subprocess.Popen[str], str]) -> tuple[str, str]:
    """The address of the API server, and a token."""
    return log_in(ui[1])


def log_in(printed: str) -> tuple[str, str]:
    """Log in as the command says; the address of the API server, and a token."""
    match = re.search(r"at (http://127\.0\.0\.1:\d+) \(user (\w+), password (\w+)\)", printed)
    assert match, printed
    url, user, password = match.groups()
    login = {"username": user, "password": password}
    return url, ask(f"{url}/auth/token", body=login)["access_token"]


def test_the_dags_and_the_pool_are_there(api: tuple[str, str]) -> None:
    url, token = api
    expected = {engine.dag_id for engine in load().engines.values()} | {
        "nexmark_accept",
        "nexmark_build",
        "nexmark_experiment",
        "nexmark_prune",
        "nexmark_rollout",
        "nexmark_signoff",
    }
    deadline = time.monotonic() + 120
    while {dag["dag_id"] for dag in ask(f"{url}/api/v2/dags", token)["dags"]} != expected:
        assert time.monotonic() < deadline
        time.sleep(1)
    assert ask(f"{url}/api/v2/importErrors", token)["import_errors"] == []
    assert ask(f"{url}/api/v2/pools/nexmark_cluster", token)["slots"] == 1


def test_a_typo_in_a_param_is_one_line_in_the_answer(api: tuple[str, str]) -> None:
    """The form shows this answer; without us it has the whole JSON schema."""
    url, token = api
    body = {"logical_date": None, "conf": {"build": "pypi:4.3.0", "queries": "q5,q44"}}
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(f"{url}/api/v2/dags/nexmark_build/dagRuns", token, body)
    assert refused.value.code == 400
    told = {"detail": "queries: unknown query 'q44'; did you mean 'q4'?"}
    assert json.load(refused.value) == told


def test_nothing_listens_on_other_addresses(ui: tuple[subprocess.Popen[str], str]) -> None:
    sockets = {
        str(entry.readlink())
        for pid in members(components(ui[0]))
        for entry in Path(f"/proc/{pid}/fd").iterdir()
    }
    addresses = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                addresses.add(fields[1].partition(":")[0])
    assert addresses == {"0100007F"}  # 127.0.0.1, as the kernel writes it


def test_a_port_that_is_taken_is_reported_at_once(home: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        second = subprocess.run(
            [sys.executable, "-m", "nexmark.cli", "ui", "--port", str(port)],
            env={**os.environ, "NEXMARK_HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert second.returncode == 2
    assert second.stderr.startswith(f"port {port}: taken by process {os.getpid()} (")
    assert second.stderr.count("\n") == 1


@pytest.mark.usefixtures("ui")
def test_make_run_does_not_share_its_tasks_with_the_scheduler(home: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "nexmark.cli", "run", "--queries", "q0"],
        env={**os.environ, "NEXMARK_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 2
    assert run.stderr.startswith("`nexmark ui` is running; trigger the DAG there")


def test_sigterm_ends_every_component(ui: tuple[subprocess.Popen[str], str]) -> None:
    process, _ = ui
    groups = components(process)
    assert len(groups) == 5  # the reaper, too
    assert len(members(groups)) > 5
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 0
    assert members(groups) == []


@pytest.mark.long
def test_the_example_is_served_from_a_home_of_its_own(tmp_path: Path) -> None:
    """What a person sees in the first minute. No DAG runs there; their nights stay unread."""
    home, mine = tmp_path / "home", tmp_path / "mine.db"
    share_prepared_airflow(home / "example")
    with started(home, "--example", NEXMARK_DB=f"sqlite:///{mine}") as (process, printed):
        url, token = log_in(printed)
        page = read(f"{url}/nexmark/", token)
        assert len(components(process)) == 2  # the API server and the reaper
        assert ask(f"{url}/api/v2/dags", token)["dags"] == []
    assert process.returncode == 0
    assert "These nights were simulated" in page
    assert re.search(r"<h1>.*RED</span> 1 of 2 engines", page)
    for engine in ENGINES:
        assert f'<th scope="row">{engine.name} ' in page
    assert [path.name for path in home.iterdir()] == ["example"]
    assert not mine.exists()

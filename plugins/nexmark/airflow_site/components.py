"""Airflow's own components, each in a process group of its own: started, watched."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path

from nexmark.airflow_site.airflow_home import airflow_command, note_address, ui_mark
from nexmark.errors import NexmarkError
from nexmark_jobs.host.ports import is_free, listener
from nexmark_jobs.host.processes import Process, start_detached

#: Component -> arguments; logs are read from the same disk, so no log server is started.
_COMPONENTS: dict[str, list[str]] = {
    "api-server": [],
    "scheduler": ["--skip-serve-logs"],
    "dag-processor": [],
    "triggerer": ["--skip-serve-logs"],
}
#: How long components may take to end by themselves.
GRACE_S = 15.0
_START_TIMEOUT_S = 180.0
_POLL_S = 0.5


def check_port(port: int, other: str) -> None:
    """NexmarkError if something listens on `port`; `other` is the command with another one."""
    if not is_free(port):
        holder = listener(port)
        who = f"process {holder.pid} ({holder.command})" if holder else "another process"
        raise NexmarkError(f"port {port}: taken by {who}; end it, or choose another: {other}")


def bring_up(
    components: dict[str, Process],
    environment: Mapping[str, str],
    port: int,
    logs: Path,
    names: Iterable[str] = _COMPONENTS,
) -> None:
    """Start all components, or some; each is in `components` from the moment it runs.

    The API server first, unless it runs: a task that the scheduler starts before it answers has
    failed.
    """
    if "api-server" not in components:
        _start("api-server", components, environment, logs)
        _wait_ready(components, port, logs)
        note_address(port)
    for name in set(names) - components.keys():
        _start(name, components, environment, logs)


def _start(
    name: str, components: dict[str, Process], environment: Mapping[str, str], logs: Path
) -> None:
    command = airflow_command([name, *_COMPONENTS[name]])
    components[name] = start_detached(command, environment, ui_mark(), logs / f"ui-{name}.log")


def _wait_ready(components: Mapping[str, Process], port: int, logs: Path) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        check_alive(components, logs)
        try:
            with direct.open(f"http://127.0.0.1:{port}/api/v2/version", timeout=5):
                return
        except (OSError, urllib.error.URLError):
            pass
        if time.monotonic() > deadline:
            raise NexmarkError(
                f"Airflow did not answer on port {port} within {_START_TIMEOUT_S:.0f} s; "
                f"see {logs}/ui-api-server.log"
            )
        time.sleep(_POLL_S)


def check_alive(components: Mapping[str, Process], logs: Path) -> None:
    """NexmarkError if a component has ended."""
    for name, process in components.items():
        if not process.alive:
            raise NexmarkError(f"airflow {name} has ended; see {logs}/ui-{name}.log")

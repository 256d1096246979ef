"""Airflow itself with these DAGs on 127.0.0.1: `python -m nexmark.ui`, which is `make ui`.

Starts the api-server, the scheduler, the DAG processor and the triggerer, each in a process group
of its own, and ends them all on Ctrl-C or SIGTERM, or when one of them ends.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from nexmark.airflow_home import (
    airflow_command,
    airflow_environment,
    airflow_home,
    close_abandoned,
    prepare,
    ui_mark,
)
from nexmark.config import load, paths
from nexmark.errors import NexmarkError
from nexmark_jobs.host.ports import is_free, listener
from nexmark_jobs.host.processes import Process, end, start_detached

#: Component -> arguments; logs are read from the same disk, so no log server is started.
_COMPONENTS: dict[str, list[str]] = {
    "api-server": [],
    "scheduler": ["--skip-serve-logs"],
    "dag-processor": [],
    "triggerer": ["--skip-serve-logs"],
}
_START_TIMEOUT_S = 180.0
_GRACE_S = 15.0
_POLL_S = 0.5


class _Stopped(Exception):
    """A signal asked to end."""


def main(arguments: list[str] | None = None) -> int:
    """Run until interrupted (exit code 0) or until a component ends by itself (1)."""
    parser = argparse.ArgumentParser(prog="nexmark.ui", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--port", type=int, default=8080, help="of the web UI (default 8080)")
    options = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    components: dict[str, Process] = {}
    try:
        _check_port(options.port)
        config = load()
        environment = airflow_environment(config, options.port)
        print("preparing Airflow", flush=True)
        prepare(environment)
        close_abandoned(config)
        logs = paths.home() / "logs"
        _start(components, environment, logs)
        _wait_ready(components, options.port, logs)
        _greet(options.port)
        while True:
            _check_alive(components, logs)
            time.sleep(_POLL_S)
    except _Stopped:
        return 0
    except NexmarkError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        left = end(components.values(), grace_s=_GRACE_S)
        if left:
            print(f"did not end: {left}", file=sys.stderr)


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stopped


def _check_port(port: int) -> None:
    if not is_free(port):
        holder = listener(port)
        who = f"process {holder.pid} ({holder.command})" if holder else "another process"
        raise NexmarkError(
            f"port {port}: taken by {who}; end it, or choose another: "
            "python -m nexmark.ui --port PORT"
        )


def _start(components: dict[str, Process], environment: Mapping[str, str], logs: Path) -> None:
    mark = ui_mark()
    for name, options in _COMPONENTS.items():
        command = airflow_command([name, *options])
        components[name] = start_detached(command, environment, mark, logs / f"ui-{name}.log")


def _wait_ready(components: Mapping[str, Process], port: int, logs: Path) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        _check_alive(components, logs)
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


def _check_alive(components: Mapping[str, Process], logs: Path) -> None:
    for name, process in components.items():
        if not process.alive:
            raise NexmarkError(f"airflow {name} has ended; see {logs}/ui-{name}.log")


def _greet(port: int) -> None:
    passwords = json.loads((airflow_home() / "passwords.json").read_text())
    for user, password in passwords.items():
        print(f"Airflow is at http://127.0.0.1:{port} (user {user}, password {password})")
    print("Ctrl-C ends it", flush=True)


if __name__ == "__main__":
    sys.exit(main())

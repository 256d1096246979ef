"""Airflow itself with these DAGs on 127.0.0.1: `nexmark ui`.

Starts the api-server, the scheduler, the DAG processor and the triggerer, each in a process group
of its own, and ends them all on Ctrl-C or SIGTERM, or when one of them ends; after kill -9 its
guardian does (`nexmark.guard`).
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Mapping
from types import FrameType
from typing import NoReturn

from nexmark.airflow_site.airflow_home import (
    airflow_environment,
    airflow_home,
    own_airflow,
    prepare,
)
from nexmark.airflow_site.components import GRACE_S, bring_up, check_alive, check_port
from nexmark.airflow_site.unfinished import close_abandoned
from nexmark.config import Config, load, paths
from nexmark.guard import guarded
from nexmark.web.entry import PREFIX
from nexmark_jobs.host.processes import Process, end

_POLL_S = 0.5


class _Stopped(Exception):
    """A signal asked to end."""


def serve(port: int) -> int:
    """Run until interrupted; 0, or NexmarkError when a component ends by itself."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        check_port(port, "nexmark ui --port PORT")
        config = load()
        environment = airflow_environment(config, port)
        with guarded(environment):
            _serve(config, environment, port)
    except _Stopped:
        return 0


def _serve(config: Config, environment: Mapping[str, str], port: int) -> NoReturn:
    """Run the components until _Stopped, or NexmarkError when one of them ends; ends them all."""
    components: dict[str, Process] = {}
    logs = paths.home() / "logs"
    try:
        print("preparing Airflow", flush=True)
        prepare(environment)
        bring_up(components, environment, port, logs, ["api-server"])
        close_abandoned(config, own_airflow(port))
        bring_up(components, environment, port, logs)
        _greet(port)
        while True:
            check_alive(components, logs)
            time.sleep(_POLL_S)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        left = end(components.values(), grace_s=GRACE_S)
        if left:
            print(f"did not end: {left}", file=sys.stderr)


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stopped


def _greet(port: int) -> None:
    passwords = json.loads((airflow_home() / "passwords.json").read_text())
    for user, password in passwords.items():
        print(f"Airflow is at http://127.0.0.1:{port} (user {user}, password {password})")
    print(f"the nights: http://127.0.0.1:{port}{PREFIX}/ (or the tab Nexmark there)")
    print("Ctrl-C ends it", flush=True)

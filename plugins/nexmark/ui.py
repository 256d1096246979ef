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
from types import FrameType

from nexmark.airflow_home import (
    airflow_environment,
    airflow_home,
    close_abandoned,
    prepare,
)
from nexmark.components import GRACE_S, bring_up, check_alive, check_port
from nexmark.config import load, paths
from nexmark.errors import NexmarkError
from nexmark.web.entry import PREFIX
from nexmark_jobs.host.processes import Process, end

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
        check_port(options.port, "python -m nexmark.ui --port PORT")
        config = load()
        environment = airflow_environment(config, options.port)
        print("preparing Airflow", flush=True)
        prepare(environment)
        close_abandoned(config)
        logs = paths.home() / "logs"
        bring_up(components, environment, options.port, logs)
        _greet(options.port)
        while True:
            check_alive(components, logs)
            time.sleep(_POLL_S)
    except _Stopped:
        return 0
    except NexmarkError as error:
        print(error, file=sys.stderr)
        return 1
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


if __name__ == "__main__":
    sys.exit(main())

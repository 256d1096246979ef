"""Starting and stopping the CPU sampler beside the timed repetitions of a query."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

from airflow.sdk.exceptions import AirflowException

from nexmark.tasks.night import Deployment, Night
from nexmark_jobs.host.processes import Process, end, identify, owned, start_detached

#: Far longer than any query's repetitions: the sampler of a forgotten night ends by itself.
MAX_SECONDS = 12 * 3600
_START_TIMEOUT_S = 30.0
_STOP_GRACE_S = 30.0
_POLL_S = 0.05


def samples_path(night: Night, query: str) -> Path:
    """The samples of this host beside the repetitions of `query`."""
    return night.query_dir(query) / f"samples-{socket.gethostname()}.jsonl"


def start_samplers(query: str) -> None:
    """Start the sampler and wait until its first reading is written."""
    night = Night.current()
    stop_samplers(query)  # that of an earlier try
    directory = night.query_dir(query)
    log, pid_file = directory / "sampler.log", _pid_file(night, query)
    program = Path(Deployment.read(night).jobs_home) / "cpu_sampler.py"
    command = [
        *(sys.executable, "-I", str(program)),
        *("--out", str(samples_path(night, query)), "--pid-file", str(pid_file)),
        *("--interval", str(night.workload.sampling_interval_s)),
        *("--max-seconds", str(MAX_SECONDS)),
    ]
    process = start_detached(command, dict(os.environ), night.spark_cluster.mark, log)
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not pid_file.exists():
        if not process.alive or time.monotonic() > deadline:
            end([process])
            reason = " ".join(log.read_text(errors="replace").split())[-300:] or "no reason given"
            raise AirflowException(f"{query}: the sampler did not start: {reason}; see {log}")
        time.sleep(_POLL_S)


def stop_samplers(query: str) -> None:
    """End the sampler; it writes a last reading first. Ending none is no error."""
    night = Night.current()
    process = _running(_pid_file(night, query))
    if process and process in owned(night.spark_cluster.mark):  # not a stranger with an old pid
        end([process], grace_s=_STOP_GRACE_S)


def _pid_file(night: Night, query: str) -> Path:
    return night.query_dir(query) / "sampler.pid"


def _running(pid_file: Path) -> Process | None:
    try:
        return identify(int(pid_file.read_text()))
    except (OSError, ValueError):
        return None


__all__ = ["samples_path", "start_samplers", "stop_samplers"]

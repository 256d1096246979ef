"""Starting and stopping the CPU sampler beside the timed repetitions of a query."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path
from statistics import mean

from airflow.sdk.exceptions import AirflowException

from nexmark.cluster import ClusterError
from nexmark.errors import NexmarkError
from nexmark.tasks.night import Deployment, Night
from nexmark.tasks.operators import write_failure
from nexmark_jobs.host.processes import Process, end, identify, owned, start_detached

#: Far longer than any query's repetitions: the sampler of a forgotten night ends by itself.
MAX_SECONDS = 12 * 3600
_START_TIMEOUT_S = 30.0
_STOP_GRACE_S = 30.0
_POLL_S = 0.05


def samples_path(night: Night, query: str) -> Path:
    """The samples of this host beside the repetitions of `query`."""
    return night.query_dir(query) / f"samples-driver-{socket.gethostname()}.jsonl"


def host_samples_path(directory: Path, host: str) -> Path:
    """The samples of another host, in the directory of a query."""
    return directory / f"samples-{host}.jsonl"


def clock_offset_s(directory: Path, host: str) -> float:
    """By how much the clock of another host was ahead of this machine's.

    0 while the readings cannot tell it from 0: hosts that keep time are better than our readings.
    """
    try:
        readings = json.loads((directory / f"clock-{host}.json").read_text())["readings"]
    except (OSError, ValueError, KeyError):
        raise NexmarkError(f"no reading of the clock of host {host}, so no samples of it") from None
    if all(abs(reading["offset_s"]) <= reading["uncertainty_s"] for reading in readings):
        return 0.0
    return float(mean(reading["offset_s"] for reading in readings))


def start_samplers(query: str) -> None:
    """Start the samplers of all hosts and wait until their first readings are written."""
    night = Night.current()
    _stop_here(night, query)  # that of an earlier try
    directory = night.query_dir(query)
    for stale in (*directory.glob("samples-*.jsonl"), *directory.glob("clock-*.json")):
        stale.unlink()
    _start_here(night, query)
    jobs = Deployment.read(night).jobs_release
    try:
        night.spark_cluster.start_samplers(jobs, query, night.workload.sampling_interval_s)
    except ClusterError as error:
        for number in range(1, night.workload.repetitions + 1):
            write_failure(night.repetition_dir(query, number), str(error))
        raise AirflowException(str(error)) from None


def stop_samplers(query: str) -> None:
    """End the samplers; they write a last reading first. Ending none is no error."""
    night = Night.current()
    _stop_here(night, query)
    try:
        night.spark_cluster.stop_samplers(query, night.query_dir(query))
    except ClusterError as error:
        raise AirflowException(str(error)) from None


def _start_here(night: Night, query: str) -> None:
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


def _stop_here(night: Night, query: str) -> None:
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


__all__ = ["clock_offset_s", "host_samples_path", "samples_path", "start_samplers", "stop_samplers"]

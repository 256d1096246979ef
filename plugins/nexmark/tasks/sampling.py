"""Starting and stopping the CPU sampler beside the timed repetitions of a query."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from airflow.sdk.exceptions import AirflowException

from nexmark.cluster import ClusterError
from nexmark.cluster.base import SAMPLER_MAX_SECONDS
from nexmark.night.plan import Deployments, Night
from nexmark.night.run_directory import write_failure
from nexmark.night.runs import runs_of
from nexmark.night.sampled import samples_path
from nexmark.tasks.canaries import AFTER, BEFORE, run_canary
from nexmark.tasks.context import current_night
from nexmark_jobs.host.processes import Process, end, identify, owned, start_detached

_START_TIMEOUT_S = 30.0
_STOP_GRACE_S = 30.0
_POLL_S = 0.05


def start_samplers(query: str) -> None:
    """Start the samplers of all hosts and wait until their first readings are written."""
    night = current_night()
    _stop_here(night, query)  # an earlier try may have left a sampler
    run_canary(night, query, BEFORE)
    directory = night.query_dir(query)
    for stale in (*directory.glob("samples-*.jsonl"), *directory.glob("clock-*.json")):
        stale.unlink()
    _start_here(night, query)
    jobs = Deployments.read(night).candidate.jobs_release
    try:
        night.spark_cluster.start_samplers(jobs, query, night.workload.sampling_interval_s)
    except ClusterError as error:
        for run in runs_of(night, query):
            write_failure(night.query_dir(run.query) / run.name, str(error))
        raise AirflowException(str(error)) from None


def stop_samplers(query: str) -> None:
    """End the samplers; they write a last reading first. Ending none is no error."""
    night = current_night()
    _stop_here(night, query)
    try:
        night.spark_cluster.stop_samplers(query, night.query_dir(query))
    except ClusterError as error:
        raise AirflowException(str(error)) from None
    run_canary(night, query, AFTER)


def _start_here(night: Night, query: str) -> None:
    directory = night.query_dir(query)
    log, pid_file = directory / "sampler.log", _pid_file(night, query)
    program = Path(Deployments.read(night).candidate.jobs_home) / "cpu_sampler.py"
    command = [
        *(sys.executable, "-I", str(program)),
        *("--out", str(samples_path(directory)), "--pid-file", str(pid_file)),
        *("--interval", str(night.workload.sampling_interval_s)),
        *("--max-seconds", str(SAMPLER_MAX_SECONDS)),
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

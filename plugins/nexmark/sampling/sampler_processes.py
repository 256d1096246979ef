"""Start and end the samplers of all hosts, and run the canary before and after a query."""

import sys
import time
from pathlib import Path

from nexmark.cluster import ClusterError
from nexmark.cluster.base import SAMPLER_MAX_SECONDS
from nexmark.errors import NexmarkError
from nexmark.model import Mode
from nexmark.night.deployments import Deployments
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say
from nexmark.night.night_runs import runs_of
from nexmark.night.run_directory import Moment, failure_kept, prepare
from nexmark_jobs.cause import failure_cause
from nexmark_jobs.host.processes import end, plain_environment, start_detached, with_word

_START_TIMEOUT_S = 30.0
_STOP_GRACE_S = 30.0
_POLL_S = 0.05


def start_samplers(night: Night, group: str) -> None:
    """Start the samplers of all hosts, and wait until their first readings are written.

    NexmarkError where one does not start; the directories of the repetitions keep the reason.
    """
    waiting = [night.files.application(run) for run in runs_of(night, group)]
    with failure_kept(*waiting):
        end_driver_sampler(night, group)  # an earlier try may have left one
        run_canary(night, group, "before")
        night.files.group(group).remove_samples()
        _start_driver_sampler(night, group)
        jobs = Deployments.read(night).candidate.jobs_release
        night.spark_cluster.start_samplers(jobs, group, night.workload.sampling_interval_s)


def stop_samplers(night: Night, group: str) -> None:
    """End the samplers, which write a last reading first, and fetch the samples of the hosts.

    It is no error if no sampler runs. ClusterError where samples cannot be fetched.
    """
    fetched = night.files.group(group).fetched_samples
    prepare([fetched.path])
    end_driver_sampler(night, group)
    with failure_kept(fetched):
        night.spark_cluster.stop_samplers(group, night.query_dir(group))
    run_canary(night, group, "after")


def run_canary(night: Night, group: str, moment: Moment) -> None:
    """Run the canary on all hosts at once, and keep its figures.

    The night goes on if the canary fails. If the reason is a host, the queries on that host fail
    too, with a better message.
    """
    if night.mode == Mode.BOUNDS or not night.gate.canary:
        return
    try:
        readings = [night.spark_cluster.canary() for _ in range(night.gate.canary)]
    except ClusterError as error:
        say(f"{group}: no canary {moment}: {error}")
        return
    night.files.group(group).write_canary(moment, readings)


def _start_driver_sampler(night: Night, group: str) -> None:
    """Start the sampler of this machine, where the drivers run; NexmarkError if it ends early."""
    directory = night.files.group(group)
    log, pid_file = directory.sampler_log, directory.sampler_pid
    program = Path(Deployments.read(night).candidate.jobs_home) / "cpu_sampler.py"
    command = [
        sys.executable,
        "-I",
        str(program),
        "--out",
        str(directory.driver_samples),
        "--pid-file",
        str(pid_file),
        "--interval",
        str(night.workload.sampling_interval_s),
        "--max-seconds",
        str(SAMPLER_MAX_SECONDS),
    ]
    process = start_detached(command, plain_environment(), night.spark_cluster.mark, log)
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not pid_file.exists():
        if not process.alive or time.monotonic() > deadline:
            end([process])
            why = failure_cause(log.read_text(errors="replace"))
            raise NexmarkError(f"{group}: the sampler did not start: {why[:300]}; see {log}")
        time.sleep(_POLL_S)


def end_driver_sampler(night: Night, group: str) -> None:
    """End the sampler of this machine that has the pid file of the group among its arguments.

    The sampler is found by that argument, since another process may have its pid by now. A killed
    sampler leaves its pid file, and the next sampler would seem to be ready: so it is removed.
    """
    pid_file = night.files.group(group).sampler_pid
    end(with_word(night.spark_cluster.mark, str(pid_file)), grace_s=_STOP_GRACE_S)
    pid_file.unlink(missing_ok=True)

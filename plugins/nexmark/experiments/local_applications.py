"""Run Spark applications on this machine, one at a time, with a CPU sampler beside each."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nexmark.engines import Build, local_environment
from nexmark.engines.jvm import temporary_files
from nexmark.engines.launcher import (
    JOBS,
    ProcessGroup,
    check_places,
    logged_cause,
    start,
    submitted,
)
from nexmark.engines.short_runs import untimed_options
from nexmark.errors import NexmarkError
from nexmark.interrupts import undisturbed
from nexmark_jobs.host.processes import OWNER_VARIABLE, end, owned, plain_environment

SAMPLES, RESULT, EVENT_LOG = "samples.jsonl", "result.json", "events"

_INTERVAL_S = 0.2
_RUN_S = 3600.0
_SAMPLER_S = 30.0
_POLL_S = 0.05
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_CONFS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.eventLog.compress": "true",
    "spark.eventLog.compression.codec": "zstd",
}


class ExperimentError(NexmarkError):
    """An experiment cannot be run, or one of its applications failed; one line with the reason."""


@dataclass(frozen=True)
class LocalApplications:
    """Runs programs of `nexmark_jobs`, which write below the directory `work`.

    `proven` has the key of each trial whose rows equal the reference, with the digest of the rows.
    """

    work: Path
    proven: set[tuple[str, str | None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Refuse a directory in which Spark cannot work."""
        check_places(self.work)

    @property
    def _mark(self) -> str:
        return f"{self.work}|experiment"

    def run(
        self,
        build: Build,
        program: str,
        arguments: Sequence[str],
        *,
        confs: Mapping[str, str],
        memory: str,
        name: str,
        sampled: bool = False,
    ) -> Path:
        """Run a program to its end, and return the directory of the application.

        Args:
            build: The Spark that runs it.
            program: The file of the program in `nexmark_jobs`.
            arguments: The arguments of the program.
            confs: The Spark confs of the application, beside our own.
            memory: The memory of the driver, such as 2g.
            name: The directory of the application, below `work`; what is there is deleted.
            sampled: Whether to write CPU samples and an event log into that directory. Without
                them the time does not count, and the JVM has the options for a quick start.

        Raises:
            ExperimentError: The program failed, or did not end in time; with its last lines.
        """
        place, scratch = self.work / name, self.work / "tmp"
        shutil.rmtree(place, ignore_errors=True)
        (place / EVENT_LOG).mkdir(parents=True)
        scratch.mkdir(exist_ok=True)
        all_confs = {"spark.driver.memory": memory, **_CONFS, **confs}
        quick = "" if sampled else untimed_options(build.spark_home, build.version)
        options = (temporary_files(scratch), quick, confs.get(_JAVA_OPTIONS, ""))
        all_confs[_JAVA_OPTIONS] = " ".join(filter(None, options))
        if sampled:
            events = (place / EVENT_LOG).as_uri()
            all_confs |= {"spark.eventLog.enabled": "true", "spark.eventLog.dir": events}
        command = submitted(build.spark_home, program, arguments, all_confs)
        log = place / "log.txt"
        try:
            if sampled:
                self._start_sampler(place)
            process = self._started(command, local_environment(build.spark_home, scratch), log)
            if process.wait(_RUN_S) != 0:
                raise ExperimentError(f"{name}: {logged_cause(log, process.returncode)}")
        except subprocess.TimeoutExpired:
            raise ExperimentError(f"{name}: no end after {_RUN_S:.0f} s") from None
        finally:
            with undisturbed():
                end(owned(self._mark))
                shutil.rmtree(scratch, ignore_errors=True)
        return place

    def _start_sampler(self, place: Path) -> None:
        """Start the sampler, and wait until it is ready; ExperimentError if it does not start."""
        ready, log = place / "sampler.pid", place / "sampler.txt"
        command = [
            sys.executable,
            str(JOBS / "cpu_sampler.py"),
            "--out",
            str(place / SAMPLES),
            "--pid-file",
            str(ready),
            "--interval",
            str(_INTERVAL_S),
            "--max-seconds",
            str(_RUN_S),
        ]
        process = self._started(command, plain_environment(), log)
        deadline = time.monotonic() + _SAMPLER_S
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise ExperimentError(
                    f"experiment: no CPU sampler: {logged_cause(log, process.poll())}"
                )
            time.sleep(_POLL_S)

    def _started(
        self, command: list[str], environment: Mapping[str, str], log: Path
    ) -> ProcessGroup:
        marked = {**environment, OWNER_VARIABLE: self._mark}
        return start(command, marked, log, self.work, with_parent=signal.SIGTERM)

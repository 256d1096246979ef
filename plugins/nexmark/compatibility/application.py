"""Run one Spark application of a build that starts and resumes queries.

The application is `nexmark_jobs/resume_queries.py`.
"""

import json
import os
import shlex
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nexmark.engines import Build, job_python, local_environment
from nexmark.engines.jvm import temporary_files
from nexmark.engines.launcher import JOBS, ProcessGroup, check_places, logged_cause, start
from nexmark.engines.short_runs import untimed_options
from nexmark.errors import NexmarkError
from nexmark.interrupts import undisturbed
from nexmark.model import Say
from nexmark_jobs.host.processes import OWNER_VARIABLE, end, owned

_POLL_S = 0.2
_SILENCE_S = 900.0
_JAVA_OPTIONS = "-XX:+UseSerialGC"  # the fastest for little data
_WAREHOUSE, _JAVA = "spark.sql.warehouse.dir", "spark.driver.extraJavaOptions"
_CONFS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
}
OF_APPLICATION = frozenset({*_CONFS, _WAREHOUSE, _JAVA})
"""The confs that an application has anyway; a job cannot change them."""


class ApplicationError(NexmarkError):
    """A Spark application does not start, or ends before its first run."""


@dataclass(frozen=True)
class CheckpointRun:
    """A run of a query that stops in the middle of its input, or one that resumes such a run.

    Attributes:
        id: name of the run, which is shown as progress.
        arguments: arguments of `run_query.py`.
        confs: Spark SQL confs of the session.
        after: id of the run that has to be done before; None if none.
        copies: a directory, and the copy of it to make before the run; None for no copy.
        only_plan: plan the query without running it.
        only_stateful: leave the query out if it keeps no state.
    """

    id: str
    arguments: list[str]
    confs: Mapping[str, str]
    after: str | None = None
    copies: tuple[str, str] | None = None
    only_plan: bool = False
    only_stateful: bool = False


@dataclass
class Application:
    """The runs of one build in one application, or in several if runs end the application.

    Attributes:
        build: the Spark build.
        runs: the runs, in order.
        work: a directory of its own, which must not exist yet.
        dump: arguments of `dump_events.py`, which runs first; None for no events.
        formulations: a Python file with formulations of the user.
        confs: Spark confs of the application, beside the defaults here.
        records: the last line of the log about each run, by its id.
    """

    build: Build
    runs: list[CheckpointRun]
    work: Path
    dump: list[str] | None = None
    formulations: Path | None = None
    confs: Mapping[str, str] = field(default_factory=dict)
    records: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise NexmarkError for a directory in which Spark cannot work."""
        check_places(self.work)

    def run(self, say: Say) -> Mapping[str, Mapping[str, Any]]:
        """Make all runs; if one ends the application, another application makes the others.

        Returns:
            The outcome of each run by its id.

        Raises:
            ApplicationError: the application does not start, or ends before its first run.
        """
        self.work.mkdir()
        left = list(self.runs)
        while left:
            self._run(left, say)
            rest = [run for run in left if run.id not in self.records]
            if len(rest) == len(left):
                raise ApplicationError(
                    f"Spark {self.build.version} ({self.build.source}): {self._failure_cause()}"
                )
            left, self.dump = rest, None
        return self.records

    def _run(self, runs: list[CheckpointRun], say: Say) -> None:
        """Make runs in one application, and collect the records until it ends."""
        log, plan = self.work / "log.jsonl", self.work / "plan.json"
        log.write_text("")
        more = str(self.formulations) if self.formulations else None
        written = [self._as_json(run) for run in runs]
        plan.write_text(json.dumps({"dump": self.dump, "formulations": more, "runs": written}))
        job = [job_python(self.build.version), str(JOBS / "resume_queries.py")]
        command = [*job, "--plan", str(plan), "--log", str(log)]
        environment = self._environment() | {OWNER_VARIABLE: f"{self.work}|compat"}
        output = self.work / "output"
        process = start(command, environment, output, self.work, with_parent=signal.SIGKILL)
        try:
            self._follow(process, log, say)
        finally:  # end the application and all processes that it started
            with undisturbed():
                end(owned(environment[OWNER_VARIABLE]))
                process.wait()

    def _as_json(self, run: CheckpointRun) -> dict[str, Any]:
        """Return a run as `resume_queries.py` reads it, without `after` if that run is done."""
        is_ready = self.records.get(run.after or "", {}).get("state") == "done"
        return vars(run) | {"confs": dict(run.confs)} | ({"after": None} if is_ready else {})

    def _follow(self, process: ProcessGroup, log: Path, say: Say) -> None:
        """Read the log until the application ends, or writes nothing for `_SILENCE_S` seconds.

        If a run was in progress then, its record says that it failed.
        """
        read, running, last_line = 0, None, time.monotonic()
        while True:
            ended = process.poll() is not None
            lines = log.read_text(encoding="utf-8").split("\n")[:-1]
            for record in map(json.loads, lines[read:]):
                last_line = time.monotonic()
                running = record["id"] if record["state"] == "begun" else None
                if running is None:
                    self.records[record["id"]] = record
                    say(f"Spark {self.build.version}: {record['id']}: {record['state']}")
            read = len(lines)
            silent = time.monotonic() - last_line > _SILENCE_S
            if ended or silent:
                break
            time.sleep(_POLL_S)
        if running is not None:
            late = f"did not end within {_SILENCE_S:.0f} s"
            reason = late if silent else self._failure_cause(process.returncode)
            self.records[running] = {"state": "failed", "plan": {}, "reason": reason}

    def _environment(self) -> dict[str, str]:
        """Return the environment of the application, with its confs and its Python libraries."""
        home, temporary = self.build.spark_home, self.work / "tmp"
        temporary.mkdir(exist_ok=True)
        libraries = home / "python" / "lib"
        paths = [libraries / "pyspark.zip", *libraries.glob("py4j-*.zip"), JOBS.parent]
        options = f"{untimed_options(home, self.build.version)} {_JAVA_OPTIONS}"
        confs = {
            **_CONFS,
            _WAREHOUSE: str(self.work / "warehouse"),
            _JAVA: f"{options} {temporary_files(temporary)}",
            **self.confs,
        }
        words = [word for name, value in confs.items() for word in ("--conf", f"{name}={value}")]
        return local_environment(home, temporary) | {
            "PYSPARK_SUBMIT_ARGS": shlex.join([*words, "pyspark-shell"]),
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
        }

    def _failure_cause(self, code: int | None = None) -> str:
        """Return why the application ended, by its output and its exit code."""
        return f"the application ended: {logged_cause(self.work / 'output', code)}"

"""One Spark application of a build that runs halves of queries; see `nexmark_jobs.run_halves`."""

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
from nexmark.engines.launcher import JOBS, ProcessGroup, check_places, last_words, start
from nexmark.engines.short_runs import untimed_options
from nexmark.errors import NexmarkError
from nexmark.interrupts import undisturbed
from nexmark.model import Say
from nexmark_jobs.host.processes import OWNER_VARIABLE, end, owned

_POLL_S = 0.2
_SILENCE_S = 900.0
_JAVA_OPTIONS = "-XX:+UseSerialGC"  # little data
_CONFS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
}


class ApplicationError(NexmarkError):
    """An application of a Spark build could not do its work."""


@dataclass(frozen=True)
class Half:
    """A run of a query to its middle, or from there to its end, in a copy of a directory."""

    id: str
    arguments: list[str]
    confs: Mapping[str, str]
    after: str | None = None
    copies: tuple[str, str] | None = None
    only_plan: bool = False
    only_stateful: bool = False


@dataclass
class Application:
    """The work of one build, and its directory; `dump` are arguments of `dump_events.py`."""

    build: Build
    halves: list[Half]
    work: Path
    dump: list[str] | None = None
    formulations: Path | None = None
    confs: Mapping[str, str] = field(default_factory=dict)
    records: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a directory that Spark cannot work in."""
        check_places(self.work)

    def run(self, say: Say) -> Mapping[str, Mapping[str, Any]]:
        """Run the halves; where one ends the application, a second application runs the rest.

        Returns the outcome of each half by its id. ApplicationError: it does not start, or ends
        before its first half.
        """
        self.work.mkdir()
        left = list(self.halves)
        while left:
            self._run(left, say)
            rest = [half for half in left if half.id not in self.records]
            if len(rest) == len(left):
                raise ApplicationError(
                    f"Spark {self.build.version} ({self.build.source}): {self._last_words()}"
                )
            left, self.dump = rest, None
        return self.records

    def _run(self, halves: list[Half], say: Say) -> None:
        log, plan = self.work / "log.jsonl", self.work / "plan.json"
        log.write_text("")
        more = str(self.formulations) if self.formulations else None
        written = [self._as_json(half) for half in halves]
        plan.write_text(json.dumps({"dump": self.dump, "formulations": more, "halves": written}))
        job = [job_python(self.build.version), str(JOBS / "run_halves.py")]
        command = [*job, "--plan", str(plan), "--log", str(log)]
        environment = self._environment() | {OWNER_VARIABLE: f"{self.work}|compat"}
        output = self.work / "output"
        process = start(command, environment, output, self.work, with_parent=signal.SIGKILL)
        try:
            self._follow(process, log, say)
        finally:  # it ends, and all that it started
            with undisturbed():
                end(owned(environment[OWNER_VARIABLE]))
                process.wait()

    def _as_json(self, half: Half) -> dict[str, Any]:
        """A half as the program reads it; an earlier application may have done the one before."""
        is_ready = self.records.get(half.after or "", {}).get("state") == "done"
        return vars(half) | {"confs": dict(half.confs)} | ({"after": None} if is_ready else {})

    def _follow(self, process: ProcessGroup, log: Path, say: Say) -> None:
        """Read the log until the application has ended, or nothing has happened for too long."""
        read, running, heard = 0, None, time.monotonic()
        while True:
            ended = process.poll() is not None
            lines = log.read_text(encoding="utf-8").split("\n")[:-1]
            for record in map(json.loads, lines[read:]):
                heard = time.monotonic()
                running = record["id"] if record["state"] == "begun" else None
                if running is None:
                    self.records[record["id"]] = record
                    say(f"Spark {self.build.version}: {record['id']}: {record['state']}")
            read = len(lines)
            silent = time.monotonic() - heard > _SILENCE_S
            if ended or silent:
                break
            time.sleep(_POLL_S)
        if running is not None:
            late = f"did not end within {_SILENCE_S:.0f} s"
            reason = late if silent else self._last_words(process.returncode)
            self.records[running] = {"state": "failed", "plan": {}, "reason": reason}

    def _environment(self) -> dict[str, str]:
        home, temporary = self.build.spark_home, self.work / "tmp"
        temporary.mkdir(exist_ok=True)
        libraries = home / "python" / "lib"
        paths = [libraries / "pyspark.zip", *libraries.glob("py4j-*.zip"), JOBS.parent]
        options = f"{untimed_options(home, self.build.version)} {_JAVA_OPTIONS}"
        confs = {
            **_CONFS,
            "spark.sql.warehouse.dir": str(self.work / "warehouse"),
            "spark.driver.extraJavaOptions": f"{options} {temporary_files(temporary)}",
            **self.confs,
        }
        words = [word for name, value in confs.items() for word in ("--conf", f"{name}={value}")]
        return local_environment(home, temporary) | {
            "PYSPARK_SUBMIT_ARGS": shlex.join([*words, "pyspark-shell"]),
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
        }

    def _last_words(self, code: int | None = None) -> str:
        return f"the application ended: {last_words(self.work / 'output', code)}"

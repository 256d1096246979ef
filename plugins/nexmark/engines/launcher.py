"""Runs programs of `nexmark_jobs` with a Spark build on this machine."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import nexmark_jobs
from nexmark.engines import Build, local_environment
from nexmark.engines.jvm import check_path, temporary_files
from nexmark.engines.short_runs import C1, untimed_options
from nexmark.errors import NexmarkError
from nexmark.interrupts import signalled_with_parent
from nexmark_jobs import cause
from nexmark_jobs.host.processes import OWNER_VARIABLE, kill_one

JOBS = Path(nexmark_jobs.__file__).parent
Confs = Mapping[str, str]
NONE: Confs = MappingProxyType({})
_DUMP_S = 3600
_CONFS = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}
_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
#: Two executors with a core each, in processes of their own, with master and workers in the driver.
CLUSTER = "local-cluster[2,1,1024]"


class ProcessGroup(subprocess.Popen[bytes]):
    """A process with a group of its own."""

    def kill(self) -> None:
        """SIGKILL to the whole group, as if the host was lost."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    cwd: Path | None = None,
    with_parent: signal.Signals | None = None,
) -> ProcessGroup:
    """Start a process that writes to `log`; the kernel signals `with_parent` when we have ended."""
    with log.open("wb") as output:
        return ProcessGroup(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=signalled_with_parent(with_parent) if with_parent else None,
        )


def submitted(home: Path, program: str, arguments: Sequence[str], confs: Confs) -> list[str]:
    """The command with which the Spark in `home` runs a program of `nexmark_jobs`."""
    words = (word for pair in confs.items() for word in ("--conf", "=".join(pair)))
    return [str(home / "bin" / "spark-submit"), *words, str(JOBS / program), *arguments]


def check_places(work: Path) -> None:
    """PathError where Spark cannot work: from this installation, or in `work`."""
    check_path(JOBS, "installation")
    check_path(work, "directory")


@dataclass(frozen=True)
class Launcher:
    """How processes of a query are started."""

    build: Build
    confs: Confs
    work: Path  # for logs, results and all that Spark writes beside
    mark: Mapping[str, str]  # the variable that marks the processes
    master: str = "local[2]"  # or `CLUSTER`, or the URL of a standalone cluster
    local: Path | None = None  # where executors of a standalone cluster have temporary files
    java_options: str = C1  # of its JVMs; without any, they compile as Spark's own do

    def __post_init__(self) -> None:
        """Refuse a directory that Spark cannot work in."""
        check_places(self.work)

    @contextlib.contextmanager
    def started(
        self, given: Sequence[str], result: Path, job: str = "run_query.py", confs: Confs = NONE
    ) -> Iterator[ProcessGroup]:
        """A process with a group of its own; the context ends it, and removes what it wrote aside.

        `confs` are Spark confs of this process only.
        SIGKILL leaves the local directories of RocksDB behind: they are in `scratch(result)`.
        """
        scratch = result.with_suffix(".tmp")
        scratch.mkdir()
        options = dict.fromkeys(_OPTIONS, f"{self.java_options} {temporary_files(scratch)}")
        more = {**self.confs, **confs, "spark.master": self.master}
        home = self._home()
        command = submitted(home, job, given, {**_CONFS, **options, **more})
        process = start(command, {**local_environment(home, scratch), **self.mark}, log_of(result))
        try:
            yield process
        finally:
            process.kill()
            shutil.rmtree(scratch, ignore_errors=True)

    def scratch(self, result: Path) -> Path:
        """Where the process with this result file, or its executors, have temporary files."""
        return self.local or result.with_suffix(".tmp")

    def kill_one(self, word: str, draws: random.Random, *, again: bool) -> bool:
        """See `nexmark.cluster.SparkCluster.kill_one`."""
        return kill_one(self.mark[OWNER_VARIABLE], word, draws, again=again)

    def _home(self) -> Path:
        """SPARK_HOME; a cluster in the driver writes there, so it has one of links."""
        if self.master != CLUSTER:
            return self.build.spark_home
        home = self.work / "spark-home"
        if not home.is_dir():
            home.mkdir()
            for entry in self.build.spark_home.iterdir():
                if entry.name != "work":
                    (home / entry.name).symlink_to(entry)
        return home


def dump_events(launcher: Launcher, given: Sequence[str], target: Path, kind: str) -> None:
    """Write generated events to `target` in files of `kind`; NexmarkError if that fails."""
    arguments = [*given, "--out", str(target), "--format", kind]
    result = launcher.work / f"{target.name}.dump"
    options = untimed_options(launcher.build.spark_home, launcher.build.version)
    quick = replace(launcher, java_options=options)
    with quick.started(arguments, result, job="dump_events.py") as process:
        process.wait(timeout=_DUMP_S)
    if process.returncode != 0:
        raise NexmarkError(f"no events: {last_words(log_of(result), process.returncode)}")


def log_of(result: Path) -> Path:
    """The output of the process with this result file, or at least its last words."""
    return result.with_suffix(".log")


def last_words(log: Path, code: int | None = None) -> str:
    """Why the process with this log and exit code ended, in one line."""
    said = cause.last_words(log.read_text(errors="replace"), code)
    _, told, why = said.partition(".py: error: ")
    return (why if told else said)[:500]


def progress(result: Path) -> list[dict[str, Any]]:
    """The progress that a process has written; a last line that was cut off is left out."""
    path = result.with_name(f"{result.name}.progress")
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]

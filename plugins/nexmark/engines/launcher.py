"""Run programs of `nexmark_jobs` with a Spark build on this machine."""

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
from nexmark.interrupts import interrupts_held_back, signalled_with_parent
from nexmark_jobs import cause
from nexmark_jobs.host.processes import OWNER_VARIABLE, kill_one

JOBS = Path(nexmark_jobs.__file__).parent
Confs = Mapping[str, str]
NONE: Confs = MappingProxyType({})
_DUMP_S = 3 * 3600
_CONFS = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}
_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
#: Two executors with a core each, in processes of their own, with master and workers in the driver.
CLUSTER = "local-cluster[2,1,1024]"


class ProcessGroup(subprocess.Popen[bytes]):
    """A process with a group of its own."""

    def kill(self) -> None:
        """Send SIGKILL to the whole group, as if the host was lost."""
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
    """Start a process in a group of its own.

    Args:
        command: Its command line.
        environment: Its environment.
        log: The file that it writes its output to.
        cwd: Its working directory.
        with_parent: The signal that the kernel sends it when this process has ended; None: nothing.
    """
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
    """Return the command line with which a Spark build runs a program of `nexmark_jobs`.

    Args:
        home: SPARK_HOME.
        program: The file of the program.
        arguments: The program's arguments.
        confs: The Spark confs.
    """
    words = (word for pair in confs.items() for word in ("--conf", "=".join(pair)))
    return [str(home / "bin" / "spark-submit"), *words, str(JOBS / program), *arguments]


def check_places(work: Path) -> None:
    """Raise PathError if Spark cannot work from this installation, or in `work`."""
    check_path(JOBS, "installation")
    check_path(work, "directory")


@dataclass(frozen=True)
class Launcher:
    """Start the processes of a query with one Spark build.

    Attributes:
        build: The Spark build.
        confs: Spark confs of every process.
        work: The directory for logs, results and all that Spark writes beside them.
        mark: The environment variable that marks the processes.
        master: `local[N]`, `CLUSTER`, or the URL of a standalone cluster.
        local: The directory for temporary files of the executors of a standalone cluster.
        java_options: Options of the JVMs; by default only the JVM's first compiler compiles, and
            with '' both compilers do.
    """

    build: Build
    confs: Confs
    work: Path
    mark: Mapping[str, str]
    master: str = "local[2]"
    local: Path | None = None
    java_options: str = C1

    def __post_init__(self) -> None:
        """Refuse a directory that Spark cannot work in."""
        check_places(self.work)

    @contextlib.contextmanager
    def started(
        self, given: Sequence[str], result: Path, job: str = "run_query.py", confs: Confs = NONE
    ) -> Iterator[ProcessGroup]:
        """Start a process in a group of its own; the context ends it and removes temporary files.

        SIGKILL leaves the local directories of RocksDB behind: they are in `scratch(result)`.

        Args:
            given: The arguments of the program.
            result: The result file of the program.
            job: The program.
            confs: Spark confs of this process only.
        """
        scratch = result.with_suffix(".tmp")
        scratch.mkdir()
        options = dict.fromkeys(_OPTIONS, f"{self.java_options} {temporary_files(scratch)}")
        more = {**self.confs, **confs, "spark.master": self.master}
        home = self._home()
        command = submitted(home, job, given, {**_CONFS, **options, **more})
        environment = {**local_environment(home, scratch), **self.mark}
        with interrupts_held_back() as let_through:
            process = start(command, environment, log_of(result))
            try:
                let_through()
                yield process
            finally:
                process.kill()
                shutil.rmtree(scratch, ignore_errors=True)

    def scratch(self, result: Path) -> Path:
        """Return the directory of temporary files of the process with this result file."""
        return self.local or result.with_suffix(".tmp")

    def kill_one(self, word: str, draws: random.Random, *, again: bool) -> bool:
        """Kill one process; see `nexmark.cluster.SparkCluster.kill_one`."""
        return kill_one(self.mark[OWNER_VARIABLE], word, draws, again=again)

    def _home(self) -> Path:
        """Return SPARK_HOME; a cluster in the driver writes there, so it gets one made of links."""
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
    """Write generated events to a directory.

    Args:
        launcher: What starts the program.
        given: The arguments of the generator.
        target: The new directory.
        kind: json or parquet.

    Raises:
        NexmarkError: The program failed.
    """
    arguments = [*given, "--out", str(target), "--format", kind]
    result = launcher.work / f"{target.name}.dump"
    options = untimed_options(launcher.build.spark_home, launcher.build.version)
    quick = replace(launcher, java_options=options)
    with quick.started(arguments, result, job="dump_events.py") as process:
        try:
            process.wait(timeout=_DUMP_S)
        except subprocess.TimeoutExpired:
            raise NexmarkError(f"no events: they took over {_DUMP_S} s") from None
    if process.returncode != 0:
        raise NexmarkError(f"no events: {logged_cause(log_of(result), process.returncode)}")


def log_of(result: Path) -> Path:
    """Return the log of the process with this result file."""
    return result.with_suffix(".log")


def logged_cause(log: Path, code: int | None = None) -> str:
    """Say in one line why the process with this log and exit code ended."""
    said = cause.failure_cause(log.read_text(errors="replace"), code)
    _, is_job_error, why = said.partition(".py: error: ")
    return (why if is_job_error else said)[:500]


def progress(result: Path) -> list[dict[str, Any]]:
    """Return the progress that a process has written, without a last line that was cut off."""
    path = result.with_name(f"{result.name}.progress")
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]

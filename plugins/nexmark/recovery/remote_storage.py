"""Give any build a remote storage: the local disk, with the latency, bandwidth and faults of one.

See `nexmark_jobs/remote_fs/SlowFileSystem.java`. This machine compiles it with its JDK, against
the Hadoop of the build.
"""

from __future__ import annotations

import hashlib
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import nexmark_jobs
from nexmark.config import paths
from nexmark.engines import Build
from nexmark.engines.prerequisites import java_program
from nexmark.errors import NexmarkError
from nexmark.home import whole_directory
from nexmark_jobs.host.processes import plain_environment

_SOURCE = Path(nexmark_jobs.__file__).parent / "remote_fs" / "SlowFileSystem.java"
_CLASS = "SlowFileSystem"
_COMPILE_S = 300
SEED_CONF = "spark.hadoop.fs.slow.seed"
"""The Spark conf with the seed from which latencies and errors are drawn."""
FAULTS = {"outage": "seconds", "slow": "times slower", "errors": "percent of the calls"}
"""The kinds of faults, each with the unit of its size."""


@dataclass(frozen=True)
class Fault:
    """A fault of the storage: outage:SECONDS, slow:FACTOR or errors:PERCENT."""

    kind: str
    size: float

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read a fault as a person writes it; ValueError with a remedy for any other text."""
        kind, _, size = text.partition(":")
        highest = 100 if kind == "errors" else 3600
        with suppress(ValueError):
            if kind in FAULTS and 0 < float(size) <= highest:
                return cls(kind, float(size))
        raise ValueError(
            f"{text!r} is not a fault; write outage:SECONDS, slow:FACTOR or errors:PERCENT, "
            "e.g. outage:10"
        )

    def __str__(self) -> str:
        """Return the fault as a person writes it."""
        return f"{self.kind}:{self.size:g}"


@dataclass(frozen=True)
class RemoteStorage:
    """A storage that is slower than the local disk, and may have a fault.

    Attributes:
        latency_ms: The mean latency of a call, in milliseconds.
        mb_per_s: The bandwidth of a process, in MB per second.
        seed: The seed from which latencies and errors are drawn.
        fault: The fault, which acts while the file `fault_file` of the run exists; None for none.
    """

    latency_ms: float = 20
    mb_per_s: float = 20
    seed: int = 1
    fault: Fault | None = None

    def url(self, directory: Path) -> str:
        """Return the URL of the directory, as Spark takes it."""
        return f"slow://{directory}"

    def confs(
        self, build: Build, fault_file: Path | None, place: Path | None = None
    ) -> dict[str, str]:
        """Return the Spark confs with which drivers and executors of the build use this storage.

        Args:
            build: The Spark build, for which the classes are compiled.
            fault_file: The file that begins the fault; None if there is no fault.
            place: A directory that all drivers and executors see, for the classes; None for a
                directory of the home.
        """
        return self.confs_with(compiled(build, place), fault_file)

    def confs_with(self, directory: Path, fault_file: Path | None) -> dict[str, str]:
        """Return the Spark confs for classes that are, or will be, in `directory`."""
        classes = str(directory)
        hadoop = {
            "fs.slow.impl": _CLASS,
            "fs.AbstractFileSystem.slow.impl": f"{_CLASS}$Context",
            "fs.slow.latency.ms": f"{self.latency_ms:g}",
            "fs.slow.mb.per.s": f"{self.mb_per_s:g}",
        }
        if self.fault:
            hadoop |= {"fs.slow.fault": str(self.fault), "fs.slow.fault.file": str(fault_file)}
        return {
            "spark.driver.extraClassPath": classes,
            "spark.executor.extraClassPath": classes,
            **{f"spark.hadoop.{name}": value for name, value in hadoop.items()},
            SEED_CONF: str(self.seed),
        }


def classes_of(build: Build, place: Path | None = None) -> Path:
    """Return the directory in `place` for the classes of a build; None is a place in the home."""
    digest = hashlib.sha256(build.id.encode() + _SOURCE.read_bytes()).hexdigest()[:16]
    return (place or paths.home() / "remote-fs") / digest


def compiled(build: Build, place: Path | None = None) -> Path:
    """Return the directory in `place` with the classes for a build; compile them if necessary.

    Raises:
        NexmarkError: There is no compiler, or it refuses the source.
    """
    target = classes_of(build, place)
    if target.is_dir():
        return target
    try:
        with whole_directory(target) as classes:
            _compile(build, classes)
    except OSError:
        if not target.is_dir():  # else another process was quicker
            raise
    return target


def _compile(build: Build, classes: Path) -> None:
    """Compile the source against the Hadoop of a build, into the directory `classes`."""
    javac = java_program("javac")
    jars = sorted((build.spark_home / "jars").glob("hadoop-client-api-*.jar"))
    if not javac.exists() or not jars:
        missing = f"there is no {javac}" if jars else f"no Hadoop client in {build.spark_home}/jars"
        raise NexmarkError(
            f"--checkpoint remote: {missing}; install a JDK and set JAVA_HOME to it, or use a "
            "build with its Hadoop"
        )
    command = [str(javac), "-nowarn", "-d", str(classes), "-cp", str(jars[0]), str(_SOURCE)]
    done = subprocess.run(
        command,
        env=plain_environment(),
        capture_output=True,
        text=True,
        timeout=_COMPILE_S,
    )
    if done.returncode != 0:
        problem = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)
        raise NexmarkError(f"--checkpoint remote: {_SOURCE.name}: {problem[-300:]}")

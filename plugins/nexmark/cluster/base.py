"""What a Spark cluster is to a night, wherever its hosts are."""

from __future__ import annotations

import json
import os
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from nexmark.cluster.lease import Lease
from nexmark.config import Cluster
from nexmark.engines.prerequisites import java_program
from nexmark.errors import NexmarkError

#: Far longer than any query's repetitions: the sampler of a forgotten night ends by itself.
SAMPLER_MAX_SECONDS = 12 * 3600

_STATUS_TIMEOUT_S = 5
#: What Spark does not inherit: the caller's own settings.
_FOREIGN = ("SPARK_", "PYSPARK_", "PYTHONPATH", "PYTHONHOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR")


#: Of a JDK, for the newest Spark.
JAVA_MAJORS = (17, 21)

Say: TypeAlias = Callable[[str], None]


def silent(text: str) -> None:
    """Say nothing."""


class ClusterError(NexmarkError):
    """The cluster cannot be started, reached or used; one line with the remedy."""


@dataclass(frozen=True)
class Release:
    """Something that is deployed: a Spark build or the jobs.

    Attributes:
        name: its directory on a host, e.g. `spark-190d4599466ce465`.
        digest: the hash of its content (`engines.identity.Manifest.id`).
        path: the directory on this machine.
    """

    name: str
    digest: str
    path: Path


class SparkCluster(ABC):
    """One Spark standalone cluster of one night at a time.

    `state` (on this machine) has the lease: which night uses the cluster.
    """

    config: Cluster
    home: Path

    @property
    def state(self) -> Path:
        """The directory on this machine for what is known of the cluster."""
        return self.home / "clusters" / self.config.name

    @property
    def scratch(self) -> Path:
        """Space on this machine for Spark's temporary files, removed when the cluster stops."""
        return self.state / "scratch"

    @property
    def conf_dir(self) -> Path:
        """The SPARK_CONF_DIR of Spark on this machine: empty, since `include/conf` configures it.

        It is on the class path, and the JVM uses a class archive on that very class path only: so
        it is one for both arms, or the driver of one of them would start slower.
        """
        return self.home / "no-spark-conf"

    @property
    @abstractmethod
    def mark(self) -> str:
        """What NEXMARK_OWNER is in every process that belongs to this cluster."""

    @property
    @abstractmethod
    def checkpoints(self) -> Path:
        """Where streaming queries keep their checkpoints: the same path for every process."""

    @property
    @abstractmethod
    def worker_python(self) -> str:
        """The interpreter of Python workers."""

    def properties_file(self, profile: Path) -> Path:
        """The Spark properties file for a driver with the confs of `profile`."""
        return profile

    @abstractmethod
    def data_dir(self, run: Path) -> Path:
        """Where the applications of the run directory `run` write what executors write."""

    def driver_environment(self, spark_home: Path) -> dict[str, str]:
        """The environment of Spark on this machine: the caller's, without its Spark settings."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN)}
        return {
            **kept,
            "SPARK_HOME": str(spark_home),
            "SPARK_CONF_DIR": str(self.conf_dir),
            "SPARK_LOCAL_IP": self.config.driver_address,
            "SPARK_LOCAL_DIRS": str(self.scratch / "local"),
        }

    def make_conf_dir(self) -> None:
        """Make it; ClusterError if something was put there."""
        self.conf_dir.mkdir(parents=True, exist_ok=True)
        if strangers := sorted(path.name for path in self.conf_dir.iterdir()):
            raise ClusterError(
                f"{self.conf_dir}: must be empty, and has {', '.join(strangers[:3])}; move it "
                "away, and set what Spark needs in include/conf/spark"
            )

    @abstractmethod
    def problems(self, say: Say = silent, java: Sequence[int] = JAVA_MAJORS) -> list[str]:
        """What keeps a night from being run here, one line each; nothing is changed.

        `java` are the versions of the JDK that the builds of the night can use.
        """

    @abstractmethod
    def deploy(self, releases: list[Release], say: Say) -> None:
        """Bring `releases` to every host; what is there already is not sent again."""

    @abstractmethod
    def start(self, spark: Release, logs: Path, lease: Lease) -> None:
        """Start master and workers and wait until all are ready.

        Raises ClusterError, with the last lines of a log, if they are not ready within
        `start_timeout_s`; nothing is left running then.
        """

    @abstractmethod
    def stop(self, logs: Path | None = None) -> list[str]:
        """End all that belongs to this cluster and remove its temporary files.

        Returns what was ended, one line each. Ending what is not running is no error.
        """

    @abstractmethod
    def start_samplers(self, jobs: Release, query: str, interval_s: float) -> None:
        """Start a CPU sampler on every host that is not this machine, and wait for its reading."""

    @abstractmethod
    def stop_samplers(self, query: str, directory: Path) -> None:
        """End these samplers and fetch `samples-HOST.jsonl` and `clock-HOST.json`."""

    @abstractmethod
    def fetch_recordings(self, application: str, directory: Path) -> None:
        """Move the flight recordings of the executors of `application` to `directory`.

        They are at `HOST/EXECUTOR.jfr` then. ClusterError if one of the executors left none.
        """

    def recorder_problem(self) -> str:
        """Why executors cannot run with the flight recorder of the JDK, or ''."""
        program = java_program("jfr")
        return "" if program.exists() else f"this JDK has no flight recorder: {program} is missing"

    @abstractmethod
    def canary(self) -> dict[str, dict[str, float]]:
        """Run the canary on every host at once; by host, the metrics that it could measure."""

    def describe(self) -> dict[str, dict[str, Any]]:
        """What every host is, as `nexmark_jobs.host.facts` finds it; ClusterError if one fails."""
        return {}

    @property
    def sampled_hosts(self) -> tuple[str, ...]:
        """The hosts that `stop_samplers` brings samples of."""
        return ()

    def holder(self) -> Lease | None:
        """The lease of the night that the cluster was last started for, if it was not stopped."""
        return Lease.read(self.state / "lease.json")

    def claim(self, lease: Lease) -> None:
        """Say that the night of `lease` uses the cluster from now on, until `stop`."""
        lease.write(self.state / "lease.json")

    def release(self) -> None:
        """Say that no night uses the cluster."""
        for path in (self._running, self.state / "lease.json"):
            path.unlink(missing_ok=True)

    @property
    def _running(self) -> Path:
        """Has the name of the Spark release that the cluster was started with."""
        return self.state / "running"

    def reap(self, mine: Lease, is_active: Callable[[Lease], bool]) -> list[str]:
        """End what an earlier night left behind.

        `is_active` says whether another DAG run still goes on; if it does, its cluster is not
        touched and ClusterError says who uses it. Returns what was ended, one line each.
        """
        other = self.holder()
        if other is not None and not other.same_run(mine):
            active = other.holder.alive if other.holder else is_active(other)
            if active:
                raise ClusterError(
                    f"cluster {self.config.name}: in use by {other.dag_id} run {other.run_id}; "
                    "wait until it has ended, or end it"
                )
        return self.stop()

    def status(self) -> Mapping[str, Any]:
        """What the master says of itself as JSON; OSError or ValueError if it does not answer."""
        url = f"http://{self.config.master_address}:{self.config.master_ui_port}/json/"
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(url, timeout=_STATUS_TIMEOUT_S) as response:
            content: Mapping[str, Any] = json.load(response)
        return content

    @property
    def started(self) -> bool:
        """Whether it was started and not stopped since; what is left of it is another thing."""
        return self._running.exists()

    def trouble_with(self, spark: Release) -> str:
        """Why no application of the release `spark` can run as it should now, or ''."""
        running = self._running.read_text() if self.started else "nothing"
        if running != spark.name:
            return f"it runs {running}, not {spark.name}"
        return self.trouble()

    def trouble(self) -> str:
        """Why no application can run as it should now, or ''."""
        try:
            status = self.status()
        except (OSError, ValueError) as error:
            return f"the master does not answer ({error})"
        if status.get("status") != "ALIVE":
            return f"the master is {status.get('status')}"
        workers, cores = status.get("aliveworkers"), status.get("cores")
        if (workers, cores) != (self.config.workers, self.config.worker_cores):
            return (
                f"{workers} workers with {cores} cores are alive, "
                f"not {self.config.workers} with {self.config.worker_cores}"
            )
        return ""

    def _master_is_alone(self) -> bool:
        """Whether the master answers and waits for its workers."""
        try:
            return self.status().get("status") == "ALIVE"
        except (OSError, ValueError):
            return False


__all__ = ["SAMPLER_MAX_SECONDS", "ClusterError", "Release", "Say", "SparkCluster", "silent"]

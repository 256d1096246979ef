"""The interface of a Spark cluster for a night, wherever its hosts are."""

import contextlib
import json
import random
import secrets
import shutil
import socket
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nexmark.cluster.lease import ClusterError, Lease, LeaseFile
from nexmark.config import Cluster
from nexmark.engines.prerequisites import HERE, java_majors, java_program
from nexmark.engines.short_runs import C1, spark_conf_dir
from nexmark.model import Say
from nexmark_jobs.host import jvm_state
from nexmark_jobs.host.leases import locked
from nexmark_jobs.host.processes import kill_one, owner_mark, plain_environment
from nexmark_jobs.host.whole_files import write_whole

#: Seconds after which a forgotten sampler ends by itself: longer than any query's repetitions.
SAMPLER_MAX_SECONDS = 12 * 3600

_STATUS_TIMEOUT_S = 5
#: JVM options of the daemons, which do little once they have started.
DAEMON_JAVA_OPTIONS = f"{C1} -XX:+UseSerialGC"
#: Confs of the daemons, which open only the ports that the night needs.
DAEMON_CONFS = {
    "spark.authenticate": "true",
    "spark.master.rest.enabled": "false",
    # No search for the next free port: nobody would look there.
    "spark.port.maxRetries": "0",
    "spark.ui.killEnabled": "false",
    "spark.master.ui.decommission.allow.mode": "DENY",
}

#: What pages call Spark's local directories.
LOCAL_DIRECTORIES = "local directories"
#: How many last lines of a daemon's log are read if the daemon did not start.
LOG_LINES = 400

#: The JDK versions of the newest Spark, and the version of this Python.
JAVA_MAJORS, PYTHON = java_majors(), HERE[:2]


def silent(text: str) -> None:
    """Say nothing."""


def surely(lease: Lease) -> bool:
    """Return True: a night without a process of its own counts as active; only Airflow knows."""
    return True


@dataclass(frozen=True)
class Release:
    """A Spark build or the jobs, to be deployed from the directory `path`."""

    name: str  # its directory on a host, as `spark-190d4599466ce465`
    digest: str  # its `Manifest.id`
    path: Path


class SparkCluster(ABC):
    """A Spark standalone cluster, which one night at a time uses.

    Its `state` on this machine has the lease, which names the night that uses the cluster. Methods
    for other hosts do nothing in this class.
    """

    config: Cluster
    home: Path

    @property
    def state(self) -> Path:
        """Return the directory of the cluster's state on this machine."""
        return self.home / "clusters" / self.config.name

    @property
    def scratch(self) -> Path:
        """Return the directory of Spark's temporary files here; stopping the cluster removes it."""
        return self.state / "scratch"

    @property
    def conf_dir(self) -> Path:
        """Return the SPARK_CONF_DIR of Spark here, which is empty: `include/conf` configures Spark.

        It is on the class path, and the JVM uses a class archive only with the same class path.
        Both arms share the directory; otherwise one arm's driver would start slower.
        """
        return spark_conf_dir(self.home)

    @property
    def mark(self) -> str:
        """Return the value of NEXMARK_OWNER in every process of this cluster."""
        return owner_mark(self.home, self.config.name)

    @property
    def checkpoints(self) -> Path:
        """Return the directory of the queries' checkpoints; every process sees it by this path."""
        return self.scratch / "checkpoints"

    def worker_python(self, driver: str) -> str:
        """Return the interpreter of Python workers: the driver's, if they run on its machine."""
        return driver

    def properties_file(self, profile: Path) -> Path:
        """Write a private file with the confs of `profile` and the secret; return its path."""
        confs = {"spark.authenticate": "true", "spark.authenticate.secret": self._secret()}
        target = self._private / profile.name
        write_whole(target, f"{profile.read_text()}\n{properties(confs)}")
        return target

    def _secret(self) -> str:
        """Return the secret of the night; the first call makes it, and a restart keeps it.

        Several threads may call first, because hosts are prepared at the same time.
        """
        path = self._private / "secret"
        self._private.mkdir(parents=True, exist_ok=True)
        self._private.chmod(0o700)
        with locked(self._private / "secret.lock"):
            if not path.exists():
                write_whole(path, secrets.token_hex(32))
            return path.read_text()

    @property
    def _private(self) -> Path:
        """Return the directory of the files with the secret; they live as long as the lease."""
        return self.state / "private"

    def data_dir(self, run: Path) -> Path:
        """Return the directory of the executors' output for the run directory `run`."""
        return run

    def driver_environment(self, spark_home: Path) -> dict[str, str]:
        """Return the environment of Spark on this machine, with no settings of the caller's."""
        return {
            **plain_environment(),
            "SPARK_HOME": str(spark_home),
            "SPARK_CONF_DIR": str(self.conf_dir),
            "SPARK_LOCAL_IP": self.config.driver_address,
            "SPARK_LOCAL_DIRS": str(self.scratch / "local"),
        }

    def make_conf_dir(self) -> None:
        """Make the SPARK_CONF_DIR; ClusterError if it exists and is not empty."""
        self.conf_dir.mkdir(parents=True, exist_ok=True)
        if strangers := sorted(path.name for path in self.conf_dir.iterdir()):
            remedy = "move it away, and set what Spark needs in include/conf/spark"
            some = ", ".join(strangers[:3])
            raise ClusterError(f"{self.conf_dir}: must be empty, and has {some}; {remedy}")

    @abstractmethod
    def problems(
        self,
        say: Say = silent,
        java: Sequence[int] = JAVA_MAJORS,
        python: Sequence[int] = PYTHON,
    ) -> list[str]:
        """Return the problems that keep a night from running here, one line each; change nothing.

        Args:
            say: Called with each line of progress.
            java: The versions of the JDK that the builds of the night can use.
            python: The minor version of the Python that its drivers run on.
        """

    def deploy(self, releases: list[Release], keep: int, say: Say) -> None:  # noqa: B027
        """Bring `releases` to every other host; send only the releases that are missing there.

        A host keeps the `keep` last used builds, and as many copies of the jobs.
        """

    def start(self, spark: Release, logs: Path, lease: Lease) -> None:
        """Start master and workers, and wait until all are ready; claim the cluster if need be.

        If they do not start, none of them is left running, and a lease that the night already had
        stays.

        Raises:
            ClusterError: They are not ready within `start_timeout_s` (s); the message has the last
                lines of a log.
        """
        self.make_conf_dir()
        claimed = self.claim(lease)
        try:
            self._start(spark, logs)
            self._running.write_text(spark.name)
        except BaseException:
            with contextlib.suppress(ClusterError):
                self.clear(logs)
                if claimed:
                    self.release()
            raise

    @abstractmethod
    def _start(self, spark: Release, logs: Path) -> None:
        """Start the daemons, whose logs go to `logs`, and wait until all are ready."""

    @abstractmethod
    def clear(self, logs: Path | None = None) -> list[str]:
        """End all processes of this cluster and remove its temporary files, but keep the lease.

        Returns:
            One line for each process that was ended. No process is no error.
        """

    def stop(self, logs: Path | None = None) -> list[str]:
        """Clear the cluster, then release the lease; only the night that has it may call this."""
        ended = [*self.clear(logs), *self.end_kafka()]
        self.release()
        return ended

    def end_kafka(self) -> list[str]:
        """End the Kafka brokers of the night, if it has some; return a line for each process."""
        return []

    def start_samplers(self, jobs: Release, query: str, interval_s: float) -> None:  # noqa: B027
        """Start a CPU sampler on every other host, and wait for its first reading."""

    def stop_samplers(self, query: str, directory: Path) -> None:  # noqa: B027
        """End these samplers and fetch `samples-HOST.jsonl` and `clock-HOST.json`."""

    def copy_samples(self, query: str, directory: Path) -> None:  # noqa: B027
        """Copy the samples so far to `directory/samples-HOST.jsonl`; the samplers continue."""

    @abstractmethod
    def fetch_recordings(self, application: str, executors: Sequence[str], directory: Path) -> None:
        """Move the flight recordings of some executors to `directory/HOST/EXECUTOR.jfr`.

        The application may have other executors: a master replaces an executor that exits before
        its driver has unregistered.

        Raises:
            ClusterError: One of these executors left no recording.
        """

    def recorder_problem(self) -> str:
        """Return the reason why executors cannot run with the JDK's flight recorder, or ''."""
        program = java_program("jfr")
        return "" if program.exists() else f"this JDK has no flight recorder: {program} is missing"

    @abstractmethod
    def canary(self) -> dict[str, dict[str, float]]:
        """Run the canary on every host at once; return the measured metrics by host."""

    def hold(
        self, application: str, driver: str, places: Mapping[str, str]
    ) -> dict[str, dict[str, Any]]:
        """Return what the JVMs of an application hold, by host (`nexmark_jobs.host.jvm_state`).

        Args:
            application: The id of the application.
            driver: A word in the command line of its driver, which runs on this machine.
            places: Directories on this machine whose files are counted, by name.

        Raises:
            ClusterError: A JVM does not answer.
        """
        return self._hold_here(application, driver, places)

    def _hold_here(
        self, application: str | None, driver: str, places: Mapping[str, str]
    ) -> dict[str, dict[str, Any]]:
        """Return what the driver holds, and the executors of `application` on this machine.

        Args:
            application: The id of the application; None if its executors are elsewhere.
            driver: A word in the command line of its driver.
            places: Directories whose files are counted, by name.
        """
        directories = {**places, LOCAL_DIRECTORIES: str(self.scratch / "local")}
        request = {"app": application, "driver": driver, "directories": directories}
        try:
            return {socket.gethostname(): jvm_state.main(request)}
        except (jvm_state.JvmError, OSError) as error:
            raise ClusterError(str(error)) from None

    def describe(self) -> dict[str, dict[str, Any]]:
        """Return the facts of every host (`nexmark_jobs.host.facts`); ClusterError if one fails."""
        return {}

    @property
    def sampled_hosts(self) -> tuple[str, ...]:
        """Return the hosts from which `stop_samplers` fetches samples."""
        return ()

    def holder(self) -> Lease | None:
        """Return the lease of the night that has the cluster; ClusterError if it cannot be read."""
        return self._lease.holder()

    def claim(self, mine: Lease, is_active: Callable[[Lease], bool] = surely) -> bool:
        """Take the cluster for the night of `mine`, until `release`; check and claim are one step.

        Args:
            mine: The lease of the night.
            is_active: Tells whether another DAG run is still active.

        Returns:
            False if the night had the cluster already.

        Raises:
            ClusterError: Another night uses the cluster; the message names it.
        """
        claimed = self._lease.claim(mine, is_active)
        if claimed:
            shutil.rmtree(self._private, ignore_errors=True)
        return claimed

    def release(self) -> None:
        """Release the lease; only the night that has it may call this."""
        shutil.rmtree(self._private, ignore_errors=True)
        self._lease.release()

    @property
    def _lease(self) -> LeaseFile:
        return LeaseFile(self.state / "lease.json", self.config.name)

    @property
    def at_the_prompt(self) -> LeaseFile:
        """Return the lease among commands: which command will run a night on this cluster."""
        return LeaseFile(self.state / "prompt.json", self.config.name)

    @property
    def _running(self) -> Path:
        """Return the file with the name of the Spark release that the cluster was started with."""
        return self.state / "running"

    def reap(self, mine: Lease, is_active: Callable[[Lease], bool] = surely) -> list[str]:
        """Claim the cluster, then end all processes of earlier nights and earlier tries.

        Another active night keeps its processes. Return one line for each process that was ended.
        """
        self.claim(mine, is_active)
        return [*self.clear(), *self.end_kafka()]

    def kill_one(self, word: str, draws: random.Random, *, again: bool) -> bool:
        """Send SIGKILL to one of the processes that have `word` in their command line.

        With `again`, its whole process group is killed and its command is started again, as systemd
        would do. Return False if there is no such process.
        """
        return kill_one(self.mark, word, draws, again=again)

    def status(self) -> Mapping[str, Any]:
        """Return the master's status as JSON; OSError or ValueError if it does not answer."""
        url = f"http://{self.config.master_address}:{self.config.master_ui_port}/json/"
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(url, timeout=_STATUS_TIMEOUT_S) as response:
            return dict(json.load(response))

    @property
    def started(self) -> bool:
        """Return whether the cluster was started and not stopped, even if it has lost processes."""
        return self._running.exists()

    def trouble_with(self, spark: Release) -> str:
        """Return the reason why no application of the release `spark` can run properly, or ''."""
        running = self._running.read_text() if self.started else "nothing"
        if running != spark.name:
            return f"it runs {running}, not {spark.name}"
        return self.trouble()

    def left_behind(self, answer: Mapping[str, Any]) -> str:
        """Return the remedy for processes that did not end, or ''.

        `answer` is the answer of `nexmark_jobs.host.processes` to a request to end processes.
        """
        pids = " ".join(str(process["pid"]) for process in answer["left"])
        remedy = f"look at them with ps, then: kill -9 {pids}"
        return f"processes {pids} did not end; {remedy}" if pids else ""

    def trouble(self) -> str:
        """Return the reason why no application can run properly now, or ''."""
        try:
            status = self.status()
        except (OSError, ValueError) as error:
            return f"the master does not answer ({error})"
        if status.get("status") != "ALIVE":
            return f"the master is {status.get('status')}"
        workers, cores = status.get("aliveworkers"), status.get("cores")
        wanted, of_them = len(self.config.workers), sum(self.config.workers)
        if (workers, cores) != (wanted, of_them):
            alive = f"{workers} workers with {cores} cores are alive"
            return f"{alive}, not {wanted} with {of_them}"
        return ""

    def master_arguments(self, address: str) -> list[str]:
        """Return the arguments of the master's program."""
        port, ui = self.config.master_port, self.config.master_ui_port
        return ["--host", address, "--port", str(port), "--webui-port", str(ui)]

    def worker_arguments(self, address: str, cores: int, memory: str, work: str) -> list[str]:
        """Return the arguments of a worker's program.

        Args:
            address: The address that it listens on.
            cores: The cores that it offers.
            memory: The memory that it offers, as Spark writes it.
            work: Its directory.
        """
        port, ui = self.config.worker_port, self.config.worker_ui_port
        return [
            "--host",
            address,
            "--port",
            str(port),
            "--webui-port",
            str(ui),
            "--cores",
            str(cores),
            "--memory",
            memory,
            "--work-dir",
            work,
            self.config.master_url,
        ]

    def _master_is_alone(self) -> bool:
        try:
            return self.status().get("status") == "ALIVE"
        except (OSError, ValueError):
            return False


def properties(confs: Mapping[str, str]) -> str:
    """Return the text of a Spark properties file."""
    return "".join(f"{name} {value}\n" for name, value in confs.items())

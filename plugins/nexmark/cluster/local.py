"""The embedded cluster: one Spark standalone master and one worker on 127.0.0.1.

Daemons, executors and the driver are separate processes, so CPU time is attributed as on a cluster
of many hosts.

    <home>/clusters/<name>/lease.json   the night that has the cluster
    <home>/clusters/<name>/prompt.json  the command that will run a night on it
    <home>/clusters/<name>/scratch/     Spark's work, local and checkpoint directories
    <home>/clusters/<name>/private/     the secret of the night, and confs with it
    <home>/clusters/<name>/kafka/       the Kafka broker of a night that reads Kafka

Daemons, drivers and executors have a secret of the night (`spark.authenticate`): any user of this
machine can reach their ports.

There are no pid files: processes are found by their mark (see `processes`). A mark also finds a
process that was started just before a kill, and never a stranger with a reused pid.
"""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexmark.cluster import base
from nexmark.cluster.base import JAVA_MAJORS, PYTHON, Release, SparkCluster, silent
from nexmark.cluster.hosts.host import program_command, program_input, program_result
from nexmark.cluster.hosts.samplers import executor_of, pattern_of, wait_until_whole
from nexmark.cluster.lease import ClusterError
from nexmark.config import EmbeddedCluster
from nexmark.config.fields import mebibytes
from nexmark.engines.build import spark_version
from nexmark.engines.prerequisites import java_program
from nexmark.engines.short_runs import ClassArchive
from nexmark.model import Say
from nexmark_jobs import cause
from nexmark_jobs.host import canary, facts, files, processes
from nexmark_jobs.host.facts import free_memory
from nexmark_jobs.host.ports import LOOPBACK, is_free, listener, listens
from nexmark_jobs.host.processes import Process, owned, owner_mark, start_detached
from nexmark_jobs.host.whole_files import write_whole

if TYPE_CHECKING:
    from nexmark.kafka.broker import LocalBrokers

_POLL_S = 0.2
_SILENT = "nothing was logged"
_CANARY_S = 60
_END_GRACE_S = 10
_DAEMONS = "daemons.conf"


@dataclass(frozen=True)
class LocalCluster(SparkCluster):
    """The embedded cluster of `config`; its state is below `home`."""

    config: EmbeddedCluster
    home: Path

    @property
    def brokers(self) -> "LocalBrokers":
        """Return the Kafka brokers of a night; a restart of the cluster leaves them running."""
        from nexmark.kafka.broker import LocalBrokers

        mark = owner_mark(self.home, f"{self.config.name} kafka")
        return LocalBrokers(self.state / "kafka", mark)

    def end_kafka(self) -> list[str]:
        """End the brokers, and remove their storage."""
        return self.brokers.down() if (self.state / "kafka").exists() else []

    def problems(
        self,
        say: Say = silent,
        java: Sequence[int] = JAVA_MAJORS,
        python: Sequence[int] = PYTHON,
    ) -> list[str]:
        """Return a line if there is too little memory, and one for each port that is taken."""
        return [*filter(None, [self._memory_problem()]), *self._taken_ports()]

    def fetch_recordings(self, application: str, executors: Sequence[str], directory: Path) -> None:
        """Move the recordings, which are files on this machine."""
        host = socket.gethostname()
        request = {"find": pattern_of(self.scratch / "work", application)}
        recordings = wait_until_whole(lambda: {host: files.main(request)["found"]}, executors)
        for path in recordings[host]:
            target = directory / host / f"{executor_of(path)}.jfr"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, target)

    def canary(self) -> dict[str, dict[str, float]]:
        """Run the canary of this machine, in a separate process as on a host."""
        command = program_command(sys.executable)
        asked = program_input(canary, {"directory": str(self.home)})
        run = subprocess.run(command, input=asked, capture_output=True, timeout=_CANARY_S)
        try:
            answer = program_result(run.stdout)
        except ValueError:
            said = cause.failure_cause(run.stderr.decode(errors="replace"), run.returncode)
            raise ClusterError(f"the canary failed: {said[:300]}") from None
        return {socket.gethostname(): answer["metrics"]}

    def describe(self) -> dict[str, dict[str, Any]]:
        """Return the facts of this machine."""
        home = str(java_program("java").parents[1])
        return {socket.gethostname(): facts.main({"java_home": home, "busy_window_s": 0})}

    def _taken_ports(self) -> list[str]:
        ours = set(owned(self.mark))
        problems = []
        for name, port in self.config.ports.items():
            if is_free(port) or (holder := listener(port)) in ours:
                continue
            who = f"process {holder.pid} ({holder.command})" if holder else "another process"
            remedy = f"give cluster {self.config.name} another {name} in include/conf/clusters.yaml"
            problems.append(f"port {port}: taken by {who}; end it, or {remedy}")
        return problems

    def _memory_problem(self) -> str:
        config = self.config
        heaps = config.executors * mebibytes(config.executor_memory)
        heaps += mebibytes(config.driver_memory) + 2 * mebibytes(config.daemon_memory)
        free = free_memory(Path("/proc/meminfo").read_text())
        if free is None or heaps <= free / 2**20 or owned(self.mark):
            return ""
        needs = f"needs {heaps / 1024:.1f} GiB, {free / 2**30:.1f} GiB are free"
        remedy = "end what uses it, or lower executor_memory in include/conf/clusters.yaml"
        return f"memory: cluster {config.name} {needs}; {remedy}"

    def _start(self, spark: Release, logs: Path) -> None:
        if problems := self.problems():
            raise ClusterError(problems[0])
        for directory in ("work", "local", "checkpoints"):
            (self.scratch / directory).mkdir(parents=True, exist_ok=True)
        confs = base.DAEMON_CONFS | {"spark.authenticate.secret": self._secret()}
        write_whole(self._private / _DAEMONS, base.properties(confs))
        log, arguments = logs / "master.log", self.master_arguments(LOOPBACK)
        master = self._start_daemon("master.Master", arguments, spark, log)
        self._wait(self._master_is_alone, master, log, "master")
        config, log = self.config, logs / "worker.log"
        memory = f"{config.executors * mebibytes(config.executor_memory)}m"
        size = (sum(config.workers), memory, str(self.scratch / "work"))
        arguments = self.worker_arguments(LOOPBACK, *size)
        worker = self._start_daemon("worker.Worker", arguments, spark, log)
        self._wait(lambda: master.alive and not self.trouble(), worker, log, "worker")

    def clear(self, logs: Path | None = None) -> list[str]:
        """End all processes of this cluster and remove its temporary files, but keep the lease."""
        answer = processes.main({"do": "end", "mark": self.mark, "grace_s": _END_GRACE_S})
        if left := self.left_behind(answer):
            raise ClusterError(f"cluster {self.config.name}: {left}")
        shutil.rmtree(self.scratch, ignore_errors=True)
        self._running.unlink(missing_ok=True)
        return [f"{process['pid']} {process['command']}" for process in answer["ended"]]

    def _start_daemon(self, name: str, arguments: list[str], spark: Release, log: Path) -> Process:
        """Start the master or a worker.

        Args:
            name: The class of the daemon, without its package's beginning.
            arguments: The arguments of the daemon.
            spark: The Spark that it runs on.
            log: The file that it writes its output to.
        """
        archive = ClassArchive.of(spark.path, spark_version(spark.path), self.conf_dir)
        options = [base.DAEMON_JAVA_OPTIONS, *archive.use()]
        environment = {
            **self.driver_environment(spark.path),
            "SPARK_DAEMON_MEMORY": self.config.daemon_memory,
            "SPARK_DAEMON_JAVA_OPTS": " ".join(options),
        }
        # A file of its own: SPARK_CONF_DIR is on the class path of executors, see `conf_dir`.
        confs = ("--properties-file", str(self._private / _DAEMONS))
        program = (str(spark.path / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}")
        return start_detached([*program, *confs, *arguments], environment, self.mark, log)

    def _wait(self, ready: Callable[[], bool], process: Process, log: Path, what: str) -> None:
        """Wait until a daemon is ready, and is the process that listens on its ports.

        Another installation may have taken the ports a moment before; then its daemon answers.

        Args:
            ready: Tells whether the daemon is ready.
            process: The daemon.
            log: The daemon's log.
            what: master or worker.
        """
        deadline = time.monotonic() + self.config.start_timeout_s
        ports = [port for name, port in self.config.ports.items() if name.startswith(what)]
        while not (ready() and all(listens(process, port) for port in ports)):
            if not process.alive:
                raise ClusterError(f"Spark {what}: ended while it started; {self._why(log)}")
            if time.monotonic() > deadline:
                late = f"not ready after {self.config.start_timeout_s} s"
                raise ClusterError(f"Spark {what}: {late}; {self._why(log)}")
            time.sleep(_POLL_S)

    def _why(self, log: Path) -> str:
        """Return why a daemon failed: another process has its port, or the last words of `log`."""
        if taken := self._taken_ports():
            return f"{taken[0]}; see {log}"
        said = cause.failure_cause("\n".join(files.tail(log, base.LOG_LINES)) or _SILENT)
        return f"its last words: {said}; see {log}"

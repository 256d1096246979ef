"""The embedded cluster: one Spark standalone master and one worker on 127.0.0.1.

Real processes in sessions of their own, executors apart from the driver, so that CPU time is
attributed as on a cluster of many hosts.

    <home>/clusters/<name>/lease.json   the night it runs for
    <home>/clusters/<name>/scratch/     Spark's work, local and checkpoint directories

There are no pid files: processes are found by their mark (see `processes`), which also finds what
was started a moment before a kill, and never a stranger that got an old pid.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nexmark.cluster.lease import Lease
from nexmark.cluster.ports import LOOPBACK, is_free, listener
from nexmark.cluster.processes import Process, end, owned, owner_mark, start_detached
from nexmark.config import Cluster
from nexmark.errors import NexmarkError

_POLL_S = 0.2
_LOG_LINES = 3
#: What the daemons and drivers inherit: nothing of the caller's own Spark settings.
_FOREIGN = ("SPARK_", "PYSPARK_", "PYTHONPATH", "PYTHONHOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR")


class ClusterError(NexmarkError):
    """The cluster cannot be started, or is in use; one line with the remedy."""


@dataclass(frozen=True)
class LocalCluster:
    """The embedded cluster `config`, whose state is kept below `home`."""

    config: Cluster
    home: Path

    @property
    def state(self) -> Path:
        """The directory with lease, process files and scratch space."""
        return self.home / "clusters" / self.config.name

    @property
    def scratch(self) -> Path:
        """Space for Spark's temporary files, removed when the cluster stops."""
        return self.state / "scratch"

    @property
    def checkpoints(self) -> Path:
        """Where streaming queries keep their checkpoints."""
        return self.scratch / "checkpoints"

    @property
    def mark(self) -> str:
        """What NEXMARK_OWNER is in every process that belongs to this cluster."""
        return owner_mark(self.home, self.config.name)

    def environment(self, spark_home: Path) -> dict[str, str]:
        """The environment of Spark processes: the caller's, without its own Spark settings.

        SPARK_CONF_DIR is an empty directory, so that only `include/conf` configures Spark.
        """
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN)}
        return {
            **kept,
            "SPARK_HOME": str(spark_home),
            "SPARK_CONF_DIR": str(self.scratch / "conf"),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_LOCAL_DIRS": str(self.scratch / "local"),
        }

    def port_problems(self) -> list[str]:
        """One line for each port that is taken by a process that is not of this cluster."""
        ours = set(owned(self.mark))
        problems = []
        for name in ("master_port", "master_ui_port", "worker_port", "worker_ui_port"):
            port = getattr(self.config, name)
            if is_free(port):
                continue
            holder = listener(port)
            if holder in ours:
                continue
            who = f"process {holder.pid} ({holder.command})" if holder else "another process"
            problems.append(
                f"port {port}: taken by {who}; end it, or give cluster {self.config.name} "
                f"another {name} in include/conf/clusters.yaml"
            )
        return problems

    def holder(self) -> Lease | None:
        """The lease of the night that the cluster was last started for, if it was not stopped."""
        return Lease.read(self.state / "lease.json")

    def claim(self, lease: Lease) -> None:
        """Say that the night of `lease` uses the cluster from now on, until `stop`."""
        lease.write(self.state / "lease.json")

    def start(self, spark_home: Path, logs: Path, lease: Lease) -> None:
        """Start master and worker and wait until both are ready.

        Raises ClusterError, with the last lines of the log, if they are not ready within
        `start_timeout_s`; nothing is left running then.
        """
        problems = self.port_problems()
        if problems:
            raise ClusterError(problems[0])
        self.claim(lease)
        for directory in ("conf", "work", "local", "checkpoints"):
            (self.scratch / directory).mkdir(parents=True, exist_ok=True)
        try:
            master = self._start_master(spark_home, logs / "master.log")
            self._wait(lambda: self._answers(workers=0), [master], logs / "master.log", "master")
            worker = self._start_worker(spark_home, logs / "worker.log")
            both = [master, worker]
            self._wait(lambda: self._answers(workers=1), both, logs / "worker.log", "worker")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> list[str]:
        """End all that belongs to this cluster and remove its scratch space.

        Returns what was ended, one line each. Ending what is not running is no error.
        """
        ended = []
        # A killed worker's executors may start a Python worker just then: look again.
        for _ in range(3):
            processes = owned(self.mark)
            if not processes:
                break
            ended += [f"{process.pid} {process.command}" for process in processes]
            end(processes)
        left = owned(self.mark)
        if left:
            pids = " ".join(str(process.pid) for process in left)
            raise ClusterError(
                f"cluster {self.config.name}: processes {pids} did not end; "
                f"look at them with ps, then: kill -9 {pids}"
            )
        shutil.rmtree(self.scratch, ignore_errors=True)
        (self.state / "lease.json").unlink(missing_ok=True)
        return ended

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
        url = f"http://{LOOPBACK}:{self.config.master_ui_port}/json/"
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(url, timeout=5) as response:
            content: Mapping[str, Any] = json.load(response)
        return content

    def _start_master(self, spark_home: Path, log: Path) -> Process:
        port, ui = self.config.master_port, self.config.master_ui_port
        arguments = ["--host", LOOPBACK, "--port", str(port), "--webui-port", str(ui)]
        return self._start_daemon("master.Master", arguments, spark_home, log)

    def _start_worker(self, spark_home: Path, log: Path) -> Process:
        config = self.config
        amount, unit = int(config.executor_memory[:-1]), config.executor_memory[-1]
        arguments = [
            *("--host", LOOPBACK, "--port", str(config.worker_port)),
            *("--webui-port", str(config.worker_ui_port)),
            *("--cores", str(config.executors * config.executor_cores)),
            *("--memory", f"{config.executors * amount}{unit}"),
            *("--work-dir", str(self.scratch / "work")),
            config.master_url,
        ]
        return self._start_daemon("worker.Worker", arguments, spark_home, log)

    def _start_daemon(
        self, main_class: str, arguments: list[str], spark_home: Path, log: Path
    ) -> Process:
        environment = {
            **self.environment(spark_home),
            "SPARK_DAEMON_MEMORY": self.config.daemon_memory,
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -Dspark.master.rest.enabled=false",
        }
        command = [
            str(spark_home / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{main_class}",
            *arguments,
        ]
        return start_detached(command, environment, self.mark, log)

    def _answers(self, workers: int) -> bool:
        try:
            status = self.status()
        except (OSError, ValueError):
            return False
        cores = workers * self.config.executors * self.config.executor_cores
        ready = (status.get("aliveworkers"), status.get("cores")) == (workers, cores)
        return status.get("status") == "ALIVE" and ready

    def _wait(
        self, ready: Callable[[], bool], processes: list[Process], log: Path, what: str
    ) -> None:
        deadline = time.monotonic() + self.config.start_timeout_s
        while not ready():
            if not all(process.alive for process in processes):
                raise ClusterError(f"Spark {what}: ended while it started; {_tail(log)}")
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"Spark {what}: not ready after {self.config.start_timeout_s} s; {_tail(log)}"
                )
            time.sleep(_POLL_S)


def _tail(log: Path) -> str:
    """The last lines of `log` in one, with where the rest is."""
    try:
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    except OSError:
        lines = []
    last = " | ".join([line for line in lines if line][-_LOG_LINES:]) or "nothing was logged"
    return f"its last words: {last}; see {log}"


__all__ = ["ClusterError", "LocalCluster"]

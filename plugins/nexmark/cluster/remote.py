"""A cluster of hosts that are reached by SSH: one standalone master, a worker on each other host.

On every host, with KEY = <cluster>-<hash of who started it>:

    <root>/releases/                 Spark builds and jobs, by content (see `deploy`)
    <root>/nights/KEY/conf             what configures the daemons: the secret of this night
    <root>/nights/KEY/logs, worker, samplers
    <local>/KEY                      state and shuffle files
    <shared>/KEY/checkpoints, runs   the same on every host and on this machine

Everything named KEY is removed when the cluster stops. Processes are found by their mark, as on
this machine (see `nexmark_jobs.host.processes`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nexmark.cluster.base import JAVA_MAJORS, ClusterError, Release, Say, SparkCluster, silent
from nexmark.cluster.deploy import deploy_release
from nexmark.cluster.host import Host, HostError, SshHost, on_all
from nexmark.cluster.inspection import inspect
from nexmark.cluster.lease import Lease
from nexmark.cluster.listening import listening
from nexmark.cluster.recordings import fetch_from, pattern_of, recordings_on, wait_until_whole
from nexmark.cluster.samplers import fetch_samples, start_sampler
from nexmark.config import Machine, SshCluster
from nexmark.config.fields import mebibytes
from nexmark.config.paths import safe_name
from nexmark_jobs.host import canary, facts, files, processes
from nexmark_jobs.host.processes import end, owned, owner_mark

_POLL_S = 0.5
_LOG_LINES = 3
_CALL_S = 30
_END_GRACE_S = 10
_DESCRIBE_S = 40
_CANARY_S = 60

#: Confs of the daemons: no door that the night does not need.
_DAEMON_CONFS = {
    "spark.authenticate": "true",
    "spark.master.rest.enabled": "false",
    # Where a port is taken, the next one is of no use: it is not where anyone looks.
    "spark.port.maxRetries": "0",
    "spark.ui.killEnabled": "false",
    "spark.master.ui.decommission.allow.mode": "DENY",
    # A dead host is known after this; Spark's 60 s would be most of a repetition.
    "spark.worker.timeout": "30",
}


@dataclass(frozen=True)
class RemoteCluster(SparkCluster):
    """The cluster `config`, as it is used from this machine by the installation at `home`."""

    config: SshCluster
    home: Path

    @property
    def mark(self) -> str:
        """What NEXMARK_OWNER is in every process that belongs to this cluster."""
        return f"{socket.gethostname()}:{owner_mark(self.home, self.config.name)}"

    @property
    def key(self) -> str:
        """The name of all directories of this cluster of this installation."""
        return f"{self.config.name}-{hashlib.sha256(self.mark.encode()).hexdigest()[:8]}"

    @property
    def work(self) -> str:
        """On a host: configuration, logs, the worker's directory, samples."""
        return f"{self.config.root}/nights/{self.key}"

    @property
    def local(self) -> str:
        """On a host: state and shuffle files."""
        return f"{self.config.local_dir}/{self.key}"

    @property
    def shared(self) -> Path:
        """On every host and here."""
        return Path(self.config.shared) / self.key

    @property
    def checkpoints(self) -> Path:
        """Where streaming queries keep their checkpoints."""
        return self.shared / "checkpoints"

    @property
    def worker_python(self) -> str:
        """The interpreter on the hosts."""
        return self.config.python

    @property
    def sampled_hosts(self) -> tuple[str, ...]:
        """Every host: the master's too, for what else ran there."""
        return tuple(self.config.hosts)

    def data_dir(self, run: Path) -> Path:
        """In the shared directory, since executors of every host write there."""
        return self.shared / "runs" / safe_name(f"{run.parent.name}-{run.name}")

    def properties_file(self, profile: Path) -> Path:
        """The confs of `profile` with the secret of this night, for the owner's eyes only."""
        confs = {"spark.authenticate": "true", "spark.authenticate.secret": self._secret()}
        target = self.scratch / "private" / profile.name
        _write_private(target, f"{profile.read_text()}\n{_properties(confs)}")
        return target

    def problems(self, say: Say = silent, java: Sequence[int] = JAVA_MAJORS) -> list[str]:
        """What is wrong with a host, one line each; `say` is told the table of all hosts."""
        with self._hosts() as hosts:
            found = inspect(self.config, hosts, self.mark, java)
        say(f"cluster {self.config.name}\n{found}")
        for warning in found.warnings:
            say(f"warning: {warning}")
        return found.problems

    def deploy(self, releases: list[Release], say: Say) -> None:
        """Send what is missing to all hosts at once."""
        with self._hosts() as hosts:
            for release in releases:
                outcomes = deploy_release(
                    hosts,
                    self.config.root,
                    release.path,
                    release.name,
                    release.digest,
                    keep=self.config.keep_releases,
                    say=say,
                )
                _raise_first(outcomes)

    def start(self, spark: Release, logs: Path, lease: Lease) -> None:
        """Start the master, then all workers; logs are fetched into `logs` if that fails."""
        self.make_conf_dir()
        self.claim(lease)
        _write_private(self._secret_path, secrets.token_hex(32))
        (self.scratch / "local").mkdir(parents=True, exist_ok=True)
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        try:
            with self._hosts() as hosts:
                _raise_first(on_all(hosts, self._prepare))
                by_name = {host.name: host for host in hosts}
                master = by_name.pop(self.config.master)
                self._start_master(master, spark)
                self._wait(self._master_is_alone, [master])
                workers = list(by_name.values())
                _raise_first(on_all(workers, lambda host: self._start_worker(host, spark)))
                self._wait(lambda: not self.trouble(), workers)
            self._running.write_text(spark.name)
        except BaseException:
            with contextlib.suppress(ClusterError):
                self.stop(logs)
            raise

    def stop(self, logs: Path | None = None) -> list[str]:
        """End everything on every host that can be reached, and what is left here.

        Raises ClusterError at the end if a host could not be reached.
        """
        mine = owned(self.mark)
        ended = [f"{process.pid} {process.command}" for process in mine]
        end(mine)
        with self._hosts() as hosts:
            outcomes = on_all(hosts, lambda host: self._clear(host, logs))
        for name, lines in outcomes.items():
            if not isinstance(lines, HostError):
                ended += [f"{name}: {line}" for line in lines]
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        shutil.rmtree(self.scratch, ignore_errors=True)
        _raise_first(outcomes)  # the lease stays: something of the night may be there still
        self.release()
        return ended

    def reap(self, mine: Lease, is_active: Callable[[Lease], bool]) -> list[str]:
        """End what an earlier night left, and remove what it left in the shared directory."""
        ended = super().reap(mine, is_active)
        shutil.rmtree(self.shared, ignore_errors=True)
        return ended

    def start_samplers(self, jobs: Release, query: str, interval_s: float) -> None:
        """Start the sampler of the deployed jobs on every host."""
        program = f"{self.config.root}/releases/{jobs.name}/cpu_sampler.py"
        directory = f"{self.work}/samplers"
        with self._hosts() as hosts:
            outcomes = on_all(
                hosts,
                lambda host: start_sampler(
                    host, self.config.python, program, directory, query, interval_s, self.mark
                ),
            )
        _raise_first(outcomes)

    def stop_samplers(self, query: str, directory: Path) -> None:
        """End them and fetch what they wrote; a host without samples is told by its absence."""
        with self._hosts() as hosts:
            outcomes = on_all(
                hosts,
                lambda host: fetch_samples(
                    host, f"{self.work}/samplers", query, self.mark, directory
                ),
            )
        _raise_first(outcomes)

    def fetch_recordings(self, application: str, directory: Path) -> None:
        """Fetch them from the hosts of the workers, and remove them there."""
        pattern = pattern_of(f"{self.work}/worker", application)

        def look() -> dict[str, dict[str, int]]:
            outcomes = on_all(hosts, lambda host: recordings_on(host, pattern))
            _raise_first(outcomes)
            return {name: x for name, x in outcomes.items() if not isinstance(x, HostError)}

        with self._hosts() as hosts:
            found = wait_until_whole(look, self.config.executors)
            outcomes = on_all(
                hosts, lambda host: fetch_from(host, found[host.name], directory / host.name)
            )
        _raise_first(outcomes)

    def recorder_problem(self) -> str:
        """Why the JDK of a host cannot record, or that of this machine cannot read it."""
        program = f"{self.config.java_home}/bin/jfr"
        with self._hosts() as hosts:
            outcomes = on_all(hosts, lambda host: recordings_on(host, program))
        for name, found in outcomes.items():
            if isinstance(found, HostError):
                return str(found)
            if not found:
                return f"host {name}: its JDK has no flight recorder: {program} is missing"
        return super().recorder_problem()

    def canary(self) -> dict[str, dict[str, float]]:
        """The canary of every host; its disk is the one for state."""
        request = {"directory": self.config.local_dir}
        with self._hosts() as hosts:
            outcomes = on_all(
                hosts, lambda host: host.call(canary, request, timeout_s=_CANARY_S)["metrics"]
            )
        _raise_first(outcomes)
        return {name: found for name, found in outcomes.items() if not isinstance(found, HostError)}

    def describe(self) -> dict[str, dict[str, Any]]:
        """What every host is; all are asked at once."""
        request = {"java_home": self.config.java_home, "busy_window_s": 0}
        with self._hosts() as hosts:
            outcomes = on_all(hosts, lambda host: host.call(facts, request, timeout_s=_DESCRIBE_S))
        _raise_first(outcomes)
        return {name: found for name, found in outcomes.items() if not isinstance(found, HostError)}

    @contextlib.contextmanager
    def _hosts(self) -> Iterator[list[Host]]:
        """All hosts; a connection is made when one is first used."""
        hosts: list[Host] = [
            SshHost(name, machine.connection, self.config.python)
            for name, machine in self.config.hosts.items()
        ]
        try:
            yield hosts
        finally:
            for host in hosts:
                host.close()

    @property
    def _secret_path(self) -> Path:
        return self.scratch / "private" / "secret"

    def _secret(self) -> str:
        try:
            return self._secret_path.read_text()
        except FileNotFoundError:
            raise ClusterError(
                f"cluster {self.config.name}: it is not started; start the DAG run anew"
            ) from None

    def _prepare(self, host: Host) -> None:
        confs = _DAEMON_CONFS | {"spark.authenticate.secret": self._secret()}
        directories = [f"{self.work}/{name}" for name in ("conf", "logs", "worker", "samplers")]
        request = {
            "remove": [self.work, self.local],
            "make": [*directories, self.local],
            "write": {f"{self.work}/conf/spark-defaults.conf": _properties(confs)},
        }
        host.call(files, request, timeout_s=_CALL_S)

    def _start_master(self, host: Host, spark: Release) -> None:
        arguments = [
            *("--host", self.config.master_address, "--port", str(self.config.master_port)),
            *("--webui-port", str(self.config.master_ui_port)),
        ]
        self._start_daemon(host, "master.Master", arguments, spark)

    def _start_worker(self, host: Host, spark: Release) -> None:
        machine = self.config.hosts[host.name]
        arguments = [
            *("--host", machine.address, "--port", str(self.config.worker_port)),
            *("--webui-port", str(self.config.worker_ui_port)),
            *("--cores", str(machine.cores), "--memory", f"{_memory_mib(machine)}m"),
            *("--work-dir", f"{self.work}/worker"),
            self.config.master_url,
        ]
        self._start_daemon(host, "worker.Worker", arguments, spark)

    def _start_daemon(
        self, host: Host, main_class: str, arguments: Sequence[str], spark: Release
    ) -> None:
        spark_home = f"{self.config.root}/releases/{spark.name}"
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": self.work,
            "JAVA_HOME": self.config.java_home,
            "SPARK_HOME": spark_home,
            "SPARK_CONF_DIR": f"{self.work}/conf",
            "SPARK_LOCAL_IP": self.config.hosts[host.name].address,
            "SPARK_LOCAL_DIRS": self.local,
            "SPARK_DAEMON_MEMORY": self.config.daemon_memory,
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC",
            # Executors inherit these two: what a killed one leaves is removed with `local`.
            "JAVA_TOOL_OPTIONS": f'"-Djava.io.tmpdir={self.local}"',
            "TMPDIR": self.local,
        }
        command = [
            f"{spark_home}/bin/spark-class",
            f"org.apache.spark.deploy.{main_class}",
            *arguments,
        ]
        request = {
            "do": "start",
            "command": command,
            "environment": environment,
            "mark": self.mark,
            "log": self._log(host.name),
        }
        host.call(processes, request, timeout_s=_CALL_S)

    def _log(self, host: str) -> str:
        return f"{self.work}/logs/{self.config.hosts[host].role}-{host}.log"

    def _wait(self, ready: Callable[[], bool], hosts: Sequence[Host]) -> None:
        deadline = time.monotonic() + self.config.start_timeout_s
        while not (ready() and listening(self.config, hosts, self.mark)):
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"cluster {self.config.name}: not ready after {self.config.start_timeout_s} s: "
                    f"{self.trouble()}; {self._last_words(hosts)}"
                )
            time.sleep(_POLL_S)

    def _last_words(self, hosts: Sequence[Host]) -> str:
        """The last lines that the daemons on `hosts` logged."""

        def words(host: Host) -> str:
            log = self._log(host.name)
            answer = host.call(files, {"tail": {log: _LOG_LINES}}, timeout_s=_CALL_S)
            return " | ".join(answer["tail"][log]) or "nothing was logged"

        return "; ".join(f"{name}: {said}" for name, said in on_all(hosts, words).items())

    def _clear(self, host: Host, logs: Path | None) -> list[str]:
        request = {"do": "end", "mark": self.mark, "grace_s": _END_GRACE_S}
        answer = host.call(processes, request, timeout_s=3 * _CALL_S)
        if logs is not None:
            with contextlib.suppress(HostError):  # it was never started there
                host.fetch(self._log(host.name), logs / Path(self._log(host.name)).name)
        host.call(files, {"remove": [self.work, self.local]}, timeout_s=3 * _CALL_S)
        if answer["left"]:
            pids = " ".join(str(process["pid"]) for process in answer["left"])
            raise HostError(
                f"host {host.name}: processes {pids} did not end; look at them with ps, "
                f"then: kill -9 {pids}"
            )
        return [f"{process['pid']} {process['command']}" for process in answer["ended"]]


def _memory_mib(machine: Machine) -> int:
    return mebibytes(machine.memory or "1m")


def _properties(confs: Mapping[str, str]) -> str:
    return "".join(f"{name} {value}\n" for name, value in confs.items())


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)


def _raise_first(outcomes: Mapping[str, Any]) -> None:
    """Raise what went wrong on hosts as one error."""
    problems = [str(outcome) for outcome in outcomes.values() if isinstance(outcome, HostError)]
    if problems:
        raise ClusterError(" | ".join(problems))


__all__ = ["RemoteCluster"]

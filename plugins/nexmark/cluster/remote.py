"""A cluster of hosts over SSH: one standalone master, and a worker on each other host.

On every host, with KEY = <cluster>-<hash of the installation>:

    <root>/lease.json                on the master's host: the installation that has the hosts
    <root>/releases/                 Spark builds and jobs, by content (see `deploy`)
    <root>/nights/KEY/conf             the daemons' configuration, with the secret of this night
    <root>/nights/KEY/logs, worker, samplers
    <local>/KEY                      state and shuffle files
    <shared>/KEY/checkpoints, runs   the same on every host and on this machine

When the cluster stops, it removes everything named KEY. Processes are found by their mark, as on
this machine (see `nexmark_jobs.host.processes`).
"""

import contextlib
import hashlib
import random
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nexmark.cluster import base
from nexmark.cluster.base import JAVA_MAJORS, PYTHON, Release, SparkCluster, silent
from nexmark.cluster.hosts import samplers
from nexmark.cluster.hosts.deploy import deploy_release
from nexmark.cluster.hosts.host import Host, Outcome, on_all
from nexmark.cluster.hosts.ssh import HostError, HostUnreachable
from nexmark.cluster.inspection import inspect, listening
from nexmark.cluster.lease import ClusterError, Lease
from nexmark.config import SshCluster
from nexmark.config.fields import mebibytes
from nexmark.config.paths import safe_name
from nexmark.engines.jvm import temporary_files
from nexmark.model import Say
from nexmark_jobs.cause import failure_cause
from nexmark_jobs.host import canary, facts, files, jvm_state, leases, processes
from nexmark_jobs.host.processes import end, owned

_POLL_S = 0.5
_CALL_S = 30
_END_GRACE_S = 10
_DESCRIBE_S = 40
_CANARY_S = 60
_JVM_STATE_S = 90

#: A host counts as dead after this; Spark's 60 s would be most of a repetition.
_DAEMON_CONFS = base.DAEMON_CONFS | {"spark.worker.timeout": "30"}
#: Hosts stay reserved for a night without a process there for this time: the longest deploy.
_HOLD_S = 3600


@dataclass(frozen=True)
class RemoteCluster(SparkCluster):
    """The cluster of `config`, used from this machine by the installation at `home`."""

    config: SshCluster
    home: Path

    @property
    def mark(self) -> str:
        """Return the value of NEXMARK_OWNER in every process of this cluster."""
        return f"{socket.gethostname()}:{super().mark}"

    @property
    def key(self) -> str:
        """Return the name of all directories of this installation's cluster."""
        return f"{self.config.name}-{hashlib.sha256(self.mark.encode()).hexdigest()[:8]}"

    @property
    def work(self) -> str:
        """Return the directory on a host with configuration, logs, samples, the worker's files."""
        return f"{self.config.root}/nights/{self.key}"

    @property
    def local(self) -> str:
        """Return the directory on a host with state and shuffle files."""
        return f"{self.config.local_dir}/{self.key}"

    @property
    def shared(self) -> Path:
        """Return the directory that every host and this machine see."""
        return Path(self.config.shared) / self.key

    @property
    def checkpoints(self) -> Path:
        """Return the directory of the queries' checkpoints."""
        return self.shared / "checkpoints"

    def worker_python(self, driver: str) -> str:
        """Return the interpreter on the hosts, of the driver's minor version (see `inspection`)."""
        return self.config.python

    @property
    def sampled_hosts(self) -> tuple[str, ...]:
        """Return every host, the master's too: other programs may run there."""
        return tuple(self.config.hosts)

    def data_dir(self, run: Path) -> Path:
        """Return a directory in the shared one, since executors of every host write there."""
        return self.shared / "runs" / safe_name(f"{run.parent.name}-{run.name}")

    def problems(
        self,
        say: Say = silent,
        java: Sequence[int] = JAVA_MAJORS,
        python: Sequence[int] = PYTHON,
    ) -> list[str]:
        """Return the problems of all hosts, one line each; print their table with `say`.

        Args:
            say: Called with the table.
            java: The versions of the JDK that the builds of the night can use.
            python: The minor version of the Python that its drivers run on.
        """
        with self._hosts() as hosts:
            inspection = inspect(self.config, hosts, self.mark, java, python)
        say(f"cluster {self.config.name}\n{inspection}")
        for warning in inspection.warnings:
            say(f"warning: {warning}")
        return inspection.problems

    def deploy(self, releases: list[Release], keep: int, say: Say) -> None:
        """Send the missing releases to all hosts at once; each host keeps `keep` of a kind."""
        with self._hosts() as hosts:
            for release in releases:
                to = (hosts, self.config.root, release.path, release.name, release.digest)
                _all_of(deploy_release(*to, keep=keep, say=say))

    def _start(self, spark: Release, logs: Path) -> None:
        (self.scratch / "local").mkdir(parents=True, exist_ok=True)
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        with self._hosts() as hosts:
            _all_of(on_all(hosts, self._prepare))
            by_name = {host.name: host for host in hosts}
            master = by_name.pop(self.config.master)
            arguments = self.master_arguments(self.config.master_address)
            self._start_daemon(master, "master.Master", arguments, spark)
            self._wait(self._master_is_alone, [master])
            workers = list(by_name.values())
            _all_of(on_all(workers, lambda host: self._start_worker(host, spark)))
            self._wait(lambda: not self.trouble(), workers)

    def clear(self, logs: Path | None = None) -> list[str]:
        """End the processes here and on every host.

        Raises:
            ClusterError: A host did not answer; all others are clear.
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
        with contextlib.suppress(OSError):
            self.shared.rmdir()  # the candidate's has what queries have put out
        shutil.rmtree(self.scratch, ignore_errors=True)
        _all_of(outcomes)
        self._running.unlink(missing_ok=True)
        return ended

    def claim(self, mine: Lease, is_active: Callable[[Lease], bool] = base.surely) -> bool:
        """Claim the cluster among the nights of this machine, then among other machines.

        The second lease is on the master's host. If this host does not answer, a night can still
        clean up the other hosts.
        """
        claimed = super().claim(mine, is_active)
        try:
            self._claim_host(mine)
        except ClusterError as error:
            if claimed:
                super().release()
            elif isinstance(error, HostUnreachable):
                return False
            raise
        return claimed

    def _claim_host(self, mine: Lease) -> None:
        night = f"{mine} on {socket.gethostname()}"
        held = self._ask_host({"do": "claim", "night": night, "hold_s": _HOLD_S})["held"]
        if held:
            raise ClusterError(
                f"cluster {self.config.name}: its hosts are in use by {held['night']} "
                f"(claimed {held['age_s'] / 60:.0f} min ago, {held['owner'].rstrip('|')}); wait "
                f"until it has ended, or end it; if that machine is gone, end what it left and "
                f"remove {self._host_lease} on host {self.config.master}"
            )

    def release(self) -> None:
        """Release both leases; the hosts' lease stays while the other arm's cluster is up."""
        self._ask_host({"do": "release"})
        super().release()

    def _ask_host(self, request: dict[str, Any]) -> dict[str, Any]:
        request |= {"path": self._host_lease, "owner": f"{socket.gethostname()}:{self.home}|"}
        with contextlib.closing(self._host(self.config.master)) as host:
            return host.call(leases, request, timeout_s=_CALL_S + _CALL_S)

    @property
    def _host_lease(self) -> str:
        return f"{self.config.root}/lease.json"

    def reap(self, mine: Lease, is_active: Callable[[Lease], bool] = base.surely) -> list[str]:
        """End the processes of earlier nights, and remove their files in the shared directory."""
        ended = super().reap(mine, is_active)
        shutil.rmtree(self.shared, ignore_errors=True)
        return ended

    def kill_one(self, word: str, draws: random.Random, *, again: bool) -> bool:
        """Send SIGKILL to a process on one of the hosts."""
        ours = {"mark": self.mark, "word": word}
        with self._hosts() as hosts:
            answers = _all_of(on_all(hosts, lambda host: _processes(host, "owned", ours)))
            candidates = [
                (host, process["pid"])
                for host in hosts
                for process in answers[host.name]["processes"]
            ]
            if not candidates:
                return False
            host, pid = draws.choice(candidates)
            return bool(_processes(host, "kill", ours | {"pid": pid, "again": again})["killed"])

    def start_samplers(self, jobs: Release, query: str, interval_s: float) -> None:
        """Start the sampler of the deployed jobs on every host."""
        program = f"{self.config.root}/releases/{jobs.name}/cpu_sampler.py"
        what = (self.config.python, program, f"{self.work}/samplers", query, interval_s, self.mark)
        self._on_hosts(lambda host: samplers.start_sampler(host, *what))

    def stop_samplers(self, query: str, directory: Path) -> None:
        """End the samplers and fetch their files; a host without samples gets no file."""
        what = (f"{self.work}/samplers", query, self.mark, directory)
        self._on_hosts(lambda host: samplers.fetch_samples(host, *what))

    def copy_samples(self, query: str, directory: Path) -> None:
        """Copy the samples from all hosts at once."""
        remote = f"{self.work}/samplers/{query}.jsonl"
        self._on_hosts(lambda host: host.fetch(remote, directory / f"samples-{host.name}.jsonl"))

    def fetch_recordings(self, application: str, executors: Sequence[str], directory: Path) -> None:
        """Fetch the recordings from the workers' hosts, and remove them there."""
        pattern = samplers.pattern_of(f"{self.work}/worker", application)
        with self._hosts() as hosts:

            def look() -> samplers.Found:
                return _all_of(on_all(hosts, lambda host: samplers.recordings_on(host, pattern)))

            recordings = samplers.wait_until_whole(look, executors)
            fetch = samplers.fetch_from
            _all_of(on_all(hosts, lambda h: fetch(h, recordings[h.name], directory / h.name)))

    def recorder_problem(self) -> str:
        """Return why a host's JDK cannot record, or why this machine cannot read it, or ''."""
        program = f"{self.config.java_home}/bin/jfr"
        with self._hosts() as hosts:
            outcomes = on_all(hosts, lambda host: samplers.recordings_on(host, program))
        for name, outcome in outcomes.items():
            if isinstance(outcome, HostError):
                return str(outcome)
            if not outcome:
                return f"host {name}: its JDK has no flight recorder: {program} is missing"
        return super().recorder_problem()

    def canary(self) -> dict[str, dict[str, float]]:
        """Run the canary on every host, on the disk for state."""
        request = {"directory": self.config.local_dir}
        answers = self._on_hosts(lambda host: host.call(canary, request, timeout_s=_CANARY_S))
        return {name: answer["metrics"] for name, answer in answers.items()}

    def hold(
        self, application: str, driver: str, places: Mapping[str, str]
    ) -> dict[str, dict[str, Any]]:
        """Return what the driver holds on this machine, and the executors on the hosts."""
        local = {base.LOCAL_DIRECTORIES: self.local}
        request = {"app": application, "driver": None, "directories": local}
        hosts = self._on_hosts(lambda host: host.call(jvm_state, request, timeout_s=_JVM_STATE_S))
        here = self._hold_here(None, driver, places)
        return {**hosts, **{f"{name} (driver)": answer for name, answer in here.items()}}

    def describe(self) -> dict[str, dict[str, Any]]:
        """Return the facts of every host, which are asked for at once."""
        request = {"java_home": self.config.java_home, "busy_window_s": 0}
        return self._on_hosts(lambda host: host.call(facts, request, timeout_s=_DESCRIBE_S))

    def _on_hosts(self, function: Callable[[Host], Outcome]) -> dict[str, Outcome]:
        """Call `function` for every host at the same time; ClusterError if it failed on one."""
        with self._hosts() as hosts:
            return _all_of(on_all(hosts, function))

    @contextlib.contextmanager
    def _hosts(self) -> Iterator[list[Host]]:
        """Return all hosts; each connects when it is first used."""
        with contextlib.ExitStack() as opened:
            hosts = list(map(self._host, self.config.hosts))
            for host in hosts:
                opened.callback(host.close)
            yield hosts

    def _host(self, name: str) -> Host:
        return Host(name, self.config.hosts[name].connection, self.config.python)

    def _prepare(self, host: Host) -> None:
        confs = _DAEMON_CONFS | {"spark.authenticate.secret": self._secret()}
        made = [f"{self.work}/{name}" for name in ("conf", "logs", "worker", "samplers")]
        written = {f"{made[0]}/spark-defaults.conf": base.properties(confs)}
        removed = [self.work, self.local]
        request = {"remove": removed, "make": [*made, self.local], "write": written}
        host.call(files, request, timeout_s=_CALL_S)

    def _start_worker(self, host: Host, spark: Release) -> None:
        machine = self.config.hosts[host.name]
        memory = f"{mebibytes(machine.memory or '1m')}m"
        size = (machine.cores or 1, memory, f"{self.work}/worker")
        arguments = self.worker_arguments(machine.address, *size)
        self._start_daemon(host, "worker.Worker", arguments, spark)

    def _start_daemon(
        self, host: Host, name: str, arguments: Sequence[str], spark: Release
    ) -> None:
        """Start the master or a worker on a host.

        Args:
            host: The host.
            name: The class of the daemon, without its package's beginning.
            arguments: The arguments of the daemon.
            spark: The Spark that it runs on.
        """
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
            "SPARK_DAEMON_JAVA_OPTS": base.DAEMON_JAVA_OPTIONS,
            # Executors inherit these two, so files of a killed executor are removed with `local`.
            "JAVA_TOOL_OPTIONS": temporary_files(Path(self.local)),
            "TMPDIR": self.local,
        }
        program = [f"{spark_home}/bin/spark-class", f"org.apache.spark.deploy.{name}"]
        request = {"command": [*program, *arguments], "environment": environment}
        _processes(host, "start", request | {"mark": self.mark, "log": self._log(host.name)})

    def _log(self, host: str) -> str:
        return f"{self.work}/logs/{self.config.hosts[host].role}-{host}.log"

    def _wait(self, ready: Callable[[], bool], hosts: Sequence[Host]) -> None:
        deadline = time.monotonic() + self.config.start_timeout_s
        while not (ready() and listening(self.config, hosts, self.mark)):
            if time.monotonic() > deadline:
                late = f"not ready after {self.config.start_timeout_s} s: {self.trouble()}"
                words = self._failure_cause(hosts)
                raise ClusterError(f"cluster {self.config.name}: {late}; {words}")
            time.sleep(_POLL_S)

    def _failure_cause(self, hosts: Sequence[Host]) -> str:
        def words(host: Host) -> str:
            log = self._log(host.name)
            answer = host.call(files, {"tail": {log: base.LOG_LINES}}, timeout_s=_CALL_S)
            return failure_cause("\n".join(answer["tail"][log]) or "nothing was logged")

        return "; ".join(f"{name}: {said}" for name, said in on_all(hosts, words).items())

    def _clear(self, host: Host, logs: Path | None) -> list[str]:
        request = {"do": "end", "mark": self.mark, "grace_s": _END_GRACE_S}
        answer = host.call(processes, request, timeout_s=3 * _CALL_S)
        if logs is not None:
            with contextlib.suppress(HostError):  # never started there
                host.fetch(self._log(host.name), logs / Path(self._log(host.name)).name)
        host.call(files, {"remove": [self.work, self.local]}, timeout_s=3 * _CALL_S)
        if left := self.left_behind(answer):
            raise HostError(f"host {host.name}: {left}")
        return [f"{process['pid']} {process['command']}" for process in answer["ended"]]


def _processes(host: Host, do: str, request: Mapping[str, Any]) -> dict[str, Any]:
    return host.call(processes, {"do": do, **request}, timeout_s=_CALL_S)


def _all_of(outcomes: Mapping[str, Outcome | HostError]) -> dict[str, Outcome]:
    """Return the answers of all hosts; raise the failures of hosts as one error."""
    if problems := [
        str(outcome) for outcome in outcomes.values() if isinstance(outcome, HostError)
    ]:
        raise ClusterError(" | ".join(problems))
    return {
        name: outcome for name, outcome in outcomes.items() if not isinstance(outcome, HostError)
    }

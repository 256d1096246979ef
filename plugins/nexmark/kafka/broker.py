"""Apache Kafka on this machine: one broker or three, in KRaft mode, on 127.0.0.1.

Every broker is a controller as well. Broker N has its files in `<directory>/broker-N/`:

    server.properties  log4j2.properties
    server.log         what it logs, at most 40 MB
    console.log        what the JVM itself prints
    data/              its storage

As elsewhere, processes are found by their mark (`nexmark_jobs.host.processes`), not by pid files.
"""

import base64
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nexmark.config import paths
from nexmark.engines.prerequisites import disk_problem, java_problem, java_program
from nexmark.engines.short_runs import C1
from nexmark.kafka import KafkaError
from nexmark.kafka.jars import BROKER, jars
from nexmark.kafka.topics import KafkaCluster
from nexmark.model import Say
from nexmark_jobs.cause import failure_cause
from nexmark_jobs.host import processes
from nexmark_jobs.host.files import tail
from nexmark_jobs.host.leases import locked
from nexmark_jobs.host.ports import LOOPBACK, is_free, listener
from nexmark_jobs.host.processes import (
    Process,
    owned,
    owner_mark,
    plain_environment,
    start_detached,
    stat_fields,
    text_of,
)

#: The port of the first broker. Its controller has the next port, the second broker the one after.
PORT = 19092
#: The first ports of the brokers for benchmarks, and for measurements of latency.
BENCH_PORT = 19292
LATENCY_PORT = 19392
#: The possible numbers of brokers: one, or enough for replication.
COUNTS = (1, 3)

#: The option by which the command line of a broker has its number.
_NUMBER = "-Dnexmark.broker="
_HEAP_MB: Mapping[int, int] = {1: 512, 3: 400}
_READY_S = 90
_LOG_LINES = 400
_POLL_S = 0.2
_GRACE_S = 30.0
_FORMAT_TIMEOUT_S = 60
_LOCK_TIMEOUT_S = 120.0
_LEAST_BYTES = 2 * 10**9

_SERVER = """\
process.roles=broker,controller
node.id={number}
controller.quorum.voters={voters}
listeners=BROKER://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=BROKER://{host}:{port}
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={directory}/data
auto.create.topics.enable=false
default.replication.factor={count}
min.insync.replicas={in_sync}
offsets.topic.replication.factor={count}
offsets.topic.num.partitions=1
transaction.state.log.replication.factor={count}
transaction.state.log.min.isr={in_sync}
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor={count}
share.coordinator.state.topic.min.isr={in_sync}
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
"""
_LOG4J = """\
rootLogger.level=INFO
rootLogger.appenderRef.file.ref=file
appender.file.type=RollingFile
appender.file.name=file
appender.file.fileName={directory}/server.log
appender.file.filePattern={directory}/server.log.%i
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%d %p %m (%c)%n
appender.file.policies.type=SizeBasedTriggeringPolicy
appender.file.policies.size=10MB
appender.file.strategy.type=DefaultRolloverStrategy
appender.file.strategy.max=3
"""


@dataclass(frozen=True)
class Broker:
    """One of the brokers at `addresses`.

    `number` counts them from 1, in the order of their addresses; their ports begin at `first_port`.
    """

    number: int
    addresses: tuple[str, ...]
    first_port: int

    @property
    def address(self) -> str:
        """Return the address of the broker's host."""
        return self.addresses[self.number - 1]

    @property
    def port(self) -> int:
        """Return the port for clients; the broker's controller has the next port."""
        return self.first_port + 2 * (self.number - 1)

    def write(self, files: Path, directory: Path) -> None:
        """Write the broker's configuration to the directory `files`.

        `directory` is the path that this directory has on the broker's host.
        """
        others = brokers_at(self.addresses, self.first_port)
        voters = (f"{each.number}@{each.address}:{each.port + 1}" for each in others)
        settings = _SERVER.format(
            number=self.number,
            voters=",".join(voters),
            host=self.address,
            port=self.port,
            controller_port=self.port + 1,
            directory=directory,
            count=len(self.addresses),
            in_sync=min(2, len(self.addresses)),
        )
        files.mkdir(parents=True, exist_ok=True)
        for name, text in (
            ("server.properties", settings),
            ("log4j2.properties", _LOG4J.format(directory=directory)),
        ):
            (files / name).write_text(_escaped(text), encoding="ascii")

    def formatting(self, directory: Path, class_path: str, common: str) -> list[str]:
        """Return the command that makes the broker's storage; `common` is the id of the cluster."""
        return [
            str(java_program("java")),
            "-Xmx128m",
            C1,
            "-XX:+UseSerialGC",
            "-cp",
            class_path,
            _log_option(directory),
            "kafka.tools.StorageTool",
            "format",
            "--cluster-id",
            common,
            "--config",
            str(directory / "server.properties"),
        ]

    def command(self, directory: Path, class_path: str) -> list[str]:
        """Return the command that runs the broker."""
        heap = _HEAP_MB[len(self.addresses)]
        return [
            str(java_program("java")),
            f"-Xms{heap}m",
            f"-Xmx{heap}m",
            "-XX:+UseG1GC",
            "-XX:MaxGCPauseMillis=20",
            "-XX:MaxDirectMemorySize=256m",
            "-XX:+ExitOnOutOfMemoryError",
            _log_option(directory),
            f"{_NUMBER}{self.number}",
            "-cp",
            class_path,
            "kafka.Kafka",
            str(directory / "server.properties"),
        ]


@dataclass(frozen=True)
class BrokerStatus:
    """The present state of a broker: memory that is `resident` and files `stored`, in bytes."""

    broker: Broker
    process: Process | None
    answers: bool
    resident: int
    stored: int
    log: Path


def brokers_at(addresses: tuple[str, ...], port: int) -> list[Broker]:
    """Return a broker at each address; their ports begin at `port`."""
    return [Broker(number, addresses, port) for number, _ in enumerate(addresses, 1)]


def servers(brokers: Iterable[Broker]) -> str:
    """Return the bootstrap servers of these brokers."""
    return ",".join(f"{broker.address}:{broker.port}" for broker in brokers)


def cluster_id(stored: Iterable[Path]) -> str:
    """Return the id in the `meta.properties` that brokers have stored, or a new id."""
    for file in stored:
        for line in file.read_text().splitlines():
            if line.startswith("cluster.id="):
                return line.partition("=")[2]
    return base64.urlsafe_b64encode(b"n" + uuid.uuid4().bytes[1:]).decode().rstrip("=")


@dataclass(frozen=True)
class LocalBrokers:
    """The brokers whose files are in a `directory` of this machine.

    `mark` is the value of NEXMARK_OWNER in their processes.
    """

    directory: Path
    mark: str

    def up(self, count: int, port: int, say: Say) -> str:
        """Start brokers, unless they run, wait until all answer, and return the bootstrap servers.

        Storage that a killed broker has left is used again.

        Raises:
            KafkaError: They cannot be started, or are not ready after 90 s; then none of them runs.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        with locked(self.directory / "up.lock", _LOCK_TIMEOUT_S):
            brokers = brokers_at((LOOPBACK,) * count, port)
            self._check_others(brokers)
            running = self._processes()
            if len(running) < count:
                class_path = ":".join(map(str, jars(BROKER, say)))
                missing = [broker for broker in brokers if broker.number not in running]
                if problem := _problem(self.directory, missing):
                    raise KafkaError(problem)
                try:
                    self._start(brokers, running, class_path)
                except BaseException:
                    self._end()
                    raise
        return servers(brokers)

    def down(self) -> list[str]:
        """End all brokers and remove their storage; return a line for each process that ended."""
        ended = self._end()
        for directory in self.directory.glob("broker-*"):
            shutil.rmtree(directory)
        return ended

    def status(self) -> list[BrokerStatus]:
        """Return the brokers that run, or that have storage."""
        running = self._processes()
        return [self._status(broker, running.get(broker.number)) for broker in self._stored()]

    def cpu_s(self) -> float:
        """Return the processor time that the running brokers have used so far, in seconds."""
        fields = (stat_fields(process.pid) or [] for process in self._processes().values())
        user_and_system = (int(ticks) for each in fields for ticks in each[11:13])
        return sum(user_and_system) / os.sysconf("SC_CLK_TCK")

    def problems(self, count: int, port: int) -> list[str]:
        """Return the reasons why brokers cannot start here, a line each."""
        running, brokers = self._processes(), brokers_at((LOOPBACK,) * count, port)
        wanted = [each for each in brokers if each.number not in running]
        return [*filter(None, [_problem(self.directory, wanted)])]

    def _files(self, broker: Broker) -> Path:
        return self.directory / f"broker-{broker.number}"

    def _processes(self) -> dict[int, Process]:
        """Return the processes of running brokers, by the number of the broker."""
        return {
            int(word.removeprefix(_NUMBER)): process
            for process in owned(self.mark)
            for word in _proc(process, "cmdline").split("\0")
            if word.startswith(_NUMBER)
        }

    def _stored(self) -> list[Broker]:
        """Return the brokers that have files, as their configuration describes them."""
        files = sorted(self.directory.glob("broker-*/server.properties"))
        return [_read(file, len(files)) for file in files]

    def _status(self, broker: Broker, process: Process | None) -> BrokerStatus:
        files = self._files(broker)
        pages = _proc(process, "statm").split()[1:2] if process else []
        alone = KafkaCluster(f"{LOOPBACK}:{broker.port}", time_out_s=5)
        return BrokerStatus(
            broker,
            process,
            answers=process is not None and broker.number in alone.brokers(),
            resident=sum(map(int, pages)) * os.sysconf("SC_PAGE_SIZE"),
            stored=sum(file.stat().st_blocks * 512 for file in files.rglob("*") if file.is_file()),
            log=files / "server.log",
        )

    def _check_others(self, brokers: list[Broker]) -> None:
        """Raise KafkaError if the directory has another number of brokers, or other ports."""
        there = self._stored()
        if there and there != brokers:
            raise KafkaError(
                f"kafka: {self.directory} has {_counted(there)} from port {there[0].first_port} "
                f"on, not {_counted(brokers)} from port {brokers[0].first_port} on; "
                "remove what is there first: nexmark kafka down"
            )

    def _start(self, brokers: list[Broker], running: Collection[int], class_path: str) -> None:
        """Start the brokers that are not in `running`, and wait until all of them answer."""
        common = cluster_id(self.directory.glob("broker-*/data/meta.properties"))
        started = {}
        for broker in brokers:
            if broker.number not in running:
                self._prepare(broker, common, class_path)
                files = self._files(broker)
                command, log = broker.command(files, class_path), files / "console.log"
                started[broker] = start_detached(command, plain_environment(), self.mark, log)
        deadline = time.monotonic() + _READY_S
        kafka = KafkaCluster(servers(brokers), time_out_s=2)
        while kafka.brokers() != {broker.number for broker in brokers}:
            for broker, process in started.items():
                if not process.alive:
                    ended = f"broker {broker.number} ended while it started"
                    raise KafkaError(f"kafka: {ended}; {self._failure_cause(broker)}")
            if time.monotonic() > deadline:
                words = self._failure_cause(brokers[0])
                raise KafkaError(f"kafka: not ready after {_READY_S} s; {words}")
            time.sleep(_POLL_S)

    def _prepare(self, broker: Broker, common: str, class_path: str) -> None:
        """Write a broker's configuration, and make its storage unless it has one."""
        files = self._files(broker)
        broker.write(files, files)
        if (files / "data" / "meta.properties").exists():
            return
        command = broker.formatting(files, class_path, common)
        run = subprocess.run(
            command,
            env=plain_environment(),
            capture_output=True,
            text=True,
            timeout=_FORMAT_TIMEOUT_S,
        )
        if run.returncode != 0:
            said = failure_cause(f"{run.stdout}\n{run.stderr}", run.returncode)[:300]
            raise KafkaError(f"kafka: storage of broker {broker.number} cannot be made: {said}")

    def _failure_cause(self, broker: Broker) -> str:
        """Return the end of a broker's logs in one line."""
        files = self._files(broker)
        for path in (files / "console.log", files / "server.log"):
            if said := tail(path, _LOG_LINES):
                words = failure_cause("\n".join(said))
                return f"its last words: {words[:500]}; see {path}"
        return f"nothing was logged in {files}"

    def _end(self) -> list[str]:
        """End all brokers; return a line for each; KafkaError if a process does not end."""
        answer = processes.main({"do": "end", "mark": self.mark, "grace_s": _GRACE_S})
        if answer["left"]:
            pids = " ".join(str(process["pid"]) for process in answer["left"])
            raise KafkaError(f"kafka: processes {pids} did not end; then: kill -9 {pids}")
        return [f"{process['pid']} {process['command']}" for process in answer["ended"]]


def of_this_machine(purpose: str = "") -> LocalBrokers:
    """Return the brokers that `nexmark kafka` starts, or those for one `purpose`.

    Purposes are bench and latency; their brokers have a directory and ports of their own.
    """
    mark = owner_mark(paths.home(), f"kafka {purpose or 'brokers'}")
    return LocalBrokers(paths.home() / "kafka" / purpose, mark)


def _problem(directory: Path, brokers: list[Broker]) -> str:
    """Return why these brokers cannot run here, or ''."""
    if problem := java_problem() or disk_problem(directory, _LEAST_BYTES):
        return f"kafka: {problem}"
    for port in (port for broker in brokers for port in (broker.port, broker.port + 1)):
        if not is_free(port):
            holder = listener(port)
            who = f"process {holder.pid} ({holder.command})" if holder else "another process"
            return f"kafka: port {port} is taken by {who}; end it, or take another port"
    return ""


def _counted(brokers: list[Broker]) -> str:
    return "1 broker" if len(brokers) == 1 else f"{len(brokers)} brokers"


def _escaped(text: str) -> str:
    """Return a text as Java reads it from a properties file in ISO 8859-1."""
    return "".join(letter if letter.isascii() else f"\\u{ord(letter):04x}" for letter in text)


def _log_option(files: Path) -> str:
    return f"-Dlog4j2.configurationFile={files / 'log4j2.properties'}"


def _proc(process: Process, file: str) -> str:
    """Return the text of a file in /proc/PID; "" if the process has ended meanwhile."""
    return text_of(f"/proc/{process.pid}/{file}") or ""


def _read(file: Path, count: int) -> Broker:
    """Return the broker that a `server.properties` describes, one of `count`."""
    settings = dict(line.split("=", 1) for line in file.read_text().splitlines())
    number = int(settings["node.id"])
    port = int(settings["advertised.listeners"].rsplit(":", 1)[1])
    return Broker(number, (LOOPBACK,) * count, port - 2 * (number - 1))

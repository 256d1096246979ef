"""Run Kafka's own performance tools as processes, and read the figures that they print."""

import contextlib
import csv
import re
import resource
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nexmark.engines.prerequisites import java_program
from nexmark.kafka import KafkaError
from nexmark.kafka.jars import BROKER, jars
from nexmark.model import Say
from nexmark_jobs.cause import failure_cause
from nexmark_jobs.host.processes import plain_environment

CONFS: Mapping[str, str] = {"buffer.memory": "67108864", "batch.size": "8196"}
"""The confs of the producers in every test, as in the article."""

_PACKAGE = "org.apache.kafka.tools"
_HEAP = "-Xmx256m"
_TIMEOUT_S = 900
_SENT = re.compile(
    r"\d+(?: steady state)? records sent, ([0-9.]+) records/sec \(([0-9.]+) MB/sec\)"
)
_PERCENTILES = re.compile(r"50th = (\d+), 99th = (\d+), 99\.9th = (\d+)")


@dataclass(frozen=True)
class Throughput:
    """Records and megabytes (of 2^20 bytes) per second."""

    records: float
    megabytes: float


@dataclass(frozen=True)
class Latencies:
    """Percentiles of the time from a producer to a consumer, in whole milliseconds."""

    p50: int
    p99: int
    p999: int


@dataclass(frozen=True)
class Tools:
    """Kafka's own tools, run against one cluster.

    `servers` are its bootstrap servers, `environment` has the variables that mark the processes.
    """

    servers: str
    environment: Mapping[str, str]
    say: Say = field(repr=False)

    @contextlib.contextmanager
    def producer(
        self, topic: str, records: int, size: int, acks: str, *, warm_up: int = 0
    ) -> Iterator[Callable[[], Throughput]]:
        """Start a producer; it is killed if it still runs when the context ends.

        Args:
            topic: The topic.
            records: How many records it writes.
            size: Bytes of a record.
            acks: How many replicas confirm a record, 1 or all.
            warm_up: How many of the first records do not count.

        Yields:
            A function that waits for the producer's end and returns its rate.
        """
        confs = {**CONFS, "acks": acks}
        words = ["--topic", topic, "--num-records", str(records), "--record-size", str(size)]
        words += ["--throughput", "-1"]
        words += ["--command-property", *(f"{name}={value}" for name, value in confs.items())]
        words += ["--warmup-records", str(warm_up)] if warm_up else []
        with self._running("ProducerPerformance", words) as output:
            yield lambda: sent(output())

    @contextlib.contextmanager
    def consumer(self, topic: str, records: int) -> Iterator[Callable[[], Throughput]]:
        """Start a consumer, as `producer` does; its rate leaves out the time to join the group."""
        words = ["--topic", topic, "--num-records", str(records)]
        with self._running("ConsumerPerformance", words) as output:
            yield lambda: fetched(output())

    def latencies(self, topic: str, records: int, size: int, acks: str) -> Latencies:
        """Send records one by one, and wait until each comes back.

        Args:
            topic: The topic.
            records: How many records are sent.
            size: Bytes of a record.
            acks: How many replicas confirm a record, 1 or all.
        """
        words = ["--topic", topic, "--num-records", str(records), "--record-size", str(size)]
        with self._running("EndToEndLatency", [*words, "--producer-acks", acks]) as output:
            return percentiles(output())

    @contextlib.contextmanager
    def _running(self, tool: str, words: Sequence[str]) -> Iterator[Callable[[], str]]:
        class_path = ":".join(map(str, jars(BROKER, self.say)))
        command = [str(java_program("java")), _HEAP, "-cp", class_path, f"{_PACKAGE}.{tool}"]
        process = subprocess.Popen(
            [*command, "--bootstrap-server", self.servers, *words],
            env=plain_environment() | dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

        def output() -> str:
            try:
                text, _ = process.communicate(timeout=_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                raise KafkaError(f"kafka: {tool} did not end within {_TIMEOUT_S} s") from None
            if process.returncode != 0:
                raise KafkaError(
                    f"kafka: {tool} failed: {failure_cause(text, process.returncode)[:300]}"
                )
            return text

        try:
            yield output
        finally:
            process.kill()
            process.wait()


def sent(output: str) -> Throughput:
    """Return the rate that ProducerPerformance prints: of the steady state, if there is one."""
    rate, megabytes = _last(_SENT, "ProducerPerformance", output)
    return Throughput(float(rate), float(megabytes))


def fetched(output: str) -> Throughput:
    """Return the rate that ConsumerPerformance prints, without the time to join the group."""
    lines = [line.replace(", ", ",") for line in output.splitlines() if line.count(",") >= 9]
    rows = list(csv.DictReader(lines))
    try:
        return Throughput(float(rows[-1]["fetch.nMsg.sec"]), float(rows[-1]["fetch.MB.sec"]))
    except (IndexError, KeyError, ValueError):
        raise _unread("ConsumerPerformance", output) from None


def percentiles(output: str) -> Latencies:
    """Return the percentiles that EndToEndLatency prints."""
    return Latencies(*map(int, _last(_PERCENTILES, "EndToEndLatency", output)))


def children_cpu_s() -> float:
    """Return the processor time (s) of all processes that this one started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _last(pattern: re.Pattern[str], tool: str, output: str) -> tuple[str, ...]:
    """Return the groups of the last match; KafkaError if there is none."""
    matches = list(pattern.finditer(output))
    if not matches:
        raise _unread(tool, output)
    return matches[-1].groups()


def _unread(tool: str, output: str) -> KafkaError:
    return KafkaError(f"kafka: {tool} printed no figures: {failure_cause(output)[:300]}")

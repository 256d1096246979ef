"""One paced run: topics, a query that runs, events when they are due, the latencies of its rows."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from nexmark.config import paths
from nexmark.engines import Build
from nexmark.errors import NexmarkError
from nexmark.kafka.kafka_error import KafkaError
from nexmark.kafka.topics import KafkaCluster
from nexmark.latency.figures import LatencyFigures, figures
from nexmark.latency.matching import MATCHINGS, OutputRecord
from nexmark.latency.pacing import PacedEvent, paced, send

PARTITIONS = 2
"""Of the input topic; the output has one, so that its order is the brokers' own."""

SLOTS = 4
"""Real-Time Mode needs one for each input partition and one for the shuffle, all at once."""

_CONFS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "2g",
    "spark.log.level": "ERROR",
}
_AHEAD_MS = 1_500
_READY_S = 180
_DUMP_S = 600
_MAX_DRAIN_S = 120.0
_STOP_S = 90
_POLL_S = 0.5


class LatencyError(NexmarkError):
    """A paced run that has no figures; one line with the reason."""


@dataclass(frozen=True)
class PacedRuns:
    """Runs of one build against one Kafka.

    Attributes:
        build: the build.
        jars: the files with which it reads Kafka.
        kafka: the cluster.
        environment: of its processes.
        work: an empty directory for events, results and logs.
        say: told what happens.
    """

    build: Build
    jars: list[Path]
    kafka: KafkaCluster
    environment: Mapping[str, str]
    work: Path
    say: Callable[[str], None] = field(repr=False)

    def run(
        self, query: str, trigger: str, rate: int, seconds: int, warm_up_s: int
    ) -> LatencyFigures:
        """Measure `seconds` at `rate` events per second, after a warm-up at the same rate.

        Raises:
            LatencyError: The query failed, did not start or did not end.
            KafkaError: The events did not reach the topic.
        """
        lines = self._events(rate, (seconds + warm_up_s) * rate)
        with (
            self._topic(PARTITIONS) as source,
            self._topic(1) as sink,
            self._query(query, trigger, source, sink) as alive,
        ):
            events = paced(lines, int(time.time() * 1000) + _AHEAD_MS)
            self.say(f"{query} {trigger}: {len(events):,} events, {rate:,} per second")
            lags = send(self.kafka, source, PARTITIONS, events)
            output = self._drained(query, events, sink, alive)
        from_ms = events[0].due_ms + warm_up_s * 1000
        late = [lag for event, lag in zip(events, lags, strict=True) if event.due_ms >= from_ms]
        matched = MATCHINGS[query].match(events, output)
        return figures(query, trigger, rate, matched, late, from_ms)

    def _events(self, rate: int, count: int) -> list[str]:
        """Generated events, `rate` of them in a second of event time."""
        target = self.work / f"events-{rate}-{count}"
        if not target.is_dir():
            script = paths.repository() / "nexmark_jobs" / "dump_events.py"
            arguments = ["--events", str(count), "--tps", str(rate), "--out", str(target)]
            done = subprocess.run(
                self._submit("local[2]", [str(script), *arguments, "--format", "json"]),
                env=dict(self.environment),
                capture_output=True,
                text=True,
                timeout=_DUMP_S,
            )
            if done.returncode != 0:
                raise LatencyError(f"latency: no events: {done.stderr.strip()[-300:]}")
        return [x for file in sorted(target.glob("*.json")) for x in file.read_text().splitlines()]

    def _submit(self, master: str, job: list[str]) -> list[str]:
        confs = [word for pair in _CONFS.items() for word in ("--conf", "=".join(pair))]
        program = str(self.build.spark_home / "bin" / "spark-submit")
        return [program, "--master", master, "--jars", ",".join(map(str, self.jars)), *confs, *job]

    @contextlib.contextmanager
    def _query(
        self, query: str, trigger: str, source: str, sink: str
    ) -> Iterator[Callable[[], None]]:
        """Run the query; the end of the context stops it.

        Yields:
            What raises LatencyError if it no longer runs.
        """
        place = self.work / f"{query}-{uuid.uuid4().hex[:8]}"
        place.mkdir()
        job = [
            str(paths.repository() / "nexmark_jobs" / "paced_query.py"),
            *("--query", query, "--trigger", trigger, "--source", source, "--sink", sink),
            *("--bootstrap-servers", self.kafka.servers),
            *("--until", str(place / "stop"), "--result", str(place / "result.json")),
        ]
        log = place / "log.txt"
        with log.open("w") as output:
            process = subprocess.Popen(
                self._submit(f"local[{SLOTS}]", job),
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

        def alive() -> None:
            if process.poll() is not None:
                raise LatencyError(f"latency: {query} {trigger}: {_reason(log)}")

        try:
            deadline = time.monotonic() + _READY_S
            while "started" not in log.read_text().splitlines():
                alive()
                if time.monotonic() > deadline:
                    raise LatencyError(f"latency: {query} {trigger}: not started in {_READY_S} s")
                time.sleep(_POLL_S)
            yield alive
            (place / "stop").touch()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_S)
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(place, ignore_errors=True)

    def _drained(
        self, query: str, events: list[PacedEvent], sink: str, alive: Callable[[], None]
    ) -> list[OutputRecord]:
        """The output: when every bid has its row, or when no more rows come.

        A query on a busy machine may write its first row long after the last event.
        """
        deadline = time.monotonic() + _MAX_DRAIN_S
        output: list[OutputRecord] = []
        while True:
            alive()
            late = time.monotonic() > deadline
            if self.kafka.offsets(sink, 1)[0][1] > len(output) or late:
                output = self._output(sink)
                if late or not MATCHINGS[query].match(events, output).missing:
                    return output
            time.sleep(_POLL_S)

    def _output(self, sink: str) -> list[OutputRecord]:
        """All records of the output, in their order."""
        ((begin, end),) = self.kafka.offsets(sink, 1)
        consumer = Consumer({**self.kafka.client(), "group.id": "nexmark"})
        found: list[OutputRecord] = []
        try:
            consumer.assign([TopicPartition(sink, 0, begin)])
            while len(found) < end - begin:
                records = consumer.consume(5_000, timeout=10)
                if not records:
                    raise KafkaError(f"kafka: {sink} has {end - begin} records, got {len(found)}")
                for record in records:
                    value = record.value()
                    assert isinstance(value, bytes)
                    key = record.key()
                    found.append(
                        OutputRecord.of(
                            record.timestamp()[1], key if isinstance(key, bytes) else None, value
                        )
                    )
        finally:
            consumer.close()
        return found

    @contextlib.contextmanager
    def _topic(self, partitions: int) -> Iterator[str]:
        name = f"nexmark-paced-{uuid.uuid4().hex[:10]}"
        config = {"message.timestamp.type": "LogAppendTime"}
        self.kafka.create(name, partitions, config)
        try:
            yield name
        finally:
            self.kafka.delete(name)


def environment(build: Build, mark: Mapping[str, str], work: Path) -> dict[str, str]:
    """The environment of the runs' processes: the caller's, without its Spark settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    return {
        **kept,
        **mark,
        "SPARK_HOME": str(build.spark_home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(work),
        "TMPDIR": str(work),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": "",
    }


def _reason(log: Path) -> str:
    """Why a query ended, from its log."""
    lines = [line.strip() for line in log.read_text().splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("paced_query.py: error: ")]
    return (told or lines or ["it ended without a word"])[-1].removeprefix(
        "paced_query.py: error: "
    )

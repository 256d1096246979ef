"""Measure a running query: send events when they are due, then read its rows with their times."""

import contextlib
import json
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nexmark.engines import Build
from nexmark.engines.launcher import NONE, Confs, Launcher, dump_events, log_of, logged_cause
from nexmark.errors import NexmarkError
from nexmark.kafka.topics import KafkaCluster
from nexmark.latency.figures import LatencyFigures, figures
from nexmark.latency.matching import MATCHINGS, OutputRecord
from nexmark.latency.pacing import Check, PacedEvent, paced, send
from nexmark.model import Say

_AHEAD_MS = 1_500
_READY_S = 300.0
_MAX_DRAIN_S = 120.0
_POLL_S = 0.5

PARTITIONS = 2
"""The partitions of the input topic."""

SLOTS = 4
"""The cores of a run: Real-Time Mode occupies one per input partition, and one for the shuffle."""

_CONFS = {"spark.sql.shuffle.partitions": "1", "spark.driver.memory": "2g"}
_STOP_S = 90


@dataclass(frozen=True)
class Pace:
    """A query and its trigger, as `paced_query.py` takes them, and the way its events arrive."""

    query: str
    trigger: str
    rate: int  # events per second
    warm_up_s: int  # how long the first events are not counted
    partitions: int  # of the input topic; the output topic has one, so its records have an order


@dataclass(frozen=True)
class Measuring:
    """Measurements of queries with one Kafka cluster."""

    kafka: KafkaCluster
    say: Say = field(repr=False)

    @contextlib.contextmanager
    def topics(self, name: str, partitions: int) -> Iterator[tuple[str, str]]:
        """Create topics for the input and the output of a query; delete them after the context.

        Raises:
            KafkaError: The brokers refuse.
        """
        source, sink = f"{name}-in", f"{name}-out"
        with contextlib.ExitStack() as made:
            for topic, count in ((source, partitions), (sink, 1)):
                self.kafka.create(topic, count, {"message.timestamp.type": "LogAppendTime"})
                made.callback(self.kafka.delete, topic)
            yield source, sink

    def measure(
        self, pace: Pace, recorded: Path, topics: tuple[str, str], started: Path, alive: Check
    ) -> LatencyFigures:
        """Send recorded events to a query, once it runs, and wait for its rows.

        Args:
            pace: The query, its trigger and its rate.
            recorded: The directory of the events; their times are moved, so that the first one is
                due in a moment.
            topics: The topic that the query reads, and the topic that it writes.
            started: The file that the query makes when it runs.
            alive: Raises an error if the query has ended.

        Raises:
            KafkaError: The events did not reach the topic.
            NexmarkError: The query does not start, or selects none of the events that count.
        """
        files = sorted(recorded.glob("*.json"))
        lines = [line for file in files for line in file.read_text().splitlines()]
        source, sink = topics
        deadline = time.monotonic() + _READY_S
        while not started.exists():
            alive()
            if time.monotonic() > deadline:
                raise NexmarkError(f"latency: {pace.query} did not start within {_READY_S:.0f} s")
            time.sleep(_POLL_S)
        events = paced(lines, int(time.time() * 1000) + _AHEAD_MS)
        from_ms = events[0].due_ms + pace.warm_up_s * 1000
        counted = [event for event in events if event.due_ms >= from_ms]
        if not MATCHINGS[pace.query].match(counted, []).missing:
            none = f"selects none of the {len(counted):,} events that count"
            remedy = "give it more: a longer time, or a higher rate"
            raise NexmarkError(f"latency: {pace.query} {none}; {remedy}")
        self.say(f"{pace.query} {pace.trigger}: {len(events):,} events, {pace.rate:,} per second")
        lags = send(self.kafka, source, pace.partitions, events, alive)
        output = self._drained(pace.query, events, sink, alive)
        late = [lag for event, lag in zip(events, lags, strict=True) if event.due_ms >= from_ms]
        matched = MATCHINGS[pace.query].match(events, output)
        return figures(pace.query, pace.trigger, pace.rate, matched, late, events, from_ms)

    def _drained(
        self, query: str, events: list[PacedEvent], sink: str, alive: Check
    ) -> list[OutputRecord]:
        """Return the output when every bid has its row, or when no more rows come.

        A query on a busy machine may write its first row long after the last event.

        Args:
            query: The query.
            events: All events that were sent.
            sink: The topic that it writes.
            alive: Raises an error if the query has ended.
        """
        deadline = time.monotonic() + _MAX_DRAIN_S
        output: list[OutputRecord] = []
        while True:
            alive()
            late = time.monotonic() > deadline
            if not output or self.kafka.offsets(sink, 1)[0][1] > len(output) or late:
                output = self._output(sink)
                if late or not MATCHINGS[query].match(events, output).missing:
                    return output
            time.sleep(_POLL_S)

    def _output(self, sink: str) -> list[OutputRecord]:
        """Return all records of the output topic, in their order."""
        output = []
        for record in self.kafka.records(sink):
            value, key = record.value(), record.key()
            assert isinstance(value, bytes)
            text = key.decode() if isinstance(key, bytes) else None
            output.append(OutputRecord(record.timestamp()[1], text, json.loads(value)))
        return output


@dataclass(frozen=True)
class PacedRuns:
    """Runs of queries on one build with one Kafka cluster."""

    build: Build
    jars: list[Path]  # Spark's Kafka connector
    kafka: KafkaCluster
    mark: Mapping[str, str]  # the environment variable that marks the processes
    work: Path  # an empty directory for all that is written
    say: Say = field(repr=False)

    def run(
        self, query: str, trigger: str, rate: int, seconds: int, warm_up: int, confs: Confs = NONE
    ) -> LatencyFigures:
        """Measure a query, after a warm-up at the same rate.

        Args:
            query: The query.
            trigger: Its trigger.
            rate: Events per second.
            seconds: How long is measured.
            warm_up: Seconds before that, whose events do not count.
            confs: Spark confs of the query beside the usual ones.

        Raises:
            NexmarkError: The query failed, did not start or did not end, or the events did not
                reach the topic.
        """
        recorded = self._events(rate, (seconds + warm_up) * rate)
        measuring = Measuring(self.kafka, self.say)
        name = f"nexmark-paced-{uuid.uuid4().hex[:10]}"
        with (
            measuring.topics(name, PARTITIONS) as topics,
            self._query(query, trigger, topics, confs) as (started, alive),
        ):
            pace = Pace(query, trigger, rate, warm_up, PARTITIONS)
            return measuring.measure(pace, recorded, topics, started, alive)

    def _events(self, rate: int, count: int) -> Path:
        """Generate events, `rate` of them in a second of event time; return their directory."""
        target = self.work / f"events-{rate}-{count}"
        if not target.is_dir():
            given = ["--events", str(count), "--tps", str(rate)]
            dump_events(Launcher(self.build, {}, self.work, self.mark), given, target, "json")
        return target

    @contextlib.contextmanager
    def _query(
        self, query: str, trigger: str, topics: tuple[str, str], confs: Confs
    ) -> Iterator[tuple[Path, Check]]:
        """Run the query while the context is open.

        Args:
            query: The query.
            trigger: Its trigger.
            topics: The topic that it reads, and the topic that it writes.
            confs: Spark confs beside the usual ones.

        Yields:
            The file that the query makes when it runs, and a check that raises NexmarkError if the
            query has ended.
        """
        place = self.work / f"{query}-{uuid.uuid4().hex[:8]}"
        place.mkdir()
        started, stop, result = (place / name for name in ("started", "stop", "result.json"))
        arguments = [
            "--query",
            query,
            "--trigger",
            trigger,
            "--source",
            topics[0],
            "--sink",
            topics[1],
            "--bootstrap-servers",
            self.kafka.servers,
            "--result",
            str(result),
            "--started",
            str(started),
            "--until",
            str(stop),
        ]
        given = {**_CONFS, "spark.jars": ",".join(map(str, self.jars)), **confs}
        master = f"local[{SLOTS}]"
        launcher = Launcher(self.build, given, place, self.mark, master, java_options="")
        with launcher.started(arguments, result, "paced_query.py") as process:

            def alive() -> None:
                if process.poll() is not None:
                    reason = logged_cause(log_of(result), process.returncode)
                    raise NexmarkError(f"latency: {query} {trigger}: {reason}")

            yield started, alive
            stop.touch()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_S)

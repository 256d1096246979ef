"""One paced run: topics, a query that runs, events when they are due, the latencies of its rows."""

from __future__ import annotations

import contextlib
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from nexmark.engines import Build
from nexmark.errors import NexmarkError
from nexmark.kafka.topics import KafkaCluster
from nexmark.latency.figures import LatencyFigures
from nexmark.latency.measuring import Measuring, Pace
from nexmark.recovery.launcher import Launcher, dump_events, last_words, log_of

PARTITIONS = 2
"""Of the input topic."""

SLOTS = 4
"""Real-Time Mode needs one for each input partition and one for the shuffle, all at once."""

_CONFS = {"spark.sql.shuffle.partitions": "1", "spark.driver.memory": "2g"}
_STOP_S = 90


@dataclass(frozen=True)
class PacedRuns:
    """Runs of one build against one Kafka.

    Attributes:
        build: the build.
        jars: the files with which it reads Kafka.
        kafka: the cluster.
        mark: the variable that marks its processes.
        work: an empty directory for events, results and logs.
        say: called with each line of progress.
    """

    build: Build
    jars: list[Path]
    kafka: KafkaCluster
    mark: Mapping[str, str]
    work: Path
    say: Callable[[str], None] = field(repr=False)

    def run(
        self,
        query: str,
        trigger: str,
        rate: int,
        seconds: int,
        warm_up_s: int,
        confs: Mapping[str, str] = MappingProxyType({}),
    ) -> LatencyFigures:
        """Measure `seconds` at `rate` events per second, after a warm-up at the same rate.

        `confs`: Spark confs of the query beside the usual ones.

        Raises:
            NexmarkError: The query failed, did not start or did not end.
            KafkaError: The events did not reach the topic.
        """
        recorded = self._events(rate, (seconds + warm_up_s) * rate)
        measuring = Measuring(self.kafka, self.say)
        name = f"nexmark-paced-{uuid.uuid4().hex[:10]}"
        with (
            measuring.topics(name, PARTITIONS) as topics,
            self._query(query, trigger, topics, confs) as (started, alive),
        ):
            pace = Pace(query, trigger, rate, warm_up_s, PARTITIONS)
            return measuring.measure(pace, recorded, topics, started, alive)

    def _events(self, rate: int, count: int) -> Path:
        """Generated events, `rate` of them in a second of event time."""
        target = self.work / f"events-{rate}-{count}"
        if not target.is_dir():
            given = ["--events", str(count), "--tps", str(rate)]
            dump_events(Launcher(self.build, {}, self.work, self.mark), given, target, "json")
        return target

    @contextlib.contextmanager
    def _query(
        self, query: str, trigger: str, topics: tuple[str, str], confs: Mapping[str, str]
    ) -> Iterator[tuple[Path, Callable[[], None]]]:
        """Run the query; the end of the context stops it.

        Yields:
            The file that it makes when it runs, and a check: NexmarkError if it runs no longer.
        """
        place = self.work / f"{query}-{uuid.uuid4().hex[:8]}"
        place.mkdir()
        started, stop, result = (place / name for name in ("started", "stop", "result.json"))
        arguments = [
            *("--query", query, "--trigger", trigger, "--source", topics[0], "--sink", topics[1]),
            *("--bootstrap-servers", self.kafka.servers, "--result", str(result)),
            *("--started", str(started), "--until", str(stop)),
        ]
        given = {**_CONFS, "spark.jars": ",".join(map(str, self.jars)), **confs}
        launcher = Launcher(
            *(self.build, given, place, self.mark, f"local[{SLOTS}]"), java_options=""
        )
        with launcher.started(arguments, result, "paced_query.py") as process:

            def alive() -> None:
                if process.poll() is not None:
                    reason = last_words(log_of(result))
                    raise NexmarkError(f"latency: {query} {trigger}: {reason}")

            yield started, alive
            stop.touch()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_S)

"""One paced run: topics, a query that runs, events when they are due, the latencies of its rows."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from nexmark.config import paths
from nexmark.engines import Build
from nexmark.engines.short_runs import untimed_options
from nexmark.kafka.topics import KafkaCluster
from nexmark.latency.figures import LatencyFigures
from nexmark.latency.measuring import LatencyError, Measuring, Pace

PARTITIONS = 2
"""Of the input topic."""

SLOTS = 4
"""Real-Time Mode needs one for each input partition and one for the shuffle, all at once."""

_CONFS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "2g",
    "spark.log.level": "ERROR",
}
_READY_S = 180
_DUMP_S = 600
_STOP_S = 90
_POLL_S = 0.5


@dataclass(frozen=True)
class PacedRuns:
    """Runs of one build against one Kafka.

    Attributes:
        build: the build.
        jars: the files with which it reads Kafka.
        kafka: the cluster.
        environment: of its processes.
        work: an empty directory for events, results and logs.
        say: called with each line of progress.
    """

    build: Build
    jars: list[Path]
    kafka: KafkaCluster
    environment: Mapping[str, str]
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
            LatencyError: The query failed, did not start or did not end.
            KafkaError: The events did not reach the topic.
        """
        lines = self._events(rate, (seconds + warm_up_s) * rate)
        measuring = Measuring(self.kafka, self.say)
        name = f"nexmark-paced-{uuid.uuid4().hex[:10]}"
        with (
            measuring.topics(name, PARTITIONS) as (source, sink),
            self._query(query, trigger, source, sink, confs) as alive,
        ):
            pace = Pace(query, trigger, rate, warm_up_s, PARTITIONS)
            return measuring.measure(pace, lines, source, sink, alive)

    def _events(self, rate: int, count: int) -> list[str]:
        """Generated events, `rate` of them in a second of event time."""
        target = self.work / f"events-{rate}-{count}"
        if not target.is_dir():
            script = paths.repository() / "nexmark_jobs" / "dump_events.py"
            arguments = ["--events", str(count), "--tps", str(rate), "--out", str(target)]
            quick = untimed_options(self.build.spark_home, self.build.version)
            confs = {"spark.driver.extraJavaOptions": quick}
            done = subprocess.run(
                self._submit("local[2]", [str(script), *arguments, "--format", "json"], confs),
                env=dict(self.environment),
                capture_output=True,
                text=True,
                timeout=_DUMP_S,
            )
            if done.returncode != 0:
                raise LatencyError(f"latency: no events: {done.stderr.strip()[-300:]}")
        return [x for file in sorted(target.glob("*.json")) for x in file.read_text().splitlines()]

    def _submit(self, master: str, job: list[str], confs: Mapping[str, str]) -> list[str]:
        program = str(self.build.spark_home / "bin" / "spark-submit")
        words = ["--master", master, "--jars", ",".join(map(str, self.jars))]
        for pair in {**_CONFS, **confs}.items():
            words += ["--conf", "=".join(pair)]
        return [program, *words, *job]

    @contextlib.contextmanager
    def _query(
        self, query: str, trigger: str, source: str, sink: str, confs: Mapping[str, str]
    ) -> Iterator[Callable[[], None]]:
        """Run the query; the end of the context stops it.

        Yields:
            A check that raises LatencyError if the query no longer runs.
        """
        place = self.work / f"{query}-{uuid.uuid4().hex[:8]}"
        place.mkdir()
        job = [
            str(paths.repository() / "nexmark_jobs" / "paced_query.py"),
            *("--query", query, "--trigger", trigger, "--source", source, "--sink", sink),
            *("--bootstrap-servers", self.kafka.servers),
            *("--started", str(place / "started"), "--until", str(place / "stop")),
            *("--result", str(place / "result.json")),
        ]
        log = place / "log.txt"
        with log.open("w") as output:
            process = subprocess.Popen(
                self._submit(f"local[{SLOTS}]", job, confs),
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
            while not (place / "started").exists():
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


def _reason(log: Path) -> str:
    """Why a query ended, from its log."""
    lines = [line.strip() for line in log.read_text().splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("paced_query.py: error: ")]
    return (told or lines or ["it ended without a word"])[-1].removeprefix(
        "paced_query.py: error: "
    )

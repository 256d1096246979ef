"""Repetitions of a paced workload: the query runs, and its task sends it events at a rate.

The topics of a repetition are its own, and are removed with it.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from nexmark.config import AnyCluster, EmbeddedCluster, Gate, Size, Workload
from nexmark.errors import NexmarkError
from nexmark.model import P50, P99, Arm, median_of
from nexmark.night.deployments import Deployment
from nexmark.night.kinds.kafka import NightKafka, ReadsKafka, key_of, write_events
from nexmark.night.kinds.night_kind import JobProgram, Ready
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say
from nexmark.night.run_directory import ApplicationDirectory, Json, PacedFigures, Run
from nexmark.night.submission import Repetition
from nexmark_jobs.real_time import later_confs, refusal

if TYPE_CHECKING:
    from nexmark.kafka.topics import KafkaCluster
    from nexmark.store.table_rows import RepetitionRow


def topics_of(night: Night, label: str) -> str:
    """Return the prefix of the topics of a repetition."""
    return f"{prefix_of(night)}{label.replace(' ', '-')}"


def prefix_of(night: Night) -> str:
    """Return the prefix of the topics of all repetitions of the night."""
    return f"nexmark-paced-{key_of(night)}-"


class Paced(ReadsKafka):
    """Nights whose tasks send events at a rate while the query runs, and time each."""

    is_judged_by_pairs_only = True
    has_flame_graphs = False
    runs_own_jobs = False
    runs_own_inputs = False

    def gate(self, gate: Gate) -> Gate:
        """Return the gate whose metric is a latency."""
        return gate.model_copy(update={"metric": gate.paced_metric})

    def cluster(self, workload: Workload, cluster: AnyCluster) -> AnyCluster:
        """Return the cluster with slots for each partition and for the shuffle.

        Slots of the embedded cluster are threads; Real-Time Mode needs them all at once.
        """
        if not isinstance(cluster, EmbeddedCluster):
            return cluster
        slots = max(cluster.executor_cores, (workload.partitions or 1) + 2)
        return cluster.model_copy(update={"executor_cores": slots})

    def problems(self, night: Night) -> list[str]:
        """Return what keeps the night from its topics or its repetitions from being measured."""
        return [*super().problems(night), *problems_of(night)]

    def slowed_size(self, night: Night, query: str) -> Size:
        """Return the same size: rows are later instead (`slowed_confs`)."""
        return night.workload.size_of(query)

    def slowed_confs(
        self, night: Night, query: str, rows: Callable[[], Sequence["RepetitionRow"]]
    ) -> Mapping[str, str] | None:
        """Return what makes rows later by a known part of their usual latency."""
        usual = median_of(
            (row.figures or {}).get(P50)
            for row in rows()
            if row.counts and row.arm == Arm.CANDIDATE
        )
        if not usual:
            return None
        trigger = str(night.workload.trigger)
        return later_confs(query, trigger, usual, night.gate.self_test) or None

    def timed_sizes(self, night: Night) -> list[Size]:
        """Return none: a repetition has topics of its own."""
        return []

    def write_sent_events(self, night: Night, deployment: Deployment) -> None:
        """Write the events that the repetitions are sent."""
        work, target = night.files.topic_events, night.files.paced_events
        write_events(night, deployment, night.workload, work, target)

    def program(self, night: Night, run: Run) -> JobProgram:
        """Return the query that runs until its file `stop` is there."""
        topics, directory = topics_of(night, run.label), night.files.application(run)
        servers = NightKafka.read(night).servers
        arguments = [
            "--query",
            run.query,
            "--trigger",
            str(night.workload.trigger),
            "--source",
            f"{topics}-in",
            "--sink",
            f"{topics}-out",
            "--bootstrap-servers",
            servers,
            "--started",
            str(directory.started),
            "--until",
            str(directory.stop),
            "--conf-profile",
            night.conf_profile,
            "--result",
            str(directory.job_file),
        ]
        return JobProgram(name="paced_query.py", arguments=tuple(arguments))

    def confs(self, night: Night, run: Run) -> dict[str, str]:
        """Return one slot for the shuffle, which is enough, and what slows the slowed arm."""
        later = night.slowed_confs if run.arm == Arm.SLOWED else {}
        return {"spark.sql.shuffle.partitions": "1", **later}

    def run(
        self,
        night: Night,
        submission: Repetition,
        ready: Ready,
        connect: Callable[[], "KafkaCluster"],
    ) -> None:
        """Run the application while it is sent events."""
        with sent_to(night, connect(), submission.run):
            super().run(night, submission, ready, connect)

    def figures(
        self, night: Night, directory: ApplicationDirectory, size: Size, read_rate: float
    ) -> dict[str, float]:
        """Return the latency as well; NexmarkError where it was not measured rightly."""
        figures = super().figures(night, directory, size, read_rate)
        if (pace := directory.latency()) is not None:
            if pace.invalid:
                raise NexmarkError(pace.invalid)
            figures |= {P50: pace.p50, P99: pace.p99}
        return figures

    def latency(self, directory: ApplicationDirectory) -> str | None:
        """Return the histogram of latencies."""
        pace = directory.latency()
        return pace.histogram if pace else None

    def leftovers(self, night: Night) -> tuple[Path, ...]:
        """Return the events that the repetitions were sent."""
        return (night.files.paced_events,)

    def is_of_repetition(self, night: Night, topic: str) -> bool:
        """Tell whether a topic is one of a repetition alone."""
        return topic.startswith(prefix_of(night))


def problems_of(night: Night) -> list[str]:
    """Return the reasons why the repetitions of a paced night cannot be measured."""
    workload = night.workload
    from nexmark.latency.matching import MATCHINGS

    problems = [
        f"queries: the latency of {query} cannot be measured; take {', '.join(MATCHINGS)}"
        for query in night.queries
        if query not in MATCHINGS
    ]
    if workload.trigger == "real-time" and night.candidate.pypi:
        problems += [
            f"workload {workload.name}: {query} cannot run in Real-Time Mode on Spark "
            f"{night.candidate.pypi}: {refused.why}; leave it out of queries"
            for query in night.queries
            if (refused := refusal(query, night.candidate.pypi))
        ]
    slots = night.cluster.executors * night.cluster.executor_cores
    if (needed := (workload.partitions or 1) + 1) > slots:
        problems.append(
            f"slots: workload {workload.name} needs {needed} at once, one for each partition and "
            f"one for the shuffle, and cluster {night.cluster.name} has {slots}; with too few, "
            "Spark reads some of the partitions never; raise executor_cores"
        )
    return problems


@contextlib.contextmanager
def sent_to(night: Night, kafka: "KafkaCluster", run: Run) -> Iterator[None]:
    """Send events to the repetition that the context runs; at its end, its result is written.

    NexmarkError if it was not measured.
    """
    from nexmark.latency.measuring import Measuring, Pace

    directory, query = night.files.application(run), run.query
    workload, measuring, ended = night.workload, Measuring(kafka, say), threading.Event()
    numbers = (workload.rate or 0, workload.warm_up or 0, workload.partitions or 1)
    pace = Pace(query, str(workload.trigger), *numbers)

    def alive() -> None:
        if ended.is_set():
            raise NexmarkError(f"{query} ended before all of its rows were there")

    def send(topics: tuple[str, str]) -> None:
        try:
            started, recorded = directory.started, night.files.paced_events
            paced = measuring.measure(pace, recorded, topics, started, alive)
            directory.latency_file.write_text(json.dumps(asdict(paced)))
        finally:
            directory.stop.touch()

    with (
        measuring.topics(topics_of(night, run.label), numbers[-1]) as topics,
        ThreadPoolExecutor(max_workers=1) as beside,
    ):
        sent = beside.submit(send, topics)
        try:
            yield
        finally:
            ended.set()
    if error := sent.exception():
        why = str(error) if isinstance(error, NexmarkError) else f"{type(error).__name__}: {error}"
        raise NexmarkError(f"{run.label}: {why}")
    job = json.loads(directory.job_file.read_text())
    figures = directory.latency()
    assert figures is not None
    directory.write_result(job | _of_pace(night, figures))


def _of_pace(night: Night, figures: PacedFigures) -> Json:
    """Return the sent events as batches of the length of the warm-up."""
    step, sent, begin = night.workload.rows_per_batch, figures.sent, figures.first_ms
    ms_per_event = (figures.last_ms - begin) / sent
    batches: list[JsonValue] = []
    for number, first in enumerate(range(0, sent, step)):
        rows = min(step, sent - first)
        batches.append(
            {
                "id": number,
                "phase": "data",
                "input_rows": rows,
                "duration_ms": rows * ms_per_event,
                "start": _instant(begin + first * ms_per_event),
                "end": _instant(begin + (first + rows) * ms_per_event),
            }
        )
    return {
        "start": _instant(begin),
        "end": _instant(begin + sent * ms_per_event),
        "batches": batches,
        "input_rows": sent,
        "output_rows": figures.events,
        "digest": None,
    }


def _instant(millis: float) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds")

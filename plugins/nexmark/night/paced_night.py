"""Repetitions of a paced workload: the query runs, and its task sends it events at a rate.

The topics of a repetition are its own, and are removed with it.
"""

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nexmark.errors import NexmarkError
from nexmark.night.night_progress import say
from nexmark.night.plan import Night
from nexmark.night.run_directory import Run
from nexmark_jobs.real_time import refusal

if TYPE_CHECKING:
    from nexmark.kafka.topics import KafkaCluster


def topics_of(night: Night, label: str) -> str:
    """Return the prefix of the topics of a repetition."""
    return f"{prefix_of(night)}{label.replace(' ', '-')}"


def prefix_of(night: Night) -> str:
    """Return the prefix of the topics of all repetitions of the night."""
    return f"nexmark-paced-{key_of(night)}-"


def key_of(night: Night) -> str:
    """Return what tells the topics of this night from all others on the same brokers.

    The nights of two installations have the same name where both follow the same schedule.
    """
    text = f"{night.spark_cluster.mark}\n{night.name}"
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def paced_arguments(night: Night, run: Run, servers: str) -> list[str]:
    """The arguments of `paced_query.py` for a repetition."""
    topics, directory = topics_of(night, run.label), night.files.application(run)
    return [
        *("--query", run.query, "--trigger", str(night.workload.trigger)),
        *("--source", f"{topics}-in", "--sink", f"{topics}-out", "--bootstrap-servers", servers),
        *("--started", str(directory.started), "--until", str(directory.stop)),
        *("--conf-profile", night.conf_profile, "--result", str(directory.job_file)),
    ]


def problems(night: Night) -> list[str]:
    """Return the reasons why the repetitions of a paced night cannot be measured."""
    workload = night.workload
    if not workload.is_paced:
        return []
    from nexmark.latency.matching import MATCHINGS

    found = [
        f"queries: the latency of {query} cannot be measured; take {', '.join(MATCHINGS)}"
        for query in night.queries
        if query not in MATCHINGS
    ]
    if workload.trigger == "real-time" and night.candidate.pypi:
        found += [
            f"workload {workload.name}: {query} cannot run in Real-Time Mode on Spark "
            f"{night.candidate.pypi}: {refused.why}; leave it out of queries"
            for query in night.queries
            if (refused := refusal(query, night.candidate.pypi))
        ]
    slots = night.cluster.executors * night.cluster.executor_cores
    if (needed := (workload.partitions or 1) + 1) > slots:
        found.append(
            f"slots: workload {workload.name} needs {needed} at once, one for each partition and "
            f"one for the shuffle, and cluster {night.cluster.name} has {slots}; with too few, "
            "Spark reads some of the partitions never; raise executor_cores"
        )
    return found


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
            found = measuring.measure(pace, recorded, topics, started, alive)
            directory.latency_file.write_text(json.dumps(asdict(found)))
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
        told = str(error) if isinstance(error, NexmarkError) else f"{type(error).__name__}: {error}"
        raise NexmarkError(f"{run.label}: {told}")
    job = json.loads(directory.job_file.read_text())
    directory.write_result(job | _of_pace(night, directory.latency() or {}))


def _of_pace(night: Night, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sent events as batches of the length of the warm-up."""
    step, sent, begin = night.workload.rows_per_batch, figures["sent"], figures["first_ms"]
    span = (figures["last_ms"] - begin) / sent
    batches = []
    for number, first in enumerate(range(0, sent, step)):
        rows = min(step, sent - first)
        ends = {"start": begin + first * span, "end": begin + (first + rows) * span}
        batch = {"id": number, "phase": "data", "input_rows": rows, "duration_ms": rows * span}
        batches.append(batch | {name: _instant(millis) for name, millis in ends.items()})
    return {
        **{"start": batches[0]["start"], "end": batches[-1]["end"], "batches": batches},
        **{"input_rows": sent, "output_rows": figures["events"], "digest": None},
    }


def _instant(millis: float) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds")

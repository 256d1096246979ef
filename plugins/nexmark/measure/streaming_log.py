"""What the streaming queries of an application did, from Spark's event log alone.

`StreamingLog` takes the events one by one, while the log grows or afterwards. `result` returns them
as the result file of the query job has them (schema version 1, `nexmark_jobs.result`), so that an
application without a line of ours is measured, compared and shown as any query.

An application may have several streaming queries, each with batches of its own from number 0 on.
In the result all of their batches are in the order in which they began. Each has the `run` id of
its query beside its number there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from nexmark.errors import NexmarkError
from nexmark.measure.executed_plan import printed
from nexmark.measure.log_follower import Handler
from nexmark.measure.result_file import SCHEMA_VERSION
from nexmark_jobs.given_confs import given_confs
from nexmark_jobs.plan_fingerprint import Fingerprint, from_text

_SQL = "org.apache.spark.sql.execution.ui.SparkListener"
_STREAM = "org.apache.spark.sql.streaming.StreamingQueryListener$"
_BATCH_OF = re.compile(r"\brunId = (?P<run>[0-9a-f-]{36})\nbatch = (?P<batch>\d+)")
#: How many triggers without rows show that the input of a query has been read.
IDLE_TRIGGERS = 3


class StreamingLogError(NexmarkError):
    """An application cannot be measured by its event log; the text says what to change."""


@dataclass
class Stream:
    """A streaming query: what was reported of it so far.

    Attributes:
        run: the id of its run.
        id: the id in its checkpoint, which stays where another run goes on.
        name: its name, if it has one.
        progress: Spark's report of each batch that ran, in order.
        idle: triggers without rows since the last row, or since the start.
        plans: by the number of a batch, the physical plans of its SQL executions.
    """

    run: str
    id: str
    name: str | None
    start: str
    progress: list[Mapping[str, Any]] = field(default_factory=list)
    idle: int = 0
    ended: bool = False
    error: str | None = None
    error_class: str = ""
    plans: dict[int, list[Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The input rows of all batches."""
        return sum(map(rows_of, self.progress))

    def add(self, progress: Mapping[str, Any]) -> None:
        """Add a report; a trigger without new data has one, too, and ran no batch."""
        self.idle = 0 if rows_of(progress) else self.idle + 1
        if "addBatch" in progress.get("durationMs", {}):
            self.progress.append(progress)


def rows_of(progress: Mapping[str, Any]) -> int:
    """Return how many rows the sources gave a batch."""
    return sum(source.get("numInputRows") or 0 for source in progress["sources"])


class StreamingLog:
    """Collects what an event log says of an application and its streaming queries."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.spark_version = ""
        self.application_id = ""
        self.confs: Mapping[str, str] = {}
        self.streams: dict[str, Stream] = {}
        self.ended = False
        self.handlers: Mapping[str, Handler] = {
            "SparkListenerLogStart": self._log_start,
            "SparkListenerApplicationStart": self._application_start,
            "SparkListenerApplicationEnd": self._application_end,
            "SparkListenerEnvironmentUpdate": self._environment,
            f"{_STREAM}QueryStartedEvent": self._query_started,
            f"{_STREAM}QueryProgressEvent": self._query_progress,
            f"{_STREAM}QueryIdleEvent": self._query_idle,
            f"{_STREAM}QueryTerminatedEvent": self._query_ended,
            f"{_SQL}SQLExecutionStart": self._plan,
        }

    def _log_start(self, event: Mapping[str, Any]) -> None:
        self.spark_version = event["Spark Version"]

    def _application_start(self, event: Mapping[str, Any]) -> None:
        self.application_id = event["App ID"]

    def _application_end(self, event: Mapping[str, Any]) -> None:
        self.ended = True

    def _environment(self, event: Mapping[str, Any]) -> None:
        self.confs = event["Spark Properties"]

    def _query_started(self, event: Mapping[str, Any]) -> None:
        run = event["runId"]
        self.streams[run] = Stream(run, event["id"], event.get("name"), event["timestamp"])

    def _query_progress(self, event: Mapping[str, Any]) -> None:
        self.streams[event["progress"]["runId"]].add(event["progress"])

    def _query_idle(self, event: Mapping[str, Any]) -> None:
        self.streams[event["runId"]].idle += 1

    def _query_ended(self, event: Mapping[str, Any]) -> None:
        stream = self.streams[event["runId"]]
        stream.ended, stream.error = True, event.get("exception")
        stream.error_class = event.get("errorClassOnException") or ""

    def _plan(self, event: Mapping[str, Any]) -> None:
        batch = _BATCH_OF.search(event.get("description") or "")
        if batch and (stream := self.streams.get(batch["run"])):
            stream.plans.setdefault(int(batch["batch"]), []).append(event["sparkPlanInfo"])

    @property
    def batches(self) -> int:
        """The number of batches of all streaming queries together."""
        return sum(len(stream.progress) for stream in self.streams.values())

    def has_batches(self, number: int) -> bool:
        """Tell whether every streaming query has finished this number of batches, or has ended."""
        return bool(self.streams) and all(
            stream.ended or len(stream.progress) >= number for stream in self.streams.values()
        )

    def has_read_input(self, least_rows: int = 1) -> bool:
        """Tell whether every streaming query has had rows, and then `IDLE_TRIGGERS` without any."""
        return bool(self.streams) and all(
            stream.ended or (stream.rows >= least_rows and stream.idle >= IDLE_TRIGGERS)
            for stream in self.streams.values()
        )

    def plan(self) -> Fingerprint | None:
        """Return the plans that most batches ran of all streaming queries; None without any."""
        plans = [_usual_plan(stream) for stream in self.streams.values() if stream.progress]
        known = [plan for plan in plans if plan is not None]
        return _joined(known) if known else None

    def result(
        self, query: str, conf_profile: str, key: bytes, batches: int | None = None
    ) -> dict[str, Any]:
        """Return the result as the file has it; StreamingLogError if there is nothing to measure.

        Args:
            query: the name of the job.
            conf_profile: the conf profile of the night.
            key: the key of the fingerprints of secrets.
            batches: how many batches of each streaming query count; None for all.
        """
        streams = [stream for stream in self.streams.values() if stream.progress]
        if not streams:
            raise StreamingLogError(
                f"{query}: its event log has no batch of a streaming query; it has to run one"
            )
        described = _batches(streams, batches)
        plan = self.plan() or _joined([])
        return {
            "schema_version": SCHEMA_VERSION,
            "query": query,
            "formulation": "application",
            "output_mode": "",
            "build": self.confs.get("spark.nexmark.build"),
            "spark_version": self.spark_version,
            "application_id": self.application_id,
            "confs": given_confs(self.confs, key),
            "conf_profile": conf_profile,
            "workload": {"source": "application", "events": None, "rows_per_batch": None},
            "start": min(_instant(stream.start) for stream in streams),
            "end": max(batch["end"] for batch in described),
            "input_rows": sum(batch["input_rows"] for batch in described),
            "output_rows": sum(_output_rows(stream, batches) for stream in streams),
            "digest": None,
            "digest_kind": None,
            "batches": described,
            "state": _state(streams, batches),
            "late_rows": sum(batch["late_rows"] for batch in described),
            "plan": asdict(plan),
            "streams": [{"run": stream.run, "name": stream.name} for stream in streams],
        }


def _counted(stream: Stream, batches: int | None) -> Sequence[Mapping[str, Any]]:
    return stream.progress[:batches]


def _batches(streams: Sequence[Stream], number: int | None) -> list[dict[str, Any]]:
    """Return the batches of all streaming queries, in the order in which they began.

    After its last batch with rows, the batches of a query only close windows.
    """
    from nexmark_jobs.progress import batch

    made = []
    for stream in streams:
        counted = _counted(stream, number)
        rows = list(map(rows_of, counted))
        last = max((place for place, count in enumerate(rows) if count), default=-1)
        for place, (progress, count) in enumerate(zip(counted, rows, strict=True)):
            phase = "data" if place <= last else "end_of_input"
            made.append((stream.run, batch(progress, phase, count)))
    made.sort(key=lambda each: (each[1].start, each[0], each[1].id))
    return [
        {
            "id": place,
            "run": run,
            "batch": each.id,
            "phase": each.phase,
            "start": _text(each.start),
            "end": _text(each.end),
            "input_rows": each.input_rows,
            "duration_ms": each.duration_ms,
            "steps_ms": each.steps_ms,
            "state_rows": each.state_rows,
            "state_bytes": each.state_bytes,
            "state_commit_ms": each.state_commit_ms,
            "state_restore_ms": each.state_restore_ms,
            "watermark": each.watermark,
            "late_rows": each.late_rows,
        }
        for place, (run, each) in enumerate(made)
    ]


def _state(streams: Sequence[Stream], number: int | None) -> dict[str, Any]:
    """Return the sizes of the state of all streaming queries together."""
    from nexmark_jobs.progress import StatefulOperator, batch

    largest = final = size = commit_ms = 0
    operators: list[dict[str, Any]] = []
    for stream in streams:
        every = [batch(progress, "data", 0) for progress in _counted(stream, number)]
        largest += max(each.state_rows for each in every)
        size += max(each.state_bytes for each in every)
        final += every[-1].state_rows
        commit_ms += sum(each.state_commit_ms for each in every)
        last: Sequence[StatefulOperator] = every[-1].operators
        for place, operator in enumerate(last):
            spent = sum(each.operators[place].commit_ms for each in every)
            operators.append(asdict(operator) | {"commit_ms": spent})
    return {
        "rows_max": largest,
        "rows_final": final,
        "bytes_max": size,
        "commit_ms_total": commit_ms,
        "operators": operators,
    }


def _output_rows(stream: Stream, number: int | None) -> int:
    """Return the rows that the sink took; a sink that does not count them says -1."""
    sinks = (progress.get("sink") or {} for progress in _counted(stream, number))
    return sum(max(0, sink.get("numOutputRows") or 0) for sink in sinks)


def _usual_plan(stream: Stream) -> Fingerprint | None:
    """Return the plan that most batches ran, the largest of equal ones; None if there is none.

    A batch that did not end may have begun some of its plans alone, so it does not count.
    """
    ran: dict[str, list[Fingerprint]] = {}
    for progress in stream.progress:
        for plan in stream.plans.get(progress["batchId"], ()):
            fingerprint = from_text(printed(plan))
            ran.setdefault(fingerprint.skeleton_hash, []).append(fingerprint)
    most = max(ran.values(), key=lambda same: (len(same), len(same[0].skeleton)), default=None)
    return most[0] if most else None


def _joined(plans: Sequence[Fingerprint]) -> Fingerprint:
    """Return the plans of several streaming queries as one."""
    if len(plans) == 1:
        return plans[0]
    skeleton = "\n".join(plan.skeleton for plan in plans)
    return Fingerprint(
        text="\n".join(plan.text for plan in plans),
        skeleton=skeleton,
        skeleton_hash=hashlib.sha256(skeleton.encode()).hexdigest()[:16],
        exchanges=sum(plan.exchanges for plan in plans),
        stateful_operators=sum(plan.stateful_operators for plan in plans),
    )


def _instant(text: str) -> str:
    return _text(datetime.fromisoformat(text))


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

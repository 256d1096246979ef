"""Spark's event log of one application: the work of each operator and stage of the query.

A log, one file or rolling ones, plain or zstd, is read line by line. Operators come from the
physical plan of the batches that count, without the wrappers of code generation, with Spark's own
SQL metrics, summed over the tasks. If batches ran different plans (a source had nothing new, say),
the one that used most CPU time is taken; the others are mapped onto it by the names of the
operators (``nexmark_jobs.plan_fingerprint``).
"""

import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from nexmark.errors import NexmarkError
from nexmark.measure.executed_plan import Part, PlanNode, SqlMetric, folded, nodes_of

_NS, _MS = 1e9, 1e3
_SQL = "org.apache.spark.sql.execution.ui.SparkListener"
_BATCH = re.compile(r"\bbatch = (\d+)")
_CODEGEN_SCOPE = re.compile(r'"WholeStageCodegen \((\d+)\)"')
_PREFIX = b'{"Event":"'
_PART = re.compile(r"events_(\d+)_")
_OTHER_CODECS = (".lz4", ".lzf", ".snappy")


@dataclass
class StageTotals:
    """The tasks of one stage of the plan, summed over batches; seconds of task threads.

    ``deserialise_cpu_s`` is the CPU time of unpacking tasks, before they run; ``gc_s`` counts the
    time its JVM collected garbage once for every task; ``fetch_wait_s``: waiting for shuffle data.
    """

    tasks: int = 0
    cpu_s: float = 0.0
    deserialise_cpu_s: float = 0.0
    run_s: float = 0.0
    gc_s: float = 0.0
    fetch_wait_s: float = 0.0

    def add(self, metrics: Mapping[str, Any]) -> None:
        """Count a task, by the task metrics that Spark logs at its end."""
        self.tasks += 1
        self.cpu_s += metrics.get("Executor CPU Time", 0) / _NS
        self.deserialise_cpu_s += metrics.get("Executor Deserialize CPU Time", 0) / _NS
        self.run_s += metrics.get("Executor Run Time", 0) / _MS
        self.gc_s += metrics.get("JVM GC Time", 0) / _MS
        self.fetch_wait_s += metrics.get("Shuffle Read Metrics", {}).get("Fetch Wait Time", 0) / _MS

    def merge(self, more: "StageTotals") -> None:
        """Count the tasks of the same stage in another batch."""
        for name, value in vars(more).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass(frozen=True)
class EventLog:
    """The content of a log for the batches that count.

    ``stages`` are by the number that ``Operator.stage`` has; None is where tasks could not be laid
    on the plan.
    """

    operators: tuple[Part, ...]
    stages: Mapping[int | None, StageTotals]


@dataclass
class _Stage:
    """A stage as Spark ran it, of one batch; ``updates`` are its SQL metrics by accumulator."""

    batch: int
    execution: int
    scopes: frozenset[int]
    totals: StageTotals = field(default_factory=StageTotals)
    updates: Counter[int] = field(default_factory=Counter)


def read_event_log(
    directory: Path, batches: Collection[int], application_id: str | None = None
) -> EventLog:
    """Return the content of a log for the batches with these numbers.

    ``directory`` is the value of ``spark.eventLog.dir``. EventLogError, in one line, when there is
    no log, when it is cut off or broken, or when one of the batches is not in it.
    """
    reading = _Reading(frozenset(batches))
    read_events(directory, application_id, reading.handlers)
    return reading.done(directory)


class _Reading:
    def __init__(self, batches: frozenset[int]) -> None:
        self._batches = batches
        self._ended = False
        self._seen: set[int] = set()
        self._plans: dict[int, list[PlanNode]] = {}
        self._stages: dict[int, _Stage] = {}
        self._driver: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self.handlers = {
            b"SparkListenerApplicationEnd": self._application_end,
            b"SparkListenerJobStart": self._job,
            b"SparkListenerTaskEnd": self._task,
            f"{_SQL}SQLExecutionStart".encode(): self._plan,
            f"{_SQL}SQLAdaptiveExecutionUpdate".encode(): self._plan,
            f"{_SQL}DriverAccumUpdates".encode(): self._driver_updates,
        }

    def _application_end(self, event: Mapping[str, Any]) -> None:
        self._ended = True

    def _plan(self, event: Mapping[str, Any]) -> None:
        self._plans[event["executionId"]] = nodes_of(event["sparkPlanInfo"])
        if batch := _BATCH.search(event.get("description") or ""):
            self._seen.add(int(batch[1]))

    def _job(self, event: Mapping[str, Any]) -> None:
        properties = event.get("Properties") or {}
        batch, execution = map(properties.get, ("streaming.sql.batchId", "spark.sql.execution.id"))
        if batch is None or execution is None or int(batch) not in self._batches:
            return
        for stage in event["Stage Infos"]:
            scopes = (rdd.get("Scope", "") for rdd in stage.get("RDD Info", ()))
            found = frozenset(int(x) for text in scopes for x in _CODEGEN_SCOPE.findall(text))
            self._stages.setdefault(stage["Stage ID"], _Stage(int(batch), int(execution), found))

    def _task(self, event: Mapping[str, Any]) -> None:
        stage = self._stages.get(event["Stage ID"])
        if stage is None:
            return
        stage.totals.add(event.get("Task Metrics") or {})
        for update in event["Task Info"].get("Accumulables", ()):
            if update.get("Metadata") == "sql" and "Update" in update:
                stage.updates[update["ID"]] += int(update["Update"])

    def _driver_updates(self, event: Mapping[str, Any]) -> None:
        for key, value in event["accumUpdates"]:
            self._driver[event["executionId"]][key] += value

    def done(self, source: Path) -> EventLog:
        """Return the result of all events."""
        if not self._ended:
            raise EventLogError(
                f"{source}: the event log ends before the application did; it was cut off, or the"
                " driver was killed"
            )
        ran = [stage for stage in self._stages.values() if stage.totals.tasks]
        without = sorted({stage.execution for stage in ran} - self._plans.keys())
        if without:
            raise EventLogError(f"{source}: no plan of execution {without[0]} in the event log")
        missing = sorted(self._batches - self._seen)
        if missing or not ran:
            which = f"batch {', '.join(map(str, missing))}" if missing else "tasks"
            raise EventLogError(f"{source}: no {which} in the event log")
        return self._sums(ran, self._usual_plan(ran))

    def _usual_plan(self, ran: list[_Stage]) -> list[PlanNode]:
        """Return the last plan with the operators that used most CPU time."""
        used: defaultdict[tuple[str, ...], float] = defaultdict(float)
        latest: dict[tuple[str, ...], list[PlanNode]] = {}
        for stage in sorted(ran, key=lambda stage: stage.batch):
            plan = self._plans[stage.execution]
            names = tuple(node.name for node in plan)
            used[names] += stage.totals.cpu_s
            latest[names] = plan
        return latest[max(used, key=lambda names: used[names])]

    def _sums(self, ran: list[_Stage], reference: list[PlanNode]) -> EventLog:
        stages: defaultdict[int | None, StageTotals] = defaultdict(StageTotals)
        sums: list[defaultdict[SqlMetric, Counter[int]]] = [defaultdict(Counter) for _ in reference]
        executions = {(stage.execution, stage.batch) for stage in ran}
        places = {x: folded(self._plans[x], reference) for x, _ in executions}
        updates = [(x, batch, self._driver[x]) for x, batch in executions]
        for stage in ran:
            plan, place = self._plans[stage.execution], places[stage.execution]
            stages[_number(stage, plan, place, reference)].merge(stage.totals)
            updates.append((stage.execution, stage.batch, stage.updates))
        for execution, batch, own in updates:
            for at, metric, value in _metrics(self._plans[execution], places[execution], own):
                sums[at][metric][batch] += value
        found = tuple(
            node.operator({m: m.over_batches(list(x.values())) for m, x in own.items()})
            for node, own in zip(reference, sums, strict=True)
        )
        return EventLog(found, stages)


def _metrics(
    plan: list[PlanNode], places: list[int | None], updates: Mapping[int, int]
) -> Iterator[tuple[int, SqlMetric, int]]:
    """Return the updates by place in the reference plan."""
    for node, place in zip(plan, places, strict=True):
        if place is not None:
            for key, metric in node.metrics.items():
                if key in updates:
                    yield place, metric, updates[key]


def _number(
    stage: _Stage, plan: list[PlanNode], places: list[int | None], reference: list[PlanNode]
) -> int | None:
    """Return the stage of the reference plan that has most metrics of a stage."""
    votes: Counter[int] = Counter()
    for node, place in zip(plan, places, strict=True):
        if place is None:
            continue
        own = sum(key in stage.updates for key in node.metrics) * (not node.is_exchange)
        own += 10 * (node.codegen in stage.scopes)
        if own:
            votes[reference[place].stage] += own
    return max(votes, key=lambda number: (votes[number], number)) if votes else None


class EventLogError(NexmarkError):
    """An event log cannot be read, or lacks what the caller asked for."""


def read_events(
    directory: Path,
    application_id: str | None,
    handlers: Mapping[bytes, Callable[[Mapping[str, Any]], None]],
) -> None:
    """Hand the events of the one application whose log is in a directory to their handlers.

    ``application_id`` chooses one if there are several; ``handlers`` are by the name of the event.
    EventLogError, in one line, when there is no log, or when it is cut off or broken.
    """
    for line in chain.from_iterable(map(_lines, _files(directory, application_id))):
        if not line.startswith(_PREFIX):
            raise EventLogError(f"{directory}: a line of the event log is no event: {line[:40]!r}")
        handler = handlers.get(line[len(_PREFIX) : line.find(b'"', len(_PREFIX))])
        if handler is None:
            continue
        try:
            event = json.loads(line)
        except ValueError:
            raise EventLogError(f"{directory}: the event log is cut off in mid-line") from None
        try:
            handler(event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EventLogError(
                f"{directory}: an event is not as Spark 3.5 to 4.3 writes it: {error!r}"
            ) from None


def _files(directory: Path, application_id: str | None) -> list[Path]:
    try:
        found = [x for x in sorted(directory.iterdir()) if not x.name.startswith(".")]
    except OSError as error:
        raise EventLogError(f"{directory}: no event log: {error.strerror or error}") from None
    if application_id is not None:
        names = [x.name.removeprefix("eventlog_v2_").partition(".")[0] for x in found]
        found = [x for x, name in zip(found, names, strict=True) if name == application_id]
    if len(found) != 1:
        whose = f" of {application_id}" if application_id else ""
        raise EventLogError(f"{directory}: {len(found)} event logs{whose}, one expected")
    (log,) = found
    if not log.is_dir():
        return [log]
    parts = {int(x[1]): path for path in log.iterdir() if (x := _PART.match(path.name))}
    if sorted(parts) != list(range(1, len(parts) + 1)) or not parts:
        raise EventLogError(f"{log}: files of the event log are missing; found {sorted(parts)}")
    return [parts[number] for number in sorted(parts)]


def _lines(path: Path) -> Iterator[bytes]:
    import zstandard

    name = path.name.removesuffix(".inprogress")
    if name.endswith(_OTHER_CODECS):
        raise EventLogError(
            f"{path}: only plain and zstd event logs are read; set"
            " spark.eventLog.compression.codec=zstd"
        )
    try:
        with path.open("rb") as stream:
            if not name.endswith(".zstd"):
                yield from stream
                return
            reader = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
            yield from io.BufferedReader(reader)
    except zstandard.ZstdError as error:
        raise EventLogError(f"{path}: is no whole zstd file: {error}") from None
    except OSError as error:
        raise EventLogError(f"{path}: cannot be read: {error.strerror or error}") from None

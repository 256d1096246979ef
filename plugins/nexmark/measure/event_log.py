"""Spark's event log of one application: the work of each operator and stage of the query.

A log is one file or several rolling ones, plain or zstd, and is read line by line. The operators
come from the physical plan of the batches that count, without the wrappers of code generation. They
have Spark's own SQL metrics, summed over the tasks. If batches ran different plans (because a
source had no new rows, for example), the plan that used most CPU time is the reference. The
operators of the other plans are mapped to it by their names (``nexmark_jobs.plan_fingerprint``).

An application of a person may run several streaming queries at a time. Each has a plan of its own,
and its batches are named by its run id and their number there.
"""

import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from nexmark.errors import NexmarkError
from nexmark.measure.executed_plan import Part, PlanNode, SqlMetric, nodes_of, places_in_reference
from nexmark.model import grouped

_NS, _MS = 1e9, 1e3
_SQL = "org.apache.spark.sql.execution.ui.SparkListener"
_BATCH = re.compile(r"\bbatch = (\d+)")
_RUN = re.compile(r"\brunId = (\S+)")
_CODEGEN_SCOPE = re.compile(r'"WholeStageCodegen \((\d+)\)"')
_PREFIX = b'{"Event":"'
_PART = re.compile(r"events_(\d+)_")
_OTHER_CODECS = (".lz4", ".lzf", ".snappy")
#: The run id of a streaming query and the number of a batch; '' for the run id of any query.
BatchKey: TypeAlias = tuple[str, int]


@dataclass
class StageTotals:
    """The tasks of one stage of the plan, summed over batches, in seconds of task threads.

    ``cpu_s`` and ``run_s`` are the CPU time and the time of running tasks; ``deserialise_cpu_s`` is
    the CPU time of unpacking them before. ``gc_s`` is the time in which the JVM collected garbage,
    counted for every task that ran then. ``fetch_wait_s``: the time of waiting for shuffle data.
    """

    tasks: int = 0
    cpu_s: float = 0.0
    deserialise_cpu_s: float = 0.0
    run_s: float = 0.0
    gc_s: float = 0.0
    fetch_wait_s: float = 0.0

    def add(self, metrics: Mapping[str, Any]) -> None:
        """Add a task, with the task metrics that Spark logs at its end."""
        self.tasks += 1
        self.cpu_s += metrics.get("Executor CPU Time", 0) / _NS
        self.deserialise_cpu_s += metrics.get("Executor Deserialize CPU Time", 0) / _NS
        self.run_s += metrics.get("Executor Run Time", 0) / _MS
        self.gc_s += metrics.get("JVM GC Time", 0) / _MS
        self.fetch_wait_s += metrics.get("Shuffle Read Metrics", {}).get("Fetch Wait Time", 0) / _MS

    def merge(self, more: "StageTotals") -> None:
        """Add the tasks of the same stage in another batch."""
        self.tasks += more.tasks
        self.cpu_s += more.cpu_s
        self.deserialise_cpu_s += more.deserialise_cpu_s
        self.run_s += more.run_s
        self.gc_s += more.gc_s
        self.fetch_wait_s += more.fetch_wait_s


@dataclass(frozen=True)
class EventLog:
    """The content of a log for the batches that count.

    ``stages`` is by the number of the stage (``Part.stage``); None has the tasks for which no stage
    of the plan was found.
    """

    operators: tuple[Part, ...]
    stages: Mapping[int | None, StageTotals]


@dataclass
class _Stage:
    """A stage as Spark ran it in one batch.

    ``execution`` is the id of its SQL execution. ``scopes`` are the numbers of its units of
    generated code. ``updates`` are its SQL metrics, by the id of their accumulator.
    """

    batch: BatchKey
    execution: int
    scopes: frozenset[int]
    totals: StageTotals = field(default_factory=StageTotals)
    updates: Counter[int] = field(default_factory=Counter)


def read_event_log(
    directory: Path, batches: Collection[int | BatchKey], application_id: str | None = None
) -> EventLog:
    """Return the content of a log for these batches, named by number where one query ran.

    ``directory`` is the value of ``spark.eventLog.dir``; ``application_id`` selects a log if there
    are several. EventLogError, in one line, if there is no log, if it is cut off or damaged, or if
    one of the batches is not in it.
    """
    keys = (("", batch) if isinstance(batch, int) else batch for batch in batches)
    reading = _Reading(frozenset(keys))
    read_events(directory, application_id, reading.handlers)
    return reading.done(directory)


class _Reading:
    """What one pass over the events of a log has collected for the batches that count."""

    def __init__(self, batches: frozenset[BatchKey]) -> None:
        self._batches = batches
        self._ended = False
        self._seen: set[BatchKey] = set()
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
        text = event.get("description") or ""
        if batch := _BATCH.search(text):
            run = _RUN.search(text)
            self._seen |= {("", int(batch[1])), (run[1] if run else "", int(batch[1]))}

    def _job(self, event: Mapping[str, Any]) -> None:
        properties = event.get("Properties") or {}
        batch, execution = map(properties.get, ("streaming.sql.batchId", "spark.sql.execution.id"))
        if batch is None or execution is None:
            return
        names = {("", int(batch)), (properties.get("spark.jobGroup.id") or "", int(batch))}
        key = next(iter(names & self._batches), None)
        if key is None:
            return
        for stage in event["Stage Infos"]:
            scopes = (rdd.get("Scope", "") for rdd in stage.get("RDD Info", ()))
            units = frozenset(
                int(number) for text in scopes for number in _CODEGEN_SCOPE.findall(text)
            )
            self._stages.setdefault(stage["Stage ID"], _Stage(key, int(execution), units))

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
        """Return the content of the log after its last event; ``source`` names it in errors."""
        if not self._ended:
            raise EventLogError(
                f"{source}: the event log ends before the application did; it was cut off, or the"
                " driver was killed"
            )
        ran = [stage for stage in self._stages.values() if stage.totals.tasks]
        unplanned = sorted({stage.execution for stage in ran} - self._plans.keys())
        if unplanned:
            raise EventLogError(f"{source}: no plan of execution {unplanned[0]} in the event log")
        missing = sorted(self._batches - self._seen)
        if missing or not ran:
            numbers = ", ".join(str(number) for _, number in missing)
            which = f"batch {numbers}" if missing else "tasks"
            raise EventLogError(f"{source}: no {which} in the event log")
        by_run = grouped(ran, lambda stage: stage.batch[0])
        return _joined([self._sums(stages, self._usual_plan(stages)) for stages in by_run.values()])

    def _usual_plan(self, ran: list[_Stage]) -> list[PlanNode]:
        """Return the plan whose operators used most CPU time; of equal ones, the last."""
        used: defaultdict[tuple[str, ...], float] = defaultdict(float)
        latest: dict[tuple[str, ...], list[PlanNode]] = {}
        for stage in sorted(ran, key=lambda stage: stage.batch):
            plan = self._plans[stage.execution]
            names = tuple(node.name for node in plan)
            used[names] += stage.totals.cpu_s
            latest[names] = plan
        return latest[max(used, key=lambda names: used[names])]

    def _sums(self, ran: list[_Stage], reference: list[PlanNode]) -> EventLog:
        """Return the sums over the stages that ran, by operator and stage of the reference plan."""
        stages: defaultdict[int | None, StageTotals] = defaultdict(StageTotals)
        sums: list[defaultdict[SqlMetric, Counter[BatchKey]]] = [
            defaultdict(Counter) for _ in reference
        ]
        executions = {(stage.execution, stage.batch) for stage in ran}
        places = {
            execution: places_in_reference(self._plans[execution], reference)
            for execution, _ in executions
        }
        updates = [(execution, batch, self._driver[execution]) for execution, batch in executions]
        for stage in ran:
            plan, its_places = self._plans[stage.execution], places[stage.execution]
            stages[_number(stage, plan, its_places, reference)].merge(stage.totals)
            updates.append((stage.execution, stage.batch, stage.updates))
        for execution, batch, values in updates:
            for place, metric, value in _metrics(self._plans[execution], places[execution], values):
                sums[place][metric][batch] += value
        operators = tuple(
            node.operator(
                {
                    metric: metric.over_batches(list(by_batch.values()))
                    for metric, by_batch in metrics.items()
                }
            )
            for node, metrics in zip(reference, sums, strict=True)
        )
        return EventLog(operators, stages)


def _joined(logs: list[EventLog]) -> EventLog:
    """Return the operators and stages of several streaming queries as if they were one."""
    operators: list[Part] = []
    stages: defaultdict[int | None, StageTotals] = defaultdict(StageTotals)
    for log in logs:
        place, last = len(operators), max((number or 0 for number in stages), default=0)
        for operator in log.operators:
            operators.append(
                replace(
                    operator,
                    place=operator.place + place,
                    parent=None if operator.parent is None else operator.parent + place,
                    stage=None if operator.stage is None else operator.stage + last,
                )
            )
        for number, totals in log.stages.items():
            stages[None if number is None else number + last].merge(totals)
    return EventLog(tuple(operators), stages)


def _metrics(
    plan: list[PlanNode], places: list[int | None], updates: Mapping[int, int]
) -> Iterator[tuple[int, SqlMetric, int]]:
    """Return (place, metric, value) of all updates of a plan's metrics.

    ``places`` has the place of each operator in the reference plan; ``updates`` are by the id of
    the accumulator.
    """
    for node, place in zip(plan, places, strict=True):
        if place is not None:
            for key, metric in node.metrics.items():
                if key in updates:
                    yield place, metric, updates[key]


def _number(
    stage: _Stage, plan: list[PlanNode], places: list[int | None], reference: list[PlanNode]
) -> int | None:
    """Return the stage of the reference plan that a stage of a batch belongs to; None if unknown.

    That is the one whose operators share most metrics and units of generated code with it.

    Args:
        stage: The stage as it ran.
        plan: The plan of its batch.
        places: The place of each operator of that plan in the reference plan.
        reference: The reference plan.
    """
    votes: Counter[int] = Counter()
    for node, place in zip(plan, places, strict=True):
        if place is None:
            continue
        shared = sum(key in stage.updates for key in node.metrics) * (not node.is_exchange)
        shared += 10 * (node.codegen in stage.scopes)
        if shared:
            votes[reference[place].stage] += shared
    return max(votes, key=lambda number: (votes[number], number)) if votes else None


class EventLogError(NexmarkError):
    """An event log cannot be read, or lacks what the caller asked for."""


def read_events(
    directory: Path,
    application_id: str | None,
    handlers: Mapping[bytes, Callable[[Mapping[str, Any]], None]],
) -> None:
    """Call a handler with each event of the application whose log is in a directory.

    ``application_id`` selects a log if there are several; ``handlers`` are by the name of the
    event. EventLogError, in one line, if there is no log, or if it is cut off or damaged.
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


def _application_of(log: Path) -> str:
    """Return the id of the application that a log is named after."""
    return log.name.removeprefix("eventlog_v2_").partition(".")[0]


def _files(directory: Path, application_id: str | None) -> list[Path]:
    """Return the files of the one log in a directory, in order."""
    try:
        logs = [path for path in sorted(directory.iterdir()) if not path.name.startswith(".")]
    except OSError as error:
        raise EventLogError(f"{directory}: no event log: {error.strerror or error}") from None
    if application_id is not None:
        logs = [path for path in logs if _application_of(path) == application_id]
    if len(logs) != 1:
        whose = f" of {application_id}" if application_id else ""
        raise EventLogError(f"{directory}: {len(logs)} event logs{whose}, one expected")
    (log,) = logs
    if not log.is_dir():
        return [log]
    parts = _parts(log)
    if sorted(parts) != list(range(1, len(parts) + 1)) or not parts:
        raise EventLogError(f"{log}: files of the event log are missing; found {sorted(parts)}")
    return list(_in_order(parts))


def _parts(log: Path) -> dict[int, Path]:
    """Return the files of a rolling log by their numbers."""
    return {int(part[1]): path for path in log.iterdir() if (part := _PART.match(path.name))}


def growing_files(directory: Path) -> list[Path]:
    """Return the files, in order, that the one log in a directory has so far; [] before it begins.

    EventLogError if there are two logs: an application has one Spark context.
    """
    logs = [path for path in sorted(directory.iterdir()) if not path.name.startswith(".")]
    if len(logs) > 1:
        raise EventLogError(f"{directory}: {len(logs)} event logs, one expected")
    files = [[log] if not log.is_dir() else list(_in_order(_parts(log))) for log in logs]
    return files[0] if files else []


def _in_order(parts: Mapping[int, Path]) -> Iterator[Path]:
    return (parts[number] for number in sorted(parts))


def _lines(path: Path) -> Iterator[bytes]:
    import zstandard

    name = path.name.removesuffix(".inprogress")
    if name.endswith(_OTHER_CODECS):
        raise EventLogError(
            f"{path}: only plain and zstd event logs can be read; set"
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

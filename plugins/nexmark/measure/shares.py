"""Whether every executor of a repetition did its share, and no host stalled meanwhile.

An executor that does nothing makes a query look cheaper, and nothing else shows it: the result is
right, and its CPU is simply not in the sum. So the event log and the samples are asked.

Shares are counted in the stages that have at least one task per slot: Spark then gives every free
slot a task, whatever the data. In 11 ordinary repetitions of q0, q3, q5, q7, q8 with 2 and 3
executors, on 2 cores with three times more to do, the least share was 0.73 of the others', no gap
was above 0.9 s, and no executor that had a task was quiet for 0.9 s: far from the bounds.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from nexmark.measure.cpu import ALWAYS, Period, executors_of, tree_cpu
from nexmark.measure.event_log import read_events
from nexmark.measure.samples import HostSamples

#: An idle JVM uses less than 1 % of a core, a busy one tens of per cent.
QUIET_CORES = 0.02
#: An executor that ran less than this part of the others' tasks (median) has not done its share.
MIN_SHARE = 1 / 3
#: Where the others have run fewer tasks than this, shares say nothing.
MIN_TASKS = 4
#: A host has stalled when nothing came from it for these seconds, and these sampling intervals.
STALL_S, STALL_INTERVALS = 3.0, 5
_MS, _NS = 1e3, 1e9


@dataclass(frozen=True)
class ProcessCpu:
    """CPU-seconds of an executor with its Python workers; ``resolution_s``: the kernel's unit."""

    times: tuple[float, ...]
    cpu_s: tuple[float, ...]
    resolution_s: float

    def quiet(self, start: float, end: float) -> list[tuple[float, float]]:
        """Return the longest spans in which no reading had more than QUIET_CORES."""
        spans: list[tuple[float, float]] = []
        readings = zip(self.times, self.cpu_s, strict=True)
        for (before, used), (now, total) in pairwise(readings):
            least = max(QUIET_CORES * (now - before), 1.01 * self.resolution_s)
            if before < start or now > end or total - used > least:
                continue
            if spans and spans[-1][1] == before:
                spans[-1] = (spans[-1][0], now)
            else:
                spans.append((before, now))
        return spans


@dataclass(frozen=True)
class HostExecutors:
    """The executors of one application on one host, and the times of the readings."""

    host: str
    interval_s: float
    times: tuple[float, ...]
    executors: tuple[ProcessCpu, ...]

    def without_executors(self) -> "HostExecutors":
        """Return a copy without executors, if the samplers of other hosts count them."""
        return replace(self, executors=())


def host_executors(samples: HostSamples, app_id: str, period: Period = ALWAYS) -> HostExecutors:
    """Return the executors of an application that lived in a period; as ``HostSamples.times``."""
    times = samples.times()
    found = []
    for tree in executors_of(samples, tree_cpu(samples), app_id, period).trees:
        seen = slice(tree.first, tree.last + 1)
        ticks = [a + b for a, b in zip(tree.main[seen], tree.python[seen], strict=True)]
        used = tuple(x / samples.clk_tck for x in ticks)
        found.append(ProcessCpu(times[seen], used, 1 / samples.clk_tck))
    return HostExecutors(samples.host, samples.interval_s, times, tuple(found))


@dataclass(frozen=True)
class TaskSpan:
    """A task of a stage (id, attempt), by the driver's clock (epoch seconds)."""

    stage: tuple[int, int]
    start: float
    end: float
    cpu_s: float


@dataclass
class ExecutorWork:
    """One executor that registered: its ``host`` is the address that Spark knows."""

    executor: str
    host: str
    tasks: list[TaskSpan] = field(default_factory=list)
    added: float = -math.inf
    removed: float = math.inf


def read_executor_work(
    directory: Path, application_id: str | None = None, period: Period = ALWAYS
) -> list[ExecutorWork]:
    """Return the executors of a log that were registered in a period, in that order.

    EventLogError for a damaged log.
    """
    found: dict[str, ExecutorWork] = {}

    def added(event: Mapping[str, Any]) -> None:
        name, when = str(event["Executor ID"]), event["Timestamp"] / _MS
        found[name] = ExecutorWork(name, event["Executor Info"]["Host"], added=when)

    def removed(event: Mapping[str, Any]) -> None:
        if (executor := found.get(str(event["Executor ID"]))) is not None:
            executor.removed = event["Timestamp"] / _MS

    def ended(event: Mapping[str, Any]) -> None:
        info, metrics = event["Task Info"], event.get("Task Metrics") or {}
        if (executor := found.get(str(info["Executor ID"]))) is not None:
            stage = (event["Stage ID"], event["Stage Attempt ID"])
            start, end = info["Launch Time"] / _MS, info["Finish Time"] / _MS
            cpu_s = metrics.get("Executor CPU Time", 0) / _NS
            executor.tasks.append(TaskSpan(stage, start, end, cpu_s))

    handlers = {
        b"SparkListenerExecutorAdded": added,
        b"SparkListenerExecutorRemoved": removed,
        b"SparkListenerTaskEnd": ended,
    }
    read_events(directory, application_id, handlers)
    return [x for x in found.values() if x.added < period[1] and x.removed > period[0]]


class _Done(NamedTuple):
    """The work of one executor: tasks of wide stages, CPU-seconds of all its tasks."""

    host: str
    tasks: int
    cpu_s: float


def uneven(
    work: Sequence[ExecutorWork],
    hosts: Sequence[HostExecutors],
    *,
    executors: int,
    cores: int,
    period: Period,
    names: Mapping[str, str],
) -> list[str]:
    """Return the executors that did not do their share of the tasks launched in a period.

    ``executors`` is the number asked for, each with ``cores`` cores. ``names`` gives the host of an
    address that Spark knows. One that was started and never registered has run nothing. If more
    registered, one was lost and another took its place: then there are no shares.
    """
    if len(work) > executors:
        return []
    tasks = _wide_tasks(work, executors * cores, period)
    done = [
        _Done(names.get(x.host, x.host), tasks[x.executor], sum(t.cpu_s for t in x.tasks))
        for x in work
    ]
    registered = Counter(x.host for x in done)
    silent = [x.host for x in hosts for _ in range(len(x.executors) - registered[x.host])]
    done += [_Done(host, 0, 0.0) for host in silent[: executors - len(done)]]
    all_tasks, all_cpu_s = sum(x.tasks for x in done), sum(x.cpu_s for x in done)
    found = []
    for at, own in enumerate(done):
        others = [x.tasks for i, x in enumerate(done) if i != at]
        usual = median(others) if others else 0
        if usual >= MIN_TASKS and own.tasks < MIN_SHARE * usual:
            found.append(
                f"an executor on host {own.host} ran {own.tasks} of {all_tasks} tasks"
                f" ({own.tasks / all_tasks:.0%}, {1 / len(done):.0%} is its share;"
                f" {own.cpu_s:.1f} of {all_cpu_s:.1f} CPU-s)"
            )
    return found


def stalled(
    work: Sequence[ExecutorWork],
    hosts: Sequence[HostExecutors],
    *,
    period: Period,
    names: Mapping[str, str],
) -> list[str]:
    """Return the hosts that stood still for a part of a period, and the time."""
    found = []
    for host in hosts:
        limit = max(STALL_S, STALL_INTERVALS * host.interval_s)
        # A sampler that has ended is no stall.
        gaps = [b - a for a, b in pairwise(host.times) if b >= period[0] and a <= period[1]]
        if gaps and max(gaps) > limit:
            found.append(f"host {host.host} gave no sample for {max(gaps):.1f} s of the run")
            continue
        own = [x for x in work if names.get(x.host, x.host) == host.host]
        idle = [b - a for a, b in _idle(host, own, period, limit)]
        if idle:
            found.append(
                f"an executor on host {host.host} used no CPU for {max(idle):.1f} s"
                " while it had a task"
            )
    return found


def _wide_tasks(work: Sequence[ExecutorWork], slots: int, period: Period) -> Counter[str]:
    """Return the number of tasks of each executor in stages with at least a task per slot."""
    ran = [(x, task) for x in work for task in x.tasks if period[0] <= task.start <= period[1]]
    sizes = Counter(task.stage for _, task in ran)
    return Counter(x.executor for x, task in ran if sizes[task.stage] >= slots)


def _idle(
    host: HostExecutors, work: Sequence[ExecutorWork], period: Period, limit: float
) -> list[Period]:
    """Return when an executor of a host used no CPU although it had a task.

    The samples do not say which process is which executor: more processes have to be quiet than
    executors are without a task.
    """
    quiet = [x for each in host.executors for x in each.quiet(*period)]
    found = []
    for task in (task for x in work for task in x.tasks if task.end - task.start >= limit):
        for a, b in quiet:
            start, end = max(a, task.start), min(b, task.end)
            if end - start < limit:
                continue
            silent = sum(c <= start and end <= d for c, d in quiet)
            busy = sum(any(t.start <= start and end <= t.end for t in x.tasks) for x in work)
            if silent > len(host.executors) - busy:
                found.append((start, end))
    return found

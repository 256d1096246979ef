"""Check that every executor of a repetition did its share, and that no host stalled meanwhile.

An executor that does nothing makes a query look cheaper, and no other figure shows it: the result
is right, and the CPU of that executor is missing in the sum. The event log and the samples show it.

Shares are counted in the stages that have at least one task per slot, because Spark then gives
every free slot a task, whatever the data. Eleven ordinary repetitions of q0, q3, q5, q7 and q8 were
measured with 2 and 3 executors on a machine of 2 cores that was loaded three times over. The least
share was 0.73 of the others' share, no gap between samples was above 0.9 s, and no executor that
had a task was quiet for 0.9 s. The bounds below are far from these figures.
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
from nexmark.measure.host_samples import HostSamples

#: An idle JVM uses less than 1 % of a core, a busy one tens of per cent.
QUIET_CORES = 0.02
#: An executor that ran less than this part of the others' tasks (median) has not done its share.
MIN_SHARE = 1 / 3
#: Where the others have run fewer tasks than this, shares say nothing.
MIN_TASKS = 4
#: A host has stalled if there is no sample of it for these seconds and for these intervals.
STALL_S, STALL_INTERVALS = 3.0, 5
_MS, _NS = 1e3, 1e9


@dataclass(frozen=True)
class ProcessCpu:
    """CPU-seconds of an executor with its Python workers at ``times``.

    ``resolution_s`` is the unit in which the kernel counts CPU time, in seconds.
    """

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
    """Return the executors of an application on a host that lived in a period.

    The period is on the clock of ``HostSamples.times``.
    """
    times = samples.times()
    executors = []
    for tree in executors_of(samples, tree_cpu(samples), app_id, period).trees:
        seen = slice(tree.first, tree.last + 1)
        ticks = zip(tree.main[seen], tree.python[seen], strict=True)
        used = tuple((main + python) / samples.clk_tck for main, python in ticks)
        executors.append(ProcessCpu(times[seen], used, 1 / samples.clk_tck))
    return HostExecutors(samples.host, samples.interval_s, times, tuple(executors))


@dataclass(frozen=True)
class TaskSpan:
    """A task of a stage (id, attempt), by the driver's clock (epoch seconds)."""

    stage: tuple[int, int]
    start: float
    end: float
    cpu_s: float


@dataclass
class ExecutorWork:
    """One executor that registered with the driver, and its tasks.

    ``host`` is the address that Spark knows. ``added`` and ``removed`` are in epoch seconds.
    """

    executor: str
    host: str
    tasks: list[TaskSpan] = field(default_factory=list)
    added: float = -math.inf
    removed: float = math.inf


def read_executor_work(
    directory: Path, application_id: str | None = None, period: Period = ALWAYS
) -> list[ExecutorWork]:
    """Return the executors that were registered in a period, in the order of their registration.

    EventLogError if the event log in the directory cannot be read.
    """
    executors: dict[str, ExecutorWork] = {}

    def added(event: Mapping[str, Any]) -> None:
        name, when = str(event["Executor ID"]), event["Timestamp"] / _MS
        executors[name] = ExecutorWork(name, event["Executor Info"]["Host"], added=when)

    def removed(event: Mapping[str, Any]) -> None:
        if (executor := executors.get(str(event["Executor ID"]))) is not None:
            executor.removed = event["Timestamp"] / _MS

    def ended(event: Mapping[str, Any]) -> None:
        info, metrics = event["Task Info"], event.get("Task Metrics") or {}
        if (executor := executors.get(str(info["Executor ID"]))) is not None:
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
    return [
        executor
        for executor in executors.values()
        if executor.added < period[1] and executor.removed > period[0]
    ]


class _WorkDone(NamedTuple):
    """The work of one executor: its tasks in wide stages, the CPU-seconds of all its tasks."""

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

    An executor that was started and never registered has run nothing. If more executors registered
    than were asked for, one was lost and another replaced it: then shares say nothing.

    Args:
        work: The executors that registered in the period.
        hosts: The executors that the samples show.
        executors: How many executors were asked for.
        cores: How many cores each of them has.
        period: Start and end of the run.
        names: The name of the host of each address that Spark knows.

    Returns:
        A line on each executor that did less than its share.
    """
    if len(work) > executors:
        return []
    done = _work_done(work, hosts, executors, _wide_tasks(work, executors * cores, period), names)
    all_tasks, all_cpu_s = sum(each.tasks for each in done), sum(each.cpu_s for each in done)
    lines = []
    for place, executor in enumerate(done):
        others = [other.tasks for other in (*done[:place], *done[place + 1 :])]
        usual = median(others) if others else 0
        if usual >= MIN_TASKS and executor.tasks < MIN_SHARE * usual:
            lines.append(
                f"an executor on host {executor.host} ran {executor.tasks} of {all_tasks} tasks"
                f" ({executor.tasks / all_tasks:.0%}, {1 / len(done):.0%} is its share;"
                f" {executor.cpu_s:.1f} of {all_cpu_s:.1f} CPU-s)"
            )
    return lines


def _work_done(
    work: Sequence[ExecutorWork],
    hosts: Sequence[HostExecutors],
    executors: int,
    tasks: Mapping[str, int],
    names: Mapping[str, str],
) -> list[_WorkDone]:
    """Return the work of each executor; nothing for those that were started and never registered.

    Args:
        work: The executors that registered.
        hosts: The executors that the samples show.
        executors: How many executors were asked for.
        tasks: How many tasks of wide stages each executor ran, by its id.
        names: The name of the host of each address that Spark knows.
    """
    done = [
        _WorkDone(
            names.get(executor.host, executor.host),
            tasks.get(executor.executor, 0),
            sum(task.cpu_s for task in executor.tasks),
        )
        for executor in work
    ]
    registered = Counter(executor.host for executor in done)
    silent = [
        host.host for host in hosts for _ in range(len(host.executors) - registered[host.host])
    ]
    return done + [_WorkDone(host, 0, 0.0) for host in silent[: executors - len(done)]]


def stalled(
    work: Sequence[ExecutorWork],
    hosts: Sequence[HostExecutors],
    *,
    period: Period,
    names: Mapping[str, str],
) -> list[str]:
    """Return the hosts that stood still for a part of a period, and the time.

    Args:
        work: The executors that registered in the period.
        hosts: The executors and the times of the readings that the samples show.
        period: Start and end of the run.
        names: The name of the host of each address that Spark knows.

    Returns:
        A line on each host that stood still.
    """
    lines = []
    for host in hosts:
        limit = max(STALL_S, STALL_INTERVALS * host.interval_s)
        # Only gaps between two samples count: a sampler that has ended is no stall.
        gaps = [
            end - start
            for start, end in pairwise(host.times)
            if end >= period[0] and start <= period[1]
        ]
        if gaps and max(gaps) > limit:
            lines.append(f"host {host.host} gave no sample for {max(gaps):.1f} s of the run")
            continue
        local = [
            executor for executor in work if names.get(executor.host, executor.host) == host.host
        ]
        idle = [end - start for start, end in _idle(host, local, period, limit)]
        if idle:
            lines.append(
                f"an executor on host {host.host} used no CPU for {max(idle):.1f} s"
                " while it had a task"
            )
    return lines


def _wide_tasks(work: Sequence[ExecutorWork], slots: int, period: Period) -> Counter[str]:
    """Return the number of tasks of each executor in stages with at least a task per slot."""
    ran = [
        (executor.executor, task.stage)
        for executor in work
        for task in executor.tasks
        if period[0] <= task.start <= period[1]
    ]
    sizes = Counter(stage for _, stage in ran)
    return Counter(executor for executor, stage in ran if sizes[stage] >= slots)


def _idle(
    host: HostExecutors, work: Sequence[ExecutorWork], period: Period, limit: float
) -> list[Period]:
    """Return the periods in which an executor of a host used no CPU although it had a task.

    The samples do not say which process is which executor. So an executor with a task is idle for
    certain only where more processes are quiet than there are executors without a task.

    Args:
        host: The processes of the executors on the host.
        work: The executors on the host, with their tasks.
        period: Start and end of the run.
        limit: The least length of a period, in seconds.
    """
    quiet = [span for process in host.executors for span in process.quiet(*period)]
    tasks = [task for executor in work for task in executor.tasks]
    idle = []
    for task in (task for task in tasks if task.end - task.start >= limit):
        for quiet_from, quiet_to in quiet:
            start, end = max(quiet_from, task.start), min(quiet_to, task.end)
            if end - start < limit:
                continue
            silent = sum(since <= start and end <= until for since, until in quiet)
            busy = sum(_has_task(executor, start, end) for executor in work)
            if silent > len(host.executors) - busy:
                idle.append((start, end))
    return idle


def _has_task(executor: ExecutorWork, start: float, end: float) -> bool:
    """Return whether one task of an executor ran during the whole period."""
    return any(task.start <= start and end <= task.end for task in executor.tasks)

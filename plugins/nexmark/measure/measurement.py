"""Compute the measurements of a repetition from its result file and its CPU samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING

from nexmark.measure.cpu_series import CpuSeries
from nexmark.measure.host_samples import MeasurementError
from nexmark.measure.result_file import ResultBatch, RunFacts, RunResult, data_batches
from nexmark.model import TASK_CPU, Basis

if TYPE_CHECKING:
    from nexmark.measure.shares import ExecutorWork

MIN_INTERVALS = 10
"""The least length of a steady state, in sampling intervals."""
_SEE = "see the event log and the log of its worker"


@dataclass(frozen=True)
class Measurement(RunFacts):
    """All measurements of a repetition.

    Units are in the names: ``_s`` seconds, ``_ms`` milliseconds. Times are epoch seconds.

    The run lasts from the start of the streaming query to the end of its last batch. ``events``
    counts the generator's events of all kinds. ``cpu_s`` is the CPU time of the executors with
    their Python workers. ``cores`` is cpu_s / wall_s, ``throughput_per_core`` is events / cpu_s.
    ``cpu_driver_s`` is the CPU time of the driver with all its children; None if it ran on a host
    without samples.

    The fields ``steady_*`` are of the steady state. It lasts from the start of the first data batch
    after ``warmup_batches`` to the end of the last data batch, so it has no JIT warm-up and no
    batches that only close windows. They are None if no such batch is left, or if the steady state
    is shorter than ``MIN_INTERVALS`` sampling intervals (or than as many gaps between the readings
    at its edges). Of an application with several streaming queries, ``warmup_batches`` is how many
    begin before each query has had its own.

    ``cpu_s_per_mevent`` is the metric of record: the executors' CPU-seconds per million events. If
    ``basis`` is steady, it is of the steady state; if application, of the whole life of the
    executors, because there is no steady state. Both figures are kept. Never compare figures of
    different bases.

    ``figures`` has ``task_cpu_s_per_mevent`` where the event log could be read: the CPU time that
    Spark counted for each task that started in the steady state (or in the run, if there is none),
    with the CPU time of the Python workers. It has no garbage collection and no compilation.

    ``batch_ms_*`` are durations of the data batches after the warm-up (of all, if none is left).
    ``other_cores`` is the CPU that other programs used on the hosts, ``steal_cores`` the CPU that
    the hypervisor took; both are None if a sampler did not see its whole machine. ``sampler_cores``
    is the CPU of the costliest sampler. ``figures`` are the metrics of ``model.METRICS`` that have
    no field here, by name. ``latency`` has the latency of every event of a paced repetition, as
    HdrHistogram encodes it. ``ageing`` has the samples of a soak repetition.
    """

    events: int
    wall_s: float
    cores: float
    cpu_s: float
    cpu_executors_s: float
    cpu_python_s: float
    cpu_driver_s: float | None
    cpu_application_s: float
    throughput: float
    throughput_per_core: float
    basis: str
    cpu_s_per_mevent: float
    cpu_s_per_mevent_steady: float | None
    cpu_s_per_mevent_application: float
    warmup_batches: int
    steady_events: int | None
    steady_wall_s: float | None
    steady_cpu_s: float | None
    steady_throughput: float | None
    steady_throughput_per_core: float | None
    batches: int
    batch_ms_p50: float
    batch_ms_p95: float
    batch_ms_p99: float
    hosts: tuple[str, ...]
    sampling_interval_s: float
    sampler_cores: float | None
    other_cores: float | None
    steal_cores: float | None
    figures: Mapping[str, float] = field(default_factory=dict)
    latency: str | None = None
    ageing: tuple[Mapping[str, object], ...] | None = None


@dataclass(frozen=True)
class SteadyWindow:
    """The steady state of a run: start and end in epoch seconds, and the events that it read."""

    start: float
    end: float
    events: int


def measure_series(
    run: RunResult,
    series: Sequence[CpuSeries],
    *,
    warmup_batches: int,
    min_intervals: int,
    executors: int | None = None,
    killed: bool = False,
    work: "Sequence[ExecutorWork]" = (),
) -> Measurement:
    """Return the measurements of a run from its CPU series.

    Args:
        run: The result of the run.
        series: The CPU of the application on each host, as computed or as stored.
        warmup_batches: How many data batches of each streaming query are left out of the steady
            state.
        min_intervals: The least length of the steady state, in sampling intervals.
        executors: How many executors were asked for; None: any number is right.
        killed: Whether executors were killed on purpose, so that one may be lost.
        work: The tasks of each executor, from the event log; () if it cannot be read.

    Raises:
        MeasurementError: Another number of executors lived while the query ran, one ended before
            the run did, or one replaced a lost one too late; none used CPU; the samples do not
            cover the run.
    """
    _check_executors(run, series, executors, killed)
    warm_up = run.warm_up(warmup_batches)
    wall_s = run.end - run.start
    jvms = sum(host.between(host.executors, run.start, run.end) for host in series)
    python = sum(host.between(host.python, run.start, run.end) for host in series)
    application = sum(host.executors[-1] + host.python[-1] for host in series)
    cpu_s = jvms + python
    if cpu_s <= 0:
        raise MeasurementError(
            f"{run.query}: the executors of {run.application_id} used no CPU during the run;"
            " do driver and hosts keep the same time?"
        )
    window = steady_window(run, series, warmup_batches, min_intervals)
    steady_cpu = _cpu(series, window.start, window.end) if window else None
    per_application = application / run.input_rows * 1e6
    per_steady = steady_cpu / window.events * 1e6 if window and steady_cpu else None
    durations = [batch.duration_ms for batch in _measured_batches(run.batches, warm_up)]
    driver = [
        host.between(host.driver, run.start, run.end) for host in series if host.driver is not None
    ]
    busy = _machine_cores(run, [(host, host.busy) for host in series])
    facts = {each.name: getattr(run, each.name) for each in fields(RunFacts)}
    return Measurement(
        **facts,
        events=run.input_rows,
        wall_s=wall_s,
        cores=cpu_s / wall_s,
        cpu_s=cpu_s,
        cpu_executors_s=jvms,
        cpu_python_s=python,
        cpu_driver_s=sum(driver) if driver else None,
        cpu_application_s=application,
        throughput=run.input_rows / wall_s,
        throughput_per_core=run.input_rows / cpu_s,
        basis=Basis.APPLICATION if per_steady is None else Basis.STEADY,
        cpu_s_per_mevent=per_application if per_steady is None else per_steady,
        cpu_s_per_mevent_steady=per_steady,
        cpu_s_per_mevent_application=per_application,
        warmup_batches=warm_up,
        steady_events=window.events if window else None,
        steady_wall_s=window.end - window.start if window else None,
        steady_cpu_s=steady_cpu,
        steady_throughput=window.events / (window.end - window.start) if window else None,
        steady_throughput_per_core=window.events / steady_cpu if window and steady_cpu else None,
        batches=len(run.batches),
        batch_ms_p50=percentile(durations, 50),
        batch_ms_p95=percentile(durations, 95),
        batch_ms_p99=percentile(durations, 99),
        hosts=tuple(host.host for host in series),
        sampling_interval_s=max(host.interval_s for host in series),
        sampler_cores=max(
            (host.sampler_cores for host in series if host.sampler_cores), default=None
        ),
        other_cores=None if busy is None else max(busy - (cpu_s + sum(driver)) / wall_s, 0.0),
        steal_cores=_machine_cores(run, [(host, host.steal) for host in series]),
        figures={} if killed else _task_figures(run, series, window, work),
    )


def _task_figures(
    run: RunResult,
    series: Sequence[CpuSeries],
    window: SteadyWindow | None,
    work: "Sequence[ExecutorWork]",
) -> dict[str, float]:
    """Return the CPU time of the tasks per million events, by the name of its metric.

    There is none if Spark counted no CPU time of a task that started in the period.

    Args:
        run: The result of the run.
        series: The CPU of the application on each host.
        window: The steady state; None for the whole run.
        work: The tasks of each executor.
    """
    period = window or SteadyWindow(run.start, run.end, run.input_rows)
    tasks = sum(
        task.cpu_s
        for executor in work
        for task in executor.tasks
        if period.start <= task.start < period.end
    )
    if tasks <= 0:
        return {}
    python = sum(host.between(host.python, period.start, period.end) for host in series)
    return {TASK_CPU: (tasks + python) / period.events * 1e6}


def steady_window(
    run: RunResult, series: Sequence[CpuSeries], warmup_batches: int, min_intervals: int
) -> SteadyWindow | None:
    """Return the steady state of a run; None if it is too short to measure.

    Its number of events is computed from its share of the rows of all data batches, because Spark
    counts a row once for each stream that reads it.

    Args:
        run: The result of the run.
        series: The CPU of the application on each host.
        warmup_batches: How many data batches of each streaming query are left out of it.
        min_intervals: Its least length, in sampling intervals.
    """
    data = data_batches(run.batches)
    steady = data[run.warm_up(warmup_batches) :]
    rows = sum(batch.input_rows for batch in data)
    if not steady or not rows:
        return None
    start, end = steady[0].start, steady[-1].end
    for host in series:
        resolution = max(host.interval_s, host.gap_at(start), host.gap_at(end))
        if end - start < min_intervals * resolution:
            return None
    share = sum(batch.input_rows for batch in steady) / rows
    events = round(run.input_rows * share)
    return SteadyWindow(start, end, events) if events > 0 else None


def percentile(values: Sequence[float], percent: float) -> float:
    """Return a percentile (0 to 100) of values, linear between ranks as numpy computes it."""
    ranked = sorted(values)
    position = (len(ranked) - 1) * percent / 100
    below = int(position)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (ranked[above] - ranked[below]) * (position - below)


def _measured_batches(batches: Sequence[ResultBatch], warmup_batches: int) -> list[ResultBatch]:
    """Return the data batches after the warm-up, or all data batches if none is left."""
    data = data_batches(batches)
    if not data:
        raise MeasurementError("the result has no data batch; see the log of the query")
    for before, after in pairwise(data):
        if after.start < before.start:
            raise MeasurementError(f"batch {after.number} started before batch {before.number}")
    return data[warmup_batches:] or data


def _check_executors(
    run: RunResult, series: Sequence[CpuSeries], executors: int | None, killed: bool
) -> None:
    """Check that the executors that were asked for ran the whole query.

    Args:
        run: The result of the run.
        series: The CPU of the application on each host.
        executors: How many executors were asked for; None: any number is right.
        killed: Whether executors were killed on purpose, so that one may be lost.

    Raises:
        MeasurementError: Executors are missing, were lost, or started too late.
    """
    seen = sum(host.executor_count for host in series)
    if seen and not killed and executors is not None and seen != executors:
        where = ", ".join(
            f"{host.executor_count} on {host.host}" for host in series if host.executor_count
        )
        raise MeasurementError(
            f"{run.query}: {executors} executors were asked for and {seen} were seen ({where});"
            f" one was lost or could not start: {_SEE}"
        )
    begin = run.work[0]
    late = [
        (host.host, start - begin)
        for host in series
        for start in host.executor_starts
        if start > begin
    ]
    if late and not killed and any(host.executors_gone_before for host in series):
        where = ", ".join(f"on {host} {after:.1f} s after its begin" for host, after in late)
        raise MeasurementError(
            f"{run.query}: an executor was lost before the first batch, and the one in its place"
            f" started too late ({where}); {_SEE}"
        )
    lost = [
        (host.host, run.end - end)
        for host in series
        for end in host.executor_ends
        if end <= run.end
    ]
    if lost and not killed:
        where = ", ".join(f"on {host} {before:.1f} s before the end" for host, before in lost)
        raise MeasurementError(
            f"{run.query}: an executor was lost during the run ({where}); {_SEE}"
        )
    if not seen:
        hosts = ", ".join(host.host for host in series) or "no host at all"
        raise MeasurementError(
            f"{run.query}: no executor of {run.application_id} in the samples of {hosts};"
            " was the sampler running, as a user who may see them, and the master not local[*]?"
        )


def _cpu(series: Sequence[CpuSeries], start: float, end: float) -> float:
    """Return the CPU-seconds of the executors with their Python workers in a period."""
    return sum(
        host.between(host.executors, start, end) + host.between(host.python, start, end)
        for host in series
    )


def _machine_cores(
    run: RunResult, totals: Sequence[tuple[CpuSeries, tuple[float, ...] | None]]
) -> float | None:
    """Return the cores that a figure of whole machines stands for while a run lasted.

    ``totals`` has that figure of each host; None if a sampler did not see its whole machine.
    """
    known = [(host, total) for host, total in totals if total is not None]
    if len(known) < len(totals):
        return None
    wall_s = run.end - run.start
    return sum(host.between(total, run.start, run.end) / wall_s for host, total in known)

"""From one repetition's result file and CPU samples to its measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise

from nexmark.measure.cpu_series import CpuSeries
from nexmark.measure.result_file import ResultBatch, RunFacts, RunResult, data_batches
from nexmark.measure.samples import MeasurementError
from nexmark.model import Basis

MIN_INTERVALS = 10
_SEE = "see the event log and the log of its worker"


@dataclass(frozen=True)
class Measurement(RunFacts):
    """All measurements of a repetition; ``_s`` seconds, ``_ms`` milliseconds, times epoch seconds.

    Run: from the start of the streaming query to the end of its last batch. ``events`` of the
    generator, all kinds; ``cpu_s`` of the executors with their Python workers; ``cores`` = cpu_s /
    wall_s; ``throughput_per_core`` = events / cpu_s; ``cpu_driver_s``: driver with all its
    children, None when it ran on a host without samples.

    Steady state: ``steady_*``, from the start of the first data batch after ``warmup_batches`` to
    the end of the last data batch, so without JIT warm-up and without the batches that only close
    windows. None when no such batch is left, or when the window is shorter than ``MIN_INTERVALS``
    sampling intervals (or gaps between the readings at its edges).

    ``cpu_s_per_mevent``, the metric of record: executors' CPU-seconds per million events. ``basis``
    steady: in the steady state; application: over the whole life of the executors, where there is
    no steady state. Both are kept; never compare figures of different bases.

    ``batch_ms_*``: duration of the data batches after the warm-up (of all, when none is left).
    ``other_cores``: CPU used on the hosts by anything else, ``steal_cores``: CPU the hypervisor
    took, both None where a sampler did not see its whole machine. ``sampler_cores``: of the
    costliest. ``figures``: metrics of ``model.METRICS`` that have no field here. ``latency``: of
    every event of a paced repetition, as HdrHistogram encodes it.
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


@dataclass(frozen=True)
class SteadyWindow:
    """The steady state of a run: epoch seconds and the events its batches read."""

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
) -> Measurement:
    """Return the measurements from CPU series that were made (or stored) before.

    MeasurementError if other than as many ``executors`` lived while the query ran, one ended before
    the run did, or one took the place of a lost one too late, unless some were ``killed``.
    """
    _check_found(run, series, executors, killed)
    wall_s = run.end - run.start
    jvms = sum(x.between(x.executors, run.start, run.end) for x in series)
    python = sum(x.between(x.python, run.start, run.end) for x in series)
    application = sum(x.executors[-1] + x.python[-1] for x in series)
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
    durations = [batch.duration_ms for batch in _measured_batches(run.batches, warmup_batches)]
    driver = [x.between(x.driver, run.start, run.end) for x in series if x.driver is not None]
    busy = _machine_cores(run, series, "busy")
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
        warmup_batches=warmup_batches,
        steady_events=window.events if window else None,
        steady_wall_s=window.end - window.start if window else None,
        steady_cpu_s=steady_cpu,
        steady_throughput=window.events / (window.end - window.start) if window else None,
        steady_throughput_per_core=window.events / steady_cpu if window and steady_cpu else None,
        batches=len(run.batches),
        batch_ms_p50=percentile(durations, 50),
        batch_ms_p95=percentile(durations, 95),
        batch_ms_p99=percentile(durations, 99),
        hosts=tuple(x.host for x in series),
        sampling_interval_s=max(x.interval_s for x in series),
        sampler_cores=max((x.sampler_cores for x in series if x.sampler_cores), default=None),
        other_cores=None if busy is None else max(busy - (cpu_s + sum(driver)) / wall_s, 0.0),
        steal_cores=_machine_cores(run, series, "steal"),
    )


def steady_window(
    run: RunResult, series: Sequence[CpuSeries], warmup_batches: int, min_intervals: int
) -> SteadyWindow | None:
    """Return the steady state of a run, None when it is too short to measure.

    Its events are its share in the rows of all data batches: right also where Spark counts a row
    once per stream that reads it.
    """
    data = data_batches(run.batches)
    steady = data[warmup_batches:]
    rows = sum(batch.input_rows for batch in data)
    if not steady or not rows:
        return None
    start, end = steady[0].start, steady[-1].end
    for x in series:
        resolution = max(x.interval_s, x.gap_at(start), x.gap_at(end))
        if end - start < min_intervals * resolution:
            return None
    share = sum(batch.input_rows for batch in steady) / rows
    events = round(run.input_rows * share)
    return SteadyWindow(start, end, events) if events > 0 else None


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the percentile, linear between ranks as numpy's default."""
    ranked = sorted(values)
    position = (len(ranked) - 1) * percent / 100
    below = int(position)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (ranked[above] - ranked[below]) * (position - below)


def _measured_batches(batches: Sequence[ResultBatch], warmup_batches: int) -> list[ResultBatch]:
    data = data_batches(batches)
    if not data:
        raise MeasurementError("the result has no data batch; see the log of the query")
    for before, after in pairwise(data):
        if after.start < before.start:
            raise MeasurementError(f"batch {after.number} started before batch {before.number}")
    return data[warmup_batches:] or data


def _check_found(
    run: RunResult, series: Sequence[CpuSeries], executors: int | None, killed: bool
) -> None:
    seen = sum(x.executor_count for x in series)
    if seen and not killed and executors is not None and seen != executors:
        where = ", ".join(f"{x.executor_count} on {x.host}" for x in series if x.executor_count)
        raise MeasurementError(
            f"{run.query}: {executors} executors were asked for and {seen} were seen ({where});"
            f" one was lost or could not start: {_SEE}"
        )
    begin = run.work[0]
    late = [(x.host, t - begin) for x in series for t in x.executor_starts if t > begin]
    if late and not killed and any(x.executors_gone_before for x in series):
        where = ", ".join(f"on {host} {after:.1f} s after its begin" for host, after in late)
        raise MeasurementError(
            f"{run.query}: an executor was lost before the first batch, and the one in its place"
            f" started too late ({where}); {_SEE}"
        )
    lost = [(x.host, run.end - t) for x in series for t in x.executor_ends if t <= run.end]
    if lost and not killed:
        where = ", ".join(f"on {host} {before:.1f} s before the end" for host, before in lost)
        raise MeasurementError(
            f"{run.query}: an executor was lost during the run ({where}); {_SEE}"
        )
    if not seen:
        hosts = ", ".join(x.host for x in series) or "no host at all"
        raise MeasurementError(
            f"{run.query}: no executor of {run.application_id} in the samples of {hosts};"
            " was the sampler running, as a user who may see them, and the master not local[*]?"
        )


def _cpu(series: Sequence[CpuSeries], start: float, end: float) -> float:
    return sum(x.between(x.executors, start, end) + x.between(x.python, start, end) for x in series)


def _machine_cores(run: RunResult, series: Sequence[CpuSeries], what: str) -> float | None:
    totals = [(x, getattr(x, what)) for x in series]
    if any(total is None for _, total in totals):
        return None
    return sum(x.between(y, run.start, run.end) / (run.end - run.start) for x, y in totals)

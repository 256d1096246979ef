"""Print after each pair where the interval of its query stands, for the person who waits."""

from collections.abc import Callable, Mapping, Sequence

from nexmark.errors import NexmarkError
from nexmark.model import (
    ARMS,
    CPU,
    CPU_METRICS,
    PROFILED,
    TASK_CPU,
    Arm,
    Basis,
    Mode,
    common_basis,
    grouped,
)
from nexmark.night.night_plan import Night
from nexmark.night.night_runs import first_runs, later_groups, runs_of
from nexmark.night.run_directory import CpuTimes, Run
from nexmark.recording.repetitions import measured
from nexmark.sampling.group_samples import GroupSamples, executor_work


def standing_line(night: Night) -> str:
    """Return where the query of the newest application stands; '' if that has ended no pair.

    Return '', too, if the night has no pairs, if a metric other than CPU time decides, or if no
    samples have reached this machine yet. Repetitions that cannot be measured yet are left out.
    """
    from nexmark.verdict.standing import standing_of

    if night.mode != Mode.PAIRED or night.gate.metric not in CPU_METRICS:
        return ""
    ended = night.files.last_spans()
    newest = max(ended.values(), key=lambda span: span.end, default=None)
    runs = {run.label: run for run in _compared_runs(night)}
    if newest is None or (last := runs.get(newest.label)) is None:
        return ""
    done = [run for run in runs.values() if run.query == last.query and run.label in ended]
    if sum((run.stage, run.number) == (last.stage, last.number) for run in done) < len(ARMS):
        return ""
    metric, ratios = _ratios(_cpu_times(night, done), night.gate.metric)
    standing = standing_of(ratios, night.gate.for_metrics([metric]))
    return "" if standing is None else f"{last.query}: {standing}"


def _compared_runs(night: Night) -> list[Run]:
    """Return the repetitions of both arms that are planned so far, but not the recorded ones."""
    groups = later_groups(night.gate)
    planned = [run for query in night.queries for run in first_runs(night, query)]
    planned += [run for group in groups for run in runs_of(night, group)]
    return [run for run in planned if run.arm in ARMS and run.stage != PROFILED]


def _cpu_times(night: Night, runs: Sequence[Run]) -> dict[Run, CpuTimes]:
    """Return the CPU times of repetitions; each is measured once, and kept beside its result."""
    times = {run: kept for run in runs if (kept := night.files.application(run).cpu_times())}
    missing = [run for run in runs if run not in times]
    for group, runs_of_group in grouped(missing, lambda run: run.group).items():
        samples = GroupSamples.read(night, group)
        if samples.problem is not None:
            continue
        for run in runs_of_group:
            try:
                times[run] = _measured_times(night, run, samples)
            except (NexmarkError, OSError, ValueError):
                continue
    return times


def _measured_times(night: Night, run: Run, samples: GroupSamples) -> CpuTimes:
    """Return the CPU times of a repetition from its samples and its event log, and keep them."""
    directory = night.files.application(run)
    result = directory.parsed_result()
    label = str((directory.result() or {}).get("label", directory.result_file))
    series = [series_of_host for series_of_host, _ in samples.series(result, label)]
    measurement = measured(night, result, series, executor_work(directory, result) or ())
    times = CpuTimes(
        steady=measurement.cpu_s_per_mevent_steady,
        application=measurement.cpu_s_per_mevent_application,
        tasks=measurement.figures.get(TASK_CPU),
    )
    directory.write_cpu_times(times)
    return times


def _ratios(times: Mapping[Run, CpuTimes], metric: str) -> tuple[str, list[float]]:
    """Return the metric that decides so far, and its ratio candidate / baseline of each whole pair.

    Args:
        times: The CPU times of the repetitions of one query.
        metric: The metric of the gate.
    """
    basis = common_basis(one.steady for one in times.values())
    alike = basis is Basis.STEADY or all(one.steady is None for one in times.values())
    if metric == TASK_CPU and alike and all(one.tasks for one in times.values()):
        return TASK_CPU, _of_pairs(times, lambda one: one.tasks)
    if basis is Basis.STEADY:
        return CPU, _of_pairs(times, lambda one: one.steady)
    return CPU, _of_pairs(times, lambda one: one.application)


def _of_pairs(
    times: Mapping[Run, CpuTimes], figure: Callable[[CpuTimes], float | None]
) -> list[float]:
    """Return the ratio candidate / baseline of a figure of each whole pair."""
    ratios = []
    for pair in grouped(times, lambda run: (run.stage, run.number)).values():
        arms = {run.arm: figure(times[run]) for run in pair}
        candidate, baseline = arms.get(Arm.CANDIDATE), arms.get(Arm.BASELINE)
        if candidate and baseline:
            ratios.append(candidate / baseline)
    return ratios

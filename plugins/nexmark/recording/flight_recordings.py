"""Draw flame graphs of the repetitions that ran with a flight recorder.

A failure costs only the flame graphs of its query: it prints a line, and the night goes on.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nexmark.errors import NexmarkError
from nexmark.model import FLAMES, Arm, Basis, common_basis, grouped
from nexmark.night.kinds import kind_of
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say
from nexmark.night.night_runs import runs_of
from nexmark.night.run_directory import Run
from nexmark.night.submission import Repetition
from nexmark.recording.repetitions import measured, result_of
from nexmark.sampling.group_samples import GroupSamples, clock_offset_s

if TYPE_CHECKING:
    from nexmark.flames.flame_files import Flames
    from nexmark.flames.tree import Profile
    from nexmark.measure.cpu_series import CpuSeries
    from nexmark.measure.measurement import SteadyWindow
    from nexmark.measure.result_file import RunResult

_MOST_CHANGES = 3
"""The number of changed methods that are printed for a query."""


def can_record(night: Night) -> bool:
    """Tell whether repetitions run with a flight recorder; say why not if the JDK has none."""
    if not (kind_of(night.workload).has_flame_graphs and night.gate.flame_graphs):
        return False
    problem = night.spark_cluster.recorder_problem()
    if problem:
        say(f"no flame graphs: {problem}")
    return not problem


def fetch(night: Night, submission: Repetition) -> None:
    """Copy the recordings of an application that has just ended from the hosts to its directory."""
    from nexmark.measure.shares import read_executor_work

    directory = submission.directory
    result = directory.parsed_result()
    work = read_executor_work(directory.events, result.application_id, result.work)
    executors = [executor.executor for executor in work]
    cluster = night.clusters[submission.application.arm]
    cluster.fetch_recordings(result.application_id, executors, directory.recordings)


def draw_flames(night: Night) -> None:
    """Draw the flame graphs of every recorded query; print the methods that have changed most."""
    from nexmark.flames.flame_files import write_problem

    runs = runs_of(night, FLAMES)
    directory = night.files.flames
    for query, runs_of_query in grouped(runs, lambda run: run.query).items():
        try:
            flames = _draw(night, query, runs_of_query, directory)
        except (NexmarkError, OSError) as error:
            write_problem(directory, query, str(error))
            say(f"{query}: no flame graphs: {error}")
            continue
        say(f"{query}: flame graphs: {flames.files['difference']}")
        certain = [change for change in flames.changes if change.certain]
        for change in certain[:_MOST_CHANGES]:
            say(f"{query}:   {change}")
        if not certain:
            say(f"{query}:   no method has changed by more than the chance of sampling")


class _Recorded(NamedTuple):
    """A repetition that was recorded, with the CPU series of its hosts.

    `window` is its steady state; None if it has none.
    """

    run: Run
    result: "RunResult"
    series: "Sequence[CpuSeries]"
    window: "SteadyWindow | None"


def _draw(night: Night, query: str, runs: Sequence[Run], directory: Path) -> "Flames":
    """Draw the flame graphs of a query: of both arms, and of their difference.

    Args:
        night: The night.
        query: The query.
        runs: Its repetitions with a flight recorder, one of each arm.
        directory: The directory of the night's flame graphs.

    Raises:
        NexmarkError: A repetition failed, cannot be measured, or has no recording.
    """
    from nexmark.flames.flame_files import write_flames

    samples = GroupSamples.read(night, FLAMES)
    recorded = {run.arm: _recorded(night, run, samples) for run in runs}
    basis = common_basis(repetition.window for repetition in recorded.values())
    steady = basis is Basis.STEADY
    profiles = {arm: _profile(night, repetition, steady) for arm, repetition in recorded.items()}
    return write_flames(directory, query, profiles[Arm.BASELINE], profiles[Arm.CANDIDATE], basis)


def _recorded(night: Night, run: Run, samples: GroupSamples) -> _Recorded:
    """Return a recorded repetition; NexmarkError if it failed or cannot be measured."""
    from nexmark.measure.measurement import MIN_INTERVALS, steady_window
    from nexmark.measure.result_file import parse_result

    content, directory = result_of(night, run), night.files.application(run)
    if content is None:
        raise NexmarkError(
            f"the recorded repetition of the {run.arm} failed: {directory.failure()}"
        )
    if samples.problem is not None:
        raise NexmarkError(samples.problem)
    label = str(directory.result_file)
    result = parse_result(content, label)
    series = [series for series, _ in samples.series(result, label)]
    measured(night, result, series)  # NexmarkError if it cannot be
    window = steady_window(result, series, night.workload.warmup_batches, MIN_INTERVALS)
    return _Recorded(run, result, series, window)


def _profile(night: Night, recorded: _Recorded, steady: bool) -> "Profile":
    """Return the stacks of an arm, with its CPU-seconds per million events.

    Both cover the steady state if `steady`, else the whole life of the executors.
    """
    from nexmark.flames.tree import Profile

    cpu_s = sum(series.executors[-1] for series in recorded.series)
    events, window = recorded.result.input_rows, recorded.window if steady else None
    if window is not None:
        cpu_s = sum(
            series.between(series.executors, window.start, window.end) for series in recorded.series
        )
        events = window.events
    return Profile(_stacks(night, recorded.run, window), cpu_s / events * 1e6)


def _stacks(night: Night, run: Run, window: "SteadyWindow | None") -> Mapping[tuple[str, ...], int]:
    """Return the stacks of all executors of a repetition, each with its number of samples.

    Only samples within `window` count; None counts all. The window is moved by the offset of each
    host's clock from the clock of this machine.
    """
    from nexmark.flames.jfr import read_recording
    from nexmark.flames.tree import collapse

    directory = night.files.application(run)
    recordings = sorted(directory.recordings.glob("*/*.jfr"))
    if len(recordings) != night.cluster.executors:
        raise NexmarkError(
            f"{len(recordings)} of {night.cluster.executors} recordings of the {run.arm} are "
            f"there: {directory.failure()}"
        )
    counts: Counter[tuple[str, ...]] = Counter()
    for recording in recordings:
        offset_s, host_window = 0.0, None
        if recording.parent.name in night.spark_cluster.sampled_hosts:
            offset_s = clock_offset_s(night.files.group(FLAMES), recording.parent.name)
        if window is not None:
            host_window = replace(window, start=window.start + offset_s, end=window.end + offset_s)
        counts += collapse(read_recording(recording), host_window, str(recording))
    if not counts:
        raise NexmarkError(f"the recordings of the {run.arm} have no sample; see {directory.path}")
    return counts

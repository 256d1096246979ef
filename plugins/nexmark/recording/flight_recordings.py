"""The repetitions with a flight recorder: a failure prints a line and costs their flame graphs."""

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

_TOLD = 3


def can_record(night: Night) -> bool:
    """Tell whether repetitions are recorded; say why not, if the JDK cannot do it."""
    if not (kind_of(night.workload).has_flame_graphs and night.gate.flame_graphs):
        return False
    problem = night.spark_cluster.recorder_problem()
    if problem:
        say(f"no flame graphs: {problem}")
    return not problem


def fetch(night: Night, submission: Repetition) -> None:
    """Bring the recordings of an application that has just ended to its directory."""
    from nexmark.measure.shares import read_executor_work

    directory = submission.directory
    result = directory.parsed_result()
    work = read_executor_work(directory.events, result.application_id, result.work)
    executors = [executor.executor for executor in work]
    cluster = night.clusters[submission.application.arm]
    cluster.fetch_recordings(result.application_id, executors, directory.recordings)


def draw_flames(night: Night) -> None:
    """Make the flame graphs of every query that was recorded; tell which have changed most."""
    from nexmark.flames.flame_files import write_problem

    runs = runs_of(night, FLAMES)
    directory = night.files.flames
    for query, of_query in grouped(runs, lambda run: run.query).items():
        try:
            made = _draw(night, query, of_query, directory)
        except (NexmarkError, OSError) as error:
            write_problem(directory, query, str(error))
            say(f"{query}: no flame graphs: {error}")
            continue
        say(f"{query}: flame graphs: {made.files['difference']}")
        certain = [change for change in made.changes if change.certain]
        for change in certain[:_TOLD]:
            say(f"{query}:   {change}")
        if not certain:
            say(f"{query}:   no method has changed by more than the chance of sampling")


class _Recorded(NamedTuple):
    """What was measured of a recorded repetition; `window` is its steady state, if it has one."""

    run: Run
    result: "RunResult"
    series: "Sequence[CpuSeries]"
    window: "SteadyWindow | None"


def _draw(night: Night, query: str, runs: Sequence[Run], directory: Path) -> "Flames":
    from nexmark.flames.flame_files import write_flames

    samples = GroupSamples.read(night, FLAMES)
    recorded = {run.arm: _recorded(night, run, samples) for run in runs}
    basis = common_basis(each.window for each in recorded.values())
    steady = basis is Basis.STEADY
    profiles = {arm: _profile(night, each, steady) for arm, each in recorded.items()}
    return write_flames(directory, query, profiles[Arm.BASELINE], profiles[Arm.CANDIDATE], basis)


def _recorded(night: Night, run: Run, samples: GroupSamples) -> _Recorded:
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
    """Return the stacks of an arm, in the steady state or over the life of its executors."""
    from nexmark.flames.tree import Profile

    cpu_s = sum(host.executors[-1] for host in recorded.series)
    events, window = recorded.result.input_rows, recorded.window if steady else None
    if window is not None:
        cpu_s = sum(
            host.between(host.executors, window.start, window.end) for host in recorded.series
        )
        events = window.events
    return Profile(_stacks(night, recorded.run, window), cpu_s / events * 1e6)


def _stacks(night: Night, run: Run, window: "SteadyWindow | None") -> Mapping[tuple[str, ...], int]:
    """Return the stacks of all executors of a repetition; clocks of hosts may differ from ours."""
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
        ahead, within = 0.0, None
        if recording.parent.name in night.spark_cluster.sampled_hosts:
            ahead = clock_offset_s(night.files.group(FLAMES), recording.parent.name)
        if window is not None:
            within = replace(window, start=window.start + ahead, end=window.end + ahead)
        counts += collapse(read_recording(recording), within, str(recording))
    if not counts:
        raise NexmarkError(f"the recordings of the {run.arm} have no sample; see {directory.path}")
    return counts

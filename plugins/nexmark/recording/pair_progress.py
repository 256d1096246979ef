"""Print after each pair where the interval of its query stands, for the person who waits."""

from nexmark.errors import NexmarkError
from nexmark.model import ARMS, CPU, PROFILED, Arm, Basis, Mode, common_basis, grouped
from nexmark.night.night_plan import Night
from nexmark.night.night_runs import first_runs, later_groups, runs_of
from nexmark.night.run_directory import Run
from nexmark.recording.repetitions import measured
from nexmark.sampling.group_samples import GroupSamples


def standing_line(night: Night) -> str:
    """Return where the query of the newest application stands; '' if that has ended no pair.

    Return '', too, if the night has no pairs, if a metric other than CPU time decides, or if no
    samples have reached this machine yet. Repetitions that cannot be measured yet are left out.
    """
    from nexmark.verdict.standing import standing_of

    if night.mode != Mode.PAIRED or night.gate.metric != CPU:
        return ""
    ended = night.files.last_spans()
    newest = max(ended.values(), key=lambda span: span.end, default=None)
    runs = {run.label: run for run in _compared_runs(night)}
    if newest is None or (last := runs.get(newest.label)) is None:
        return ""
    done = [run for run in runs.values() if run.query == last.query and run.label in ended]
    if sum((run.stage, run.number) == (last.stage, last.number) for run in done) < len(ARMS):
        return ""
    standing = standing_of(_ratios(night, done), night.gate)
    return "" if standing is None else f"{last.query}: {standing}"


def _compared_runs(night: Night) -> list[Run]:
    """Return the repetitions of both arms that are planned so far, but not the recorded ones."""
    groups = later_groups(night.gate)
    planned = [run for query in night.queries for run in first_runs(night, query)]
    planned += [run for group in groups for run in runs_of(night, group)]
    return [run for run in planned if run.arm in ARMS and run.stage != PROFILED]


def _ratios(night: Night, runs: list[Run]) -> list[float]:
    """Return the ratio candidate / baseline of CPU time of each whole pair among `runs`.

    `runs` are of one query.
    """
    from nexmark.measure.result_file import parse_result

    measurements = {}
    for group, runs_of_group in grouped(runs, lambda run: run.group).items():
        samples = GroupSamples.read(night, group)
        if samples.problem is not None:
            continue
        for run in runs_of_group:
            directory = night.files.application(run)
            try:
                written = directory.result() or {}
                result = parse_result(written, str(directory.result_file))
                label = str(written.get("label", directory.result_file))
                series = [series_of_host for series_of_host, _ in samples.series(result, label)]
                measurements[run] = measured(night, result, series)
            except (NexmarkError, OSError, ValueError):
                continue
    basis = common_basis(
        measurement.cpu_s_per_mevent_steady for measurement in measurements.values()
    )
    figures = {
        run: measurement.cpu_s_per_mevent_steady
        if basis == Basis.STEADY
        else measurement.cpu_s_per_mevent_application
        for run, measurement in measurements.items()
    }
    pairs = grouped(figures, lambda run: (run.stage, run.number)).values()
    ratios = []
    for pair in pairs:
        arms = {run.arm: figures[run] for run in pair}
        candidate, baseline = arms.get(Arm.CANDIDATE), arms.get(Arm.BASELINE)
        if candidate and baseline:
            ratios.append(candidate / baseline)
    return ratios

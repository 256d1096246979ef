"""Make the record of a repetition from the files that its application left in its directory.

A planned repetition is never left out: its record says whether it is right, wrong, not measured or
missing, and why. A repetition is right if it has read all events, and if the number and the
order-free digest of its output rows are equal to the number and digest

- of the verified result, where the verification run read the same events (workload `smoke`) and the
  query is in append mode: it writes every row once, so the digest does not depend on the batches;
- else of the accepted baseline of the same events and batches, if there is one;
- else of more than half of the repetitions; without a majority none of them is right.

Without a digest (q12, whose windows use processing time) only the number of events is checked.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, JsonValue

from nexmark.errors import NexmarkError
from nexmark.model import TASK_CPU, Arm, grouped
from nexmark.night.kinds import kind_for
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import Json, Run
from nexmark.night.verification import Verification
from nexmark.sampling.group_samples import GroupSamples, executor_work, trouble

if TYPE_CHECKING:
    from nexmark.measure.cpu_series import CpuSeries
    from nexmark.measure.executed_plan import Part
    from nexmark.measure.measurement import Measurement
    from nexmark.measure.result_file import RunResult
    from nexmark.measure.shares import ExecutorWork
    from nexmark.store import RepetitionRecord, Store


_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Produced:
    """The number of input and output rows of one application, and the digest of its output.

    `digest` is None for a query whose output has no digest (q12).
    """

    input_rows: int
    output_rows: int
    digest: str | None


class ResultOutput(BaseModel):
    """The fields of a result file by which the rows of repetitions are compared."""

    formulation: str
    output_mode: str
    input_rows: int
    output_rows: int
    digest: str | None

    @property
    def produced(self) -> Produced:
        """Return the numbers of rows and the digest alone."""
        return Produced(self.input_rows, self.output_rows, self.digest)


@dataclass(frozen=True)
class Expected:
    """The right digest and number of rows; `origin` names their source in messages."""

    output_rows: int
    digest: str
    origin: str


def faults(
    events: int | None, produced: Mapping[_Key, Produced], expected: Expected | None
) -> dict[_Key, str]:
    """Return the problem of each wrong repetition in one line, by its key.

    `events` is the number of events of the workload; None if any number is right. `expected` is the
    right output; None to take the output of most repetitions.
    """
    problems = {
        key: f"read {each.input_rows} of {events} events"
        for key, each in produced.items()
        if events not in (None, each.input_rows)
    }
    whole = {
        key: each
        for key, each in produced.items()
        if key not in problems and each.digest is not None
    }
    if expected is None:
        expected = _majority(whole)
        if expected is None:
            digests = ", ".join(sorted({str(each.digest) for each in whole.values()}))
            return problems | dict.fromkeys(whole, f"the repetitions disagree: digests {digests}")
    for key, each in whole.items():
        if (each.digest, each.output_rows) != (expected.digest, expected.output_rows):
            problems[key] = (
                f"put out {each.output_rows} rows with digest {each.digest}, but {expected.origin} "
                f"has {expected.output_rows} rows with digest {expected.digest}"
            )
    return problems


def _majority(produced: Mapping[_Key, Produced]) -> Expected | None:
    """Return the output of more than half of the repetitions; None without such a majority."""
    counts = Counter((each.digest, each.output_rows) for each in produced.values())
    for (digest, rows), count in counts.most_common(1):
        if 2 * count > len(produced):
            return Expected(rows, str(digest), "most repetitions' result")
    return None


def repetition_records(night: Night, runs: Sequence[Run], store: Store) -> list[RepetitionRecord]:
    """Return the record of each of `runs`, which are of one query and have ended."""
    (query,) = {run.query for run in runs}
    verification = Verification.read(night.query_dir(query))
    results = {run: result for run in runs if (result := result_of(night, run)) is not None}
    wrong = _wrong(night, query, results, verification, store)
    samples = {name: GroupSamples.read(night, name) for name in {run.group for run in runs}}
    positions = _positions(night, runs)
    return [
        _measured(night, run, positions.get(run), results[run], samples[run.group], wrong.get(run))
        if run in results
        else _absent(night, run, positions.get(run), verification)
        for run in runs
    ]


def _positions(night: Night, runs: Sequence[Run]) -> dict[Run, int]:
    """Return the place of each of `runs`, from 1, in the order in which they really ran.

    A repetition that never started has no place. A repetition that was tried again has the place
    of its last try, so the order may differ from the plan.
    """
    spans = night.files.last_spans()
    starts = {run: spans[run.label].start for run in runs if run.label in spans}
    return {run: place for place, run in enumerate(sorted(starts, key=starts.__getitem__), start=1)}


def result_of(night: Night, run: Run) -> Json | None:
    """Return the content of the result file of a repetition; None if it has no such file."""
    return night.files.application(run).result()


def _wrong(
    night: Night,
    query: str,
    results: Mapping[Run, Json],
    verification: Verification | None,
    store: Store,
) -> dict[Run, str]:
    """Return by repetition what is wrong with its rows.

    Repetitions of the arm `slowed` are not checked: they have read more events.

    Args:
        night: The night.
        query: The query of all repetitions.
        results: The content of the result file of each repetition.
        verification: The outcome of the expectations; None if there is none.
        store: The results database, for the accepted baseline.
    """
    if not kind_for(night, query).compares_digests:
        return {}
    runs = [run for run in results if run.arm != Arm.SLOWED]
    problems: dict[Run, str] = {}
    outputs = {run: ResultOutput.model_validate(results[run]) for run in runs}
    for same in grouped(runs, lambda run: _same_rows(night, query, outputs[run])).values():
        first = outputs[same[0]]
        expected = _verified(night, query, first, verification)
        expected = expected or _accepted(night, query, first, store)
        produced = {run: outputs[run].produced for run in same}
        problems |= faults(_events(night, query, produced), produced, expected)
    return problems


def _same_rows(night: Night, query: str, output: ResultOutput) -> str:
    """Return what repetitions have alike that have to put out the same rows.

    Two formulations may put out their rows differently, unless each row comes out once (in append
    mode, or in the output that an application names) and a person has asked whether the change of
    a job keeps its rows.
    """
    is_whole = output.output_mode == "append" or night.is_application(query)
    return "" if night.candidate_job and is_whole else output.formulation


def _events(night: Night, query: str, produced: Mapping[Run, Produced]) -> int | None:
    """Return how many rows each repetition has to have read; None if they may differ.

    Nobody knows the rows of an application, or of a person's own files, before it has run. It has
    to read as many in every repetition, since its CPU time is divided by them, unless it is stopped
    after some batches.
    """
    if not (night.is_application(query) or night.reads_own_tables(query)):
        return night.workload.size_of(query).events
    application = night.jobs[query].application
    if application is not None and application.batches is not None:
        return None
    return Counter(each.input_rows for each in produced.values()).most_common(1)[0][0]


def _verified(
    night: Night, query: str, timed: ResultOutput, verification: Verification | None
) -> Expected | None:
    """Return the output of the verification run, if the timed runs must have the same output.

    They must if they read the same events, and if the query is in append mode.

    Args:
        night: The night.
        query: The query.
        timed: The output of a timed repetition.
        verification: The outcome of the expectations; None if there is none.
    """
    is_same = night.reads_own_tables(query) or night.workload.verifies_the_timed_input(query)
    if not (is_same and timed.output_mode == "append"):
        return None
    result = night.files.group(query).verify.result()
    if verification is None or not verification.success or not result:
        return None
    verified = ResultOutput.model_validate(result)
    if not verified.digest:
        return None
    return Expected(verified.output_rows, verified.digest, "the verified result")


def _accepted(night: Night, query: str, timed: ResultOutput, store: Store) -> Expected | None:
    """Return the accepted baseline's output, if it ran the same jobs over the same events.

    Args:
        night: The night.
        query: The query.
        timed: The output of a timed repetition.
        store: The results database.
    """
    place = (night.engine.name, night.workload.name, night.cluster.name)
    accepted = store.accepted(*place, datetime.now(UTC)).get(query)
    if accepted is None:
        return None
    baseline, ours = store.night(accepted.night_id), store.night(night.name)
    if (baseline.shape, baseline.jobs) != (ours.shape, ours.jobs):
        return None
    for row in store.repetitions(baseline.id, [query]):
        same = row.counts and row.formulation == timed.formulation
        if same and row.digest is not None and row.output_rows is not None:
            return Expected(row.output_rows, row.digest, f"the baseline {baseline.id}")
    return None


def _absent(
    night: Night, run: Run, position: int | None, verification: Verification | None
) -> RepetitionRecord:
    """Return the record of a repetition without a result file, with the reason.

    Args:
        night: The night.
        run: The repetition.
        position: Its place in the order in which its query's repetitions ran; None if it never
            started.
        verification: The outcome of the expectations; None if there is none.
    """
    from nexmark.store import RepetitionRecord

    group = night.files.group(run.query)
    if group.has_failed:
        reason = f"not run, because it could not be prepared: {group.failure()}"
    elif verification is None and group.verify.result_file.exists():
        failure = group.verify.failure("the task `expectations` was not run, or killed")
        reason = f"not run, because the result could not be compared with the reference: {failure}"
    elif verification is None:
        reason = f"not run, because the verification run failed: {group.verify.failure()}"
    elif not verification.success:
        reason = "not run, because the result is wrong"
    else:
        reason = f"the application failed: {group.application(run.name).failure()}"
    return RepetitionRecord(night.name, **run.model_dump(), position=position, failed=reason)


def _measured(
    night: Night,
    run: Run,
    position: int | None,
    result: Json,
    samples: GroupSamples,
    wrong: str | None,
) -> RepetitionRecord:
    """Return the record of a repetition with a result file: with its measurement, or the reason.

    Args:
        night: The night.
        run: The repetition.
        position: Its place in the order in which its query's repetitions ran; None if unknown.
        result: The content of its result file.
        samples: The samples of its group.
        wrong: What is wrong with its rows; None if they are right.
    """
    from nexmark.measure.result_file import parse_result
    from nexmark.store import RepetitionRecord

    directory = night.files.application(run)
    path, events = directory.result_file, directory.events
    kind = kind_for(night, run.query)
    unmeasured = RepetitionRecord(
        night.name,
        run.query,
        run.number,
        arm=run.arm,
        stage=run.stage,
        position=position,
        result=result,
        result_path=path,
        event_log_path=events,
        event_log_bytes=sum(file.stat().st_size for file in events.rglob("*") if file.is_file()),
        invalid="it is not measured yet",
    )
    try:
        if samples.problem is not None:
            raise NexmarkError(samples.problem)
        parsed = parse_result(result, str(path))
        series = samples.series(parsed, str(result.get("label", path)))
        work = executor_work(directory, parsed)
        measurement = measured(night, parsed, [cpu for cpu, _ in series], work or ())
        if stalled := trouble(night, parsed, samples, work):
            raise NexmarkError(stalled)
        size = kind.timed_size(night, run)
        of_kind = kind.figures(night, directory, size, read_rate(parsed, measurement))
        figures = {**measurement.figures, **of_kind}
        latency = kind.latency(directory)
        ageing = kind.ageing(directory)
        measurement = dataclasses.replace(
            measurement, figures=figures, latency=latency, ageing=ageing
        )
    except NexmarkError as error:
        return dataclasses.replace(unmeasured, invalid=wrong or str(error))
    parts: list[Part] = []
    parts_problem = None
    if measurement.latency is None:  # a paced run's result has no batches of Spark's
        parts, parts_problem = event_log_parts(events, result, measurement)
    if run.arm == Arm.SLOWED:
        measurement = _as_if_fewer(measurement, night.workload.size_of(run.query).events)
    return dataclasses.replace(
        unmeasured,
        invalid=wrong,
        measurement=measurement,
        result=kind.shown_result(directory, result),
        series=series,
        parts=parts,
        parts_problem=parts_problem,
    )


def measured(
    night: Night,
    result: RunResult,
    series: Sequence[CpuSeries],
    work: Sequence[ExecutorWork] = (),
) -> Measurement:
    """Return the figures of a repetition; NexmarkError if it cannot be measured.

    Args:
        night: The night of the repetition.
        result: Its result.
        series: The CPU of each host.
        work: The executors with their tasks; () if the event log cannot be read.
    """
    from nexmark.measure.measurement import MIN_INTERVALS, measure_series

    return measure_series(
        result,
        series,
        executors=night.cluster.executors,
        warmup_batches=night.workload.warmup_batches,
        min_intervals=MIN_INTERVALS,
        killed=kind_for(night, result.query).loses_executors(night),
        work=work,
    )


def event_log_parts(
    events: Path, result: Mapping[str, JsonValue], measurement: Measurement
) -> tuple[list[Part], str | None]:
    """Return the parts of the work from the event log, and the reason if there are none.

    A repetition counts even if its event log cannot be read.
    """
    from nexmark.measure.operator_times import repetition_parts

    try:
        return repetition_parts(events, result, measurement), None
    except NexmarkError as error:
        return [], str(error)


def read_rate(result: RunResult, measurement: Measurement) -> float:
    """Return how many records per second all scans of a query together read from its topic."""
    scans = max(1, result.plan_text.count("StreamingRelation kafka"))
    return (measurement.steady_throughput or measurement.throughput) * scans


def _as_if_fewer(measurement: Measurement, events: int) -> Measurement:
    """Return the measurement of a seeded slowdown as if it had read only `events` events.

    So the CPU time of its additional events looks like a slowdown.
    """
    factor = measurement.events / events
    steady = measurement.cpu_s_per_mevent_steady
    of_tasks = measurement.figures.get(TASK_CPU)
    return dataclasses.replace(
        measurement,
        figures={
            **measurement.figures,
            **({} if of_tasks is None else {TASK_CPU: of_tasks * factor}),
        },
        cpu_s_per_mevent=measurement.cpu_s_per_mevent * factor,
        cpu_s_per_mevent_steady=None if steady is None else steady * factor,
        cpu_s_per_mevent_application=measurement.cpu_s_per_mevent_application * factor,
    )

"""From what an application left in its directory to the record of a repetition.

A repetition that was planned is never left out: it is right, wrong, unmeasured or not there, and
its record says which and why. It is right if it has read all events, and has put out the rows, by
number and an order-free digest,

- of the verified result, where the verification run read the same events (workload `smoke`) and the
  query appends: it puts every row out once, so the digest does not depend on the batches;
- else of the accepted baseline of the same events and batches, if there is one;
- else of more than half of the repetitions; without a majority none of them is right.

Without a digest (q12, whose windows use processing time) only the events are checked.
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
from nexmark.model import Arm, grouped
from nexmark.night.kinds import kind_of
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import Json, Run
from nexmark.night.verification import Verification
from nexmark.sampling.group_samples import GroupSamples, trouble

if TYPE_CHECKING:
    from nexmark.measure.cpu_series import CpuSeries
    from nexmark.measure.executed_plan import Part
    from nexmark.measure.measurement import Measurement
    from nexmark.measure.result_file import RunResult
    from nexmark.store import RepetitionRecord, Store


_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Produced:
    """The input and output of one application; `digest` is None where there is none."""

    input_rows: int
    output_rows: int
    digest: str | None


class ResultOutput(BaseModel):
    """What the rows of a repetition are compared by, of its result file."""

    formulation: str
    output_mode: str
    input_rows: int
    output_rows: int
    digest: str | None

    @property
    def produced(self) -> Produced:
        """Return the input and the output alone."""
        return Produced(self.input_rows, self.output_rows, self.digest)


@dataclass(frozen=True)
class Expected:
    """The right digest and row count, and where they are from, for messages."""

    output_rows: int
    digest: str
    origin: str


def faults(
    events: int, produced: Mapping[_Key, Produced], expected: Expected | None
) -> dict[_Key, str]:
    """Return the problem of each wrong repetition in one line, by its key.

    `events` is the number of events that each should read; `expected` None where nothing is known.
    """
    problems = {
        key: f"read {each.input_rows} of {events} events"
        for key, each in produced.items()
        if each.input_rows != events
    }
    whole = {
        key: each
        for key, each in produced.items()
        if key not in problems and each.digest is not None
    }
    if expected is None:
        expected = _majority(whole)
        if expected is None:
            digests = ", ".join(sorted({str(p.digest) for p in whole.values()}))
            return problems | dict.fromkeys(whole, f"the repetitions disagree: digests {digests}")
    for key, each in whole.items():
        if (each.digest, each.output_rows) != (expected.digest, expected.output_rows):
            problems[key] = (
                f"put out {each.output_rows} rows with digest {each.digest}, but {expected.origin} "
                f"has {expected.output_rows} rows with digest {expected.digest}"
            )
    return problems


def _majority(produced: Mapping[_Key, Produced]) -> Expected | None:
    counts = Counter((p.digest, p.output_rows) for p in produced.values())
    for (digest, rows), count in counts.most_common(1):
        if 2 * count > len(produced):
            return Expected(rows, str(digest), "most repetitions' result")
    return None


def repetition_records(night: Night, runs: Sequence[Run], store: Store) -> list[RepetitionRecord]:
    """Return the record of each of `runs`, which are of one query and have ended."""
    (query,) = {run.query for run in runs}
    verification = Verification.read(night.query_dir(query))
    results = {run: left for run in runs if (left := result_of(night, run)) is not None}
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
    """Return the place of each of `runs` by when it ran, from 1; none of what never started.

    A repetition that was tried again ran when it was tried last, behind those that went on
    meanwhile: so this is not always the order that was planned.
    """
    ran = night.files.last_spans()
    began = {run: ran[run.label].start for run in runs if run.label in ran}
    return {run: place for place, run in enumerate(sorted(began, key=began.__getitem__), start=1)}


def result_of(night: Night, run: Run) -> Json | None:
    """Return the content of the result file of a repetition, None if it has none."""
    return night.files.application(run).result()


def _wrong(
    night: Night,
    query: str,
    results: Mapping[Run, Json],
    verification: Verification | None,
    store: Store,
) -> dict[Run, str]:
    """Return what is wrong with the rows of repetitions; the slowed ones have read other events."""
    if not kind_of(night.workload).compares_digests:
        return {}
    runs = [run for run in results if run.arm != Arm.SLOWED]
    problems: dict[Run, str] = {}
    outputs = {run: ResultOutput.model_validate(results[run]) for run in runs}
    for same in grouped(runs, lambda run: outputs[run].formulation).values():
        first = outputs[same[0]]
        expected = _verified(night, query, first, verification)
        expected = expected or _accepted(night, query, first, store)
        produced = {run: outputs[run].produced for run in same}
        problems |= faults(night.workload.size_of(query).events, produced, expected)
    return problems


def _verified(
    night: Night, query: str, timed: ResultOutput, verification: Verification | None
) -> Expected | None:
    """Return the verified result of the events that were timed, for append queries."""
    if not (night.workload.verifies_the_timed_input(query) and timed.output_mode == "append"):
        return None
    result = night.files.group(query).verify.result()
    if verification is None or not verification.success or not result:
        return None
    verified = ResultOutput.model_validate(result)
    if not verified.digest:
        return None
    return Expected(verified.output_rows, verified.digest, "the verified result")


def _accepted(night: Night, query: str, timed: ResultOutput, store: Store) -> Expected | None:
    """Return the accepted baseline's output, where it ran the same jobs over the same events."""
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
    from nexmark.store import RepetitionRecord

    group = night.files.group(run.query)
    if group.has_failed:
        reason = f"not run, because it could not be prepared: {group.failure()}"
    elif verification is None and group.verify.result_file.exists():
        why = group.verify.failure("the task `expectations` was not run, or killed")
        reason = f"not run, because the result could not be compared with the reference: {why}"
    elif verification is None:
        why = group.verify.failure()
        reason = f"not run, because the verification run failed: {why}"
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
    """Return the record of a repetition that has left a result.

    Args:
        night: The night.
        run: The repetition.
        position: Its place among the repetitions of its query and stage, by when it ran, from 1.
        result: The content of its result file.
        samples: The samples of its group.
        wrong: What is wrong with its rows; None where they are right.
    """
    from nexmark.measure.result_file import parse_result
    from nexmark.store import RepetitionRecord

    directory = night.files.application(run)
    path, events = directory.result_file, directory.events
    kind = kind_of(night.workload)
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
        measurement = measured(night, parsed, [cpu for cpu, _ in series])
        if stalled := trouble(night, directory, parsed, samples):
            raise NexmarkError(stalled)
        size = kind.timed_size(night, run)
        figures = kind.figures(night, directory, size, read_rate(parsed, measurement))
        latency = kind.latency(directory)
        measurement = dataclasses.replace(measurement, figures=figures, latency=latency)
    except NexmarkError as error:
        return dataclasses.replace(unmeasured, invalid=wrong or str(error))
    parts: list[Part] = []
    parts_problem = None
    if measurement.latency is None:  # else the batches of the result are none of Spark's
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


def measured(night: Night, result: RunResult, series: Sequence[CpuSeries]) -> Measurement:
    """Return the figures of a repetition; NexmarkError where it cannot be measured."""
    from nexmark.measure.measurement import MIN_INTERVALS, measure_series

    return measure_series(
        result,
        series,
        executors=night.cluster.executors,
        warmup_batches=night.workload.warmup_batches,
        min_intervals=MIN_INTERVALS,
        killed=kind_of(night.workload).loses_executors(night),
    )


def event_log_parts(
    events: Path, result: Mapping[str, JsonValue], measurement: Measurement
) -> tuple[list[Part], str | None]:
    """Return the parts of the work by the event log, and why there are none, if there are none.

    An unreadable log does no harm to a repetition.
    """
    from nexmark.measure.operator_times import repetition_parts

    try:
        return repetition_parts(events, result, measurement), None
    except NexmarkError as error:
        return [], str(error)


def read_rate(result: RunResult, measurement: Measurement) -> float:
    """Records per second that a query reads from its topic, by all of its scans together."""
    scans = max(1, result.plan_text.count("StreamingRelation kafka"))
    return (measurement.steady_throughput or measurement.throughput) * scans


def _as_if_fewer(measurement: Measurement, events: int) -> Measurement:
    """Return the repetition of a seeded slowdown: its additional events count as none."""
    more = measurement.events / events
    steady = measurement.cpu_s_per_mevent_steady
    return dataclasses.replace(
        measurement,
        cpu_s_per_mevent=measurement.cpu_s_per_mevent * more,
        cpu_s_per_mevent_steady=None if steady is None else steady * more,
        cpu_s_per_mevent_application=measurement.cpu_s_per_mevent_application * more,
    )

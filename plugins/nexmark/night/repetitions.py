"""From what an application left in its directory to the record of a repetition.

A repetition that was planned is never left out: it is right, wrong, unmeasured or not there, and
its record says which and why.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexmark.errors import NexmarkError
from nexmark.model import P50, P99, Arm
from nexmark.night.correctness import Expected, Produced, faults
from nexmark.night.executor_shares import trouble
from nexmark.night.kafka_input import source_figures
from nexmark.night.paced_night import paced_figures
from nexmark.night.plan import Night
from nexmark.night.recovery_night import recovery_figures, recovery_splits
from nexmark.night.run_directory import has_failure, last_starts, read_failure
from nexmark.night.runs import Run, group
from nexmark.night.sampled import Samples
from nexmark.night.verification import Verification

if TYPE_CHECKING:
    from nexmark.measure.measurement import Measurement
    from nexmark.measure.result_file import RunResult
    from nexmark.store import RepetitionRecord, Store

VERIFIED = "the verified result"


def repetition_records(night: Night, runs: Sequence[Run], store: Store) -> list[RepetitionRecord]:
    """The record of each of `runs`, which are of one query and have ended."""
    (query,) = {run.query for run in runs}
    verification = Verification.read(night.query_dir(query))
    results = {run: found for run in runs if (found := result_of(night, run)) is not None}
    wrong = _wrong(night, query, results, verification, store)
    samples = {
        name: Samples.read(night, night.query_dir(name)) for name in {group(run) for run in runs}
    }
    positions = _positions(night, runs)
    return [
        _measured(night, run, positions.get(run), results[run], samples[group(run)], wrong.get(run))
        if run in results
        else _absent(night, run, positions.get(run), verification)
        for run in runs
    ]


def _positions(night: Night, runs: Sequence[Run]) -> dict[Run, int]:
    """The place of each of `runs` among them by when it ran, from 1; none of what never started.

    A repetition that was tried again ran when it was tried last, behind those that went on
    meanwhile: so this is not always the order that was planned.
    """
    starts = last_starts(night.directory)
    began = {run: starts[label] for run in runs if (label := f"{run.query} {run.name}") in starts}
    return {run: place for place, run in enumerate(sorted(began, key=began.__getitem__), start=1)}


def result_of(night: Night, run: Run) -> dict[str, Any] | None:
    """The result file of a repetition, None if it has none."""
    return _result(night.query_dir(run.query) / run.name)


def _result(directory: Path) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = json.loads((directory / "result.json").read_text())
    except FileNotFoundError:
        return None
    return content


def _wrong(
    night: Night,
    query: str,
    results: Mapping[Run, Mapping[str, Any]],
    verification: Verification | None,
    store: Store,
) -> dict[Run, str]:
    """Which repetitions did not produce the right rows, and what is wrong.

    Those with the seeded slowdown have read other events, so their rows are nobody's.
    """
    if night.workload.recovery:  # each table is compared with the reference
        return {}
    alike: dict[str, dict[Run, Mapping[str, Any]]] = {}
    for run, result in results.items():
        if run.arm != Arm.SLOWED:
            alike.setdefault(result["formulation"], {})[run] = result
    found: dict[Run, str] = {}
    for same in alike.values():
        first = next(iter(same.values()))
        expected = _verified(night, query, first, verification)
        expected = expected or _accepted(night, query, first, store)
        produced = {run: _produced(result) for run, result in same.items()}
        found |= faults(night.workload.events, produced, expected)
    return found


def _produced(result: Mapping[str, Any]) -> Produced:
    return Produced(result["input_rows"], result["output_rows"], result["digest"])


def _verified(
    night: Night, query: str, timed: Mapping[str, Any], verification: Verification | None
) -> Expected | None:
    """The verified result of the very events that were timed, for append queries."""
    if not (night.workload.verifies_the_timed_input and timed["output_mode"] == "append"):
        return None
    result = _result(night.query_dir(query) / "verify")
    if verification is None or not verification.success or not result or not result["digest"]:
        return None
    return Expected(result["output_rows"], result["digest"], VERIFIED)


def _accepted(night: Night, query: str, timed: Mapping[str, Any], store: Store) -> Expected | None:
    """Return the accepted baseline's output, where it ran the same jobs over the same events."""
    from nexmark.model import JUDGED

    place = (night.engine.name, night.workload.name, night.cluster.name)
    accepted = store.accepted(*place, datetime.now(UTC)).get(query)
    if accepted is None:
        return None
    baseline, ours = store.night(accepted.night_id), store.night(night.name)
    if (baseline.shape, baseline.jobs) != (ours.shape, ours.jobs):
        return None
    for row in store.repetitions(baseline.id):
        same = row.query == query and row.ok and row.formulation == timed["formulation"]
        same = same and row.stage in JUDGED
        if same and row.digest is not None and row.output_rows is not None:
            return Expected(row.output_rows, row.digest, f"the baseline {baseline.id}")
    return None


def _absent(
    night: Night, run: Run, position: int | None, verification: Verification | None
) -> RepetitionRecord:
    from nexmark.store import RepetitionRecord

    directory = night.query_dir(run.query)
    if has_failure(directory):
        reason = f"not run, because its cluster cannot be made whole: {read_failure(directory)}"
    elif verification is None and _result(directory / "verify"):
        reason = "not run, because the result could not be compared with the reference"
    elif verification is None:
        why = read_failure(directory / "verify")
        reason = f"not run, because the verification run failed: {why}"
    elif not verification.success:
        reason = "not run, because the result is wrong"
    else:
        reason = f"the application failed: {read_failure(directory / run.name)}"
    return RepetitionRecord(night.name, **_identity(run, position), failed=reason)


def _measured(
    night: Night,
    run: Run,
    position: int | None,
    result: Mapping[str, Any],
    samples: Samples,
    wrong: str | None,
) -> RepetitionRecord:
    from nexmark.measure.measurement import MIN_INTERVALS, measure_series
    from nexmark.measure.result_file import parse_result
    from nexmark.store import RepetitionRecord, SeriesRecord

    directory = night.query_dir(run.query) / run.name
    path, events = directory / "result.json", directory / "events"
    kept: dict[str, Any] = {
        **_identity(run, position),
        "result": result,
        "result_path": path,
        "event_log_path": events,
        "event_log_bytes": _size(events),
    }
    try:
        if samples.problem is not None:
            raise NexmarkError(samples.problem)
        parsed = parse_result(result, str(path))
        found = samples.series(parsed.application_id, result.get("label", str(path)))
        measurement = measure_series(
            parsed,
            [series for series, _ in found],
            executors=night.cluster.executors,
            warmup_batches=night.workload.warmup_batches,
            min_intervals=MIN_INTERVALS,
            killed=bool(night.workload.recovery and night.workload.recovery.kill == "executor"),
        )
        if stalled := trouble(night, directory, parsed, samples):
            raise NexmarkError(stalled)
        size = night.slowed if run.arm == Arm.SLOWED else night.workload
        figures = source_figures(night, directory, size, read_rate(parsed, measurement))
        figures |= recovery_figures(directory)
        if (pace := paced_figures(directory)) is not None:
            if pace["invalid"]:
                raise NexmarkError(pace["invalid"])
            figures |= {P50: pace["p50"], P99: pace["p99"]}
        histogram = pace["histogram"] if pace else None
        measurement = dataclasses.replace(measurement, figures=figures, latency=histogram)
    except NexmarkError as error:
        return RepetitionRecord(night.name, **kept, invalid=wrong or str(error))
    if measurement.latency is None:  # else the batches of the result are none of Spark's
        kept |= event_log_parts(events, result, measurement)
    if run.arm == Arm.SLOWED:
        measurement = _as_if_fewer(measurement, night.workload.events)
    if (splits := recovery_splits(directory)) is not None:
        kept["result"] = {**result, "batches": splits["batches"]}
    kept["series"] = [SeriesRecord(series, path) for series, path in found]
    return RepetitionRecord(night.name, **kept, measurement=measurement, invalid=wrong)


def event_log_parts(
    events: Path, result: Mapping[str, Any], measurement: Measurement
) -> dict[str, Any]:
    """Return the parts in the event log; an unreadable log does no harm to a repetition."""
    from nexmark.measure.operator_times import repetition_parts

    try:
        return {"parts": repetition_parts(events, result, measurement)}
    except NexmarkError as error:
        return {"parts_problem": str(error)}


def read_rate(result: RunResult, measurement: Measurement) -> float:
    """Records per second that a query reads from its topic, by all of its scans together."""
    scans = max(1, result.plan_text.count("StreamingRelation kafka"))
    return (measurement.steady_throughput or measurement.throughput) * scans


def _as_if_fewer(measurement: Measurement, events: int) -> Measurement:
    """Return the repetition of a seeded slowdown: its additional events count as none."""
    more = measurement.events / events
    names = ("cpu_s_per_mevent", "cpu_s_per_mevent_steady", "cpu_s_per_mevent_application")
    costs: dict[str, Any] = {}
    for name in names:
        figure = getattr(measurement, name)
        costs[name] = None if figure is None else figure * more
    return dataclasses.replace(measurement, **costs)


def _identity(run: Run, position: int | None) -> dict[str, Any]:
    return {
        "query": run.query,
        "number": run.number,
        "arm": run.arm,
        "stage": run.stage,
        "position": position,
    }


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())

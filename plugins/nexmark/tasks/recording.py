"""The last task of a query: every repetition that was planned goes into the results database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from nexmark.config import paths
from nexmark.errors import NexmarkError
from nexmark.tasks.correctness import Expected, Produced, faults
from nexmark.tasks.night import Deployment, Night
from nexmark.tasks.operators import read_failure
from nexmark.tasks.outcome import Verification
from nexmark.tasks.progress import say
from nexmark.tasks.sampling import clock_offset_s, host_samples_path, samples_path

if TYPE_CHECKING:
    from nexmark.measure.cpu import CpuSeries
    from nexmark.measure.samples import HostSamples
    from nexmark.store import RepetitionRecord, Store

VERIFIED = "the verified result"


def record(query: str) -> None:
    """Measure and record every planned repetition of `query`: right, wrong, or not there."""
    from nexmark.store import ValidationRecord, open_store

    night = Night.current()
    if query not in night.queries:
        raise AirflowSkipException(f"{query} is not among the queries of this night")
    run = run_name(night)
    verification = Verification.read(night.query_dir(query))
    with open_store(paths.database_url()) as store:
        if verification is not None:
            store.record_validation(
                ValidationRecord(
                    run,
                    query,
                    success=verification.success,
                    failures=verification.failures,
                    evaluated=verification.evaluated,
                    statistics=verification.statistics,
                )
            )
        results = _results(night, query)
        wrong = _wrong(night, query, results, verification, store)
        samples = _read_samples(night, query)
        for number in range(1, night.workload.repetitions + 1):
            result = results.get(number)
            if result is None:
                made = _absent(night, query, number, verification)
            else:
                made = _measured(night, query, number, result, samples, wrong.get(number))
            store.record_repetition(made)
            say(f"{night.position(query)} {_summary(made, night)}")


def record_night(night: Night, deployment: Deployment) -> None:
    """Record that the night has begun, and on which build."""
    from datetime import UTC, datetime

    from nexmark.store import BuildRecord, NightRecord, open_store

    build = BuildRecord(deployment.build, deployment.spark_version, deployment.source)
    with open_store(paths.database_url()) as store:
        store.record_night(
            NightRecord(
                dag_id=night.dag_id,
                run_id=night.run_id,
                engine=night.engine.name,
                workload=night.workload.name,
                cluster=night.cluster.name,
                build=build,
                jobs=deployment.jobs,
                workload_spec=night.workload.model_dump(mode="json"),
                cluster_spec=night.cluster.model_dump(mode="json"),
                queries=night.queries,
                repetitions=night.workload.repetitions,
                directory=night.directory,
                started=datetime.now(UTC),
            )
        )


def run_name(night: Night) -> str:
    """The name of the night in the results database."""
    return f"{night.dag_id}/{night.run_id}"


@dataclass(frozen=True)
class _Samples:
    """The samples of this machine and of each host, by path, or why there are none."""

    here: HostSamples | None
    hosts: Mapping[Path, HostSamples]
    problem: str | None
    path: Path

    def series(self, application: str, label: str) -> list[tuple[CpuSeries, Path]]:
        """The CPU of an application; where hosts are sampled, this machine has the driver only."""
        from nexmark.measure.cpu import application_cpu

        assert self.here is not None
        here = application_cpu(self.here, application, label)
        if not self.hosts:
            return [(here, self.path)]
        hosts = [
            (application_cpu(samples, application).without_driver(), path)
            for path, samples in self.hosts.items()
        ]
        return [(here.without_executors(), self.path), *hosts]


def _read_samples(night: Night, query: str) -> _Samples:
    from nexmark.measure.samples import read_samples

    path = samples_path(night, query)
    directory = night.query_dir(query)
    try:
        hosts = {
            host_samples_path(directory, host): read_samples(
                host_samples_path(directory, host), clock_offset_s(directory, host)
            )
            for host in night.spark_cluster.sampled_hosts
        }
        return _Samples(read_samples(path), hosts, None, path)
    except NexmarkError as error:
        return _Samples(None, {}, str(error), path)


def _results(night: Night, query: str) -> dict[int, dict[str, Any]]:
    """The result file of each repetition that has one."""
    found = {}
    for number in range(1, night.workload.repetitions + 1):
        result = _result(night.repetition_dir(query, number))
        if result is not None:
            found[number] = result
    return found


def _result(directory: Path) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = json.loads((directory / "result.json").read_text())
    except FileNotFoundError:
        return None
    return content


def _wrong(
    night: Night,
    query: str,
    results: Mapping[int, Mapping[str, Any]],
    verification: Verification | None,
    store: Store,
) -> dict[int, str]:
    """Which repetitions did not produce the right rows, and what is wrong."""
    if not results:
        return {}
    produced = {number: _produced(result) for number, result in results.items()}
    first = next(iter(results.values()))
    expected = _verified(night, query, first, verification) or _accepted(night, query, first, store)
    return faults(night.workload.events, produced, expected)


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
    """What the accepted baseline put out, where it ran the same jobs over the same events."""
    place = (night.engine.name, night.workload.name, night.cluster.name)
    accepted = [row for row in store.acceptances(*place) if row.query == query]
    if not accepted:
        return None
    baseline, ours = store.night(accepted[-1].night_id), store.night(run_name(night))
    if (baseline.shape, baseline.jobs) != (ours.shape, ours.jobs):
        return None
    for row in store.repetitions(baseline.id):
        same = row.query == query and row.ok and row.formulation == timed["formulation"]
        if same and row.digest is not None and row.output_rows is not None:
            return Expected(row.output_rows, row.digest, f"the baseline {baseline.id}")
    return None


def _absent(
    night: Night, query: str, number: int, verification: Verification | None
) -> RepetitionRecord:
    from nexmark.store import RepetitionRecord

    if verification is None and _result(night.query_dir(query) / "verify"):
        reason = "not run, because the result could not be compared with the reference"
    elif verification is None:
        why = read_failure(night.query_dir(query) / "verify")
        reason = f"not run, because the verification run failed: {why}"
    elif not verification.success:
        reason = "not run, because the result is wrong"
    else:
        why = read_failure(night.repetition_dir(query, number))
        reason = f"the application failed: {why}"
    return RepetitionRecord(run_name(night), query, number, failed=reason)


def _measured(
    night: Night,
    query: str,
    number: int,
    result: Mapping[str, Any],
    samples: _Samples,
    wrong: str | None,
) -> RepetitionRecord:
    from nexmark.measure.measurement import MIN_INTERVALS, measure_series
    from nexmark.measure.result import parse_result
    from nexmark.store import RepetitionRecord, SeriesRecord

    directory = night.repetition_dir(query, number)
    path, events = directory / "result.json", directory / "events"
    kept: dict[str, Any] = {
        "result": result,
        "result_path": path,
        "event_log_path": events,
        "event_log_bytes": _size(events),
    }
    try:
        if samples.problem is not None:
            raise NexmarkError(samples.problem)
        parsed = parse_result(result, str(path))
        found = samples.series(parsed.application_id, str(path))
        measurement = measure_series(
            parsed,
            [series for series, _ in found],
            executors=night.cluster.executors,
            warmup_batches=night.workload.warmup_batches,
            min_intervals=MIN_INTERVALS,
        )
    except NexmarkError as error:
        kept["invalid"] = wrong or str(error)
        return RepetitionRecord(run_name(night), query, number, **kept)
    kept["series"] = [SeriesRecord(series, path) for series, path in found]
    return RepetitionRecord(
        run_name(night), query, number, measurement=measurement, invalid=wrong, **kept
    )


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _summary(made: RepetitionRecord, night: Night) -> str:
    label = f"repetition {made.number}/{night.workload.repetitions}"
    problem = made.failed or made.invalid
    if problem:
        return f"{label}: {made.status.upper()}: {problem}"
    figures = made.measurement
    assert figures is not None
    return (
        f"{label}: {figures.events:,} events in {figures.wall_s:.1f} s, "
        f"{figures.cores:.2f} cores, {figures.cpu_s_per_mevent:.1f} CPU-s per million events "
        f"({figures.basis})"
    )


__all__ = ["record", "record_night", "run_name"]

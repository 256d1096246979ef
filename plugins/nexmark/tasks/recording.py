"""The last task of a query: every repetition that was planned goes into the results database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowSkipException

from nexmark.config import CANDIDATE, paths
from nexmark.tasks.canaries import canary_records
from nexmark.tasks.night import Deployment, Deployments, Night
from nexmark.tasks.outcome import Verification
from nexmark.tasks.progress import say
from nexmark.tasks.repetitions import repetition_records
from nexmark.tasks.runs import FIRST, FRESH, first_runs

if TYPE_CHECKING:
    from nexmark.store import BuildRecord, RepetitionRecord


def record(query: str) -> None:
    """Measure and record every planned repetition of `query`: right, wrong, or not there."""
    from nexmark.store import ValidationRecord, open_store

    night = Night.current()
    if query not in night.queries:
        raise AirflowSkipException(f"{query} is not among the queries of this night")
    verification = Verification.read(night.query_dir(query))
    with open_store(paths.database_url()) as store:
        if verification is not None:
            store.record_validation(
                ValidationRecord(
                    night.name,
                    query,
                    success=verification.success,
                    failures=verification.failures,
                    evaluated=verification.evaluated,
                    statistics=verification.statistics,
                )
            )
        store.record_canary(night.name, canary_records(night, query))
        for made in repetition_records(night, first_runs(night, query), store):
            store.record_repetition(made)
            say(f"{night.position(query)} {summary(made, night)}")


def record_night(night: Night, deployments: Deployments) -> None:
    """Record that the night has begun, and on which builds."""
    from datetime import UTC, datetime

    from nexmark.store import NightRecord, open_store

    deployment = deployments.candidate
    with open_store(paths.database_url()) as store:
        store.record_night(
            NightRecord(
                dag_id=night.dag_id,
                run_id=night.run_id,
                engine=night.engine.name,
                workload=night.workload.name,
                cluster=night.cluster.name,
                build=_build(deployment),
                jobs=deployment.jobs,
                workload_spec=night.workload.model_dump(mode="json"),
                cluster_spec=night.cluster.model_dump(mode="json"),
                queries=night.queries,
                repetitions=night.workload.repetitions,
                directory=night.directory,
                started=datetime.now(UTC),
                mode=night.mode,
                baselines={query: each.build for query, each in deployments.baselines.items()},
                seed=night.seed,
                gate_spec=night.gate.model_dump(mode="json"),
                candidate_conf=night.candidate_conf,
            )
        )


def summary(made: RepetitionRecord, night: Night) -> str:
    """One line on a repetition."""
    arm = "" if made.arm == CANDIDATE else f" ({made.arm})"
    of = {FIRST: f"/{night.workload.repetitions}", FRESH: ", fresh"}.get(made.stage, ", recorded")
    label = f"repetition {made.number}{of}{arm}"
    problem = made.failed or made.invalid
    if problem:
        return f"{label}: {made.status.upper()}: {problem}"
    figures = made.measurement
    assert figures is not None
    return (
        f"{label}: {figures.events:,} events in {figures.wall_s:.1f} s, "
        f"{figures.cores:.2f} cores, {figures.cpu_s_per_mevent:.1f} CPU-s per million events "
        f"({figures.basis})"
        + (f"; no operators: {made.parts_problem}" if made.parts_problem else "")
    )


def _build(deployment: Deployment) -> BuildRecord:
    from nexmark.store import BuildRecord

    return BuildRecord(deployment.build, deployment.spark_version, deployment.source)


__all__ = ["record", "record_night", "summary"]

"""The last task of a query: every repetition that was planned goes into the results database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowSkipException

from nexmark.config import paths
from nexmark.model import Arm, Stage, metric_of
from nexmark.night.executor_shares import dropped
from nexmark.night.night_progress import say
from nexmark.night.plan import Deployment, Deployments, Night
from nexmark.night.repetitions import repetition_records
from nexmark.night.runs import Run, first_runs, position
from nexmark.night.verification import Verification
from nexmark.tasks.canaries import canary_records
from nexmark.tasks.context import current_night

if TYPE_CHECKING:
    from nexmark.store import BuildRecord, RepetitionRecord


def record(query: str) -> None:
    """Measure and record every planned repetition of `query`: right, wrong, or not there."""
    from nexmark.store import ValidationRecord, open_store

    night = current_night()
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
            say(f"{position(night, query)} {summary(made, night)}")


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
                teaches=night.teaches,
                baseline_builds=[_build(each) for each in deployments.baselines.values()],
            )
        )


def summary(made: RepetitionRecord, night: Night) -> str:
    """One line on a repetition."""
    arm = "" if made.arm == Arm.CANDIDATE else f" ({made.arm})"
    stages: dict[int, str] = {
        Stage.FIRST: f"/{night.workload.repetitions}",
        Stage.FRESH: ", fresh",
    }
    of = stages.get(made.stage, ", recorded")
    label = f"repetition {made.number}{of}{arm}"
    again = " (measured again)" if _was_dropped(made, night) else ""
    problem = made.failed or made.invalid
    if problem:
        return f"{label}{again}: {made.status.upper()}: {problem}"
    figures = made.measurement
    assert figures is not None
    return (
        f"{label}{again}: {figures.events:,} events in {figures.wall_s:.1f} s, "
        f"{figures.cores:.2f} cores, {figures.cpu_s_per_mevent:.1f} CPU-s per million events "
        f"({figures.basis})"
        + "".join(
            f", {metric_of(name).heading} {value:,.1f}"
            for name, value in figures.figures.items()
            if metric_of(name).tabled
        )
        + (f"; no operators: {made.parts_problem}" if made.parts_problem else "")
    )


def _was_dropped(made: RepetitionRecord, night: Night) -> bool:
    run = Run(query=made.query, number=made.number, arm=made.arm, stage=made.stage)
    return dropped(night.query_dir(made.query) / run.name) is not None


def _build(deployment: Deployment) -> BuildRecord:
    from nexmark.store import BuildRecord

    return BuildRecord(deployment.build, deployment.spark_version, deployment.source)

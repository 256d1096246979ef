"""Record a night in the results database: its beginning, each query, or all that is lacking."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nexmark.config import paths
from nexmark.model import CPU, FIRST_ROUND, PROFILED, Arm, Say, grouped, metric_of
from nexmark.night.changed_jobs import recorded
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say
from nexmark.night.night_runs import later_groups, position, runs_of
from nexmark.night.run_directory import Moment, Run, UpgradeOutcome
from nexmark.night.verification import Verification
from nexmark.recording.repetitions import repetition_records

if TYPE_CHECKING:
    from nexmark.store import NightRecord, RepetitionRecord, Store
    from nexmark.store.table_rows import CanaryRow, CompatibilityRow

_MOMENTS: tuple[Moment, ...] = ("before", "after")


def results() -> "Store":
    """Open the results database."""
    from nexmark.store import open_store

    return open_store(paths.database_url())


@contextmanager
def results_of(night: Night) -> "Iterator[Store]":
    """Open the results database; where it fails, say how to record the night later."""
    from nexmark.store import Refused, StoreError, UnknownNight

    try:
        with results() as store:
            yield store
    except (Refused, UnknownNight):
        raise
    except StoreError:
        say(f"the results of this night are not lost: they are kept in {night.directory}")
        say(f"when the database can be written again: nexmark record --run '{night.name}'")
        raise


def record_night(night: Night, deployments: Deployments) -> None:
    """Record that the night has begun, with the builds that it measures."""
    with results() as store:
        store.record_night(night_record(night, deployments, datetime.now(UTC)))


def night_record(night: Night, deployments: Deployments, started: datetime) -> "NightRecord":
    """Return the record with which a night begins in the results database."""
    from nexmark.store import BuildRecord, NightRecord

    def build_of(deployment: Deployment) -> BuildRecord:
        revision = deployment.revision or None
        return BuildRecord(deployment.build, deployment.spark_version, deployment.source, revision)

    candidate = deployments.candidate
    return NightRecord(
        dag_id=night.dag_id,
        run_id=night.run_id,
        engine=night.engine.name,
        workload=night.workload.name,
        cluster=night.cluster.name,
        build=build_of(candidate),
        jobs=candidate.program,
        workload_spec=night.workload.model_dump(mode="json"),
        cluster_spec=night.cluster.model_dump(mode="json"),
        queries=night.queries,
        repetitions=night.workload.repetitions,
        directory=night.directory,
        started=started,
        mode=night.mode,
        baselines={query: baseline.build for query, baseline in deployments.baselines.items()},
        seed=night.seed,
        gate_spec=night.gate.model_dump(mode="json"),
        candidate_conf={
            **night.candidate_conf,
            **recorded(night.candidate_job, night.candidate_jobs),
        },
        teaches=night.teaches,
        baseline_builds=[build_of(baseline) for baseline in deployments.baselines.values()],
        started_by=night.started_by,
    )


def record_lacking(night: Night, store: "Store", say: Say) -> int:
    """Record the parts of a night that the database lacks; return their number.

    A part is the night itself, a query, a later round, the repetitions with a flight recorder, or
    whether running queries survive the upgrade.
    """
    parts = 0
    if not store.recorded(night.name):
        deployments = Deployments.read(night)
        store.record_night(night_record(night, deployments, deployments.written(night)))
        parts += 1
    for group in lacking(night, store):
        say(f"{group}: was not recorded; is recorded now")
        record_group(night, group, store, say)
        parts += 1
    outcomes = night.files.upgrade_outcomes()
    known = {(row.query, row.outcome, row.reason) for row in store.compatibility(night.name)}
    kept = {(outcome.query, outcome.outcome, outcome.reason) for outcome in outcomes}
    if kept and kept != known:
        store.record_compatibility(night.name, _compatibility_rows(outcomes))
        parts += 1
    return parts


def lacking(night: Night, store: "Store") -> list[str]:
    """Return the queries and later groups that lack a repetition or a check in the database."""
    rows = store.repetitions(night.name, leave_out=("batch_list", "confs"))
    recorded = {(row.query, row.arm, row.stage, row.number) for row in rows}
    validated = {row.query for row in store.validations(night.name)}
    watched = {row.group for row in store.canaries(night.name)}

    def lacks(group: str) -> bool:
        planned = runs_of(night, group)
        if not {(run.query, run.arm, run.stage, run.number) for run in planned} <= recorded:
            return True
        if group not in watched and canary_records(night, group):
            return True
        return group not in validated and Verification.read(night.query_dir(group)) is not None

    return [group for group in (*night.queries, *later_groups(night.gate)) if lacks(group)]


def record_group(night: Night, group: str, store: "Store", say: Say) -> None:
    """Measure and record every planned repetition of a query, or of a later group.

    Args:
        night: The night.
        group: The query, the later round, or `flames`.
        store: The results database.
        say: Called with a line on each repetition.
    """
    from nexmark.store import ValidationRecord

    verification = Verification.read(night.query_dir(group))
    if verification is not None:
        store.record_validation(ValidationRecord(night.name, group, **dict(verification)))
    store.record_canary(night.name, canary_records(night, group))
    # Repetitions with a flight recorder are a set of their own: they have no vote on which result
    # is right.
    sets = grouped(runs_of(night, group), lambda run: (run.query, run.stage == PROFILED))
    for runs in sets.values():
        for repetition in repetition_records(night, runs, store):
            store.record_repetition(repetition)
            say(f"{position(night, repetition.query)} {summary(repetition, night)}")


def canary_records(night: Night, group: str) -> "list[CanaryRow]":
    """Return the rows of the canary's readings before and after a group."""
    from nexmark.store.table_rows import CanaryRow

    records = []
    for moment in _MOMENTS:
        if (kept := night.files.group(group).canary(moment)) is None:
            continue
        readings, taken = kept
        records += [
            CanaryRow(
                group=group, moment=moment, taken=taken, host=host, metric=metric, value=value
            )
            for reading in readings
            for host, metrics in reading.items()
            for metric, value in metrics.items()
        ]
    return records


def summary(repetition: "RepetitionRecord", night: Night) -> str:
    """Return the line that is printed for a repetition: its figures, or why it has none."""
    arm = "" if repetition.arm == Arm.CANDIDATE else f" ({repetition.arm})"
    stages = {FIRST_ROUND: f"/{night.workload.repetitions}", PROFILED: ", recorded"}
    of = stages.get(repetition.stage, f", round {repetition.stage}")
    label = f"repetition {repetition.number}{of}{arm}"
    run = Run(
        query=repetition.query,
        number=repetition.number,
        arm=repetition.arm,
        stage=repetition.stage,
    )
    was_dropped = night.files.application(run).dropped() is not None
    again = " (measured again)" if was_dropped else ""
    if problem := repetition.failed or repetition.invalid:
        return f"{label}{again}: {repetition.status.upper()}: {problem}"
    measurement = repetition.measurement
    assert measurement is not None
    metrics = ((metric_of(name), value) for name, value in measurement.figures.items())
    more = "".join(f", {metric.heading} {value:,.1f}" for metric, value in metrics if metric.tabled)
    problem = repetition.parts_problem
    lacking = f"; no operators: {problem}" if problem else ""
    cpu = metric_of(CPU)
    return (
        f"{label}{again}: {measurement.events:,} events in {measurement.wall_s:.1f} s, "
        f"{measurement.cores:.2f} cores, {cpu.text(measurement.cpu_s_per_mevent)} {cpu.unit} "
        f"({measurement.basis}){more}{lacking}"
    )


def record_upgrades(night: Night, outcomes: Sequence[UpgradeOutcome]) -> None:
    """Write to the run directory whether running queries survive the upgrade, and record it.

    The check takes minutes, so an error of the database does not end it: `record_lacking` records
    the outcomes from the run directory later.
    """
    from nexmark.store import StoreError

    night.files.write_upgrade_outcomes(outcomes)
    try:
        with results() as store:
            store.record_compatibility(night.name, _compatibility_rows(outcomes))
    except StoreError as error:
        say(f"compatibility: not recorded yet: {error}")


def _compatibility_rows(outcomes: Sequence[UpgradeOutcome]) -> "list[CompatibilityRow]":
    """Return the rows of the outcomes for the results database."""
    from nexmark.store.table_rows import CompatibilityRow

    return [
        CompatibilityRow(
            query=each.query,
            baseline_build=each.baseline_build,
            outcome=each.outcome,
            red=each.red,
            reason=each.reason,
            plans=each.plans,
            forward=each.forward,
            backward=each.backward,
            checkpoint=each.checkpoint,
            baseline_plan=each.baseline_plan,
            candidate_plan=each.candidate_plan,
        )
        for each in outcomes
    ]

"""From the files of a night to the results database: of one query, or all that is lacking there.

The run directory keeps all that is recorded. So a night whose database could not be written loses
nothing: `judge` first records what is lacking, and where that fails, too, it says how a person does
it later (`nexmark record`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from nexmark.model import CONFIRMATION, Arm, Say, Stage, grouped, metric_of
from nexmark.night.night_progress import say
from nexmark.night.plan import Deployment, Deployments, Night
from nexmark.night.repetition_plan import position, runs_of
from nexmark.night.repetitions import repetition_records
from nexmark.night.run_directory import Moment, Run
from nexmark.night.verification import Verification
from nexmark.tasks import results

if TYPE_CHECKING:
    from nexmark.store import NightRecord, RepetitionRecord, Store
    from nexmark.store.table_rows import CanaryRow, CompatibilityRow

_MOMENTS: tuple[Moment, ...] = ("before", "after")
#: Columns of these rows that the database itself knows.
_NOT_KEPT = frozenset({"id", "night_id", "checked"})


@contextmanager
def results_of(night: Night) -> "Iterator[Store]":
    """The results database; where it fails, say where the night is and how to record it later."""
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


def night_record(night: Night, deployments: Deployments, started: datetime) -> "NightRecord":
    """What the results database has of a night as it begins."""
    from nexmark.store import BuildRecord, NightRecord

    def recorded(each: Deployment) -> BuildRecord:
        return BuildRecord(each.build, each.spark_version, each.source)

    deployment = deployments.candidate
    return NightRecord(
        dag_id=night.dag_id,
        run_id=night.run_id,
        engine=night.engine.name,
        workload=night.workload.name,
        cluster=night.cluster.name,
        build=recorded(deployment),
        jobs=deployment.program,
        workload_spec=night.workload.model_dump(mode="json"),
        cluster_spec=night.cluster.model_dump(mode="json"),
        queries=night.queries,
        repetitions=night.workload.repetitions,
        directory=night.directory,
        started=started,
        mode=night.mode,
        baselines={query: each.build for query, each in deployments.baselines.items()},
        seed=night.seed,
        gate_spec=night.gate.model_dump(mode="json"),
        candidate_conf=night.candidate_conf,
        teaches=night.teaches,
        baseline_builds=[recorded(each) for each in deployments.baselines.values()],
    )


def record_lacking(night: Night, store: "Store", say: Say) -> int:
    """Record what the database lacks of a night that has run; returns the number of its parts.

    A part is the night itself, a query, the confirmation, or the outcome for running queries.
    """
    found = 0
    if not store.recorded(night.name):
        deployments = Deployments.read(night)
        store.record_night(night_record(night, deployments, deployments.written(night)))
        found += 1
    for group in lacking(night, store):
        say(f"{group}: was not recorded; is recorded now")
        record_group(night, group, store, say)
        found += 1
    rows = compatibility_kept(night)
    if rows and _outcomes(rows) != _outcomes(store.compatibility(night.name)):
        store.record_compatibility(night.name, rows)
        found += 1
    return found


def lacking(night: Night, store: "Store") -> list[str]:
    """The groups, queries and the confirmation, with something that the database lacks."""
    names = ("query", "arm", "stage", "number")
    rows = store.repetitions(night.name, leave_out=("batch_list", "confs"))
    there = {tuple(getattr(row, name) for name in names) for row in rows}
    validated = {row.query for row in store.validations(night.name)}
    watched = {row.group for row in store.canaries(night.name)}

    def lacks(group: str) -> bool:
        runs = runs_of(night, group)
        if not {tuple(getattr(run, name) for name in names) for run in runs} <= there:
            return True
        if group not in watched and canary_records(night, group):
            return True
        return group not in validated and Verification.read(night.query_dir(group)) is not None

    return [group for group in (*night.queries, CONFIRMATION) if lacks(group)]


def record_group(night: Night, group: str, store: "Store", say: Say) -> None:
    """Measure and record every planned repetition of a query, or of the confirmation."""
    from nexmark.store import ValidationRecord

    verification = Verification.read(night.query_dir(group))
    if verification is not None:
        store.record_validation(ValidationRecord(night.name, group, **dict(verification)))
    store.record_canary(night.name, canary_records(night, group))
    # Apart: what was recorded with the flight recorder has no say in which results are right.
    runs = runs_of(night, group)
    for own in grouped(runs, lambda run: (run.query, run.stage == Stage.PROFILED)).values():
        for made in repetition_records(night, own, store):
            store.record_repetition(made)
            say(f"{position(night, made.query)} {summary(made, night)}")


def canary_records(night: Night, group: str) -> "list[CanaryRow]":
    """Return the canary's readings around a group, for the results database."""
    from nexmark.store.table_rows import CanaryRow

    records = []
    for moment in _MOMENTS:
        if (kept := night.files.group(group).canary(moment)) is None:
            continue
        readings, taken = kept
        records += [
            CanaryRow(
                **{"metric": metric, "value": value, "moment": moment, "taken": taken},
                **{"host": host, "group": group},
            )
            for reading in readings
            for host, metrics in reading.items()
            for metric, value in metrics.items()
        ]
    return records


def summary(made: "RepetitionRecord", night: Night) -> str:
    """One line on a repetition."""
    arm = "" if made.arm == Arm.CANDIDATE else f" ({made.arm})"
    stages: dict[int, str] = {Stage.FIRST: f"/{night.workload.repetitions}", Stage.FRESH: ", fresh"}
    of = stages.get(made.stage, ", recorded")
    label = f"repetition {made.number}{of}{arm}"
    run = Run(query=made.query, number=made.number, arm=made.arm, stage=made.stage)
    was_dropped = night.files.application(run).dropped() is not None
    again = " (measured again)" if was_dropped else ""
    if problem := made.failed or made.invalid:
        return f"{label}{again}: {made.status.upper()}: {problem}"
    figures = made.measurement
    assert figures is not None
    metrics = ((metric_of(name), value) for name, value in figures.figures.items())
    more = "".join(f", {x.heading} {value:,.1f}" for x, value in metrics if x.tabled)
    lacking = f"; no operators: {made.parts_problem}" if made.parts_problem else ""
    return (
        f"{label}{again}: {figures.events:,} events in {figures.wall_s:.1f} s, "
        f"{figures.cores:.2f} cores, {figures.cpu_s_per_mevent:.1f} CPU-s per million events "
        f"({figures.basis}){more}{lacking}"
    )


def keep_compatibility(night: Night, rows: "list[CompatibilityRow]") -> None:
    """Keep whether running queries survive, in the run directory."""
    names = [x.name for x in type(rows[0]).__table__.columns if x.name not in _NOT_KEPT]
    night.files.write_compatibility_rows(
        {name: getattr(row, name) for name in names} for row in rows
    )


def compatibility_kept(night: Night) -> "list[CompatibilityRow]":
    """What `keep_compatibility` has kept; nothing where nothing was checked."""
    from nexmark.store.table_rows import CompatibilityRow

    rows = night.files.compatibility_rows()
    return [CompatibilityRow(**{x: y for x, y in row.items() if y is not None}) for row in rows]


def _outcomes(rows: "list[CompatibilityRow]") -> set[tuple[str, str, str]]:
    return {(row.query, str(row.outcome), row.reason) for row in rows}
